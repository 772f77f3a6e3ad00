"""Lays out the files of a run (its folder, the tree, the control folder) and makes its environment variables.

Runs of suites, recordings, warm processes and gists share this code, and name the files that they need
(decision 65).
"""

from __future__ import annotations

import contextlib
import functools
import json
import marshal
import os
import posixpath
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path
from typing import TYPE_CHECKING

import gistpoint.sandbox.payload
from gistpoint.core.errors import TaskError
from gistpoint.core.locations import lies_in
from gistpoint.core.logs import NoLocksError, is_held, take, wait_for
from gistpoint.core.trees import SourceTree

if TYPE_CHECKING:
    from gistpoint.core.pins import EnvironmentPins

RESULTS_PLUGIN = "results_plugin.py"
RUN_WATCH = "run_watch.py"
_BUILD_STEPS = "build_steps.py"
_SAFE = re.compile(r"[^A-Za-z0-9._+!-]")
_PAYLOAD = Path(gistpoint.sandbox.payload.__file__).parent
_PREFIX = "gistpoint-run-"
_YOUNG_S = 60.0


@dataclass(frozen=True, slots=True)
class MountPaths:
    """The paths of a run as the command sees them."""

    workspace: str
    python: str
    home: str
    temporary: str
    folders: Mapping[str, str]
    results_fd: int


@contextlib.contextmanager
def run_folder() -> Iterator[Path]:
    """Create and yield a folder that everyone may read, locked while it is in use; remove it afterwards."""
    # The lock ends with the process, however it dies, so that `leftovers` can recognise dead runs.
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
    with wait_for(os.open(folder, os.O_RDONLY | os.O_DIRECTORY)):
        try:
            folder.chmod(0o755)
            yield folder
        finally:
            _remove(folder)


def leftovers() -> tuple[Path, ...]:
    """Return this user's run folders whose program is gone, as their locks show.

    Folders younger than a minute are left out.
    """
    return tuple(_unlocked())


def remove_leftovers() -> int:
    """Remove the folders that `leftovers` returns, and return their number."""
    removed = 0
    for folder in _unlocked():
        _remove(folder)
        removed += 1
    return removed


def _unlocked() -> Iterator[Path]:
    """Yield this user's unlocked folders of runs, each locked until the next folder is requested.

    Folders younger than a minute are skipped, because they may be about to be locked.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError, NoLocksError):
            stat = folder.lstat()
            is_young = time.time() - stat.st_mtime < _YOUNG_S
            if stat.st_uid != os.geteuid() or is_young or is_held(folder):
                continue
            # The folder's program may lock it between the check and this line: only the lock decides.
            lock = take(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW))
            if lock is not None:
                with lock:
                    yield folder


def _remove(folder: Path) -> None:
    """Remove a folder as far as possible, even if the tested code has removed permissions in it.

    Errors are ignored.
    """
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
    """Write the files and inner links of `tree` below `folder`, which must be empty or not exist.

    The modes are 0755 and 0644, whatever the user's mask is, because another user may run the code. Links
    that lead out of the tree, and special files, are left out. Raises `TaskError` for a path that is both a
    file and a folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    made = {""}
    try:
        # Files come before links, because a link could lead a later file out of the folder.
        for path in tree.files():
            _folders(folder, posixpath.dirname(path), made)
            _write(
                folder / path,
                tree.read(path),
                executable=path in tree.members and tree.members[path].executable,
            )
        links = {path: m.link for path, m in tree.members.items() if m.link and path not in tree.overlay}
        for path in sorted(links):
            _folders(folder, posixpath.dirname(path), made)
            with contextlib.suppress(FileExistsError):
                (folder / path).symlink_to(links[path])
    except (NotADirectoryError, IsADirectoryError, FileExistsError) as error:
        raise TaskError(
            f"{tree.tar.name} contains {error.filename} both as a file and as a folder."
        ) from error
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
    # With O_EXCL and O_NOFOLLOW, an existing entry such as a link is an error, and is never written through.
    mode = 0o755 if executable else 0o644
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        os.fchmod(file.fileno(), mode)


def _cut_links_out(folder: Path, links: Iterable[str]) -> None:
    """Remove links that lead out as the file system resolves them, because their text alone can deceive."""
    root = folder.resolve()
    # Repeated, because a link may lead inside only through another link, which has just been removed.
    while out := [
        path for path in links if (folder / path).is_symlink() and not _leads_inside(folder / path, root)
    ]:
        for path in out:
            (folder / path).unlink()


def _leads_inside(link: Path, root: Path) -> bool:
    try:
        return not link.readlink().is_absolute() and lies_in(link, root)
    except OSError:
        return False


def fill_control(
    folder: Path, pins: EnvironmentPins, files: Mapping[str, str], texts: Mapping[str, str] | None = None
) -> None:
    """Create and fill the control folder of a run.

    `files` maps names in the folder to files of the payload, and `texts` maps names to contents. The program
    that runs build steps, and the task's metadata, are added.
    """
    (folder / "__pycache__").mkdir(parents=True)
    for name, file in {**files, _BUILD_STEPS: _BUILD_STEPS}.items():
        shutil.copyfile(_PAYLOAD / file, folder / name)
        # Runs write no bytecode, so each would compile these files again (decision 145).
        cached = f"{Path(name).stem}.{sys.implementation.cache_tag}.pyc"
        (folder / "__pycache__" / cached).write_bytes(_bytecode(file))
    for name, text in (texts or {}).items():
        (folder / name).write_text(text, "utf-8")
    if pins.metadata:
        write_metadata(folder / "metadata", pins.metadata)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


@functools.cache
def _bytecode(file: str) -> bytes:
    """Return a file of the payload as this Python compiles it, in the form of a `.pyc` file (PEP 552).

    An interpreter of another version ignores it. The form with an unchecked hash is valid for every copy of
    the file, whatever its modification time.
    """
    source = _PAYLOAD / file
    code = SourceFileLoader(source.stem, str(source)).get_code(source.stem)
    unchecked_hash = (1).to_bytes(4, "little")
    return MAGIC_NUMBER + unchecked_hash + source_hash(source.read_bytes()) + marshal.dumps(code)


def write_metadata(folder: Path, metadata: Mapping[str, str]) -> None:
    """Write `NAME-VERSION.dist-info` below `folder`, with the entry points if there are any.

    `metadata` has the keys `name`, `version` and, optionally, `entry_points`.
    """
    name = _SAFE.sub("_", metadata.get("name", "unknown"))
    version = _SAFE.sub("_", metadata.get("version", "0"))
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "utf-8")
    if metadata.get("entry_points"):
        (info / "entry_points.txt").write_text(metadata["entry_points"], "utf-8")


def after_build_steps(places: MountPaths, pins: EnvironmentPins, arguments: Sequence[str]) -> list[str]:
    """Return the command line that runs the task's build steps, if any, and then becomes `arguments`."""
    if not pins.build_steps:
        return [*arguments]
    program = f"{places.folders['control']}/{_BUILD_STEPS}"
    return [places.python, "-I", program, json.dumps(pins.build_steps), *arguments]


def roots_in(place: str, pins: EnvironmentPins) -> list[str]:
    """Return the folders below `place` from which the repository's packages are imported."""
    return [posixpath.normpath(f"{place}/{root}") for root in pins.import_roots]


def plain_environment(places: MountPaths, hash_seed: int) -> dict[str, str]:
    """Return the environment variables of every run, by name."""
    return {
        "PATH": os.pathsep.join((posixpath.dirname(places.python), "/usr/local/bin", "/usr/bin", "/bin")),
        "HOME": places.home,
        "TMPDIR": places.temporary,
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "COLUMNS": "120",
        "PYTHONHASHSEED": str(hash_seed),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
    }


def reporting_environment(places: MountPaths, hash_seed: int, importable: Iterable[str]) -> dict[str, str]:
    """Return the environment variables of a run that reports over the pipe, by name.

    The import path consists of the folders in `importable` and the folder with the metadata.
    """
    metadata = f"{places.folders['control']}/metadata"
    return {
        **plain_environment(places, hash_seed),
        "PYTHONPATH": os.pathsep.join((*importable, metadata)),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "GISTPOINT_ROOT": places.workspace,
        "GISTPOINT_RESULTS": str(places.results_fd),
    }
