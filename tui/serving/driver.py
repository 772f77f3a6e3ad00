"""The driver of a participant's program: Textual's for browsers, with limited input and a clean end."""

from __future__ import annotations

import os
import signal
from codecs import getincrementaldecoder
from threading import Event

from textual._xterm_parser import BRACKETED_PASTE_START, XTermParser
from textual.drivers._byte_stream import ByteStream
from textual.drivers.web_driver import WebDriver, _ExitInput
from textual.events import Paste
from textual.message import Message
from textual.widget import Widget

MOST_WAITING = 128
"""The number of input messages that are posted before the app has to handle them."""
MOST_PASTED = 256 * 1024
"""A paste that has not ended after this many characters is dropped."""
_CHECK_S = 1.0


class _Question:
    """A message that asks a widget whether it has handled the earlier ones."""

    def __init__(self) -> None:
        self.handled = Event()
        self.target: Widget | None = None
        """The widget that answers; None until the app has passed the question on."""


class ServedDriver(WebDriver):
    """A driver that reads no more input than the app handles, and drops input after the program has ended."""

    _posted = 0

    def send_message(self, message: Message) -> None:
        """Post a message from the input thread. Wait if the app has not handled the earlier ones.

        Textual's version creates a coroutine for the event loop, which nobody awaits after the loop is
        closed, so that Python writes a warning to the server's log. It also posts without a limit: a pasted
        megabyte would become a million messages.
        """
        self._app.post_message(message)
        self._posted += 1
        if self._posted % MOST_WAITING == 0:
            self._wait_for_app()

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        """Handle a message from the server. It counts as input."""
        super().on_meta(packet_type, payload)
        self._posted += 1
        if self._posted % MOST_WAITING == 0:
            self._wait_for_app()

    def _wait_for_app(self) -> None:
        """Wait until a message posted now has reached the focused widget, or until the app ends."""
        question = _Question()
        asked = self._app.call_later(self._pass_on, question)
        while asked and self._app.is_running and not self.exit_event.is_set():
            if question.handled.wait(_CHECK_S):
                return
            # Ask another widget only if this one was removed: a busy one answers later.
            if question.target is not None and not question.target.is_running:
                question = _Question()
                asked = self._app.call_later(self._pass_on, question)

    def _pass_on(self, question: _Question) -> None:
        """Ask the widget that gets the keys to confirm that it has handled the earlier ones.

        Runs in the app's thread.
        """
        question.target = self._app.focused or self._app.screen
        if not question.target.call_later(question.handled.set):
            question.handled.set()

    def run_input_thread(self) -> None:
        """Read input and post it as messages until the server closes it. Then the program ends."""
        try:
            self._read_input()
        except _ExitInput:
            pass
        finally:
            self._input_reader.close()
            # the program no longer gets input, so nothing else could end it
            if not self.exit_event.is_set():
                os.kill(os.getpid(), signal.SIGTERM)

    def _read_input(self) -> None:
        parser, paste = XTermParser(), _Paste()
        packets, decode = ByteStream(), getincrementaldecoder("utf-8")("replace").decode
        for data in self._input_reader:
            for kind, payload in packets.feed(data) if data else ():
                if kind != "D":
                    self._on_meta(kind, payload)
                    continue
                text, pasted = decode(payload), False
                for event in parser.feed(text):
                    pasted |= isinstance(event, Paste)
                    self.process_message(event)
                if paste.too_long(text, ended=pasted):
                    parser, paste = XTermParser(), _Paste()
            for event in parser.tick():
                self.process_message(event)


class _Paste:
    """The length of a paste that may be in progress. Textual's parser holds it until it ends."""

    def __init__(self) -> None:
        self._begun, self._length, self._last = False, 0, ""

    def too_long(self, text: str, *, ended: bool) -> bool:
        """Count more input, and return whether a paste in it is too long.

        `ended` means that the parser has returned a paste. Only the parser knows where a paste ends, since
        the marks count only if they come without a pause. A start that did not count is still treated as one:
        at worst, the parser is then restarted after a lot of typing.
        """
        begins = BRACKETED_PASTE_START in self._last + text
        self._last = text[1 - len(BRACKETED_PASTE_START) :]
        if ended or not self._begun:
            self._begun, self._length = begins, 0
        self._length += len(text)
        return self._begun and self._length > MOST_PASTED
