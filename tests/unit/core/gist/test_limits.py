"""Reasons why no gist can do what a command does, distinguished from failed runs."""

from __future__ import annotations

import ast
from collections.abc import Collection

import pytest

from gistpoint.core.kinds.gist.reference import Codebase, limits_of
from gistpoint.core.kinds.gist.reference.by_name import asked_by_name, module_of_name
from gistpoint.core.kinds.gist.reference.modules import ModuleCode
from gistpoint.core.kinds.gist.trace import Trace, TracedFunction

TEST = "tests/test_a.py"


def told(
    test: str, *, refused: Collection[str] = (), evidence: str = "", hook: str = "pytest_configure"
) -> str:
    sources = {TEST: test, "shop/core.py": "", "tests/conftest.py": ""}
    lines = {path: frozenset(range(1, 20)) for path in sources}
    modules = {TEST: "test_a", "shop/core.py": "shop.core", "tests/conftest.py": "conftest"}
    functions = (TracedFunction("tests/conftest.py", hook, 1, 1, True),)
    ranks = {path: [(number, 0)] for number, path in enumerate(sources)}
    trace = Trace(1, 1, tuple(sources), modules, functions, lines, {}, ranks)
    found = limits_of(
        Codebase(sources, trace, frozenset({"shop"})),
        TEST,
        "test_a",
        refused=refused,
        evidence=evidence,
        files=["shop/core.py", "shop/words.txt", "README.md"],
    )
    return " ".join(found)


def test_a_module_named_in_a_string_of_the_test() -> None:
    text = 'def test_a(monkeypatch):\n    monkeypatch.setattr("shop.core.twice", None)\n'
    found = told(text, refused=["shop.core"], hook="fixture")
    assert found.startswith("A module is named in a string (tests/test_a.py:2, 'shop.core.twice')")
    assert "may not import the codebase" in found


def test_a_module_named_at_run_time() -> None:
    assert "shop.core is imported by a name that is made at run time" in told(
        "def test_a(): pass\n", refused=["shop.core"]
    )


def test_a_file_of_data() -> None:
    evidence = "builtins.FileNotFoundError: [Errno 2] No such file or directory: '/sandbox/repo/words.txt'"
    assert told("def test_a(): pass\n", evidence=evidence, hook="a").startswith(
        "It reads shop/words.txt, which"
    )


def test_a_hook_of_pytest() -> None:
    assert told("def test_a(): pass\n").startswith(
        "tests/conftest.py::pytest_configure may prepare the run: pytest"
    )


def test_a_name_that_the_test_expects() -> None:
    found = told('def test_a():\n    assert shop.__name__ == "shop"\n', hook="fixture")
    assert found.startswith("The test expects names of modules (tests/test_a.py:2, 'shop')")


def test_other_failures_have_no_limit() -> None:
    assert (
        told("def test_a():\n    assert 'shopping'\n", hook="fixture", evidence="builtins.KeyError: 'x'")
        == ""
    )


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('importlib.import_module("shop.core")', "itself"),
        ('import_module(".core", __package__)', "itself"),
        ("importlib.import_module(name)", "itself"),
        ('sys.modules["shop.core"]', "itself"),
        ('importlib.import_module("json")', None),
        ('sys.modules["json"]', None),
        ('monkeypatch.setattr("shop.core.twice", f)', '__name__ + ".twice"'),
        ('mock.patch("shop.core.twice")', '__name__ + ".twice"'),
        ('monkeypatch.setattr("os.getcwd", f)', None),
        ('monkeypatch.setattr(core, "twice", f)', None),
        ('log("shop.core.twice")', None),
    ],
)
def test_what_is_asked_for_by_name(code: str, expected: str | None) -> None:
    statement = ast.parse(code).body[0]
    module = ModuleCode("shop/lazy.py", "shop.lazy", code, [code], ast.parse(code))
    names = {"shop": "", "shop.core": "", "shop.core.twice": "twice"}
    found = [text for _, text in asked_by_name(statement, module, names.get, "itself")]
    assert found == ([expected] if expected else [])


def test_the_module_of_a_dotted_name_is_the_longest() -> None:
    modules = {"shop", "shop.core"}
    wanted = {"shop.core.twice": "shop.core", "shop": "shop", "shop.cores": "shop", "shopping.core": ""}
    assert {name: module_of_name(name, modules) for name in wanted} == wanted
