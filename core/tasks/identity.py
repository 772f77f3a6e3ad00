"""A task's id, made from its content alone: the same corruption of the same tree is the same task everywhere.

Never from times, texts, metrics, budgets or baselines, and never from a hash of an original function.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gistpoint.core.canonical import sha256_of_json, sha256_of_text
from gistpoint.core.tasks.model import VERSION, Mode, Target


def task_id(
    *,
    mode: Mode,
    source_name: str,
    source_revision: str,
    tree_sha256: str,
    targets: Iterable[Target],
    lock: Iterable[str],
    ids_sha256: str,
    build_steps: Iterable[str] = (),
    entrypoint: str = "",
) -> str:
    """Return the sha256, in hexadecimal, of what the task consists of."""
    content: dict[str, Any] = {
        "version": VERSION,
        "mode": mode.value,
        "source": [source_name, source_revision],
        "tree": tree_sha256,
        "targets": sorted([target.name, sha256_of_text(target.corrupted)] for target in targets),
        "lock": sorted(lock),
        "tests": ids_sha256,
    }
    if steps := list(build_steps):
        content["build"] = steps
    if entrypoint:
        content["entrypoint"] = entrypoint
    return sha256_of_json(content)


def hash_of_ids(ids: Iterable[str]) -> str:
    """Return one hash for a set of test ids."""
    return sha256_of_json(sorted(ids))
