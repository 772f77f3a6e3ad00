"""The functions changed by a submission, and the trees for running it apart from the suite (decision 113)."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from gistpoint.core.code.compare import same_tree
from gistpoint.core.code.index import Definition, DefinitionKind, FileIndex, index_source
from gistpoint.core.code.nodes import inside
from gistpoint.core.code.parsing import parse
from gistpoint.core.code.splice import remove_body, with_definition
from gistpoint.core.code.testfiles import is_configuration, is_protected
from gistpoint.core.confirmation.model import Unconfirmable
from gistpoint.core.trees import SourceTree

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class NotConfirmableError(Exception):
    """A tree's functions can't be run in a separate process."""

    def __init__(self, reason: Unconfirmable, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True, order=True)
class FunctionName:
    """A function by its file and qualified name."""

    path: str
    qualname: str

    def __str__(self) -> str:
        return f"{self.path}::{self.qualname}"


def changed_functions(original: SourceTree, submitted: SourceTree) -> tuple[FunctionName, ...]:
    """Return the outermost functions whose bodies differ in more than their docstrings.

    Raises `NotConfirmableError` if anything else differs, except annotations in headers, and parameters and
    defaults that were added without affecting any earlier call.
    """
    found: list[FunctionName] = []
    for path in sorted({*original.overlay, *submitted.overlay}):
        before, after = original.read(path), submitted.read(path)
        if before != after:
            found += _changed_in(path, before, after)
    return tuple(found)


def _changed_in(path: str, before: bytes, after: bytes) -> Iterator[FunctionName]:
    try:
        old, new = parse(before), parse(after)
    except (SyntaxError, ValueError) as error:
        raise NotConfirmableError(Unconfirmable.HEADER_CHANGED, f"{path} can't be parsed: {error}") from error
    old_functions, new_functions = list(_functions(old)), list(_functions(new))
    bodies = [(first.body, second.body) for first, second in zip(old_functions, new_functions, strict=False)]
    for function in (*old_functions, *new_functions):
        _empty(function)
    for function, changed in zip(old_functions, new_functions, strict=False):
        if _suits_same_calls(function.args, changed.args):
            changed.args = function.args
    if len(old_functions) != len(new_functions) or not same_tree(old, new):
        raise NotConfirmableError(*_outside_bodies(path, old, new))
    index = index_source(path, before)
    for function, (first, second) in zip(old_functions, bodies, strict=True):
        if not same_tree(
            ast.Module(_without_docstring(first), []), ast.Module(_without_docstring(second), [])
        ):
            yield FunctionName(path, _definition_at(index, function.lineno).qualname)


def _functions(node: ast.AST) -> Iterator[_Function]:
    """Yield the outermost functions of a module, in source order."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Function):
            yield child
        elif not isinstance(child, ast.Lambda):
            yield from _functions(child)


def _empty(function: _Function) -> None:
    """Empty a function's body, keeping the expressions that its definition evaluates, except annotations."""
    function.body = [ast.Pass()]
    function.returns = None
    arguments = function.args
    every = (
        *arguments.posonlyargs,
        *arguments.args,
        arguments.vararg,
        *arguments.kwonlyargs,
        arguments.kwarg,
    )
    for argument in every:
        if argument is not None:
            argument.annotation = None


def _suits_same_calls(old: ast.arguments, new: ast.arguments) -> bool:
    """Return whether a function with the parameters `new` takes each call of one with `old` in the same way.

    It may have further parameters at the end, with defaults, and defaults where there were none.
    """
    before, after = _parameters(old), _parameters(new)
    added = after.keys() - before.keys()
    kinds = {kind for kind, _ in before}
    takes_others = not kinds.isdisjoint(_TAKING_OTHERS)
    if added and takes_others:
        return False  # a new parameter could get arguments that `*args` or `**kwargs` got before
    placed, placed_after = ([key for key in part if key[0] in _BY_PLACE] for part in (before, after))
    keeps_names = before.keys() <= after.keys()
    keeps_places = placed_after[: len(placed)] == placed
    keeps_defaults = all(text in ("", after.get(key)) for key, text in before.items())
    added_have_defaults = all(map(after.get, added))
    return keeps_names and keeps_places and keeps_defaults and added_have_defaults


def require_same_at_import(given: SourceTree, original: SourceTree) -> None:
    """Raise `NotConfirmableError` if importing the original might do more than importing the given tree.

    Besides bodies, only literal default values of functions may differ. Anything else could change the
    judging code in the process of the tests, which imports the original.
    """
    for path in sorted({*given.overlay, *original.overlay}):
        before, after = given.read(path), original.read(path)
        try:
            trees = parse(before), parse(after)
        except (SyntaxError, ValueError) as error:
            raise NotConfirmableError(
                Unconfirmable.HEADER_CHANGED, f"{path} can't be parsed: {error}"
            ) from error
        for tree in trees:
            for function in _functions(tree):
                function.body = [ast.Pass()]
                _without_literal_defaults(function.args)
        if not same_tree(*trees):
            raise NotConfirmableError(
                Unconfirmable.HEADER_CHANGED,
                f"In {path}, the original differs from the corrupted code in more than bodies of functions.",
            )


def _without_literal_defaults(arguments: ast.arguments) -> None:
    """Leave only those default values that run code: any number of literals may differ."""
    arguments.defaults = [value for value in arguments.defaults if not _is_literal(value)]
    arguments.kw_defaults = [value for value in arguments.kw_defaults if value and not _is_literal(value)]


_LITERAL = (ast.Constant, ast.UnaryOp, ast.unaryop, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.expr_context)


def _is_literal(value: ast.expr) -> bool:
    """Return whether a value is made of constants alone, with signs, tuples, lists, sets and dictionaries."""
    return all(isinstance(part, _LITERAL) for part in ast.walk(value))


_BY_PLACE = ("place", "place or name")
_TAKING_OTHERS = frozenset(("others", "other names"))
_Parameters = dict[tuple[str, str], str]
"""The defaults of parameters as text, by kind and name; empty without a default."""


def _parameters(arguments: ast.arguments) -> _Parameters:
    """Return the parameters of a function; `*args` and `**kwargs` count as having a default."""
    named = [("place", part) for part in arguments.posonlyargs]
    named += [("place or name", part) for part in arguments.args]
    missing: list[ast.expr | None] = [None] * (len(named) - len(arguments.defaults))
    defaults = [*missing, *arguments.defaults, *arguments.kw_defaults]
    named += [("name", part) for part in arguments.kwonlyargs]
    found = {
        (kind, part.arg): ast.unparse(value) if value else ""
        for (kind, part), value in zip(named, defaults, strict=True)
    }
    others = {"others": arguments.vararg, "other names": arguments.kwarg}
    return found | {(kind, part.arg): "()" for kind, part in others.items() if part}


def _outside_bodies(path: str, old: ast.Module, new: ast.Module) -> tuple[Unconfirmable, str]:
    """Return the reason for a difference outside of the bodies of functions, and a sentence about it."""
    classes = [list(inside(ast.ClassDef, module)) for module in (old, new)]
    same_number = len(classes[0]) == len(classes[1])
    same_classes = same_number and all(map(same_tree, *classes))
    members = [[[type(part) for part in found.body] for found in side] for side in classes]
    same_members = members[0] == members[1]
    if not same_classes and not same_members:
        return Unconfirmable.CLASS_TARGET, f"The submission changes the members of a class in {path}."
    return (
        Unconfirmable.HEADER_CHANGED,
        f"The submission changes more in {path} than the bodies of functions.",
    )


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0] if body else None
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(body) > 1
    return body[1:] if is_docstring else body


def _definition_at(index: FileIndex, line: int) -> Definition:
    return next(found for found in index.definitions if found.def_line == line)


def outermost(tree: SourceTree, name: str) -> FunctionName:
    """Return the outermost function around the one named `path::qualname`, or that function if there is none.

    Raises `NotConfirmableError` for a class, and `CodeError` if the file has no such definition.
    """
    path, _, qualname = name.partition("::")
    index = index_source(path, tree.read(path))
    definition = index.get(qualname)
    if definition.kind is DefinitionKind.CLASS:
        raise NotConfirmableError(Unconfirmable.CLASS_TARGET, f"{name} is a class.")
    found = definition
    while definition.parent is not None:
        definition = index.get(definition.parent)
        if definition.kind is not DefinitionKind.CLASS:
            found = definition
    return FunctionName(path, found.qualname)


def stubbed(tree: SourceTree, functions: Sequence[FunctionName], module: str) -> SourceTree:
    """Return the tree with each function's body replaced by a request to `module` with the function's index.

    Decorators, parameters and docstring stay. Raises `NotConfirmableError` for a coroutine, and `CodeError`
    if a function can't be replaced.
    """
    for place, function in enumerate(functions):
        index = index_source(function.path, tree.read(function.path))
        definition = index.get(function.qualname)
        node = _function_at(index, definition)
        if isinstance(node, ast.AsyncFunctionDef):
            raise NotConfirmableError(Unconfirmable.ASYNCHRONOUS, f"{function} is a coroutine.")
        ask = f'__import__("{module}")'
        statement = f"return {ask}.call({place}, locals())"
        if _yields(node):
            statement = f"return (yield from {ask}.generate({place}, locals()))"
        kept = remove_body(index, definition).rpartition("\n")[0]
        last = remove_body(index, definition).rpartition("\n")[2]
        indentation = last[: len(last) - len(last.lstrip())]
        tree = with_definition(tree, function.path, function.qualname, f"{kept}\n{indentation}{statement}\n")
    return tree


def answering_nothing(tree: SourceTree, functions: Sequence[FunctionName]) -> SourceTree:
    """Return the tree with functions replaced by ones that return None, or generators without items.

    Raises `CodeError` if a function can't be replaced.
    """
    for function in functions:
        index = index_source(function.path, tree.read(function.path))
        definition = index.get(function.qualname)
        node = _function_at(index, definition)
        empty = remove_body(index, definition).rpartition("\n")
        indentation = empty[2][: len(empty[2]) - len(empty[2].lstrip())]
        statement = "yield from ()" if _yields(node) else "return None"
        tree = with_definition(
            tree, function.path, function.qualname, f"{empty[0]}\n{indentation}{statement}\n"
        )
    return tree


def does_nothing(code: str) -> bool:
    """Return whether a function, as text at the left margin, has only `pass` besides any docstring."""
    function = next((part for part in parse(code).body if isinstance(part, _Function)), None)
    if function is None:
        return False
    body = _without_docstring(function.body)
    return all(isinstance(part, ast.Pass) for part in body)


def _function_at(index: FileIndex, definition: Definition) -> _Function:
    module = parse(index.document.encode(index.document.text))
    found = (
        node
        for node in ast.walk(module)
        if isinstance(node, _Function) and node.lineno == definition.def_line
    )
    return next(found)


def _yields(function: ast.AST) -> bool:
    """Return whether a function is a generator itself, apart from functions inside it."""
    for child in ast.iter_child_nodes(function):
        if isinstance(child, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(child, (_Function, ast.Lambda, ast.ClassDef)) and _yields(child):
            return True
    return False


def test_paths(tree: SourceTree, collected: Collection[str], *, data: bool) -> tuple[str, ...]:
    """Return the protected files of a tree that the submission's process does not have.

    Without `data`, these are only the Python files; with it, they are all protected files, which may contain
    expected results, except settings that a build needs.
    """
    files = frozenset(collected)
    found = (path for path in tree.files() if is_protected(path, files))
    return tuple(path for path in found if path.endswith(".py") or (data and not is_configuration(path)))


def without(tree: SourceTree, paths: Collection[str]) -> SourceTree:
    """Return a tree without the given files."""
    removed = frozenset(paths)
    members = {path: member for path, member in tree.members.items() if path not in removed}
    overlay = {path: data for path, data in tree.overlay.items() if path not in removed}
    return SourceTree(tree.tar, members, overlay)
