"""The services that screens, commands and workers use; only `gistpoint.object_graph` builds them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from gistpoint.core.attempts.harness import TaskJudge
from gistpoint.core.attempts.identity import REPLAY, Enrolment, Role
from gistpoint.core.chat import ChatApi
from gistpoint.core.errors import AttemptError, EndpointError, UserError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.locations import Locations
from gistpoint.core.ports import Runner, TimeSource
from gistpoint.core.running import Opening
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.attempt_summary import AttemptSummary
from gistpoint.sessions.attempts import AttemptStore, OpenAttempt
from gistpoint.sessions.tasks import TaskStore

if TYPE_CHECKING:
    from gistpoint.core.agents.scaffolds import SeatedSolver
    from gistpoint.core.agents.solvers import AgentSolver
    from gistpoint.core.confirmation.model import Confirmer
    from gistpoint.core.entrypoints.runs import EntrypointRunner
    from gistpoint.sessions.replay.replaying import Replay
    from gistpoint.sessions.runs.document import RunDocument


def is_our_demo(task: Task, locations: Locations) -> bool:
    """Return whether a task is a demo task shipped with gistpoint; the task's own claim is not enough."""
    return task.demo and task.folder.parent == locations.demo


def read_gist_settings(file: str) -> dict[str, Any]:
    """Return the settings of gists in a file. Raises `UserError` if it can't be read or is invalid."""
    from gistpoint.core.kinds.kind import MOST_SETTINGS_BYTES
    from gistpoint.core.kinds.registry import kind_with_settings

    try:
        with Path(file).open("rb") as opened:
            data = opened.read(MOST_SETTINGS_BYTES + 1)
    except OSError as error:
        raise UserError(f"{file} can't be read: {error.strerror}.", hint="Name a settings file.") from error
    if len(data) > MOST_SETTINGS_BYTES:
        raise UserError(f"{file} has more than {MOST_SETTINGS_BYTES} bytes.", hint="Name a settings file.")
    return kind_with_settings().read_settings(data, file)


def never(why_not: str) -> bool:
    """Return False: without anybody to ask, code does not run without isolation."""
    return False


@dataclass
class Consent:
    """Asks whether code may run without isolation: on the terminal, in an app, or not at all."""

    asker: Callable[[str], bool] = never
    """Called with the reason why there is no isolation, on the thread that builds the runner."""

    def ask(self, why_not: str) -> bool:
        """Ask, and return whether code may run; `why_not` is the reason why there is no isolation."""
        return self.asker(why_not)


class AttemptMirrorState(Protocol):
    """The state of the mirror of attempts; as a string, it is a few words or empty."""

    @property
    def is_healthy(self) -> bool:
        """Whether the mirror needs no attention."""
        ...


class AttemptMirror(Protocol):
    """Sends attempts to another store while they are written."""

    @property
    def state(self) -> AttemptMirrorState:
        """The current state of the mirror."""
        ...


def _no_solver(name: str, base_url: str, api: ChatApi | None) -> AgentSolver:
    raise EndpointError("No model was chosen.")


def _no_scaffold(name: str, model: str, base_url: str) -> SeatedSolver:
    raise EndpointError("No scaffold was chosen.")


@dataclass(frozen=True, slots=True)
class Services:
    """The stores, and the functions that build a task's runner and other parts."""

    locations: Locations
    tasks: TaskStore
    attempts: AttemptStore
    clock: TimeSource
    runner_for: Callable[[Task], Runner]
    """Returns the runner of a task, after choosing the isolation.

    Raises `SandboxUnavailableError` if consent or a backend is missing. It may take a while, so it must not
    be called on the event loop.
    """
    entrypoints_for: Callable[[Task], EntrypointRunner]
    """Like `runner_for`, but returns the runner of gists."""
    isolation: Callable[[], tuple[str, bool] | None] = lambda: None
    """Returns the name of the isolation for foreign code, and whether it isolates; None if it is unknown.

    It probes the machine, so it must not be called on the event loop.
    """
    confirmer_for: Callable[[Task], Confirmer | None] = lambda task: None
    """Returns the confirmer of a task's passes, with the isolation of `runner_for`; None if there is none."""
    enrolment: Enrolment = field(default_factory=Enrolment)
    """The enrolment of new attempts."""
    gist_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The settings given for new attempts at gists, by task id."""
    consent: Consent = field(default_factory=Consent)
    """Asks before code runs without isolation."""
    solver: Callable[[str, str, ChatApi | None], AgentSolver] = _no_solver
    """Returns the model with the given name, at a server's address and through an API.

    An empty argument is replaced with the value in the settings.

    Raises `EndpointError` if the model can't be used.
    """
    scaffold: Callable[[str, str, str], SeatedSolver] = _no_scaffold
    """Returns the agent with the given name, for a model at a server's address, given as to `solver`.

    Raises `ScaffoldError` if there is no such agent or it can't be started.
    """
    mirror: AttemptMirror | None = None
    """Sends attempts to the team's store while they are written; None if there is no team store."""

    def start(
        self,
        task: Task,
        *,
        budgets: Budgets | None = None,
        enrolment: Enrolment | None = None,
        opening: Opening | None = None,
        replay: bool = False,
        attempt_id: str = "",
    ) -> OpenAttempt:
        """Begin an attempt at a task, with the settings given for it, and return the attempt.

        `budgets` replace the task's. `enrolment` belongs to a participant in a study, or to a solver other
        than the person at the keyboard. A `replay` belongs to no participant. For `attempt_id` see
        `AttemptStore.start`. `opening` may raise `CancelledError`.
        """
        opening = opening or Opening()
        task = self.as_given(task)
        opening.step("preparing the isolation for the code")
        judge = self.judge_for(task)
        opening.step("reading the repository")
        opening.commit()
        enrolment = self.enrolled(task, enrolment or self.enrolment)
        if replay:
            enrolment = replace(enrolment, actor=REPLAY)
        return self.attempts.start(task, judge, enrolment, budgets=budgets, attempt_id=attempt_id)

    def enrolled(self, task: Task, enrolment: Enrolment) -> Enrolment:
        """Return the enrolment for an attempt at a task: attempts at the demo never count as baselines.

        The demo's answers are public. Studies are exempt: their organisers know the tasks, and their
        declarations define what counts.
        """
        is_own_baseline = enrolment.role is Role.BASELINE and enrolment.study is None
        if is_own_baseline and is_our_demo(task, self.locations):
            return replace(enrolment, role=Role.DEMO)
        return enrolment

    def as_given(self, task: Task) -> Task:
        """Return a task with the settings given for its attempts, if any.

        Raises `UserError` for invalid ones.
        """
        given = self.gist_settings.get(task.id)
        if given is None:
            return task
        return kind_of(task).settled(task, read_answer(task), given)

    def unfinished(self, task: Task) -> list[AttemptSummary]:
        """Return the person's unfinished attempts at a task, newest first, including damaged ones.

        For a gist, only attempts with the settings that a new attempt would have are returned.
        """
        found = self.attempts.unfinished(task.id, self.enrolment)
        kind = kind_of(task)
        if not kind.takes_settings:
            return found
        given = self.as_given(task)
        wanted = (given.budgets.tool_uses, kind.settings_in({}, given))
        return [
            summary
            for summary in found
            if (summary.state.budgets.tool_uses, kind.settings_in(summary.state.header.extra, task)) == wanted
        ]

    def resume(
        self, attempt_id: str, *, task: Task | None = None, opening: Opening | None = None
    ) -> OpenAttempt:
        """Resume an attempt and return it; `task` is its task if that is not in the store.

        Raises `AttemptError` if it can't be resumed. `opening` may raise `CancelledError`.
        """
        opening = opening or Opening()
        opening.step("reading the attempt")
        summary = self.attempts.summary(attempt_id)
        if summary.actor == REPLAY:
            raise AttemptError(
                f"Attempt {summary.attempt_id} is a playback of a recorded attempt: it can't be resumed.",
                hint=f"`gistpoint review {summary.attempt_id}` shows it.",
            )
        task = task or self.tasks.find(summary.task_id)
        opening.step("preparing the isolation for the code")
        judge = self.judge_for(task)
        opening.commit()
        return self.attempts.resume(attempt_id, task, judge)

    def judge_for(self, task: Task) -> TaskJudge:
        """Return the judge of a task. Raises `SandboxUnavailableError` if consent or a backend is missing."""
        judge: TaskJudge = kind_of(task).judge(task, read_answer(task), self)
        return judge

    def replay_of(self, document: RunDocument, name: str, task_name: str = "") -> Replay:
        """Return a replay of a run on the task `task_name`, by default the one that the run names.

        `name` is the run's name in messages. Raises `UserError` if the run names no task, if the task is
        missing or is not the run's task, or if no isolation works.
        """
        from gistpoint.sessions.replay.recorded import origin_of
        from gistpoint.sessions.replay.replaying import Replay, require_task

        origin = origin_of(document)
        wanted = task_name or str(origin.start.get("task_id") or "")
        if not wanted:
            raise UserError(
                f"{name} does not name the task on which it was recorded.",
                hint="Name it with `gistpoint replay --task TASK`.",
            )
        task = self.tasks.find(wanted)
        require_task(name, origin, task)
        return Replay(document, self.judge_for(task))
