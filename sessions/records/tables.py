"""Rows of a table, each of which is a run: lines of JSON, elements of a JSON array, or a Parquet file."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import IO, cast

from gistpoint.sessions.records import limits
from gistpoint.sessions.records.archives import BlobFile, BytesBlob, RunFileError
from gistpoint.sessions.records.model import Json
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.scanning import RawRecord, Scanner, array_records, guarded, lines
from gistpoint.sessions.records.values import as_dict, recoded

PARQUET = b"PAR1"
_BATCH = 16
"""Rows of a Parquet file that are decoded at once; arrow reads the pages of their columns, no whole row group."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its members, and its position in a JSON text; a row of a Parquet file has none."""

    number: int
    """Counted from 1."""
    fields: dict[str, Json]
    """With a record, non-ASCII text is not yet decoded: see `member`."""
    record: RawRecord | None = None

    def member(self, key: str) -> Json:
        """Return a member, decoded."""
        value = self.fields.get(key)
        return value if self.record is None else recoded(value)

    def probe(self, table: FileProbe, decoded: Collection[str] = ()) -> FileProbe:
        """Return the probe of the row as an object, with the JSON in the texts under `decoded` in their places.

        A row that is in the file as it is keeps its positions in it.
        """
        changed = {key: inner for key in decoded if (inner := decoded_text(self.member(key))) is not None}
        if self.record is not None and not changed:
            return table.part(self.record)
        members = {key: changed.get(key, self.member(key)) for key in self.fields}
        text = json.dumps(members, ensure_ascii=False, default=str)
        name = f"row {self.number}, decoded"
        return FileProbe(BytesBlob(text.encode("utf-8", "surrogatepass"), name), name=table.name)


def decoded_text(value: Json) -> Json:
    """Return the array or object that a text has as JSON, None if it has none."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{"):
        return None
    try:
        inner: Json = json.loads(value, strict=False)
    except (ValueError, RecursionError):
        return None
    return inner


def rows_of(probe: FileProbe) -> Iterator[Row]:
    """Yield the rows; of a damaged one, the members before the damage.

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


def _records(probe: FileProbe) -> Iterator[RawRecord]:
    if probe.array:
        return array_records(probe.blob, probe.start, None)
    return lines(probe.blob, probe.start) if probe.is_lines else iter([Scanner(probe.blob, probe.start).record()])


def first_row(probe: FileProbe) -> dict[str, Json]:
    """Return the members of the first row of a JSON text, which may be longer than what a probe reads."""
    return next((row.fields for row in rows_of(probe)), {})


def _parquet_rows(probe: FileProbe) -> Iterator[Row]:
    where = probe.name or "The file"
    try:
        from arro3.io import read_parquet
    except ImportError as error:
        raise RunFileError(
            f"{where} is a Parquet file; what reads them is not installed.",
            hint="Install it: pip install 'gistpoint[parquet]'.",
        ) from error
    number = 0
    if probe.blob.read(max(0, probe.blob.size - 4), 4) != PARQUET:
        raise RunFileError(
            f"{probe.name or 'The file'} is a Parquet file that is cut off: its end, which lists its rows, is missing."
        )
    try:
        for batch in read_parquet(cast("IO[bytes]", BlobFile(probe.blob)), batch_size=_BATCH):
            if batch.nbytes > limits.RECORD * _BATCH:
                raise RunFileError(
                    f"{probe.name or 'The file'} has rows of more than {limits.RECORD >> 20} MB: refused."
                )
            values = batch.to_struct_array()
            for at in range(len(values)):
                number += 1
                yield Row(number, as_dict(_without_nulls(values[at].as_py())))
    except RunFileError:
        raise
    except BaseException as error:  # a panic of the library is no Exception
        if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
            raise
        what = str(error).partition("\n")[0][:200]
        raise RunFileError(f"{where} is damaged after row {number}: {what}") from error


def _without_nulls(value: Json) -> Json:
    """Drop the members that a table has for other rows only."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
