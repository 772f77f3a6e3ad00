"""The sandbox backends that work on this machine."""

from __future__ import annotations

import pytest

from gistpoint.sandbox.ladder import builtin_backends

MADE = {name: make() for name, make in builtin_backends().items()}
WORKING = [name for name, backend in MADE.items() if backend.probe().works]

on_one_backend = pytest.mark.parametrize("backend", WORKING[:1], indirect=True)
"""For what no backend decides: the first one that works suffices."""
