"""An open run: its index grows in the background, a step is parsed on demand."""

from __future__ import annotations

import time
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from threading import Lock, RLock
from typing import TypeAlias

from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sessions.records import limits
from gistpoint.sessions.records.archives import Blob, SliceBlob
from gistpoint.sessions.records.format import Format, Raw, RunReader
from gistpoint.sessions.records.loading import text_pieces
from gistpoint.sessions.records.model import (
    Actor,
    ByteRange,
    CutText,
    Escaped,
    Json,
    Noted,
    Run,
    Step,
    StepKind,
    StepTexts,
    parts_of,
    settled_verdict,
)
from gistpoint.sessions.records.scanning import RawRecord
from gistpoint.sessions.runs.leftovers import Leftovers

_NONE = 0xFFFFFFFF
_Place: TypeAlias = tuple[int, int, int]
"""Member, start and end of a record."""
_Loaded: TypeAlias = tuple[Json, str]
"""The value of a record and its fault."""


class StepIndex:
    """Grows by records; a step's records need not be adjacent."""

    def __init__(self) -> None:
        self._start = array("Q")
        self._end = array("Q")
        self._member = array("I")
        self._next = array("I")
        self._owner = array("I")
        self._first = array("I")
        self._last = array("I")
        self._sorted = True
        self._shift_at = [0]
        self._shift_to = [0]
        self._numbers = 0
        self._joined = array("I")
        self._joined_to = array("I")

    @property
    def step_count(self) -> int:
        """Number of steps so far."""
        return len(self._first)

    @property
    def record_count(self) -> int:
        """Number of records so far."""
        return len(self._start)

    def add(self, record: RawRecord, step: int, *, numbered: bool | None = None) -> None:
        """Add a record to a step; a number after the last begins the next one.

        `numbered` says whether the record has one of the numbers by which reviews refer to steps; the first
        of a step does.
        """
        number = len(self._start)
        if self._start and (record.member, record.start) < (self._member[-1], self._start[-1]):
            self._sorted = False
        self._start.append(record.start)
        self._end.append(record.end)
        self._member.append(record.member)
        self._next.append(_NONE)
        if not 0 <= step < len(self._first):
            step = len(self._first)
            self._first.append(number)
            self._last.append(number)
        else:
            self._next[self._last[step]] = number
            self._last[step] = number
        self._owner.append(step)
        self._count_number(step, numbered, first=self._first[step] == number)

    def _count_number(self, step: int, numbered: bool | None, *, first: bool) -> None:
        if first and self._shift_to[-1] != self._numbers - step:
            self._shift_at.append(step)
            self._shift_to.append(self._numbers - step)
        if numbered and not first:
            self._joined.append(self._numbers)
            self._joined_to.append(step)
        self._numbers += first if numbered is None else numbered

    @property
    def renumbered(self) -> bool:
        """Whether a step's number in reviews differs from its position."""
        return len(self._shift_at) > 1 or self._shift_to[0] != 0 or bool(self._joined)

    def number_of(self, step: int) -> int:
        """Return a step's number in reviews; for an inserted step that of the next one."""
        return step + self._shift_to[bisect_right(self._shift_at, step) - 1]

    def was_put_in(self, step: int) -> bool:
        """Whether a step was inserted and has no number of its own."""
        following = self.number_of(step + 1) if step + 1 < self.step_count else self._numbers
        return following == self.number_of(step)

    def numbered(self, number: int) -> range:
        """Return the steps with a number in reviews: those inserted before it, and last the step that owns
        it.

        For steps that are not indexed yet this is a guess that assumes no insertions.
        """
        if number >= self._numbers:
            guess = self.step_count + number - self._numbers
            return range(guess, guess + 1)
        at = bisect_left(self._joined, number)
        if at < len(self._joined) and self._joined[at] == number:
            return range(self._joined_to[at], self._joined_to[at] + 1)
        steps = range(self.step_count)
        return range(
            bisect_left(steps, number, key=self.number_of), bisect_right(steps, number, key=self.number_of)
        )

    def drop_last(self) -> None:
        """Remove the last record, which must be a step of its own."""
        for values in (self._start, self._end, self._member, self._next, self._owner):
            values.pop()
        for values in (self._first, self._last):
            values.pop()
        self._numbers -= 1

    def records(self, step: int) -> list[tuple[int, int, int]]:
        """Return member, start and end of each record of a step."""
        found: list[tuple[int, int, int]] = []
        at = self._first[step]
        while at != _NONE:
            found.append((self._member[at], self._start[at], self._end[at]))
            at = self._next[at]
        return found

    def record(self, number: int) -> tuple[int, int, int, int]:
        """Return the step of a record, its member, start and end."""
        return self._owner[number], self._member[number], self._start[number], self._end[number]

    def step_at(self, member: int, offset: int) -> int | None:
        """Return the step whose record holds a byte, None between records."""
        return self.stretch_at(member, offset)[0]

    def stretch_at(self, member: int, offset: int) -> tuple[int | None, int]:
        """Return the step whose record holds a byte, and the offset up to which the known records say the
        same.
        """
        if not self._sorted:
            matches = (
                n
                for n in range(len(self._start))
                if self._member[n] == member and self._start[n] <= offset < self._end[n]
            )
            number = next(matches, None)
            return (None if number is None else self._owner[number]), offset + 1
        low, high = bisect_right(self._member, member - 1), bisect_right(self._member, member)
        number = bisect_right(self._start, offset, low, high) - 1
        if number < low or offset >= self._end[number]:
            return None, offset + 1
        end = self._end[number]
        return self._owner[number], min(end, self._start[number + 1]) if number + 1 < high else end


_SLICE_S = 0.008
_REST_S = 0.001
_ENDING = 256
"""Bytes at the end that are compared to see whether a file was appended to or replaced."""


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """How far an index is: bytes of the member being read, steps and records found."""

    done: int
    total: int
    steps: int
    finished: bool


class RunDocument:
    """One run; every method may be called from any thread.

    Reading a step builds the index up to that step. `build` builds all of it, in slices of 8 ms, so that it
    can run beside a screen. The last known step is complete only when the index is, and the header when the
    run is `summed_up`.
    """

    def __init__(
        self,
        reader: RunReader,
        format: Format,
        *,
        name: str = "",
        id: str = "",
        another: Callable[[], RunReader] | None = None,
    ) -> None:
        """`another` makes a second reader of the same run, for `last_step`."""
        self.format = format
        self._another = another
        self._leftovers = Leftovers(format.not_shown if reader.not_shown is None else reader.not_shown)
        self._also: tuple[Noted, ...] | None = None
        self.name = name
        self.id = id
        self.accepted: bool | None = None
        """The reviewers' ruling on its pass, see `annotations.settling`; None without one."""
        self._reader = reader
        self._index = StepIndex()
        self._scan: Iterator[RawRecord] | None = None
        self._finished = False
        self._totals: Iterator[None] | None = None
        self._summed_up = False
        self._indexed_bytes = 0
        self._position = (0, 0)
        self._ending = b""
        self._cut_at: int | None = None
        self._lock = RLock()
        self._cache: OrderedDict[int, tuple[int, int, Step]] = OrderedDict()
        self._cached_bytes = 0
        self._cache_lock = Lock()

    @property
    def header(self) -> Run:
        """The header, as far as it is known so far; texts of other members once all of them are."""
        with self._lock:
            run = self._reader.header()
            return replace(
                run,
                step_count=self._index.step_count if self._finished else run.step_count,
                warnings=(*run.warnings, *self._reader.warnings),
                also=(*run.also, *(self._noted_beside(run) if self._finished else ())),
                verdict=settled_verdict(run, self.accepted),
                not_shown=self._leftovers.not_shown,
            )

    @property
    def members(self) -> Mapping[str, Json]:
        """The run's own members, outside its records, as far as they are known; None for one that is too
        long.
        """
        return self._reader.facts

    @property
    def early_header(self) -> Run:
        """The header with all texts that are known so far."""
        with self._lock:
            run = self.header
            return run if self._finished else replace(run, also=(*run.also, *self._noted_beside(run)))

    def _noted_beside(self, run: Run) -> tuple[Noted, ...]:
        """Return the texts of the run's own members that its header does not have; they are kept once all are
        known.
        """
        found = self._also if self._also is not None else self._leftovers.of_run(self._reader.facts, run)
        self._also = found if self._finished else None
        return found

    @property
    def warnings(self) -> tuple[str, ...]:
        """Missing or odd things, one per line; complete when the index is."""
        with self._lock:
            return tuple(self._reader.warnings)

    @property
    def step_count(self) -> int:
        """Number of known steps."""
        return self._index.step_count

    @property
    def record_count(self) -> int:
        """Number of known raw records."""
        return self._index.record_count

    @property
    def finished(self) -> bool:
        """Whether the index is complete."""
        return self._finished

    @property
    def summed_up(self) -> bool:
        """Whether the header is complete too; some formats read the file again for it after the index is
        built.
        """
        return self._summed_up

    @property
    def changed(self) -> bool:
        """Whether the size changed since the index was finished: the run is still being written. Open it
        again.
        """
        return self._finished and self._size() != self._indexed_bytes

    @property
    def blobs(self) -> tuple[Blob, ...]:
        """The files that hold the records."""
        return tuple(self._reader.blobs)

    def build(
        self, on_progress: Callable[[IndexProgress], None] | None = None, cancel: CancelToken = NEVER
    ) -> None:
        """Build the whole index and the header; raises `CancelledError` when cancelled, and can be called
        again.
        """
        while not self._summed_up:
            cancel.check()
            self.advance()
            if on_progress is not None:
                on_progress(self.progress)
            if not self._summed_up:
                time.sleep(_REST_S)

    def advance(self) -> None:
        """Build the index, then complete the header, for one slice of time."""
        if self._finished:
            with self._lock:
                self._sum_up(time.monotonic() + _SLICE_S)
        else:
            self._advance(lambda: False)

    @property
    def progress(self) -> IndexProgress:
        """How far the index is."""
        member, end = self._position
        total = self._size()
        done = total if self._finished else self._size(member) + end
        return IndexProgress(done, total, self.step_count, self._finished)

    def _size(self, members: int | None = None) -> int:
        """Return the bytes of the first of the files that hold the records; of all of them without a number."""
        return sum(blob.size for blob in self._reader.blobs[:members])

    def ensure(self, index: int) -> bool:
        """Build the index until step `index` is known and complete; False if there is no such step."""
        while not self._finished and self._index.step_count <= index + 1:
            self._advance(lambda: self._index.step_count > index + 1)
        return index < self._index.step_count

    def _advance(self, enough: Callable[[], bool]) -> None:
        """Read records for one slice of time."""
        with self._lock:
            if self._finished:
                return
            if self._scan is None:
                self._scan = self._reader.records()
            until = time.monotonic() + _SLICE_S
            for count, record in enumerate(self._scan):
                self._take(record)
                is_late = not count % 16 and time.monotonic() > until
                if is_late or enough():
                    return
            self._finished = True
            self._totals = self._reader.sum_up()
            self._indexed_bytes = self._size()
            self._ending = self._last_bytes() if len(self._reader.blobs) == 1 else b""
            self._scan = None
            self._sum_up(until)

    def _take(self, record: RawRecord) -> None:
        """Add the next record to the index."""
        known = self._index.step_count
        place = known if record.damage else self._reader.place(record.fields, known)
        if record.inner:
            self._index.add(record, place, numbered=False)
            return
        had_a_step = place < known and self._reader.had_a_step(record.fields)
        self._index.add(record, place, numbered=True if had_a_step else None)
        self._position = (record.member, record.end)
        self._cut_at = record.start if record.damage else None

    def _sum_up(self, until: float) -> None:
        for _ in self._totals or ():
            if time.monotonic() > until:
                return
        self._summed_up = True

    def _last_bytes(self) -> bytes:
        start = max(0, self._indexed_bytes - _ENDING)
        return self._reader.blobs[0].read(start, self._indexed_bytes - start)

    def grow(self) -> bool:
        """Continue the index if the file was only appended to; return False if it must be opened again.

        A last record that was incomplete before is read again.
        """
        with self._lock:
            if not self._finished or not self._ending:
                return False
            if self._last_bytes() != self._ending:
                return False
            if self._reader.blobs[0].size <= self._indexed_bytes:
                return False
            cut = self._cut_at is not None
            offset = self._position[1] if self._cut_at is None else self._cut_at
            more = self._reader.more(offset, self._index.record_count - cut)
            if more is None:
                return False
            if cut:
                self._index.drop_last()
                self._reader.warnings.pop()
                with self._cache_lock:
                    self._cache.pop(self._index.step_count, None)
            self._scan, self._finished, self._summed_up = more, False, False
            return True

    def step(self, index: int) -> Step:
        """Return a step. Raises IndexError if there is none."""
        places, cached = self._places(index)
        return cached or self._parsed(index, places, None)

    def texts(self, index: int, wanted: Callable[[Noted], bool]) -> StepTexts:
        """Return the texts of a step, without building the rest of it if its format allows that.

        Of texts that no field of the step has, those that are not `wanted` may be missing.
        """
        places, step = self._places(index)
        if step is None:
            texts, also = None, list[Noted]()
            with self._lock:
                loaded = self._loaded(places)
                if not any(damage for _, damage in loaded):
                    values = [
                        self._shown_of(index, number, value) for number, (value, _) in enumerate(loaded)
                    ]
                    texts = self._reader.texts(index, values)
                    also = [] if texts is None else self._leftovers.of_texts(values, texts)
            if texts is not None and not any(map(wanted, also)):
                return texts
            step = self._parsed(index, places, loaded)
        return StepTexts(list(parts_of(step)), [call.tool for call in step.calls])

    def _places(self, index: int) -> tuple[list[_Place], Step | None]:
        """Return the records of a step, and the step if it is in the cache."""
        if index < 0 or not self.ensure(index):
            raise IndexError(index)
        with self._lock:
            places = self._index.records(index)
        with self._cache_lock:
            cached = self._cache.get(index)
            if cached is None or cached[0] != len(places):
                return places, None
            self._cache.move_to_end(index)
            return places, cached[2]

    def _parsed(self, index: int, places: list[_Place], loaded: list[_Loaded] | None) -> Step:
        with self._lock:
            step = self._parse(index, places, self._loaded(places) if loaded is None else loaded)
        size = sum(end - start for _, start, end in places)
        with self._cache_lock:
            self._remember(index, len(places), size, step)
        return step

    def last_step(self) -> Step | None:
        """Return the last step before the index has reached it, if the layout of the file allows that; else
        None.

        Its `index` is a guess: the number of steps is not known yet.
        """
        from gistpoint.sessions.records.last import last_records

        if self._another is None or self._reader.divided:
            return None
        if len(self._reader.blobs) != 1 or not self.ensure(0):
            return None
        with self._lock:
            _, start, end = self._index.records(0)[0]
            guess = self._index.step_count
        blob = self._reader.blobs[0]
        reader = self._another()
        turns: list[list[Raw]] = []
        for record in last_records(blob, (start, end)):
            place = reader.place(record.fields, len(turns))
            if place >= len(turns):
                turns.append([])
            turns[place].append(self._raw(blob, record.start, record.end, reader.completed(record.fields)))
        return reader.step(guess, turns[-1]) if len(turns) > 1 else None

    @staticmethod
    def _raw(blob: Blob, start: int, end: int, value: Json, damage: str = "") -> Raw:
        origin = blob.origin if isinstance(blob, SliceBlob) else 0
        return Raw(ByteRange(blob.name, origin + start, origin + end), value, damage)

    def _loaded(self, places: list[_Place]) -> list[_Loaded]:
        blobs, load = self._reader.blobs, self._reader.load
        return [load(blobs[member], start, end) for member, start, end in places]

    def _parse(self, index: int, places: list[_Place], loaded: list[_Loaded]) -> Step:
        raws = [
            self._raw(self._reader.blobs[member], start, end, value, damage)
            for (member, start, end), (value, damage) in zip(places, loaded, strict=True)
        ]
        sound = [raw for raw in raws if not raw.damage]
        if not sound:
            return self._damaged(index, raws, places)
        whole = [
            replace(raw, value=self._shown_of(index, number, raw.value)) for number, raw in enumerate(sound)
        ]
        step = self._reader.step(index, whole)
        parts = [text for _, _, text in parts_of(step)]
        also = self._leftovers.of_step((raw.value for raw in whole), step, parts)
        step = replace(step, also=(*step.also, *also)) if also else step
        flags = {"damaged"} if len(sound) < len(raws) else set[str]()
        if any(isinstance(text, CutText) for text in (*parts, *(noted.text for noted in also))):
            flags.add("long")
        return (
            replace(step, flags=step.flags | flags, records=tuple(raw.range for raw in raws))
            if flags
            else step
        )

    def _shown_of(self, index: int, number: int, value: Json) -> Json:
        return self._reader.part(index, number, self._reader.completed(value))

    def _damaged(self, index: int, raws: list[Raw], places: list[_Place]) -> Step:
        member, start, end = places[0]
        raw = self._reader.blobs[member].read(start, min(end - start, limits.RAW_SHOWN))
        shown = raw.decode("utf-8", "replace")
        left = f"\n[... {end - start - len(raw):,} more bytes]" if len(raw) < end - start else ""
        return Step(
            index,
            Actor.ENVIRONMENT,
            StepKind.DAMAGED,
            raws[0].range,
            tuple(item.range for item in raws),
            label=f"record {raws[0].damage}",
            text=shown + left,
            flags=frozenset({"damaged"}),
        )

    def _remember(self, index: int, version: int, size: int, step: Step) -> None:
        old = self._cache.pop(index, None)
        self._cached_bytes += size - (old[1] if old else 0)
        self._cache[index] = (version, size, step)
        while self._is_cache_full:
            _, (_, gone, _) = self._cache.popitem(last=False)
            self._cached_bytes -= gone

    @property
    def _is_cache_full(self) -> bool:
        """Whether a step has to leave the cache; the last one stays, however large it is."""
        exceeds = len(self._cache) > limits.CACHED_STEPS or self._cached_bytes > limits.CACHED_BYTES
        return exceeds and len(self._cache) > 1

    def steps(self) -> Iterator[Step]:
        """Yield every step, in order and complete: the index is built first, because results may come late."""
        self.build()
        for index in range(self.step_count):
            yield self.step(index)

    def raw(self, index: int, limit: int | None = None) -> bytes:
        """Return the raw records of a step, one below the other, up to `limit` bytes in all."""
        if index < 0 or not self.ensure(index):
            raise IndexError(index)
        left = limits.RECORD if limit is None else limit
        parts: list[bytes] = []
        for member, start, end in self._index.records(index):
            parts.append(self._reader.blobs[member].read(start, min(end - start, left)))
            left -= len(parts[-1])
            if left <= 0:
                break
        return b"\n".join(parts)

    def record(self, number: int, limit: int) -> tuple[int, bytes] | None:
        """Return the step of a record and up to `limit` bytes of it; None if there is no such record.

        Records are counted in the order in which they are read, which is that of the file.
        """
        while not self._finished and self._index.record_count <= number:
            self._advance(lambda: self._index.record_count > number)
        if number >= self._index.record_count:
            return None
        with self._lock:
            step, member, start, end = self._index.record(number)
        return step, self._reader.blobs[member].read(start, min(end - start, limit))

    def records(self, index: int) -> list[Blob]:
        """Return the bytes of each raw record of a step, to be read in pieces."""
        with self._lock:
            places = self._index.records(index)
        return [SliceBlob(self._reader.blobs[member], start, end, "") for member, start, end in places]

    def full_text(self, text: str) -> Iterator[str]:
        """Yield a text of a step in pieces: the text itself, or all of it if it was cut because of its
        length.
        """
        if not isinstance(text, CutText):
            yield text
            return
        for piece in text.pieces:
            if isinstance(piece, str):
                yield piece
                continue
            source = piece.source if isinstance(piece, Escaped) else piece
            blob = next(
                (blob for blob in self._reader.blobs if blob.name == source.member), self._reader.blobs[0]
            )
            yield from text_pieces(blob, source, escaped=isinstance(piece, Escaped))

    @property
    def reviewed_id(self) -> str:
        """The id of the run in its file, as reviews have it; empty if it is the only one."""
        return self._reader.reviewed_id or self.id

    @property
    def renumbered(self) -> bool:
        """Whether an indexed step has another number in reviews."""
        return self._index.renumbered

    def number_of(self, index: int) -> int:
        """Return the step's number in reviews, which stays the same when its format learns to show more
        steps.
        """
        with self._lock:
            return self._index.number_of(index)

    def was_put_in(self, index: int) -> bool:
        """Whether a step was inserted and has no such number of its own: it has that of the step that
        follows.
        """
        with self._lock:
            return self._index.was_put_in(index)

    def numbered(self, number: int) -> range:
        """Return the steps that have a number in reviews: inserted ones, and last the step that owns the
        number.

        A guess for steps that are not indexed yet.
        """
        with self._lock:
            return self._index.numbered(number)

    def stretch_covering(self, member: int, offset: int) -> tuple[int | None, int]:
        """Return the step that a byte belongs to, None between records, and the offset up to which that is
        so.

        Builds the index up to the byte.
        """
        while not self._finished and self._position <= (member, offset):
            self._advance(lambda: False)
        with self._lock:
            return self._index.stretch_at(member, offset)
