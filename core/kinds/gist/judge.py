"""The judge of gists, and the harness in which a gist is written in steps and handed in once.

To judge a gist, the original test is inserted, the task's command runs on the gist alone, and the run is
compared with the record. Every figure has evidence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from gistpoint.core.attempts.events import CallMade, EndReason, SubmissionMade
from gistpoint.core.attempts.harness import CallOutcome, ForcedOutcome, Log, Price, TaskHarness
from gistpoint.core.attempts.identity import Role
from gistpoint.core.attempts.state import AttemptCall, AttemptState
from gistpoint.core.code.source_text import python_text
from gistpoint.core.entrypoints.command import COMMAND_FILE, Entrypoint
from gistpoint.core.entrypoints.programs import program_text
from gistpoint.core.entrypoints.runs import EntrypointRunner, GistTrial, Isolation, Operand, Watched
from gistpoint.core.errors import AttemptError, CancelledError, HarnessFailedError, InfrastructureError
from gistpoint.core.kinds.beginning import check_beginning
from gistpoint.core.kinds.gist.answer import GistAnswer
from gistpoint.core.kinds.gist.brief import gist_brief
from gistpoint.core.kinds.gist.failures import unreadable
from gistpoint.core.kinds.gist.fidelity import Fidelity, compare, instance_key, name_masks
from gistpoint.core.kinds.gist.flags import Flags, module_names, vacuity_mutants, watched
from gistpoint.core.kinds.gist.model import gist_settings, gist_task
from gistpoint.core.kinds.gist.original_test import blocks_of_tests, guard_for, ready_text
from gistpoint.core.kinds.gist.overrides import as_attempted, gist_budgets, settings_data, with_budgets
from gistpoint.core.kinds.gist.rates import Originals, existence_of, unfolded
from gistpoint.core.kinds.gist.score import (
    GistJudgement,
    GistRun,
    GistScore,
    GistVerdict,
    gist_run,
    gist_scored,
    line_evidence,
    score_gist,
    score_text,
    settled_verdict,
)
from gistpoint.core.kinds.gist.state import GistState, gist_of
from gistpoint.core.kinds.gist.tools import SCORE_GIST, SUBMIT_GIST, WRITE_GIST, GistAccess, gist_tools
from gistpoint.core.outcomes import BackendRecord, RunStatus
from gistpoint.core.running import NEVER, UNATTENDED, CancelToken, RunContext, RunProgress
from gistpoint.core.tasks.budgets import Budgets, Remaining
from gistpoint.core.tasks.model import Task
from gistpoint.core.tools.declaration import BoundCall, Tool, ToolContext, ToolOutput, declarations_sha256
from gistpoint.core.trees import SourceTree

MUTANTS = 5
_RUNS = 4


class GistHarness(TaskHarness):
    """The harness of a gist: each call is one step, and only `score_gist` has its own budget."""

    def __init__(self, task: Task, judge: GistJudging) -> None:
        super().__init__(task, judge.runner.backend)
        self.judge = judge
        self._tree = SourceTree.open(task.tree_path)

    @property
    def tree(self) -> SourceTree:
        """The codebase, which never changes."""
        return self._tree

    def files(self, state: AttemptState) -> Mapping[str, bytes | None]:
        """Return the gist under the name by which it is run."""
        return {gist_task(self.task).command.gist_file: gist_of(state).now.encode()}

    def restore(self, state: AttemptState) -> None:
        """Do nothing: the codebase never changes, and the gist is in the state."""

    def budgets(self, role: Role) -> Budgets:
        """Return the task's steps and one hand-in; scores are unlimited unless the attempt counts."""
        return gist_budgets(self.task, role)

    def with_budgets(self, budgets: Budgets) -> Task:
        """Return the task with these budgets, which its brief states."""
        return with_budgets(self.task, budgets)

    def brief(self, task: Task) -> str:
        """Return the brief of a task as it is shown and sent."""
        return gist_brief(task)

    def start_data(self, budgets: Budgets) -> Mapping[str, Any]:
        """Return the hash of the tools, the settings, and the initial text of the gist."""
        settings = gist_settings(self.task)
        tools = declarations_sha256(gist_tools(settings, scoring=budgets.scores != 0))
        begins_with = self.task.brief.test if settings.give_test else ""
        return {"tools_sha256": tools, "gist": begins_with, "gist_settings": settings_data(self.task)}

    def tools(self, state: AttemptState) -> tuple[Tool, ...]:
        """Return the tools that the settings allow, and `score_gist` if there is a budget for scores."""
        return gist_tools(gist_settings(self.task), scoring=state.budgets.scores != 0)

    def offered(self, state: AttemptState) -> tuple[Tool, ...]:
        """Return the tools whose budget is not used up."""
        tools = self.tools(state)
        if state.remaining.scores == 0:
            return tuple(tool for tool in tools if tool is not SCORE_GIST)
        return tools

    def price(self, tool: Tool, state: AttemptState) -> Price:
        """Return the cost of a call, including the step that saves unsaved typing."""
        if tool is SCORE_GIST:
            # If the gist were scored live while somebody types, all steps would be used up within a minute
            # (decision 29).
            return Price(0, 0, False, False, 1)
        steps = 1 + (gist_of(state).typed is not None and not tool.replaces_text)
        return Price(steps, int(tool.submits), state.remaining.tool_uses <= steps, tool.submits)

    def to_save(
        self, tool: Tool | None, arguments: Mapping[str, Any], state: AttemptState
    ) -> CallMade | None:
        """Return the call that saves unsaved typing; None if all is saved, or the next call has its own text.

        Raises `AttemptError` if saving would take the last step before a call other than the hand-in.
        """
        # A key press can't be a step, so everything typed since the last call costs one step, as a model's
        # writing does (decision 27).
        text = gist_of(state).typed
        if text is None or _has_own_text(tool, arguments):
            return None
        # The hand-in takes the last step itself, and saves the typed text first.
        if state.remaining.tool_uses == 1 and tool is not SUBMIT_GIST:
            raise AttemptError(
                "Only one step is left, and it is needed to save what was typed since the last call.",
                hint="Hand in the gist, or undo the typing.",
            )
        return CallMade(call_id="", tool=WRITE_GIST.name, arguments={"content": text}, typed=True)

    def handle(self, call: AttemptCall, bound: BoundCall, log: Log, run: RunContext) -> CallOutcome:
        """Return the outcome of a call; an unfinished hand-in is judged with the text that was handed in."""
        begun = next((s for s in log.state.submissions if s.call_id == call.call_id), None)
        if begun is not None:
            return self._hand_in(call, begun.gist, log, run)
        saved = gist_of(log.state).text
        if bound.tool is SUBMIT_GIST:
            # Recorded before it is judged, so that a resumed attempt judges the same text (decision 28).
            log.append(SubmissionMade(call.call_id, len(log.state.submissions) + 1, gist=saved))
            return self._hand_in(call, saved, log, run)
        access = GistAccess(self.task, self.judge.answer, self.judge.runner, self.tree, saved, run.cancel)
        step = Remaining(1, 0)
        if bound.tool is SCORE_GIST:
            # A refused score costs one score since version 2 of the tool semantics (decision 49).
            step = Remaining(0, 0, int(log.state.header.tool_semantics > 1))
        try:
            output = bound.answer(ToolContext(self.tree, self.task.limits, of_kind=access))
        except InfrastructureError as error:
            text = f"The harness failed: {error} It costs nothing."
            return CallOutcome(ToolOutput(text, refused=True), Remaining(0, 0))
        except CancelledError:
            return CallOutcome(ToolOutput("The call was cancelled.", refused=True), step)
        if output.refused or bound.tool is not SCORE_GIST:
            return CallOutcome(output, step)
        verdict = self.judge.verdict(output.text, thorough=False, run=run)
        return self._scored(call, verdict, log, Remaining(0, 0, 1), trial=True)

    def remark(self, charged: Remaining, left: Remaining, state: AttemptState) -> list[str]:
        """Return the line with the remaining budgets."""
        steps = f"{left.tool_uses} {'step' if left.tool_uses == 1 else 'steps'}"
        if not left.scores:
            return [f"[{steps} left]"]
        scores = f"{left.scores} {'score' if left.scores == 1 else 'scores'}"
        return [f"[{steps} and {scores} left]"]

    def ending(self, state: AttemptState) -> EndReason | None:
        """Return why the attempt ends: what forced the hand-in, a failure of the harness, or the result.

        None without a hand-in, or if a hand-in that nothing forced was given back.
        """
        if not state.submissions:
            return None
        call = state.calls[-1]
        last = state.submissions[-1]
        if _is_forced(call):
            if last.counts:
                return EndReason(call.automatic)
            return EndReason.INFRASTRUCTURE
        if not last.counts:
            return None
        if last.solved:
            return EndReason.SOLVED
        return EndReason.FINAL_WRONG

    def last_call(self, state: AttemptState) -> Tool:
        """Return the hand-in: at a limit, the gist is handed in as it was last saved."""
        return SUBMIT_GIST

    def _hand_in(self, call: AttemptCall, text: str, log: Log, run: RunContext) -> CallOutcome:
        verdict = settled_verdict(self.judge.verdict(text, thorough=True, run=run), log.state.given_back)
        log.append(gist_run(call.call_id, verdict, self.backend))
        # A forced hand-in costs no step (decision 28).
        steps = 0 if _is_forced(call) else 1
        return self._scored(call, verdict, log, Remaining(steps, 1))

    def _scored(
        self, call: AttemptCall, verdict: GistVerdict, log: Log, charged: Remaining, *, trial: bool = False
    ) -> CallOutcome:
        if verdict.score is not None:
            # The brief of an attempt may name one instance although the task's own brief names all.
            verdict = replace(verdict, score=replace(verdict.score, instance=named_instance(self.task)))
        text = score_text(verdict)
        if not verdict.counts:
            return CallOutcome(ToolOutput(text), Remaining(0, 0), verdict)
        log.append(gist_scored(call.call_id, verdict, trial=trial))
        return CallOutcome(ToolOutput(text), charged, verdict)


def _report(run: RunContext, step: str, done: int = 0) -> None:
    """Report a step of judging. Raises `CancelledError` when cancelled."""
    run.check()
    run.progress(RunProgress(step, done, _RUNS + MUTANTS))


def named_instance(task: Task) -> str:
    """Return the instance that the brief of a gist task names, without its file; empty if all are named."""
    part = gist_task(task)
    if not part.settings.parameter:
        return ""
    return instance_key(part.command.instance_id(part.settings.parameter))


def _is_forced(call: AttemptCall) -> bool:
    """Return whether a limit, or a solver who gave up, made the program hand in."""
    return call.automatic in set(EndReason)


def _has_own_text(tool: Tool | None, arguments: Mapping[str, Any]) -> bool:
    """Return whether a call writes the whole gist, or scores other code."""
    if tool is None:
        return False
    return tool.replaces_text or (tool is SCORE_GIST and bool(arguments.get("content")))


@dataclass(frozen=True)
class GistJudging(ABC):
    """Judges gists of a task, and creates the harness of an attempt at it."""

    task: Task
    answer: GistAnswer
    runner: EntrypointRunner

    @property
    def backend(self) -> BackendRecord:
        """The isolation in which gists run."""
        return self.runner.backend

    @property
    def blank(self) -> GistState:
        """The gist before the first event."""
        return GistState()

    def as_recorded(self, task: Task, of_kind: Mapping[str, Any], budgets: Budgets) -> Task:
        """Return the task with the settings that the header records.

        Raises `GistSettingsError` if they can't be read.
        """
        return as_attempted(task, of_kind, budgets)

    def harness(self, task: Task) -> GistHarness:
        """Return the harness of a gist, after opening its codebase."""
        return GistHarness(task, self)

    def ending_as(self, instead: ForcedOutcome) -> GistJudging:
        """Return a judge like this one that ends with the status of `instead`, if it has one."""
        return _EndingAs(self.task, self.answer, self.runner, self, instead)

    def verdict(self, gist: str, *, thorough: bool, run: RunContext = UNATTENDED) -> GistVerdict:
        """Return the verdict on a gist, with the reason if it can't be scored.

        Progress reports don't contain outcomes of tests.
        """
        try:
            found = self.judge(gist, run=run, thorough=thorough)
        except HarnessFailedError as error:
            return GistVerdict(gist, RunStatus.HARNESS_FAILED, reason=error.message)
        except InfrastructureError as error:
            return GistVerdict(gist, RunStatus.INFRASTRUCTURE, reason=str(error))
        except CancelledError as error:
            return GistVerdict(gist, RunStatus.CANCELLED, reason=str(error))
        lines = line_evidence(found.score, found.spliced)
        if found.trial is None:
            return GistVerdict(gist, RunStatus.FINISHED, found.score, lines=lines)
        trial = found.trial
        return GistVerdict(gist, trial.run.status, found.score, trial.reason, lines, trial.seconds)

    @abstractmethod
    def judge(
        self,
        gist: str,
        *,
        run: RunContext = UNATTENDED,
        thorough: bool = True,
    ) -> GistJudgement:
        """Return the judgement of a gist, made with fewer runs unless `thorough`.

        Raises `HarnessFailedError` if the harness never started, `InfrastructureError` if the isolation
        failed, and `CancelledError` when cancelled.
        """


@dataclass(frozen=True)
class _EndingAs(GistJudging):
    inner: GistJudging
    instead: ForcedOutcome

    def judge(
        self,
        gist: str,
        *,
        run: RunContext = UNATTENDED,
        thorough: bool = True,
    ) -> GistJudgement:
        if self.instead.status is RunStatus.CANCELLED:
            raise CancelledError(self.instead.reason)
        if self.instead.status is RunStatus.HARNESS_FAILED:
            raise HarnessFailedError(self.instead.reason)
        if self.instead.status is not None:
            raise InfrastructureError(self.instead.reason)
        return self.inner.judge(gist, run=run, thorough=thorough)


@dataclass(frozen=True)
class GistJudge(GistJudging):
    """A judge that runs gists."""

    def judge(
        self,
        gist: str,
        *,
        run: RunContext = UNATTENDED,
        thorough: bool = True,
    ) -> GistJudgement:
        """Return the judgement of `gist`.

        Unless `thorough`, the vacuity probe and the second run of an unchanged gist are left out. Lines are
        measured on the text with one statement per line (decision 44). Code can detect the tracer, so a
        faithful text must also be faithful without it; if only the traced run is not faithful, a second
        untraced run decides (decision 24). Raises `HarnessFailedError` if the harness never started,
        `InfrastructureError` if the isolation failed, and `CancelledError` when cancelled.
        """
        fault = unreadable(gist)
        if fault is not None:
            return GistJudgement(GistScore(None, False, None, None, None, fault, Flags()))
        # Each of these takes seconds if the codebase or the gist has a million characters.
        _report(run, "reading the codebase")
        originals = self._originals()
        owned = self.answer.owned
        test = self.answer.test
        _report(run, "reading the gist")
        try:
            spliced = ready_text(gist, test, owned)
        except (SyntaxError, ValueError):
            spliced = None
        if spliced is None:
            return GistJudgement(score_gist(gist, None, originals, owned, test))
        trials = _Trials(self, spliced.text, run)
        trial, flips = trials.settle(thorough=thorough)
        # Only a faithful gist is probed and observed in another run (decisions 24 and 123).
        faithful = self.fidelity(trial).value == 1
        vacuous = trials.vacuous() if thorough and faithful else None
        operands = trials.operands() if test is not None and faithful else ()
        _report(run, "comparing its lines with the codebase", trials.done)
        made = GistRun(
            text=spliced.text,
            run=trial.run,
            originals=self.answer.originals,
            executed=trials.executed,
            places=self._places(trial),
            compared_files=self.answer.compared_files,
            vacuous=vacuous,
            seen=trials.seen,
            habits=self.answer.habits,
            used=self._used(),
            operands=operands,
        )
        score = replace(score_gist(gist, made, originals, owned, test), instance=named_instance(self.task))
        return GistJudgement(score, spliced, trial, flips)

    @property
    def entrypoint(self) -> Entrypoint:
        """The command of the task."""
        return gist_task(self.task).command

    def run(
        self,
        text: str,
        *,
        measure: bool,
        seed: int = 0,
        watched: Watched | None = None,
        cancel: CancelToken = NEVER,
    ) -> GistTrial:
        """Return the run of an unchanged gist, as in scoring; with `measure`, it has the lines that ran."""
        test = self.answer.test
        has_folder = self.task.folder != Path()
        return self.runner.run_gist(
            text,
            self.task.environment,
            self.entrypoint,
            owned=self.answer.owned,
            timeout_s=self.answer.timeout_s,
            forbidden=(str(self.task.folder.absolute()),) if has_folder else (),
            measure_lines=measure,
            hash_seed=seed,
            guard=guard_for(text, test) if test else None,
            watched=watched,
            cancel=cancel,
        )

    def fidelity(self, trial: GistTrial) -> Fidelity:
        """Return the fidelity of a run to the runs of the original."""
        return compare(self.answer.originals, trial.run, self._places(trial), self.answer.compared_files)

    def _places(self, trial: GistTrial) -> list[Mapping[str, str]]:
        masks = name_masks(self.entrypoint, self.answer.modules)
        return [*[masks] * len(self.answer.originals), {**trial.places, **masks}]

    def sources(self) -> dict[str, str]:
        """Return the contents of the codebase's Python files, and of a command without a file, by path."""
        started = program_text(self.entrypoint, self.task.environment.metadata)
        return _with_command(sources_of(SourceTree.open(self.task.tree_path)), started)

    def _originals(self) -> Originals:
        started = program_text(self.entrypoint, self.task.environment.metadata)
        return _originals_of(self.task.tree_path, self.task.tree_sha256, started)

    def _used(self) -> tuple[str, ...]:
        """Return the names under which the test reaches modules of the codebase."""
        test = self.answer.test
        found = dict[str, None]()
        sources = dict.fromkeys(one.source for one in test.each) if test else {}
        for source in sources:
            found |= dict.fromkeys(module_names(source, self.answer.owned, self.answer.modules))
        return tuple(found)

    def watched(self, text: str) -> Watched:
        """Return the modules and lines to observe in a run of `text`; nothing if it does not parse."""
        test = self.answer.test
        existence = existence_of(text, self._originals(), test.qualname if test else "")
        if existence is None:
            return Watched()
        blocks = blocks_of_tests(text, test) if test else frozenset[str]()
        return watched({*self.answer.owned, *self._used()}, replace(existence, test_blocks=blocks))


@dataclass(slots=True)
class _Trials:
    """The runs of one gist."""

    judge: GistJudge
    text: str
    running: RunContext
    done: int = field(default=0)
    executed: frozenset[int] = frozenset()
    """The lines of `measured` that ran."""
    seen: list[Isolation] = field(default_factory=list)
    """The observations of the gist's runs."""

    @property
    def measured(self) -> str:
        """The text with one statement per line."""
        return unfolded(self.text)

    def settle(self, *, thorough: bool) -> tuple[GistTrial, bool]:
        """Return the run that counts, and whether the fidelity of the text flips.

        It never flips if only the traced run was not faithful, or without `thorough`.
        """
        measured = self.measured
        watched = replace(self.judge.watched(measured), observed=())
        first = self._run("run", measured, watched, measure=True)
        self.executed = first.executed
        held = self.judge.fidelity(first).value == 1
        unchanged = measured == self.text
        if unchanged and not first.run.file_ran:
            return first, False
        watched = Watched(watched.modules)
        if not thorough:
            # One run decides, unless a changed text failed: the fidelity must be that of the gist itself.
            if held or unchanged:
                return first, False
            return self._run("run again", self.text, watched), False
        # Code can detect the tracer, so an untraced run must be faithful too (decision 24).
        second = self._run("run again", self.text, watched, seed=1)
        again = self.judge.fidelity(second).value == 1
        if held is again:
            return first if unchanged else second, False
        if held:
            return second, True
        # Only the traced run failed: a third, untraced run decides.
        third = self._run("run a third time", self.text, watched)
        return third, self.judge.fidelity(third).value == 0

    def operands(self) -> tuple[Operand, ...] | None:
        """Return the classes that a faithful text's test uses, observed in a separate run; None if unknown.

        If that run is not faithful, all existing classes are included, because the test may use any of them.
        """
        trial = self._run(
            "watch the comparisons",
            self.text,
            Watched(observed=(0, *self.judge.watched(self.text).observed)),
        )
        seen = trial.run.isolation
        if trial.run.status is not RunStatus.FINISHED or seen.operands is None:
            return None
        if self.judge.fidelity(trial).value:
            return seen.operands
        return (*seen.operands, *seen.classes)

    def vacuous(self) -> bool | None:
        """Return whether the gist stays faithful whichever one of its functions returns nonsense.

        At most `MUTANTS` functions are tried. None if no function can be tried.
        """
        test = self.judge.answer.test
        tests = blocks_of_tests(self.measured, test) if test else frozenset[str]()
        own = test.qualname if test else ""
        mutants = vacuity_mutants(self.measured, self.executed, own, most=MUTANTS + len(tests))
        others = ((name, mutant) for name, mutant in mutants if name not in tests)
        asked = False
        for name, mutant in islice(others, MUTANTS):
            asked = True
            trial = self._run(f"probe: {name} returns nonsense", mutant)
            if self.judge.fidelity(trial).value == 0:
                return False
        return True if asked else None

    def _run(
        self, step: str, text: str, watched: Watched | None = None, *, measure: bool = False, seed: int = 0
    ) -> GistTrial:
        _report(self.running, step, self.done)
        self.done += 1
        trial = self.judge.run(text, measure=measure, seed=seed, watched=watched, cancel=self.running.cancel)
        # The control of a gist is an empty file (decision 121).
        check_beginning(trial.began, lambda: self.judge.run("", measure=False, cancel=self.running.cancel))
        if watched is not None:
            self.seen.append(trial.run.isolation)
        return trial


def sources_of(tree: SourceTree) -> dict[str, str]:
    """Return the contents of a codebase's Python files by path."""
    return {path: python_text(data) for path, data in tree.read_all(".py")}


def _with_command(sources: dict[str, str], started: str) -> dict[str, str]:
    """Return sources with the text that starts a command, if the command has no file."""
    if started:
        return {**sources, COMMAND_FILE: started}
    return sources


@lru_cache(maxsize=2)
def _originals_of(tar: Path, sha256: str, started: str) -> Originals:
    return Originals(_with_command(sources_of(SourceTree.open(tar)), started))
