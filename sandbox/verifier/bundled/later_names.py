"""Supplies, on an older Python, the names of the standard library that the bundle's modules use.

A class of syntax trees that an older Python does not have is never met there: an empty one stands for it.
"""

from __future__ import annotations

import ast
import enum
import typing

_NODES = (
    "TryStar", "Match", "match_case", "pattern", "MatchValue", "MatchSingleton", "MatchSequence", "MatchMapping",
    "MatchClass", "MatchStar", "MatchAs", "MatchOr",
)  # fmt: skip
_TYPING = ("TypeAlias", "Self", "Never", "LiteralString", "NotRequired", "Required")


class _StrEnum(str, enum.Enum):  # noqa: UP042 - this is what stands for it
    """`enum.StrEnum`, which Python has since 3.11."""

    def __str__(self) -> str:
        return str(self.value)

    def __format__(self, spec: str) -> str:
        return format(str(self.value), spec)


def supply() -> None:
    """Add what is missing; nothing on Python 3.11."""
    if not hasattr(enum, "StrEnum"):
        setattr(enum, "StrEnum", _StrEnum)  # noqa: B010 - the module lacks it
    for name in _NODES:
        if not hasattr(ast, name):
            setattr(ast, name, type(name, (ast.AST,), {"_fields": ()}))
    for name in _TYPING:
        if not hasattr(typing, name):
            setattr(typing, name, typing.Any)


supply()
