"""Ensures that the keys after a key go to the screen that it opens, however slow the machine.

Textual passes each key at once to the widget that has the focus. The key then climbs from queue to queue up
to the app, which runs its action. Keys that are typed quickly would all reach the widget that had the focus
before the first of them, and a search pattern would be executed as a series of commands (decision 126).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from textual import events
from textual._queue import Queue
from textual._time import get_time  # the clock of the events' own timestamps
from textual.app import App
from textual.errors import NoWidget
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.bindings.words import FREE

_ROUNDS_FROM_SOURCE = 2
"""The rounds that start at the widget that got the event, because its messages begin in its own queue."""
_QUIET_ROUNDS = 3
"""The rounds in a row that must leave screen and focus unchanged.

A command of the palette needs the most: field, palette, callback, command, screen.
"""
_OVERDUE_S = 0.05
"""The seconds between checks whether a marker was lost, as it is if its widget was removed."""

_LOST_S = 10.0
"""The seconds after which a marker is given up; no queue of an app that still answers takes that long."""

_PATIENCE_S = 1.0
"""The seconds after which a wait must not lock the user out: the mouse and the key that quits work again."""
_QUIT = "leave_program"
"""The action of the key that quits."""
_MOVES = FREE - {"enter", "space", "tab", "shift+tab"}
UserInput = events.InputEvent | events.Paste


class Followed(Message):
    """A marker that follows an event through the same queues up to the app, behind all that it has caused."""


@dataclass(eq=False)
class _Wait:
    """The wait for a screen that a thread is about to open."""

    screen: Screen[Any] | None
    """The screen on top when the wait began; keys typed while it stays there belong to the next one."""
    cancel: Callable[[], bool] | None
    """The function that Escape calls, which returns whether it could cancel; None if nothing can be."""
    since: float
    """The time of the beginning, on the clock of Textual's events."""


class TypeAhead:
    """A queue of the user's events. Each is delivered after the effects of the previous one."""

    def __init__(self, app: App[Any], deliver: Callable[[events.Event], Awaitable[None]]) -> None:
        self._app, self._deliver = app, deliver
        self._held: deque[UserInput] = deque()
        self._at_once: list[UserInput] = []
        """The events caused by the event that is being followed; they are delivered before the held ones."""
        self._marker: Followed | None = None
        """The marker of the event that is being followed; None if there is none."""
        self._source: Widget | None = None
        self._path: tuple[MessagePump, ...] = ()
        """The widgets whose queues the marker passes."""
        self._rounds = self._quiet = 0
        self._typed_on: Screen[Any] | None = None
        self._seen: tuple[Screen[Any] | None, Widget | None] = (None, None)
        self._waits: list[_Wait] = []
        """The actions that wait for a thread before they open something."""

    @property
    def holds(self) -> bool:
        """Whether an event that arrives now has to wait."""
        return self._marker is not None or bool(self._waits)

    def was_typed_on(self, screen: Screen[Any]) -> bool:
        """Return whether the latest event was handed to this screen; also true before the first event."""
        return self._typed_on in (None, screen)

    async def take(self, event: UserInput) -> None:
        """Deliver an event; if an earlier one may still open something, hold it until then."""
        if event in self._at_once:
            self._at_once.remove(event)
            if not self._cancels(event):
                await self._pass_on(event)
        elif self._marker is not None or self._is_for_later(event):
            self._held.append(event)
        elif not self._cancels(event):
            await self._pass_on(event)

    def at_once(self, event: UserInput) -> None:
        """Have an event delivered before those that are held: the event being followed has caused it."""
        self._at_once.append(event)

    def wait(self, cancel: Callable[[], bool] | None = None) -> Callable[[], None]:
        """Hold all events until the returned function is called.

        An action calls this if a thread must end before the action opens something. Escape then calls
        `cancel`, which returns whether it could cancel.
        """
        wait = _Wait(_screen_and_focus(self._app)[0], cancel, get_time())
        self._waits.append(wait)

        return partial(self._end, wait)

    def _is_for_later(self, event: UserInput) -> bool:
        """Return whether an event belongs to something that an action is about to open."""
        top = _screen_and_focus(self._app)[0]
        return any(_has_to_wait(event, wait, top) for wait in self._waits)

    def _cancels(self, event: UserInput) -> bool:
        """If the event is the key that cancels what is waited for, do that. Return whether it is that key."""
        top = _screen_and_focus(self._app)[0]
        meant = [wait for wait in self._waits if _is_key_to_cancel(event, wait, top)]
        for wait in meant:
            if wait.cancel is not None and wait.cancel():
                # Keys typed before Escape were meant for the screen that will not open now.
                self._held = deque(held for held in self._held if held.time > event.time)
                self._end(wait)
        return bool(meant)

    def _end(self, wait: _Wait) -> None:
        if wait in self._waits:
            self._waits.remove(wait)
            self._follow(None)

    def forget(self) -> None:
        """Drop the held events, and stop waiting: a crash closes the screens that they were meant for."""
        self._held.clear()
        self._at_once.clear()
        self._waits.clear()
        self._marker = None

    async def passed(self, marker: Followed) -> None:
        """Handle the arrival of a marker: send another one or, after enough quiet rounds, the held events."""
        if marker is not self._marker:
            return
        self._rounds += 1
        now = _screen_and_focus(self._app)
        self._quiet = self._quiet + 1 if now == self._seen else 0
        self._seen = now
        if self._quiet < _QUIET_ROUNDS:
            self._send()
            return
        self._marker = self._source = None
        while self._marker is None and (event := self._next_held()) is not None:
            if not self._cancels(event):
                await self._pass_on(event)

    def _next_held(self) -> UserInput | None:
        """Take the first held event that can be delivered now; None if there is none.

        While an action waits for a thread, Escape overtakes the events meant for the next screen.
        """
        event = next((event for event in self._held if not self._is_for_later(event)), None)
        if event is not None:
            self._held.remove(event)
        return event

    async def _pass_on(self, event: UserInput) -> None:
        source = self._widget_of(event)
        followed = _may_open(event, source)
        self._typed_on = _screen_and_focus(self._app)[0]
        if isinstance(event, events.Key) and isinstance(self._typed_on, BaseScreen):
            self._typed_on.typed(event)
        await self._deliver(event)
        if followed:
            self._follow(source)

    def _widget_of(self, event: UserInput) -> Widget | None:
        """Return the widget that gets an event; None if there is none."""
        if not isinstance(event, events.MouseEvent):
            return _screen_and_focus(self._app)[1]
        if self._app.mouse_captured is not None:
            return self._app.mouse_captured
        try:
            return self._app.get_widget_at(event.x, event.y)[0]
        except NoWidget:
            return None

    def _follow(self, source: Widget | None) -> None:
        self._source, self._rounds, self._quiet = source, 0, 0
        self._seen = _screen_and_focus(self._app)
        self._send()

    def _send(self) -> None:
        """Send a marker through the queues of all widgets that may still act on the event."""
        source = self._source if self._rounds < _ROUNDS_FROM_SOURCE else None
        screen, focused = _screen_and_focus(self._app)
        start = next(
            (one for one in (source, focused, screen) if one is not None and _is_alive(one)), self._app
        )
        self._path = tuple(start.ancestors_with_self)
        marker = self._marker = Followed()
        # Textual does not pass a message on to its sender, by default the widget whose handler is running.
        marker.set_sender(self._app)
        # An idle widget causes nothing more: the marker starts at the first busy one, and bubbles up like any
        # message.
        next(filter(_is_busy, self._path), self._app).post_message(marker)
        loop = asyncio.get_running_loop()
        loop.call_later(_OVERDUE_S, self._replace_lost, marker, loop.time() + _LOST_S)

    def _replace_lost(self, marker: Followed, lost_at: float) -> None:
        """Send another marker if this one was lost, for instance with a widget that has been removed.

        From `lost_at` on, the app gets the marker directly: keys that are held forever would be worse than
        keys that go to the wrong widget.
        """
        if marker is not self._marker or not _runs(self._app):
            return
        loop = asyncio.get_running_loop()
        on_its_way = all(_runs(pump) for pump in self._path) and any(map(_is_busy, self._path))
        if loop.time() > lost_at:
            self._app.post_message(marker)
        elif on_its_way:
            loop.call_later(_OVERDUE_S, self._replace_lost, marker, lost_at)
        else:
            self._send()


def _may_open(event: UserInput, source: Widget | None) -> bool:
    """Return whether an event can change which widget gets the next one.

    Text typed into a field can't. Nor can a key that moves a cursor, so it is not slowed when held down.
    """
    match event:
        case events.Key(key=key) if key in _MOVES and source is not None:
            return False
        case events.Key():
            from textual.widgets import TextArea  # not needed before the first paint (decision 37)

            writes = isinstance(source, Input) or (isinstance(source, TextArea) and not source.read_only)
            return not (writes and event.is_printable)
        case events.MouseDown() | events.MouseUp():
            return True
        case _:
            return False


def _has_to_wait(event: UserInput, wait: _Wait, top: Screen[Any] | None) -> bool:
    """Return whether an event has to wait for a screen that an action is about to open."""
    if isinstance(top, BaseScreen) and top is not wait.screen and top.opened_at > wait.since:
        # Had the action opened the screen on top, the wait would be over. So it is another one, for example
        # the question whether code may run without isolation: later events answer it, earlier ones wait.
        return event.time < top.opened_at + _PATIENCE_S
    if _is_key_to_cancel(event, wait, top):
        return False
    works_again = isinstance(event, events.MouseEvent) or _action_of(event, top) == _QUIT
    return not (works_again and event.time >= wait.since + _PATIENCE_S)


def _is_key_to_cancel(event: UserInput, wait: _Wait, top: Screen[Any] | None) -> bool:
    if wait.cancel is None or top is not wait.screen or not isinstance(event, events.Key):
        return False
    return event.key == "escape" or _action_of(event, top) == "cancel"


def _action_of(event: UserInput, screen: Screen[Any] | None) -> str:
    """Return the action of a key on a screen; empty if the key has none."""
    if screen is None or not isinstance(event, events.Key):
        return ""
    bound = screen.active_bindings.get(event.key)
    return bound.binding.action if bound is not None else ""


def _screen_and_focus(app: App[Any]) -> tuple[Screen[Any] | None, Widget | None]:
    stack = app.screen_stack
    return (stack[-1], stack[-1].focused) if stack else (None, None)


def _is_busy(pump: MessagePump) -> bool:
    """Return whether a widget has messages to handle, or is handling one.

    An idle widget waits for its next message; Textual and asyncio have no public property for that.
    """
    queue: Queue[Message | None] = pump._message_queue
    waits = bool(queue.ready_event._waiters)
    return not (queue.empty() and waits)


def _is_alive(widget: Widget) -> bool:
    return widget.is_attached and all(_runs(pump) for pump in widget.ancestors_with_self)


def _runs(pump: MessagePump) -> bool:
    """Return whether a widget still handles messages, for which Textual has no public property."""
    return not (pump._closing or pump._closed)
