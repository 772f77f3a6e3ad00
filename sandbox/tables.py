"""Reading TOML tables whose shape is not to be trusted."""

from __future__ import annotations

from collections.abc import Mapping

Table = Mapping[str, object]


def table(of: Table, key: str) -> Table:
    """Return the table under `key`, empty where there is none."""
    value = of.get(key)
    return value if isinstance(value, dict) else {}


def text_of(of: Table, key: str) -> str:
    """Return the text under `key`, empty where there is none."""
    value = of.get(key)
    return value if isinstance(value, str) else ""


def texts_of(of: Table, key: str) -> tuple[str, ...]:
    """Return the texts of the list under `key`."""
    value = of.get(key)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
