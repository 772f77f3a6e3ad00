"""Packs tasks reproducibly as single `.tar.zst` files, and unpacks them without trusting their content."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from gistpoint.core.archives import ArchiveBounds, ArchiveError, opened_tar
from gistpoint.core.confirmation.controls import (
    CONTROLS_FILE,
    controls_of_here,
    read_controls,
    write_controls,
)
from gistpoint.core.confirmation.model import NOT_CONTROLLED
from gistpoint.core.errors import TaskError, cause
from gistpoint.core.kinds.folder import compare, read_task
from gistpoint.core.locations import opened_regular, read_regular
from gistpoint.core.logs import naming
from gistpoint.core.tasks.documents import ANSWER_FILE, TASK_FILE, basis_of, read_baseline, write_baseline
from gistpoint.core.tasks.entered import ENTERED_FILE
from gistpoint.core.tasks.model import CANARY, Task
from gistpoint.core.unfinished import made_in

MAX_BYTES = 2 * 1024**3
"""The maximum number of bytes in an unpacked task; an archive that unpacks to more is refused."""
MAX_MEMBERS = 1_000
_PIECE = 1 << 20
PUBLIC_FILES = (TASK_FILE, "workspace/tree.tar")
_MEMBER = re.compile(
    r"task\.toml|workspace/tree\.tar|answer/(answer|controls|entered)\.json|answer/baselines/[A-Za-z0-9][\w.-]*\.json"
)


def pack_task(folder: Path, archive: Path, *, with_answer: bool = True) -> None:
    """Pack a task's folder into `archive`. Submissions can't be scored without the answer."""
    names = [*PUBLIC_FILES]
    if with_answer:
        baselines = folder.glob("answer/baselines/*.json")
        names += [ANSWER_FILE, *sorted(path.relative_to(folder).as_posix() for path in baselines)]
        names += [name for name in (ENTERED_FILE, CONTROLS_FILE) if (folder / name).is_file()]
    pack_files(folder, names, archive, level=19)


def pack_files(folder: Path, names: Sequence[str], archive: Path, *, level: int) -> None:
    """Pack the files `names` of a task's folder into `archive`, with zstd's compression level `level`.

    Raises `OSError` for a file that can't be read or written, or that is too large.
    """
    import zstandard

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:", format=tarfile.PAX_FORMAT) as tar:
        for name in names:
            info = tarfile.TarInfo(name)
            data = read_regular(folder / name, MAX_BYTES)
            info.size = len(data)
            info.mode = 0o644
            tar.addfile(info, io.BytesIO(data))
    archive.write_bytes(zstandard.ZstdCompressor(level=level).compress(buffer.getvalue()))


def unpack_task(
    archive: Path,
    into: Path,
    *others: Path,
    known: Sequence[Path] = (),
    note: Callable[[str], None] = lambda text: None,
    replaces: bool = False,
) -> Task:
    """Unpack an archive into a folder below `into`, named by the task's id, and return the task.

    `others` are archives with more files of the same task. A task with the same id below `into` or a folder
    of `known` is kept: `note` is called with the differences if there are any, and `TaskConflictError` is
    raised if its conditions differ. With `replaces`, the archive replaces it instead, or adds its
    measurements if the two are alike. Raises `TaskError` for an archive that is damaged or contains anything
    but the plain files of a task.
    """
    into.mkdir(parents=True, exist_ok=True)
    folder = made_in(into, "unpacking")
    try:
        for each in (archive, *others):
            _extract(each, folder)
        task = read_task(folder)
        if replaces:  # archives of gistpoint, or of the machine that sent the job, are trusted
            adopt(folder)
        place = into / task.id
        here = next(
            (root / task.id for root in (into, *known) if (root / task.id / TASK_FILE).is_file()), None
        )
        if here is None:
            with contextlib.suppress(OSError):  # another process was first
                folder.rename(place)
        elif replaces:
            _replace_if_other(here, task)
        else:
            _note_differences(read_task(here), task, archive.name, note)
        return read_task(here or place)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _note_differences(known: Task, task: Task, name: str, note: Callable[[str], None]) -> None:
    if differing := compare(known, task):
        note(
            f"{name}: {known.short_id} already exists and is kept. The new one differs in"
            f" {', '.join(differing)}."
        )


def adopt(folder: Path) -> None:
    """Let the measurements in a task's folder count as made on this machine (decision 158)."""
    for path in folder.glob("answer/baselines/*.json"):
        write_baseline(folder, read_baseline(path, None)[0])
    controls = read_controls(folder)
    if controls is not NOT_CONTROLLED:
        write_controls(folder, controls, CANARY)


def _replace_if_other(here: Path, task: Task) -> None:
    """Replace the task in `here` with `task` of the same id; if both are alike, only add measurements."""
    with contextlib.suppress(TaskError):
        if not compare(read_task(here), task):
            _copy_measured(task.folder, here)
            return
    here.rename(task.folder.with_name(f"{task.folder.name}-gone"))
    task.folder.rename(here)
    shutil.rmtree(task.folder.with_name(f"{task.folder.name}-gone"), ignore_errors=True)


def _copy_measured(folder: Path, here: Path) -> None:
    """Copy the controls and baselines of a task from a trusted source to the same task in `here`.

    Controls and baselines in `here` that this machine made itself are kept.
    """
    if (folder / CONTROLS_FILE).is_file() and controls_of_here(here) is None:
        shutil.copyfile(folder / CONTROLS_FILE, here / CONTROLS_FILE)
    for given in folder.glob("answer/baselines/*.json"):
        place = here / given.relative_to(folder)
        if not (place.is_file() and read_baseline(place, basis_of(here))[1]):
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(given, place)


def _extract(archive: Path, folder: Path) -> None:
    try:
        with (
            opened_regular(archive) as file,
            opened_tar(file, ArchiveBounds(MAX_BYTES, MAX_MEMBERS)) as tar,
        ):
            for info in tar:
                if not info.isfile() or not _MEMBER.fullmatch(info.name):
                    raise TaskError(
                        f"{archive.name} contains {info.name[:200]!r}, which is not a file of a task."
                    )
                _write(folder / info.name, tar.content(info))
    except ArchiveError as error:
        raise TaskError(f"{archive.name} {error}.") from error
    except OSError as error:
        if isinstance(error.filename, str) and Path(error.filename).is_relative_to(folder):
            error.filename = str(folder.parent)  # the user does not know about the hidden folder
            raise
        raise TaskError(f"{archive.name} can't be read: {cause(error)}.") from error


def _write(target: Path, source: IO[bytes]) -> None:
    """Write a file. Errors name the file if writing fails, but not if reading fails."""
    with naming(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        file = target.open("wb")
    with file:
        while piece := source.read(_PIECE):
            with naming(target):
                file.write(piece)
        with naming(target):
            file.flush()
