"""Rates over the jobs of a run, with bounds on the rates if every outcome were known.

An outcome is missing while a job is waiting or halted, and permanently if the job was excluded, if a person
had control, or if its journal can't be read. No assumption about these outcomes can be tested, so each rate
has bounds: its value if all of them were failures, and if all were successes. These are Manski's bounds for
missing outcomes, American Economic Review 80(2), 1990 (decision 150).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import comb
from typing import Protocol

import msgspec

from gistpoint.core.estimates import wilson
from gistpoint.core.text import plural


class OutcomeRow(Protocol):
    """The facts about a job that the rates need."""

    @property
    def task(self) -> str:
        """The id of the task."""
        ...

    @property
    def counted(self) -> bool:
        """Whether the outcome is known and counts."""
        ...

    @property
    def missing(self) -> bool:
        """Whether the outcome is not known."""
        ...

    @property
    def solved(self) -> bool:
        """Whether the job counts as solved."""
        ...


class Rate(msgspec.Struct, frozen=True):
    """A share, with its Wilson interval at 95%."""

    share: float
    low: float
    high: float
    count: float
    """The numerator; not an integer if shares of tasks were added."""
    of: int

    @property
    def words(self) -> str:
        """The count and the interval in percent: `3 of 4 [30, 95]`."""
        return f"{_number(self.count)} of {self.of} [{self.low * 100:.0f}, {self.high * 100:.0f}]"


def rate(count: float, of: int) -> Rate | None:
    """Return the rate `count` / `of`; None if `of` is 0.

    For a mean of shares, one per task, the interval is that of as many binary results, which errs on the wide
    side. Repeats of a task do not make it narrower, since they are not independent.
    """
    if of == 0:
        return None
    low, high = wilson(count, of)
    return Rate(count / of, low, high, count, of)


class OutcomeBounds(msgspec.Struct, frozen=True):
    """The numerator of a rate if all missing outcomes were failures, and if all were successes."""

    failed: float
    solved: float
    of: int
    """The number of all jobs or tasks, including those with missing outcomes."""

    @property
    def words(self) -> str:
        """Both bounds in words: `if all others had failed: 3 of 6, if all had solved: 5 of 6`."""
        return (
            f"if all others had failed: {_number(self.failed)} of {self.of}, if all had solved:"
            f" {_number(self.solved)} of {self.of}"
        )

    @property
    def short_words(self) -> str:
        """Both bounds in few words: `3 to 5 of 6 with the others`."""
        return f"{_number(self.failed)} to {_number(self.solved)} of {self.of} with the others"


def bounds(count: int, counted: int, missing: int) -> OutcomeBounds | None:
    """Return the bounds of `count` / `counted` with `missing` further outcomes; None if none is missing."""
    return OutcomeBounds(count, count + missing, counted + missing) if missing else None


def rate_words(found: Rate | None, missing: OutcomeBounds | None, unit: str = "") -> str:
    """Return a rate and its bounds in words; without a rate, the words are `no outcome counts yet`."""
    words = f"{found.words}{unit}" if found is not None else "no outcome counts yet"
    return f"{words}; {missing.words}{unit}" if missing is not None else words


class RepeatFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Rates over the tasks that were attempted `k` times each."""

    k: int
    tasks: int
    """The number of tasks with all repeats; only these are in the rates."""
    incomplete: int
    """The number of tasks that require an attempt and do not have all repeats."""
    pass_at_1: Rate | None
    """None, like the other rates, if no task has all repeats."""
    pass_at_k: Rate | None
    """The share of tasks that were solved in at least one repeat; None if no task has all repeats."""
    all_k: Rate | None
    """The share of tasks that were solved in every repeat; None if no task has all repeats."""
    pass_at_1_bounds: OutcomeBounds | None = None
    """The bounds over all tasks; None, like the other bounds, if no task is incomplete."""
    pass_at_k_bounds: OutcomeBounds | None = None
    all_k_bounds: OutcomeBounds | None = None


def repeats_of(rows: Sequence[OutcomeRow]) -> RepeatFigures | None:
    """Return the rates over tasks; None if no task has more than one job.

    The bounds also use the known outcomes of tasks without all repeats. Repeats that were never queued count
    as missing, unlike jobs that require no attempt because the task does not fit the settings.
    """
    by_task: dict[str, list[OutcomeRow]] = {}
    for row in rows:
        by_task.setdefault(row.task, []).append(row)
    k = max(map(len, by_task.values()), default=0)
    if k < 2:
        return None
    whole = [
        [row.solved for row in jobs]
        for jobs in by_task.values()
        if len(jobs) == k and all(row.counted for row in jobs)
    ]
    possible = [
        [row.solved for row in jobs if row.counted] for jobs in by_task.values() if _needs_an_attempt(jobs)
    ]
    failed, solved = (_completed(possible, k, solved=solved) for solved in (False, True))
    incomplete = len(possible) - len(whole)

    def between(of: _TaskShare) -> OutcomeBounds | None:
        if not incomplete:
            return None
        return OutcomeBounds(_total(of, failed), _total(of, solved), len(possible))

    return RepeatFigures(
        k=k,
        tasks=len(whole),
        incomplete=incomplete,
        pass_at_1=rate(_total(_mean, whole), len(whole)),
        pass_at_k=rate(_total(any, whole), len(whole)),
        all_k=rate(_total(all, whole), len(whole)),
        pass_at_1_bounds=between(_mean),
        pass_at_k_bounds=between(any),
        all_k_bounds=between(all),
    )


def _needs_an_attempt(jobs: Iterable[OutcomeRow]) -> bool:
    return any(row.counted or row.missing for row in jobs)


def _completed(known: Iterable[Sequence[bool]], k: int, *, solved: bool) -> list[list[bool]]:
    """Return `k` outcomes for each task, with `solved` in place of missing ones."""
    return [[*outcomes, *[solved] * (k - len(outcomes))] for outcomes in known]


class _TaskShare(Protocol):
    """Computes, from the outcomes of a task's repeats, the share with which the task counts."""

    def __call__(self, solved: Sequence[bool], /) -> float: ...


def _total(of: _TaskShare, tasks: Iterable[Sequence[bool]]) -> float:
    return sum(of(solved) for solved in tasks)


def _mean(solved: Sequence[bool]) -> float:
    return pass_at(1, solved)


def pass_at(k: int, solved: Sequence[bool]) -> float:
    """Return the probability that at least one of `k` attempts drawn from `solved` is solved.

    This is the unbiased estimate of Chen and others 2021, the paper on Codex, equation 1.
    """
    return 1.0 - comb(len(solved) - sum(solved), k) / comb(len(solved), k)


def repeat_lines(repeats: RepeatFigures | None) -> dict[str, str]:
    """Return the rates over tasks in words, by their labels; empty without repeats."""
    if repeats is None:
        return {}
    found = {
        "pass@1": (repeats.pass_at_1, repeats.pass_at_1_bounds),
        f"pass@{repeats.k}": (repeats.pass_at_k, repeats.pass_at_k_bounds),
        f"all of {repeats.k}": (repeats.all_k, repeats.all_k_bounds),
    }
    none = "none of the tasks has all its repeats"
    lines = {
        name: "; ".join(
            [
                f"{value.words} tasks" if value is not None else none,
                *([f"{missing.words} tasks"] if missing is not None else []),
            ]
        )
        for name, (value, missing) in found.items()
    }
    if repeats.incomplete:
        lines["tasks without all repeats"] = (
            f"{plural(repeats.incomplete, 'task')}, only in the bounds of these rates"
        )
    return lines


def _number(value: float) -> str:
    return f"{round(value, 2):g}"
