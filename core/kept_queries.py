"""Queries that a user keeps under names, in `queries.toml` in the config folder: `name = "query"`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from gistpoint.core.errors import SettingsError, UserError, did_you_mean
from gistpoint.core.locations import read_toml
from gistpoint.core.logs import replace_file
from gistpoint.core.queries import KEPT_NAME, LONGEST

FILE = "queries.toml"
_MOST = 500


def kept_queries(config: Path) -> dict[str, str]:
    """Return the kept queries by name; empty if there is no file.

    Raises `SettingsError` if the file can't be read, or contains anything but names with queries.
    """
    path = config / FILE
    try:
        values = read_toml(path)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} can't be read: {error}.", hint="Correct it, or move it away.") from error
    for name, query in values.items():
        if not isinstance(query, str) or not KEPT_NAME.fullmatch(name):
            raise SettingsError(
                f"{path}: {name!r} is not the name of a query.", hint='Write: slow = "time>1:00".'
            )
    return values


def keep_query(config: Path, name: str, query: str) -> None:
    """Keep a query under a name, in place of an earlier one.

    Raises `UserError` for a name that can't be written as `@NAME`, and `SettingsError` if the file can't be
    read or written.
    """
    if not KEPT_NAME.fullmatch(name):
        raise UserError(
            f"{name!r} can't be the name of a query.",
            hint="A name is a letter, then letters, digits, hyphens or underscores.",
        )
    known = kept_queries(config)
    if len(query) > LONGEST or (name not in known and len(known) >= _MOST):
        raise UserError(
            f"The query can't be kept: at most {_MOST} queries of {LONGEST:,} characters are.",
            hint="Remove one with --forget-query.",
        )
    _write(config, {**known, name: query})


def forget_query(config: Path, name: str) -> None:
    """Remove a kept query. Raises `UserError` if there is none with the name, or as `keep_query` does."""
    known = kept_queries(config)
    if name not in known:
        hint = did_you_mean(name, known).strip() or "`gistpoint runs --queries` lists the kept queries."
        raise UserError(f"No query is kept as {name!r}.", hint=hint)
    _write(config, {kept: query for kept, query in known.items() if kept != name})


def _write(config: Path, queries: Mapping[str, str]) -> None:
    path = config / FILE
    # A JSON string is also a TOML string, apart from DEL and half a surrogate pair, which no query has.
    lines = [f"{name} = {json.dumps(query, ensure_ascii=False)}\n" for name, query in sorted(queries.items())]
    text = "".join(lines).replace("\x7f", "\\u007f")
    try:
        config.mkdir(parents=True, exist_ok=True)
        replace_file(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise SettingsError(
            f"{path} can't be written: {error.strerror}.", hint="Check the folder."
        ) from error
