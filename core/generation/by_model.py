"""Lets a model corrupt a named function, and returns a target with a record that can be replayed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.code.index import DefinitionKind, index_source
from gistpoint.core.code.names import FunctionRef
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.corruption.appearance import glance_weights
from gistpoint.core.corruption.blind import GlanceScore
from gistpoint.core.corruption.corruptions import clue_of, replaced_target
from gistpoint.core.corruption.edits import changed_lines
from gistpoint.core.corruption.evidence import Evidence, is_own_test, subtlety
from gistpoint.core.corruption.gates import Gate
from gistpoint.core.corruption.model import ModelLoop, OnRound
from gistpoint.core.corruption.prompt import render_template
from gistpoint.core.corruption.rounds import (
    Appearance,
    End,
    Keep,
    LoopResult,
    LoopSettings,
    ModelTrial,
    Reader,
    SubmissionVerdict,
    TryOut,
)
from gistpoint.core.corruption.subject import NamesInReach, read_vocabulary
from gistpoint.core.errors import InfrastructureError, SourceError, TaskError, UserError
from gistpoint.core.generation.intake import Intake, NoTaskError, request_of, run_step
from gistpoint.core.generation.removal import named_function, removal_target
from gistpoint.core.generation.spending import SetSpending
from gistpoint.core.outcomes import FREE, RunStatus
from gistpoint.core.ports import ChatModel, Runner, RunRequest
from gistpoint.core.requests import LOCAL, Count, Natural, Positive, Request
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.tasks.model import Failure, Target, ToolLimits
from gistpoint.core.tasks.trees import corrupted_tree
from gistpoint.core.tools.declaration import ToolContext
from gistpoint.core.trees import SourceTree

Rate = Callable[[Target, ModelTrial], "tuple[float, Mapping[str, float]]"]
"""Returns the subtlety of a corruption (0 to 1) and its parts, from the results of its trial."""

ScoreOf = Callable[[Target], GlanceScore]
"""Predicts how visible a corruption is to a reader."""

_SHOWN = 2
_ASSERTION = re.compile(r"^E\s+(?:AssertionError\b|assert\b|Failed:)|: AssertionError$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ModelTerms:
    """The settings that all conversations of a set share."""

    examples: str = ""
    """Judged corruptions as text, which follow the paper's template in the prompt."""
    spending: SetSpending | None = None


@dataclass(frozen=True, slots=True)
class SuiteTrials:
    """A function that tries corruptions with the whole suite, in the sandbox."""

    intake: Intake
    runner: Runner
    rate: Rate
    run: RunContext = UNATTENDED

    def __call__(self, target: Target) -> ModelTrial:
        """Run the suite with the function corrupted, and return the outcome.

        Raises `InfrastructureError` if the sandbox fails, and `CancelledError` when stopped.
        """
        intake = self.intake
        tree = corrupted_tree(intake.repository.tree, (target,))
        request = request_of(intake, tree)
        step = f"running the suite with {target.name} corrupted by the model"
        report = run_step(self.runner, request, step, self.run)
        if report.status in FREE:
            raise InfrastructureError(
                f"The sandbox failed while a corruption was tried. {report.reason}".rstrip()
            )
        if report.status in (RunStatus.TIMED_OUT, RunStatus.OUT_OF_MEMORY):
            return ModelTrial(SubmissionVerdict.HANGS, detail=f"{report.status}")
        if report.status is not RunStatus.FINISHED:
            return ModelTrial(
                SubmissionVerdict.COULD_NOT_RUN, detail=f"{report.status}. {report.reason}".strip()
            )
        failing = intake.passed - report.passed
        shown = [result for result in report.failed if result.id in failing]
        if failing and not shown:
            return ModelTrial(SubmissionVerdict.BREAKS_COLLECTION, len(failing), len(intake.passed))
        trial = ModelTrial(
            SubmissionVerdict.ACCEPTED,
            len(failing),
            len(intake.passed),
            sum(is_assertion(result.message) for result in shown),
            sum(passes_through(result.message, tree, target) for result in shown),
            failing,
            len({last_line(result.message) for result in shown}),
            tuple(Failure(result.id, result.message) for result in shown[:_SHOWN]),
        )
        subtlety, parts = self.rate(target, trial)
        return replace(trial, subtlety=subtlety, parts=parts)


def last_line(message: str) -> str:
    """Return the last line of pytest's text that begins with `E `, or else its last non-blank line."""
    lines = [line for line in message.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if line.startswith("E ")), lines[-1] if lines else "")


def is_assertion(message: str) -> bool:
    """Return whether pytest's text of a failure shows a failed assertion, not another exception."""
    return bool(_ASSERTION.search(message))


def passes_through(message: str, tree: SourceTree, target: Target) -> bool:
    """Return whether the traceback of a failure contains a line of the function at its position in `tree`."""
    definition = index_source(target.path, tree.read(target.path)).get(target.qualname)
    lines = re.findall(rf"^{re.escape(target.path)}:(\d{{1,9}}):", message, re.MULTILINE)
    return any(definition.start_line <= int(line) <= definition.end_line for line in lines)


def rating(entering: int, least: int, most: int) -> Rate:
    """Return a function that rates a corruption by its failing tests.

    `entering` is the number of tests that enter the function at all; `least` and `most` are the desired range
    of failing tests.
    """

    def rate(target: Target, trial: ModelTrial) -> tuple[float, Mapping[str, float]]:
        evidence = Evidence(
            failing=trial.failing,
            by_assertion=trial.by_assertion or 0,
            through_target=trial.through_target or 0,
            entering=max(entering, trial.failing),
            own_tests=sum(is_own_test(target.name, id) for id in trial.failing_ids),
            messages=trial.messages,
            changed_lines=changed_lines(target.original, target.corrupted),
        )
        rated = subtlety(evidence, least, most)
        return rated.value, rated.parts

    return rate


KIND = "model"
REWRITE = "rewrite"
"""The kind of a corruption that a model made by rewriting a function without seeing its body."""
_MADE = {KIND: "acceptable corruption", REWRITE: "usable rewrite"}
MOST_EXAMPLES = 5
_EXAMPLE_CHARACTERS = 4_000


@dataclass(frozen=True, slots=True)
class ModelCorruption:
    """A function that a model tried to corrupt, with the result of the loop."""

    function: FunctionRef
    original_sha256: str
    result: LoopResult
    examples: str = ""
    """The examples that the model was shown."""
    kind: str = KIND

    @property
    def target(self) -> Target | None:
        """The corrupted function; None if no submission was kept."""
        return self.result.kept.target if self.result.kept else None

    @property
    def reason(self) -> str:
        """The reason why there is no target, in a sentence."""
        result = self.result
        tried = f"{len(result.rounds)} {'submission' if len(result.rounds) == 1 else 'submissions'}"
        if result.rounds:
            tried += f", the last one: {_words(result.rounds[-1].verdict)}"
        text = (
            f"{result.model} made no {_MADE[self.kind]} of {self.function} ({tried}; {_words(result.end)})."
        )
        return f"{text} {result.detail}".rstrip()

    def record(self) -> dict[str, Any]:
        """Return the record that a task stores and that `replay_model_record` needs."""
        shown = {"examples_sha256": sha256_of_text(self.examples)} if self.examples else {}
        return {
            "kind": self.kind,
            "function": str(self.function),
            "original_sha256": self.original_sha256,
            "corrupted": self.target.corrupted if self.target else "",
            **shown,
            "loop": self.result.as_json(),
        }

    def provenance(self) -> dict[str, Any]:
        """Return the provenance for a task: the record, the family, and ratings of the kept corruption."""
        trial = self.result.kept.trial if self.result.kept else None
        rated: dict[str, Any] = {}
        if trial is not None:
            rated["subtlety"] = {"value": trial.subtlety, "parts": dict(trial.parts)}
        if self.result.kept is not None and self.result.kept.appearance.glance is not None:
            rated["glance"] = self.result.kept.appearance.glance.to_json()
        if self.kind == REWRITE and self.result.kept is not None:
            rated["signs"] = list(self.result.kept.appearance.rules)
        return {"record": self.record(), "families": [self.kind], **rated}


def replay_model_record(record: Mapping[str, Any], tree: SourceTree) -> Target:
    """Return the target of a record on the tree that it was made on.

    Raises `TaskError` if the tree is different, or if the record names no function.
    """
    name = str(record.get("function", ""))
    corrupted = str(record.get("corrupted", ""))
    try:
        ref = FunctionRef.parse(name)
        target = replaced_target(tree, ref, corrupted)
    except (CodeError, FileNotFoundError) as error:
        raise TaskError(f"The record of {name!r} does not fit this source: {error}") from error
    if sha256_of_text(target.original) != record.get("original_sha256") or target.corrupted != corrupted:
        raise TaskError(f"{ref} is not the function that was corrupted: its text is different.")
    return target


def corrupt_by_model(
    intake: Intake,
    function: str | FunctionRef,
    model: ChatModel,
    runner: Runner,
    *,
    rate: Rate | None = None,
    settings: LoopSettings | None = None,
    tests: Iterable[str] = (),
    try_out: TryOut | None = None,
    terms: ModelTerms | None = None,
    score: ScoreOf | None = None,
    on_round: OnRound | None = None,
    run: RunContext = UNATTENDED,
) -> ModelCorruption:
    """Let a model corrupt the function named as `path::qualname`, and return the result of the loop.

    `tests` are ids of tests that see the function, of which the model is shown a few. If there are none, it
    is shown tests that fail when the body is removed, which requires a run of the suite. `try_out` decides on
    a submission; the default is the whole suite on `runner`, rated by `rate`. `terms` are the settings that
    all conversations of a set share. `score` predicts how visible a submission is; without it, the rules for
    corruptions without a model decide. Raises `SourceError` or `CodeError` for a function that can't be
    corrupted, `InfrastructureError` if the sandbox fails, and `CancelledError` when stopped; failures of the
    model or its endpoint are in the result.
    """
    tree, settings = intake.repository.tree, settings or LoopSettings()
    test_files = frozenset(intake.test_files)
    ref = named_function(tree, function, test_files)
    definition = index_source(ref.path, tree.read(ref.path)).get(ref.qualname)
    if definition.kind is DefinitionKind.CLASS:
        raise SourceError(
            f"{ref} is a class; only functions and methods can be corrupted.", hint="Name one of its methods."
        )
    ids = tuple(tests) or _broken_by_removal(intake, ref, runner, run)
    terms = terms or ModelTerms()
    rate = rate or rating(len(ids), settings.min_failing, settings.most_failing)
    prompt = render_template(
        function_path=ref.path,
        func_code=definition.dedented,
        test_examples=example_texts(tree, ids),
        test_budget=settings.feedback_rounds,
        max_iterations=settings.tool_calls,
        examples=terms.examples,
    )
    loop = ModelLoop(
        model,
        ToolContext(tree, ToolLimits(), str(ref), test_files),
        ref,
        prompt,
        clue_of,
        try_out or SuiteTrials(intake, runner, rate, run),
        settings,
        on_round,
        run.cancel,
        reading(definition.dedented, read_vocabulary(tree, test_files).scope(definition), score),
        None if terms.spending is None else terms.spending.conversation(),
    )
    return ModelCorruption(ref, sha256_of_text(definition.dedented), loop.run(), terms.examples)


def example_texts(tree: SourceTree, ids: Iterable[str]) -> str:
    """Return the code of the first five readable tests among `ids`, each under its id without parameters.

    The code of each test is cut to 4,000 characters.
    """
    texts: dict[str, str] = {}
    for id in ids:
        if len(texts) == MOST_EXAMPLES:
            break
        path, _, inner = id.partition("::")
        name = inner.partition("[")[0].replace("::", ".")
        try:
            source = index_source(path, tree.read(path)).get(name).dedented
        except (CodeError, FileNotFoundError):
            continue
        texts.setdefault(f"{path}::{name}", source[:_EXAMPLE_CHARACTERS])
    return "\n\n".join(f"# {name}\n{source}" for name, source in texts.items())


def reading(original: str, scope: NamesInReach, score: ScoreOf | None) -> Reader:
    """Return a function that reports broken rules for corruptions without a model, as advice.

    With `score`, it also reports how visible the corruption is.
    """
    rules = Gate(original, scope, most_lines=None)

    def read(target: Target) -> Appearance:
        broken = rules.broken(target.corrupted)
        if score is None:
            return Appearance(broken, seen=bool(broken))
        glance = score(target)
        return Appearance(broken, glance, glance.value > glance_weights().threshold)

    return read


def _broken_by_removal(intake: Intake, ref: FunctionRef, runner: Runner, run: RunContext) -> tuple[str, ...]:
    """Return the ids of the tests that fail if the function's body is removed, in the order of the run.

    Empty if the body can't be removed.
    """
    tree = intake.repository.tree
    try:
        removed = corrupted_tree(tree, (removal_target(tree, str(ref), frozenset(intake.test_files)),))
    except (NoTaskError, CodeError):
        return ()
    request = RunRequest(removed, intake.repository.environment, intake.timeout_s, deselect=intake.flaky)
    request = replace(request, expected=intake.collected)
    report = run_step(runner, request, f"running the tests that use {ref}", run)
    return tuple(result.id for result in report.failed if result.id in intake.passed)


def _words(name: SubmissionVerdict | End) -> str:
    return name.value.replace("_", " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class CorruptingModel(Request):
    """A request for a model that corrupts a function, with limits on its work."""

    model: str | None = None
    keep: Keep = Keep.BEST
    rounds: Natural = 5
    """The number of rounds of test feedback."""
    max_tool_calls: Count = 30
    examples: Annotated[str | None, LOCAL] = None
    """The file of judged corruptions, some of which the model is shown."""
    max_tokens: Count | None = None
    """The maximum number of tokens that may be sent and received."""
    max_cost: Positive | None = None
    """The maximum cost in US dollars."""

    def caps(self) -> tuple[int | None, float | None]:
        """Return the token limit and the cost limit in US dollars for one function; None means no limit."""
        return self.max_tokens, self.max_cost

    def loop(self, min_failing: int, max_tokens: int | None, max_cost: float | None) -> LoopSettings:
        """Return the limits of each conversation.

        `max_tokens` and `max_cost` are the limits of the endpoint, for requests without their own.
        """
        tokens, cost = self.caps()
        changes: dict[str, Any] = {
            "keep": self.keep,
            "feedback_rounds": self.rounds,
            "tool_calls": self.max_tool_calls,
            "max_cost_usd": max_cost if cost is None else cost,
        }
        if (most := max_tokens if tokens is None else tokens) is not None:
            changes["max_tokens"] = most
        return LoopSettings.for_tasks(min_failing, **changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorruptingModelOfSet(CorruptingModel):
    """A request for a model that corrupts the functions of a set, with limits for all of them together.

    With `rewrite`, the model rewrites each function without seeing its body, and without knowing about
    faults.
    """

    rewrite: bool = False
    max_tokens_per_function: Count | None = None
    max_cost_per_function: Positive | None = None

    def caps(self) -> tuple[int | None, float | None]:
        """Return the token limit and the cost limit in US dollars for one function; None means no limit."""
        return self.max_tokens_per_function, self.max_cost_per_function

    def require_model(self, *, reads: bool = False) -> None:
        """Raise `UserError` for limits or examples without a model, and for options that rewrites don't have.

        The limits of the set also apply to a model that only `reads`.
        """
        if self.rewrite:
            self._require_fit_for_rewriting()
        limits = ("examples", "max_tokens", "max_cost", "max_tokens_per_function", "max_cost_per_function")
        of_readers = ("max_tokens", "max_cost") if reads else ()
        given = [name for name in limits if getattr(self, name) is not None and name not in of_readers]
        if given and not self.model:
            option = f"--{given[0].replace('_', '-')}"
            raise UserError(
                f"{option} applies only to corruption by a model, but no model was given.",
                hint="Add --model NAME.",
            )

    def _require_fit_for_rewriting(self) -> None:
        if not self.model:
            raise UserError("--rewrite needs a model that writes the functions.", hint="Add --model NAME.")
        usual = CorruptingModelOfSet()
        for name in ("keep", "rounds", "max_tool_calls", "examples"):
            if getattr(self, name) != getattr(usual, name):
                raise UserError(
                    f"--{name.replace('_', '-')} is for a model that corrupts functions, not for --rewrite.",
                    hint="Leave out one of them.",
                )

    def loop(self, min_failing: int, max_tokens: int | None, max_cost: float | None) -> LoopSettings:
        """Return the limits of each conversation; a rewrite gets no test feedback."""
        usual = CorruptingModel.loop(self, min_failing, max_tokens, max_cost)
        return replace(usual, feedback_rounds=0) if self.rewrite else usual


OpenModel = Callable[[CorruptingModel, int], tuple[ChatModel, LoopSettings]]
"""Returns a model and the limits of its conversations, given a task's minimum number of failing tests.

Raises `EndpointError` if the endpoint is not configured.
"""
