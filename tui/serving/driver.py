"""The driver of a participant's program: Textual's for browsers, quiet at the end."""

from __future__ import annotations

from textual.drivers.web_driver import WebDriver
from textual.message import Message


class ServedDriver(WebDriver):
    """Drops what is still typed when the program has ended."""

    def send_message(self, message: Message) -> None:
        """Post a message from the thread that reads the input.

        Textual's own makes a coroutine for the event loop, which nobody awaits once the loop is closed; Python then
        warns of that in the server's log.
        """
        self._app.post_message(message)
