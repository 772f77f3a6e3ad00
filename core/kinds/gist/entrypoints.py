"""The command of a gist task, read: a test, or a program with its arguments."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath

from gistpoint.core.errors import UserError

GIST_FILE = "test_gist.py"
"""The name under which a gist of a test lies in its folder."""
PROGRAM_FILE = "gist.py"
"""The name under which a gist of a program lies in its folder."""


class EntrypointError(UserError):
    """A command that can't be an entrypoint."""


class EntrypointKind(StrEnum):
    """What a command runs."""

    TEST = "test"
    MODULE = "module"
    """`python -m package`."""
    SCRIPT = "script"
    """`python path/of/file.py`."""


@dataclass(frozen=True, slots=True)
class Entrypoint:
    """A command, without the parameters of a test.

    `target` is the file of a test or a script, relative to the repository, or the dotted name of a module;
    `qualname` is `test` or `Class.test`, and empty for a program; `arguments` are those of a program.
    """

    kind: EntrypointKind
    target: str
    qualname: str = ""
    arguments: tuple[str, ...] = ()

    @property
    def is_test(self) -> bool:
        """Whether pytest runs it."""
        return self.kind is EntrypointKind.TEST

    @property
    def text(self) -> str:
        """The command line, as a brief gives it."""
        if self.is_test:
            return shlex.join(["pytest", self.node_id])
        switch = ["-m"] if self.kind is EntrypointKind.MODULE else []
        return shlex.join(["python", *switch, self.target, *self.arguments])

    @property
    def node_id(self) -> str:
        """The node id of a test, without its parameters."""
        return f"{self.target}::{self.qualname.replace('.', '::')}"

    @property
    def gist_file(self) -> str:
        """The name of the file that holds a gist of it."""
        return GIST_FILE if self.is_test else PROGRAM_FILE

    @property
    def gist_command(self) -> str:
        """The command line that runs the gist."""
        if self.is_test:
            return shlex.join(["pytest", f"{GIST_FILE}::{self.qualname.replace('.', '::')}"])
        return shlex.join(["python", PROGRAM_FILE, *self.arguments])


def parse_entrypoint(command: str) -> Entrypoint:
    """Read `pytest path::test`, `python -m pytest path::test`, `python -m package ...` or `python file.py ...`.

    Parameters of a test (`[...]`) are dropped: all its instances are one entrypoint. Raises `EntrypointError`.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise EntrypointError(f"The command {command!r} can't be split into words: {error}.") from error
    if words[:1] and PurePosixPath(words[0]).name in ("python", "python3"):
        if words[1:3] == ["-m", "pytest"]:
            return _test(command, words[3:])
        if words[1:2] == ["-m"] and len(words) > 2:
            return Entrypoint(EntrypointKind.MODULE, words[2], arguments=tuple(words[3:]))
        if len(words) > 1 and words[1].endswith(".py"):
            return Entrypoint(EntrypointKind.SCRIPT, _inside(command, words[1]), arguments=tuple(words[2:]))
    if words[:1] == ["pytest"]:
        return _test(command, words[1:])
    raise EntrypointError(
        f"{command!r} is no entrypoint.",
        hint="Give `pytest path/test_file.py::test_name`, `python -m package ARGUMENTS` or `python file.py ARGUMENTS`.",
    )


def _test(command: str, words: list[str]) -> Entrypoint:
    if len(words) != 1 or "::" not in words[0]:
        raise EntrypointError(
            f"{command!r} does not name one test.", hint="Give pytest one node id and nothing else: path::test."
        )
    path, _, rest = words[0].partition("[")[0].partition("::")
    qualname = rest.replace("::", ".")
    if not path.endswith(".py") or not all(part.isidentifier() for part in qualname.split(".")):
        raise EntrypointError(
            f"{words[0]!r} is no node id of a test.", hint="Write it as path/test_file.py::test_name."
        )
    return Entrypoint(EntrypointKind.TEST, _inside(command, path), qualname)


def _inside(command: str, path: str) -> str:
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts:
        raise EntrypointError(f"{command!r} names a file outside of the repository.", hint="Give a path within it.")
    return parts.as_posix()
