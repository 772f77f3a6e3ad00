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
"""A parameter for each working backend. Its tests share a worker, and therefore environments and tasks."""

_ON_ONE = PARAMETERS if CHOSEN == "explore" else PARAMETERS[:1]
on_one_backend = pytest.mark.parametrize("backend", _ON_ONE, indirect=True)
"""A mark for tests independent of the backend, which run on the first working one; on all with `explore`."""
on_the_other_backends = pytest.mark.parametrize("backend", PARAMETERS[len(_ON_ONE) :], indirect=True)
"""A mark for a sample of the cases that tests with `on_one_backend` try."""


def all_on_one_backend(name: str, cases: Collection[object], elsewhere: int) -> pytest.MarkDecorator:
    """Return a mark that tries all cases on the first working backend, and a sample on each of the others.

    This is for cases whose outcome does not depend on the backend (decision 132). `elsewhere` is the maximum
    size of the sample.
    """
    chosen = [
        pytest.param(parameter.values[0], case, marks=parameter.marks, id=f"{parameter.values[0]}-{case}")
        for number, parameter in enumerate(PARAMETERS)
        for case in (sampled(cases, elsewhere) if number else cases)
    ]
    return pytest.mark.parametrize(("backend", name), chosen, indirect=["backend"])
