"""From a source as a user names it to a repository with its environment pinned."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.generation.campaign.batch import SourceSpec
from gistpoint.core.generation.intake import Repository
from gistpoint.core.locations import path_of
from gistpoint.core.outcomes import BackendRecord
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sandbox.environments import EnvironmentStore
from gistpoint.sandbox.ladder import choose
from gistpoint.sandbox.resolver import UvResolver
from gistpoint.sandbox.sources import Fetcher

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
) -> Repository:
    """Fetch a source below `scratch` and pin what its suite needs; what has to be built is, in `isolation`.

    `on_tree` gets the source before anything is pinned, and may raise what makes the rest needless. Raises
    `SourceError` and `EnvironmentBuildError`, which say what can't be had.
    """
    tell = on_line or (lambda line: None)
    tell(f"fetching {spec.source}")
    source, folder = Fetcher().fetch(spec.source, scratch / "source")
    if on_tree is not None:
        write_tree(folder, scratch / "look.tar")
        on_tree(SourceTree.open(scratch / "look.tar"))
    tell(f"pinning what {source.name} {source.revision[:12]} needs")
    backend = choose(isolation.name, consented=not isolation.isolated)
    environment = UvResolver(EnvironmentStore(cache), backend, on_line=on_detail).resolve(
        folder,
        extra_requirements=spec.extra_requirements,
        exclude_newer=spec.exclude_newer,
        pytest_args=spec.pytest_args,
    )
    tar = scratch / "tree.tar"
    write_tree(folder, tar)
    return Repository(source, SourceTree.open(tar), replace(environment, build_steps=spec.build_steps))


def key_of(spec: SourceSpec, scratch: Path) -> str:
    """Return a name for what `fetch_repository` would fetch: the same as long as that is the same.

    A version of a package and a full commit never change; of a folder or a branch, the content has to be looked at.
    Raises `SourceError`.
    """
    revision = ""
    if not _unchanging(spec.source):
        revision = Fetcher().fetch(spec.source, scratch / "look")[0].revision
    settled = [spec.source, revision, spec.pytest_args, spec.extra_requirements, spec.exclude_newer, spec.build_steps]
    return sha256_of_json(settled)


def _unchanging(specification: str) -> bool:
    if path_of(specification).is_dir():
        return False
    return bool(_COMMIT.fullmatch(specification)) or ("==" in specification and "://" not in specification)
