"""The page with a questionnaire. Input is saved after each key, so that a crash loses nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from textual import on
from textual.widget import Widget

from gistpoint.core.study.steps import FormStep
from gistpoint.sessions.studies.drafts import FormDraft, FormDrafts
from gistpoint.tui.screens.dialogs.ask import ConfirmDialog
from gistpoint.tui.screens.study.page import StudyPage
from gistpoint.tui.widgets.form import QuestionForm
from gistpoint.tui.widgets.frames import framed


class FormPage(StudyPage):
    """A page with a form. Dismissed with `next`; the app then records `values` and `seconds`."""

    BUTTONS = ()

    def __init__(
        self,
        heading: str,
        whose: str,
        step: FormStep,
        drafts: FormDrafts,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`whose` is the participant's code. `now` returns the seconds of a monotonic clock."""
        super().__init__(heading, whose)
        self.step, self._drafts, self._now = step, drafts, now
        self._draft, self._since = drafts.read(step.form.id, step.assignment), now()
        self._stopped = False
        self.form = QuestionForm(step.questions, self._draft.values)

    def body(self) -> Iterable[Widget]:
        """Yield the form."""
        yield self.form

    def starts_at(self) -> Widget | None:
        """Return None: the form itself focuses the first unanswered question."""
        self._count()
        return None

    @property
    def values(self) -> dict[str, Any]:
        """The answers by the ids of the questions; None for a declined question."""
        return self.form.values

    @property
    def seconds(self) -> float:
        """The number of seconds for which the form was on the screen, in all sessions together."""
        return self._draft.seconds + self._now() - self._since

    @on(QuestionForm.Changed)
    def keep(self) -> None:
        """Save the input, and count the answers."""
        self._keep(self.form.draft)
        self._count()

    def _keep(self, values: dict[str, Any]) -> None:
        draft = FormDraft(values=values, seconds=round(self.seconds, 3))
        self._drafts.write(self.step.form.id, self.step.assignment, draft)

    def stop(self) -> None:
        """Save the time on the screen, and input whose message has not arrived yet."""
        if self.form.is_filled and not self._stopped:
            self._stopped = True
            self._keep(self.form.draft)

    def _count(self) -> None:
        words = f"{self.form.answered} of {len(self.form.fields)} answered"
        framed(self.form, words, "Tab: next question · F9: done")

    def action_next(self) -> None:
        """Finish the form if its answers are valid, after a question if some are missing."""
        if not self.form.check():
            return
        left_out = self.form.left_out
        if not left_out:
            self.dismiss("next")
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self.dismiss("next")
            else:
                self.form.focus_on(left_out[0])

        *first, last = [str(field.number) for field in left_out]
        what = f"Questions {', '.join(first)} and {last} have" if first else f"Question {last} has"
        text = f'{what} no answer. Store this as "rather not say"?'
        dialog = ConfirmDialog("Some questions have no answer", text, yes="Rather not say", no="Go back")
        self.app.push_screen(dialog, answered)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer F9, although the page has no buttons."""
        return True if action == "next" else super().check_action(action, parameters)
