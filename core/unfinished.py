"""Makes files and folders under hidden names, and removes those that killed processes left behind.

The name contains a mark of the writer: its machine and its process. Files of running processes on this
machine are never removed. Housekeeping removes files of other machines after a day.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

_MARKED = re.compile(
    r"\.(?:.*[.-])?gp(?P<host>[0-9a-f]{6})-(?P<process>\d{1,10})(?:-[^/]*)?(?:\.part)?", re.DOTALL
)
"""A hidden name with a mark, whose first letters distinguish it from dates and times in users' own names."""
OLD_S = 24 * 3600.0
"""The age, in seconds, after which this user's unfinished files and folders are leftovers."""
SCRATCH = "gistpoint-"
"""The beginning of the names of temporary folders."""


def mark() -> str:
    """Return the mark of this process: a hash of the machine's name, and the process's number."""
    return f"gp{_machine()}-{os.getpid()}"


def part_of(target: Path) -> Path:
    """Return the hidden name under which this process makes a file or folder."""
    return target.with_name(f".{target.name[:200]}.{mark()}.part")


def remove_abandoned(target: Path) -> None:
    """Remove what killed processes on this machine left while making a file or folder of this name."""
    beginning = f".{target.name[:200]}."
    _remove(
        path for path in _entries(target.parent) if path.name.startswith(beginning) and path.suffix == ".part"
    )


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """Yield a folder that becomes `target` at the end; nothing is left after an error.

    `target` may be an empty folder. What killed processes left behind is removed first. An `OSError` names
    the target instead of the hidden folder.
    """
    part = part_of(target.absolute())
    try:
        target.absolute().parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned(target.absolute())
        part.mkdir()  # fails if another thread is making the same target
        try:
            yield part
            part.rename(target)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        if error.filename is None or str(error.filename).startswith(str(part)):
            error.filename = str(target)
        raise


def made_in(folder: Path, what: str) -> Path:
    """Create a hidden folder in a folder, and return it; `what` is a word for its purpose, such as `making`.

    What killed processes left there for the same purpose is removed first.
    """
    remove_unfinished(folder, what)
    return Path(tempfile.mkdtemp(prefix=f".{what}-{mark()}-", dir=folder))


def remove_unfinished(folder: Path, what: str) -> None:
    """Remove the hidden folders that killed processes made in a folder for a purpose (see `made_in`)."""
    _remove(path for path in _entries(folder) if path.name.startswith(f".{what}-"))


@contextmanager
def scratch_folder(what: str, below: Path | None = None) -> Iterator[str]:
    """Yield the path of a temporary folder that is removed at the end; `what` is a word for its purpose.

    What killed processes left for the same purpose is removed first.
    """
    place = below or Path(tempfile.gettempdir())
    beginning = f"{SCRATCH}{what}-"
    _remove(path for path in _entries(place) if path.name.startswith(beginning))
    with tempfile.TemporaryDirectory(
        prefix=f"{beginning}{mark()}-", dir=below, ignore_cleanup_errors=True
    ) as name:
        yield name


def leftovers_below(roots: Iterable[Path]) -> list[Path]:
    """Return this user's unfinished files and folders below `roots` that are older than `OLD_S`.

    Those of processes that run on this machine are left out.
    """
    found = []
    for root in roots:
        for place, folders, files in os.walk(root):
            here = Path(place)
            left = [here / name for name in (*folders, *files) if _process_of(name) is not None]
            old = [path for path in left if _is_old(path) and not _is_made_by(path, running=True)]
            folders[:] = [name for name in folders if here / name not in old]
            found += old
    return found


def scratch_leftovers() -> list[Path]:
    """Return this user's temporary folders of killed processes, and those older than `OLD_S`.

    Those of processes that run on this machine are left out.
    """
    entries = _entries(Path(tempfile.gettempdir()))
    marked = [path for path in entries if path.name.startswith(SCRATCH) and _process_of(f".{path.name}")]
    return [
        path
        for path in marked
        if _is_abandoned(path) or (_is_old(path) and not _is_made_by(path, running=True))
    ]


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        if _is_abandoned(path):
            remove_whole(path)


def remove_whole(path: Path) -> None:
    """Remove a file or a folder, as far as possible."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _entries(folder: Path) -> list[Path]:
    with suppress(OSError):
        return list(folder.iterdir())
    return []


def _process_of(name: str) -> tuple[str, int] | None:
    """Return the machine and process in a name with a mark; None without one."""
    found = _MARKED.fullmatch(name)
    return None if found is None else (found["host"], int(found["process"]))


def _is_abandoned(path: Path) -> bool:
    return _is_made_by(path, running=False) and _is_own(path)


def _is_made_by(path: Path, *, running: bool) -> bool:
    """Return whether a path is marked by a process of this machine whose running state is as requested."""
    writer = _process_of(path.name if path.name.startswith(".") else f".{path.name}")
    return writer is not None and writer[0] == _machine() and is_running(writer[1]) is running


def _is_old(path: Path) -> bool:
    with suppress(OSError):
        return _is_own(path) and time.time() - path.lstat().st_mtime > OLD_S
    return False


def _is_own(path: Path) -> bool:
    with suppress(OSError):
        return path.lstat().st_uid == os.geteuid()
    return False


def is_running(process: int) -> bool:
    """Return whether a process on this machine is alive, whoever owns it."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # it is another user's
    return True


@cache
def _machine() -> str:
    names = [os.uname().nodename]
    with suppress(OSError):  # containers with one host name do not see each other's processes
        names.append(os.readlink("/proc/self/ns/pid"))  # noqa: PTH115 - it is no path
    return hashlib.sha256(" ".join(names).encode()).hexdigest()[:6]
