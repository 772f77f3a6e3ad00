"""The tabbed pages of the review screen: the interface of a page, and the loading of its content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from gistpoint.sessions.runs.blind_view import blind_step
from gistpoint.tui.jobs import Job
from gistpoint.tui.keys import shown_key
from gistpoint.tui.review_pages import PAGES
from gistpoint.tui.widgets.line_view import LineView
from gistpoint.tui.widgets.pages import Pages

if TYPE_CHECKING:
    from gistpoint.sessions.records.model import Step
    from gistpoint.sessions.runs.document import RunDocument
    from gistpoint.sessions.runs.repository import RepositoryState
    from gistpoint.tui.screens.review.gist_scoring import GistScoring
    from gistpoint.tui.screens.review.loading import RunLoader
    from gistpoint.tui.screens.review.replay_job import ReplayJob

Content = TypeVar("Content")


@dataclass(frozen=True, slots=True)
class PageContext:
    """The sources from which a page loads the content for a step.

    `index` is the step's, counted from 0.
    """

    document: RunDocument
    index: int
    hides: bool
    """Whether model and outcome are hidden."""
    loader: RunLoader
    replay: ReplayJob
    gist: GistScoring

    @property
    def step(self) -> Step:
        """The step as the reviewer may see it."""
        step = self.document.step(self.index)
        return blind_step(step) if self.hides else step

    def repository(self, job: Job) -> RepositoryState:
        """Return the repository after the step. Called in the loader's thread."""
        return self.loader.history.after(self.index, job)


class RunPage(Generic[Content]):
    """The interface of a page about a step.

    Pages with other content, such as the hits of a search, don't implement it.
    """

    def read(self, context: PageContext, job: Job) -> Content:
        """Return the page's content for a step.

        This runs in the loader's thread. If `job` gives way to another one, the call ends, and `read` is
        called again later.
        """
        raise NotImplementedError

    def fill(self, content: Content) -> str:
        """Show the content, on the UI thread. Return a note for the line above the page."""
        raise NotImplementedError


class RunPages(Pages):
    """The pages of `PAGES`. The current one is loaded once for each step."""

    def __init__(self) -> None:
        super().__init__(
            {page.name: page.title for page in PAGES},
            {page.name: page.make for page in PAGES},
            later=frozenset(page.name for page in PAGES if page.later),
            keys={page.name: shown_key(page.keys.partition(",")[0]) for page in PAGES},
        )
        self._loaded: dict[str, int] = {}
        """The step for which each page was last loaded, by the page's name."""
        self._wanted: tuple[str, int, RunLoader] | None = None
        """The page being loaded, the step, and the loader."""
        self._notes: dict[str, str] = {}

    def note_for(self, page: str, words: str) -> None:
        """Set the line above a page, and show it if the page is the current one."""
        self._notes[page] = words
        self.note(self._notes.get(self.current, ""))

    def outdate(self) -> None:
        """Load each page again when it is next shown, because its step or its content has changed."""
        self._loaded.clear()
        self._wanted = None

    def begin_again(self) -> None:
        """Forget the contents and notes of a run before another run is shown.

        Tabs that depend on the run are hidden until it offers them.
        """
        self.outdate()
        self._notes.clear()
        self.hide_tabs(frozenset(page.name for page in PAGES if page.later))

    def load(self, context: PageContext, *, reload: bool = False) -> None:
        """Load the current page unless it is already loaded for the step. `reload` loads it in any case."""
        name, widget, index = self.current, self.made[self.current], context.index
        if name != "step" and self._loaded.get(name) != index:
            self._notes[name] = ""
        self.note(self._notes.get(name, ""))
        if not isinstance(widget, RunPage):
            return
        if not reload and (self._loaded.get(name) == index or self._wanted == (name, index, context.loader)):
            return
        self._wanted = wanted = name, index, context.loader

        def read(job: Job) -> object:
            return widget.read(context, job)

        def fill(content: object) -> None:
            if self._wanted == wanted:
                self._wanted = None
                if self.current == name:
                    self._loaded[name] = index
                    self.note_for(name, widget.fill(content))

        context.loader.request_page(read, fill)

    def toggle_wrap(self) -> None:
        """Switch between wrapping and scrolling the lines of the current page."""
        views = self.made[self.current].walk_children(LineView, with_self=True)
        if (view := next((view for view in views if view.size), None)) is not None:
            view.action_toggle_wrap()
