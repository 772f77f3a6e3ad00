"""The place in the text at which a solver left an attempt, saved outside the record.

It therefore affects neither results nor exports (decision 100).
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Protocol, cast

import msgspec

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.identity import PERSON
from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.decoding import decodable
from gistpoint.core.locations import Locations, read_regular
from gistpoint.core.logs import replace_file
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.known import last_source, shown_file, shown_function
from gistpoint.tui.screens.solve.interruptions import How
from gistpoint.tui.screens.solve.kind import EditorPane
from gistpoint.tui.screens.solve.reading import CodePane


class _App(Protocol):
    locations: Locations


class TextPlace(msgspec.Struct, frozen=True):
    """A place in text: `name` is a path or `path::qualname`, `top` is the first visible row."""

    name: str
    line: int
    column: int
    top: int


class LeftPlace(msgspec.Struct, frozen=True):
    """The places in the code and in the editor after a number of calls."""

    calls: int
    code: TextPlace | None = None
    editor: TextPlace | None = None


class PlaceKeeper:
    """The saving and restoring of the place in a person's attempt."""

    def __init__(self, screen: BaseScreen[How], attempt: Attempt) -> None:
        self._screen, self._attempt = screen, attempt

    @cached_property
    def _file(self) -> Path:
        folder = cast("_App", self._screen.app).locations.left_places
        return folder / f"{sha256_of_text(self._attempt.state.attempt_id)[:32]}.json"

    @cached_property
    def _left(self) -> LeftPlace:
        nowhere = LeftPlace(len(self._attempt.state.calls))
        try:
            found = msgspec.json.decode(read_regular(self._file), type=decodable(LeftPlace))
        except (OSError, ValueError, RecursionError):
            return nowhere
        # Another number of calls means that the attempt was continued elsewhere.
        return found if found.calls == nowhere.calls else nowhere

    def show_code(self, pane: CodePane) -> None:
        """Show the text that was being read, at its place; if there is none, the last shown source."""
        state = self._attempt.state
        place, last = self._left.code, last_source(state)
        if place is not None:
            shown = shown_function(state, place.name) if "::" in place.name else shown_file(state, place.name)
            if shown is not None:
                pane.show(shown)
                pane.view.go_to(place.line, place.column)
                pane.call_after_refresh(pane.view.place, 0, place.top)
                return
        if last is not None:
            pane.show(last)

    def open_editor(self, pane: EditorPane) -> None:
        """Open the function that was being edited, with the cursor at its place."""
        place = self._left.editor
        if place is None or not (place.name == pane.buffer or pane.start_of(place.name)):
            return
        pane.open(place.name)
        if (place.line, place.column) != pane.editor.cursor_location:
            pane.editor.move_cursor((place.line, place.column))
        pane.call_after_refresh(pane.editor.scroll_to, y=place.top, animate=False)

    def keep(self, code: CodePane, editor: EditorPane) -> None:
        """Save the place in a person's attempt, or delete it and unsent text if the attempt has ended.

        An error while writing is ignored.
        """
        state = self._attempt.state
        if not self._screen.is_mounted or state.driver != PERSON:
            return
        if state.ended:
            self._file.unlink(missing_ok=True)
            self._screen.forget_drafts()
            return
        read, written = self._left.code, self._left.editor
        if code.is_mounted and code.shown is not None:
            view = code.view
            read = TextPlace(code.shown.name, view.cursor_line, view.cursor_column, view.scroll_offset.y)
        if editor.is_mounted and editor.buffer:
            row, column = editor.editor.cursor_location
            written = TextPlace(editor.buffer, row, column, editor.editor.scroll_offset.y)
        with suppress(OSError):
            place = LeftPlace(len(state.calls), read, written)
            self._file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self._file, msgspec.json.encode(place), durable=False)
