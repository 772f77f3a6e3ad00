"""Output of commands: tables in narrow terminals, and a full disk behind standard output."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from killed_processes import mark_of_killed

from gistpoint.core.unfinished import mark
from gistpoint.tui import cli
from gistpoint.tui.commands.output import indented_json, print_table, readable_terminals, write_whole

Captured = pytest.CaptureFixture[str]
HEADINGS = ["attempt", "task", "mode", "started", "outcome"]
ROW = ["01m82paj0np8jkawgvfe", "1a1ec2b7ab6b", "discovery", "2026-11-22 22:30", "solved"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("columns", "left_out"), [("200", []), ("60", ["outcome"]), ("8", HEADINGS[1:])])
def test_columns_that_do_not_fit_are_named_and_the_others_readable(
    monkeypatch: pytest.MonkeyPatch, columns: str, left_out: list[str]
) -> None:
    terminal = Terminal()
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(sys, "stdout", terminal)
    print_table(HEADINGS, [ROW])
    shown = terminal.getvalue()
    assert (f"Too narrow for: {', '.join(left_out)}." in shown) is bool(left_out)
    if columns != "8":
        assert ROW[0][:11] in shown
        assert ROW[1] in shown
    assert ("solved" in shown) is (not left_out)


ACTING = "\x1b]0;title\x07\x9b2J\u202e\x1b]8;;http://x\x1b\\"


def _acts(shown: str) -> bool:
    return any(mark in shown for mark in ("\x1b]", "\x07", "\x9b", "\u202e"))


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_what_any_print_of_a_command_says_cannot_act_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, stream: str
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, stream, terminal)
    with readable_terminals():
        print(f"a\tname {ACTING}\r\nnext", file=getattr(sys, stream))
        getattr(sys, stream).writelines([ACTING, "\n"])
        assert getattr(sys, stream).isatty()
    assert getattr(sys, stream) is terminal
    assert not _acts(terminal.getvalue())
    assert terminal.getvalue().startswith("a\tname ␛]0;title␇")
    assert "\nnext\n" in terminal.getvalue()


def test_a_pipe_gets_the_bytes_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stdout", pipe)
    with readable_terminals():
        print(ACTING, end="")
    assert pipe.getvalue() == ACTING


def test_a_table_is_drawn_with_its_colours_on_a_readable_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys, "stdout", terminal)
    with readable_terminals():
        print_table(HEADINGS, [[ACTING, *ROW[1:]]])
    assert "\x1b[1m" in terminal.getvalue()
    assert "␛" in terminal.getvalue()
    assert not _acts(terminal.getvalue())


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_the_folder_of_a_broken_task_cannot_act_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stream: str
) -> None:
    terminal = Terminal()
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path))
    broken = tmp_path / "data" / "tasks" / f"x{ACTING.replace('/', '')}"
    broken.mkdir(parents=True)
    (broken / "task.toml").write_text('"\\u001b]0;x\\u0007" = 1\n')
    monkeypatch.setattr(sys, stream, terminal)
    assert cli.main(["task", "list"]) == 0
    assert not _acts(terminal.getvalue())


def test_numbers_align_at_their_last_digit_and_other_columns_at_their_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stdout", terminal)
    print_table(
        ["source", "tried", "share", "version"],
        [["a", "7", "1.5", "10"], ["bb", "1,234", "", "1.0b"], ["c", "56", "-20.0", ""]],
    )
    drawn = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())
    heading, _, *rows = (line for line in drawn.splitlines() if line.strip())
    assert [line.index(cell) + len(cell) for line, cell in zip(rows, ("7", "1,234", "56"), strict=False)] == [
        heading.index("tried") + len("tried")
    ] * 3
    assert rows[2].index("-20.0") == heading.index("share")
    assert rows[0].rindex("10") == rows[1].index("1.0b") == heading.index("version")
    assert rows[1].startswith(heading[: heading.index("source")] + "bb")


def test_a_table_without_rows_has_its_headings(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stdout", terminal)
    print_table(HEADINGS, [])
    assert "attempt" in terminal.getvalue()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_behind_the_output_is_reported(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gistpoint", "task", "list", "--json"]
    with Path("/dev/full").open("wb", buffering=0) as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, env={**os.environ, "GISTPOINT_HOME": str(tmp_path)}
        )
    assert done.returncode == 2
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_home_that_is_a_file_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Captured
) -> None:
    home = tmp_path / "home"
    home.write_text("")
    monkeypatch.setenv("GISTPOINT_HOME", str(home))
    assert cli.main(["demo", "remove", "--lines"]) == 2
    assert "can't be used: Not a directory" in capsys.readouterr().err


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    kept = [f".a[1].html.{mark()}.part", ".a[1].html.mine.part", f".a1.html.{mark_of_killed()}.part"]
    for name in (*kept, f".a[1].html.{mark_of_killed()}.part"):
        (tmp_path / name).write_text("half")
    write_whole(tmp_path / "a[1].html", [b"whole"])
    assert {path.name for path in tmp_path.iterdir()} == {"a[1].html", *kept[1:]}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
@example({"": [[], {}, [{}], -0.0, 1e-7, 1e22, float("nan"), '\ud800\u2028\x00\x7f"\\/']})
@example([[[[]]], 2**70, 5e-324])
def test_json_is_printed_as_the_standard_library_indents_it(value: object) -> None:
    assert indented_json(value) == json.dumps(value, indent=1)


def test_json_that_is_nested_deep_is_printed() -> None:
    value: list[object] = []
    for _ in range(600):
        value = [value]
    assert indented_json(value) == json.dumps(value, indent=1)
