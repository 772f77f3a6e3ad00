"""The order within the four folders: no cycles, no name with two meanings, no deep screen hierarchies."""

from __future__ import annotations

import re

import networkx
import pytest
from architecture.measures import Source, circles, imports, packages, screen_depths, shared_class_names
from project_files import ROOT

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
