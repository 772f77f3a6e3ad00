"""How the bytes of a terminal are interpreted as keys."""

from __future__ import annotations

import pytest
from textual._xterm_parser import (
    XTermParser,
)  # the parser for a real terminal, which a pilot's keys bypass
from textual.events import Key as KeyPressed

from gistpoint.tui import base_app
from gistpoint.tui.keys import KEYS

ALT_DIGITS = sorted(
    {key for row in KEYS for key in row.keys.split(",") if key.startswith("alt+") and key[4:].isdigit()}
)


@pytest.mark.parametrize("key", ALT_DIGITS)
def test_alt_and_a_digit_arrive_as_such(key: str) -> None:
    assert base_app
    parser = XTermParser()
    pressed = [*parser.feed(f"\x1b{key[4:]}"), *parser.feed("")]
    assert [event.key for event in pressed if isinstance(event, KeyPressed)] == [key]
