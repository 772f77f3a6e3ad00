"""Damages files of recorded runs, as accidents or attackers would, and reads the remains."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

from gistpoint.core.errors import UserError
from gistpoint.sessions.annotations.keys import run_key
from gistpoint.sessions.exports.atif import atif_text
from gistpoint.sessions.runs.opening import list_runs, open_run
from gistpoint.sessions.runs.rendering import header_lines, step_lines, summary
from gistpoint.sessions.runs.searching import Query, search_document

_LITERAL = re.compile(rb'(?<=[:,\[])\s*("(?:[^"\\]|\\.){0,200}"|-?\d+(?:\.\d+)?|true|false|null)')
_MARK = "a value nested deep"
_OTHERS: tuple[object, ...] = (
    None, True, -1,
    10**40, 1e308, float("nan"), "", "text", [], {}, [[]], {"a": {"b": []}}, ["x", None, 3], "\ud800", "\x00\x1b[31m",
)  # fmt: skip


def cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))]


def flip(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 4, 32))):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def swap_types(data: bytes, chance: random.Random) -> bytes:
    found = list(_LITERAL.finditer(data))
    for match in sorted(
        chance.sample(found, min(len(found), chance.choice((1, 3, 20)))), key=lambda m: -m.start()
    ):
        other = json.dumps(chance.choice(_OTHERS)).encode()
        data = data[: match.start(1)] + other + data[match.end(1) :]
    return data


def swap_containers(data: bytes, chance: random.Random) -> bytes:
    pairs = {b"{": b"[", b"}": b"]", b"[": b"{", b"]": b"}"}
    found = list(re.finditer(rb"[{}\[\]]", data))
    for match in chance.sample(found, min(len(found), 2)):
        data = data[: match.start()] + pairs[match[0]] + data[match.end() :]
    return data


def nest(data: bytes, chance: random.Random) -> bytes:
    found = list(_LITERAL.finditer(data))
    if not found:
        return data
    match = chance.choice(found)
    depth = chance.choice((50, 500, 5_000, 200_000))
    deep = b"[" * depth + (b"]" * depth if chance.random() < 0.7 else b"")
    if chance.random() < 0.3:
        deep = b'{"a":' * depth + b"1" + b"}" * depth
    return data[: match.start(1)] + deep + data[match.end(1) :]


def lose(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    return data[:start] + data[start + chance.randrange(1, 4_000) :]


def repeat(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data))
    part = data[start : start + chance.randrange(1, 4_000)]
    return data[:start] + part * chance.choice((2, 40)) + data[start:]


def lengthen(data: bytes, chance: random.Random) -> bytes:
    found = list(_LITERAL.finditer(data))
    if not found:
        return data
    match = chance.choice(found)
    long = chance.choice((b"x", b"\\n", b'\\"', b"\\\\", "é".encode(), b"\\u00e9")) * chance.choice(
        (300_000, 1_200_000)
    )
    return data[: match.start(1)] + b'"' + long + b'"' + data[match.end(1) :]


def deepened(data: bytes) -> Iterator[bytes]:
    """Yield a JSON text with a deeply nested value, once for each member near its top; none if not JSON."""
    try:
        whole = json.loads(data.decode("utf-8", "replace"))
    except ValueError:
        return
    shapes = cycle(("[" * 900 + "]" * 900, '{"a":' * 900 + "1" + "}" * 900))
    for holder, key in list(_members(whole, 2)):
        kept, holder[key] = holder[key], _MARK
        yield json.dumps(whole).replace(f'"{_MARK}"', next(shapes)).encode()
        holder[key] = kept


def _members(value: Any, depth: int) -> Iterator[tuple[dict[str, Any], str]]:
    for key, item in value.items() if isinstance(value, dict) else ():
        yield value, key
        if depth > 1:
            yield from _members(item, depth - 1)


MUTATIONS = (cut, flip, swap_types, swap_types, swap_containers, nest, lose, repeat, lengthen)


def mutants(sources: list[bytes], count: int, seed: int = 6) -> Iterator[tuple[str, bytes]]:
    """Yield `count` damaged files, each with a description that allows recreating it."""
    chance = random.Random(seed)
    for number in range(count):
        source = chance.randrange(len(sources))
        mutation = chance.choice(MUTATIONS)
        data = mutation(sources[source], chance)
        if chance.random() < 0.2:
            again = chance.choice(MUTATIONS[:5])
            data = again(data, chance) if data else data
        yield f"mutant {number} of source {source} by {mutation.__name__}", data


def read_all(path: Path, steps: int = 60) -> float:
    """Read a file as every screen and command would; return the CPU seconds used.

    User errors are ignored, others are raised.
    """
    started = time.process_time()
    try:
        entries = [entry for _, entry in zip(range(4), list_runs([path]), strict=False)]
        for entry in entries[:2]:
            if entry.header is not None:
                read_run(entry.name, steps)
    except UserError:
        pass
    return time.process_time() - started


def read_run(name: str, steps: int) -> None:
    try:
        document = open_run(name)
    except UserError:
        return
    list(header_lines(document.header))
    document.build()
    for index in range(min(document.step_count, steps)):
        step = document.step(index)
        summary(step)
        "\n".join(step_lines(document, step)).encode("utf-8", "surrogatepass")
        document.raw(index, 10_000)
    list(header_lines(document.header))
    run_key(document)
    for _ in atif_text(document):
        pass
    for _ in zip(range(3), search_document(document, Query("step")), strict=False):
        pass
