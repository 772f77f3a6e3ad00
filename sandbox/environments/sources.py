"""Fetches a repository onto this machine from an sdist, a folder, or a git repository at a commit.

None of the repository's code is run: no set-up script, git hook or filter.
"""

from __future__ import annotations

import re
import shutil
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement
from packaging.utils import canonicalize_name

from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.errors import SourceError
from gistpoint.core.generation.settings import SourceSpec
from gistpoint.core.locations import path_of
from gistpoint.core.outcomes import BackendRecord
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.core.tasks.model import Source
from gistpoint.core.tasks.repository import Repository
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sandbox.environments.projects import read_project
from gistpoint.sandbox.environments.requirement import requirement_of
from gistpoint.sandbox.environments.resolver import UvResolver
from gistpoint.sandbox.environments.sdists import download, locate, unpack
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.ladder import choose
from gistpoint.sandbox.layout import lay_out

if TYPE_CHECKING:
    import git

_REVISION = re.compile(r"[0-9A-Za-z][0-9A-Za-z._/+^~-]*")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_FORMS = "Give `name==version` of a package, a folder, or `PATH_OR_URL@COMMIT` of a git repository."
_CLONED = "Check that `git clone` can read it and that it has that commit. The form is PATH_OR_URL@COMMIT."


class Fetcher:
    """A fetcher of sources onto this machine."""

    def __init__(self, *, on_line: Callable[[str], None] | None = None, cancel: CancelToken = NEVER) -> None:
        self._on_line = on_line or (lambda line: None)
        self._cancel = cancel

    def fetch(self, specification: str, into: Path) -> tuple[Source, Path]:
        """Fetch the source that `specification` names below `into`; return it and the folder of its files.

        Raises `SourceError` if it can't be fetched, and `CancelledError` if stopped.
        """
        require_form(specification)
        into.mkdir(parents=True, exist_ok=True)
        if _is_folder(specification):
            return self._folder(path_of(specification), into, specification)
        if is_version(specification):
            return self._sdist(specification, into)
        place, _, commit = specification.removeprefix("git+").rpartition("@")
        return self._git(place, commit, into, specification)

    def _folder(self, folder: Path, into: Path, given: str) -> tuple[Source, Path]:
        revision, target = _laid_out(folder, into, given)
        return Source("folder", _project_name(target, folder.resolve().name), revision, given), target

    def _sdist(self, specification: str, into: Path) -> tuple[Source, Path]:
        try:
            requirement = requirement_of(specification)
        except InvalidRequirement as error:
            raise SourceError(
                f"{specification!r} is not a requirement of the form name==version.", hint=_FORMS
            ) from error
        sdist = locate(f"{requirement.name}{requirement.specifier}", requirement.name, cancel=self._cancel)
        self._on_line(f"Fetching {sdist.file}")
        archive, _ = download(sdist, into, self._cancel)
        folder = unpack(archive, into / "source")
        archive.unlink()
        return Source("sdist", canonicalize_name(requirement.name), sdist.version, specification), folder

    def _git(self, place: str, commit: str, into: Path, given: str) -> tuple[Source, Path]:
        require_git()
        import git

        checkout = into / "checkout"
        with cloned(given, checkout, self._on_line) as (repository, revision):
            try:
                repository.git.checkout("--detach", "--force", revision)
            except (git.GitError, OSError) as error:
                raise SourceError(f"{given} is not available: {_cause(error)}", hint=_CLONED) from error
        # Copied without git's own folder, whose history contains the original of any corrupted function.
        _, target = _laid_out(checkout, into, given)
        shutil.rmtree(checkout)
        name = Path(urllib.parse.urlparse(place).path).name.removesuffix(".git") or "repository"
        return Source("git", _project_name(target, name), revision, given), target


def require_git() -> None:
    """Raise `SourceError` if the program git is missing, without which GitPython can't be imported."""
    if shutil.which("git") is None:
        raise SourceError(
            "The program git was not found, and it is needed to read a repository.",
            hint="Install git, or add its folder to PATH. Sdists and folders need no git.",
        )


@contextmanager
def cloned(specification: str, into: Path, on_line: Callable[[str], None]) -> Iterator[tuple[git.Repo, str]]:
    """Yield a clone of the repository in `PATH_OR_URL@COMMIT`, without files, and the hash of the commit.

    Raises `SourceError` if there is no such repository or commit.
    """
    require_git()
    import git

    place, _, commit = specification.removeprefix("git+").rpartition("@")
    where = str(path_of(place).resolve()) if path_of(place).is_dir() else place
    on_line(f"Cloning {place}")
    # No hook or filter of the repository runs, nothing asks for a password, and files keep their stored
    # bytes.
    settings = ["core.hooksPath=/dev/null", "core.symlinks=true", "core.autocrlf=false"]
    try:
        repository = git.Repo.clone_from(
            where,
            into,
            no_checkout=True,
            multi_options=[f"--config={setting}" for setting in settings],
            allow_unsafe_options=True,
            env={"GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1"},
        )
    except (git.GitError, ValueError, OSError) as error:
        raise SourceError(f"{specification} is not available: {_cause(error)}", hint=_CLONED) from error
    with closing(repository):
        try:
            revision = str(repository.git.rev_parse("--verify", "--end-of-options", f"{commit}^{{commit}}"))
        except (git.GitError, ValueError, OSError) as error:
            raise SourceError(f"{specification} is not available: {_cause(error)}", hint=_CLONED) from error
        yield repository, revision


def require_form(specification: str) -> None:
    """Raise `SourceError` for a string that names no source, and for a folder that does not exist.

    Nothing is fetched.
    """
    place, _, commit = specification.removeprefix("git+").rpartition("@")
    is_commit = place != "" and _REVISION.fullmatch(commit) is not None
    if is_commit or _is_folder(specification):
        return
    if not is_version(specification):
        raise SourceError(f"{_reason_for_refusal(specification)}: {specification!r}.", hint=_FORMS)


def newest_version(name: str) -> str:
    """Return `name==version` of the newest release with an sdist in the user's index.

    Raises `SourceError` if there is none, and `EnvironmentBuildError` if the user's settings of uv can't be
    read.
    """
    sdist = locate(name, name)
    return f"{name}=={sdist.version}"


def is_bare_name(specification: str) -> bool:
    """Whether `specification` is a package name without a version, and not the path of a file or folder."""
    return bool(_NAME.fullmatch(specification)) and not path_of(specification).exists()


def _is_folder(specification: str) -> bool:
    return bool(specification) and path_of(specification).is_dir()


def is_version(specification: str) -> bool:
    """Whether `specification` contains `==`, as in `name==version`, and is not an address."""
    if "://" in specification or "@" in specification:
        return False
    return "==" in specification


def _reason_for_refusal(specification: str) -> str:
    """Return why this specification can't be fetched, as the beginning of a sentence."""
    if "://" in specification:
        return "An address must be that of a git repository, with a commit after an @"
    if specification and path_of(specification).is_file():
        return "It is a file, but a source is a folder (unpack an archive first)"
    looks_like_path = "/" in specification or specification.startswith((".", "~"))
    if is_bare_name(specification):
        return "The version of the package is missing"
    if looks_like_path:
        return "There is no such folder"
    name, is_given, version = specification.partition("=")
    if is_given and version and "=" not in version and _NAME.fullmatch(name):
        return f"A version follows two equals signs, {name}=={version}"
    return "It does not name a source"


def _cause(error: Exception) -> str:
    """Return git's own error: its first fatal line, and the previous line, which may have more detail.

    These are cut to 300 characters. Without git's output, it is the message of `error`.
    """
    stderr = getattr(error, "stderr", None)
    if stderr is None:
        return str(error) or "git printed nothing."
    text = str(stderr).strip().removeprefix("stderr: '").removesuffix("'")
    stripped = [line.strip() for line in text.splitlines()]
    lines = [line for line in stripped if line and not line.startswith("Cloning into ")]
    fatal = [n for n, line in enumerate(lines) if line.startswith("fatal: ")]
    last = fatal[0] if fatal else len(lines) - 1
    return "; ".join(lines[max(last - 1, 0) : last + 1])[:300] or "git printed nothing."


def _laid_out(folder: Path, into: Path, given: str) -> tuple[str, Path]:
    """Copy a folder below `into`, without links that lead out; return its hash and the copy.

    Raises `SourceError` if it has no files.
    """
    tar = into / "folder.tar"
    target = into / "source"
    revision = write_tree(folder, tar)
    tree = SourceTree.open(tar)
    if not tree.members:
        raise SourceError(f"{given} does not contain any files.", hint=_FORMS)
    lay_out(tree, target)
    tar.unlink()
    return revision, target


def _project_name(folder: Path, otherwise: str) -> str:
    """Return the project's name, or `otherwise` if it has none."""
    known = read_project(folder).name
    return otherwise if known == folder.name else known


_COMMIT = re.compile(r".+@[0-9a-f]{40}")


def fetch_repository(
    spec: SourceSpec,
    scratch: Path,
    cache: Path,
    *,
    isolation: BackendRecord,
    on_line: Callable[[str], None] | None = None,
    on_detail: Callable[[str], None] | None = None,
    on_tree: Callable[[SourceTree], None] | None = None,
    cancel: CancelToken = NEVER,
) -> Repository:
    """Fetch a source below `scratch`, pin its suite's requirements, and return the repository.

    Builds run in `isolation`. `on_tree` gets the source before anything is pinned, and may raise an error to
    skip the pinning. Raises `SourceError` if the source can't be fetched, `SandboxUnavailableError` if
    `isolation` does not work here, `EnvironmentBuildError` if its requirements can't be pinned, and
    `CancelledError` if stopped.
    """
    report = on_line or (lambda line: None)
    report(f"fetching {spec.source}")
    source, folder = Fetcher(cancel=cancel).fetch(spec.source, scratch / "source")
    # Called before anything is pinned, which takes long, because a set may reject this source.
    if on_tree is not None:
        write_tree(folder, scratch / "look.tar")
        on_tree(SourceTree.open(scratch / "look.tar"))
    report(f"pinning what {source.name} {source.revision[:12]} needs")
    backend = choose(isolation.name, consented=not isolation.isolated)
    environment = UvResolver(EnvironmentStore(cache), backend, on_line=on_detail, cancel=cancel).resolve(
        folder,
        extra_requirements=spec.extra_requirements,
        exclude_newer=spec.exclude_newer,
        pytest_args=spec.pytest_args,
    )
    tar = scratch / "tree.tar"
    write_tree(folder, tar)
    return Repository(source, SourceTree.open(tar), replace(environment, build_steps=spec.build_steps))


def key_of(spec: SourceSpec, scratch: Path) -> str:
    """Return a key of what `fetch_repository` would return; it changes only with the source and its settings.

    A version of a package and a full commit never change; the content of a folder or a branch has to be read.
    Raises `SourceError` if that content can't be fetched.
    """
    revision = ""
    if not _unchanging(spec.source):
        # The content of a folder or of a branch can change under the same name.
        revision = Fetcher().fetch(spec.source, scratch / "look")[0].revision
    settled = [
        spec.source,
        revision,
        spec.pytest_args,
        spec.extra_requirements,
        spec.exclude_newer,
        spec.build_steps,
    ]
    return sha256_of_json(settled)


def _unchanging(specification: str) -> bool:
    if path_of(specification).is_dir():
        return False
    if _COMMIT.fullmatch(specification):
        return True
    return "==" in specification and "://" not in specification
