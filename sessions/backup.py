"""Backups of a whole home as one archive, and their restoration (decision 177).

A backup is a tar compressed with zstd: a header, the files of the data, config and proofs folders, and a list
of their sizes and hashes, which serve to check it after writing and before anything is restored. Caches,
links, locks and the leftovers of crashes are omitted. The key of this machine is included only on request:
whoever has the key can forge the heads of journals.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

import msgspec

from gistpoint.core.archives import ArchiveBounds, ArchiveError, BoundedTar, opened_tar
from gistpoint.core.decoding import decodable
from gistpoint.core.errors import UserError, cause
from gistpoint.core.locations import Locations, opened_regular
from gistpoint.core.logs import naming, sync_folder, wait_for
from gistpoint.core.machine_key import KEY
from gistpoint.core.running import RunContext, RunProgress
from gistpoint.core.unfinished import part_of, remove_abandoned
from gistpoint.sessions.heads import COPIES, HEADS
from gistpoint.sessions.home import MARK, mark_of, require_known
from gistpoint.sessions.journal import is_open

HEADER, FILES = "backup.json", "files.json"
_KIND, _VERSION = "gistpoint.backup", 1
_BOUNDS = ArchiveBounds(1 << 44, 1 << 26)
_LARGEST_LIST = 1 << 32
_REPORTED_EVERY = 500
_PIECE = 1 << 20
_STARTING = "starting.lock"
_PASSING = (".deleting-", ".making-", ".unpacking-", ".fetching-")


class BackupError(UserError):
    """A backup can't be made, or an archive can't be restored."""


class BackupHeader(msgspec.Struct, frozen=True):
    """The first member of a backup."""

    format: str
    version: int
    program: str
    """The version of gistpoint that wrote the backup."""
    home: str
    """The mark of the home, see `sessions.home`."""
    with_key: bool


class BackupFile(msgspec.Struct, frozen=True):
    """A file in a backup."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Backup:
    """The contents of a backup, for people."""

    files: int
    bytes: int
    """The size of all files, before compression."""
    with_key: bool
    left_out: int = 0
    """The number of omitted links and of files that disappeared meanwhile."""
    aside: tuple[Path, ...] = ()
    """The folders to which a restoration moved the previous home."""


def _roots(locations: Locations) -> dict[str, Path]:
    """Return the folders in a backup by the name of their part; the proofs may be inside another folder."""
    found = {"data": locations.data, "config": locations.config, "proofs": locations.proofs}
    return found if locations.config != locations.data else {n: found[n] for n in ("data", "proofs")}


# Making a backup


def make_backup(
    locations: Locations, target: Path, program: str, run: RunContext, *, with_key: bool = False
) -> Backup:
    """Write a backup to a new file, check it, and return its contents.

    Attempts may be open meanwhile: of each journal, the events acknowledged so far are in the backup. Raises
    `BackupError` if the file exists or there is nothing to back up, and `CancelledError` if stopped; in both
    cases, nothing is left behind.
    """
    if target.exists():
        raise BackupError(f"{target} already exists.", hint="Name a new file; no backup is overwritten.")
    if not locations.data.is_dir():
        raise BackupError(f"There is nothing to back up in {locations.data}.")
    target = target.absolute()
    part = part_of(target)
    remove_abandoned(target)
    try:
        with naming(target), part.open("xb") as file:
            os.fchmod(file.fileno(), 0o600)
            left_out = _write(locations, file, program, run, with_key=with_key)
            file.flush()
            os.fsync(file.fileno())
        checked = run.step("checking the backup")
        with opened_backup(part) as backup:
            files = backup.check(checked)
        # Unlike a rename, a link never overwrites a file that another process made in the meantime.
        os.link(part, target)
        sync_folder(target.parent)
    except FileExistsError:
        raise BackupError(f"{target} already exists.", hint="Name a new file.") from None
    finally:
        part.unlink(missing_ok=True)
    return Backup(len(files), sum(found.size for found in files), with_key, left_out)


def _write(locations: Locations, file: IO[bytes], program: str, run: RunContext, *, with_key: bool) -> int:
    """Write the archive, and return how many links and files that disappeared meanwhile were left out."""
    import zstandard

    named = run.step("writing the backup")
    header = BackupHeader(_KIND, _VERSION, program, mark_of(program).decode(), with_key)
    written: list[BackupFile] = []
    left_out = 0
    with (
        zstandard.ZstdCompressor(level=3).stream_writer(file, closefd=False) as stream,
        tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        _add(tar, HEADER, msgspec.json.encode(header))
        for name, path in _files(locations, with_key=with_key):
            named.check()
            if len(written) % _REPORTED_EVERY == 0:
                named.progress(RunProgress(phase=f"{len(written)} files"))
            try:
                written.append(_add_file(tar, name, path))
            except OSError as error:
                if not isinstance(error, FileNotFoundError) and not path.is_symlink():
                    raise
                left_out += 1
        _add(tar, FILES, msgspec.json.encode(written))
    return left_out


def _files(locations: Locations, *, with_key: bool) -> Iterator[tuple[str, Path]]:
    """Yield the name in the backup and the path of each file.

    Heads come before journals: a journal may be ahead of its head, but never behind it (decision 51). An
    attempt whose folder is renamed meanwhile, to that of a branch, is found by a second pass.
    """
    heads = locations.attempts / HEADS
    yield from _files_below("proofs", locations.proofs / COPIES, locations.proofs)
    yield from _files_below("data", heads, locations.data)
    seen: set[Path] = {heads, locations.proofs}
    yield from _files_below("data", locations.data, locations.data, seen)
    yield from _files_below("data", locations.attempts, locations.data, seen)
    if "config" in _roots(locations):
        yield from _files_below("config", locations.config, locations.config, seen)
    key = locations.proofs / KEY
    if with_key and key.is_file():
        yield f"proofs/{KEY}", key


def _files_below(
    part: str, folder: Path, root: Path, seen: set[Path] | None = None
) -> Iterator[tuple[str, Path]]:
    """Yield the name in the backup and the path of each file below a folder except locks and temporary files.

    Files in `seen` or below one of its folders are left out; the files that are yielded are added to it.
    """
    seen = set() if seen is None else seen
    for place, folders, files in os.walk(folder):
        inner = Path(place)
        folders[:] = sorted(name for name in folders if inner / name not in seen and not _is_passing(name))
        for name in sorted(files):
            path = inner / name
            if path not in seen and not _is_lock(name) and not _is_passing(name):
                seen.add(path)
                yield f"{part}/{path.relative_to(root).as_posix()}", path


def _is_lock(name: str) -> bool:
    return name == "lock" or name.endswith(".lock")


def _is_passing(name: str) -> bool:
    """Return whether a name belongs to an unfinished file or folder, or to one that can be recomputed."""
    return name.startswith(_PASSING) or name.endswith(".part") or name == "outlines"


def _add_file(tar: tarfile.TarFile, name: str, path: Path) -> BackupFile:
    """Add a file as it is now.

    Only whole lines of a log are added: incomplete ones were never acknowledged. A last line without a line
    break counts as whole if it is valid JSON, because an editor may have removed the break.
    """
    with opened_regular(path, links=False) as file:
        size = os.fstat(file.fileno()).st_size
        if path.suffix == ".jsonl":
            data = file.read(size)
            whole = data.rfind(b"\n") + 1
            return _add(tar, name, data if _is_json_object(data[whole:]) else data[:whole])
        hashed = _Hashed(file)
        tar.addfile(_member(name, size), hashed)
        return BackupFile(name, size, hashed.digest.hexdigest())


def _is_json_object(line: bytes) -> bool:
    """Return whether a line is a complete JSON object; an incomplete object is never valid JSON."""
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> BackupFile:
    tar.addfile(_member(name, len(data)), io.BytesIO(data))
    return BackupFile(name, len(data), hashlib.sha256(data).hexdigest())


def _member(name: str, size: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o600
    return info


class _Hashed(io.RawIOBase):
    """A file whose content is hashed while it is read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.digest = file, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.digest.update(data)
        return data


# Reading a backup


@dataclass(frozen=True, slots=True)
class OpenBackup:
    """A backup that is open for a single reading."""

    header: BackupHeader
    _tar: BoundedTar
    _where: str

    def check(self, run: RunContext) -> list[BackupFile]:
        """Read everything, and return the files. Raises `BackupError` if anything is missing or changed."""
        return self._read(run, None)

    def unpack(self, into: dict[str, Path], run: RunContext) -> list[BackupFile]:
        """Write all files below the folders of their parts, and return them. Raises as `check` does."""
        return self._read(run, into)

    def _read(self, run: RunContext, into: dict[str, Path] | None) -> list[BackupFile]:
        found: list[BackupFile] = []
        for info in self._tar:
            run.check()
            if len(found) % _REPORTED_EVERY == 0:
                run.progress(RunProgress(phase=f"{len(found)} files"))
            source = self._tar.content(info)
            if info.name == FILES:
                listed = _decoded_list(source.read(_LARGEST_LIST), self._where)
                break
            target = None if into is None else _target(info.name, into, self._where)
            found.append(BackupFile(info.name, info.size, _copied(source, target)))
        else:
            raise BackupError(f"{self._where} ends before its list of files: it was cut off.")
        if listed != found:
            raise BackupError(f"{self._where} was changed after it was written: its hashes do not match.")
        return found


def _decoded_list(data: bytes, where: str) -> list[BackupFile]:
    try:
        return msgspec.json.decode(data, type=decodable(list[BackupFile]))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BackupError(f"{where} has no list of its files: {error}.") from error


def _decoded_header(data: bytes, where: str) -> BackupHeader:
    try:
        header = msgspec.json.decode(data, type=decodable(BackupHeader))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BackupError(f"{where} is not a backup: {error}.") from error
    if (header.format, header.version) != (_KIND, _VERSION):
        raise BackupError(
            f"{where} was written by another version of gistpoint.", hint="Use that version or a later one."
        )
    return header


def _target(name: str, into: dict[str, Path], where: str) -> Path:
    """Return the path of a member. Raises `BackupError` for a name that leads elsewhere."""
    part, *inner = PurePosixPath(name).parts
    if part not in into or not inner or ".." in inner or "\0" in name or name.startswith("/"):
        raise BackupError(f"{where} contains {name[:200]!r}, which is not a file of a home.")
    return into[part].joinpath(*inner)


def _copied(source: IO[bytes], target: Path | None) -> str:
    """Return the hash of a file, and copy it to the target, if there is one."""
    digest = hashlib.sha256()
    with ExitStack() as opened:
        file = None
        if target is not None:
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            opened.enter_context(naming(target))
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            file = opened.enter_context(os.fdopen(descriptor, "wb"))
        while data := source.read(_PIECE):
            digest.update(data)
            if file is not None:
                file.write(data)
    return digest.hexdigest()


@contextmanager
def opened_backup(path: Path) -> Iterator[OpenBackup]:
    """Open a backup. Raises `BackupError` if it is missing, not a backup, damaged, or of another version."""
    if not path.exists():
        raise BackupError(f"{path} does not exist.", hint="Name an archive of `gistpoint admin backup`.")
    try:
        with opened_regular(path) as file, opened_tar(file, _BOUNDS) as tar:
            first = next(iter(tar), None)
            if first is None or first.name != HEADER:
                raise BackupError(f"{path} is not a backup.", hint="`gistpoint admin backup` makes one.")
            header = _decoded_header(tar.content(first).read(_PIECE), str(path))
            yield OpenBackup(header, tar, str(path))
    except ArchiveError as error:
        raise BackupError(f"{path} {error}.") from error


# Restoring


def restore_backup(
    locations: Locations, source: Path, program: str, run: RunContext, *, replace: bool = False
) -> Backup:
    """Restore a backup, and return its contents.

    Everything is unpacked and checked next to the home first, so the home is either the previous one or the
    whole backup. With `replace`, the previous home is moved aside; without it, the home must be empty. If the
    key is not in the backup, this machine's key is kept. Raises `BackupError` if the home is not empty or is
    in use, or if the backup can't be used, `HomeError` if it comes from a newer gistpoint, and
    `CancelledError` if stopped; after any of these, the home is unchanged.
    """
    _require_free(locations, replace=replace)
    with opened_backup(source) as backup:
        require_known(backup.header.home.encode(), str(source), program)
    suffix = f"{os.getpid()}"
    tops = _tops(locations)
    staged = {part: part_of(root.absolute()) for part, root in tops.items()}
    for root in tops.values():
        remove_abandoned(root.absolute())
    inner = dict(staged)
    if "proofs" not in staged:
        inner["proofs"] = staged["config"] / locations.proofs.relative_to(locations.config)
    try:
        with opened_backup(source) as backup:
            files = backup.unpack(inner, run.step("restoring the backup"))
            header = backup.header
        if not header.with_key:
            _keep_key(locations, inner["proofs"])
        for folder in staged.values():
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (staged["data"] / MARK).write_bytes(mark_of(program))
        # One sync for all files: syncing each of a hundred thousand would take minutes.
        os.sync()
        with _nothing_starting(locations):
            # Unpacking may have taken minutes, during which an attempt may have begun.
            _require_free(locations, replace=replace)
            aside = _swap(tops, staged, suffix)
    finally:
        for folder in staged.values():
            shutil.rmtree(folder, ignore_errors=True)
    return Backup(len(files), sum(found.size for found in files), header.with_key, aside=aside)


def _tops(locations: Locations) -> dict[str, Path]:
    """Return the folders that are restored as a whole, by the name of their part."""
    roots = _roots(locations)
    if "config" in roots and locations.proofs.is_relative_to(locations.config):
        del roots["proofs"]
    return roots


def _require_free(locations: Locations, *, replace: bool) -> None:
    """Raise `BackupError` if the home is in use or, unless it is replaced, not empty."""
    for folder in _attempts_in(locations.attempts):
        if is_open(folder):
            raise BackupError(
                f"The attempt {folder.name} is open in another window or process.", hint="Close it first."
            )
    filled = [str(root) for root in _tops(locations).values() if _is_filled(root)]
    if filled and not replace:
        raise BackupError(
            f"The home is not empty: there are files in {' and '.join(filled)}. Nothing was changed.",
            hint="With --replace, they are moved aside. GISTPOINT_HOME names another home.",
        )


def _attempts_in(attempts: Path) -> list[Path]:
    return [path for path in attempts.iterdir() if path.is_dir()] if attempts.is_dir() else []


def _is_filled(root: Path) -> bool:
    return root.is_dir() and any(path.name != MARK for path in root.iterdir())


def _keep_key(locations: Locations, proofs: Path) -> None:
    """Copy this machine's key, if it has one, so that it still recognises its own journals."""
    with suppress(FileNotFoundError):
        proofs.mkdir(parents=True, exist_ok=True, mode=0o700)
        shutil.copy2(locations.proofs / KEY, proofs / KEY)


@contextmanager
def _nothing_starting(locations: Locations) -> Iterator[None]:
    """Within this context, prevent attempts from beginning in the home."""
    if not locations.attempts.is_dir():
        yield
        return
    with wait_for(locations.attempts / _STARTING):
        yield


def _swap(roots: dict[str, Path], staged: dict[str, Path], suffix: str) -> tuple[Path, ...]:
    """Move the staged folders to the roots, and return the folders to which roots with files were moved.

    Raises `BackupError` if that fails; everything is then back in its place.
    """
    moved: list[tuple[Path, Path]] = []
    aside = []
    try:
        for part, root in roots.items():
            if root.exists():
                before = root.with_name(f"{root.name}.before-{suffix}")
                root.rename(before)
                moved.append((before, root))
                aside.append(before)
            staged[part].rename(root)
            moved.append((root, staged[part]))
            sync_folder(root.parent)
    except OSError as error:
        for now, earlier in reversed(moved):
            now.rename(earlier)
        raise BackupError(f"Nothing was restored: {cause(error)} ({error.filename}).") from error
    for before in aside:
        # A previous home that contained only its mark is not worth keeping.
        if not _is_filled(before):
            shutil.rmtree(before)
    return tuple(before for before in aside if before.exists())
