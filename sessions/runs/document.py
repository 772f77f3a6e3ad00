"""An open run, whose index grows in the background and whose steps are parsed on demand (decision 5)."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Lock, RLock
from typing import TypeAlias

from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sessions.records import limits
from gistpoint.sessions.records.archives import Blob, SliceBlob
from gistpoint.sessions.records.building import latest
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
from gistpoint.sessions.runs.cut_files import CUT_OFF, is_cut, says_cut
from gistpoint.sessions.runs.leftovers import Leftovers
from gistpoint.sessions.runs.step_index import IndexProgress, Place, StepIndex

_Loaded: TypeAlias = tuple[Json, str]
"""The value of a record, and its fault in words, which is empty if there is none."""
_SLICE_S = 0.008
"""The seconds for which the index is built without a pause."""
_REST_S = 0.001
_NEAR_AN_END = 32
"""The number of steps at each end of a run that are read to find its first and last time."""
_ENDING = 256
"""The number of bytes at the end that show whether a file was appended to or replaced."""


class RunDocument:
    """One run; every method may be called from any thread.

    Reading a step builds the index up to that step. `build` builds the rest of it, in slices of 8 ms, so that
    a screen has time to respond. The last known step is complete only when the index is, and the header only
    when the run is `summed_up`.
    """

    def __init__(
        self,
        reader: RunReader,
        format: Format,
        *,
        name: str = "",
        id: str = "",
        another: Callable[[], RunReader] | None = None,
        has_other_files: Callable[[], bool] | None = None,
    ) -> None:
        """`another` returns a second reader of the same run, for `last_step`.

        `has_other_files` returns whether files were added to a run of several files, or removed from it.
        """
        self.format = format
        self._has_other_files = has_other_files
        self._another = another
        not_shown = reader.not_shown
        if not_shown is None:
            not_shown = format.not_shown
        self._leftovers = Leftovers(not_shown)
        self._also: tuple[Noted, ...] | None = None
        self.name = name
        self.id = id
        self.accepted: bool | None = None
        """Whether reviewers accept that the run passes, see `annotations.settling`; None without a ruling."""
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
        self._ends_early = False
        """Whether the file was cut off without a warning from the run's reader; set when the index ends."""
        self._lock = RLock()
        self._span: tuple[int, float | None, float | None] | None = None
        """The number of steps, and when the first of them began and the last ended, as far as recorded."""
        self._cache: OrderedDict[int, tuple[int, int, Step]] = OrderedDict()
        self._cached_bytes = 0
        self._cache_lock = Lock()

    @property
    def header(self) -> Run:
        """The header as far as it is known; strings of other members are added once the index is complete."""
        with self._lock:
            run = self._reader.header()
            step_count = run.step_count
            also = run.also
            if self._finished:
                run = self._with_duration(run)
                step_count = self._index.step_count
                also = (*also, *self._other_texts(run))
            return replace(
                run,
                step_count=step_count,
                warnings=(*run.warnings, *self.warnings),
                also=also,
                verdict=settled_verdict(run, self.accepted),
                not_shown=self._leftovers.not_shown,
            )

    def _with_duration(self, run: Run) -> Run:
        """Return a header with the duration from the first to the last time of a step, if it records none."""
        if run.duration_s is not None:
            return run
        if self._span is None or self._span[0] != self.step_count:
            self._span = self.step_count, *self._first_and_last_time()
        _, first, last = self._span
        if first is None or last is None or last <= first:
            return run
        return replace(run, duration_s=last - first, derived=run.derived | {"duration_s"})

    def _first_and_last_time(self) -> tuple[float | None, float | None]:
        """Return the first time in steps near the beginning, and the last in steps near the end, or None."""
        count = self.step_count
        begun = [self.step(n).started for n in range(min(count, _NEAR_AN_END))]
        ended = [self.step(n) for n in range(max(0, count - _NEAR_AN_END), count)]
        return (
            min((at for at in begun if at is not None), default=None),
            latest(at for step in ended for at in (step.started, step.ended, step.replied)),
        )

    @property
    def members(self) -> Mapping[str, Json]:
        """The known members of the run itself, without its records; None for those too long or damaged."""
        return self._reader.facts

    @property
    def early_header(self) -> Run:
        """The header with all strings that are known so far."""
        with self._lock:
            run = self.header
            if self._finished:
                return run
            return replace(run, also=(*run.also, *self._other_texts(run)))

    def _other_texts(self, run: Run) -> tuple[Noted, ...]:
        """The strings of the run's own members that are not in its header; cached once all are known."""
        if self._also is not None:
            return self._also
        found = self._leftovers.of_run(self._reader.facts, run)
        if self._finished:
            self._also = found
        return found

    @property
    def warnings(self) -> tuple[str, ...]:
        """A line for each missing or unusual part of the file; complete when the index is."""
        with self._lock:
            return (*self._reader.warnings, *([CUT_OFF] if self._ends_early else []))

    @property
    def step_count(self) -> int:
        """The number of known steps."""
        return self._index.step_count

    @property
    def record_count(self) -> int:
        """The number of known raw records."""
        return self._index.record_count

    @property
    def finished(self) -> bool:
        """Whether the index is complete."""
        return self._finished

    @property
    def summed_up(self) -> bool:
        """Whether the header is complete too; some formats read the file again for it after indexing."""
        return self._summed_up

    @property
    def changed(self) -> bool:
        """Whether the file has changed in size since it was indexed, as it does while a run is being written.

        A run of several files has also changed if it has more or fewer of them. False until the index is
        complete. The caller then calls `grow`, or opens the run again.
        """
        if not self._finished:
            return False
        if self._size() != self._indexed_bytes:
            return True
        return self._has_other_files is not None and self._has_other_files()

    @property
    def blobs(self) -> tuple[Blob, ...]:
        """The files that contain the records."""
        return tuple(self._reader.blobs)

    def build(
        self, on_progress: Callable[[IndexProgress], None] | None = None, cancel: CancelToken = NEVER
    ) -> None:
        """Build the whole index and the header.

        Raises `CancelledError` if cancelled; a later call then continues.
        """
        while not self._summed_up:
            cancel.check()
            self.advance()
            if on_progress is not None:
                on_progress(self.progress)
            if not self._summed_up:
                time.sleep(_REST_S)

    def advance(self) -> None:
        """Spend one slice of time on the index, or on the header once the index is complete."""
        if self._finished:
            with self._lock:
                self._sum_up(time.monotonic() + _SLICE_S)
        else:
            self._advance(lambda: False)

    @property
    def progress(self) -> IndexProgress:
        """The progress of the index."""
        total = self._size()
        done = total
        if not self._finished:
            member, end = self._position
            done = self._size(member) + end
        return IndexProgress(done, total, self.step_count, self._finished)

    def _size(self, members: int | None = None) -> int:
        """Return the size in bytes of the first `members` files that contain records; by default of all."""
        return sum(blob.size for blob in self._reader.blobs[:members])

    def ensure(self, index: int) -> bool:
        """Build the index until step `index` is complete; return whether there is such a step."""
        while not self._finished and self._index.step_count <= index + 1:
            self._advance(lambda: self._index.step_count > index + 1)
        return index < self._index.step_count

    def _advance(self, enough: Callable[[], bool]) -> None:
        """Read records for one slice of time, or until `enough` returns True."""
        with self._lock:
            if self._finished:
                return
            begins = self._scan is None
            if self._scan is None:
                self._scan = self._reader.records()
            until = time.monotonic() + _SLICE_S
            for count, record in enumerate(self._scan):
                self._take(record)
                is_late = not count % 16 and time.monotonic() > until
                if is_late or enough():
                    return
            self._finished = True
            self._totals = self._whole_file()
            self._indexed_bytes = self._size()
            self._ending = self._last_bytes() if len(self._reader.blobs) == 1 else b""
            self._scan = None
            if begins:  # a short run is read in one slice
                self._sum_up(until)

    def _whole_file(self) -> Iterator[None]:
        """Determine facts that require the whole file: whether it was cut off, and the reader's totals.

        The number of steps is reported first, because this takes as long as counting them.
        """
        yield
        is_reported = any(map(says_cut, self._reader.warnings))
        self._ends_early = not is_reported and is_cut(Path(self._reader.probe.name))
        yield from self._reader.sum_up()

    def _take(self, record: RawRecord) -> None:
        """Add the next record to the index."""
        known = self._index.step_count
        step = known
        if not record.damage:
            step = self._reader.place(record.fields, known)
        if record.inner:
            self._index.add(record, step, numbered=False)
            return
        had_a_step = step < known and self._reader.had_a_step(record.fields)
        self._index.add(record, step, numbered=True if had_a_step else None)
        self._position = (record.member, record.end)
        self._cut_at = record.start if record.damage else None

    def _sum_up(self, until: float) -> None:
        """Continue to complete the header, but only until the time `until`."""
        for _ in self._totals or ():
            if time.monotonic() > until:
                return
        self._summed_up = True

    def _last_bytes(self) -> bytes:
        start = max(0, self._indexed_bytes - _ENDING)
        return self._reader.blobs[0].read(start, self._indexed_bytes - start)

    def grow(self) -> bool:
        """Prepare to index records that were appended; return False if the run must be opened again.

        It must be opened again if its earlier content has changed, if nothing was appended, or if its reader
        can't continue. If the last record was incomplete, it is dropped, so that it is read again.
        """
        with self._lock:
            if not self._finished or not self._ending:
                return False
            if self._last_bytes() != self._ending:
                return False
            if self._reader.blobs[0].size <= self._indexed_bytes:
                return False
            offset, record_count = self._position[1], self._index.record_count
            if self._cut_at is not None:
                offset, record_count = self._cut_at, record_count - 1
            more = self._reader.more(offset, record_count)
            if more is None:
                return False
            if self._cut_at is not None:
                self._index.drop_last()
                self._reader.warnings.pop()
                with self._cache_lock:
                    self._forget(self._index.step_count)
            self._scan, self._finished, self._summed_up = more, False, False
            self._ends_early = False
            return True

    def step(self, index: int) -> Step:
        """Return a step. Raises IndexError if there is no such step."""
        places, cached = self._places(index)
        return cached or self._parsed(index, places, None)

    def texts(
        self, index: int, is_sought: Callable[[Noted], bool], *, records: int | None = None
    ) -> StepTexts:
        """Return the text fields of a step; if its format allows that, the rest of the step is not built.

        Strings outside its fields may be missing unless `is_sought` is true for one of them. `records` is the
        number of the step's records to read, by default all known records. Raises IndexError if there is no
        such step.
        """
        places, step = self._places(index)
        if records is not None and records < len(places):
            places, step = places[:records], None
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
            if texts is not None and not any(map(is_sought, also)):
                return texts
            step = self._parsed(index, places, loaded)
        return StepTexts(list(parts_of(step)), [call.tool for call in step.calls])

    def _places(self, index: int) -> tuple[list[Place], Step | None]:
        """Return the records of a step, and the step if it is cached, otherwise None.

        Raises IndexError if there is no such step.
        """
        if index < 0 or not self.ensure(index):
            raise IndexError(index)
        with self._lock:
            places = self._index.records(index)
        with self._cache_lock:
            cached = self._cache.get(index)
            # A cached step is out of date if more of its records were found after it was parsed.
            if cached is None or cached[0] != len(places):
                return places, None
            self._cache.move_to_end(index)
            return places, cached[2]

    def _parsed(self, index: int, places: list[Place], loaded: list[_Loaded] | None) -> Step:
        with self._lock:
            if loaded is None:
                loaded = self._loaded(places)
            step = self._parse(index, places, loaded)
        size = sum(end - start for _, start, end in places)
        with self._cache_lock:
            self._remember(index, len(places), size, step)
        return step

    def last_step(self) -> Step | None:
        """Return the last step without indexing earlier ones; None if the layout of the file prevents that.

        It is also None if no earlier step begins in the part that is read. The step's `index` is a guess,
        because the number of steps is not known yet.
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
        # The first turn may begin before the records that were read.
        if len(turns) < 2:
            return None
        return reader.step(guess, turns[-1])

    @staticmethod
    def _raw(blob: Blob, start: int, end: int, value: Json, damage: str = "") -> Raw:
        origin = blob.origin if isinstance(blob, SliceBlob) else 0
        return Raw(ByteRange(blob.name, origin + start, origin + end), value, damage)

    def _loaded(self, places: list[Place]) -> list[_Loaded]:
        blobs, load = self._reader.blobs, self._reader.load
        return [load(blobs[member], start, end) for member, start, end in places]

    def _parse(self, index: int, places: list[Place], loaded: list[_Loaded]) -> Step:
        raws = [
            self._raw(self._reader.blobs[member], start, end, value, damage)
            for (member, start, end), (value, damage) in zip(places, loaded, strict=True)
        ]
        sound = [raw for raw in raws if not raw.damage]
        if not sound:
            return self._damaged(index, raws, places)
        completed = [
            replace(raw, value=self._shown_of(index, number, raw.value)) for number, raw in enumerate(sound)
        ]
        step = self._reader.step(index, completed)
        parts = [text for _, _, text in parts_of(step)]
        also = self._leftovers.of_step((raw.value for raw in completed), step, parts)
        if also:
            step = replace(step, also=(*step.also, *also))
        flags = set[str]()
        if len(sound) < len(raws):
            flags.add("damaged")
        texts = (*parts, *(noted.text for noted in also))
        if any(isinstance(text, CutText) for text in texts):
            flags.add("long")
        if not flags:
            return step
        return replace(step, flags=step.flags | flags, records=tuple(raw.range for raw in raws))

    def _shown_of(self, index: int, number: int, value: Json) -> Json:
        return self._reader.part(index, number, self._reader.completed(value))

    def _damaged(self, index: int, raws: list[Raw], places: list[Place]) -> Step:
        member, start, end = places[0]
        raw = self._reader.blobs[member].read(start, min(end - start, limits.RAW_SHOWN))
        shown = raw.decode("utf-8", "replace")
        more_bytes = end - start - len(raw)
        if more_bytes > 0:
            shown += f"\n[... {more_bytes:,} more bytes]"
        return Step(
            index,
            Actor.ENVIRONMENT,
            StepKind.DAMAGED,
            raws[0].range,
            tuple(item.range for item in raws),
            label=f"record {raws[0].damage}",
            text=shown,
            flags=frozenset({"damaged"}),
        )

    def _remember(self, index: int, version: int, size: int, step: Step) -> None:
        self._forget(index)
        self._cache[index] = (version, size, step)
        self._cached_bytes += size
        while self._is_cache_full:
            self._forget(next(iter(self._cache)))

    def _forget(self, index: int) -> None:
        _, size, _ = self._cache.pop(index, (0, 0, None))
        self._cached_bytes -= size

    @property
    def _is_cache_full(self) -> bool:
        """Whether a step must be evicted from the cache; the last one stays, however large it is."""
        exceeds = len(self._cache) > limits.CACHED_STEPS or self._cached_bytes > limits.CACHED_BYTES
        return exceeds and len(self._cache) > 1

    def steps(self) -> Iterator[Step]:
        """Yield every step in order; the index is built first, because results may follow much later."""
        self.build()
        for index in range(self.step_count):
            yield self.step(index)

    def raw(self, index: int, limit: int | None = None) -> bytes:
        """Return the raw records of a step, joined with newlines, up to `limit` bytes.

        Without a limit, up to `limits.RECORD` bytes are returned. Raises IndexError if there is no such step.
        """
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
        """Return the step of a record, and up to `limit` bytes of the record; None if it does not exist.

        Records are numbered from 0 in the order of the file.
        """
        while not self._finished and self._index.record_count <= number:
            self._advance(lambda: self._index.record_count > number)
        if number >= self._index.record_count:
            return None
        with self._lock:
            step, member, start, end = self._index.record(number)
        return step, self._reader.blobs[member].read(start, min(end - start, limit))

    def places_of(self, index: int) -> list[Place]:
        """Return the member, start and end of each known record of an indexed step."""
        with self._lock:
            return self._index.records(index)

    def records(self, index: int) -> list[Blob]:
        """Return each raw record of an indexed step as a blob, which can be read in pieces."""
        blobs = self._reader.blobs
        return [SliceBlob(blobs[member], start, end, "") for member, start, end in self.places_of(index)]

    def full_text(self, text: str) -> Iterator[str]:
        """Yield a text field of a step in pieces; if it was cut because of its length, all of it is read."""
        if not isinstance(text, CutText):
            yield text
            return
        for piece in text.pieces:
            if isinstance(piece, str):
                yield piece
                continue
            if isinstance(piece, Escaped):
                yield from text_pieces(self._blob_of(piece.source), piece.source, escaped=True)
            else:
                yield from text_pieces(self._blob_of(piece), piece, escaped=False)

    def _blob_of(self, source: ByteRange) -> Blob:
        for blob in self._reader.blobs:
            if blob.name == source.member:
                return blob
        return self._reader.blobs[0]

    @property
    def reviewed_id(self) -> str:
        """The run's id in its file, as reviews record it; empty if the file contains only this run."""
        return self._reader.reviewed_id or self.id

    @property
    def renumbered(self) -> bool:
        """Whether the number of an indexed step in reviews differs from its position."""
        return self._index.renumbered

    def number_of(self, index: int) -> int:
        """Return the step's number in reviews, which stays the same if the format later shows more steps."""
        with self._lock:
            return self._index.number_of(index)

    def is_inserted(self, index: int) -> bool:
        """Return whether a step was inserted: it has no number in reviews, but uses the next step's."""
        with self._lock:
            return self._index.is_inserted(index)

    def steps_with_number(self, number: int) -> range:
        """Return the steps with this number in reviews: inserted ones, then the step that owns the number.

        For steps that are not indexed yet, the result is a guess that assumes no insertions.
        """
        with self._lock:
            return self._index.steps_with_number(number)

    def stretch_covering(self, member: int, offset: int) -> tuple[int | None, int]:
        """Return the step whose record contains a byte, and the offset up to which that holds.

        The step is None between records. Builds the index up to the byte.
        """
        while not self._finished and self._position <= (member, offset):
            self._advance(lambda: False)
        with self._lock:
            return self._index.stretch_at(member, offset)
