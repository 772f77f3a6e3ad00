"""What a format's module gives to open one run: its records in order, which of them make a step, and the step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from gistpoint.sessions.runs import limits
from gistpoint.sessions.runs.archives import Blob
from gistpoint.sessions.runs.lines import lines
from gistpoint.sessions.runs.model import Actor, ByteRange, Json, Run, Step, StepKind
from gistpoint.sessions.runs.scanning import (
    CutOffError,
    DamagedError,
    LightKeys,
    Record,
    Scanner,
    TooDeepError,
    TooLongError,
    members,
)


@dataclass(frozen=True, slots=True)
class Raw:
    """One record of a step, decoded when the step is looked at; `damage` says why `value` is None."""

    range: ByteRange
    value: Json
    damage: str = ""


class RunReader(Protocol):
    """Reads one run. Methods are called by one thread at a time."""

    @property
    def blobs(self) -> Sequence[Blob]:
        """What the records lie in; `Record.member` counts them."""
        ...

    @property
    def warnings(self) -> list[str]:
        """What is missing or odd, a line each; grows while the index is built."""
        ...

    def records(self) -> Iterator[Record]:
        """Yield every record, in one pass over the bytes. Problems of the file are warnings, never raised."""
        ...

    def more(self, offset: int, before: int) -> Iterator[Record] | None:
        """Yield what was appended behind `offset`, and behind `before` records; None where files do not grow so."""
        ...

    def place(self, fields: Json, step_count: int) -> int:
        """Return the number of the step that a record belongs to; `step_count` for a new one.

        `fields` is what the scanner decoded: with light keys only those, with non-ASCII text not yet decoded.
        """
        ...

    def had_a_step(self, fields: Json) -> bool:
        """Whether a record that joins a step was a step of its own in reviews that were written before it did."""
        ...

    @property
    def facts(self) -> dict[str, Json]:
        """The run's own members, beside its records; grows while the index is built."""
        ...

    def header(self) -> Run:
        """Return what is known of the run by now; cheap before `records` was started."""
        ...

    def completed(self, value: Json) -> Json:
        """Return a record with what it only refers to put into the place of the references."""
        ...

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        """Make the step from its records, of which one at least is not damaged."""
        ...


def guarded(
    records: Iterator[Record], blob: Blob, warnings: list[str], member: int = 0, *, before: int = 0
) -> Iterator[Record]:
    """Yield `records`; where the text ends or is damaged, warn, and yield what is left as one damaged record.

    `before` is how many records stand before them.
    """
    count = before
    try:
        for record in records:
            count += 1
            if count > limits.RECORDS:
                warnings.append(f"Only the first {limits.RECORDS:,} records are read; the file goes on behind them.")
                return
            if record.damage:
                warnings.append(f"Record {count}, at byte {record.start:,}, {record.damage}; it is shown raw.")
            yield record._replace(member=member) if member else record
    except CutOffError as error:
        if error.start < blob.size:
            warnings.append(
                f"The file ends within record {count + 1}, at byte {error.start:,}; all before it is shown."
            )
            yield Record(error.start, blob.size, None, "is cut off", member)
        else:
            warnings.append(
                f"The file ends without its closing bracket, after record {count}; it may still be written."
            )
    except DamagedError as error:
        left = blob.size - error.start
        warnings.append(
            f"The file is damaged at byte {error.start:,}, after record {count}; {left:,} bytes are shown raw."
        )
        if left:
            yield Record(error.start, blob.size, None, "is damaged", member)
    except TooLongError as error:
        left = blob.size - error.start
        why = f"is nested deeper than {limits.DEPTH:,}" if isinstance(error, TooDeepError) else "is too long to read"
        warnings.append(f"Record {count + 1}, at byte {error.start:,}, {why}; {left:,} bytes are left out.")
        yield Record(error.start, blob.size, None, why, member)


def object_records(
    blob: Blob, start: int, arrays: tuple[str, ...], facts: dict[str, Json], light: LightKeys | None
) -> Iterator[Record]:
    """Yield the elements of the named arrays of the top object; put its other members into `facts`.

    What stands after its end is a damaged record.
    """
    scanner = Scanner(blob, start)
    for key, value, _, _ in members(scanner, lambda key: key in arrays):
        if key not in arrays:
            facts[key] = value
        elif scanner.peek() == "[":
            yield from scanner.elements(light)
        else:
            facts[key] = scanner.value()[0]
    yield from _beyond(scanner)


def array_records(blob: Blob, start: int, light: LightKeys | None) -> Iterator[Record]:
    """Yield the elements of the top array; what stands after its end is a damaged record."""
    scanner = Scanner(blob, start)
    yield from scanner.elements(light)
    yield from _beyond(scanner)


def _beyond(scanner: Scanner) -> Iterator[Record]:
    if scanner.peek().strip("\0"):
        yield Record(scanner.position, scanner.end, None, "stands after the end of the JSON text")


def line_records(blob: Blob, start: int) -> Iterator[Record]:
    """Yield the lines."""
    yield from lines(blob, start)


def unknown_step(index: int, raws: Sequence[Raw], label: str, text: str) -> Step:
    """Return the step of an event that nobody knows, as it stands in the file."""
    return Step(
        index,
        Actor.ENVIRONMENT,
        StepKind.UNKNOWN,
        raws[0].range,
        tuple(raw.range for raw in raws),
        label=label,
        text=text,
        flags=frozenset({"unknown"}),
    )
