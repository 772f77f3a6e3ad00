"""The base class of all gistpoint screens, which close only themselves, always in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar, Protocol, cast

from textual import events, on
from textual._time import get_time  # the clock of the events' own timestamps
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.message_pump import MessagePump
from textual.screen import Screen, ScreenResultType
from textual.widget import Widget

from gistpoint.tui.drafts import DraftPlace, Subject, UnsentTexts

WIDE = 120
"""The width, in cells, from which a screen has the class `-wide`."""
_NARROW, _WIDE = (0, "-narrow"), (WIDE, "-wide")
BREAKPOINTS: list[tuple[int, str]] | None = [_NARROW, _WIDE]


_DRAWN_S = 1.0
"""The seconds within which a visible screen is drawn."""


class _TypingApp(Protocol):
    """The app's interface for typed input: a protocol, because the app's module imports this one."""

    drafts: UnsentTexts

    def hold_keys(self, cancel: Callable[[], bool] | None = None) -> Callable[[], None]:
        """Hold all typing until the returned function is called; Escape calls `cancel`."""
        ...


def with_ancestors(node: MessagePump | None) -> Iterator[MessagePump]:
    """Yield a widget, which may have been removed, and its ancestors, innermost first; nothing for None."""
    while node is not None:
        yield node
        node = node._parent


def is_being_removed(node: MessagePump | None) -> bool:
    """Return whether a widget or one of its ancestors is being removed.

    Such a widget still handles the messages in its queue, while its children are removed one by one.
    """
    return any(isinstance(item, DOMNode) and item._pruning for item in with_ancestors(node))


class BaseScreen(Screen[ScreenResultType]):
    """A screen that is dismissed at most once, and releases its resources however it is closed.

    Modal screens list `ModalScreen` before this class, because Textual takes the styles of the first base
    class only.
    """

    # Bindings of the focused widget take precedence. These scroll the text of a page while the focus is on
    # one of its buttons.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pagedown", "page_text(1)", show=False),
        Binding("pageup", "page_text(-1)", show=False),
    ]
    HELP_PAGE: ClassVar[str]
    """The page of the help that is about this screen. Every screen names its own."""
    MOST_KEYS: ClassVar[int] = 10
    """The maximum number of keys in the bottom line. The help lists all others."""

    def __init__(self, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name, id, classes)
        self._is_left = False
        self.opened_at = get_time()
        """The time at which the screen was made, on the clock of Textual's events."""
        self._last_steps: list[Callable[[], object]] = []
        self._at_keys: list[Callable[[events.Key], object]] = []
        self._was_shown = False

    def fit_width(self, width: int) -> None:
        """Set the width class before the screen is shown. Doing so later would restyle the whole screen."""
        self.set_class(width >= _WIDE[0], _WIDE[1], update=False)
        self.set_class(width < _WIDE[0], _NARROW[1], update=False)

    # Drawing

    def _on_screen_resume(self, event: events.ScreenResume) -> None:
        """Leave the styles as they are when the screen is first shown, since all parts were just styled."""
        if not self._was_shown:
            event.refresh_styles = False
        self._was_shown = True

    def _compositor_refresh(self) -> None:
        """Draw the screen, or have the screen on top draw what has changed below it.

        Textual also keeps the changed regions of a covered screen, and marks that screen to be drawn again.
        Every later change would then draw all these regions again, up to the whole screen: a clock below a
        dialog would send 37 kB a second. When the dialog closes, the screen is drawn as a whole anyway.
        """
        changed = self._compositor._dirty_regions
        if self.app.screen is not self and self in self.app._background_screens:
            regions = list(changed)
            changed.clear()
            self._dirty_widgets.clear()
            if regions:
                self.app.screen.refresh(*regions)
        else:
            super()._compositor_refresh()

    @on(events.DescendantFocus)
    def hold_cursor(self, event: events.DescendantFocus) -> None:
        """Keep the cursor of a focused input from blinking, which would draw its line twice a second."""
        if getattr(event.widget, "cursor_blink", False):
            event.widget.cursor_blink = False  # type: ignore[attr-defined]

    @property
    def title_in_help(self) -> str:
        """The title of the screen's help; if empty, the heading of its page is used."""
        return ""

    # Input

    def action_page_text(self, pages: int) -> None:
        """Scroll the largest part of the screen that can still be scrolled, by whole pages; up if negative.

        When that part has reached its end, the next largest is scrolled, which may be inside or around it.
        """

        def has_more(part: Widget) -> bool:
            return part.scroll_y < part.max_scroll_y if pages > 0 else part.scroll_y > 0

        parts = [part for part in self.query(Widget) if part.allow_vertical_scroll and has_more(part)]
        if not parts:
            return
        text = max(parts, key=lambda part: part.region.area)
        by_cursor = getattr(text, "action_cursor_pages", None)
        if by_cursor is not None:
            by_cursor(pages)
        elif pages > 0:
            text.scroll_page_down(animate=False)
        else:
            text.scroll_page_up(animate=False)

    def input_happened(self, at: float) -> None:
        """Do nothing. Called when a key or the mouse was used, at a time on the clock of Textual's events."""

    def accepts(self, event: events.Event) -> bool:
        """Return whether the screen accepts an event, which may have been meant for the previous screen."""
        return True

    def when_typed(self, do: Callable[[events.Key], object]) -> None:
        """Have a function called with each key that is handed to this screen, before it takes effect."""
        self._at_keys.append(do)

    def typed(self, event: events.Key) -> None:
        """Call the functions of `when_typed` with a key that is about to take effect."""
        for do in self._at_keys:
            do(event)

    def hold_keys(self, cancel: Callable[[], bool] | None = None) -> Callable[[], None]:
        """Hold all typing until the returned function is called, because a prompt is about to open.

        A wait that may be long needs a `cancel`, which Escape calls.
        """
        return cast("_TypingApp", self.app).hold_keys(cancel)

    def focus_later(self, widget: Widget) -> None:
        """Focus a widget after the next drawing, when it can take the focus; hold all typing until then.

        A screen that is covered by then is not drawn, so the keys are released after a second in any case.
        """
        release_keys = self.hold_keys()

        def focus_and_release() -> None:
            widget.focus()
            release_keys()

        self.call_after_refresh(focus_and_release)
        self.set_timer(_DRAWN_S, release_keys)

    @property
    def drafts_about(self) -> Subject:
        """The person who types into this screen and its dialogs, and the subject of the text.

        If the subject is empty, unsent text is not written to disk, where other subjects could get it.
        """
        return "", ""

    def draft(self, asked: str, *, lasting: bool = True) -> DraftPlace:
        """Return the place of the text that was typed in answer to a question and not sent.

        Unless `lasting`, the end of the program deletes it.
        """
        by, about = self.drafts_about
        subject = by, about or type(self).__name__
        return cast("_TypingApp", self.app).drafts.place(subject, asked, lasting=lasting and bool(about))

    def forget_drafts(self) -> None:
        """Delete all unsent text about the screen's subject."""
        cast("_TypingApp", self.app).drafts.forget(self.drafts_about)

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
        """Do nothing. Subclasses save what is pending, and record nothing afterwards.

        It may be called several times.
        """

    def leave(self) -> None:
        """Stop, and release all resources.

        The app calls this when the screen is dismissed, popped or replaced, and when the program ends or
        fails. Only the first call has an effect.
        """
        try:
            if not self._is_left:
                self.stop()
        finally:
            self._release()

    def _release(self) -> None:
        if not self._is_left:
            self._is_left = True
            for do in self._last_steps:
                do()

    def on_unmount(self) -> None:
        """Release all resources, if `leave` was not called.

        At this point, the content of the widgets is no longer available.
        """
        self._release()
