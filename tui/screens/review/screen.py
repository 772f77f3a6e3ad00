"""The review screen: one recorded run, step by step, with a reviewer's annotations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, ClassVar, TypeVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.widgets import Input

from gistpoint.core.errors import UserError
from gistpoint.core.text import visible_line
from gistpoint.tui import signs
from gistpoint.tui.base_screen import WIDE, BaseScreen
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.screens.review.families import Family
from gistpoint.tui.screens.review.headline import run_fields, run_words
from gistpoint.tui.screens.review.loading import (
    IndexGrew,
    LastStepRead,
    ReadAhead,
    RowsRead,
    RunLoader,
    RunOpened,
    RunRewritten,
    SeveralRunsError,
    StepRead,
    opener,
)
from gistpoint.tui.screens.review.open_run import OpenRun
from gistpoint.tui.screens.review.other_runs import OtherRuns, ReadyRuns
from gistpoint.tui.screens.review.ruler import Ruler
from gistpoint.tui.screens.review.run_pages import PageContext, RunPages
from gistpoint.tui.screens.review.run_task import short_task
from gistpoint.tui.screens.review.search import Search
from gistpoint.tui.screens.review.settings import FoundHits, ReviewSettings
from gistpoint.tui.screens.review.step_list import StepList
from gistpoint.tui.screens.review.step_view import StepPage
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.header_bar import HeaderBar
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.record_list import RecordList
from gistpoint.tui.widgets.splitter import Splits

if TYPE_CHECKING:
    from gistpoint.sessions.annotations.reviews import Review

Answer = TypeVar("Answer")

_FOLLOW_S = 1.0
_STEPS_SHARE, _FOR_THE_STEP, _LEAST_STEPS = 36, 100, 40
"""Limits on the width of the step list.

It has at most this percentage of the screen's width or, if that is more, all but this many cells; and at
least this many cells, for the words in its frame.
"""
_OPENING = "Opening the run …"


class ReviewScreen(BaseScreen[None]):
    """The screen of a run under review. `OpenRun`, `Search` and `OtherRuns` do most of the work.

    They use the screen through the interface `ReviewView`.
    """

    CSS_PATH = "review.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.REVIEW)]
    HELP_PAGE = "review"
    SCOPES = (KeyScope.REVIEW,)

    def __init__(
        self,
        name: str,
        settings: ReviewSettings,
        *,
        runs: tuple[str, ...] = (),
        found: FoundHits | None = None,
        ahead: ReadAhead | None = None,
        title: str = "",
    ) -> None:
        """`runs` are the names in the list from which the run was chosen.

        `found` contains hits to continue from. `ahead` is the run if it was opened ahead of the screen.
        `title` is shown until the run is open.
        """
        super().__init__()
        self.settings = settings
        self._ready = ReadyRuns(self._new_loader)
        self.run = OpenRun(name, self._new_loader(name), self, hides=settings.may_hide, found=found)
        self._ahead, self._title = ahead, title
        self._stopped = False
        self._shown_message = ""
        """The message above the keys."""
        self._fitted: tuple[str, int] | None = None
        """The run and the terminal width for which the list of steps has its width."""
        self.search = Search(self, runs, id="review-search-place")
        self.others = OtherRuns(self, runs)

    def compose(self) -> ComposeResult:
        """Lay out header, strip, steps and pages."""
        yield HeaderBar(self._title or PurePath(self.run.name).name, "" if self._ahead else "opening …")
        yield framed(Ruler(id="ruler"), "Course")
        steps = framed(StepList(id="steps"), "Steps" if self._ahead else "Steps …")
        yield Splits(steps, framed(RunPages()), vertical=self.app.size.width < WIDE, id="review-body")
        yield Plain("", id="review-say")
        yield KeyBar()
        yield self.search

    def on_mount(self) -> None:
        """Open the run, or show the one opened ahead."""
        self.steps.facts = self.run.loader.rows
        self.steps.focus()
        if self._ahead is None:
            self.show_message(_OPENING)
            self.run.loader.start()
        else:
            self.steps.drawing_delay.hold()  # the first drawing waits until all panes know their sizes
            self.run.step = self.run.loader.take_over(self._ahead)
            self.show_run()
            self.show_step()
        self.set_interval(_FOLLOW_S, lambda: self.run.navigation.check_growth())

    def on_resize(self, event: events.Resize) -> None:
        """Lay out steps and pages side by side if there is room, otherwise below one another."""
        self.query_one(Splits).turn(vertical=event.size.width < WIDE)
        self.fit_steps()
        self.call_later(self.call_later, self.steps.drawing_delay.release)

    def on_unmount(self) -> None:
        """Stop all work on this run and its neighbours."""
        self._ready.stop()
        self.run.stop()

    @property
    def header_bar(self) -> HeaderBar:
        """The header at the top."""
        return self.query_one(HeaderBar)

    @property
    def steps(self) -> StepList:
        """The list of steps."""
        return self.query_one("#steps", StepList)

    @property
    def pages(self) -> RunPages:
        """The tabbed pages."""
        return self.query_one(RunPages)

    @property
    def step_page(self) -> StepPage:
        """The page of the step itself."""
        page = self.pages.made["step"]
        assert isinstance(page, StepPage)
        return page

    @property
    def is_at_hit(self) -> bool:
        """Whether a hit of the current search was shown."""
        return self.search.hit is not None

    # Messages from the loader

    def _new_loader(self, name: str) -> RunLoader:
        def failed(error: Exception) -> None:
            if self.run.loader is loader:
                self._failed(error)

        hides = self.settings.may_hide
        loader = RunLoader(self, opener(name), self.settings.locations, failed, hides=hides)
        return loader

    @on(RunOpened)
    def opened(self, message: RunOpened) -> None:
        """Show the run that was opened, if it is the visible one and has not been shown yet."""
        if message.loader is self.run.loader and self.run.header is None:
            self.show_run()

    def show_run(self) -> None:
        """Show the open run, then read its annotations."""
        document = self.run.loader.document
        assert document is not None
        self.run.header = document.header
        if self._shown_message == _OPENING:
            self.show_message("")
        self.steps.open_run(max(self.steps.count, document.step_count), self.run.loader.first)
        self.draw()
        self.run.read_details()
        found, self.run.found = self.run.found, None
        if found is not None:
            self.search.go_on_from(found)
        else:
            self.search.run_opened()
            self.run.navigation.arrive()
        self._get_ready()

    @on(StepRead)
    def step_read(self, message: StepRead) -> None:
        """Show a step that was read, unless another step has been requested in the meantime."""
        if message.loader is self.run.loader and message.step.index == self.steps.cursor:
            self.run.step = message.step
            self.show_step()
            self.steps.drawing_delay.release()

    @on(LastStepRead)
    def last_step_read(self, message: LastStepRead) -> None:
        """Show the last step while the steps before it are being counted."""
        if message.loader is self.run.loader and self.run.navigation.takes_last_step():
            self.step_page.show_step(message.step, self.run.loader, hides=self.run.hides)
            self.draw_title()
            self.steps.drawing_delay.release()

    @on(IndexGrew)
    def grown(self) -> None:
        """Show the part of the run that has been read since the last update."""
        document = self.run.loader.document
        if document is None:
            return
        self.run.grew()
        self.steps.set_count(document.step_count)
        self.draw()
        self.run.navigation.run_grew()
        self._get_ready()

    def _get_ready(self) -> None:
        """Open the neighbouring runs after this one has been surveyed."""
        if self.run.loader.survey is not None and self.run.loader.survey.finished:
            self._ready.prepare([name for by in (1, -1) if (name := self.others.neighbour(by)) is not None])

    @on(RunRewritten)
    def open_again(self, message: RunRewritten) -> None:
        """Reopen the visible run after its file was replaced."""
        if message.loader is not self.run.loader:
            return
        self.run.reopen(self._new_loader(self.run.name))
        self.steps.facts = self.run.loader.rows
        self.run.loader.start(self.steps.cursor)

    def _failed(self, error: Exception) -> None:
        """Show why the run can't be read. If its name matches several runs, let the user choose one.

        An error that is not a `UserError` is raised again.
        """
        self.run.pending_annotation.give_up()
        if not isinstance(error, UserError):
            raise error
        if isinstance(error, SeveralRunsError):
            runs = self.settings.screens.runs([self.run.name], self.settings)
            self.app.push_screen(runs, lambda _: self.dismiss(None))
            return
        if self.run.loader.document is None:
            self.header_bar.show(words=error.message)
        self.show_error(error)

    def show_error(self, error: UserError) -> None:
        """Show a problem that the user can fix."""
        from gistpoint.tui.screens.dialogs.ask import show_error

        show_error(self.app, error)

    # The steps

    @on(RowsRead)
    def rows_read(self) -> None:
        """Draw the rows that have been read; the first ones determine the width of the list."""
        self.steps.rows_read()
        self.fit_steps()

    def fit_steps(self) -> None:
        """Give the list of steps the width that its titles need, once for each run and terminal width.

        If the width followed every title, scrolling would move the list and rewrap the text next to it.
        """
        width, steps = self.size.width, self.steps
        if self._fitted == (self.run.name, width) or not steps.visible_rows_read or width < WIDE:
            return
        self._fitted = self.run.name, width
        most = max(width * _STEPS_SHARE // 100, width - _FOR_THE_STEP)
        self.query_one(Splits).suggest(steps, max(_LEAST_STEPS, min(steps.width_needed, most)))

    @on(StepList.NothingToList)
    def nothing_to_list(self, message: StepList.NothingToList) -> None:
        """Report that the run has no step of the kind to be listed."""
        self.show_message(
            f"This run has no {message.kind}." if message.kind != "unseen" else "You have seen every step."
        )

    @on(StepList.RowsRequested)
    def rows_requested(self, message: StepList.RowsRequested) -> None:
        """Read the rows that have become visible."""
        self.run.loader.request_rows(message.rows)

    @on(RecordList.Moved, "#steps")
    def moved(self, message: RecordList.Moved) -> None:
        """Read the step at the cursor."""
        if message.index != self.steps.cursor:
            return
        self.run.loader.request_step(message.index)
        self._ready.wait()
        self.run.navigation.moved()
        self.draw_title()
        self.query_one(Ruler).move(message.index)

    @on(RecordList.Chosen, "#steps")
    def step_chosen(self) -> None:
        """Open the run that the step started; if there is none, focus the current page."""
        if self.run.step is not None and self.run.step.index == self.steps.cursor and self.run.step.links:
            self.others.follow_link()
        else:
            self.set_focus(self.pages.made[self.pages.current])

    @on(Ruler.StepRequested)
    def step_requested(self, message: Ruler.StepRequested) -> None:
        """Move to the step that was requested on the strip or on a page."""
        self.steps.cursor = message.index

    def show_step(self) -> None:
        """Show the current step, load the current page, and record the step as seen."""
        if self.run.step is None:
            return
        self.run.navigation.step_shown()
        annotations = (
            self.run.annotations.words(self.run.step.index) if self.run.annotations is not None else ()
        )
        self.step_page.show_step(
            self.run.step, self.run.loader, hides=self.run.hides, annotations=annotations
        )
        self.pages.outdate()
        self.draw_title()
        self.draw_step_note()
        self.fill_page()
        self.search.show_hit()
        if self.run.annotations is not None:
            self.run.annotations.step_seen(self.run.step)

    @on(StepPage.Unfolded)
    def unfolded(self) -> None:
        """Move to a hit in parts that were folded."""
        self.search.show_hit()

    # Drawing

    def draw(self) -> None:
        """Draw the known part of the run: the strip, the list and the header."""
        document = self.run.loader.document
        if document is not None:
            survey = self.run.loader.survey
            self.query_one(Ruler).show_run(
                document.step_count, survey, wide=self.has_class("-wide"), hides=self.run.hides
            )
            self.steps.set_survey(survey)
            self.draw_title()

    def show_hits_along(self, steps: Sequence[int]) -> None:
        """Draw the hits on the strip. `steps` has an entry for each hit."""
        self.query_one(Ruler).hits = steps
        self.draw()

    def draw_title(self) -> None:
        """Show in the header the run and the step's number, or that the number is not known yet."""
        document, header = self.run.loader.document, self.run.header
        if document is None or header is None:
            return
        total = f"{document.step_count:,}" + ("" if document.finished else "+")
        if self.run.navigation.uncounted:
            self.header_bar.show(
                words=f"last step of {total}: those before it are being counted …", fields=()
            )
            return
        known = run_words(document, header, hides=self.run.hides, wide=self.has_class("-wide"))
        words = [f"step {self.steps.cursor + 1:,} of {total}", *known]
        fields = run_fields(
            header, self.run.annotations, self.others.place, hides=self.run.hides, sums=not document.summed_up
        )
        name = short_task(self.run.title or header.task) or header.id or PurePath(self.run.name).name
        self.header_bar.show(name=name, words=" · ".join(words), fields=fields)

    def draw_step_note(self) -> None:
        """Show the step's annotations, links, marks and replay in the line above its page."""
        if self.run.step is None or self.run.annotations is None:
            return
        index, survey = self.run.step.index, self.run.loader.survey
        words = self.run.annotations.words(index)
        self.step_page.show_annotations(words)
        words += [
            f"{signs.FOLLOWS} {name} (Enter opens it)" for name in self.others.linked(self.run.step.links)
        ]
        words += [*(survey.words(index) if survey is not None else ()), self.run.replay.words(index)]
        self.pages.note_for("step", "  ".join([*filter(None, words)] or [self.run.annotations.hint]))

    def show_message(self, words: str) -> None:
        """Show a message above the keys; an empty one hides the line."""
        self._shown_message = words
        line = self.query_one("#review-say", Plain)
        line.update(visible_line(words), layout=False)
        line.display = bool(words)

    # Pages

    async def action_page(self, page: str) -> None:
        """Show a page and focus it."""
        widget = await self.pages.show(page)
        self.fill_page()
        self.set_focus(widget if widget.focusable else None)
        if not widget.focusable:
            widget.focus()
        self.search.show_hits()

    def show_step_page(self) -> None:
        """Show the page with the text of the step. If another page had the focus, move the focus to it."""
        if self.pages.current == "step":
            return
        within = self.focused is not None and self.pages in self.focused.ancestors
        self.pages.bring("step")
        self.fill_page()
        self.set_focus(self.step_page if within else self.focused)

    def fill_page(self, *, reload: bool = False) -> None:
        """Load the current page unless it is already loaded for this step. `reload` loads it in any case."""
        step, document = self.run.step, self.run.loader.document
        if step is not None and document is not None:
            self.pages.load(
                PageContext(
                    document, step.index, self.run.hides, self.run.loader, self.run.replay, self.run.gist
                ),
                reload=reload,
            )

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer moving to other runs only if there is a list of runs."""
        return len(self.others.names) > 1 if action == "run" else super().check_action(action, parameters)

    # Hiding steps

    def action_hide(self, family: str) -> None:
        """Hide a family of steps, or list it again."""
        self.show_message(self.steps.hide(Family(family)))

    # Search

    @on(RecordList.Chosen, "#hits")
    def hit_chosen(self, message: RecordList.Chosen) -> None:
        """Move to the first hit of the chosen line."""
        self.search.go_to(self.search.found.lines[message.index].at)

    @on(StepPage.HitRequested)
    def hit_requested(self, message: StepPage.HitRequested) -> None:
        """Move to the next or previous hit."""
        self.search.step(message.by)

    # Running code

    async def action_score(self) -> None:
        """Score the gist on its page, or stop scoring; from another page, only show the gist's page."""
        if not self.run.gist.toggle_shown():
            await self.action_page("gist")

    # Annotations

    def review_changed(self, review: Review) -> None:
        """Draw changed annotations, and show or hide model and outcome accordingly."""
        hid, self.run.hides = self.run.hides, review.hides_outcome
        document = self.run.loader.document
        if document is not None and document.finished and document.header != self.run.header:
            self.run.header = document.header
        if self.run.annotations is not None:
            self.run.annotations.mark_steps()
        self.draw_title()
        self.draw_step_note()
        if hid != self.run.hides:
            # The survey is made again, which would otherwise move the cursor to the first listed step.
            self.steps.opened_at_step |= self.steps.survey is not None
            self.draw()
            self.show_step()

    def on_key(self, event: events.Key) -> None:
        """Handle the hot keys of labels and verdicts, except in a field."""
        typed = isinstance(self.focused, Input) or not event.character
        if not typed and self.run.annotate_by_key(event.character or ""):
            event.stop()
            event.prevent_default()

    # Other screens

    @property
    def drafts_about(self) -> tuple[str, str]:
        """The reviewer, and the path of the open run."""
        return self.settings.reviewer, str(Path(self.run.name).absolute())

    def open(self, screen: Screen[Answer], answered: Callable[[Answer | None], None] | None = None) -> None:
        """Open a dialog or another screen over this one, with the step still visible.

        `answered` is called with the result.
        """
        screen.add_class("-next-to-step")
        self.app.push_screen(screen, answered)

    def open_run(self, name: str) -> None:
        """Open another run on top of this one."""
        self.open(self.settings.screens.run(name, self.settings))

    def action_run(self, by: int) -> None:
        """Move to the next or previous run of the list, keeping the page."""
        name = self.others.neighbour(by)
        if name is not None:
            self.go_to_run(name)
        else:
            self.show_message(self.others.end_words(by))

    def go_to_run(self, name: str, *, found: FoundHits | None = None) -> None:
        """Replace the run with another one of the list."""
        before = self.run
        before.left()
        before.stop()
        hides, opens_at = self.settings.may_hide or before.hides, before.navigation.opens_at
        self.run = OpenRun(name, self._ready.take(name), self, hides=hides, opens_at=opens_at, found=found)
        self.query_one(Ruler).clear()
        self.pages.begin_again()
        self.steps.begin_again(self.run.loader.rows)
        self.search.run_changed()
        self.show_message("")
        if self.run.loader.opened:
            self.show_run()
        else:
            self.header_bar.show(name=PurePath(name).name, words="opening …", fields=())
        self.run.loader.request_step(self.steps.cursor)

    @property
    def key_names(self) -> Mapping[str, str | None]:
        """Leave out one of the keys that end the review: Esc if it leads nowhere, otherwise q."""
        is_first = len(self.app.screen_stack) == 1
        leads_back = not is_first or self.pages.current != "step" or self.focused is not self.steps
        return {"leave": None} if leads_back else {"back": None}

    async def action_back(self) -> None:
        """Go back to the step, the list of steps, or the previous screen, but don't leave the program."""
        if self.pages.current != "step":
            await self.action_page("step")
            self.steps.focus()
        elif self.focused is not self.steps:
            self.steps.focus()
        elif len(self.app.screen_stack) > 1:
            self.action_leave()
        else:
            self.show_message("There is nothing to go back to: q closes the run and ends the program.")

    def action_leave(self) -> None:
        """Close the run."""
        self.dismiss(None)

    def stop(self) -> None:
        """Record the step at which the reviewer stops, however the screen is left."""
        if not self._stopped:
            self._stopped = True
            self.run.left()
