"""The search in one run or in all runs of a list: the search bar, the hits, and moving between hits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input

from gistpoint.core.errors import CancelledError, UserError
from gistpoint.core.running import CancelToken
from gistpoint.core.text import plural
from gistpoint.sessions.records.model import TextScope
from gistpoint.sessions.runs.found_lines import FoundLines
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.drafts import DraftPlace
from gistpoint.tui.jobs import Job, Jobs
from gistpoint.tui.screens.review.settings import FoundHits, SearchRequest
from gistpoint.tui.screens.review.view import ReviewView
from gistpoint.tui.widgets.plain import Plain

if TYPE_CHECKING:
    from gistpoint.sessions.runs.document import RunDocument
    from gistpoint.sessions.runs.searching import Hit, Query
    from gistpoint.tui.screens.review.hit_list import HitList

_QUERY = "query"
"""The name of the query among the drafts."""
KEPT = 20_000
"""The maximum number of hits that are kept. Further hits are only counted."""
_TYPING_S = 0.12
_BATCH_S = 0.1
_SLICE_S = 0.008
_REST_S = 0.001
"""Seconds between two slices of a search, in which the keyboard can have the interpreter's lock."""
_DRAWN_S = 0.03
"""Seconds after each batch of hits in which the hits can be drawn."""
SCOPES: tuple[tuple[str, tuple[TextScope, ...]], ...] = (
    ("everywhere", tuple(TextScope)),
    ("thoughts", (TextScope.THOUGHT,)),
    ("texts", (TextScope.TEXT,)),
    ("calls", (TextScope.CALL,)),
    ("results", (TextScope.RESULT,)),
    ("diffs", (TextScope.DIFF,)),
    ("what is also recorded", (TextScope.ALSO,)),
    ("the header", (TextScope.HEADER,)),
)


@dataclass(frozen=True, slots=True)
class SearchBatch:
    """New hits, and the number of hits so far."""

    hits: list[Hit]
    count: int
    finished: bool


class SearchBar(Horizontal):
    """The search bar, which searches while the query is typed. Enter goes to a hit, Escape closes it."""

    DEFAULT_CSS = """
    SearchBar { height: 1; display: none; background: $surface; }
    SearchBar Input { width: 1fr; height: 1; border: none; padding: 0 1; }
    SearchBar Plain { width: auto; padding: 0 1; color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("alt+r", "regex", "Regular expression", id="search.regex", show=True, priority=True),
        Binding("alt+k", "scope", "Where", id="search.scope", show=True, priority=True),
        Binding("alt+a", "runs", "All runs", id="search.runs", show=True, priority=True),
        Binding("escape", "close", "Close", id="search.close", show=True, priority=True),
    ]

    class SearchRequested(Message):
        """A message that requests a search, or with None the end of the search."""

        def __init__(self, wanted: SearchRequest | None) -> None:
            super().__init__()
            self.wanted = wanted

    class Left(Message):
        """A message that the bar was left. `go` is set if this was done to go to a hit."""

        def __init__(self, *, go: bool) -> None:
            super().__init__()
            self.go = go

    def __init__(self, *, id: str, runs: tuple[str, ...] = ()) -> None:
        super().__init__(id=id)
        self.runs = runs
        self.all_runs = False
        self.regex = False
        self.scope = 0
        self._typing: Timer | None = None

    def compose(self) -> ComposeResult:
        """Lay out the field and the options of the search."""
        yield Input(placeholder="search", compact=True, select_on_focus=True)
        yield Plain("", id="search-ways")

    def on_mount(self) -> None:
        """Offer the query that was typed about this run and not used, which searches again."""
        self.query_one(Input).value = self._drafts.read().get(_QUERY, "")

    @property
    def _drafts(self) -> DraftPlace:
        """The place of the query. It is empty once Enter has used the query."""
        return cast("BaseScreen[object]", self.screen).draft("search in the run")

    def open(self, *, all_runs: bool = False) -> None:
        """Show the bar and focus it.

        `all_runs` selects the search in all runs; otherwise, the choice is kept.
        """
        self.all_runs = all_runs or self.all_runs
        self.display = True
        self.query_one(Input).focus()
        self._show_options()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the keys of the bar only while it is visible, and `runs` only if there is a list of runs."""
        return self.display and (action != "runs" or len(self.runs) > 1)

    @property
    def wanted(self) -> SearchRequest | None:
        """The search that the bar describes; None if the field is empty."""
        pattern = self.query_one(Input).value
        if not pattern:
            return None
        return SearchRequest(pattern, self.regex, SCOPES[self.scope][1], self.runs if self.all_runs else ())

    @on(Input.Changed)
    def typed(self, event: Input.Changed) -> None:
        """Start the timer after which the query is searched for."""
        event.stop()
        self._drafts.write({_QUERY: event.value})
        if self._typing is not None:
            self._typing.stop()
        self._typing = self.set_timer(_TYPING_S, self._ask)

    @on(Input.Submitted)
    def submitted(self, event: Input.Submitted) -> None:
        """Leave the bar for the hits, searching at once if the timer is running."""
        event.stop()
        if self._typing is not None:
            self._ask()
        self._drafts.write({})
        self.post_message(self.Left(go=True))

    def action_close(self) -> None:
        """Hide the bar, and keep the hits."""
        self.display = False
        self.post_message(self.Left(go=False))

    def action_regex(self) -> None:
        """Switch between a regular expression and plain text."""
        self.regex = not self.regex
        self._changed()

    def action_scope(self) -> None:
        """Search in the next choice of parts, in the order of `SCOPES`."""
        self.scope = (self.scope + 1) % len(SCOPES)
        self._changed()

    def action_runs(self) -> None:
        """Switch between all runs and this one."""
        self.all_runs = not self.all_runs
        self._changed()

    def _changed(self) -> None:
        self._show_options()
        self._ask()

    def _ask(self) -> None:
        if self._typing is not None:
            self._typing.stop()
            self._typing = None
        self.post_message(self.SearchRequested(self.wanted))

    def _show_options(self) -> None:
        ways = [
            "regex" if self.regex else "text",
            SCOPES[self.scope][0],
            "all runs" if self.all_runs else "this run",
        ]
        self.query_one("#search-ways", Plain).update(" · ".join(ways))


class Search(Container):
    """The current search and its hits. A new search replaces the previous one.

    As a widget, it contains the search bar.
    """

    DEFAULT_CSS = """
    Search { height: auto; }
    """

    def __init__(self, view: ReviewView, runs: tuple[str, ...], *, id: str) -> None:
        """`runs` are the runs of the list, which can be searched together."""
        super().__init__(id=id)
        self._view, self._runs = view, runs
        self._jobs = Jobs(self, "search", failed=self._failed)
        self.wanted: SearchRequest | None = None
        self.hits: list[Hit] = []
        self.found = FoundLines()
        """The lines of the hits."""
        self.count = 0
        """The number of hits, including those beyond `KEPT` that are not in `hits`."""
        self.hit: int | None = None
        """The index of the last shown hit; None if none was shown."""
        self._to_show: Hit | None = None
        self._is_marked = False
        """Whether the hits in the visible step are marked."""
        self._goes_to_first = False

    def on_unmount(self) -> None:
        """Stop the search."""
        self._jobs.stop()

    async def open(self) -> None:
        """Show the search bar."""
        bar = next(iter(self.query(SearchBar)), None)
        if bar is None:
            bar = SearchBar(id="review-search", runs=self._runs)
            await self.mount(bar)
        bar.open()

    @on(SearchBar.SearchRequested)
    def search_requested(self, message: SearchBar.SearchRequested) -> None:
        """Start a search, or drop the search if the query is empty."""
        wanted = message.wanted
        self._set_hits(wanted, [])
        if wanted is None:
            self._jobs.cancel()
            self._view.show_message("")
            self._view.step_page.search("")
            return
        self._view.show_message("searching …")
        self._ask(wanted)

    def _ask(self, wanted: SearchRequest) -> None:
        from gistpoint.tui.screens.review.run_rows import OtherOutcomes

        view, run = self._view, self._view.run
        document, name, here = run.loader.document, run.name, run.hides
        of_others = OtherOutcomes(view.settings)

        def hides(searched: RunDocument) -> bool:
            return here if searched.name == name else of_others.hides(searched)

        self._jobs.do(lambda job: self._search(job, wanted, document, hides), self._add_hits, key="search")

    def run_changed(self) -> None:
        """Drop the hits of the previous run, but not those of a search in all runs."""
        self._is_marked = False
        if self.wanted is not None and not self.wanted.runs:
            self._set_hits(self.wanted, [])

    def run_opened(self) -> None:
        """Search the run that is visible now for the same pattern as the previous one.

        If all runs were searched, or nothing, only show the hits.
        """
        if self.wanted is not None and not self.wanted.runs:
            self._ask(self.wanted)
        else:
            self.show_hits()

    def go_on_from(self, found: FoundHits) -> None:
        """Take over a search that began in another run or list, and show one of its hits."""
        if found.hits is not self.hits:
            self._set_hits(found.wanted, list(found.hits))
        self._view.steps.opened_at_step = True
        self._view.steps.set_count(max(self._view.steps.count, (found.hits[found.at].step or 0) + 1))
        self.go_to(found.at)

    def _set_hits(self, wanted: SearchRequest | None, hits: list[Hit]) -> None:
        self.wanted, self.hits, self.count, self.hit = wanted, hits, len(hits), None
        self.found = FoundLines()
        self.found.add(hits)
        self._view.step_page.walks_hits = bool(hits)
        if self._is_marked:
            self._is_marked = False
            self._view.step_page.search("")
        self.show_hits()

    def show_hits(self) -> None:
        """Show the hits on the strip, and on their page if it has been made."""
        name = self._view.run.name
        self._view.show_hits_along(
            [hit.step for hit in self.hits if hit.run == name and hit.step is not None]
        )
        page = self._view.pages.made.get("hits")
        if page is not None:
            cast("HitList", page).show_lines(
                self.found.lines, names_runs=bool(self.wanted and self.wanted.runs)
            )

    def _add_hits(self, batch: SearchBatch) -> None:
        if self.wanted is None:  # the search was ended before this batch arrived
            return
        self.count = batch.count
        if batch.hits:
            self.hits.extend(batch.hits)
            self.found.add(batch.hits)
            self._view.step_page.walks_hits = True
            self.show_hits()
            self._mark_hits()
        if self._goes_to_first and self.hits:
            self._goes_to_first = False
            self._go_to_nearest()
        self._show_place(so_far=not batch.finished)

    def _mark_hits(self) -> None:
        """Mark the hits in the visible step while the query is being typed."""
        step, wanted, view = self._view.run.step, self.wanted, self._view.step_page
        here = step is not None and any(
            hit.step == step.index and hit.run == self._view.run.name for hit in self.hits
        )
        if here and wanted is not None and self.hit is None and not self._is_marked:
            self._is_marked = True
            view.search(wanted.pattern, regex=wanted.regex)

    def _show_place(self, *, so_far: bool = False) -> None:
        place = f"{self.hit + 1:,} of " if self.hit is not None else ""
        more = " so far" if so_far else ""
        lines = len(self.found.lines)
        in_lines = f" in {plural(lines, 'line')}" if lines != self.count else ""
        found = f"{place}{self.count:,} found{more}{in_lines}; n and N go through them, F8 lists the lines"
        self._view.show_message(found if self.count else f"None found{more}")

    def _failed(self, error: Exception) -> None:
        if not isinstance(error, UserError):
            raise error
        self._view.show_message(f"{error.message} {error.hint}")

    # Moving to hits

    @on(SearchBar.Left)
    def left(self, message: SearchBar.Left) -> None:
        """Hide the bar and focus the steps; with `go`, also move to a hit.

        This is the next hit in this run, otherwise the first hit, even if that is found only later.
        """
        self.query_one(SearchBar).display = False
        self.screen.set_focus(self._view.steps)
        self._goes_to_first = message.go and not self.hits
        if message.go and self.hits:
            self._go_to_nearest()

    def step(self, by: int) -> None:
        """Move to the next or previous hit, wrapping around at the ends."""
        if not self.hits:
            self._view.show_message("No hits. Press / to search.")
        elif self.hit is not None:
            self.go_to((self.hit + by) % len(self.hits))
        else:
            self.go_to(0 if by > 0 else len(self.hits) - 1)

    def _go_to_nearest(self) -> None:
        here, name = self._view.steps.cursor, self._view.run.name
        later = (
            n for n, hit in enumerate(self.hits) if hit.run == name and (hit.step is None or hit.step >= here)
        )
        self.go_to(next(later, 0))

    def go_to(self, index: int) -> None:
        """Show a hit, opening its run if that run is not the visible one."""
        hit = self.hits[index]
        self.hit = index
        self._show_place()
        if hit.run != self._view.run.name and self.wanted is not None and self.wanted.runs:
            self._view.go_to_run(hit.run, found=FoundHits(self.wanted, self.hits, index))
            return
        self._to_show = hit
        if hit.step is None:
            self.call_next(self._show_in_header, hit)
            return
        self._view.show_step_page()
        if self._view.steps.cursor != hit.step:
            self._view.steps.cursor = hit.step
        else:
            self.show_hit()

    async def _show_in_header(self, hit: Hit) -> None:
        """Show a hit on the page with the facts of the run's header."""
        from gistpoint.tui.screens.review.pages.texts import RunInfoPage

        page = await self._view.pages.show("run")
        assert isinstance(page, RunInfoPage)
        page.sought = self.wanted, hit
        self._view.fill_page(reload=True)

    def show_hit(self) -> None:
        """Move the cursor to the requested hit in the visible step, unfolding the step first if necessary."""
        hit, wanted, step, view = self._to_show, self.wanted, self._view.run.step, self._view.step_page
        if hit is None or wanted is None or step is None or step.index != hit.step:
            return
        offset = view.composed.offset_of(hit.scope, hit.part, hit.start)
        if offset is None and view.composed.folded and not view.whole:
            view.unfold()
            return
        self._to_show = None
        view.terminal = False
        if offset is not None:
            view.go_to_offset(offset)
        view.search(wanted.pattern, regex=wanted.regex)

    # In the job's thread

    def _search(
        self,
        job: Job,
        wanted: SearchRequest,
        document: RunDocument | None,
        hides: Callable[[RunDocument], bool],
    ) -> SearchBatch:
        from gistpoint.sessions.runs.searching import Query

        query = Query(wanted.pattern, regex=wanted.regex, scopes=wanted.scopes)
        return collected(job, _hits(wanted, query, document, job.cancel, hides), self._add_hits)


def collected(job: Job, hits: Iterator[Hit], take: Callable[[SearchBatch], object]) -> SearchBatch:
    """Pass hits to `take` in batches on the UI thread, and return the last batch.

    Only the first `KEPT` hits are passed; further hits are only counted. Raises `CancelledError` if the job
    is cancelled.
    """
    batch: list[Hit] = []
    count, handed = 0, time.monotonic()
    rested = handed
    for hit in hits:
        count += 1
        if count <= KEPT:
            batch.append(hit)
        now = time.monotonic()
        if count == 1 or now - handed > _BATCH_S:
            job.hand(take, SearchBatch(batch, count, finished=False))
            time.sleep(_DRAWN_S if batch else _REST_S)
            batch, handed = [], time.monotonic()
        if now - rested > _SLICE_S:
            job.cancel.check()
            time.sleep(_REST_S)
            rested = time.monotonic()
    return SearchBatch(batch, count, finished=True)


def _hits(
    wanted: SearchRequest,
    query: Query,
    document: RunDocument | None,
    cancel: CancelToken,
    hides: Callable[[RunDocument], bool],
) -> Iterator[Hit]:
    if wanted.runs:
        yield from hits_in_all(wanted.runs, query, cancel, hides)
    elif document is not None:
        yield from _hits_in(document, query, cancel, hides=hides(document))


def _hits_in(document: RunDocument, query: Query, cancel: CancelToken, *, hides: bool) -> Iterator[Hit]:
    from gistpoint.sessions.runs.blind_view import search_blind
    from gistpoint.sessions.runs.searching import search_document

    return (search_blind if hides else search_document)(document, query, cancel=cancel)


def hits_in_all(
    runs: Sequence[str],
    query: Query,
    cancel: CancelToken,
    hides: Callable[[RunDocument], bool],
    unread: dict[str, str] | None = None,
) -> Iterator[Hit]:
    """Yield the hits in the runs with these names. Raises `CancelledError` once `cancel` is set.

    `hides` returns whether a run's model and outcome are hidden. If a run can't be read, the reason is stored
    in `unread` under the run's name.
    """
    from gistpoint.sessions.runs.opening import open_run
    from gistpoint.sessions.runs.searching_files import Sieve

    sieve = Sieve(query)
    for name in runs:
        cancel.check()
        if not sieve.wants_run(name):
            continue
        try:
            document = open_run(name)
            yield from _hits_in(document, query, cancel, hides=hides(document))
        except CancelledError:
            raise
        except UserError as error:
            if unread is not None:
                unread[name] = str(error)
