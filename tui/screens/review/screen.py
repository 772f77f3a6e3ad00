"""Review: one recorded run, step by step, and what a reviewer says about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual import events, on
from textual.widgets import Input

from gistpoint.core.errors import UserError
from gistpoint.core.text import visible_line
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.searching import Hit
from gistpoint.tui.screens.review.gist_review import GistReviewScreen
from gistpoint.tui.screens.review.reader import IndexGrew, ReadingFailed, RunOpened
from gistpoint.tui.screens.review.saying import ReviewChanged
from gistpoint.tui.screens.review.searching import Wanted
from gistpoint.tui.screens.review.settings import ReviewSettings

if TYPE_CHECKING:
    from gistpoint.sessions.reviews.keys import StepKey, TextRange
    from gistpoint.sessions.reviews.state import Review
    from gistpoint.tui.screens.review.gist_scoring import Judging
    from gistpoint.tui.screens.review.known_task import KnownTask
    from gistpoint.tui.screens.review.re_executing import Replaying
    from gistpoint.tui.screens.review.review_desk import ReviewDesk


class SeveralRunsError(UserError):
    """A name stands for several runs, of which one has to be chosen."""


def _holds_several(name: str) -> bool:
    from itertools import islice

    from gistpoint.sessions.runs.opening import list_runs

    return len(list(islice((found for found in list_runs([name]) if found.header is not None), 2))) > 1


def opener(name: str) -> Callable[[], RunDocument]:
    """Return what opens a run by name, with what that needs imported only then."""

    def opening() -> RunDocument:
        from gistpoint.sessions.runs.archives import RunFileError
        from gistpoint.sessions.runs.opening import open_run

        try:
            return open_run(name)
        except RunFileError as error:
            if _holds_several(name):
                raise SeveralRunsError(error.message, hint=error.hint) from error
            raise

    return opening


class ReviewScreen(GistReviewScreen):
    """A run under review; dismissed when it is left."""

    def __init__(
        self,
        name: str,
        settings: ReviewSettings,
        *,
        runs: tuple[str, ...] = (),
        hits: tuple[list[Hit], int, Wanted] | None = None,
    ) -> None:
        """`runs` are the names of the list it was chosen from; `hits` of a search are gone on from, at one of them."""
        super().__init__(name, opener(name), runs)
        self._settings = settings
        self._desk: ReviewDesk | None = None
        self._first_hits = hits
        self._found_again = False
        self.seen: set[int] = set()
        """The steps that were seen."""
        self.hides = settings.blind

    @on(RunOpened)
    def begin_review(self) -> None:
        """Read what was said about the run before."""
        if self._desk is None:
            self.reader.do_later(self._open_desk)
            self.reader.do_later(self._look_for_doubts)
        if self._first_hits is not None:
            (self.hits, at, self._searched), self._first_hits = self._first_hits, None
            self.hit_count = len(self.hits)
            self.step_view.walks_hits = True
            self.steps.set_count(max(self.steps.count, self.hits[at].step + 1))
            self.go_to_hit(at)

    def _open_desk(self) -> None:
        from gistpoint.tui.screens.review.review_desk import ReviewDesk

        if self.reader.document is not None:
            self._desk = ReviewDesk(self, self._settings, lambda job: self.reader.do(job))
            self._desk.open(self.reader.document)

    def _look_for_doubts(self) -> None:
        """Say if the run is hardly of the format that it was read as."""
        from gistpoint.sessions.runs.archives import NoRunError
        from gistpoint.sessions.runs.doubts import doubt_of

        if self.reader.document is not None and (doubt := doubt_of(self.reader.document)):
            self.post_message(ReadingFailed(NoRunError(doubt)))

    @on(IndexGrew)
    def find_again(self) -> None:
        """Find the steps again that something was said of, now that the place of each is known."""
        document = self.reader.document
        if document is not None and document.finished and self._desk is not None and not self._found_again:
            self._found_again = True
            if document.renumbered:
                self.seen.clear()
                self._desk.look_again()

    @property
    def review(self) -> Review | None:
        """What the reviewer has said about the run; None while that is being read."""
        return self._desk.review if self._desk is not None else None

    @on(ReviewChanged)
    def review_changed(self, message: ReviewChanged) -> None:
        """Draw what was said; begin where one stopped."""
        review = message.review
        hid, self.hides = self.hides, review.hides_outcome
        document = self.reader.document
        if document is not None and document.finished and document.header != self.header:
            self.header = document.header
            self.draw_title()
        self.draw_review()
        if message.said:
            self.say(message.said)
        if hid != self.hides:
            self.show_step()
        stopped = self._place_of(review.stopped)
        if message.first and stopped is not None and not self.steps.cursor and self.hit is None:
            self.steps.set_count(max(self.steps.count, stopped + 1))
            self.steps.cursor = stopped
            self.say(f"Where you stopped: step {stopped + 1}. ^ goes to the first one.")
        elif message.first and self._desk is not None and self.step is not None and self._desk.seen(self.step):
            self._note_seen(self.step.index)

    def _note_seen(self, index: int) -> None:
        self.seen.add(index)
        self.steps.refresh_line(index)

    def draw_review(self) -> None:
        """Show what was said beside the steps."""
        review = self.review
        if review is None:
            return
        commented = {self._place_of(comment.step): "✎" for comment in review.comments}
        labelled = {self._place_of(label.step): "⚑" for label in review.labels}
        signs = {place: sign for place, sign in {**commented, **labelled}.items() if place is not None}
        self.seen |= {place for key in review.seen if (place := self._place_of(key)) is not None}
        self.steps.signs, self.steps.seen = signs, self.seen
        self.steps.refresh()
        self.draw_said()

    def draw_said(self) -> None:
        """Show the labels and comments of the step above its text."""
        review, step = self.review, self.step
        if review is None or step is None or self.pages.current != "step":
            return
        here = [
            f"⚑ {name}"
            for name in (self._label_name(g.label) for g in review.labels if self._place_of(g.step) == step.index)
        ]
        here += [f"✎ {c.text}" for c in review.comments if self._place_of(c.step) == step.index]
        again = self.re_execution.words(step.index) if self.re_execution is not None else ""
        self.pages.note(visible_line("  ".join([*here, *self.mark_words(), *filter(None, [again])])))

    def mark_words(self) -> list[str]:
        """Return what stands out in the step, in words."""
        survey, step = self.reader.survey, self.step
        if step is None:
            return []
        started = [f"↳ {name} (Enter opens it)" for name in self._link_words(step.links)]
        if survey is None:
            return started
        from gistpoint.tui.screens.review.survey import WORDS

        others = dict(survey.others.get(step.index, ()))
        words = [
            WORDS[mark] + (f" (step {others[mark] + 1})" if mark in others else "") for mark in survey.marks(step.index)
        ]
        return [*started, *(f"· {word}" for word in words)]

    def _link_words(self, links: Sequence[str]) -> list[str]:
        """Return the links that lead somewhere; none of the others."""
        from gistpoint.sessions.runs.opening import linked_name

        return [link for link in dict.fromkeys(links) if linked_name(self.run_name, link) is not None]

    def show_step(self) -> None:
        """Note the step as seen."""
        super().show_step()
        self.draw_said()
        if self._desk is not None and self.step is not None and self._desk.seen(self.step):
            self._note_seen(self.step.index)

    def labelled_steps(self) -> set[int]:
        """Return the steps with a label or a comment."""
        review = self.review
        if review is None:
            return set()
        keys = [label.step for label in review.labels] + [comment.step for comment in review.comments]
        return {place for key in keys if (place := self._place_of(key)) is not None}

    def _place_of(self, key: StepKey | None) -> int | None:
        return self._desk.place(key) if self._desk is not None and key is not None else None

    def seen_steps(self) -> set[int]:
        """Return the steps that were seen."""
        return self.seen

    def failed_to_open(self, error: UserError) -> None:
        """Let one be chosen where a name stands for several runs."""
        if not isinstance(error, SeveralRunsError):
            super().failed_to_open(error)
            return
        from gistpoint.tui.screens.review.runs import RunsScreen

        self.app.push_screen(RunsScreen([self.run_name], self._settings), lambda _: self.dismiss(None))

    def known_task(self, document: RunDocument) -> KnownTask:
        """Return what is known of the run's task."""
        from gistpoint.tui.screens.review.known_task import known_task

        return known_task(document.header, self._settings.locations)

    def replaying(self) -> Replaying | None:
        """Return what makes a replay of the run."""
        return self._settings.replaying

    def judging(self) -> Judging | None:
        """Return what makes a judge of gists."""
        return self._settings.judging

    # Saying something

    def _place(self) -> TextRange | None:
        """Return the range of the step's text that is selected."""
        view = self.step_view
        selection = view.text_selection
        if selection is None or view.terminal or selection.start is None or selection.end is None:
            return None
        from gistpoint.sessions.reviews.keys import TextRange

        ends = []
        for point in (selection.start, selection.end):
            line, first, _ = view.rows.at(min(point.y, len(view.rows) - 1))
            column = min(first + point.x, view.lines.length(line))
            ends.append(view.place_of(line, column))
        start, end = ends
        if start is None or end is None or start[0] != end[0] or end[1] <= start[1]:
            return None
        return TextRange(start[0].scope, start[0].number, start[1], end[1])

    def on_key(self, event: events.Key) -> None:
        """The hot keys of labels work anywhere but in a field."""
        if self._desk is None or isinstance(self.focused, Input) or not event.character:
            return
        for labels in self._desk.sets:
            label = labels.by_key(event.character)
            if label is not None:
                event.stop()
                event.prevent_default()
                self._desk.toggle(label.id, label.name, labels.name, self.step, self._place())
                return

    def _label_name(self, id: str) -> str:
        for labels in self._desk.sets if self._desk is not None else ():
            if (label := labels.by_id(id)) is not None:
                return label.name
        return id

    def action_labels(self) -> None:
        """Choose a label for the step, or for what is selected in it."""
        desk, place = self._desk, self._place()
        if desk is None:
            return
        from gistpoint.tui.screens.dialogs.ask import PickDialog

        known = {f"{n}:{label.id}": (labels, label) for n, labels in enumerate(desk.sets) for label in labels.labels}
        choices = [(key, f"{label.key or ' '}  {label.name}: {label.description}") for key, (_, label) in known.items()]

        def answered(key: str | None) -> None:
            if key is not None:
                labels, label = known[key]
                desk.toggle(label.id, label.name, labels.name, self.step, place)

        self.app.push_screen(PickDialog("Label " + ("what is selected" if place else "the step"), choices), answered)

    def action_comment(self) -> None:
        """Write a comment."""
        desk, step, place = self._desk, self.step, self._place()
        if desk is None or step is None:
            return

        from gistpoint.tui.screens.dialogs.ask import TextDialog

        def answered(text: str | None) -> None:
            if text and text.strip():
                desk.comment(text.strip(), step, place)

        what = "what is selected" if place else f"step {step.index + 1}"
        self.app.push_screen(TextDialog(f"Comment on {what}"), answered)

    def action_remove(self) -> None:
        """Take back something said about this step."""
        desk, review, step = self._desk, self.review, self.step
        if desk is None or review is None or step is None:
            return
        from gistpoint.tui.screens.dialogs.ask import PickDialog

        choices = desk.removable(step.index, self._label_name)

        def answered(op: str | None) -> None:
            if op is not None:
                desk.remove(op)

        if choices:
            self.app.push_screen(PickDialog("Take back", choices), answered)
        else:
            self.say("You have said nothing about this step.")

    def action_verdict(self) -> None:
        """Give a verdict."""
        desk = self._desk
        if desk is None:
            return
        from gistpoint.tui.screens.dialogs.verdict import Given, VerdictDialog

        def answered(given: Given | None) -> None:
            if given is not None:
                desk.verdict(given.verdict, given.reasons, given.note, given.corrected_s)

        self.app.push_screen(VerdictDialog(), answered)

    def action_blind(self) -> None:
        """Hide model and outcome until the verdict, or show them."""
        if self._desk is not None and self.review is not None:
            self._desk.set_blind(self.run_name, not self.review.blind)

    # Other runs

    def open_hit(self, hit: Hit, wanted: Wanted) -> None:
        """Open the run of a hit at its step."""
        self.app.push_screen(
            ReviewScreen(hit.run, self._settings, runs=self.runs, hits=(self.hits, self.hit or 0, wanted))
        )

    def action_link(self) -> None:
        """Open the run that this step started, or that the run goes on in."""
        from gistpoint.sessions.runs.opening import linked_name

        links = (self.step.links if self.step else ()) or (self.header.links if self.header else ())
        names = (linked_name(self.run_name, link) for link in links)
        found = list(dict.fromkeys(name for name in names if name is not None))
        if not found:
            self.say("This step leads to no other run." if not links else f"Not here: {links[0]}")
            return
        self._pick_run("Open", found, lambda name: self.app.push_screen(ReviewScreen(name, self._settings)))

    def action_compare(self) -> None:
        """Choose another run of the list to set beside this one."""
        others = [name for name in self.runs if name != self.run_name]
        if not others:
            self.say("There is no other run in the list: open several files or a folder.")
            return

        def chosen(name: str) -> None:
            from gistpoint.tui.screens.review.compare import CompareScreen

            self.app.push_screen(CompareScreen(self.run_name, name, self._settings))

        self._pick_run("Compare with", others, chosen)

    def _pick_run(self, title: str, names: list[str], then: Callable[[str], object]) -> None:
        from gistpoint.tui.screens.dialogs.ask import PickDialog

        def answered(name: str | None) -> None:
            if name is not None:
                then(name)

        if len(names) == 1:
            then(names[0])
        else:
            self.app.push_screen(PickDialog(title, [(name, name) for name in names]), answered)

    def action_leave(self) -> None:
        """Close the run."""
        if self._desk is not None and self.step is not None:
            self._desk.stopped(self.step)
        self.dismiss(None)
