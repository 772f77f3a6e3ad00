"""The sandbox backends that work on this machine."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from examples import CHOSEN, sampled

from gistpoint.sandbox.ladder import builtin_backends

MADE = {name: make() for name, make in builtin_backends().items()}
WORKING = [name for name, backend in MADE.items() if backend.probe().works]

PARAMETERS = [
    pytest.param(
        name, marks=[pytest.mark.xdist_group(name), *([pytest.mark.docker] if name == "docker" else [])]
    )
    for name in WORKING
]
"""Tests of a backend share a worker, and so what is made once: environments, images, tasks."""

_ON_ONE = PARAMETERS if CHOSEN == "explore" else PARAMETERS[:1]
on_one_backend = pytest.mark.parametrize("backend", _ON_ONE, indirect=True)
"""Marks tests independent of the backend, which run on the first that works, and on all if `explore` is chosen."""


def all_on_one_backend(name: str, cases: Collection[object], elsewhere: int) -> pytest.MarkDecorator:
    """Try all cases on the first working backend and some on each other one (decision 132).

    For cases whose outcome does not depend on the backend that runs them.
    """
    chosen = [
        pytest.param(parameter.values[0], case, marks=parameter.marks, id=f"{parameter.values[0]}-{case}")
        for number, parameter in enumerate(PARAMETERS)
        for case in (sampled(cases, elsewhere) if number else cases)
    ]
    return pytest.mark.parametrize(("backend", name), chosen, indirect=["backend"])
