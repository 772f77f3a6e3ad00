"""`gistpoint task new` and `task generate`: make tasks from sources, or print why there are none."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from gistpoint import __version__
from gistpoint.core.corruption.rounds import LoopSettings
from gistpoint.core.errors import CancelledError, InfrastructureError, UserError
from gistpoint.core.generation import pipeline
from gistpoint.core.generation.by_model import ModelTerms
from gistpoint.core.generation.campaign import Workers
from gistpoint.core.generation.context import FetchingHarness
from gistpoint.core.generation.examples import examples_for
from gistpoint.core.generation.pipeline import SourceResult
from gistpoint.core.generation.requests import GenerateTasks, NewTask
from gistpoint.core.generation.settings import Batch, CampaignSettings, FaultSource
from gistpoint.core.generation.spending import SetSpending
from gistpoint.core.kinds.confirming import confirmable_words
from gistpoint.core.kinds.folder import read_answer, read_task
from gistpoint.core.kinds.titles import author_title
from gistpoint.core.locations import Locations
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.metrics.table import Cell
from gistpoint.core.ports import ChatModel
from gistpoint.core.requests import IsolationChoice
from gistpoint.core.running import RunContext
from gistpoint.core.tasks.names import word_name
from gistpoint.core.text import failing_in_words, plural
from gistpoint.object_graph import build_runner, runs_as_user
from gistpoint.sessions.annotations.glance_reader import GlanceStore, record_packet_readings
from gistpoint.sessions.attempts import ATTEMPTS_INDEX, AttemptStore
from gistpoint.sessions.tasks import TaskStore, is_in_use
from gistpoint.tui.commands.arguments import ISOLATION, PLAIN, SUITE, settled_source
from gistpoint.tui.commands.choosing import CHOICE, GROUPS
from gistpoint.tui.commands.command import DONE, NEGATIVE
from gistpoint.tui.commands.model_options import (
    MODEL,
    MODEL_OF_SET,
    READER,
    fetched_trees,
    open_model,
    open_reader,
)
from gistpoint.tui.commands.options import CALLED, CliCommand, OptionTable, argument, option
from gistpoint.tui.commands.output import print_json, print_table, print_text, spelled
from gistpoint.tui.commands.progress import long_work, orderly_end
from gistpoint.tui.commands.set_results import print_results, print_strata, results_json
from gistpoint.tui.commands.watched_work import watched


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTaskRequest(NewTask):
    """A request to make a task."""

    plain: bool = False
    isolation: IsolationChoice = field(default_factory=IsolationChoice)
    called: tuple[str, ...] = ()


def _opening(isolation: IsolationChoice) -> partial[tuple[ChatModel, LoopSettings]]:
    """Return the function that opens a model whose code runs under `isolation`."""
    return partial(open_model, exposed=partial(runs_as_user, isolation))


def new(request: NewTaskRequest) -> int:
    """Make a task. The last line on standard output is its id. Return the exit code."""
    settings, model = request.settings(_opening(request.isolation))
    from gistpoint.sandbox.pools import SandboxHarness

    spec = request.suite.of(request.source)
    spec = replace(spec, source=settled_source(spec.source, request.called))
    runner = build_runner(request.isolation)

    def work(run: RunContext) -> pipeline.MadeTask:
        return pipeline.generate_one(
            spec,
            request.function,
            settings,
            runner,
            SandboxHarness.on(runner.backend),
            Locations.of_user(),
            model=model,
            examples=lambda library: examples_for(request.model.examples, library, fetched_trees),
            run=run,
        )

    kept = "No task was written. Everything that was fetched and built is kept for the next call."
    made = watched(work, isolation=request.isolation, plain=request.plain, kept=kept, stays=False)
    what = "without it" if model is None else "with it corrupted"
    failing = failing_in_words(len(made.proof.failing), len(made.intake.passed))
    print(f"{made.proof.targets[0].name}: {failing} {what}")
    print_text(f"Passes can be confirmed: {confirmable_words(made.task)}")
    print_text(f"{author_title(made.task)}, shown to its solvers as {word_name(made.task.id)}")
    print(made.task.id)
    print(f"next: gistpoint solve {made.task.short_id}", file=sys.stderr)
    return DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateRequest(GenerateTasks):
    """A request to make sets of tasks; with `list`, the candidates are only printed."""

    json: bool = False
    list: bool = False
    plain: bool = False
    isolation: IsolationChoice = field(default_factory=IsolationChoice)
    called: tuple[str, ...] = ()


def generate(request: GenerateRequest) -> int:
    """Make tasks from all sources, and print their ids and tables; with `list`, only print the candidates.

    Return 1 if a source yielded fewer tasks than requested. Raises `CancelledError`, or the `UserError` that
    stopped the work.
    """
    from gistpoint.sandbox.pools import SandboxHarness

    batch, settings, count = _planned(request)
    submissions, studies = _submissions(request)
    settings = replace(settings, studies=studies)
    harness = SandboxHarness.on(build_runner(request.isolation).backend)
    if request.list:
        return _listed(settings, batch, harness, submissions, as_json=request.json)
    spending = _spending(request, settings, batch)
    results: list[SourceResult] = []
    stopped: UserError | None = None
    with orderly_end(), _workers(request) as workers:

        def work(run: RunContext) -> None:
            for spec in batch.left_out:
                run.note(
                    f"{spec.source} is skipped: it has {spec.stars} stars, and at least {batch.min_stars} are"
                    " required"
                )
            made = pipeline.generate(
                batch.taken,
                settings,
                harness,
                workers,
                Locations.of_user(),
                count=count,
                control=request.control,
                terms=_terms(request.model.examples, spending),
                submissions=submissions,
                in_use=lambda id: is_in_use(id, Locations.of_user()),
                run=run,
            )
            results.extend(made)

        try:
            watched(work, isolation=request.isolation, plain=request.plain, quiet=request.json, kept=_GOES_ON)
        except CancelledError as error:
            stopped = error
    _keep_readings(results)
    if request.json:
        spent = {} if spending is None else {"spent": spending.spent().to_json()}
        print_json("gistpoint.generate/1", {**results_json(settings, batch, results), **spent})
    else:
        print_results(results, count, settings, request.called)
        if spending is not None:
            _print_spent(settings, spending)
    stopped = next((result.stopped for result in results if result.stopped is not None), stopped)
    if stopped is not None:
        raise CancelledError(f"Stopped. {_GOES_ON}") if isinstance(stopped, CancelledError) else stopped
    return DONE if results and all(result.kept >= count for result in results) else NEGATIVE


def _planned(request: GenerateRequest) -> tuple[Batch, CampaignSettings, int]:
    """Return the sources, the settings and the number of tasks per source, before any costly work."""
    # Only code that a model writes could look for the key of an endpoint (decision 122).
    exposed = partial(runs_as_user, request.isolation) if request.model.model else lambda: False
    batch, settings, count = request.planned(
        _opening(request.isolation), partial(open_reader, exposed=exposed)
    )
    if request.batch:
        return batch, settings, count
    settled = (replace(spec, source=settled_source(spec.source, request.called)) for spec in batch.sources)
    return replace(batch, sources=tuple(settled)), settings, count


def _submissions(request: GenerateRequest) -> tuple[pipeline.SubmissionsOf, tuple[str, ...]]:
    """Return the function that collects failed submissions, and the ids of the studies that it reads.

    Raises `StudyError` if a study can't be read, or does not ask its participants for consent to this.
    """
    if request.faults is not FaultSource.ATTEMPTS:
        return pipeline.no_submissions, ()
    from gistpoint.sessions.studies.reuse import attempts_of_study
    from gistpoint.sessions.submissions import attempts_of_home, submissions_in
    from gistpoint.tui.study_opening import open_study

    locations = Locations.of_user()
    attempts = AttemptStore(
        locations.attempts,
        SystemTime(),
        __version__,
        locations.reviews,
        index=locations.lists / ATTEMPTS_INDEX,
    )
    tasks = TaskStore(locations.tasks, demo=locations.demo)
    studies = list(map(open_study, request.studies))
    suppliers = [attempts_of_home(attempts, tasks), *map(attempts_of_study, studies)]
    return partial(submissions_in, suppliers), tuple(sorted({study.study.id for study in studies}))


def _spending(request: GenerateRequest, settings: CampaignSettings, batch: Batch) -> SetSpending | None:
    """Return the record of the spending on models for the set; None without a model."""
    if not (settings.model or settings.reader):
        return None
    campaigns, model = Locations.of_user().campaigns, request.model
    return SetSpending.of(campaigns, settings, batch.taken, model.max_tokens, model.max_cost)


def _terms(examples: str | None, spending: SetSpending | None) -> Callable[[str], ModelTerms] | None:
    """Begin to record the spending, and return a function from a library to the model's terms.

    Return None if no model is used.
    """
    if spending is None:
        return None
    spending.begin()
    return lambda library: ModelTerms(examples_for(examples, library, fetched_trees), spending)


def _print_spent(settings: CampaignSettings, spending: SetSpending) -> None:
    """Print what the models have cost for the set so far."""
    models = " and ".join(filter(None, (settings.model, settings.reader)))
    spent, caps = spending.spent(), []
    if spending.max_tokens is not None:
        caps.append(plural(spending.max_tokens, "token"))
    if spending.max_cost_usd is not None:
        caps.append(f"{spending.max_cost_usd:g} US dollars")
    usage = spent.usage
    cost = "" if usage.cost_usd is None else f", {usage.cost_usd:.4f} US dollars"
    about = " (estimated in part)" if usage.estimated else ""
    most = f"; at most {' and '.join(caps)}" if caps else ""
    used = f"{plural(spent.requests, 'request')}, {plural(usage.tokens, 'token')}"
    print_text(f"{models}: {used}{about}{cost} for this set{most}")


def _keep_readings(results: Sequence[SourceResult]) -> None:
    """Record the blind readings of the sets' tasks with the readings of people and other models."""
    locations = Locations.of_user()
    ids = [id for result in results for id in result.tasks if id in result.readings]
    store = GlanceStore(locations.glances, SystemTime()) if ids else None
    for id in ids:
        assert store is not None
        task = read_task(locations.tasks / id, verify=False)
        record_packet_readings(store, task, read_answer(task))


_GOES_ON = "The tasks made so far are kept: the same command continues from there."


def _listed(
    settings: CampaignSettings,
    batch: Batch,
    harness: FetchingHarness,
    submissions: pipeline.SubmissionsOf,
    *,
    as_json: bool,
) -> int:
    """Print the candidates of each source with their metrics, and the strata."""
    locations = Locations.of_user()
    with long_work(quiet=as_json, kept="The results of analysing the libraries are kept.") as at_work:
        found = pipeline.choose(
            batch.taken, settings, harness, locations, submissions=submissions, run=at_work.run
        )
        results = list(found)
    if as_json:
        print_json("gistpoint.candidates/1", {"sources": [_candidates_json(result) for result in results]})
        return DONE
    for result in results:
        assert result.plan is not None
        table = [
            [
                candidate.name,
                candidate.stratum,
                *(spelled(cell) for cell in _cells_of(result, candidate.name)),
            ]
            for candidate in result.plan.candidates
        ]
        print_table(("function", "stratum", *_METRICS), table)
        print_text(f"{result.spec.source}: {result.plan}")
    print_strata(results)
    return DONE


_METRICS = ("code_lines", "cyclomatic", "degree", "harmonic_out")


def _cells_of(result: SourceResult, name: str) -> list[Cell]:
    assert result.library is not None
    row = result.library.by_name.get(name)
    return [None if row is None else row.cell(column) for column in _METRICS]


def _candidates_json(result: SourceResult) -> dict[str, Any]:
    assert result.plan is not None
    candidates = [
        {
            "function": candidate.name,
            "stratum": candidate.stratum,
            "size": candidate.size,
            **dict(zip(_METRICS, _cells_of(result, candidate.name), strict=True)),
        }
        for candidate in result.plan.candidates
    ]
    left_out = {"functions": result.plan.functions, "left_out": result.plan.left_out}
    return {"source": result.spec.source, **left_out, "candidates": candidates}


@contextmanager
def _workers(request: GenerateTasks) -> Iterator[Workers]:
    from gistpoint.sandbox.cluster import open_to_all
    from gistpoint.sandbox.cluster_steps import cluster_workers
    from gistpoint.sandbox.pools import local_workers

    if request.cluster:
        if warning := open_to_all(request.cluster):
            print(f"gistpoint: {warning}", file=sys.stderr)
        chosen = cluster_workers(request.cluster)
    else:
        chosen = local_workers(request.workers or os.cpu_count() or 1)
    try:
        with chosen as workers:
            yield workers
    except BrokenProcessPool as error:
        raise InfrastructureError(
            "A worker ended suddenly, perhaps because it ran out of memory.",
            hint="The results so far are kept: run the same command again, with fewer --workers.",
        ) from error


MIN_FAILING = option(
    "number of failing tests that a task needs (default: 1, if it always fails, uses the function, and passes"
    " can be confirmed)",
    metavar="N",
)
PRESET = option(
    "as in the paper: at least 5 failing tests and suites of at most 60 s; in sets, also classes"
    " (remove) and groups of four (multi)"
)
_ONE = OptionTable(
    {
        "source": argument("SOURCE", "name==version, a folder, or git+URL@commit"),
        "mode": option("default: {default}"),
        "function": option(
            "the function (or class) to remove, or the function to corrupt; otherwise one picked at random",
            metavar="PATH::QUALNAME",
        ),
        "seed": option("seed of the random pick (default: {default})"),
        "suite": SUITE,
        "min_failing": MIN_FAILING,
        "preset": PRESET,
        "model": MODEL,
        "plain": PLAIN,
        "isolation": ISOLATION,
        "called": CALLED,
    }
)
NEW = CliCommand(
    NewTaskRequest,
    new,
    _ONE,
    about=(
        "Builds the environment, runs the suite three times, removes a function's body or has a model"
        " corrupt it, runs the suite again, and writes the task, or reports why it can't. The last"
        " line of standard output is the id of the task."
    ),
)
_SET = OptionTable(
    {
        "sources": argument("SOURCE", "name==version, a folder, or git+URL@commit"),
        "batch": option("sources with their arguments, requirements and stars", metavar="FILE.toml"),
        "mode": option(
            "a deleted body, a corrupted function, or several near each other (default: {default})"
        ),
        "count": option("number of tasks from each source (default: 20)", metavar="N"),
        "min_failing": MIN_FAILING,
        "preset": PRESET,
        "classes": option("with --mode remove, also remove the bodies of whole classes"),
        "faults": option(
            "deliberate edits, earlier bodies of functions, or failed submissions (default: {default})",
            "--from",
        ),
        "studies": option(
            "with --from attempts, also use the attempts of this study's participants who agreed to it",
            "--study",
            metavar="FOLDER",
        ),
        "missing_features": option(
            "with --from history or attempts, or --rewrite, also keep bodies without a feature of the"
            " present one"
        ),
        "pool": option(
            "number of proven corruptions, of which the least visible become tasks (default with --from"
            " history or attempts, --rewrite or --reader: 3 per task)",
            metavar="N",
        ),
        "seed": option("seed of the order and the corruptions (default: {default})"),
        "workers": option("number of processes (default: one per core)", metavar="N"),
        "cluster": option(
            "try candidates on the Dask cluster with this scheduler instead", metavar="ADDRESS"
        ),
        "control": option("number of candidates that are also tried on the whole suite", metavar="N"),
        "max_glance": option(
            "try corruptions up to this glance score; a higher one makes more tasks, but more of"
            " them can be solved by reading alone",
            metavar="SHARE",
        ),
        "confirmable": option("keep only tasks whose passes can be confirmed"),
        "json": option("the tables as JSON"),
        "list": option("only print the candidates, without trying any"),
        "choice": CHOICE,
        "groups": GROUPS,
        "plain": PLAIN,
        "suite": SUITE,
        "model": MODEL_OF_SET,
        "blind": READER,
        "isolation": ISOLATION,
        "called": CALLED,
    }
)
GENERATE = CliCommand(
    GenerateRequest,
    generate,
    _SET,
    about=(
        "Tries a library's functions in an order that the seed decides. The same command continues"
        " where it was stopped. The exit code is 1 if fewer tasks than requested were made."
    ),
)
