"""The screen for a search in all runs of a list. Enter on a hit opens its run at the step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import PurePath
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.getters import query_one

from gistpoint.core.errors import UserError
from gistpoint.core.text import plural
from gistpoint.sessions.runs.found_lines import FoundLine, FoundLines
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.jobs import Job, Jobs
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.screens.review.hit_list import LINE_COLUMNS
from gistpoint.tui.screens.review.run_rows import RunRow, made_by, task_words
from gistpoint.tui.screens.review.search import SearchBar, SearchBatch, collected, hits_in_all
from gistpoint.tui.screens.review.settings import FoundHits, ReviewSettings, SearchRequest
from gistpoint.tui.tables import Column
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.header_bar import HeaderBar
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.record_list import RecordList
from gistpoint.tui.widgets.table import Table

if TYPE_CHECKING:
    from gistpoint.sessions.runs.searching import Hit


class PlaceTable(Table["FoundLine"]):
    """The table of found lines: run, solver, step, the part of the step, the line and its traceback."""

    def __init__(self, runs: Mapping[str, RunRow], *, id: str) -> None:
        """`runs` are the rows of the searched runs, by name."""
        names = names_apart(runs)
        columns: tuple[Column[FoundLine], ...] = (
            Column("run", lambda found: names[found.first.run], rank=1, least=18, keeps_end=True),
            Column(
                "solver",
                lambda found: made_by(runs[found.first.run]),
                rank=6,
                least=10,
                keeps_end=True,
            ),
            *LINE_COLUMNS,
        )
        super().__init__(columns, id=id)


def names_apart(runs: Mapping[str, RunRow]) -> dict[str, str]:
    """Return a distinct display name for each run, by the run's name.

    A display name consists of the part in which the file names of runs of the same task differ, if any, and
    the task.
    """
    of_task: defaultdict[str, list[str]] = defaultdict(list)
    for name, row in runs.items():
        of_task[task_words(row)].append(name)
    return {
        name: f"{part} {words}" if part else words
        for words, names in of_task.items()
        for name, part in zip(
            names, differences(names, hidden=any(runs[name].hides for name in names)), strict=True
        )
    }


def differences(names: Sequence[str], *, hidden: bool) -> list[str]:
    """Return the part of each name that differs from the others, cut at whole words.

    If a name has no such part, return its last path segment instead. For a single name, return an empty
    string. If `hidden`, return numbers such as `#1`, because names may reveal the model.
    """
    if len(names) < 2:
        return [""]
    if hidden:
        return [f"#{number}" for number in range(1, len(names) + 1)]
    start = _shared_words(names)
    end = _shared_words([name[len(start) :][::-1] for name in names])
    return [name[len(start) : len(name) - len(end)] or PurePath(name).name for name in names]


def _shared_words(names: Sequence[str]) -> str:
    """Return the common beginning of names, up to the last character that is neither a letter nor a digit."""
    # Every other name sorts between these two, so what the two begin with is common to all.
    pairs = zip(min(names), max(names), strict=False)
    end = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    while end and names[0][end - 1].isalnum():
        end -= 1
    return names[0][:end]


class PlacesScreen(BaseScreen[None]):
    """The screen with a search in all runs, repeated while the query is typed."""

    CSS_PATH = "review.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.PLACES_IN_RUNS)]
    HELP_PAGE = "places"
    AUTO_FOCUS = ""
    SCOPES = (KeyScope.PLACES_IN_RUNS,)

    table = query_one(PlaceTable)
    bar = query_one(SearchBar)

    def __init__(self, runs: Mapping[str, RunRow], settings: ReviewSettings) -> None:
        """`runs` are the rows of the runs to search, by name, in the order of the search."""
        super().__init__()
        self._runs, self._settings = runs, settings
        self._jobs = Jobs(self, "search in runs", failed=self._failed)
        self._wanted: SearchRequest | None = None
        self._hits: list[Hit] = []
        self._lines = FoundLines()
        self._found_in: set[str] = set()
        self._unread: dict[str, str] = {}
        """The reasons why the current search could not read runs, by their names. Filled by the job."""

    def compose(self) -> ComposeResult:
        """Lay out the search bar with the hits below it."""
        yield HeaderBar("Search", f"in {plural(len(self._runs), 'run')}")
        yield SearchBar(id="places-search")
        yield framed(PlaceTable(self._runs, id="places"), "Lines")
        yield KeyBar()

    def on_mount(self) -> None:
        """Open the search bar."""
        self.bar.open(all_runs=True)

    def on_unmount(self) -> None:
        """Stop searching."""
        self._jobs.stop()

    @on(SearchBar.SearchRequested)
    def search_requested(self, message: SearchBar.SearchRequested) -> None:
        """Search for the typed query, and drop the earlier hits."""
        self._wanted = message.wanted
        self._hits, self._lines, self._found_in = [], FoundLines(), set()
        self.table.show(())
        if message.wanted is None:
            self._jobs.cancel()
            framed(self.table, "Lines")
            return
        wanted = message.wanted._replace(runs=tuple(self._runs))
        self._wanted = wanted
        framed(self.table, "Lines …")
        self._jobs.do(lambda job: self._search(job, wanted), self._add_hits, key="search")

    def _search(self, job: Job, wanted: SearchRequest) -> SearchBatch:
        from gistpoint.sessions.runs.searching import Query

        query = Query(wanted.pattern, regex=wanted.regex, scopes=wanted.scopes)
        self._unread = unread = dict[str, str]()
        hits = hits_in_all(
            wanted.runs, query, job.cancel, lambda document: self._runs[document.name].hides, unread
        )
        return collected(job, hits, self._add_hits)

    def _add_hits(self, batch: SearchBatch) -> None:
        if self._wanted is None:  # the query was cleared before this message arrived
            return
        self._hits.extend(batch.hits)
        self._lines.add(batch.hits)
        self._found_in.update(hit.run for hit in batch.hits)
        if batch.hits:
            self.table.show(self._lines.lines)
        runs = f"{len(self._found_in):,} of {plural(len(self._runs), 'run')}"
        lines = len(self._lines.lines)
        places = f" ({plural(batch.count, 'place')})" if batch.count != lines else ""
        cut = batch.count > len(self._hits)
        count = f"{lines:,}{places} in {runs}" if batch.count else "none"
        more = f"the first {plural(len(self._hits), 'place')} are listed" if cut else ""
        framed(self.table, f"Lines {count}{'' if batch.finished else ' …'}", more or self._unread_words())

    def _unread_words(self) -> str:
        """Return how many runs could not be read, with the reason for the first; empty if there are none."""
        reasons = list(self._unread.values())
        return f"{plural(len(reasons), 'run')} could not be read: {reasons[0]}" if reasons else ""

    def _failed(self, error: Exception) -> None:
        if not isinstance(error, UserError):
            raise error
        framed(self.table, error.message, error.hint)

    @on(SearchBar.Left)
    def left(self, message: SearchBar.Left) -> None:
        """Focus the hits. Escape without hits closes the screen."""
        if message.go or self._hits:
            self.set_focus(self.table)
        else:
            self.dismiss(None)

    @on(RecordList.Chosen, "#places")
    def chosen(self) -> None:
        """Open the run of the chosen hit at its step. There, `n` and `N` continue through the hits."""
        wanted, line = self._wanted, self.table.chosen
        if wanted is None or line is None:
            return
        found = FoundHits(wanted, self._hits, line.at)
        self.app.push_screen(
            self._settings.screens.run(line.first.run, self._settings, runs=tuple(self._runs), found=found)
        )

    def action_search(self) -> None:
        """Open the search bar again."""
        self.bar.open(all_runs=True)

    def action_leave(self) -> None:
        """Close the screen."""
        self.dismiss(None)
