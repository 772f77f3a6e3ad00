"""Reads a file of records, a JSON list or a record a line, past whatever in it is damaged."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from gistpoint.core.generation.breakpoint.records import DamageError, Record, record_from

_SPACE = re.compile(r"[ \t\r\n]*")
_PIECE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]"]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Damage:
    """A record that can't be used: where it begins in the file, counted from 1, and why."""

    line: int
    reason: str


def read_records(data: bytes) -> Iterator[Record | Damage]:
    """Yield the records of a file in their order; one that repeats another is damage."""
    seen: dict[str, int] = {}
    for item in _items(data.decode("utf-8-sig", "surrogateescape")):
        if isinstance(item, Record):
            if item.id in seen:
                yield Damage(item.line, f"It repeats the record of line {seen[item.id]}.")
                continue
            seen[item.id] = item.line
        yield item


def _items(text: str) -> Iterator[Record | Damage]:
    start = _after_space(text, 0)
    if text.startswith("[", start) and not _is_lines(text[start:]):
        yield from _listed(text, start + 1)
        return
    for line, row in enumerate(text.split("\n"), start=1):
        if row.strip():
            yield _decoded(row.strip(), line)


def _is_lines(text: str) -> bool:
    """Whether the first line is a whole JSON value by itself, with more behind it."""
    first, _, rest = text.partition("\n")
    if not rest.strip():
        return False
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return False
    return True


def _listed(text: str, at: int) -> Iterator[Record | Damage]:
    """Yield the elements of a list that begins before `at`; one that is damaged ends where its brackets do."""
    line, counted = 1, 0
    while True:
        at = _after_space(text, at)
        line, counted = line + text.count("\n", counted, at), at
        if at >= len(text):
            yield Damage(line, "The file ends within its list: it was cut short.")
            return
        if text[at] == "]":
            if text[at + 1 :].strip():
                yield Damage(line, "Something follows the end of the list; it was not read.")
            return
        end = _end_of(text, at)
        if end is None:
            yield Damage(
                line, "The record does not end: a bracket or a quotation mark is missing, or it was cut short."
            )
            return
        yield _decoded(text[at:end], line)
        at = _after_space(text, end)
        if text.startswith(",", at):
            at += 1
        elif at < len(text) and text[at] != "]":
            yield Damage(line + text.count("\n", counted, at), "No comma stands behind the record.")
            if text[at] not in '{["':
                return


def _end_of(text: str, start: int) -> int | None:
    """Return where the value that begins at `start` ends, by its brackets; None where it does not."""
    if text[start] not in "{[":
        found = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[^,\]\s]+', re.DOTALL).match(text, start)
        return found.end() if found else None
    depth = 0
    for piece in _PIECE.finditer(text, start):
        mark = piece.group()
        if mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
            if depth == 0:
                return piece.end()
        elif mark == '"':
            return None
    return None


def _decoded(text: str, line: int) -> Record | Damage:
    try:
        value = json.loads(text, object_pairs_hook=_unrepeated, parse_constant=_no_constant)
        return record_from(value, line, text)
    except json.JSONDecodeError as error:
        return Damage(line + error.lineno - 1, f"It is no JSON: {error.msg}.")
    except DamageError as error:
        return Damage(line, error.message)
    except (ValueError, RecursionError) as error:
        return Damage(line, f"It can't be read: {str(error)[:200]}.")


def _unrepeated(pairs: list[tuple[str, object]]) -> dict[str, object]:
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DamageError(f"The key {twice[:80]!r} stands there twice.")
    return table


def _no_constant(name: str) -> NoReturn:
    raise DamageError(f"{name} is no number of JSON.")


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
