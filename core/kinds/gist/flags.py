"""Flags that are told from a gist's text alone, and the texts of the vacuity probe."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from gistpoint.core.code.parsing import parse
from gistpoint.core.kinds.gist.lines import (
    LogicalLine,
    blocks_of,
    find_test,
    is_main_guard,
    lines_of_statement,
    physical_lines,
)


def main_guard_added(gist: str, original: str) -> bool:
    """Whether the gist has a main guard at its top level and the original test file has none."""
    return bool(_guarded(gist)) and not _guarded(original)


def moved_under_guard(gist: str, original: str, qualname: str) -> bool:
    """Whether the test is not defined on import, and half of its lines or more stand under a main guard."""
    guarded = {line.text for line in _guarded(gist)}
    wanted = find_test(parse(original), qualname)
    if not guarded or wanted is None or find_test(parse(gist), qualname) is not None:
        return False
    body = [line.text for line in wanted.lines[1:]]
    return 2 * sum(text in guarded for text in body) >= len(body) > 0


def _guarded(source: str) -> list[LogicalLine]:
    try:
        tree = parse(source)
    except (SyntaxError, ValueError):
        return []
    guards = (statement for statement in tree.body if is_main_guard(statement))
    return [line for guard in guards for line in lines_of_statement(guard)]


def vacuity_mutants(gist: str, executed: Collection[int], test: str, *, most: int = 5) -> Iterator[tuple[str, str]]:
    """Yield up to `most` (function, text) pairs: the gist with one function that ran returning nonsense at once.

    A gist is vacuous when its run is as faithful with every one of these: then the test does not look at what the
    gist holds. Longer functions come first; the test itself and generators are left alone. Lines keep their numbers.
    """
    lines = physical_lines(gist)
    functions = [block for block in blocks_of(parse(gist)) if block.name and block.name != test]
    ranked: list[tuple[int, str, ast.FunctionDef]] = []
    for block in functions:
        function = block.statements[0]
        if not isinstance(function, ast.FunctionDef) or function.body[0].lineno == function.lineno:
            continue
        ran = sum(function.body[0].lineno <= line <= block.last for line in executed)
        yields = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))
        if ran and not yields and not function.name.startswith("test"):
            ranked.append((-ran, block.name, function))
    for _, name, function in sorted(ranked, key=lambda one: (one[0], one[1]))[:most]:
        first = function.body[0]
        start = min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", []))])
        line = lines[start - 1]
        margin = line[: len(line) - len(line.lstrip())]
        changed = [*lines[: start - 1], f"{margin}return object()"]
        changed += [""] * ((function.end_lineno or start) - start) + lines[function.end_lineno or start :]
        yield name, "\n".join(changed) + "\n"
