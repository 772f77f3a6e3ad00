"""The words for the jobs of a run, the positions of tiles, and the lines of the header."""

from __future__ import annotations

import pytest

from gistpoint.core.attempts.parts import AttemptCall, Ending
from gistpoint.core.chat import Usage
from gistpoint.core.tasks.budgets import Budgets, Remaining
from gistpoint.sessions.agentruns.jobs import HANDED_OVER, AgentJob, JobState, JobStatus
from gistpoint.sessions.agentruns.shown_attempts import PassedTests, ShownAttempt
from gistpoint.tui.agent_rows import JobRow, budget_words, call_line, job_sentence, result_bar, state_words
from gistpoint.tui.screens.agents.head import count_words, packed
from gistpoint.tui.screens.agents.tiles import AttemptTiles, places_after

JOB = AgentJob("key", "1a1ec2b7ab6b" + "0" * 52)
BEGUN = ShownAttempt(begun=True, budgets=Budgets.of(16, 4), remaining=Remaining(9, 1), turns=7, calls=7)


def row(status: JobStatus = JobStatus.BEGUN, shown: ShownAttempt = BEGUN, **about: str) -> JobRow:
    return JobRow(3, JobState(JOB, status, **about), shown, live=True, title="Tickets")


@pytest.mark.parametrize(
    ("before", "at_work", "after"),
    [
        ([], ["a", "b"], ["a", "b"]),
        (["a", "b"], ["b", "c"], ["c", "b"]),
        (["a", "b"], ["b"], ["a", "b"]),
        (["a", "b"], ["c", "d", "e"], ["c", "d", "e"]),
        (["a", "b", "c"], [], ["a", "b", "c"]),
        (["a"], ["b", "a"], ["a", "b"]),
    ],
)
def test_attempts_at_work_keep_their_positions(
    before: list[str], at_work: list[str], after: list[str]
) -> None:
    assert places_after(before, at_work) == after


@pytest.mark.parametrize(("width", "count"), [(20, 1), (77, 1), (117, 2), (157, 3), (197, 4), (1, 1)])
def test_a_row_has_as_many_tiles_as_fit(width: int, count: int) -> None:
    assert AttemptTiles.in_a_row(width) == count


def test_a_halted_job_is_put_into_a_sentence_with_a_command() -> None:
    halted = row(JobStatus.HALTED, problem="server_error", message="It answered 500.")
    assert job_sentence(halted, "night", 120) == (
        "Job 3 has halted (server_error). It answered 500. `gistpoint agent resume night` tries again."
    )
    assert job_sentence(halted, "night").endswith(
        "`gistpoint agent resume night` tries again, `gistpoint agent settle night` decides."
    )
    assert "No reason was recorded." in job_sentence(row(JobStatus.HALTED, problem="x"), "night")
    long = row(JobStatus.HALTED, problem="server_error", message="x" * 500)
    assert len(job_sentence(long, "night", 150)) == 150
    assert job_sentence(long, "night", 150).endswith("`gistpoint agent resume night` tries again.")
    taken = row(JobStatus.HALTED, problem=HANDED_OVER)
    assert "has halted" not in job_sentence(taken, "night")


def test_other_jobs_are_put_into_sentences_too() -> None:
    ended = ShownAttempt(
        begun=True, ending=Ending("gave_up", "no_tool_call"), tests=PassedTests(153, 168), turns=1, calls=0
    )
    assert job_sentence(row(JobStatus.ENDED, ended, attempt="01m8k7eb365mr55x2wgm"), "night") == (
        "Job 3: ✘ gave up (no tool call), 153 of 168 tests, 1 turn, 0 calls."
        " `gistpoint review 01m8k7eb365m` opens it."
    )
    assert job_sentence(row(JobStatus.QUEUED, ShownAttempt()), "n") == "Job 3 waits for a free place."
    assert "can't be attempted (too_long)" in job_sentence(
        row(JobStatus.ENDED, ShownAttempt(), problem="too_long"), "n"
    )
    assert job_sentence(row(), "n") == "Job 3: model working. Enter watches it."


def test_budgets_are_in_the_longest_words_that_fit() -> None:
    assert budget_words(BEGUN) == [
        "turn 7 · 9 of 16 tool uses and 1 of 4 submissions left",
        "turn 7 · 9 tool uses, 1 submission left",
        "turn 7 · left 9/1",
    ]


def test_a_call_is_one_short_line() -> None:
    call = AttemptCall("c", 1, "read_file", {"file_path": "x" * 10_000})
    line = call_line(ShownAttempt(begun=True, last=call, pending=True))
    assert line.startswith("… read_file xxx")
    assert len(line) < 400
    assert call_line(BEGUN) == "no call yet"


def test_tests_are_a_bar_with_their_numbers() -> None:
    half = ShownAttempt(begun=True, submissions=1, status="finished", tests=PassedTests(5, 10))
    bar, words = result_bar(half, 26)
    assert words == " 5 of 10 tests"
    assert (bar.count("█"), bar.count("░")) == (6, 6)
    nearly = ShownAttempt(begun=True, submissions=1, status="finished", tests=PassedTests(167, 168))
    assert result_bar(nearly, 30)[0].endswith("░")
    timed_out = ShownAttempt(begun=True, submissions=1, status="timed_out")
    assert result_bar(timed_out, 26) == ("", "timed out")
    gist = ShownAttempt(begun=True, submissions=1, status="finished", score="fidelity 85")
    assert result_bar(gist, 26) == ("", "fidelity 85")


def test_parts_are_packed_into_lines_and_only_long_ones_are_cut() -> None:
    assert packed(["aaaa", "bbbb", "cc"], 11) == ["aaaa · bbbb", "cc"]
    assert packed(["a" * 12, "b"], 8) == ["a" * 7 + "…", "b"]
    assert packed([], 8) == []


def test_jobs_are_counted_by_what_they_do() -> None:
    waiting = ShownAttempt(begun=True, paused=True, waits=True, usage=Usage(1, 1))
    rows = [row(), row(shown=waiting), row(JobStatus.QUEUED), row(JobStatus.HALTED, problem="x")]
    assert count_words(rows) == [
        "2 at work",
        "1 queued",
        "1 halted",
        "1 request waiting",
    ]
    assert state_words(rows[1]) == "waiting for the endpoint"
