"""The original test replaces the gist's own."""

from __future__ import annotations

import ast
import textwrap

import pytest

from gistpoint.core.code.parsing import parse
from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.gist.lines import find_test
from gistpoint.core.kinds.gist.original_test import (
    GistTest,
    given_test,
    guard_of,
    inheriting_test,
    missing_test,
    original_test,
    score_test,
    splice_test,
)


def dedent(text: str) -> str:
    return textwrap.dedent(text).lstrip("\n")


ORIGINAL = dedent(
    '''
    import pytest
    from pkg import area

    @pytest.mark.parametrize(
        "n",
        [1, 2],
    )
    def test_area(n):
        """A docstring
    at the margin."""
        from pkg.sub import helper
        import math, pkg
        assert area(n) == math.pi

    class Base:
        def test_inherited(self):
            assert True

    class TestArea(Base):
        limit = 3

        @pytest.mark.skipif(False, reason="no")
        def test_limit(self):
            text = """
    left
        alone
    """
            assert self.limit == 3, text
    '''
)


def test_a_function_is_replaced_where_it_stood_with_its_decorators() -> None:
    gist = "import math\ndef test_area(n):\n    pass\nAFTER = 1\n"
    spliced = splice_test(gist, ORIGINAL, "test_area", {"pkg"})
    lines = spliced.text.splitlines()
    assert lines[0] == "import math"
    assert lines[1:5] == ["@pytest.mark.parametrize(", '    "n",', "    [1, 2],", ")"]
    assert lines[-1] == "AFTER = 1"
    assert "    import math" in lines
    assert "pkg" not in spliced.text
    assert spliced.origin[0] == 1
    assert spliced.origin[-1] == 4
    assert set(spliced.origin[1:-1]) == {None}


def test_text_inside_strings_keeps_its_place() -> None:
    spliced = splice_test("class TestArea:\n        x = 1\n", ORIGINAL, "TestArea.test_limit", {"pkg"})
    assert '        def test_limit(self):\n            text = """\nleft\n    alone\n"""\n' in spliced.text
    method = find_test(ast.parse(spliced.text), "TestArea.test_limit")
    assert method is not None
    assert method.lines[0].text == "@pytest.mark.skipif(False, reason='no')"


def test_a_method_without_its_class_brings_the_class_with_its_bases() -> None:
    spliced = splice_test("class Base: pass\n", ORIGINAL, "TestArea.test_limit", {"pkg"})
    tree = ast.parse(spliced.text)
    owner = tree.body[-1]
    assert isinstance(owner, ast.ClassDef)
    assert [ast.unparse(base) for base in owner.bases] == ["Base"]
    assert find_test(tree, "TestArea.test_limit") is not None


def test_every_definition_of_the_name_is_replaced() -> None:
    gist = "def test_area(n): pass\nif True:\n    def test_area(n): pass\n    x = 1\n"
    spliced = splice_test(gist, ORIGINAL, "test_area", {"pkg"})
    assert spliced.text.count("def test_area") == 1


def test_an_inherited_method_is_spliced_where_it_is_defined() -> None:
    gist = "class Base:\n    def test_inherited(self):\n        assert False\nclass TestArea(Base): pass\n"
    spliced = splice_test(gist, ORIGINAL, "TestArea.test_inherited", {"pkg"})
    assert "assert True" in spliced.text
    assert "assert False" not in spliced.text


def test_a_test_of_imports_only_stays_valid() -> None:
    original = "def test_import():\n    import pkg\n"
    assert splice_test("", original, "test_import", {"pkg"}).text == "def test_import():\n    pass\n"


def test_an_original_without_the_test_is_an_error_that_says_so() -> None:
    with pytest.raises(TaskError, match="no test 'test_none'"):
        splice_test("", ORIGINAL, "test_none", {"pkg"})


def test_the_splice_is_what_a_second_splice_finds() -> None:
    once = splice_test("x = 1\n", ORIGINAL, "TestArea.test_limit", {"pkg"}).text
    assert splice_test(once, ORIGINAL, "TestArea.test_limit", {"pkg"}).text == once


@pytest.mark.parametrize(
    ("gist", "missing"),
    [
        ("def test_area(n): pass\n", False),
        ("class T:\n    def test_area(self): pass\n", True),
        ("if __name__ == '__main__':\n    def test_area(): pass\n", True),
        ("if '__main__' == __name__:\n    assert True\n", True),
        ("try:\n    def test_area(): pass\nexcept Exception: pass\n", False),
        ("test_area = None\n", True),
        ("def test_area(:\n", False),
        ("", True),
    ],
)
def test_missing_test(gist: str, missing: bool) -> None:
    assert missing_test(gist, "test_area") is missing


def test_score_of_the_test_leaves_imports_of_the_codebase_out() -> None:
    given = ORIGINAL.replace("    from pkg.sub import helper\n", "").replace(
        "import math, pkg", "import math"
    )
    score = score_test(ORIGINAL, given, "test_area", {"pkg"})
    assert (score.recall, score.precision, score.f1, score.changed) == (100, 100, 100, False)


def test_score_of_a_changed_test() -> None:
    original = "def test_it():\n    a = 1\n    b = 2\n    assert a < b\n"
    given = "def test_it():\n    a = 1\n    assert True\n"
    score = score_test(original, given, "test_it", {"pkg"})
    assert score.recall == 50
    assert score.precision == pytest.approx(200 / 3)
    assert score.f1 == pytest.approx(2 * 50 * (200 / 3) / (50 + 200 / 3))
    assert score.changed
    assert score_test(original, "x = 1\n", "test_it", {"pkg"}).recall == 0


@pytest.mark.parametrize("odd", ["\u2028", "\u2029", "\x0c", "\x0b", "\x1c", "\x85"], ids=ascii)
def test_a_character_that_ends_no_line_in_python_shifts_nothing(odd: str) -> None:
    gist = f"# {odd * 9}\nAREA = 1\n\n\ndef test_area(n):\n    assert True\n"
    spliced = splice_test(gist, ORIGINAL, "test_area", {"pkg"})
    assert "assert True" not in spliced.text
    assert spliced.origin[:2] == (1, 2)
    found = guard_of(spliced.text, ORIGINAL, "test_area")
    assert found is not None
    assert {spliced.origin[line - 1] for line in range(found.first, found.last + 1)} == {None}


INHERITED = """
class Checks:
    def test_add(self):
        assert total([1]) == 1

class Own(Checks):
    pass
"""


def test_a_gist_with_an_inherited_test_has_it():
    gist = inheriting_test(GistTest("Own.test_add", INHERITED))
    assert not missing_test(gist, "Own.test_add")
    assert "assert total([1]) == 1" in splice_test(gist, INHERITED, "Own.test_add", ()).text
    assert inheriting_test(GistTest("Checks.test_add", INHERITED)) == original_test(
        INHERITED, "Checks.test_add"
    )


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("import pkg; x = 1", "pass\nx = 1"),
        ("x = 1; import pkg", "x = 1\npass"),
        ("é = 'ü'; import pkg; import math", "é = 'ü'\npass\nimport math"),
        ("import math; import pkg, os; x = 1", "import math\nimport os\nx = 1"),
        ("import math, pkg; from pkg import (\n    a,\n); x = 1", "import math\npass\nx = 1"),
        ("import math\nfrom pkg import (\n    a,\n)  # a comment", "import math"),
        ("import pkg\nfrom pkg import a", "pass"),
        ("if n: import pkg.b\nelse: from pkg import a, b", "if n:\n    pass\nelse:\n    pass"),
        ("try:\n    import pkg\n    import pkg.b\nexcept E: import pkg", "try:\n    pass\nexcept E:\n    pass"),
        ("with n: import pkg", "with n:\n    pass"),
        ("match n:\n case 1:\n  import pkg\n case _: import pkg", "match n:\n case 1:\n  pass\n case _:\n  pass"),
        ("class A: from pkg import a; b = a", "class A:\n    pass\n    b = a"),
        ("import pkg;", "pass"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("margin", ["    ", "\t"])
def test_only_imports_of_the_codebase_are_removed(body: str, left: str, margin: str) -> None:
    original = f"def test_area(n):\n{textwrap.indent(body, margin)}\n"
    spliced = splice_test("def test_area(n): ...\n", original, "test_area", {"pkg"})
    wanted = f"def test_area(n):\n{textwrap.indent(left, '    ')}\n"
    assert ast.unparse(parse(spliced.text)) == ast.unparse(parse(wanted))
    if not {"\n", ":"} & set(body):  # a compound statement needs its own line
        on_one_line = splice_test(
            "def test_area(n): ...\n", f"def test_area(n): {body}\n", "test_area", {"pkg"}
        )
        assert ast.dump(parse(on_one_line.text)) == ast.dump(parse(wanted))


@pytest.mark.parametrize(
    "header",
    [
        "class TestArea(Base):",
        "class TestArea(\n    Base,\n):",
        "class TestArea(\n    Base, metaclass=type  # a comment\n    # another\n):  # a third\n\n    # below\n",
        "@mark(\n    1,\n)\nclass TestArea \\\n    (Base):",
        "class TestArea(Base[\n    1:2\n]):\n    # below",
    ],
)
@pytest.mark.parametrize("outer", ["", "class Outer(\n    object,\n):\n    x = 1\n\n"])
@pytest.mark.parametrize(
    "first", ["", "    limit = 3\n", '    """Text."""\n', "    @mark\n    def other(self): ...\n"]
)
def test_a_class_comes_with_its_whole_header(header: str, outer: str, first: str) -> None:
    text = f"{header}\n{first}\n    @mark\n    def test_area(self):\n        assert area(2) == 4\n"
    name = "Outer.TestArea.test_area" if outer else "TestArea.test_area"
    original = outer + (textwrap.indent(text, "    ") if outer else text)
    wanted = ast.unparse(
        parse(header + "\n    @mark\n    def test_area(self):\n        assert area(2) == 4\n")
    )
    given = ast.unparse(parse(original_test(original, name)))
    if outer:
        wanted = f"class Outer(object):\n\n{textwrap.indent(wanted, '    ')}"
    assert given == wanted
    assert given_test(GistTest(name, original, others=(GistTest(name, original),)))


@pytest.mark.parametrize("before", ["\f", " \f", "\f\f"])
@pytest.mark.parametrize("within", ["", "\f"])
@pytest.mark.parametrize("gist", ["def test_a(): ...\n", "if 1:\n\f    def test_a(): ...\n"])
def test_a_form_feed_changes_no_indentation(before: str, within: str, gist: str) -> None:
    function = f"def test_a():\n    if 1:\n{within}        x = '''\n\f'''\n{within}    assert x\n"
    original = f"x = 1\n{before}{function}"
    assert ast.dump(parse(original_test(original, "test_a"))) == ast.dump(parse(function))
    spliced = splice_test(gist, original, "test_a", ())
    found = find_test(parse(spliced.text), "test_a")
    assert found is not None
    assert ast.dump(found.statements[0]) == ast.dump(parse(function).body[0])
    method = (
        f"class A:\n    y = 1\n{before}{textwrap.indent(function, '    ', lambda line: line[0] != chr(12))}"
    )
    assert "assert x" in original_test(method.replace("\f        x", "\f            x"), "A.test_a")


def test_a_decorator_that_begins_on_a_line_of_its_own_comes_with_its_test() -> None:
    head = "@(\n    pytest.mark.slow\n)\nclass TestA:\n"
    method = "    @(\n        mark\n    )\n    def test_b(self):\n        assert area() == 1\n"
    original = f"import pytest\n{head}{method}"
    spliced = splice_test("def area():\n    return 1\n", original, "TestA.test_b", ("pkg",))
    assert head + method in spliced.text
    assert find_test(parse(spliced.text), "TestA.test_b")
