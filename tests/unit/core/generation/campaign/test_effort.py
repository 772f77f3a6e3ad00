"""The number of corruptions of a function that are tried."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fake_benches import CHECKS, Shop

from gistpoint.core.generation.candidates import (
    EXPENSIVE,
    LOCATED,
    USUAL,
    WITH_HIDING_PLACES,
    effort_for,
    hiding_places,
)
from gistpoint.core.generation.library import SourceLibrary

TESTS = sorted(CHECKS)


@pytest.fixture
def library(tmp_path: Path) -> SourceLibrary:
    """A library in which all tests enter `whole`, two each `part` and `alone`, and one `lone`."""
    made = Shop(tmp_path).library()
    entered = {f"shop.py::part{n}": frozenset(TESTS[:2]) for n in range(LOCATED)}
    entered |= {"shop.py::whole": frozenset(TESTS), "shop.py::alone": frozenset(TESTS[2:4])}
    entered |= {"shop.py::lone": frozenset(TESTS[4:5])}
    return replace(made, test_map=replace(made.test_map, entered=entered))


def test_what_hides_a_function_is_entered_by_enough_tests_that_all_enter_it(library: SourceLibrary) -> None:
    assert len(TESTS) >= 5
    assert library.intake.passed >= set(TESTS[:5])
    assert hiding_places(library, "shop.py::whole", 2) == LOCATED + 1
    assert hiding_places(library, "shop.py::whole", 1) == LOCATED + 2
    assert hiding_places(library, "shop.py::part0", 2) == LOCATED - 1
    assert hiding_places(library, "shop.py::alone", 2) == 0


def test_more_is_tried_where_one_can_hide_and_little_where_each_try_is_dear(library: SourceLibrary) -> None:
    assert effort_for(library, "shop.py::whole", 2) == WITH_HIDING_PLACES
    assert effort_for(library, "shop.py::alone", 2) == USUAL
    imported = replace(library, test_map=replace(library.test_map, at_import=frozenset({"shop.py::whole"})))
    assert effort_for(imported, "shop.py::whole", 2) == EXPENSIVE
    assert WITH_HIDING_PLACES.singles > USUAL.singles > EXPENSIVE.singles
