"""A replay of a recorded run classifies each call: same, different, or impossible to replay, and why."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from agent_attempts import ByTurn, gist_at_work
from builders import CHECKS, REPAIR, build_task
from examples import share
from fakes import FakeClock, FakeRunner
from gist_tasks import FAITHFUL
from mutants import mutants
from scripted_endpoint import reply

from gistpoint.core.agents.loop import work
from gistpoint.core.agents.settings import AgentSettings
from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.identity import MODEL, Enrolment, Role
from gistpoint.core.errors import CancelledError, UserError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.running import CancelToken, RunContext
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.sessions.attempts import AttemptStore, OpenAttempt
from gistpoint.sessions.exports.atif import atif_text
from gistpoint.sessions.heads import head_path
from gistpoint.sessions.journal import JOURNAL, JournalWriter
from gistpoint.sessions.replay.replaying import (
    Replay,
    ReplayedCall,
    ReplayedVerdict,
    RunReplayError,
    Sameness,
)
from gistpoint.sessions.runs.opening import open_run

WRONG = (
    "def discount(price, percent):\n    import time\n"
    "    raise ValueError(f'<object at {time.perf_counter_ns():#x}>')\n"  # an address that never recurs
)
SAME, DIFFERS, COULD_NOT, UNKNOWN = (
    Sameness.SAME,
    Sameness.DIFFERS,
    Sameness.COULD_NOT_RUN,
    Sameness.NOT_RECORDED,
)


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return build_task(tmp_path / "tasks")


def judge_of(task: Task, runner: FakeRunner | None = None) -> RepairJudge:
    return RepairJudge(task, read_answer(task), runner or FakeRunner(CHECKS))


def begun(folder: Path, task: Task, runner: FakeRunner | None = None) -> OpenAttempt:
    return AttemptStore(folder, FakeClock(), "test").start(task, judge_of(task, runner), Enrolment())


def journal_of(opened: OpenAttempt) -> Path:
    opened.close()
    return opened.journal.path


@pytest.fixture
def journal(tmp_path: Path, task: Task) -> Path:
    """The journal of an attempt with browsing, two refusals, and a wrong, a broken and a right submission."""
    opened = begun(tmp_path / "attempts", task)
    attempt = opened.attempt
    attempt.call("list_directory", {}, thought="look around")
    attempt.note("a shop")
    attempt.call("read_file", {"file_path": "shop/prices.py"})
    attempt.call("read_file", {"file_path": "nowhere.py"})
    attempt.call("grep", {"pattern": "x"})
    attempt.call("submit_attempt", {"func_code": WRONG})
    attempt.suspect("shop/prices.py::discount")
    attempt.call("submit_attempt", {"func_code": "def discount("})
    attempt.call("submit_attempt", {"func_code": REPAIR})
    assert attempt.state.solved
    return journal_of(opened)


def edited(journal: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """Return a copy of a journal with its events changed and its hashes unchanged."""
    events = [json.loads(line) for line in journal.read_bytes().splitlines()]
    for event in events:
        change(event)
    copy = journal.with_name("edited.jsonl")
    copy.write_text("".join(json.dumps(event, separators=(",", ":")) + "\n" for event in events))
    return copy


def replayed(path: Path, task: Task, runner: FakeRunner | None = None) -> tuple[Replay, list[ReplayedCall]]:
    replay = Replay(open_run(path), judge_of(task, runner), FakeClock())
    return replay, list(replay.calls())


def test_a_journal_is_the_same_throughout(journal: Path, task: Task) -> None:
    replay, calls = replayed(journal, task)
    assert [(c.sameness, c.exact) for c in calls] == [(SAME, True)] * 4 + [(SAME, False)] + [(SAME, True)] * 2
    assert [c.call.tool for c in calls][:4] == ["list_directory", "read_file", "read_file", "grep"]
    assert replay.verdict_then() == replay.verdict_now() == ReplayedVerdict(True, 1.0)
    assert replay.same_verdict()
    assert replay.notes == ()
    assert journal.read_bytes()
    assert not list(journal.parent.glob("*.torn"))


@pytest.mark.parametrize(
    ("type", "change", "shown"),
    [
        (
            "tool_result",
            {"text": "Everything is fine.\n[1 tool use and 1 submission left]"},
            "-Everything is fine.",
        ),
        ("tool_result", {"refused": True}, "-refused: yes"),
        ("tool_result", {"budget": {"tool_uses": 9, "submissions": 4}}, "-tool_uses left: 9"),
    ],
)
def test_the_one_call_with_an_edited_result_is_named(
    type: str, change: Mapping[str, Any], shown: str, journal: Path, task: Task
) -> None:
    def edit(event: dict[str, Any]) -> None:
        if event["type"] == type and event["data"]["call_id"] == "call-2":
            event["data"].update(change)

    replay, calls = replayed(edited(journal, edit), task)
    assert [c.call.arguments for c in calls if c.sameness is not SAME] == [{"file_path": "shop/prices.py"}]
    (differing,) = [c for c in calls if c.sameness is DIFFERS]
    assert shown in differing.diff
    assert differing.diff.startswith("--- a/recorded\n+++ b/now\n")
    assert replay.same_verdict()
    number = 1 + next(n for n, line in enumerate(journal.read_bytes().splitlines(), 1) if b'"call-2"' in line)
    assert [note.endswith(f"breaks at line {number + 1}.") for note in replay.notes] == [True]


def test_an_edited_score_is_named_and_the_verdict_is_not_the_same(journal: Path, task: Task) -> None:
    def edit(event: dict[str, Any]) -> None:
        if event["type"] == "score" and event["data"]["call_id"] == "call-7":
            event["data"].update({"score": 0.25, "solved": False})

    replay, calls = replayed(edited(journal, edit), task)
    assert [c.call.arguments for c in calls if c.sameness is DIFFERS] == [{"func_code": REPAIR}]
    assert "-solved: no" in calls[-1].diff
    assert "+score: 1.000000" in calls[-1].diff
    assert (replay.verdict_then(), replay.verdict_now()) == (
        ReplayedVerdict(False, 0.25),
        ReplayedVerdict(True, 1.0),
    )
    assert not replay.same_verdict()


def test_budgets_are_those_of_the_run_and_its_time_limit_is_not_kept(tmp_path: Path) -> None:
    small = build_task(tmp_path / "small", budgets=Budgets(3, 1, time_limit_s=100))
    opened = begun(tmp_path / "attempts", small)
    opened.attempt.call("list_directory", {})
    opened.attempt.call("list_directory", {"path": "shop"})
    opened.attempt.call("list_directory", {"path": "tests"})
    opened.attempt.call("submit_attempt", {"func_code": WRONG})
    assert opened.attempt.state.ended
    journal = journal_of(opened)
    large = dataclasses.replace(small, budgets=Budgets(16, 4))
    replay, calls = replayed(journal, large)
    assert [c.sameness for c in calls] == [SAME] * 4
    assert "only a submission can follow" in calls[2].text
    assert replay.attempt.state.budgets == Budgets(3, 1)


def malformed_calls(attempt: Attempt) -> None:
    """Make every kind of malformed call, then some that can only be submissions."""
    attempt.call("grep", {"pattern": "x"})
    attempt.call("grep", None, raw="x")
    attempt.call("read_file", None, raw="{'file_path': 'README.md'}")
    attempt.call("read_file", None, raw=f'{{"file_path": "README.md"}}{" " * 150_000}.')
    attempt.call("read_file", None, raw='["README.md"]', turn=9)
    attempt.call("read_file", {"path": "README.md"}, raw='{"path": "README.md"}', turn=9)
    attempt.call("list_directory", {"path": None})
    while not attempt.state.ended and len(attempt.state.calls) < 12:
        attempt.call("submit_attempt", {"func_code": ["def f(): pass"]})


def test_malformed_calls_are_made_again_and_cost_the_same(tmp_path: Path, task: Task) -> None:
    opened = AttemptStore(tmp_path / "attempts", FakeClock(), "test").start(
        task, judge_of(task), Enrolment(actor="model"), budgets=Budgets(8, 2)
    )
    malformed_calls(opened.attempt)
    assert opened.attempt.state.ending is not None
    recorded = journal_of(opened)
    exported = tmp_path / "exported.json"
    exported.write_text("".join(atif_text(open_run(recorded))))
    for path in (recorded, exported):
        replay, calls = replayed(path, task)
        assert [(c.sameness, c.exact, c.reason) for c in calls] == [(SAME, True, "")] * 10
        assert replay.attempt.state.ending == opened.attempt.state.ending
        assert [c.malformed for c in replay.attempt.state.calls] == [
            c.malformed for c in opened.attempt.state.calls
        ]
    _, calls = replayed(recorded, dataclasses.replace(task, budgets=Budgets(99, 9)))
    assert {c.sameness for c in calls} == {SAME}


def test_a_run_of_the_old_tool_semantics_keeps_its_costs(tmp_path: Path, task: Task) -> None:
    clock, place = FakeClock(), tmp_path / "attempts" / "old"
    recorder = JournalWriter(place, clock)
    attempt = Attempt(task, judge_of(task), recorder, clock)
    attempt.start(Enrolment(), budgets=Budgets(2, 2), tool_semantics=1)
    malformed_calls(attempt)
    recorder.close()
    assert attempt.state.remaining.tool_uses == 1
    old = edited(place / JOURNAL, lambda event: event["data"].pop("tool_semantics", None))
    replay, calls = replayed(old, task)
    assert [c.sameness for c in calls] == [SAME] * 12
    assert replay.attempt.state.remaining == attempt.state.remaining


def test_changes_persist_in_discovery(tmp_path: Path) -> None:
    task = build_task(tmp_path / "tasks", Mode.DISCOVERY)
    opened = begun(tmp_path / "attempts", task)
    place = {"func_name": "discount", "file_path": "shop/prices.py"}
    opened.attempt.call("replace_function", {"func_code": WRONG, **place})
    opened.attempt.call("read_function", {"function_name": "discount", "file_path": "shop/prices.py"})
    opened.attempt.call("replace_function", {"func_code": REPAIR, **place})
    _, calls = replayed(journal_of(opened), task)
    assert [c.sameness for c in calls] == [SAME] * 3
    assert "raise ValueError" in calls[1].text


def test_an_atif_export_is_replayed_like_the_journal(tmp_path: Path, journal: Path, task: Task) -> None:
    exported = tmp_path / "exported.json"
    exported.write_text("".join(atif_text(open_run(journal))))
    replay, calls = replayed(exported, task)
    assert [c.sameness for c in calls] == [SAME] * 7
    assert replay.origin.is_own
    assert replay.document.format.name == "atif"
    assert replay.same_verdict()
    exported.write_text(
        exported.read_text().replace("def capacity", "def capacities").replace("3 entries", "4 entries")
    )
    _, calls = replayed(exported, task)
    assert [n for n, c in enumerate(calls) if c.sameness is not SAME] == [0]


def test_a_run_of_another_task_is_refused(tmp_path: Path, journal: Path) -> None:
    other = build_task(tmp_path / "tasks", Mode.DISCOVERY)
    with pytest.raises(RunReplayError, match="was recorded on the task"):
        Replay(open_run(journal), judge_of(other))


def test_what_is_not_as_it_was_is_noted(journal: Path, task: Task) -> None:
    def edit(event: dict[str, Any]) -> None:
        if event["type"] == "attempt_started":
            event["data"].update({"tools_sha256": "0", "backend": {"name": "other"}})

    replay, _ = replayed(edited(journal, edit), task)
    assert [note.split(".")[0] for note in replay.notes] == [
        "The journal was changed later: its chain of hashes breaks at line 2",
        "The tools were declared differently when this was recorded",
        "The tests ran in other then, and run in fake now",
    ]


def test_cancelled_and_failed_runs_of_the_tests_are_not_repeated(tmp_path: Path, task: Task) -> None:
    runner = FakeRunner(CHECKS, status=RunStatus.CANCELLED)
    opened = begun(tmp_path / "attempts", task, runner)
    opened.attempt.call("submit_attempt", {"func_code": REPAIR})
    runner.status = RunStatus.INFRASTRUCTURE
    opened.attempt.call("submit_attempt", {"func_code": REPAIR})
    runner.status = RunStatus.FINISHED
    opened.attempt.call("submit_attempt", {"func_code": WRONG})
    again = FakeRunner(CHECKS)
    replay, calls = replayed(journal_of(opened), task, again)
    assert [(c.sameness, "not repeated" in c.reason) for c in calls] == [
        (SAME, True),
        (COULD_NOT, True),
        (SAME, False),
    ]
    assert again.runs == 1
    assert not replay.attempt.state.solved


def test_a_harness_that_fails_now_is_told(journal: Path, task: Task) -> None:
    replay, calls = replayed(journal, task, FakeRunner(CHECKS, status=RunStatus.INFRASTRUCTURE))
    failed = [c for c in calls if c.sameness is COULD_NOT]
    assert [c.reason for c in failed] == ["As the test wants it."] * 2
    assert not replay.same_verdict()


def test_a_damaged_record_is_named(journal: Path, task: Task) -> None:
    lines = journal.read_text().splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if '"call-2"' in line and '"tool_result"' in line)
    copy = journal.with_name("damaged.jsonl")
    copy.write_text("".join([*lines[:at], lines[at][:40] + "\n", *lines[at + 1 :]]))
    _, calls = replayed(copy, task)
    assert [c.sameness for c in calls] == [SAME, UNKNOWN, COULD_NOT, SAME, SAME, SAME, SAME, SAME]
    assert "can't be read" in calls[2].reason


def test_calls_behind_the_end_of_the_replay_could_not_run(journal: Path, task: Task) -> None:
    def edit(event: dict[str, Any]) -> None:
        if event["type"] == "tool_call" and event["data"]["call_id"] == "call-5":
            event["data"]["arguments"] = {"func_code": REPAIR}

    replay, calls = replayed(edited(journal, edit), task)
    assert [c.sameness for c in calls] == [*[SAME] * 4, DIFFERS, COULD_NOT, COULD_NOT]
    assert calls[-1].reason == "The attempt has ended: solved."
    assert replay.verdict_now().solved


def test_replay_stops_when_cancelled(journal: Path, task: Task) -> None:
    cancel = CancelToken()
    calls = Replay(open_run(journal), judge_of(task)).calls(run=RunContext(cancel))
    assert next(calls).sameness is SAME
    cancel.cancel()
    with pytest.raises(CancelledError):
        next(calls)


def breakpoint_line(usage: list[dict[str, Any]], *, solved: bool, **config: int) -> dict[str, Any]:
    tests = {"success": solved, "passed": 6, "failed": 0}
    return {
        "problem": "discount",
        "score": 1.0 if solved else 0.0,
        "metadata": {"file_path": "shop/prices.py", "tool_usage": usage, "test_info": tests},
        "config": {"model_name": "some-model", "mode": "remove", **config},
    }


def test_breakpoint_results_tell_no_answers_but_a_verdict(tmp_path: Path, task: Task) -> None:
    usage = [
        {"tool": "read_file", "args": {"file_path": "shop/prices.py"}},
        {"tool": "think", "args": {"text": "hm"}},
        {"tool": "read_file", "args": {"path": "shop/prices.py"}},
        {"tool": "submit_attempt", "args": {"func_code": "def discount("}},
        {"tool": "submit_attempt", "args": {"func_code": REPAIR}},
    ]
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps(breakpoint_line(usage, solved=True, max_iterations=8, test_budget=3)) + "\n")
    replay, calls = replayed(path, task)
    assert [c.sameness for c in calls] == [UNKNOWN, COULD_NOT, COULD_NOT, UNKNOWN, UNKNOWN]
    assert calls[1].reason.startswith("There is no tool 'think' here")
    assert calls[2].reason.startswith("read_file has no argument 'path'")
    assert "def discount" in calls[0].text
    assert replay.attempt.state.budgets == Budgets(8, 3)
    assert replay.attempt.state.remaining.submissions == 1, "a refused submission costs one in these runs"
    assert replay.same_verdict()
    path.write_text(json.dumps(breakpoint_line(usage, solved=False)) + "\n")
    replay, _ = replayed(path, task)
    assert replay.attempt.state.budgets == task.budgets
    assert not replay.same_verdict()


def test_a_chat_whose_tools_are_ours_is_replayed_by_place(tmp_path: Path, journal: Path, task: Task) -> None:
    text = next(iter(replayed(journal, task)[1])).text

    def call(id: str, name: str, arguments: str) -> dict[str, Any]:
        return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}

    messages = [
        {"role": "user", "content": "repair it"},
        {"role": "assistant", "content": "", "tool_calls": [call("a", "list_directory", "{}")]},
        {"role": "tool", "tool_call_id": "a", "content": text},
        {"role": "assistant", "content": "", "tool_calls": [call("b", "bash", '{"command": "ls"}')]},
        {"role": "tool", "tool_call_id": "b", "content": "shop"},
        {"role": "assistant", "content": "", "tool_calls": [call("c", "list_directory", "not json")]},
        {"role": "tool", "tool_call_id": "c", "content": "x"},
    ]
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(messages))
    replay, calls = replayed(path, task)
    assert [c.sameness for c in calls] == [SAME, COULD_NOT, COULD_NOT]
    assert "'bash'" in calls[1].reason
    assert calls[2].reason.startswith("Its arguments were not recorded")
    assert replay.same_verdict(), "a chat tells no verdict"


def test_a_long_result_is_compared_whole_and_its_diff_is_bounded(journal: Path, task: Task) -> None:
    long = "".join(f"line {n}\n" for n in range(300_000))

    def edit(event: dict[str, Any]) -> None:
        if event["type"] == "tool_result" and event["data"]["call_id"] == "call-1":
            event["data"]["text"] += long

    _, calls = replayed(edited(journal, edit), task)
    assert [c.sameness for c in calls] == [DIFFERS] + [SAME] * 6
    assert len(calls[0].call.text or "") > len(long)
    assert len(calls[0].diff) < 600_000


def test_an_attempt_without_calls_and_one_that_died(tmp_path: Path, task: Task) -> None:
    empty = journal_of(begun(tmp_path / "attempts", task))
    replay, calls = replayed(empty, task)
    assert calls == []
    assert replay.same_verdict()
    opened = begun(tmp_path / "attempts", task)
    opened.attempt.call("submit_attempt", {"func_code": REPAIR})
    whole = journal_of(opened).read_text().splitlines(keepends=True)
    at = next(n for n, line in enumerate(whole) if '"test_run"' in line)
    cut = tmp_path / JOURNAL
    cut.write_text("".join(whole[:at]) + whole[at][:50])
    replay, calls = replayed(cut, task)
    assert [c.sameness for c in calls] == [UNKNOWN, COULD_NOT]
    assert replay.notes == (), "a line that is half written is no change"
    assert (replay.verdict_then().solved, replay.verdict_now().solved) == (None, True)


def test_calls_copied_from_another_run_are_not_made_again(tmp_path: Path, journal: Path, task: Task) -> None:
    trajectory = json.loads("".join(atif_text(open_run(journal))))
    for step in trajectory["steps"]:
        step.get("extra", {}).pop("gistpoint", None)
    first = next(step for step in trajectory["steps"] if step.get("tool_calls"))
    first["is_copied_context"] = True
    path = tmp_path / "continued.json"
    path.write_text(json.dumps(trajectory))
    _, calls = replayed(path, task)
    assert [c.call.tool for c in calls][:2] == ["read_file", "read_file"]


def test_results_without_ids_belong_to_calls_by_their_place(tmp_path: Path, task: Task) -> None:
    names = ["shop", "tests"]
    trajectory = {
        "schema_version": "ATIF-v1.7",
        "session_id": "s",
        "agent": {"name": "a", "version": "1"},
        "steps": [
            {
                "step_id": 1,
                "source": "agent",
                "message": "",
                "tool_calls": [
                    {
                        "tool_call_id": f"c{name}",
                        "function_name": "list_directory",
                        "arguments": {"path": name},
                    }
                    for name in names
                ],
                "observation": {"results": [{"content": f"{name}: of another kind"} for name in names]},
            }
        ],
    }
    path = tmp_path / "anonymous.json"
    path.write_text(json.dumps(trajectory))
    _, calls = replayed(path, task)
    assert [(c.call.step, c.call.number, c.sameness) for c in calls] == [(1, 1, DIFFERS), (1, 2, DIFFERS)]
    assert ["-shop: of another kind" in c.diff for c in calls] == [True, False]


def test_an_attempt_of_two_processes_is_the_same_throughout(tmp_path: Path, task: Task) -> None:
    store = AttemptStore(tmp_path / "attempts", FakeClock(), "test")
    opened = store.start(task, judge_of(task), Enrolment())
    opened.attempt.call("read_file", {"file_path": "shop/prices.py"})
    opened.attempt.call("submit_attempt", {"func_code": WRONG})
    journal = journal_of(opened)
    lines = journal.read_bytes().splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if b'"test_run"' in line)
    journal.write_bytes(b"".join(lines[: at + 1]))
    head_path(journal.parent).unlink()
    again = store.resume(opened.attempt.state.attempt_id, task, judge_of(task))
    again.attempt.finish_pending()
    again.attempt.call("submit_attempt", {"func_code": REPAIR})
    _, calls = replayed(journal_of(again), task)
    assert [c.sameness for c in calls] == [SAME] * 3


def test_damaged_runs_are_replayed_as_far_as_they_can_be_read(
    tmp_path: Path, journal: Path, task: Task
) -> None:
    usage = [{"tool": "submit_attempt", "args": {"func_code": REPAIR}}]
    line = breakpoint_line(usage, solved=True, max_iterations=8, test_budget=3)
    exported = "".join(atif_text(open_run(journal))).encode()
    path, judge, found = tmp_path / "mutant", judge_of(task), 0
    count = share(120)
    for name, data in mutants([journal.read_bytes(), exported, json.dumps(line).encode()], count):
        path.write_bytes(data)
        try:
            replay = Replay(open_run(path), judge, FakeClock())
        except UserError:
            continue
        calls = list(replay.calls())
        found += len(calls)
        assert all(c.reason or c.sameness is not COULD_NOT for c in calls), name
        assert all(bool(c.diff) == (c.sameness is DIFFERS) for c in calls), name
        assert isinstance(replay.same_verdict(), bool)
        assert all(isinstance(note, str) for note in replay.notes)
    assert found > count


def test_the_calls_of_a_model_are_made_again_as_it_asked_for_them(tmp_path: Path, task: Task) -> None:
    opened = AttemptStore(tmp_path / "attempts", FakeClock(), "test").start(
        task, judge_of(task), Enrolment(MODEL, Role.QA, solver={"model": "m"})
    )
    look, fix = ("read_file", {"file_path": "shop/prices.py"}), ("submit_attempt", {"func_code": REPAIR})
    script = [
        reply(look, ("read_file", "{'"), ("grep", {}), content="Hm."),
        reply(content="So."),
        reply(fix, look),
    ]
    work(opened.attempt, ByTurn(script), AgentSettings())
    assert opened.attempt.state.solved
    replay, calls = replayed(journal_of(opened), task)
    assert [call.sameness for call in calls] == [SAME] * 4
    assert replay.same_verdict()


def test_a_gist_that_a_model_gave_up_is_handed_in_again(tmp_path: Path) -> None:
    case = gist_at_work(tmp_path)
    case.go(ByTurn([reply(("write_gist", {"content": FAITHFUL}), content="Here."), reply(content="Done.")]))
    writer = JournalWriter(tmp_path / "journal", case.clock)
    for event in case.memory.events:
        writer.append(event.data)
    writer.close()
    replay = Replay(open_run(writer.path), case.judge, FakeClock())
    assert [call.sameness for call in replay.calls()] == [SAME, SAME]
    assert replay.attempt.state.ending is not None
    assert replay.attempt.state.ending.reason == "gave_up"
