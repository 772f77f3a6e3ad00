"""The sentences for failures of the machine: full disks, missing rights and programs, limits, closed streams.

They are made in one place, for commands and screens, from the number that the system gave (decision 178).
Every other exception is a bug.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gistpoint.core.errors import UserError
from gistpoint.core.locations import Locations, OddFileError
from gistpoint.tui import signs

_NEARLY_FULL = 1 << 16
"""The free bytes below which a file system counts as full."""

_BUGS = frozenset({errno.EBADF, errno.EFAULT, errno.EINVAL, errno.ECHILD, errno.ESRCH, errno.EDOM})
"""Error numbers that only an incorrect system call gives."""

_ELSEWHERE = "Change its rights, or set GISTPOINT_HOME to a folder in which you can write."
_FREE = (
    "Free some space: `gistpoint admin cache` lists what the cache holds, and `admin clean` empties it."
    " GISTPOINT_HOME moves gistpoint's folders."
)
_HINTS = {
    errno.ENOSPC: _FREE,
    errno.EDQUOT: _FREE,
    errno.EACCES: _ELSEWHERE,
    errno.EPERM: _ELSEWHERE,
    errno.EROFS: _ELSEWHERE,
    errno.ENOTDIR: "Name another place, or set GISTPOINT_HOME to a folder.",
    errno.ENOENT: "Check that it exists, or set GISTPOINT_HOME to a folder that can be made.",
    errno.EFBIG: "Raise the limit of a file's size (`ulimit -f`).",
    errno.EMFILE: "Raise the limit of open files, such as with `ulimit -n 1024`.",
    errno.ENFILE: "Close other programs: the machine has no more open files.",
    errno.EAGAIN: "Raise the limit of processes (`ulimit -u`), or end other programs.",
    errno.ENOMEM: "End other programs, or raise the limit of memory (`ulimit -v`).",
    errno.EIO: "Check the disk: the system could not read or write it. What was saved before is kept.",
    errno.ENOEXEC: "Install the program again for this machine.",
    errno.ENAMETOOLONG: "Choose a shorter name or place.",
}
_OTHERWISE = "Check the file, its folder and its disk, then repeat the command."
STANDARD_OUTPUT = "Standard output"
"""The name that errors of writing to standard output give it."""
_OF_OUTPUT = {
    errno.ENOSPC: "Free some space where it is written, or send it elsewhere, such as with `> FILE`.",
    errno.EDQUOT: "Free some space where it is written, or send it elsewhere, such as with `> FILE`.",
    errno.EFBIG: _HINTS[errno.EFBIG],
}
_OUTPUT_ELSEWHERE = "Send it elsewhere, such as to a file with `> FILE`."
_LIMITS = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM})
"""Error numbers that concern the whole process or machine, not one file."""


def machine_error(error: BaseException) -> UserError | None:
    """Return an error with a hint for a failure of the machine; None for any other exception."""
    if isinstance(error, MemoryError):
        return UserError("There is not enough memory.", hint=_HINTS[errno.ENOMEM])
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return UserError("The system refuses to start a thread.", hint=_HINTS[errno.EAGAIN])
    if isinstance(error, OddFileError):
        return UserError(f"{error.filename} can't be used: {error.strerror}.")
    if not isinstance(error, OSError) or error.errno is None or error.errno in _BUGS:
        return None
    if isinstance(error, BrokenPipeError) and error.filename is None:
        return UserError(
            "A program or connection that gistpoint wrote to has ended.", hint="Repeat the command."
        )
    hint = _HINTS.get(error.errno, _OTHERWISE)
    # The file that could not be opened is not the cause: any other would have failed too.
    if error.errno in _LIMITS:
        named = f" ({error.filename})" if error.filename else ""
        return UserError(f"The system refuses more: {error.strerror}{named}.", hint=hint)
    if error.errno == errno.ENOENT:
        return _missing(error, hint)
    what = error.filename if error.filename is not None else _unnamed(error.errno)
    if what == STANDARD_OUTPUT:
        hint = _OF_OUTPUT.get(error.errno, _OUTPUT_ELSEWHERE)
    return UserError(f"{_spelled(what)} can't be used: {error.strerror}.", hint=hint)


class CrashReport(NamedTuple):
    """The title, text and hint of the dialog about an unexpected exception."""

    title: str
    text: str
    hint: str


def crash_report(error: BaseException, more: str) -> CrashReport:
    """Return the report on an exception; `more` is the paragraph after the description."""
    found = machine_error(error)
    if found is None:
        what = f"{type(error).__name__}: {str(error)[:500]}"
        return CrashReport(
            "Something unexpected happened", f"{what}\n\n{more}", "This is a bug in gistpoint."
        )
    return CrashReport(
        "The system reported an error", f"{found}\n\n{more}", "Your work up to the failed action is kept."
    )


def _missing(error: OSError, hint: str) -> UserError:
    """Return the sentence about a missing program, folder or file."""
    try:
        Path.cwd()
    except OSError:
        return UserError("The current folder no longer exists.", hint="Change to another folder with `cd`.")
    name = _spelled(error.filename if error.filename is not None else "A file")
    if error.filename is not None and os.sep not in name and not os.path.lexists(name):
        return UserError(
            f"{name} was not found.", hint="If it is a program, install it, or add its folder to PATH."
        )
    return UserError(f"{name} can't be used: {error.strerror}.", hint=hint)


def _spelled(name: object) -> str:
    return os.fsdecode(name) if isinstance(name, str | bytes) else str(name)


def _unnamed(number: int) -> str:
    """Return what may have failed if the error does not name it: standard output, full disks, or a file.

    Errors of standard output name it, except those of a stream that has replaced it.
    """
    if not _is_writable(sys.stdout):
        return STANDARD_OUTPUT
    full = list(dict.fromkeys(_full_places())) if number in (errno.ENOSPC, errno.EDQUOT) else []
    return ", ".join(full) or f"A file in {Locations.of_user().data} or {temporary_folder()}"


def _is_writable(stream: object) -> bool:
    try:
        getattr(stream, "flush", bool)()
    except (OSError, ValueError):
        return False
    return True


def temporary_folder() -> Path:
    """Return the folder of temporary files; the first candidate if none can be written."""
    import tempfile  # the help must not wait for it

    try:
        return Path(tempfile.gettempdir())
    except OSError:
        return Path(os.environ.get("TMPDIR", "/tmp"))


def _full_places() -> Iterator[str]:
    """Yield those of gistpoint's folders, the current one and the temporary one that are on a full disk."""
    for place in (*Locations.of_user(), Path(), temporary_folder()):
        with suppress(OSError):
            found = next(path for path in (place, *place.absolute().parents) if path.exists())
            disk = os.statvfs(found)
            if disk.f_bavail * disk.f_frsize < _NEARLY_FULL:
                yield str(place.absolute())


def require_drawable() -> None:
    """Raise `UserError` if the terminal's encoding does not have the characters of the screens."""
    if os.environ.get("TEXTUAL_DRIVER"):
        return
    encoding = sys.stdout.encoding or "ascii"
    try:
        signs.GOOD.encode(encoding)
    except UnicodeEncodeError as error:
        raise UserError(
            f"The screens need a terminal with UTF-8, and this one is set to {encoding}.",
            hint="Set LANG=C.UTF-8 without PYTHONIOENCODING. Commands that print work as they are.",
        ) from error
