"""The question of consent, asked in a dialog on behalf of a thread that waits for the answer."""

from __future__ import annotations

import threading

from textual.app import App

from gistpoint.tui.commands.consent import WHAT_IT_MEANS
from gistpoint.tui.screens.dialogs.confirm import ConfirmDialog

_TEXT = f"{{why}}\n\n{WHAT_IT_MEANS} Your answer holds for this machine from now on."
_WAIT_SECONDS = 0.2


class ConsentDesk:
    """Asks in an app; a thread may call `ask`, the event loop must not."""

    def __init__(self, app: App[object]) -> None:
        self._app = app

    def ask(self, why_not: str) -> bool:
        """Show the question and wait; an app that closes has not consented."""
        answered = threading.Event()
        answers: list[bool | None] = []

        def done(yes: bool | None) -> None:
            answers.append(yes)
            answered.set()

        dialog = ConfirmDialog(
            "Run without isolation?", _TEXT.format(why=why_not), yes="Run it all the same", no="Don't", careful=True
        )
        self._app.call_from_thread(self._app.push_screen, dialog, done)
        while not answered.wait(_WAIT_SECONDS):
            if not self._app.is_running:
                return False
        return bool(answers and answers[0])
