"""Finds source distributions through the user's index, fetches them, checks their hashes and unpacks them.

None of their code is run. Paths and links that lead out of an archive, devices, and archives that are too
large are not unpacked (decision 118).
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import netrc
import os
import posixpath
import re
import shutil
import stat
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from packaging.utils import canonicalize_name

from gistpoint.core.archives import ArchiveBounds, ArchiveError, opened_tar, opened_zip
from gistpoint.core.errors import SourceError, cause
from gistpoint.core.locations import lies_in, parsed_toml
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sandbox.environments.projects import Table, table, text_of
from gistpoint.sandbox.environments.uv import WHEELS_ALONE, KnownMetadata, call_uv

_MAX_SDIST = 256 << 20
_BLOCK = 1 << 16
_TIMEOUT_S = 60
_INDEXES = ("UV_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL")


@dataclass(frozen=True, slots=True)
class Sdist:
    """A source distribution as an index lists it."""

    name: str
    version: str
    address: str
    sha256: str
    """The hash of the archive; empty if the index has none."""

    @property
    def file(self) -> str:
        """The name of the archive file."""
        return Path(urllib.parse.urlparse(self.address).path).name


def from_source(names: Sequence[str]) -> list[str]:
    """Return the arguments with which uv takes `names` from their sdists, and all other packages from wheels.

    A call with these arguments must also give uv the metadata of `names`, in every version, because uv builds
    a package whose metadata it does not have.
    """
    return [*WHEELS_ALONE, *(f"--no-binary={name}" for name in names)]


def locate(pinned: str, name: str, *, python: str | None = None, cancel: CancelToken = NEVER) -> Sdist:
    """Ask uv, and so the user's index, for the sdist of `pinned`, such as `name==version`, and return it.

    Raises `SourceError` if there is none, `EnvironmentBuildError` if the user's settings of uv can't be read,
    and `CancelledError` if stopped.
    """
    arguments = ["pip", "compile", "-", "--no-deps", "--format", "pylock.toml", "--no-header", "--quiet"]
    arguments += from_source([name])
    if python:
        arguments += ["--python-version", python]
    known = [KnownMetadata(name)]
    result = call_uv(arguments, standard_input=pinned + "\n", known=known, cancel=cancel, timeout_s=300)
    if not result.ok:
        raise _not_found(pinned, result.log)
    packages = parsed_toml(result.output).get("packages", [])
    described = packages if isinstance(packages, list) else []
    for package in described:
        if canonicalize_name(text_of(package, "name")) == canonicalize_name(name):
            return _described(package)
    raise SourceError(f"{pinned} can't be found: the index does not describe it.")


def _described(package: Table) -> Sdist:
    sdist = table(package, "sdist")
    address = text_of(sdist, "url") or text_of(sdist, "path")
    hashes = table(sdist, "hashes")
    return Sdist(text_of(package, "name"), text_of(package, "version"), address, text_of(hashes, "sha256"))


def _not_found(pinned: str, log: str) -> SourceError:
    """Return the error for a version that uv did not find, with the last sentence of its log."""
    lines = [line.strip().removeprefix("cause: ") for line in log.splitlines()]
    proof = next((line for line in lines if "Because" in line), log.strip())
    reason = proof.rpartition("Because ")[2].partition(f" and you require {pinned}")[0].rstrip(".")
    hint = "Check the name and the version, and whether the index can be reached."
    if "no source distribution" in proof:
        hint = "Give its git repository at a commit instead."
    return SourceError(f"{pinned} can't be found: {reason[:300]}.", hint=hint)


def download(sdist: Sdist, into: Path, cancel: CancelToken = NEVER) -> tuple[Path, str]:
    """Fetch an sdist below `into`; return the archive and its sha256.

    Raises `SourceError` if it can't be fetched, is too large, or does not have the index's hash, and
    `CancelledError` if stopped.
    """
    target = into / sdist.file
    url = sdist.address if "://" in sdist.address else Path(sdist.address).resolve().as_uri()
    if urllib.parse.urlparse(url).scheme not in ("https", "http", "file"):
        raise SourceError(f"The index gives an address that can't be fetched: {url[:200]}.")
    digest = hashlib.sha256()
    size = 0
    try:
        with urllib.request.urlopen(_request(url), timeout=_TIMEOUT_S) as answer, target.open("wb") as file:
            while block := answer.read(_BLOCK):
                cancel.check()
                # Counted as the data arrives, because the length that a server announces may be wrong.
                size += len(block)
                if size > _MAX_SDIST:
                    raise SourceError(f"{target.name} is larger than {_MAX_SDIST >> 20} MiB.")
                digest.update(block)
                file.write(block)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise SourceError(
            f"{target.name} can't be fetched: {error}.", hint="Is the index reachable?"
        ) from error
    # Not every index has a hash, but a hash must be right if there is one.
    if sdist.sha256 and digest.hexdigest() != sdist.sha256:
        raise SourceError(
            f"{target.name} is not what its index describes: its sha256 is {digest.hexdigest()}."
        )
    return target, digest.hexdigest()


def _request(url: str) -> urllib.request.Request:
    """Return a request with the credentials that the user has set for the host of `url`, if any."""
    parts = urllib.parse.urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    request = urllib.request.Request(urllib.parse.urlunsplit(parts._replace(netloc=host)))
    if parts.scheme not in ("http", "https"):
        return request
    of_indexes = (_login(index) for index in _indexes() if _same_host(index, parts))
    login = _login(parts) or next(of_indexes, None) or _netrc_login(parts.hostname or "")
    if login:
        code = base64.b64encode(":".join(login).encode()).decode()
        # Unredirected, so that a server can't pass the credentials on to another host.
        request.add_unredirected_header("Authorization", f"Basic {code}")
    return request


def _indexes() -> Iterator[urllib.parse.SplitResult]:
    """Yield the addresses of indexes in the environment, with the credentials set for them by name."""
    for variable in _INDEXES:
        for word in os.environ.get(variable, "").split():
            yield _index(word)


def _same_host(one: urllib.parse.SplitResult, other: urllib.parse.SplitResult) -> bool:
    return (one.scheme, one.hostname, one.port) == (other.scheme, other.hostname, other.port)


def _login(parts: urllib.parse.SplitResult) -> tuple[str, str] | None:
    if not parts.username and not parts.password:
        return None
    return urllib.parse.unquote(parts.username or ""), urllib.parse.unquote(parts.password or "")


def _index(word: str) -> urllib.parse.SplitResult:
    """Return the address of an index in uv's variables (`NAME=ADDRESS` or `ADDRESS`) with its credentials."""
    if not re.match(r"[A-Za-z0-9_.-]+=", word):
        return urllib.parse.urlsplit(word)
    name, _, address = word.rpartition("=")
    parts = urllib.parse.urlsplit(address)
    key = "UV_INDEX_" + re.sub(r"[^A-Z0-9]", "_", name.upper())
    user = os.environ.get(f"{key}_USERNAME", "")
    password = os.environ.get(f"{key}_PASSWORD", "")
    if not user and not password:
        return parts
    login = f"{urllib.parse.quote(user, '')}:{urllib.parse.quote(password, '')}@"
    return parts._replace(netloc=login + parts.netloc.rpartition("@")[2])


def _netrc_login(host: str) -> tuple[str, str] | None:
    try:
        found = netrc.netrc(os.environ.get("NETRC") or None).authenticators(host)
    except (OSError, netrc.NetrcParseError):
        return None
    if found is None:
        return None
    return found[0], found[2] or ""


_MOST_BYTES = 1 << 30
_MOST_FILES = 100_000


def unpack(
    archive: Path, into: Path, *, most_bytes: int = _MOST_BYTES, most_files: int = _MOST_FILES
) -> Path:
    """Unpack an sdist (tar or zip) into the new folder `into`; return its only folder, otherwise `into`.

    Raises `SourceError` for a damaged archive and for a hard link whose earlier file is missing, or whose
    copy exceeds the limits; and, before anything is written, for members that together exceed the limits, or
    whose path leads out of the archive. Symbolic links that lead out, all links in a zip, and special files
    are left out.
    """
    into.mkdir(parents=True)
    room = _Room(archive, most_bytes, most_files)
    try:
        with archive.open("rb") as file:
            if zipfile.is_zipfile(archive):
                _unpack_zip(file, into, room)
            else:
                _unpack_tar(file, into, room)
    except ArchiveError as error:
        raise SourceError(f"{archive.name} {error}.") from error
    except OSError as error:
        raise SourceError(f"{archive.name} can't be unpacked: {cause(error)}.") from error
    entries = list(into.iterdir())
    if len(entries) != 1:
        return into
    if entries[0].is_dir() and not entries[0].is_symlink():
        return entries[0]
    return into


def _unpack_tar(file: BinaryIO, into: Path, room: _Room) -> None:
    archive = room.archive
    # Names and sizes are checked before the first member is written. The targets of hard links are checked
    # later, because they must already exist.
    with opened_tar(file, room.bounds) as opened:
        for member in opened:
            _inside(archive, member.name)
            room.take(member.size)
    links: list[tuple[str, str]] = []
    files = _Files(into)
    file.seek(0)
    with opened_tar(file, room.bounds) as opened:
        for member in opened:
            path = _inside(archive, member.name)
            if member.isdir():
                files.folder(path)
            elif member.issym():
                links.append((path, member.linkname))
            elif member.islnk():
                files.copy(_inside(archive, member.linkname), path, room)
            elif member.isfile():
                with opened.content(member) as source, files.create(path) as made:
                    shutil.copyfileobj(source, made)
                (into / path).chmod(0o755 if member.mode & 0o100 else 0o644)
    # Links come last, so that no file is written through a link.
    _make_links(into, links)


def _unpack_zip(file: BinaryIO, into: Path, room: _Room) -> None:
    with opened_zip(file) as opened:
        for member in opened.infolist():
            _inside(room.archive, member.filename)
            room.take(member.file_size)
        files = _Files(into)
        for member in opened.infolist():
            path = _inside(room.archive, member.filename)
            if member.is_dir():
                files.folder(path)
            elif not stat.S_ISLNK(member.external_attr >> 16):
                with opened.open(member) as source, files.create(path) as made:
                    shutil.copyfileobj(source, made)


class _Room:
    """The numbers of bytes and files that may still be unpacked from an archive."""

    def __init__(self, archive: Path, most_bytes: int, most_files: int) -> None:
        self.archive = archive
        self.bounds = ArchiveBounds(most_bytes, most_files)
        self._bytes = most_bytes
        self._files = most_files
        self._bounds = f"{most_bytes >> 20} MiB or {most_files:,} files"

    def take(self, size: int, files: int = 1) -> None:
        """Count bytes and files. Raises `SourceError` if there is no room for them."""
        self._bytes -= size
        self._files -= files
        if self._bytes < 0 or self._files < 0:
            raise SourceError(f"{self.archive.name} is larger than {self._bounds} when unpacked.")


class _Files:
    """The files and folders that are created below one folder."""

    def __init__(self, into: Path) -> None:
        self._into = into
        self._made = {""}

    def folder(self, path: str) -> None:
        """Create a folder and those above it, if they do not exist."""
        if path not in self._made:
            (self._into / path).mkdir(parents=True, exist_ok=True)
            self._made.add(path)

    def create(self, path: str) -> BinaryIO:
        """Create an empty file and return it opened; it replaces the file of an earlier member."""
        self.folder(posixpath.dirname(path))
        place = self._into / path
        # `xb` opens no existing file and follows no link, so an earlier member at this path is removed.
        place.unlink(missing_ok=True)
        return place.open("xb")

    def copy(self, source: str, path: str, room: _Room) -> None:
        """Create a hard link, as a copy of the existing file, since either may be changed later.

        Raises `SourceError` if there is no such file before the link, or no room for the copy.
        """
        there = self._into / source
        # A hard link to a link would copy its target, perhaps from outside.
        if there.is_symlink() or not there.is_file():
            raise SourceError(
                f"{room.archive.name} contains a hard link to {source[:200]!r}, which is not an"
                " earlier file in it."
            )
        if source != path:
            room.take(there.stat().st_size, files=0)
            self.create(path).close()
            shutil.copy(there, self._into / path)


def _make_links(into: Path, links: list[tuple[str, str]]) -> None:
    """Create an archive's links, except those that lead out of `into` or whose path is already taken."""
    for path, target in links:
        place = into / path
        aimed = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        leads_out = target.startswith("/") or aimed.startswith("..")
        is_taken = place.exists() or place.is_symlink()
        if leads_out or is_taken:
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)
    # Checked again once all exist, because several harmless links may together lead out.
    for path, _ in links:
        place = into / path
        if place.is_symlink() and not lies_in(place, into):
            place.unlink()


def _inside(archive: Path, name: str) -> str:
    """Return a member's normalised path. Raises `SourceError` if it may lead out of the archive."""
    normal = posixpath.normpath(name)
    is_odd = not name or "\0" in name or "\\" in name
    if is_odd or normal.startswith(("/", "..")):
        raise SourceError(f"{archive.name} contains the path {name[:200]!r}, which leads out of it.")
    return normal
