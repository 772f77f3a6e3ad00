"""Makes tasks from sources: a set of tasks from each source, or a single task from one function.

Both are made by the same steps, which share one context (decision 61).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from gistpoint import __version__
from gistpoint.core.canonical import sha256_of_json, sha256_of_text
from gistpoint.core.confirmation.model import Controls
from gistpoint.core.corruption.rounds import Round
from gistpoint.core.errors import (
    CancelledError,
    EndpointError,
    EnvironmentBuildError,
    RecordingError,
    SourceError,
)
from gistpoint.core.generation.by_model import (
    ModelCorruption,
    ModelTerms,
    corrupt_by_model,
)
from gistpoint.core.generation.campaign import (
    CandidateVerdicts,
    Workers,
    agreement,
    run_campaign,
    run_controls,
)
from gistpoint.core.generation.candidates import CandidatePlan, plan, require_defined
from gistpoint.core.generation.context import Context, CorruptionScorer, FetchingHarness, Harness
from gistpoint.core.generation.earlier import (
    read_earlier_files,
    require_earlier_files,
    write_earlier_files,
)
from gistpoint.core.generation.intake import (
    CorruptionProof,
    Intake,
    NoGood,
    NoTaskError,
    prove,
    require_proof_by_one,
    take_in,
    with_test_map_if_it_ends,
)
from gistpoint.core.generation.library import SourceLibrary, learn_library, own_files
from gistpoint.core.generation.making import InUse, WrittenSet, write_proven
from gistpoint.core.generation.progress import CampaignMeter
from gistpoint.core.generation.removal import (
    check_named,
    definitions,
    random_targets,
    removal_by,
    removal_target,
)
from gistpoint.core.generation.settings import (
    CampaignSettings,
    FaultSource,
    SourceSpec,
)
from gistpoint.core.generation.submissions import (
    FailedSubmissions,
    read_submissions,
    require_submissions,
    submissions_in_words,
    write_submissions,
)
from gistpoint.core.generation.verdicts import Counts, StateFile
from gistpoint.core.locations import Locations
from gistpoint.core.ports import ChatModel, Runner
from gistpoint.core.running import UNATTENDED, RunContext, RunProgress
from gistpoint.core.tasks.model import Answer, Rules, Source, Task
from gistpoint.core.text import failing_in_words, plural
from gistpoint.core.trees import SourceTree
from gistpoint.core.unfinished import scratch_folder

_REFUSED = {
    SourceError: "source_not_to_be_had",
    EnvironmentBuildError: "environment_not_to_be_built",
    RecordingError: "watched_run_did_not_end",
}


TermsOf = Callable[[str], ModelTerms]
"""Returns the terms of the conversations about a library, by its name. Raises `UserError`."""


SubmissionsOf = Callable[[Source, SourceTree], tuple[FailedSubmissions, Mapping[str, int]]]
"""Returns the failed submissions for a library's functions, and the numbers left out, by reason."""


def no_submissions(source: Source, tree: SourceTree) -> tuple[FailedSubmissions, Mapping[str, int]]:
    """Return no submissions, for sets with faults from other sources."""
    return FailedSubmissions(), {}


@dataclass
class SourceResult:
    """The result of one source of a campaign."""

    spec: SourceSpec
    refused: tuple[str, str] | None = None
    """The code of the reason why no task can be made from the source, and an explanation in a sentence."""
    advice: str = ""
    """Advice to the user about a refused source."""
    learning_seconds: float = 0.0
    making_seconds: float = 0.0
    plan: CandidatePlan | None = None
    library: SourceLibrary | None = None
    tasks: list[str] = field(default_factory=list)
    """The ids of the tasks, in the order in which they were accepted."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """The tasks' titles for their author, by id."""
    glance: Mapping[str, float | None] = field(default_factory=dict)
    """The predicted rates at which readers see the tasks' corruptions, by id; None without a prediction."""
    readings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The results of a blind reader's readings, by id; without tasks that were not read."""
    counts: Counts = field(default_factory=Counts)
    stopped: EndpointError | CancelledError | None = None
    """The error that stopped the source early; None if nothing did.

    The cause is a model that could not be reached, was useless or cost too much, or a stop by the user.
    """
    comparisons: list[Mapping[str, Any]] = field(default_factory=list)
    """The comparisons of the control sample."""

    @property
    def kept(self) -> int:
        """The number of candidates that became a task."""
        return self.counts.kept

    @property
    def strata(self) -> list[tuple[str, int, int]]:
        """The strata, each with its numbers of candidates and of tasks made; empty if there is no plan."""
        return (
            []
            if self.plan is None
            else self.plan.filled(v.key for v in self.counts.verdicts if v.kept is not None)
        )

    def to_json(self) -> dict[str, Any]:
        """Return the result as a JSON object."""
        left_out = {} if self.plan is None else self.plan.left_out
        return {
            "source": self.spec.source,
            "stars": self.spec.stars,
            "refused": (
                None if self.refused is None else {"reason": self.refused[0], "message": self.refused[1]}
            ),
            "functions": 0 if self.plan is None else self.plan.functions,
            "left_out": left_out,
            "candidates": 0 if self.plan is None else len(self.plan.candidates),
            "stopped": None if self.stopped is None else self.stopped.message,
            "strata": [dict(zip(("stratum", "candidates", "kept"), row, strict=True)) for row in self.strata],
            "tried": self.counts.tried,
            "kept": self.kept,
            "tasks": self.tasks,
            "titles": dict(self.titles),
            "glance": dict(self.glance),
            "failing": self.counts.failing,
            **({"readings": dict(self.readings)} if self.readings else {}),
            "dropped": self.counts.reasons,
            "confirmable": self.counts.confirmable,
            "corruptions": self.counts.fates,
            "costs": None if self.library is None else self.counts.costs(self.library.intake.seconds),
            "seconds": {"learning": round(self.learning_seconds, 1), "making": round(self.making_seconds, 1)},
            "control": {
                "tried": len(self.comparisons),
                "agreement": agreement(self.comparisons),
                "differing": [comparison for comparison in self.comparisons if not comparison["agrees"]],
            },
        }


def generate(
    specs: Iterable[SourceSpec],
    settings: CampaignSettings,
    harness: FetchingHarness,
    workers: Workers,
    locations: Locations,
    *,
    count: int,
    control: int = 0,
    terms: TermsOf | None = None,
    submissions: SubmissionsOf = no_submissions,
    in_use: InUse = lambda id: False,
    run: RunContext = UNATTENDED,
) -> Iterator[SourceResult]:
    """Make up to `count` tasks of each source, and yield its result, even for a refused source.

    Tasks are written as soon as they are proven. Until a set is full, better ones may replace them, unless
    they are `in_use`. `control` corruptions of each source are also tried on the whole suite. `terms` returns
    the settings of the conversations with a model, and `submissions` the failed submissions. An error of the
    model or a stop by the user ends the work on all sources, and is in the last result; a stop while a source
    is analysed is raised. Results are stored below `locations`, and a later call with the same arguments
    resumes from there. If the only source can't be used, its error is raised: `SourceError`,
    `EnvironmentBuildError` or `RecordingError`.
    """
    wanted = tuple(specs)
    for spec in wanted:
        result, started = SourceResult(spec), time.monotonic()
        try:
            context = _learned_with_remedies(spec, settings, harness, locations, run, submissions)
            if terms is not None:
                context = replace(context, terms=terms(context.library.intake.repository.source.name))
        except (NoTaskError, SourceError, EnvironmentBuildError, RecordingError) as refusal:
            if len(wanted) == 1 and not isinstance(refusal, NoTaskError):
                raise
            run.note(f"{spec.source} can't be used: {refusal.message}")
            reason = refusal.reason.value if isinstance(refusal, NoTaskError) else _REFUSED[type(refusal)]
            result.refused, result.advice = (reason, refusal.message), refusal.hint
            yield result
            continue
        except (CancelledError, KeyboardInterrupt, SystemExit):
            run.note(
                f"stopped while {spec.source} was analysed; finished steps are kept: run the same command"
                " again to continue"
            )
            raise
        result.library, result.plan = context.library, _planned(context)
        run.note(str(result.plan))
        result.learning_seconds, began = time.monotonic() - started, time.monotonic()
        _make(context, result.plan, count, control, workers, locations, result, in_use)
        result.making_seconds = time.monotonic() - began
        yield result
        if result.stopped is not None:
            return


def choose(
    specs: Iterable[SourceSpec],
    settings: CampaignSettings,
    harness: FetchingHarness,
    locations: Locations,
    *,
    submissions: SubmissionsOf = no_submissions,
    run: RunContext = UNATTENDED,
) -> Iterator[SourceResult]:
    """Yield a result with the plan of the candidates for each source, without trying any of them.

    Raises `NoTaskError` if a suite is unusable, and `SourceError`, `EnvironmentBuildError` or
    `RecordingError` if a source can't be used.
    """
    for spec in specs:
        context = _learned_with_remedies(spec, settings, harness, locations, run, submissions)
        yield SourceResult(spec, library=context.library, plan=_planned(context))


def _planned(context: Context) -> CandidatePlan:
    """Return the plan of a library's candidates."""
    library, settings = context.library, context.settings
    if settings.source is not FaultSource.ATTEMPTS:
        return plan(library, settings)
    return plan(library, settings, read_submissions(context.folder, settings.studies).versions)


_MOST_REMEDIES = 4


def _learned_with_remedies(
    spec: SourceSpec,
    settings: CampaignSettings,
    harness: FetchingHarness,
    locations: Locations,
    run: RunContext,
    submissions: SubmissionsOf = no_submissions,
) -> Context:
    """Return the context of a source, after adding arguments that its suite turned out to need.

    Only safe remedies are tried, and each is reported in a note (decision 138).
    """
    for _ in range(_MOST_REMEDIES):
        try:
            return _learned(spec, settings, harness, locations, run, submissions)
        except NoTaskError as refusal:
            remedy = refusal.remedy
            if remedy is None or not remedy.is_safe:
                raise
            run.note(f"{refusal.message} Trying again with {remedy}.")
            spec = replace(
                spec,
                pytest_args=(*spec.pytest_args, *remedy.pytest_args),
                extra_requirements=(*spec.extra_requirements, *remedy.extra_requirements),
            )
    return _learned(spec, settings, harness, locations, run, submissions)


def _learned(
    spec: SourceSpec,
    settings: CampaignSettings,
    harness: FetchingHarness,
    locations: Locations,
    run: RunContext,
    submissions: SubmissionsOf = no_submissions,
) -> Context:
    """Return the context of a source with its library, which is learned now if it is unknown."""

    def look(tree: SourceTree) -> None:
        if settings.choice.functions:
            known = definitions(tree, frozenset(), classes=settings.mode.removes)
            require_defined(settings.choice, {str(definition.ref) for definition in known})

    with scratch_folder("generate") as name:
        scratch, runner = Path(name), harness.runner()
        folder = locations.libraries / sha256_of_json([harness.key(spec, scratch), runner.backend.name])[:32]
        library = learn_library(
            folder,
            lambda: harness.fetch(spec, scratch, run, look),
            runner,
            lambda: harness.mapper(spec.max_suite_seconds),
            stars=spec.stars,
            max_suite_seconds=spec.max_suite_seconds,
            run=run,
        )
        if settings.source is FaultSource.HISTORY and read_earlier_files(folder) is None:
            paths = frozenset(own_files(library.intake))
            files = harness.earlier_files(spec, paths, scratch / "history", run)
            write_earlier_files(folder, require_earlier_files(files, spec.source))
        if settings.source is FaultSource.ATTEMPTS:
            repository = library.intake.repository
            found, left_out = submissions(repository.source, repository.tree)
            run.note(f"{spec.source}: {submissions_in_words(found, left_out)}")
            # Attempts may have been added or removed, so each call reads them again.
            write_submissions(folder, settings.studies, require_submissions(found, spec.source, left_out))
    intake = library.intake
    passed = f"{len(intake.passed)} of {plural(len(intake.collected), 'test')} pass"
    run.note(f"{spec.source}: {passed}, {len(intake.flaky)} flaky, {intake.seconds:.1f} s")
    return Context(folder, harness, settings, run, library)


def _make(
    context: Context,
    planned: CandidatePlan,
    count: int,
    control: int,
    workers: Workers,
    locations: Locations,
    result: SourceResult,
    in_use: InUse,
) -> None:
    run = context.run

    def on_comparison(done: int, total: int) -> None:
        run.progress(RunProgress(f"control {done}/{total}"))

    with _state(context, locations) as state:
        known = sum(candidate.key in state.verdicts for candidate in planned.candidates)
        meter = CampaignMeter(result.spec.source, count, len(planned.candidates), state, known=known)
        tasks = WrittenSet(context.library, context.settings, locations.tasks, state, run.note, in_use)

        def on_progress(found: CandidateVerdicts, keys: Collection[str]) -> None:
            trials = context.board.trials(keys)
            result.counts = Counts(found.verdicts)
            progress = meter.report(found.verdicts, len(found.accepted), tasks.present, trials)
            if progress is not None:
                run.progress(progress)

        try:
            result.counts = run_campaign(
                context,
                planned.candidates,
                count,
                workers,
                state,
                tasks,
                strata=planned.strata,
                on_progress=on_progress,
            )
            if control > 0:
                verdicts = tuple(result.counts.verdicts)
                result.comparisons = run_controls(
                    context, verdicts, control, workers, state, on_comparison=on_comparison
                )
        except (EndpointError, CancelledError) as stop:
            result.stopped = stop
        except (KeyboardInterrupt, SystemExit) as stop:
            result.stopped = CancelledError(f"Stopped by {type(stop).__name__}.")
            raise
        finally:
            result.tasks = [task.id for task in tasks.present.values()]
            result.titles = {task.id: task.title for task in tasks.present.values()}
            result.glance = {task.id: task.glance for task in tasks.present.values()}
            result.readings = {
                task.id: tasks.read[task.id] for task in tasks.present.values() if task.id in tasks.read
            }
            if result.stopped is not None:
                result.counts = result.counts.with_tasks(tasks.present, state.verdicts)
                kept = f"{plural(len(tasks.present), 'task')}, {plural(len(state.verdicts), 'verdict')}"
                run.note(
                    f"stopped; the results so far are kept ({kept}): run the same command again to continue"
                )


def _state(context: Context, locations: Locations) -> StateFile:
    source, settings = context.library.intake.repository.source, context.settings
    about = {"source": [source.kind, source.name, source.revision], "settings": settings.to_json()}

    def place(values: Mapping[str, Any]) -> Path:
        key = sha256_of_json([context.library.key, values])[:16]
        return locations.campaigns / f"{source.name}-{settings.mode.value}-{key}.jsonl"

    return StateFile(settings.file_of_campaign(place), about)


_LEAST_OF_A_PICK = 2
"""The minimum number of failing tests for a function that the seed picks."""
MAX_TRIES = 25
"""The number of functions that a random pick tries before it gives up."""


@dataclass(frozen=True, slots=True)
class MadeTask:
    """A single task, with the results of the suite."""

    task: Task
    intake: Intake
    proof: CorruptionProof


def generate_one(
    spec: SourceSpec,
    function: str,
    settings: CampaignSettings,
    runner: Runner,
    harness: FetchingHarness,
    locations: Locations,
    *,
    model: ChatModel | None = None,
    examples: Callable[[str], str] = lambda library: "",
    run: RunContext = UNATTENDED,
) -> MadeTask:
    """Make and return one task from `function` or, if it is empty, from a function that the seed picks.

    The function's body is removed. A `model`, which needs a `function`, corrupts the body instead, and sees
    the `examples` for the library. Raises `NoTaskError` if no task can be made; the model's submissions are
    stored even then. Raises `SourceError` or `CodeError` if the source or the function can't be found,
    `EnvironmentBuildError` if the environment can't be built, `InfrastructureError` if the sandbox fails, and
    `CancelledError` when stopped.
    """

    def look(tree: SourceTree) -> None:
        if function:
            check_named(tree, function)

    with scratch_folder("new") as scratch:
        repository = harness.fetch(spec, Path(scratch), run, look)
        intake = take_in(repository, runner, max_seconds=spec.max_suite_seconds, run=run)
        tests = plural(len(intake.collected), "test")
        passed = f"{len(intake.passed)} pass in every run"
        run.note(f"{tests}, {passed}, {len(intake.flaky)} flaky, {intake.seconds:.1f} s")
        if not function:
            intake = with_test_map_if_it_ends(intake, harness.mapper(spec.max_suite_seconds), run=run)
        if model is not None:
            terms = ModelTerms(examples(intake.repository.source.name))
            scorer = harness.scorer(intake)
            proof, how = _corrupted(intake, function, settings, runner, model, terms, scorer, locations, run)
        else:
            proof = _removed(intake, function, settings, runner, run)
            picked = {"function": function} if function else {"seed": settings.seed}
            how = {"corruption": removal_by(proof.targets[0]), **picked}
        if proof.any_order or len(proof.failing) == 1:
            intake = with_test_map_if_it_ends(intake, harness.mapper(spec.max_suite_seconds), run=run)
        require_proof_by_one(intake, proof, runner, run=run)
        if settings.preset:
            how["campaign"] = settings.to_json()
        task = write_proven(
            intake,
            proof,
            settings.mode.of_tasks,
            runner.backend.name,
            locations.tasks,
            rules=Rules(min_failing=settings.min_failing),
            provenance={**how, "gistpoint": __version__},
            controls_of=partial(
                _controls_of, harness, proof, run.step("checking whether passes can be confirmed")
            ),
        )
    return MadeTask(task, intake, proof)


def _removed(
    intake: Intake, function: str, settings: CampaignSettings, runner: Runner, run: RunContext
) -> CorruptionProof:
    if function:
        target = removal_target(intake.repository.tree, function, frozenset(intake.test_files))
        return prove(intake, (target,), runner, min_failing=settings.min_failing, run=run)
    least = max(settings.min_failing, _LEAST_OF_A_PICK)
    tried = 0
    for target in random_targets(intake, settings.seed):
        if tried == MAX_TRIES:
            break
        if intake.test_map and len(intake.test_map.seeing((target.name,))) < least:
            continue
        tried += 1
        try:
            return prove(intake, (target,), runner, min_failing=least, run=run)
        except NoTaskError as refusal:
            run.note(f"  {refusal.message}")
    raise NoTaskError(
        NoGood.NO_CANDIDATE,
        f"None of {tried} functions picked with seed {settings.seed} makes a task.",
        hint="Try another --seed, name one with --function, or lower --min-failing.",
    )


def _corrupted(
    intake: Intake,
    function: str,
    settings: CampaignSettings,
    runner: Runner,
    model: ChatModel,
    terms: ModelTerms,
    scorer: CorruptionScorer,
    locations: Locations,
    run: RunContext,
) -> tuple[CorruptionProof, dict[str, Any]]:
    def on_round(item: Round) -> None:
        shown = (
            f"{failing_in_words(item.trial.failing)}, subtlety {item.subtlety:.2f}"
            if item.trial
            else item.detail
        )
        run.note(f"  submission {item.number}: {item.verdict.value.replace('_', ' ')}; {shown}")

    run.note(f"{model.name} corrupts {function}")
    made = corrupt_by_model(
        intake,
        function,
        model,
        runner,
        settings=settings.loop,
        terms=terms,
        score=lambda target: scorer.scores([target])[0],
        on_round=on_round,
        run=run,
    )
    usage = made.result.usage
    cost = "" if usage.cost_usd is None else f", {usage.cost_usd:.4f} US dollars"
    run.note(f"{plural(made.result.requests, 'request')}, {plural(usage.tokens, 'token')}{cost}")
    try:
        if made.target is None:
            raise NoTaskError(NoGood.NO_CORRUPTION, made.reason)
        proof = prove(intake, (made.target,), runner, min_failing=settings.min_failing, run=run)
    except NoTaskError as refusal:
        kept = _keep_unkept(made, intake, locations)
        hint = f"Every submission is kept in {kept}, below the data folder (gistpoint admin paths)."
        raise NoTaskError(
            refusal.reason, refusal.message, hint=f"{refusal.hint}\n{hint}".strip()
        ) from refusal
    return proof, {"parts": [made.provenance()]}


def _keep_unkept(made: ModelCorruption, intake: Intake, locations: Locations) -> str:
    """Store a model's work that led to no task, because it was paid for, and return its path.

    The path is relative to the data folder.
    """
    source = intake.repository.source
    about = {"kind": source.kind, "name": source.name, "revision": source.revision}
    text = json.dumps({"source": about, **made.record()}, indent=1)
    locations.unkept_corruptions.mkdir(parents=True, exist_ok=True)
    file = locations.unkept_corruptions / f"{sha256_of_text(text)[:12]}.json"
    file.write_text(text, "utf-8")
    return str(file.relative_to(locations.data))


def _controls_of(
    harness: Harness, proof: CorruptionProof, run: RunContext, task: Task, answer: Answer
) -> Controls | None:
    """Return the controls of a task that was just made; None if they are switched off.

    Raises `NoTaskError` if only one test fails and passes can't be confirmed (decision 142).
    """
    confirmer = harness.confirmer()
    if confirmer is None:
        return None
    controls = confirmer.control(task, answer, measured_here=True, run=run)
    if len(proof.failing) == 1 and not controls.confirmable:
        raise NoTaskError(
            NoGood.TOO_FEW_FAILING,
            f"With {proof.targets[0].name} corrupted, only {min(proof.failing)} fails. One test is enough"
            f" only if passes can be confirmed, and they can't be: {controls.detail or controls.reason}",
            hint="Choose another function.",
        )
    return controls
