"""The pages about the task under the cursor: which there are, and how each is filled."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from textual import on
from textual.app import ComposeResult
from textual.containers import Container
from textual.getters import query_one
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input
from textual.worker import Worker, WorkerState

from gistpoint.core.code.parsing import CodeError
from gistpoint.core.errors import TaskError, UserError
from gistpoint.core.generation.dossier import Dossier
from gistpoint.core.tasks.model import Task
from gistpoint.core.text import visible_line
from gistpoint.tui.screens.dialogs.ask import show_error
from gistpoint.tui.screens.validate.code_page import CodePage
from gistpoint.tui.screens.validate.desk import Desk
from gistpoint.tui.screens.validate.fix_page import FixPage
from gistpoint.tui.screens.validate.gist_overview import gist_overview
from gistpoint.tui.screens.validate.gist_page import OWN, GistPage
from gistpoint.tui.screens.validate.lines import LineList
from gistpoint.tui.screens.validate.overview import Known, overview
from gistpoint.tui.screens.validate.queue import QueueList
from gistpoint.tui.screens.validate.run_lines import run_lines
from gistpoint.tui.screens.validate.tests_page import TestsPage, test_rows
from gistpoint.tui.widgets.diff_view import DiffView
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.pages import Pages, PageTabs
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.text_view import TextView

PAGES = {
    "overview": "Overview",
    "brief": "Brief",
    "diff": "Diff",
    "tests": "Tests",
    "runs": "Runs",
    "code": "Code",
    "fix": "Fix",
    "gist": "Gist",
}
MAKERS: dict[str, Callable[[], Widget]] = {
    "overview": partial(LineList, id="overview"),
    "brief": partial(TextView, id="brief"),
    "diff": partial(DiffView, id="diff"),
    "tests": TestsPage,
    "runs": partial(LineList, id="runs"),
    "code": CodePage,
    "fix": FixPage,
    "gist": GistPage,
}
_OF_REPAIRS = frozenset({"diff", "tests", "code", "fix"})
_OF_GISTS = frozenset({"gist"})
_INSTEAD = {"diff": "gist", "tests": "overview", "code": "gist", "fix": "gist"}
"""Pages of a gist by the pages of a repair that are asked for."""
NUMBERS = {"gist": 8}
_FIXED = frozenset({"brief", "diff", "code", "fix"})
"""Pages that nothing which is run or said changes."""
_LED = {"test": "tests", "code": "code", "source": "code"}
"""Pages by the kinds of links: a test's outcomes, a function, a test's function."""
FOCUS = {"tests": "#test-rows", "code": "#code-view", "fix": "#editor #function-editor"}


class Opened(Message):
    """A task was read, or could not be."""

    def __init__(self, task: Task, dossier: Dossier | None, error: UserError | None = None) -> None:
        super().__init__()
        self.task, self.dossier, self.error = task, dossier, error


class AboutScreen(Screen[None]):
    """The queue on the left, and the pages about its task."""

    title_line = query_one("#validate-title", Plain)
    said_line = query_one("#validate-say", Plain)
    verdict_line = query_one("#validate-verdicts", Plain)
    queue = query_one(QueueList)
    pages = query_one(Pages)
    words = query_one("#validate-filter", Input)

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self.desk = desk
        self.dossier: Dossier | None = None
        self._filled: dict[str, str] = {}
        self._stale: set[str] = set()
        self._wanted = ""
        """The link that was followed to the page."""

    def compose(self) -> ComposeResult:
        """Lay out title, filter, queue, pages and verdicts."""
        yield Plain("", id="validate-title")
        yield Input(placeholder="Only tasks that hold these words; -word: that don't (Esc: all)", id="validate-filter")
        with Container(id="validate-body"):
            yield QueueList()
            yield Pages(PAGES, MAKERS, later=_OF_GISTS, numbers=NUMBERS)
        yield Plain("", id="validate-verdicts")
        yield Plain("", id="validate-say")
        yield KeyBar()

    def say(self, words: str) -> None:
        """Tell something in the line above the keys."""
        self.said_line.update(visible_line(words), layout=False)

    @property
    def shown(self) -> Dossier | None:
        """The task under the cursor, once it is shown; what is pressed before must not hit the one before it."""
        row, dossier = self.queue.current, self.dossier
        if row is None or dossier is None or row.task.id != dossier.task.id:
            self.say("The task is not shown yet.")
            return None
        return dossier

    # Opening

    def open_task(self, task: Task) -> None:
        """Read a task in a thread; only the last one asked for is shown."""

        def read() -> None:
            try:
                self.post_message(Opened(task, self.desk.dossier(task)))
            except CodeError as error:
                damaged = TaskError(f"The answer of {task.short_id} does not fit its tree: {error}")
                self.post_message(Opened(task, None, damaged))
            except UserError as error:
                self.post_message(Opened(task, None, error))

        self.run_worker(read, thread=True, group="open", exclusive=True, exit_on_error=False)

    @on(Worker.StateChanged)
    def worker_failed(self, event: Worker.StateChanged) -> None:
        """Let a bug in a thread be taken as any other."""
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            raise event.worker.error

    @on(Opened)
    async def task_read(self, message: Opened) -> None:
        """Show the task, unless another one is looked at by now."""
        row = self.queue.current
        if row is None or row.task.id != message.task.id:
            return
        self.pages.display = message.error is None
        if message.error is not None:
            self.dossier = None
            self.say(message.error.message)
            show_error(self.app, message.error)
            return
        self.dossier = message.dossier
        gist = message.dossier is not None and message.dossier.is_gist
        self.pages.hide_tabs(_OF_REPAIRS if gist else _OF_GISTS)
        if self.pages.current != self.page_for(self.pages.current):
            await self.pages.show("overview")
        self.opened()
        self.refill()

    def opened(self) -> None:
        """Another task is shown; for subclasses to note."""

    # Pages

    def page_for(self, page: str) -> str:
        """Return the page to show where one is asked for: gists and repairs have different ones."""
        if self.dossier is not None and self.dossier.is_gist:
            return _INSTEAD.get(page, page)
        return "fix" if page == "gist" else page

    async def action_page(self, page: str) -> None:
        """Show a page, and give it the keys."""
        if not self.pages.display:
            return
        page = self.page_for(page)
        widget = await self.pages.show(page)
        self.fill_page()
        target = self.query_one(FOCUS[page]) if page in FOCUS else widget
        self.set_focus(target if target.focusable else None)
        if not target.focusable:
            target.focus()

    @on(PageTabs.Clicked)
    async def tab_clicked(self, message: PageTabs.Clicked) -> None:
        """Go to a page by the mouse."""
        await self.action_page(message.page)

    def refill(self) -> None:
        """Something is known now that was not: fill the page in sight anew, and the others when they are gone to."""
        self._stale = set(PAGES) - _FIXED
        self.fill_page()

    def fill_page(self) -> None:
        """Fill the page in sight for the task, where it is not."""
        dossier, page = self.dossier, self.pages.current
        if dossier is None:
            return
        first = self._filled.get(page) != dossier.task.id
        if first or page in self._stale or self._wanted:
            self._filled[page] = dossier.task.id
            self._stale.discard(page)
            self._fill(page, dossier, first=first)
            self._wanted = ""

    def _fill(self, page: str, dossier: Dossier, *, first: bool) -> None:
        widget = self.pages.made[page]
        width = max(40, self.pages.size.width - 2)
        match widget:
            case LineList() if page == "overview":
                lines = gist_overview if dossier.is_gist else overview
                widget.show(lines(self._known(dossier), width), keep_place=not first)
            case LineList():
                widget.show(run_lines(self._known(dossier), width), keep_place=not first)
            case TestsPage():
                rows = test_rows(dossier, self.desk.steadiness(dossier), self.desk.trials(dossier.task))
                widget.show(rows, test=self._wanted.removeprefix("test:"), keep_place=not first)
            case CodePage():
                if first:
                    widget.show(dossier, self.desk.known_graph(dossier.task))
                if self._wanted:
                    kind, _, name = self._wanted.partition(":")
                    (widget.go_to_test if kind == "source" else widget.go_to_function)(name)
            case GistPage():
                widget.keep = self.desk.draft_buffer
                draft = self.desk.draft(dossier.task).fixes.get(OWN)
                widget.show(dossier, draft, self.desk.verdicts(dossier.task), first=first)
            case FixPage():
                widget.keep = self.desk.draft_buffer
                widget.show(dossier, self.desk.draft(dossier.task).fixes)
            case DiffView():
                _show_diff(widget, dossier)
            case TextView():
                widget.wrap = True
                widget.load(dossier.brief, language="markdown")

    def _known(self, dossier: Dossier) -> Known:
        desk = self.desk
        return Known(
            dossier,
            desk.validator.validation(dossier.task.id),
            None if dossier.is_gist else desk.steadiness(dossier),
            {target.name: desk.standings(dossier, target.name) for target in dossier.answer.targets},
            desk.validator.store.book.trials(dossier.task.id),
        )

    async def follow(self, link: str) -> None:
        """Go where a line leads."""
        kind, _, rest = link.partition(":")
        if kind == "page":
            await self.action_page(rest)
        elif kind in _LED:
            self._wanted = link
            await self.action_page(_LED[kind])
        elif link:
            await self.run_action(f"screen.{link}")


def _show_diff(widget: DiffView, dossier: Dossier) -> None:
    paths = {target.path for target in dossier.answer.targets}
    if len(paths) == 1:
        path = next(iter(paths))
        before, after = dossier.text(path, corrupted=False), dossier.text(path, corrupted=True)
        widget.load(before, after, name=path)
    else:
        widget.load_diff(dossier.diff)
