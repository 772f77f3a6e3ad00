"""A command in its written form: a test, several tests, or a program, with its input."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import PurePosixPath

from gistpoint.core.errors import UserError

GIST_FILE = "test_gist.py"
"""The name of the file with a gist of a test."""
PROGRAM_FILE = "gist.py"
"""The name of the file with a gist of a program."""
COMMAND_FILE = ".gistpoint_command.py"
"""The file from which runs of the original start a command that has no file."""
MAX_STDIN_CHARACTERS = 100_000
MAX_VARIABLES, MAX_VARIABLE_CHARACTERS = 50, 10_000
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OUR_VARIABLES = re.compile(
    r"PATH|HOME|TMPDIR|TMP|TEMP|LD_.*|DYLD_.*|PYTHON.*|PYTEST.*|GISTPOINT.*|COVERAGE.*|MALLOC_.*|GLIBC_.*|BASH_ENV|ENV"
)
"""Variables that decide what is run, or that the run itself needs: no command may set them."""
_SCRIPT_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


class EntrypointError(UserError):
    """A command can't be an entrypoint."""


class EntrypointKind(StrEnum):
    """The kind of thing that a command runs."""

    TEST = "test"
    """`pytest path::test`, or a class of tests."""
    TESTS = "tests"
    """pytest on files, folders or several tests, or on doctests."""
    MODULE = "module"
    """`python -m package`."""
    SCRIPT = "script"
    """`python path/of/file.py`."""
    CODE = "code"
    """`python -c CODE`."""
    CONSOLE = "console"
    """A console script that the codebase declares."""


@dataclass(frozen=True, slots=True)
class Entrypoint:
    """A command, without the parameters of a test.

    `target` is the file of a test or a script, relative to the repository; the first file or folder of
    several tests; the dotted name of a module; or `COMMAND_FILE`. `qualname` is `test`, `Class` or
    `Class.test` for a single test, and otherwise empty. `arguments` are the arguments of a program, or of
    pytest for several tests.
    """

    kind: EntrypointKind
    target: str
    qualname: str = ""
    arguments: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    """The code of a `CODE` command, or the name of a `CONSOLE` script."""
    stdin: str = ""
    """The program's standard input."""
    variables: tuple[tuple[str, str], ...] = ()
    """Variables of its environment in addition to those of every run, by name."""

    @property
    def is_test(self) -> bool:
        """Whether pytest runs the command."""
        return self.kind in (EntrypointKind.TEST, EntrypointKind.TESTS)

    @property
    def files(self) -> tuple[str, ...]:
        """The Python files of the repository that the command names, each once; folders are left out.

        Empty for a module, a console script and `python -c`.
        """
        if self.kind is EntrypointKind.TESTS:
            paths = (word.partition("::")[0] for word in self.selected)
            return tuple(dict.fromkeys(path for path in paths if path.endswith(".py")))
        return (self.target,) if self.kind in (EntrypointKind.TEST, EntrypointKind.SCRIPT) else ()

    @property
    def selected(self) -> tuple[str, ...]:
        """The files, folders and tests that pytest is to run, for a command with several tests."""
        before = ("", *self.arguments)
        return tuple(
            word
            for option, word in zip(before, self.arguments, strict=False)
            if not word.startswith("-") and option not in _VALUED
        )

    @property
    def doctests(self) -> bool:
        """Whether pytest is to run doctests."""
        return self.kind is EntrypointKind.TESTS and DOCTEST_MODULES in self.arguments

    @property
    def text(self) -> str:
        """The command line, without standard input and variables."""
        match self.kind:
            case EntrypointKind.TEST:
                words = ["pytest", self.node_id]
            case EntrypointKind.TESTS:
                words = ["pytest", *self.arguments]
            case EntrypointKind.CONSOLE:
                words = [*self.own, *self.arguments]
            case EntrypointKind.CODE:
                words = ["python", "-c", *self.own, *self.arguments]
            case EntrypointKind.MODULE:
                words = ["python", "-m", self.target, *self.arguments]
            case _:
                words = ["python", self.target, *self.arguments]
        return shlex.join(words)

    @property
    def called_as(self) -> str:
        """The program's `sys.argv[0]`; empty if it is the file from which the program is started."""
        return {EntrypointKind.CODE: "-c", EntrypointKind.CONSOLE: self.own[0] if self.own else ""}.get(
            self.kind, ""
        )

    @property
    def has_input(self) -> bool:
        """Whether standard input or variables are part of the command."""
        return bool(self.stdin or self.variables)

    @property
    def node_id(self) -> str:
        """The node id of a test, without its parameters."""
        return f"{self.target}::{self.qualname.replace('.', '::')}"

    def instance_id(self, parameter: str) -> str:
        """Return the node id of one test instance."""
        return f"{self.node_id}[{parameter}]"

    @property
    def gist_file(self) -> str:
        """The name of the file with a gist of this command."""
        return GIST_FILE if self.is_test else PROGRAM_FILE


def parse_entrypoint(command: str) -> Entrypoint:
    """Return the entrypoint that a command line describes. Raises `EntrypointError` if it describes none.

    Possible commands are `pytest path::test`, `pytest [--doctest-modules] [-k EXPR] [-m EXPR] PATHS...`,
    `python -m package ...`, `python file.py ...`, `python -c CODE ...` and the name of a console script with
    its arguments; `python -m pytest` means `pytest`, and `python` may have a path. Parameters of a test
    (`[...]`) are dropped: all its instances are one entrypoint. Whether the codebase has the console script
    is not checked.
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
        if words[1:2] == ["-c"] and len(words) > 2:
            return Entrypoint(EntrypointKind.CODE, COMMAND_FILE, arguments=tuple(words[3:]), own=(words[2],))
        if len(words) > 1 and words[1].endswith(".py"):
            return Entrypoint(EntrypointKind.SCRIPT, _inside(command, words[1]), arguments=tuple(words[2:]))
    elif words[:1] == ["pytest"]:
        return _test(command, words[1:])
    elif words and _SCRIPT_NAME.fullmatch(words[0]):
        return Entrypoint(EntrypointKind.CONSOLE, COMMAND_FILE, arguments=tuple(words[1:]), own=(words[0],))
    raise EntrypointError(
        f"{command!r} is not an entrypoint.",
        hint=(
            "Give `pytest path/test_file.py::test_name`, pytest with files or folders, `python -m package"
            " ARGUMENTS`, `python file.py ARGUMENTS`, `python -c CODE` or a console script of the package"
            " with its arguments."
        ),
    )


def parameter_in(command: str) -> str:
    """Return the parameter of a test in a command line; empty unless exactly one test has a parameter."""
    named = [word for word in shlex.split(command) if "::" in word and word.endswith("]")]
    return named[0].partition("[")[2][:-1] if len(named) == 1 else ""


def with_input(
    entrypoint: Entrypoint, stdin: str = "", variables: Mapping[str, str] | None = None
) -> Entrypoint:
    """Return the entrypoint with standard input and variables.

    Raises `EntrypointError` for standard input of a test, for variables whose names are invalid or reserved
    for the run, for too many of them, and for strings that are too long, contain NUL (only values) or are not
    UTF-8.
    """
    given = variables or {}
    if stdin and entrypoint.is_test:
        raise EntrypointError("pytest does not pass standard input to tests.", hint="Leave --stdin out.")
    if len(stdin) > MAX_STDIN_CHARACTERS:
        raise EntrypointError(f"The standard input is longer than {MAX_STDIN_CHARACTERS:,} characters.")
    if len(given) > MAX_VARIABLES:
        raise EntrypointError(f"A command has at most {MAX_VARIABLES} variables.")
    for name, value in given.items():
        if not _VARIABLE.fullmatch(name):
            raise EntrypointError(f"{name[:80]!r} is not the name of a variable.", hint="Write NAME=VALUE.")
        if _OUR_VARIABLES.fullmatch(name):
            raise EntrypointError(
                f"The variable {name} is reserved for the run itself.",
                hint="A command may only set variables that its own code reads.",
            )
        if len(value) > MAX_VARIABLE_CHARACTERS or "\0" in value:
            raise EntrypointError(
                f"The value of {name} is longer than {MAX_VARIABLE_CHARACTERS:,} characters, or contains NUL."
            )
    try:
        "".join([stdin, *given.values()]).encode()
    except UnicodeEncodeError as error:
        raise EntrypointError("Standard input and variables must be UTF-8.") from error
    return replace(entrypoint, stdin=stdin, variables=tuple(sorted(given.items())))


DOCTEST_MODULES = "--doctest-modules"
_VALUED = ("-k", "-m")


def _test(command: str, words: list[str]) -> Entrypoint:
    arguments: list[str] = []
    selected: list[str] = []
    option = ""
    for word in words:
        if option:
            arguments.append(word)
            option = ""
        elif word in _VALUED or word == DOCTEST_MODULES:
            arguments.append(word)
            option = word if word in _VALUED else ""
        elif word.startswith("-"):
            raise EntrypointError(
                f"{command!r} has the option {word}.",
                hint=(
                    f"A command may have {DOCTEST_MODULES}, -k and -m; put options for the whole suite"
                    " into --pytest-args."
                ),
            )
        else:
            selected.append(_selected(command, word))
            arguments.append(selected[-1])
    if not selected or option:
        raise EntrypointError(
            f"{command!r} does not name a test.",
            hint="Give pytest a test, path::test, or files or folders of tests.",
        )
    path, _, rest = selected[0].partition("::")
    if len(arguments) == 1 and rest:
        return Entrypoint(EntrypointKind.TEST, path, rest.replace("::", "."))
    return Entrypoint(EntrypointKind.TESTS, path, arguments=tuple(arguments))


def _selected(command: str, word: str) -> str:
    """Return a file, a folder or the node id of a test, without parameters.

    Raises `EntrypointError` for any other word.
    """
    path, separator, rest = word.partition("[")[0].partition("::")
    if separator and not (path.endswith(".py") and all(part.isidentifier() for part in rest.split("::"))):
        raise EntrypointError(
            f"{word!r} is not the node id of a test.", hint="Write it as path/test_file.py::test_name."
        )
    return f"{_inside(command, path)}{separator}{rest}"


def _inside(command: str, path: str) -> str:
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts or not parts.parts:
        raise EntrypointError(
            f"{command!r} names a file outside of the repository.", hint="Give a path within it."
        )
    return parts.as_posix()


def command_line(entrypoint: Entrypoint, parameter: str = "") -> str:
    """Return the command for a shell, with its variables in front; standard input is only mentioned.

    With a `parameter`, the command names only this instance of its test.
    """
    text = entrypoint.text
    if parameter:
        text = shlex.join(["pytest", entrypoint.instance_id(parameter)])
    given = [f"{name}={shlex.quote(value)}" for name, value in entrypoint.variables]
    return " ".join([*given, text, *(["< stdin"] if entrypoint.stdin else [])])
