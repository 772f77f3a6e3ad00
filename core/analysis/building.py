"""Builds the findings of an analysis: what every analysis repeats about tables, notes and numbers not
estimated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from gistpoint.core.analysis.findings import Findings, FindingsTable, Number, Plot, Shortfall, Value
from gistpoint.core.analysis.pooling import PooledRows, keys_note, too_few

Cell = Number | Value
Estimate = TypeVar("Estimate")
Key = TypeVar("Key")


@dataclass(slots=True)
class TableBuilder:
    """A table that gets its rows one by one; it is left out of the findings if it has none."""

    title: str
    columns: tuple[str, ...]
    note: str = ""
    rows: list[tuple[Cell, ...]] = field(default_factory=list)

    def row(self, *cells: Cell) -> None:
        """Add a row, with a cell for each column."""
        self.rows.append(cells)


class FindingsBuilder:
    """Collects what an analysis finds, in the order in which a report prints it."""

    def __init__(self) -> None:
        self.numbers: dict[str, Number] = {}
        """By key; see `Findings.numbers`."""
        self._tables: list[TableBuilder] = []
        self._plots: list[Plot] = []
        self._notes: list[str] = []
        self._short: list[Shortfall] = []

    @property
    def has_rows(self) -> bool:
        """Whether a table has a row."""
        return any(table.rows for table in self._tables)

    @property
    def has_shortfalls(self) -> bool:
        """Whether something was not estimated."""
        return bool(self._short)

    def number(self, key: str, number: Number) -> Number:
        """Keep a number under a key, and return it."""
        self.numbers[key] = number
        return number

    def numbers_of(self, group: str, made: Mapping[Key, Number | None]) -> tuple[Number | None, ...]:
        """Keep the numbers of a group, each as `GROUP/NAME`, and return them as cells; a missing one has no
        key.
        """
        self.numbers |= {f"{group}/{name}": number for name, number in made.items() if number is not None}
        return tuple(made.values())

    def table(self, title: str, columns: tuple[str, ...], note: str = "") -> TableBuilder:
        """Begin a table; tables are printed in the order in which they are begun."""
        made = TableBuilder(title, columns, note)
        self._tables.append(made)
        return made

    def plot(self, *plots: Plot) -> None:
        """Add figures."""
        self._plots += plots

    def note(self, *notes: str) -> None:
        """Add notes; empty ones and repeated ones are left out."""
        self._notes += notes

    def settings(self, groups: Iterable[PooledRows]) -> None:
        """Add the note that shows which settings the groups have."""
        self.note(keys_note(groups))

    def too_few(self, what: str, *needs: tuple[str, float, float]) -> bool:
        """Whether a number can't be estimated, each need as (name, least, what there is); the first unmet is
        kept.
        """
        short = too_few(what, *needs)
        self._short += [] if short is None else [short]
        return short is not None

    def not_estimated(self, what: str, short: str, needs: float, has: float) -> None:
        """Keep what was not estimated, and why."""
        self._short.append(Shortfall(what, short, needs, has))

    def estimated(self, found: Estimate | Shortfall) -> Estimate | None:
        """Return an estimate; keep the shortfall that there is in its place, and return None."""
        if isinstance(found, Shortfall):
            self._short.append(found)
            return None
        return found

    def findings(self, *, without_rows: bool = False) -> Findings:
        """Return all of it; without a row in any table only what was not estimated.

        Plots and notes explain the rows; `without_rows` keeps them even if there are none.
        """
        short = tuple(self._short)
        if not self.has_rows and not without_rows:
            return Findings(not_estimated=short)
        notes = tuple(dict.fromkeys(filter(None, self._notes)))
        tables = tuple(
            FindingsTable(table.title, table.columns, tuple(table.rows), table.note)
            for table in self._tables
            if table.rows
        )
        return Findings(self.numbers, tables, tuple(self._plots), notes, short)
