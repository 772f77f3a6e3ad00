"""The profile of a run: its actions over time, from its steps alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from recorded_runs import make_all
from recorded_runs.repairs import MEAN, RIGHT, WRONG, journal_run

from gistpoint.sessions.records.model import (
    Actor,
    ByteRange,
    Result,
    Run,
    RunCall,
    Step,
    StepKind,
    Tokens,
)
from gistpoint.sessions.runs.facts import Goal
from gistpoint.sessions.runs.opening import list_runs, open_run
from gistpoint.sessions.runs.profile import (
    MOST_BINS,
    Profile,
    Profiler,
    divergence_of,
    missing_in,
    profile_of,
    test_run_of,
)
from gistpoint.sessions.runs.work import Work
from gistpoint.tui import cli
from gistpoint.tui.profile_drawing import drawn
from gistpoint.tui.profile_rows import ProfiledRun, by_task, rows_drawn

GOAL = Goal("src/stats.py", "mean", MEAN)


def step(
    index: int, kind: StepKind, path: str = "", text: str = "", code: int | None = None, prompt: int = 0
) -> Step:
    call = RunCall("c", kind.value, f"{path} {index}", {"path": path, "number": index})
    return Step(
        index, Actor.AGENT, kind, ByteRange("", 0, 1), calls=(call,),
        results=(Result("c", text, returncode=code),), tokens=Tokens(prompt or None),
    )  # fmt: skip


def profile(*steps: Step) -> Profile:
    profiler = Profiler()
    for one in steps:
        profiler.feed(one)
    return profiler.profile()


def test_an_attempt_is_told_by_its_work_its_waste_and_when_it_came_to_the_function(tmp_path: Path) -> None:
    found = profile_of(open_run(journal_run(tmp_path, (WRONG, RIGHT, WRONG))), [GOAL])
    assert {work: share.steps for work, share in found.shares.items()} == {
        Work.READ: 3, Work.SEARCH: 2, Work.SUBMIT: 3,
    }  # fmt: skip
    (reached,) = found.reached
    assert (reached.read, reached.seen, reached.edited) == (4, 5, 6)
    assert (found.repeated.steps, found.reverted.steps, found.wasted) == ([2], [8], 2)
    assert found.submissions.steps == [run.step for run in found.test_runs] == [6, 7, 8]
    unmet = replace(found, reached=(replace(reached, seen=None, edited=None),))
    words = "\n".join(line.text for line in drawn(Run("x"), unmet, 100))
    assert "① file read at step 5 (40%) · ② never seen · ③ never edited" in words


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("collected 3 items\n= 1 failed, 2 passed, 1 skipped in 0.1s =", (2, 1, False)),
        ("5 passed\nlater text", (5, 0, True)),
        ("= 2 passed, 1 error in 1s =", (2, 1, False)),
        ("Ran 9 tests in 0.1s\n\nFAILED (failures=2, errors=1, skipped=2)\n", (4, 3, False)),
        ("Ran 4 tests in 0.1s\n\nOK (skipped=1)\nDestroying test database", (3, 0, True)),
        ("Tests:       1 failed, 6 passed, 7 total", (6, 1, False)),
        (
            "Tests:       1 failed, 4 passed, 5 total\nSnapshots:   2 passed, 2 total\nTime: 1 s",
            (4, 1, False),
        ),
        ("test result: ok. 12 passed; 0 failed; 0 ignored", (12, 0, True)),
        (
            "test result: FAILED. 7 passed; 1 failed; 0 ignored\n\n   Doc-tests shop\n\n"
            "test result: ok. 0 passed; 0 failed; 0 ignored",
            (7, 1, False),
        ),
        ("No module named pytest", (None, None, False)),
    ],
)
def test_counts_of_a_test_run_are_read_from_its_end(text: str, counts: tuple[object, ...]) -> None:
    run = test_run_of(step(3, StepKind.TEST, text=text, code=1))
    assert (run.step, run.passed, run.failed, run.went_well) == (3, *counts)


def test_a_long_run_keeps_its_shape_in_a_bounded_number_of_bins() -> None:
    kinds = [StepKind.VIEW] * 3000 + [StepKind.EDIT] * 3000
    found = profile(*(step(n, kind, f"{n}.py", prompt=n + 1) for n, kind in enumerate(kinds)))
    assert len(found.bins) <= MOST_BINS
    assert (len(found.bins) - 1) * found.bin_steps < found.steps <= len(found.bins) * found.bin_steps
    assert sum(sum(one.work) for one in found.bins) == found.worked == 6000
    assert (found.bins[0].main, found.bins[-1].main, found.fullest) == (Work.READ, Work.EDIT, 6000)


def ways(*runs: Sequence[tuple[StepKind, str]]) -> tuple[int, list[tuple[str, tuple[int, ...]]]] | None:
    profiles = [profile(*(step(n, kind, path) for n, (kind, path) in enumerate(run))) for run in runs]
    parting = divergence_of(profiles)
    return (
        None
        if parting is None
        else (parting.place, [(str(move or "ended"), runs) for move, runs in parting.ways])
    )


def test_runs_part_ways_at_the_first_step_of_another_kind_or_about_another_file() -> None:
    look, edit = (StepKind.VIEW, "/testbed/a.py"), (StepKind.EDIT, "a.py")
    assert ways([look, edit], [(StepKind.VIEW, "a.py"), edit]) is None
    assert ways([look, edit], [look, (StepKind.VIEW, "b.py")], [look, edit]) == (
        1, [("edit a.py", (0, 2)), ("read b.py", (1,))],
    )  # fmt: skip
    assert ways([look], [(StepKind.VIEW, "b.py")]) == (0, [("read /testbed/a.py", (0,)), ("read b.py", (1,))])
    assert ways([look, edit], [look]) == (1, [("edit a.py", (0,)), ("ended", (1,))])


def test_what_is_not_known_is_said_and_nothing_is_drawn_for_it() -> None:
    found = profile(step(0, StepKind.VIEW, "a.py"), step(1, StepKind.TEST))
    lines = [line.text for line in drawn(Run("x"), found, 80)]
    said = missing_in(Run("x"), found)
    assert [words.split()[0] for words in said] == ["when", "numbers", "how", "cost", "time"]
    assert " ".join(" ".join(lines).partition("unknown")[2].split()) == "; ".join(said)
    assert not any(line.startswith(("context", "found", "failed", "right")) for line in lines)


def test_an_error_that_is_no_call_is_no_failed_call() -> None:
    refused = Step(1, Actor.AGENT, StepKind.ERROR, ByteRange("", 0, 1), flags=frozenset({"error"}))
    found = profile(step(0, StepKind.EXECUTE, code=1), refused)
    assert (found.failing.steps, found.wasted, found.worked) == ([0], 1, 1)
    assert any("1 of 1 (100%): 1 failed" in line.text for line in drawn(Run("x"), found, 80))


def test_a_failed_edit_is_not_the_first_edit() -> None:
    def edit(index: int, *, failed: bool) -> Step:
        asked = RunCall("e", "Write", "", {"file_path": "a.py", "content": "x"})
        looked = RunCall("l", "Bash", "", {"command": "ls"})
        results = (Result("l", "a.py"), Result("e", ".", is_error=failed))
        return Step(
            index, Actor.AGENT, StepKind.EDIT, ByteRange("", 0, 1), calls=(looked, asked), results=results
        )

    assert profile(edit(0, failed=True), edit(1, failed=False)).first_edit == 1


def test_every_format_has_a_profile_of_all_its_steps(tmp_path: Path) -> None:
    make_all(tmp_path)
    names = [listed.name for listed in list_runs([tmp_path]) if listed.header is not None]
    assert len(names) > 20
    for name in names:
        document = open_run(name)
        found = profile_of(document)
        assert found.steps == document.step_count
        for width in (80, 160):
            lines = [line.text for line in drawn(document.header, found, width)]
            assert max(map(len, lines)) <= width, lines


def test_show_prints_a_profile_as_text_and_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = journal_run(tmp_path)
    assert cli.main(["show", str(run), "--profile"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in ("v read", "waste", "unknown"))
    assert cli.main(["show", str(run), "--profile", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["work"]["search"]["steps"] == 2
    assert record["waste"]["repeated"] == {"count": 1, "first": [3]}
    assert cli.main(["show", str(run), "--profile", "--step", "1"]) == 2


def test_profiles_of_many_runs_are_printed_by_task_with_the_place_where_they_part_ways(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = []
    for name, submissions in (("one", (RIGHT,)), ("two", (WRONG, RIGHT))):
        (tmp_path / name).mkdir()
        paths.append(journal_run(tmp_path / name, submissions))
    runs = [ProfiledRun(path.parent.name, Run("x", task="t", verdict=verdict), profile_of(open_run(path)))
            for path, verdict in zip(paths, ("unsolved", "solved"), strict=True)]  # fmt: skip
    for order, first in (("outcome", "two"), ("steps", "one")):
        assert by_task(runs, order)["t"][0].name == first
    lines = [line.text.strip() for line in rows_drawn(runs, 80, "steps")]
    assert "t  2 runs, 1 of 2 solved" in lines
    assert lines[-4:-1] == ["diverge at call 7:", "nothing more (1)", "submit (2)"]
    assert cli.main(["runs", str(tmp_path), "--profile", "--sort", "steps"]) == 0
    assert "by steps" in capsys.readouterr().out
    assert cli.main(["runs", str(tmp_path), "--profile", "--json"]) == 0
    tasks = json.loads(capsys.readouterr().out)["tasks"]
    assert sum(len(task["runs"]) for task in tasks) == 2
