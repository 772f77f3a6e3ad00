"""The index of recorded runs: the runs in each file, the stored part of each, and answers about content."""

from __future__ import annotations

import os
import re
import sysconfig
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any

import msgspec

import gistpoint.sessions as sessions
from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.decoding import decodable
from gistpoint.core.folding import folded
from gistpoint.core.queries import ContentTerm
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sessions.formats import registry
from gistpoint.sessions.records.folders import run_files, session_files, trial_files
from gistpoint.sessions.records.model import Run, Step, parts_of
from gistpoint.sessions.row_index import IndexedRow, RowIndex
from gistpoint.sessions.runs.digest import RunDigest
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.kept import KeptRun, header_of, header_values, read_to_its_end
from gistpoint.sessions.runs.opening import ListedRun, split_name
from gistpoint.sessions.runs.rendering import header_texts

FILE = "runs.sqlite"
"""The name of the file in the cache folder."""
_RUN, _LISTED = "run ", "listed "
"""The prefixes of row keys: before the name of a run, and before the path of a file."""
_WORDS = "words"
_ANSWER = "answer:"
_WORD = re.compile(r"\w+")
_MOST_WORDS = 60_000
_LONGEST_WORD = 64
_ROOMS = ("formats", "records", "runs")
_SUMMARIES = frozenset({"result.json", "results.json"})
_SETTINGS = "run_metadata.json"
_OF_DATABASES = frozenset({".db", ".vscdb", ".sqlite", ".sqlite3"})


class WordCollector:
    """Collects the different words of a run's texts, in lower case, unless there are too many."""

    def __init__(self) -> None:
        self._words: set[str] | None = set()

    def add(self, text: str) -> None:
        """Add the words of a string."""
        if self._words is None:
            return
        if type(text) is not str:  # the string was cut, so its words are not known
            self._words = None
            return
        words = set(_WORD.findall(folded(text)))
        if max(map(len, words), default=0) > _LONGEST_WORD:
            words = {part for word in words for part in _overlapping_parts(word)}
        self._words |= words
        if len(self._words) > _MOST_WORDS:
            self._words = None

    def add_step(self, step: Step) -> None:
        """Add the words of everything in a step, and the names of its tools."""
        for _, _, text in parts_of(step):
            self.add(text)
        for call in step.calls:
            self.add(call.tool)

    def add_header(self, run: Run) -> None:
        """Add the words of a header."""
        for text in header_texts(run):
            self.add(text)

    def packed(self) -> bytes | None:
        """Return the words for the index; None if they are not all known."""
        if self._words is None:
            return None
        return zlib.compress("\n".join(sorted(self._words)).encode("utf-8", "surrogatepass"), 1)


def _overlapping_parts(word: str) -> Iterator[str]:
    """Yield parts of a long word that overlap, so that every shorter text in it is in one of them."""
    half = _LONGEST_WORD // 2
    for start in range(0, max(1, len(word) - half), half):
        yield word[start : start + _LONGEST_WORD]


def may_contain(packed: bytes, text: str) -> bool:
    """Return whether a run with these words may contain a string, ignoring case."""
    known = zlib.decompress(packed).decode("utf-8", "surrogatepass")
    wanted = (part[: _LONGEST_WORD // 2] for part in _WORD.findall(folded(text)))
    return all(part in known for part in wanted)


def state_of(path: Path) -> bytes | None:
    """Return the state of a file, or of all files of a run with several files; None if there is no such file.

    It consists of the place, device, inode, size and times of each, and of the version of the readers.
    """
    try:
        own = path.stat()
        if S_ISDIR(own.st_mode):
            parts = run_files(path)
        else:
            parts = trial_files(path.parent) if path.name in _SUMMARIES else session_files(path)
            if not parts and not S_ISREG(own.st_mode):
                return None
        found = [_state(part.path, part.path.stat()) for part in parts]
        if not parts and S_ISREG(own.st_mode):
            found = [_state(path, own), *(_state(file, file.stat()) for file in _neighbours(path))]
    except (OSError, ValueError):
        return None
    if not found:
        return None
    text = found[0] if len(found) == 1 else sha256_of_text("\0".join(found))
    return os.fsencode(f"{text}:{readers_version()}")


def _neighbours(path: Path) -> list[Path]:
    """Return the files next to a file that readers also read: a database's log, a benchmark's settings."""
    names = [_SETTINGS]
    if path.suffix in _OF_DATABASES:
        names += [f"{path.name}-wal", f"{path.name}-journal"]
    folder = os.path.dirname(path)  # noqa: PTH120 (a list of thousands of files needs this for each)
    return [Path(folder, name) for name in names if os.path.exists(f"{folder}/{name}")]  # noqa: PTH110


def _state(path: Path, found: os.stat_result) -> str:
    # A relative path names a different file in another folder, and only the time of change can't be set back.
    times = f"{found.st_mtime_ns}:{found.st_ctime_ns}"
    return f"{path.absolute()}\0{found.st_dev}:{found.st_ino}:{found.st_size}:{times}"


def readers_version() -> str:
    """Return the version of the code that reads runs: gistpoint's, the packages', and any forced format."""
    forced = registry.forced_format()
    return f"{_version_of_code()}{':' if forced else ''}{forced}"


@cache
def _version_of_code() -> str:
    from gistpoint import __version__

    root = Path(next(iter(sessions.__path__)))
    modules = (module for room in _ROOMS for module in (root / room).rglob("*.py"))
    # In a checkout, the version stays the same even if the readers change.
    newest = max((module.stat().st_mtime_ns for module in modules), default=0)
    installed = Path(sysconfig.get_paths()["purelib"])
    # A format of another package may have been installed or removed.
    also = installed.stat().st_mtime_ns if installed.is_dir() else 0
    return f"{__version__}:{newest}:{also}"


def read_run(
    listed: ListedRun,
    index: RunIndex,
    key_of: Callable[[RunDocument], str],
    *,
    cancel: CancelToken = NEVER,
    rest: Callable[[object], None] = lambda progress: None,
) -> KeptRun:
    """Return the stored part of a listed run, from the index if it is known there, otherwise from its file.

    `key_of` returns the key of the run's beginning, and `rest` is called from time to time. Raises
    `RunFileError` if the run can't be read, and `CancelledError` if cancelled.
    """
    known = index.get(listed.name)
    if known is not None:
        return known
    words = WordCollector()
    kept = read_to_its_end(
        listed, key_of, cancel=cancel, rest=rest, see=words.add_step, see_header=words.add_header
    )
    index.put(listed.name, kept, words.packed())
    return kept


class RunIndex:
    """The index of recorded runs; without a cache folder, no run is known."""

    def __init__(self, cache_folder: Path | None) -> None:
        """`cache_folder` contains the file of the index; None to store nothing."""
        self._rows = None if cache_folder is None else RowIndex(cache_folder / FILE)
        self._states: dict[Path, bytes | None] = {}
        self._files: dict[str, Path] = {}
        """The file of each run, by the run's name."""

    def close(self) -> None:
        """Write the rows that are not written yet, and close the file."""
        if self._rows is not None:
            self._rows.close()

    def _state(self, name: str) -> bytes | None:
        """Return the state of a run's file, determined once, before it is read; None if it is unknown."""
        if self._rows is None:
            return None
        if name not in self._files:
            self._files[name] = split_name(name)[0]
        return self._state_of_file(self._files[name])

    def _state_of_file(self, path: Path) -> bytes | None:
        if self._rows is None:
            return None
        if path not in self._states:
            self._states[path] = state_of(path)
        return self._states[path]

    # The runs of a file

    def listed(self, path: Path) -> list[ListedRun] | None:
        """Return the runs that a listing of a file yielded; None if they are not known."""
        state = self._state_of_file(path)
        row = None if self._rows is None or state is None else self._rows.get(f"{_LISTED}{path}", state)
        if row is None:
            return None
        with suppress(msgspec.MsgspecError, ValueError, TypeError, KeyError, RecursionError):
            found = [_listed_of(values) for values in msgspec.msgpack.decode(row)]
            self._files.update((item.name, path) for item in found)
            return found
        return None

    def put_listed(self, path: Path, listed: Sequence[ListedRun]) -> None:
        """Store the runs that a listing of a file yielded."""
        state = self._state_of_file(path)
        if self._rows is None or state is None:
            return
        with suppress(msgspec.MsgspecError, TypeError, UnicodeError, OverflowError):
            row = msgspec.msgpack.encode([_listed_values(item) for item in listed])
            self._rows.put(IndexedRow(f"{_LISTED}{path}", state, row))

    # A run

    def get(self, name: str) -> KeptRun | None:
        """Return the stored part of a run; None if it is not known."""
        if self._rows is None or (state := self._state(name)) is None:
            return None
        row = self._rows.get(_RUN + name, state)
        if row is None:
            return None
        with suppress(msgspec.MsgspecError, ValueError, TypeError, KeyError, RecursionError):
            header, digest, key, warnings, doubt, meta = msgspec.msgpack.decode(row)
            return KeptRun(
                header_of(header),
                msgspec.convert(digest, decodable(RunDigest)),
                key,
                tuple(warnings),
                doubt,
                meta,
            )
        return None

    def put(self, name: str, kept: KeptRun, words: bytes | None) -> None:
        """Store a run that was read to its end; `words` come from a `WordCollector`, if known."""
        if self._rows is None or (state := self._state(name)) is None:
            return
        # If a run was written to while it was read, the stored part may be incomplete, so it is read again
        # next time.
        if state_of(self._files[name]) != state:
            return
        values = (header_values(kept.run), kept.digest, kept.key, kept.warnings, kept.doubt, kept.meta)
        with suppress(msgspec.MsgspecError, TypeError, UnicodeError, OverflowError):
            row = msgspec.msgpack.encode(values)
            self._rows.put(IndexedRow(_RUN + name, state, row), {} if words is None else {_WORDS: words})

    # Content

    def answer(self, name: str, term: ContentTerm, *, headers: bool) -> bool | None:
        """Return whether content is in a run, from an earlier answer or the run's words; None if unknown."""
        if self._rows is None or (state := self._state(name)) is None:
            return None
        known = self._rows.cell(_RUN + name, state, _answer_name(term, headers))
        if known in (b"0", b"1"):
            return known == b"1"
        words = self._rows.cell(_RUN + name, state, _WORDS)
        with suppress(zlib.error, UnicodeError):
            if words is not None and not may_contain(words, term[1]):
                return False
        return None

    def put_answer(self, name: str, term: ContentTerm, found: bool, *, headers: bool) -> None:
        """Store whether content was found in a run."""
        if self._rows is None or (state := self._state(name)) is None:
            return
        self._rows.add_cells(_RUN + name, state, {_answer_name(term, headers): b"1" if found else b"0"})


def _answer_name(term: ContentTerm, headers: bool) -> str:
    return _ANSWER + sha256_of_text(f"{term[0]}\0{'everything' if headers else 'blind'}\0{term[1]}")


def _listed_values(listed: ListedRun) -> list[Any]:
    header = None if listed.header is None else header_values(listed.header)
    return [listed.name, listed.size, header, listed.problem, listed.is_verdict]


def _listed_of(values: Sequence[Any]) -> ListedRun:
    name, size, header, problem, is_verdict = values
    return ListedRun(name, size, None if header is None else header_of(header), problem, is_verdict)
