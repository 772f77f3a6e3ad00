"""A reviewer's annotations of the open run: labels, comments, a verdict, and the steps seen."""

from __future__ import annotations

import time
from collections.abc import Callable

from gistpoint.core.errors import UserError
from gistpoint.core.machine_time import SystemTime
from gistpoint.sessions.annotations.keys import StepKey, TextRange, beginning_of, key_of, place_of, run_key
from gistpoint.sessions.annotations.labels import LabelSet, read_label_sets
from gistpoint.sessions.annotations.reviewer import Reviewer, ReviewStore
from gistpoint.sessions.annotations.reviews import (
    Review,
    VerdictWord,
    annotated_key,
    read_verdict_words,
)
from gistpoint.sessions.annotations.settling import settle
from gistpoint.sessions.records.model import Step
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.tui import signs
from gistpoint.tui.keys import KEYS, KeyScope, shown_key
from gistpoint.tui.screens.review.verdicts import OF_AN_AGENT, GivenVerdict, form_for
from gistpoint.tui.screens.review.view import ReviewView, VisibleRun

_POLL_S = 2.0


def _bound_characters() -> set[str]:
    """Return the characters that are keys of the review screen."""
    scopes = (KeyScope.APP, KeyScope.REVIEW, KeyScope.READING, KeyScope.CODE, KeyScope.PLACES)
    names = (shown_key(name) for key in KEYS if key.scope in scopes for name in key.keys.split(","))
    return {name for name in names if len(name) == 1}


class ReviewAnnotations:
    """A reviewer's annotations of one run. The loader's thread writes them, except in `stopped`."""

    def __init__(self, run: VisibleRun, view: ReviewView) -> None:
        """`view` is notified on the UI thread of the stored annotations and of each change."""
        self._run, self._view = run, view
        self._reviewer: Reviewer | None = None
        self._key = ""
        self._document: RunDocument | None = None
        self._places: dict[StepKey, int | None] = {}
        self._begun = time.monotonic()
        self._found_again = False
        self._sets: tuple[LabelSet, ...] = ()
        self._form = OF_AN_AGENT
        self._words: tuple[VerdictWord, ...] = ()
        self.review: Review | None = None
        """The annotations; None until they have been read."""
        self._live = view.settings.live
        self.others_reading: tuple[str, ...] = ()
        """The other team members who are reading the run."""
        self.seen: set[int] = set()
        """The indexes of the steps seen."""

    # Reading annotations

    def read(self, document: RunDocument) -> None:
        """Read the stored annotations. Called in the loader's thread."""
        locations = self._view.settings.locations
        self._sets = read_label_sets(locations.config)
        labels = {label.key for labels in self._sets for label in labels.labels}
        self._form = form_for(document.header.actor)
        self._words = read_verdict_words(
            locations.config, labels | _bound_characters(), default=self._form.words
        )
        self._reviewer = Reviewer(
            ReviewStore(self._view.settings.reviews, SystemTime()), self._view.settings.reviewer
        )
        self._document = document
        book = self._reviewer.store.book
        self._key = annotated_key(document, book)
        if self._key not in book.runs_like(self._key):
            self._key = run_key(document)
        settle(document, book, self._key)
        before = self._reviewer.review(self._key)
        blind = self._view.settings.blind or before.blind
        review = self._reviewer.open(self._key, document.name, blind=blind) if blind else before
        if review.stopped is not None:
            while (
                not document.finished
                and document.steps_with_number(review.stopped.index)[-1] >= document.step_count
            ):
                document.ensure(document.steps_with_number(review.stopped.index)[-1])
        self._set_review(review)

    def begin(self, *, resumes: bool) -> None:
        """Show the stored annotations; with `resumes`, go to the step at which the reviewer stopped."""
        view, review = self._view, self.review
        if review is None:
            return
        self._view.review_changed(review)
        if self._live is not None:
            self._live.reading(beginning_of(self._key))
            view.steps.set_interval(_POLL_S, self._poll_others)
        stopped = self._place_of(review.stopped)
        if resumes and stopped is not None and view.steps.cursor == self._run.loader.first:
            view.steps.set_count(max(view.steps.count, stopped + 1))
            view.steps.cursor = stopped
            view.show_message(f"Where you stopped: step {stopped + 1}. ^ goes to the first one.")
        elif self._run.step is not None:
            self.step_seen(self._run.step)

    def _poll_others(self) -> None:
        """Show the other readers of the run, if they have changed."""
        others = self._live.state.readers.get(beginning_of(self._key), ()) if self._live is not None else ()
        if others != self.others_reading and self.review is not None and self._view.run is self._run:
            self.others_reading = others
            self._view.review_changed(self.review)

    def find_again(self) -> None:
        """Find the annotated steps again after all steps have been counted, because some may have moved."""
        if self._document is None or self._found_again:
            return
        self._found_again = True
        if self._document.renumbered:
            self.seen.clear()
            self._change(lambda _reviewer, _run: "")

    def _set_review(self, review: Review) -> None:
        """Set the annotations, and find their steps if the steps were renumbered."""
        self.review = review
        if self._document is not None and self._document.renumbered:
            annotated = [label.step for label in review.labels] + [
                comment.step for comment in review.comments
            ]
            for key in (*annotated, *review.seen, review.stopped):
                if key is not None:
                    self._places[key] = place_of(self._document, key)

    def _place_of(self, key: StepKey | None) -> int | None:
        return None if key is None else self._places.get(key, key.index)

    # Showing annotations

    def mark_steps(self) -> None:
        """Mark the annotated and the seen steps in the list of steps."""
        review, steps = self.review, self._view.steps
        if review is None:
            return
        commented = {self._place_of(comment.step): signs.COMMENT for comment in review.comments}
        labelled = {self._place_of(label.step): signs.LABEL for label in review.labels}
        marks = {place: sign for place, sign in {**commented, **labelled}.items() if place is not None}
        self.seen |= {place for key in review.seen if (place := self._place_of(key)) is not None}
        steps.signs, steps.seen = marks, self.seen
        steps.refresh()

    def words(self, step: int) -> list[str]:
        """Return the text of a step's labels and comments."""
        return [words for _, words in self._annotations_of(step)]

    def annotated(self) -> set[int]:
        """Return the steps with a label or a comment."""
        if self.review is None:
            return set()
        keys = [label.step for label in self.review.labels] + [
            comment.step for comment in self.review.comments
        ]
        return {place for key in keys if (place := self._place_of(key)) is not None}

    def _annotations_of(self, step: int) -> list[tuple[str, str]]:
        """Return the annotations of a step: the id of each operation, and its text for display."""
        if self.review is None:
            return []
        labels = [
            (label.op, f"{signs.LABEL} {self._label_name(label.label)}")
            for label in self.review.labels
            if self._place_of(label.step) == step
        ]
        comments = [
            (comment.op, f"{signs.COMMENT} {comment.text}")
            for comment in self.review.comments
            if self._place_of(comment.step) == step
        ]
        return labels + comments

    def _label_name(self, id: str) -> str:
        return next((label.name for labels in self._sets if (label := labels.by_id(id)) is not None), id)

    # Recording seen steps

    def step_seen(self, step: Step) -> None:
        """Record that a step was seen."""
        reviewer, run, document = self._reviewer, self._key, self._document
        if reviewer is None or self.review is None or document is None:
            return
        key = key_of(document, step)
        if key in self.review.seen:
            return

        def job() -> None:
            reviewer.seen(run, [key])
            self._set_review(reviewer.review(run))

        self._run.loader.do(job, keeps=True)
        self.seen.add(step.index)
        self._view.steps.refresh_record(step.index)

    def stopped(self, step: Step) -> None:
        """Record the step at which the reviewer stops, if any was seen.

        This writes at once, because the program may end.
        """
        if (
            self._reviewer is not None
            and self._document is not None
            and self.review is not None
            and self.review.seen
        ):
            try:
                self._reviewer.stopped(self._key, key_of(self._document, step))
            except UserError as error:
                self._view.show_error(error)

    # Annotating

    def ask(self, what: str) -> None:
        """Open the dialog for a label, a comment, a removal or a verdict, or switch blind judging."""
        asks = {
            "label": self._ask_label,
            "comment": self._ask_comment,
            "removal": self._ask_removal,
            "verdict": self._ask_verdict,
            "blind": self._toggle_blind,
        }
        asks[what]()

    def toggle_by_key(self, character: str) -> bool:
        """Add or remove the label with a hot key. Return whether there is such a label."""
        for labels in self._sets:
            label = labels.by_key(character)
            if label is not None:
                self._toggle(label.id, label.name, labels.name, self._selected())
                return True
        return False

    def judge_by_key(self, characters: str) -> bool:
        """Give the verdict whose key is among the characters. Return whether there is such a verdict."""
        word = next((word for word in self._words if word.key in characters), None)
        if word is not None and self._reviewer is not None:
            self._record_verdict(GivenVerdict.by_word(word))
        return word is not None

    @property
    def hint(self) -> str:
        """The line of keys that annotate a step and judge the run."""
        first = "".join(f"{word.key} {word.words}  " for word in self._words[:1])
        return f"L labels  c comments  {first}V all verdicts"

    def _ask_label(self) -> None:
        """Ask for a label for the step, or for the selection in it."""
        if self._reviewer is None:
            return
        place = self._selected()
        known = {
            f"{n}:{label.id}": (labels, label)
            for n, labels in enumerate(self._sets)
            for label in labels.labels
        }

        def answered(key: str | None) -> None:
            if key is not None:
                labels, label = known[key]
                self._toggle(label.id, label.name, labels.name, place)

        title = "Label " + ("the selection" if place else "the step")
        choices = {answer: label for answer, (_, label) in known.items()}
        from gistpoint.tui.screens.review.annotation_dialogs import LabelDialog

        self._view.open(LabelDialog(title, choices), answered)

    def _toggle(self, label: str, name: str, label_set: str, place: TextRange | None) -> None:
        step = self._run.step

        def act(reviewer: Reviewer, run: str) -> str:
            key = key_of(self._document, step) if step is not None and self._document is not None else None
            added = reviewer.toggle(run, label, key, place=place, label_set=label_set)
            where = (
                "the run" if step is None else f"step {step.index + 1}" + (", the selection" if place else "")
            )
            return f"{'+' if added else '−'} {name} on {where}"

        self._change(act)

    def _ask_comment(self) -> None:
        """Ask for a comment on the step, or on the selection in it."""
        step, place = self._run.step, self._selected()
        if self._reviewer is None or step is None:
            return

        def answered(text: str | None) -> None:
            if text and text.strip():
                self._comment(text.strip(), step, place)

        from gistpoint.tui.screens.dialogs.ask import CommentDialog

        what = "the selection" if place else f"step {step.index + 1}"
        dialog = CommentDialog(f"Comment on {what}", asked=f"comment on {step.index} {place}")
        self._view.open(dialog, answered)

    def _comment(self, text: str, step: Step, place: TextRange | None) -> None:
        def act(reviewer: Reviewer, run: str) -> str:
            key = key_of(self._document, step) if self._document is not None else None
            reviewer.comment(run, text, key, place=place)
            return f"Comment on step {step.index + 1} kept"

        self._change(act)

    def _ask_removal(self) -> None:
        """Ask which annotation of the step to remove."""
        step = self._run.step
        if self.review is None or step is None:
            return

        def act(op: str) -> Callable[[Reviewer, str], str]:
            def delete(reviewer: Reviewer, run: str) -> str:
                reviewer.delete(op)
                return "Taken back"

            return delete

        def answered(op: str | None) -> None:
            if op is not None:
                self._change(act(op))

        choices = self._annotations_of(step.index)
        if choices:
            from gistpoint.tui.screens.dialogs.ask import PickDialog

            self._view.open(PickDialog("Take back", choices), answered)
        else:
            self._view.show_message("You have no label or comment on this step.")

    def _ask_verdict(self) -> None:
        """Ask for a verdict on the run."""
        if self._reviewer is None:
            return

        def answered(given: GivenVerdict | None) -> None:
            if given is not None:
                self._record_verdict(given)

        recorded = self.review.verdict if self.review is not None else None
        current = GivenVerdict.of(recorded) if recorded is not None else None
        from gistpoint.tui.screens.review.annotation_dialogs import VerdictDialog

        self._view.open(VerdictDialog(self._form, self._words, current), answered)

    def _record_verdict(self, given: GivenVerdict) -> None:
        """Record a verdict, or take it back if the same key gave the current one."""
        minutes = round((time.monotonic() - self._begun) / 60, 2)

        def act(reviewer: Reviewer, run: str) -> str:
            current = reviewer.review(run).verdict
            if current is not None and given.words and current.words == given.words:
                reviewer.delete(current.op)
                earlier = reviewer.review(run).verdict
                in_force = f"; in force again: {earlier.in_words}" if earlier is not None else ""
                return f"Verdict taken back: {given.words}{in_force}"
            reviewer.verdict(
                run,
                given.verdict,
                reasons=given.reasons,
                note=given.note,
                corrected_time_s=given.corrected_s,
                minutes=minutes,
                words=given.words,
            )
            if given.words:
                return f"Verdict: {given.words}; the same key takes it back"
            return f"Verdict: {given.verdict.value.replace('_', ' ')}"

        self._change(act)

    def _toggle_blind(self) -> None:
        """Hide model and outcome until the verdict, or show them again."""
        if self.review is None:
            return
        blind, name = not self.review.blind, self._run.name

        def act(reviewer: Reviewer, key: str) -> str:
            reviewer.open(key, name, blind=blind)
            return "Model and outcome are hidden until the verdict." if blind else "Nothing is hidden."

        self._change(act)

    def _change(self, act: Callable[[Reviewer, str], str]) -> None:
        """Change the review in the loader's thread. `act` returns the line to show above the keys."""

        def job() -> tuple[Review, str]:
            assert self._reviewer is not None
            message = act(self._reviewer, self._key)
            review = self._reviewer.review(self._key)
            self._set_review(review)
            if self._document is not None:
                settle(self._document, self._reviewer.store.book, self._key)
            return review, message

        def then(changed: tuple[Review, str]) -> None:
            review, message = changed
            self._view.review_changed(review)
            if message:
                self._view.show_message(message)

        if self._reviewer is not None:
            self._run.loader.do(job, then, keeps=True)

    def _selected(self) -> TextRange | None:
        """Return the selected range of the step's text; None unless the selection is within one field."""
        view = self._view.step_page
        selection = view.text_selection
        if selection is None or view.terminal or selection.start is None or selection.end is None:
            return None
        ends = []
        for point in (selection.start, selection.end):
            line, first, _ = view.rows.at(min(point.y, len(view.rows) - 1))
            column = min(first + point.x, view.lines.length(line))
            ends.append(view.place_of(line, column))
        start, end = ends
        if start is None or end is None or start[0] != end[0] or end[1] <= start[1]:
            return None
        return TextRange(start[0].scope, start[0].number, start[1], end[1])
