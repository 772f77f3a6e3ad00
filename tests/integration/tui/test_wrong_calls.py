"""A wrong call is answered in one or two lines: the error, the likely intention, and the command's usage."""

from __future__ import annotations

import argparse
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from shelves import Shelf
from wrong_calls import WRONG_CALLS

from gistpoint.tui import cli
from gistpoint.tui.commands.command import CommandParser

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.chdir(tmp_path)


def called(*words: str) -> int:
    """Return the exit code of a call, even of one that exits while it is parsed."""
    try:
        return cli.main(words)
    except SystemExit as ended:
        return int(ended.code or 0)


@pytest.mark.parametrize(
    ("words", "code", "said"), WRONG_CALLS, ids=[" ".join(words)[:40] for words, _, _ in WRONG_CALLS]
)
def test_a_wrong_call_is_answered_in_a_line_or_two(
    words: tuple[str, ...], code: int, said: str, capsys: Captured
) -> None:
    assert called(*words) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert captured.err.startswith("gistpoint")
    assert len(captured.err.splitlines()) <= 2
    assert max(map(len, captured.err.splitlines())) < 600


def options_for_others() -> Iterator[tuple[list[str], argparse.Action, str]]:
    """Yield the words of each command, each option whose help names another one as its condition, and it."""
    left: list[tuple[list[str], CommandParser]] = [([], cli.parser())]
    while left:
        words, parser = left.pop()
        parser.complete()
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                left += [([*words, name], inner) for name, inner in action.choices.items()]
            elif condition := re.match(r"with (--[a-z-]+)|.* for (--[a-z-]+)", action.help or ""):
                other = condition[1] or condition[2]
                # Some name an option of another command.
                if other in parser._option_string_actions and other not in action.option_strings:
                    yield words, action, other


def test_an_option_that_is_for_another_is_refused_without_it(capsys: Captured) -> None:
    """Its help says so: an option that is ignored gives another result than the one that was asked for."""
    tried = 0
    for words, action, condition in options_for_others():
        value = [] if action.nargs == 0 else [str(next(iter(action.choices or ["3"])))]
        assert called(*words, "x", action.option_strings[-1], *value) == 2, (words, action.dest)
        assert condition in capsys.readouterr().err, (words, action.dest)
        tried += 1
    assert tried >= 9


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["help"], "usage: gistpoint [OPTION...] [COMMAND ...]"),
        (["help", "task", "new"], "usage: gistpoint task new"),
        (["task", "help", "new"], "usage: gistpoint task new"),
        (["help", "help", "task"], "usage: gistpoint task"),
        (["version"], "gistpoint "),
        (["tasks"], "There are no tasks yet"),
        (["attempts"], "There are no attempts yet"),
        (["--sandbox", "plain", "tasks"], "There are no tasks yet"),
    ],
)
def test_words_that_people_try_are_understood(words: list[str], said: str, capsys: Captured) -> None:
    assert called(*words) == 0
    assert capsys.readouterr().out.startswith(said)


def test_the_isolation_before_a_command_is_that_of_the_command() -> None:
    parse = cli.parser().parse_args
    assert parse(["--sandbox", "plain", "demo"]).sandbox == "plain"
    assert parse(["--sandbox", "plain", "demo", "--sandbox", "bwrap"]).sandbox == "bwrap"
    assert parse(["--allow-unsandboxed", "demo"]).allow_unsandboxed


def test_the_newest_version_is_told_where_none_was_given(shelf: Shelf, capsys: Captured) -> None:
    for version in ("1.9", "1.10"):
        shelf.sdist("lamp", version, {"lamp.py": ""})
    for command in (["task", "new", "lamp"], ["task", "generate", "lamp", "--count", "3"], ["code", "lamp"]):
        assert called(*command) == 2
        assert capsys.readouterr().err.splitlines() == [
            "gistpoint: lamp needs a version; the newest is lamp==1.10.",
            " ".join(["gistpoint", *command]).replace("lamp", "lamp==1.10"),
        ]


def test_the_newest_version_is_taken_after_a_yes(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    shelf.sdist("lamp", "1.10", {"lamp.py": "def light():\n    return 1\n"})
    for answer, code, printed in (("y\n", 0, "lamp.py::light\n"), ("n\n", 2, ""), ("", 2, "")):
        asked = Terminal()
        monkeypatch.setattr("sys.stdin", Terminal(answer))
        monkeypatch.setattr("sys.stderr", asked)
        assert called("code", "lamp", "--names") == code
        assert "The newest is lamp==1.10. Use it? [Y/n] " in asked.getvalue()
        assert capsys.readouterr().out == printed
    assert "Nothing was answered." in asked.getvalue(), "the input ended"


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("gistpoint sol", ["solve "]),
        ("gistpoint task ge", ["generate "]),
        ("gistpoint task new --mi", ["--min-failing "]),
        ("gistpoint task new --mode ", ["remove", "discovery"]),
        ("gistpoint solve 4", ["{attempt} "]),
        ("gistpoint attempt show 4", ["{attempt} "]),
        ("gistpoint --sandbox bwrap attempt show 4", ["{attempt} "]),
        ("gistpoint --sandbox bw", ["bwrap "]),
        ("gistpoint task new x --sandbox land", ["landlock "]),
    ],
)
def test_tab_completes_commands_options_values_and_ids(
    typed: str, offered: list[str], tmp_path: Path
) -> None:
    attempt, answer = "4" * 20, tmp_path / "answer"
    (tmp_path / "home/data/attempts" / attempt).mkdir(parents=True)
    (tmp_path / "home/data/attempts" / attempt / "journal.jsonl").touch()
    asked = {"COMP_LINE": typed, "COMP_POINT": str(len(typed)), "_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n"}
    done = subprocess.run(
        [sys.executable, "-m", "gistpoint"],
        env={**os.environ, **asked, "_ARGCOMPLETE_STDOUT_FILENAME": str(answer)}, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert answer.read_text().splitlines() == [word.format(attempt=attempt) for word in offered]


def test_every_shell_has_its_script(capsys: Captured) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert called("completion", shell) == 0
        assert "_ARGCOMPLETE" in capsys.readouterr().out
