"""`kill -9` loses nothing that was typed, although it was not sent: the next program offers it again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from e2e.conftest import Start
from e2e.terminal import Terminal
from program_kills import DRAFT_S

WORDS = "half a sentence that I"


def killed_after_typing(terminal: Terminal, words: str, environment: Mapping[str, str]) -> None:
    """Type text, and kill the program once the text must be on disk."""
    terminal.type(words)
    terminal.wait_for(words)
    terminal.watch(DRAFT_S)
    terminal.kill()
    files = Path(environment["GISTPOINT_HOME"], "data", "unsent-texts").glob("*.json")
    assert any(words in file.read_text("ascii") for file in files)


@pytest.mark.slow
def test_a_line_of_the_console(start: Start, environment: dict[str, str]) -> None:
    with start("demo", "seats-together") as terminal:
        terminal.wait_for("16 tool uses left")
        terminal.press("f5")
        killed_after_typing(terminal, "search_code seats", environment)
    with start("demo", "seats-together") as terminal:
        terminal.wait_for("16 tool uses left")
        terminal.settle()
        terminal.press("f5")
        terminal.wait_for("❯ search_code seats")
        terminal.settle()
        terminal.press("end")
        terminal.type("_left")
        terminal.wait_for("❯ search_code seats_left")
        terminal.press("enter")
        terminal.wait_for("15 tool uses left")
        terminal.watch(DRAFT_S)
        terminal.kill()
    with start("demo", "seats-together") as terminal:
        terminal.wait_for("15 tool uses left")
        terminal.settle()
        terminal.press("f5")
        terminal.wait_for("❯ a tool call, such as")


@pytest.mark.slow
@pytest.mark.parametrize(("key", "opened"), [("c", "Comment on step 1"), ("V", "After Esc, one key judges")])
def test_a_comment_and_the_note_of_a_verdict(
    start: Start, environment: dict[str, str], key: str, opened: str
) -> None:
    for typed in (True, False):
        with start("review", "--demo") as terminal:
            terminal.wait_for("agent")
            terminal.settle()
            terminal.press("enter")
            terminal.wait_for("1 Step|Step")
            terminal.settle()
            terminal.press(key)
            terminal.wait_for(opened)
            if typed:
                killed_after_typing(terminal, WORDS, environment)
            else:
                terminal.wait_for(WORDS)
