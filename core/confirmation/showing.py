"""Strings that show a call and its answer, from the plain data exchanged between processes (decision 113)."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_LONGEST = 300
_DEPTH = 6

Message = Mapping[str, Any]


class ValueRenderer:
    """Converts values in messages to text; later messages update objects of earlier ones."""

    def __init__(self) -> None:
        self.heap: dict[str, list[Any]] = {}

    def take(self, message: Message) -> None:
        """Record the objects in a message."""
        self.heap.update(message.get("heap", {}))

    def text(self, value: Any, depth: int = 0) -> str:
        """Return a value in Python's notation, as far as it is plain data."""
        if type(value) is not list:
            return repr(value)
        if depth > _DEPTH:
            return "..."
        show = _VALUES.get(value[0])
        return show(self, value, depth + 1) if show else f"<{value[0]}>"

    def parts(self, values: Sequence[Any], depth: int) -> str:
        """Return values as one string, separated by commas."""
        return ", ".join(self.text(part, depth) for part in values)

    def pairs(self, values: Sequence[Sequence[Any]], depth: int) -> str:
        """Return the text of a dictionary's pairs, separated by commas."""
        return ", ".join(f"{self.text(key, depth)}: {self.text(part, depth)}" for key, part in values)

    def node(self, value: list[Any], depth: int) -> str:
        """Return the text of the object that a number refers to; `<given>` if the object was not recorded."""
        node = self.heap.get(str(value[1]))
        if node is None:
            return "<given>"
        show = _NODES.get(node[0])
        return show(self, node, depth) if show else f"<{node[0]}>"


def _inside(renderer: ValueRenderer, base: str, contents: Any, depth: int) -> str:
    """Return the text of what an object contains as an instance of `base`, the built-in type it extends."""
    if base == "dict":
        return f"{{{renderer.pairs(contents, depth)}}}"
    if base in ("list", "set", "deque"):
        return renderer.parts(contents, depth)
    return renderer.text(contents, depth) if base != "bytearray" else "..."


def _bare(name: str) -> str:
    """Return `qualname` of `module:qualname`."""
    return name.rpartition(":")[2]


def _items(left: str, right: str) -> Callable[[ValueRenderer, list[Any], int], str]:
    def show(renderer: ValueRenderer, value: list[Any], depth: int) -> str:
        comma = "," if left == "(" and len(value[1]) == 1 else ""
        return f"{left}{renderer.parts(value[1], depth)}{comma}{right}"

    return show


def _pairs(left: str, right: str) -> Callable[[ValueRenderer, list[Any], int], str]:
    return lambda renderer, node, depth: f"{left}{{{renderer.pairs(node[1], depth)}}}{right}"


def _set(renderer: ValueRenderer, node: list[Any], depth: int) -> str:
    return f"{{{renderer.parts(node[1], depth)}}}" if node[1] else "set()"


def _object(renderer: ValueRenderer, node: list[Any], depth: int) -> str:
    _, kind, attributes, base, *contents = node
    held = [f"{name}={renderer.text(part, depth)}" for name, part in attributes.items()]
    inside = [_inside(renderer, base, contents[0], depth)] if base else []
    return f"{_bare(kind)}({', '.join([*inside, *held])})"


def _namespace(renderer: ValueRenderer, node: list[Any], depth: int) -> str:
    held = (f"{name}={renderer.text(part, depth)}" for name, part in node[1])
    return f"SimpleNamespace({', '.join(held)})"


_NODES: dict[str, Callable[[ValueRenderer, list[Any], int], str]] = {
    "list": lambda renderer, node, depth: f"[{renderer.parts(node[1], depth)}]",
    "dict": _pairs("", ""),
    "default": _pairs("defaultdict(", ")"),
    "counter": _pairs("Counter(", ")"),
    "ordered": _pairs("OrderedDict(", ")"),
    "set": _set,
    "deque": lambda renderer, node, depth: f"deque([{renderer.parts(node[1], depth)}])",
    "bytearray": lambda renderer, node, depth: f"bytearray({base64.b64decode(node[1])!r})",
    "text file": lambda renderer, node, depth: f"StringIO({node[1]!r}) at {node[2]}",
    "byte file": lambda renderer, node, depth: f"BytesIO({base64.b64decode(node[1])!r}) at {node[2]}",
    "namespace": _namespace,
    "object": _object,
    "exception": lambda renderer, node, depth: f"{_bare(node[1])}{renderer.text(node[2], depth)}",
}
_VALUES: dict[str, Callable[[ValueRenderer, list[Any], int], str]] = {
    "#": ValueRenderer.node,
    "i": lambda renderer, value, depth: value[1],
    "f": lambda renderer, value, depth: value[1] if "nan" in value[1] else repr(float.fromhex(value[1])),
    "b": lambda renderer, value, depth: repr(base64.b64decode(value[1])),
    "u": lambda renderer, value, depth: repr(base64.b64decode(value[1]).decode("utf-32-le", "surrogatepass")),
    "t": _items("(", ")"),
    "z": _items("frozenset({", "})"),
    "r": lambda renderer, value, depth: f"range({', '.join(value[1:])})",
    "s": lambda renderer, value, depth: f"slice({renderer.parts(value[1:], depth)})",
    "k": lambda renderer, value, depth: str(value[1]),
    "n": lambda renderer, value, depth: _bare(value[1]) or value[1].rstrip(":"),
    "e": lambda renderer, value, depth: f"{_bare(value[1])}({renderer.text(value[2], depth)})",
    "m": lambda renderer, value, depth: f"{renderer.text(value[1], depth)}.{value[2]}",
    "x": lambda renderer, value, depth: f"{value[1].rpartition('.')[2]}{renderer.text(value[2], depth)}",
    "mp": lambda renderer, value, depth: f"mappingproxy({renderer.text(value[1], depth)})",
    "v": lambda renderer, value, depth: f"dict_{value[1]}({renderer.text(value[2], depth)})",
    "re": lambda renderer, value, depth: f"re.compile({renderer.text(value[1], depth)})",
}
"""How to show a value, by its tag, as `sandbox/payload/plain_data.py` assigns it.

`#` refers to a node of the heap, `k` is a constant, `n` something known by its name, `e` a member of an
enumeration, `m` a bound method, and `x` an object that is rebuilt from arguments, such as a date. The others
are built-in types: integers beyond 64 bits, floats, bytes, tuples, frozen sets, ranges, slices and patterns.
"""


def bounded(text: str) -> str:
    """Return text; if it has more than 300 characters, its end is replaced by `...`."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def call_text(qualname: str, request: Message, renderer: ValueRenderer) -> str:
    """Return a call in Python's notation, with its arguments by position, cut to 300 characters."""
    renderer.take(request)
    return bounded(f"{qualname}({renderer.parts(request['roots'], 1)})")


def answer_text(reply: Message, renderer: ValueRenderer) -> str:
    """Return a description of an answer in at most 300 characters.

    It is the value, the exception raised, `ends` if the iterator is exhausted, or why there was no answer.
    """
    if reply.get("re") not in ("value", "raised", "stop"):
        return bounded(str(reply.get("words") or reply.get("re")))
    renderer.take(reply)
    text = _shown(lambda: renderer.text(reply["roots"][0]))
    return bounded({"raised": f"raises {text}", "stop": "ends"}.get(reply["re"], text))


def effects_text(request: Message, reply: Message, renderer: ValueRenderer) -> str:
    """Return the effects of a call besides its value: its arguments, output, warnings and logs.

    The text is cut to 300 characters.
    """
    arguments = _shown(lambda: renderer.parts(request["roots"], 1))
    texts = [f"its arguments are then ({arguments})"]
    texts += [f"{word} {reply[name]!r}" for name, word in EFFECTS.items() if reply.get(name)]
    return bounded("; ".join(texts))


def texts_apart(first: Message, second: Message, texts: Sequence[str]) -> list[str]:
    """Return two answers as texts.

    If the two `texts` are equal, an excerpt of the answer's data, around the first difference, follows each.
    """
    if texts[0] != texts[1]:
        return list(texts)
    keys = answer_key(first), answer_key(second)
    shorter = min(map(len, keys))
    differing = (at for at, (one, other) in enumerate(zip(*keys, strict=False)) if one != other)
    start = max(0, next(differing, shorter) - _BEFORE)
    shown = texts[0][: _LONGEST // 2]
    return [bounded(f"{shown}; as data ...{key[start : start + _LONGEST // 3]}") for key in keys]


_BEFORE = 30
"""The number of characters that are shown in front of a difference."""
EFFECTS = {"out": "it prints", "err": "it prints to stderr", "warnings": "it warns", "logs": "it logs"}
"""The effects sent with an answer (`sandbox/payload/submission_server.py`), in words."""


def _shown(show: Callable[[], str]) -> str:
    try:
        return show()
    except (LookupError, TypeError, ValueError, AttributeError):
        return "<no data>"  # a submission can write anything in place of an answer


def same_answer(first: Message, second: Message) -> bool:
    """Return whether two answers to one request hold the same data."""
    return answer_key(first) == answer_key(second)


def same_effects(first: Message, second: Message) -> bool:
    """Return whether two answers have the same output, warnings and logs."""
    return all(first.get(name) == second.get(name) for name in EFFECTS)


_KEPT = re.compile(r'(?<=\["[#a]", )-\d{10,}(?=[],])|(?<=")-\d{10,}(?=": )')
"""The numbers of objects kept by the submission, in a JSON message; each process counts its own."""


def kept_numbers(reply: Message) -> list[str]:
    """Return the numbers of the objects in an answer that the submission keeps, each once.

    They are ordered by their first place in the answer's JSON text with sorted keys.
    """
    text = json.dumps({name: reply.get(name) for name in ("roots", "heap")}, sort_keys=True)
    return list(dict.fromkeys(_KEPT.findall(text)))


def with_kept_numbers(message: Message, numbers: Mapping[str, str]) -> Message | None:
    """Return a message with the objects that the submission keeps renumbered; None if a number is missing."""
    given = str(message.get("of", ""))
    text = json.dumps(message)
    known = {*_KEPT.findall(text), *([given] if given.startswith("-") else [])}
    if not known:
        return message
    if not known <= numbers.keys():
        return None
    found: dict[str, Any] = json.loads(_KEPT.sub(lambda number: numbers[number[0]], text))
    return {**found, "of": int(numbers[given])} if given.startswith("-") else found


def answer_key(reply: Message) -> str:
    """Return a string that is equal for answers with the same data, whatever numbers kept objects have."""
    kept = {name: reply.get(name) for name in ("re", "roots", "heap", "do", "of")}
    numbers: dict[str, str] = {}
    text = json.dumps(kept, sort_keys=True)
    return _KEPT.sub(lambda found: numbers.setdefault(found[0], f"-{len(numbers)}"), text)


_STAYING = re.compile(r'(?<=\["[#a]", )-?\d{10,}(?=[],])|(?<=")-?\d{10,}(?=": )|(?<="of": )-?\d{10,}')
"""The numbers of objects that stay in their process, in the JSON text of a message."""


def numbered_by_place(text: str) -> str:
    """Return the JSON text of messages, in which objects that stay are numbered by first occurrence."""
    numbers: dict[str, str] = {}
    return _STAYING.sub(lambda found: numbers.setdefault(found[0], str(len(numbers))), text)


def same_without_order(first: Message, second: Message) -> bool:
    """Return whether two answers hold the same data, ignoring the order within dictionaries."""
    return unordered_key(first) == unordered_key(second)


def unordered_key(reply: Message) -> str:
    """Return a string that is equal for answers with the same data, ignoring the order of dictionaries."""
    heap = {
        number: [node[0], sorted(node[1], key=json.dumps)] if node[0] == "dict" else node
        for number, node in reply.get("heap", {}).items()
    }
    return answer_key({**reply, "heap": heap})
