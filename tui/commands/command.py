"""Commands whose name and help are known at once, and whose module is loaded when they are called."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from gistpoint.tui.starting import hold_collection

DONE, NEGATIVE, MISTAKE = 0, 1, 2
"""Exit codes: done; a negative verdict (not solved, check failed, no task, no match); a user error."""

Handler = Callable[[argparse.Namespace], int]
Options = Callable[[argparse.ArgumentParser], Handler]
"""Adds the options of a command to its parser and returns the function that runs the command."""


class CommandParser(argparse.ArgumentParser):
    """A parser that adds its options when a line is parsed with it."""

    load: Callable[[], Options] | None = None
    """Returns the function that adds the options; it may import."""
    screen = False
    """Whether the command opens a screen."""

    def parse_known_args(self, *args: Any, **named: Any) -> Any:
        """Add the options and parse."""
        self.complete()
        return super().parse_known_args(*args, **named)

    def complete(self) -> None:
        """Add the options, unless that is done."""
        load, self.load = self.load, None
        if load is not None:
            if self.screen:
                hold_collection()
            self.set_defaults(run=load()(self))


class Commands:
    """The commands of a parser."""

    def __init__(self, parser: CommandParser, *, required: bool = True) -> None:
        self._parsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=required)

    def add(self, name: str, help: str, load: Callable[[], Options], *, screen: bool = False) -> None:
        """Add a command; `load` returns the function that adds its options, and may import its module."""
        parser = self._parsers.add_parser(name, help=help)
        parser.load, parser.screen = load, screen

    def group(self, name: str, help: str) -> Commands:
        """Add a command that consists of commands."""
        return Commands(self._parsers.add_parser(name, help=help))
