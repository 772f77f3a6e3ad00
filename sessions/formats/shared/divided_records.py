"""A base for readers whose records make several steps each, such as a request with its answer and calls."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator

from gistpoint.sessions.records.archives import Blob
from gistpoint.sessions.records.format import RunReader
from gistpoint.sessions.records.model import Json
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.scanning import RawRecord
from gistpoint.sessions.records.values import as_dict, is_deep


class DividedReader(RunReader):
    """Yields a record once for each of its parts; a step consists of parts of one or several records.

    The steps share the raw record, so that its page shows bytes that are in the file (decision 103).
    """

    divided = True

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self._parts: dict[int, list[dict[str, Json]]] = {}
        self._loaded: tuple[tuple[str, int, int] | None, tuple[Json, str]] = (None, (None, ""))

    @abstractmethod
    def parts(self, fields: Json) -> Iterable[dict[str, Json]]:
        """Return a name for each part of a record, in order; called once for each record."""

    @abstractmethod
    def part_of(self, value: Json, name: dict[str, Json]) -> Json:
        """Return the part of a record that `name` denotes."""

    def undivided_records(self) -> Iterator[RawRecord]:
        """Yield each record of the file once, before `records` divides it; a format may override this."""
        return super().records()

    def records(self) -> Iterator[RawRecord]:
        """Yield every record once for each of its parts, with the part's name as the record's fields."""
        return self._divided(self.undivided_records())

    def more(self, offset: int, before: int) -> Iterator[RawRecord] | None:
        """Return an iterator over the parts of appended records; None if the records are not lines."""
        found = super().more(offset, before)
        return None if found is None else self._divided(found)

    def _divided(self, records: Iterator[RawRecord]) -> Iterator[RawRecord]:
        for record in map(self.checked, records):
            if record.damage:
                yield record
                continue
            for name in self.parts(record.fields):
                yield record._replace(fields=name)

    def checked(self, record: RawRecord) -> RawRecord:
        """Return a record unchanged, or as damaged if it is nested too deeply to be searched for parts.

        A warning is added for a damaged record.
        """
        if record.damage or not is_deep(record.fields):
            return record
        self.warnings.append(f"The record at byte {record.start:,} is nested too deeply; it is shown raw.")
        return record._replace(fields=None, damage="is nested too deeply")

    def owner(self, name: dict[str, Json], step_count: int) -> int:
        """Return the index of the step that a part belongs to; `step_count` means a new step."""
        return step_count

    def place(self, fields: Json, step_count: int) -> int:
        """Assign the next part to a step, and return the index of the step."""
        name = as_dict(fields)
        step = self.owner(name, step_count)
        self._parts.setdefault(step, []).append(name)
        return step

    def names(self, index: int) -> list[dict[str, Json]]:
        """Return the names of the parts that a step consists of."""
        return self._parts.get(index, [{}])

    def load(self, blob: Blob, start: int, end: int) -> tuple[Json, str]:
        """Return a record's value and its fault; the last record is kept for the next step made from it."""
        place = (blob.name, start, end)
        # The steps of one record are shown one after another, and a record may be large.
        if self._loaded[0] != place:
            self._loaded = (place, super().load(blob, start, end))
        return self._loaded[1]

    def part(self, index: int, number: int, value: Json) -> Json:
        """Return the part of a record that a step shows."""
        names = self.names(index)
        name = names[min(number, len(names) - 1)]
        # A line such as `null` can be decoded, but contains no record with parts.
        return self.part_of(value, name) if name else value
