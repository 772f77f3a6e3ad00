"""Queries that a user keeps under names, in `queries.toml` in the config folder: `name = "query"`.

A line that can't be used affects only its own query, and stays in the file until the user corrects it or
forgets the query. Comments, and the order of the lines, stay as the user wrote them.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from gistpoint.core.errors import SettingsError, UserError, did_you_mean
from gistpoint.core.locations import read_regular_text
from gistpoint.core.logs import NoLocksError, replace_file, wait_for
from gistpoint.core.query_grammar import KEPT_NAME, LONGEST, KeptQueries

FILE = "queries.toml"
_MOST = 500
_NAMED_LINE = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([^\s=]+))\s*=""")


_LONG_QUOTES = ('"""', "'''")


class _Entry(NamedTuple):
    """A line of the file, or the lines of one query in long quotes."""

    text: str
    """The line as it is in the file."""
    name: str = ""
    """The name of its query; `line 3` if it can't be used and has none; empty for a line without a query."""
    query: str = ""
    fault: str = ""
    """Why it can't be used, as a sentence; empty if it can."""

    @property
    def comment(self) -> str:
        """The comment at the end of a query's line, with the blanks before it; empty if there is none."""
        for sign in re.finditer(r"\s*#", self.text):
            with suppress(ValueError, RecursionError):
                if tomllib.loads(self.text[: sign.start()]) == {self.name: self.query}:
                    return self.text[sign.start() :]
        return ""


def kept_queries(config: Path) -> KeptQueries:
    """Return the kept queries, with a reason for each that can't be used; empty if there is no file."""
    try:
        entries = _read(config / FILE)
    except SettingsError as error:
        return KeptQueries(unreadable=error.message)
    return KeptQueries(_texts(entries), {entry.name: entry.fault for entry in entries if entry.fault})


def keep_query(config: Path, name: str, query: str, read: Callable[[str, KeptQueries], object]) -> None:
    """Keep a query under a name, replacing any earlier query of that name.

    `read` reads a query in the language of the list that it is for, with the kept queries, and raises
    `QueryError` if it can't be understood.

    Raises `UserError` for a name that can't be written as `@NAME`, for a query that is too long, and if there
    are too many queries; `QueryError` if the query can't be understood or would refer to itself, directly or
    through others; and `SettingsError` if the file can't be read or written.
    """
    if not KEPT_NAME.fullmatch(name):
        raise UserError(
            f"{name!r} can't be the name of a query.",
            hint="A name is a letter, then letters, digits, hyphens or underscores.",
        )
    with _changing(config):
        entries = _read(config / FILE)
        known = _texts(entries)
        if len(query) > LONGEST or (name not in known and len(known) >= _MOST):
            raise UserError(
                f"The query can't be kept: at most {_MOST} queries of {LONGEST:,} characters are.",
                hint="Remove one with --forget-query.",
            )
        read(f"@{name}", KeptQueries({**known, name: query}))
        _write(config, _replaced(entries, name, query))


def forget_query(config: Path, name: str) -> None:
    """Remove a kept query. Raises `UserError` if there is none, and `SettingsError` as `keep_query` does."""
    with _changing(config):
        entries = _read(config / FILE)
        names = {entry.name for entry in entries} - {""}
        if name not in names:
            hint = did_you_mean(name, [*names]).strip() or "`gistpoint runs --queries` lists them."
            raise UserError(f"No query is kept as {name!r}.", hint=hint)
        _write(config, [entry for entry in entries if entry.name != name])


@contextmanager
def _changing(config: Path) -> Iterator[None]:
    """Keep other programs from changing the file between reading and writing it."""
    with ExitStack() as held:
        # Without locks, other programs may change the file; a missing folder is reported when the file is
        # read or written.
        with suppress(NoLocksError, OSError):
            config.mkdir(parents=True, exist_ok=True)
            held.enter_context(wait_for(os.open(config, os.O_RDONLY)))
        yield


def _read(path: Path) -> list[_Entry]:
    """Return the entries of the file in their order; empty if there is none. Raises `SettingsError`."""
    try:
        whole = read_regular_text(path)
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} can't be read: {error}.", hint="Correct it, or move it away.") from error
    lines = whole.removesuffix("\n").split("\n") if whole else []
    entries: list[_Entry] = []
    seen: set[str] = set()
    at = 0
    while at < len(lines):
        text = "\n".join(lines[at : at + _length(lines, at)])
        entries += _entries(text, at + 1, seen)
        at += 1 + text.count("\n")
    return entries


def _length(lines: list[str], start: int) -> int:
    """Return the number of lines of the entry that begins here: 1, unless it has long quotes."""
    for quotes in _LONG_QUOTES:
        if lines[start].count(quotes) == 1 and _NAMED_LINE.match(lines[start]):
            ends = (at for at in range(start + 1, len(lines)) if quotes in lines[at])
            end = next(ends, start)
            with suppress(ValueError, RecursionError):
                tomllib.loads("\n".join(lines[start : end + 1]))
                return end + 1 - start
    return 1


def _entries(text: str, number: int, seen: set[str]) -> Iterator[_Entry]:
    """Yield what a line contains. The line's own name is added to `seen`, the names of earlier queries."""
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError):
        named = _NAMED_LINE.match(text)
        name = next(filter(None, named.groups()), "") if named else ""
        yield _Entry(
            text, name or f"line {number}", fault=_why(number, "is not a name with a query in quotes")
        )
        return
    if not values:
        yield _Entry(text)
    for name, query in values.items():
        fault = _fault(name, query) or ("is a second query of this name" if name in seen else "")
        if fault:
            yield _Entry(text, name, fault=_why(number, fault))
        else:
            seen.add(name)
            yield _Entry(text, name, query)


def _texts(entries: list[_Entry]) -> dict[str, str]:
    """Return the usable queries by name, sorted by name."""
    return dict(sorted((entry.name, entry.query) for entry in entries if entry.name and not entry.fault))


def _fault(name: str, query: object) -> str:
    """Return the fault in an entry of the file; empty if it has none."""
    if not KEPT_NAME.fullmatch(name):
        return f"has {name!r}, which is not the name of a query"
    return "" if isinstance(query, str) else "is not a name with a query in quotes"


def _why(number: int, fault: str) -> str:
    return f'Line {number} of {FILE} {fault}, such as slow = "time>1:00".'


def _replaced(entries: list[_Entry], name: str, query: str) -> list[_Entry]:
    """Return the entries with a query in place of earlier ones with its name, or else at the end."""
    # A JSON string is also a TOML string, apart from DEL and half a surrogate pair, which no query has.
    text = f"{name} = {json.dumps(query, ensure_ascii=False)}".replace("\x7f", "\\u007f")
    place = next((at for at, entry in enumerate(entries) if entry.name == name), len(entries))
    comment = entries[place].comment if place < len(entries) else ""
    new = _Entry(text + comment, name, query)
    rest = [entry for entry in entries[place:] if entry.name != name]
    return [*entries[:place], new, *rest]


def _write(config: Path, entries: list[_Entry]) -> None:
    path = config / FILE
    text = "".join(f"{entry.text}\n" for entry in entries)
    try:
        config.mkdir(parents=True, exist_ok=True)
        replace_file(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise SettingsError(
            f"{path} can't be written: {error.strerror}.", hint="Check the folder."
        ) from error
