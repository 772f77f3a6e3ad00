"""The app of `gistpoint study join`, which takes one participant through the steps of a study."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.screen import Screen

from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.ports import ChatModel
from gistpoint.core.study.declaration import Assistance, Feedback
from gistpoint.core.study.ports import StudyStore
from gistpoint.core.study.steps import (
    AttemptStep,
    BetweenStep,
    ConsentStep,
    DoneStep,
    FormStep,
    ReadyStep,
    RefusedStep,
    RulesStep,
    SittingOverStep,
    Step,
    WithdrawnStep,
)
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.services import Services
from gistpoint.sessions.studies.consenting import save_copy
from gistpoint.sessions.studies.taking import Participation, TakenAttempt
from gistpoint.sessions.team.address import UnreachableError
from gistpoint.tui import study_words as words
from gistpoint.tui.base_app import BaseApp
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.crash_log import crash_event
from gistpoint.tui.screens.dialogs.ask import ConfirmDialog, ReasonAnswer
from gistpoint.tui.screens.kinds import screens_of
from gistpoint.tui.screens.study.page import StudyPage, WithdrawRequested
from gistpoint.tui.screens.study.pages import (
    AwayPage,
    BetweenPage,
    BreakPage,
    ConsentPage,
    LastPage,
    ReadyPage,
    RulesPage,
    WithdrawDialog,
)
from gistpoint.tui.widgets.plain import Plain

if TYPE_CHECKING:  # not needed for the first page
    from gistpoint.core.assist.exchange import Assistant
    from gistpoint.tui.screens.solve.interruptions import How
    from gistpoint.tui.screens.solve.screen import SolveScreen
    from gistpoint.tui.screens.study.form import FormPage

Then = Callable[[], None]

SEND_AGAIN_S = 5.0
"""Seconds between attempts to send to a store that does not answer."""


class WaitingPage(BaseScreen[None]):
    """The screen at the bottom of the stack: a line shown while something is read or prepared."""

    HELP_PAGE = "study"

    def __init__(self, on_return: Then) -> None:
        """`on_return` is called when the screen is on top again."""
        super().__init__()
        self._on_return = on_return

    def compose(self) -> ComposeResult:
        """Lay out the line."""
        yield Plain("One moment …", id="opening-words")

    def on_screen_resume(self) -> None:
        """Continue with the next step."""
        self.app.call_later(self._on_return)


class StudyApp(BaseApp):
    """The app that shows the current step, records the participant's answers, and finds the next step."""

    def __init__(
        self,
        part: Participation,
        services: Services,
        command: str,
        *,
        sandbox_ready: Callable[[], bool],
        chat_models: Mapping[str, ChatModel] | None = None,
        copies: Path | None = None,
    ) -> None:
        """`command` is the command with which the participant continues on another day.

        `copies` is the folder in which participants can save a copy of the consent; None in a browser.
        `sandbox_ready` returns whether the required sandbox works. `chat_models` are the models of the
        conditions with an assistant, by name.
        """
        super().__init__(services.locations, "screens/study/study.tcss")
        self.part, self.services = part, services
        self._chat_models, self._copies = chat_models or {}, copies
        self._command, self._sandbox_ready = command, sandbox_ready
        self._sitting_begun, self._busy, self._closes = False, False, False
        self._taken: TakenAttempt | None = None
        self._withdrawal: ReasonAnswer | None = None
        self._last_solved_on: SolveScreen | None = None

    def first_screen(self) -> Screen[None]:
        """Return the line shown while there is no page."""
        return WaitingPage(self._continue)

    def on_mount(self) -> None:
        """Check repeatedly whether the study's store answers again."""
        self.set_interval(SEND_AGAIN_S, self._send_waiting)

    @property
    def bottom_screen_restarts(self) -> bool:
        """True, because the bottom screen finds the next step whenever it is on top."""
        return True

    @property
    def _study_title(self) -> str:
        return words.title_of(self.part.folder.study)

    @property
    def _contact(self) -> str:
        return self.part.folder.study.privacy.contact

    def in_thread(
        self, body: Callable[[], object], *, holds: bool = False, cancel: Callable[[], bool] | None = None
    ) -> None:
        """Run a slow function in a thread, and hold nothing that is typed meanwhile.

        A page of a study follows an answer, and no key opens it: keys typed before it could be read must
        not answer it (decision 126).
        """
        super().in_thread(body, holds=holds, cancel=cancel)

    # Steps

    def _continue(self) -> None:
        """Show the next step, unless that or something else is already in progress."""
        if not self._busy and isinstance(self.screen, WaitingPage):
            self._do(lambda: None)

    def _do(self, record: Then) -> None:
        """Call `record` in a thread, begin the sitting if it has not begun, and show the next step."""
        self._busy = True

        def body() -> None:
            record()
            if not self._sitting_begun:
                self.part.sandbox_ready = self._sandbox_ready()
                self.part.come()
                self._sitting_begun = True
            step = self.part.step()
            self.call_from_thread(self._show, step, *self._about(step))

        self.in_thread(body)

    def _failed(self, error: UserError) -> None:
        self._busy = False
        if isinstance(error, UnreachableError):
            self._show_away(error)
        else:
            super()._failed(error)

    def _show_away(self, error: UnreachableError) -> None:
        """Report that the next task can't begin now. A retry continues at the same step."""

        def answered(answer: str | None) -> None:
            if answer == "again":
                self._do(self._retry)
            else:
                self._close(None)

        paragraphs = words.away_words(error, self._command)
        self.push_screen(AwayPage(self._study_title, self.part.code, paragraphs), answered)

    def _retry(self) -> None:
        """Send pending changes, and read those of other machines. Raises `UnreachableError` if that fails."""
        self.part.come()
        if self._store.away:
            raise UnreachableError(self._store.away)

    def _send_waiting(self) -> None:
        """Try to send again if the store did not answer: other machines may need the changes made here."""
        if self._store.away:
            self._store.send_soon()

    @property
    def _store(self) -> StudyStore:
        return self.part.folder.store

    def _about(self, step: Step) -> tuple[Task | None, AttemptState | None]:
        """Return the task of a step and the state of its attempt; each is None if the step has none."""
        task = self.part.task_of(step) if isinstance(step, ReadyStep | AttemptStep) else None
        attempt = step.attempt if isinstance(step, BetweenStep | AttemptStep) else ""
        known = attempt and (self.services.attempts.root / attempt).is_dir()
        return task, self.services.attempts.summary(attempt).state if known else None

    def _show(self, step: Step, task: Task | None, state: AttemptState | None) -> None:
        self._busy = False
        page, answered = self._page_of(step, task, state)
        self.push_screen(page, answered)

    def _page_of(
        self, step: Step, task: Task | None, state: AttemptState | None
    ) -> tuple[StudyPage, Callable[[str | None], None]]:
        """Return the page of a step, and the function that carries out an answer on it."""
        part, study, code, title = self.part, self.part.folder.study, self.part.code, self._study_title
        match step:
            case ConsentStep():
                consent = ConsentPage(
                    title, code, study, changed=words.changed_words(step), save=self._saving
                )
                return consent, partial(self._consented, consent)
            case FormStep():
                form = self._form_page(step)
                return form, lambda answer: self._do(lambda: part.answer(step, form.values, form.seconds))
            case RulesStep():
                rules = RulesPage(f"{title}: the rules", code, study.texts.rules)
                return rules, self._answers(next=part.begin_sitting)
            case ReadyStep() | AttemptStep():
                assert task is not None
                return self._ready_page(step, task, state)
            case BetweenStep():
                return self._between_page(step, state)
            case SittingOverStep():
                paragraphs = [words.over_words(step), *words.goodbye_words(code, self._command)]
                return LastPage(title, code, paragraphs, may_withdraw=True), self._answers(
                    close=part.end_sitting, last=True
                )
        return self._last_page(step), lambda answer: self.exit()

    def _last_page(self, step: Step) -> LastPage:
        title, code, contact = self._study_title, self.part.code, self._contact
        completion = self.part.folder.study.participants.completion
        match step:
            case DoneStep():
                paragraphs = words.done_words(code, contact, step, completion)
                return LastPage(
                    title, code, paragraphs, text=self.part.folder.study.texts.debrief, may_withdraw=True
                )
            case WithdrawnStep(keeps_data=keeps):
                return LastPage(title, code, words.withdrawn_words(keeps=keeps, contact=contact))
            case RefusedStep():
                return LastPage(title, code, words.refused_words(step, contact, code, completion))
        raise AssertionError(f"There is no page for {type(step).__name__}.")

    def _answers(self, *, last: bool = False, **actions: Then) -> Callable[[str | None], None]:
        """Return a function that carries out the action of an answer.

        `close`, or with `last` any answer, ends the program.
        """

        def answered(answer: str | None) -> None:
            action = actions.get(answer or "")
            if answer == "close" or last:
                self._close(action)
            elif action is not None:
                self._do(action)

        return answered

    def _close(self, record: Then | None) -> None:
        """Record an answer if there is one, and close the program."""

        def body() -> None:
            if record is not None:
                record()
            self.call_from_thread(self.exit)

        self._busy = True
        self.in_thread(body)

    @property
    def _saving(self) -> Callable[[Sequence[bool]], str] | None:
        """The function that saves a copy of the consent and says where; None if participants get no files."""
        copies = self._copies
        if copies is None:
            return None

        def save(ticked: Sequence[bool]) -> str:
            try:
                path = save_copy(self.part.folder, copies, ticked)
            except UserError as error:
                return str(error)
            return f"Your copy: {path}. `gistpoint study consent` prints it again at any time."

        return save

    def _consented(self, page: ConsentPage, answer: str | None) -> None:
        ticked = page.ticked
        self._do((lambda: self.part.consent(ticked)) if answer == "agree" else self.part.decline)

    def _form_page(self, step: FormStep) -> FormPage:
        from gistpoint.tui.screens.study.form import FormPage

        given = self.part.person.current
        number = next((n for n, one in enumerate(given, start=1) if one.id == step.assignment), 0)
        heading = words.form_heading(self.part.folder.study, step, number, len(given))
        return FormPage(heading, self.part.code, step, self.part.drafts)

    def _ready_page(
        self, step: ReadyStep | AttemptStep, task: Task, state: AttemptState | None
    ) -> tuple[StudyPage, Callable[[str | None], None]]:
        resume = isinstance(step, AttemptStep)
        paragraphs = words.ready_words(step, task, self.part.role_of(step), state if resume else None)
        may_skip = isinstance(step, ReadyStep) and step.may_skip
        page = ReadyPage(
            words.task_heading(step, task), self.part.code, paragraphs, resume=resume, may_skip=may_skip
        )

        def answered(answer: str | None) -> None:
            if answer == "begin":
                self._begin(step)
            elif answer == "break":
                self._rest()
            elif answer == "stop":
                self._stop_for_today()
            elif answer == "skip" and isinstance(step, ReadyStep):
                self._do(partial(self.part.pass_over, step))
            else:
                self._close(None)

        return page, answered

    def _between_page(
        self, step: BetweenStep, state: AttemptState | None
    ) -> tuple[StudyPage, Callable[[str | None], None]]:
        look = step.feedback is Feedback.FULL and state is not None
        page = BetweenPage(
            self._study_title,
            self.part.code,
            words.between_words(step, state),
            more=step.done < step.of,
            break_offered=step.break_offered,
            look=look,
        )

        def answered(answer: str | None) -> None:
            if answer == "next":
                self._do(partial(self.part.go_on, step))
            elif answer == "break":
                self._rest()
            elif answer == "look" and state is not None:
                self._show_summary(self.part.folder.task(step.finished.task), state)
            else:
                self._stop_for_today()

        return page, answered

    def _rest(self) -> None:
        self.push_screen(BreakPage(f"{self._study_title}: a break", self.part.code))

    def _stop_for_today(self) -> None:
        paragraphs = words.goodbye_words(self.part.code, self._command)
        page = LastPage(self._study_title, self.part.code, paragraphs, may_withdraw=True)

        def record() -> None:
            self.part.end_sitting()
            self.call_from_thread(self.push_screen, page, lambda answer: self.exit())

        self._busy = True
        self.in_thread(record)

    # Attempts

    def _begin(self, step: ReadyStep | AttemptStep) -> None:
        self._busy = True

        def body() -> None:
            taken = self.part.begin(step) if isinstance(step, ReadyStep) else self.part.open(step)
            self.call_from_thread(self._solve, taken)

        self.in_thread(body)

    def _solve(self, taken: TakenAttempt) -> None:
        from gistpoint.tui.screens.solve.terms import Terms

        self._taken, self._busy = taken, False
        terms = Terms(
            ask_ms=self.part.folder.study.clock.idle_after_s * 1000,
            brief_first=True,
            after_brief=partial(self._ask_after_brief, taken),
            paused=partial(self._publish, taken),
            withdraw=self._ask_to_withdraw,
            assistant=self._assistant_of(taken),
            gist_help=self.part.gist_help(taken.step).text,
        )
        attempt = taken.opened.attempt
        screen = self._last_solved_on = screens_of(attempt.task).solve(
            attempt, self.services.clock, None, terms
        )
        screen.when_left(partial(self._close_attempt, taken))
        self.push_screen(screen, partial(self._after_attempt, taken))

    def _close_attempt(self, taken: TakenAttempt) -> None:
        """Close the attempt.

        After a withdrawal it stays open, since `_after_attempt` still records the withdrawal in it.
        """
        if self._withdrawal is None:
            taken.opened.close()

    def _assistant_of(self, taken: TakenAttempt) -> Assistant | None:
        chat = taken.step.condition.chat
        if taken.state.header.assistance != Assistance.CHAT:
            return None
        from gistpoint.core.assist.exchange import Assistant

        return Assistant(taken.opened.attempt, self._chat_models[chat.model], chat)

    def _publish(self, taken: TakenAttempt) -> None:
        self.in_thread(partial(self.part.pause, taken))

    def _ask_after_brief(self, taken: TakenAttempt, then: Then) -> None:
        def body() -> None:
            if taken.forecasts:
                self.part.ask(taken)
                self.call_from_thread(self._show_forecast, taken, then)
            else:
                self.part.release(taken)
                self.call_from_thread(then)

        self.in_thread(body)

    def _show_forecast(self, taken: TakenAttempt, then: Then) -> None:
        step = taken.forecasts[0]
        page = self._form_page(step)

        def answered(answer: str | None) -> None:
            def body() -> None:
                self.part.answer_within(taken, step, page.values, page.seconds)
                self.call_from_thread(self._ask_after_brief, taken, then)

            self.in_thread(body)

        self.push_screen(page, answered)

    def _after_attempt(self, taken: TakenAttempt, how: How | None) -> None:
        self._busy = True
        withdrawal, self._withdrawal = self._withdrawal, None
        closes, self._closes = self._closes, False

        def body() -> None:
            try:
                if withdrawal is not None:
                    self.part.withdraw(withdrawal.code, withdrawal.text, taken)
                else:
                    self.part.close(taken)
            finally:
                self._taken = None
            if closes:
                self.call_from_thread(self.exit)
            elif taken.step.training and how == "ended":
                self.call_from_thread(self._show_summary, taken.opened.attempt.task, taken.state, taken)
            else:
                self.call_from_thread(self._do, lambda: None)

        self.in_thread(body)

    def _show_summary(self, task: Task, state: AttemptState, taken: TakenAttempt | None = None) -> None:
        """Show the correct solution of a task, after training or if the study reveals it."""
        last = state.last
        judged = (
            taken.opened.attempt.found.get(last.call_id) if taken is not None and last is not None else None
        )
        self._busy = False
        summary = screens_of(task).summary(task, read_answer(task), state, judged, None)
        summary.key_names["home"] = "Continue"
        self.push_screen(summary)

    # Withdrawing

    @on(WithdrawRequested)
    def withdraw_requested(self) -> None:
        """Ask whether to stop taking part."""
        self._ask_to_withdraw()

    def _ask_to_withdraw(self) -> None:
        def answered(reason: ReasonAnswer | None) -> None:
            if reason is not None:
                self._withdraw(reason)

        about = self.part.code, f"leaving {self.part.folder.study.id}"
        self.push_screen(WithdrawDialog(self.drafts.place(about, "why")), answered)

    def _withdraw(self, reason: ReasonAnswer) -> None:
        self._busy = True
        solving = self._solving
        while self.screen is not solving and not isinstance(self.screen, WaitingPage):
            self.pop_screen()
        if solving is not None:
            self._withdrawal = reason
            self._leave_task(solving)
        else:
            self._do(partial(self.part.withdraw, reason.code, reason.text))

    def _leave_task(self, solving: SolveScreen) -> None:
        """Leave the open task, so that its screen takes no more input, which would not be recorded."""
        from gistpoint.tui.screens.solve.interruptions import LeaveRequested

        solving.post_message(LeaveRequested())

    @property
    def _solving(self) -> SolveScreen | None:
        return self._last_solved_on if self._last_solved_on in self.screen_stack else None

    # The program

    def action_leave_program(self) -> None:
        """Close the program. Ask first if an attempt is under way."""
        solving = self._solving
        if solving is None:
            self.exit()
        else:
            solving.when_free(self._ask_to_close)

    def _ask_to_close(self) -> None:
        question = ConfirmDialog(
            "Close the program?",
            "The task is kept as it is, with its clock, code and notes. The same command continues it.",
            yes="Close",
        )

        def answered(yes: bool | None) -> None:
            if yes and (solving := self._solving) is not None:
                self._closes = True
                self._leave_task(solving)

        self.push_screen(question, answered)

    def open_attempt_id(self) -> str:
        """Return the id of the open attempt; empty if there is none."""
        return self._taken.step.attempt if self._taken is not None else ""

    def save_open_work(self, error: Exception, log: Path) -> str:
        """Record the crash in the open attempt and close it, so that it can be resumed.

        Return a sentence for the report. Everything that was entered elsewhere is saved already.
        """
        taken, self._taken = self._taken, None
        self._busy = False
        if taken is None:
            return " None of your work is lost."
        taken.opened.journal.append(crash_event(error, log))
        taken.opened.close()
        return " The task is safe: you can continue where you stopped."
