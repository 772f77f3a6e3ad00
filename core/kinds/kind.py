"""A kind of task: the one interface to everything that differs between kinds (decisions 53 and 108)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from gistpoint.core.attempts.state import KindState, NoKindState
from gistpoint.core.errors import TaskError, UserError
from gistpoint.core.outcomes import BackendRecord, RunStatus, SuiteReport
from gistpoint.core.tools.declaration import ArgumentKind

if TYPE_CHECKING:
    from gistpoint.core.attempts.harness import TaskJudge
    from gistpoint.core.attempts.identity import Role
    from gistpoint.core.attempts.state import AttemptState, Submission
    from gistpoint.core.kinds.measures import Analysis, Measure, MeasuredAttempt
    from gistpoint.core.kinds.simulation import Scene
    from gistpoint.core.ports import Runner
    from gistpoint.core.running import RunContext
    from gistpoint.core.tasks.budgets import Budgets
    from gistpoint.core.tasks.fields import Fields
    from gistpoint.core.tasks.leaks import CheckFinding
    from gistpoint.core.tasks.model import Answer, Task
    from gistpoint.core.tools.declaration import Tool
    from gistpoint.core.trees import SourceTree

MOST_SETTINGS_BYTES = 65_536
"""Largest size of a file of settings."""
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
    """Percent of its lines that are in the original."""


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
    report: SuiteReport | None = None
    """The run of the suite, if a suite was run."""
    broken: Collection[str] = ()
    """Ids that pass on the original and did not pass in the suite's run."""

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
    placeholder: bool = False
    """Whether its last line is a placeholder for what is to be written."""


@dataclass(frozen=True, slots=True)
class ExpectedText:
    """A part of the tree as the solver got it, and as it should be."""

    name: str
    """As in `Replacement.name`."""
    given: str
    right: str


@dataclass(frozen=True, slots=True)
class OneRequest:
    """A task in one request, which a model answers once, without tools."""

    prompt: str
    """The text that is sent, with `{{name}}` in the place of each value."""
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Rejudged:
    """What a kind's judge finds of the files that a solver left in another harness."""

    solved: bool
    score: float
    reason: str = ""
    suspicious: tuple[str, ...] = ()
    counts: bool = True
    """False if the harness failed, for the `reason`."""


@dataclass(frozen=True, slots=True)
class ExportedWork:
    """What a solver with a shell hands in, in another harness."""

    file: str = ""
    """The name of the one file to be written; empty where the repository itself is changed."""
    execution: bool = True
    """Whether the solver may run code."""
    solution: Mapping[str, bytes] = field(default_factory=dict)
    """The files of the answer as they should be, by path; empty if the answer has none."""


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
    """The screens on which people attempt and judge it:
    `gist`, or those that work for any kind whose tool submits.

    Their editor holds one text at a time, at first `start`. F9 calls the tool that submits: its argument of
    kind `CODE` is the text, those of kinds `FUNCTION` and `FILE` are the parts of the text's name. After the
    end, the submissions are compared with `expected`."""
    tools: tuple[Tool, ...]
    """Every tool that some task of this kind offers."""
    measures: tuple[Measure, ...] = ()
    """What a row of an attempt has in addition to what every row has, in the order of its columns."""
    task_measures: tuple[Measure, ...] = ()
    """Columns of the table of tasks; without any, the metrics of a task are those of its functions."""
    analyses: tuple[Analysis, ...] = ()
    """Those of the kind alone. Most analyses take every kind's rows, by what they have in common."""
    has_targets = False
    """Whether a task has functions that solvers have to find or to repair."""
    noun = "task"
    """What a task of this kind is called."""
    takes_settings = False
    """Whether attempts can have settings of their own (`settled`),
    which then decide their budget of calls too."""
    confirms = False
    """Whether passes are confirmed, by `passed_tree`."""
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

    def passed_tree(self, task: Task, state: AttemptState, passing: Submission) -> SourceTree | None:
        """Return the tree of a submission that passed, for its confirmation; None if no pass is confirmed."""
        return None

    @property
    def reported_modes(self) -> tuple[str, ...]:
        """The modes as reports distinguish them, in their order."""
        return self.modes

    def reported_mode(self, mode: str, targets: int) -> str:
        """Return which of `reported_modes` a task has,
        by its mode and how many functions are to be repaired.
        """
        return mode

    def searched(self, mode: str) -> bool:
        """Whether solvers have to find what is to be changed, in one of `reported_modes`;
        else the brief names it.
        """
        return False

    def measured(self, attempt: MeasuredAttempt) -> Mapping[str, Any]:
        """Return the values of `measures` for an attempt, by name; those that are not known are left out."""
        return {}

    def accepts(self, passing: Submission) -> bool:
        """Whether a submission that passes counts as solved in a study."""
        return True

    def read(self, fields: Fields) -> object:
        """Read the kind's own part of a `task.toml` (`Task.of_kind`).

        Raises `TaskError` naming file and key.
        """
        return None

    def document(self, task: Task) -> Mapping[str, Any]:
        """Return the kind's own keys of a `task.toml`, as `read` takes them."""
        return {}

    def version(self, task: Task) -> int:
        """Return the version that a task is written in, which its id counts; of salted ids `SALTED`."""
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
        """Return what the editor holds at first;
        None if solvers choose among the functions that they were shown.
        """
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
            f"There are no trials of tasks in the mode {judge.task.mode!r}.",
            hint="`gistpoint task check` checks them.",
        )

    def buffer(self, task: Task) -> str:
        """Return the name of the buffer that the editor holds at first; empty if solvers choose one."""
        first = self.start(task)
        return first.name if first is not None else ""

    def asks(self, task: Task) -> str:
        """Return what a task asks for, in a sentence that gives nothing away."""
        return f"A task of the mode {task.mode}."

    def title(self, task: Task, short: str) -> str:
        """Return the name of a task for its solver; `short` is the beginning of its id."""
        return f"{str(task.mode).capitalize()} {short}"

    score_rule = "The brief says what counts."
    """How a score is computed, in one or two sentences."""

    def about(self, task: Task) -> str:
        """Return what a task is about, for those who know its answer,
        if that is no function; else nothing.
        """
        return ""

    def difficulty(self, task: Task) -> Mapping[str, float]:
        """Return the figures that show in a list how hard a task is, by name."""
        return {}

    def difficulty_words(self, figures: Mapping[str, float]) -> str:
        """Return such figures in a cell."""
        return ""

    def originals(self, answer: Answer) -> int | None:
        """Return how many runs of the original an answer rests on; None if it needs none."""
        return max((baseline.runs for baseline in answer.baselines), default=None)

    def rejudged(self, judge: J, files: Mapping[str, bytes | None]) -> Rejudged | None:
        """Judge what another harness kept of a solver's files;
        None if tasks of this kind can't be judged so.
        """
        return None

    profiles: tuple[str, ...] = ()
    """Names of settings that go together, by which attempts are compared."""

    def read_settings(self, data: bytes, file: str) -> dict[str, Any]:
        """Read a file of settings, as `settled` takes them.

        Raises `UserError`, which names the fault in `file`.
        """
        raise UserError(f"{file}: tasks of this kind take no settings.")

    def in_profile(self, name: str, given: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Return settings with those of a profile in their place; None if they are the task's own."""
        return None

    def settled(self, task: Task, answer: Answer, given: Mapping[str, Any]) -> Task:
        """Return the task as an attempt with settings of its own meets it; `given` names those that differ.

        Raises `UserError` for settings that the task can't have.
        """
        raise UserError(f"The task {task.short_id} is not a gist, so it takes no settings of gists.")

    def settings_in(self, recorded: Mapping[str, Any], task: Task) -> object:
        """Return the settings that the header of an attempt recorded, else those of the task,
        to be compared.
        """
        return None

    def with_budgets(self, task: Task, budgets: Budgets) -> Task:
        """Return the task as an attempt with these budgets meets it."""
        return replace(task, budgets=budgets)

    @property
    def prompts(self) -> Mapping[str, str]:
        """The texts of `one_request` by name. A text never changes: another one has another name."""
        return {}

    def one_request(self, task: Task, answer: Answer) -> OneRequest | None:
        """Return a task as one request that holds all that is needed;
        None if tasks of this kind can't be given so.
        """
        return None

    def handed_in(self, text: str) -> tuple[tuple[Tool, dict[str, str]], ...]:
        """Return the calls that hand in the file of a model's one reply; empty if it holds none."""
        tool = next(tool for tool in self.tools if tool.submits)
        return (
            (
                tool,
                {argument.name: text for argument in tool.arguments if argument.kind is ArgumentKind.CODE},
            ),
        )

    def exported_brief(self, task: Task, shell: str, place: str) -> str:
        """Return the brief for a solver with a shell in the folder `shell`;
        `place` is where its one file goes.
        """
        return self.brief(task)

    def exported(self, task: Task, answer: Answer) -> ExportedWork:
        """Return what a solver hands in elsewhere;
        by default the files that are `expected`, in the repository.
        """
        parts = (part for part in self.expected(task, answer) if "::" not in part.name)
        return ExportedWork(
            solution={part.name: part.right.encode("utf-8", "surrogateescape") for part in parts}
        )

    def targets(self, task: Task, answer: Answer) -> tuple[str, ...]:
        """Return the names of what a task is about, as a study keeps them: its functions."""
        return tuple(target.name for target in answer.targets)

    def metrics(self, answer: Answer) -> Mapping[str, float]:
        """Return the metrics of a task as a whole; without any, its functions' own are taken."""
        return {}

    def simulated(self, task: Task, answer: Answer) -> Scene:
        """Return the task as simulated solvers meet it; one without a right text can't be simulated."""
        from gistpoint.core.kinds.simulation import Scene

        return Scene(self, task, answer)
