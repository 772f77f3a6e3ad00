"""The widgets of the pages, and how each is filled: in the reader's thread, which hands over what draws."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from textual.widget import Widget

from gistpoint.sessions.runs.document import RunDocument

if TYPE_CHECKING:
    from gistpoint.sessions.runs.repository import RepositoryState
    from gistpoint.tui.screens.review.contents import DiffContent
    from gistpoint.tui.screens.review.gist_evidence import GistContent
    from gistpoint.tui.screens.review.history import HistoryReader

Made = TypeVar("Made", bound=Widget)
Fill = Callable[[], None]
Tell = Callable[[Fill], None]
"""Hands what draws a page to the screen."""


class PagedScreen(Protocol):
    """What filling a page needs of its screen."""

    hides: bool
    gist_shown: str

    def note(self, text: str) -> None:
        """Say something above the page."""
        ...

    def page(self, kind: type[Made], name: str) -> Made:
        """Return the widget of a page that was made."""
        ...

    def history(self, document: RunDocument) -> HistoryReader:
        """Return what follows the repository through the run."""
        ...

    def replayed_text(self, document: RunDocument, index: int) -> tuple[str, str]:
        """Return what the replay has to tell of a step, and a note above it."""
        ...

    def gist_content(self, document: RunDocument, state: RepositoryState) -> GistContent:
        """Return the gist after a step, with what is known of its lines."""
        ...


def _diff_view(id: str) -> Widget:
    from gistpoint.tui.widgets.diff_view import DiffView

    return DiffView(id=id)


def _outcome_table() -> Widget:
    from gistpoint.tui.widgets.outcome_table import OutcomeTable

    return OutcomeTable(id="tests")


def _text_view(id: str) -> Widget:
    from gistpoint.tui.widgets.text_view import TextView

    return TextView(can_interpret=True, id=id)


def _hit_list() -> Widget:
    from gistpoint.tui.screens.review.search_bar import HitList

    return HitList(id="hits")


def _files_page() -> Widget:
    from gistpoint.tui.screens.review.files_page import FilesPage

    return FilesPage(id="files")


def _gist_page() -> Widget:
    from gistpoint.tui.widgets.gist_view import ScoredGist

    return ScoredGist(id="gist")


MAKERS: dict[str, Callable[[], Widget]] = {
    "diff": lambda: _diff_view("diff"),
    "so-far": lambda: _diff_view("so-far"),
    "tests": _outcome_table,
    "raw": lambda: _text_view("raw"),
    "run": lambda: _text_view("run"),
    "hits": _hit_list,
    "files": _files_page,
    "replay": lambda: _text_view("replay"),
    "gist": _gist_page,
}


def _show_diff(screen: PagedScreen, page: str, content: DiffContent) -> None:
    from gistpoint.tui.widgets.diff_view import DiffView

    screen.page(DiffView, page).load_diff(content.files)
    screen.note(content.note)


def _fill_diff(screen: PagedScreen, document: RunDocument, index: int, tell: Tell) -> None:
    from gistpoint.tui.screens.review.contents import step_diff

    before = document.step(index - 1).diff_so_far if index else ""
    content = step_diff(document.step(index), before)
    if content.files or document.step(index).diff is not None:
        tell(partial(_show_diff, screen, "diff", content))
        return
    from gistpoint.tui.screens.review.contents import DiffContent
    from gistpoint.tui.screens.review.files_page import BADGES

    def then(state: RepositoryState) -> None:
        files = state.this_step
        found = DiffContent(files, "  ".join([BADGES[state.badge], *state.problems[-2:]])) if files else content
        tell(partial(_show_diff, screen, "diff", found))

    screen.history(document).ask(index, then)


def _fill_tests(screen: PagedScreen, document: RunDocument, index: int, tell: Tell) -> None:
    from gistpoint.tui.screens.review.contents import outcomes
    from gistpoint.tui.widgets.outcome_table import OutcomeTable

    found = outcomes(document.step(index))

    def fill() -> None:
        screen.page(OutcomeTable, "tests").show_results(found)
        note = "As the output names them (derived): only what was printed." if found else "No output names a test."
        screen.note(note)

    tell(fill)


def _fill_raw(screen: PagedScreen, document: RunDocument, index: int, tell: Tell) -> None:
    from gistpoint.tui.screens.review.contents import raw_text
    from gistpoint.tui.widgets.text_view import TextView

    hidden = ("", "Raw records are hidden until your verdict: they may name the model.")
    text, note = hidden if screen.hides else raw_text(document, index)

    def fill() -> None:
        screen.page(TextView, "raw").load(text)
        screen.note(note)

    tell(fill)


def _fill_run(screen: PagedScreen, document: RunDocument, index: int, tell: Tell) -> None:
    from gistpoint.tui.screens.review.contents import run_text
    from gistpoint.tui.widgets.text_view import TextView

    text = run_text(document.header, document.name, blind=screen.hides)

    def fill() -> None:
        screen.page(TextView, "run").load(text)
        screen.note("")

    tell(fill)


def _fill_so_far(screen: PagedScreen, document: RunDocument, index: int, tell: Tell) -> None:
    from gistpoint.sessions.runs.repository import Badge
    from gistpoint.tui.screens.review.contents import DiffContent, parsed
    from gistpoint.tui.screens.review.files_page import BADGES

    recorded = document.step(index).diff_so_far
    files = parsed(recorded) if recorded is not None else None
    if files is not None:
        tell(partial(_show_diff, screen, "so-far", DiffContent(files, BADGES[Badge.RECORDED])))
        return

    def then(state: RepositoryState) -> None:
        note = "  ".join([BADGES[state.badge], *state.problems[-2:]])
        tell(partial(_show_diff, screen, "so-far", DiffContent(state.diff, note)))

    screen.history(document).ask(index, then)


def _fill_files(screen: PagedScreen, document: RunDocument, index: int, tell: Tell) -> None:
    from gistpoint.tui.screens.review.files_page import BADGES, FilesPage

    def then(state: RepositoryState) -> None:
        def fill() -> None:
            screen.page(FilesPage, "files").show(state)
            screen.note("  ".join([BADGES[state.badge], *state.problems[-2:]]))

        tell(fill)

    screen.history(document).ask(index, then)


def _fill_replay(screen: PagedScreen, document: RunDocument, index: int, tell: Tell) -> None:
    from gistpoint.tui.widgets.text_view import TextView

    text, note = screen.replayed_text(document, index)

    def fill() -> None:
        screen.page(TextView, "replay").load(text)
        screen.note(note)

    tell(fill)


def _fill_gist(screen: PagedScreen, document: RunDocument, index: int, tell: Tell) -> None:
    from gistpoint.tui.widgets.gist_view import ScoredGist

    def then(state: RepositoryState) -> None:
        content = screen.gist_content(document, state)

        def fill() -> None:
            page = screen.page(ScoredGist, "gist")
            page.show(content.text, content.marks, figures=content.figures, tree=content.tree)
            screen.gist_shown = content.text
            screen.note(content.note)

        tell(fill)

    screen.history(document).ask(index, then)


FILLERS: dict[str, Callable[[PagedScreen, RunDocument, int, Tell], None]] = {
    "diff": _fill_diff,
    "tests": _fill_tests,
    "raw": _fill_raw,
    "run": _fill_run,
    "so-far": _fill_so_far,
    "files": _fill_files,
    "replay": _fill_replay,
    "gist": _fill_gist,
}
