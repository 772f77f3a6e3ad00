"""Campaigns on failed submissions for a little library's functions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fake_benches import SHOP, FakeBench, Shop

from gistpoint.core.code.index import index_source
from gistpoint.core.errors import UserError
from gistpoint.core.generation.candidates import plan
from gistpoint.core.generation.making import write_kept
from gistpoint.core.generation.requests import GenerateTasks
from gistpoint.core.generation.settings import CampaignMode, CampaignSettings, FaultSource
from gistpoint.core.generation.submissions import (
    FailedSubmission,
    FailedSubmissions,
    origins_in,
    write_submissions,
)
from gistpoint.core.generation.verdicts import CandidateVerdict, Counts, Reason
from gistpoint.core.kinds.folder import read_answer

SETTINGS = CampaignSettings(
    CampaignMode.DISCOVERY, 0, 1, source=FaultSource.ATTEMPTS, studies=("secret-study",)
)


def function(name: str, *changes: tuple[str, str]) -> str:
    """Return the source of a function of the library after some replacements."""
    text = index_source("shop.py", SHOP.encode()).get(name).dedented
    for now, then in changes:
        assert now in text
        text = text.replace(now, then)
    return text


def submitted(
    name: str, *changes: tuple[str, str], planted: str = "", attempt: str = "01A"
) -> FailedSubmission:
    text = function(name, *changes)
    return FailedSubmission(f"shop.py::{name}", text, SHOP, planted, attempt, 2, "person", "secret-study")


def campaign(
    folder: Path, *items: FailedSubmission, bench: FakeBench | None = None, **options: object
) -> tuple[Counts, list[CandidateVerdict]]:
    shop = Shop(folder, bench or FakeBench())
    shop.library()
    write_submissions(folder / "library", SETTINGS.studies, FailedSubmissions.collected(items))
    given = {"source": FaultSource.ATTEMPTS, "studies": SETTINGS.studies, "min_failing": 1, **options}
    return shop.campaign("discovery", **given)


def test_a_failed_submission_becomes_a_task_and_its_origin_is_in_the_answer_alone(tmp_path: Path) -> None:
    wrong = submitted("bill", ("sorted(stock(orders).items())", "stock(orders).items()"))
    counts, (verdict,) = campaign(tmp_path, wrong)
    assert verdict.kept is not None
    assert verdict.kept.targets[0].corrupted == wrong.text
    assert counts.reasons == {Reason.NO_EARLIER_BODY: 2}
    task = write_kept(Shop(tmp_path).library(), SETTINGS, verdict.kept, tmp_path / "tasks")
    provenance = read_answer(task).provenance
    assert provenance["parts"][0]["attempt"] == {
        "id": "01A", "submission": 2, "by": "person", "study": "secret-study", "changes": 1, "taken": 1,
    }  # fmt: skip
    assert origins_in(provenance) == {("secret-study", "01A")}
    public = [path for path in task.folder.rglob("*") if path.is_file() and "answer" not in path.parts]
    assert len(public) > 1
    assert not any(
        word in path.read_bytes() for path in public for word in (b"01A", b"secret-study", b"attempts")
    )


def test_what_was_planted_is_no_mistake_of_the_solver(tmp_path: Path) -> None:
    fault = ("left.get(name, 0) + count", "left.get(name, 1) + count")
    planted = function("stock", fault)
    counts, kept = campaign(
        tmp_path, submitted("stock", fault, ("left = {}", "left = dict()"), planted=planted)
    )
    assert not kept
    assert counts.fates["earlier body: no test fails"] == 1
    (tmp_path / "own").mkdir()
    own = submitted("stock", fault, ("    return left", "    return {**left, 2: 0}"), planted=planted)
    _, (verdict,) = campaign(tmp_path / "own", own)
    assert verdict.kept is not None
    assert "{**left, 2: 0}" in verdict.kept.targets[0].corrupted
    assert "left.get(name, 0)" in verdict.kept.targets[0].corrupted


def test_a_verdict_without_a_task_has_no_code_of_anybody(tmp_path: Path) -> None:
    _, kept = campaign(tmp_path, submitted("stock", ("left = {}", "left = dict()"), attempt="01B"))
    assert not kept
    assert "dict()" not in (tmp_path / "discovery-3.jsonl").read_text()


def test_only_functions_with_submissions_are_candidates_and_each_new_one_makes_another(
    tmp_path: Path,
) -> None:
    library = Shop(tmp_path).library()
    first = FailedSubmissions.collected([submitted("stock", ("{}", "dict()"))])
    planned = plan(library, SETTINGS, first.versions)
    assert [candidate.name for candidate in planned.candidates] == ["shop.py::stock"]
    assert planned.left_out["without_submission"] == 3
    more = FailedSubmissions.collected(
        [submitted("stock", ("{}", "dict()")), submitted("stock", ("0", "1"), attempt="01B")]
    )
    again = plan(library, SETTINGS, more.versions)
    assert again.candidates[0].key != planned.candidates[0].key
    assert "without_submission" not in plan(library, replace(SETTINGS, source=FaultSource.HISTORY)).left_out


@pytest.mark.parametrize("mode", [CampaignMode.REMOVE, CampaignMode.MULTI])
def test_options_that_do_not_fit_are_refused(mode: CampaignMode) -> None:
    with pytest.raises(UserError, match="--from attempts makes discovery tasks"):
        CampaignSettings(mode, source=FaultSource.ATTEMPTS)
    with pytest.raises(UserError, match="--study applies only to --from attempts"):
        GenerateTasks(sources=("x==1",), studies=("s",)).planned(lambda model, least: pytest.fail("no model"))
