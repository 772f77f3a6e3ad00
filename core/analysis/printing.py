"""How the numbers of findings are spelled, on paper and in the terminal alike."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gistpoint.core.analysis.findings import Findings, FindingsTable, Number, Shortfall, Value
from gistpoint.core.text import visible_line

NOTHING = "–"
"""Printed in the place of a value that does not exist."""


def value_words(value: Value) -> str:
    """Return a value with three significant digits, a whole number with all of its digits, a text on one
    line.
    """
    if value is None:
        return NOTHING
    if isinstance(value, str):
        return visible_line(value)
    if isinstance(value, int):
        return str(value) if abs(value) < 10_000 else f"{value:,}"
    if not math.isfinite(value):
        return NOTHING if math.isnan(value) else "∞" if value > 0 else "-∞"
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}"
    if 0 < size < 0.001:
        return f"{value:.1e}"
    digits = next(digits for least, digits in _DIGITS if size >= least)
    return f"{value:.{digits}f}"


_DIGITS = ((100, 0), (10, 1), (1, 2), (0.001, 3), (0, 2))
"""Digits after the point from a size on: three significant ones, and two of 0."""


def interval_words(number: Number) -> str:
    """Return the interval as `[0.51, 0.75]`; empty if there is none."""
    if number.low is None or number.high is None:
        return ""
    return f"[{value_words(number.low)}, {value_words(number.high)}]"


def iid_words(number: Number) -> str:
    """Return the interval that papers print, mostly for independent rows, after its name; empty if there is
    none.
    """
    if number.iid is None:
        return ""
    return f"{number.beside} [{value_words(number.iid[0])}, {value_words(number.iid[1])}]"


def number_words(number: Number) -> str:
    """Return an estimate on one line: value, interval, and how many persons and tasks it rests on."""
    extent = Extent(number.persons, number.tasks, number.rows).words
    parts = [
        value_words(number.value),
        interval_words(number),
        f"({extent})" if extent else "",
        visible_line(number.note),
    ]
    return " ".join(part for part in parts if part)


def shortfall_words(found: Sequence[Shortfall]) -> list[str]:
    """Return why numbers were not estimated: a sentence each, or one for all with the same reason."""
    alike: dict[tuple[str, float, float], list[Shortfall]] = {}
    for one in found:
        alike.setdefault((one.short, one.needs, one.has), []).append(one)
    sentences = []
    for (short, needs, has), members in alike.items():
        if len(members) == 1:
            sentences.append(members[0].words)
            continue
        there = "is" if has == 1 else "are"
        what = "; ".join(one.what.rstrip(",") for one in members)
        sentences.append(
            f"{len(members)} are not estimated, as each needs at least {needs:g} {short}, and there {there}"
            f" {has:g}: {what}."
        )
    return sentences


@dataclass(frozen=True, slots=True)
class Extent:
    """How many persons, tasks and attempts a number, a table or a figure rests on."""

    persons: int = 0
    tasks: int = 0
    rows: int = 0
    at_most: bool = False
    """Whether its numbers rest on different ones; these are the greatest."""

    @property
    def words(self) -> str:
        """As `8 persons, 16 tasks, 64 attempts`; of models only, without persons."""
        counts = ((self.persons, "person"), (self.tasks, "task"), (self.rows, "attempt"))
        words = ", ".join(f"{count} {name}{'' if count == 1 else 's'}" for count, name in counts if count)
        return f"a number rests on up to {words}" if words and self.at_most else words

    @classmethod
    def of(cls, numbers: Iterable[Number]) -> Extent:
        """Return the greatest counts of the numbers."""
        known = {(number.persons, number.tasks, number.rows) for number in numbers}
        persons, tasks, rows = (max((counts[place] for counts in known), default=0) for place in range(3))
        return cls(persons, tasks, rows, at_most=len(known) > 1)


def extent_of_table(table: FindingsTable, findings: Findings, whole: Extent) -> Extent:
    """Return the extent of a table: of its own numbers, else of the analysis, else of the `whole` study."""
    own = [cell for row in table.rows for cell in row if isinstance(cell, Number)]
    return Extent.of(own) if own else extent_of(findings, whole)


def extent_of(findings: Findings, whole: Extent) -> Extent:
    """Return the extent of an analysis: of its numbers, else of the `whole` study."""
    found = Extent.of(findings.numbers.values())
    return found if found.tasks else whole
