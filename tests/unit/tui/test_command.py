"""A command is declared in one line, and its module is only loaded for that command."""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import pytest

from gistpoint.core.requests import LOCAL, Count, IsolationChoice, Natural, Request, Share, for_worker
from gistpoint.sandbox.ladder import builtin_backends
from gistpoint.tui import cli
from gistpoint.tui.commands.arguments import ISOLATION
from gistpoint.tui.commands.command import CommandParser, CommandRow, add_commands
from gistpoint.tui.commands.options import (
    CALLED,
    CliCommand,
    OptionTable,
    add_options,
    argument,
    option,
    reader_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountThings(Request):
    """Counts things, for the tests."""

    count: Count = 1


class Measure(StrEnum):
    LONG = "long"
    WIDE = "wide"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureThings(Request):
    """Measures things, with a field of every kind, for the tests."""

    what: str
    more: tuple[str, ...] = ()
    by: Measure = Measure.LONG
    share: Share = 0.5
    least: int | None = None
    tags: tuple[str, ...] = ()
    pair: tuple[str, str] | None = None
    hard: Natural = 0
    place: Path | None = None
    csv: bool = False
    json: bool = False
    isolation: IsolationChoice
    called: tuple[str, ...] = ()


WORDS = OptionTable(
    {
        "what": argument("WHAT", "what to measure"),
        "more": argument("MORE", "more of it"),
        "by": option("default: {default}"),
        "share": option("default: {default}", metavar="P"),
        "least": option(metavar="N"),
        "tags": option("", "--tag", metavar="T"),
        "pair": option(metavar="NAME"),
        "hard": option(metavar="N", bare=7),
        "place": option(metavar="DIR"),
        "csv": option(),
        "json": option(),
        "isolation": ISOLATION,
        "called": CALLED,
    },
    one_of=(("csv", "json"),),
)
seen: list[MeasureThings] = []


def keep(request: MeasureThings) -> int:
    seen.append(request)
    return 0


MEASURE = CliCommand(MeasureThings, keep, WORDS, about="Measures.")
COUNT = CliCommand(CountThings, lambda request: request.count, {"count": option()}, about="Does count.")
PLACE = f"gistpoint.tui.commands.{__name__.rpartition('.')[2]}"


@pytest.fixture
def top(monkeypatch: pytest.MonkeyPatch) -> CommandParser:
    monkeypatch.setitem(sys.modules, PLACE, sys.modules[__name__])
    module = PLACE.rpartition(".")[2]
    made = CommandParser(prog="p")
    commands = (
        CommandRow("things count", "count them", f"{module}:COUNT"),
        CommandRow("things measure", "measure them", f"{module}:MEASURE"),
        CommandRow("things drop", "drop them", "no_such_module:DROP"),
    )
    add_commands(made, commands, {"things": "what there is to do with things"})
    return made


def asked(top: CommandParser, *words: str) -> MeasureThings:
    parsed = top.parse_args(["things", "measure", *words], argparse.Namespace(called=("things", *words)))
    assert parsed.run(parsed) == 0
    return seen.pop()


def test_a_command_loads_its_module_only_when_it_is_called(
    top: CommandParser, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        top.parse_args(["things", "--help"])
    assert "drop them" in capsys.readouterr().out
    parsed = top.parse_args(["things", "count", "--count", "3"])
    assert parsed.run(parsed) == 3
    with pytest.raises(SystemExit):
        top.parse_args(["things", "count", "--help"])
    assert "Does count." in capsys.readouterr().out
    with pytest.raises(ModuleNotFoundError):
        top.parse_args(["things", "drop"])


def test_what_is_not_given_is_as_the_request_declares_it(top: CommandParser) -> None:
    assert asked(top, "it") == MeasureThings(what="it", isolation=IsolationChoice(), called=("things", "it"))


def test_every_kind_of_field_is_read_into_its_type(top: CommandParser) -> None:
    words = (
        "it a b --by wide --share 1 --least -3 --tag x --tag y "
        "--pair p q --hard --place there --json --sandbox plain"
    )
    assert asked(top, *words.split()) == MeasureThings(
        what="it",
        more=("a", "b"),
        by=Measure.WIDE,
        share=1.0,
        least=-3,
        tags=("x", "y"),
        pair=("p", "q"),
        hard=7,
        place=Path("there"),
        json=True,
        isolation=IsolationChoice(sandbox="plain"),
        called=("things", *words.split()),
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("it --share 0", "--share: must be a number above 0"),
        ("it --share 1.5", "--share: must be 1 or less"),
        ("it --share nan", "--share: must be a number above 0"),
        ("it --share x", "--share: 'x' is not a number"),
        ("it --hard -1", "--hard: must be 0 or more"),
        ("it --hard 1.5", "--hard: '1.5' is not a whole number"),
        ("it --by tall", "'tall' is not one of long, wide"),
        ("it --csv --json", "not allowed with"),
        ("", "Missing: WHAT"),
    ],
)
def test_what_is_out_of_bounds_is_refused_with_the_option(
    words: str, said: str, top: CommandParser, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        asked(top, *words.split())
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_the_help_has_the_defaults_of_the_request(
    top: CommandParser, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        asked(top, "--help")
    shown = capsys.readouterr().out
    assert "default: long" in shown
    assert "default: 0.5" in shown


def test_a_table_that_lacks_a_field_or_names_one_twice_is_refused() -> None:
    parser = argparse.ArgumentParser()
    with pytest.raises(TypeError, match="CountThings and its words differ in: count"):
        add_options(parser, CountThings, OptionTable({}))
    add_options(parser, CountThings, OptionTable({"count": option()}))
    with pytest.raises(TypeError, match="two fields called 'count'"):
        add_options(parser, CountThings, OptionTable({"count": option("", "--number")}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner(Request):
    place: Annotated[str, LOCAL] = ""
    size: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer(Request):
    inner: Inner
    key: Annotated[str, LOCAL] = ""


def test_local_fields_do_not_travel() -> None:
    order = Outer(inner=Inner(place="here", size=2), key="secret")
    assert for_worker(order) == Outer(inner=Inner(size=2))


def subcommands(parser: CommandParser, line: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not found:
        return [line]
    return [
        one
        for choices in found
        for name, inner in choices.items()
        for one in subcommands(inner, (*line, name))
    ]


@pytest.mark.parametrize("line", subcommands(cli.parser()), ids=" ".join)
def test_every_command_has_help_and_something_that_runs_it(
    line: tuple[str, ...], capsys: pytest.CaptureFixture
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([*line, "--help"])
    assert ended.value.code == 0
    usage, _, rest = capsys.readouterr().out.partition("\n\n")
    assert usage.startswith(f"usage: gistpoint {' '.join(line)}")
    assert re.match(r"[A-Z][^:]* [^:]", rest), "says what the command does, not only its options"


@pytest.mark.parametrize("command", cli.COMMANDS, ids=lambda command: command.name)
def test_every_line_of_the_table_names_something_that_adds_options(command: CommandRow) -> None:
    assert callable(command.load())


def test_the_help_names_every_isolation_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--help-all"])
    *first, last = builtin_backends()
    assert f"{', '.join(first)} or {last};" in " ".join(capsys.readouterr().out.split())


GROUPS = [(name,) for name in cli.GROUPS]


@pytest.mark.parametrize("line", [(), *GROUPS, *subcommands(cli.parser())], ids=" ".join)
def test_a_short_help_fits_a_small_terminal(
    line: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        cli.main([*line, "--help"])
    assert len(capsys.readouterr().out.splitlines()) <= 24


def test_the_help_lists_every_command_in_one_section() -> None:
    listed = [name for names in cli.SECTIONS.values() for name in names]
    names = {
        row.name if row.name in cli.TWO_WORDS else row.name.split()[0] for row in cli.COMMANDS if row.help
    }
    assert sorted(listed) == sorted(names)
    assert set(cli.FIRST) <= {row.name for row in cli.COMMANDS}


def test_the_whole_help_shows_what_the_short_one_leaves_out(capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for wanted in ("--help", "--help-all"):
        with pytest.raises(SystemExit) as ended:
            cli.main(["task", "generate", wanted])
        assert ended.value.code == 0
        shown.append(capsys.readouterr().out)
    short, whole = shown
    assert "--count" in short
    assert "--quadrants" not in short
    assert "--help-all" in short
    assert all(option in whole for option in ("--count", "--quadrants", "--sandbox", "corruption by a model"))


@pytest.mark.parametrize("group", cli.GROUPS)
def test_the_help_of_a_group_names_each_of_its_commands(
    group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row for row in cli.COMMANDS if row.name.split()[0] == group]
    for wanted in ("--help", "--help-all"):
        with pytest.raises(SystemExit) as ended:
            cli.main([group, wanted])
        assert ended.value.code == 0
        words = set(re.findall(r"[\w-]+", capsys.readouterr().out))
        assert {row.name.split()[1] for row in rows} <= words
    assert not all(row.rare for row in rows)


@pytest.mark.parametrize("row", cli.COMMANDS, ids=lambda row: row.name)
def test_the_options_that_a_short_help_shows_exist(row: CommandRow) -> None:
    parser: CommandParser | None = cli.parser()
    for word in [row.name] if row.name in cli.TWO_WORDS else row.name.split():
        assert parser is not None
        parser = parser.command(word)
    assert parser is not None
    parser.complete()
    assert set(row.shown) <= {action.dest for action in parser._actions}


@pytest.mark.parametrize(("old", "new"), cli.MOVED.items(), ids=str)
def test_an_old_name_goes_on_working_and_names_the_new_one(
    old: tuple[str, ...], new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    helps = []
    for words in (old, new.split()):
        with pytest.raises(SystemExit) as ended:
            cli.main([*words, "--help"])
        assert ended.value.code == 0
        helps.append(capsys.readouterr())
    assert helps[0].out == helps[1].out
    assert f"`gistpoint {new}`" in helps[0].err
    assert helps[1].err == ""


def test_a_path_begins_at_the_home_folder_after_a_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert reader_of(Path | None)("~/kept/x.csv") == Path("/home/ada/kept/x.csv")
    commands = Path(cli.__file__).parent / "commands"
    unexpanded = [path.name for path in commands.glob("*.py") if "Path(request." in path.read_text("utf-8")]
    assert not unexpanded, "`path_of` expands a tilde, which a shell leaves in `--output=~/x`"
