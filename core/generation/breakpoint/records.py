"""Reads the relevant fields of records of the public Breakpoint data set, and checks records for damage."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn, TypeGuard

from gistpoint.core.canonical import sha256_of_json, sha256_of_text
from gistpoint.core.errors import UserError
from gistpoint.core.tasks.model import Mode

_COMMIT = re.compile(r"[0-9a-fA-F]{7,64}")
_METRICS = ("code_line_count", "cyclomatic", "halstead_volume", "halstead_difficulty")


class DamageError(UserError):
    """A record can't be used as it is."""


@dataclass(frozen=True, slots=True)
class BreakpointRecord:
    """One sound record."""

    line: int
    """The line in the file at which the record begins, counted from 1."""
    text: str = field(repr=False)
    """The verbatim text of the record."""
    url: str
    commit: str
    repository: str
    """The repository's name."""
    path: str
    function: str
    """The qualified name of the function: `f` or `Class.m`."""
    corruption: str = field(default="", repr=False)
    """The corrupted function, often indented and without decorators; empty if the body is removed."""
    metrics: Mapping[str, object] = field(default_factory=dict, repr=False)
    """The value of `complexity_info`, verbatim."""
    marks: tuple[str, ...] = ()
    """The record's peculiarities that are not damage."""

    @property
    def mode(self) -> Mode:
        """`remove` if there is no corruption, else `discovery`."""
        return Mode.DISCOVERY if self.corruption else Mode.REMOVE

    @property
    def place(self) -> str:
        """The normalised address of the repository, and the commit."""
        return f"{normal_url(self.url)}@{self.commit}"

    @property
    def id(self) -> str:
        """The hash of the fields that define the task; it is the same in every file with the record."""
        return sha256_of_json(
            [
                self.mode.value,
                normal_url(self.url),
                self.commit,
                self.path,
                self.function,
                sha256_of_text(self.corruption) if self.corruption else "",
            ]
        )


def normal_url(url: str) -> str:
    """Return a repository's address without scheme, final slashes and `.git`, with a lower-case host."""
    scheme, separator, rest = url.strip().partition("://")
    rest = rest if separator else scheme
    host, slash, path = rest.rstrip("/").removesuffix(".git").partition("/")
    return f"{host.lower()}{slash}{path}"


def record_from(value: object, line: int, text: str) -> BreakpointRecord:
    """Return the record in a JSON value; `line` and `text` are the record's line number and text in the file.

    Raises `DamageError`, which names the field, if a required field is missing or invalid.
    """
    top = _table(value, "the record")
    repo = _table(top.get("repo"), "repo")
    url, commit = _text(repo, "repo.url"), _text(repo, "repo.commit")
    if not _COMMIT.fullmatch(commit):
        raise DamageError(f"repo.commit is {commit[:60]!r}, which is not a commit.")
    path, function = _text(top, "fpath"), _text(top, "function_name")
    _check_path(path)
    if not all(part.isidentifier() for part in function.split(".")):
        raise DamageError(f"function_name is {function[:80]!r}, which is not the name of a function.")
    marks = _tests(top.get("test_info"))
    metrics = _metrics(top.get("complexity_info"))
    if any(metrics.get(name) is None for name in _METRICS):
        marks.append("metrics_missing")
    name = repo.get("name")
    return BreakpointRecord(
        line,
        text,
        url.strip(),
        commit.lower(),
        name if isinstance(name, str) and name else normal_url(url).rpartition("/")[2],
        path.removeprefix("./"),
        function,
        _corruption(top.get("corruption")),
        metrics,
        tuple(marks),
    )


def _corruption(value: object) -> str:
    if value is None:
        return ""
    table = _table(value, "corruption")
    code = _text(table, "corruption.code")
    if not code.strip():
        raise DamageError("corruption.code is empty.")
    score = table.get("score")
    if score is not None and not (_is_number(score) and 0 <= score < 1):
        raise DamageError("corruption.score must be at least 0 and below 1: this corruption broke nothing.")
    return code


def _tests(value: object) -> list[str]:
    table = _table(value, "test_info")
    for key in ("failed", "passed"):
        count = table.get(key)
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise DamageError(f"test_info.{key} is not a count.")
    for key in ("failures_info", "failed_tests"):
        if not isinstance(table.get(key, []), list):
            raise DamageError(f"test_info.{key} is not a list.")
    return ["execution_error_when_made"] if table.get("had_execution_error") is True else []


def _metrics(value: object) -> dict[str, object]:
    if value is None:
        return {}
    table = _table(value, "complexity_info")
    for name in _METRICS:
        number = table.get(name)
        if number is not None and not _is_number(number):
            raise DamageError(f"complexity_info.{name} is not a number.")
    return table


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _check_path(path: str) -> None:
    parts = path.split("/")
    if path.startswith(("/", "~")) or "\\" in path or ".." in parts or any(ord(item) < 32 for item in path):
        raise DamageError(f"fpath is {path[:80]!r}, which does not stay inside the repository.")
    if not path.endswith(".py"):
        raise DamageError(f"fpath is {path[:80]!r}, which is not a Python file.")


def _table(value: object, name: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise DamageError(f"{name} is missing." if value is None else f"{name} is not an object.")
    return value


def _text(table: Mapping[str, object], name: str) -> str:
    value = table.get(name.rpartition(".")[2])
    if not isinstance(value, str) or not value:
        raise DamageError(f"{name} is missing." if value in (None, "") else f"{name} is not a string.")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise DamageError(f"{name} contains bytes that are not text.")
    return value


_SPACE = re.compile(r"[ \t\r\n]*")
_PIECE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]"]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Damage:
    """A record that can't be used: its first line in the file, counted from 1, and the reason."""

    line: int
    reason: str


def read_records(data: bytes) -> Iterator[BreakpointRecord | Damage]:
    """Yield the records of a file in order, with a `Damage` for each unusable or duplicate record."""
    seen: dict[str, int] = {}
    for item in _items(data.decode("utf-8-sig", "surrogateescape")):
        if isinstance(item, BreakpointRecord):
            if item.id in seen:
                yield Damage(item.line, f"It repeats the record of line {seen[item.id]}.")
                continue
            seen[item.id] = item.line
        yield item


def _items(text: str) -> Iterator[BreakpointRecord | Damage]:
    start = _after_space(text, 0)
    if text.startswith("[", start) and not _is_lines(text[start:]):
        yield from _listed(text, start + 1)
        return
    for line, row in enumerate(text.split("\n"), start=1):
        if row.strip():
            yield _decoded(row.strip(), line)


def _is_lines(text: str) -> bool:
    """Return whether the first line alone is a JSON value, and more lines follow."""
    first, _, rest = text.partition("\n")
    if not rest.strip():
        return False
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return False
    return True


def _listed(text: str, at: int) -> Iterator[BreakpointRecord | Damage]:
    """Yield the elements of a list from an offset after its bracket.

    A damaged element ends at its closing bracket.
    """
    line, counted = 1, 0
    while True:
        at = _after_space(text, at)
        line, counted = line + text.count("\n", counted, at), at
        if at >= len(text):
            yield Damage(line, "The file ends in the middle of its list, so it is incomplete.")
            return
        if text[at] == "]":
            if text[at + 1 :].strip():
                yield Damage(line, "The text after the end of the list was not read.")
            return
        end = _end_of(text, at)
        if end is None:
            yield Damage(
                line,
                "The record does not end: a bracket or a quotation mark is missing, or the file is"
                " incomplete.",
            )
            return
        yield _decoded(text[at:end], line)
        at = _after_space(text, end)
        if text.startswith(",", at):
            at += 1
        elif at < len(text) and text[at] != "]":
            yield Damage(line + text.count("\n", counted, at), "There is no comma after the record.")
            if text[at] not in '{["':
                return


def _end_of(text: str, start: int) -> int | None:
    """Return the offset after the value that begins at `start`, found by its brackets; None if unclosed."""
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


def _decoded(text: str, line: int) -> BreakpointRecord | Damage:
    try:
        value = json.loads(text, object_pairs_hook=_unrepeated, parse_constant=_no_constant)
        return record_from(value, line, text)
    except json.JSONDecodeError as error:
        return Damage(line + error.lineno - 1, f"It is not JSON: {error.msg}.")
    except DamageError as error:
        return Damage(line, error.message)
    except (ValueError, RecursionError) as error:
        return Damage(line, f"It can't be read: {str(error)[:200]}.")


def _unrepeated(pairs: list[tuple[str, object]]) -> dict[str, object]:
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DamageError(f"The key {twice[:80]!r} occurs twice.")
    return table


def _no_constant(name: str) -> NoReturn:
    raise DamageError(f"{name} is not a JSON number.")


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
