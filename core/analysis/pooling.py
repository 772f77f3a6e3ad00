"""What counts, what is pooled with what, and how few are too few.

Attempts of persons, of models and of simulated people are never pooled, nor those under different conditions,
modes or condition keys (budgets, time limit, tools, template; a model's settings).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from gistpoint.core.analysis.findings import Shortfall
from gistpoint.core.attempts.reasons import EndReason
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.rows import AttemptRow

LEAST_PERSONS = 3
"""For an interval."""
LEAST_TASKS = 3
"""For an interval."""
LEAST_TASKS_OF_REGRESSION = 10
LEAST_OF_EACH_OUTCOME = 10
"""For a regression of success: as many solved, as many not solved."""
LEAST_TASKS_OF_CORRELATION = 10
LEAST_SOLVED_OF_RANK_TEST = 5
"""A side, for Mann-Whitney."""
LEAST_SOLVED_OF_SURVIVAL = 5
"""For a Kaplan-Meier curve."""
LEAST_SOLVED_OF_TIMES = 10
"""For a censored regression, and for a log-normal fit."""
LEAST_TASKS_OF_HORIZON = 10
LEAST_ROWS_OF_HEXAGONS = 30
LEAST_UNITS_OF_KAPPA = 10

WITHOUT_ROW = frozenset({EndReason.INFRASTRUCTURE, EndReason.WITHDRAWN, EndReason.DISQUALIFIED})
"""Ends that say nothing about the solver or the task: such attempts are counted in the flow alone."""


def countable(row: AttemptRow) -> bool:
    """Whether an analysis uses a row: a first exposure, assigned, in role, not excluded, with an end that
    counts.
    """
    return row.counted and row.end not in WITHOUT_ROW


@dataclass(frozen=True, slots=True)
class PooledRows:
    """Rows that may be pooled."""

    who: str
    """`people` or a model's name; simulated ones say so."""
    condition: str
    key: str
    mode: str
    people: bool
    label: str
    """Who, and as much of condition and key as distinguishes it from the other groups of the study."""
    rows: tuple[AttemptRow, ...]

    @property
    def tasks(self) -> frozenset[str]:
        """The tasks of its rows."""
        return frozenset(row.task for row in self.rows)

    @property
    def settings(self) -> str:
        """A model's own settings, without the budgets and tools that it shares with people."""
        return self.key.partition(" | ")[2]

    @property
    def solved(self) -> int:
        """How many of its rows are solved."""
        return sum(row.solved for row in self.rows)

    def on(self, tasks: Iterable[str]) -> PooledRows:
        """Return the group with the rows of some tasks."""
        kept = frozenset(tasks)
        return replace(self, rows=tuple(row for row in self.rows if row.task in kept))


def groups(data: StudyData) -> tuple[PooledRows, ...]:
    """Return the countable rows in groups: people first, then models by name; then by mode, condition and
    key.
    """
    return groups_of(data.rows)


def groups_of(rows: Iterable[AttemptRow]) -> tuple[PooledRows, ...]:
    """Return the groups of some rows; those that don't count are left out."""
    found: dict[tuple[bool, str, str, str, str], list[AttemptRow]] = defaultdict(list)
    # Rows that differ in one of these are never pooled.
    for row in rows:
        if countable(row):
            found[(bool(row.solver), row.who, row.mode, row.condition, row.condition_key)].append(row)
    # A label says no more than it must: a condition only if there are several, settings only if they differ.
    conditions: dict[str, set[str]] = defaultdict(set)
    keys: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for _, who, mode, condition, key in sorted(found):
        conditions[who].add(condition)
        keys[(who, mode, condition)].append(key)
    many = len({condition for known in conditions.values() for condition in known}) > 1
    made: list[PooledRows] = []
    for (model, who, mode, condition, key), members in sorted(found.items()):
        name = f"{who}, {condition}" if many and condition else who
        alike = keys[(who, mode, condition)]
        if len(alike) > 1:
            name += f" ({_settings(members, alike, key)})"
        made.append(PooledRows(who, condition, key, mode, not model, name, tuple(members)))
    return tuple(made)


def _settings(rows: Sequence[AttemptRow], keys: Sequence[str], key: str) -> str:
    """Return a short name for a key: its number among `keys`, preceded by the budgets if all rows share them."""
    number = f"settings {keys.index(key) + 1}"
    budgets = {(row.tool_use_budget, row.submission_budget) for row in rows}
    if len(budgets) == 1 and None not in (only := next(iter(budgets))):
        return f"{only[0]}/{only[1]}, {number}"
    return number


SETTINGS_BY_GROUP = "Settings by group: "
"""How the note begins that shows which settings the groups have."""


def keys_note(found: Iterable[PooledRows]) -> str:
    """Return the sentence that shows which settings the groups have."""
    settings = dict.fromkeys(f"{group.label}, {group.mode}: {group.key}" for group in found if group.key)
    return SETTINGS_BY_GROUP + "; ".join(settings) + "." if settings else ""


class OfMode(Protocol):
    """Rows of one mode."""

    @property
    def mode(self) -> str:
        """The mode."""
        ...


Rows = TypeVar("Rows", bound=OfMode)


def by_mode(found: Iterable[Rows]) -> Mapping[str, tuple[Rows, ...]]:
    """Return the groups of each mode, in the order of their first."""
    modes: dict[str, list[Rows]] = defaultdict(list)
    for group in found:
        modes[group.mode].append(group)
    return {mode: tuple(members) for mode, members in modes.items()}


def shared_tasks(found: Iterable[PooledRows]) -> frozenset[str]:
    """Return the tasks that each solver has attempted under each of its conditions, whatever the settings of
    a task.
    """
    sets: dict[tuple[str, str], frozenset[str]] = {}
    for group in found:
        sets[group.who, group.condition] = sets.get((group.who, group.condition), frozenset()) | group.tasks
    return frozenset.intersection(*sets.values()) if sets else frozenset()


def people_of(rows: Iterable[AttemptRow]) -> list[AttemptRow]:
    """Return the countable rows of people."""
    return [row for row in rows if countable(row) and not row.solver]


def solved_of(rows: Iterable[AttemptRow]) -> list[AttemptRow]:
    """Return the solved ones."""
    return [row for row in rows if row.solved]


def under(rows: Iterable[AttemptRow], *conditions: str) -> list[AttemptRow]:
    """Return the rows under some conditions."""
    return [row for row in rows if row.condition in conditions]


def having(rows: Iterable[AttemptRow], measure: str) -> list[AttemptRow]:
    """Return the rows that have a value of a measure."""
    return [row for row in rows if row.number(measure) is not None]


def persons_of(rows: Iterable[AttemptRow]) -> int:
    """Count the persons behind some rows; models are none."""
    return len({row.participant for row in rows if not row.solver})


def tasks_of(rows: Iterable[AttemptRow]) -> int:
    """Count the tasks of some rows."""
    return len({row.task for row in rows})


def too_few(what: str, *needs: tuple[str, float, float]) -> Shortfall | None:
    """Return the first need that is not met, each as (name of the number, least, what there is); None if all
    are.
    """
    return next((Shortfall(what, short, least, has) for short, least, has in needs if has < least), None)


def regression_needs(rows: Sequence[AttemptRow]) -> tuple[tuple[str, float, float], ...]:
    """The least numbers of a regression of success, for `too_few`."""
    solved = sum(row.solved for row in rows)
    return (
        ("tasks", LEAST_TASKS_OF_REGRESSION, tasks_of(rows)),
        ("solved attempts", LEAST_OF_EACH_OUTCOME, solved),
        ("attempts not solved", LEAST_OF_EACH_OUTCOME, len(rows) - solved),
    )
