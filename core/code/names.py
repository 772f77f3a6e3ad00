"""The name of a function: `path::qualname`."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from gistpoint.core.code.parsing import CodeError

LOCALS = "<locals>"
_NUMBER = re.compile(r"(?P<plain>[^#]+)#(?P<number>[1-9][0-9]{0,5})")


@dataclass(frozen=True, slots=True, order=True)
class FunctionRef:
    """A function, method or class: the file's path from the root of the tree and Python's own qualified name.

    Definitions repeated under one qualified name have `#2`, `#3` in source order; the first has no number.
    """

    path: str
    qualname: str

    def __str__(self) -> str:
        return f"{self.path}::{self.qualname}"

    @property
    def plain(self) -> str:
        """The qualified name without a number: equal to `__qualname__` when the program runs."""
        return self.qualname.partition("#")[0]

    @property
    def name(self) -> str:
        """The bare name: the last part of the qualified name."""
        return self.plain.rpartition(".")[2]

    @classmethod
    def parse(cls, text: str) -> FunctionRef:
        """Return the function named by `path::qualname`; `#1` means the same as no number.

        Raises `CodeError` for any other text, and for a path that leads out of the repository.
        """
        path, _, qualname = text.rpartition("::")
        hint = "Write it as path::qualname, such as src/pkg/mod.py::Class.method."
        if not (path and qualname):
            raise CodeError(f"{text!r} is not the name of a function.", hint=hint)
        if not _is_inside(path):
            raise CodeError(f"The path of {text!r} does not stay inside the repository.", hint=hint)
        plain, number = split_number(qualname)
        named = all(part.isidentifier() for part in plain.split(".") if part != LOCALS)
        if not named or plain.endswith(LOCALS):
            raise CodeError(f"{qualname!r} in {text!r} is not a qualified name.", hint=hint)
        return cls(path, numbered(plain, number or 1))


def _is_inside(path: str) -> bool:
    """Return whether a path, as written, stays inside the tree."""
    return not path.startswith("/") and "\0" not in path and ".." not in path.split("/")


def split_number(qualname: str) -> tuple[str, int | None]:
    """Return `C.value` and 2 for `C.value#2`; None instead of the number if the name has none."""
    match = _NUMBER.fullmatch(qualname)
    if match is None:
        return normalised(qualname), None
    return normalised(match["plain"]), int(match["number"])


def numbered(plain: str, number: int) -> str:
    """Return the qualified name of the `number`th definition of `plain` in its file, counted from 1."""
    return plain if number == 1 else f"{plain}#{number}"


def normalised(name: str) -> str:
    """Return `name` as Python's parser stores identifiers (NFKC)."""
    return name if name.isascii() else unicodedata.normalize("NFKC", name)
