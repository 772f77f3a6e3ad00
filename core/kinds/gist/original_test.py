"""The test of an entrypoint in two files: is it there, and how much of it is as it was."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from gistpoint.core.code.parsing import parse
from gistpoint.core.kinds.gist.lines import find_test


@dataclass(frozen=True, slots=True)
class TestScore:
    """Overlap of the original test and the gist's version as handed in, 0-100 each."""

    __test__ = False

    recall: float
    """Lines of the original test that stand in the gist's version: the figure of Gistify's table 6."""
    precision: float
    """Lines of the gist's version that stand in the original test."""

    @property
    def f1(self) -> float:
        """Harmonic mean of recall and precision."""
        total = self.recall + self.precision
        return 2 * self.recall * self.precision / total if total else 0.0

    @property
    def changed(self) -> bool:
        """Whether a line was added, removed or altered."""
        return self.recall < 100 or self.precision < 100


def missing_test(gist: str, qualname: str) -> bool:
    """Whether a gist that parses has no definition of the test; one that does not parse is an error of syntax."""
    try:
        tree = parse(gist)
    except (SyntaxError, ValueError):
        return False
    return find_test(tree, qualname) is None


def score_test(original: str, gist: str, qualname: str, owned: Collection[str]) -> TestScore:
    """Score the test `qualname` of the file `gist` against that of the test file `original`.

    Imports of the codebase's own top-level names (`owned`) are left out on both sides: a gist has to drop them.
    A test that is missing, or a gist that does not parse, scores 0.
    """
    wanted = _lines_of(original, qualname, owned)
    try:
        given = _lines_of(gist, qualname, owned)
    except (SyntaxError, ValueError):
        given = []
    if not wanted or not given:
        return TestScore(0.0, 0.0)
    recall = 100 * sum(text in set(given) for text in wanted) / len(wanted)
    precision = 100 * sum(text in set(wanted) for text in given) / len(given)
    return TestScore(recall, precision)


def _lines_of(source: str, qualname: str, owned: Collection[str]) -> list[str]:
    definition = find_test(parse(source), qualname)
    if definition is None:
        return []
    return [line.text for line in definition.lines if not imports_owned(line.text, owned)]


@dataclass(frozen=True, slots=True)
class TestGuard:
    """What a run looks after, so that the test that ran is the one that was put in."""

    __test__ = False

    first: int
    last: int
    """The physical lines of the test, decorators included."""
    decorated: bool
    """Whether decorators other than pytest's marks may have put something around it."""
    pytest_names: Mapping[str, str]
    """Names that the file takes from pytest, with the attribute that each is; empty for pytest itself."""


def guard_of(spliced: str, source: str, qualname: str) -> TestGuard | None:
    """Return the guard of the test `qualname`, put into a text from the file `source`; None where it is not there."""
    found = find_test(parse(spliced), qualname)
    if found is None:
        return None
    decorators = getattr(found.statements[0], "decorator_list", [])
    decorated = not all(ast.unparse(one).startswith("pytest.mark.") for one in decorators)
    return TestGuard(found.first, found.last, decorated, pytest_names(source))


def pytest_names(source: str) -> dict[str, str]:
    """Return the names that a file takes from pytest, with the attribute that each is; empty for pytest itself."""
    found: dict[str, str] = {}
    for node in parse(source).body:
        if isinstance(node, ast.Import):
            found.update({alias.asname or alias.name: "" for alias in node.names if alias.name == "pytest"})
        elif isinstance(node, ast.ImportFrom) and node.module == "pytest" and not node.level:
            found.update({alias.asname or alias.name: alias.name for alias in node.names if alias.name != "*"})
    return found


def imports_owned(text: str, owned: Collection[str]) -> bool:
    """Whether a normalised line imports one of the top-level names `owned`, or from its own package."""
    if not text.startswith(("import ", "from ")):
        return False
    statement = parse(text).body[0]
    if isinstance(statement, ast.ImportFrom):
        return statement.level > 0 or (statement.module or "").partition(".")[0] in owned
    return isinstance(statement, ast.Import) and statement.names[0].name.partition(".")[0] in owned
