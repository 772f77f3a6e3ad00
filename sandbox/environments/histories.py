"""Collects the earlier versions of a library's files, from its git repository or its earlier releases.

None of the code is run.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gistpoint.core.errors import SourceError
from gistpoint.core.generation.earlier import EarlierFile, EarlierFiles
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sandbox.environments.requirement import requirement_of
from gistpoint.sandbox.environments.sdists import download, locate, unpack
from gistpoint.sandbox.environments.sources import cloned, is_version, require_form, require_git

if TYPE_CHECKING:
    import git

RELEASES = 10
"""The maximum number of earlier releases that are read."""
_COMMITS = 5_000
_MOST_VERSIONS = 60
"""The maximum number of earlier versions of a file."""
_MOST_BYTES = 1 << 20
"""The maximum size of a file that is read."""


def collect_history(
    specification: str,
    paths: Collection[str],
    scratch: Path,
    *,
    on_line: Callable[[str], None] = lambda line: None,
    cancel: CancelToken = NEVER,
) -> EarlierFiles:
    """Return the earlier versions of a source's files, newest first; work in the folder `scratch`.

    The result is empty if no earlier version has one of the files. Raises `SourceError` for a folder, which
    has no history, and if the history can't be fetched; and `CancelledError` if stopped.
    """
    require_form(specification)
    scratch.mkdir(parents=True, exist_ok=True)
    if is_version(specification):
        texts = _of_releases(specification, paths, scratch, on_line, cancel)
    elif "@" in specification:
        texts = _of_commits(specification, paths, scratch, on_line, cancel)
    else:
        raise SourceError(
            f"{specification} is a folder, which has no history.",
            hint="Give its git repository at a commit: PATH@COMMIT, such as PATH@HEAD.",
        )
    return _distinct_versions(texts)


def _distinct_versions(texts: Iterator[tuple[str, EarlierFile]]) -> EarlierFiles:
    """Return the different contents by path, each with the newest version that has it.

    Their number per file is limited.
    """
    found: dict[str, dict[str, EarlierFile]] = defaultdict(dict)
    for path, file in texts:
        if len(found[path]) < _MOST_VERSIONS:
            found[path].setdefault(file.text, file)
    return {path: tuple(files.values()) for path, files in sorted(found.items())}


def _of_releases(
    specification: str,
    paths: Collection[str],
    scratch: Path,
    on_line: Callable[[str], None],
    cancel: CancelToken,
) -> Iterator[tuple[str, EarlierFile]]:
    """Yield the files of up to `RELEASES` releases before this one that have an sdist, newest first.

    Files that are links, too large or not text are left out.
    """
    name, version = requirement_of(specification).name, specification.partition("==")[2].strip()
    for _ in range(RELEASES):
        cancel.check()
        try:
            sdist = locate(f"{name}<{version}", name, cancel=cancel)
        except SourceError:
            return  # there is no earlier release with an sdist
        version = sdist.version
        on_line(f"fetching {name} {version}")
        archive, _ = download(sdist, scratch, cancel)
        folder = unpack(archive, scratch / "release")
        archive.unlink()
        for path in paths:
            file = folder / path
            if not file.is_file() or file.is_symlink() or file.stat().st_size > _MOST_BYTES:
                continue
            if (text := _decoded(file.read_bytes())) is not None:
                yield path, EarlierFile(version, "", text)
        shutil.rmtree(scratch / "release")


def _of_commits(
    specification: str,
    paths: Collection[str],
    scratch: Path,
    on_line: Callable[[str], None],
    cancel: CancelToken,
) -> Iterator[tuple[str, EarlierFile]]:
    """Yield the contents of the files in the commit and those before it, newest first.

    Raises `SourceError` if the history can't be read.
    """
    require_git()
    import git

    with cloned(specification, scratch / "history", on_line) as (repository, revision):
        on_line("reading the history")
        try:
            yield from _texts(repository, revision, paths, cancel)
        except (git.GitError, ValueError) as error:
            raise SourceError(f"The history of {specification} can't be read: {error}") from error


def _texts(
    repository: git.Repo, revision: str, paths: Collection[str], cancel: CancelToken
) -> Iterator[tuple[str, EarlierFile]]:
    listed = repository.git.log(
        revision, "-n", _COMMITS, "--format=%x00%H %cs", "--name-only", "-z", "--no-renames", "--", "*.py"
    )
    known, seen = frozenset(paths), dict.fromkeys(paths, 0)
    for commit, date, changed in _commits(listed):
        cancel.check()
        for path in changed:
            if path not in known or seen[path] > _MOST_VERSIONS:
                continue
            seen[path] += 1
            try:
                blob = repository.rev_parse(f"{commit}:{path}")
            except (KeyError, ValueError):
                continue  # the commit removed the file
            if blob.size <= _MOST_BYTES and (text := _decoded(blob.data_stream.read())) is not None:
                yield path, EarlierFile(commit, date, text)


def _commits(listed: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the hash, the date and the changed paths of each commit in git's list."""
    commit, date, paths = "", "", list[str]()
    for item in listed.split("\0"):
        words = item.strip("\n").split(" ")
        if len(words) == 2 and len(words[0]) == 40 and len(words[1]) == 10:
            if commit:
                yield commit, date, paths
            (commit, date), paths = words, []
        elif item.strip("\n"):
            paths.append(item.strip("\n"))
    if commit:
        yield commit, date, paths


def _decoded(data: bytes) -> str | None:
    """Return the text of a file; None if it is not UTF-8."""
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None
