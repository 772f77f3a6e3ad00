"""What every home makes for itself and is the same in all: made once for all tests of a session (decision 132).

It is the list and the copy of what a sandbox shows of the interpreter (3,500 files), and the environment with
pytest alone: two to three seconds of the processor in each home before.
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
    """Let all homes in this process use what is below `folder`, and `warmed` give it to other processes."""
    make = store.host_environment
    patch.setattr(Locations, "runtimes", folder / "runtimes")
    # Environments of locks stay where their store is: tests look there for what was built, and how often.
    patch.setattr(store, "host_environment", lambda cache: make(cache if cache in _APART else folder))
    patch.setenv(_FOLDER, str(folder))


def kept_apart(cache: Path) -> Path:
    """Let a cache have an environment of its own, whose image a test may remove; returns the cache."""
    _APART.add(cache)
    return cache


def warmed(home: Path) -> Path:
    """Give the home of a program in a process of its own the caches that all tests share; returns the home.

    Without a session of tests, as in the studies, the home stays as it is.
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
