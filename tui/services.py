"""What the screens and the commands work with; `cli` puts it together, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gistpoint.core.attempts.budgets import Budgets
from gistpoint.core.attempts.identity import REPLAY, Enrolment, Role
from gistpoint.core.errors import AttemptError
from gistpoint.core.kinds.gist.overrides import GistOverrides, settings_data
from gistpoint.core.kinds.gist.splicing import given_test
from gistpoint.core.kinds.repair.judge import Judge
from gistpoint.core.locations import Locations
from gistpoint.core.ports import EntrypointRunner, Runner, TimeSource
from gistpoint.core.tasks.folder import read_answer
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.attempts import AttemptStore, AttemptSummary, OpenAttempt
from gistpoint.sessions.tasks import TaskStore
from gistpoint.tui.commands.consent import Consent
from gistpoint.tui.opening import Opening

if TYPE_CHECKING:
    from gistpoint.core.kinds.gist.judge import GistJudge


def is_our_demo(task: Task, locations: Locations) -> bool:
    """Whether a task is one of the demo's as it came with gistpoint; what a task says of itself proves nothing."""
    return task.demo and task.folder.parent == locations.demo


@dataclass(frozen=True, slots=True)
class Services:
    """The stores and the way to a runner for a task."""

    locations: Locations
    tasks: TaskStore
    attempts: AttemptStore
    clock: TimeSource
    runner_for: Callable[[Task], Runner]
    """Chooses the isolation and makes the runner. Raises `SandboxUnavailableError` where consent or a backend is
    missing; may take a while, and is called off the event loop."""
    entrypoints_for: Callable[[Task], EntrypointRunner]
    """As `runner_for`, for gists."""
    prepare: Callable[[Task], None] = lambda task: None
    """Says that a runner for this task will be needed soon."""
    enrolment: Enrolment = field(default_factory=Enrolment)
    """What a new attempt is started as."""
    gist_settings: Mapping[str, GistOverrides] = field(default_factory=dict)
    """Settings that were given for new attempts of a gist, by the id of its task."""
    consent: Consent = field(default_factory=Consent)
    """Asks before code runs without isolation."""

    def start(
        self, task: Task, *, budgets: Budgets | None = None, opening: Opening | None = None, replay: bool = False
    ) -> OpenAttempt:
        """Begin an attempt of a task, with the settings given for it, and its own budgets unless others are given.

        As a `replay` it is no person's. Raises `CancelledError` by `opening`.
        """
        opening = opening or Opening()
        task = self.as_given(task)
        opening.step("preparing the isolation that code runs in")
        judge = self.judge_for(task)
        opening.step("reading the repository")
        opening.commit()
        enrolment = replace(self.enrolment, actor=REPLAY) if replay else self.enrolment
        if enrolment.role is Role.BASELINE and is_our_demo(task, self.locations):
            enrolment = replace(enrolment, role=Role.DEMO)  # everybody can know its answer
        return self.attempts.start(task, judge, enrolment, budgets=budgets)

    def as_given(self, task: Task) -> Task:
        """Return a task with the settings that were given for attempts of it. Raises `GistSettingsError`."""
        given = self.gist_settings.get(task.id)
        if given is None:
            return task
        gist = read_answer(task).gist
        return given.on(task, given_test(gist.test) if gist else "")

    def unfinished(self, task: Task) -> list[AttemptSummary]:
        """Return a person's attempts of a task that have not ended, the newest first; damaged ones are among them.

        Those of a gist are under the settings that a new attempt would have: the given ones, else the task's.
        """
        found = self.attempts.unfinished(task.id, self.enrolment)
        if task.gist is None:
            return found
        given, default = self.as_given(task), settings_data(task)
        wanted = (given.budgets.tool_uses, settings_data(given))
        return [
            summary
            for summary in found
            if (summary.state.budgets.tool_uses, summary.state.header.get("gist_settings", default)) == wanted
        ]

    def resume(self, attempt_id: str, *, opening: Opening | None = None) -> OpenAttempt:
        """Go on with an attempt. Raises `CancelledError` by `opening`."""
        opening = opening or Opening()
        opening.step("reading the attempt")
        summary = self.attempts.summary(attempt_id)
        if summary.actor == REPLAY:
            raise AttemptError(
                f"Attempt {summary.attempt_id} is a recorded one that was played: nobody can go on with it.",
                hint=f"`gistpoint review {summary.attempt_id}` shows it.",
            )
        task = self.tasks.find(summary.task_id)
        opening.step("preparing the isolation that code runs in")
        judge = self.judge_for(task)
        opening.commit()
        return self.attempts.resume(attempt_id, task, judge)

    def judge_for(self, task: Task) -> Judge | GistJudge:
        """Return what judges submissions of a task, or gists where it is one of those."""
        answer = read_answer(task)
        if answer.gist is None:
            return Judge(task, answer, self.runner_for(task))
        return self.gist_judge_for(task)

    def gist_judge_for(self, task: Task) -> GistJudge:
        """Return what judges gists of a task. Raises `TaskError` for a task that is none."""
        from gistpoint.core.kinds.gist.judge import GistJudge

        return GistJudge(task, read_answer(task).gist_answer, self.entrypoints_for(task))
