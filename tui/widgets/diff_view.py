"""What changed between two texts: unified, or side by side where there is room."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.worker import get_current_worker

from gistpoint.core.diffs import CONTEXT, FileDiff, compute
from gistpoint.tui.widgets.diff_pane import DiffPane, SideTokens, split_lines, unified_lines
from gistpoint.tui.widgets.line_view import LineView
from gistpoint.tui.widgets.syntax import tokens_by_line
from gistpoint.tui.widgets.text_lines import LONGEST_ROW, TextLines

SIDE_BY_SIDE_WIDTH = 120
"""From this many cells on, both sides are shown."""

_AT_ONCE = 200_000
"""Characters; longer texts are compared in a thread."""


class DiffView(Horizontal):
    """A diff with numbers and signs; n and p go from change to change."""

    DEFAULT_CSS = """
    DiffView { height: 1fr; width: 1fr; }
    DiffView .-right { display: none; border-left: vkey $foreground 30%; }
    DiffView.-split .-right { display: block; }
    DiffView.-split .-left { scrollbar-size-vertical: 0; }
    """
    HELP = "n and p go to the next and previous change; w wraps lines; arrows and page keys move."

    class _Computed(Message):
        def __init__(self, files: tuple[FileDiff, ...], before: str, after: str) -> None:
            super().__init__()
            self.files = files
            self.texts = (before, after)

    class _Coloured(Message):
        def __init__(self, sides: SideTokens) -> None:
            super().__init__()
            self.sides = sides

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._files: tuple[FileDiff, ...] = ()
        self._sides = SideTokens()
        self._wrap = self._whole = False
        self._left = DiffPane("both", classes="-left")
        self._right = DiffPane("new", classes="-right")

    def compose(self) -> ComposeResult:
        """Lay out both sides; the second is hidden where there is no room."""
        yield self._left
        yield self._right

    @property
    def files(self) -> tuple[FileDiff, ...]:
        """The diff that is shown."""
        return self._files

    @property
    def split(self) -> bool:
        """Whether both sides are shown."""
        return self.has_class("-split")

    @property
    def pane(self) -> DiffPane:
        """The pane with the focus, else the first: where `search` and `go_to` act."""
        return self._right if self.split and self._right.has_focus else self._left

    def load(
        self, before: str, after: str, *, name: str = "", language: str | None = "python", whole: bool = False
    ) -> None:
        """Show how `after` differs from `before`, or all of it; long texts are compared in a thread."""
        self.workers.cancel_group(self, "diff")
        self._whole = whole
        if len(before) + len(after) <= _AT_ONCE:
            diff = compute(before, after, old_path=name, new_path=name, context=None if whole else CONTEXT)
            self._show_texts((diff,), before, after, language)
        else:
            self.run_worker(lambda: self._compute(before, after, name), thread=True, group="diff", exit_on_error=False)

    def load_diff(self, files: Sequence[FileDiff]) -> None:
        """Show a diff that was parsed or computed elsewhere."""
        self.workers.cancel_group(self, "diff")
        self._sides = SideTokens()
        self._files, self._whole = tuple(files), False
        self._lay_out()

    def search(self, pattern: str, *, regex: bool = False) -> int:
        """Search the pane with the focus, see `CodeView.search`."""
        return self.pane.search(pattern, regex=regex)

    def next_hunk(self) -> None:
        """Go to the next change."""
        self.pane.action_hunk(1)

    def previous_hunk(self) -> None:
        """Go to the change before."""
        self.pane.action_hunk(-1)

    def focus(self, scroll_visible: bool = True) -> DiffView:
        """Give the focus to the first pane."""
        self._left.focus(scroll_visible)
        return self

    def _compute(self, before: str, after: str, name: str) -> None:
        worker = get_current_worker()
        diff = compute(before, after, old_path=name, new_path=name, context=None if self._whole else CONTEXT)
        if not worker.is_cancelled:
            self.post_message(self._Computed((diff,), before, after))

    def on_diff_view__computed(self, message: _Computed) -> None:
        """Show what a thread has compared."""
        message.stop()
        self._show_texts(message.files, *message.texts, None)

    def _show_texts(self, files: tuple[FileDiff, ...], before: str, after: str, language: str | None) -> None:
        self._sides = sides = SideTokens()
        self._files = files
        self._lay_out()
        if language is not None and self.is_attached and files[0].hunks:
            self.run_worker(
                lambda: self._colour(sides, before, after, language), thread=True, group="diff", exit_on_error=False
            )

    def _colour(self, sides: SideTokens, before: str, after: str, language: str) -> None:
        worker = get_current_worker()
        for tokens, text in ((sides.old, before), (sides.new, after)):
            for chunk in tokens_by_line(TextLines(text), language, lambda: worker.is_cancelled):
                tokens.extend(chunk)
        if not worker.is_cancelled:
            self.post_message(self._Coloured(sides))

    def on_diff_view__coloured(self, message: _Coloured) -> None:
        """Draw again with colours."""
        message.stop()
        if message.sides is self._sides:
            self._left.redraw()
            self._right.redraw()

    # Layout

    def on_resize(self, event: events.Resize) -> None:
        """Show one or two sides."""
        if self._splits(event.size.width) != self.split:
            self._lay_out()

    def _splits(self, width: int) -> bool:
        # Rows stand beside each other only while no line is folded.
        longest = max((len(line.text) for f in self._files for h in f.hunks for line in h.lines), default=0)
        return width >= SIDE_BY_SIDE_WIDTH and not self._wrap and longest <= LONGEST_ROW

    def _lay_out(self) -> None:
        split = self._splits(self.size.width)
        self.set_class(split, "-split")
        self._left.side = "old" if split else "both"
        if split:
            left, right = split_lines(self._files, headers=not self._whole)
            self._left.show_lines(left, self._sides)
            self._right.show_lines(right, self._sides)
            # As wide as each other: a scroll bar below one side alone would let the other scroll a row further.
            widest = max(self._left.virtual_size.width, self._right.virtual_size.width)
            for pane in (self._left, self._right):
                pane.virtual_size = pane.virtual_size.with_width(widest)
        else:
            self._left.show_lines(unified_lines(self._files, headers=not self._whole), self._sides)
            if self._right.has_focus:
                self._left.focus()

    @on(DiffPane.Scrolled)
    def _follow_scroll(self, message: DiffPane.Scrolled) -> None:
        message.stop()
        if self.split:
            other = self._right if message.pane is self._left else self._left
            x, y = message.pane.scroll_offset
            if other.scroll_offset != (x, y):
                other.place(x, y)

    @on(LineView.CursorMoved)
    def _follow_cursor(self, message: LineView.CursorMoved) -> None:
        if self.split and message.view.has_focus:
            other = self._right if message.view is self._left else self._left
            other.cursor_line = message.line

    @on(DiffPane.WrapWanted)
    def _toggle_wrap(self, message: DiffPane.WrapWanted) -> None:
        message.stop()
        self._wrap = not self._wrap
        self._left.wrap = self._wrap
        self._lay_out()
