"""Position, learning and carry-over: how the order of a person's tasks changes shares solved and times.

The model is that of the ratio of times (`crossed_times`), with condition, mode and position as columns;
without censoring and with 0 or 1 as the outcome, it is the linear mixed model of the share solved. A second
fit has two more columns for each condition but the first: its product with the position, and whether the
person's previous task was under that condition.

Source: Jones & Kenward, Design and Analysis of Cross-Over Trials, third edition, 2014.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from gistpoint.core.analysis.building import FindingsBuilder
from gistpoint.core.analysis.crossed_times import TimeEffects, effects_on_times
from gistpoint.core.analysis.findings import Findings, Number, Shortfall
from gistpoint.core.analysis.intervals import Floats, Scale, Units
from gistpoint.core.analysis.pooling import LEAST_OF_EACH_OUTCOME, LEAST_SOLVED_OF_TIMES, people_of
from gistpoint.core.analysis.timeratios import given_up, indicators, log_minutes, people, untimed
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.rows import AttemptRow

PLACE, RANGE = "each place later", "last place to first"
NOTE = (
    "Positions are places in a person's order. Below 1 for times and above 0 for shares, people learn in the"
    " course of the study. 'After' compares attempts whose task before was under one condition with those"
    " whose task before was under the other: far from 1 for times or 0 for shares, conditions carry over, and"
    " the contrast of conditions within persons is in doubt. 'More for' is the change of a condition's effect"
    " with each place. No interval is corrected for the number of effects."
)


def effects_of_order(data: StudyData) -> Findings:
    """Return the effects of position, learning and carry-over on times and shares of people (`order`)."""
    found = FindingsBuilder()
    columns = ("effect", "ratio of times", "difference in the share solved")
    table = found.table("Position, learning and carry-over", columns, NOTE)
    before = _previous_conditions(data.rows)
    effects: dict[str, dict[str, Number]] = defaultdict(dict)
    for outcome, rows in (("times", people(data)), ("shares", tuple(people_of(data.rows)))):
        placed = [row for row in rows if row.position is not None]
        for name, number in _of_outcome(found, data, outcome, placed, before).items():
            effects[name][outcome] = number
    for name, numbers in effects.items():
        times, shares = (numbers.get(outcome) for outcome in ("times", "shares"))
        found.numbers_of(name, {"times": times, "shares": shares})
        table.row(name, times, shares)
    found.note(*given_up(people(data)), *untimed(data))
    return found.findings()


def _previous_conditions(rows: Sequence[AttemptRow]) -> dict[str, str]:
    """Return, by attempt, the condition of the person's previous task; attempts without one are left out."""
    orders: dict[str, list[tuple[int, AttemptRow]]] = defaultdict(list)
    for row in rows:
        if not row.solver and row.position is not None:
            orders[row.participant].append((row.position, row))
    found: dict[str, str] = {}
    for placed in orders.values():
        ordered = [row for _, row in sorted(placed, key=lambda pair: pair[0])]
        found |= {row.attempt: earlier.condition for earlier, row in pairwise(ordered)}
    return found


def _of_outcome(
    found: FindingsBuilder,
    data: StudyData,
    outcome: str,
    rows: Sequence[AttemptRow],
    before: Mapping[str, str],
) -> dict[str, Number]:
    """Return the effects of order on times or shares, by name; empty if they can't be estimated."""
    what = f"The effects of order ({outcome})"
    solved = sum(row.solved for row in rows)
    needs = [("solved attempts with a position", LEAST_SOLVED_OF_TIMES, solved)]
    if outcome == "shares":
        needs.append(("attempts not solved", LEAST_OF_EACH_OUTCOME, len(rows) - solved))
    places = sorted({row.position or 0 for row in rows})
    if found.too_few(what, *needs, ("different positions", 2, len(places))):
        return {}
    attempted = {row.condition for row in rows}
    conditions = [one.id for one in data.study.conditions_of_people if one.id in attempted]
    columns = _columns(rows, conditions)
    span = float(places[-1] - places[0])
    numbers = _fitted(found, what, outcome, rows, columns, {PLACE: 1.0, RANGE: span})
    if len(conditions) < 2:
        return numbers
    earlier = [before.get(row.attempt, "") for row in rows]
    more = {**columns, "first": _flags(one not in conditions for one in earlier)}
    asked: dict[str, float] = {}
    for name in conditions[1:]:
        carried, product = f"after {name} rather than {conditions[0]}", f"more for {name}, each place later"
        more[product] = columns[f"under {name}"] * columns[PLACE]
        more[carried] = _flags(one == name for one in earlier)
        asked |= {carried: 1.0, product: 1.0}
    return numbers | _fitted(found, f"{what[:-1]}, carry-over)", outcome, rows, more, asked)


def _columns(rows: Sequence[AttemptRow], conditions: Sequence[str]) -> dict[str, Floats]:
    """Return the position, centred, with indicators of conditions and modes, except the first of each."""
    position = np.array([row.position or 0 for row in rows], dtype=float)
    columns: dict[str, Floats] = {PLACE: position - position.mean()}
    columns |= {f"under {name}": _flags(row.condition == name for row in rows) for name in conditions[1:]}
    return columns | {
        name: np.asarray(flags, dtype=float) for name, flags in indicators(rows, "mode").items()
    }


def _flags(values: Iterable[bool]) -> Floats:
    return np.array(list(values), dtype=float)


def _fitted(
    found: FindingsBuilder,
    what: str,
    outcome: str,
    rows: Sequence[AttemptRow],
    columns: Mapping[str, Floats],
    asked: Mapping[str, float],
) -> dict[str, Number]:
    """Return the requested effects, each a multiple of a column's effect; `RANGE` is a multiple of `PLACE`.

    The result is empty if the effects can't be separated or fitted.
    """
    # A constant column, such as the position if all rows have the same, has no effect.
    known = {name: column for name, column in columns.items() if np.ptp(column) > 0}
    x = np.column_stack([np.ones(len(rows)), *known.values()])
    wanted = {name: factor for name, factor in asked.items() if name in known or name == RANGE}
    fit: TimeEffects | None = None
    if np.linalg.matrix_rank(x) == x.shape[1]:
        names = list(known)
        sums = np.zeros((len(wanted), x.shape[1]))
        for place, (name, factor) in enumerate(wanted.items()):
            sums[place, 1 + names.index(PLACE if name == RANGE else name)] = factor
        solved = np.array([row.solved for row in rows], dtype=bool)
        if outcome == "times":
            fit = effects_on_times(Units.of(rows), x, log_minutes(rows), solved, sums)
        else:
            # Without censoring, this is the linear mixed model of the share solved.
            fit = effects_on_times(Units.of(rows), x, solved.astype(float), np.ones_like(solved), sums)
    if fit is None:
        found.estimated(Shortfall(what, "order in which the effects can be separated", 1, 0))
        return {}
    scale = Scale.LOG if outcome == "times" else Scale.DIFFERENCE
    return {name: fit.spread.number(scale, place) for place, name in enumerate(wanted)}
