"""A study as an archive, without people's data: its declaration, texts, tasks, gists and models' runs."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from gistpoint.core.archives import ArchiveBounds, ArchiveError, opened_tar
from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.errors import cause
from gistpoint.core.study.operations import StudyError
from gistpoint.core.study.reading import FILE, TEXTS
from gistpoint.core.trees import sha256_of
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.help_gists import FOLDER as HELP
from gistpoint.sessions.studies.solvers import FILE_OF_MAP, paths_of_runs
from gistpoint.sessions.studies.tasks import ARCHIVE

MAX_BYTES = 8 * 1024**3
"""The maximum number of bytes in an archive, unpacked."""
MAX_MEMBERS = 100_000
_NOT_DECLARATION = frozenset({"log", "attempts", "reviews", "private", "team.toml", "report.html"})
"""The names in a study's folder that are never in an archive of it."""
_LEVEL = 9


def files_of(study: StudyFolder) -> dict[str, Path]:
    """Return the files of a study's declaration and of its models' runs, by their paths in its folder.

    Raises `StudyError` if a file is a link, or if a task or a run is outside the folder, because other
    machines would not have it.
    """
    root, tasks = study.root.resolve(), (study.root / study.study.tasks).resolve()
    found = {FILE: root / FILE}
    places = [root / TEXTS, root / HELP, tasks]
    for identity, named in study.read.folders.items():
        folder = named.resolve()
        if folder.is_relative_to(root):
            places.append(folder)
        elif not (study.comes_with_program(named) or tasks.is_dir() or tasks.name.endswith(ARCHIVE)):
            raise StudyError(
                f"Task {identity[:12]} is not in the study's folder, so other machines would not have it.",
                hint="Put its archive (`gistpoint task export`) into a folder `tasks` next to study.toml.",
            )
    for place in places:
        if not place.is_relative_to(root):
            raise StudyError(
                f"study.toml: the key 'tasks' names {study.study.tasks!r}, which is outside of the study's"
                " folder.",
                hint="Copy the tasks into the folder.",
            )
    for place in (*places, *_of_models(study, root)):
        for path in _within(place):
            found[path.relative_to(root).as_posix()] = path
    return dict(sorted(found.items()))


def _of_models(study: StudyFolder, root: Path) -> Iterator[Path]:
    """Yield the runs of the declared models, and the maps from runs to tasks.

    Raises `StudyError` for a run outside the folder.
    """
    for solver in study.study.solver:
        found = [path for pattern in solver.runs for path in paths_of_runs(root, pattern)]
        if solver.map.startswith(FILE_OF_MAP):
            found.append(root / solver.map.removeprefix(FILE_OF_MAP))
        for path in found:
            if not path.resolve().is_relative_to(root):
                raise StudyError(
                    f"{path.name}, of the model {solver.name!r}, is outside of the study's folder, so other"
                    " machines would not have it.",
                    hint="Copy the runs into `runs` in the folder.",
                )
            yield path


def _within(place: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
    elif place.is_dir():
        for path in sorted(place.rglob("*")):
            if path.is_symlink():
                raise StudyError(
                    f"{path.name} in the study's folder is a link, which may lead to any of your files.",
                    hint="Replace it with a copy.",
                )
            if path.is_file() and not any(part.startswith(".") for part in path.relative_to(place).parts):
                yield path


def files_sha256(files: Mapping[str, Path]) -> str:
    """Return the hash of the names and contents of files."""
    return sha256_of_json({name: sha256_of(path) for name, path in files.items()})


def pack(files: Mapping[str, Path], archive: Path) -> None:
    """Write an archive of files, whose members have the names given for them."""
    import zstandard

    with (
        archive.open("wb") as out,
        zstandard.ZstdCompressor(level=_LEVEL).stream_writer(out) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, path in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = path.stat().st_size, 0o644
            with path.open("rb") as content:
                tar.addfile(info, content)


def unpack(archive: Path, into: Path) -> dict[str, Path]:
    """Unpack an archive, which is not trusted, into an empty folder, and return its files by name.

    Raises `StudyError` if it is damaged or contains anything that can't be part of a declaration.
    """
    found: dict[str, Path] = {}
    try:
        with archive.open("rb") as file, opened_tar(file, ArchiveBounds(MAX_BYTES, MAX_MEMBERS)) as tar:
            for info in tar:
                if not info.isfile() or not _is_safe(info.name) or info.name in found:
                    raise StudyError(
                        f"The study's archive contains {info.name[:80]!r}, which does not declare a study."
                    )
                path = into / info.name
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("xb") as out:
                    shutil.copyfileobj(tar.content(info), out)
                found[info.name] = path
    except ArchiveError as error:
        raise StudyError(f"The study's archive {error}.") from error
    except OSError as error:
        raise StudyError(f"The study's archive can't be read: {cause(error)}.") from error
    return dict(sorted(found.items()))


def _is_safe(name: str) -> bool:
    """Return whether a member's name is a plain relative path of a file that can be part of a declaration."""
    path = PurePosixPath(name)
    is_plain = path.as_posix() == name and name.isprintable() and "\\" not in name
    if not is_plain or path.is_absolute():
        return False
    if any(part.startswith(".") for part in path.parts):
        return False
    return path.parts[0] not in _NOT_DECLARATION
