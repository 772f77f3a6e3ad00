"""Objects that replace the codebase in a gist: what the run saw, compared with the codebase."""

from __future__ import annotations

import pytest

from gistpoint.core.entrypoints.runs import Isolation
from gistpoint.core.kinds.gist.flags import Habits, equal_to_all, habits_of, mocked, module_names, watched
from gistpoint.core.kinds.gist.rates import Originals, line_execution, line_existence

MODULES = ("pkg", "pkg.shapes", "pkg.deep.core", "tests.tools")
OWNED = ("pkg", "tests")
CODEBASE = """
config = Config()
class Real:
    def go(self):
        return 1
def pkg(side):
    return side
"""
TEST = "def test_it():\n    assert pkg.area(1)\n"
ORIGINALS = Originals({"pkg/__init__.py": CODEBASE, "test_a.py": TEST})
NEW = Habits(
    made_elsewhere=("__init__ by dataclasses.py dataclass",), made_here=("made",), starts_processes=False
)


@pytest.mark.parametrize(
    ("test", "names"),
    [
        ("import pkg", ["pkg"]),
        ("import pkg.shapes", ["pkg"]),
        ("import pkg.shapes\nx = pkg.shapes.area(1)", ["pkg", "pkg.shapes"]),
        ("import pkg.shapes as sh", ["sh"]),
        ("import pkg as p\np.deep.core.go()", ["p", "p.deep.core"]),
        ("from pkg import shapes, area", ["shapes"]),
        ("from pkg.deep import core as c", ["c"]),
        ("def test_it():\n    from pkg import shapes", ["shapes"]),
        ("from . import tools\nfrom .tools import make", ["tools"]),
        ("from .. import deep", []),
        ("import json\nfrom other import shapes", []),
        ("def f(:", []),
    ],
)
def test_names_of_modules_are_read_from_the_test(test: str, names: list[str]) -> None:
    assert list(module_names(test, OWNED, MODULES)) == names


def flag(
    gist: str, *seen: Isolation, habits: Habits = NEW, used: tuple[str, ...] = ("pkg",), ran: bool = True
) -> str:
    text = gist + "\n" + TEST
    execution = line_execution(text, range(1, 99) if ran else ())
    existence = line_existence(text, ORIGINALS, test="test_it")
    return mocked(text, seen, habits, used, OWNED, existence, execution)


def under(name: str, kind: str) -> Isolation:
    return Isolation(stand_ins=((name, kind),))


@pytest.mark.parametrize(
    ("gist", "seen", "told"),
    [
        ("pkg = Fake", under("pkg", "class Fake"), "pkg is class Fake"),
        ("class Real:\n    x = 1\npkg = Real", under("pkg", "class Real"), "pkg is class Real"),
        ("class pkg:\n    x = 1", under("pkg", "class pkg"), "pkg is class pkg"),
        ("config = Fake()", under("config", "object of gist.Fake"), "config is object of gist.Fake"),
        (
            "config = Config()\nconfig = Fake()",
            under("config", "object of gist.Fake"),
            "config is object of gist.Fake",
        ),
        ("x = 1", under("sys.modules['pkg']", "builtins.module"), "sys.modules['pkg'] is builtins.module"),
        (
            "x = 1",
            under("pkg.shapes", "object of argparse.Namespace"),
            "pkg.shapes is object of argparse.Namespace",
        ),
        ("def pkg(side):\n    return side", under("pkg", "function pkg"), ""),
        ("config = Config()", under("config", "object of gist.Config"), ""),
        ("class Real:\n    x = 1\ntests = Real", under("tests", "class Real"), ""),
    ],
)
def test_what_stands_under_a_name_is_a_fake_unless_the_codebase_has_it_there(
    gist: str, seen: Isolation, told: str
) -> None:
    assert flag(gist, seen) == told


@pytest.mark.parametrize(
    ("habits", "seen", "told"),
    [
        (NEW, Isolation(made_here=("made",)), ""),
        (NEW, Isolation(made_here=("<module>",)), "executes code from nowhere: <module>"),
        (NEW, Isolation(made_here=("area",)), "executes code from nowhere: area"),
        (
            NEW,
            Isolation(made_elsewhere=("__init__ by dataclasses.py dataclass",), made_functions=("__init__",)),
            "",
        ),
        (
            NEW,
            Isolation(
                made_elsewhere=("__init__ by dataclasses.py _create_fn",), made_functions=("__init__",)
            ),
            "executes code from nowhere: __init__ by dataclasses.py _create_fn",
        ),
        (NEW, Isolation(own_modules=("other.py",)), "executes other.py, which it wrote itself"),
        (NEW, Isolation(processes=("python",)), "starts another process: python"),
        (Habits(), Isolation(processes=("python",)), ""),
        (Habits(made_functions=("__init__",)), Isolation(made_functions=("__init__",)), ""),
        (
            Habits(made_functions=("__init__",)),
            Isolation(made_here=("area",)),
            "executes code from nowhere: area",
        ),
        (Habits(), Isolation(made_here=("<module>", "<lambda>")), ""),
        (Habits(loads_own_modules=True), Isolation(own_modules=("other.py",)), ""),
    ],
)
def test_code_from_nowhere_is_weighed_by_what_the_original_does(
    habits: Habits, seen: Isolation, told: str
) -> None:
    assert flag("x = 1", seen, habits=habits) == told
    assert flag("x = 1", Isolation(), seen, habits=habits) == told, "any run tells"


def test_an_import_of_the_codebase_that_ran_and_was_not_refused_found_something() -> None:
    gist = "def area():\n    import pkg.shapes\n    from . import speedups"
    assert flag(gist) == "import pkg.shapes found something"
    assert flag(gist, ran=False) == ""
    assert flag(gist, Isolation(refused_imports=("pkg.shapes",))) == ""


@pytest.mark.parametrize(
    "line",
    [
        "pkg = Fake",
        "(pkg := Fake)",
        "import json as pkg",
        "for pkg in (Fake,): pass",
        "with open(Fake) as pkg: pass",
    ],
)
def test_a_module_that_a_function_binds_anew_is_told(line: str) -> None:
    gist = f"import sys\npkg = sys.modules[__name__]\ndef load():\n    global pkg\n    {line}\n"
    assert flag(gist).startswith("pkg is bound again: ")
    assert flag(gist.replace("    global pkg\n", "")) == ""
    assert flag(gist.replace(line, "pkg = sys.modules[__name__]")) == ""


def test_mocks_and_wildcards_are_told_from_lines_that_the_codebase_has_not() -> None:
    assert flag("area = MagicMock()") == "area = MagicMock()"
    assert flag("area = Mocked()") == ""
    test = "def test_it():\n    assert f() == ANY\n"
    for gist, told in (
        ("area = mock.ANY", "area = mock.ANY"),
        ("def f():\n    return pytest.approx(0, abs=9)", "return pytest.approx(0, abs=9)"),
        ("COMPANY = approximate = 1", ""),
        (test, ""),
    ):
        assert equal_to_all([], line_existence(gist, Originals({"t.py": test}), test="test_it")) == told
    existing = line_existence("area = mock.ANY", Originals({"a.py": "area = mock.ANY"}))
    assert equal_to_all([], existing) == ""


def test_a_run_is_watched_for_functions_on_lines_that_the_codebase_has_not() -> None:
    text = (
        "class Real:\n    def go(self):\n        return 1\n"
        "    def __eq__(\n        s, o\n    ):\n        return True\n"
    )
    found = watched(["pkg", "a"], line_existence(text + TEST, ORIGINALS, test="test_it"))
    assert found.modules == ("a", "pkg")
    assert found.lines == (4, 5, 7)


def test_habits_are_those_of_all_runs() -> None:
    runs = [
        Isolation(made_here=("b",), made_functions=("f",)),
        Isolation(made_here=("a",), processes=("true",)),
    ]
    assert habits_of(runs) == Habits(("f",), (), ("a", "b"), False, True)
