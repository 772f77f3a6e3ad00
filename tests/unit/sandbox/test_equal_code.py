"""Functions and modules of different files that say the same in the same lines are different code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from launching import launch, whole

from gistpoint.sandbox.payload.call_recorder import CallWatch

COPY = "count = 1\ndef price(x):\n    return x + count\n"


@contextmanager
def traced(watch: CallWatch) -> Iterator[None]:
    outer = sys.gettrace()
    watch.trace_with(sys.settrace)
    try:
        yield
    finally:
        sys.settrace(outer)


@pytest.mark.parametrize("first", ["a", "b"])
@pytest.mark.parametrize("target", ["a", "b"])
def test_calls_of_a_copy_in_another_file_are_not_those_of_the_target(
    first: str, target: str, tmp_path: Path
) -> None:
    functions = {}
    for name in ("a", "b"):
        path = tmp_path / f"{name}.py"
        path.write_text(COPY)
        names: dict[str, Any] = {"__name__": name}
        exec(compile(COPY, str(path), "exec"), names)
        functions[name] = names["price"]
    assert functions["a"].__code__ == functions["b"].__code__
    found: list[str] = []
    targets = [[f"{target}.py", "price", 2, 3]]
    order = {"ids": [], "first": [], "targets": targets, "most": 10, "test_files": []}
    watch = CallWatch(order, str(tmp_path), lambda kind, **values: found.append(values["module"]))
    with traced(watch):
        functions[first](1)
        functions["b" if first == "a" else "a"](2)
    assert found == [target]


def test_every_line_of_a_copied_module_is_traced(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "pkg").mkdir(parents=True)
    (root / "pkg/__init__.py").write_text("")
    for name in ("a", "b"):
        (root / f"pkg/{name}.py").write_text(COPY)
    (root / "main.py").write_text("from pkg import a, b\na.price(1), b.price(2)\n")
    done, told = launch(tmp_path, argv=[str(root / "main.py")], path=[str(root)], trace_root=str(root))
    trace = whole(told, "trace")
    assert done.returncode == 0, done.stderr
    assert isinstance(trace, dict)
    assert trace["lines"]["pkg/a.py"] == trace["lines"]["pkg/b.py"] == [1, 2, 3]
    assert [place for place in trace["order"] if place[0] == "pkg/b.py"] == [
        ["pkg/b.py", line] for line in (1, 2, 0)
    ]
