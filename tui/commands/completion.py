"""`gistpoint admin completion`: print the script for a shell, and answer the shell's requests for words.

The program is asked at each Tab and knows the current commands and ids; a stored script would not (decision
97).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from gistpoint.core.locations import Locations
from gistpoint.core.requests import Request
from gistpoint.sessions.journal import JOURNAL
from gistpoint.tui.commands.command import DONE, CommandParser
from gistpoint.tui.commands.options import CliCommand, argument

_SHELLS = {
    "bash": 'eval "$(gistpoint admin completion bash)" in ~/.bashrc',
    "zsh": 'eval "$(gistpoint admin completion zsh)" in ~/.zshrc, after compinit',
    "fish": "gistpoint admin completion fish > ~/.config/fish/completions/gistpoint.fish",
}
"""The steps that enable completion in each shell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintScript(Request):
    """A request to print the completion script of a shell."""

    shell: str


def script(request: PrintScript) -> int:
    """Print the script that enables completion in a shell. Return the exit code."""
    from argcomplete.shell_integration import shellcode

    print(shellcode(["gistpoint"], shell=request.shell).strip())
    return DONE


def complete(parser: CommandParser) -> None:
    """Answer the shell's request for words, and end the program."""
    from argcomplete.finders import CompletionFinder
    from argcomplete.lexers import split_line

    line = os.environ.get("COMP_LINE", "")
    *_, words, _ = split_line(line, int(os.environ.get("COMP_POINT", len(line))))
    called = parser
    for word in words[1:]:
        called = called.command(word) or called  # a word that names no command is an option or a value
    called.complete()  # argcomplete inspects the options before it parses the line, which would add them
    for action in called._actions:
        known = action.metavar == "BACKEND" if action.option_strings else not called.names
        if known and (completer := _completer_of(action)):
            action.completer = completer  # type: ignore[attr-defined] # where argcomplete looks for it
    CompletionFinder()(parser, always_complete_options=False)


def _completer_of(action: argparse.Action) -> Callable[..., dict[str, str]] | None:
    name = action.metavar if isinstance(action.metavar, str) else action.dest
    kinds = [_WORDS[part] for part in name.lower().split("|") if part in _WORDS]
    return (lambda **_: dict(chain.from_iterable(kind() for kind in kinds))) if kinds else None


def _tasks() -> Iterator[tuple[str, str]]:
    from gistpoint.core.kinds.titles import author_title
    from gistpoint.core.tasks.model import Task
    from gistpoint.sessions.tasks import TaskStore
    from gistpoint.tui.titles import mode_words

    locations = Locations.of_user()
    for task in TaskStore(locations.tasks, demo=locations.demo).tasks():
        if isinstance(task, Task):
            yield task.short_id, f"{author_title(task)}, {mode_words(task)}"


def _attempts() -> Iterator[tuple[str, str]]:
    yield from _folders(Locations.of_user().attempts, JOURNAL, "attempt")


def _runs() -> Iterator[tuple[str, str]]:
    yield from _folders(Locations.of_user().runs, "run.toml", "run of an agent")


def _folders(place: Path, file: str, what: str) -> Iterator[tuple[str, str]]:
    for folder in sorted(place.iterdir()) if place.is_dir() else ():
        if (folder / file).is_file():
            yield folder.name, what


def _runs_of_any_kind() -> Iterator[tuple[str, str]]:
    yield from _attempts()
    yield from _runs()


def _backends() -> Iterator[tuple[str, str]]:
    from gistpoint.sandbox.ladder import builtin_backends, installed_backends

    for name in (*builtin_backends(), *installed_backends()):
        yield name, "isolation"


_WORDS: Mapping[str, Callable[[], Iterator[tuple[str, str]]]] = {
    "task": _tasks,
    "set": _tasks,
    "attempt": _attempts,
    "run": _runs_of_any_kind,
    "backend": _backends,
}
"""Functions that yield the possible words for an argument, each with a description, by the argument's name.

All other arguments are completed with files.
"""


SCRIPT = CliCommand(
    PrintScript,
    script,
    {"shell": argument("", "the shell", choices=(*_SHELLS,))},
    about=(
        "Prints the script that completes commands, options, their values, and ids of tasks, attempts and"
        f" runs. To set it up permanently: {'; '.join(_SHELLS.values())}."
    ),
)
