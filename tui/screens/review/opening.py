"""The frame of a run, or of a list of runs, drawn before what reads and shows them is imported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path, PurePath

from textual.app import ComposeResult
from textual.screen import Screen
from textual.widget import Widget

from gistpoint.tui.base_app import WIDE
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.header_bar import HeaderBar
from gistpoint.tui.widgets.splitter import Splits


class _Pane(Widget, can_focus=True):
    """An empty place in a frame."""

    def render(self) -> str:
        """Draw nothing."""
        return ""


class OpeningRuns(Screen[None]):
    """The panes of the screen that follows, where that has them."""

    CSS_PATH = "review.tcss"
    AUTO_FOCUS = "#steps, #runs"

    def __init__(self, names: Sequence[str], came_back: Callable[[], object]) -> None:
        """`names` are what is opened; `came_back` is called when this screen is on top again."""
        super().__init__()
        self._names, self._came_back = names, came_back

    def compose(self) -> ComposeResult:
        """Lay out the panes."""
        if is_one_run(self._names):
            yield HeaderBar(PurePath(self._names[0]).name, "opening …")
            yield framed(_Pane(id="ruler"), "Course")
            steps = framed(_Pane(id="steps"), "Steps")
            yield Splits(steps, framed(_Pane(id="pages")), vertical=self.app.size.width < WIDE, id="review-body")
        else:
            yield HeaderBar("Runs", "opening …")
            yield framed(_Pane(id="runs"), "Runs …")
        yield _Pane(id="keys")

    def on_screen_resume(self) -> None:
        """Go on, after a dialog above."""
        self._came_back()


def is_one_run(names: Sequence[str]) -> bool:
    """Whether names are certainly that of one run: a plain JSON or JSON lines file is opened as such at first."""
    if len(names) != 1:
        return False
    path = Path(names[0])
    if "#" in names[0] and not path.exists():
        return True
    if path.is_dir():
        return (path / "journal.jsonl").is_file()
    try:
        with path.open("rb") as file:
            start = file.read(512).lstrip(b"\xef\xbb\xbf \t\r\n")
    except OSError:
        return False
    return start[:1] in (b"{", b"[")
