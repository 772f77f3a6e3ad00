"""The base of every gistpoint screen: it closes only itself, and is left in one way, whatever closes it."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.await_complete import AwaitComplete
from textual.screen import Screen, ScreenResultType

WIDE = 120
"""The width in cells from which a screen has the class `-wide`."""
_NARROW, _WIDE = (0, "-narrow"), (WIDE, "-wide")
BREAKPOINTS: list[tuple[int, str]] | None = [_NARROW, _WIDE]


class BaseScreen(Screen[ScreenResultType]):
    """A screen that is dismissed at most once, and releases what it holds however it is closed.

    A modal screen names `ModalScreen` before this class: Textual takes styles only from the first base.
    """

    def __init__(self, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name, id, classes)
        self._is_left = False
        self._last_steps: list[Callable[[], object]] = []

    def fit_width(self, width: int) -> None:
        """Set the width class before the screen is shown. Later, the class would restyle the whole screen."""
        self.set_class(width >= _WIDE[0], _WIDE[1], update=False)
        self.set_class(width < _WIDE[0], _NARROW[1], update=False)

    # Input

    def input_happened(self, at: float) -> None:
        """Note that a key or the mouse was used, on the clock of Textual's events."""

    def takes(self, event: events.InputEvent) -> bool:
        """Return whether the screen accepts an event. It may refuse input meant for the previous screen."""
        return True

    # Leaving

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close the screen with a result if it is on top; otherwise do nothing.

        Textual's method closes whatever is on top. Two keys waiting in one queue would answer a dialog, and
        then close the screen below it.
        """
        return super().dismiss(result) if self.is_active else AwaitComplete()

    def when_left(self, do: Callable[[], object]) -> None:
        """Call a function once after `stop` when the screen is left, to release what it works on."""
        self._last_steps.append(do)

    def stop(self) -> None:
        """Save what is pending. Nothing is recorded afterwards. May be called more than once."""

    def leave(self) -> None:
        """Stop, and release everything.

        The app calls it when the screen is dismissed, popped or replaced, and when the program ends or fails.
        Only the first call counts.
        """
        try:
            if not self._is_left:
                self.stop()
        finally:
            self._let_go()

    def _let_go(self) -> None:
        if not self._is_left:
            self._is_left = True
            for do in self._last_steps:
                do()

    def on_unmount(self) -> None:
        """Release everything if `leave` was not called.

        The widgets can't be asked for their content any more.
        """
        self._let_go()
