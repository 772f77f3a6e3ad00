"""A validator's session: opened tasks, measured libraries, results of runs, and unfinished text."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gistpoint.core.callgraph import CallGraph
from gistpoint.core.errors import TaskError
from gistpoint.core.generation.dossier import Dossier, open_dossier
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.kind import Trial, TrialSubject
from gistpoint.core.kinds.steadiness import Steadiness, steadiness
from gistpoint.core.metrics.table import FunctionMetrics, MetricRank, standings, standings_from_json
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.annotations.glance_rates import task_rates
from gistpoint.sessions.annotations.glance_reader import GlanceStore
from gistpoint.sessions.annotations.validations import (
    TaskProgress,
    TaskStatus,
    TaskVerdict,
    Validation,
    ValidationOperation,
    ValidationOperationKind,
    progress,
)
from gistpoint.sessions.annotations.validator import Draft, Drafts, ValidationStore, Validator
from gistpoint.sessions.services import Services
from gistpoint.sessions.tasks import TaskSet
from gistpoint.tui.screens.validate.queue import QueueRow
from gistpoint.tui.screens.validate.trials import RunEnded

if TYPE_CHECKING:
    from gistpoint.sessions.team.live import LiveAnnotations

_DOSSIERS = 8
"""The maximum number of tasks whose trees stay open."""


@dataclass(frozen=True, slots=True)
class MeasuredTree:
    """The call graph of a library, and the metrics of its functions, without the tests."""

    graph: CallGraph
    rows: tuple[FunctionMetrics, ...]


@dataclass(slots=True)
class ValidationSession:
    """One validator's work on a set of tasks."""

    services: Services
    tasks: TaskSet
    validator: Validator
    drafts: Drafts
    live: LiveAnnotations | None = None
    """Shares validations through a team's store as they are made; None if no store is chosen."""
    readers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The other team members who are reading each task, by the task's id."""
    glance_rates: Mapping[str, float] = field(default_factory=dict)
    """The share of blind readings that named the fault, by the id of the task."""
    adjudicates: bool = False
    """Whether the validator decides tasks on which others disagree, and so sees their verdicts."""
    _functions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _dossiers: dict[str, Dossier] = field(default_factory=dict)
    _studies: dict[tuple[str, str, str], MeasuredTree] = field(default_factory=dict)
    _trials: dict[tuple[str, TrialSubject], Trial] = field(default_factory=dict)
    _scored: dict[str, dict[str, Trial]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        services: Services,
        tasks: TaskSet,
        name: str,
        live: LiveAnnotations | None = None,
        *,
        adjudicates: bool = False,
    ) -> ValidationSession:
        """Return the session with the annotations so far.

        With `adjudicates`, it has only the tasks that need a decision, or whose decision can be revised.
        Raises `ValidationError` for an invalid name.
        """
        folder = services.locations.validations
        validator = Validator(ValidationStore(folder, services.clock), name)
        rates = task_rates(GlanceStore(services.locations.glances, services.clock).book)
        if adjudicates:
            chosen = progress(validator.store.book, [task.id for task in tasks.tasks])
            undecided = {row.task for row in chosen if _needs_decision(row)}
            tasks = replace(tasks, tasks=tuple(task for task in tasks.tasks if task.id in undecided))
        return cls(
            services,
            tasks,
            validator,
            Drafts(folder / "drafts", validator.name),
            live,
            glance_rates=rates,
            adjudicates=adjudicates,
        )

    def rows(self) -> list[QueueRow]:
        """Return the rows of the queue."""
        return [
            QueueRow(
                task,
                self.validator.validation(task.id),
                self.glance_rates.get(task.id),
                self._functions.get(task.id, ()),
                self.readers.get(task.id, ()),
                verdict=self._verdict(task),
            )
            for task in self.tasks.tasks
        ]

    def _verdict(self, task: Task) -> TaskVerdict | None:
        """Return the validator's verdict or, when adjudicating, the decision; None if there is none."""
        if self.adjudicates:
            decision = self.validator.store.book.adjudication(task.id)
            return decision.verdict if decision is not None else None
        given = self.validator.validation(task.id).verdict
        return given.verdict if given is not None else None

    def judge(self, task: Task, verdict: TaskVerdict) -> ValidationOperation:
        """Record a verdict on a task, or a decision if the validator adjudicates; return the operation."""
        if self.adjudicates:
            return self.validator.adjudicate(task.id, verdict)
        return self.validator.verdict(task.id, verdict)

    def begin(self, task: Task) -> None:
        """Record that a task is shown, and the verdicts of others if the validator adjudicates."""
        self.validator.seen(task.id)
        if self.adjudicates:
            self.validator.reveal(task.id)

    def shown_validations(self, task: Task) -> tuple[Validation, ...]:
        """Return the validations of all who judged a task if the validator adjudicates; otherwise none."""
        return self.validator.store.book.validations(task.id) if self.adjudicates else ()

    def verdicts_of_all(self) -> Iterator[tuple[str, str, str]]:
        """Yield the verdict of each validator on each task: task, validator and verdict."""
        store = self.validator.store
        for validation in ValidationStore(store.folder, self.services.clock).book.states():
            if validation.verdict is not None:
                yield validation.task, validation.reviewer, validation.verdict.verdict.words

    # Reading tasks. Each of these three methods is always called in the same thread.

    def read_functions(self, check: Callable[[], object]) -> None:
        """Read the names of the functions in the answers, skipping answers that can't be read.

        `check` is called before each task and raises an exception to stop.
        """
        for task in self.tasks.tasks:
            check()
            with contextlib.suppress(TaskError, OSError):
                self._functions[task.id] = tuple(target.name for target in read_answer(task).targets)

    def dossier(self, task: Task) -> Dossier:
        """Open a task, or return it if it is open. Raises `TaskError` if it can't be read."""
        known = self._dossiers.get(task.id)
        if known is None:
            known = self._dossiers[task.id] = open_dossier(task.folder)
            while len(self._dossiers) > _DOSSIERS:
                self._dossiers.pop(next(iter(self._dossiers)))
        return known

    def study(self, dossier: Dossier) -> MeasuredTree:
        """Return the call graph and metrics of a task's original library. This can take seconds."""
        from gistpoint.core.callgraph import build_call_graph
        from gistpoint.core.metrics.table import measure_functions

        key = _library(dossier.task)
        if key not in self._studies:
            files = dossier.library_files()
            graph = build_call_graph(files)
            self._studies[key] = MeasuredTree(graph, tuple(measure_functions(graph, files)))
        return self._studies[key]

    # Evidence

    def standings(self, dossier: Dossier, function: str) -> tuple[MetricRank, ...]:
        """Return the ranks of a function in its library, from the answer or as measured in this session."""
        known = standings_from_json(dossier.answer.metrics, function)
        study = self._studies.get(_library(dossier.task))
        if study is not None and not any(standing.percentile is not None for standing in known):
            return standings(study.rows, [function]).get(function, known)
        return known

    def steadiness(self, dossier: Dossier) -> Steadiness | None:
        """Return how often tests passed in finished runs, except those of fixes; None without a baseline."""
        trials = self.validator.store.book.trials(dossier.task.id)
        odd = [
            (trial.subject, trial.odd)
            for trial in trials
            if trial.finished and trial.subject is not TrialSubject.FIX
        ]
        return steadiness(dossier.answer.baselines[0], odd) if dossier.answer.baselines else None

    def trials(self, task: Task) -> dict[TrialSubject, Trial]:
        """Return this session's last finished trials, with their failure messages, by subject."""
        found = {subject: self._trials.get((task.id, subject)) for subject in TrialSubject}
        return {subject: trial for subject, trial in found.items() if trial is not None}

    def scored(self, task: Task) -> Mapping[str, Trial]:
        """Return this session's trials that scored code, by the code, with the latest last."""
        return self._scored.get(task.id, {})

    def known_graph(self, task: Task) -> CallGraph | None:
        """Return the call graph of a task's library; None if the graph has not been built."""
        study = self._studies.get(_library(task))
        return study.graph if study is not None else None

    def record(self, ended: RunEnded) -> None:
        """Record the result of a run as evidence."""
        task, trial = ended.run.task, ended.trial
        if trial is not None:
            if trial.report is not None and trial.finished:
                self._trials[task.id, trial.subject] = trial
            elif trial.scored is not None and trial.finished:
                known = self._scored.setdefault(task.id, {})
                known.pop(trial.scored.text, None)
                known[trial.scored.text] = trial
            self.validator.trial(task.id, trial)
        elif ended.findings:
            self.validator.check(task.id, ended.findings, ended.backend)

    # Unfinished text

    def draft(self, task: Task) -> Draft:
        """Return the unfinished text on a task."""
        return self.drafts.read(task.id)

    def draft_comment(self, task: Task, text: str) -> None:
        """Save an unfinished comment."""
        self.drafts.write(task.id, replace(self.draft(task), comment=text))

    def draft_fix(self, task_id: str, name: str, code: str) -> None:
        """Save an unfinished fix."""
        draft = self.drafts.read(task_id)
        self.drafts.write(task_id, replace(draft, fixes={**draft.fixes, name: code}))

    def draft_buffer(self, buffer: str, code: str) -> None:
        """Save text from an external editor, by the name of its buffer.

        A disk error is ignored, because the text is saved again later.
        """
        task, _, name = buffer.partition("/")
        with contextlib.suppress(OSError):
            self.draft_fix(task, name, code)


def _needs_decision(row: TaskProgress) -> bool:
    """Return whether validators disagree on a task or want to discuss it, or a decision can be revised."""
    return row.decided is not None or row.standing in (TaskStatus.DISPUTED, TaskStatus.DISCUSSION)


def _library(task: Task) -> tuple[str, str, str]:
    source = task.source
    return source.kind, source.name, source.revision


def advice_on(given: TaskVerdict, validation: Validation) -> str:
    """Return advice on what a verdict still needs; empty if the verdict needs nothing."""
    if given is not TaskVerdict.ACCEPT:
        return "" if validation.comments else "  c says why."
    has_evidence = validation.check is not None or bool(validation.trials)
    return "" if has_evidence else "  Nothing was run here: ! runs the check."


def independence_words(validation: Validation) -> str:
    """Return a sentence if a verdict was given after those of others were shown; empty otherwise."""
    verdict = validation.verdict
    if verdict is None or verdict == validation.independent:
        return ""
    return "  You have seen the verdicts of others, so this one is left out of the agreement."


def annotation_words(operation: ValidationOperation) -> str:
    """Return an annotation's content in words, such as `the verdict accept`."""
    verdict = operation.text("verdict")
    if not verdict:
        return f"the comment {operation.text('text')[:40]!r}"
    decides = operation.kind == ValidationOperationKind.ADJUDICATION
    return f"the {'decision' if decides else 'verdict'} {TaskVerdict(verdict).words}"
