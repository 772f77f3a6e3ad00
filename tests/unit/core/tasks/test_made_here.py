"""Each member of an answer that decides about a result was measured on this machine, or the id covers it."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders import CHECKS, REPAIR, build_services, build_task
from confirmers import ScriptedConfirmer, controlled
from fakes import FakeRunner

from gistpoint.core.confirmation.controls import CONTROLS_FILE, controls_of_here, read_controls
from gistpoint.core.confirmation.model import Controls, Unconfirmable
from gistpoint.core.kinds.archive import pack_task, unpack_task
from gistpoint.core.kinds.folder import read_answer, read_task
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.locations import Locations
from gistpoint.core.machine_key import KEY
from gistpoint.core.running import RunContext
from gistpoint.core.tasks.documents import PROTECTIONS_FILE, write_protection
from gistpoint.core.tasks.model import Baseline, Mode, Task
from gistpoint.core.tasks.protection import Protection
from gistpoint.sessions.served import ServedAttempt

BASELINE = "answer/baselines/fake-none.json"
FULL = Controls(
    True,
    reason=Unconfirmable.TOO_SLOW,
    detail="as it was",
    tests=("t1", "t2"),
    telling=("t1",),
    entering=3,
    calls=9,
    answers={"shop/prices.py::discount": ("n:builtins:int",)},
    writes={"shop/prices.py::discount": ("list",)},
    runs=("1",),
    data_hidden=True,
    reasons={"too_slow": 1},
    seconds=0.5,
    each=True,
    failing=("t1", "t2"),
    entered={"shop/prices.py::discount": ("t1", "t2", "t3")},
)
OTHER: dict[str, Any] = {
    "confirmable": False, "reason": "too_many_calls", "detail": "", "tests": ["t2"], "telling": ["t2"],
    "entering": 1, "calls": 1, "answers": {"shop/prices.py::discount": ["n:shop.prices:Equal"]},
    "writes": {"shop/prices.py::discount": ["tests:expected"]}, "runs": ["2"], "data_hidden": False,
    "reasons": {}, "seconds": 0.1, "each": False, "failing": [],
    "entered": {"shop/prices.py::discount": ["t2"]},
}  # fmt: skip
"""Another value for each member of the controls."""


@pytest.fixture
def task(tmp_path: Path) -> Task:
    made = build_task(tmp_path / "made", Mode.REMOVE)
    controlled(made.folder, controls=FULL)
    return made


def rewrite(folder: Path, file: str, change: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads((folder / file).read_text())
    change(document)
    (folder / file).write_text(json.dumps(document))


def passed_on(task: Task, tmp_path: Path) -> Task:
    """Return a task after its folder was packed, and unpacked in another store."""
    pack_task(task.folder, tmp_path / "passed-on.tar.zst")
    return unpack_task(tmp_path / "passed-on.tar.zst", tmp_path / "elsewhere")


def test_controls_that_this_machine_made_count_also_after_a_journey(task: Task, tmp_path: Path) -> None:
    assert controls_of_here(task.folder) == FULL
    assert controls_of_here(passed_on(task, tmp_path).folder) == FULL


@pytest.mark.parametrize("member", Controls.__struct_fields__)
def test_no_member_of_the_controls_can_be_changed(task: Task, tmp_path: Path, member: str) -> None:
    rewrite(task.folder, CONTROLS_FILE, lambda file: file["controls"].update({member: OTHER[member]}))
    other = passed_on(task, tmp_path)
    read = msgspec.convert({"confirmable": True, **OTHER}, Controls)
    assert getattr(read_controls(other.folder), member) == getattr(read, member) != getattr(FULL, member)
    assert controls_of_here(other.folder) is None


def _original(folder: Path) -> None:
    easier = REPAIR.replace("price - price * percent // 100", "0")
    rewrite(folder, "answer/answer.json", lambda file: file["targets"][0].update(original=easier))


def _public(old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = (folder / "task.toml").read_text()
        assert old in text
        (folder / "task.toml").write_text(text.replace(old, new))

    return change


def _of_another_task(folder: Path) -> None:
    """Replace the controls with those that this machine made for another task."""
    another = build_task(folder.parent / "another", Mode.DISCOVERY)
    controlled(another.folder, controls=FULL)
    shutil.copyfile(another.folder / CONTROLS_FILE, folder / CONTROLS_FILE)


def _another_key(folder: Path) -> None:
    key = Locations.of_user().proofs / KEY
    key.write_text("ab" * 32 + "\n")


DOCTORED: dict[str, Callable[[Path], None]] = {
    "no tag": lambda folder: rewrite(folder, CONTROLS_FILE, lambda file: file.pop("made_here")),
    "a tag of another kind": lambda folder: rewrite(
        folder, CONTROLS_FILE, lambda file: file.update(made_here={"tag": ["x"]})
    ),
    "a value that has no canonical form": lambda folder: rewrite(
        folder, CONTROLS_FILE, lambda file: file.update(more=float("nan"))
    ),
    "another machine": _another_key,
    "another task": _of_another_task,
    "the original function": _original,
    "how tests are run": _public("pytest_args = []", 'pytest_args = ["-k", "one"]'),
    "where packages are": _public('import_roots = [\n    ".",\n]', 'import_roots = ["tests", "."]'),
    "which files hold tests": _public('"tests/test_prices.py"', '"tests/test_prices.py", "shop/prices.py"'),
}


@pytest.mark.parametrize("what", DOCTORED)
def test_controls_of_something_else_do_not_count(task: Task, what: str) -> None:
    DOCTORED[what](task.folder)
    assert controls_of_here(task.folder) is None


BASELINE_MEMBERS: dict[str, tuple[Any, str]] = {
    "backend": ("other", "an unknown backend gets the first baseline, whose tests are those of the id"),
    "environment": ("b" * 64, "decides nothing"),
    "runs": (9, "decides nothing"),
    "collected": (["t9"], "a run that collects other tests is invalid"),
    "passed": (["tests/test_prices.py::test_half"], "covered by the id"),
    "passed_corrupted": ([], "measured again with the controls"),
    "seconds": (0.0, "measured again with the controls"),
    "any_order": (True, "the order of a run that counts only if all tests pass"),
    "protections": ({"fake": {"reason": "anything"}}, "found out again"),
}
"""Another value for each member of a baseline, and why it brings no advantage."""


def test_each_member_of_a_baseline_is_in_the_table() -> None:
    assert [field.name for field in dataclasses.fields(Baseline)] == list(BASELINE_MEMBERS)


@pytest.mark.parametrize("member", BASELINE_MEMBERS)
def test_a_baseline_from_elsewhere_counts_only_as_far_as_the_id_covers_it(
    task: Task, tmp_path: Path, member: str
) -> None:
    known = read_answer(task).baselines[0]
    assert known.protections
    rewrite(task.folder, BASELINE, lambda file: file.update({member: BASELINE_MEMBERS[member][0]}))
    # The true one is also included, so that the answer still fits the id.
    document = json.loads((task.folder / BASELINE).read_text())
    (task.folder / BASELINE).with_name("zz-true.json").write_text(
        json.dumps({**document, "backend": "zz", "passed": sorted(known.passed)})
    )
    found = read_answer(passed_on(task, tmp_path)).baseline_for("fake")
    assert not found.protections
    assert found.passed == known.passed


def test_what_a_submission_may_change_is_found_out_on_this_machine(task: Task, tmp_path: Path) -> None:
    free = BASELINE_MEMBERS["protections"][0]
    rewrite(task.folder, BASELINE, lambda file: file.update(protections=free))
    other = passed_on(task, tmp_path)
    before = (other.folder / BASELINE).read_bytes()
    runner = FakeRunner(CHECKS)
    found = RepairJudge(other, read_answer(other), runner).protection()
    assert isinstance(found, Protection)
    assert found.writable is not None
    assert runner.runs == 1
    again = FakeRunner(CHECKS)
    assert RepairJudge(other, read_answer(other), again).protection() == found
    assert again.runs == 0
    assert (other.folder / BASELINE).read_bytes() == before, "a team compares the bytes"
    pack_task(other.folder, tmp_path / "again.tar.zst")
    assert not (
        unpack_task(tmp_path / "again.tar.zst", tmp_path / "third").folder / PROTECTIONS_FILE
    ).exists()


def test_a_found_protection_that_somebody_changed_does_not_count(task: Task) -> None:
    write_protection(task.folder, "other", Protection(None, "too many files"))
    assert "other" in read_answer(task).baselines[0].protections
    rewrite(task.folder, PROTECTIONS_FILE, lambda file: file["protections"].update(more={"reason": "x"}))
    assert set(read_answer(task).baselines[0].protections) == {"fake"}


def test_a_trusted_source_is_believed(task: Task, tmp_path: Path) -> None:
    pack_task(task.folder, tmp_path / "a.tar.zst")
    _another_key(task.folder)
    for _ in range(2):  # unpacked, and unpacked over an existing task
        found = unpack_task(tmp_path / "a.tar.zst", tmp_path / "demo", replaces=True)
        assert controls_of_here(found.folder) == FULL
        assert read_answer(found) == read_answer(read_task(found.folder))
        assert read_answer(found).baselines[0].protections
        _another_key(task.folder)


@pytest.mark.parametrize("doctored", [False, True])
def test_doctored_controls_are_made_again_before_a_pass_is_confirmed(tmp_path: Path, doctored: bool) -> None:
    confirmer = ScriptedConfirmer(controls=msgspec.structs.replace(FULL, reason=None))
    services = replace(build_services(tmp_path), confirmer_for=lambda task: confirmer)
    task = build_task(services.locations.tasks)
    controlled(task.folder, controls=FULL)
    if doctored:
        rewrite(task.folder, CONTROLS_FILE, lambda file: file["controls"].update(tests=["t2"]))
    for _ in range(2):
        served = ServedAttempt(services, task, {"kind": "mcp"}, tell=lambda text: None)
        served.call("submit_attempt", {"func_code": REPAIR}, "", {}, RunContext())
        served.close()
    assert len(confirmer.submitted) == 2
    assert len(confirmer.controlled) == (1 if doctored else 0)
    assert controls_of_here(task.folder) == (confirmer.controls if doctored else FULL)
