"""The tests that can notice a change, and the stored form of a test map."""

import json

import pytest

from gistpoint.core.code.testmap import TestMap, TestMapError

MAP = TestMap(
    entered={"m.py::f": frozenset({"t.py::b", "t.py::a"}), "m.py::g": frozenset({"u.py::c"})},
    at_import=frozenset({"m.py::g", "m.py::h"}),
    seconds=2.5,
    tests={"t.py::b": 0.5, "t.py::a": 0.25, "u.py::c": 1.0, "v.py::d": 0.0},
    collecting={"m.py::g": frozenset({"t.py"})},
    opaque=frozenset({"v.py::d"}),
)


def test_a_map_comes_back_from_json_as_it_was() -> None:
    back = TestMap.from_json(json.loads(json.dumps(MAP.to_json())))
    assert back == MAP
    assert list(back.tests) == list(MAP.tests)


def test_json_is_the_same_whatever_the_order_of_sets() -> None:
    other = TestMap(
        dict(reversed(MAP.entered.items())), MAP.at_import, 2.5, MAP.tests, MAP.collecting, MAP.opaque
    )
    assert json.dumps(other.to_json()) == json.dumps(MAP.to_json())


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"format": "other"},
        {"entered": {"f": [99]}},
        {"entered": []},
        {"times": None},
        {"opaque": [-9]},
    ],
)
def test_a_damaged_map_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(TestMapError):
        TestMap.from_json({**MAP.to_json(), **change})


def test_both_directions() -> None:
    assert MAP.tests_of("m.py::f") == {"t.py::a", "t.py::b"}
    assert MAP.tests_of("m.py::unknown") == frozenset()
    assert {function for function in MAP.entered if "u.py::c" in MAP.tests_of(function)} == {"m.py::g"}


def test_what_sees_a_function_are_its_tests_and_the_opaque_ones_in_order_of_the_suite() -> None:
    assert MAP.seeing(["m.py::f"]) == ("t.py::b", "t.py::a", "v.py::d")
    assert MAP.seeing(["m.py::unknown"]) == ("v.py::d",)


def test_a_function_that_a_test_file_calls_at_its_top_is_seen_by_all_tests_of_the_file() -> None:
    assert MAP.seeing(["m.py::g"]) == ("t.py::b", "t.py::a", "u.py::c", "v.py::d")


def test_a_function_that_runs_at_another_import_is_seen_by_every_test() -> None:
    assert MAP.seeing(["m.py::f", "m.py::h"]) == tuple(MAP.tests)
