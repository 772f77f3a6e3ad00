"""A repository as seen by the tools: the files of one tar, with replaced files applied.

The tar is never unpacked for reading, so none of its paths, links or special files can lead a tool outside of
it (decision 2).
"""

from __future__ import annotations

import hashlib
import io
import os
import posixpath
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from gistpoint.core.archives import ArchiveError, indexed_tar
from gistpoint.core.errors import TaskError, cause
from gistpoint.core.locations import lies_in, opened_regular

_MAX_LINKS = 16
_MOST_MEMBERS = 1_000_000
_DEEPEST, _LONGEST_PATH = 200, 3_000
"""The bounds of a path in a tree: nested folders, and bytes. Linux allows 4,096 bytes in all."""
_GET_AGAIN = "Get the task again from its source."


@dataclass(frozen=True, slots=True)
class TreeMember:
    """One entry of a tree: a file's position in the tar, or a link's target."""

    path: str
    offset: int = 0
    size: int = 0
    executable: bool = False
    link: str = ""


class SourceTree:
    """A read-only view of a repository; `with_files` returns a changed view that shares all other data."""

    def __init__(
        self, tar: Path, members: Mapping[str, TreeMember], overlay: Mapping[str, bytes] | None = None
    ) -> None:
        self.tar = tar
        self.members = members
        self.overlay: Mapping[str, bytes] = dict(overlay or {})
        self._directories: dict[str, dict[str, str]] | None = None
        self._cache: dict[str, bytes] = {}
        self._lock = Lock()

    @classmethod
    def open(cls, tar: Path) -> SourceTree:
        """Return the tree in an uncompressed tar, which is indexed but not unpacked.

        Raises `TaskError` if it can't be read, is damaged, has too many members, or has a path that leads out
        of the tree or is below something other than a folder.
        """
        members: dict[str, TreeMember] = {}
        try:
            with opened_regular(tar) as file, indexed_tar(file, _MOST_MEMBERS) as archive:
                for info in archive:
                    path = _inside(info.name)
                    if path is None:
                        raise TaskError(
                            f"{tar.name} contains the path {info.name!r}, which leads out of the tree.",
                            hint=_GET_AGAIN,
                        )
                    if not _can_be_laid_out(path):
                        raise TaskError(
                            f"{tar.name} contains the path {path[:100]!r}..., which is too long or too deep.",
                            hint=_GET_AGAIN,
                        )
                    if info.isfile():
                        members[path] = TreeMember(path, info.offset_data, info.size, bool(info.mode & 0o100))
                    elif info.issym():
                        members[path] = TreeMember(path, link=info.linkname)
        except ArchiveError as error:
            raise TaskError(f"{tar.name} {error}.", hint=_GET_AGAIN) from error
        except OSError as error:
            raise TaskError(f"{tar.name} can't be read: {cause(error)}.") from error
        below = min((path for path in members if not members.keys().isdisjoint(_above(path))), default=None)
        if below is not None:
            above = next(path for path in _above(below) if path in members)
            raise TaskError(
                f"{tar.name} contains {below!r} below {above!r}, which is not a folder.", hint=_GET_AGAIN
            )
        return cls(tar, members)

    def with_files(self, files: Mapping[str, bytes]) -> SourceTree:
        """Return this tree with `files` (new bytes by path) added or replaced."""
        changed = SourceTree(self.tar, self.members, {**self.overlay, **files})
        changed._cache = {path: data for path, data in self._cache.items() if path not in files}
        return changed

    def resolve(self, path: str) -> str | None:
        """Return a path after following links in the tree; None if they lead out of it or form a cycle."""
        current = path
        for _ in range(_MAX_LINKS):
            if current in self.overlay:
                return current
            parts = current.split("/")
            for end in range(1, len(parts) + 1):
                prefix = "/".join(parts[:end])
                member = self.members.get(prefix)
                if member is not None and member.link:
                    if member.link.startswith("/"):
                        return None
                    rest = parts[end:]
                    followed = _inside(posixpath.join(posixpath.dirname(prefix), member.link, *rest))
                    if followed is None:
                        return None
                    current = followed
                    break
            else:
                return current
        return None

    def is_file(self, path: str) -> bool:
        """Return whether `path` is a regular file, after following links within the tree."""
        resolved = self.resolve(path)
        return resolved is not None and (resolved in self.overlay or resolved in self.members)

    def is_directory(self, path: str) -> bool:
        """Return whether `path` is a folder; the root is the empty string."""
        resolved = self.resolve(path) if path else ""
        return resolved is not None and resolved in self._folders()

    def size(self, path: str) -> int:
        """Return the size in bytes of the file at `path`. Raises `FileNotFoundError` if there is none."""
        resolved = self._existing(path)
        return len(self.overlay[resolved]) if resolved in self.overlay else self.members[resolved].size

    def read(self, path: str) -> bytes:
        """Return the bytes of the file at `path`.

        Raises `FileNotFoundError` if there is none, and `TaskError` if the tar is cut short.
        """
        resolved = self._existing(path)
        if resolved in self.overlay:
            return self.overlay[resolved]
        with self._lock:
            cached = self._cache.get(resolved)
        if cached is not None:
            return cached
        with self.tar.open("rb") as file:
            data = self._read_member(file.fileno(), resolved)
        if resolved.endswith(".py"):
            with self._lock:
                self._cache[resolved] = data
        return data

    def _read_member(self, descriptor: int, path: str) -> bytes:
        member = self.members[path]
        data = os.pread(descriptor, member.size, member.offset)
        if len(data) != member.size:
            raise TaskError(f"{self.tar.name} is incomplete: {path} can't be read in full.")
        return data

    def entries(self, path: str = "") -> list[tuple[str, str]]:
        """Return the entries of a folder as (name, "dir" or "file"), sorted by name.

        Raises `NotADirectoryError` if `path` is not a folder.
        """
        resolved = self.resolve(path) if path else ""
        if resolved is None or resolved not in self._folders():
            raise NotADirectoryError(path)
        return sorted(self._folders()[resolved].items())

    def files(self, suffix: str = "") -> Iterator[str]:
        """Yield the sorted paths of all regular files that end with `suffix`, without links."""
        paths = {path for path, member in self.members.items() if not member.link} | set(self.overlay)
        yield from sorted(path for path in paths if path.endswith(suffix))

    def read_all(self, suffix: str) -> Iterator[tuple[str, bytes]]:
        """Yield (path, bytes) of all regular files that end with `suffix`, without links, sorted by path.

        Raises `TaskError` if the tar is cut short.
        """
        with self.tar.open("rb") as file:
            descriptor = file.fileno()
            for path in self.files(suffix):
                data = self.overlay.get(path)
                if data is None:
                    data = self._read_member(descriptor, path)
                yield path, data

    def _existing(self, path: str) -> str:
        resolved = self.resolve(path)
        if resolved is None or (resolved not in self.overlay and resolved not in self.members):
            raise FileNotFoundError(path)
        return resolved

    def _folders(self) -> dict[str, dict[str, str]]:
        with self._lock:
            if self._directories is None:
                self._directories = _folders_of([*self.members, *self.overlay])
            folders = self._directories
        return folders


def _folders_of(paths: Iterable[str]) -> dict[str, dict[str, str]]:
    folders: dict[str, dict[str, str]] = {"": {}}
    for path in paths:
        name, parent, kind = posixpath.basename(path), posixpath.dirname(path), "file"
        while True:
            known = folders.setdefault(parent, {})
            if known.get(name) == "dir" or (known.get(name) == kind):
                break
            known[name] = kind
            if not parent:
                break
            name, parent, kind = posixpath.basename(parent), posixpath.dirname(parent), "dir"
    return folders


def _above(path: str) -> Iterator[str]:
    """Yield the folders that contain `path`, innermost first."""
    while path := posixpath.dirname(path):
        yield path


def _inside(path: str) -> str | None:
    """Return a relative path, normalised; None if it is absolute, empty, leads upwards or contains a NUL."""
    normal = posixpath.normpath(path)
    if not path or normal.startswith(("/", "../")) or normal in (".", "..") or "\0" in path:
        return None
    return normal


def _can_be_laid_out(path: str) -> bool:
    """Return whether file systems can hold a path, and whether code can recurse through its folders."""
    names = os.fsencode(path).split(b"/")
    return len(names) <= _DEEPEST and sum(map(len, names)) <= _LONGEST_PATH and max(map(len, names)) <= 255


def write_tree(folder: Path, tar: Path, *, leave_out: Iterable[str] = ()) -> str:
    """Write the files and links below `folder` into a deterministic tar and return its sha256.

    The tar is sorted by path, without times, owners or group names; files have mode 0644 or 0755. Caches,
    bytecode, build results, virtual environments, version history, every path in `leave_out`, and links that
    lead out of the folder are left out. A link whose target contains the folder's own path is written without
    it.
    """
    left_out = set(leave_out)
    tar.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(tar, "w:", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(_walk(folder)):
            if path in left_out:
                continue
            source = folder / path
            info = tarfile.TarInfo(path)
            if source.is_symlink():
                info.type, info.linkname, info.mode = tarfile.SYMTYPE, _inner_link(folder, path), 0o777
                archive.addfile(info)
                continue
            stat = source.stat()
            info.size, info.mode = stat.st_size, 0o755 if stat.st_mode & 0o100 else 0o644
            with source.open("rb") as file:
                archive.addfile(info, file)
    return sha256_of(tar)


def _inner_link(folder: Path, path: str) -> str:
    """Return the target of a link that stays in `folder`; relative, and the same wherever the folder is."""
    link = folder / path
    target = str(link.readlink())
    if target.startswith("/") or _inside(posixpath.join(posixpath.dirname(path), target)) is None:
        return os.path.relpath(link.resolve(), link.parent.resolve())
    return target


def write_tar(tree: SourceTree, tar: Path) -> str:
    """Write a tree with its overlay into a deterministic tar, as `write_tree` does, and return its sha256."""
    tar.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(tar, "w:", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted({*tree.members, *tree.overlay}):
            info = tarfile.TarInfo(path)
            member = tree.members.get(path)
            if member is not None and member.link and path not in tree.overlay:
                info.type, info.linkname, info.mode = tarfile.SYMTYPE, member.link, 0o777
                archive.addfile(info)
                continue
            data = tree.read(path)
            info.size, info.mode = len(data), 0o755 if member is not None and member.executable else 0o644
            archive.addfile(info, io.BytesIO(data))
    return sha256_of(tar)


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file, in hexadecimal."""
    with opened_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_CACHES = {
    ".git",
    ".hg",
    ".svn",
    "__pycache__",
    ".hypothesis",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".eggs",
}
_BUILT = {"build", "dist", ".tox", ".nox"}


def is_left_out(path: str) -> bool:
    """Return whether `write_tree` leaves out a path by its name: history, caches, builds and bytecode."""
    return _is_left_out_folder(path) or path.endswith((".pyc", ".pyo"))


def _is_left_out_folder(path: str) -> bool:
    parts = path.split("/")
    return parts[0] in _BUILT or any(name in _CACHES or name.endswith(".egg-info") for name in parts)


def _walk(folder: Path) -> Iterator[str]:
    for place, directories, files in os.walk(folder):
        here = Path(place)
        relative = here.relative_to(folder).as_posix()
        if relative.count("/") > _DEEPEST:
            raise TaskError(
                f"{relative[:100]!r}... in {folder.name} has folders that are nested too deeply.",
                hint="A repository has no such folders; remove them.",
            )
        prefix = "" if relative == "." else relative + "/"
        links = [name for name in directories if (here / name).is_symlink()]
        # Changed in place, because os.walk enters the folders left in this list.
        directories[:] = [
            name
            for name in directories
            if name not in links and _is_wanted_folder(here / name, prefix + name)
        ]
        for name in [*files, *links]:
            if not name.endswith((".pyc", ".pyo")) and _can_be_packed(here / name, folder):
                yield prefix + name


def _is_wanted_folder(place: Path, path: str) -> bool:
    return not _is_left_out_folder(path) and not (place / "pyvenv.cfg").exists()


def _can_be_packed(path: Path, root: Path) -> bool:
    """Return whether a path is a plain file, or a link that stays below `root`."""
    if path.is_symlink():
        return lies_in(path, root)
    return path.is_file()
