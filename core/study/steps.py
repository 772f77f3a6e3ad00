"""The participant's next step: a pure function of the declaration, the log, and this machine's state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from gistpoint.core.attempts.reasons import EndReason
from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.study.assigning import TRAINING, assignment_id, plan_tasks
from gistpoint.core.study.consent import shown_sha256
from gistpoint.core.study.declaration import (
    Condition,
    Feedback,
    Moment,
    Question,
    Questionnaire,
    Study,
    StudyTask,
)
from gistpoint.core.study.ledger import Assignment, Ledger, Person
from gistpoint.core.study.operations import Amended, Begun, Consented, Finished, Sitting
from gistpoint.core.study.questions import asked, screened_out, wording_sha256
from gistpoint.core.study.reading import protocol_sha256
from gistpoint.core.study.soundness import training_tasks

SITTING_LAPSES_MS = 4 * 60 * 60 * 1000
"""A sitting without any record for this long counts as over, because its program must have been killed."""
BEGAN, ENDED = "began", "ended"
"""The states of a sitting."""
SKIPPED = EndReason.SKIPPED.value
"""The end of an assignment, including a training task, that was skipped."""


class LocalJournal(StrEnum):
    """The state of an attempt's journal on this machine."""

    UNFINISHED = "unfinished"
    ENDED = "ended"


@dataclass(frozen=True)
class Situation:
    """The facts that this machine knows in addition to the log."""

    now_ms: int
    """The current time, in milliseconds of UTC."""
    machine: str
    """The machine's id, as in the names of writers."""
    journals: Mapping[str, LocalJournal] = field(default_factory=dict)
    """The states of the journals on this machine, by attempt id."""
    sandbox_ready: bool = True
    """Whether the sandbox that the study demands works on this machine."""
    went_on_after: str = ""
    """The id of the assignment after which the participant chose to continue, in this process."""
    version: str = ""
    """The version of gistpoint that runs; empty to accept any."""
    simulates: bool = False
    """Whether the participant is a program; a simulated study admits no other."""


class RefusalReason(StrEnum):
    """A reason why a session can't continue."""

    UNKNOWN_CODE = "unknown_code"
    ERASED = "erased"
    SIMULATED = "simulated"
    NOT_OPEN = "not_open"
    CLOSED = "closed"
    TASKS_CHANGED = "tasks_changed"
    PROTOCOL_CHANGED = "protocol_changed"
    PLAN_CHANGED = "plan_changed"
    VERSION_CHANGED = "version_changed"
    NO_SANDBOX = "no_sandbox"
    DECLINED = "declined"
    SCREENED_OUT = "screened_out"
    NO_TASKS = "no_tasks"
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True)
class RefusedStep:
    """The refusal to continue the session, with the reason in words and a hint on what to do."""

    reason: RefusalReason
    words: str
    hint: str = ""


@dataclass(frozen=True)
class ConsentStep:
    """The request for consent; recorded as `consented` or `declined`."""

    again: bool = False
    """Whether the person consents again because the protocol was amended."""
    changes: tuple[str, ...] = ()
    """The changes since the person agreed, in the organiser's words."""
    text_changed: bool = False
    """Whether the text or the items differ from those that the person agreed to."""


@dataclass(frozen=True)
class FormStep:
    """The questions of a form; recorded as `answers`, of the assignment if there is one."""

    form: Questionnaire
    questions: tuple[Question, ...]
    """The questions as asked; one per library where the question demands it."""
    assignment: str = ""

    @property
    def sha256(self) -> str:
        """The hash of the questions' wording, which is stored with the answers."""
        return wording_sha256(self.questions)


@dataclass(frozen=True)
class ScreenOutStep:
    """The end of the session because of an answer; recorded as `screened_out`, without any display."""

    item: str
    """The column of the answer, such as `before.editor`."""


@dataclass(frozen=True)
class RulesStep:
    """The rules, shown when a sitting begins; recorded as `sitting` with the state `began`."""


@dataclass(frozen=True)
class PlanStep:
    """The assignment of tasks to the person; recorded as `planned`, without any display."""

    assignments: tuple[Assignment, ...]
    protocol: str
    slot: int = 1


@dataclass(frozen=True)
class ReadyStep:
    """The announcement of a task; recorded as `begun` with a new attempt's id, before its journal begins."""

    assignment: Assignment
    condition: Condition
    number: int
    """The task's number, counted from 1."""
    of: int
    training: bool = False
    may_skip: bool = False
    """Whether the training task may be skipped; `finished` then has the end `skipped` and no attempt."""


@dataclass(frozen=True)
class AttemptStep:
    """An attempt that the log records as begun, and whose journal is resumed or begun."""

    assignment: Assignment
    condition: Condition
    attempt: str
    number: int
    of: int
    resume: bool
    """Whether this machine has an unfinished journal; otherwise the attempt begins with the logged id."""
    training: bool = False
    forecasts: tuple[FormStep, ...] = ()
    """The forms to fill in after the brief that have no answers yet."""


@dataclass(frozen=True)
class FinishStep:
    """The publication of an attempt's ended journal; recorded as `finished`, without any display."""

    assignment: Assignment
    attempt: str
    training: bool = False


@dataclass(frozen=True)
class BetweenStep:
    """The screen between two tasks: feedback on the previous task, a break, and the choice to continue."""

    finished: Assignment
    attempt: str
    done: int
    of: int
    feedback: Feedback
    break_offered: bool


class SittingLimit(StrEnum):
    """The reason why a sitting is over."""

    TASKS = "tasks"
    MINUTES = "minutes"


@dataclass(frozen=True)
class SittingOverStep:
    """The end of a sitting while tasks remain; recorded as `sitting` with the state `ended`."""

    limit: SittingLimit
    done: int
    of: int


@dataclass(frozen=True)
class DoneStep:
    """The debrief and the code again, for a person who has finished the study."""

    done: int
    of: int
    complete: bool = True
    """False if tasks of the person were freed for others because the person had not continued."""


@dataclass(frozen=True)
class WithdrawnStep:
    """The end of the session of a person who has withdrawn; nothing more is asked."""

    keeps_data: bool


Step: TypeAlias = (
    RefusedStep
    | ConsentStep
    | FormStep
    | ScreenOutStep
    | RulesStep
    | PlanStep
    | ReadyStep
    | AttemptStep
    | FinishStep
    | BetweenStep
    | SittingOverStep
    | DoneStep
    | WithdrawnStep
)


def next_step(
    study: Study, tasks: Mapping[str, StudyTask], ledger: Ledger, code: str, situation: Situation
) -> Step:
    """Return the next step of a participant.

    The same log, read in any order, leads to the same step on the same machine at the same time, so a session
    that was killed resumes where it stopped.
    """
    session = _Session(study, tasks, ledger, ledger.person(code), situation)
    return next(session.steps())


def required_steps(
    study: Study, tasks: Mapping[str, StudyTask], ledger: Ledger, person: Person, situation: Situation
) -> Iterator[Step]:
    """Yield the steps that a person must take before their next task is planned or begun."""
    return _Session(study, tasks, ledger, person, situation).required()


@dataclass(frozen=True)
class _AssignedTask:
    """An assignment in the person's order, with the start that counts and the end, if any."""

    assignment: Assignment
    number: int
    of: int
    training: bool
    begun: Begun | None
    end: Finished | None


@dataclass(frozen=True)
class _Session:
    study: Study
    tasks: Mapping[str, StudyTask]
    ledger: Ledger
    person: Person
    situation: Situation

    def steps(self) -> Iterator[Step]:
        """Yield the remaining steps in order; only the first is certain to be taken."""
        yield from self._refused()
        yield from self._consent()
        yield from self._forms(Moment.BEFORE)
        yield from self._screened()
        yield from self._ended_here()
        yield from self._after_tasks()
        if self._unplanned or self._open:
            yield from self._sitting()
            yield from self._planned()
            yield from self._between()
            yield from self._attempts()
        elif self.study.texts.feedback is not Feedback.NONE:
            yield from self._between()
        yield from self._forms(Moment.AFTER)
        done = self._done
        late = any(fact.late for fact in self.person.returned.values())
        yield DoneStep(len(done), len(self._counted), not late)

    def required(self) -> Iterator[Step]:
        """Yield the steps to be recorded before the next task: consent, forms, and the rules of a sitting."""
        yield from self._consent()
        yield from self._forms(Moment.BEFORE)
        yield from self._after_tasks()
        yield from self._sitting()

    # Reasons why the session can't continue

    def _refused(self) -> Iterator[Step]:
        code = self.person.code
        ledger = self.ledger
        if ledger.is_erased(code):
            yield _refusal(
                RefusalReason.ERASED, f"The data of {code[:60]!r} were erased.", "Nothing more is needed."
            )
        if self.person.enrolled is None:
            yield _refusal(
                RefusalReason.UNKNOWN_CODE,
                f"The code {code[:60]!r} is not enrolled in this study.",
                "Check the code.",
            )
        if withdrawn := self.person.withdrawn:
            yield WithdrawnStep(withdrawn.data != "erase")
        if self.study.simulated and not self.situation.simulates:
            yield _refusal(
                RefusalReason.SIMULATED,
                "This study is simulated: people can't take part.",
                "Make your own study.",
            )
        if ledger.opened is None:
            yield _refusal(RefusalReason.NOT_OPEN, "This study is not open yet.")
        if ledger.closed:
            yield _refusal(
                RefusalReason.CLOSED, "This study is closed.", "Nothing more is needed. Thank you."
            )
        yield from self._changed()
        if not self.situation.sandbox_ready:
            demanded = self.study.sandbox.demand or "a sandbox that isolates"
            yield _refusal(
                RefusalReason.NO_SANDBOX,
                f"This study needs {demanded}, which does not work on this machine.",
                "`gistpoint doctor` gives the reason. Tell the organiser.",
            )

    def _changed(self) -> Iterator[Step]:
        opened = self.ledger.opened
        amended = self.ledger.amended_ms is not None
        first = set(opened.tasks) if opened and not amended else set()
        if first and first != set(self.tasks):
            words = "The tasks here differ from those with which the study was opened."
            yield _refusal(RefusalReason.TASKS_CHANGED, words)
        if protocol_sha256(self.study, self.tasks) != self.ledger.protocol:
            words = "The study's files here differ from those in force."
            yield _refusal(RefusalReason.PROTOCOL_CHANGED, words)
        yield from self._upgraded()

    def _upgraded(self) -> Iterator[Step]:
        """Yield a refusal unless this version is in force, because attempts could differ (decision 166)."""
        here, in_force = self.situation.version, self.ledger.version
        if here and in_force and here != in_force:
            yield _refusal(
                RefusalReason.VERSION_CHANGED,
                f"This study uses gistpoint {in_force}, but this is gistpoint {here}: attempts made"
                " with the two versions would not be comparable.",
                f"Install the other version (pip install gistpoint=={in_force}). The organiser can put this"
                " version into force with `gistpoint study amend`.",
            )

    def _consent(self) -> Iterator[Step]:
        if self.person.declined:
            words = "You have decided not to take part."
            yield _refusal(RefusalReason.DECLINED, words, "If this is a mistake, tell the organiser.")
        consent = self.person.consent
        if consent is None:
            yield ConsentStep()
        elif self._is_outdated(consent):
            amended = self.ledger.study.all(Amended)
            since = [fact for fact in amended if fact.utc_ms > consent.utc_ms] or list(amended[-1:])
            changes = tuple(fact.tell or fact.why for fact in since)
            yield ConsentStep(again=True, changes=changes, text_changed=self._reads_otherwise(consent))

    def _reads_otherwise(self, consent: Consented) -> bool:
        """Return whether the text or the items differ from those to which a person agreed.

        Older records contain only the hash of the text.
        """
        if consent.shown_sha256:
            return consent.shown_sha256 != shown_sha256(self.study)
        return consent.text_sha256 != sha256_of_text(self.study.texts.consent)

    def _is_outdated(self, consent: Consented) -> bool:
        """Return whether the protocol has changed since a consent.

        A consent of an earlier version names no protocol, so its time is compared with the time of the last
        amendment.
        """
        if consent.protocol:
            return consent.protocol != self.ledger.protocol
        return consent.utc_ms < (self.ledger.amended_ms or 0)

    def _screened(self) -> Iterator[Step]:
        if self.person.screened_out:
            yield _refusal(
                RefusalReason.SCREENED_OUT,
                "This study is looking for other participants.",
                "Thank you for your time.",
            )
        for form in self.study.questionnaires_at(Moment.BEFORE):
            answers = self.person.answers(form.id) if form.id == self.study.participants.screening else None
            item = screened_out(form, answers.values) if answers else ""
            if item:
                yield ScreenOutStep(item)

    # Forms

    def _forms(self, moment: Moment, assignment: str = "", task: str = "") -> Iterator[FormStep]:
        mode = self.tasks[task].mode if task in self.tasks else ""
        for form in self.study.questionnaires_at(moment):
            questions = asked(form, self.tasks.values(), mode)
            if questions and self.person.answers(form.id, assignment) is None:
                yield FormStep(form, questions, assignment)

    def _after_tasks(self) -> Iterator[Step]:
        for assigned in self._done:
            yield from self._forms(Moment.AFTER_TASK, assigned.assignment.id, assigned.assignment.task)

    # Sittings

    def _sitting(self) -> Iterator[Step]:
        sitting = self.person.sitting
        now = self.situation.now_ms
        lapsed = now - self.person.last_own_ms >= SITTING_LAPSES_MS
        is_over = lapsed or (sitting is not None and sitting.state != BEGAN)
        if sitting is None or is_over:
            yield RulesStep()
            return
        # A task in progress is finished first, whatever the limits of a sitting.
        if self._in_progress is not None:
            return
        done = [one for one in self._done if one.end and one.end.utc_ms >= sitting.utc_ms]
        minutes = self.study.design.sitting_minutes
        progress = len(self._done), len(self._counted) or self.study.design.tasks_per_person
        if len(done) >= self.study.design.per_sitting:
            yield SittingOverStep(SittingLimit.TASKS, *progress)
        elif minutes and now - sitting.utc_ms >= minutes * 60_000:
            yield SittingOverStep(SittingLimit.MINUTES, *progress)

    def _between(self) -> Iterator[Step]:
        last = max(
            self._done,
            key=lambda assigned: (assigned.end.utc_ms if assigned.end else 0, assigned.number),
            default=None,
        )
        sitting = self.person.sitting
        if last is None or last.end is None:
            return
        if self._in_progress is not None or not _within(sitting, last.end):
            return
        if self.situation.went_on_after != last.assignment.id:
            done = len(self._done)
            design = self.study.design
            offered = done % design.break_offered_every == 0 and bool(self._open)
            feedback = self.study.texts.feedback
            yield BetweenStep(last.assignment, last.end.attempt, done, len(self._counted), feedback, offered)

    # Assignments

    @property
    def _unplanned(self) -> bool:
        return not self.person.assignments

    def _planned(self) -> Iterator[Step]:
        if self._unplanned and not any(assigned.training for assigned in self._open):
            assignments = plan_tasks(self.study, self.tasks, self.ledger, self.person.code)
            if assignments:
                yield PlanStep(assignments, self.ledger.protocol)
            else:
                words = (
                    "There is no task for you: you have already seen the tasks, or know their libraries well."
                )
                yield _refusal(RefusalReason.NO_TASKS, words, "Tell the organiser. Thank you.")

    @property
    def _trainings(self) -> list[_AssignedTask]:
        """The training tasks, each with its last attempt."""
        tasks = training_tasks(self.study, self.tasks)
        found = []
        for number, task in enumerate(tasks, start=1):
            assigned = self._try(task, number, len(tasks))
            while self._is_tried_again(assigned):
                assigned = self._try(task, number, len(tasks), after=assigned)
            found.append(assigned)
        return found

    def _is_tried_again(self, assigned: _AssignedTask) -> bool:
        """Return whether a training task ended without being solved or skipped, and must be solved."""
        if assigned.end is None or not self.study.training.must_solve:
            return False
        return assigned.end.end not in (EndReason.SOLVED.value, SKIPPED)

    def _try(self, task: str, number: int, of: int, after: _AssignedTask | None = None) -> _AssignedTask:
        conditions = self.study.conditions_of_people
        condition = conditions[(number - 1) % len(conditions)].id
        position = number if after is None else after.assignment.position + of
        identity = assignment_id(self.study.id, self.person.code, task, TRAINING, position)
        return self._assigned(
            Assignment(identity, self.person.code, task, condition, position), number, of, training=True
        )

    @property
    def _counted(self) -> list[_AssignedTask]:
        current = self.person.current
        return [self._assigned(one, n, len(current)) for n, one in enumerate(current, start=1)]

    def _assigned(
        self, assignment: Assignment, number: int, of: int, *, training: bool = False
    ) -> _AssignedTask:
        begun = next(iter(self.person.begun.get(assignment.id, ())), None)
        return _AssignedTask(assignment, number, of, training, begun, self.person.end_of(assignment.id))

    @property
    def _all(self) -> list[_AssignedTask]:
        return [*self._trainings, *self._counted]

    @property
    def _open(self) -> list[_AssignedTask]:
        """The assignments that have not ended, in order."""
        return [assigned for assigned in self._all if assigned.end is None]

    @property
    def _done(self) -> list[_AssignedTask]:
        """The counted assignments that have ended, in order."""
        return [one for one in self._counted if one.end is not None]

    @property
    def _in_progress(self) -> _AssignedTask | None:
        """The first assignment that was begun and has not ended; None if there is none."""
        return next((one for one in self._open if one.begun is not None), None)

    def _ended_here(self) -> Iterator[Step]:
        for assigned in self._open:
            if assigned.begun and self.situation.journals.get(assigned.begun.attempt) is LocalJournal.ENDED:
                yield FinishStep(assigned.assignment, assigned.begun.attempt, assigned.training)

    def _attempts(self) -> Iterator[Step]:
        assigned = self._in_progress or self._open[0]
        condition = self.study.condition_of(assigned.assignment.condition)
        if condition is None or assigned.assignment.task not in self.tasks:
            words = "You were given a task or a condition that the study no longer has."
            yield _refusal(RefusalReason.PLAN_CHANGED, words)
            return
        if assigned.begun is None:
            skip = assigned.training and not self.study.training.must_end
            yield ReadyStep(
                assigned.assignment, condition, assigned.number, assigned.of, assigned.training, skip
            )
            return
        attempt = assigned.begun.attempt
        here = assigned.begun.reviewer.rpartition("@")[2] == self.situation.machine
        resume = attempt in self.situation.journals
        if not here and not resume:
            words = "You began a task on another machine, and can continue it only there."
            yield _refusal(
                RefusalReason.ELSEWHERE, words, "If you can't, ask the organiser to return the task."
            )
        # Training tasks ask too: nobody should see these questions for the first time after a counted task.
        forms = self._forms(Moment.AFTER_BRIEF, assigned.assignment.id, assigned.assignment.task)
        yield AttemptStep(
            assigned.assignment,
            condition,
            attempt,
            assigned.number,
            assigned.of,
            resume,
            assigned.training,
            tuple(forms),
        )


def _within(sitting: Sitting | None, end: Finished) -> bool:
    return sitting is not None and sitting.state == BEGAN and end.utc_ms >= sitting.utc_ms


def _refusal(reason: RefusalReason, words: str, hint: str = "Tell the organiser.") -> RefusedStep:
    return RefusedStep(reason, words, hint)
