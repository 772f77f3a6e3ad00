"""One sign per meaning: ✔ for good and ✘ for bad, on screens, in printed text and in guides."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import gistpoint
from gistpoint.tui import signs

ROOT = Path(gistpoint.__file__).resolve().parents[2]
OTHERS = "✓✗✕✖☑☒🗸🗴✅❌"
"""Signs that look like these two, or mean the same."""


def texts() -> Iterator[Path]:
    for room in ("core", "sandbox", "sessions", "tui", "docs/guide"):
        for kind in ("*.py", "*.md", "*.tcss"):
            yield from (ROOT / room).rglob(kind)
    yield ROOT / "README.md"


def test_no_other_sign_means_good_or_bad() -> None:
    found = list(texts())
    assert len(found) > 100
    for path in found:
        text = path.read_text(encoding="utf-8")
        assert not [sign for sign in OTHERS if sign in text], path


IN_PROSE = "…·–—“”‘’×−≥"
"""Punctuation and signs of arithmetic, which are parts of sentences."""
TABLES = ("signs.py", "widgets/text_lines.py")
"""The module of the signs, and the table of the widths of characters."""


def literals(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the string literals of a module, without docstrings and attribute docstrings."""
    described = {id(part.value) for part in ast.walk(tree) if isinstance(part, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in described:
            yield node


def is_sign(character: str) -> bool:
    return not (character.isascii() or character.isalnum() or character in IN_PROSE)


def test_signs_are_written_in_one_module_only() -> None:
    found = []
    for path in (ROOT / "tui").rglob("*.py"):
        if path.relative_to(ROOT / "tui").as_posix() not in TABLES:
            for literal in literals(ast.parse(path.read_text(encoding="utf-8"))):
                here = sorted({one for one in literal.value if is_sign(one)})
                found += [f"{path}:{literal.lineno}: {sign}" for sign in here]
    assert not found, "name them in tui/signs.py"


def test_each_sign_has_one_name() -> None:
    names = {name: value for name, value in vars(signs).items() if name.isupper()}
    assert len(names) > 40
    assert len(set(names.values())) == len(names)


def test_no_name_hides_the_module_of_signs() -> None:
    """A local name `signs` would hide the module in its whole function, which no linter sees in a closure."""
    for path in (ROOT / "tui").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            bound = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == "signs"
            named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == "signs"
            taken = isinstance(node, ast.arg) and node.arg == "signs"
            hides = bound or named or taken
            assert not hides, f"{path}:{node.lineno}"
