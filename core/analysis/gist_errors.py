"""Why gists fail, and what a reader of a gist's score must know (Gistify, table 2)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from gistpoint.core.analysis.findings import Findings, FindingsTable, Number, Value
from gistpoint.core.analysis.intervals import share
from gistpoint.core.analysis.pooling import keys_note
from gistpoint.core.analysis.samples import FIDELITY, measuring
from gistpoint.core.analysis.task_means import percent
from gistpoint.core.kinds.registry import measure_named
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.rows import AttemptRow

MOCKED, UNKNOWN = "mocked", "not recorded"
ERROR, NOT_CREATED = measure_named("error"), "file_creation"
CATEGORIES = (*ERROR.values, MOCKED, UNKNOWN)
NOTE = (
    "Of the gists that failed, the first error that holds, in the order file creation, missing test, import, run; the "
    "paper's order is the same but for the import, which it does not place. 'mocked' is a run that matches by a fake "
    "in the codebase's place, which the paper counts as faithful. Percentages are of the failed gists of the row's "
    "solver and sum to 100. (The paper's own first row does not: 72 of 97 is 74.2 %, where it prints 76.3.) Whether a "
    "gist without its test would run if the test were put in is not known: a hand-in is scored once."
)
FLAGS_NOTE = "Of all gists of the solver; one that was not created has none."


def errors(data: StudyData) -> Findings:
    """Count the failed gists by their first error, and all gists by flag (Gistify, table 2)."""
    numbers: dict[str, Number] = {}
    cells: list[tuple[Number | Value, ...]] = []
    flags: list[tuple[Number | Value, ...]] = []
    found = measuring(data, FIDELITY)
    for group in found:
        failed = [row for row in group.rows if not row.solved]
        for category in CATEGORIES:
            count = sum(category_of(row) == category for row in failed)
            if not failed or (category in (MOCKED, UNKNOWN) and not count):
                continue
            number = percent(share(failed, partial(_is, category=category)))
            numbers[f"{group.label}/{category}"] = number
            cells.append((group.label, category.replace("_", " "), count, len(failed), number))
        for flag in _flags(group.rows):
            number = percent(share(group.rows, partial(_has, flag=flag)))
            numbers[f"{group.label}/flag {flag}"] = number
            flags.append((group.label, flag.replace("_", " "), number))
    tables = []
    if cells:
        columns = ("solver", "first error", "gists", "of failed", "%")
        tables.append(FindingsTable("Errors of the gists that failed", columns, tuple(cells), NOTE))
    if flags:
        tables.append(FindingsTable("Flags of gists", ("solver", "flag", "%"), tuple(flags), FLAGS_NOTE))
    note = keys_note(found) if tables else ""
    return Findings(numbers, tuple(tables), notes=(note,) if note else ())


def category_of(row: AttemptRow) -> str:
    """Return the category of a failed gist; one that was never handed in was not created."""
    if row.text("error") in ERROR.values:
        return row.text("error")
    if row.says("mocked"):
        return MOCKED
    return NOT_CREATED if not row.submissions and row.score is None else UNKNOWN


def flags_of(row: AttemptRow) -> frozenset[str]:
    """Return the names of a gist's flags; what was not created has none."""
    if row.text("error") == NOT_CREATED:
        return frozenset()
    return frozenset(row.names("gist_flags")) | ({MOCKED} if row.says("mocked") else set())


def _flags(rows: Sequence[AttemptRow]) -> list[str]:
    return sorted({flag for row in rows for flag in flags_of(row)})


def _is(row: AttemptRow, category: str) -> bool:
    return category_of(row) == category


def _has(row: AttemptRow, flag: str) -> bool:
    return flag in flags_of(row)
