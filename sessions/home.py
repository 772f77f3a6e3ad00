"""Checks whether this version of gistpoint can use the user's home, by the mark of the version that made it.

A mark with a later version keeps an older program from writing files that a newer one no longer understands,
or from showing only part of the home. Homes without a mark are used, and marked (decision 177).
"""

from __future__ import annotations

import errno
import json
import os
from contextlib import suppress
from pathlib import Path
from stat import S_ISDIR

from gistpoint.core.errors import UserError, cause
from gistpoint.core.locations import Locations, OddFileError, read_regular

MARK = "home.json"
"""The name of the mark, in the data folder."""
VERSION = 1
"""The version of the home that this program writes. Raise it if earlier programs must not use a new home."""
_KIND = "gistpoint.home"
_LARGEST = 1 << 12


class HomeError(UserError):
    """The home can't be used; the message names the folder."""


def require_usable(locations: Locations, program: str) -> None:
    """Raise `HomeError` if the folders can't be used, or if their mark is damaged or of a newer version.

    A home without a mark gets one, with the version of the `program`, if its data folder exists.
    """
    for folder in locations:
        _require_folder(folder)
    mark = locations.data / MARK
    try:
        data = read_regular(mark, _LARGEST)
    except FileNotFoundError:
        write_mark(locations, program)
        return
    except OddFileError:
        data = b""  # no version writes such a mark so far
    except OSError as error:
        raise HomeError(f"{mark} can't be read: {cause(error)}.", hint=_WAY_OUT) from error
    require_known(data, str(locations.data), program)


_WAY_OUT = "Set GISTPOINT_HOME to a folder that you can use."


def _require_folder(folder: Path) -> None:
    """Raise `HomeError` if a path exists but is not a folder, or can't be examined."""
    try:
        if not S_ISDIR(folder.stat().st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    except FileNotFoundError:
        return
    except OSError as error:
        raise HomeError(f"{folder} can't be used: {cause(error)}.", hint=_WAY_OUT) from error


def require_known(mark: bytes, where: str, program: str) -> None:
    """Raise `HomeError` unless this version knows the version in a mark; `where` names the marked home.

    A mark that can't be decoded counts as one of a newer version.
    """
    try:
        found = json.loads(mark)
        version, writer = found["version"], str(found.get("program", "unknown"))[:20]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        version, writer = None, "unknown"
    if type(version) is int and version <= VERSION:
        return
    if version is None:
        raise HomeError(
            f"The mark of {where} ({MARK}) is damaged, or a newer gistpoint wrote it in another form.",
            hint=f"If no newer version was used here, delete {MARK} in the data folder. Nothing was changed.",
        )
    raise HomeError(
        f"{where} was written by a newer gistpoint ({writer}), and this is version {program}, which would"
        " not understand everything in it.",
        hint=(
            "Install that version or a later one, or set GISTPOINT_HOME to another folder. Nothing was"
            " changed."
        ),
    )


def write_mark(locations: Locations, program: str) -> None:
    """Mark the home with this program's version, if its data folder exists and can be written."""
    from gistpoint.core.logs import create_file

    if locations.data.is_dir():
        with suppress(OSError):
            create_file(locations.data / MARK, mark_of(program))


def mark_of(program: str) -> bytes:
    """Return the content of the mark."""
    return json.dumps({"format": _KIND, "version": VERSION, "program": program}).encode() + b"\n"
