"""Determines which rows count and which may be pooled, and declares the minimum numbers that analyses need.

Attempts of people, of models and of simulated people are never pooled with each other, nor those under
different conditions, modes or condition keys (budgets, time limit, tools, template; a model's settings).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import msgspec

from gistpoint.core.analysis.findings import Shortfall
from gistpoint.core.attempts.reasons import EndReason
from gistpoint.core.kinds.registry import kind_named
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.declaration import StudyTask
from gistpoint.core.study.rows import AttemptRow

LEAST_PERSONS = 3
"""The minimum number of persons for an interval."""
LEAST_TASKS = 3
"""The minimum number of tasks for an interval."""
LEAST_ATTEMPTS_OF_RATE = 5
"""With fewer attempts, counts are printed instead of a rate."""
LEAST_TASKS_OF_REGRESSION = 10
LEAST_OF_EACH_OUTCOME = 10
"""The minimum number of solved attempts, and of attempts not solved, for a logistic regression."""
LEAST_TASKS_OF_CORRELATION = 10
LEAST_SOLVED_OF_RANK_TEST = 5
"""The minimum number of solved tasks on each side, for the Mann-Whitney test."""
LEAST_SOLVED_OF_SURVIVAL = 5
"""The minimum number of solved attempts for a Kaplan-Meier curve."""
LEAST_SOLVED_OF_TIMES = 10
"""The minimum number of solved attempts for a censored regression, and for a log-normal fit."""
LEAST_TASKS_OF_HORIZON = 10
LEAST_ROWS_OF_HEXAGONS = 30
LEAST_UNITS_OF_KAPPA = 10

WITHOUT_ROW = frozenset({EndReason.INFRASTRUCTURE, EndReason.WITHDRAWN, EndReason.DISQUALIFIED})
"""Ends that carry no information on the solver or the task: such attempts appear only in the flow."""


def countable(row: AttemptRow) -> bool:
    """Return whether an analysis uses a row.

    Such a row is a first exposure, was assigned, was made in the role of a participant, is not excluded, and
    ended in a way that counts.
    """
    return row.counted and row.end not in WITHOUT_ROW


@dataclass(frozen=True, slots=True)
class PooledRows:
    """Rows of one solver (or of people), mode, condition and key, which may be pooled."""

    who: str
    """`people` or a model's name, marked if simulated."""
    condition: str
    key: str
    mode: str
    people: bool
    label: str
    """`who`, with enough of the condition and key to distinguish the group from the study's other groups."""
    rows: tuple[AttemptRow, ...]

    @property
    def tasks(self) -> frozenset[str]:
        """The task ids of the group's rows."""
        return frozenset(row.task for row in self.rows)

    @property
    def settings(self) -> str:
        """A model's own settings: the key without the budgets and tools that it shares with people."""
        return self.key.partition(" | ")[2]

    @property
    def solved(self) -> int:
        """The number of solved rows."""
        return sum(row.solved for row in self.rows)

    def on(self, tasks: Iterable[str]) -> PooledRows:
        """Return the group restricted to the given tasks."""
        kept = frozenset(tasks)
        return replace(self, rows=tuple(row for row in self.rows if row.task in kept))


def reported_mode(task: StudyTask, mode: str = "") -> str:
    """Return the mode of a task as shown in reports; `mode`, if given, replaces the task's own."""
    mode = mode or task.mode
    kind = kind_named(mode)
    return mode if kind is None else kind.reported_mode(mode, task.corruptions)


def as_reported(data: StudyData) -> StudyData:
    """Return a study whose rows have the modes that reports show, so that all tables have the same modes.

    A task with several corruptions is then in a separate mode, `several` (decision 163). The rows are in one
    order, so that no number depends on the order in which they were read.
    """
    return replace(data, rows=tuple(_as_reported(data, row) for row in sorted(data.rows, key=_place)))


def _place(row: AttemptRow) -> tuple[str, str, int, str, str]:
    return row.solver, row.participant, row.position or 0, row.started_utc, row.attempt


def _as_reported(data: StudyData, row: AttemptRow) -> AttemptRow:
    task = data.tasks.get(row.task)
    return row if task is None else msgspec.structs.replace(row, mode=reported_mode(task, row.mode))


def groups(data: StudyData) -> tuple[PooledRows, ...]:
    """Return a study's countable rows in groups, by reported mode.

    People come first, then models by name; within each, groups are in the order of mode, condition and key.
    """
    return groups_of(as_reported(data).rows)


def groups_of(rows: Iterable[AttemptRow]) -> tuple[PooledRows, ...]:
    """Return the countable rows among `rows` in groups, in the order of `groups`."""
    found: dict[tuple[bool, str, str, str, str], list[AttemptRow]] = defaultdict(list)
    # Rows that differ in any part of this key are never pooled.
    for row in rows:
        if countable(row):
            found[(bool(row.solver), row.who, row.mode, row.condition, row.condition_key)].append(row)
    # A label names the condition only if there are several, and the settings only if they differ.
    conditions: dict[str, set[str]] = defaultdict(set)
    keys: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for _, who, mode, condition, key in sorted(found):
        conditions[who].add(condition)
        keys[(who, mode, condition)].append(key)
    many = len({condition for known in conditions.values() for condition in known}) > 1
    pooled: list[PooledRows] = []
    for (model, who, mode, condition, key), members in sorted(found.items()):
        name = f"{who}, {condition}" if many and condition else who
        alike = keys[(who, mode, condition)]
        if len(alike) > 1:
            name += f" ({_settings(members, alike, key)})"
        pooled.append(PooledRows(who, condition, key, mode, not model, name, tuple(members)))
    return tuple(pooled)


def _settings(rows: Sequence[AttemptRow], keys: Sequence[str], key: str) -> str:
    """Return a short name for a key: its number among `keys`, after the budgets if all rows share them."""
    number = f"settings {keys.index(key) + 1}"
    budgets = {(row.tool_use_budget, row.submission_budget) for row in rows}
    if len(budgets) == 1 and None not in (only := next(iter(budgets))):
        return f"{only[0]}/{only[1]}, {number}"
    return number


SETTINGS_BY_GROUP = "Settings by group: "
"""The prefix of the note on the groups' settings."""


def keys_note(found: Iterable[PooledRows]) -> str:
    """Return the note on the groups' settings; empty if no group has a key."""
    settings = dict.fromkeys(f"{group.label}, {group.mode}: {group.key}" for group in found if group.key)
    return SETTINGS_BY_GROUP + "; ".join(settings) + "." if settings else ""


class OfMode(Protocol):
    """Rows of one mode."""

    @property
    def mode(self) -> str:
        """The mode of these rows."""
        ...


Rows = TypeVar("Rows", bound=OfMode)


def by_mode(found: Iterable[Rows]) -> Mapping[str, tuple[Rows, ...]]:
    """Return the groups by their mode; the modes are in the order of their first group."""
    modes: dict[str, list[Rows]] = defaultdict(list)
    for group in found:
        modes[group.mode].append(group)
    return {mode: tuple(members) for mode, members in modes.items()}


def shared_tasks(found: Iterable[PooledRows]) -> frozenset[str]:
    """Return the ids of tasks that every solver attempted under each of its conditions, with any settings."""
    sets: dict[tuple[str, str], frozenset[str]] = {}
    for group in found:
        sets[group.who, group.condition] = sets.get((group.who, group.condition), frozenset()) | group.tasks
    return frozenset.intersection(*sets.values()) if sets else frozenset()


def people_of(rows: Iterable[AttemptRow]) -> list[AttemptRow]:
    """Return the countable rows of people."""
    return [row for row in rows if countable(row) and not row.solver]


def solved_of(rows: Iterable[AttemptRow]) -> list[AttemptRow]:
    """Return the solved rows."""
    return [row for row in rows if row.solved]


def under(rows: Iterable[AttemptRow], *conditions: str) -> list[AttemptRow]:
    """Return the rows under any of the conditions."""
    return [row for row in rows if row.condition in conditions]


def having(rows: Iterable[AttemptRow], measure: str) -> list[AttemptRow]:
    """Return the rows in which a measure has a value."""
    return [row for row in rows if row.number(measure) is not None]


PRIMARY_MINUTES = "minutes on the primary clock"
"""The label of an axis of primary times: the study declares whether they include waiting for tools."""


def primary_minutes(row: AttemptRow) -> float:
    """Return the primary time of an attempt in minutes; 0 if the attempt has none."""
    return (row.primary_s or 0.0) / 60


def persons_of(rows: Iterable[AttemptRow]) -> int:
    """Return the number of persons with rows; models don't count."""
    return len({row.participant for row in rows if not row.solver})


def tasks_of(rows: Iterable[AttemptRow]) -> int:
    """Return the number of tasks in the rows."""
    return len({row.task for row in rows})


def counts_of(rows: Sequence[AttemptRow]) -> tuple[int, int, int]:
    """Return the numbers of persons, tasks and attempts."""
    return len({row.participant for row in rows if row.participant}), tasks_of(rows), len(rows)


def too_few(what: str, *needs: tuple[str, float, float]) -> Shortfall | None:
    """Return the first unmet need as a shortfall; None if all are met.

    A need is (name of the number, minimum value, actual value).
    """
    return next((Shortfall(what, short, least, has) for short, least, has in needs if has < least), None)


def regression_needs(rows: Sequence[AttemptRow]) -> tuple[tuple[str, float, float], ...]:
    """Return the needs of a logistic regression of success, for `too_few`."""
    solved = sum(row.solved for row in rows)
    return (
        ("tasks", LEAST_TASKS_OF_REGRESSION, tasks_of(rows)),
        ("solved attempts", LEAST_OF_EACH_OUTCOME, solved),
        ("attempts not solved", LEAST_OF_EACH_OUTCOME, len(rows) - solved),
    )
