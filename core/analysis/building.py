"""Builders for an analysis's findings: tables row by row, numbers, plots, notes and shortfalls."""

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
    """A table that is filled row by row, and is left out of the findings if it stays empty."""

    title: str
    columns: tuple[str, ...]
    note: str = ""
    rows: list[tuple[Cell, ...]] = field(default_factory=list)

    def row(self, *cells: Cell) -> None:
        """Add a row with one cell per column."""
        self.rows.append(cells)


class FindingsBuilder:
    """Collects an analysis's findings, in the order in which a report prints them."""

    def __init__(self) -> None:
        self.numbers: dict[str, Number] = {}
        """The numbers by key, as in `Findings.numbers`."""
        self._tables: list[TableBuilder] = []
        self._plots: list[Plot] = []
        self._notes: list[str] = []
        self._short: list[Shortfall] = []

    @property
    def has_rows(self) -> bool:
        """Whether any table has a row."""
        return any(table.rows for table in self._tables)

    @property
    def has_shortfalls(self) -> bool:
        """Whether any estimate could not be made."""
        return bool(self._short)

    def number(self, key: str, number: Number) -> Number:
        """Record a number under a key and return it."""
        self.numbers[key] = number
        return number

    def numbers_of(self, group: str, numbers: Mapping[Key, Number | None]) -> tuple[Number | None, ...]:
        """Record the numbers of a group, each as `GROUP/NAME`, and return them as cells.

        A number that is None becomes an empty cell and is not recorded.
        """
        self.numbers |= {f"{group}/{name}": number for name, number in numbers.items() if number is not None}
        return tuple(numbers.values())

    def table(self, title: str, columns: tuple[str, ...], note: str = "") -> TableBuilder:
        """Add an empty table and return it; tables are printed in the order of these calls."""
        builder = TableBuilder(title, columns, note)
        self._tables.append(builder)
        return builder

    def plot(self, *plots: Plot) -> None:
        """Add plots."""
        self._plots += plots

    def note(self, *notes: str) -> None:
        """Add notes; `findings` drops empty and repeated ones."""
        self._notes += notes

    def settings(self, groups: Iterable[PooledRows]) -> None:
        """Add the note on the groups' settings."""
        self.note(keys_note(groups))

    def too_few(self, what: str, *needs: tuple[str, float, float]) -> bool:
        """Return whether a need is unmet, and record the first unmet one as a shortfall.

        A need is (name of the number, minimum value, actual value).
        """
        short = too_few(what, *needs)
        self._short += [] if short is None else [short]
        return short is not None

    def not_estimated(self, what: str, short: str, needs: float, has: float) -> None:
        """Record that `what` is not estimated: it requires `needs` or more of `short`, not `has`."""
        self._short.append(Shortfall(what, short, needs, has))

    def estimated(self, found: Estimate | Shortfall) -> Estimate | None:
        """Return an estimate; if it is a shortfall, record that and return None."""
        if isinstance(found, Shortfall):
            self._short.append(found)
            return None
        return found

    def findings(self, *, without_rows: bool = False) -> Findings:
        """Return the findings; if no table has a row, only the shortfalls.

        With `without_rows`, numbers, plots and notes are returned even if no table has a row.
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
        plots = tuple(plot for plot in self._plots if plot.has_values)
        return Findings(self.numbers, tables, plots, notes, short)
