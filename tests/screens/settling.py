"""Types, and detects when the app has handled a key, sooner than Textual's Pilot does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Hashable
from typing import Any
from weakref import WeakSet

from processor import asked_s, wants_to_run
from textual import events
from textual.app import App, ScreenStackError
from textual.css.model import RuleSet
from textual.css.query import NoMatches
from textual.css.stylesheet import Stylesheet
from textual.keys import _character_to_key
from textual.message_pump import MessagePump
from textual.pilot import Pilot, WaitForScreenTimeout
from textual.screen import Screen

KEYS = {" ": "space", "\n": "enter"}
PAUSE_S = 0.001
"""Seconds in which a thread that a key has started begins to run."""
PAUSES = 3
AT_WORK_S = 0.0005
"""Threads that request the processor for longer than this during a few pauses count as working."""
UNTIL_S = 20.0
ASK_AGAIN_S = 0.005
"""The pause between two checks of a condition."""
JUST_NOW_S = 0.0003
"""The time after a quiet moment within which nothing relevant happens."""

_PARSED: dict[Hashable, list[RuleSet]] = {}
"""The rules of all style sheets in this process, by the text, its place and the theme."""
_parse_rules = Stylesheet._parse_rules


def parsed_once(sheet: Stylesheet, css: str, *about: Any, **named: Any) -> list[RuleSet]:
    """Return the rules of a style sheet's text, which an earlier app may have parsed.

    Replaces Textual's `Stylesheet._parse_rules`, which caches the unchanging rules for only one app: each
    test would parse the same 140 style sheets again, which takes a tenth of its time.
    """
    theme = frozenset(sheet._variables.items())
    asked = (theme, css, about, *sorted(named.items()))
    if asked not in _PARSED:
        _PARSED[asked] = _parse_rules(sheet, css, *about, **named)
    return _PARSED[asked]


_QUIET: tuple[asyncio.AbstractEventLoop, float] | None = None
"""The last quiet loop, and the time on its clock."""

_UNDRAWN = WeakSet[Screen[Any]]()
_draw = Screen._compositor_refresh


async def settled(min_sleep: float = 0, max_sleep: float = 1) -> None:
    """Wait until the event loop and other threads have nothing to do, for at most `max_sleep` seconds.

    Replaces Textual's `wait_for_idle`, which sleeps 20 ms at a time until all threads of the process have
    been idle for that long. Twice for each key, this takes most of a screen test's time (decision 66). Pilot
    waits two or three times in a row, although everything is still quiet the second time.
    """
    global _QUIET
    loop = asyncio.get_running_loop()
    if _QUIET and _QUIET[0] is loop and loop.time() - _QUIET[1] < JUST_NOW_S and not _has_work(loop):
        return
    end = loop.time() + max_sleep
    quiet, asked = 0, _asked_s()
    while quiet < PAUSES and loop.time() < end:
        await asyncio.sleep(PAUSE_S)
        quiet = 0 if _has_work(loop) else quiet + 1
        if quiet == PAUSES:
            before, asked = asked, _asked_s()
            is_at_work = asked - before > AT_WORK_S or _waits_for_processor()
            quiet = 0 if is_at_work else quiet
    _QUIET = (loop, loop.time())


def _has_work(loop: asyncio.AbstractEventLoop) -> bool:
    return bool(loop._ready)  # type: ignore[attr-defined]


async def answered(pilot: Pilot[Any], timeout: float = 30.0) -> bool:
    """Wait until the app and the visible widgets have handled their messages; return whether they have.

    Replaces `Pilot._wait_for_screen`, which sends another message to each of a hundred widgets, twice for
    each key; every widget then checks whether it must be drawn. Here, widgets without messages are left
    alone. Raises `WaitForScreenTimeout` after `timeout` seconds.
    """
    try:
        screen = pilot.app.screen
    except ScreenStackError:  # the app ends
        return False
    left, none_left = 0, asyncio.Event()

    def one_less() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            none_left.set()

    for pump in (pilot.app, *screen.walk_children(with_self=True)):
        if _is_behind(pump):
            left += pump.call_later(one_less)
    if left == 0:
        return True
    ends = [asyncio.create_task(event.wait()) for event in (none_left, pilot.app._exception_event)]
    _, waiting = await asyncio.wait(ends, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()
    if len(waiting) == len(ends):
        raise WaitForScreenTimeout("Timed out while waiting for widgets to process pending messages.")
    return left == 0


def _is_behind(pump: MessagePump) -> bool:
    """Return whether a widget has messages waiting, or is handling one.

    A crashed widget will never answer, so it does not count.
    """
    if pump._task is not None and pump._task.done():
        return False
    queue = pump._message_queue
    return bool(queue.values or pump._next_callbacks) or not queue.ready_event._waiters


def drawn_at_a_pause(screen: Screen[Any]) -> None:
    """Record that the screen must be drawn when the test pauses and can look at it.

    Replaces Textual's `Screen._compositor_refresh`, which draws after each change, although no terminal shows
    it; that takes a third of a screen test's time. Apps that count their pictures get each of them.
    """
    app = screen.app
    if screen is app.screen and not app.is_inline and type(app)._display is App._display:
        _UNDRAWN.add(screen)
        screen._dirty_widgets.clear()
        app._update_mouse_over(screen)
    else:
        _draw(screen)


async def paused(pilot: Pilot[Any], delay: float | None = None) -> None:
    """Wait until everything is quiet, or for `delay` seconds, and draw a changed screen.

    Replaces `Pilot.pause`. The screen draws itself, so that an error in drawing is a crash of the app.
    """
    await answered(pilot)
    await (settled() if delay is None else asyncio.sleep(delay))
    screen = pilot.app.screen
    screen._on_timer_update()
    if screen in _UNDRAWN and not pilot.app._batch_count:
        _UNDRAWN.discard(screen)
        drawn = asyncio.Event()

        def draw() -> None:
            try:
                _draw(screen)
            finally:
                drawn.set()

        if screen.call_later(draw):
            await asyncio.wait_for(drawn.wait(), 30.0)


def _asked_s() -> float:
    return asked_s("self", without=threading.get_native_id())


def _waits_for_processor() -> bool:
    """Return whether another thread is ready to run; on a busy machine, it may not have run yet."""
    return wants_to_run("self", without=threading.get_native_id())


async def until(pilot: Pilot[Any], met: Callable[[], object], seconds: float = UNTIL_S) -> None:
    """Wait until a thread or a message has made a condition true.

    A condition may ask for a widget that is still to be mounted: Textual adds a pane to the screen before
    the pane's own widgets, and a slow machine shows the time between. Until then, it isn't met.

    Raises `AssertionError` after `seconds`.
    """
    missing: NoMatches | None = None
    for _ in range(int(seconds / ASK_AGAIN_S)):
        await pilot.pause()
        try:
            is_met, missing = met(), None
        except NoMatches as error:
            is_met, missing = False, error
        if is_met:
            await pilot.pause()
            return
        await asyncio.sleep(ASK_AGAIN_S)
    raise AssertionError(
        f"never came about; the screen is {pilot.app.screen!r}:\n{text_of(pilot.app)}"
    ) from missing


def text_of(app: App[Any]) -> str:
    """Return the text on the screen, line by line."""
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips())


def send_keys(app: App[Any], text: str) -> None:
    """Put the characters of `text` into the app's queue at once, as fast typing does."""
    assert app._driver is not None
    for character in text:
        key = KEYS.get(character) or (character if character.isalnum() else _character_to_key(character))
        event = events.Key(key, None if character == "\n" else character)
        event.set_sender(app)
        app._driver.send_message(event)
