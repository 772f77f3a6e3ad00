"""Folders of runs: trees laid out as files, locked while in use, removed afterwards."""

from __future__ import annotations

import contextlib
import os
import posixpath
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from gistpoint.core.errors import TaskError
from gistpoint.core.logs import NoLocksError, is_held, take, wait_for
from gistpoint.core.trees import SourceTree

_PREFIX = "gistpoint-run-"
_YOUNG_S = 60.0


@contextlib.contextmanager
def run_folder() -> Iterator[Path]:
    """Create a folder that everyone may read, lock it while it is in use, and remove it afterwards."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
    with wait_for(os.open(folder, os.O_RDONLY | os.O_DIRECTORY)):
        try:
            folder.chmod(0o755)
            yield folder
        finally:
            _remove(folder)


def leftovers() -> tuple[Path, ...]:
    """Return the folders of runs whose program is gone, according to their locks."""
    return tuple(_unlocked())


def remove_leftovers() -> int:
    """Remove the folders of runs whose program is gone, and return how many there were."""
    removed = 0
    for folder in _unlocked():
        _remove(folder)
        removed += 1
    return removed


def _unlocked() -> Iterator[Path]:
    """Yield unlocked folders, each locked until the next one is asked for.

    Folders younger than a minute are skipped: they may be about to be locked.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError, NoLocksError):
            stat = folder.lstat()
            if stat.st_uid != os.geteuid() or time.time() - stat.st_mtime < _YOUNG_S or is_held(folder):
                continue
            lock = take(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW))
            if lock is not None:
                with lock:
                    yield folder


def _remove(folder: Path) -> None:
    """Remove a folder, even if the tested code removed permissions from folders in it."""
    with contextlib.suppress(OSError):
        folder.chmod(0o700)
    for place, names, _ in os.walk(folder):
        for name in names:
            path = Path(place, name)
            if not path.is_symlink():
                with contextlib.suppress(OSError):
                    path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def lay_out(tree: SourceTree, folder: Path) -> None:
    """Write the files and inner links of `tree` below `folder`, which must be empty or missing.

    Modes are 0755 and 0644, whatever the user's mask is, because another user may run the code. Links that lead out
    of the tree, and special files, are left out. Raises `TaskError` for a path that is file and folder at once.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    made = {""}
    try:
        for path in tree.files():
            _folders(folder, posixpath.dirname(path), made)
            _write(folder / path, tree.read(path), executable=path in tree.members and tree.members[path].executable)
        links = {path: m.link for path, m in tree.members.items() if m.link and path not in tree.overlay}
        for path in sorted(links):
            _folders(folder, posixpath.dirname(path), made)
            with contextlib.suppress(FileExistsError):
                (folder / path).symlink_to(links[path])
    except (NotADirectoryError, IsADirectoryError, FileExistsError) as error:
        raise TaskError(f"{tree.tar.name} holds {error.filename} as a file and as a folder.") from error
    _cut_links_out(folder, links)


def _folders(root: Path, path: str, made: set[str]) -> None:
    if path in made:
        return
    _folders(root, posixpath.dirname(path), made)
    target = root / path
    target.mkdir()
    target.chmod(0o755)
    made.add(path)


def _write(path: Path, data: bytes, *, executable: bool) -> None:
    mode = 0o755 if executable else 0o644
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        os.fchmod(file.fileno(), mode)


def _cut_links_out(folder: Path, links: Iterable[str]) -> None:
    """Remove links that lead out, as resolved by the file system: their text alone can deceive."""
    root = folder.resolve()
    while out := [path for path in links if (folder / path).is_symlink() and not _leads_inside(folder / path, root)]:
        for path in out:
            (folder / path).unlink()


def _leads_inside(link: Path, root: Path) -> bool:
    try:
        return not link.readlink().is_absolute() and link.resolve().is_relative_to(root)
    except (OSError, RuntimeError):
        return False
