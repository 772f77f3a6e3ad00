"""The order within the four folders: no cycles, no name with two meanings, no deep screen hierarchies."""

from __future__ import annotations

import ast
import re

import networkx
import pytest
from architecture.measures import Source, circles, imports, packages, screen_depths, shared_class_names
from project_files import ROOT, source_files

# The tests run in one worker, so that the source is parsed only once.
pytestmark = pytest.mark.xdist_group("house")
SCREEN_CLASSES = 2
"""The maximum number of gistpoint's classes from a screen up to `BaseScreen`, which does not count."""


@pytest.fixture(scope="module")
def needed(source: Source) -> networkx.DiGraph[str]:
    """The graph of imports between modules."""
    return imports(source)


def test_no_module_imports_itself_through_others_even_for_types(needed: networkx.DiGraph[str]) -> None:
    assert circles(needed) == []


@pytest.mark.parametrize("top", ["core", "sandbox", "sessions", "tui"])
def test_imports_between_packages_form_no_cycle(top: str, needed: networkx.DiGraph[str]) -> None:
    """`test_measures.py` also counts these cycles."""
    assert circles(packages(needed, top)) == []


def test_a_public_class_name_means_one_thing(source: Source) -> None:
    assert shared_class_names(source) == {}


def test_screens_have_few_base_classes(source: Source) -> None:
    assert {name: depth for name, depth in screen_depths(source).items() if depth > SCREEN_CLASSES} == {}


def test_every_screen_derives_from_base_screen(source: Source) -> None:
    bases = {each.name: set(each.bases) for module in source.modules.values() for each in module.classes}
    textuals = {"Screen", "ModalScreen"}
    without = {name for name, of in bases.items() if of & textuals and "BaseScreen" not in of}
    assert without == {"BaseScreen"}


DECODERS = {"convert": 1, "decode": "type", "Decoder": 0}
"""Functions of msgspec that take a type, and the place or name of that argument."""


def test_msgspec_gets_types_that_one_thread_has_collected() -> None:
    """Two threads that use a type for the first time at once would crash the process (`core/decoding`)."""
    found = [
        f"{path}:{call.lineno}"
        for path in source_files("core", "sandbox", "sessions", "tui")
        if path != "core/decoding.py" and "msgspec" in (text := (ROOT / path).read_text("utf-8"))
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call) and _decodes(call)
    ]
    assert found == []


def _decodes(call: ast.Call) -> bool:
    """Whether a call gives msgspec a type that did not pass through `decodable`."""
    words = ast.unparse(call.func).split(".")
    place = DECODERS.get(words[-1])
    if words[0] != "msgspec" or place is None:
        return False
    given = [argument.value for argument in call.keywords if argument.arg in ("type", place)]
    given += call.args[place:][:1] if isinstance(place, int) else call.args[1:][:1]
    return any(not ast.unparse(kind).startswith("decodable(") for kind in given)


def test_the_guides_name_modules_that_exist() -> None:
    pages = [
        ROOT / "CONTRIBUTING.md",
        ROOT / "README.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs/guide").glob("*.md"),
    ]
    named = re.compile(r"`((?:core|sandbox|sessions|tui|src/gistpoint)/[a-z0-9_/]+(?:\.py|/))`")
    gone = {
        path
        for page in pages
        for path in named.findall(page.read_text(encoding="utf-8"))
        if not (ROOT / path).exists()
    }
    assert gone == set()
