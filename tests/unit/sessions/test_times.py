"""The durations of model and tools, from the times of steps alone."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_runs.repairs import journal_run
from screens.review.reviewing import TURNS, mini_run

from gistpoint.sessions.records.model import Actor, ByteRange, Json, Result, Run, RunCall, Step, StepKind
from gistpoint.sessions.records.values import is_naive, when
from gistpoint.sessions.runs.opening import open_run
from gistpoint.sessions.runs.time_parts import TimeDivision, TimeParts
from gistpoint.sessions.runs.times import MOST_TOOLS, OTHER_TOOLS, RunTimes, Timekeeper, times_of
from gistpoint.sessions.runs.work import Work
from gistpoint.tui import cli
from gistpoint.tui.time_drawing import total_words


def user(index: int, at: float | None) -> Step:
    return Step(index, Actor.USER, StepKind.MESSAGE, ByteRange("", 0, 1), started=at)


def reply(
    index: int, at: float | None, *tools: str, end: float | None = None, took: tuple[float | None, ...] = ()
) -> Step:
    calls = tuple(RunCall(f"c{number}", tool) for number, tool in enumerate(tools))
    durations = took or (None,) * len(tools)
    results = tuple(Result(f"c{number}", duration_s=spent) for number, spent in enumerate(durations))
    kind = StepKind.EXECUTE if tools else StepKind.MESSAGE
    return Step(
        index, Actor.AGENT, kind, ByteRange("", 0, 1), calls=calls, results=results, started=at, ended=end
    )


def measured(*steps: Step) -> RunTimes:
    keeper = Timekeeper()
    for step in steps:
        keeper.feed(step)
    return keeper.times()


def test_the_wait_for_a_reply_is_the_models_and_the_wait_for_results_is_the_tools() -> None:
    times = measured(
        user(0, 100.0),
        reply(1, 104.0, "bash", end=105.5),
        reply(2, 107.5, "bash", end=117.5),
        reply(3, 120.0),
    )
    assert [times.steps[n].model for n in range(4)] == [None, 4.0, 2.0, 2.5]
    assert [times.steps[n].tools for n in range(4)] == [None, 1.5, 10.0, None]
    assert (times.replies.total, times.replies.median, times.replies.longest_step) == (8.5, 2.5, 1)
    tool = times.tools["bash"]
    assert (tool.count, tool.total, tool.median, tool.longest, tool.longest_step) == (2, 11.5, 5.75, 10.0, 2)
    assert times.phases[Work.RUN].tools == 11.5
    assert times.phases[None].model == 2.5
    assert (times.parts, times.longest) == (TimeParts(8.5, 11.5, 0.0, 0.0, is_whole=True), 12.0)
    assert times.steps.longest(2) == [2, 1]


def test_the_time_of_a_user_and_of_bookkeeping_is_nobodys() -> None:
    note = Step(3, Actor.ENVIRONMENT, StepKind.STATE, ByteRange("", 0, 1), started=131.0)
    times = measured(user(0, 100.0), reply(1, 104.0), user(2, 130.0), note, reply(4, 133.0))
    assert times.parts.user == 26.0
    assert times.replies.total == 7.0
    pause = Step(2, Actor.ENVIRONMENT, StepKind.PAUSE, ByteRange("", 0, 1), started=110.0)
    times = measured(user(0, 100.0), reply(1, 104.0), pause, reply(3, 500.0))
    assert (times.replies.total, times.replies.timed, times.parts.unknown) == (4.0, 1, 396.0)


def test_recorded_durations_are_preferred_and_the_rest_of_the_wait_is_unknown() -> None:
    times = measured(user(0, 0.5), reply(1, 1.0, "read", "bash", end=11.0, took=(2.0, 3.0)))
    assert (times.tools["read"].total, times.tools["bash"].total) == (2.0, 3.0)
    assert (times.parts.tools, times.parts.unknown) == (5.0, 5.0)
    at_once = measured(user(0, 0.5), reply(1, 1.0, "read", "bash", end=4.0, took=(3.0, 2.5)))
    assert (at_once.parts.tools, at_once.parts.unknown) == (3.0, 0.0)
    inferred = replace(
        reply(1, 1.0, "a", "b", end=4.0, took=(1.0, 3.0)), derived=frozenset({"results.duration_s"})
    )
    assert {name: found.total for name, found in measured(inferred).tools.items()} == {"a+b": 3.0}


def test_the_start_and_the_end_of_a_reply_count_where_they_are_recorded() -> None:
    spans = replace(reply(1, 3.0, "bash", end=9.0), asked=3.0, replied=7.0)
    times = measured(user(0, 1.0), spans)
    assert times.steps[1][:4] == (4.0, 2.0, 0.0, 2.0)
    no_reply = replace(reply(1, 3.0, "bash", end=9.0), asked=3.0, replied=3.0)
    times = measured(user(0, 1.0), no_reply)
    assert (times.replies.count, times.parts.tools) == (0, 6.0)


def test_what_is_not_recorded_has_no_number() -> None:
    times = measured(user(0, None), reply(1, None, "bash"), reply(2, None))
    assert not times.is_known
    assert times.missing == ("how long replies took", "how long calls took")
    # The time between two replies is not divided if the end of the call in between is not recorded.
    times = measured(user(0, 1.0), reply(1, 3.0, "bash"), reply(2, 10.0))
    assert (times.replies.total, times.parts.unknown, times.timed_calls) == (2.0, 7.0, 0)
    assert times.missing == ("how long calls took", "how long 1 of 2 replies took")
    # A log with one time for a whole conversation does not record how long its replies took.
    times = measured(user(0, 5.0), reply(1, 5.0, "bash", end=5.0), reply(2, 5.0))
    assert (times.is_known, times.replies.timed, times.timed_calls) == (False, 0, 0)
    backwards = measured(user(0, 5.0), reply(1, 3.0, "bash", end=1.0), reply(2, float("inf")))
    assert (backwards.replies.timed, backwards.timed_calls) == (0, 0)


def test_a_message_that_waits_until_the_model_has_finished_counts_from_then() -> None:
    times = measured(user(0, 1.0), reply(1, 2.0, "bash", end=9.0), user(2, 4.0), reply(3, 11.0))
    assert (times.parts.user, times.steps[3].model) == (0.0, 2.0)


def span(index: int, at: float, replied: float, *tools: str, end: float | None = None) -> Step:
    """Return a reply of which a trace records the beginning and the end, with its calls."""
    return replace(reply(index, at, *tools, end=end), asked=at, replied=replied)


def test_what_happens_at_once_counts_once() -> None:
    times = measured(span(0, 10.0, 14.0), span(1, 12.0, 15.0, "bash", end=20.0), span(2, 13.0, 19.0))
    assert times.parts == TimeParts(9.0, 1.0, 0.0, 0.0, is_whole=True)
    # In the sums by reply and by tool, each counts in full.
    assert (times.replies.total, times.tools["bash"].total) == (13.0, 5.0)
    # A tool that asks a model itself leaves the model its time.
    within = measured(span(0, 10.0, 10.0, "agent", end=20.0), span(1, 12.0, 15.0))
    assert within.parts == TimeParts(3.0, 7.0, 0.0, 0.0, is_whole=True)


def test_the_time_of_a_run_goes_from_its_beginning_to_its_end() -> None:
    keeper = Timekeeper()
    keeper.feed(span(0, 10.0, 14.0))
    derived = frozenset({"duration_s"})
    run = Run("a format", started=5.0, duration_s=30.0, derived=derived)
    assert keeper.times(run).parts == TimeParts(4.0, 0.0, 0.0, 26.0, is_whole=True)
    assert keeper.times(replace(run, duration_s=6.0)).parts.total == 9.0
    # A step that the harness writes long after the run does not lengthen it beyond its recorded duration.
    keeper.feed(Step(1, Actor.SYSTEM, StepKind.STATE, ByteRange("", 0, 1), started=90_000.0))
    assert keeper.times(replace(run, derived=frozenset())).parts[:4] == (4.0, 0.0, 0.0, 26.0)
    assert keeper.times(replace(run, derived=frozenset(), duration_s=1.0)).parts[:4] == (4.0, 0.0, 0.0, 0.0)


def test_durations_without_times_are_within_the_time_of_the_run() -> None:
    keeper = Timekeeper()
    keeper.feed(reply(0, None, "bash", took=(3.0,)))
    assert keeper.times().parts == TimeParts(None, 3.0, 0.0, 0.0, is_whole=False)
    assert "when the run began and ended" in keeper.times().missing
    assert keeper.times(Run("a format", duration_s=10.0)).parts[:4] == (None, 3.0, 0.0, 7.0)
    assert keeper.times(Run("a format", duration_s=2.0)).parts[:4] == (None, 2.0, 0.0, 0.0)


@given(
    st.lists(
        st.tuples(st.sampled_from("rcu"), st.integers(0, 40), st.integers(0, 12)),
        max_size=12,
    )
)
def test_every_moment_is_in_one_part(drawn: list[tuple[str, int, int]]) -> None:
    division, moments = TimeDivision(), dict[int, int]()
    for part, start, length in drawn:
        end = start + length
        if part == "r":
            division.add_reply(start, end)
        elif part == "c":
            division.add_calls(start, length)
        else:
            division.add_user(start, end)
        for moment in range(start, end):
            moments[moment] = min("rcu".index(part), moments.get(moment, 2))
    counts = [sum(found == number for found in moments.values()) for number in range(3)]
    parts = division.parts(None, replies=True, calls=True)
    assert parts[:3] == tuple(counts)
    reached = [at for _, start, length in drawn for at in (start, start + length)]
    assert parts.total == (max(reached) - min(reached) if reached else 0.0)


def test_sums_are_kept_for_a_limited_number_of_tools() -> None:
    steps = [reply(n, 2.0 * n, f"tool {n}", end=2.0 * n + 1) for n in range(MOST_TOOLS + 50)]
    times = measured(*steps)
    assert len(times.tools) == MOST_TOOLS + 1
    assert times.tools[OTHER_TOOLS].count == 50
    assert times.steps[MOST_TOOLS + 20].tool == OTHER_TOOLS


def test_an_own_attempt_has_times_of_its_solver_and_its_tools(tmp_path: Path) -> None:
    times = times_of(open_run(journal_run(tmp_path)))
    assert times.calls == times.timed_calls > 0


def timed_run(path: Path) -> Path:
    """Write a run in which a reply arrives 3 s after its request, and a result 2 s after its call."""
    mini_run(path, TURNS)
    document: dict[str, Any] = json.loads(path.read_text("utf-8"))
    time = 1_700_000_000.0
    for message in document["messages"]:
        time += 3.0 if message["role"] == "assistant" else 2.0
        message.setdefault("extra", {})["timestamp"] = time
    path.write_text(json.dumps(document), "utf-8")
    return path


def test_times_are_printed_as_text_json_and_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(timed_run(tmp_path / "run.traj.json"))
    assert cli.main(["show", run, "--times"]) == 0
    text = capsys.readouterr().out
    assert "total 32.0s: model 18.0s (56%), tools 12.0s (38%), user 0s (0%), unknown 2.00s (6%)" in text
    assert "bash\t6\t12.0s\t2.00s\t2.00s\t3" in text
    assert cli.main(["show", run, "--times", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "gistpoint.times/1"
    assert (found["model"]["total_s"], found["tools_s"], found["by_work"]["test"]["tools_s"]) == (18, 12, 4)
    assert found["by_step"][0] == {
        "step": 3, "tools": "bash", "model_s": 3.0, "tools_s": 2.0, "user_s": 0.0, "unknown_s": 0.0,
    }  # fmt: skip
    assert cli.main(["show", run, "--times", "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["step"] for row in rows] == ["3", "4", "5", "6", "7", "8"]
    assert cli.main(["show", str(mini_run(tmp_path / "b.traj.json", TURNS)), "--times"]) == 0
    assert capsys.readouterr().out == "No times are recorded.\n"


def test_times_are_added_to_a_list_of_runs_only_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(timed_run(tmp_path / "run.traj.json"))
    assert cli.main(["runs", run, "--json", "--times"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["runs"]
    assert found["times"] == {
        "total_s": 32.0, "model_s": 18.0, "tools_s": 12.0, "user_s": 0.0, "unknown_s": 2.0,
    }  # fmt: skip
    assert (found["duration_s"], "duration_s" in found["derived"]) == (32.0, True)
    assert cli.main(["runs", run, "--json"]) == 0
    assert "times" not in json.loads(capsys.readouterr().out)["runs"][0]
    assert cli.main(["runs", run, "--times"]) == 2


def test_options_that_exclude_each_other_are_refused(tmp_path: Path) -> None:
    run = str(mini_run(tmp_path / "run.traj.json", TURNS))
    for words in (
        ["--times", "--step", "1"],
        ["--times", "--profile"],
        ["--csv"],
        ["--times", "--csv", "--json"],
    ):
        assert cli.main(["show", run, *words]) == 2


@pytest.mark.parametrize(
    ("written", "seconds", "naive"),
    [
        (1_700_000_000, 1_700_000_000.0, False),
        (1_700_000_000_500, 1_700_000_000.5, False),
        (1_700_000_000_500_000, 1_700_000_000.5, False),
        (1_700_000_000_500_000_000, 1_700_000_000.5, False),
        ("1700000000", 1_700_000_000.0, False),
        ("1700000000.5", 1_700_000_000.5, False),
        ("1700000000500", 1_700_000_000.5, False),
        ("1700000000500000000", 1_700_000_000.5, False),
        ("2023-11-14T22:13:20.500000000Z", 1_700_000_000.5, False),
        ("2023-11-14T22:13:20.5", 1_700_000_000.5, True),
        ("Tue, 14 Nov 2023 22:13:20 GMT", 1_700_000_000.0, False),
        ("Tue, 14 Nov 2023 23:13:20 +0100", 1_700_000_000.0, False),
        ("14 Nov 2023 22:13:20 +0000", 1_700_000_000.0, False),
        ("Tue, 14 Nov 2023 22:13:20 -0000", 1_700_000_000.0, True),
        ("Tue, 31 Nov 2023 22:13:20 GMT", None, False),
        ("Tue, 14 Nov 2023 99:13:20 GMT", None, False),
        ("14 Nov 2023 22:13 +9999999999999999", None, False),
        (True, None, False),
        (1e300, None, False),
        (9e18, 9e9, False),
        (-5, None, False),
        ("12345678901", None, False),
        ("\u0661" * 10, None, False),
        ("", None, False),
    ],
)
def test_a_time_is_read_however_it_is_written(written: Json, seconds: float | None, naive: bool) -> None:
    assert (when(written), is_naive(written)) == (seconds, naive)


def test_a_run_without_calls_spent_no_time_in_tools() -> None:
    keeper = Timekeeper()
    for step in (user(0, 10.0), reply(1, 14.0)):
        keeper.feed(step)
    times = keeper.times()
    assert (times.parts.tools, times.parts.model, times.calls) == (0.0, 4.0, 0)
    assert (
        total_words(times) == "total 4.00s: model 4.00s (100%), tools 0s (0%), user 0s (0%), unknown 0s (0%)"
    )
    keeper.feed(reply(2, None, "bash"))
    assert (keeper.times().parts.tools, keeper.times().calls) == (None, 1)
