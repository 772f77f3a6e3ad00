"""Wheels that a build handed out: looked at before anything else reads them, since whoever built them wrote them."""

from __future__ import annotations

import posixpath
import stat
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

from packaging.requirements import InvalidRequirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from gistpoint.core.errors import EnvironmentBuildError
from gistpoint.core.pins import quoted
from gistpoint.sandbox.environments.requirement import applies, named_requirement, requirement_of
from gistpoint.sandbox.environments.uv import KnownMetadata

MOST_BYTES = 128 << 20
"""Largest wheel that a build may hand out."""
MOST_METADATA = 4 << 20
_MOST_UNPACKED = 1 << 30
_MOST_FILES = 100_000
_MANY = ("Requires-Dist", "Dynamic", "Provides-Extra")
_ONE = ("Metadata-Version", "Name", "Version", "Requires-Python")

Metadata = Mapping[str, str | list[str]]
"""The headers of a `METADATA` or `PKG-INFO` that matter for pinning, by name."""


@dataclass(frozen=True, slots=True)
class BuiltWheel:
    """A wheel made here, and the sha256 of the sdist that it was made from."""

    path: Path
    metadata: KnownMetadata
    sdist: str


def read_metadata(text: str) -> dict[str, str | list[str]]:
    """Return the headers of core metadata; a list for those that may come more than once."""
    headers = HeaderParser().parsestr(text)
    found: dict[str, str | list[str]] = {key: [str(value) for value in headers.get_all(key, [])] for key in _MANY}
    for key in _ONE:
        if headers.get(key):
            found[key] = str(headers[key])
    return found


def runtime_requirements(metadata: Metadata) -> tuple[str, ...]:
    """Return the requirements that hold without any extra."""
    return tuple(line for line in metadata.get("Requires-Dist", []) if not _is_of_extra(line))


def _is_of_extra(line: str) -> bool:
    try:
        requirement = requirement_of(line)
    except InvalidRequirement:
        return False  # refused, with the line quoted, by whoever uses it
    return "extra" in str(requirement.marker or "") and not applies(requirement, {"extra": ""})


def check_wheel(wheel: Path, name: str, version: str) -> Metadata:
    """Return the metadata of a wheel of `name` in `version`.

    Raises `EnvironmentBuildError` for a file that is no wheel of that very name and version, for paths that lead out,
    for links, for one that is larger unpacked than 1 GiB or 100,000 files, and for requirements by address.
    """
    wanted = (canonicalize_name(name), Version(version))
    try:
        built = parse_wheel_filename(wheel.name)[:2]
    except InvalidWheelFilename as error:
        raise _no_wheel(wheel, f"no name of a wheel ({error})") from error
    if built != wanted:
        raise _no_wheel(wheel, f"a wheel of {built[0]} {built[1]}, not of {name} {version}")
    try:
        with zipfile.ZipFile(wheel) as archive:
            metadata = read_metadata(_metadata_text(wheel, archive))
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise _no_wheel(wheel, f"damaged ({error})") from error
    if not _describes(metadata, wanted):
        raise _no_wheel(wheel, f"not what its metadata says: {metadata.get('Name')} {metadata.get('Version')}")
    for line in metadata["Requires-Dist"]:
        named_requirement(line)
    return metadata


def _metadata_text(wheel: Path, archive: zipfile.ZipFile) -> str:
    members = archive.infolist()
    if len(members) > _MOST_FILES or sum(member.file_size for member in members) > _MOST_UNPACKED:
        raise _no_wheel(wheel, f"larger unpacked than {_MOST_UNPACKED >> 20} MiB or {_MOST_FILES:,} files")
    for member in members:
        path = posixpath.normpath(member.filename)
        out = path.startswith(("/", "..")) or "\\" in member.filename or "\0" in member.orig_filename
        if out or stat.S_ISLNK(member.external_attr >> 16):
            raise _no_wheel(wheel, f"no archive to unpack: it holds {member.filename[:200]!r}")
    found = [m for m in members if m.filename.count("/") == 1 and m.filename.endswith(".dist-info/METADATA")]
    if len(found) != 1 or found[0].file_size > MOST_METADATA:
        raise _no_wheel(wheel, "without metadata of its own")
    with archive.open(found[0]) as file:
        return file.read(MOST_METADATA).decode("utf-8", "replace")


def _describes(metadata: Metadata, wanted: tuple[str, Version]) -> bool:
    name, version = metadata.get("Name", ""), metadata.get("Version", "")
    try:
        return (canonicalize_name(str(name)), Version(str(version))) == wanted
    except InvalidVersion:
        return False


def _no_wheel(wheel: Path, what: str) -> EnvironmentBuildError:
    return EnvironmentBuildError(f"The build handed out {quoted(wheel.name)}, which is {what}.")
