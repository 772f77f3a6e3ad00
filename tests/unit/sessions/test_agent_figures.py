"""The figures of runs: rates with intervals, repeats over tasks, and jobs that no rate includes."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from agent_runs import SOLVES, TALKS, Home
from hypothesis import given
from hypothesis import strategies as st
from scripted_endpoint import reply

from gistpoint.core.attempts.events import JournalEvent, ModelTurn, Paused, ProcessStarted, Resumed
from gistpoint.sessions.agentruns.endpoint_times import EndpointTimes
from gistpoint.sessions.agentruns.figure_lines import solved_line, summary_lines
from gistpoint.sessions.agentruns.figures import (
    AttemptFigures,
    totals_of,
)
from gistpoint.sessions.agentruns.rates import pass_at, rate, repeat_lines, repeats_of

ROOT = Path(__file__).parents[3]


def row(task: str = "t", repeat: int = 1, result: str = "solved", **members: object) -> AttemptFigures:
    values = {"status": "ended", "attempt": f"{task}{repeat}", "reason": "solved", "calls": 4, "malformed": 1}
    return AttemptFigures(task=task, repeat=repeat, result=result, **(values | members))  # type: ignore[arg-type]


def test_a_rate_is_told_with_its_interval() -> None:
    found = rate(3, 4)
    assert found is not None
    assert found.words == "3 of 4 [30, 95]"
    assert rate(0, 0) is None


@given(st.integers(0, 40), st.integers(1, 40))
def test_an_interval_holds_its_share_and_stays_within_one(count: int, of: int) -> None:
    found = rate(min(count, of), of)
    assert found is not None
    assert 0 <= found.low <= found.share + 1e-9 <= found.high + 2e-9 <= 1 + 3e-9


def test_passes_that_are_to_be_read_and_mixed_attempts_are_told_and_not_counted() -> None:
    rows = [
        row("a"),
        row("b", result="not solved", reason="gave_up: no_tool_call"),
        row("c", result="solved, to be read"),
        row("d", mixed=True),
        row("e", status="halted", result="", reason="rate_limited"),
        row("f", attempt="", result="", reason="too_long", calls=None, malformed=None),
    ]
    totals = totals_of(rows)
    assert (totals.jobs, totals.ended, totals.left, totals.counted) == (6, 5, 1, 3)
    assert (totals.mixed, totals.refused, totals.to_be_read) == (1, 1, 1)
    assert totals.solved is not None
    assert (totals.solved.count, totals.solved.of) == (1, 3)
    assert totals.solved_with_unread is not None
    assert totals.solved_with_unread.count == 2
    assert totals.malformed is not None
    assert (totals.malformed.count, totals.malformed.of) == (3, 12)
    words = summary_lines(totals, "r")
    assert words["solved"] == (
        "1 of 3 [6, 79]; if all others had failed: 1 of 5, if all had solved: 3 of 5; 1 more to be read"
    )
    assert words["mixed"] == "1 by a person and a model, not counted in any rate"
    assert words["without an attempt"] == "1"


def test_repeats_are_counted_over_tasks_and_only_where_they_are_whole() -> None:
    solved, not_solved = "solved", "not solved"
    rows = [
        *[row("always", n, solved) for n in (1, 2, 3)],
        *[row("once", n, result) for n, result in enumerate((not_solved, solved, not_solved), start=1)],
        *[row("never", n, not_solved) for n in (1, 2, 3)],
        row("open", 1, solved),
        row("open", 2, solved),
        row("open", 3, "", status="halted"),
        *[row("mixed", n, solved, mixed=n == 2) for n in (1, 2, 3)],
    ]
    found = repeats_of(rows)
    assert found is not None
    assert (found.k, found.tasks, found.incomplete) == (3, 3, 2)
    assert found.pass_at_1 is not None
    assert found.pass_at_1.count == pytest.approx(1 + 1 / 3)
    assert found.pass_at_k is not None
    assert found.pass_at_k.words == "2 of 3 [21, 94]"
    assert found.all_k is not None
    assert found.all_k.words == "1 of 3 [6, 79]"
    assert repeats_of([row("a"), row("b")]) is None


REFUSED = {"attempt": "", "result": "", "reason": "static_refused"}


@pytest.mark.parametrize("refused", [0, 1, 2])
@pytest.mark.parametrize("halted", [0, 1, 2])
def test_only_tasks_that_the_bounds_cover_are_told_as_incomplete(refused: int, halted: int) -> None:
    rows = [row(f"r{task}", n, **REFUSED) for task in range(refused) for n in (1, 2)]
    rows += [row(f"h{task}", n, "", status="halted") for task in range(halted) for n in (1, 2)]
    rows += [row("whole", 1), row("whole", 2, "not solved")]
    found = repeats_of(rows)
    assert found is not None
    assert (found.tasks, found.incomplete) == (1, halted)
    lines = repeat_lines(found)
    assert ("tasks without all repeats" in lines) == bool(halted)
    for limits in (found.pass_at_1_bounds, found.pass_at_k_bounds, found.all_k_bounds):
        assert (None if limits is None else limits.of) == (1 + halted if halted else None)


def test_the_chance_of_a_pass_is_the_unbiased_one() -> None:
    assert pass_at(1, [True, False, False, True]) == pytest.approx(0.5)
    assert pass_at(2, [True, False, False, True]) == pytest.approx(1 - 1 / 6)


def test_attempts_whose_calls_are_text_are_counted_with_the_option_that_reads_them(tmp_path: Path) -> None:
    text = '```json\n{"name": "list_directory", "arguments": {}}\n```'
    for said, unread in ((text, 1), ("I think that it is fine.", 0)):
        home = Home(tmp_path / str(unread), script=(reply(content=said),))
        run = home.run(home.task())
        home.work(run)
        figures = home.figures(run)
        assert (figures.totals.unread_calls, figures.attempts[0].unread_calls) == (unread, bool(unread))
        assert ("calls as text" in summary_lines(figures.totals, "r")) == bool(unread)
    rows = [
        row(reason="gave_up: no_tool_call", unread_calls=True),
        row(reason="token_cap", calls=0, unread_calls=True),
        row(reason="calls_exhausted", unread_calls=True),
    ]
    lines = summary_lines(totals_of(rows), "r")
    assert lines["calls as text"].startswith("in the replies of 2 attempts")
    assert "--calls text" in lines["calls as text"]


def test_attempts_that_never_called_a_tool_are_told_with_what_may_be_wrong() -> None:
    silent = row("a", result="not solved", reason="gave_up: no_tool_call", calls=0)
    later = row("b", result="not solved", reason="gave_up: no_tool_call", calls=3)
    assert summary_lines(totals_of([silent, later]), "r")["without a call"].startswith(
        "1. `gistpoint show ATTEMPT`"
    )
    assert "without a call" not in summary_lines(totals_of([later]), "r")


def test_the_time_of_the_model_is_told_apart_from_waits_after_failures() -> None:
    rows = [row("a", wall_s=30.0, model_s=20.0, endpoint_wait_s=4.0, lost_s=3.0, retried=2)]
    assert (
        summary_lines(totals_of(rows), "r")["time"]
        == "30 s in attempts: 20 s by the model, 4 s waiting to send a request again, 3 s in requests without a"
        " reply; 2 requests sent again before a reply"
    )


def test_the_wait_for_the_endpoint_ends_with_its_process() -> None:
    events = [
        JournalEvent(number, data.type, at, at, data)
        for number, (at, data) in enumerate([
            (0, Paused("endpoint_wait")),
            (400, Resumed()),
            (500, Paused("break")),
            (900, Resumed()),
            (1_000, Paused("endpoint_wait")),
            (5, ProcessStarted()),
            (70, Resumed()),
        ])
    ]  # fmt: skip
    assert EndpointTimes.of(events).waited_ms == 400


def test_the_time_of_replies_to_requests_at_once_counts_once() -> None:
    events = [
        JournalEvent(number, data.type, at, at, data)
        for number, (at, data) in enumerate([
            (1_000, ModelTurn(turn=1, latency_ms=500)),
            (1_500, ModelTurn(turn=2, latency_ms=1_200)),
            (1_600, ModelTurn(turn=3, latency_ms=50)),
            (40, ProcessStarted()),
            (700, ModelTurn(turn=4, latency_ms=600)),
        ])
    ]  # fmt: skip
    assert EndpointTimes.of(events).model_ms == 1_200 + 50 + 600


def test_a_table_has_a_row_for_each_job_with_the_figures_of_its_journal(tmp_path: Path) -> None:
    home = Home(tmp_path, script=(*SOLVES[:1], *SOLVES[1:]))
    run = home.run(home.task(1), home.task(2))
    home.work(run)
    home.script = TALKS
    run = home.run(home.task(3))
    figures = home.figures(run)
    rows = list(csv.DictReader("".join(figures.as_csv()).splitlines()))
    assert [(r["result"], r["reason"], r["status"]) for r in rows] == [
        ("solved", "solved", "ended"),
        ("solved", "solved", "ended"),
        ("", "", "queued"),
    ]
    assert (rows[0]["calls"], rows[0]["submissions"], rows[0]["turns"], rows[0]["malformed"]) == (
        "2",
        "1",
        "2",
        "0",
    )
    assert (rows[0]["prompt_tokens"], rows[0]["completion_tokens"], rows[0]["cost_usd"]) == ("200", "20", "")
    assert figures.as_json()["totals"]["solved"]["of"] == 2


def test_the_guides_result_of_the_built_in_solver_is_in_the_form_that_is_printed() -> None:
    # The end of each attempt at the demo's tasks, its calls and its submissions.
    ends = (
        ("gave_up: not_supported", 0, 0),
        ("submissions_exhausted", 16, 4),
        ("submissions_exhausted", 19, 8),
        ("gave_up: not_supported", 1, 1),
    )
    rows = [
        row(f"t{n}", 1, "not solved", reason=reason, calls=calls, submissions=submissions, malformed=0)
        for n, (reason, calls, submissions) in enumerate(ends)
    ]
    printed = summary_lines(totals_of(rows), "r")
    guide = (ROOT / "docs/guide/agents.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```\n(solved  .*?)```", guide, flags=re.DOTALL)
    lines = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in block.splitlines())
    assert lines == {label: printed[label] for label in lines}
    example = re.search(r"`solved (3 of 4 .*?)` means", guide)
    assert example is not None
    known = [row(f"k{n}", 1, "solved" if n < 3 else "not solved") for n in range(4)]
    open_ones = [row(f"o{n}", 1, "", status="halted") for n in range(2)]
    assert solved_line(totals_of([*known, *open_ones])) == example[1]
