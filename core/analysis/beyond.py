"""Judges solved repairs beyond the tests: by their equivalence to the original, and by readers' decisions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from gistpoint.core.analysis.building import FindingsBuilder, TableBuilder
from gistpoint.core.analysis.findings import Bars, Findings, Number, Plot
from gistpoint.core.analysis.intervals import Scale, Units, mean, share, share_of
from gistpoint.core.analysis.pooling import (
    LEAST_ATTEMPTS_OF_RATE,
    PooledRows,
    groups,
    persons_of,
    solved_of,
    tasks_of,
)
from gistpoint.core.study.data import MergeDecision, MergeReading, RepairEquivalence, StudyData
from gistpoint.core.study.rows import AttemptRow
from gistpoint.core.text import plural

EQUIVALENT, DIFFERS = "equivalent", "differs"
ORIGINALS = "originals"
TESTS, INPUTS, READERS = "pass the tests", "equivalent, of those", "merged by readers, of those"


def beyond_tests(data: StudyData) -> Findings:
    """Return the shares that pass, are equivalent to the original, and are merged (`beyond-tests`).

    The findings are empty if no solved repair was compared with the original or read, and no original was
    read.
    """
    if not data.equivalences and not data.readings:
        return Findings()
    verdicts = {one.attempt: one for one in data.equivalences}
    readings: dict[str, list[MergeReading]] = defaultdict(list)
    for reading in data.readings:
        readings[reading.attempt].append(reading)
    found = FindingsBuilder()
    table = found.table(
        "Beyond the tests", ("who", "mode", TESTS, INPUTS, READERS, "not comparable", "not read"), NOTE
    )
    for group in groups(data):
        _add_group(found, table, group, verdicts, readings)
    # Unmarked originals were read among the repairs, so the share of them that was merged measures how
    # strict the readers are (decision 80).
    if readings[""]:
        golden = found.number(f"{ORIGINALS}/{READERS}", _of_originals(readings[""]))
        table.row(ORIGINALS, "", None, None, golden, 0, 0)
    _add_examples(found, data, verdicts)
    found.plot(_plot(found.numbers))
    return found.findings() if table.rows else Findings()


def _add_group(
    found: FindingsBuilder,
    table: TableBuilder,
    group: PooledRows,
    verdicts: Mapping[str, RepairEquivalence],
    readings: dict[str, list[MergeReading]],
) -> None:
    solved = solved_of(group.rows)
    judged = [row for row in solved if row.attempt in verdicts]
    # Repairs that can't be compared, neither equivalent nor different, have a separate column (decision 80).
    compared = [row for row in judged if _comparable(verdicts[row.attempt])]
    read = [row for row in solved if readings[row.attempt]]
    if not compared and not read:
        return
    numbers = {
        TESTS: share(group.rows),
        INPUTS: (
            share(compared, lambda row: verdicts[row.attempt].verdict == EQUIVALENT) if compared else None
        ),
        READERS: _share_of_merges(read, readings) if read else None,
    }
    cells = found.numbers_of(f"{group.label}/{group.mode}", numbers)
    table.row(group.label, group.mode, *cells, len(judged) - len(compared), len(solved) - len(read))


NOTE = (
    "Equivalent: no difference from the original on recorded and varied inputs. Merged: the share of"
    " readings that would merge the repair as it is. Unmarked originals were mixed in: if their share"
    " is below 1, the readers are that strict."
)


def _comparable(verdict: RepairEquivalence) -> bool:
    return verdict.verdict in (EQUIVALENT, DIFFERS)


def _merges(readings: Sequence[MergeReading]) -> float:
    return sum(one.decision is MergeDecision.MERGE for one in readings) / len(readings)


def _share_of_merges(rows: Sequence[AttemptRow], readings: dict[str, list[MergeReading]]) -> Number:
    """Return the mean, over repairs, of the share of readings that decide to merge.

    The number has no value if there are fewer repairs than a rate requires.
    """
    shares = [_merges(readings[row.attempt]) for row in rows]
    if len(rows) < LEAST_ATTEMPTS_OF_RATE:
        read = [one.decision for row in rows for one in readings[row.attempt]]
        counts = f"{read.count(MergeDecision.MERGE)} of {plural(len(read), 'reading')}"
        note = f"{counts}: no rate from fewer than {LEAST_ATTEMPTS_OF_RATE} repairs"
        return Number(None, persons=persons_of(rows), tasks=tasks_of(rows), rows=len(rows), note=note)
    # If the readings of each repair agree, this is a share, and `share` computes the exact interval at 0 and
    # 1.
    if set(shares) <= {0.0, 1.0}:
        return share(rows, lambda row: _merges(readings[row.attempt]) == 1.0)
    return mean(rows, shares, Scale.PROBABILITY)


def _of_originals(readings: Sequence[MergeReading]) -> Number:
    """Return the share of originals' readings that decide to merge, as an estimate over readers and tasks."""
    units = Units.named([one.reader for one in readings], [one.task for one in readings])
    return share_of(units, [one.decision is MergeDecision.MERGE for one in readings], "readings")


def _add_examples(found: FindingsBuilder, data: StudyData, verdicts: dict[str, RepairEquivalence]) -> None:
    table = found.table("Repairs that pass and differ", ("who", "task", "smallest difference"))
    solved = {row.attempt: row for row in data.rows if row.solved}
    for one in verdicts.values():
        if one.verdict == DIFFERS and one.attempt in solved:
            table.row(solved[one.attempt].who, one.task[:12], one.example)


def _plot(numbers: dict[str, Number]) -> Plot:
    labels = tuple(dict.fromkeys(key.rpartition("/")[0] for key in numbers))
    nothing = Number(None)
    marks = []
    for name in (TESTS, INPUTS, READERS):
        marks.append(Bars.of(name, {label: numbers.get(f"{label}/{name}", nothing) for label in labels}))
    return Plot(
        "beyond-tests",
        "Beyond the tests",
        "",
        "share",
        tuple(marks),
        "Whiskers: 95% intervals over persons and tasks.",
    )
