"""A task's id, made only from its content: the same corruption of the same tree is the same task everywhere.

It never depends on times, texts, metrics, budgets or baselines, or on a hash of an original function.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gistpoint.core.canonical import sha256_of_json, sha256_of_text
from gistpoint.core.pins import ImagePins
from gistpoint.core.tasks.model import Target, version_of


def task_id(
    *,
    mode: str,
    source_name: str,
    source_revision: str,
    tree_sha256: str,
    targets: Iterable[Target],
    lock: Iterable[str],
    ids_sha256: str,
    build_steps: Iterable[str] = (),
    of_kind: Mapping[str, Any] | None = None,
    image: ImagePins | None = None,
    version: int | None = None,
) -> str:
    """Return the sha256, in hexadecimal, of the task's content; `of_kind` is the part that its kind adds.

    The digest of an image takes the place of the lock. `version` is that of the task, by default as `version_of` says.
    """
    content: dict[str, Any] = {
        "version": version_of(image) if version is None else version,
        "mode": str(mode),
        "source": [source_name, source_revision],
        "tree": tree_sha256,
        "targets": sorted([target.name, sha256_of_text(target.corrupted)] for target in targets),
        **({"lock": sorted(lock)} if image is None else {"image": image.digest}),
        "tests": ids_sha256,
    }
    if steps := list(build_steps):
        content["build"] = steps
    return sha256_of_json({**content, **(of_kind or {})})


def hash_of_ids(ids: Iterable[str]) -> str:
    """Return one hash for a set of test ids."""
    return sha256_of_json(sorted(ids))
