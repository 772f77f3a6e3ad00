"""What belongs together is drawn at once."""

from __future__ import annotations

from contextlib import ExitStack

from textual.app import App
from textual.timer import Timer

PATIENCE_S = 0.02
"""How long a change is held back for what belongs to it."""


class DrawnTogether:
    """Holds a change back until what belongs to it is there: drawn alone, that would come up to two frames later."""

    def __init__(self, app: App[None], patience_s: float = PATIENCE_S) -> None:
        self._app = app
        self._patience_s = patience_s
        self._held = ExitStack()
        self._timer: Timer | None = None

    def hold(self) -> None:
        """Draw nothing until `release`, or until patience ends."""
        if self._timer is None:
            self._held.enter_context(self._app.batch_update())
            self._timer = self._app.set_timer(self._patience_s, self.release)

    def release(self) -> None:
        """Draw."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
            self._held.close()
            self._app.screen.check_idle()
