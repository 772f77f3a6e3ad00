"""The rates at which readers notice corruptions, and call untouched functions faulty, with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import combinations, product
from typing import Any

from gistpoint.core.corruption.blind import BlindAnswer, BlindItem, ShownVersion
from gistpoint.core.estimates import wilson
from gistpoint.sessions.annotations.agreement import GlanceAgreement, glance_agreement
from gistpoint.sessions.annotations.glances import MODEL, GlanceBook, Reading

PEOPLE = "people"


@dataclass(frozen=True, slots=True)
class GlanceShare:
    """A share of cases with its 95% interval (Wilson, 1927)."""

    count: int
    cases: int

    @property
    def value(self) -> float | None:
        """The share; None if there are no cases."""
        return self.count / self.cases if self.cases else None

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the share; 0 to 1 if there are no cases."""
        return wilson(self.count, self.cases)


@dataclass(frozen=True, slots=True)
class GlanceRate:
    """The rates at which a group of readers noticed faults in a set of functions."""

    seen: GlanceShare
    """The share of readings of a corrupted version that named the fault with certainty at the right line."""
    doubtful: int
    """The number of readings of a corrupted version that ended in doubt, at any line."""
    alarms: GlanceShare
    """The share of readings of an untouched version that named a fault; doubts do not count."""

    def to_json(self) -> dict[str, Any]:
        """Return the figures by name."""
        return {
            "read": self.seen.cases,
            "seen": self.seen.count,
            "rate": self.seen.value,
            "interval": list(self.seen.interval),
            "doubtful": self.doubtful,
            "untouched_read": self.alarms.cases,
            "false_alarms": self.alarms.count,
            "false_alarm_rate": self.alarms.value,
            "false_alarm_interval": list(self.alarms.interval),
        }


def rate_of(readings: Iterable[Reading]) -> GlanceRate:
    """Return the rates at which these readings noticed faults; all of the readings count."""
    known = list(readings)
    corrupted = [reading for reading in known if reading.version is ShownVersion.CORRUPTED]
    untouched = [reading for reading in known if reading.version is ShownVersion.ORIGINAL]
    return GlanceRate(
        GlanceShare(sum(reading.seen for reading in corrupted), len(corrupted)),
        sum(reading.answer is BlindAnswer.DOUBTFUL for reading in corrupted),
        GlanceShare(sum(reading.alarm for reading in untouched), len(untouched)),
    )


def counted_readings(book: GlanceBook, reader: str) -> list[tuple[str, Reading]]:
    """Return the readings of a reader that count, each with its task.

    Only a person's first reading of a function counts, in whatever task and version, because the reader knows
    the function afterwards. All readings of a model count, because models have no memory of earlier readings.
    """
    read = sorted(book.read_by(reader), key=lambda pair: (pair[1].utc_ms, pair[1].op))
    if reader.startswith(MODEL):
        return read
    first: dict[tuple[str, str], tuple[str, Reading]] = {}
    for task, reading in read:
        first.setdefault((reading.source, reading.function), (task, reading))
    return list(first.values())


def _by_task(book: GlanceBook, readers: Iterable[str]) -> dict[str, list[Reading]]:
    found: dict[str, list[Reading]] = {}
    for reader in readers:
        for task, reading in counted_readings(book, reader):
            found.setdefault(task, []).append(reading)
    return found


def _people(book: GlanceBook) -> list[str]:
    return [name for name in book.reviewers if not name.startswith(MODEL)]


def _models(book: GlanceBook) -> list[str]:
    return [name for name in book.reviewers if name.startswith(MODEL)]


def task_rates(book: GlanceBook) -> dict[str, float]:
    """Return the rate at which each task's fault was noticed by people, or by models if no person read it.

    Tasks whose corrupted version nobody read are left out.
    """
    found: dict[str, float] = {}
    for readers in (_models(book), _people(book)):
        for task, readings in _by_task(book, readers).items():
            rate = rate_of(readings).seen.value
            if rate is not None:
                found[task] = rate
    return found


@dataclass(frozen=True, slots=True)
class RateRow:
    """A row in the table of rates."""

    readers: str
    """`people`, which means all of them together, or the name of a model."""
    by: str
    """`task`, `family` or `all`."""
    name: str
    """The id of the task or the name of the family; empty for `all`."""
    rate: GlanceRate


def rate_rows(book: GlanceBook, items: Iterable[BlindItem]) -> Iterator[RateRow]:
    """Yield the rates by task, by family and overall, for people and for each model, if there are readings.

    A corruption of several families counts for each of them.
    """
    chosen = list(items)
    order = ("task", "family", "all")
    for readers, names in ((PEOPLE, _people(book)), *((name, [name]) for name in _models(book))):
        known = _by_task(book, names)
        groups: dict[tuple[str, str], list[Reading]] = {}
        for item in chosen:
            own = [reading for reading in known.get(item.task, ()) if reading.function == item.function]
            for group in (
                ("task", item.task),
                *(("family", name) for name in sorted(set(item.families))),
                ("all", ""),
            ):
                groups.setdefault(group, []).extend(own)
        for by, name in sorted(groups, key=lambda group: order.index(group[0])):
            if readings := groups[by, name]:
                yield RateRow(readers, by, name, rate_of(readings))


def agreements(book: GlanceBook, tasks: Iterable[str]) -> list[GlanceAgreement]:
    """Return the agreements of pairs who read the same functions: of people, and of a person and a model.

    The agreement of each person with themselves is returned too.
    """
    chosen = list(tasks)
    people = _people(book)
    pairs = [
        *combinations(people, 2),
        *((name, name) for name in people),
        *product(people, _models(book)),
    ]
    found = (glance_agreement(book, chosen, first, second) for first, second in pairs)
    return [agreed for agreed in found if agreed.functions or agreed.verdicts]


RATE_COLUMNS = (
    *("readers", "by", "name", "read", "seen", "rate", "low", "high", "doubtful"),
    *("untouched_read", "false_alarms", "false_alarm_rate", "false_alarm_low", "false_alarm_high"),
)
"""The columns of the CSV."""


def rate_values(row: RateRow) -> dict[str, Any]:
    """Return the cells of a CSV row by column."""
    values = row.rate.to_json()
    low, high = values.pop("interval")
    alarm_low, alarm_high = values.pop("false_alarm_interval")
    ends = {"low": low, "high": high, "false_alarm_low": alarm_low, "false_alarm_high": alarm_high}
    return {"readers": row.readers, "by": row.by, "name": row.name, **values, **ends}


def rates_json(rows: Iterable[RateRow], agreed: Iterable[GlanceAgreement]) -> dict[str, Any]:
    """Return the rows and the agreements as JSON values, under `rates` and `agreement`."""
    return {
        "rates": [
            {"readers": row.readers, "by": row.by, "name": row.name, **row.rate.to_json()} for row in rows
        ],
        "agreement": [asdict(one) for one in agreed],
    }
