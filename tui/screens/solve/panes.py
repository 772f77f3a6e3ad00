"""The panes of the solve screen: their table, tabs and area, and the messages to the screen."""

from __future__ import annotations

from asyncio import Lock
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widget import Widget

from gistpoint.core.attempts.events import Pane
from gistpoint.core.attempts.state import AttemptState
from gistpoint.tui.keys import KEYS, key_named, shown_key
from gistpoint.tui.widgets.code_view import CodeView
from gistpoint.tui.widgets.frames import Framed, framed
from gistpoint.tui.widgets.name_tabs import NameTabs
from gistpoint.tui.widgets.splitter import Splits

WIDE, VERY_WIDE = 110, 150
"""The widths, in cells, from which the files stay visible and from which the editor fits next to the code."""
HIGH = 34
"""The height, in lines, from which the results or the editor stay visible below the text being read."""
EDITOR_COLUMNS = 100
"""The minimum width, in columns, of an editor next to the code: a line of code, its number and the frame."""
CODE_COLUMNS = 70
"""The width of the code next to the editor, in columns, below which the files are hidden."""


@dataclass(frozen=True, slots=True)
class PanePlace:
    """A pane: the widget that takes its keys, its name in the record, and its region."""

    focus: str
    event: Pane
    region: Literal["files", "reading", "editor", ""] = "reading"
    id: str = ""
    """The id of its widget among the reading panes, if it differs from the name."""


PANES: Mapping[str, PanePlace] = {
    "brief": PanePlace("#brief-view", Pane.BRIEF),
    "files": PanePlace("#known", Pane.TREE, "files"),
    "code": PanePlace("#code-view", Pane.CODE),
    "console": PanePlace("#console-line", Pane.CONSOLE, ""),
    "editor": PanePlace("#function-editor", Pane.EDITOR, "editor"),
    "results": PanePlace("#calls", Pane.RESULT),
    "notes": PanePlace("#notes", Pane.NOTES, id="notes-pane"),
}
"""The panes that every attempt has, by name."""


def pane_around(widget: Widget, panes: Mapping[str, PanePlace]) -> str:
    """Return the name of the pane around a widget; empty if there is none."""
    names = (node.id.removesuffix("-pane") for node in widget.ancestors_with_self if node.id is not None)
    return next((name for name in names if name in panes), "")


class CallRequested(Message):
    """A message that asks the screen to call a tool.

    `priced` means that the solver has seen the price. Otherwise, the screen shows the price, and calls the
    tool when it is asked a second time.
    """

    def __init__(self, tool: str, arguments: Mapping[str, str], *, priced: bool = False) -> None:
        super().__init__()
        self.tool = tool
        self.arguments = arguments
        self.priced = priced


class SubmitRequested(Message):
    """A request to the screen to submit the code in the editor."""


class SourceRequested(Message):
    """A message that asks the screen to show a file or function (`path::qualname`).

    A known one is shown free of charge, any other one by a call. `priced` means that the solver has seen the
    price of that call.
    """

    def __init__(self, name: str, *, priced: bool = False) -> None:
        super().__init__()
        self.name = name
        self.priced = priced


class FunctionRequested(Message):
    """A request to edit a function (`path::qualname`) at a line of its file, or to mark it as suspect."""

    def __init__(self, name: str, what: Literal["edit", "suspect"], *, line: int = 0) -> None:
        super().__init__()
        self.name = name
        self.what = what
        self.line = line


class StatePane(Vertical):
    """A pane that shows a part of the attempt's state."""

    width_needed = 0
    """The width in cells that the content needs, with the frame; 0 if the content adapts to any width."""

    def set_room(self, width: int) -> None:
        """Arrange the parts for a width in cells, before they are drawn."""

    def update_from(self, state: AttemptState) -> None:
        """Show a new state."""
        raise NotImplementedError


class BriefRead(Message):
    """A message that the solver has finished reading the brief."""


class RoomNeeded(Message):
    """A message that the content of a pane now needs a different width."""


class PaneArea(Splits):
    """The regions of the solve screen, arranged for reading or for writing (decision 127).

    The files are on the left. Of the rest, the upper part shows the text being read, and the lower part
    shows the results or the editor, whichever was used last. Both parts have the whole width, so that no line
    is wrapped again when one of them opens or closes. In a small terminal, one pane is shown at a time. On
    request, the editor is next to the code. A pane is mounted when it is first shown.
    """

    def __init__(
        self,
        panes: Mapping[str, PanePlace],
        files: StatePane,
        read: Sequence[Widget],
        editor: Widget,
        *,
        first: str = "",
        made: Callable[[Widget], None] = lambda _: None,
    ) -> None:
        """`read` are the reading panes, with the results last. `first` is the name of the pane to show first.

        Without `first`, all panes are mounted at once, and the editor is next to the code. `made` is called
        with each pane that is mounted later.
        """
        super().__init__(id="work")
        self._panes = panes
        self._files, self._read, self._editor = files, read, editor
        self._made = made
        self._first = first
        self._region = "reading"
        self._upper = first or next(pane for pane, place in panes.items() if place.region == "reading")
        self._column = Splits(
            *(widget for widget in read if not first or widget.id == self.id_of(first)),
            vertical=True,
            id="reading",
        )
        self._divided = Splits(self._column, *(() if first else (editor,)), vertical=True, id="divided")
        self._mounting = Lock()
        self.repeats: Callable[[], bool] = lambda: False
        """A function that returns whether the code is just the function in the editor."""
        self.current = self._upper
        """The name of the current reading pane."""
        self._writing = False
        """Whether the editor was used more recently than the results."""
        self.editing = not first
        """Whether the editor was opened."""
        self.at_side = not first
        """Whether the editor is next to the code, if there is room, rather than below it."""
        self.brief_alone = False
        """Whether only the brief is visible."""

    def id_of(self, pane: str) -> str:
        """Return the id of a reading pane's widget."""
        return self._panes[pane].id or pane

    def compose(self) -> ComposeResult:
        """Lay out the regions for the current size of the screen."""
        self.lay_out()
        if not self._first or self.app.size.width >= WIDE:
            yield self._files
        yield self._divided

    async def make(self, pane: str) -> None:
        """Mount a pane if it is not mounted yet."""
        region = self._panes[pane].region
        if region == "files":
            await self._mount(self._files, self, self._divided)
        elif region == "editor":
            await self._mount(self._editor, self._divided)
        elif region == "reading":
            widget = next(widget for widget in self._read if widget.id == self.id_of(pane))
            last = widget is self._read[-1]
            await self._mount(widget, self._column, None if last else self._column.children[0])

    async def _mount(self, widget: Widget, into: Widget, before: Widget | None = None) -> None:
        async with self._mounting:  # of two callers at once, both need the complete pane
            if not widget.is_attached:
                widget.display = False
                await into.mount(widget, before=before)
                self._made(widget)

    def show(self, pane: str) -> None:
        """Show a mounted pane."""
        place = self._panes[pane]
        if place.region == "reading":
            self.current = pane
            if self.id_of(pane) == self._read[-1].id:
                self._writing = False
            else:
                self._upper = pane
        elif place.region == "editor":
            self._writing = True
        if place.region:
            self._region = place.region
            self.lay_out()

    def text_meant(self, focused: Widget | None) -> CodeView | None:
        """Return the view that a key is meant for: the focused one, visible code, or any visible text.

        None if there is none.
        """
        if isinstance(focused, CodeView):
            return focused
        shown = [view for view in self.query(CodeView) if view.is_on_screen]
        return next((view for view in shown if view.id == "code-view"), next(iter(shown), None))

    def show_alone(self, *, brief: bool) -> None:
        """Show only the brief or, if `brief` is False, all panes that fit."""
        self.brief_alone = brief
        self.lay_out()

    def turn_editor(self) -> str:
        """Put the editor next to the code, or below it.

        Return a notice if that is not visible yet; otherwise, an empty string.
        """
        self.at_side = not self.at_side
        self.lay_out()
        if self.app.size.width < VERY_WIDE:
            return f"The editor fits next to the code from {VERY_WIDE} columns on."
        where = "next to" if self.at_side else "below"
        return "" if self.editing else f"The editor will open {where} the code."

    def lay_out(self) -> None:
        """Show as many panes as fit, including the one that was requested last."""
        wide, high, at_side = self._fitting()
        files_fit = wide and not (at_side and self._files_are_in_the_way)
        self._files.display = files_fit or self._region == "files"
        if at_side:
            # The column with the text being read and the results is always visible.
            self._editor.display = self._column.display = True
        elif high:
            self._editor.display, self._column.display = self._writing, not self._repeated
        else:
            self._editor.display = self._region == "editor"
            self._column.display = self._region == "reading" or (wide and self._region == "files")
        # An empty container would take half of a narrow terminal from the files.
        self._divided.display = self._editor.display or self._column.display
        with_results = high and (at_side or not self._writing)
        self._lay_out_reading(high=high, with_results=with_results)
        self._set_classes({"-wide": wide, "-at-side": at_side, "-with-results": with_results})
        if self.is_mounted:
            self._fit_all(at_side=at_side)

    def _fitting(self) -> tuple[bool, bool, bool]:
        """Return whether the area is wide, whether it is also high, and whether the editor is at the side."""
        size = self.app.size
        wide = size.width >= WIDE and not self.brief_alone
        return wide, wide and size.height >= HIGH, wide and size.width >= VERY_WIDE and self._wants_side

    @property
    def _wants_side(self) -> bool:
        return self.at_side and self.editing

    @property
    def _repeated(self) -> bool:
        """Whether the code pane would only repeat the function in the editor, while that is in use."""
        return self._region == "editor" and self._upper == "code" and self.repeats()

    @property
    def _files_are_in_the_way(self) -> bool:
        """Whether files, code and editor don't fit side by side; never while watching, when nobody writes."""
        needed = self._files.width_needed + CODE_COLUMNS + EDITOR_COLUMNS
        return bool(self._first) and self.app.size.width < needed

    def _set_classes(self, wanted: Mapping[str, bool]) -> None:
        for name, needed in wanted.items():
            if self.has_class(name) != needed:
                # Before mounting, no styles are updated: all widgets below would be styled twice.
                self.set_class(needed, name, update=self.is_mounted)

    def _fit_all(self, *, at_side: bool) -> None:
        """Give each region the size that its content needs."""
        files = self._files.width_needed if self.has_class("-wide") else 0
        self.natural = {"files": files} if files else {}
        room = self.app.size.width - (files if self._files.display else 0)
        editor = max(EDITOR_COLUMNS, room * 3 // 5)
        self._divided.natural = {"editor": editor} if at_side and self._first else {}
        self._divided.turn(vertical=not at_side)
        results = self._read[-1]
        if isinstance(results, StatePane):
            results.set_room(room - (editor if at_side else 0))
        # Innermost first, because the sizes of inner panes limit how far an outer frame can be moved.
        for splits in (self._column, self._divided, self):
            splits.fit()

    def _lay_out_reading(self, *, high: bool, with_results: bool) -> None:
        """Show the current reading pane, with or without the results below it."""
        results = self._read[-1]
        shown = self.id_of(self._upper if high else self.current)
        for widget in self._read:
            widget.display = with_results if high and widget is results else widget.id == shown

    def on_resize(self) -> None:
        """Arrange the regions for the new size."""
        self.lay_out()

    @on(events.Resize)
    async def make_files(self) -> None:
        """Mount the files if there is now room for them."""
        if self.app.size.width >= WIDE and not self._files.is_attached:
            await self.make("files")
            self.lay_out()

    @on(RoomNeeded)
    def room_needed(self) -> None:
        """Give the files the width that they now need."""
        self.lay_out()


def pane_key(pane: str) -> str:
    """Return the default key of a pane in readable form; empty if the pane has none."""
    return next((shown_key(key.keys.split(",")[0]) for key in KEYS if key.id == f"pane.{pane}"), "")


def pane_frame(widget: Framed, pane: str, words: str = "", note: str = "") -> Framed:
    """Frame a pane with its key, a title (by default the key's name) and a note; return the pane."""
    return framed(widget, f"{pane_key(pane)} {words or key_named(f'pane.{pane}').description}", note)


def pane_tabs(panes: Iterable[str]) -> NameTabs:
    """Return a line with the names and keys of panes, except the console, which is always visible."""
    names = {pane: key_named(f"pane.{pane}").description for pane in panes if pane != "console"}
    return NameTabs({pane: f"{pane_key(pane)} {name}" for pane, name in names.items()})
