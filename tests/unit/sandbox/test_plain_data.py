"""Plain data between two sides in one process: values arrive unchanged, and forged messages are refused."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import io
import json
import logging
import math
import operator
import pathlib
import random
import re
import sys
import threading
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from gistpoint.sandbox.payload import plain_data
from gistpoint.sandbox.payload.plain_data import Decoder, Encoder
from gistpoint.sandbox.payload.plain_sides import (
    CannotTravelError,
    ProcessSide,
    Shared,
    UnseenNameError,
    name_of,
    type_name,
)
from gistpoint.sandbox.payload.submission_server import SubmissionSide
from gistpoint.sandbox.payload.trusted_calls import Learned, TestSide, decoded

HERE = str(pathlib.Path(__file__).parent)


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


class Loud(enum.IntFlag):
    LOW = 1
    HIGH = 2


class Thing:
    unit = "mm"
    limit = None

    def __init__(self, value: object) -> None:
        raise AssertionError("no constructor may run")

    def method(self) -> object:
        return self.value  # type: ignore[attr-defined]

    @property
    def shown(self) -> str:
        return "shown"


class Plain:
    pass


class Slotted:
    __slots__ = ("left", "right")


class Both(Slotted):
    __slots__ = ("__dict__",)


class Words(list):  # type: ignore[type-arg]
    pass


class Table(dict):  # type: ignore[type-arg]
    def __setitem__(self, key: object, value: object) -> None:
        raise AssertionError("no method may run")


class Meters(float):
    pass


class Name(str):
    __slots__ = ()


class Pair(tuple):  # type: ignore[type-arg]
    pass


Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: object
    more: int = 3


class TroubleError(ValueError):
    def __init__(self, code: int, *, hint: str) -> None:
        super().__init__(f"trouble {code}")
        self.code, self.hint = code, hint


class Counting:
    made = 0

    def __init__(self, *_: object) -> None:
        type(self).made += 1


SENTINEL = object()


def plain_function(value: object = None) -> object:
    return value


class FakeCalls:
    """Fake calls in progress, as both sides need them."""

    def __init__(self, learned: Learned) -> None:
        self.learned, self.asked = [learned], [0]
        self.shared: list[Shared] = []

    def function(self, number: int, *_: object) -> Callable[..., object]:
        return lambda: number

    def iterator(self, number: int) -> object:
        return iter((number,))


class Wire:
    """The two sides of one call, which exchange JSON."""

    def __init__(self, learned: Learned | None = None) -> None:
        self.learned = learned or Learned(learning=True, answers=[], writes=[])
        calls: Any = FakeCalls(self.learned)
        self.tests = Shared(TestSide(calls, HERE, []))
        self.submission = Shared(SubmissionSide(calls, HERE))
        calls.shared.append(self.tests)

    def ask(self, *values: object) -> list[Any]:
        """Return the values as they arrive at the submission."""
        return Decoder(self.submission, travelled(self.tests, values)).values()

    def answer(self, *values: object) -> list[Any]:
        """Return the values as they arrive at the tests."""
        return decoded(self.tests, travelled(self.submission, values), len(values))


def travelled(shared: Shared, values: Sequence[object]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(Encoder(shared).message(values)))
    return found


def learnt(*names: str, writes: Sequence[str] = ()) -> Learned:
    """Return what was learned from the true function: the names in its answers, and its changes."""
    return Learned(learning=False, answers=list(names), writes=list(writes))


def shape(value: Any, seen: dict[int, int] | None = None) -> object:
    """Return a comparable form of a value: types, contents, and which containers are identical."""
    seen = {} if seen is None else seen
    kind = type(value)
    if kind is float:
        return "nan" if math.isnan(value) else value.hex()
    if kind in (tuple, frozenset):
        parts = [shape(part, seen) for part in value]
        return (kind.__name__, sorted(parts, key=repr) if kind is frozenset else parts)
    if kind in (list, dict, set, bytearray, collections.deque):
        if id(value) in seen:
            return ("again", seen[id(value)])
        seen[id(value)] = len(seen)
        if kind is dict:
            return ("dict", [(shape(key, seen), shape(part, seen)) for key, part in value.items()])
        parts = [shape(part, seen) for part in value]
        return (kind.__name__, sorted(parts, key=repr) if kind is set else parts)
    return (kind.__name__, value)


HASHED = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(1 << 60, 1 << 70)
    | st.text(max_size=5)
    | st.binary(max_size=5)
    | st.floats(allow_nan=False)
    | st.sampled_from(Colour)
    | st.dates()
    | st.datetimes()
    | st.timedeltas()
    | st.decimals(allow_nan=False, places=2)
    | st.fractions(),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3),
    max_leaves=6,
)
PLAIN = st.recursive(
    HASHED | st.floats() | st.binary(max_size=4).map(bytearray),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(HASHED, inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.sets(HASHED, max_size=3)
        | st.lists(inner, max_size=3).map(collections.deque)
    ),
    max_leaves=12,
)


@examples(25)
@given(PLAIN)
def test_plain_values_arrive_as_they_were_on_either_side(value: object) -> None:
    wire = Wire()
    (there,) = wire.ask(value)
    assert shape(there) == shape(value)
    assert shape(wire.answer(there)[0]) == shape(value)


@pytest.mark.parametrize(
    "text", [chr(0xD83D) + chr(0xDE00), "a\udbff\udfffb", "\ud83d", "\ude00\ud83d", "\U0001f600"]
)
def test_signs_that_json_would_merge_stay_apart(text: str) -> None:
    wire = Wire(learnt(type_name(Name)))
    values = [text, {text: [text]}, (text,), Name(text), ValueError(text)]
    for found in (wire.ask(*values), wire.answer(*wire.ask(*values))):
        plain, held, row, name, error = found
        assert [plain, *held, *held[text], *row, str(name), *error.args] == [text] * 6


@examples(25)
@given(st.integers(1, 6), st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=15))
def test_shared_and_circular_references_stay_so(count: int, edges: list[tuple[int, int]]) -> None:
    containers: list[Any] = [[] if place % 2 else {} for place in range(count)]
    for source, target in edges:
        holder, held = containers[source % count], containers[target % count]
        if type(holder) is list:
            holder.append(held)
        else:
            holder[len(holder)] = (held, [held])
    wire = Wire()
    (there,) = wire.ask(containers)
    assert shape(there) == shape(containers)
    (back,) = wire.answer(there)
    assert back is containers


@examples(25)
@given(PLAIN, PLAIN)
def test_what_was_given_is_changed_where_it_is(before: object, after: object) -> None:
    wire = Wire()
    items: list[object] = [before]
    table: dict[str, object] = {"a": items, "b": before}
    row = collections.deque([before])
    there_items, there_table, there_row = wire.ask(items, table, row)
    there_items[:] = [after, there_table]
    del there_table["b"]
    there_row.appendleft(after)
    (answer,) = wire.answer(there_items)
    assert answer is items
    assert items[1] is table
    assert shape(items[0]) == shape(after)
    assert list(table) == ["a"]
    assert table["a"] is items
    assert shape(row[0]) == shape(after)
    assert len(row) == 2


@examples(25)
@given(PLAIN, PLAIN)
def test_a_second_message_holds_what_changed_and_nothing_else(first: object, second: object) -> None:
    wire = Wire()
    big, small = [first] * 3, list[object]([0])
    there_big, there_small = wire.ask(big, small)
    there_small.append(1)
    message = travelled(wire.submission, [there_big])
    assert [node for node in message["heap"].values() if node[0] == "list"] == [["list", [0, 1]]]
    assert Decoder(wire.tests, message).values()[0] is big
    assert small == [0, 1]
    small.append(second)
    again = travelled(wire.tests, [])
    Decoder(wire.submission, again).values()
    assert shape(there_small) == shape(small)
    assert all(node[0] != "list" or node[1] != ["#"] for node in again["heap"].values())


def thing(**held: object) -> Thing:
    made = Thing.__new__(Thing)
    made.__dict__.update(held)
    return made


def slotted(kind: Any = Slotted, **held: object) -> Any:
    made = kind.__new__(kind)
    for name, part in held.items():
        setattr(made, name, part)
    return made


def table() -> Table:
    made = Table()
    dict.__setitem__(made, "k", [1])
    made.extra = 4  # type: ignore[attr-defined]
    return made


def trouble() -> TroubleError:
    made = TroubleError(7, hint="more")
    made.__cause__ = KeyError("k")
    return made


def raised(make: Callable[[], Any]) -> Any:
    try:
        make()
    except Exception as error:
        return error


def in_context(*, shown: bool) -> TroubleError:
    made = TroubleError(7, hint="more")
    try:
        try:
            raise KeyError("k", thing())
        except KeyError as missing:
            raise LookupError("first", 1) from missing
    except LookupError as error:
        made.__context__ = error
    made.__suppress_context__ = not shown
    return made


def seen_context(found: BaseException) -> object:
    first = found.__context__
    assert first is not None
    second = first.__context__
    assert second is not None
    return repr(first), type(second), second.args, second.__context__, found.__suppress_context__


def sized(kind: type, text: Any, place: int) -> Any:
    made = kind(text)
    made.seek(place)
    return made


OBJECTS: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "attributes": (lambda: thing(value=[1]), lambda found: (type(found), found.value)),
    "slots": (lambda: slotted(left=1), lambda found: (found.left, hasattr(found, "right"))),
    "slots and attributes": (lambda: slotted(Both, right=2, more=3), lambda found: (found.right, found.more)),
    "list subclass": (lambda: Words([1, 2]), lambda found: (type(found), list(found))),
    "dict subclass": (table, lambda found: (type(found), dict.copy(found), found.extra)),
    "float subclass": (lambda: Meters(1.5), lambda found: (type(found), float(found))),
    "str subclass": (lambda: Name("n"), lambda found: (type(found), str(found))),
    "tuple subclass": (lambda: Pair((1, [2])), lambda found: (type(found), tuple(found))),
    "named tuple": (lambda: Point(1, [2]), lambda found: (type(found), found.x, found.y)),
    "frozen": (lambda: Frozen("v"), lambda found: found),
    "exception": (trouble, lambda found: (found.args, found.code, found.hint, repr(found.__cause__))),
    "error of the system": (
        lambda: FileNotFoundError(2, "no", "f"),
        lambda found: (type(found), found.filename),
    ),
    "context": (lambda: in_context(shown=True), lambda found: seen_context(found)[:2]),
    "context that is not shown": (
        lambda: in_context(shown=False),
        lambda found: (repr(found.__context__), found.__suppress_context__),
    ),
    "without a context": (
        lambda: KeyError("k"),
        lambda found: (found.__context__, found.__suppress_context__),
    ),
    "name of an import": (
        lambda: ImportError("no", name="a.b", path="/c"),
        lambda found: (found.args, found.name, found.path),
    ),
    "name of an attribute": (lambda: raised(lambda: (5).nothing), lambda found: found.name),  # type: ignore[attr-defined]
    "error of a codec": (lambda: UnicodeDecodeError("ascii", b"x", 0, 1, "r"), str),
    "enumeration": (lambda: Colour.GREEN, lambda found: found is Colour.GREEN),
    "flags": (lambda: Loud.LOW | Loud.HIGH, lambda found: (type(found), found.value)),
    "partial": (
        lambda: functools.partial(max, 1, key=abs),
        lambda found: (found.func, found.args, found.keywords),
    ),
    "bound method": (lambda: thing(value=5).method, lambda found: found()),
    "method of a container": (lambda: ["a"].index, lambda found: found("a")),
    "function": (lambda: plain_function, lambda found: found is plain_function),
    "class": (lambda: Thing, lambda found: found is Thing),
    "module": (lambda: json, lambda found: found is json),
    "singleton": (lambda: SENTINEL, lambda found: found is SENTINEL),
    "time": (lambda: datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC), lambda found: found),
    "decimal": (lambda: decimal.Decimal("1.20"), str),
    "fraction": (lambda: fractions.Fraction(2, 6), str),
    "path": (lambda: pathlib.PurePosixPath("/a/../b"), lambda found: (type(found), str(found))),
    "pattern": (lambda: re.compile("a(?P<n>.)", re.I), lambda found: (found.pattern, found.flags)),
    "getter": (lambda: operator.itemgetter(1, 0), lambda found: found("ab")),
    "text file": (lambda: sized(io.StringIO, "abc", 1), lambda found: (found.getvalue(), found.tell())),
    "byte file": (lambda: sized(io.BytesIO, b"abc", 2), lambda found: (found.getvalue(), found.tell())),
    "range and slice": (lambda: (range(1, 1 << 70, 2), slice(None, 3)), lambda found: found),
    "complex": (lambda: complex(-0.0, math.inf), repr),
    "views": (lambda: ({"a": 1}.keys(), {"a": 1}.items()), repr),
    "read-only mapping": (lambda: types.MappingProxyType({"a": [1]}), dict),
    "default": (lambda: collections.defaultdict(list, a=[1]), lambda found: (found["a"], found["b"])),
    "counter": (lambda: collections.Counter("aab"), lambda found: (type(found), dict(found))),
    "ordered": (lambda: collections.OrderedDict(b=1, a=2), lambda found: (type(found), list(found))),
    "bounded row": (lambda: collections.deque([1, 2], 2), lambda found: (found.maxlen, list(found))),
    "namespace": (lambda: types.SimpleNamespace(a=[1]), lambda found: found.a),
    "lock": (threading.Lock, lambda found: found.acquire(blocking=False)),
    "logger": (lambda: logging.getLogger("a.b"), lambda found: found is logging.getLogger("a.b")),
    "constants": (lambda: [NotImplemented, Ellipsis], repr),
    "odd floats": (lambda: (-0.0, math.nan, -math.inf, 5e-324), repr),
    "signs of what is no number": (
        lambda: (math.nan, -math.nan),
        lambda found: [math.copysign(1, part) for part in found],
    ),
    "weak reference": (lambda: (SENTINEL, weakref.ref(Thing)), lambda found: found[1]() is Thing),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_objects_arrive_as_they_were_on_either_side(name: str) -> None:
    make, seen = OBJECTS[name]
    expected = seen(make())
    wire = Wire()
    value = make()
    (there,) = wire.ask(value)
    assert seen(there) == expected
    assert seen(wire.answer(make())[0]) == expected


def test_an_objects_identity_and_its_removed_attributes() -> None:
    wire = Wire()
    given_thing, given_slots = thing(value=1, gone=2), slotted(left=1, right=2)
    there, slots = wire.ask(given_thing, given_slots)
    assert there is not given_thing
    del there.gone
    del slots.right
    there.value, slots.left = slots, there
    assert wire.answer(there)[0] is given_thing
    assert vars(given_thing) == {"value": given_slots}
    assert given_slots.left is given_thing
    assert not hasattr(given_slots, "right")


@pytest.mark.parametrize(
    ("make", "change", "same"),
    [
        (lambda: {1, 2}, lambda v: v.discard(1), {2}),
        (lambda: bytearray(b"ab"), lambda v: v.extend(b"c"), bytearray(b"abc")),
        (
            lambda: collections.OrderedDict(a=1, b=2),
            lambda v: v.move_to_end("a"),
            collections.OrderedDict(b=2, a=1),
        ),
        (lambda: collections.Counter("a"), lambda v: v.update("a"), collections.Counter("aa")),
        (lambda: types.SimpleNamespace(a=1), lambda v: delattr(v, "a"), types.SimpleNamespace()),
        (lambda: Words([1]), lambda v: v.append(2), [1, 2]),
    ],
)
def test_every_container_is_changed_in_place(make: Callable[[], Any], change: Any, same: object) -> None:
    wire = Wire()
    value = make()
    (there,) = wire.ask(value)
    change(there)
    assert wire.answer(there)[0] is value
    assert value == same


def nested(depth: int) -> tuple[object, ...]:
    value: tuple[object, ...] = ()
    for _ in range(depth):
        value = (value,)
    return value


def wide() -> list[object]:
    return [[] for _ in range(plain_data.MOST_NODES + 1)]


@pytest.mark.parametrize(
    "make",
    [lambda: nested(200), wide, lambda: "x" * (plain_data.MOST_CHARACTERS + 1), lambda: nested(100_000)],
)
def test_what_is_too_deep_or_too_large_does_not_travel(make: Callable[[], object]) -> None:
    wire = Wire()
    for send in (wire.ask, wire.answer):
        with pytest.raises(CannotTravelError):
            send([make()])
    assert not issubclass(CannotTravelError, Exception)


def test_what_can_not_travel_is_passed_back_by_number() -> None:
    wire = Wire()
    own = [lambda: 1, iter(()), sys.stdin, type("Local", (), {})]
    theirs = wire.ask(*own)
    assert all(found is not value for found, value in zip(theirs, own, strict=True))
    assert wire.answer(*theirs) == own


# Messages from a hostile submission

KNOWN = learnt(
    type_name(Thing), type_name(Table), type_name(Counting), type_name(Name), f"{__name__}:Colour.RED"
)
OBJECT = ["object", f"{__name__}:Thing"]
HOSTILE: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "unknown kind of value": ([["zz", 1]], {}),
    "no kind of value": ([[]], {}),
    "kind of value that is no text": ([[["n"], 1]], {}),
    "object in place of a value": ([{"a": 1}], {}),
    "unknown kind of object": ([["#", -5]], {"-5": ["table", []]}),
    "kind of object that is no text": ([["#", -5]], {"-5": [["list"], []]}),
    "number that is not there": ([["#", -77]], {}),
    "number of the other side that is not there": ([["#", 1_000_000_044]], {}),
    "number that is a text": ([["#", "1"]], {}),
    "key that is no number": ([1], {"x": ["list", []]}),
    "given list that becomes an object": ([["#", 1]], {"1": [*OBJECT, {}, "", None]}),
    "given object that becomes a list": ([["#", 3]], {"3": ["list", []]}),
    "given object of another class": ([["#", 3]], {"3": ["object", type_name(Table), {}, "dict", []]}),
    "class of another base": ([["#", -5]], {"-5": [*OBJECT, {}, "dict", []]}),
    "dict subclass without its base": ([["#", -5]], {"-5": ["object", type_name(Table), {}, "", None]}),
    "contents of another base": ([["#", -5]], {"-5": ["object", type_name(Table), {}, "dict", 7]}),
    "immutable that holds itself": ([["#", -5]], {"-5": ["object", type_name(Name), {}, "str", ["#", -5]]}),
    "immutables in a circle": (
        [["#", -5]],
        {n: ["object", type_name(Name), {}, "str", ["#", m]] for n, m in (("-5", -6), ("-6", -5))},
    ),
    "unlearned class by name": ([["n", "builtins:int"]], {}),
    "exec": ([["n", "builtins:exec"]], {}),
    "module": ([["n", "os:"]], {}),
    "function of a module": ([["n", "os:system"]], {}),
    "function of the tree": ([["n", f"{__name__}:plain_function"]], {}),
    "function below a learned class": ([["n", f"{type_name(Thing)}.method"]], {}),
    "globals": ([["n", f"{__name__}:plain_function.__globals__"]], {}),
    "namespace of a learned class": ([["n", f"{type_name(Thing)}.__dict__"]], {}),
    "namespace of a module": ([["n", "sys:modules"]], {}),
    "another member": ([["n", f"{__name__}:Colour.GREEN"]], {}),
    "member of an unlearned enumeration": ([["e", type_name(Loud), 1]], {}),
    "constructor in place of a member": ([["e", type_name(Counting), 1]], {}),
    "unlearned object": ([["#", -5]], {"-5": ["object", type_name(Frozen), {"value": 1}, "", None]}),
    "object that equals all": ([["#", -5]], {"-5": ["object", "unittest.mock:_ANY", {}, "", None]}),
    "unlearned exception": ([["#", -5]], {"-5": ["exception", type_name(TroubleError), ["t", []], {}, None]}),
    "end of the process": ([["#", -5]], {"-5": ["exception", "builtins:SystemExit", ["t", []], {}, None]}),
    "skipped": ([["#", -5]], {"-5": ["exception", "_pytest.outcomes:Skipped", ["t", []], {}, None]}),
    "exception that is none": ([["#", -5]], {"-5": ["exception", "builtins:exec", ["t", []], {}, None]}),
    "exception with odd arguments": ([["#", -5]], {"-5": ["exception", "builtins:OSError", 5, {}, None]}),
    **{
        f"exception with {words}": (
            [["#", -5]],
            {"-5": ["exception", "builtins:OSError", ["t", []], {}, None, "OSError", context]},
        )
        for words, context in {
            "an odd context": 5,
            "an odd sign of a context": [1, []],
            "a context that is none": [False, [["t", []]]],
            "a context without parts": [False, [["c"]]],
            "a context of a number": [False, [["c", 5, "KeyError", ["t", []]]]],
            "a context of many": [False, [["c", "builtins:KeyError", "KeyError", ["t", []]]] * 9],
        }.items()
    },
    "exception with an odd cause": ([["#", -5]], {"-5": ["exception", "builtins:OSError", ["t", []], {}, 5]}),
    "method": ([["m", ["#", 3], "method"]], {}),
    "method of a container": ([["m", ["#", 1], "clear"]], {}),
    "dunder method": ([["m", ["#", 3], "__class__"]], {}),
    "class by a view": ([["v", "__class__", 1]], {}),
    "cleared by a view": ([["v", "clear", ["#", 2]]], {}),
    "popped by a view": ([["v", "popitem", ["#", 2]]], {}),
    "getter of attributes": ([["x", "operator.attrgetter", ["t", ["__class__"]]]], {}),
    "caller of methods": ([["x", "operator.methodcaller", ["t", ["clear"]]]], {}),
    "unknown type of parts": ([["x", "subprocess.Popen", ["t", ["true"]]]], {}),
    "partial": ([["p", ["n", "builtins:print"], ["t", []], ["t", []]]], {}),
    "function elsewhere": ([["#", -1_000_000_000]], {"-1000000000": ["function", "f", None]}),
    "iterator elsewhere": ([["#", -1_000_000_000]], {"-1000000000": ["iterator", "", None]}),
    "token elsewhere": ([["#", -1_000_000_000]], {"-1000000000": ["token", "", None]}),
    "factory of defaults": ([["#", -5]], {"-5": ["default", [], ["n", "builtins:exec"]]}),
    "lock of no kind": ([["#", -5]], {"-5": ["lock", "x"]}),
    "huge number": ([["i", "0x" + "z" * 9]], {}),
    "number that is no text": ([["i", 5]], {}),
    "unhashable key": ([["#", -5]], {"-5": ["dict", [[["#", 1], 2]]]}),
    "unhashable part": ([["z", [["#", 1]]]], {}),
    "pair of three": ([["#", -5]], {"-5": ["dict", [[1, 2, 3]]]}),
    "bad pattern": ([["re", "(", 0]], {}),
    "bad bytes": ([["b", "é"]], {}),
    "bad fraction": ([["x", "fractions.Fraction", ["t", ["x"]]]], {}),
    "bad decimal": ([["x", "decimal.Decimal", ["t", ["x"]]]], {}),
    "unknown constant": ([["k", "exit"]], {}),
    "constant in place of a name": ([["n", "x:y", ["k", "NotImplemented"]]], {}),
    "constant in place of a method": ([["m", ["#", 3], "method", ["k", "NotImplemented"]]], {}),
    "constant in place of a getter": (
        [["x", "operator.itemgetter", ["t", [1]], ["k", "NotImplemented"]]],
        {},
    ),
    "constant in place of a partial": ([["p", 1, ["t", []], ["t", []], ["k", "NotImplemented"]]], {}),
    "constant in place of a member": ([["e", "x:y", ["k", "NotImplemented"], "int"]], {}),
    "nothing in place of a name": ([["n", "x:y", []]], {}),
    "node without contents": ([["#", -5]], {"-5": ["object"]}),
    "hidden method": ([["#", -5]], {"-5": [*OBJECT, {"method": 1}, "", None]}),
    "hidden property": ([["#", -5]], {"-5": [*OBJECT, {"shown": 1}, "", None]}),
    "hidden comparison": ([["#", -5]], {"-5": [*OBJECT, {"__eq__": 1}, "", None]}),
    "hidden class": ([["#", -5]], {"-5": [*OBJECT, {"__class__": 1}, "", None]}),
    "hidden dictionary": ([["#", -5]], {"-5": [*OBJECT, {"__dict__": 1}, "", None]}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_forged_message_is_refused_and_changes_nothing(name: str) -> None:
    wire = Wire(KNOWN)
    items, held, given_thing = [1], {"a": 1}, thing(value=1)
    wire.ask(items, held, given_thing)
    assert list(wire.tests.objects) == [1, 2, 3]
    roots, heap = HOSTILE[name]
    made = Counting.made
    with pytest.raises((CannotTravelError, UnseenNameError)):
        decoded(wire.tests, {"roots": roots, "heap": heap}, 1)
    assert (items, held, vars(given_thing), Counting.made) == ([1], {"a": 1}, {"value": 1}, made)
    assert type(given_thing) is Thing


@pytest.mark.parametrize("flags", [0, re.DEBUG, re.DEBUG | re.IGNORECASE])
def test_a_pattern_arrives_without_warnings_and_output(flags: int, capsys: Any, recwarn: Any) -> None:
    re.purge()
    (found,) = decoded(Wire(KNOWN).tests, {"roots": [["re", "[[a]", flags]], "heap": {}}, 1)
    assert (found.pattern, found.flags & re.DEBUG, found.flags & re.IGNORECASE) == ("[[a]", 0, flags & re.I)
    assert (capsys.readouterr().out, len(recwarn)) == ("", 0)


def test_forged_values_that_are_deep_are_refused() -> None:
    value: Any = 1
    for _ in range(100_000):
        value = ["t", [value]]
    chain = {str(-n): ["object", type_name(Name), {}, "str", ["#", -n - 1]] for n in range(5, 20_000)}
    for message in ({"roots": [value], "heap": {}}, {"roots": [["#", -5]], "heap": chain}):
        with pytest.raises(CannotTravelError):
            decoded(Wire(KNOWN).tests, message, 1)


@pytest.mark.parametrize("count", [0, 2])
def test_an_answer_has_one_value(count: int) -> None:
    with pytest.raises(CannotTravelError):
        decoded(Wire(KNOWN).tests, {"roots": [1] * count, "heap": {}}, 1)


@pytest.mark.parametrize(
    "change",
    [
        lambda items, table, given: items.append(2),
        lambda items, table, given: table.clear(),
        lambda items, table, given: setattr(given, "value", 9),
        lambda items, table, given: delattr(given, "value"),
        lambda items, table, given: given.row.append(2),
        lambda items, table, given: setattr(given.error, "__cause__", KeyError("x")),
        lambda items, table, given: setattr(given, "method", 1),
        lambda items, table, given: setattr(given, "limit", 5),
    ],
)
def test_what_the_true_function_never_changed_is_not_changed(change: Callable[..., object]) -> None:
    wire = Wire(KNOWN)
    items, held = [1], {"a": 1}
    given_thing = thing(value=1, row=collections.deque([1]), error=ValueError("v"))
    there = wire.ask(items, held, given_thing)
    attributes = set(vars(given_thing))
    change(*there)
    wire.answer(None)
    assert wire.learned.has_unmade_change
    assert set(vars(given_thing)) == attributes
    assert (items, held, given_thing.value, list(given_thing.row)) == ([1], {"a": 1}, 1, [1])  # type: ignore[attr-defined]
    assert given_thing.error.__cause__ is None  # type: ignore[attr-defined]


class Crate:
    def __init__(self, items: list[int]) -> None:
        self.items = items

    @functools.cached_property
    def total(self) -> int:
        return sum(self.items)


@pytest.mark.parametrize("all_changes", [False, True])
def test_what_a_cached_property_holds_is_left_out_at_first(all_changes: bool) -> None:
    wire = Wire(learnt(type_name(Crate)))
    wire.learned.all_changes = all_changes
    crate = Crate([1, 2])
    assert crate.total == 3
    (found,) = wire.answer(crate)
    assert ("total" in vars(found), found.total, wire.learned.has_unmade_change) == (all_changes, 3, True)


CONTAINERS: list[Any] = [
    collections.ChainMap({"a": 1}, {"b": 2}),
    collections.UserDict(a=1),
    collections.UserList([1]),
    collections.UserString("x"),
]


@pytest.mark.parametrize("value", CONTAINERS, ids=lambda value: type(value).__name__)
def test_containers_of_the_standard_library_arrive_without_having_been_seen(value: Any) -> None:
    (found,) = Wire(learnt()).answer(value)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize("factory", [lambda: 1, plain_function, "x".upper], ids=["local", "named", "bound"])
def test_a_new_dictionary_of_defaults_has_any_factory(factory: Any) -> None:
    (found,) = Wire(learnt()).answer(collections.defaultdict(factory, a=1))
    assert found == {"a": 1}
    assert callable(found.default_factory)
    with pytest.raises(UnseenNameError):
        Wire(learnt()).answer([factory])


ZERO, LOOSE = Crate([]), Crate([])
LOOSE.slack = 9  # type: ignore[attr-defined]


@pytest.mark.parametrize("true", [ZERO, Crate([1])], ids=["a constant", "a new object"])
def test_a_constant_has_only_the_attributes_of_true_answers(true: Crate) -> None:
    wire = Wire()
    wire.answer(true)
    known = learnt(*wire.learned.answers)
    assert Wire(known).answer(ZERO) == [ZERO]
    with pytest.raises(UnseenNameError):
        Wire(known).answer(LOOSE)


def record(**more: object) -> list[Any]:
    return ["gistpoint.told", 30, "text", more]


def test_what_belongs_to_a_log_record_is_repeated_if_the_true_function_has_it() -> None:
    row = record(code=5, msg="other", exc_info=[type_name(TroubleError), "ValueError", "bad"])
    logger, learning = logging.getLogger("gistpoint.told"), Wire()
    sides = [learning, Wire(learnt(*_effects(record()))), Wire(learnt(*_effects(row)))]
    found: list[Any] = [wire.learned.repeats(wire.tests.side, logger, row) for wire in sides]  # type: ignore[arg-type]
    assert [getattr(each, "code", None) for each in found] == [5, None, 5]
    assert [each.msg for each in found] == ["text"] * 3
    assert [each.exc_info and (each.exc_info[0], str(each.exc_info[1])) for each in found] == [
        (TroubleError, "bad"),
        None,
        (TroubleError, "bad"),
    ]
    assert [wire.learned.has_unmade_change for wire in sides] == [False, True, False]
    for odd in (5, ["x"], ["x", 1, "y"]):
        with pytest.raises(CannotTravelError):
            learning.learned.repeats(learning.tests.side, logger, record(exc_info=odd))  # type: ignore[arg-type]


def _effects(row: list[Any]) -> set[str]:
    wire = Wire()
    wire.learned.repeats(wire.tests.side, logging.getLogger(row[0]), row)  # type: ignore[arg-type]
    return wire.learned.answers


def plain_factory() -> int:
    return 7


FACTORIES: list[Any] = [None, list, plain_factory, lambda: 1, functools.partial(int, "5"), "x".upper]


@pytest.mark.parametrize("first", FACTORIES, ids=range(len(FACTORIES)))
@pytest.mark.parametrize("second", [None, int, dict])
def test_the_factory_of_a_dictionary_of_defaults_is_changed(first: Any, second: Any) -> None:
    wire, given = Wire(learnt()), collections.defaultdict(first, a=1)
    wire.tests.side.calls.learned[0].writes.add("default")  # type: ignore[attr-defined]
    (there,) = wire.ask(given)
    there["b"] = 2
    wire.answer(None)
    assert given == {"a": 1, "b": 2}
    assert given.default_factory is first, "it is not decoded again"
    there.default_factory = second
    wire.answer(None)
    assert given.default_factory is second


@pytest.mark.parametrize("is_known", [True, False])
def test_the_arguments_of_an_exception_are_changed(is_known: bool) -> None:
    wire, given = Wire(learnt()), ValueError(1, [2])
    learned = wire.tests.side.calls.learned[0]  # type: ignore[attr-defined]
    learned.writes.update(["builtins:ValueError.args"] if is_known else [])
    (there,) = wire.ask(given)
    there.note = 5
    wire.answer(None)
    assert (given.note, given.args, learned.has_unmade_change) == (5, (1, [2]), False)  # type: ignore[attr-defined]
    there.args = (3,)
    wire.answer(None)
    assert (given.args, learned.has_unmade_change) == ((3,) if is_known else (1, [2]), not is_known)


def test_all_changes_are_made_where_they_are_to_be_judged() -> None:
    learned = Learned(learning=False, answers=[], writes=[], all_changes=True)
    wire = Wire(learned)
    items, given_thing = [1], thing(value=1)
    there, other = wire.ask(items, given_thing)
    there.append(2)
    other.limit = other.value = 5
    wire.answer(None)
    assert (items, vars(given_thing)) == ([1, 2], {"value": 5, "limit": 5})
    assert learned.has_unmade_change


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda given: given.row.append(2), lambda given: setattr(given, "row", [1, 2])),
        (lambda given: given.table["a"].append(2), lambda given: given.table.update(a=[1, 2])),
    ],
)
@pytest.mark.parametrize("backwards", [False, True])
def test_a_change_may_be_made_in_another_way(first: Any, second: Any, backwards: bool) -> None:
    seen = Learned(learning=True, answers=[], writes=[])
    for learned in (seen, Learned(learning=False, answers=[], writes=[])):
        learned.writes = seen.writes
        wire, given_thing = (
            Wire(learned),
            thing(row=[1], table={"a": [1]}, rest=(1, (math.nan, frozenset("a")))),
        )
        (there,) = wire.ask(given_thing)
        change = first if backwards is learned.learning else second
        change(there)
        wire.answer(None)
        assert (given_thing.row, given_thing.table) in (([1, 2], {"a": [1]}), ([1], {"a": [1, 2]}))  # type: ignore[attr-defined]
        assert not learned.has_unmade_change


def other_class(name: str) -> Any:
    """Return an exception of a class that no true function answered with."""
    try:
        return {"json": lambda: json.loads("{"), "local": lambda: local_error(), "cause": lambda: caused()}[
            name
        ]()
    except Exception as error:
        return error


def local_error() -> None:
    class StrangeError(KeyError):
        pass

    raise StrangeError("x")


def caused() -> None:
    raise OSError("x") from other_class("json")


@pytest.mark.parametrize(("name", "kind"), [("json", ValueError), ("local", KeyError), ("cause", OSError)])
def test_an_exception_of_an_unknown_class_arrives_as_the_built_in_one_that_it_extends(
    name: str, kind: type[Exception]
) -> None:
    wire, error = Wire(KNOWN), other_class(name)
    (found,) = wire.answer(error)
    assert type(found) is kind
    assert found.args == error.args
    assert type(found.__cause__) is (ValueError if name == "cause" else type(None))
    error.more = 1
    assert wire.answer(error)[0] is found
    assert found.more == 1


@pytest.mark.parametrize("base", ["SystemExit", "BaseException", "exec", "list", "ValueError.mro", 5, ""])
def test_no_other_built_in_class_is_taken_for_an_exception(base: object) -> None:
    heap = {"-5": ["exception", type_name(TroubleError), ["t", []], {}, None, base]}
    with pytest.raises((CannotTravelError, UnseenNameError)):
        decoded(Wire(KNOWN).tests, {"roots": [["#", -5]], "heap": heap}, 1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: functools.partial(operator.add, 1),
        lambda: (1).__add__,
        lambda: operator.itemgetter(0),
        lambda: abs,
    ],
)
def test_any_callable_arrives_as_a_function_where_the_true_one_answers_with_one(
    make: Callable[[], Any],
) -> None:
    wire, value = Wire(learnt("function elsewhere")), make()
    (found,) = wire.answer(value)
    assert type(found) is types.FunctionType
    assert wire.ask(found)[0] is value
    with pytest.raises(UnseenNameError):
        Wire(KNOWN).answer(make())


def test_a_callable_object_arrives_as_a_function() -> None:
    class Adding:
        def __call__(self, n: int) -> int:
            return n

    (found,) = Wire(learnt("function elsewhere")).answer(Adding())
    assert type(found) is types.FunctionType


class KnownError(Exception):
    pass


class RareError(KnownError, KeyError):
    pass


CONSTANT = Plain()
FUNCTION = functools.partial(int, "5")


def test_an_exception_of_the_library_arrives_as_the_known_one_that_it_extends() -> None:
    (found,) = Wire(learnt(type_name(KnownError))).answer(RareError(1))
    assert (type(found), found.args) == (KnownError, (1,))
    (found,) = Wire(learnt(type_name(TroubleError))).answer(RareError(1))
    assert type(found) is KeyError
    (found,) = Wire(learnt(type_name(RareError))).answer(RareError(1))
    assert type(found) is RareError


def test_a_constant_of_the_library_is_an_object_of_its_class() -> None:
    name = f"{__name__}:CONSTANT"
    assert travelled(Wire().submission, [CONSTANT])["roots"] == [["n", name]]
    assert Wire(learnt(type_name(Plain))).answer(CONSTANT)[0] is CONSTANT
    for known in ((), (type_name(Thing),), (f"{__name__}:FUNCTION",)):
        with pytest.raises(UnseenNameError):
            Wire(learnt(*known)).answer(CONSTANT)
    with pytest.raises(UnseenNameError):
        Wire(learnt("functools:partial")).answer(FUNCTION)
    learned = Learned(learning=True, answers=[], writes=[])
    Wire(learned).answer(CONSTANT)
    assert {name, type_name(Plain)} <= learned.answers
    (found,) = Wire(learnt(*learned.answers)).answer(Plain())
    assert type(found) is Plain


@pytest.mark.parametrize("name", ["antigravity:fly", "this:s", f"{__name__}:NONE", f"{__name__}:", "x"])
def test_no_module_is_imported_for_a_name_that_is_refused(name: str) -> None:
    before = set(sys.modules)
    with pytest.raises(UnseenNameError):
        decoded(Wire(KNOWN).tests, {"roots": [["n", name]], "heap": {}}, 1)
    assert set(sys.modules) == before


def test_defaults_and_members_arrive_as_what_they_extend() -> None:
    wire = Wire(KNOWN)
    found, member = wire.answer(collections.defaultdict(list, a=[1]), Loud.HIGH)
    assert (found["a"], found["b"]) == ([1], [])
    assert (type(member), member) == (int, 2)


@pytest.mark.parametrize(("name", "value"), [("unit", "m"), ("unit", ["m"]), ("limit", 1e9), ("limit", [])])
def test_a_default_that_is_overridden_arrives_only_with_all_changes(name: str, value: object) -> None:
    node = value if type(value) is not list else ["t", value]
    message = {"roots": [["#", -5]], "heap": {"-5": [*OBJECT, {name: node, "new": 1}, "", None]}}
    learned = learnt(type_name(Thing))
    (found,) = decoded(Wire(learned).tests, message, 1)
    assert vars(found) == {"new": 1}
    assert learned.has_unmade_change
    learned.all_changes = True
    (found,) = decoded(Wire(learned).tests, message, 1)
    assert vars(found) == {name: tuple(value) if type(value) is list else value, "new": 1}
    (found,) = decoded(Wire(learnt(type_name(Thing), f"{type_name(Thing)}.{name} hidden")).tests, message, 1)
    assert name in vars(found)


def test_an_attribute_that_repeats_the_classs_hides_nothing() -> None:
    message = {
        "roots": [["#", -5]],
        "heap": {"-5": [*OBJECT, {"unit": "mm", "limit": None, "new": 1}, "", None]},
    }
    (found,) = decoded(Wire(KNOWN).tests, message, 1)
    assert vars(found) == {"unit": "mm", "limit": None, "new": 1}


def test_an_unknown_class_arrives_as_the_type_that_it_extends() -> None:
    class Odd(int):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    (found,) = Wire(KNOWN).answer(Odd(3))
    assert type(found) is int
    assert found == 3


@pytest.mark.parametrize(
    "method", [random.choice, random.random, random.seed], ids=lambda method: method.__name__
)
def test_a_method_that_a_module_offers_goes_by_its_name(method: object) -> None:
    """Its object belongs to the module, and can't be rebuilt from its parts on the other side."""
    (found,) = Wire(KNOWN).ask(method)
    assert found == method
    assert name_of(random.Random().choice) == ""


def test_a_side_decides_what_stays() -> None:
    side = ProcessSide(1, HERE)
    with pytest.raises(NotImplementedError):
        Encoder(Shared(side)).message([lambda: 1])
    with pytest.raises(NotImplementedError):
        Decoder(Shared(side), {"roots": [["#", -5]], "heap": {"-5": ["function", "f", None]}}).values()
