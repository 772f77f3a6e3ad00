"""The bounds of a run's rates hold whatever the missing outcomes would have been."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from fractions import Fraction
from io import StringIO
from itertools import product
from pathlib import Path

import msgspec
import pytest
from agent_runs import RIGHT, SOLVES, WRONG, Home
from hypothesis import given
from hypothesis import strategies as st
from scripted_endpoint import reply

from gistpoint.core.chat import ChatFailure, ChatProblem
from gistpoint.sessions.agentruns.figure_lines import solved_line, summary_lines
from gistpoint.sessions.agentruns.figures import AttemptFigures, RunFigures, outcomes_of, totals_of
from gistpoint.sessions.agentruns.jobs import JobAttempt, JobEnded
from gistpoint.sessions.agentruns.rates import OutcomeBounds
from gistpoint.sessions.attempts import AttemptStore

DOWN = ChatFailure(ChatProblem.SERVER_ERROR, "It answered 500.")
KNOWN = ("solved", "not solved", "solved, to be read")
KINDS = (*KNOWN, "halted", "begun", "queued", "excluded", "mixed", "unreadable", "refused")


def row(task: str, repeat: int, kind: str) -> AttemptFigures:
    """Return the row of a job whose outcome is, or is not, known."""
    about = {"task": task, "repeat": repeat, "attempt": f"{task}{repeat}", "status": "ended"}
    if kind in KNOWN:
        about |= {"result": kind, "reason": "r"}
    elif kind == "mixed":
        about |= {"result": "solved", "mixed": True}
    elif kind == "refused":
        about |= {"attempt": "", "reason": "static_refused"}
    elif kind == "unreadable":
        about |= {"reason": kind}
    else:
        about |= {"status": kind, "attempt": "" if kind == "queued" else "a", "reason": "server_error"}
    return msgspec.convert(about, AttemptFigures)


def completed(kinds: Sequence[tuple[str, str]]) -> Iterator[list[tuple[str, bool]]]:
    """Yield all completions of the raw outcomes: the task of each job, and whether it was solved."""
    open_ends = [n for n, (_, kind) in enumerate(kinds) if kind not in (*KNOWN, "refused")]
    for drawn in product((False, True), repeat=len(open_ends)):
        given = dict(zip(open_ends, drawn, strict=True))
        yield [
            (task, given.get(n, kind == "solved"))
            for n, (task, kind) in enumerate(kinds)
            if kind != "refused"
        ]


def holds(bounds: OutcomeBounds | None, found: Fraction, known: float | None) -> bool:
    """Whether a rate of a completion is within the bounds; without bounds, it must equal the known rate."""
    if bounds is None:
        return known is not None and float(found) == pytest.approx(known)
    return bounds.failed / bounds.of - 1e-9 <= float(found) <= bounds.solved / bounds.of + 1e-9


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(KINDS)), min_size=1, max_size=9))
def test_every_completion_of_the_missing_outcomes_lies_within_the_bounds(
    kinds: list[tuple[str, str]],
) -> None:
    rows = [row(task, n, kind) for n, (task, kind) in enumerate(kinds)]
    totals = totals_of(rows)
    extremes = set()
    for jobs in completed(kinds):
        if not jobs:
            assert (totals.solved, totals.solved_bounds) == (None, None)
            continue
        share = Fraction(sum(solved for _, solved in jobs), len(jobs))
        extremes.add(share)
        assert holds(totals.solved_bounds, share, None if totals.solved is None else totals.solved.share)
    if totals.solved_bounds is not None:  # neither bound can be tighter
        bounds = totals.solved_bounds
        assert float(min(extremes)) == pytest.approx(bounds.failed / bounds.of)
        assert float(max(extremes)) == pytest.approx(bounds.solved / bounds.of)


@given(st.lists(st.tuples(*[st.sampled_from(KINDS)] * 3), min_size=1, max_size=3))
def test_the_rates_over_tasks_have_bounds_too(repeats: list[tuple[str, str, str]]) -> None:
    kinds = [(f"t{n}", kind) for n, task in enumerate(repeats) for kind in task]
    figures = totals_of([row(task, n % 3 + 1, kind) for n, (task, kind) in enumerate(kinds)]).repeats
    assert figures is not None
    # A repeat that needed no attempt while others did is open as well, because it was never a failure.
    needed = {task for task, kind in kinds if kind != "refused"}
    kinds = [(task, "halted" if kind == "refused" and task in needed else kind) for task, kind in kinds]
    for jobs in completed(kinds):
        by_task = {task: [solved for other, solved in jobs if other == task] for task, _ in jobs}
        if not by_task:
            assert (figures.tasks, figures.pass_at_1, figures.pass_at_1_bounds) == (0, None, None)
            return
        tasks = len(by_task)
        mean = sum((Fraction(sum(s), 3) for s in by_task.values()), Fraction()) / tasks
        some = Fraction(sum(any(s) for s in by_task.values()), tasks)
        every = Fraction(sum(all(s) for s in by_task.values()), tasks)
        for bounds, found, known in (
            (figures.pass_at_1_bounds, mean, figures.pass_at_1),
            (figures.pass_at_k_bounds, some, figures.pass_at_k),
            (figures.all_k_bounds, every, figures.all_k),
        ):
            assert holds(bounds, found, None if known is None else known.share)


def test_repeats_that_were_never_queued_are_missing() -> None:
    rows = [row("a", 1, "solved"), row("a", 2, "solved"), row("b", 1, "not solved")]
    figures = totals_of(rows).repeats
    assert figures is not None
    assert (figures.tasks, figures.incomplete) == (1, 1)
    assert figures.pass_at_1_bounds == OutcomeBounds(1.0, 1.5, 2)
    assert figures.pass_at_k_bounds == OutcomeBounds(1, 2, 2)
    assert figures.all_k_bounds == OutcomeBounds(1, 1, 2)


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        ([], "there are no jobs"),
        (["refused"], "no job needed an attempt"),
        (["halted", "queued"], "no outcome counts yet; if all others had failed: 0 of 2, if all had solved: 2 of 2"),
        (["solved", "not solved"], "1 of 2 [9, 91]"),
        (["solved", "excluded"], "1 of 1 [21, 100]; if all others had failed: 1 of 2, if all had solved: 2 of 2"),
    ],
)  # fmt: skip
def test_a_rate_is_words_where_there_is_none(kinds: list[str], words: str) -> None:
    assert solved_line(figures(kinds)) == words
    lines = summary_lines(figures(kinds), "r").values()
    assert not any("0 of 0" in line for line in lines)


def figures(kinds: Sequence[str]) -> RunFigures:
    return totals_of([row(f"t{n}", 1, kind) for n, kind in enumerate(kinds)])


def test_the_table_gives_the_bounds_as_means_of_two_columns(tmp_path: Path) -> None:
    home = Home(tmp_path)
    run = home.run(home.task(1))
    home.work(run)
    home.script = [reply(WRONG), DOWN]
    run = home.run(home.task(1), home.task(2), home.task(3))
    home.work(run)
    found = home.figures(run)
    table = list(csv.DictReader(StringIO("".join(found.as_csv()))))
    worst = [int(line["solved_at_worst"]) for line in table]
    best = [int(line["solved_at_best"]) for line in table]
    bounds = found.totals.solved_bounds
    assert (worst, best) == ([1, 0, 0], [1, 1, 1])
    assert bounds == OutcomeBounds(sum(worst), sum(best), len(table))
    assert solved_line(outcomes_of(run, home.attempts)) == solved_line(found.totals)
    assert found.as_json()["totals"]["solved_bounds"] == {"failed": 1, "solved": 3, "of": 3}
    words = summary_lines(found.totals, run.name)
    assert words["halted"].startswith("2 of 3, in no rate: `gistpoint agent resume r` continues")
    home.script = [reply(RIGHT), *SOLVES]
    home.work(run)
    assert home.figures(run).totals.solved_bounds is None


def test_lists_count_no_attempt_of_another_job(tmp_path: Path) -> None:
    home = Home(tmp_path)
    run = home.run(home.task(1), home.task(2))
    home.work(run)
    first, second = run.jobs.values()
    run.append(
        [JobAttempt(job=second.job.key, attempt=first.attempt), JobEnded(job=second.job.key, reason="x")]
    )
    run = home.runs.open("r")
    listed, shown = outcomes_of(run, home.attempts), home.figures(run).totals
    assert solved_line(listed) == solved_line(shown)
    assert (listed.counted, listed.missing, listed.reasons) == (1, 1, shown.reasons)
    # Also from the file of a later process.
    again = AttemptStore(home.attempts.root, home.clock, "test")
    assert outcomes_of(run, again) == listed
