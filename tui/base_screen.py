"""The base class of all gistpoint screens: they close only themselves, and are always left the same way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast

from textual import events
from textual.await_complete import AwaitComplete
from textual.screen import Screen, ScreenResultType

from gistpoint.tui.drafts import DraftPlace, UnsentTexts


class _HoldsKeys(Protocol):
    def wait(self) -> Callable[[], None]: ...


class _App(Protocol):
    """What a screen needs of its app, which knows the screens."""

    drafts: UnsentTexts

    @property
    def type_ahead(self) -> _HoldsKeys: ...


WIDE = 120
"""The width, in cells, from which a screen has the class `-wide`."""
_NARROW, _WIDE = (0, "-narrow"), (WIDE, "-wide")
BREAKPOINTS: list[tuple[int, str]] | None = [_NARROW, _WIDE]


class BaseScreen(Screen[ScreenResultType]):
    """A screen that is dismissed at most once, and releases its resources however it is closed.

    Modal screens name `ModalScreen` before this class: Textual takes the styles of the first base class only.
    """

    def __init__(self, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name, id, classes)
        self._is_left = False
        self._last_steps: list[Callable[[], object]] = []
        self._at_keys: list[Callable[[events.Key], object]] = []

    def fit_width(self, width: int) -> None:
        """Set the width class before the screen is shown. Doing so later would restyle the whole screen."""
        self.set_class(width >= _WIDE[0], _WIDE[1], update=False)
        self.set_class(width < _WIDE[0], _NARROW[1], update=False)

    # Input

    def input_happened(self, at: float) -> None:
        """Record that a key or the mouse was used, at a time on the clock of Textual's events."""

    def takes(self, event: events.Event) -> bool:
        """Return whether the screen accepts an event, which may have been meant for the previous screen."""
        return True

    def when_typed(self, do: Callable[[events.Key], object]) -> None:
        """Have a function called with each key that is handed to this screen, before it takes effect."""
        self._at_keys.append(do)

    def typed(self, event: events.Key) -> None:
        """Announce a key that is about to take effect."""
        for do in self._at_keys:
            do(event)

    def hold_keys(self) -> Callable[[], None]:
        """Hold what is typed until the returned function is called, because a prompt is about to open."""
        return cast("_App", self.app).type_ahead.wait()

    @property
    def drafts_about(self) -> str:
        """What the texts typed into this screen's dialogs are about, such as an attempt or a run."""
        return type(self).__name__

    def draft(self, asked: str) -> DraftPlace:
        """Return the place of the texts that were typed in answer to a question and not sent."""
        return cast("_App", self.app).drafts.place(self.drafts_about, asked)

    # Leaving

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close the screen with a result if it is on top; otherwise, do nothing.

        Textual's method closes the screen that is on top: of two keys in the queue, the first would answer a
        dialog, and the second would close the screen below it.
        """
        return super().dismiss(result) if self.is_active else AwaitComplete()

    def when_left(self, do: Callable[[], object]) -> None:
        """Have a function called once when the screen is left, after `stop`, to release a resource."""
        self._last_steps.append(do)

    def stop(self) -> None:
        """Save what is pending. Nothing is recorded after that. May be called several times."""

    def leave(self) -> None:
        """Stop, and release all resources.

        The app calls this when the screen is dismissed, popped or replaced, and when the program ends or
        fails. Only the first call has an effect.
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
        """Release all resources, if `leave` was not called.

        At this point, the content of the widgets is no longer available.
        """
        self._let_go()
