"""Draws docstrings and messages to be read.

usage: python tests/architecture/prose.py docstrings|messages COUNT [--seed N]

The same seed draws the same ones from the same source. Docstrings have at least eight words; messages are the
strings in errors, notices and printed output.
"""

from __future__ import annotations

import argparse
import ast
import random
from collections.abc import Iterator
from pathlib import Path

from measures import DATA, FOLDERS

WORDS = 8


def trees(root: Path) -> Iterator[tuple[str, ast.Module]]:
    """Yield every module of the four folders, parsed, with its path."""
    for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py")):
        where = path.relative_to(root).as_posix()
        if not where.startswith(DATA):
            yield where, ast.parse(path.read_text(encoding="utf-8"))


def docstrings(root: Path) -> Iterator[tuple[str, str]]:
    """Yield every docstring of at least `WORDS` words, after the place of its module, class or function."""
    for module, tree in trees(root):
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text and len(text.split()) >= WORDS:
                    yield f"{module}:{getattr(node, 'lineno', 1)} {getattr(node, 'name', '')}", text


def messages(root: Path) -> Iterator[tuple[str, str]]:
    """Yield every string of three or more words that is passed to an error, a notice or the terminal."""
    speaking = ("Error", "notify", "print", "error", "say", "warn", "refuse")
    for module, tree in trees(root):
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith(speaking):
                continue
            for value in [*node.args, *(k.value for k in node.keywords)]:
                if isinstance(value, ast.Constant | ast.JoinedStr):
                    text = ast.unparse(value).removeprefix("f")
                    if len(text.split()) > 2:
                        yield f"{module}:{node.lineno}", text


def main() -> None:
    """Print the strings that the seed draws."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["docstrings", "messages"])
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[2])
    options = parser.parse_args()
    found = sorted({"docstrings": docstrings, "messages": messages}[options.what](options.root))
    print(f"{options.count} of {len(found)}, seed {options.seed}")
    for where, text in random.Random(options.seed).sample(found, options.count):
        print(f"\n{where}\n    " + text.replace("\n", "\n    "))


if __name__ == "__main__":
    main()
