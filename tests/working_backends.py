"""The sandbox backends that work on this machine."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from examples import sampled

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


def all_on_one_backend(name: str, cases: Collection[object], elsewhere: int) -> pytest.MarkDecorator:
    """Try all cases on the first backend that works, and some of them on each of the others (decision 132).

    For cases whose outcome the backend does not decide, although it carries them.
    """
    chosen = [
        pytest.param(parameter.values[0], case, marks=parameter.marks, id=f"{parameter.values[0]}-{case}")
        for number, parameter in enumerate(PARAMETERS)
        for case in (sampled(cases, elsewhere) if number else cases)
    ]
    return pytest.mark.parametrize(("backend", name), chosen, indirect=["backend"])
