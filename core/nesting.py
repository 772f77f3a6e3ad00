"""Checks how deeply values from outside are nested, because most code that walks through a value recurses."""

from __future__ import annotations

_CONTAINERS = (dict, list)


def is_nested(value: object, depth: int) -> bool:
    """Return whether lists or tables are nested at least `depth` deep, counting the value itself.

    Does not recurse.
    """
    level = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(depth):
        if not level:
            return False
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if inner.__class__ is not str and isinstance(inner, _CONTAINERS)  # most values are strings
        ]
    return True
