"""Tests that a file does not define itself, and several tests of one command: found, scored, stored."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from small_trees import tree_of

from gistpoint.core.code.parsing import parse
from gistpoint.core.entrypoints.runs import OriginalRun, TestRun, TestsRun
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.gist.doctests import docstring_sha256, documented
from gistpoint.core.kinds.gist.fidelity import compare_tests
from gistpoint.core.kinds.gist.found_tests import NamesClashError, UnwrittenTestError, found_tests
from gistpoint.core.kinds.gist.lines import find_test
from gistpoint.core.kinds.gist.original_test import (
    GistTest,
    blocks_of_tests,
    document_of_test,
    given_test,
    guard_for,
    guard_of,
    inheriting_test,
    missing_name,
    ready_text,
    score_tests,
    stored_test,
)
from gistpoint.core.kinds.gist.rates import Originals
from gistpoint.core.kinds.gist.score import GistRun, score_gist
from gistpoint.core.outcomes import Outcome, RunStatus

MIXIN = "class Mixin:\n    def test_in(self):\n        assert total([1]) == 1\n"
MAKER = """
class Maker:
    @classmethod
    def attach(cls, name, wanted):
        def run(self):
            assert total([1]) == wanted
        setattr(cls, name, run)

    same = lambda self: None
"""
OWN = "from mixins import Mixin\n\n\nclass Own(Mixin):\n    pass\n\n\ndef test_it(): pass\n"
PKG = 'def total(n):\n    """Sum.\n\n    >>> total([])\n    0\n    """\n'
FILES = {"t/test_a.py": OWN, "t/test_b.py": OWN, "t/mixins.py": MIXIN, "t/maker.py": MAKER, "pkg.py": PKG}
INHERITED = GistTest("Own.test_in", MIXIN, "Mixin.test_in")
MADE = GistTest("Own.test_made", MAKER, "Maker.attach")


def a_run(*ids: str, at: tuple[str, int] | None = None) -> OriginalRun:
    """Return a run of tests; `at` is where the code of the first test is."""
    run = TestsRun(RunStatus.FINISHED, {id: TestRun(Outcome.PASSED) for id in ids})
    return OriginalRun(run, 0.1, defined={ids[0]: at} if at else {})


def test_the_text_of_a_test_is_where_its_code_is(tmp_path: Path) -> None:
    tree = tree_of(FILES, tmp_path)
    assert found_tests(tree, a_run("t/test_a.py::Own::test_in", at=("t/mixins.py", 2))) == INHERITED
    assert found_tests(tree, a_run("t/test_a.py::Own::test_made", at=("t/maker.py", 5))) == MADE
    several = found_tests(
        tree, a_run("t/test_a.py::test_it[1]", "t/test_a.py::test_it[2]", "pkg.py::doctest:total")
    )
    assert [(one.qualname, one.doctest) for one in several.each] == [("test_it", False), ("total", True)]


@pytest.mark.parametrize(
    ("ids", "place", "error"),
    [
        (["t/test_a.py::Own::test_made"], None, UnwrittenTestError),
        (["t/test_a.py::Own::test_made"], ("elsewhere.py", 1), UnwrittenTestError),
        (["t/test_a.py::Own::test_made"], ("t/maker.py", 9), UnwrittenTestError),
        (["pkg.py::doctest:none"], None, UnwrittenTestError),
        (["t/test_a.py::test_it", "t/test_b.py::test_it"], None, NamesClashError),
    ],
)
def test_what_has_no_text_is_told(
    ids: list[str],
    place: tuple[str, int] | None,
    error: type[UserError],
    tmp_path: Path,
) -> None:
    with pytest.raises(error):
        found_tests(tree_of(FILES, tmp_path), a_run(*ids, at=place))


def test_an_inherited_test_takes_the_place_that_the_gist_gave_it() -> None:
    direct = "class Own:\n    x = 1\n    def test_in(self):\n        assert True\n"
    spliced = ready_text(direct, INHERITED, ())
    assert spliced is not None
    assert spliced.text == "class Own:\n    x = 1\n    def test_in(self):\n        assert total([1]) == 1\n"
    through = ready_text(f"{MIXIN.replace('== 1', '== 2')}class Own(Mixin): pass\n", INHERITED, ())
    assert through is not None
    assert through.text == f"{MIXIN}class Own(Mixin): pass\n"
    assert missing_name("class Own: pass\n", INHERITED) == "Own.test_in"
    assert ready_text("class Own: pass\n", INHERITED, ()) is None
    assert missing_name(inheriting_test(INHERITED), INHERITED) == ""


def test_what_makes_a_test_is_its_text() -> None:
    gist = MAKER.replace("== wanted", "== 1")
    assert (missing_name(gist, MADE), missing_name("class Maker: pass\n", MADE)) == ("", "Own.test_made")
    spliced = ready_text(gist, MADE, ())
    assert spliced is not None
    assert "== wanted" in spliced.text
    guard = guard_for(spliced.text, MADE)
    assert guard is not None
    assert guard.places == {"Own.test_made": (3, 7)}
    assert blocks_of_tests(spliced.text, MADE) == {"Maker.attach"}


def several() -> GistTest:
    doctest, other = GistTest("total", PKG, doctest=True), GistTest("Own.test_it", f"{OWN}    pass\n")
    return GistTest("test_it", OWN, others=(INHERITED, doctest, other))


GIST = f"{MIXIN}class Own(Mixin): pass\ndef total(n): return sum(n)\ndef test_it():\n    x = 1\n"


def test_all_tests_of_a_command_are_put_in_and_guarded() -> None:
    test = replace(several(), others=several().others[:2])
    spliced = ready_text(GIST, test, ())
    assert spliced is not None
    assert "x = 1" not in spliced.text
    assert ">>> total([])" in spliced.text
    assert [spliced.text.splitlines()[n] for n, line in enumerate(spliced.origin) if line == 1] == [
        "class Mixin:"
    ]
    guard = guard_for(spliced.text, test)
    assert guard is not None
    assert set(guard.places) == {"test_it", "Own.test_in"}
    assert guard.doctests == {"total": docstring_sha256(documented(parse(PKG), "total"))}
    alone = GistTest("test_it", OWN)
    assert guard_for(OWN, alone) == guard_of(OWN, OWN, "test_it")
    assert guard_for("x = 1\n", test) is None
    overlap = score_tests(test, GIST, ())
    assert overlap.changed
    assert score_tests(test, spliced.text, ()).recall == 100
    assert given_test(test).count("def ") == 2


def test_tests_are_stored_with_each_file_once() -> None:
    assert document_of_test(GistTest("test_it", OWN)) == {"qualname": "test_it", "source": OWN}
    document = document_of_test(several())
    assert len(document["files"]) == 3
    assert stored_test(document) == several()
    assert stored_test(document_of_test(MADE)) == MADE


def test_a_made_test_with_other_data_is_another_test() -> None:
    def run(fixed: str | None) -> TestsRun:
        return TestsRun(RunStatus.FINISHED, {"a.py::t": TestRun(Outcome.PASSED, fixed=fixed)})

    assert compare_tests([run("1"), run("1")], run("1")).value == 1
    assert [one.what for one in compare_tests([run("1"), run("1")], run("2")).differences] == ["data"]
    assert compare_tests([run("1"), run("2")], run("3")).value == 1
    assert compare_tests([run(None), run(None)], run("3")).value == 1


def test_other_docstrings_of_a_gist_do_not_count() -> None:
    def run(*names: str) -> TestsRun:
        return TestsRun(RunStatus.FINISHED, {f"a.py::{name}": TestRun(Outcome.PASSED) for name in names})

    assert compare_tests([run("doctest:a")] * 2, run("doctest:a", "doctest:b")).value == 1
    assert compare_tests([run("doctest:a")] * 2, run("doctest:b")).value == 0
    assert compare_tests([run("doctest:a")] * 2, run("doctest:a", "test_b")).value == 0


SAME_FILE = MIXIN + "\n\nclass Own(Mixin):\n    pass\n"


@pytest.mark.parametrize(
    "gist",
    [
        "class Own:\n    def test_in(self):\n        pass\n",
        "class Mixin:\n    def test_in(self):\n        pass\n\n\nclass Own(Mixin):\n    pass\n",
        f"{MIXIN}\n\nclass Own(Mixin):\n    def test_in(self):\n        pass\n",
        "class Other:\n    def test_in(self):\n        pass\n\n\nclass Own(Other):\n    pass\n",
        "class Own:\n    def test_in(self):\n        pass\n\n    def test_in(self):\n        x\n",
    ],
    ids=["in the heir", "in the base", "in both", "in another base", "twice"],
)
@pytest.mark.parametrize("test", [INHERITED, GistTest("Own.test_in", SAME_FILE)], ids=["mixin", "one file"])
def test_an_inherited_test_can_not_be_overridden(test: GistTest, gist: str) -> None:
    spliced = ready_text(gist, test, ())
    assert spliced is not None
    found = find_test(parse(spliced.text), "Own.test_in")
    assert found is not None
    assert [line.text for line in found.lines] == ["def test_in(self):", "assert total([1]) == 1"]
    guard = guard_for(spliced.text, test)
    assert guard is not None
    assert guard.first == found.first


def test_the_rates_without_the_test_leave_an_inherited_test_out() -> None:
    test = GistTest("Own.test_in", SAME_FILE)
    run = TestsRun(RunStatus.FINISHED, {"test_gist.py::Own::test_in": TestRun(Outcome.PASSED)})
    gist = f"def total(n):\n    return 1\n\n\n{SAME_FILE}"
    made = GistRun(gist, run, [run, run], executed=frozenset(range(1, 20)))
    score = score_gist(gist, made, Originals({"t.py": gist}), ("pkg",), test)
    assert score.existence is not None
    assert score.execution is not None
    for report in (score.existence, score.execution):
        assert report.distinct.whole - report.distinct_without_test.whole == 2


TWICE = "if new:\n    def test_it():\n        assert 1\nelse:\n    def test_it():\n        assert 2\n"


@pytest.mark.parametrize(
    ("source", "line", "is_found"),
    [
        (TWICE, 2, False),
        (TWICE, 5, True),
        ("def test_it():\n    x\n\n\ndef test_it():\n    y\n", 5, True),
        (
            "def deco(f):\n    def run():\n        f()\n    return run\n\n\n@deco\ndef test_it():\n    y\n",
            2,
            True,
        ),
    ],
)
def test_of_several_definitions_only_the_last_can_be_a_test(
    source: str, line: int, is_found: bool, tmp_path: Path
) -> None:
    tree = tree_of({"t.py": source}, tmp_path)
    run = a_run("t.py::test_it", at=("t.py", line))
    if is_found:
        assert found_tests(tree, run) == GistTest("test_it", source)
    else:
        with pytest.raises(UnwrittenTestError, match="several times"):
            found_tests(tree, run)


@pytest.mark.parametrize(
    "gist",
    [
        TWICE,
        "try:\n    import x\nexcept E:\n    def test_it(): ...\nelse:\n    @mark\n    def test_it(): ...\n",
        "def test_it(): ...\nclass A:\n    def test_it(self): ...\n\nfor x in y:\n\tdef test_it():\n\t\tx\nz = 1\n",
        "def test_it(): ...\ndef test_it(): ...\nwith x:\n    y\n    def test_it(): ...\n",
    ],
)
def test_a_gist_may_define_a_test_under_several_conditions(gist: str) -> None:
    spliced = ready_text(gist, GistTest("test_it", "def test_it():\n    assert total([1]) == 1\n"), ())
    assert spliced is not None
    assert [name for name in spliced.text.split() if name == "total([1])"] == ["total([1])"]
    lines = gist.splitlines()
    for text, number in zip(spliced.text.splitlines(), spliced.origin, strict=True):
        assert number is None or lines[number - 1] == text
