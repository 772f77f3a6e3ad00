"""All code that decodes JSON, MessagePack or TOML handles text that is nested too deeply for the decoder.

A decoder then raises `RecursionError`, which is not a `ValueError`: without an `except` for it, a file of
100,000 brackets ends the program with a traceback.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_DECODE = {
    "json.load",
    "json.loads",
    "msgspec.json.decode",
    "msgspec.msgpack.decode",
    "tomllib.load",
    "tomllib.loads",
}
_DECODERS = {"json.JSONDecoder", "msgspec.json.Decoder", "msgspec.msgpack.Decoder"}
_NAMES = {"decode", "load", "loads", "raw_decode"}
"""The last names of what decodes; other calls and most modules need no closer look."""
_EXPECTED = {"RecursionError", "Exception", "BaseException"}

_BESIDE_THE_CODE_UNDER_TEST = (
    "core/kinds/repair/inside_look.py",
    "sandbox/attacks/",
    "sandbox/payload/",
    "sandbox/scaffolds/mini_driver.py",
    "sandbox/verifier/",
)
"""Separate programs, whose crash is a result like any other."""

_CALLERS_EXPECT_IT = {
    "core/agents/text_calls.py::_loaded",
    "core/orders.py::replied",
    "sandbox/candidates/warm.py::_take",
    "sandbox/cluster_steps.py::read_order",
    "sandbox/endpoints/streamed.py::chunk_in",
    "sandbox/endpoints/transport.py::loaded",
    "sessions/agentruns/cluster_work.py::do",
    "sessions/formats/cline/cline.py::completed",
    "sessions/journal.py::_value_in",
    "sessions/records/loading.py::decoded",
}
"""Functions whose callers all handle the error, or have already decoded the same text."""

_GISTPOINTS_OWN_TEXT = {
    "core/confirmation/showing.py::with_kept_numbers",
    "core/corruption/appearance/naturalness.py::read",
    "core/corruption/appearance/score.py::glance_weights",
    "core/demo/tasks.py::_json",
    "core/kinds/titles.py::_demo_titles",
    "core/study/bank.py::block",
    "core/study/checklist.py::checklist",
    "sandbox/backends/bubblewrap.py::_first_process",
    "sessions/exports/tasks/harbor.py::_verifier_s",
    "sessions/exports/tasks/registry.py::_judging",
    "sessions/records/loading.py::_text_of",
}
"""Functions that decode a file of the package, a program's own report, or a value that was just encoded."""


def test_every_decoding_call_expects_deep_nesting() -> None:
    found = set[str]()
    for room in ("core", "sandbox", "sessions", "tui"):
        for path in (_ROOT / room).rglob("*.py"):
            name = path.relative_to(_ROOT).as_posix()
            if not name.startswith(_BESIDE_THE_CODE_UNDER_TEST):
                found |= {f"{name}::{function}" for function in unexpecting(path.read_text("utf-8"))}
    assert found == _CALLERS_EXPECT_IT | _GISTPOINTS_OWN_TEXT


def test_a_decoding_call_that_does_not_is_found() -> None:
    forgets = "def f(t):\n    try:\n        return {}\n    except ValueError:\n        return None\n"
    assert list(unexpecting(forgets.format("json.loads(t)"))) == ["f"]
    assert list(unexpecting("D = msgspec.json.Decoder(S)\n" + forgets.format("D.decode(t)"))) == ["f"]
    minds = forgets.replace("ValueError", "(ValueError, RecursionError)")
    assert list(unexpecting(minds.format("json.loads(t)"))) == []
    named = f"E = (ValueError, RecursionError)\n{forgets.replace('except ValueError', 'except E')}"
    assert list(unexpecting(named.format("json.loads(t)"))) == []
    suppressed = "def f(t):\n    with suppress(OSError, RecursionError):\n        json.loads(t)\n"
    assert list(unexpecting(suppressed)) == []
    handling = "def f(t):\n    try:\n        pass\n    except RecursionError:\n        json.loads(t)\n"
    assert list(unexpecting(handling)) == ["f"]


def unexpecting(source: str) -> Iterator[str]:
    """Yield the names of functions that decode text without handling excessive nesting."""
    if not any(f"{name}(" in source for name in _NAMES):
        return
    tree = ast.parse(source)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    assigned = {
        ast.unparse(target).rpartition(".")[2]: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _decodes(node.func, assigned):
            around = list(_around(node, parents))
            if not any(_expects(outer, inner, assigned) for inner, outer in around):
                yield next((one.name for _, one in around if isinstance(one, ast.FunctionDef)), "<module>")


def _decodes(function: ast.expr, assigned: dict[str, ast.expr]) -> bool:
    if not isinstance(function, ast.Attribute) or function.attr not in _NAMES:
        return False
    if ast.unparse(function) in _DECODE:
        return True
    decoder: ast.expr | None = function.value
    if not isinstance(decoder, ast.Call):
        decoder = assigned.get(ast.unparse(function.value).rpartition(".")[2])
    return isinstance(decoder, ast.Call) and ast.unparse(decoder.func) in _DECODERS


def _around(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield each node around another, with the child that leads to it."""
    while node in parents:
        yield node, parents[node]
        node = parents[node]


def _expects(outer: ast.AST, inner: ast.AST, assigned: dict[str, ast.expr]) -> bool:
    """Return whether a node handles the `RecursionError` of its child."""
    if isinstance(outer, ast.Try) and inner in outer.body:
        kinds = [handler.type for handler in outer.handlers]
        return any(kind is None or _names(kind, assigned) & _EXPECTED for kind in kinds)
    if isinstance(outer, ast.With) and inner in outer.body:
        return any("RecursionError" in ast.unparse(item) for item in outer.items)
    return False


def _names(kind: ast.expr, assigned: dict[str, ast.expr]) -> set[str]:
    """Return the names of a handler's exceptions, even if they are a named tuple of exceptions."""
    kind = assigned.get(ast.unparse(kind), kind)
    return {ast.unparse(one) for one in (kind.elts if isinstance(kind, ast.Tuple) else [kind])}
