"""The reading half of the review screen: the run as it is read, the step that is looked at, and its pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.getters import query_one
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget

from gistpoint.core.errors import UserError
from gistpoint.core.text import visible_line
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.model import CutText, Run, Step
from gistpoint.sessions.runs.parts import Scope
from gistpoint.tui.keys import Scope as Keys
from gistpoint.tui.keys import bindings_of
from gistpoint.tui.screens.review.reader import (
    IndexGrew,
    ReadingFailed,
    RowsRead,
    RunOpened,
    RunReaderThread,
    StepRead,
)
from gistpoint.tui.screens.review.ruler import Ruler
from gistpoint.tui.screens.review.step_list import StepList
from gistpoint.tui.screens.review.step_text import compose, long_parts
from gistpoint.tui.screens.review.step_view import StepView
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.pages import Pages, PageTabs
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.record_list import RecordList

if TYPE_CHECKING:
    from gistpoint.sessions.runs.repository import RepositoryState
    from gistpoint.tui.screens.review.gist_evidence import GistContent
    from gistpoint.tui.screens.review.history import HistoryReader
    from gistpoint.tui.screens.review.known_task import KnownTask
    from gistpoint.tui.screens.review.page_widgets import PagedScreen

Made = TypeVar("Made", bound=Widget)

PAGES = {
    "step": "Step",
    "diff": "Diff",
    "so-far": "So far",
    "tests": "Tests",
    "raw": "Raw",
    "files": "Files",
    "hits": "Hits",
    "run": "Run",
    "replay": "Replay",
    "gist": "Gist",
}
OFFERED_LATER = frozenset({"gist"})
"""Pages whose tab appears only where a run has something for them."""


class PageReady(Message):
    """What a page shows was computed."""

    def __init__(self, page: str, index: int, fill: Callable[[], None]) -> None:
        super().__init__()
        self.page = page
        self.index = index
        self.fill = fill


class WholeReady(Message):
    """The folded parts of a step were read in full."""

    def __init__(self, index: int, parts: dict[tuple[Scope, int], str]) -> None:
        super().__init__()
        self.index = index
        self.parts = parts


class ReadingScreen(Screen[None]):
    """A run: its steps, and the step that is looked at."""

    CSS_PATH = "review.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(Keys.REVIEW)]
    HELP_PAGE = "review"
    SCOPES = (Keys.REVIEW,)

    title_line = query_one("#review-title", Plain)
    said = query_one("#review-say", Plain)
    steps = query_one("#steps", StepList)
    ruler = query_one(Ruler)
    pages = query_one(Pages)

    def __init__(self, name: str, opening: Callable[[], RunDocument]) -> None:
        """`opening` opens the run and is called in a thread."""
        super().__init__()
        self.run_name = name
        self._opening = opening
        self.reader = self.new_reader()
        self.header: Run | None = None
        self.step: Step | None = None
        self.hides = False
        """Whether model and outcome are hidden."""
        self._whole: dict[tuple[Scope, int], str] = {}
        self._filled: dict[str, int] = {}
        self._history: HistoryReader | None = None
        self.gist_shown = ""
        """The gist on the page in sight."""

    def new_reader(self) -> RunReaderThread:
        """Return a reader of the run, not started yet."""
        return RunReaderThread(self, self._opening, lambda document: self.known_task(document).goals)

    def compose(self) -> ComposeResult:
        """Lay out title, strip, steps and pages."""
        yield Plain(self.run_name, id="review-title")
        yield Ruler(id="ruler")
        with Container(id="review-body"):
            yield StepList(id="steps")
            yield Pages(PAGES, self.page_makers(), later=OFFERED_LATER)
        yield Plain("", id="review-say")
        yield KeyBar()

    def page_makers(self) -> dict[str, Callable[[], Widget]]:
        """Return what makes the widget of each page."""
        from gistpoint.tui.screens.review import page_widgets

        return {"step": lambda: StepView(id="step"), **page_widgets.MAKERS}

    def on_mount(self) -> None:
        """Open the run."""
        self.steps.facts = self.reader.rows
        self.steps.focus()
        self.reader.start()

    def on_unmount(self) -> None:
        """Let go of the thread."""
        self.reader.stop()

    @property
    def step_view(self) -> StepView:
        """The page of the step itself."""
        view = self.pages.made["step"]
        assert isinstance(view, StepView)
        return view

    # What the reader tells

    @on(RunOpened)
    def opened(self, message: RunOpened) -> None:
        """Show what the run is."""
        self.header = message.header
        self.steps.set_count(max(self.steps.count, message.document.step_count))
        self.draw()

    @on(StepRead)
    def step_read(self, message: StepRead) -> None:
        """Show a step, unless another one is wanted by now."""
        if message.step.index != self.steps.cursor:
            return
        if self.step is None or self.step.index != message.step.index:
            self._whole = {}
        self.step = message.step
        self.show_step()
        self.steps.together.release()

    def show_step(self) -> None:
        """Show the step that is looked at, on the page in sight."""
        if self.step is None:
            return
        step = replace(self.step, model="") if self.hides else self.step
        self.step_view.show(compose(step, self._whole, hides=self.hides))
        self._filled.clear()
        self.draw_title()
        self.fill_page()

    @on(IndexGrew)
    def grown(self) -> None:
        """More is known of the run."""
        document = self.reader.document
        if document is None:
            return
        if document.finished and (self.header is None or self.header.step_count != document.step_count):
            self.header, self._history = document.header, None
        self.steps.set_count(document.step_count)
        self.draw()

    @on(RowsRead)
    def rows_read(self) -> None:
        """Draw rows that were asked for."""
        self.steps.rows_read()

    @on(StepList.RowsWanted)
    def rows_wanted(self, message: StepList.RowsWanted) -> None:
        """Read rows that came into sight."""
        self.reader.want_rows(message.rows)

    @on(RecordList.Moved, "#steps")
    def moved(self, message: RecordList.Moved) -> None:
        """Look at another step."""
        self.reader.want(message.index)
        self.draw_title()
        self.ruler.move(message.index)

    @on(RecordList.Chosen, "#steps")
    def step_chosen(self) -> None:
        """Open the run that the step started; else read the step: the keys go to its text."""
        if self.step is not None and self.step.index == self.steps.cursor and self.step.links:
            self.action_link()
        else:
            self.set_focus(self.pages.made[self.pages.current])

    def action_link(self) -> None:
        """Open the run that the step started; for subclasses."""

    @on(Ruler.StepAsked)
    def step_asked(self, message: Ruler.StepAsked) -> None:
        """Go where the strip was clicked."""
        self.steps.cursor = message.index

    @on(ReadingFailed)
    def failed(self, message: ReadingFailed) -> None:
        """Say why nothing can be read."""
        if not isinstance(message.error, UserError):
            raise message.error
        if self.reader.document is None:
            self.failed_to_open(message.error)
        else:
            self.tell_error(message.error)

    def failed_to_open(self, error: UserError) -> None:
        """Say why there is no run to read."""
        self.title_line.update(visible_line(error.message))
        self.tell_error(error)

    def tell_error(self, error: UserError) -> None:
        """Show a problem that the user can do something about."""
        from gistpoint.tui.screens.dialogs.ask import show_error

        show_error(self.app, error)

    # Drawing

    def draw(self) -> None:
        """Show how much of the run is known."""
        document, survey = self.reader.document, self.reader.survey
        if document is None:
            return
        self.ruler.steps = document.step_count
        if survey is not None:
            from gistpoint.tui.screens.review.survey import LOOKS

            self.ruler.series, self.ruler.weights, self.ruler.glyphs = survey.series(), survey.weights, LOOKS
            wide = self.has_class("-wide")
            height = 1 + (len(self.ruler.series) if wide else min(1, len(self.ruler.series)))
            if self.ruler.size.height != height:
                self.ruler.styles.height = height
        self.ruler.redraw()
        self.draw_title()

    def draw_title(self) -> None:
        """Show which step of which run this is."""
        document, header = self.reader.document, self.header
        if document is None or header is None:
            return
        total = f"{document.step_count:,}" + ("" if document.finished else "+")
        words = [f"Step {self.steps.cursor + 1:,}/{total}", header.task or header.id]
        words += ["model hidden"] if self.hides else [header.model, header.verdict or header.exit_status]
        words += [header.format]
        missing = document.warnings
        if missing:
            words.append(f"! {missing[0]}" + (f" (+{len(missing) - 1})" if len(missing) > 1 else ""))
        self.title_line.update(visible_line("  ".join(word for word in words if word)), layout=False)

    def say(self, words: str) -> None:
        """Tell something in the line above the keys."""
        self.said.update(visible_line(words), layout=False)

    # Pages

    async def action_page(self, page: str) -> None:
        """Show a page, and give it the keys."""
        widget = await self.pages.show(page)
        self.fill_page()
        self.set_focus(widget if widget.focusable else None)
        if not widget.focusable:
            widget.focus()

    @on(PageTabs.Clicked)
    async def tab_clicked(self, message: PageTabs.Clicked) -> None:
        """Go to a page by the mouse."""
        await self.action_page(message.page)

    def fill_page(self) -> None:
        """Have the page in sight computed for the step, where it is not."""
        page, step, document = self.pages.current, self.step, self.reader.document
        if step is None or document is None or self._filled.get(page) == step.index:
            return
        self._filled[page] = step.index
        from gistpoint.tui.screens.review import page_widgets

        filler = page_widgets.FILLERS.get(page)
        if filler is None:
            self.pages.note("")
            return
        index = step.index

        screen: PagedScreen = self

        def tell(fill: Callable[[], None]) -> None:
            self.post_message(PageReady(page, index, fill))

        def job() -> None:
            filler(screen, document, index, tell)

        self.reader.do(job)

    @on(PageReady)
    def page_ready(self, message: PageReady) -> None:
        """Fill a page, unless another step is looked at by now."""
        if self.step is not None and message.index == self.step.index and message.page == self.pages.current:
            message.fill()

    def history(self, document: RunDocument) -> HistoryReader:
        """Return what follows the repository through the run; called in the reader's thread."""
        if self._history is None:
            from gistpoint.tui.screens.review.history import HistoryReader

            self._history = HistoryReader(document, self.known_task(document), lambda job: self.reader.do(job))
        return self._history

    def known_task(self, document: RunDocument) -> KnownTask:
        """Return what is known of the run's task; called in the reader's thread."""
        from gistpoint.tui.screens.review.known_task import KnownTask

        return KnownTask()

    def replayed_text(self, document: RunDocument, index: int) -> tuple[str, str]:
        """Return what a replay has to tell of a step, and a note; for subclasses."""
        return "", ""

    def gist_content(self, document: RunDocument, state: RepositoryState) -> GistContent:
        """Return the gist after a step, with what is known of its lines; for subclasses."""
        from gistpoint.tui.screens.review.gist_evidence import GistContent

        return GistContent()

    def note(self, text: str) -> None:
        """Say something above the page."""
        self.pages.note(text)

    def page(self, kind: type[Made], name: str) -> Made:
        """Return the widget of a page that was made."""
        widget = self.pages.made[name]
        assert isinstance(widget, kind)
        return widget

    # Folding

    @on(StepView.UnfoldWanted)
    def unfold(self) -> None:
        """Show the folded parts in full, or fold them again."""
        step, document = self.step, self.reader.document
        if step is None or document is None:
            return
        if self._whole:
            self._whole = {}
            self.show_step()
            return
        found = list(long_parts(step))

        def job() -> None:
            parts = {
                (scope, number): "".join(document.full_text(text)) if isinstance(text, CutText) else text
                for scope, number, text in found
            }
            self.post_message(WholeReady(step.index, parts))

        if found:
            self.reader.do(job)

    @on(WholeReady)
    def whole_ready(self, message: WholeReady) -> None:
        """Show the parts that were read in full."""
        if self.step is not None and self.step.index == message.index:
            self._whole = message.parts
            self.show_step()
            self.whole_shown()

    def whole_shown(self) -> None:
        """Folded parts are in sight now; for subclasses to go to a place in them."""
