"""A malformed trace of a run is refused in one sentence, wherever the error is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from gist_tasks import TRACE

from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.gist.trace import read_trace

FUNCTION: dict[str, Any] = TRACE["functions"][0]
OF_ANOTHER_TYPE: dict[str, list[Any]] = {
    "calls": [None, "5", [], float("inf"), float("nan")],
    "depth": [None, "3", {}],
    "files": [None, 1, {}, "shop", [1], [None], [[]]],
    "modules": [None, 1, [], "shop", {"shop/prices.py": None}, {"shop/prices.py": 1}],
    "functions": [None, 1, {}, "shop", [None], [[]], ["shop"]],
    "lines": [None, 1, [], {"shop/prices.py": None}, {"shop/prices.py": ["4"]}, {"shop/prices.py": [[]]}],
    "order": [None, 1, {}, "shop", [None], [[]], [["shop/prices.py"]], [["shop/prices.py", 1, 2]], [[[], 1]]],
}
FAULTY_FUNCTIONS: dict[str, list[Any]] = {
    "path": [None, 1, []],
    "qualname": [None, 1, []],
    "line": [None, "4", [], float("inf")],
    "calls": [None, "1", {}],
    "run": [None, "yes", []],
}


def malformed() -> Iterator[Any]:
    """Yield traces without one key, or with one value of another type, at any depth."""
    for key in OF_ANOTHER_TYPE:
        yield pytest.param({name: TRACE[name] for name in TRACE.keys() - {key}}, id=f"no {key}")
    for key, values in OF_ANOTHER_TYPE.items():
        for value in values:
            yield pytest.param({**TRACE, key: value}, id=f"{key} {value}")
    for key in FUNCTION:
        function = {name: FUNCTION[name] for name in FUNCTION.keys() - {key}}
        yield pytest.param({**TRACE, "functions": [function]}, id=f"functions without {key}")
    for key, values in FAULTY_FUNCTIONS.items():
        for value in values:
            changed = {**TRACE, "functions": [{**FUNCTION, key: value}]}
            yield pytest.param(changed, id=f"functions {key} {value}")


@pytest.mark.parametrize("trace", malformed())
def test_a_malformed_trace_is_refused_in_a_sentence(trace: dict[str, Any]) -> None:
    with pytest.raises(TaskError, match=r"^The trace is malformed: .+\. Trace the command again\.$"):
        read_trace(trace)


@pytest.mark.parametrize("trace", [{}, {**TRACE, "format": []}, {**TRACE, "version": 2}])
def test_a_trace_of_another_format_or_version_is_refused(trace: dict[str, Any]) -> None:
    with pytest.raises(TaskError, match="This version can't read the trace"):
        read_trace(trace)


def test_a_trace_has_what_the_tracer_wrote() -> None:
    trace = read_trace(TRACE)
    assert (trace.calls, trace.depth, trace.files) == (5, 3, ("tests/test_prices.py", "shop/prices.py"))
    assert [function.qualname for function in trace.functions] == [
        "test_total",
        "Basket.__init__",
        "discount",
    ]
    assert trace.lines["shop/prices.py"] == {4, 6, 12}
    assert trace.order == {("shop/prices.py", 4): 0, ("shop/prices.py", 0): 1}
    assert trace.module_ranks == {"shop/prices.py": [(0, 4), (1, 0)]}


def test_a_file_of_which_no_line_is_reported_has_none() -> None:
    trace = read_trace({**TRACE, "files": [*TRACE["files"], "shop/untraced.py"]})
    assert trace.lines["shop/untraced.py"] == frozenset()
