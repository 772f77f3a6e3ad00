"""Inputs at the boundaries that a function's source and its recorded calls suggest."""

from __future__ import annotations

import datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from small_trees import write_tar

from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.equivalence import tags
from gistpoint.sandbox.equivalence.boundaries import boundary_inputs
from gistpoint.sandbox.equivalence.drawing import like
from gistpoint.sandbox.equivalence.encoded import attributes_of, contents_in, written
from gistpoint.sandbox.equivalence.hints import NO_HINTS, Hints, hints_of, lines_in
from gistpoint.sandbox.equivalence.simplifying import simpler, size
from gistpoint.sandbox.equivalence.varying import varied
from gistpoint.sandbox.payload.call_replayer import Describer, RecordedArguments
from gistpoint.sandbox.payload.canonical_answers import canonical

SOURCE = '''
UNITS = ("kilo", "mega")
UNUSED = ("giga",)

class Store:
    def found(self, name, n=None):
        """Not a literal."""
        if n is None or isinstance(name, bytes) and self.items:
            return UNITS[0]
        return "x-" if n > 7 else 2.5
'''


class Box:
    def __init__(self, size: object, label: str = "a") -> None:
        self.size = size
        self.label = label
        self.itself = self

    def __setattr__(self, name: str, value: object) -> None:
        if name in self.__dict__:
            raise AttributeError("it is closed")
        super().__setattr__(name, value)


class Slotted:
    __slots__ = ("left",)


def described(values: list[object], call: int = 0) -> list[Any]:
    describer = Describer(call, is_of_tree=lambda kind: kind in (Box, Slotted, Registering))
    return [describer.encoded(value, [n]) for n, value in enumerate(values)]


def made(examples: list[Any], hints: Hints = NO_HINTS, most: int = 300) -> list[str]:
    return [", ".join(map(written, values)) for values in boundary_inputs(examples, hints, most)]


@pytest.fixture
def hints(tmp_path: Path) -> Hints:
    other = SOURCE.replace('"x-"', '"y-"')
    tree = SourceTree.open(write_tar({"mod.py": ""}, tmp_path / "tree.tar"))
    trees = [tree.with_files({"mod.py": text.encode()}) for text in (SOURCE, other, "def (", "pass")]
    return hints_of(trees, "mod.py", "Store.found")


def test_a_source_suggests_its_literals_types_and_attributes(hints: Hints) -> None:
    values = [written(value) for value in hints.literals]
    assert set(values) == {"None", "0", "'x-'", "'y-'", "7", "2.5", "'kilo'", "'mega'"}
    assert (hints.kinds, hints.asks_for_types) == ({"y"}, True)
    assert {"items", "[x-]"} <= hints.names
    assert {6, 7, 8} <= set(hints.lengths)


def test_values_lie_at_the_literals_and_next_to_them(hints: Hints) -> None:
    found = made([described(["abc", 40, [1, 2, 3]])], hints)
    assert found == made([described(["abc", 40, [1, 2, 3]])], hints)
    for wanted in (
        *("'x-', 40, [1, 2, 3]", "'abcx-', 40, [1, 2, 3]", "'', 40, [1, 2, 3]", "b'abc', 40, [1, 2, 3]"),
        *("'abc', 6, [1, 2, 3]", "'abc', 8, [1, 2, 3]", "'abc', -40, [1, 2, 3]", "'abc', None, [1, 2, 3]"),
        *("'abc', 40, []", "'abc', 40, [3, 2, 1]", "'abc', 40, [1, 2, 3, 1, 2, 3, 1, 2]"),
        "<a subclass: 'abc'>, 40, [1, 2, 3]",
    ):
        assert wanted in found
    # Inputs that may use up the memory come last, because they could end the run.
    assert "9223372036854775808" in found[-1]


def test_none_is_tried_only_where_a_call_or_the_source_has_it(hints: Hints) -> None:
    assert not any("None" in text for text in made([described([3, "a"])]))
    assert any(text.endswith("None") for text in made([described([3, "a"]), described([4, None])]))
    assert any(text.startswith("None") for text in made([described([3, "a"])], hints))


def test_arguments_are_made_equal_and_put_into_each_other() -> None:
    found = made([described([3, 4, [5]])])
    assert {"3, 3, [5]", "4, 4, [5]", "3, 4, [5, 3]"} <= set(found)


def test_attributes_of_objects_are_replaced_and_mixed() -> None:
    examples = [described([Box(3, "ab")], 0), described([Box([1], "cd")], 1)]
    assert [name for name, _ in attributes_of(examples[0][0])] == ["itself", "label", "size"]
    name = examples[0][0][3]
    found = made(examples)
    for changed in ("size=0", "size=4", "size=[1]", "label=''", "label='cd'"):
        assert f"<{name} of call 1 with {changed}>" in found
    used = Hints(names=frozenset(("label",)))
    share = [text for text in made(examples, used, 30) if "label" in text]
    assert len(share) >= 20
    drawn = [values for values in varied(examples, 200) if len(attributes_of(values[0])) == 2]
    assert drawn


def test_an_object_is_rebuilt_without_its_methods() -> None:
    slotted = Slotted()
    slotted.left = 1
    box = Box(slotted)

    class Recorded(RecordedArguments):
        def of_call(self, number: int) -> list[Any]:
            return [box, box.size]

    name = f"{__name__}.Box"
    left = ["o", 0, [0, "size"], f"{__name__}.Slotted", [["left", ["i", "9"]]]]
    given = [["o", 0, [0], name, [["label", ["s", "z"]]]], left]
    first, second = Recorded([]).of_input(given)
    assert (first.label, first.size, first.itself) == ("z", second, first)
    assert second.left == 9


class Registering:
    known: tuple[object, ...] = ()

    def __init__(self) -> None:
        self.size = 1

    def __init_subclass__(cls) -> None:
        raise TypeError("it is final")


@pytest.mark.parametrize("kind", [Box, Slotted, Registering])
def test_an_object_of_a_subclass_is_tried_where_the_source_asks_for_types(kind: Any, hints: Hints) -> None:
    value = kind(3) if kind is Box else kind()
    if kind is Slotted:
        value.left = 1
    example = described([value])
    name = f"<a subclass: <{example[0][3]} of call 1>>"
    assert name in made([example], hints)
    assert name not in made([example])

    class Recorded(RecordedArguments):
        def of_call(self, number: int) -> list[Any]:
            return [value]

    (found,) = Recorded([]).of_input([["k", example[0][:4]]])
    assert isinstance(found, kind)
    assert (type(found) is kind) == (kind is Registering), "a class may refuse to be extended"
    assert (type(found).__name__, type(found).__module__) == (kind.__name__, __name__)


class Config(dict):  # type: ignore[type-arg]
    def __setitem__(self, key: object, value: object) -> None:
        raise TypeError("it is closed")


def test_items_of_a_dictionary_of_the_repository_are_attributes() -> None:
    config = Config({"debug": None, 3: 4})
    describer = Describer(0, is_of_tree=lambda kind: kind is Config)
    encoded = describer.encoded(config, [0])
    assert attributes_of(encoded) == [["[debug]", ["n"]]]

    class Recorded(RecordedArguments):
        def of_call(self, number: int) -> list[Any]:
            return [config]

    (found,) = Recorded([]).of_input([[*encoded[:4], [["[debug]", ["b", True]]]]])
    assert found == {"debug": True, 3: 4}


@pytest.mark.parametrize(
    "value",
    [
        datetime.datetime(2020, 2, 29, 1, 2, 3),
        datetime.date(2020, 1, 31),
        datetime.timedelta(days=-1, seconds=5),
        datetime.time(1, 2),
    ],
)
def test_dates_and_times_are_varied_by_their_parts(value: object) -> None:
    (encoded,) = described([value])
    assert RecordedArguments([]).of_input([encoded]) == [value]
    assert f"{type(value).__module__}.{type(value).__name__}(" in written(encoded)
    assert len(made([[encoded]])) > 10
    assert all(size(less) < size([encoded]) for less in simpler([encoded], 50))
    assert any(values[0][0] == "x" for values in varied([[encoded]], 50))


@pytest.mark.parametrize("value", ["abc", 3, [1], (1, 2), {"a": 1}])
def test_a_subclass_of_a_built_in_class_is_compared_as_that(value: object) -> None:
    (encoded,) = described([value])
    (found,) = RecordedArguments([]).of_input([["k", encoded]])
    assert type(found) is not type(value)
    assert found == value
    assert canonical([found], 0, ()) == canonical([value], 0, ())
    assert [encoded] in simpler([["k", encoded]], 99)


def test_a_function_that_converts_is_given_other_types() -> None:
    inputs = made([described(["1.2"])], Hints(kinds=frozenset("s"), converts=True))
    assert {"b'1.2'", "7", "None", "1.5", "True", "[1234567]"} <= set(inputs)
    assert not {"b'1.2'", "7", "None"} & set(made([described(["1.2"])], Hints(kinds=frozenset("s"))))


def test_a_function_that_makes_a_list_is_given_other_iterables() -> None:
    hints = Hints(kinds=frozenset("t"), converts=True)
    assert {"{1, 2}", "{1: None, 2: None}"} <= set(made([described([[1, 2]])], hints))
    assert "{1, 2}" not in made([described([[1, 2]])], Hints(kinds=frozenset("t")))


def test_a_function_that_asks_for_types_is_given_what_is_false_of_each() -> None:
    inputs = made([described(["a"])], Hints(kinds=frozenset("silt"), asks_for_types=True))
    assert {"0", "[]", "()", "True"} <= set(inputs)
    assert "{}" not in inputs


@pytest.mark.parametrize("condition", ["if n: pass", "return not n", "return 1 if n else 2", "return n or 2"])
def test_what_is_asked_whether_it_is_true_may_be_missing(tmp_path: Path, condition: str) -> None:
    text = f"def f(n):\n    {condition}\ndef g(n):\n    return n.a and len(n.a) > 1\n"
    tree = SourceTree.open(write_tar({"mod.py": text}, tmp_path / "tree.tar"))
    assert ["n"] in hints_of([tree], "mod.py", "f").literals
    assert ["n"] not in hints_of([tree], "mod.py", "g").literals


def test_each_call_is_tried_with_other_numbers(tmp_path: Path) -> None:
    numbers = range(1000, 1120, 10)
    text = f"def f(n, m, k):\n    return n in {tuple(numbers)}\n"
    tree = SourceTree.open(write_tar({"mod.py": text}, tmp_path / "tree.tar"))
    examples = [described([float(n), n, n], n) for n in range(8)]
    tried = {row.partition(",")[0] for row in made(examples, hints_of([tree], "mod.py", "f"), 400)}
    # Of 8 calls with the same numbers, each would have room for a third of them.
    assert {f"{number}.0" for number in numbers} <= tried
    assert {f"{number + 0.5}" for number in numbers} <= tried


def test_numbers_with_a_logarithm_at_a_literal_are_tried(tmp_path: Path) -> None:
    text = (
        "from math import floor, log, log2, log10\n"
        "def decimal(n):\n    return 'far' if log10(n) >= 33 or log10(n) < -30 else n\n"
        "def binary(n):\n    return log2(n) > 20\n"
        "def size(n):\n    return floor(log(n, 1000))\n"
        "def plain(n):\n    return n > 33\n"
    )
    tree = SourceTree.open(write_tar({"mod.py": text}, tmp_path / "tree.tar"))
    number = described([5.0])
    assert {"1e+33", "1e+30"} <= set(made([number], hints_of([tree], "mod.py", "decimal")))
    assert f"{2.0**20}" in made([number], hints_of([tree], "mod.py", "binary"))
    assert {"1000000.0", "1000000000.0"} <= set(made([number], hints_of([tree], "mod.py", "size")))
    assert "1e+33" not in made([number], hints_of([tree], "mod.py", "plain"))


PROPERTIES = """
class Table:
    @property
    def width(self):
        return self._width
    @width.setter
    def width(self, value):
        self.check(value)
        self._width = value
    @functools.cached_property
    def area(self):
        return self.width * self._height
    def check(self, value):
        self._checked = value
    def reset(self):
        self.area
        self.style = 1
"""


def test_the_attributes_behind_a_property_are_used_too(tmp_path: Path) -> None:
    tree = SourceTree.open(write_tar({"mod.py": PROPERTIES}, tmp_path / "tree.tar"))
    names = hints_of([tree], "mod.py", "Table.reset").names
    assert names >= {"area", "style", "width", "_width", "_height"}
    assert "_checked" not in names


@pytest.mark.parametrize(
    ("test", "values"),
    [
        ("isinstance(x, Sequence)", ["''", "()", "[]"]),
        ("isinstance(x, collections.abc.Mapping)", ["{}"]),
        ("isinstance(x, Set)", ["set()", "frozenset()"]),
        ("isinstance(x, numbers.Real)", ["0", "0.0"]),
    ],
)
def test_a_function_that_asks_for_an_abstract_class_is_given_what_belongs_to_it(
    tmp_path: Path, test: str, values: list[str]
) -> None:
    text = f"def f(x):\n    return {test}\n"
    tree = SourceTree.open(write_tar({"mod.py": text}, tmp_path / "tree.tar"))
    made = boundary_inputs([[["s", "ab"]]], hints_of([tree], "mod.py", "f"), 200)
    assert set(values) <= {written(value) for (value,) in made}


def test_an_optional_number_that_no_test_gives_is_next_to_a_literal(tmp_path: Path) -> None:
    text = "def f(step=None):\n    return step is not None and step > 1\n"
    tree = SourceTree.open(write_tar({"mod.py": text}, tmp_path / "tree.tar"))
    made = boundary_inputs([[["n"]]], hints_of([tree], "mod.py", "f"), 200)
    assert {"1", "2", "0"} <= {written(value) for (value,) in made}


@pytest.mark.parametrize(
    ("use", "given", "values"),
    [
        ("Unit[x.upper()]", "hours", {"days", "years"}),
        ("Unit[x]", "HOURS", {"DAYS", "YEARS"}),
        ("Unit(x)", "hourly", {"daily"}),
        ("Unit.DAYS", "hours", set()),
        ("Plain[x]", "hours", set()),
        ("Unit[x]", "other", set()),
    ],
)
def test_a_function_that_looks_up_an_enumeration_is_given_its_other_members(
    tmp_path: Path, use: str, given: str, values: set[str]
) -> None:
    text = (
        "class Unit(enum.StrEnum):\n    DAYS = 'daily'\n    HOURS = 'hourly'\n    YEARS = auto()\n"
        f"class Plain:\n    DAYS, HOURS = 'dh'\ndef f(x):\n    return {use}\n"
    )
    tree = SourceTree.open(write_tar({"mod.py": text}, tmp_path / "tree.tar"))
    made = boundary_inputs([[["s", given]]], hints_of([tree], "mod.py", "f"), 200)
    assert {value[1] for (value,) in made} & {"days", "years", "DAYS", "YEARS", "daily"} == values


@pytest.mark.parametrize(("test", "is_tried"), [("f is None", True), ("not f", True), ("callable(f)", False)])
def test_an_object_that_may_be_none_is_replaced_with_what_is_false(
    tmp_path: Path, test: str, is_tried: bool
) -> None:
    text = f"def f(f):\n    return {test}\n"
    tree = SourceTree.open(write_tar({"mod.py": text}, tmp_path / "tree.tar"))
    inputs = made([described([len])], hints_of([tree], "mod.py", "f"))
    assert {"None", "''", "0"} & set(inputs) == ({"None", "''", "0"} if is_tried else set())


def test_each_value_that_an_argument_had_replaces_others() -> None:
    names = [f"n{number}" for number in range(12)]
    examples = [described([number, name], number) for number, name in enumerate(names)]
    inputs = boundary_inputs(examples, NO_HINTS, 200)
    tried = {values[1][1] for values in inputs if values[1][1] in names}
    assert len(tried) >= 8
    rare = [[["s", "rare" if number == 1 else "usual"]] for number in range(100)]
    draw, chance = like([values[0] for values in rare], NO_HINTS), Random(1)
    assert [draw(chance) for _ in range(30)].count(["s", "rare"]) > 4


def test_lines_of_texts_are_one_of_each_kind_the_shortest() -> None:
    box = Box("# head\n# h\n\n> quote\n    x\n  \ty\n12. one\nabc\nd", "one line")
    assert lines_in([described([[box]])]) == ("# h", "", "> quote", "  \ty", "12. one", "d")
    assert lines_in([described(["a" * 81 + "\n"])]) == ("",)
    assert lines_in([described(["# one line"])]) == ()


def test_a_text_of_lines_is_given_lines_of_others() -> None:
    hints = Hints(lines=("# h", "> q"))
    inputs = made([described(["| a |\n| b |\n"])], hints)
    for text in ("| a |\n| b |\n# h\n", "| a |\n> q\n", "# h\n| a |\n| b |\n"):
        assert repr(text) in inputs
    assert not [text for text in made([described(["ab"])], hints) if "h" in text]
    drawn = varied([described(["a\nb\nc"])], 60, hints)
    assert ["s", "a\n# h\nb\nc"] in [values[0] for values in drawn]


def test_hints_of_two_functions_are_joined() -> None:
    one = Hints((["i", "1"], ["s", "a"]), frozenset("s"), frozenset("n"), lines=("x",))
    other = Hints(
        (["s", "a"], ["n"]), frozenset("i"), frozenset("m"), True, frozenset(["KeyError"]), True, ("m",)
    )
    assert one.joined(other) == Hints(
        (["i", "1"], ["s", "a"], ["n"]),
        frozenset("si"),
        frozenset("nm"),
        True,
        frozenset(["KeyError"]),
        True,
        ("m",),
        ("x",),
    )
    many = Hints(tuple(["i", str(number)] for number in range(59)))
    assert len(many.joined(one).literals) == len(many.joined(other).literals) == 60


def test_a_function_that_may_be_called_is_replaced_with_ones_that_raise(tmp_path: Path) -> None:
    source = (
        "def f(call):\n    try:\n        return call()\n"
        "    except (KeyError, ValueError, Missing, errors.Other):\n        return 1\n"
    )
    tree = SourceTree.open(write_tar({"mod.py": source}, tmp_path / "tree.tar"))
    hints = hints_of([tree], "mod.py", "f")
    assert hints.catches == {"KeyError", "ValueError"}
    names = ("PlantedError", "PlantedExit", "KeyError", "ValueError")
    inputs = boundary_inputs([described([len])], hints, 50)
    assert {f"<a function that raises {name}>" for name in names} <= {written(value) for (value,) in inputs}
    raised = set()
    for values in inputs:
        if any(contents_in(values, tags.RAISING)):
            (function,) = RecordedArguments([]).of_input(values)
            try:
                function(1, key=2)
            except BaseException as error:
                raised.add(type(error).__name__)
    assert raised == set(names)


def test_functions_that_raise_are_found_inside_containers_and_attributes() -> None:
    planted = ["r", "KeyError"]
    for value in (
        planted,
        ["l", [planted]],
        ["d", [[["s", "a"], planted]]],
        ["o", 0, [0], "m.C", [["a", planted]]],
    ):
        assert set(contents_in([["n"], value], tags.RAISING)) == {"KeyError"}
    assert not set(contents_in([["o", 0, [0], "m.C"], ["s", "r"]], tags.RAISING))
