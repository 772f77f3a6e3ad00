"""The payload runs in interpreters of images, from Python 3.8 on."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import gistpoint.sandbox.payload

FILES = sorted(Path(gistpoint.sandbox.payload.__file__).parent.glob("*.py"))
NEWER = {
    "os.waitstatus_to_exitcode",
    "functools.cache",
    "enum.StrEnum",
    "hashlib.file_digest",
    "itertools.pairwise",
    "contextlib.chdir",
}
METHODS = {"removeprefix", "removesuffix", "is_relative_to", "co_qualname", "co_lines", "co_positions"}
GENERIC = {"list", "dict", "set", "tuple", "type", "frozenset"}
"""Classes that are not subscriptable in 3.8, like those of collections.abc."""


class Evaluated(ast.NodeTransformer):
    """Removes code that is never evaluated: annotations, and code for type checkers."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        return ast.Expr(self.visit(node.value)) if node.value else ast.Pass()

    def visit_If(self, node: ast.If) -> Any:
        checked = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return ast.If(node.test, [ast.Pass()], node.orelse) if checked else self.generic_visit(node)


def later_than_3_8(text: str) -> list[str]:
    """Return expressions in the text that Python 3.8 can't evaluate."""
    tree: ast.Module = Evaluated().visit(ast.parse(text, feature_version=(3, 8)))
    nodes = list(ast.walk(tree))
    generic = {
        alias.name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module == "collections.abc"
        for alias in node.names
    } | GENERIC
    found = []
    for node in nodes:
        match node:
            case ast.Attribute(ast.Name(name), attribute) if f"{name}.{attribute}" in NEWER:
                found.append(f"{name}.{attribute}")
            case ast.Attribute(_, attribute) if attribute in METHODS:
                found.append(attribute)
            case ast.Subscript(ast.Name(name)) if name in generic:
                found.append(ast.unparse(node))
            case ast.Call(ast.Name("isinstance" | "issubclass"), [_, ast.BinOp()]):
                found.append(ast.unparse(node))
            case ast.Call(ast.Name("zip"), _, [_, *_]):
                found.append(ast.unparse(node))
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_of_the_payload_is_python_3_8(path: Path) -> None:
    assert later_than_3_8(path.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "os.waitstatus_to_exitcode(1)",
        "name.removeprefix('a')",
        "isinstance(1, int | str)",
        "seen = set[int]()",
        "zip(a, b, strict=True)",
        "from collections.abc import Callable\nMaker = Callable[[], int]",
    ],
)
def test_what_is_later_is_seen(text: str) -> None:
    assert later_than_3_8(text)
