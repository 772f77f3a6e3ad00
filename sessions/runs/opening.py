"""Opens what a person names: a path, or `PATH#ID` for one of several runs, archives included.

An ID is percent-encoded. Within an archive it is the member, and for a member with several runs `MEMBER#ID` again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote, unquote

from gistpoint.core.cancel import CancelToken
from gistpoint.sessions.formats.probe import Probe
from gistpoint.sessions.formats.registry import recognise
from gistpoint.sessions.runs import limits
from gistpoint.sessions.runs.archives import (
    Archive,
    Blob,
    FileBlob,
    NoRunError,
    PathBlob,
    RunFileError,
    SliceBlob,
    opened,
)
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.model import Run

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


JOURNAL = "journal.jsonl"
EVENT_FILE = re.compile(r"event-\d{1,12}-[\w-]{1,80}\.json")


def split_name(name: str) -> tuple[Path, str]:
    """Split `PATH#ID`; a path that is there as it stands has no id. The id stays encoded."""
    if "#" not in name or _is_there(name):
        return Path(name), ""
    at = name.find("#")
    while at >= 0:
        if _is_there(name[:at]):
            return Path(name[:at]), name[at + 1 :]
        at = name.find("#", at + 1)
    path, _, id = name.partition("#")
    return Path(path), id


def _is_there(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def join_name(path: str, *ids: str) -> str:
    """Return the name of a run: a path, then members and ids, percent-encoded."""
    return "#".join([path, *(quote(id, safe="/@:+,=") for id in ids if id)])


def open_run(name: str | Path) -> RunDocument:
    """Open a run by path or `PATH#ID`. Raises `RunFileError` for what can't be; reads both ends of the file only.

    A folder opens where it holds a journal. A file with several runs needs an id if there is more than one.
    """
    path, id = split_name(str(name))
    if path.is_dir() and (path / JOURNAL).is_file():
        path = path / JOURNAL
    probe, rest = probe_of(path, id)
    format = recognise(probe)
    probe.widen()
    run = unquote(rest)
    if not run:
        run = _only(format.runs(probe), probe.name)
    return RunDocument(
        format.open(probe, run),
        name=str(name),
        id=run,
        another=lambda: format.open(probe, run),
        not_shown=getattr(format, "not_shown", ()),
    )


def _only(entries: object, name: str) -> str:
    from typing import cast

    from gistpoint.sessions.formats.registry import RunEntry

    listed: list[str] = []
    for entry in cast("Iterator[RunEntry]", entries):
        if not entry.id:
            return ""
        listed.append(entry.id)
        if len(listed) > 1:
            break
    if not listed:
        raise NoRunError(f"{name} holds no run.", hint="It was cut off, or is only begun.")
    if len(listed) > 1:
        example = join_name(name, listed[0])
        raise RunFileError(f"{name} holds several runs.", hint=f"Name one, such as {example}, or list them.")
    return listed[0]


def probe_of(path: Path, id: str = "") -> tuple[Probe, str]:
    """Return the probe of a file, or of the member of an archive that `id` begins with, and what is left of `id`."""
    if not _is_there(str(path)):
        raise RunFileError(f"{path} does not exist.")
    if path.is_dir():
        events = event_files(path)
        if events:
            return Probe(events[0], name=str(path), parts=events), id
        raise RunFileError(f"{path} is a folder of several files.", hint="Name one of them, or list the folder.")
    if not path.is_file():
        raise RunFileError(f"{path} is no regular file.")
    blob = opened(FileBlob(path))
    if isinstance(blob, Archive):
        return _in_archive(path, blob, id)
    return Probe(blob, name=str(path), sibling=_Siblings(path).open, siblings=_Siblings(path).names), id


def event_files(folder: Path) -> list[PathBlob]:
    """Return the files of a run that is kept as one file an event, in order; none if the folder is no such run."""
    inner = folder / "events"
    if not inner.is_dir():
        return []
    found = [entry for entry in inner.iterdir() if EVENT_FILE.fullmatch(entry.name) and entry.is_file()]
    found.sort(key=lambda entry: (len(entry.name.split("-")[1]), entry.name))
    return [PathBlob(entry, f"events/{entry.name}") for entry in found[: limits.MEMBERS]]


def is_log(archive: Archive) -> bool:
    """Whether an archive is a run file itself, as Inspect's are, and no collection of files."""
    marked = "header.json" in archive.members or "_journal/start.json" in archive.members
    return marked or (bool(archive.damage) and any(name.startswith("samples/") for name in archive.members))


def _in_archive(path: Path, archive: Archive, id: str) -> tuple[Probe, str]:
    if is_log(archive):
        return Probe(_nothing(path), name=str(path), archive=archive), id
    if not id:
        usable = [member for member in archive.members.values() if not member.refused]
        if len(usable) != 1:
            some = ", ".join(join_name(str(path), member.name) for member in usable[:2])
            refused = next((member for member in archive.members.values() if member.refused), None)
            if refused is not None and not usable:
                raise RunFileError(f"{path}: {refused.name!r} is refused: {refused.refused}.")
            raise RunFileError(f"{path} holds {len(usable)} files.", hint=f"Name one, such as {some}." if some else "")
        id = quote(usable[0].name)
    member, _, rest = id.partition("#")
    return member_probe(str(path), archive, unquote(member)), rest


def member_probe(path: str, archive: Archive, member: str) -> Probe:
    """Return the probe of one member, an archive itself if it is an Inspect log."""
    inner = opened(archive.read(member))
    name = join_name(path, member)
    if not isinstance(inner, Archive):
        return Probe(inner, name=name, sibling=lambda other: _beside(archive, member, other))
    if is_log(inner):
        return Probe(archive.read(member), name=name, archive=inner)
    raise RunFileError(f"{name} is an archive within an archive.", hint="Unpack the outer one first.")


def _beside(archive: Archive, member: str, other: str) -> Blob | None:
    folder, _, _ = member.rpartition("/")
    name = f"{folder}/{other}" if folder else other
    return archive.read(name) if name in archive.members and not archive.members[name].refused else None


def _nothing(path: Path) -> Blob:
    whole = FileBlob(path)
    return SliceBlob(whole, 0, whole.size)


class _Siblings:
    """Files beside one, by plain name; nothing outside of its folder."""

    def __init__(self, path: Path) -> None:
        self._folder = path.absolute().parent

    def names(self) -> tuple[str, ...]:
        """Return the names of the files beside it."""
        return tuple(sorted(entry.name for entry in self._folder.iterdir() if entry.is_file()))

    def open(self, name: str) -> Blob | None:
        """Open a sibling; None for one that is not there or whose name leads elsewhere."""
        if "/" in name or "\\" in name or name in ("", ".", ".."):
            return None
        path = self._folder / name
        return FileBlob(path, name) if path.is_file() else None


def linked_name(name: str, link: str) -> str | None:
    """Return the name of the run that a step or header of the run `name` links to; None if it is not there.

    `#ID` stands for a run in the same file, anything else for a file beside it, found also by the end of its name.
    """
    path, _ = split_name(name)
    if link.startswith("#"):
        return join_name(str(path), link[1:])
    if "/" in link.replace("\\", "/") or link in ("", ".", ".."):
        link = link.replace("\\", "/").rsplit("/", 1)[-1]
    exact = path.parent / link
    if link and exact.is_file():
        return str(exact)
    for folder in (path.parent, path.with_suffix("") / "subagents"):
        if folder.is_dir():
            for entry in sorted(folder.iterdir()):
                if link and entry.name.endswith(link) and entry.is_file():
                    return str(entry)
    return None
