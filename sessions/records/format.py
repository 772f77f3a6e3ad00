"""The base classes for formats of recorded runs, and for the readers that yield a run's records and steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from gistpoint.sessions.records.archives import Blob, RunFileError
from gistpoint.sessions.records.loading import load_record
from gistpoint.sessions.records.model import Actor, ByteRange, Json, NotShown, Run, Step, StepKind, StepTexts
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.requests import request_in
from gistpoint.sessions.records.scanning import (
    LightKeys,
    RawRecord,
    array_records,
    guarded,
    lines,
    object_records,
)
from gistpoint.sessions.records.values import is_deep, objects


@dataclass(frozen=True, slots=True)
class Raw:
    """One record of a step, decoded when the step is shown; `damage` is the reason if that fails."""

    range: ByteRange
    value: Json
    damage: str = ""


class RunReader(ABC):
    """The reader of one run of a file; every record is a step unless a subclass overrides that.

    Methods are called from one thread at a time.
    """

    format = ""
    in_lines = False
    """Whether each line of the file is a record, so that reading can continue when the file grows."""
    arrays: tuple[str, ...] = ()
    """The keys of the top object below which the records are, if the file is one object."""
    light: LightKeys | None = None
    """The keys that `place` needs of a record in an array; None if `place` needs the whole record."""
    divided = False
    """Whether a record can make several steps.

    It is then yielded once for each of them, and its fields name the part.
    """

    def __init__(self, probe: FileProbe) -> None:
        self.probe = probe
        self.blobs: Sequence[Blob] = [probe.blob]
        """The files that hold the records; `RawRecord.member` is the index of one of them."""
        self.warnings: list[str] = []
        """A sentence for each thing that is missing or odd; grows while the index is built."""
        self.not_shown: Sequence[NotShown] | None = None
        """The members that no step shows, if they differ from the format's declaration."""
        self.facts: dict[str, Json] = {}
        """The run's own members, outside its records; grows while the index is built."""
        self.reviewed_id = ""
        """The run's id in the keys of reviews, if it was different when the first reviews were written."""

    def fact(self, key: str) -> Json:
        """Return a member of the outermost object: from the index, else from either end of the file."""
        return self.facts[key] if key in self.facts else self.probe.early(key)

    @cached_property
    def request(self) -> str:
        """The headline of the user's request near the beginning of the file; empty if none is found."""
        if not (found := request_in(self.early_user_texts())) and not self.probe.is_wide:
            self.probe.widen()
            found = request_in(self.early_user_texts())
        return found

    def early_user_texts(self) -> Iterator[str]:
        """Yield the user's messages near the beginning of the file."""
        probe = self.probe
        records: list[dict[str, Json]] = []
        if self.in_lines or probe.array:
            records += objects(probe.array) or probe.lines
        for key in () if records else self.arrays:
            records += objects(probe.object.get(key))
        for record in records:
            text = "" if is_deep(record) else self.user_text(record)
            if text:
                yield text

    def user_text(self, record: dict[str, Json]) -> str:
        """Return the user's text in a record; empty for records of others and for the harness's text."""
        return ""

    def records(self) -> Iterator[RawRecord]:
        """Yield every record, in one pass over the bytes.

        Records are the lines of the file, or the elements of its top-level array or of `arrays`. Problems
        with the file become warnings, not exceptions.
        """
        blob, start = self.probe.blob, self.probe.start
        if self.in_lines:
            found = lines(blob, start)
        elif isinstance(self.probe.top, list):
            found = array_records(blob, start, self.light)
        else:
            found = object_records(blob, start, self.arrays, self.facts, self.light)
        return guarded(found, blob, self.warnings)

    def sum_up(self) -> Iterator[None]:
        """Read the rest of the header's data after all records are known, a piece at a time."""
        return iter(())

    @abstractmethod
    def header(self) -> Run:
        """Return the header as far as it is known; this is cheap until `records` is started."""

    @abstractmethod
    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        """Return step `index`, made from the records `raws`, at least one of which is undamaged."""

    def texts(self, index: int, values: Sequence[Json]) -> StepTexts | None:
        """Return the text fields of step `index`, from undamaged records; None if `step` must be used.

        A search requires only the text of a step, and building the other fields takes most of the time.
        """
        return None

    def more(self, offset: int, before: int) -> Iterator[RawRecord] | None:
        """Return the records after `offset`, which follow `before` others; None if records are not lines."""
        blob = self.probe.blob
        return guarded(lines(blob, offset), blob, self.warnings, before=before) if self.in_lines else None

    def place(self, fields: Json, step_count: int) -> int:
        """Return the number of the step to which a record belongs; `step_count` for a new step.

        `fields` are the members that the scanner decoded, which are only the light keys if there are any.
        Non-ASCII text is not decoded yet.
        """
        return step_count

    def had_a_step(self, fields: Json) -> bool:
        """Return whether a record that now joins a step was a separate step in earlier versions' reviews."""
        return False

    def load(self, blob: Blob, start: int, end: int) -> tuple[Json, str]:
        """Return the value of a record, and its fault, which is empty if there is none."""
        return load_record(blob, start, end)

    def completed(self, value: Json) -> Json:
        """Return a record with its references replaced by their targets."""
        return value

    def part(self, index: int, number: int, value: Json) -> Json:
        """Return the part of a divided record that step `index` shows.

        The record is the step's `number`th undamaged one.
        """
        return value


def unknown_step(index: int, raws: Sequence[Raw], label: str, text: str) -> Step:
    """Return the step of an unknown event, with its text unchanged from the file."""
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


_LONGEST_ID = 120
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class RunEntry:
    """One run of a file; `id` is empty if it is the only one."""

    id: str
    header: Run


class Format(ABC):
    """A format of recorded runs. No method relies on the name of the file."""

    name: str
    """Short name for display: `swe-agent`."""
    not_shown: Sequence[NotShown] = ()
    """Members of the raw records that no step shows, with reasons."""
    unique_ids = False
    """Whether the ids of its runs are globally unique, so that reviews can refer to a run by its id."""
    texts_in_records = False
    """Whether a step's own records contain its text fields, so that a search parses only steps that match.

    Text may join recorded strings with labels, as in `name: value`, or quote one as JSON.
    """
    words_in_records = False
    """Whether every word of a step is in its own records, although perhaps not every text field.

    A string may be recorded as JSON within a string, or with marks before its lines.
    """
    parted_by: Sequence[bytes] = ()
    """Byte strings, one of which is in a file whose text is recorded in pieces that may split words."""

    reviewed_as = ""
    """The name in older keys of reviews, if the runs were once read as another format; else empty."""
    hash_chained = False
    """Whether each line contains the hash of the previous line, so that later changes are detectable."""
    refused_costs_attempt = False
    """Whether its harness counted refused submissions as attempts; a replay then does the same."""

    @abstractmethod
    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that a file is in this format, 0 to 1, judged by both ends of the file."""

    @abstractmethod
    def runs(self, probe: FileProbe) -> Iterator[RunEntry]:
        """Yield the runs in the file, each with the parts of its header that are cheap to read."""

    @abstractmethod
    def open(self, probe: FileProbe, id: str) -> RunReader:
        """Return the reader of the run `id`, or of the only run.

        Raises `RunFileError` if there is no such run.
        """


class SingleRun(Format):
    """A format whose files contain one run each."""

    @abstractmethod
    def reader(self, probe: FileProbe) -> RunReader:
        """Return the reader of the run."""

    def runs(self, probe: FileProbe) -> Iterator[RunEntry]:
        """Yield the only run."""
        yield RunEntry("", self.reader(probe).header())

    def open(self, probe: FileProbe, id: str) -> RunReader:
        """Return a reader of the only run, which has no id. Raises `RunFileError` if an id is given."""
        if id:
            raise RunFileError(
                f"{probe.name or 'The file'} contains only one run, so there is no #{id}.",
                hint="Leave the # out.",
            )
        return self.reader(probe)


def no_such_run(probe: FileProbe, id: str, *, hint: str = "") -> RunFileError:
    """Return the error for an id that no run of a file has."""
    return RunFileError(f"{probe.name or 'The file'} has no run #{id}.", hint=hint)


def run_named(
    probe: FileProbe, id: str, found: Iterable[tuple[str, _T]], *, hint: str = ""
) -> tuple[str, _T]:
    """Return the pair of an id and a run in `found` that has this id, or the first pair if `id` is empty.

    Raises `RunFileError` if there is none.
    """
    for known, run in found:
        if known == id or not id:
            return known, run
    raise no_such_run(probe, id, hint=hint)


class RunNames:
    """Makes the ids of a file's runs unique: a long name is cut, and a repeated one gets `~2` and so on."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def name(self, name: str) -> str:
        """Return the unique id of the next run, called `name`; a long name is cut, and a hash added."""
        if len(name) > _LONGEST_ID:
            import hashlib

            digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
            name = f"{name[:_LONGEST_ID]}~{digest}"
        name = name.encode("utf-8", "replace").decode()
        self._seen[name] = self._seen.get(name, 0) + 1
        return name if self._seen[name] == 1 else f"{name}~{self._seen[name]}"
