"""Opens a run by the name that a person gives: a path, or `PATH#ID` for one of several runs, including
archives.

An ID is percent-encoded. In an archive it is the member; for a member with several runs it is `MEMBER#ID`
again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote, unquote

from gistpoint.core.running import NEVER, CancelToken
from gistpoint.core.text import visible_line
from gistpoint.sessions.formats.registry import recognise
from gistpoint.sessions.records import limits
from gistpoint.sessions.records.archives import (
    Archive,
    Blob,
    FileBlob,
    NoRunError,
    RunFileError,
    SliceBlob,
    opened,
)
from gistpoint.sessions.records.folders import (
    event_files,
    holding_sessions,
    holds_trials,
    is_trial,
    run_files,
    session_files,
    trial_files,
)
from gistpoint.sessions.records.format import Format, RunEntry
from gistpoint.sessions.records.model import Run, StepKind
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.runs.document import RunDocument

_UNKNOWN = "is in no format that is known here"
_MEANT = frozenset((".json", ".jsonl", ".ndjson", ".traj", ".eval", ".parquet"))
"""The ends of names by which a file of a folder seems to be meant as a run."""
Wants: TypeAlias = Callable[[FileProbe, Format], bool]
"""Whether a file is wanted."""
_IGNORED = frozenset({".git", "__pycache__", "node_modules", ".venv"})


@dataclass(frozen=True, slots=True)
class Listed:
    """One run of a list. `name` is the argument for `open_run`; `problem` is the reason if there is no
    header.
    """

    name: str
    size: int = 0
    """Size of its file in bytes."""
    header: Run | None = None
    problem: str = ""
    is_verdict: bool = False
    """Whether the file can be read and is not a run in a known format."""
    format: Format | None = None
    """The format of its file, if it is a run."""


def files_of(path: Path) -> Iterator[Path]:
    """Yield the files below a folder, sorted; a folder that is a run counts as a file; links to folders are
    skipped.
    """
    if not path.is_dir():
        yield path
        return
    left = limits.MEMBERS
    for place, folders, files in os.walk(path):
        here = Path(place)
        folders[:] = sorted(set(folders) - _IGNORED)
        if _is_run(here, folders, files):
            yield here
            continue
        names = sorted(set(files) - _repeating_files(here, files))
        yield from map(here.joinpath, names[:left])
        left -= len(names)
        if left < 0:
            return


def _is_run(here: Path, folders: list[str], files: list[str]) -> bool:
    """Whether a folder is a run itself; of `folders` only those remain in which there may be other runs."""
    if "events" in folders and event_files(here):
        folders.remove("events")
        return True
    folders[:] = holding_sessions(folders) or folders
    if is_trial(here, files, folders):
        folders.clear()
        return True
    return False


_SUMMARIES = frozenset({"result.json", "results.json"})
"""Files with the result of a trial, or of several trials in folders beside them."""


def _repeating_files(here: Path, files: list[str]) -> set[str]:
    """Return the files of a folder that only show again what others hold."""
    found = set[str]()
    if not _SUMMARIES.isdisjoint(files) and holds_trials(here):
        found |= _SUMMARIES
    if "api_conversation_history.json" in files:  # the same task as Cline's window showed it
        found.add("ui_messages.json")
    return found


def list_runs(
    paths: Iterable[str | Path],
    *,
    cancel: CancelToken = NEVER,
    wants: Wants = lambda _probe, _format: True,
    tells_unread: bool = False,
) -> Iterator[Listed]:
    """Yield the runs of files, folders, archives and `FILE#ID` names, each as soon as its header is read.

    Files in a folder or archive that are not runs are skipped; files that were named are listed with their
    problem. The runs of files that are not wanted are left out. With `tells_unread` files in a folder are
    listed with their problem too if they can't be read, or are in no known format and named as runs are.
    """
    for given in paths:
        path, id = split_name(str(given))
        if id:
            yield from _guarded(str(given), partial(_named, path, id))
            continue
        is_named = not path.is_dir() or bool(run_files(path))
        for file in files_of(path):
            cancel.check()
            for listed in _guarded(str(file), partial(_in_file, file, wants)):
                if is_named or _is_reported(listed):
                    yield listed
                elif tells_unread and _seems_meant(listed, file):
                    yield replace(listed, problem=listed.problem.partition(" Known: ")[0])


def _is_reported(listed: Listed) -> bool:
    """Whether to list a file that was not named: if it is a run, or some kind of run, or dangerous."""
    if listed.header is not None or listed.problem.startswith(("Refused", "Damaged")):
        return True
    return listed.is_verdict and _UNKNOWN not in listed.problem


def _seems_meant(listed: Listed, file: Path) -> bool:
    """Whether somebody may miss a file that is not listed: it can't be read, or its name is that of a run."""
    return not listed.is_verdict or file.suffix.lower() in _MEANT


def _guarded(name: str, entries: Callable[[], Iterator[Listed]]) -> Iterator[Listed]:
    try:
        yield from entries()
    except RunFileError as error:
        yield Listed(name, 0, None, str(error), isinstance(error, NoRunError))


def _named(path: Path, id: str) -> Iterator[Listed]:
    probe, rest = probe_of(path, id)
    wanted = join_name(str(path), *()) + "#" + id
    name = wanted.removesuffix("#" + rest) if rest else wanted
    found = _runs(probe, name, probe.blob.size)
    yield from (listed for listed in found if not rest or listed.name == wanted)


def _in_file(path: Path, wants: Wants) -> Iterator[Listed]:
    if path.is_dir():
        probe, _ = probe_of(path)
        yield from _runs(probe, str(path), sum(part.size for part in probe.parts), wants)
        return
    if not path.is_file():
        problem = "is not a regular file" if path.exists() else "does not exist"
        yield Listed(str(path), 0, None, f"{path} {problem}.")
        return
    blob = opened(FileBlob(path))
    if not isinstance(blob, Archive) or is_log(blob):
        probe, _ = probe_of(path)
        yield from _runs(probe, str(path), path.stat().st_size, wants)
        return
    for member in blob.members.values():
        name = join_name(str(path), member.name)
        if member.refused:
            yield Listed(name, member.size, None, f"Refused: {member.refused}.")
            continue
        yield from _guarded(name, partial(_in_member, path, blob, member.name, name, wants))


def _in_member(path: Path, archive: Archive, member: str, name: str, wants: Wants) -> Iterator[Listed]:
    try:
        probe = member_probe(str(path), archive, member)
        yield from _runs(probe, name, archive.members[member].size, wants)
    except RunFileError as error:
        if "bomb" in error.message or "damaged" in error.message:
            yield Listed(name, 0, None, f"Refused: {error}")


def _runs(probe: FileProbe, name: str, size: int, wants: Wants | None = None) -> Iterator[Listed]:
    format = recognise(probe)
    if wants is not None and not wants(probe, format):
        return
    has_runs = False
    for entry in format.runs(probe):
        has_runs = True
        header = entry.header
        if not header.task and not header.id:
            header = replace(header, task=Path(name.split("#")[0]).name, derived=header.derived | {"task"})
        yield Listed(join_name(name, entry.id), size, header, format=format)
    if not has_runs:
        raise NoRunError(f"{name} holds no run of {format.name}.", hint="It was cut off, or is only begun.")


JOURNAL = "journal.jsonl"


def split_name(name: str) -> tuple[Path, str]:
    """Split `PATH#ID`; an existing path has no id. The id stays encoded.

    Characters that are printed as signs, such as control characters, may be given as these signs.
    """
    ends = (len(name), *(sign.start() for sign in re.finditer("#", name)))
    for end in ends:
        if _is_there(name[:end]):
            return Path(name[:end]), name[end + 1 :]
    if not name.isascii():
        for end in ends:
            printed = _as_printed(Path(name[:end]))
            if printed is not None:
                return printed, name[end + 1 :]
    path, _, id = name.partition("#")
    return Path(path), id


def _as_printed(path: Path) -> Path | None:
    """Return the only file that is printed as `path`; None if there is none or several."""
    found = Path(path.anchor)
    for part in path.parts[bool(path.anchor) :]:
        if _is_there(str(found / part)):
            found /= part
            continue
        try:
            named = [item for item in found.iterdir() if visible_line(item.name) == part]
        except OSError:
            return None
        if len(named) != 1:
            return None
        found = named[0]
    return found


def _is_there(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def join_name(path: str, *ids: str) -> str:
    """Return the name of a run: a path, then members and ids, percent-encoded."""
    return "#".join([path, *(quote(id, safe="/@:+,=") for id in ids if id)])


def open_run(name: str | Path, *, known: Format | None = None) -> RunDocument:
    """Open a run by path or `PATH#ID`; read only both ends of the file. Raises `RunFileError` if that is
    impossible.

    A folder is opened if it contains a journal. A file with several runs requires an id. `known` is the
    format of a run that was listed under the name, which is then not recognised again.
    """
    path, id = split_name(str(name))
    if path.is_dir() and (path / JOURNAL).is_file():
        path = path / JOURNAL
    probe, rest = probe_of(path, id)
    format = known or recognise(probe)
    probe.widen()
    run = unquote(rest)
    if not run and known is None:
        run = _only(format.runs(probe), probe.name)
    return RunDocument(
        format.open(probe, run), format, name=str(name), id=run, another=lambda: format.open(probe, run)
    )


def _only(entries: Iterator[RunEntry], name: str) -> str:
    listed: list[str] = []
    for entry in entries:
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


def probe_of(path: Path, id: str = "") -> tuple[FileProbe, str]:
    """Return the probe of a file, or of the member of an archive that `id` begins with, and the rest of `id`."""
    if not _is_there(str(path)):
        raise RunFileError(f"{path} does not exist.")
    if path.is_dir():
        parts = run_files(path)
        if parts:
            return FileProbe(parts[0], name=str(path), parts=parts), id
        raise RunFileError(
            f"{path} is a folder of several files.", hint="Name one of them, or list the folder."
        )
    if not path.is_file():
        raise RunFileError(f"{path} is not a regular file.")
    parts = trial_files(path.parent) if path.name in _SUMMARIES else session_files(path)
    if parts:
        return FileProbe(parts[0], name=str(path), parts=parts), id
    blob = opened(FileBlob(path))
    if isinstance(blob, Archive):
        return _in_archive(path, blob, id)
    return FileProbe(blob, name=str(path)), id


def is_log(archive: Archive) -> bool:
    """Whether an archive is itself a run file, like Inspect's, and not a collection of files."""
    marked = "header.json" in archive.members or "_journal/start.json" in archive.members
    return marked or (bool(archive.damage) and any(name.startswith("samples/") for name in archive.members))


def _in_archive(path: Path, archive: Archive, id: str) -> tuple[FileProbe, str]:
    if is_log(archive):
        return FileProbe(_nothing(path), name=str(path), archive=archive), id
    member, _, rest = (id or quote(_only_member(path, archive))).partition("#")
    return member_probe(str(path), archive, unquote(member)), rest


def _only_member(path: Path, archive: Archive) -> str:
    members = archive.members.values()
    usable = [member for member in members if not member.refused]
    if len(usable) == 1:
        return usable[0].name
    refused = next((member for member in members if member.refused), None)
    if refused is not None and not usable:
        raise RunFileError(f"{path}: {refused.name!r} is refused: {refused.refused}.")
    some = ", ".join(join_name(str(path), member.name) for member in usable[:2])
    raise RunFileError(
        f"{path} holds {len(usable)} files.", hint=f"Name one, such as {some}." if some else ""
    )


def member_probe(path: str, archive: Archive, member: str) -> FileProbe:
    """Return the probe of one member, or of the archive itself if it is an Inspect log."""
    inner = opened(archive.read(member))
    name = join_name(path, member)
    if not isinstance(inner, Archive):
        return FileProbe(inner, name=name)
    if is_log(inner):
        return FileProbe(archive.read(member), name=name, archive=inner)
    raise RunFileError(f"{name} is an archive within an archive.", hint="Unpack the outer one first.")


def _nothing(path: Path) -> Blob:
    whole = FileBlob(path)
    return SliceBlob(whole, 0, whole.size)


def linked_name(name: str, link: str) -> str | None:
    """Return the name of the run that a step or header of the run `name` links to; None if it is missing.

    `#ID` means a run in the same file, anything else a file beside it or in a folder there, which is also
    found by the end of its name.
    """
    path, _ = split_name(name)
    if link.startswith("#"):
        return join_name(str(path), link[1:])
    beside, _, inside = link.partition("/")
    within = path.parent / beside / inside
    is_in_folder = beside not in ("", ".", "..") and within.name == inside != ".."
    if is_in_folder and within.is_file():
        return str(within)
    last = link.replace("\\", "/").rpartition("/")[2]
    if not last:
        return None
    exact = path.parent / last
    if exact.is_file():
        return str(exact)
    folders = filter(Path.is_dir, (path.parent, path.with_suffix("") / "subagents"))
    entries = chain.from_iterable(sorted(folder.iterdir()) for folder in folders)
    found = (str(entry) for entry in entries if entry.name.endswith(last) and entry.is_file())
    return next(found, None)


LOOKED_AT = 12
"""The number of steps at the beginning of a run that are checked."""


def doubt_of(document: RunDocument) -> str:
    """Return why a run is probably not in its recognised format, in a sentence; empty if there is no such
    reason.

    Builds the index up to the last of the checked steps.
    """
    document.ensure(LOOKED_AT)
    looked = min(document.step_count, LOOKED_AT)
    unknown = sum(document.step(index).kind is StepKind.UNKNOWN for index in range(looked))
    if looked and 2 * unknown <= looked:
        return ""
    from gistpoint.sessions.formats._appearance import shape_of_json

    shape = shape_of_json(FileProbe(document.blobs[0])) if document.blobs else ""
    seems = f"; it looks like {shape}" if shape else ""
    name, format = document.name or "The run", document.header.format
    if not looked:
        return f"{name} was read as {format}, and there is no step in it{seems}."
    return f"{name} was read as {format}, which does not know {unknown} of its first {looked} steps{seems}."
