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
"""The maximum number of gistpoint's classes from a screen up to the common base."""


@pytest.fixture(scope="module")
def needed(source: Source) -> networkx.DiGraph[str]:
    """The graph of imports between modules."""
    return imports(source)


def test_no_module_needs_itself_even_for_its_types(needed: networkx.DiGraph[str]) -> None:
    assert circles(needed) == []


@pytest.mark.parametrize("top", ["core", "sandbox", "sessions", "tui"])
def test_packages_make_no_circle(top: str, needed: networkx.DiGraph[str]) -> None:
    """The cycles of `tui` are counted by `test_measures.py` until none is left."""
    assert circles(packages(needed, top)) == []


def test_a_public_class_name_means_one_thing(source: Source) -> None:
    assert shared_class_names(source) == {}


def test_screens_are_made_of_parts_and_not_of_classes(source: Source) -> None:
    assert {name: depth for name, depth in screen_depths(source).items() if depth > SCREEN_CLASSES} == {}


def test_every_screen_has_the_base_that_closes_nothing_but_itself(source: Source) -> None:
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
