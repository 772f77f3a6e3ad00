"""What one validator knows and says: the tasks opened, what was run, what was measured, and what was typed."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from threading import Lock

from gistpoint.core.callgraph.graph import CallGraph
from gistpoint.core.generation.dossier import Dossier, open_dossier
from gistpoint.core.generation.trials import Steadiness, Subject, Trial, steadiness
from gistpoint.core.kinds.gist.verdict import GistVerdict
from gistpoint.core.metrics.table import FunctionMetrics, Standing, standings, standings_from_json
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.tasks import TaskSet
from gistpoint.sessions.validations.validating import Draft, Drafts, ValidationStore, Validator
from gistpoint.tui.screens.validate.bench import JobEnded
from gistpoint.tui.screens.validate.gist_page import OWN
from gistpoint.tui.screens.validate.queue import QueueRow
from gistpoint.tui.services import Services

_DOSSIERS = 8
"""Tasks whose trees stay open."""


@dataclass(frozen=True, slots=True)
class Study:
    """A library's call graph and the metrics of its functions, tests left out."""

    graph: CallGraph
    rows: tuple[FunctionMetrics, ...]


@dataclass(slots=True)
class Desk:
    """One validator's work on a set of tasks."""

    services: Services
    tasks: TaskSet
    validator: Validator
    drafts: Drafts
    _dossiers: dict[str, Dossier] = field(default_factory=dict)
    _studies: dict[tuple[str, str, str], Study] = field(default_factory=dict)
    _trials: dict[tuple[str, Subject], Trial] = field(default_factory=dict)
    _verdicts: dict[str, dict[str, GistVerdict]] = field(default_factory=dict)
    _opening: Lock = field(default_factory=Lock)
    _studying: Lock = field(default_factory=Lock)

    @classmethod
    def of(cls, services: Services, tasks: TaskSet, name: str) -> Desk:
        """Read what was said before. Raises `ValidationError` for a name that can't be used."""
        folder = services.locations.validations
        validator = Validator(ValidationStore(folder, services.clock), name)
        return cls(services, tasks, validator, Drafts(folder / "drafts", validator.name))

    def rows(self, words: str = "") -> list[QueueRow]:
        """Return the queue, or what fits some words."""
        found = [QueueRow(task, self.validator.validation(task.id)) for task in self.tasks.tasks]
        return [row for row in found if row.fits(words)]

    # Tasks; these two are called in a thread

    def dossier(self, task: Task) -> Dossier:
        """Open a task, or return it as it was opened. Raises `TaskError`."""
        with self._opening:
            known = self._dossiers.get(task.id)
            if known is None:
                known = self._dossiers[task.id] = open_dossier(task.folder)
                while len(self._dossiers) > _DOSSIERS:
                    self._dossiers.pop(next(iter(self._dossiers)))
            return known

    def study(self, dossier: Dossier) -> Study:
        """Return the call graph and the metrics of the original library; seconds for a large one."""
        from gistpoint.core.callgraph.builder import build_call_graph
        from gistpoint.core.metrics.table import measure_functions

        key = _library(dossier.task)
        with self._studying:
            if key not in self._studies:
                files = dossier.library_files()
                graph = build_call_graph(files)
                self._studies[key] = Study(graph, tuple(measure_functions(graph, files)))
            return self._studies[key]

    # What is known

    def standings(self, dossier: Dossier, function: str) -> tuple[Standing, ...]:
        """Return where a function lies in its library: from the task's answer, else as measured here."""
        told = standings_from_json(dossier.answer.metrics, function)
        study = self._studies.get(_library(dossier.task))
        if study is not None and not any(standing.percentile is not None for standing in told):
            return standings(study.rows, [function]).get(function, told)
        return told

    def steadiness(self, dossier: Dossier) -> Steadiness:
        """Count what each test said in all finished runs, whoever asked for them."""
        trials = self.validator.store.book.trials(dossier.task.id)
        baseline = dossier.answer.baselines[0]
        return steadiness(baseline, [(t.subject, t.odd) for t in trials if t.finished and t.subject is not Subject.FIX])

    def trials(self, task: Task) -> dict[Subject, Trial]:
        """Return the last finished runs of this session, with the texts of their failures."""
        found = {subject: self._trials.get((task.id, subject)) for subject in Subject}
        return {subject: trial for subject, trial in found.items() if trial is not None}

    def verdicts(self, task: Task) -> Mapping[str, GistVerdict]:
        """Return the scores of gists made in this session by text, the last one last."""
        return self._verdicts.get(task.id, {})

    def known_graph(self, task: Task) -> CallGraph | None:
        """Return the call graph of a task's library where it was built."""
        study = self._studies.get(_library(task))
        return study.graph if study is not None else None

    def record(self, ended: JobEnded) -> None:
        """Keep what a job found, as evidence."""
        task = ended.job.task
        if ended.score is not None:
            verdict, known = ended.score.verdict, self._verdicts.setdefault(task.id, {})
            if verdict is not None and verdict.score is not None:
                known.pop(verdict.text, None)
                known[verdict.text] = verdict
            self.validator.score_trial(task.id, ended.score)
        elif ended.trial is not None:
            if ended.trial.finished:
                self._trials[task.id, ended.trial.subject] = ended.trial
            self.validator.trial(task.id, ended.trial, ended.job.fix)
        elif ended.findings:
            self.validator.check(task.id, ended.findings, ended.backend)

    # What is typed

    def draft(self, task: Task) -> Draft:
        """Return what was typed and not said yet."""
        return self.drafts.read(task.id)

    def draft_comment(self, task: Task, text: str) -> None:
        """Keep a half-written comment."""
        self.drafts.write(task.id, replace(self.draft(task), comment=text))

    def draft_fix(self, task_id: str, name: str, code: str) -> None:
        """Keep a half-written fix."""
        draft = self.drafts.read(task_id)
        self.drafts.write(task_id, replace(draft, fixes={**draft.fixes, name: code}))

    def draft_buffer(self, buffer: str, code: str) -> None:
        """Keep what an editor outside has saved, by the name of its buffer; what can't be written is kept later."""
        task, _, name = buffer.partition("/")
        with contextlib.suppress(OSError):
            self.draft_fix(task, name, code)

    def fix(self, dossier: Dossier) -> Mapping[str, str]:
        """Return the functions that were changed; of a gist task, the gist that was written."""
        if dossier.is_gist:
            own = self.draft(dossier.task).fixes.get(OWN)
            return {} if own is None else {OWN: own}
        start = {target.name: target.corrupted for target in dossier.answer.targets}
        fixes = self.draft(dossier.task).fixes
        return {name: code for name, code in fixes.items() if name in start and code.strip() != start[name].strip()}


def _library(task: Task) -> tuple[str, str, str]:
    source = task.source
    return source.kind, source.name, source.revision
