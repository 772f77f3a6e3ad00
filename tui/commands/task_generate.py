"""`gistpoint task generate`: from sources to sets of tasks, with a table of what came of the candidates."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.errors import EnvironmentBuildError, InfrastructureError, RecordingError, SourceError, UserError
from gistpoint.core.generation.campaign.bench import Bench
from gistpoint.core.generation.campaign.campaign import Crew, run_campaign, run_controls
from gistpoint.core.generation.campaign.candidates import Plan, plan
from gistpoint.core.generation.campaign.counts import Counts, SourceResult
from gistpoint.core.generation.campaign.jobs import Place
from gistpoint.core.generation.campaign.learning import LibraryFolder, learn_library
from gistpoint.core.generation.campaign.library import Library
from gistpoint.core.generation.campaign.making import write_kept
from gistpoint.core.generation.campaign.settings import Batch, CampaignMode, Settings, SourceSpec, read_batch
from gistpoint.core.generation.campaign.verdicts import StateFile, Verdict
from gistpoint.core.generation.intake import NoTaskError, Repository
from gistpoint.core.locations import Locations
from gistpoint.tui.cli import DONE, NEGATIVE, build_runner
from gistpoint.tui.commands.generation_tables import print_results, results_json
from gistpoint.tui.commands.output import ProgressLine, print_json
from gistpoint.tui.commands.sources import spec_of
from gistpoint.tui.model_options import model_of

_REFUSED = {
    SourceError: "source_not_to_be_had",
    EnvironmentBuildError: "environment_not_to_be_built",
    RecordingError: "watched_run_did_not_end",
}


def generate(options: argparse.Namespace) -> int:
    """Make tasks of every source; prints their ids and the tables. Negative where a source gave fewer than wanted."""
    from gistpoint.sandbox.pools import SandboxBench

    batch = _batch(options)
    settings = _settings(options)
    backend = build_runner(options).backend
    bench = SandboxBench(backend.name, not backend.isolated, Locations.of_user().cache)
    results: list[SourceResult] = []
    with ProgressLine() as progress:
        for spec in batch.left_out:
            progress.line(f"{spec.source} is left out: {spec.stars} stars, wanted are {batch.min_stars}")
        with _crew(options) as crew:
            factory = Factory(settings, bench, crew, progress, options.count, options.control, len(batch.taken) == 1)
            for spec in batch.taken:
                results.append(factory.make(spec))
    if options.json:
        print_json("gistpoint.generate/1", results_json(settings, batch, results))
    else:
        print_results(results)
    return DONE if results and all(result.kept >= options.count for result in results) else NEGATIVE


def _settings(options: argparse.Namespace) -> Settings:
    """Return what is asked for; that a model can be reached as configured is seen to before anything costs time."""
    mode = CampaignMode(options.mode)
    if not options.model:
        return Settings(mode, options.seed, options.min_failing, options.hard)
    loop = model_of(options)[1]
    return Settings(mode, options.seed, options.min_failing, options.hard, options.model, loop)


def _batch(options: argparse.Namespace) -> Batch:
    if bool(options.batch) == bool(options.sources):
        raise UserError(
            "Name one or more sources, or a batch file, not both.",
            hint="gistpoint task generate name==version, or gistpoint task generate --batch FILE.toml.",
        )
    if not options.batch:
        return Batch(tuple(spec_of(options, source) for source in dict.fromkeys(options.sources)))
    if options.extra or options.pytest_args or options.build_steps or options.exclude_newer:
        raise UserError(
            "With --batch, the arguments of each source stand in the file.",
            hint="Write them there as pytest_args, extra_requirements, build_steps and exclude_newer.",
        )
    path = Path(options.batch)
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} can't be read: {error}.", hint="--batch takes a TOML file.") from error
    return read_batch(text, path.name)


@contextmanager
def _crew(options: argparse.Namespace) -> Iterator[Crew]:
    from gistpoint.sandbox.pools import cluster_crew, local_crew

    chosen = cluster_crew(options.cluster) if options.cluster else local_crew(options.workers or os.cpu_count() or 1)
    try:
        with chosen as crew:
            yield crew
    except BrokenProcessPool as error:
        raise InfrastructureError(
            "A worker ended all of a sudden, perhaps for want of memory.",
            hint="What was found out is kept: run the same command again, with fewer --workers.",
        ) from error


@dataclass
class Factory:
    """Makes the tasks of one source after the other."""

    settings: Settings
    bench: Bench
    crew: Crew
    progress: ProgressLine
    count: int
    control: int
    alone: bool
    """Whether it is the only source: then what it lacks is the user's to mend, and not a row of a table."""

    def make(self, spec: SourceSpec) -> SourceResult:
        """Return what came of a source; one that is no good is a result as well."""
        started = time.monotonic()
        try:
            place, library = self._learned(spec)
        except (NoTaskError, SourceError, EnvironmentBuildError, RecordingError) as refusal:
            if self.alone and not isinstance(refusal, NoTaskError):
                raise
            self.progress.line(f"{spec.source} is no good: {refusal.message}")
            reason = refusal.reason.value if isinstance(refusal, NoTaskError) else _REFUSED[type(refusal)]
            return SourceResult(spec, refused=(reason, refusal.message))
        planned = plan(library, self.settings)
        self.progress.line(f"{len(planned.candidates)} candidates of {planned.functions} functions")
        result = SourceResult(spec, learning_seconds=time.monotonic() - started, plan=planned, library=library)
        began = time.monotonic()
        with self._state(library) as state:
            try:
                self._campaign(place, planned, library, state, result)
            except KeyboardInterrupt:
                self.progress.line(f"stopped; {len(state.verdicts)} verdicts are kept, the same command goes on")
                raise
        result.making_seconds = time.monotonic() - began
        return result

    def _learned(self, spec: SourceSpec) -> tuple[Place, Library]:
        from gistpoint.sandbox.environments.sources import fetch_repository, key_of

        locations, progress = Locations.of_user(), self.progress
        with tempfile.TemporaryDirectory(prefix="gistpoint-generate-") as name:
            scratch = Path(name)
            backend = self.bench.runner().backend
            folder = locations.libraries / sha256_of_json([key_of(spec, scratch), backend.name])[:32]

            def fetched() -> Repository:
                return fetch_repository(
                    spec, scratch, locations.cache, isolation=backend, on_line=progress.line, on_detail=progress.detail
                )

            library = learn_library(
                LibraryFolder(folder), fetched, self.bench, stars=spec.stars, on_progress=progress.making
            )
        intake = library.intake
        self.progress.line(
            f"{spec.source}: {len(intake.passed)} tests pass, {len(intake.flaky)} flaky, {intake.seconds:.1f} s"
        )
        return Place(folder, self.bench, self.settings), library

    def _state(self, library: Library) -> StateFile:
        source, settings = library.intake.repository.source, self.settings
        about = {"source": [source.kind, source.name, source.revision], "settings": settings.to_json()}
        key = sha256_of_json([library.key, settings.to_json()])[:16]
        name = f"{source.name}-{settings.mode.value}-{key}.jsonl"
        return StateFile(Locations.of_user().campaigns / name, about)

    def _campaign(self, place: Place, planned: Plan, library: Library, state: StateFile, result: SourceResult) -> None:
        def accept(verdict: Verdict) -> None:
            assert verdict.kept is not None
            task = write_kept(library, self.settings, verdict.kept, Locations.of_user().tasks)
            result.tasks.append(task.id)
            failing = len(verdict.kept.failing) + len(verdict.kept.missing)
            names = ", ".join(target.name for target in verdict.kept.targets)
            self.progress.line(f"  {task.short_id} {names}: {failing} of {len(library.intake.passed)} tests fail")

        def on_verdict(counts: Counts) -> None:
            reasons = ", ".join(f"{count} {reason}" for reason, count in counts.reasons.items())
            self.progress.count(f"{counts.kept}/{self.count} kept of {counts.tried} tried; {reasons}")

        result.counts = run_campaign(
            place, planned.candidates, self.count, self.crew, state, accept=accept, on_verdict=on_verdict
        )
        if self.control > 0:
            result.comparisons = run_controls(
                place,
                tuple(result.counts.verdicts),
                self.control,
                self.crew,
                state,
                on_comparison=lambda done, total: self.progress.count(f"control {done}/{total}"),
            )
