"""Finds remove-mode targets: a function or class named by the user, or functions picked with a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from difflib import get_close_matches

from gistpoint.core.code.index import Definition, DefinitionKind, FileIndex, index_source
from gistpoint.core.code.names import FunctionRef
from gistpoint.core.code.parsing import CodeError, NotDefinedError
from gistpoint.core.code.snippet import read_snippet
from gistpoint.core.code.splice import remove_body, remove_methods, replace_definition
from gistpoint.core.code.testfiles import is_protected
from gistpoint.core.errors import SourceError
from gistpoint.core.generation.intake import Intake, NoGood, NoTaskError
from gistpoint.core.tasks.model import Target
from gistpoint.core.trees import SourceTree

MIN_LINES = 3
"""The minimum number of lines in a randomly picked body; shorter bodies leave too little to repair."""


def removal_target(tree: SourceTree, name: str, test_files: frozenset[str] = frozenset()) -> Target:
    """Return the target for a function or class named as `path::qualname`, or by a unique name.

    A class loses the bodies of its methods (decision 142). Raises `CodeError` if the file does not define the
    name, `SourceError` if `name` denotes nothing, several definitions or one of the tests, and `NoTaskError`
    if the body can't be removed.
    """
    ref = named_function(tree, name, test_files)
    index = index_source(ref.path, tree.read(ref.path))
    definition = index.get(ref.qualname)
    try:
        corrupted = removal_of(definition)(index, definition)
        replace_definition(index, definition, corrupted)
    except CodeError as error:
        raise NoTaskError(NoGood.NOT_REMOVABLE, f"The body of {ref} can't be removed: {error}") from error
    return Target(ref.path, ref.qualname, definition.dedented, corrupted)


def removal_of(definition: Definition) -> Callable[[FileIndex, Definition], str]:
    """Return the function that removes the body of a function, or the bodies in a class."""
    return remove_methods if definition.kind is DefinitionKind.CLASS else remove_body


def removal_by(target: Target) -> str:
    """Return the name of the function that removed a target's code, for the provenance of its task."""
    return (remove_methods if is_class(target) else remove_body).__name__


def is_class(target: Target) -> bool:
    """Return whether a target is a class."""
    return read_snippet(target.original).definition.kind is DefinitionKind.CLASS


def check_named(tree: SourceTree, name: str) -> None:
    """Check that `name` can denote a function, before the test files are known.

    Raises `CodeError` if the file can't be parsed or does not define the function, and `SourceError` if
    `name` denotes no function, or one of the tests. A bare qualname may denote several functions: it may
    become unique when the test files are known.
    """
    if "::" in name:
        named_function(tree, name)
    elif not any(name in (d.ref.qualname, d.ref.name) for d in definitions(tree, frozenset(), classes=True)):
        _resolved(tree, name, frozenset())


def named_function(
    tree: SourceTree, name: str | FunctionRef, test_files: frozenset[str] = frozenset()
) -> FunctionRef:
    """Return the function or class that `name` denotes: `path::qualname`, or a unique name or qualname.

    A `FunctionRef` denotes exactly one, the first of several if it has no number. Raises `CodeError` if the
    file does not define it, and `SourceError` if there is no such file, if no or several definitions have the
    name, and if the definition belongs to the tests.
    """
    ref = name if isinstance(name, FunctionRef) else _resolved(tree, name, test_files)
    if is_protected(ref.path, test_files):
        raise SourceError(
            f"{ref.path} belongs to the tests, so it can't be used for a task.", hint="Name another function."
        )
    return ref


def _resolved(tree: SourceTree, name: str, test_files: frozenset[str]) -> FunctionRef:
    if "::" in name:
        path, _, qualname = name.partition("::")
        if not tree.is_file(path):
            raise SourceError(
                f"There is no file {path} in the source.", hint="Name a function as path::qualname."
            )
        index = index_source(path, tree.read(path))
        try:
            return index.find(qualname).ref
        except NotDefinedError as error:
            raise CodeError(error.message, hint=_nearest(index, qualname)) from error
    known = definitions(tree, test_files, classes=True)
    found = [d.ref for d in known if name in (d.ref.qualname, d.ref.name)]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(str(ref) for ref in found[:10])
    raise SourceError(
        f"{name} names {len(found)} functions{': ' + listed if found else ''}.",
        hint="Name one as path::qualname.",
    )


def _nearest(index: FileIndex, name: str) -> str:
    """Return a hint for a name that a file does not define: its functions with the most similar names."""
    functions = [item.ref.qualname for item in index.definitions if item.kind is not DefinitionKind.CLASS]
    near = get_close_matches(name, functions, n=5, cutoff=0.0)
    closest = (
        f"The functions with the most similar names: {', '.join(near)}."
        if near
        else "Name a function in another file."
    )
    return f"{closest} `gistpoint code SOURCE` lists all functions of a library."


def definitions(
    tree: SourceTree, test_files: frozenset[str], *, classes: bool = False
) -> Iterator[Definition]:
    """Yield the functions and methods of all readable files that are not tests, in the order of paths.

    With `classes`, yield the classes too.
    """
    for path in tree.files(".py"):
        if is_protected(path, test_files):
            continue
        try:
            index = index_source(path, tree.read(path))
        except CodeError:
            continue
        yield from (d for d in index.definitions if classes or d.kind is not DefinitionKind.CLASS)


def random_targets(intake: Intake, seed: int) -> Iterator[Target]:
    """Yield removable functions in an order that the seed decides, without those with almost no body."""
    tree, tests = intake.repository.tree, frozenset(intake.test_files)
    names = [
        str(d.ref)
        for d in definitions(tree, tests)
        if d.end_line - d.def_line >= MIN_LINES and not any("overload" in text for text in d.decorators)
    ]
    random.Random(seed).shuffle(names)
    for name in names:
        try:
            yield removal_target(tree, name, tests)
        except (NoTaskError, CodeError):
            continue
