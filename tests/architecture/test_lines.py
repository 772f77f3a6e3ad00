"""JSON Lines are split at line ends only: `str.splitlines` also splits at signs that a JSON string may hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from project_files import ROOT, source_files, tracked

_BYTES = {"content", "data"}
"""Names that stand for bytes, which `bytes.splitlines` splits at line ends only."""


def _split(node: ast.expr) -> ast.expr | None:
    """Return the text that `str.splitlines` splits in this expression; None if it is bytes, or not split so."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr="splitlines")):
            text = ast.unparse(value)
            return None if "read_bytes" in text or text in _BYTES else value
        case ast.IfExp(body=body, orelse=orelse):
            return _split(body) or _split(orelse)
    return None


def _decodes(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr == "loads" for one in ast.walk(node))


def split_as_text(source: str) -> Iterator[int]:
    """Yield the line of each `splitlines` whose lines are decoded from JSON where they are split."""
    if "splitlines" not in source or "loads" not in source:  # most files, which need not be parsed
        return
    for node in ast.walk(ast.parse(source)):
        loops: list[ast.expr] = []
        match node:
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                loops = [one.iter for one in node.generators]
            case ast.For(iter=each):
                loops = [each]
            case ast.Call(func=ast.Name(id="map"), args=[_, each]):
                loops = [each]
        split = [each.lineno for each in loops if _split(each) is not None]
        if split and _decodes(node):
            yield from split


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("[json.loads(line) for line in path.read_text().splitlines() if line]", [1]),
        ("for line in text.splitlines():\n    found = json.loads(line)", [1]),
        ("list(map(json.loads, text.splitlines()))", [1]),
        ("[json.loads(line) for line in path.read_bytes().splitlines()]", []),
        ("[json.loads(line) for line in physical_lines(text)]", []),
        ("[json.loads(line) for line in data.splitlines()]", []),
        ("[json.loads(line) for line in data.decode().splitlines()]", [1]),
        ("rows = [json.loads(a) for a in (x.read_text().splitlines() if x else [])]", [1]),
    ],
)
def test_the_search_finds_lines_that_are_decoded(code: str, lines: list[int]) -> None:
    assert list(split_as_text(code)) == lines


def test_json_lines_are_not_split_as_text() -> None:
    tests = [path for path in tracked() if path.startswith("tests/") and path.endswith(".py")]
    found = {
        f"{path}:{line}"
        for path in (*source_files(), *tests)
        for line in split_as_text((ROOT / path).read_text(encoding="utf-8"))
    }
    assert found == set()
