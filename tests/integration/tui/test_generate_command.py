"""`gistpoint task generate`: errors in the call, bad sources as rows, and a whole run on a small library."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_benches import FakeBench, Shop
from fakes import FakeClock
from small_library import write_small_library
from study_folders import MINIMAL, Machine, declare

from gistpoint.core.attempts.events import EndReason
from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.errors import CancelledError, SourceError
from gistpoint.core.generation import pipeline
from gistpoint.core.generation.candidates import plan
from gistpoint.core.generation.intake import NoGood, NoTaskError
from gistpoint.core.generation.pipeline import SourceResult
from gistpoint.core.generation.settings import CampaignMode, CampaignSettings, SourceSpec
from gistpoint.core.kinds.folder import read_answer, read_task
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.requests import IsolationChoice
from gistpoint.core.study.operations import Begun, Consented, Planned, StudyOperationKind, person
from gistpoint.core.tasks.model import Source, Task
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.object_graph import build_runner
from gistpoint.sessions.studies.course import open_for_people
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.people import EnrolPeople, enrol_people
from gistpoint.sessions.tasks import TaskStore
from gistpoint.tui.cli import main

PLAIN = ["--sandbox", "plain", "--allow-unsandboxed"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--count", "x"], "'x' is not a whole number"), (["--count", "0"], "must be 1 or more")],
)
def test_what_is_no_number_is_told_so(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["task", "generate", "x==1", *arguments])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "Name one or more sources, or a batch file"),
        (["a==1", "--batch", "x.toml"], "not both"),
        (["--batch", "missing.toml"], "missing.toml can't be read"),
        (["--batch", "bad.toml"], "bad.toml: the key 'source[0].pytest_args' must be a list"),
        (["--batch", "good.toml", "--with", "mock"], "the arguments of each source are in the file"),
        (["a==1", "--pytest-args", "'"], "--pytest-args can't be split"),
    ],
)
def test_mistakes_are_told_with_what_to_do(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.toml").write_text("[[source]]\nsource = 'a==1'\npytest_args = 'tests'\n")
    Path("good.toml").write_text("[[source]]\nsource = 'a==1'\n")
    assert main(["task", "generate", *arguments, *PLAIN]) == 2
    message, hint, *_ = capsys.readouterr().err.splitlines()
    assert told in message
    assert hint


@pytest.mark.parametrize(
    "wrong",
    [["--count", "0"], ["--workers", "x"], ["--mode", "none"], ["--control", "-1"], ["--max-glance", "2"]],
)
def test_values_out_of_range_are_refused(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["task", "generate", "a==1", *wrong])
    assert caught.value.code == 2
    assert wrong[0] in capsys.readouterr().err


def _batch_of(folder: Path, *names: str) -> str:
    text = "min_stars = 10\n" + "".join(f"[[source]]\nsource = '{name}'\n" for name in names)
    (folder / "set.toml").write_text(text + "[[source]]\nsource = 'few==1'\nstars = 3\n")
    return str(folder / "set.toml")


def test_sources_that_are_no_good_are_rows_and_the_exit_code_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def learned(spec: SourceSpec, *_: object) -> object:
        if spec.source == "gone==1":
            raise SourceError("gone==1 can't be found.")
        raise NoTaskError(NoGood.NOT_GREEN, "The suite is not green.")

    monkeypatch.setattr(pipeline, "_learned", learned)
    batch = _batch_of(tmp_path, "red==1", "gone==1")
    assert main(["task", "generate", "--batch", batch, "--workers", "1", "--json", *PLAIN]) == 1
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document["schema"] == "gistpoint.generate/1"
    assert [source["refused"]["reason"] for source in document["sources"]] == [
        "suite_not_green",
        "source_not_to_be_had",
    ]
    assert document["too_few_stars"] == ["few==1"]
    assert main(["task", "generate", "gone==1", "--workers", "1", *PLAIN]) == 2


@pytest.mark.parametrize("made", [0, 1])
def test_json_is_whole_although_the_work_was_stopped(
    made: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(specs: Iterable[SourceSpec], *_: object, **__: object) -> Iterator[SourceResult]:
        if not made:
            raise CancelledError("Stopped at your request.")
        yield SourceResult(next(iter(specs)), tasks=["id-of-a-task"], stopped=CancelledError("Stopped."))

    monkeypatch.setattr(pipeline, "generate", stopped)
    assert main(["task", "generate", "shop==1", "--workers", "1", "--json", *PLAIN]) == 130
    captured = capsys.readouterr()
    assert [source["tasks"] for source in json.loads(captured.out)["sources"]] == [["id-of-a-task"]] * made
    assert (
        captured.err
        == "gistpoint: Stopped. The tasks made so far are kept: the same command continues from there.\n"
    )


def test_tables_tell_what_was_tried_kept_dropped_and_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = Shop(tmp_path)
    counts, _ = shop.campaign("multi", min_failing=2)
    library = shop.library()

    def made(specs: Iterable[SourceSpec], *_: object, **__: object) -> Iterator[SourceResult]:
        comparisons = [{"agrees": True}, {"agrees": False, "targets": ["shop.py::bill"]}]
        planned = plan(library, CampaignSettings(CampaignMode.MULTI, min_failing=2))
        for spec in specs:
            yield SourceResult(
                spec,
                learning_seconds=1.0,
                making_seconds=2.0,
                plan=planned,
                library=library,
                tasks=["id-of-a-task"],
                counts=counts,
                comparisons=list(comparisons),
            )

    monkeypatch.setattr(pipeline, "generate", made)
    assert main(["task", "generate", "shop==1", "--workers", "1", "--count", "1", *PLAIN]) == 0
    lines = capsys.readouterr().out.splitlines()
    cells = dict(zip(lines[0].split("\t"), lines[1].split("\t"), strict=True))
    assert cells["source"] == "shop==1 (stars unknown)"
    assert (cells["functions"], cells["candidates"]) == ("4", "3")
    assert (cells["tried"], cells["kept"]) == (str(counts.tried), str(counts.kept))
    assert cells["control"] == "50% of 2"
    assert float(cells["saved s"]) > 0
    assert (
        f"shop==1\tcandidate\tshares_functions_with_a_kept_one\t{counts.reasons['shares_functions_with_a_kept_one']}"
        in lines
    )
    assert any(line.startswith("shop==1\tcorruption\tgood\t") for line in lines)
    assert "shop==1: probe and suite differ on shop.py::bill" in lines
    assert lines[-1] == "id-of-a-task"
    assert main(["task", "generate", "shop==1", "--workers", "1", "--count", "9", *PLAIN]) == 1


def test_a_set_short_of_hidden_corruptions_says_how_to_have_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = Shop(tmp_path, FakeBench(glance=0.99))
    counts, _ = shop.campaign("discovery", min_failing=2)
    monkeypatch.setattr(pipeline, "generate", lambda specs, *_, **__: [SourceResult(specs[0], counts=counts)])
    assert main(["task", "generate", "shop==1", "--workers", "1", *PLAIN]) == 1
    printed = capsys.readouterr().out
    assert "nothing was kept" in printed
    assert "This tries more:\ngistpoint task generate shop==1 " in printed
    assert "--max-glance 0.5" in printed


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The requested sources; local folders with gistpoint's pytest replace them."""
    from gistpoint.sandbox.environments import sources as repositories

    fetched: list[str] = []

    def fetch(spec: SourceSpec, scratch: Path, cache: Path, **_: Any) -> Repository:
        fetched.append(spec.source)
        write_tree(Path(spec.source), scratch / "tree.tar")
        pins = EnvironmentPins(python="", pytest_args=("tests",))
        return Repository(Source("folder", "shop", "1"), SourceTree.open(scratch / "tree.tar"), pins)

    monkeypatch.setattr(repositories, "fetch_repository", fetch)
    return fetched


@pytest.mark.slow
def test_tasks_are_made_once_and_the_same_command_makes_no_more(
    tmp_path: Path, home: Path, offline: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    library = str(write_small_library(tmp_path / "shop"))
    command = ["task", "generate", library, "--mode", "remove", "--count", "2", "--min-failing", "3"]
    command += ["--workers", "1", "--control", "1", "--json", *PLAIN]
    assert main(command) == 0
    first = json.loads(capsys.readouterr().out)["sources"][0]
    assert (first["kept"], first["control"]["agreement"]) == (2, 1.0)
    assert first["costs"]["warm"] > 0
    assert {path.name for path in (home / "data" / "tasks").iterdir()} == set(first["tasks"])
    assert main(command) == 0
    second = json.loads(capsys.readouterr().out)["sources"][0]
    assert {**second, "seconds": 0} == {**first, "seconds": 0}
    assert offline == [library]


@pytest.mark.slow
def test_a_failed_submission_becomes_a_task_and_goes_when_its_author_is_erased(
    tmp_path: Path, home: Path, offline: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    library = str(write_small_library(tmp_path / "shop"))
    machine = Machine(home, FakeClock())
    new = ["task", "new", library, "--function", "shop.py::price", "--min-failing", "1", *PLAIN]
    assert main(new) == 0
    task = TaskStore(machine.locations.tasks).find(capsys.readouterr().out.splitlines()[-1])
    texts = {**MINIMAL["texts"], "consent_items": ["[required] Yes", "[tasks] Yes"]}
    changes = {"texts": texts, "design": {"tasks_per_person": 1}}
    study = machine.open(declare(tmp_path / "study", changes, tasks=False))
    shutil.copytree(task.folder, tmp_path / "study" / "tasks" / task.id)
    open_for_people(study)
    fail_at(machine, study, task, "total > 100", "total >= 100")
    command = ["task", "generate", library, "--from", "attempts", "--count", "1", "--workers", "1", *PLAIN]
    assert main([*command, "--json"]) == 2
    assert "1 attempt of a study that --study does not name" in capsys.readouterr().err
    assert main([*command, "--study", str(tmp_path / "study"), "--json"]) == 0
    source = json.loads(capsys.readouterr().out)["sources"][0]
    (made,) = source["tasks"]
    assert source["candidates"] == 1
    answer = read_answer(read_task(machine.locations.tasks / made))
    assert answer.targets[0].corrupted == answer.targets[0].original.replace("> 100", ">= 100")
    assert answer.provenance["parts"][0]["attempt"]["study"] == "shop-2026"
    texts_there = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert b"total >= 100" in texts_there
    assert main(["study", "withdraw", str(tmp_path / "study"), "P1", "--erase"]) == 0
    assert "Also deleted: 1 task made from failed submissions" in capsys.readouterr().out
    texts_there = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert b"total >= 100" not in texts_there
    assert main([*command, "--study", str(tmp_path / "study")]) == 2


TILL = """

class Till:
    coins = (1, 2, 5)

    def pay(self, coin):
        if coin not in self.coins:
            raise ValueError(coin)
        return coin
"""
PAYING = """

@pytest.mark.parametrize("coin", [1, 2, 5])
def test_pay(coin):
    from shop import Till
    assert Till().pay(coin) == coin
"""


@pytest.mark.slow
def test_a_class_is_removed_by_its_name_and_says_that_passes_can_not_be_confirmed(
    tmp_path: Path,
    home: Path,
    offline: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("GISTPOINT_CONFIRM", raising=False)
    library = write_small_library(tmp_path / "shop")
    for path, text in ((library / "shop.py", TILL), (library / "tests" / "test_shop.py", PAYING)):
        path.write_text(path.read_text() + text)
    assert main(["task", "new", str(library), "--function", "Till", *PLAIN]) == 0
    said = capsys.readouterr().out
    assert "shop.py::Till: 3 of" in said
    assert "class_target" in said
    assert main(["task", "show", said.splitlines()[-1]]) == 0
    shown = capsys.readouterr()
    assert "Write the class again" in shown.out
    assert "failing tests: 3 (stratum 2-4)" in shown.err
    assert "passes can be confirmed: no (class_target)" in shown.err
    assert main(["task", "check", said.splitlines()[-1], *PLAIN]) == 0
    assert "no (class_target). shop.py::Till is a class" in capsys.readouterr().err


def fail_at(machine: Machine, study: StudyFolder, task: Task, now: str, then: str) -> None:
    """Let a participant who agrees to it submit the original with one change, and give up."""
    enrol_people(study, EnrolPeople(code="P1", role="author"))
    items = Consented(text_sha256="x", items=(True, True), protocol=study.ledger.protocol)
    study.record("P1", person("P1"), StudyOperationKind.CONSENTED, items)
    planned = Planned(slot=1, assignments=(("a", task.id, "alone", 1),))
    study.record("P1", person("P1"), StudyOperationKind.PLANNED, planned)
    answer, runner = read_answer(task), build_runner(IsolationChoice(sandbox="plain", allow_unsandboxed=True))
    enrolment = Enrolment(participant="P1", study="shop-2026", condition="alone", assignment="a")
    opened = machine.attempts.start(task, RepairJudge(task, answer, runner), enrolment)
    opened.attempt.call("submit_attempt", {"func_code": answer.targets[0].original.replace(now, then)})
    opened.attempt.end(EndReason.GAVE_UP)
    opened.close()
    assert opened.attempt.state.submissions[0].failing
    begun = Begun(assignment="a", attempt=opened.attempt.state.attempt_id)
    study.record("P1", person("P1"), StudyOperationKind.BEGUN, begun)
