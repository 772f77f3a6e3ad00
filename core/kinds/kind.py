"""A kind of task: the one interface to everything that differs between kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from gistpoint.core.attempts.state import KindState, NoKindState
from gistpoint.core.errors import TaskError
from gistpoint.core.outcomes import BackendRecord, RunStatus

if TYPE_CHECKING:
    from gistpoint.core.attempts.bench import TaskJudge
    from gistpoint.core.attempts.identity import Role
    from gistpoint.core.attempts.state import Submission
    from gistpoint.core.kinds.measures import Analysis, Measure, MeasuredAttempt
    from gistpoint.core.kinds.simulation import Scene
    from gistpoint.core.ports import Runner
    from gistpoint.core.running import RunContext
    from gistpoint.core.tasks.budgets import Budgets
    from gistpoint.core.tasks.fields import Fields
    from gistpoint.core.tasks.leaks import CheckFinding
    from gistpoint.core.tasks.model import Answer, Task
    from gistpoint.core.tools.declaration import Tool

J = TypeVar("J", bound="TaskJudge")


class TrialSubject(StrEnum):
    """The tree or gist that a trial runs."""

    CORRUPTED = "corrupted"
    ORIGINAL = "original"
    FIX = "fix"
    REFERENCE = "reference"
    """The reference gist of a gist task, scored."""


@dataclass(frozen=True, slots=True)
class ScoredText:
    """A text whose lines were scored; a rate is None if it was not judged."""

    text: str
    execution: float | None = None
    """Percent of its lines that ran in the original too."""
    existence: float | None = None
    """Percent of its lines that stand in the original."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run of a task, to judge the task: it is not an attempt, and never counts for a solver."""

    subject: TrialSubject
    status: RunStatus
    backend: BackendRecord
    solved: bool
    score: float
    passing: int = 0
    failing: int = 0
    odd: tuple[str, ...] = ()
    """Ids in which the run is not as the task says."""
    suspicious: tuple[str, ...] = ()
    """Why a passing fix has to be read."""
    seconds: float = 0.0
    reason: str = ""
    """Why it did not finish; empty if it did."""
    fix: Mapping[str, str] = field(default_factory=dict)
    """The code of a person's fix, by `path::qualname`."""
    scored: ScoredText | None = None

    @property
    def finished(self) -> bool:
        """Whether the run proves anything."""
        return self.status is RunStatus.FINISHED


@dataclass(frozen=True, slots=True)
class StartText:
    """The text that the editor holds at first."""

    name: str
    """Of its buffer: `path::qualname` of a function, the path of a file, or another name."""
    text: str = ""


@dataclass(frozen=True, slots=True)
class ExpectedText:
    """A part of the tree as the solver got it, and as it should be."""

    name: str
    """As in `Replacement.name`."""
    given: str
    right: str


class Runners(Protocol):
    """The runners that a judge may need. Each call may take a while, and may ask for consent."""

    def runner_for(self, task: Task, /) -> Runner:
        """Return a runner of suites for a task. Raises `SandboxUnavailableError`."""
        ...

    def entrypoints_for(self, task: Task, /) -> Any:
        """Return a runner of single commands for a task, as the kinds that need one declare it.

        Raises `SandboxUnavailableError`.
        """
        ...


class TaskKind(ABC, Generic[J]):
    """One kind of task, for one mode or several."""

    modes: tuple[str, ...]
    """The modes in `task.toml` that belong to this kind."""
    screen = "editor"
    """The screens on which people attempt and judge it: `gist`, or those that work for any kind whose tool submits.

    Their editor holds one text at a time, at first `start`. F9 calls the tool that submits: its argument of kind
    `CODE` is the text, those of kinds `FUNCTION` and `FILE` are the parts of the text's name. After the end, the
    submissions are compared with `expected`.
    """
    tools: tuple[Tool, ...]
    """Every tool that some task of this kind offers."""
    measures: tuple[Measure, ...] = ()
    """What a row of an attempt has beside what every row has, in the order of its columns."""
    task_measures: tuple[Measure, ...] = ()
    """Columns of the table of tasks; without any, the metrics of a task are those of its functions."""
    analyses: tuple[Analysis, ...] = ()
    """Those of the kind alone. Most analyses take every kind's rows, by what they have in common."""
    has_targets = False
    """Whether a task has functions that solvers have to find or to repair."""
    suite = True
    """Whether the suite judges tasks of this kind; if single commands judge, the suite may be empty."""

    def budgets(self, task: Task, role: Role) -> Budgets:
        """Return the budgets that a new attempt starts with: the task's."""
        return task.budgets

    def tools_of(self, task: Task, budgets: Budgets) -> tuple[Tool, ...]:
        """Return the tools that an attempt of a task with these budgets begins with; needs no judge."""
        return self.tools

    @property
    def blank(self) -> KindState:
        """The part of an attempt's state that the kind adds, before the first event; nothing by default."""
        return NoKindState()

    @property
    def reported_modes(self) -> tuple[str, ...]:
        """The modes as reports tell them apart, in their order."""
        return self.modes

    def reported_mode(self, mode: str, targets: int) -> str:
        """Return which of `reported_modes` a task has, by its mode and how many functions are to be repaired."""
        return mode

    def searched(self, mode: str) -> bool:
        """Whether solvers have to find what is to be changed, in one of `reported_modes`; else the brief names it."""
        return False

    def measured(self, attempt: MeasuredAttempt) -> Mapping[str, Any]:
        """Return the values of `measures` for an attempt, by name; those that are not known are left out."""
        return {}

    def accepts(self, passing: Submission) -> bool:
        """Whether a submission that passes counts as solved in a study."""
        return True

    def read(self, fields: Fields) -> object:
        """Read the kind's own part of a `task.toml` (`Task.of_kind`). Raises `TaskError` naming file and key."""
        return None

    def document(self, task: Task) -> Mapping[str, Any]:
        """Return the kind's own keys of a `task.toml`, as `read` takes them."""
        return {}

    def version(self, task: Task) -> int:
        """Return the version that a task is written in, which its id counts."""
        from gistpoint.core.tasks.model import version_of

        return version_of(task.environment.image)

    def identity(self, task: Task) -> Mapping[str, Any]:
        """Return the part that the kind adds to the content whose hash is the task's id."""
        return {}

    @abstractmethod
    def read_answer(self, task: Task, fields: Fields) -> Answer:
        """Read an `answer.json`, whose canary has been checked. Raises `TaskError` naming file and key."""

    def answer_document(self, answer: Answer) -> Mapping[str, Any]:
        """Return the kind's own keys of an `answer.json`, as `read_answer` takes them."""
        return {}

    @abstractmethod
    def verify(self, task: Task, answer: Answer) -> None:
        """Raise `TaskError` unless the answer fits the suite that the task names."""

    @abstractmethod
    def brief(self, task: Task) -> str:
        """Return the brief of a task as it is shown and sent."""

    def start(self, task: Task) -> StartText | None:
        """Return what the editor holds at first; None if solvers choose among the functions that they were shown."""
        return StartText("submission")

    def expected(self, task: Task, answer: Answer) -> tuple[ExpectedText, ...]:
        """Return the parts that a solver had to write, to be compared with the submissions after the end."""
        return ()

    @abstractmethod
    def judge(self, task: Task, answer: Answer, runners: Runners) -> J:
        """Return the judge of a task."""

    @abstractmethod
    def check(self, judge: J, run: RunContext) -> Iterator[CheckFinding]:
        """Yield the finding of each check of a task as it is made; id and brief are checked before."""

    def trial(self, judge: J, subject: TrialSubject, texts: Mapping[str, str], run: RunContext) -> Trial:
        """Run a task to judge it; `texts` are what a validator wrote, by the name of its buffer.

        Raises `CodeError` if a text can't be tried, and `TaskError` if tasks of this kind are only checked.
        """
        raise TaskError(
            f"There are no trials of tasks in the mode {judge.task.mode!r}.", hint="`gistpoint task check` checks them."
        )

    def simulated(self, task: Task, answer: Answer) -> Scene:
        """Return the task as simulated solvers meet it; one without a right text can't be simulated."""
        from gistpoint.core.kinds.simulation import Scene

        return Scene(self, task, answer)
