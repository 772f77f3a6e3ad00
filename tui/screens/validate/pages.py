"""The pages about the task under the cursor.

Each page is a widget that fills itself. It is defined here or in a separate module, and has an entry in
`PAGES` (decision 57).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from textual import on
from textual.content import Content
from textual.widget import Widget

from gistpoint.core.generation.dossier import Dossier
from gistpoint.core.kinds.registry import kind_of
from gistpoint.tui import signs
from gistpoint.tui.screens.editing_pane import EditingPane
from gistpoint.tui.screens.kinds import screens_of
from gistpoint.tui.screens.validate.code_page import CodePage
from gistpoint.tui.screens.validate.gist import GistPage
from gistpoint.tui.screens.validate.overview import TaskFacts, trial_line
from gistpoint.tui.screens.validate.session import ValidationSession
from gistpoint.tui.screens.validate.task_page import AboutChanged, PageContent, TaskPage
from gistpoint.tui.screens.validate.tests_page import TestsPage
from gistpoint.tui.widgets.diff_view import DiffView
from gistpoint.tui.widgets.line_list import BAD, HEADING, MUTED, ODD, Line, LineList, folded, line
from gistpoint.tui.widgets.markdown_text import MarkdownText
from gistpoint.tui.widgets.pages import Pages

MOST_IDS = 30


class RunsPage(TaskPage, LineList):
    """The page with the check's findings, the trials, and the tests that differed from the task's record."""

    def fill(self, content: PageContent) -> None:
        """Show the findings and trials of a task."""
        known = TaskFacts.of(content.session, content.dossier)
        self.show([*_check(known, content.width), Line(), *_trials(known)], keep_place=not content.first)


def _check(known: TaskFacts, width: int) -> Iterator[Line]:
    check = known.validation.check
    if check is None:
        yield line("`task check` has not been run here yet", HEADING)
        yield line(
            "! runs it: leaks, identity, scores of the original and of the corrupted tree",
            MUTED,
            link="check",
        )
        return
    yield line(f"`task check` on {check.backend}: {'clean' if check.clean else 'NOT CLEAN'}", HEADING)
    for name, passed, reduced, detail in check.findings:
        sign, style = ("~", ODD) if reduced else (signs.GOOD, "$text-success") if passed else (signs.BAD, BAD)
        yield Line(((f"{sign} ", style), (name, "bold")))
        yield from folded(detail, width, MUTED if passed else BAD, indent="    ")


def _trials(known: TaskFacts) -> Iterator[Line]:
    yield line(f"Runs of the suite: {len(known.trials)}", HEADING)
    if not known.trials:
        yield line(
            "r runs the tests on the task's code, O on the original; R and Alt+O five times; F9 on your fix",
            MUTED,
        )
    for trial in reversed(known.trials):
        yield trial_line(trial)
        for id in trial.odd[:MOST_IDS]:
            yield Line((("    ", ""), (id, ODD)), link=f"test:{id}")
        if trial.odd_count > MOST_IDS:
            yield line(f"    … and {trial.odd_count - MOST_IDS} more", MUTED)


class FixPage(TaskPage, EditingPane):
    """The page for rewriting the corrupted functions. Alt+B chooses among several.

    The name of a buffer is the task's id, a slash, and the function, because two tasks may corrupt the same
    function.
    """

    EMPTY = "Open a task to try a fix."
    changes = False

    def __init__(self) -> None:
        super().__init__()
        self._starts: dict[str, str] = {}
        self._kept: dict[str, str] = {}

    def fill(self, content: PageContent) -> None:
        """Open the first corrupted function of a task, with the last saved fix if there is one."""
        dossier, session = content.dossier, content.session
        task = dossier.task.id
        self.keep = session.draft_buffer
        self._starts = {
            f"{task}/{target.name}": f"{target.corrupted.rstrip()}\n" for target in dossier.answer.targets
        }
        self._kept = {f"{task}/{name}": code for name, code in session.draft(dossier.task).fixes.items()}
        self.open(next(iter(self._starts)))

    def note(self, buffer: str, code: str) -> None:
        """Remember the current text as saved."""
        self._kept[buffer] = code

    @property
    def unsaved(self) -> tuple[str, str] | None:
        """The buffer and its code; None if the code is saved or unchanged."""
        buffer, code = self.buffer, self.editor.code
        known = self._kept.get(buffer, self._starts.get(buffer))
        return None if not buffer or code == known else (buffer, code)

    def start_of(self, name: str) -> str:
        """Return the corrupted function; empty for an unknown buffer."""
        return self._starts.get(name, "")

    def kept(self, name: str) -> str | None:
        """Return the saved fix; None if there is none."""
        return self._kept.get(name)

    def buffer_names(self) -> Sequence[str]:
        """Return all corrupted functions."""
        return list(self._starts)

    def frame(self, title: str, note: str | Content = "") -> None:
        """Show a title and a note in the frame around all pages."""
        parts = [
            title,
            note if isinstance(note, str) else note.plain,
            "F9 runs the suite on it" * bool(self.buffer),
        ]
        self.about = " · ".join(filter(None, parts))
        self.post_message(AboutChanged())

    def words_of(self, name: str) -> str:
        """Return the name of the function, without the task's id."""
        return name.partition("/")[2]


class OverviewPage(TaskPage, LineList):
    """The page with a summary of the evidence for and against the task."""

    def fill(self, content: PageContent) -> None:
        """Show the summary for a task."""
        known = TaskFacts.of(content.session, content.dossier)
        lines = screens_of(content.dossier.task).validating().overview(known, content.width)
        self.show(lines, keep_place=not content.first)


class BriefPage(TaskPage, MarkdownText):
    """The page with the brief, as a solver gets it."""

    about = "v shows it verbatim"
    changes = False

    def fill(self, content: PageContent) -> None:
        """Show the brief of a task."""
        self.show(content.dossier.brief)


class DiffPage(TaskPage, DiffView):
    """The page with the diff from the original to the corrupted tree."""

    changes = False

    def fill(self, content: PageContent) -> None:
        """Show the diff of a task; if a single file has changed, with syntax colours."""
        dossier = content.dossier
        path, *others = {target.path for target in dossier.answer.targets}
        if others:
            self.load_diff(dossier.diff)
        else:
            before, after = dossier.text(path, corrupted=False), dossier.text(path, corrupted=True)
            self.load(before, after, name=path)


@dataclass(frozen=True, slots=True)
class PageEntry:
    """A page about a task: its tab, its widget, and the tasks that have it."""

    title: str
    make: Callable[[], Widget]
    focus: str = ""
    """The selector of the widget to focus; empty for the page itself."""
    applies: Callable[[Dossier], bool] = lambda dossier: True
    """A function that returns whether a task has content for the page."""
    instead: str = "overview"
    """The page for tasks that don't have this one. For tasks that have neither, the overview is shown."""
    key: str = ""
    """The function key; empty if the page's position determines it."""


def _has_targets(dossier: Dossier) -> bool:
    return bool(dossier.answer.targets)


def _has_gists(dossier: Dossier) -> bool:
    return kind_of(dossier.task).screen == "gist"


PAGES: dict[str, PageEntry] = {
    "overview": PageEntry("Overview", partial(OverviewPage, id="overview")),
    "brief": PageEntry("Brief", partial(BriefPage, id="brief")),
    "diff": PageEntry("Diff", partial(DiffPage, id="diff"), applies=_has_targets, instead="gist"),
    "tests": PageEntry("Tests", TestsPage, "#test-rows", applies=_has_targets),
    "runs": PageEntry("Runs", partial(RunsPage, id="runs")),
    "code": PageEntry("Code", CodePage, "#code-view", applies=_has_targets, instead="gist"),
    "fix": PageEntry("Fix", FixPage, "#editor #function-editor", applies=_has_targets, instead="gist"),
    "gist": PageEntry("Gist", GistPage, applies=_has_gists, instead="fix", key="F8"),
}
_PAGES_OF_LINKS = {"page": "", "test": "tests", "code": "code", "source": "code"}
"""The page for each kind of link: a named page, the outcomes of a test, a function, a test's function."""


class TaskPages(Pages):
    """The pages about a task. A page is filled when it is shown."""

    def __init__(self, session: ValidationSession) -> None:
        names = {name: page.title for name, page in PAGES.items()}
        makers = {name: page.make for name, page in PAGES.items()}
        keys = {name: page.key for name, page in PAGES.items() if page.key}
        super().__init__(names, makers, later=frozenset({"gist"}), keys=keys)
        self._session = session
        self._dossier: Dossier | None = None
        self._filled: dict[str, str] = {}
        self._stale: set[str] = set()
        self._link = ""

    @on(AboutChanged)
    async def _about_changed(self, message: AboutChanged) -> None:
        message.stop()
        self._show_note()

    def _show_note(self) -> None:
        """Show the current page's note in the frame."""
        page = self.made[self.current]
        self.note(page.about if isinstance(page, TaskPage) else "")

    async def show(self, page: str) -> Widget:
        """Show a page, and return its widget."""
        widget = await super().show(page)
        self._show_note()
        return widget

    async def open(self, dossier: Dossier) -> None:
        """Set another task, and show the overview if the task doesn't have the current page."""
        self._dossier = dossier
        self.hide_tabs(frozenset(name for name, page in PAGES.items() if not page.applies(dossier)))
        if self.current != self._fitting(self.current):
            await self.show("overview")

    def close(self) -> None:
        """Forget the task, because none is displayed any more."""
        self._dossier = None

    def applies(self, page: str) -> bool:
        """Return whether the task has a page; True if no task is shown."""
        return self._dossier is None or PAGES[page].applies(self._dossier)

    def _fitting(self, page: str) -> str:
        """Return the page to show for a requested one, which the task may not have."""
        dossier = self._dossier
        if dossier is None:
            return page
        return next(
            (name for name in (page, PAGES[page].instead) if PAGES[name].applies(dossier)), "overview"
        )

    async def go_to(self, page: str, link: str = "") -> None:
        """Show and focus a page. `link` is the place on it; empty for none."""
        if not self.display:
            return
        page = self._fitting(page)
        widget = await self.show(page)
        self._link = link
        self.fill()
        target = self.query_one(PAGES[page].focus, Widget) if PAGES[page].focus else widget
        self.screen.set_focus(target if target.focusable else None)
        if not target.focusable:
            target.focus()

    async def follow(self, link: str) -> bool:
        """Go to the page of a link. Return False if the link does not lead to a page."""
        kind, _, rest = link.partition(":")
        if kind not in _PAGES_OF_LINKS:
            return False
        if kind == "page":
            await self.go_to(rest)
        else:
            await self.go_to(_PAGES_OF_LINKS[kind], link)
        return True

    def refill(self) -> None:
        """Fill the current page with new facts, and the other pages when they are shown."""
        self._stale = {name for name, page in self._pages() if page.changes}
        self.fill()

    def fill(self) -> None:
        """Fill the current page, unless it already shows the task and its latest facts."""
        dossier, name, page = self._dossier, self.current, self.made[self.current]
        if dossier is None or not isinstance(page, TaskPage):
            return
        first = self._filled.get(name) != dossier.task.id
        if first or name in self._stale or self._link:
            self._filled[name] = dossier.task.id
            self._stale.discard(name)
            page.fill(PageContent(self._session, dossier, first, self._link, max(40, self.size.width - 2)))
            self._link = ""

    def unsaved(self) -> list[tuple[str, str]]:
        """Return the names and contents of the buffers that are not saved yet."""
        typed = [page.unsaved for _, page in self._pages()]
        return [buffer for buffer in typed if buffer is not None]

    def note_kept(self, buffer: str, code: str) -> None:
        """Remember that a buffer's text is saved."""
        for _, page in self._pages():
            page.note(buffer, code)

    def _pages(self) -> Iterator[tuple[str, TaskPage]]:
        for name, page in self.made.items():
            if isinstance(page, TaskPage) and page.is_mounted:
                yield name, page
