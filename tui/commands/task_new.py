"""`gistpoint task new`: from a source to a task, or the reason why there is none."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from gistpoint import __version__
from gistpoint.core.code.removal import remove_body
from gistpoint.core.errors import UserError
from gistpoint.core.generation.intake import Intake, NoGood, NoTaskError, take_in
from gistpoint.core.generation.making import write_proven
from gistpoint.core.generation.proof import Proof, prove
from gistpoint.core.generation.removal import random_targets, removal_target
from gistpoint.core.locations import Locations
from gistpoint.core.ports import Runner
from gistpoint.core.tasks.model import Mode, Rules, Task
from gistpoint.tui.cli import DONE, build_runner
from gistpoint.tui.commands.progress import ProgressLine
from gistpoint.tui.commands.sources import spec_of

MAX_TRIES = 25
"""Functions tried before a random pick gives up."""


def new(options: argparse.Namespace) -> int:
    """Make one remove task; the last line of standard output is its id."""
    if options.min_failing < 1:
        raise UserError("--min-failing must be 1 or more.")
    from gistpoint.sandbox.repositories import fetch_repository

    spec = spec_of(options, options.source)
    runner = build_runner(options)
    with ProgressLine() as progress, tempfile.TemporaryDirectory(prefix="gistpoint-new-") as scratch:
        repository = fetch_repository(
            spec,
            Path(scratch),
            Locations.of_user().cache,
            on_line=progress.line,
            on_detail=progress.detail,
        )
        intake = take_in(repository, runner, on_progress=progress.making)
        progress.line(
            f"{len(intake.collected)} tests, {len(intake.passed)} pass in every run, {len(intake.flaky)} flaky, "
            f"{intake.seconds:.1f} s"
        )
        proof = _proof(options, intake, runner, progress)
        task = _written(options, intake, proof, runner)
    print(f"{proof.targets[0].name}: {len(proof.failing)} of {len(intake.passed)} tests fail without it")
    print(task.id)
    return DONE


def _proof(options: argparse.Namespace, intake: Intake, runner: Runner, progress: ProgressLine) -> Proof:
    tests = frozenset(intake.test_files)
    if options.function:
        target = removal_target(intake.repository.tree, options.function, tests)
        return prove(intake, (target,), runner, min_failing=options.min_failing, on_progress=progress.making)
    from gistpoint.sandbox.benches import SandboxBench

    repository, backend = intake.repository, runner.backend
    bench = SandboxBench(backend.name, not backend.isolated, Locations.of_user().cache)
    progress.line("tests recorded with the functions that they enter")
    test_map, _ = bench.mapper().record(repository.tree, repository.environment, intake.passed)
    tried = 0
    for target in random_targets(intake, options.seed):
        if tried == MAX_TRIES:
            break
        if len(test_map.seeing((target.name,))) < options.min_failing:
            continue
        tried += 1
        try:
            return prove(intake, (target,), runner, min_failing=options.min_failing, on_progress=progress.making)
        except NoTaskError as refusal:
            progress.line(f"  {refusal.message}")
    raise NoTaskError(
        NoGood.NO_CANDIDATE,
        f"None of {tried} functions picked with seed {options.seed} makes a task.",
        hint="Try another --seed, name one with --function, or lower --min-failing.",
    )


def _written(options: argparse.Namespace, intake: Intake, proof: Proof, runner: Runner) -> Task:
    picked = {"function": options.function} if options.function else {"seed": options.seed}
    return write_proven(
        intake,
        proof,
        Mode.REMOVE,
        runner.backend.name,
        Locations.of_user().tasks,
        rules=Rules(min_failing=options.min_failing),
        provenance={"corruption": remove_body.__name__, "gistpoint": __version__, **picked},
    )
