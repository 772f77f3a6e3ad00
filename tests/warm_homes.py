"""Caches that are the same in every home, made once for all tests of a session (decision 132).

They are the list and the copy of the interpreter's files in a sandbox (3,500 files), and the environment with
pytest alone. Making them took two to three seconds of processor time per home.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from gistpoint.core.locations import Locations
from gistpoint.sandbox.environments import store

_FOLDER = "GISTPOINT_TESTS_SHARED"
_PARTS = ("runtimes", "environments")
_APART: set[Path] = set()


def share(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Let all homes in this process use the caches below `folder`, which `warmed` passes to others."""
    make = store.host_environment
    patch.setattr(Locations, "runtimes", folder / "runtimes")
    # Environments of locks stay in their store, where tests check what was built and how often.
    patch.setattr(store, "host_environment", lambda cache: make(cache if cache in _APART else folder))
    patch.setenv(_FOLDER, str(folder))


def kept_apart(cache: Path) -> Path:
    """Give a cache a separate environment, whose image a test may remove; return the cache."""
    _APART.add(cache)
    return cache


def warmed(home: Path) -> Path:
    """Give the home of another process the caches that all tests share; return the home.

    Outside a test session, as in the studies, the home is not changed.
    """
    if _FOLDER not in os.environ:
        return home
    cache = home / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    for part in _PARTS:
        shared = Path(os.environ[_FOLDER], part)
        shared.mkdir(exist_ok=True)
        with suppress(FileExistsError):
            (cache / part).symlink_to(shared)
    return home
