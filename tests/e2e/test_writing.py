"""A person at a real terminal inserts large texts, undoes and redoes that, and the app never crashes."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from e2e.conftest import Start
from e2e.terminal import Terminal

CRASH = "Something unexpected"


def lines(count: int) -> str:
    return "".join(f"value_{number} = {number}\n" for number in range(count))


def bottom(terminal: Terminal, wanted: str) -> None:
    """Go to the end of the text, and require `wanted` there."""
    terminal.press("ctrl+end")
    screen = terminal.wait_for(wanted)
    assert CRASH not in screen


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "opened", "columns", "rows"),
    [("seats-together", r"16 tool uses left", 160, 48), ("gist", r"50 (steps )?left", 80, 24)],
)
def test_large_texts_are_undone_and_redone(
    start: Start, environment: dict[str, str], tmp_path: Path, task: str, opened: str, columns: int, rows: int
) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nseq -f 'outside_%g = 0' 5000 > \"$1\"\n", encoding="utf-8")
    editor.chmod(0o755)
    environment["EDITOR"] = str(editor)
    terminal = start("demo", task, columns=columns, rows=rows)
    terminal.wait_for(opened)
    terminal.press("f6")
    terminal.wait_for("✔ parses")
    for key in ("alt+a", "delete"):
        terminal.settle()
        terminal.press(key)
    terminal.settle()
    for count in (500, 5_000):
        terminal.paste(lines(count))
        for _ in range(2):
            bottom(terminal, rf"value_{count - 1} = {count - 1}\b")
            terminal.press("ctrl+z")
            terminal.wait_for(r"value_\d+ =", gone=True)
            terminal.press("ctrl+y")
        bottom(terminal, rf"value_{count - 1} = {count - 1}\b")
        terminal.press("ctrl+z")
        terminal.wait_for(r"value_\d+ =", gone=True)
    terminal.type("own = 1")
    terminal.settle()
    terminal.press("alt+v")
    terminal.wait_for("outside_1 = 0")
    bottom(terminal, r"outside_5000 = 0")
    terminal.press("ctrl+z")
    bottom(terminal, r"own = 1")
    terminal.press("ctrl+y")
    bottom(terminal, r"outside_5000 = 0")


@pytest.mark.slow
def test_what_was_typed_a_moment_before_the_terminal_was_closed_is_there(start: Start) -> None:
    for typed, before in (("seen = 1", ""), ("2345", "seen = 1"), ("", "seen = 12345")):
        terminal = start("demo", "seats-together")
        terminal.wait_for(r"16 tool uses left")
        terminal.press("f6")
        terminal.wait_for("✔ parses|✘ line 10")
        terminal.settle()
        bottom(terminal, before)
        terminal.type(typed)
        terminal.wait_for(before + typed)
        assert terminal.close() == 128 + signal.SIGHUP
