"""Queries that a user keeps under names, in `queries.toml` in the config folder: `name = "query"`.

A line that can't be used affects only its own query, and stays in the file until the user corrects it or
forgets the query.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from gistpoint.core.errors import SettingsError, UserError, did_you_mean
from gistpoint.core.locations import read_regular_text, read_toml
from gistpoint.core.logs import NoLocksError, replace_file, wait_for
from gistpoint.core.query_grammar import KEPT_NAME, LONGEST, KeptQueries

FILE = "queries.toml"
_MOST = 500
_NAMED_LINE = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([^\s=]+))\s*=""")


class _Line(NamedTuple):
    """A line of the file that can't be used."""

    name: str
    """The name of its query; `line 3` if it has none."""
    text: str
    fault: str


def kept_queries(config: Path) -> KeptQueries:
    """Return the kept queries, with the reason for each one that can't be used; empty if there is no file."""
    try:
        texts, lines = _read(config / FILE)
    except SettingsError as error:
        return KeptQueries(unreadable=error.message)
    return KeptQueries(texts, {line.name: line.fault for line in lines})


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
        known, lines = _read(config / FILE)
        if len(query) > LONGEST or (name not in known and len(known) >= _MOST):
            raise UserError(
                f"The query can't be kept: at most {_MOST} queries of {LONGEST:,} characters are.",
                hint="Remove one with --forget-query.",
            )
        read(f"@{name}", KeptQueries({**known, name: query}))
        _write(config, {**known, name: query}, [line for line in lines if line.name != name])


def forget_query(config: Path, name: str) -> None:
    """Remove a kept query. Raises `UserError` if there is none, and `SettingsError` as `keep_query` does."""
    with _changing(config):
        known, lines = _read(config / FILE)
        broken = {line.name for line in lines}
        if name not in known and name not in broken:
            hint = did_you_mean(name, [*known, *broken]).strip() or "`gistpoint runs --queries` lists them."
            raise UserError(f"No query is kept as {name!r}.", hint=hint)
        left = {kept: query for kept, query in known.items() if kept != name}
        _write(config, left, [line for line in lines if line.name != name])


@contextmanager
def _changing(config: Path) -> Iterator[None]:
    """Keep other programs from changing the file between reading and writing it."""
    with ExitStack() as held:
        # Without locks or a folder, reading or writing the file says what is wrong.
        with suppress(NoLocksError, OSError):
            config.mkdir(parents=True, exist_ok=True)
            held.enter_context(wait_for(os.open(config, os.O_RDONLY)))
        yield


def _read(path: Path) -> tuple[dict[str, str], list[_Line]]:
    """Return the queries by name, and the lines that can't be used. Raises `SettingsError`."""
    try:
        values = read_toml(path)
        if all(_fault(name, query) == "" for name, query in values.items()):
            return values, []
    except FileNotFoundError:
        return {}, []
    except (OSError, ValueError):
        pass  # a single line may be at fault, so each is read separately below
    try:
        lines = read_regular_text(path).split("\n")
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} can't be read: {error}.", hint="Correct it, or move it away.") from error
    texts: dict[str, str] = {}
    broken = list(_lines(lines, texts))
    return texts, broken


def _lines(lines: list[str], texts: dict[str, str]) -> Iterator[_Line]:
    """Add the queries of lines to `texts`, and yield the lines that can't be used."""
    for number, line in enumerate(lines, 1):
        try:
            values = tomllib.loads(line)
        except (ValueError, RecursionError):
            named = _NAMED_LINE.match(line)
            name = next(filter(None, named.groups()), "") if named else ""
            yield _Line(name or f"line {number}", line, _why(number, "is not a name with a query in quotes"))
            continue
        for name, query in values.items():
            if fault := _fault(name, query) or ("is a second query of this name" if name in texts else ""):
                yield _Line(name, line, _why(number, fault))
            else:
                texts[name] = query


def _fault(name: str, query: object) -> str:
    """Return what is wrong with an entry of the file; empty if nothing is."""
    if not KEPT_NAME.fullmatch(name):
        return f"has {name!r}, which is not the name of a query"
    return "" if isinstance(query, str) else "is not a name with a query in quotes"


def _why(number: int, fault: str) -> str:
    return f'Line {number} of {FILE} {fault}, such as slow = "time>1:00".'


def _write(config: Path, queries: Mapping[str, str], broken: list[_Line]) -> None:
    path = config / FILE
    # A JSON string is also a TOML string, apart from DEL and half a surrogate pair, which no query has.
    lines = [f"{name} = {json.dumps(query, ensure_ascii=False)}\n" for name, query in sorted(queries.items())]
    text = "".join(lines).replace("\x7f", "\\u007f") + "".join(f"{line.text}\n" for line in broken)
    try:
        config.mkdir(parents=True, exist_ok=True)
        replace_file(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise SettingsError(
            f"{path} can't be written: {error.strerror}.", hint="Check the folder."
        ) from error
