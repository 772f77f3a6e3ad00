"""Inserts the original test into a gist, compares the gist's own with it, and makes the test's guard."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gistpoint.core.code.parsing import compile_module, first_line, parse
from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.entrypoints.runs import TestGuard
from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.gist.doctests import (
    docstring_lines,
    docstring_sha256,
    documented,
    has_docstring,
    spliced_docstring,
)
from gistpoint.core.kinds.gist.dropped_imports import without_imports
from gistpoint.core.kinds.gist.lines import (
    BlockKind,
    LineBlock,
    blocks_of,
    bodies_in,
    dedented,
    find_test,
    indented,
    margin_of,
)


@dataclass(frozen=True, slots=True)
class GistTest:
    """A pytest entrypoint: the test's qualified name, and the source of its file."""

    qualname: str
    source: str
    defined_as: str = ""
    """The function of `source` with the test's text, if its name is different.

    It is, for example, a method of a mixin, or a function that makes tests.
    """
    doctest: bool = False
    """Whether the test is the docstring of `qualname`, or of the module if the name is empty."""
    others: tuple[GistTest, ...] = ()
    """The other tests that the command runs."""

    @property
    def each(self) -> tuple[GistTest, ...]:
        """All tests that the command runs, this one first."""
        return (replace(self, others=()), *self.others)

    @property
    def has_other_blocks(self) -> bool:
        """Whether the command has tests other than the function `qualname`."""
        return bool(self.others or self.defined_as) or self.doctest

    @property
    def name(self) -> str:
        """The name of the test's definition in `source`."""
        return self.defined_as or self.qualname


def document_of_test(test: GistTest) -> dict[str, Any]:
    """Return the tests of a command as they are stored, with each file once."""
    document: dict[str, Any] = {"qualname": test.qualname, "source": test.source}
    if test.defined_as:
        document["defined_as"] = test.defined_as
    if test.doctest:
        document["doctest"] = True
    if test.others:
        files = list(dict.fromkeys(one.source for one in test.others))
        document["files"] = files
        document["others"] = [
            {
                "qualname": one.qualname,
                "defined_as": one.defined_as,
                "doctest": one.doctest,
                "file": files.index(one.source),
            }
            for one in test.others
        ]
    return document


def stored_test(document: Mapping[str, Any]) -> GistTest:
    """Return the tests that `document_of_test` stored."""
    others = (
        GistTest(one["qualname"], document["files"][one["file"]], one["defined_as"], one["doctest"])
        for one in document.get("others", ())
    )
    return GistTest(
        document["qualname"],
        document["source"],
        document.get("defined_as", ""),
        document.get("doctest", False),
        tuple(others),
    )


@dataclass(frozen=True, slots=True)
class TestScore:
    """The overlap of the original test and the gist's version as handed in, as percentages."""

    __test__ = False

    recall: float
    """The share of the original test's lines that are in the gist's version, as in Gistify's table 6."""
    precision: float
    """The share of lines in the gist's version that are in the original test."""

    @property
    def f1(self) -> float:
        """The harmonic mean of recall and precision; 0 if both are 0."""
        total = self.recall + self.precision
        if total:
            return 2 * self.recall * self.precision / total
        return 0.0

    @property
    def changed(self) -> bool:
        """Whether a line was added, removed or changed."""
        return self.recall < 100 or self.precision < 100


def missing_test(gist: str, qualname: str) -> bool:
    """Return whether a gist parses and does not define the test `qualname`."""
    try:
        tree = parse(gist)
    except (SyntaxError, ValueError):
        return False
    return find_test(tree, qualname) is None


def missing_name(gist: str, test: GistTest) -> str:
    """Return the name of the first test that a gist does not define; empty if there is none.

    For a test that is made at run time, the gist must define the test or the function that makes it. Also
    empty if the gist does not parse.
    """
    try:
        tree = parse(gist)
    except (SyntaxError, ValueError):
        return ""
    return next((one.qualname for one in test.each if not _defines(tree, one)), "")


def _defines(tree: ast.Module, test: GistTest) -> bool:
    if test.doctest:
        return documented(tree, test.qualname) is not None
    if find_test(tree, test.qualname) is not None:
        return True
    return test.defined_as != "" and find_test(tree, test.defined_as) is not None


def blocks_of_tests(text: str, test: GistTest) -> frozenset[str]:
    """Return the names of the blocks with tests, except doctests, in code; empty for invalid code."""
    try:
        tree = parse(text)
    except (SyntaxError, ValueError):
        return frozenset()
    names = set[str]()
    for one in test.each:
        block = None if one.doctest else _definition_in(tree, one)
        if block is not None:
            names.add(block.name)
    return frozenset(names)


def _definition_in(tree: ast.Module, test: GistTest) -> LineBlock | None:
    """Return the test in a gist, or else the function that makes it; None if the gist has neither."""
    return find_test(tree, test.qualname) or find_test(tree, test.name)


def score_tests(test: GistTest, gist: str, owned: Collection[str]) -> TestScore:
    """Return the score of all tests of a command, like `score_test`; of a doctest, the docstring is scored.

    The score is 0 if the gist does not parse, or if either side has no line to compare.
    """
    try:
        tree = parse(gist)
    except (SyntaxError, ValueError):
        return TestScore(0.0, 0.0)
    wanted: list[str] = []
    given: list[str] = []
    shared = 0
    back = 0
    # Each test is compared with its own counterpart: a line that moved to another test is a change.
    for one in test.each:
        if one.doctest:
            original = docstring_lines(parse(one.source), one.qualname)
            own = docstring_lines(tree, one.qualname)
        else:
            original = _lines_of(one.source, one.name, owned)
            own = _lines_of(gist, one.qualname, owned) or _lines_of(gist, one.name, owned)
        shared += _found_in(own, original)
        back += _found_in(original, own)
        wanted += original
        given += own
    if not wanted or not given:
        return TestScore(0.0, 0.0)
    return TestScore(100 * shared / len(wanted), 100 * back / len(given))


def score_test(original: str, gist: str, qualname: str, owned: Collection[str]) -> TestScore:
    """Return the score of the test `qualname` in the file `gist` against that in the test file `original`.

    Imports of the codebase's own top-level names (`owned`) are left out on both sides, because a gist has to
    drop them. A missing test, or a gist that does not parse, scores 0.
    """
    wanted = _lines_of(original, qualname, owned)
    try:
        given = _lines_of(gist, qualname, owned)
    except (SyntaxError, ValueError):
        given = []
    if not wanted or not given:
        return TestScore(0.0, 0.0)
    recall = 100 * _found_in(given, wanted) / len(wanted)
    precision = 100 * _found_in(wanted, given) / len(given)
    return TestScore(recall, precision)


def _found_in(lines: Collection[str], texts: Collection[str]) -> int:
    """Return how many of `texts` are among the `lines`."""
    known = set(lines)
    return sum(text in known for text in texts)


def _lines_of(source: str, qualname: str, owned: Collection[str]) -> list[str]:
    definition = find_test(parse(source), qualname)
    if definition is None:
        return []
    # A gist has to drop imports of the codebase, so they count on neither side (decision 16).
    return [line.text for line in definition.lines if not imports_owned(line.text, owned)]


def guard_of(spliced: str, source: str, qualname: str) -> TestGuard | None:
    """Return the guard of a test from `source` inserted into code.

    None if the test is not in the code, or for invalid code.
    """
    try:
        found = find_test(parse(spliced), qualname)
    except (SyntaxError, ValueError):
        return None
    if found is None:
        return None
    return TestGuard(found.first, found.last, _is_decorated(found), pytest_names(source))


def _is_decorated(test: LineBlock) -> bool:
    """Return whether a test has decorators that are not marks of pytest."""
    decorators: list[ast.expr] = getattr(test.statements[0], "decorator_list", [])
    return not all(ast.unparse(one).startswith("pytest.mark.") for one in decorators)


def guard_for(spliced: str, test: GistTest) -> TestGuard | None:
    """Return the guard of a command's tests in code; None if a function is missing, or for invalid code."""
    if not test.has_other_blocks:
        return guard_of(spliced, test.source, test.qualname)
    try:
        tree = parse(spliced)
    except (SyntaxError, ValueError):
        return None
    places: dict[str, tuple[int, int]] = {}
    doctests: dict[str, str] = {}
    decorated = False
    written = [one for one in test.each if not one.doctest]
    for one in written:
        found = _definition_in(tree, one)
        if found is None:
            return None
        places[one.qualname] = (found.first, found.last)
        decorated |= _is_decorated(found)
    for one in test.each:
        if one.doctest:
            doctests[one.qualname] = docstring_sha256(documented(tree, one.qualname))
    first = min(places.values(), default=(0, 0))
    last = max(places.values(), default=(0, 0))
    names = _common_meanings([pytest_names(one.source) for one in written])
    return TestGuard(first[0], last[1], decorated, names, places, doctests)


def _common_meanings(found: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the names that mean the same in every file that has them."""
    meanings: dict[str, set[str]] = {}
    for names in found:
        for name, attribute in names.items():
            meanings.setdefault(name, set()).add(attribute)
    return {name: min(attributes) for name, attributes in meanings.items() if len(attributes) == 1}


def pytest_names(source: str) -> dict[str, str]:
    """Return the names that a file's top level imports from pytest, with their attributes.

    The attribute is `""` for pytest itself.
    """
    found: dict[str, str] = {}
    for node in parse(source).body:
        match node:
            case ast.Import(names=aliases):
                modules = [alias for alias in aliases if alias.name == "pytest"]
                found.update({alias.asname or alias.name: "" for alias in modules})
            case ast.ImportFrom(module="pytest", names=aliases, level=0):
                named = [alias for alias in aliases if alias.name != "*"]
                found.update({alias.asname or alias.name: alias.name for alias in named})
    return found


def imports_owned(text: str, owned: Collection[str]) -> bool:
    """Return whether a normalised line imports a top-level name in `owned`, or is a relative import."""
    if not text.startswith(("import ", "from ")):
        return False
    match parse(text).body[0]:
        case ast.ImportFrom(module=module, level=level):
            return level > 0 or (module or "").partition(".")[0] in owned
        case ast.Import(names=aliases):
            return aliases[0].name.partition(".")[0] in owned
        case _:
            return False


@dataclass(frozen=True, slots=True)
class SplicedGist:
    """A gist with the original test in it."""

    text: str
    origin: tuple[int | None, ...]
    """For each line of `text`, its number in the gist as handed in; None for lines of the original test."""


def given_test(test: GistTest | None) -> str:
    """Return the original tests as a brief shows them; empty for a program, and for doctests.

    Raises TaskError if a test is not in its source.
    """
    if test is None:
        return ""
    written = [one for one in test.each if not one.doctest]
    if len(written) == 1:
        return original_test(written[0].source, written[0].name)
    text = ""
    for one in written:
        text = splice_test(text, one.source, one.name, ()).text
    return text


def _blocks_named(blocks: Sequence[LineBlock], kind: BlockKind, name: str) -> list[LineBlock]:
    """Return the blocks of a kind with a name, in source order."""
    return [block for block in blocks if block.kind is kind and block.name == name]


def splice_test(
    gist: str, original: str, qualname: str, owned: Collection[str], *, defined_as: str = ""
) -> SplicedGist:
    """Return `gist` with every definition of the test `qualname` replaced by that of the file `original`.

    A function takes the place of the gist's first definition of it, or goes to the end. A method goes into
    the gist's class of that name, which is created with the original's header if the gist has none.
    Definitions under a main guard are left alone. Imports of `owned` names are removed from the test, which
    is otherwise unchanged. `defined_as` is the name of the definition in the original, if it is different.
    Raises SyntaxError for a gist that does not parse, and TaskError for an original without that test.
    """
    definition = _required_test(original, defined_as or qualname)
    test = _test_text(original, definition, owned)
    tree = parse(gist)
    blocks = blocks_of(tree)
    lines = physical_lines(gist)
    # A gist may define an inherited test in the class itself: that definition would run, so it is replaced.
    is_elsewhere = definition.name != qualname
    own = find_test(tree, qualname) if is_elsewhere else None
    name = own.name if own is not None else definition.name
    old = [block for block in _blocks_named(blocks, BlockKind.FUNCTION, name) if not block.in_guard]
    owner = definition.name.rpartition(".")[0]
    homes = _blocks_named(blocks, BlockKind.CLASS, owner)
    if old:
        at = old[0].first
        depth = margin_of(lines[old[0].statements[0].lineno - 1])
    elif homes:
        at = homes[-1].last + 1
        depth = _class_depth(homes[-1], lines)
    else:
        at = len(lines) + 1
        depth = ""
        test = _in_classes(test, original, owner)
    put_in: list[tuple[str, int | None]] = [(text, None) for text in indented(test, depth)]
    # Every definition of the test is removed: the last one in the file would be the one that runs.
    above = _lines_outside(lines[: at - 1], old)
    below = _lines_outside(lines, old, _fillers(tree, lines, old[1:]))[len(above) :]
    return _spliced([*above, *put_in, *below])


def _lines_outside(
    lines: Sequence[str], blocks: Sequence[LineBlock], fillers: Mapping[int, str] | None = None
) -> list[tuple[str, int | None]]:
    """Return the lines outside of the blocks, each with its number, and `fillers` on the lines in them."""
    removed = set[int]()
    for block in blocks:
        removed.update(range(block.first, block.last + 1))
    found: list[tuple[str, int | None]] = []
    for number, text in enumerate(lines, start=1):
        if number not in removed:
            found.append((text, number))
        elif fillers and number in fillers:
            found.append((fillers[number], None))
    return found


def _fillers(tree: ast.Module, lines: Sequence[str], removed: Sequence[LineBlock]) -> dict[int, str]:
    """Return, by its line, a `pass` for each block of the file of which nothing else would remain."""
    gone = {block.statements[0] for block in removed}
    emptied = [body[0] for body in bodies_in(tree) if gone.issuperset(body)]
    return {first_line(one): f"{margin_of(lines[one.lineno - 1])}pass" for one in emptied}


def _spliced(lines: Sequence[tuple[str, int | None]]) -> SplicedGist:
    text = "\n".join(text for text, _ in lines) + "\n"
    return SplicedGist(text, tuple(number for _, number in lines))


def splice_doctest(gist: str, original: str, name: str, owned: Collection[str]) -> SplicedGist:
    """Return a gist with the docstring of `name` from `original`, without its `owned` imports.

    Raises SyntaxError for a gist that does not parse, and TaskError if one of the two has no such definition,
    or if the one in `original` has no docstring.
    """
    return _spliced(spliced_docstring(gist, original, name, lambda text: imports_owned(text, owned)))


def ready_text(gist: str, test: GistTest | None, owned: Collection[str]) -> SplicedGist | None:
    """Return the text of a gist as it is run; None for an empty gist, or if a test is missing.

    Raises SyntaxError or ValueError for a gist that can't be compiled. Raises TaskError for an original test
    that is not in its source; an answer with such a test can't be read.
    """
    if not gist.strip():
        return None
    spliced = SplicedGist(gist, tuple(range(1, len(physical_lines(gist)) + 1)))
    if test is None:
        compile_module(gist, "<gist>")
        return spliced
    if missing_name(gist, test):
        return None
    for one in test.each:
        if one.doctest:
            put_in = splice_doctest(spliced.text, one.source, one.qualname, owned)
        else:
            put_in = splice_test(spliced.text, one.source, one.qualname, owned, defined_as=one.defined_as)
        # Lines of tests inserted earlier keep None; others keep their numbers in the gist as handed in.
        before = spliced.origin
        origin = tuple(None if number is None else before[number - 1] for number in put_in.origin)
        spliced = SplicedGist(put_in.text, origin)
    compile_module(spliced.text, "<gist>")
    return spliced


def original_test(original: str, qualname: str) -> str:
    """Return the unchanged source of the test `qualname` in the file `original`, inside its class.

    Raises TaskError if there is none.
    """
    definition = _required_test(original, qualname)
    lines = dedented(physical_lines(original)[definition.first - 1 : definition.last])
    return "\n".join(_in_classes(lines, original, definition.name.rpartition(".")[0])) + "\n"


def inheriting_test(test: GistTest) -> str:
    """Return the original test as a gist can contain it.

    The text includes the class that gives the test its name, if that class inherits the test. For several
    tests or a doctest, the text consists of the tests as given, and of the whole files that contain doctests.
    Raises TaskError if a test is not in its source.
    """
    if test.others or test.doctest:
        documented_in = dict.fromkeys(one.source for one in test.each if one.doctest)
        return "\n\n".join([given_test(test), *documented_in])
    text = original_test(test.source, test.name)
    if not missing_name(text, test):
        return text
    heir = test.qualname.rpartition(".")[0]
    base = _required_test(test.source, test.qualname).name.rpartition(".")[0]
    return f"{text}\n\nclass {heir}({base}):\n    pass\n"


def unfound_test(test: GistTest) -> str:
    """Return the name of a command's first test that its own file does not contain; empty if all do."""
    for one in test.each:
        try:
            tree = parse(one.source)
        except (SyntaxError, ValueError):
            return one.qualname or "the module"
        is_there = has_docstring(tree, one.qualname) if one.doctest else find_test(tree, one.name)
        if not is_there:
            return one.qualname or "the module"
    return ""


def _required_test(original: str, qualname: str) -> LineBlock:
    definition = find_test(parse(original), qualname)
    if definition is None:
        raise TaskError(f"The test file has no test {qualname!r}.", hint="Name a function, or Class.method.")
    return definition


def _test_text(original: str, definition: LineBlock, owned: Collection[str]) -> list[str]:
    """Return the lines of a test without its imports of `owned` names, at the margin."""
    lines = physical_lines(original)[definition.first - 1 : definition.last]
    test = definition.statements[0]
    return dedented(
        without_imports(lines, test, lambda line: imports_owned(line, owned), first=definition.first)
    )


def _class_depth(block: LineBlock, lines: list[str]) -> str:
    statement = block.statements[0]
    if isinstance(statement, ast.ClassDef) and statement.body[0].lineno > statement.lineno:
        return margin_of(lines[statement.body[0].lineno - 1])
    return margin_of(lines[statement.lineno - 1]) + "    "


def _in_classes(lines: list[str], original: str, owner: str) -> list[str]:
    """Return the lines of a method below the headers of its classes in the file `original`."""
    blocks = blocks_of(parse(original))
    source = physical_lines(original)
    while owner:
        for block in _blocks_named(blocks, BlockKind.CLASS, owner)[:1]:
            lines = [*_class_header(block, source), *indented(lines, "    ")]
        owner = owner.rpartition(".")[0]
    return lines


def _class_header(block: LineBlock, source: Sequence[str]) -> list[str]:
    """Return the lines of a class's header, with its decorators, at the margin."""
    statement = block.statements[0]
    assert isinstance(statement, ast.ClassDef)
    header = list(source[block.first - 1 : first_line(statement.body[0]) - 1])
    # The header ends with its colon; only blank lines and comments can follow it.
    while header and header[-1].strip()[:1] in ("", "#"):
        header.pop()
    return dedented(header)
