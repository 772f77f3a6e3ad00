"""Campaigns on the earlier bodies of a little library's functions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fake_benches import SHOP, FakeBench, FakeScorer, Shop

from gistpoint.core.corruption.blind import GlanceScore
from gistpoint.core.errors import SourceError, UserError
from gistpoint.core.generation.candidates import plan
from gistpoint.core.generation.choice import GroupFunctions
from gistpoint.core.generation.earlier import (
    EarlierFile,
    read_earlier_files,
    require_earlier_files,
    write_earlier_files,
)
from gistpoint.core.generation.making import write_kept
from gistpoint.core.generation.requests import GenerateTasks
from gistpoint.core.generation.settings import CampaignMode, CampaignSettings, FaultSource
from gistpoint.core.generation.verdicts import CandidateVerdict, Counts, Reason
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.ports import ProbeFailure, ProbeReport
from gistpoint.core.tasks.model import Target


def campaign(
    folder: Path, *versions: str, bench: FakeBench | None = None, mode: str = "discovery", **options: object
) -> tuple[Counts, list[CandidateVerdict]]:
    """Make tasks from earlier versions of the library's file, given newest first."""
    shop = Shop(folder, bench or FakeBench())
    shop.library()
    files = tuple(
        EarlierFile(f"{n}" * 40, f"2024-01-{10 - n:02}", text) for n, text in enumerate(versions, 1)
    )
    write_earlier_files(folder / "library", {"shop.py": files})
    return shop.campaign(mode, source=FaultSource.HISTORY, **{"min_failing": 1, **options})


def earlier(*changes: tuple[str, str]) -> str:
    text = SHOP
    for now, then in changes:
        assert now in text
        text = text.replace(now, then)
    return text


def the_one(kept: list[CandidateVerdict]) -> tuple[Target, dict[str, object]]:
    (verdict,) = kept
    assert verdict.kept is not None
    (target,), (part,) = verdict.kept.targets, verdict.kept.provenance["parts"]
    return target, part


def test_the_part_of_an_earlier_body_that_breaks_tests_becomes_a_task(tmp_path: Path) -> None:
    version = earlier(
        (
            "    for name, count in sorted(stock(orders).items()):",
            "    for name, count in stock(orders).items():",
        ),
        ("def bill(orders, rate):", "def bill(orders, rate=1):"),
    )
    counts, kept = campaign(tmp_path, version)
    target, part = the_one(kept)
    assert target.corrupted == target.original.replace(
        "sorted(stock(orders).items())", "stock(orders).items()"
    )
    assert part["history"] == {"version": "1" * 40, "date": "2024-01-09", "changes": 1, "taken": 1}
    assert part["families"] == ["history"]
    assert counts.reasons == {Reason.NO_EARLIER_BODY: 2}


TWO_CHANGES = (("if count >= 1:", "if count >= -5:"), ("price(count, rate)", "price(count, rate + 1)"))


def test_an_earlier_body_is_taken_whole_if_it_makes_a_good_task(tmp_path: Path) -> None:
    """Changes that break nothing belong to the earlier body and hide the one that does (decision 181)."""
    _, kept = campaign(tmp_path, earlier(*TWO_CHANGES))
    target, part = the_one(kept)
    whole = target.original
    for now, then in TWO_CHANGES:
        whole = whole.replace(now, then)
    assert target.corrupted == whole
    assert part["history"]["changes"] == part["history"]["taken"] == 2  # type: ignore[index]


def test_of_a_body_that_is_no_good_task_the_smallest_part_is_taken(tmp_path: Path) -> None:
    def too_much_together(targets: tuple[Target, ...]) -> ProbeReport | None:
        (target,) = targets
        failed = {
            f"tests/test_shop.py::test_bill[{n}]": ProbeFailure("a", True, False, "AssertionError")
            for n in range(50)
        }
        is_whole = all(then in target.corrupted for _, then in TWO_CHANGES)
        return ProbeReport(RunStatus.FINISHED, failed, 60, 0.001) if is_whole else None

    _, kept = campaign(tmp_path, earlier(*TWO_CHANGES), bench=FakeBench(wish=too_much_together))
    target, part = the_one(kept)
    assert target.corrupted == target.original.replace(*TWO_CHANGES[1])
    assert part["history"]["taken"] == 1  # type: ignore[index]
    assert part["history"]["changes"] == 2  # type: ignore[index]


def test_the_newest_body_of_several_versions_is_named(tmp_path: Path) -> None:
    old = earlier(("total // 10", "total // 5"))
    _, kept = campaign(tmp_path, SHOP, old, old + "\n\n# more\n")
    _, part = the_one(kept)
    assert part["history"]["version"] == "2" * 40  # type: ignore[index]
    assert part["history"]["replaced_by"] == "1" * 40  # type: ignore[index]


@pytest.mark.parametrize(
    "body",
    [
        ("    left = {}", "    left = emptied()"),
        ("left.get(name, 0) + count", "left.fetch(name, 0) + count"),
        ("    left = {}", "    from shop import gone\n    left = {}"),
    ],
)
def test_bodies_that_use_what_is_gone_are_no_tasks(tmp_path: Path, body: tuple[str, str]) -> None:
    counts, kept = campaign(tmp_path, earlier(body))
    assert not kept
    assert counts.fates["earlier body: no test fails"] == 1


def test_one_failing_test_has_to_fail_every_time(tmp_path: Path) -> None:
    probes: list[int] = []
    version = earlier(("total // 10", "total // 5"))
    (tmp_path / "steady").mkdir()
    _, kept = campaign(tmp_path / "steady", version)
    assert len(kept) == 1

    def at_times(targets: tuple[Target, ...]) -> ProbeReport | None:
        probes.append(1)
        failed = {"tests/test_shop.py::test_rebate": ProbeFailure("assert", True, False, "AssertionError")}
        return ProbeReport(RunStatus.FINISHED, failed if len(probes) != 4 else {}, 20, 0.001)

    (tmp_path / "unsteady").mkdir()
    counts, kept = campaign(tmp_path / "unsteady", version, bench=FakeBench(wish=at_times))
    assert not kept
    assert Reason.SUITE_DIFFERS in counts.reasons


def test_a_failing_test_that_does_not_enter_the_function_proves_nothing_about_it(tmp_path: Path) -> None:
    def elsewhere(targets: tuple[Target, ...]) -> ProbeReport | None:
        failed = {"tests/test_shop.py::test_stock[1]": ProbeFailure("a", True, False, "AssertionError")}
        return ProbeReport(RunStatus.FINISHED, failed, 20, 0.001)

    _, kept = campaign(tmp_path, earlier(("total // 10", "total // 5")), bench=FakeBench(wish=elsewhere))
    assert not kept


def test_a_feature_that_the_earlier_file_lacks_is_kept_only_if_asked_for(tmp_path: Path) -> None:
    tests = "def test_rebate():\n    assert price(amount=20, rate=10) == 180\n"
    lacking = SHOP.replace("amount", "number").replace(
        "    if total > 100:\n        total = total - total // 10\n", ""
    )
    for asked in (False, True):
        folder = tmp_path / str(asked)
        folder.mkdir()
        shop = Shop(folder, FakeBench(), tests=tests)
        shop.library()
        write_earlier_files(folder / "library", {"shop.py": (EarlierFile("1" * 40, "", lacking),)})
        counts, kept = shop.campaign(
            "discovery", source=FaultSource.HISTORY, min_failing=1, missing_features=asked
        )
        assert (Reason.MISSING_FEATURE in counts.fates) is not asked
        del kept


class _ByLength(FakeScorer):
    """A scorer that predicts a higher score for a longer function."""

    def scores(self, targets: object, families: object = (), on_reading: object = None) -> list[GlanceScore]:
        assert isinstance(targets, list)
        return [GlanceScore(len(target.corrupted) / 1000, {}) for target in targets]


class _Bench(FakeBench):
    def scorer(self, intake: object) -> FakeScorer:
        return _ByLength(0.0)


def test_the_least_visible_of_the_pool_become_tasks_whatever_the_order(tmp_path: Path) -> None:
    version = earlier(
        ("total // 10", "total // 5"),
        ("left.get(name, 0) + count", "left.get(name, 1) + count"),
        ("sorted(stock(orders).items())", "reversed(sorted(stock(orders).items()))"),
    )
    chosen = []
    for seed in range(3):
        folder = tmp_path / str(seed)
        folder.mkdir()
        counts, kept = campaign(folder, version, bench=_Bench(), count=1, pool=3, seed=seed)
        chosen.append([verdict.names for verdict in kept])
        assert counts.reasons[Reason.IN_POOL] == 2
    assert chosen == [[("shop.py::stock",)]] * 3


def test_the_pool_bounds_what_is_tried(tmp_path: Path) -> None:
    version = earlier(
        ("total // 10", "total // 5"), ("left.get(name, 0) + count", "left.get(name, 1) + count")
    )
    counts, kept = campaign(tmp_path, version, count=1, pool=1)
    assert len(kept) == 1
    assert counts.tried < 3


def test_the_origin_is_in_the_answer_and_not_in_the_task(tmp_path: Path) -> None:
    _, kept = campaign(tmp_path, earlier(("total // 10", "total // 5")))
    assert kept[0].kept is not None
    library = Shop(tmp_path).library()
    settings = CampaignSettings(CampaignMode.DISCOVERY, 0, 1, source=FaultSource.HISTORY)
    task = write_kept(library, settings, kept[0].kept, tmp_path / "tasks")
    assert task.folder is not None
    assert read_answer(task).provenance["parts"][0]["history"]["version"] == "1" * 40
    public = list(task.folder.rglob("*.toml"))
    assert public
    assert not any("1" * 40 in path.read_text() for path in public)


def test_stored_files_are_read_again_and_damaged_ones_are_none(tmp_path: Path) -> None:
    files = {"a.py": (EarlierFile("1.0", "", "x = 1\n"), EarlierFile("0.9", "", "x = 'ü\\ud800'\n"))}
    write_earlier_files(tmp_path, files)
    assert read_earlier_files(tmp_path) == files
    (tmp_path / "history.json").write_text('{"version": 1, "files": {"a.py": 3}}')
    assert read_earlier_files(tmp_path) is None
    assert read_earlier_files(tmp_path / "nowhere") is None
    with pytest.raises(SourceError, match="no earlier version"):
        require_earlier_files({}, "x==1")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mode": CampaignMode.REMOVE, "source": FaultSource.HISTORY}, "--from history"),
        ({"mode": CampaignMode.MULTI, "source": FaultSource.ATTEMPTS}, "--from attempts"),
        ({"mode": CampaignMode.DISCOVERY, "source": FaultSource.HISTORY, "model": "m"}, "--from history"),
        ({"mode": CampaignMode.DISCOVERY, "missing_features": True}, "--missing-features"),
        ({"mode": CampaignMode.REMOVE, "pool": 3}, "--pool"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(UserError, match=words):
        CampaignSettings(**options)  # type: ignore[arg-type]


def test_settings_of_earlier_campaigns_keep_their_keys(tmp_path: Path) -> None:
    settings = CampaignSettings(CampaignMode.DISCOVERY)
    assert not {"source", "missing_features", "pool"} & settings.to_json().keys()
    assert replace(settings, pool=5).deciding() == settings.deciding()
    history = replace(settings, source=FaultSource.HISTORY, min_failing=1)
    assert history.deciding() != settings.deciding()
    assert history.band == (1, 40)


def test_a_pool_smaller_than_the_set_is_refused() -> None:
    with pytest.raises(UserError, match="at least the number of tasks"):
        GenerateTasks(sources=("x==1",), faults=FaultSource.HISTORY, count=5, pool=3).planned(
            lambda model, least: pytest.fail("no model")
        )
    _, settings, _ = GenerateTasks(sources=("x==1",), faults=FaultSource.HISTORY, count=5).planned(
        lambda model, least: pytest.fail("no model")
    )
    assert (settings.pool, settings.min_failing) == (15, 1)


def test_candidates_need_one_test_that_sees_them(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    settings = CampaignSettings(CampaignMode.DISCOVERY, 0, 1, source=FaultSource.HISTORY)
    assert len(plan(shop.library(), settings).candidates) == 3


REBATE = ("total // 10", "total // 5")
COUNTS = ("left.get(name, 0) + count", "left.get(name, 1) + count")


def test_parts_that_one_commit_changed_become_one_task(tmp_path: Path) -> None:
    counts, (verdict,) = campaign(tmp_path, SHOP, earlier(REBATE, COUNTS), mode="multi", count=1)
    assert verdict.kept is not None
    assert {target.qualname for target in verdict.kept.targets} == {"price", "stock"}
    parts = verdict.kept.provenance["parts"]
    assert {part["history"]["replaced_by"] for part in parts} == {"1" * 40}
    assert verdict.kept.provenance["largest_distance"] <= 4
    assert min(verdict.kept.provenance["failing_alone"]) >= 1
    assert counts.kept == 1


def test_parts_of_different_commits_are_not_joined(tmp_path: Path) -> None:
    counts, kept = campaign(tmp_path, SHOP, earlier(REBATE), earlier(REBATE, COUNTS), mode="multi")
    assert not kept
    assert counts.reasons == {Reason.NO_PARTNER: 3}


def test_the_papers_preset_has_groups_of_four_within_four_calls() -> None:
    def planned(**options: object) -> CampaignSettings:
        wanted = GenerateTasks(sources=("x==1",), mode=CampaignMode.MULTI, **options)  # type: ignore[arg-type]
        return wanted.planned(lambda model, least: pytest.fail("no model"))[1]

    paper = planned(preset="paper", faults=FaultSource.HISTORY)
    assert (paper.groups.sizes, paper.groups.distance, paper.pool) == ((4,), 4, 0)
    assert planned(preset="paper", groups=GroupFunctions(size="2")).groups.sizes == (2,)
    assert planned().groups.sizes == ()
