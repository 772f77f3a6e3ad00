"""Makes inputs that a suite does not try, by varying recorded arguments by type and simplifying them.

Values are encoded as `payload/call_replayer.py` describes, because nothing of a repository may be unpickled
here.
"""

from __future__ import annotations

import operator
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Encoded = list[Any]
"""An encoded value: its tag, and its content."""
_CONTAINERS = "ltezc"
_LONGEST = 12
_FAR = 10_000
"""The limit on integers that are far from recorded ones; larger ones would often cause endless loops."""
_BRACKETS = {"l": ("[", "]"), "t": ("(", ")"), "e": ("{", "}"), "z": ("frozenset({", "})")}
_EMPTY = {"e": "set()", "z": "frozenset()"}
"""How empty containers are written if their brackets alone would mean another type: `{}` is a dictionary."""
_LARGE = 1e15
_FINITE = 1e300
_LETTERS = 200
_FEW = 40
"""The largest number of recorded values of one parameter from which values are drawn."""


def varied(examples: Sequence[Sequence[Encoded]], most: int) -> list[list[Encoded]]:
    """Return at most `most` different lists of arguments like `examples`, which determine the result."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import strategies as st

    if not examples or not examples[0]:
        return []
    found: list[list[Encoded]] = []
    arguments = st.tuples(*(_strategy([example[n] for example in examples]) for n in range(len(examples[0]))))
    # Arguments often fit together, so half of the inputs are a recorded call with one argument changed.
    whole = st.sampled_from(list(examples[:_FEW]))
    place = st.integers(0, len(examples[0]) - 1)
    changed = st.builds(_with_one_changed, whole, place, arguments)
    inputs = st.one_of(changed, arguments.map(list))

    @settings(
        max_examples=2 * most,  # many are drawn twice
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.large_base_example,
        ],
    )
    @given(inputs)
    def collect(drawn: list[Encoded]) -> None:
        found.append(drawn)

    collect()
    unique = {repr(item): item for item in found}
    return list(unique.values())[:most]


def _with_one_changed(recorded: Sequence[Encoded], place: int, drawn: Sequence[Encoded]) -> list[Encoded]:
    """Return a recorded call's arguments, with the argument at `place` replaced by the drawn one."""
    return [*recorded[:place], drawn[place], *recorded[place + 1 :]]


def _strategy(values: Sequence[Encoded]) -> SearchStrategy[Encoded]:
    """Return a strategy for values like the recorded ones of one parameter, including them."""
    from hypothesis import strategies as st

    of_kind: dict[str, list[Encoded]] = {}
    for value in values:
        of_kind.setdefault(value[0], []).append(value)
    options: list[SearchStrategy[Encoded]] = [st.sampled_from(list(values[:_FEW]))]
    # Objects have no strategy: recorded objects replace each other, and are not changed (decision 80).
    made = (_STRATEGIES[kind](seen) for kind, seen in of_kind.items() if kind in _STRATEGIES)
    return st.one_of(options + [strategy for strategy in made if strategy is not None])


def _booleans(_: Sequence[Encoded]) -> SearchStrategy[Encoded]:
    from hypothesis import strategies as st

    return st.booleans().map(lambda value: ["b", value])


def _integers(seen: Sequence[Encoded]) -> SearchStrategy[Encoded]:
    from hypothesis import strategies as st

    numbers = [int(value[1]) for value in seen]
    low, high = min(numbers), max(numbers)
    reach = 5 + (high - low) // 2
    near, far = st.integers(low - reach, high + reach), st.integers(-_FAR, _FAR)
    # Faults at a boundary show at a distance of one from a recorded number.
    adjacent = st.builds(operator.add, st.sampled_from(numbers[:_FEW]), st.sampled_from((-1, 1)))
    return st.one_of(near, adjacent, far).map(lambda value: ["i", str(value)])


def _floats(seen: Sequence[Encoded]) -> SearchStrategy[Encoded]:
    from hypothesis import strategies as st

    numbers = [float(value[1]) for value in seen]
    # With infinities, NaN or the largest numbers, Hypothesis would refuse the limits.
    finite = [number for number in numbers if abs(number) < _FINITE]
    low, high = min(finite, default=-1.0), max(finite, default=1.0)
    reach = 5.0 + (high - low) / 2
    near = st.floats(low - reach, high + reach)
    far = st.floats(allow_nan=False, allow_infinity=False)
    return st.one_of(near, near, far).map(lambda value: ["f", repr(value)])


def _texts(seen: Sequence[Encoded]) -> SearchStrategy[Encoded]:
    from hypothesis import strategies as st

    letters = sorted(set("".join(value[1] for value in seen)) | set("a 0"))[:_LETTERS]
    longest = min(_LONGEST * 4, max(len(value[1]) for value in seen) + 3)
    known, others = st.text(st.sampled_from(letters), max_size=longest), st.text(max_size=longest)
    plain = st.text(st.sampled_from(string.printable), max_size=longest)
    recorded = st.sampled_from([value[1] for value in seen[:_FEW]])
    # Random texts rarely mean anything to the function, unlike recorded texts that are edited.
    edited = st.builds(
        lambda text, edit, place, letter: edit(text, place % (len(text) + 1), letter),
        recorded,
        st.sampled_from(_TEXT_EDITS),
        st.integers(0, _FAR),
        st.sampled_from(letters),
    )
    return st.one_of(edited, edited, known, plain, others).map(lambda value: ["s", value])


_TEXT_EDITS: Sequence[Callable[[str, int, str], str]] = (
    lambda text, place, letter: text[:place] + letter + text[place:],
    lambda text, place, letter: text[:place] + text[place + 1 :],
    lambda text, place, letter: text[:place] + letter + text[place + 1 :],
    lambda text, place, letter: text[:place],
    lambda text, place, letter: text[place:],
    lambda text, place, letter: f" {text}",
    lambda text, place, letter: f"{text} ",
    lambda text, place, letter: f"{text}\n",
    lambda text, place, letter: text.swapcase(),
    lambda text, place, letter: text + text,
    lambda text, place, letter: text[::-1],
)
"""Functions that make a small change to a text, at a place in it or with a letter of a recorded text."""


def _bytes(seen: Sequence[Encoded]) -> SearchStrategy[Encoded]:
    from hypothesis import strategies as st

    # Encoded as hexadecimal digits, two for each byte.
    longest = min(_LONGEST * 4, max(len(value[1]) // 2 for value in seen) + 3)
    return st.binary(max_size=longest).map(lambda value: ["y", value.hex()])


def _dictionaries(seen: Sequence[Encoded]) -> SearchStrategy[Encoded] | None:
    from hypothesis import strategies as st

    pairs = [pair for value in seen for pair in value[1]]
    if not pairs:
        return None
    keys, values = _strategy([key for key, _ in pairs]), _strategy([value for _, value in pairs])
    pair = st.tuples(keys, values).map(list)
    longest = min(_LONGEST, max(len(value[1]) for value in seen) + 2)
    unique = st.lists(pair, max_size=longest, unique_by=lambda made: repr(made[0]))
    return unique.map(lambda value: ["d", value])


def _containers(seen: Sequence[Encoded]) -> SearchStrategy[Encoded] | None:
    from hypothesis import strategies as st

    kind, lengths = seen[0][0], {len(value[1]) for value in seen}
    # A slice, or a tuple that always has the same length, has a separate type at each position.
    if kind in "tc" and len(lengths) == 1:
        places = [[value[1][n] for value in seen] for n in range(lengths.pop())]
        return st.tuples(*map(_strategy, places)).map(lambda value: [kind, list(value)])
    parts = [part for value in seen for part in value[1]]
    if not parts:
        return None
    longest = min(_LONGEST, max(lengths) + 3)
    made = st.lists(_strategy(parts), max_size=longest)
    edited = st.builds(
        lambda parts, edit, place, part: edit(list(parts), place % (len(parts) + 1), part),
        st.sampled_from([value[1] for value in seen[:_FEW]]),
        st.sampled_from(_LIST_EDITS),
        st.integers(0, _FAR),
        _strategy(parts),
    )
    return st.one_of(edited, made).map(lambda value: [kind, value])


_LIST_EDITS: Sequence[Callable[[list[Encoded], int, Encoded], list[Encoded]]] = (
    lambda parts, place, part: [*parts[:place], *parts[place + 1 :]],
    lambda parts, place, part: [*parts[:place], part, *parts[place:]],
    lambda parts, place, part: [*parts[:place], part, *parts[place + 1 :]],
    lambda parts, place, part: [*parts, *parts[:1]],
    lambda parts, place, part: parts[::-1],
)
"""Functions that make a small change to a container, at a place in it or with another part."""


_STRATEGIES: Mapping[str, Callable[[Sequence[Encoded]], SearchStrategy[Encoded] | None]] = {
    "b": _booleans,
    "i": _integers,
    "f": _floats,
    "s": _texts,
    "y": _bytes,
    "d": _dictionaries,
    **dict.fromkeys(_CONTAINERS, _containers),
}
"""By the tag of a value, a function that makes a strategy from recorded values, or returns None."""


def size(values: Sequence[Encoded]) -> tuple[int, int, str]:
    """Return the sort key of inputs: the number of parts, then the length of their text, then the text."""
    text = repr(values)
    return sum(_parts(value) for value in values), len(text), text


def _parts(value: Encoded) -> int:
    if value[0] in _CONTAINERS:
        return 1 + sum(map(_parts, value[1]))
    if value[0] == "d":
        return 1 + sum(_parts(key) + _parts(part) for key, part in value[1])
    return 1


def simpler(values: Sequence[Encoded], most: int) -> list[list[Encoded]]:
    """Return at most `most` inputs that are one step simpler than `values`, the smallest first."""
    found = [
        [*values[:n], changed, *values[n + 1 :]]
        for n, value in enumerate(values)
        for changed in _simpler(value)
    ]
    here = size(values)
    # Only smaller inputs, because steps that undo each other would make the search go in circles.
    unique = {repr(item): item for item in found if size(item) < here}
    return sorted(unique.values(), key=size)[:most]


def _simpler(value: Encoded) -> Iterator[Encoded]:
    kind = value[0]
    if kind in _CONTAINERS or kind == "d":
        yield from _simpler_container(kind, value[1])
    elif kind in _STEPS:
        yield from ([kind, step] for step in _STEPS[kind](value[1]))


def _integer_steps(content: str) -> Iterable[str]:
    number = int(content)
    towards_zero = number - 1 if number > 0 else number + 1
    return map(str, (0, 1, number // 2, abs(number), towards_zero))


def _float_steps(content: str) -> Iterable[str]:
    number = float(content)
    # Larger numbers are whole, and infinities and NaN have no whole part.
    if abs(number) < _LARGE:
        return map(repr, (0.0, 1.0, float(int(number)), float(int(number / 2))))
    return ()


def _text_steps(content: str) -> Iterable[str]:
    return ("", content[: len(content) // 2], content[1:], content[:-1], "a" * len(content))


def _bytes_steps(content: str) -> Iterable[str]:
    return ("", content[2:], content[:-2])


_STEPS: Mapping[str, Callable[[str], Iterable[str]]] = {
    "i": _integer_steps,
    "f": _float_steps,
    "s": _text_steps,
    "y": _bytes_steps,
}
"""By the tag of a value, a function that returns simpler contents."""


def _simpler_container(kind: str, parts: Sequence[Any]) -> Iterator[Encoded]:
    can_be_shorter = kind != "c"
    if parts and can_be_shorter:
        yield [kind, []]
        yield [kind, parts[: len(parts) // 2]]
    for n, part in enumerate(parts):
        if can_be_shorter:
            yield [kind, [*parts[:n], *parts[n + 1 :]]]
        for changed in _simpler_pair(part) if kind == "d" else _simpler(part):
            yield [kind, [*parts[:n], changed, *parts[n + 1 :]]]


def _simpler_pair(pair: Encoded) -> Iterator[Encoded]:
    # The key stays, because a simpler key could be equal to another key of the same dictionary.
    key, value = pair
    return ([key, less] for less in _simpler(value))


def written(value: Encoded) -> str:
    """Return an encoded value in Python's notation; an object is shown by the name of its class."""
    kind = value[0]
    match kind:
        case "n":
            return "None"
        case "b" | "s":
            return repr(value[1])
        case "i" | "f":
            return str(value[1])
        case "y":
            return repr(bytes.fromhex(value[1]))
        case "d":
            return "{" + ", ".join(f"{written(key)}: {written(part)}" for key, part in value[1]) + "}"
        case _ if kind in _CONTAINERS:
            return _written_container(kind, value[1])
    return f"<{value[3]} of call {value[1] + 1}>"


def _written_container(kind: str, parts: Sequence[Encoded]) -> str:
    if not parts and kind in _EMPTY:
        return _EMPTY[kind]
    inside = ", ".join(map(written, parts))
    if kind == "c":
        return f"slice({inside})"
    comma = "," if kind == "t" and len(parts) == 1 else ""
    left, right = _BRACKETS[kind]
    return f"{left}{inside}{comma}{right}"
