"""Supplies names of the standard library that the bundle's modules use and an older Python does not have.

A missing class of syntax trees gets an empty substitute, because an older Python never makes such a node.
"""

from __future__ import annotations

import ast
import enum
import typing

_NODES = (
    *("TryStar", "Match", "match_case", "pattern", "MatchValue", "MatchSingleton", "MatchSequence"),
    *("MatchMapping", "MatchClass", "MatchStar", "MatchAs", "MatchOr"),
)
_TYPING = ("TypeAlias", "Self", "Never", "LiteralString", "NotRequired", "Required")


class _StrEnum(str, enum.Enum):  # noqa: UP042 - this is the substitute for `StrEnum`
    """A substitute for `enum.StrEnum`, which Python has had since 3.11."""

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, spec: str) -> str:
        return format(str(self.value), spec)


def supply() -> None:
    """Add the names that are missing in this Python; from Python 3.11 on, none are."""
    if not hasattr(enum, "StrEnum"):
        setattr(enum, "StrEnum", _StrEnum)  # noqa: B010 - missing in the module
    for name in _NODES:
        if not hasattr(ast, name):
            setattr(ast, name, type(name, (ast.AST,), {"_fields": ()}))
    for name in _TYPING:
        if not hasattr(typing, name):
            setattr(typing, name, typing.Any)


supply()
