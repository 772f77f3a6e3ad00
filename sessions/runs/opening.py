"""Opens a run by its name: a path, or `PATH#ID` for one of several runs in a file or archive.

An ID is percent-encoded. In an archive it is the name of a member; for a member with several runs it is
`MEMBER#ID`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Protocol, TypeAlias
from urllib.parse import quote, unquote

from gistpoint.core.running import NEVER, CancelToken
from gistpoint.core.text import plural, visible_line
from gistpoint.sessions.blinding import Blinding, hidden_error
from gistpoint.sessions.formats.registry import recognise
from gistpoint.sessions.records import limits
from gistpoint.sessions.records.archives import (
    Archive,
    Blob,
    FileBlob,
    NoRunError,
    PathBlob,
    RunFileError,
    SliceBlob,
    opened,
)
from gistpoint.sessions.records.databases import DATABASE, sessions_of
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
from gistpoint.sessions.records.model import OWN_FORMAT, Run, StepKind
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.runs.document import RunDocument

_UNKNOWN = "is in no known format"
_SUFFIXES_OF_RUNS = frozenset((".json", ".jsonl", ".ndjson", ".traj", ".eval", ".parquet"))
"""The suffixes of files that users may expect to be runs."""
Wants: TypeAlias = Callable[[FileProbe, Format], bool]
"""Decides whether to list the runs of a file."""
_MOST_KEPT = 20_000
"""The maximum number of runs in a file whose listing is stored."""
_IGNORED = frozenset({".git", "__pycache__", "node_modules", ".venv"})


class HiddenRunError(RunFileError):
    """Raised for a request to open a run whose outcome is hidden."""


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run in a list: `name` is the argument for `open_run`, `problem` the reason for a missing header."""

    name: str
    size: int = 0
    """The size of the run's file in bytes."""
    header: Run | None = None
    problem: str = ""
    is_verdict: bool = False
    """Whether `problem` is not a failed read: the file is not a known run, is hidden, or was left out."""
    format: Format | None = None
    """The format of the file; None if the file is not a run."""


class KnownListings(Protocol):
    """Earlier listings of files, each valid while its file does not change."""

    def listed(self, path: Path) -> list[ListedRun] | None:
        """Return the runs that a listing of a file yielded; None if they are not known."""

    def put_listed(self, path: Path, listed: Sequence[ListedRun]) -> None:
        """Store the runs that a listing of a file yielded."""


def files_of(path: Path, left_out: Callable[[int], object] = lambda count: None) -> Iterator[Path]:
    """Yield the files below a folder, sorted within each folder; for a file, yield it alone.

    A folder that is itself a run is yielded in place of its files. At most `limits.MEMBERS` paths are
    yielded; `left_out` is called with the number of others, if there are any. The folders of version control,
    of environments and of caches, and files that only repeat others are left out; links to folders are not
    followed.
    """
    if not path.is_dir():
        yield path
        return
    found = _files_and_runs(path)
    yield from islice(found, limits.MEMBERS)
    if more := sum(1 for _ in found):
        left_out(more)


def _files_and_runs(path: Path) -> Iterator[Path]:
    """Yield the files below a folder, and folders that are runs in place of their files, without a limit."""
    for place, folders, files in os.walk(path):
        here = Path(place)
        folders[:] = sorted(set(folders) - _IGNORED)
        if _is_run(here, folders, files):
            yield here
            continue
        names = set(files) - _repeating_files(here, files)
        yield from map(here.joinpath, sorted(names))


def _is_run(here: Path, folders: list[str], files: list[str]) -> bool:
    """Return whether a folder is itself a run; removes from `folders` those that can't contain other runs."""
    if "events" in folders and event_files(here):
        folders.remove("events")
        return True
    folders[:] = holding_sessions(folders) or folders
    if is_trial(here, files, folders):
        folders.clear()
        return True
    return False


_SUMMARIES = frozenset({"result.json", "results.json"})
"""Files with the result of a trial, or of several trials in sibling folders."""


def _repeating_files(here: Path, files: list[str]) -> set[str]:
    """Return the names of files in a folder that only repeat the contents of others."""
    found = set[str]()
    has_summary = not _SUMMARIES.isdisjoint(files)
    if has_summary and holds_trials(here):
        found |= _SUMMARIES
    if "api_conversation_history.json" in files:  # `ui_messages.json` has the same task as displayed
        found.add("ui_messages.json")
    return found


def list_runs(
    paths: Iterable[str | Path],
    *,
    cancel: CancelToken = NEVER,
    wants: Wants = lambda _probe, _format: True,
    with_unread: bool = False,
    known: KnownListings | None = None,
) -> Iterator[ListedRun]:
    """Yield the runs of files, folders, archives and `FILE#ID` names, each as soon as its header is read.

    Files that are named in `paths` and are not runs are listed with their problem; in a folder or archive,
    only refused files are, and those in a known format that contain no run. `with_unread` also lists files in
    a folder that can't be read, those in no known format although their suffix suggests a run, and a folder
    from which files were left out. `wants` decides which files to list at all, except those named with an ID.
    Earlier listings in `known` are used, and new ones are added. Raises `CancelledError` if cancelled.
    """
    for given in paths:
        path, id = split_name(str(given))
        if id:
            yield from map(_as_shown, _guarded(str(given), partial(_named, path, id)))
            continue
        is_named = not path.is_dir() or bool(run_files(path))
        more: list[int] = []
        for file in files_of(path, more.append):
            cancel.check()
            for listed in map(_as_shown, _listed_in(file, wants, known)):
                if is_named or _is_reported(listed):
                    yield listed
                elif with_unread and _may_be_expected(listed, file):
                    without_list = listed.problem.partition(" Known: ")[0]
                    yield replace(listed, problem=without_list)
        for count in more if with_unread else ():
            yield ListedRun(str(given), 0, None, left_out_words(count), is_verdict=True)


def left_out_words(count: int) -> str:
    """Return a sentence about the files in a folder that were left out."""
    return f"{plural(count, 'file')} left out: only the first {limits.MEMBERS:,} in a folder are read."


def _as_shown(listed: ListedRun) -> ListedRun:
    """Return a run as it may be listed: without its header if its outcome is hidden (decision 191)."""
    study = None if listed.header is None else _hiding_study(listed.header, split_name(listed.name)[0])
    if study is None:
        return listed
    return ListedRun(listed.name, listed.size, None, str(hidden_error("It", study)), is_verdict=True)


def _hiding_study(header: Run, path: Path) -> str | None:
    """Return the study because of which a run hides its outcome; None if there is none."""
    study, rule = header.extra.get("study"), Blinding.of_process
    if header.format != OWN_FORMAT or not isinstance(study, str) or rule is None:
        return None
    return study if rule.hides(header.actor, study, path.parent) else None


def _listed_in(file: Path, wants: Wants, known: KnownListings | None) -> Iterator[ListedRun]:
    """Yield the runs of a file, or the reason why it has none, from an earlier listing if one is known."""
    earlier = None if known is None else known.listed(file)
    if earlier is not None:
        yield from earlier
        return
    found: list[ListedRun] = []
    for listed in _guarded(str(file), partial(_in_file, file, wants)):
        if len(found) <= _MOST_KEPT:
            found.append(listed)
        yield listed
    if known is not None and len(found) <= _MOST_KEPT:
        known.put_listed(file, found)


def _is_reported(listed: ListedRun) -> bool:
    """Return whether to list a file that was not named: it is a run, looks like one, or is dangerous."""
    if listed.header is not None:
        return True
    if listed.problem.startswith("Refused"):
        return True
    return listed.is_verdict and _UNKNOWN not in listed.problem


def _may_be_expected(listed: ListedRun, file: Path) -> bool:
    """Return whether a user may expect to see an unlisted file: it is unreadable, or has a run's suffix."""
    if not listed.is_verdict:
        return True
    return file.suffix.lower() in _SUFFIXES_OF_RUNS


def may_be_run(listed: ListedRun, file: Path) -> bool:
    """Return whether a file in a folder is a run, or one that a user may expect to be a run."""
    return _is_reported(listed) or _may_be_expected(listed, file)


def _guarded(name: str, entries: Callable[[], Iterator[ListedRun]]) -> Iterator[ListedRun]:
    try:
        yield from entries()
    except RunFileError as error:
        yield ListedRun(name, 0, None, str(error), isinstance(error, NoRunError))


def _named(path: Path, id: str) -> Iterator[ListedRun]:
    probe, run_id = probe_of(path, id)
    wanted = f"{path}#{id}"
    name = wanted.removesuffix(f"#{run_id}") if run_id else wanted
    for listed in _runs(probe, name, probe.blob.size):
        if not run_id or listed.name == wanted:
            yield listed


def _in_file(path: Path, wants: Wants) -> Iterator[ListedRun]:
    if path.is_dir():
        probe, _ = probe_of(path)
        yield from _runs(probe, str(path), sum(part.size for part in probe.parts), wants)
        return
    if not path.is_file():
        problem = "is not a regular file" if path.exists() else "does not exist"
        yield ListedRun(str(path), 0, None, f"{path} {problem}.")
        return
    blob = sessions_of(opened(FileBlob(path)))
    if not isinstance(blob, Archive) or is_log(blob):
        probe, _ = probe_of(path)
        yield from _runs(probe, str(path), path.stat().st_size, wants)
        return
    yield from _in_members(path, blob, wants)


def _in_members(path: Path, blob: Archive, wants: Wants) -> Iterator[ListedRun]:
    for member in blob.members.values():
        name = join_name(str(path), member.name)
        if member.refused:
            yield ListedRun(name, member.size, None, f"Refused: {member.refused}.")
            continue
        yield from _guarded(name, partial(_in_member, path, blob, member.name, name, wants))


def _in_member(path: Path, archive: Archive, member: str, name: str, wants: Wants) -> Iterator[ListedRun]:
    try:
        probe = member_probe(str(path), archive, member)
        yield from _runs(probe, name, archive.members[member].size, wants)
    except RunFileError as error:
        is_dangerous = "bomb" in error.message or "damaged" in error.message
        if is_dangerous:
            yield ListedRun(name, 0, None, f"Refused: {error}")


def _runs(probe: FileProbe, name: str, size: int, wants: Wants | None = None) -> Iterator[ListedRun]:
    format = recognise(probe)
    if wants is not None and not wants(probe, format):
        return
    has_runs = False
    for entry in format.runs(probe):
        has_runs = True
        header = entry.header
        is_anonymous = not header.task and not header.id
        if is_anonymous:
            file_name = Path(name.split("#")[0]).name
            header = replace(header, task=file_name, derived=header.derived | {"task"})
        yield ListedRun(join_name(name, entry.id), size, header, format=format)
    if not has_runs:
        raise NoRunError(
            f"{name} contains no run of {format.name}.", hint="It was cut off, or has only just begun."
        )


JOURNAL = "journal.jsonl"


def split_name(name: str) -> tuple[Path, str]:
    """Split `PATH#ID`, and return the path and the encoded id; the id is empty if all of `name` is a path.

    Characters that are printed as symbols, such as control characters, may be given as these symbols.
    """
    # The name of a file may contain `#`, so the longest path is tried first.
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
    """Return the only file that is printed as `path`.

    None if there is no such file, if there are several, or if a folder can't be listed.
    """
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
    """Return the name of a run: a path, and members and ids, percent-encoded; empty ids are left out."""
    return "#".join([path, *(quote(id, safe="/@:+,=") for id in ids if id)])


def open_run(name: str | Path, *, known: Format | None = None) -> RunDocument:
    """Return the run with this name, after reading only both ends of its file.

    A folder can be opened if it contains a journal, or is itself a run. A file with several runs requires an
    id. `known` is the format of a run that was listed under the name, which is then not detected again.
    Raises `RunFileError` if there is no such run, it can't be opened, or its outcome is hidden.
    """
    path, id = split_name(str(name))
    if path.is_dir() and (path / JOURNAL).is_file():
        path = path / JOURNAL
    probe, encoded_id = probe_of(path, id)
    format = known or recognise(probe)
    probe.widen()
    run = unquote(encoded_id)
    if not run and known is None:
        run = _only_id(format.runs(probe), probe.name)
    reader = format.open(probe, run)
    study = _hiding_study(reader.header(), path)
    if study is not None:
        error = hidden_error(str(name), study)
        raise HiddenRunError(error.message, hint=error.hint)
    another = partial(format.open, probe, run)
    has_other_files = partial(_has_other_files, path, len(probe.parts)) if probe.parts else None
    return RunDocument(
        reader, format, name=str(name), id=run, another=another, has_other_files=has_other_files
    )


def _has_other_files(path: Path, count: int) -> bool:
    """Return whether a run of several files no longer has this number of files."""
    try:
        return len(_parts_of(path)) != count
    except OSError:
        return False


def _parts_of(path: Path) -> list[PathBlob]:
    """Return the files of a run with several files, given the path that names it; empty for other paths."""
    if path.is_dir():
        return run_files(path)
    return trial_files(path.parent) if path.name in _SUMMARIES else session_files(path)


def _only_id(entries: Iterator[RunEntry], name: str) -> str:
    """Return the id of the only run; empty if the run has none.

    Raises `NoRunError` if there is no run, and `RunFileError` if there are several.
    """
    listed: list[str] = []
    for entry in entries:
        if not entry.id:
            return ""
        listed.append(entry.id)
        if len(listed) > 1:
            break
    if not listed:
        raise NoRunError(f"{name} does not contain a run.", hint="It was cut off, or has only just begun.")
    if len(listed) > 1:
        example = join_name(name, listed[0])
        raise RunFileError(
            f"{name} contains several runs.", hint=f"Name one, such as {example}, or list them."
        )
    return listed[0]


def _folder_error(path: Path) -> RunFileError:
    """Return the error for a folder that is not itself a run, with a hint about which name to use."""
    files = list(islice(files_of(path), 2))
    if not files:
        return RunFileError(f"{path} is an empty folder.")
    if len(files) == 1:
        return RunFileError(f"{path} is a folder.", hint=f"Name the file in it: {files[0]}.")
    return RunFileError(
        f"{path} is a folder of several files.", hint="Name one of them; `gistpoint runs` lists them."
    )


def probe_of(path: Path, id: str = "") -> tuple[FileProbe, str]:
    """Return the probe of a file, and `id`; in an archive, the probe of its member, and the rest of `id`.

    Raises `RunFileError` if there is no such file or member, if it is neither a regular file nor a folder
    that is a run, if an archive can't be read or exceeds the limits, and if `id` names none of several
    members.
    """
    if not _is_there(str(path)):
        raise RunFileError(
            f"{path} does not exist.",
            hint="Name a file, a folder or an archive; `gistpoint attempt list` lists the attempts here.",
        )
    is_folder = path.is_dir()
    if not is_folder and not path.is_file():
        raise RunFileError(f"{path} is not a regular file.")
    parts = _parts_of(path)
    if parts:
        return FileProbe(parts[0], name=str(path), parts=parts), id
    if is_folder:
        raise _folder_error(path)
    blob = sessions_of(opened(FileBlob(path)))
    if isinstance(blob, Archive):
        return _in_archive(path, blob, id)
    return FileProbe(blob, name=str(path)), id


def is_log(archive: Archive) -> bool:
    """Return whether an archive is itself a run, as Inspect's logs are, and not a collection of files."""
    if "header.json" in archive.members or "_journal/start.json" in archive.members:
        return True
    if not archive.damage:
        return False
    # In a damaged log, these members may be missing.
    return any(name.startswith("samples/") for name in archive.members)


def _in_archive(path: Path, archive: Archive, id: str) -> tuple[FileProbe, str]:
    if is_log(archive):
        return FileProbe(_nothing(path), name=str(path), archive=archive), id
    if not id:
        id = quote(_only_member(path, archive))
    member, _, run_id = id.partition("#")
    return member_probe(str(path), archive, unquote(member)), run_id


def _only_member(path: Path, archive: Archive) -> str:
    """Return the name of the only usable member. Raises `RunFileError` if there is none or more than one."""
    members = archive.members.values()
    usable = [member for member in members if not member.refused]
    if len(usable) == 1:
        return usable[0].name
    refused = next((member for member in members if member.refused), None)
    if refused is not None and not usable:
        raise RunFileError(f"{path}: {refused.name!r} is refused: {refused.refused}.")
    examples = ", ".join(join_name(str(path), member.name) for member in usable[:2])
    raise RunFileError(
        f"{path} holds {len(usable)} {'sessions' if archive.kind == DATABASE else 'files'}.",
        hint=f"Name one, such as {examples}." if examples else "",
    )


def member_probe(path: str, archive: Archive, member: str) -> FileProbe:
    """Return the probe of an archive's member.

    Raises `RunFileError` if the member can't be read or is itself an archive of files.
    """
    inner = opened(archive.read(member))
    name = join_name(path, member)
    if not isinstance(inner, Archive):
        return FileProbe(inner, name=name)
    if is_log(inner):
        return FileProbe(archive.read(member), name=name, archive=inner)
    raise RunFileError(f"{name} is an archive in an archive.", hint="Unpack the outer one first.")


def _nothing(path: Path) -> Blob:
    file = FileBlob(path)
    return SliceBlob(file, 0, file.size)


def linked_name(name: str, link: str) -> str | None:
    """Return the name of the run that a step or header of the run `name` links to; None if it does not exist.

    `#ID` is a run in the same file. Anything else is a file in the same folder or in a folder there; it is
    also found by the end of its name.
    """
    path, _ = split_name(name)
    if link.startswith("#"):
        in_same_file = join_name(str(path), link[1:])
        return in_same_file if _exists(in_same_file) else None
    folder_name, _, file_name = link.partition("/")
    in_folder = path.parent / folder_name / file_name
    stays_inside = folder_name not in ("", ".", "..") and in_folder.name == file_name != ".."
    if stays_inside and in_folder.is_file():
        return str(in_folder)
    last_part = link.replace("\\", "/").rpartition("/")[2]
    if not last_part:
        return None
    in_same_folder = path.parent / last_part
    if in_same_folder.is_file():
        return str(in_same_folder)
    folders = filter(Path.is_dir, (path.parent, path.with_suffix("") / "subagents"))
    for entry in chain.from_iterable(sorted(folder.iterdir()) for folder in folders):
        if entry.name.endswith(last_part) and entry.is_file():
            return str(entry)
    return None


def _exists(name: str) -> bool:
    try:
        open_run(name)
    except RunFileError:
        return False
    return True


LOOKED_AT = 12
"""The number of steps at the beginning of a run that are checked."""


def doubt_of(document: RunDocument) -> str:
    """Return a sentence on why a run is probably not in the detected format; empty if there is no reason.

    The run is still shown, together with this sentence (decision 48). Builds the index up to the last of the
    checked steps.
    """
    document.ensure(LOOKED_AT)
    looked = min(document.step_count, LOOKED_AT)
    unknown = sum(document.step(index).kind is StepKind.UNKNOWN for index in range(looked))
    knows_most = 2 * unknown <= looked
    if looked and knows_most:
        return ""
    from gistpoint.sessions.formats._appearance import shape_of_json

    shape = shape_of_json(FileProbe(document.blobs[0])) if document.blobs else ""
    seems = f"; it looks like {shape}" if shape else ""
    name, format = document.name or "The run", document.header.format
    if not looked:
        return f"{name} was read as {format}, but it does not contain any steps{seems}."
    steps = "its only step" if looked == 1 else f"{unknown} of its first {looked} steps"
    return f"{name} was read as {format}, which does not know {steps}{seems}."
