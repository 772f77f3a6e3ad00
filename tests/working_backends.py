"""The sandbox backends that work on this machine."""

from __future__ import annotations

import pytest

from gistpoint.sandbox.ladder import builtin_backends

MADE = {name: make() for name, make in builtin_backends().items()}
WORKING = [name for name, backend in MADE.items() if backend.probe().works]

PARAMETERS = [
    pytest.param(
        name, marks=[pytest.mark.xdist_group(name), *([pytest.mark.docker] if name == "docker" else [])]
    )
    for name in WORKING
]
"""The tests of a backend share a worker, and with it what is made once: environments, images, tasks."""

on_one_backend = pytest.mark.parametrize("backend", PARAMETERS[:1], indirect=True)
"""For what no backend decides: the first one that works suffices."""
