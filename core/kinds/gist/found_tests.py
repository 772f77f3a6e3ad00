"""Finds the text of each test that pytest ran, even if another file or a program made the test.

The run reports where the text is, because reading the sources can't follow mixins and loops that make tests
(decision 90).
"""

from __future__ import annotations

from dataclasses import replace

from gistpoint.core.code.parsing import parse
from gistpoint.core.code.source_text import python_text
from gistpoint.core.entrypoints.runs import DOCTEST, OriginalRun
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.gist.doctests import docstring_lines
from gistpoint.core.kinds.gist.fidelity import instance_key
from gistpoint.core.kinds.gist.lines import BlockKind, LineBlock, blocks_of, find_test
from gistpoint.core.kinds.gist.original_test import GistTest
from gistpoint.core.trees import SourceTree


class UnwrittenTestError(UserError):
    """The error for a test that has no source that a gist could contain."""


class NamesClashError(UserError):
    """The error for equally named tests of several files, only one of which one file can contain."""


def found_tests(tree: SourceTree, run: OriginalRun) -> GistTest:
    """Return the first test that pytest ran, with all other tests in its `others`.

    A test that its own file does not define has the text of the function with its code: a mixin in another
    file, or a function that makes tests while the file is imported. Raises `UnwrittenTestError` for a test
    whose code is in no named function of the codebase, whose file does not parse, or of which a definition
    other than the last one runs, `NamesClashError` if two
    files have tests or classes of tests with the same name, and ValueError for a run without tests.
    """
    found: dict[tuple[str, str], GistTest] = {}
    keys: dict[str, str] = {}
    owners: dict[str, str] = {}
    for id in getattr(run.run, "tests", {}):
        path, _, name = id.partition("::")
        qualname = name.partition("[")[0].replace("::", ".")
        owner = qualname.partition(".")[0]
        is_only_instance = keys.setdefault(instance_key(id), id) == id
        is_only_owner = owners.setdefault(owner, path) == path
        if not is_only_instance or not is_only_owner:
            raise NamesClashError(
                f"{owner} is defined in both {owners[owner]} and {path}; a single file can define it"
                " only once.",
                hint="Name the tests of one of the two files.",
            )
        if (path, qualname) not in found:
            found[path, qualname] = _found(tree, path, qualname, run.defined.get(id))
    first, *others = found.values()
    return replace(first, others=tuple(others))


def written_test(tree: SourceTree, path: str, qualname: str) -> GistTest | None:
    """Return the test that a file defines itself, or inherits within the file; None if there is none.

    Raises `UnwrittenTestError` for a file that does not parse.
    """
    source = _text(tree, path)
    try:
        if find_test(parse(source), qualname) is not None:
            return GistTest(qualname, source)
        return None
    except (SyntaxError, ValueError) as error:
        raise UnwrittenTestError(f"{path} can't be read: {error}.") from error


def _found(tree: SourceTree, path: str, qualname: str, place: tuple[str, int] | None) -> GistTest:
    if qualname.startswith(DOCTEST):
        name = qualname.removeprefix(DOCTEST)
        source = _text(tree, path)
        if not docstring_lines(parse(source), name):
            raise UnwrittenTestError(f"{path} has no docstring of {name}: its examples come from elsewhere.")
        return GistTest(name, source, doctest=True)
    written = written_test(tree, path, qualname)
    if written is not None:
        if place is not None and place[0] == path and _is_earlier(written, place[1]):
            raise UnwrittenTestError(
                f"{path} defines {qualname} several times, and the one that runs is not the last.",
                hint="Which of them runs depends on a condition, but a gist gets the last one.",
            )
        return written
    if place is None or not tree.is_file(place[0]):
        raise UnwrittenTestError(
            f"{path} does not define {qualname}, whose code is in no file of the codebase.",
            hint="A test that is generated from a string, or by another package, has no source code to copy.",
        )
    source = _text(tree, place[0])
    held = _function_at(source, place[1])
    if held is None:
        raise UnwrittenTestError(
            f"{path} does not define {qualname}; its code is at {place[0]}:{place[1]}, outside any"
            " function that has a name.",
            hint="A test that is generated at run time needs a function that contains its code.",
        )
    return GistTest(qualname, source, defined_as=held.name)


def _is_earlier(test: GistTest, line: int) -> bool:
    """Return whether a line belongs to a definition that has the test's name but isn't the one found."""
    tree = parse(test.source)
    found = find_test(tree, test.name)
    return found is not None and any(
        block.name == found.name and block.first != found.first and block.first <= line <= block.last
        for block in blocks_of(tree)
        if block.kind is BlockKind.FUNCTION
    )


def _function_at(source: str, line: int) -> LineBlock | None:
    """Return the function that contains a line, if it is also found by its name; else None."""
    for block in blocks_of(parse(source)):
        if block.kind is not BlockKind.FUNCTION or not block.first <= line <= block.last:
            continue
        named = find_test(parse(source), block.name)
        # Of several functions with one name, only the last can be found by it.
        return block if named is not None and named.first == block.first else None
    return None


def _text(tree: SourceTree, path: str) -> str:
    return python_text(tree.read(path))
