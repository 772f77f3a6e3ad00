"""`gistpoint task new` and `task generate`: from sources to tasks, or the reasons why there are none."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from gistpoint.core.errors import CancelledError, InfrastructureError, UserError
from gistpoint.core.generation import pipeline
from gistpoint.core.generation.campaign import Workers
from gistpoint.core.generation.context import FetchingHarness
from gistpoint.core.generation.pipeline import SourceResult
from gistpoint.core.generation.settings import Batch, CampaignMode, CampaignSettings, read_batch
from gistpoint.core.generation.verdicts import Reason
from gistpoint.core.locations import Locations
from gistpoint.core.metrics.table import Cell
from gistpoint.core.ports import ChatModel
from gistpoint.core.running import RunContext
from gistpoint.core.tasks.repository import MAX_SUITE_SECONDS
from gistpoint.sessions.tasks import is_in_use
from gistpoint.tui.commands.arguments import (
    PLAIN,
    add_isolation,
    add_suite,
    counted,
    isolation_of,
    natural,
    require_not_empty,
    settled_source,
    share,
    spec_of,
)
from gistpoint.tui.commands.choosing import add_choice, choice_of, groups_of, hard, tasks_wanted
from gistpoint.tui.commands.command import DONE, NEGATIVE, Handler
from gistpoint.tui.commands.model_options import (
    add_model_options,
    examples_hash,
    examples_of,
    model_of,
    print_spent,
    require_model,
    spent_json,
    terms_of_set,
)
from gistpoint.tui.commands.options import whole
from gistpoint.tui.commands.output import cause, print_json, print_table, print_text, spelled
from gistpoint.tui.commands.progress import long_work, orderly_end
from gistpoint.tui.commands.watched_work import watched
from gistpoint.tui.object_graph import build_runner


def new_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint task new`."""
    parser.description = (
        "Builds the environment, runs the suite three times, removes a function's body, or has a model "
        "corrupt it, runs again, and writes the task, or says why it is no good. The last line of standard output is "
        "the id of the task."
    )
    parser.add_argument("source", metavar="SOURCE", help="name==version, a folder, or git+URL@commit")
    parser.add_argument("--mode", choices=["remove", "discovery"], default="remove", help="default: remove")
    parser.add_argument("--function", metavar="PATH::QUALNAME", help="to remove or corrupt; else one picked at random")
    parser.add_argument("--seed", type=whole, default=0, help="of the random pick (default: 0)")
    add_suite(parser)
    parser.add_argument(
        "--min-failing", type=counted, default=5, metavar="N", help="failing tests a task needs (default: 5)"
    )
    add_model_options(parser, of_set=False)
    parser.add_argument("--plain", action="store_true", help=PLAIN.help)
    add_isolation(parser)
    return new


def new(options: argparse.Namespace) -> int:
    """Make one task; the last line of standard output is its id."""
    settings, model = _settings_of_one(options)
    from gistpoint.sandbox.pools import SandboxHarness

    spec = spec_of(options, options.source)
    spec = replace(spec, source=settled_source(spec.source, options.called))
    runner = build_runner(isolation_of(options))

    def work(run: RunContext) -> pipeline.MadeTask:
        return pipeline.generate_one(
            spec,
            options.function or "",
            settings,
            runner,
            SandboxHarness.on(runner.backend),
            Locations.of_user(),
            model=model,
            examples=lambda library: examples_of(options, library),
            run=run,
        )

    kept = "No task was written. What was fetched and built is kept for the next call."
    made = watched(work, isolation=isolation_of(options), plain=options.plain, kept=kept, stays=False)
    what = "without it" if model is None else "with it corrupted"
    print(f"{made.proof.targets[0].name}: {len(made.proof.failing)} of {len(made.intake.passed)} tests fail {what}")
    print(made.task.id)
    print(f"next: gistpoint solve {made.task.short_id}", file=sys.stderr)
    return DONE


def _settings_of_one(options: argparse.Namespace) -> tuple[CampaignSettings, ChatModel | None]:
    """Return the settings and the corrupting model, found before any costly work; None for remove mode."""
    if CampaignMode(options.mode).removes:
        if options.model:
            raise UserError("--model corrupts a function; removing needs none.", hint="Add --mode discovery.")
        return CampaignSettings(CampaignMode.REMOVE, options.seed, options.min_failing), None
    if not options.function:
        raise UserError("A discovery task needs --function: what the model is to corrupt.")
    model, loop = model_of(options)
    return CampaignSettings(
        CampaignMode.DISCOVERY,
        options.seed,
        options.min_failing,
        model=model.name,
        loop=loop,
        examples=examples_hash(options),
    ), model


def generate_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint task generate`."""
    parser.description = (
        "Gets to know each library once, then tries its functions in an order that the seed decides until "
        "enough are proven to make a task. The same command goes on where it was stopped; the same seed makes the same "
        "tasks, whatever the number of workers. Exit code 1 if a source gave fewer tasks than wanted."
    )
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help="name==version, a folder, or git+URL@commit")
    parser.add_argument("--batch", metavar="FILE.toml", help="sources with their arguments, requirements and stars")
    parser.add_argument(
        "--mode",
        choices=[mode.value for mode in CampaignMode],
        default=CampaignMode.DISCOVERY.value,
        help="a body deleted, a function subtly corrupted, or several near to each other (default: discovery)",
    )
    parser.add_argument("--count", type=counted, metavar="N", help="tasks of each source (default: 20)")
    parser.add_argument("--min-failing", type=counted, default=5, metavar="N", help="failing tests a task needs (5)")
    parser.add_argument("--seed", type=whole, default=0, help="of the order and of the corruptions (default: 0)")
    parser.add_argument("--workers", type=counted, metavar="N", help="processes (default: one per core)")
    parser.add_argument("--cluster", metavar="ADDRESS", help="decide on the Dask cluster with this scheduler instead")
    parser.add_argument(
        "--control", type=natural, default=0, metavar="N", help="candidates to try on the whole suite as well"
    )
    parser.add_argument(
        "--max-glance",
        type=share,
        metavar="SHARE",
        help="try corruptions up to this glance score; higher makes more tasks, and more that reading gives away",
    )
    parser.add_argument("--json", action="store_true", help="the tables as JSON")
    parser.add_argument("--list", action="store_true", help="only print the candidates in their order, and try none")
    add_choice(parser)
    parser.add_argument("--plain", action="store_true", help=PLAIN.help)
    add_suite(parser)
    add_model_options(parser, of_set=True)
    add_isolation(parser)
    return generate


def generate(options: argparse.Namespace) -> int:
    """Make tasks from every source; print their ids and the tables. Negative if a source gave fewer than wanted."""
    from gistpoint.sandbox.pools import SandboxHarness

    batch = _batch(options)
    settings = _settings_of_set(options)
    count = tasks_wanted(options.count, settings.choice, settings.groups)
    if settings.choice.functions and len(batch.sources) > 1:
        raise UserError("--functions lists the functions of one source.", hint="Name one source.")
    if not options.batch:
        settled = (replace(spec, source=settled_source(spec.source, options.called)) for spec in batch.sources)
        batch = replace(batch, sources=tuple(settled))
    harness = SandboxHarness.on(build_runner(isolation_of(options)).backend)
    if options.list:
        return _listed(options, settings, batch, harness)
    results: list[SourceResult] = []
    stopped: UserError | None = None
    with orderly_end(), _workers(options) as workers:

        def work(run: RunContext) -> None:
            for spec in batch.left_out:
                run.note(f"{spec.source} is left out: {spec.stars} stars, at least {batch.min_stars} are wanted")
            made = pipeline.generate(
                batch.taken,
                settings,
                harness,
                workers,
                Locations.of_user(),
                count=count,
                control=options.control,
                terms=terms_of_set(options, settings, batch.taken),
                in_use=lambda id: is_in_use(id, Locations.of_user()),
                run=run,
            )
            results.extend(made)

        try:
            watched(work, isolation=isolation_of(options), plain=options.plain, quiet=options.json, kept=_GOES_ON)
        except CancelledError as error:
            stopped = error
    if options.json:
        spent = {"spent": spent_json(options, settings, batch.taken)} if settings.model else {}
        print_json("gistpoint.generate/1", {**results_json(settings, batch, results), **spent})
    else:
        print_results(results, count)
        print_spent(options, settings, batch.taken)
    stopped = next((result.stopped for result in results if result.stopped is not None), stopped)
    if stopped is not None:
        raise CancelledError(f"Stopped. {_GOES_ON}") if isinstance(stopped, CancelledError) else stopped
    return DONE if results and all(result.kept >= count for result in results) else NEGATIVE


_GOES_ON = "What was made is kept: the same command goes on from there."


def _listed(options: argparse.Namespace, settings: CampaignSettings, batch: Batch, harness: FetchingHarness) -> int:
    """Print the candidates of each source with their metrics, and the strata."""
    with long_work(quiet=getattr(options, "json", False), kept="What was learned of the libraries is kept.") as at_work:
        results = list(pipeline.choose(batch.taken, settings, harness, Locations.of_user(), run=at_work.run))
    if options.json:
        print_json("gistpoint.candidates/1", {"sources": [_candidates_json(result) for result in results]})
        return DONE
    for result in results:
        assert result.plan is not None
        table = [
            [candidate.name, candidate.stratum, *(spelled(cell) for cell in _cells_of(result, candidate.name))]
            for candidate in result.plan.candidates
        ]
        print_table(("function", "stratum", *_METRICS), table)
        print_text(f"{result.spec.source}: {result.plan}")
    _print_strata(results)
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


def _settings_of_set(options: argparse.Namespace) -> CampaignSettings:
    """Return the settings; the model's configuration is validated before any costly work."""
    require_not_empty(options, "model")
    require_model(options)
    mode, choice, groups = CampaignMode(options.mode), choice_of(options), groups_of(options)
    if options.max_glance is not None and options.model:
        raise UserError("--max-glance is for corruptions that are made without a model.", hint="Leave out one of them.")
    model, loop = (options.model, model_of(options)[1]) if options.model else ("", None)
    examples = examples_hash(options)
    return CampaignSettings(
        mode,
        options.seed,
        options.min_failing,
        hard(options),
        model,
        loop,
        choice,
        groups,
        examples,
        options.max_glance,
    )


def _batch(options: argparse.Namespace) -> Batch:
    if bool(options.batch) == bool(options.sources):
        raise UserError(
            "Name one or more sources, or a batch file, not both.",
            hint="gistpoint task generate name==version, or gistpoint task generate --batch FILE.toml.",
        )
    if not options.batch:
        return Batch(tuple(spec_of(options, source) for source in dict.fromkeys(options.sources)))
    longer = options.max_suite_seconds != MAX_SUITE_SECONDS
    if options.extra or options.pytest_args or options.build_steps or options.exclude_newer or longer:
        raise UserError(
            "With --batch, the arguments of each source are in the file.",
            hint="Write them there: pytest_args, extra_requirements, build_steps, exclude_newer, max_suite_seconds.",
        )
    path = Path(options.batch)
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} can't be read: {cause(error)}.", hint="--batch takes a TOML file.") from error
    return read_batch(text, path.name)


@contextmanager
def _workers(options: argparse.Namespace) -> Iterator[Workers]:
    from gistpoint.sandbox.cluster.crew import open_to_all
    from gistpoint.sandbox.pools import cluster_workers, local_workers

    if options.cluster:
        if warning := open_to_all(options.cluster):
            print(f"gistpoint: {warning}", file=sys.stderr)
        chosen = cluster_workers(options.cluster)
    else:
        chosen = local_workers(options.workers or os.cpu_count() or 1)
    try:
        with chosen as workers:
            yield workers
    except BrokenProcessPool as error:
        raise InfrastructureError(
            "A worker ended all of a sudden, perhaps for want of memory.",
            hint="The results so far are kept: run the same command again, with fewer --workers.",
        ) from error


COLUMNS = (
    "source", "functions", "candidates", "tried", "kept", "learning s", "making s", "probes", "median/suite",
    "confirming s", "saved s", "control",
)  # fmt: skip


SAVED = (
    "saved s: what the whole suite would have taken on each corruption that was probed, less what the probes took. "
    "Confirming is not in it. It is below 0 where many corruptions hang."
)


def print_results(results: Sequence[SourceResult], count: int) -> None:
    """Print the table of sources, why candidates and corruptions were dropped, how to have more, and the task ids."""
    print_table(COLUMNS, [_row(result) for result in results])
    _print_strata(results)
    dropped = [
        [result.spec.source, what, reason, str(count)]
        for result in results
        for what, counted in (("candidate", result.counts.reasons), ("corruption", result.counts.fates))
        for reason, count in counted.items()
    ]
    if any(result.counts.tried for result in results):
        print_text(SAVED)
    if dropped:
        print_table(("source", "of", "came to", "count"), dropped)
    for result in results:
        if result.refused is not None:
            print_text(f"{result.spec.source}: {result.refused[1]}")
        for comparison in result.comparisons:
            if not comparison["agrees"]:
                print_text(f"{result.spec.source}: probe and suite differ on {', '.join(comparison['targets'])}")
        seen = result.counts.reasons.get(Reason.AT_A_GLANCE, 0)
        if seen and result.kept < count:
            print_text(
                f"{result.spec.source}: reading gives away each corruption of {seen} functions, so none was tried. "
                "A higher --max-glance tries them: 0.5, or above the one that was given."
            )
    for result in results:
        for id in result.tasks:
            print(id)


def _print_strata(results: Sequence[SourceResult]) -> None:
    rows = [
        [result.spec.source, name, str(offered), str(kept)]
        for result in results
        for name, offered, kept in result.strata
    ]
    if rows:
        print_table(("source", "stratum", "candidates", "kept"), rows)


def _row(result: SourceResult) -> list[str]:
    values = result.to_json()
    costs = values["costs"] or {}
    share = costs.get("median_share_of_suite")
    agreement = values["control"]["agreement"]
    stars = "" if result.spec.stars is not None else " (stars unknown)"
    return [
        result.spec.source + stars,
        str(values["functions"]),
        str(values["candidates"]),
        str(values["tried"]),
        str(values["kept"]) if result.refused is None else f"refused: {result.refused[0]}",
        f"{result.learning_seconds:.1f}",
        f"{result.making_seconds:.1f}",
        f"{costs.get('probes', 0)}",
        "" if share is None else f"1/{1 / share:.0f}" if share else "0",
        f"{costs.get('confirming_seconds', 0.0):.1f}",
        f"{costs.get('saved_seconds', 0.0):.1f}",
        "" if agreement is None else f"{100 * agreement:.0f} % of {values['control']['tried']}",
    ]


def results_json(settings: CampaignSettings, batch: Batch, results: Sequence[SourceResult]) -> dict[str, Any]:
    """Return the results as the values of a JSON document."""
    return {
        "settings": settings.to_json(),
        "sources": [result.to_json() for result in results],
        "too_few_stars": [spec.source for spec in batch.left_out],
        "min_stars": batch.min_stars,
    }
