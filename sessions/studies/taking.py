"""A participant's path through a study, without a screen: the steps and their records.

The app, simulated participants and tests use the same class. Each method's records are on disk when the
method returns. A process may be killed at any time; the next one determines from the log and the journals
with which step to continue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gistpoint import __version__
from gistpoint.core.assist.help import HelpGist
from gistpoint.core.attempts.events import EndReason, PauseReason, QuestionnaireAnswered
from gistpoint.core.attempts.harness import TaskJudge
from gistpoint.core.attempts.identity import PERSON, SIMULATED, Role, new_attempt_id
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.ports import TimeSource
from gistpoint.core.study.assigning import planned_data
from gistpoint.core.study.conditions import budgets_under, enrolment_under, under
from gistpoint.core.study.consent import shown_sha256
from gistpoint.core.study.declaration import GistHelp
from gistpoint.core.study.ledger import Person
from gistpoint.core.study.operations import (
    ERASE,
    KEEP,
    Answers,
    Begun,
    Consented,
    Fact,
    Finished,
    ScreenedOut,
    Sitting,
    StudyError,
    StudyOperationKind,
    Withdrawn,
    person,
)
from gistpoint.core.study.steps import (
    BEGAN,
    ENDED,
    SKIPPED,
    AttemptStep,
    BetweenStep,
    FinishStep,
    FormStep,
    LocalJournal,
    PlanStep,
    ReadyStep,
    ScreenOutStep,
    Situation,
    Step,
    next_step,
)
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.attempts import AttemptStore, OpenAttempt
from gistpoint.sessions.journal import JOURNAL, first_event, is_open, read_journal
from gistpoint.sessions.studies.drafts import FormDrafts
from gistpoint.sessions.studies.exposures import record_exposures
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.help_gists import read_help
from gistpoint.sessions.studies.lateness import return_late


@dataclass(frozen=True, slots=True)
class TakenAttempt:
    """An attempt at an assignment that this process has open."""

    step: AttemptStep
    opened: OpenAttempt

    @property
    def state(self) -> AttemptState:
        """The attempt's state."""
        return self.opened.attempt.state

    @property
    def forecasts(self) -> tuple[FormStep, ...]:
        """The forms after the brief that are missing from the attempt's journal."""
        answered = {given.questionnaire for given in self.state.questionnaires}
        return tuple(step for step in self.step.forecasts if step.form.id not in answered)


class Participation:
    """One participant on this machine; every method may raise `StudyError` or another `UserError`."""

    def __init__(
        self,
        folder: StudyFolder,
        code: str,
        attempts: AttemptStore,
        judge_for: Callable[[Task], TaskJudge],
        drafts: FormDrafts,
        *,
        actor: str = PERSON,
    ) -> None:
        """`judge_for` returns the judge of a task; `actor` is `SIMULATED` for a simulated person."""
        self.folder, self.code, self.actor = folder, code, actor
        self.drafts = drafts
        self._attempts, self._judge_for = attempts, judge_for
        self._went_on_after = ""
        self.sandbox_ready = True

    @property
    def clock(self) -> TimeSource:
        """The clock of the records."""
        return self.folder.clock

    @property
    def person(self) -> Person:
        """The participant, from the log."""
        return self.folder.ledger.person(self.code)

    # The next step

    def come(self) -> None:
        """Read other writers' data, and complete unfinished steps of an earlier process."""
        self.folder.reload()
        withdrawn = self.person.withdrawn
        if withdrawn is not None and withdrawn.data == ERASE:
            self.folder.erase(self.code)
        if self.folder.ledger.is_erased(self.code):
            self.drafts.remove_all()
            self.folder.sweep()
        for fact in [fact for facts in self.person.begun.values() for fact in facts]:
            place = self._place(fact.attempt)
            if _has_begun(place) and not is_open(place):
                self.folder.publish(place)

    def step(self) -> Step:
        """Return the participant's next step, after recording the steps that need no input."""
        while True:
            step = self.next()
            if not self._record_silently(step):
                return step

    def next(self) -> Step:
        """Return the next step according to the log and this machine's files, without recording anything."""
        folder = self.folder
        return next_step(folder.study, folder.tasks, folder.ledger, self.code, self._situation())

    def _situation(self) -> Situation:
        begun = {fact.attempt for facts in self.person.begun.values() for fact in facts}
        unfinished = begun - self.person.finished.keys()
        found = {attempt: _journal_at(self._place(attempt)) for attempt in unfinished}
        return Situation(
            now_ms=self.clock.utc_ms(),
            machine=self.folder.machine,
            journals={attempt: journal for attempt, journal in found.items() if journal is not None},
            sandbox_ready=self.sandbox_ready,
            went_on_after=self._went_on_after,
            version="" if self.actor == SIMULATED else __version__,
            simulates=self.actor == SIMULATED,
        )

    def _record_silently(self, step: Step) -> bool:
        """Record a step that needs no input; return False for any other step."""
        match step:
            case ScreenOutStep(item=item):
                self._record(StudyOperationKind.SCREENED_OUT, ScreenedOut(item=item))
            case PlanStep():
                self._plan()
            case FinishStep(assignment=assignment, attempt=attempt):
                self._finish(assignment.id, attempt)
            case _:
                return False
        return True

    def _plan(self) -> None:
        """Plan the person's tasks on the basis of all writers' data, and record that basis with the plan."""

        def plan() -> None:
            record_exposures(self.folder, self.code)
            return_late(self.folder, but=self.code)
            step = self.next()
            if isinstance(step, PlanStep):
                data = planned_data(
                    step.assignments, basis=self.folder.basis(), protocol=step.protocol, slot=step.slot
                )
                self._record(StudyOperationKind.PLANNED, data)

        self.folder.exclusively(plan)

    def _record(self, kind: StudyOperationKind, data: Fact | None = None) -> None:
        self.folder.record(self.code, person(self.code), kind, data)

    def _place(self, attempt: str) -> Path:
        return self._attempts.root / attempt

    # Before the tasks

    def consent(self, items: Sequence[bool]) -> None:
        """Record the consent, and for each of its items, in the declared order, whether it was ticked."""
        text = sha256_of_text(self.folder.study.texts.consent)
        self._record(
            StudyOperationKind.CONSENTED,
            Consented(
                text_sha256=text,
                items=tuple(items),
                protocol=self.folder.ledger.protocol,
                version=self.folder.study.texts.consent_version,
                shown_sha256=shown_sha256(self.folder.study),
            ),
        )

    def decline(self) -> None:
        """Record that the person does not take part."""
        self._record(StudyOperationKind.DECLINED)

    def answer(self, step: FormStep, values: Mapping[str, Any], seconds: float = 0.0) -> None:
        """Record the answers to a form, by question id, and delete its draft. A declined answer is None."""
        answers = Answers(
            questionnaire=step.form.id,
            sha256=step.sha256,
            values=dict(values),
            seconds=round(seconds, 3),
            assignment=step.assignment,
        )
        self._record(StudyOperationKind.ANSWERS, answers)
        self.drafts.remove(step.form.id, step.assignment)

    def begin_sitting(self) -> None:
        """Record that the person has read the rules and a sitting begins."""
        self._record(StudyOperationKind.SITTING, Sitting(state=BEGAN))

    def end_sitting(self) -> None:
        """Record that the person ends the sitting."""
        self._record(StudyOperationKind.SITTING, Sitting(state=ENDED))

    def go_on(self, step: BetweenStep) -> None:
        """Continue with the next task.

        Only this process remembers the choice, so another one would ask again.
        """
        self._went_on_after = step.finished.id

    def pass_over(self, step: ReadyStep) -> None:
        """Record that a training task is skipped. Raises `StudyError` if it must not be skipped."""
        if not step.may_skip:
            raise StudyError("This training task can't be skipped.")
        self._record(
            StudyOperationKind.FINISHED, Finished(assignment=step.assignment.id, attempt="", end=SKIPPED)
        )

    # Attempts

    def task_of(self, step: ReadyStep | AttemptStep) -> Task:
        """Return the task of an assignment under its condition."""
        task = self.folder.task(step.assignment.task)
        return under(step.condition, task, read_answer(task))

    def role_of(self, step: ReadyStep | AttemptStep) -> Role:
        """Return the role of an attempt at an assignment."""
        return Role.TRAINING if step.training else Role(self.person.role or Role.BASELINE)

    def gist_help(self, step: ReadyStep | AttemptStep) -> HelpGist:
        """Return the gist that is shown with an assignment's task; if there is none, an empty gist.

        Raises `StudyError` if the gist can't be read.
        """
        if step.condition.gist_help is GistHelp.NONE:
            return HelpGist()
        return read_help(self.folder.root, step.assignment.task)

    def begin(self, step: ReadyStep) -> TakenAttempt:
        """Record that an assignment was begun; begin an attempt at it, and return the attempt.

        Raises `StudyError` if the code can't be isolated as the study demands, if the assignment was begun
        elsewhere, or if another step comes first.
        """
        task, judge = self._prepared(step)
        identity = new_attempt_id(self.clock.utc_ms())

        def begin() -> None:
            if step.assignment.id in self.person.begun:
                raise StudyError(
                    f"{self.code} has begun this task in another window or on another machine.",
                    hint="Continue there, or ask the organiser to return it.",
                )
            now = self.next()
            if not isinstance(now, ReadyStep) or now.assignment.id != step.assignment.id:
                raise StudyError("The task can't begin yet: another step comes first.")
            self._record(StudyOperationKind.BEGUN, Begun(assignment=step.assignment.id, attempt=identity))

        self.folder.exclusively(begin)
        forecasts = self.next()
        taken = forecasts if isinstance(forecasts, AttemptStep) else None
        if taken is None or taken.attempt != identity:
            raise StudyError(
                "The task can't begin yet: another step comes first.", hint="Run the command again."
            )
        return self._start(taken, task, judge)

    def open(self, step: AttemptStep) -> TakenAttempt:
        """Resume an attempt, or begin it with the id in the log if it has no journal; return the attempt.

        Raises `StudyError` if the code can't be isolated as the study demands, or if the record that the
        attempt was begun was withdrawn, and `AttemptError` if the attempt can't be resumed.
        """
        task, judge = self._prepared(step)
        if not step.resume:
            return self._begin_what_is_recorded(step, task, judge)
        taken = TakenAttempt(step, self._attempts.resume(step.attempt, task, judge))
        self._record_answers_of(taken)
        return taken

    def _begin_what_is_recorded(self, step: AttemptStep, task: Task, judge: TaskJudge) -> TakenAttempt:
        """Begin an attempt that an earlier process recorded as begun.

        Raises `StudyError` if that record was withdrawn.
        """
        begun = self.folder.exclusively(lambda: self.person.begun.get(step.assignment.id, ()))
        if not begun or begun[0].attempt != step.attempt:
            raise StudyError(
                "The record that this task was begun did not reach the others, and was withdrawn.",
                hint="Begin it again: none of it has been shown to you yet.",
            )
        return self._start(step, task, judge)

    def _prepared(self, step: ReadyStep | AttemptStep) -> tuple[Task, TaskJudge]:
        task = self.task_of(step)
        judge = self._judge_for(task)
        backend, demand = judge.harness(task).backend, self.folder.study.sandbox.demand
        if not backend.isolated or (demand and backend.name != demand and self.actor != SIMULATED):
            raise StudyError(
                f"This study needs {demand or 'a sandbox that isolates'}, and the code here runs in"
                f" {backend.name}.",
                hint="`gistpoint doctor` shows what works. Tell the organiser.",
            )
        return task, judge

    def _start(self, step: AttemptStep, task: Task, judge: TaskJudge) -> TakenAttempt:
        role = self.role_of(step)
        enrolment = enrolment_under(
            step.condition,
            study=self.folder.study.id,
            code=self.code,
            assignment=step.assignment.id,
            role=role,
            protocol_sha256=self.folder.ledger.protocol,
            gist_help_sha256=self.gist_help(step).sha256,
            actor=self.actor,
        )
        budgets = budgets_under(step.condition, task, role)
        opened = self._attempts.start(task, judge, enrolment, budgets=budgets, attempt_id=step.attempt)
        return TakenAttempt(step, opened)

    def ask(self, taken: TakenAttempt) -> None:
        """Stop the clock while the forms after the brief are filled in."""
        if taken.state.pause is None:
            taken.opened.attempt.pause(PauseReason.QUESTIONNAIRE)

    def answer_within(
        self, taken: TakenAttempt, step: FormStep, values: Mapping[str, Any], seconds: float
    ) -> None:
        """Record the answers to a form after the brief, in the journal and then in the log.

        The clock must be stopped; it continues after the last of these forms.
        """
        answered = QuestionnaireAnswered(
            questionnaire=step.form.id, sha256=step.sha256, values=dict(values), seconds=round(seconds, 3)
        )
        taken.opened.attempt.answer(answered)
        self.answer(step, values, seconds)
        self.release(taken)

    def release(self, taken: TakenAttempt) -> None:
        """Restart the clock if all forms after the brief are answered."""
        pause = taken.state.pause
        if pause is not None and pause.reason == PauseReason.QUESTIONNAIRE and not taken.forecasts:
            taken.opened.attempt.resume()

    def _record_answers_of(self, taken: TakenAttempt) -> None:
        """Copy the answers from the journal to the log, where they may be missing after a crash."""
        steps = {step.form.id: step for step in taken.step.forecasts}
        for given in taken.state.questionnaires:
            if given.questionnaire in steps:
                self.answer(steps[given.questionnaire], given.values, given.seconds)

    def close(self, taken: TakenAttempt) -> None:
        """Close an attempt, publish it, and if it has ended, record its end."""
        ended = taken.state.ended
        taken.opened.close()
        if ended:
            self._finish(taken.step.assignment.id, taken.step.attempt)
        else:
            self.folder.publish(self._place(taken.step.attempt))

    def pause(self, taken: TakenAttempt) -> None:
        """Publish the current journal of an attempt whose clock was stopped."""
        self.folder.publish(self._place(taken.step.attempt))

    def _finish(self, assignment: str, attempt: str) -> None:
        content = read_journal(self._place(attempt) / JOURNAL)
        end = next(
            (event.data.written().get("reason") for event in reversed(content.events) if event.type == _END),
            "",
        )
        finished = Finished(assignment=assignment, attempt=attempt, end=str(end), head=content.head)
        self.folder.publish(self._place(attempt))
        self._record(StudyOperationKind.FINISHED, finished)

    # The end

    def withdraw(self, data: str, words: str = "", taken: TakenAttempt | None = None) -> None:
        """Record that the person withdraws, delete the drafts, and end the open attempt `taken`.

        `data` is `KEEP`, or `ERASE` to delete the person's data. Raises `StudyError` if they can't be deleted
        because another attempt of the person is open; the withdrawal is recorded even then.
        """
        self._record(StudyOperationKind.WITHDRAWN, Withdrawn(data=data, words=words))
        self.drafts.remove_all()
        if taken is not None:
            taken.opened.attempt.end(EndReason.WITHDRAWN)
            if data == KEEP:
                self.close(taken)
            else:
                taken.opened.close()
        if data == ERASE:
            self.folder.erase(self.code)


_END = "attempt_ended"


def _has_begun(place: Path) -> bool:
    return first_event(place / JOURNAL) is not None


def _journal_at(place: Path) -> LocalJournal | None:
    """Return the state of an attempt's journal on this machine; None before its first whole event."""
    if not _has_begun(place):
        return None
    ended = any(event.type == _END for event in read_journal(place / JOURNAL).events)
    return LocalJournal.ENDED if ended else LocalJournal.UNFINISHED
