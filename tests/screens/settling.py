"""Types, and finds out when the app has done what a key asked of it, sooner than Textual's Pilot does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Hashable
from typing import Any

from processor import asked_s
from textual import events
from textual.app import App
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.keys import _character_to_key
from textual.pilot import Pilot

KEYS = {" ": "space", "\n": "enter"}
PAUSE_S = 0.001
"""Gives a thread that the key started the time to begin."""
PAUSES = 3
AT_WORK_S = 0.0005
"""Threads that ask for the processor longer than this in a few pauses are at work."""
UNTIL_S = 20.0

_PARSED: dict[Hashable, list[RuleSet]] = {}
"""What the style sheets of all apps of this process say, by their text, its place and the theme."""
_parse_rules = Stylesheet._parse_rules


def parsed_once(sheet: Stylesheet, css: str, *about: Any, **named: Any) -> list[RuleSet]:
    """Return the rules that a text of a style sheet says, which an earlier app may have read.

    Takes the place of Textual's `Stylesheet._parse_rules`, which remembers the rules (they never change) for
    one app alone: each test would read the same 140 texts again, a tenth of its time.
    """
    theme = frozenset(sheet._variables.items())
    asked = (theme, css, about, *sorted(named.items()))
    if asked not in _PARSED:
        _PARSED[asked] = _parse_rules(sheet, css, *about, **named)
    return _PARSED[asked]


async def settled(min_sleep: float = 0, max_sleep: float = 1) -> None:
    """Wait until the event loop and the threads beside it have nothing to do, at most `max_sleep` seconds.

    Takes the place of Textual's `wait_for_idle`, which sleeps 20 ms at a time until the whole process,
    threads included, has been idle for so long: most of a screen test's time, twice a key (decision 66).
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + max_sleep
    quiet, asked = 0, _asked_s()
    while quiet < PAUSES and loop.time() < end:
        await asyncio.sleep(PAUSE_S)
        quiet = 0 if loop._ready else quiet + 1  # type: ignore[attr-defined]
        if quiet == PAUSES:
            before, asked = asked, _asked_s()
            quiet = 0 if asked - before > AT_WORK_S else quiet


def _asked_s() -> float:
    return asked_s("self", without=threading.get_native_id())


async def until(pilot: Pilot[Any], met: Callable[[], object], seconds: float = UNTIL_S) -> None:
    """Wait for something that a thread or a message brings about."""
    for _ in range(int(seconds / 0.02)):
        await pilot.pause()
        if met():
            await pilot.pause()
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"never came about; the screen is {pilot.app.screen!r}:\n{text_of(pilot.app)}")


def text_of(app: App[Any]) -> str:
    """What stands on the screen, line by line."""
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips())


def send_keys(app: App[Any], text: str) -> None:
    """Put the characters of `text` into the app's queue, as fast typing does; nothing waits for any of them."""
    assert app._driver is not None
    for character in text:
        key = KEYS.get(character) or (character if character.isalnum() else _character_to_key(character))
        event = events.Key(key, None if character == "\n" else character)
        event.set_sender(app)
        app._driver.send_message(event)
