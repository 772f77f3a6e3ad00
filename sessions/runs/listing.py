"""Lists the runs in files, folders and archives: names at once, headers as they are read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from gistpoint.core.cancel import CancelToken
from gistpoint.sessions.formats.probe import Probe
from gistpoint.sessions.formats.registry import recognise
from gistpoint.sessions.runs import limits
from gistpoint.sessions.runs.archives import Archive, opened
from gistpoint.sessions.runs.blobs import FileBlob, NoRunError, RunFileError
from gistpoint.sessions.runs.model import Run
from gistpoint.sessions.runs.opening import event_files, is_log, join_name, member_probe, probe_of, split_name

_UNKNOWN = "is in no format that is known here"
_IGNORED = frozenset({".git", "__pycache__", "node_modules", ".venv"})


@dataclass(frozen=True, slots=True)
class Listed:
    """One run of a list. `name` is what `open_run` takes; `problem` says why there is no header."""

    name: str
    size: int = 0
    """Bytes of the file it lies in."""
    header: Run | None = None
    problem: str = ""
    is_verdict: bool = False
    """Whether the problem is that the file, which can be read, is no run that can."""


def files_of(path: Path) -> Iterator[Path]:
    """Yield the files below a folder, sorted, a run that is a folder as that; no links to folders."""
    if not path.is_dir():
        yield path
        return
    count = 0
    for place, folders, files in os.walk(path):
        here = Path(place)
        folders[:] = sorted(name for name in folders if name not in _IGNORED)
        if "events" in folders and event_files(here):
            folders.remove("events")
            yield here
            continue
        for name in sorted(files):
            count += 1
            if count > limits.MEMBERS:
                return
            yield here / name


def list_runs(paths: Iterable[str | Path], *, cancel: CancelToken | None = None) -> Iterator[Listed]:
    """Yield the runs of files, folders, archives and `FILE#ID` names, each as soon as its header is read.

    What lies in a folder or archive and is no run is left out; what was named itself is listed with its problem.
    """
    for given in paths:
        path, id = split_name(str(given))
        if id:
            yield from _guarded(str(given), lambda path=path, id=id: _named(path, id))
            continue
        inside = path.is_dir() and not event_files(path)
        for file in files_of(path):
            if cancel is not None:
                cancel.check()
            for listed in _guarded(str(file), lambda file=file: _in_file(file)):
                if listed.header is not None or not inside or _is_worth_telling(listed):
                    yield listed


def _is_worth_telling(listed: Listed) -> bool:
    """Whether a problem of a file that nobody named is told: it is a run of some kind, or dangerous."""
    return listed.problem.startswith(("Refused", "Damaged")) or (listed.is_verdict and _UNKNOWN not in listed.problem)


def _guarded(name: str, entries: object) -> Iterator[Listed]:
    from collections.abc import Callable
    from typing import cast

    try:
        yield from cast("Callable[[], Iterator[Listed]]", entries)()
    except RunFileError as error:
        yield Listed(name, 0, None, str(error), isinstance(error, NoRunError))


def _named(path: Path, id: str) -> Iterator[Listed]:
    probe, rest = probe_of(path, id)
    wanted = join_name(str(path), *()) + "#" + id
    for listed in _runs(probe, wanted if not rest else wanted.removesuffix("#" + rest), probe.blob.size):
        if not rest or listed.name == wanted:
            yield listed


def _in_file(path: Path) -> Iterator[Listed]:
    if path.is_dir():
        probe, _ = probe_of(path)
        yield from _runs(probe, str(path), sum(part.size for part in probe.parts))
        return
    if not path.is_file():
        yield Listed(
            str(path), 0, None, f"{path} does not exist." if not path.exists() else f"{path} is no regular file."
        )
        return
    blob = opened(FileBlob(path))
    if not isinstance(blob, Archive) or is_log(blob):
        probe, _ = probe_of(path)
        yield from _runs(probe, str(path), path.stat().st_size)
        return
    for member in blob.members.values():
        name = join_name(str(path), member.name)
        if member.refused:
            yield Listed(name, member.size, None, f"Refused: {member.refused}.")
            continue
        yield from _guarded(name, lambda member=member, name=name: _in_member(path, blob, member.name, name))


def _in_member(path: Path, archive: Archive, member: str, name: str) -> Iterator[Listed]:
    try:
        probe = member_probe(str(path), archive, member)
        yield from _runs(probe, name, archive.members[member].size)
    except RunFileError as error:
        if "bomb" in error.message or "damaged" in error.message:
            yield Listed(name, 0, None, f"Refused: {error}")


def _runs(probe: Probe, name: str, size: int) -> Iterator[Listed]:
    format = recognise(probe)
    none = True
    for entry in format.runs(probe):
        none = False
        header = entry.header
        if not header.task and not header.id:
            header = replace(header, task=Path(name.split("#")[0]).name, derived=header.derived | {"task"})
        yield Listed(join_name(name, entry.id) if entry.id else name, size, header)
    if none:
        raise NoRunError(f"{name} holds no run of {format.name}.", hint="It was cut off, or is only begun.")
