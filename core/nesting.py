"""Checks how deeply values from outside are nested, because most code that walks through a value recurses."""

from __future__ import annotations


def is_nested(value: object, depth: int) -> bool:
    """Return whether lists or tables are nested at least `depth` deep, counting the value itself.

    Does not recurse.
    """
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(depth):
        if not level:
            return False
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    return True
