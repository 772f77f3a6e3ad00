"""A command is declared by a line, and its module is loaded by nothing but itself."""

from __future__ import annotations

import argparse

import pytest

from gistpoint.sandbox.ladder import builtin_backends
from gistpoint.tui import cli, commands
from gistpoint.tui.commands.command import CommandParser, Commands, Handler


def test_a_command_loads_its_options_only_when_it_is_called(capsys: pytest.CaptureFixture[str]) -> None:
    loaded = []

    def options(name: str) -> Handler:
        def add(parser: argparse.ArgumentParser) -> Handler:
            loaded.append(name)
            parser.description = f"Does {name} and returns a number."
            parser.add_argument("--count", type=int, default=1)
            return lambda options: int(options.count)

        return add

    top = CommandParser(prog="p")
    group = Commands(top).group("things", "what there is to do with things")
    group.add("count", "count them", lambda: options("count"))
    group.add("drop", "drop them", lambda: options("drop"))
    with pytest.raises(SystemExit):
        top.parse_args(["things", "--help"])
    assert "count them" in capsys.readouterr().out
    assert loaded == []
    parsed = top.parse_args(["things", "count", "--count", "3"])
    assert (parsed.run(parsed), loaded) == (3, ["count"])
    with pytest.raises(SystemExit):
        top.parse_args(["things", "drop", "--help"])
    assert "Does drop and returns a number." in capsys.readouterr().out


def subcommands(parser: CommandParser, line: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not found:
        return [line]
    return [one for choices in found for name, inner in choices.items() for one in subcommands(inner, (*line, name))]


@pytest.mark.parametrize("line", subcommands(cli.parser()), ids=" ".join)
def test_every_command_has_help_and_something_that_runs_it(
    line: tuple[str, ...], capsys: pytest.CaptureFixture
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([*line, "--help"])
    assert ended.value.code == 0
    assert f"usage: gistpoint {' '.join(line)}" in capsys.readouterr().out


def test_a_module_that_is_no_command_is_not_found_among_them() -> None:
    assert callable(commands.storage.paths)
    with pytest.raises(AttributeError):
        commands.nonsense  # noqa: B018


def test_the_help_names_every_isolation_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    *first, last = builtin_backends()
    assert f"{', '.join(first)} or {last};" in " ".join(capsys.readouterr().out.split())
