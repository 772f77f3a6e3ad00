"""Reads the rows of a table, each of which is a run, from JSON lines, a JSON array or a Parquet file."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import IO, TYPE_CHECKING, cast

from gistpoint.core.errors import extra_hint
from gistpoint.sessions.records import limits
from gistpoint.sessions.records.archives import Blob, BlobFile, BytesBlob, RunFileError
from gistpoint.sessions.records.model import Json
from gistpoint.sessions.records.probe import FileIdentity, FileProbe
from gistpoint.sessions.records.scanning import RawRecord, array_records, guarded, lines, one_record
from gistpoint.sessions.records.values import recoded

if TYPE_CHECKING:
    from arro3.core import RecordBatch

PARQUET = b"PAR1"
_KEPT = 16
"""The number of files whose rows' positions are remembered."""
_BATCH = 16
"""Rows of a Parquet file that are decoded at once.

A row group may hold a thousand runs; arro3 reads only the pages of these rows (decision 102).
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its members, and its position in a JSON text; a row of a Parquet file has no position."""

    number: int
    """The row's number, counted from 1."""
    fields: Mapping[str, Json]
    """If there is a record, non-ASCII text is not yet decoded: see `member`."""
    record: RawRecord | None = None

    def member(self, key: str) -> Json:
        """Return a member, decoded; None if it is missing."""
        value = self.fields.get(key)
        return value if self.record is None else recoded(value)

    def probe(self, table: FileProbe, decoded: Collection[str] = ()) -> FileProbe:
        """Return the probe of the row as an object, with the strings under `decoded` as JSON values.

        A row without such strings keeps its positions in the file. Raises `RunFileError` if the row is nested
        too deeply.
        """
        changed = {key: inner for key in decoded if (inner := decoded_text(self.member(key))) is not None}
        if self.record is not None and not changed:
            return table.part(self.record)
        members = {key: changed.get(key, self.member(key)) for key in self.fields}
        try:
            text = json.dumps(members, ensure_ascii=False, default=str)
        except RecursionError:
            raise RunFileError(
                f"Row {self.number} of {table.name or 'the file'} is nested too deeply."
            ) from None
        name = f"row {self.number}, decoded"
        return FileProbe(BytesBlob(text.encode("utf-8", "surrogatepass"), name), name=table.name)


def decoded_text(value: Json) -> Json:
    """Return the array or object in a JSON string; None for any other value."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{"):
        return None
    try:
        inner: Json = json.loads(value, strict=False)
    except (ValueError, RecursionError):
        return None
    return inner


def rows_of(probe: FileProbe) -> Iterator[Row]:
    """Yield the rows that are objects, and of a damaged row the members before the damage.

    Raises `RunFileError` if a Parquet file can't be read.
    """
    if probe.head.startswith(PARQUET):
        yield from _parquet_rows(probe)
        return
    for number, record in enumerate(guarded(_records(probe), probe.blob, []), 1):
        if isinstance(record.fields, dict):
            yield Row(number, record.fields, record)
        elif record.damage:
            yield Row(number, probe.part(record).object, record)


def texts_of(probe: FileProbe) -> Iterator[Blob]:
    """Yield bytes that contain the strings of all rows, either directly or as JSON at any depth.

    For a JSON file, these are the bytes of the file. Raises `RunFileError` if a Parquet file can't be read.
    """
    if not probe.head.startswith(PARQUET):
        yield probe.blob
        return
    from arro3.io import write_ipc_stream

    for batch in _batches(probe):
        plain = BytesIO()
        write_ipc_stream(batch, plain, compression=None)
        yield BytesBlob(plain.getvalue())


class Places:
    """The positions of the rows of recently listed files, by id, so that a listed run opens at once.

    A Parquet file can only be read from its beginning: reading continues after the row that was opened last.
    """

    def __init__(self) -> None:
        self._files: OrderedDict[FileIdentity, dict[str, tuple[int, int, int]]] = OrderedDict()
        self._reading: tuple[FileIdentity, Iterator[Row], int] | None = None
        self._latest: tuple[dict[str, tuple[int, int, int]], str, Row] | None = None

    def of(self, probe: FileProbe) -> dict[str, tuple[int, int, int]]:
        """Return the number, start and end of a file's known rows by id; `add` adds to this mapping.

        A new mapping is returned for a file without identity, and for one that has not been listed recently.
        """
        key = probe.identity
        if key is None:
            return {}
        known = self._files.setdefault(key, {})
        self._files.move_to_end(key)
        while len(self._files) > _KEPT:
            self._files.popitem(last=False)
        return known

    def add(self, known: dict[str, tuple[int, int, int]], id: str, row: Row) -> None:
        """Add a row to the rows of its file, unless the row is damaged.

        The latest row stays decoded, because listed rows are opened in turn.
        """
        record = row.record
        if record is None or not record.damage:
            known[id] = (row.number, record.start if record else 0, record.end if record else 0)
            self._latest = (known, id, row)

    def row(self, probe: FileProbe, id: str) -> Row | None:
        """Return a known row; None if it is not known or can't be decoded.

        Raises `RunFileError` if a Parquet file can't be read.
        """
        known = self.of(probe)
        place, latest = known.get(id), self._latest
        if place is None:
            return None
        if latest is not None and latest[0] is known and latest[1] == id:
            return latest[2]
        if not probe.head.startswith(PARQUET):
            return _row_at(probe, *place)
        key, wanted = probe.identity, place[0]
        reading, self._reading = self._reading, None
        if key is None or reading is None or reading[0] != key or reading[2] >= wanted:
            found = rows_of(probe)
        else:
            found = reading[1]
        row = next((row for row in found if row.number == wanted), None)
        self._reading = None if key is None or row is None else (key, found, wanted)
        return row


def _row_at(probe: FileProbe, number: int, start: int, end: int) -> Row | None:
    try:
        fields = json.loads(
            probe.blob.read(start, end - start).decode("latin-1").strip(" \t\r\n\0"), strict=False
        )
    except (ValueError, RecursionError):
        return None
    return Row(number, fields, RawRecord(start, end, fields)) if isinstance(fields, dict) else None


def _records(probe: FileProbe) -> Iterator[RawRecord]:
    if probe.array:
        return array_records(probe.blob, probe.start, None)
    return lines(probe.blob, probe.start) if probe.is_lines else one_record(probe.blob, probe.start)


def first_row(probe: FileProbe) -> Mapping[str, Json]:
    """Return the members of a JSON text's first row, which may be longer than a head; empty if none."""
    return next((row.fields for row in rows_of(probe)), {})


def _parquet_rows(probe: FileProbe) -> Iterator[Row]:
    number = 0
    for batch in _batches(probe):
        for at in range(batch.num_rows):
            number += 1
            yield Row(number, _Columns(batch, at))


def _batches(probe: FileProbe) -> Iterator[RecordBatch]:
    where = probe.name or "The file"
    try:
        from arro3.io import read_parquet
    except ImportError as error:
        raise RunFileError(
            f"{where} is a Parquet file; the packages that read them are not installed.",
            hint=extra_hint("parquet"),
        ) from error
    number = 0
    if probe.blob.read(max(0, probe.blob.size - 4), 4) != PARQUET:
        raise RunFileError(
            f"{where} is a Parquet file that is cut off: its end, which lists its rows, is missing."
        )
    try:
        for batch in read_parquet(cast("IO[bytes]", BlobFile(probe.blob)), batch_size=_BATCH):
            if batch.nbytes > limits.RECORD * _BATCH:
                raise RunFileError(f"{where} has rows of more than {limits.RECORD >> 20} MB: refused.")
            number += batch.num_rows
            yield batch
    except RunFileError:
        raise
    except BaseException as error:  # a panic of the library is not an `Exception`
        if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
            raise
        what = str(error).partition("\n")[0][:200]
        raise RunFileError(f"{where} is damaged after row {number}: {what}") from error


class _Columns(Mapping[str, Json]):
    """One row of a decoded batch: members are decoded when they are read, and null ones count as missing."""

    def __init__(self, batch: RecordBatch, at: int) -> None:
        self._batch, self._at = batch, at

    def __getitem__(self, key: str) -> Json:
        if key not in self._batch.column_names:
            raise KeyError(key)
        value = self._batch.column(key)[self._at]
        if not value.is_valid:
            raise KeyError(key)
        return _without_nulls(value.as_py())

    def __iter__(self) -> Iterator[str]:
        return (key for key in self._batch.column_names if self._batch.column(key)[self._at].is_valid)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _without_nulls(value: Json) -> Json:
    """Return a value without the members that are null, which a table adds for other rows."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
