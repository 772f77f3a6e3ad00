"""Flags: what a reader of a score must know about a gist, told from its text alone."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from gistpoint.core.code.parsing import parse
from gistpoint.core.gist.blocks import blocks_of, find_test, is_main_guard
from gistpoint.core.gist.glue import is_glue
from gistpoint.core.gist.lines import LogicalLine, lines_of_statement
from gistpoint.core.gist.source_text import physical_lines

_FAKES = {"ModuleType", "SimpleNamespace", "Mock", "MagicMock", "NonCallableMock", "NonCallableMagicMock"}
_IMPORT_HOOKS = {"sys.meta_path", "sys.path_hooks", "builtins.__import__", "__builtins__.__import__"}


def mocked(gist: str, owned: Collection[str]) -> str:
    """Return the line that makes a fake of the package importable or usable, empty where there is none.

    A fake is a module object under one of the `owned` names, an entry of `sys.modules` that is not the gist's own
    name, an import hook, or a mock bound to an owned name. A namespace of plain names is glue and no fake.
    """
    try:
        tree = parse(gist)
    except (SyntaxError, ValueError):
        return ""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Call) and _is_fake(node, owned):
            return ast.unparse(node)
        if isinstance(node, ast.ClassDef) and node.name in owned and node in tree.body:
            return f"class {node.name}"
    return ""


def _is_fake(node: ast.AST, owned: Collection[str]) -> bool:
    match node:
        case ast.Assign(targets=targets, value=value):
            if any(_writes_imports(target) for target in targets):
                return True
            named = any(isinstance(target, ast.Name) and target.id in owned for target in targets)
            return named and _makes_fake(value) and not is_glue(ast.unparse(node))
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            return _writes_imports(target)
        case ast.Call(func=ast.Attribute(value=holder, attr=attr), args=args):
            text = ast.unparse(holder)
            if text == "sys.modules" and attr in ("update", "setdefault", "__setitem__"):
                return True
            if attr in ("dict", "setitem") and args and ast.unparse(args[0]) in ("sys.modules", "'sys.modules'"):
                return True
            if text in _IMPORT_HOOKS and attr in ("insert", "append", "extend"):
                return True
            return attr == "ModuleType" and _names_owned(args, owned)
        case ast.Call(func=ast.Name(id=name), args=args):
            return (name == "ModuleType" and _names_owned(args, owned)) or (
                name == "setitem" and bool(args) and ast.unparse(args[0]) == "sys.modules"
            )
    return False


def _writes_imports(target: ast.expr) -> bool:
    if isinstance(target, ast.Subscript) and ast.unparse(target.value) == "sys.modules":
        return ast.unparse(target.slice) != "__name__"
    return ast.unparse(target) in _IMPORT_HOOKS


def _makes_fake(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] in _FAKES


def _names_owned(arguments: list[ast.expr], owned: Collection[str]) -> bool:
    first = arguments[0] if arguments else None
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        return bool(arguments)
    return first.value.partition(".")[0] in owned


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
