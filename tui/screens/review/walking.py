"""Going through a run: by kind of step, by number, by hits of a search, by playing, and along a growing file."""

from __future__ import annotations

from collections.abc import Callable

from textual import on
from textual.app import ComposeResult
from textual.containers import Container

from gistpoint.core.errors import UserError
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.searching import Hit
from gistpoint.tui.screens.review.playing import Player
from gistpoint.tui.screens.review.reader import IndexGrew, LastStepRead, RunRewritten
from gistpoint.tui.screens.review.reading import ReadingScreen
from gistpoint.tui.screens.review.search_bar import HitList, SearchBar
from gistpoint.tui.screens.review.searching import HitsFound, Searcher, SearchFailed, Wanted
from gistpoint.tui.screens.review.step_text import compose
from gistpoint.tui.screens.review.step_view import StepView
from gistpoint.tui.widgets.record_list import RecordList

_FOLLOW_S = 1.0


class WalkingScreen(ReadingScreen):
    """Movement and search."""

    def __init__(self, name: str, opening: Callable[[], RunDocument], runs: tuple[str, ...] = ()) -> None:
        """`runs` are the names of the list that the run was chosen from."""
        super().__init__(name, opening)
        self.runs = runs
        self.searcher = Searcher(self)
        self.hits: list[Hit] = []
        self.hit: int | None = None
        self.hit_count = 0
        self._searched: Wanted | None = None
        self._hit_to_show: Hit | None = None
        self._goes_to_first = False
        self.bar: SearchBar | None = None
        """Where a search is typed; made when it is first wanted."""
        self.player = Player(self, self._seconds, self._play_on)
        self.following = False
        self._to_end = self._uncounted = False

    def compose(self) -> ComposeResult:
        """Put the search line above the keys."""
        yield from super().compose()
        yield Container(id="review-search-place")

    def on_mount(self) -> None:
        """Look whether the file grows."""
        self.set_interval(_FOLLOW_S, self._look_for_growth)

    def on_unmount(self) -> None:
        """Let go of the threads."""
        self.searcher.stop()
        self.player.stop()

    # Steps

    def action_step(self, by: int) -> None:
        """Go on or back."""
        self.steps.cursor += by

    def action_edge(self, end: int) -> None:
        """Go to the first or last step; the end is read first where it is not known."""
        document = self.reader.document
        if end > 0 and (document is None or not document.finished):
            self._to_end = True
            self.steps.together.hold()
            self.reader.hurry()
            self.say("Reading to the end …")
            return
        if self._to_end:
            self._to_end = False
            self.say("")
        self.steps.action_edge(end)
        if self._uncounted and self.step is not None and self.step.index == self.steps.cursor:
            self.show_step()

    def action_number(self) -> None:
        """Ask for a step's number, and go there."""
        from gistpoint.tui.screens.dialogs.ask import TextDialog

        def answered(value: str | None) -> None:
            if value and value.strip().isdigit():
                self.steps.cursor = int(value) - 1

        self.app.push_screen(TextDialog("Go to step", placeholder=f"1 to {self.steps.count:,}"), answered)

    def action_go(self, what: str, by: int) -> None:
        """Go to the next or previous step of a kind."""
        from gistpoint.tui.screens.review.movement import fits, nearest, next_step

        here, count = self.steps.cursor, self.steps.count
        if what == "label":
            place = nearest(self.labelled_steps(), here, by)
            known = True
        elif what == "unseen":
            seen = self.seen_steps()
            place = next(
                (n for n in (range(here + 1, count) if by > 0 else range(here - 1, -1, -1)) if n not in seen), None
            )
            known = True
        else:
            survey = self.reader.survey
            place, known = (None, False) if survey is None else next_step(survey, here, by, count, fits(survey, what))
        if place is not None:
            self.steps.cursor = place
        else:
            words = "none" if known else "none so far: the run is still being read"
            self.say(f"{'Next' if by > 0 else 'Previous'} {what}: {words}")

    def labelled_steps(self) -> set[int]:
        """Return the steps that something was said about."""
        return set()

    def seen_steps(self) -> set[int]:
        """Return the steps that were seen."""
        return set()

    # Playing and following

    def _seconds(self) -> float:
        survey = self.reader.survey
        here = self.steps.cursor
        return float(survey.seconds[here]) if survey is not None and here < len(survey) else 0.0

    def _play_on(self) -> bool:
        if self.steps.cursor + 1 >= self.steps.count:
            self.say("▶ The end.")
            return False
        self.steps.cursor += 1
        return True

    def action_play(self) -> None:
        """Play, or pause."""
        self.player.toggle()
        self._say_playing()

    def action_speed(self, by: int) -> None:
        """Play faster or slower."""
        self.player.faster(by)
        self._say_playing()

    def _say_playing(self) -> None:
        state = "▶ plays" if self.player.playing else "‖ paused"
        self.say(f"{state}, {self.player.speed:g} times as fast as recorded; waits are cut at 10 s")

    def action_follow(self) -> None:
        """Stay at the end of a run that is being written, or no longer."""
        self.following = not self.following
        if self.following:
            self.steps.action_edge(1)
        self.say("Following: new steps come into sight as they are written." if self.following else "Not following.")

    def _look_for_growth(self) -> None:
        document = self.reader.document
        if document is not None and document.finished and document.changed:
            self.reader.look_for_growth()

    @on(RunRewritten)
    def open_again(self) -> None:
        """Read a file anew that was written anew."""
        at_end, here = self.following, self.steps.cursor
        self.reader.stop()
        self.reader = self.new_reader()
        self.header, self._history = None, None
        self.steps.facts = self.reader.rows
        self.step = None if at_end else self.step
        self.reader.start(here)

    @on(LastStepRead)
    def last_step_read(self, message: LastStepRead) -> None:
        """Show the last step while those before it are being counted."""
        if self._to_end and self.pages.current == "step":
            self._uncounted = True
            self.step_view.show(compose(message.step, {}, hides=self.hides))
            self.draw_title()
            self.steps.together.release()

    def draw_title(self) -> None:
        """Show which step this is, or that its number is not known yet."""
        if not self._uncounted:
            super().draw_title()
        elif self.reader.document is not None:
            so_far = f"{self.reader.document.step_count:,}"
            self.title_line.update(f"Last step  of {so_far}+: those before it are being counted …", layout=False)

    @on(RecordList.Moved, "#steps")
    def gone_elsewhere(self) -> None:
        """Wait for the end no longer."""
        self._to_end = False

    @on(IndexGrew)
    def stay_at_end(self) -> None:
        """Go to the end once it is known, where that is wanted; stay there when following."""
        if self.reader.document is not None and self.reader.document.finished and (self.following or self._to_end):
            if self._to_end:
                self._to_end = False
                self.say("")
            self.steps.set_count(self.reader.document.step_count)
            self.steps.action_edge(1)

    # Search

    async def action_search(self) -> None:
        """Let words be typed."""
        await self._open_bar()

    async def search_all(self) -> None:
        """Let words be typed that are looked for in all runs."""
        await self._open_bar(all_runs=True)

    async def _open_bar(self, *, all_runs: bool = False) -> None:
        if self.bar is None:
            self.bar = SearchBar(id="review-search", runs=self.runs)
            await self.query_one("#review-search-place").mount(self.bar)
        self.bar.open(all_runs=all_runs)

    @on(SearchBar.Asked)
    def search_asked(self, message: SearchBar.Asked) -> None:
        """Search for what is typed by now."""
        self.hits, self.hit, self.hit_count, self._searched = [], None, 0, message.wanted
        self.step_view.walks_hits = False
        self._show_hits()
        if message.wanted is None:
            self.searcher.stop()
            self.say("")
            self.step_view.search("")
        else:
            self.say("searching …")
            self.searcher.search(message.wanted, self.reader.document)

    @on(HitsFound)
    def hits_found(self, message: HitsFound) -> None:
        """Take up more hits; the first one near is shown at once."""
        if message.wanted != self._searched:
            return
        self.hits.extend(message.hits)
        self.hit_count = message.count
        self.step_view.walks_hits = bool(self.hits)
        self._show_hits()
        if self._goes_to_first and self.hits:
            self._goes_to_first = False
            self._go_to_nearest()
        more = "" if message.finished else " so far"
        place = f"{(self.hit or 0) + 1:,} of " if self.hit is not None else ""
        self.say(f"{place}{self.hit_count:,} found{more}; n and N go through them, F8 lists them")

    @on(SearchFailed)
    def search_failed(self, message: SearchFailed) -> None:
        """Say why a pattern can't be used."""
        if not isinstance(message.error, UserError):
            raise message.error
        self.say(f"{message.error.message} {message.error.hint}")

    @on(SearchBar.Left)
    def search_left(self, message: SearchBar.Left) -> None:
        """Give the keys back; go to the nearest hit where that was asked."""
        if self.bar is not None:
            self.bar.display = False
        self.set_focus(self.steps)
        self._goes_to_first = message.go and not self.hits
        if message.go and self.hits:
            self._go_to_nearest()

    def _go_to_nearest(self) -> None:
        here = self.steps.cursor
        at = next((n for n, hit in enumerate(self.hits) if hit.run == self.run_name and hit.step >= here), 0)
        self.go_to_hit(at)

    def _show_hits(self) -> None:
        widget = self.pages.made.get("hits")
        if isinstance(widget, HitList):
            widget.show(self.hits, names_runs=bool(self._searched and self._searched.runs))

    async def action_page(self, page: str) -> None:
        """Show a page; the list of hits is filled at once."""
        await super().action_page(page)
        if page == "hits":
            self._show_hits()

    @on(RecordList.Chosen, "#hits")
    async def hit_chosen(self, message: RecordList.Chosen) -> None:
        """Go to a hit of the list."""
        await self.action_page("step")
        self.go_to_hit(message.index)

    @on(StepView.HitWanted)
    def hit_wanted(self, message: StepView.HitWanted) -> None:
        """Go to the next hit, or the one before."""
        self.action_hit(message.by)

    def action_hit(self, by: int) -> None:
        """Go to the next hit, or the one before, around the end."""
        if not self.hits:
            self.say("There is nothing to go to: / searches.")
            return
        at = (self.hit + by) % len(self.hits) if self.hit is not None else (0 if by > 0 else len(self.hits) - 1)
        self.go_to_hit(at)

    def go_to_hit(self, index: int) -> None:
        """Show a hit, in its own run."""
        hit = self.hits[index]
        self.hit = index
        self.say(f"{index + 1:,} of {self.hit_count:,} found; n and N go through them, F8 lists them")
        if hit.run != self.run_name and self._searched is not None and self._searched.runs:
            self.open_hit(hit, self._searched)
            return
        self._hit_to_show = hit
        if self.steps.cursor != hit.step:
            self.steps.cursor = hit.step
        else:
            self._show_hit()

    def open_hit(self, hit: Hit, wanted: Wanted) -> None:
        """Open the run that a hit stands in; for subclasses."""

    def show_step(self) -> None:
        """Show the step, and the hit that was gone to."""
        self._uncounted = False
        super().show_step()
        self._show_hit()

    def whole_shown(self) -> None:
        """Go on to a hit in what was folded."""
        self._show_hit()

    def _show_hit(self) -> None:
        hit, wanted, view = self._hit_to_show, self._searched, self.step_view
        if hit is None or wanted is None or self.step is None or self.step.index != hit.step:
            return
        offset = view.composed.offset_of(hit.scope, hit.part, hit.start)
        if offset is None and view.composed.folded and not self._whole:
            self.unfold()
            return
        self._hit_to_show = None
        view.terminal = False
        view.search(wanted.pattern, regex=wanted.regex)
        if offset is not None:
            view.go_to_offset(offset)
