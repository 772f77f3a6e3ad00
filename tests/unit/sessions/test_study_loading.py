"""From a study's folder to its rows of people and models, without uncounted attempts and other folders."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders import REPAIR
from held_studies import Held
from study_attempts import DISCOUNT

from gistpoint.core.assist.help import HelpGist
from gistpoint.core.attempts.identity import SIMULATED, Role
from gistpoint.core.errors import EndpointError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.locations import read_regular
from gistpoint.core.study.exclusions import exclusion_words
from gistpoint.core.study.operations import Finished, StudyError, StudyOperationKind
from gistpoint.core.study.rows import AttemptRow
from gistpoint.sessions import journal
from gistpoint.sessions.annotations.keys import attempt_key
from gistpoint.sessions.annotations.reviewer import Reviewer, ReviewStore
from gistpoint.sessions.annotations.reviews import ExcludeReason, RunVerdict
from gistpoint.sessions.annotations.settling import accept_attempt
from gistpoint.sessions.journal import JOURNAL
from gistpoint.sessions.studies import loading, publishing
from gistpoint.sessions.studies.checking import check_study
from gistpoint.sessions.studies.loading import load_study
from gistpoint.sessions.studies.metrics import METRICS_FILE


def test_rows_of_people_and_metrics_of_their_library(tmp_path: Path) -> None:
    held = Held.at(tmp_path)
    discovery, remove = held.tasks
    first = held.attempt("P01", remove)
    second = held.attempt("P01", discovery, REPAIR.replace("100", "99"))
    third = held.attempt("P02", remove)
    loaded = held.load()
    data = loaded.data
    assert data.problems == ()
    assert {row.attempt: (row.counted, row.solved, row.position) for row in data.rows} == {
        first: (True, True, 1),
        second: (True, False, 2),
        third: (True, True, 1),
    }
    assert [row.flags for row in data.rows] == [(), (), ()]
    task = data.tasks[remove.id]
    assert task.metrics["code_lines"] > 0
    functions = json.loads((held.folder.root / METRICS_FILE).read_text())["libraries"]["shop 1.0"]
    assert task.metrics == functions[DISCOUNT]
    assert len(data.candidates["shop"]) == len(functions) == 5
    # The task's tree has `pass` for a body, so the original was measured.
    assert "pass" in read_answer(held.folder.task(remove.id)).targets[0].corrupted
    assert task.metrics == data.tasks[discovery.id].metrics


def test_a_journal_that_was_changed_does_not_count(tmp_path: Path) -> None:
    held = Held.at(tmp_path)
    changed, other, twice, good = (held.attempt(code, held.tasks[1]) for code in ("P01", "P02", "P03", "P04"))
    journal = held.folder.root / "attempts" / changed / JOURNAL
    journal.write_bytes(journal.read_bytes().replace(b"attempt_ended", b"attempt_endee"))
    cut = held.folder.root / "attempts" / other / JOURNAL
    cut.write_bytes(b"".join(cut.read_bytes().splitlines(keepends=True)[:-1]))
    shutil.copytree(
        held.folder.root / "attempts" / twice, held.folder.root / "attempts" / f"{twice}~12345678"
    )
    rows = {row.attempt: row for row in held.load().data.rows}
    assert rows[good].counted
    (told,) = (flag.words for flag in rows[twice].flags if flag.flag == "chain_broken")
    assert f"There are 2 different journals of it: {twice}, {twice}~12345678." in told
    for name in (changed, twice):
        assert "chain_broken" in [flag.flag for flag in rows[name].flags]
        assert not rows[name].counted
    assert (rows[other].counted, rows[other].exclusion) == (False, "unfinished")
    assert "changed since" in rows[other].flags[0].words


def test_a_journal_of_another_end_than_the_log_tells_does_not_count(tmp_path: Path) -> None:
    held = Held.at(tmp_path)
    attempt = held.attempt("P01", held.tasks[1])
    end = Finished(assignment=f"P01-{held.tasks[1].mode}", attempt=attempt, end="solved", head="0" * 64)
    held.folder.record("P01", "person:P01", StudyOperationKind.FINISHED, end)
    assert [flag.words for flag in held.row(attempt).flags] == [
        "It is not the journal whose end is in the log."
    ]


def test_simulated_attempts_are_not_mixed_with_others(tmp_path: Path) -> None:
    held = Held.at(tmp_path / "people")
    held.attempt("P01", held.tasks[1], actor=SIMULATED)
    with pytest.raises(StudyError, match="is simulated, and the study is not simulated"):
        held.load()
    held = Held.at(tmp_path / "simulated", simulated=True)
    held.attempt("P01", held.tasks[1], actor=SIMULATED)
    assert all(row.simulated for row in held.load().data.rows)
    held.attempt("P02", held.tasks[1])
    with pytest.raises(StudyError, match="was made by a person, and the study is simulated"):
        held.load()


def test_a_suspicious_pass_waits_for_a_reviewer(tmp_path: Path) -> None:
    held = Held.at(tmp_path)
    suspicious = REPAIR.replace("    return", "    import gc\n    gc.collect(0)\n    return")
    attempt = held.attempt("P01", held.tasks[1], suspicious)
    assert not held.row(attempt).solved
    assert any("A reviewer must read" in problem for problem in held.load().data.problems)
    store = ReviewStore(held.folder.root / "reviews", held.clock)
    accept_attempt(Reviewer(store, "reviewer"), attempt)
    assert held.row(attempt).solved


def test_what_reviewers_decide_of_an_attempt(tmp_path: Path) -> None:
    held = Held.at(tmp_path)
    attempt = held.attempt("P01", held.tasks[1])
    one, other = (
        Reviewer(ReviewStore(held.folder.root / "reviews", held.clock), name) for name in ("r1", "r2")
    )
    one.verdict(attempt_key(attempt), RunVerdict.EXCLUDE, reasons=(ExcludeReason.NOT_SERIOUS,))
    row = held.row(attempt)
    assert (row.counted, row.exclusion, row.solved) == (False, "reviewers", True)
    other.verdict(attempt_key(attempt), RunVerdict.ACCEPT)
    assert held.row(attempt).counted
    decisions = held.load().data.decisions
    assert [(given.reviewer, given.decision.value) for given in decisions] == [
        ("r1", "exclude"),
        ("r2", "accept"),
    ]
    for reviewer in (one, other):
        reviewer.verdict(attempt_key(attempt), RunVerdict.EXCLUDE, reasons=(ExcludeReason.SHORTCUT,))
    row = held.row(attempt)
    assert (row.counted, row.solved) == (True, False)
    assert [given.decision.value for given in held.load().data.decisions] == ["reject_pass"] * 2
    one.verdict(attempt_key(attempt), RunVerdict.EXCLUDE, reasons=(ExcludeReason.NOT_SERIOUS,))
    assert held.row(attempt).counted


def test_corrected_times_of_reviewers_count_and_disputed_ones_are_reported(tmp_path: Path) -> None:
    held = Held.at(tmp_path)
    attempt = held.attempt("P01", held.tasks[1])
    store = ReviewStore(held.folder.root / "reviews", held.clock)
    key, corrected = attempt_key(attempt), RunVerdict.ACCEPT_CORRECTED_TIME
    Reviewer(store, "r1").verdict(key, corrected, corrected_time_s=77.5)
    assert held.row(attempt).primary_s == 77.5
    assert held.load().data.problems == ()
    Reviewer(store, "r2").verdict(key, corrected, corrected_time_s=80)
    assert held.row(attempt).primary_s != 77.5
    assert any("77.5 s, 80 s" in problem for problem in held.load().data.problems)


def test_a_brief_that_its_condition_does_not_give(tmp_path: Path) -> None:
    held = Held.at(tmp_path, condition=[{"id": "alone", "tool_uses": 12, "submissions": 3}])
    (flag,) = held.row(held.attempt("P01", held.tasks[1])).flags
    assert flag.flag == "wrong_brief"


SOLVER = {"name": "model-x", "runs": ["runs/x/*"], "condition": "alone"}


def test_runs_of_models_are_matched_to_tasks(tmp_path: Path) -> None:
    held = Held.at(tmp_path, solver=[SOLVER])
    discovery, remove = held.tasks
    held.attempt("P01", remove)
    for task in (remove, discovery):
        held.model_run(task, "runs/x")
    held.model_run(remove, "runs/x", actor="person", name="a-person")
    (held.folder.root / "runs" / "x" / "notes.txt").write_text("nothing")
    loaded = held.load()
    (found,) = loaded.solvers
    assert sorted(row.mode for row in found.rows) == ["discovery", "remove"]
    assert all(row.solver == "model-x" and row.counted and row.solved for row in found.rows)
    why = {run.name: run.why_not for run in found.runs if run.row is None}
    assert why["runs/x/a-person/journal.jsonl"] == "It is an attempt by a person, not a model's."
    assert "in no known format" in why["runs/x/notes.txt"]
    assert len(why) == 2
    assert found.notes == ()
    keys = {row.budget_key for row in loaded.data.rows if row.mode == "remove"}
    assert len(keys) == 1
    assert all(run.name.startswith("runs/x/") and len(run.sha256) == 64 for run in found.runs if run.row)


def test_runs_of_a_simulated_model_are_in_no_study_of_people(tmp_path: Path) -> None:
    held = Held.at(tmp_path, solver=[SOLVER])
    held.model_run(held.tasks[1], "runs/x", actor=SIMULATED)
    with pytest.raises(StudyError, match="is simulated, and the study is not simulated"):
        held.load()


_USED: list[dict[str, Any]] = [
    {"tool": "read_file", "args": {"file_path": "shop/prices.py"}},
    {"tool": "submit_attempt", "args": {"func_code": REPAIR}},
]


def _results(held: Held, problems: list[str], used: list[dict[str, Any]] = _USED) -> None:
    """Write a results file of Breakpoint with one solved run for each problem."""
    lines: list[dict[str, Any]] = [{"total_problems": len(problems), "success_rate": 1.0}]
    lines += [
        {
            "problem": problem,
            "score": 1.0,
            "metadata": {
                "repo_path": "shop",
                "file_path": "shop/prices.py",
                "tool_usage": used,
                "test_info": {"success": True},
                "right_function": True,
                "num_corruptions": 1,
            },
            "config": {"model_name": "m", "mode": "remove", "max_iterations": 16, "test_budget": 4},
        }
        for problem in problems
    ]
    folder = held.folder.root / "runs" / "x"
    folder.mkdir(parents=True)
    (folder / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_run_of_another_program(tmp_path: Path) -> None:
    held = Held.at(tmp_path, solver=[{**SOLVER, "scaffold": "paper"}])
    remove = held.tasks[1]
    _results(held, [remove.id[:14], "discount", "elsewhere"])
    found = held.load().solvers[0]
    (row,) = found.rows
    assert (row.task, row.solved, row.tool_uses, row.submissions) == (remove.id, True, 2, 1)
    assert (row.tool_use_budget, row.submission_budget, row.scaffold) == (16, 4, "paper")
    assert [call.kind for call in row.calls] == ["view", "submit"]
    assert row.primary_s is None
    assert row.verdict_from == "derived"  # the runner's files have a score alone
    why = [run.why_not for run in found.runs if run.row is None]
    assert any("is ambiguous" in text for text in why)
    assert any("does not belong to this study" in text for text in why)
    assert len(found.runs) == 3


@pytest.mark.parametrize("used", [_USED[:0], _USED[:1], _USED])
def test_a_file_without_calls_does_not_say_that_nothing_was_found(
    tmp_path: Path, used: list[dict[str, Any]]
) -> None:
    held = Held.at(tmp_path, solver=[SOLVER])
    discovery, remove = held.tasks
    _results(held, [discovery.id, remove.id], used)
    rows = held.load().solvers[0].rows
    assert len(rows) == 2
    for row in rows:
        assert (row.number("found") is None) == (not used)
        assert row.tool_uses == (len(used) or None)


def test_every_journal_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held.at(tmp_path, solver=[SOLVER])
    held.attempt("P01", held.tasks[0])
    held.model_run(held.tasks[0], "runs/x")
    held.model_run(held.tasks[1], "runs/x")
    folder = held.machine.open(held.folder.root)
    reads: Counter[str] = Counter()

    def counted(path: Path, *more: Any, **options: Any) -> bytes:
        reads[str(path)] += path.name == JOURNAL
        return read_regular(path, *more, **options)

    for module in (journal, loading, publishing):
        monkeypatch.setattr(module, "read_regular", counted)
    found = load_study(folder)
    assert [len(found.data.rows), len(found.solvers[0].rows)] == [3, 2]
    assert [count for count in reads.values() if count] == [1, 1, 1]


def test_a_map_says_which_run_is_of_which_task(tmp_path: Path) -> None:
    held = Held.at(tmp_path, solver=[{**SOLVER, "map": "file:map.csv"}])
    _results(held, ["discount"])
    with pytest.raises(StudyError, match="can't be read"):
        held.load()
    (held.folder.root / "map.csv").write_text(f"run,task\nresults,{held.tasks[0].id[:12]}\n")
    assert [row.task for row in held.load().solvers[0].rows] == [held.tasks[0].id]
    (held.folder.root / "map.csv").write_text("run,task\nother,x\n")
    assert held.load().solvers[0].runs[0].why_not == "The map contains no line for it."


def test_a_model_at_a_repair_of_the_demo_counts_as_people_do(tmp_path: Path) -> None:
    held = Held.at(tmp_path, solver=[SOLVER])
    held.model_run(held.tasks[1], "runs/x", role=Role.DEMO)
    (row,) = held.load().solvers[0].rows
    assert (row.role, row.counted, row.exclusion) == ("demo", True, "")


def test_months_of_release_come_from_a_file_beside_the_declaration(tmp_path: Path) -> None:
    held = Held.at(tmp_path)
    (held.folder.root / "releases.csv").write_text("library,month\nshop,2025-07\n")
    assert {task.released for task in held.machine.open(held.folder.root).tasks.values()} == {"2025-07"}
    (held.folder.root / "releases.csv").write_text("library,month\nshop,July\n")
    with pytest.raises(StudyError, match="is not like 2025-06"):
        _ = held.machine.open(held.folder.root).tasks


def test_a_check_warns_of_what_models_may_have_seen(tmp_path: Path) -> None:
    held = Held.at(tmp_path, solver=[{**SOLVER, "cutoff": "2025-06"}, {**SOLVER, "name": "y"}])

    def warned() -> list[str]:
        study = held.machine.open(held.folder.root)
        found = check_study(study, lambda name: name or "bwrap", lambda task: HelpGist(), str)
        return [one.detail for one in found if one.name in ("cutoff", "public history") and one.reduced]

    assert any("Unknown: shop; put a line" in words for words in warned())
    assert any("y has no `cutoff`" in words for words in warned())
    (held.folder.root / "releases.csv").write_text("library,month\nshop,2025-06\n")
    number = len(held.tasks)
    assert any(f"{number} tasks of {number} are of libraries released up to" in words for words in warned())
    (held.folder.root / "releases.csv").write_text("library,month\nshop,2025-07\n")
    assert len(warned()) == 1


def test_a_run_that_is_there_twice_counts_once(tmp_path: Path) -> None:
    held = Held.at(tmp_path, solver=[SOLVER, {**SOLVER, "name": "model-y", "runs": ["runs/*/*"]}])
    first = held.model_run(held.tasks[1], "runs/x", name="one")
    shutil.copytree(first, first.with_name("two"))
    shutil.copytree(first, held.folder.root / "runs" / "y" / "three")
    one, other = held.load().solvers
    assert [run.why_not for run in one.runs] == [
        "",
        "It is the same run as runs/x/one/journal.jsonl, which is counted.",
    ]
    assert [run.why_not for run in other.runs] == [
        "Its run is already counted for 'model-x'.",
        "Its run is already counted for 'model-x'.",
        "It is the same run as runs/x/one/journal.jsonl, which is counted.",
    ]


def test_other_budgets_than_peoples_are_told(tmp_path: Path) -> None:
    held = Held.at(tmp_path, solver=[SOLVER])
    held.attempt("P01", held.tasks[1])
    _results(held, [held.tasks[1].id])
    (note,) = held.load().solvers[0].notes
    assert "1 run (remove) had different settings from people under 'alone'" in note


def test_rows_can_be_written_down(tmp_path: Path) -> None:
    held = Held.at(tmp_path)
    held.attempt("P01", held.tasks[1])
    row = held.load().data.rows[0]
    assert msgspec.json.decode(msgspec.json.encode(row), type=AttemptRow) == row


def test_a_check_reports_a_chat_without_an_endpoint_here(tmp_path: Path) -> None:
    chat = {"id": "assisted", "assistance": "chat", "chat": {"model": "m"}}
    held = Held.at(tmp_path, condition=[{"id": "alone"}, chat])

    def refuse(name: str) -> object:
        raise EndpointError("No key is set.", hint="Set one.")

    for endpoint, reduced in ((str, False), (refuse, True)):
        study = held.machine.open(held.folder.root)
        found = list(check_study(study, lambda name: name or "bwrap", lambda task: HelpGist(), endpoint))
        (one,) = [finding for finding in found if finding.name == "chat"]
        assert (one.passed, one.reduced) == (True, reduced)
        assert ("No key is set." in one.detail and "Set one." in one.detail) == reduced


def test_runs_of_models_at_training_tasks_do_not_count(tmp_path: Path) -> None:
    training = Held.at(tmp_path / "one").tasks[0].id
    held = Held.at(tmp_path / "two", solver=[SOLVER], training={"tasks": [training]})
    for task in held.tasks:
        held.model_run(task, "runs/x")
    rows = held.load().solvers[0].rows
    assert {row.task == training: (row.counted, row.exclusion) for row in rows} == {
        True: (False, "training_task"),
        False: (True, ""),
    }
    assert exclusion_words("training_task") == "its task is only for training"
