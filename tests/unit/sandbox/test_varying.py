"""Varied inputs resemble the recorded ones, are the same each time, and are simplified step by step."""

from __future__ import annotations

from gistpoint.sandbox.equivalence.encoded import written
from gistpoint.sandbox.equivalence.simplifying import simpler, size
from gistpoint.sandbox.equivalence.varying import varied
from gistpoint.sandbox.payload.call_replayer import Describer

RECORDED = [
    [["s", "abc"], ["l", [["i", "3"], ["i", "9"]]], ["n"], ["o", 0, [3], "lib.Thing"]],
    [["s", "b"], ["l", []], ["f", "1.5"], ["o", 1, [3], "lib.Thing"]],
]


def test_variations_are_of_the_recorded_types_and_the_same_each_time() -> None:
    found = varied(RECORDED, 100)
    assert found == varied(RECORDED, 100)
    assert len(found) > 50
    assert {value[0] for value, *_ in found} == {"s"}
    assert {values[2][0] for values in found} == {"n", "f"}
    assert {tuple(values[3][2]) for values in found} == {(3,)}  # objects are those recorded
    numbers = {int(part[1]) for values in found for part in values[1][1]}
    assert numbers - {3, 9}
    assert any(-10 <= number <= 20 for number in numbers - {3, 9})
    assert varied([], 10) == varied([[]], 10) == []


def test_steps_only_go_down_and_end() -> None:
    values = [
        ["s", "xyz"],
        ["d", [[["s", "k"], ["t", [["i", "-40"], ["b", True]]]]]],
        ["y", "00ff"],
        ["f", "2.5"],
    ]
    steps = 0
    while found := simpler(values, 200):
        assert all(size(less) < size(values) for less in found)
        values, steps = found[0], steps + 1
    assert steps < 40
    assert written(values[1]) == "{}"


def test_values_are_written_as_python_writes_them() -> None:
    for value in [
        None,
        True,
        -3,
        1.5,
        "a'b",
        b"\x00",
        [1, [2]],
        (1,),
        (),
        {"a": (1, 2)},
        {1, 2},
        set(),
        frozenset({3}),
        slice(1, None, -1),
        [slice(None, 2)],
    ]:
        assert eval(written(encoded(value))) == value
    assert written(["o", 4, [0], "lib.Thing"]) == "<lib.Thing of call 5>"


def test_the_parts_of_a_slice_are_varied() -> None:
    recorded = [[encoded(slice(1, 5, None))], [encoded(slice(None, 3, 2))]]
    made = [values[0] for values in varied(recorded, 200)]
    assert {value[0] for value in made} == {"c"}
    assert any(value[1][2] == ["i", "0"] for value in made)
    assert all(len(value[1]) == 3 for value in made)
    assert all(len(less[0][1]) == 3 for less in simpler([made[-1]], 50))


def encoded(value: object) -> list[object]:
    return Describer(0, is_of_tree=lambda kind: False).encoded(value, [0])


def test_a_fault_that_only_a_recorded_text_with_a_blank_before_it_shows_is_found() -> None:
    recorded = [[encoded(text), encoded(["yes"])] for text in ("true", "no", "off")]
    made = [(values[0][1], values[1]) for values in varied(recorded, 400)]
    assert any(text[0].isspace() and text.strip() in ("true", "no", "off") for text, _ in made if text)


def test_half_of_the_inputs_change_one_argument_of_a_recorded_call() -> None:
    recorded = [[encoded(n), encoded(str(n)), encoded([n])] for n in range(20)]
    known = {repr(values) for values in recorded}
    made = varied(recorded, 400)
    changed = [
        values
        for values in made
        if any(sum(a != b for a, b in zip(values, call, strict=True)) == 1 for call in recorded)
    ]
    assert len(changed) > len(made) / 4
    assert any(repr(values) not in known for values in changed)
