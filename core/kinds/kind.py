"""Kinds of tasks: the one interface to everything that differs between kinds (decisions 53 and 108)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
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
"""The maximum number of bytes in a file of settings."""
J = TypeVar("J", bound="TaskJudge")


class TrialSubject(StrEnum):
    """The tree or gist that a trial runs."""

    CORRUPTED = "corrupted"
    ORIGINAL = "original"
    FIX = "fix"
    REFERENCE = "reference"
    """The reference gist of a gist task, whose score is computed."""


@dataclass(frozen=True, slots=True)
class ScoredText:
    """Code whose lines were scored; a rate that was not judged is None."""

    text: str
    execution: float | None = None
    """The percentage of its lines that ran."""
    existence: float | None = None
    """The percentage of its lines that are in the original."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run by which a task is judged: it is not an attempt, and never counts for a solver."""

    subject: TrialSubject
    status: RunStatus
    backend: BackendRecord
    solved: bool
    score: float
    passing: int = 0
    failing: int = 0
    odd: tuple[str, ...] = ()
    """The ids of the tests whose results differ from the task's record."""
    suspicious: tuple[str, ...] = ()
    """The reasons why somebody must read a passing fix."""
    seconds: float = 0.0
    reason: str = ""
    """The reason why the run did not finish; empty if the run finished."""
    fix: Mapping[str, str] = field(default_factory=dict)
    """The code of a person's fix, by `path::qualname`."""
    scored: ScoredText | None = None
    report: SuiteReport | None = None
    """The run of the suite; None if no suite was run."""
    broken: Collection[str] = ()
    """The ids that pass on the original and did not pass in the suite's run."""

    @property
    def finished(self) -> bool:
        """Whether the run finished; the results of any other run prove nothing."""
        return self.status is RunStatus.FINISHED


@dataclass(frozen=True, slots=True)
class StartText:
    """The initial text of the editor."""

    name: str
    """The name of its buffer: `path::qualname` of a function, the path of a file, or another name."""
    text: str = ""
    placeholder: bool = False
    """Whether its last line is a placeholder for the text to be written."""


@dataclass(frozen=True, slots=True)
class ExpectedText:
    """A part of the tree: the text that solvers get, and the correct text."""

    name: str
    """The name in the form of `Replacement.name`."""
    given: str
    right: str


@dataclass(frozen=True, slots=True)
class OneRequest:
    """A task as one request, which a model answers once, without tools."""

    prompt: str
    """The text that is sent, with `{{name}}` in place of each value."""
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Rejudged:
    """The judgement on the files that a solver left in another harness."""

    solved: bool
    score: float
    reason: str = ""
    suspicious: tuple[str, ...] = ()
    counts: bool = True
    """Whether the judgement counts; False if the harness failed (see `reason`)."""


@dataclass(frozen=True, slots=True)
class ExportedWork:
    """The files that a solver with a shell hands in when working in another harness."""

    file: str = ""
    """The name of the one file to be written; empty if the repository itself is changed."""
    execution: bool = True
    """Whether the solver may run code."""
    solution: Mapping[str, bytes] = field(default_factory=dict)
    """The right files by path, from the answer; empty if the answer has none."""


class Runners(Protocol):
    """The runners that a judge may need. Each call may take a while, and may ask for consent."""

    def runner_for(self, task: Task, /) -> Runner:
        """Return a runner of suites for a task. Raises `SandboxUnavailableError` if there is none."""
        ...

    def entrypoints_for(self, task: Task, /) -> Any:
        """Return a runner of single commands for a task, in the form that its kind declares.

        Raises `SandboxUnavailableError` if there is none.
        """
        ...


class TaskKind(ABC, Generic[J]):
    """One kind of task, for one mode or several."""

    modes: tuple[str, ...]
    """The modes in `task.toml` that belong to this kind."""
    screen = "editor"
    """The screens on which people attempt and judge a task: `gist`, or `editor` for any kind that submits.

    `editor` contains one buffer at a time, initially `start`. F9 calls the tool that submits: its argument of
    kind `CODE` is the text, and its arguments of kinds `FUNCTION` and `FILE` are the parts of the text's
    name. After the end, the submissions are compared with `expected`.
    """
    tools: tuple[Tool, ...]
    """All tools that tasks of this kind may offer."""
    has_targets = False
    """Whether a task has functions that solvers have to find or to repair."""
    noun = "task"
    """The noun for a task of this kind."""
    takes_settings = False
    """Whether attempts can have their own settings (`settled`), which also decide their budgets."""
    confirms = False
    """Whether passes are confirmed, on the tree that `passed_tree` returns."""
    suite = True
    """Whether the suite judges tasks; if single commands do, the suite may be empty."""

    def budgets(self, task: Task, role: Role) -> Budgets:
        """Return the initial budgets of an attempt: by default those of the task."""
        return task.budgets

    def tools_of(self, task: Task, budgets: Budgets) -> tuple[Tool, ...]:
        """Return the tools of a new attempt with these budgets; no judge is needed."""
        return self.tools

    @property
    def blank(self) -> KindState:
        """The part of an attempt's state that the kind adds, before the first event; empty by default."""
        return NoKindState()

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The additional columns in rows of attempts, in order."""
        return ()

    @property
    def task_measures(self) -> tuple[Measure, ...]:
        """Columns of the table of tasks; if there are none, a task has the metrics of its functions."""
        return ()

    @property
    def analyses(self) -> tuple[Analysis, ...]:
        """The analyses of this kind alone; most analyses use the rows of all kinds."""
        return ()

    def passed_tree(self, task: Task, state: AttemptState, passing: Submission) -> SourceTree | None:
        """Return the tree of a submission that passed, to confirm it; None if passes are not confirmed."""
        return None

    @property
    def reported_modes(self) -> tuple[str, ...]:
        """The modes that reports distinguish, in their order."""
        return self.modes

    def reported_mode(self, mode: str, targets: int) -> str:
        """Return the reported mode of a task with this mode and this number of functions to be repaired."""
        return mode

    def searched(self, mode: str) -> bool:
        """Return whether solvers of a reported mode have to find the functions to be changed."""
        return False

    def measured(self, attempt: MeasuredAttempt) -> Mapping[str, Any]:
        """Return the known values of `measures` for an attempt, by name."""
        return {}

    def accepts(self, passing: Submission) -> bool:
        """Return whether a submission that passes counts as solved in a study."""
        return True

    def read(self, fields: Fields) -> object:
        """Return the kind's own part of a `task.toml` (`Task.of_kind`); None if the kind has none.

        Raises `TaskError`, which names the file and the key, for a bad value.
        """
        return None

    def document(self, task: Task) -> Mapping[str, Any]:
        """Return the kind's own keys of a `task.toml`, in the form that `read` accepts."""
        return {}

    def version(self, task: Task) -> int:
        """Return the version of a task's format, which its id covers; `SALTED` for salted ids."""
        from gistpoint.core.tasks.model import version_of

        return version_of(task.environment.image)

    def identity(self, task: Task) -> Mapping[str, Any]:
        """Return the kind's part of the content whose hash is the task's id."""
        return {}

    @abstractmethod
    def read_answer(self, task: Task, fields: Fields) -> Answer:
        """Return the answer in an `answer.json` whose canary was checked.

        Raises `TaskError`, which names the file and the key, for a bad value.
        """

    def answer_document(self, answer: Answer) -> Mapping[str, Any]:
        """Return the kind's own keys of an `answer.json`, in the form that `read_answer` accepts."""
        return {}

    @abstractmethod
    def verify(self, task: Task, answer: Answer) -> None:
        """Raise `TaskError` unless the answer fits the suite that the task names."""

    @abstractmethod
    def brief(self, task: Task) -> str:
        """Return the brief of a task as it is shown and sent. Raises `TaskError` if it can't be rendered."""

    def start(self, task: Task) -> StartText | None:
        """Return the initial text of the editor; None if solvers choose among functions they were shown."""
        return StartText("submission")

    def expected(self, task: Task, answer: Answer) -> tuple[ExpectedText, ...]:
        """Return the parts that a solver had to write, for comparison with the submissions after the end."""
        return ()

    @abstractmethod
    def judge(self, task: Task, answer: Answer, runners: Runners) -> J:
        """Return the judge of a task."""

    @abstractmethod
    def check(self, judge: J, run: RunContext) -> Iterator[CheckFinding]:
        """Yield the finding of each check of a task as it is made; id and brief are checked beforehand."""

    def trial(self, judge: J, subject: TrialSubject, texts: Mapping[str, str], run: RunContext) -> Trial:
        """Return a run that judges a task.

        `texts` are a validator's solutions, by the names of their buffers. Raises `CodeError` if a solution
        can't be tried, `TaskError` if such tasks are only checked, and `CancelledError` when cancelled.
        """
        raise TaskError(
            f"Trials are not available for tasks in the mode {judge.task.mode!r}.",
            hint="`gistpoint task check` checks them.",
        )

    def buffer(self, task: Task) -> str:
        """Return the name of the editor's initial buffer; empty if solvers choose one."""
        first = self.start(task)
        return first.name if first is not None else ""

    def asks(self, task: Task) -> str:
        """Return a task's instruction as a sentence that gives nothing away."""
        return f"A task of the mode {task.mode}."

    def title(self, task: Task, name: str) -> str:
        """Return the title of a task for its solver, who must not learn its source.

        `name` consists of the two words and the digit that name the task.
        """
        return f"{str(task.mode).capitalize()} {name}"

    def subject(self, task: Task) -> str:
        """Return the part of a task's title after the library, for authors, validators and reviewers.

        It names nothing that a solver has to find, because authors also solve the tasks of their lists.
        """
        return str(task.mode)

    def answered(self, task: Task, functions: Sequence[str]) -> str:
        """Return the part of a task's title after the library, for those who know its answer.

        `functions` are those of the answer, as `path::qualname`; empty if they are not known.
        """
        return self.subject(task)

    score_rule = "The brief says what counts."
    """The rule of a score, in one or two sentences."""

    def about(self, task: Task) -> str:
        """Return the subject of a task for those who know its answer; empty if the subject is a function."""
        return ""

    @classmethod
    def has_difficulty(cls) -> bool:
        """Whether `difficulty` may return figures, for which a list has to read the whole task."""
        return cls.difficulty is not TaskKind.difficulty

    def difficulty(self, task: Task) -> Mapping[str, float]:
        """Return the figures, by name, that show in a list how hard a task is; empty if there are none."""
        return {}

    def difficulty_words(self, figures: Mapping[str, float]) -> str:
        """Return the figures of `difficulty` as the text of a cell; empty without figures."""
        return ""

    def originals(self, answer: Answer) -> int | None:
        """Return how often the original was run for an answer; None if the answer records no run."""
        return max((baseline.runs for baseline in answer.baselines), default=None)

    def rejudged(self, judge: J, files: Mapping[str, bytes | None]) -> Rejudged | None:
        """Return the judgement of a solver's files from another harness; None if files can't be judged.

        May raise `InfrastructureError` if the isolation failed.
        """
        return None

    profiles: tuple[str, ...] = ()
    """Names of groups of settings by which attempts are compared."""

    def read_settings(self, data: bytes, file: str) -> dict[str, Any]:
        """Return the settings in a file, in the form that `settled` accepts.

        Raises `UserError`, which names the fault in `file`.
        """
        raise UserError(f"{file}: tasks of this kind accept no settings.")

    def in_profile(self, name: str, given: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Return the settings `given`, overridden by those of a profile; None if neither sets anything."""
        return None

    def settled(self, task: Task, answer: Answer, given: Mapping[str, Any]) -> Task:
        """Return the task as it is in an attempt with its own settings; `given` are the changed settings.

        Raises `UserError` for settings that the task can't have.
        """
        raise UserError(f"The task {task.short_id} is not a gist, so it takes no settings for gists.")

    def settings_in(self, recorded: Mapping[str, Any], task: Task) -> object:
        """Return the settings recorded in an attempt's header, or else those of the task, for comparison.

        None for kinds without settings.
        """
        return None

    def with_budgets(self, task: Task, budgets: Budgets) -> Task:
        """Return the task as it is in an attempt with these budgets."""
        return replace(task, budgets=budgets)

    @property
    def prompts(self) -> Mapping[str, str]:
        """The prompts of `one_request` by name; a prompt never changes, and a new one gets a new name."""
        return {}

    def one_request(self, task: Task, answer: Answer) -> OneRequest | None:
        """Return a task as one request with everything needed; None if the kind has no such request."""
        return None

    def handed_in(self, text: str) -> tuple[tuple[Tool, dict[str, str]], ...]:
        """Return the calls that hand in `text`, the file in a model's only reply; the text may be empty."""
        tool = next(tool for tool in self.tools if tool.submits)
        return (
            (
                tool,
                {argument.name: text for argument in tool.arguments if argument.kind is ArgumentKind.CODE},
            ),
        )

    def exported_brief(self, task: Task, shell: str, place: str) -> str:
        """Return the brief for a solver with a shell in the folder `shell`.

        `place` is the path of the file to be written, if there is one.
        """
        return self.brief(task)

    def exported(self, task: Task, answer: Answer) -> ExportedWork:
        """Return the work that a solver hands in elsewhere: by default the `expected` files."""
        parts = (part for part in self.expected(task, answer) if "::" not in part.name)
        return ExportedWork(
            solution={part.name: part.right.encode("utf-8", "surrogateescape") for part in parts}
        )

    def targets(self, task: Task, answer: Answer) -> tuple[str, ...]:
        """Return the names of a task's subjects, which a study records: by default its functions."""
        return tuple(target.name for target in answer.targets)

    def metrics(self, answer: Answer) -> Mapping[str, float]:
        """Return the metrics of a task as a whole; empty if its functions' metrics are used."""
        return {}

    def simulated(self, task: Task, answer: Answer) -> Scene:
        """Return a task's scene for simulated solvers; `right` is empty if the task can't be simulated."""
        from gistpoint.core.kinds.simulation import Scene

        return Scene(self, task, answer)
