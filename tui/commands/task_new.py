"""`gistpoint task new`: from a source to a task, or the reason why there is none."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gistpoint import __version__
from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.code.splice import remove_body
from gistpoint.core.corruption.model.corruption import ModelCorruption, corrupt_by_model
from gistpoint.core.corruption.model.loop import LoopSettings, Round
from gistpoint.core.errors import UserError
from gistpoint.core.generation.intake import Intake, NoGood, NoTaskError, take_in
from gistpoint.core.generation.making import write_proven
from gistpoint.core.generation.proof import Proof, prove
from gistpoint.core.generation.removal import check_named, random_targets, removal_target
from gistpoint.core.locations import Locations
from gistpoint.core.ports import ChatModel, Runner
from gistpoint.core.tasks.model import Mode, Rules, Task
from gistpoint.tui.cli import DONE, build_runner
from gistpoint.tui.commands.output import ProgressLine
from gistpoint.tui.commands.sources import spec_of
from gistpoint.tui.commands.test_maps import recorded
from gistpoint.tui.model_options import model_of

MAX_TRIES = 25
"""Functions tried before a random pick gives up."""


def new(options: argparse.Namespace) -> int:
    """Make one task; the last line of standard output is its id."""
    if options.min_failing < 1:
        raise UserError("--min-failing must be 1 or more.")
    corrupting = _corrupting(options)
    from gistpoint.sandbox.environments.sources import fetch_repository

    spec = spec_of(options, options.source)
    runner = build_runner(options)
    with ProgressLine() as progress, tempfile.TemporaryDirectory(prefix="gistpoint-new-") as scratch:
        repository = fetch_repository(
            spec,
            Path(scratch),
            Locations.of_user().cache,
            isolation=runner.backend,
            on_line=progress.line,
            on_detail=progress.detail,
            on_tree=lambda tree: check_named(tree, options.function) if options.function else None,
        )
        intake = take_in(repository, runner, on_progress=progress.making)
        progress.line(
            f"{len(intake.collected)} tests, {len(intake.passed)} pass in every run, {len(intake.flaky)} flaky, "
            f"{intake.seconds:.1f} s"
        )
        if corrupting is None and not options.function:
            intake = recorded(intake, runner, progress)
        if corrupting is None:
            proof, how = _proof(options, intake, runner, progress), _removal(options)
        else:
            proof, how = _corrupted(options, intake, runner, progress, *corrupting)
        if proof.any_order:
            intake = recorded(intake, runner, progress)
        task = _written(options, intake, proof, runner, how)
    what = "without it" if corrupting is None else "with it corrupted"
    print(f"{proof.targets[0].name}: {len(proof.failing)} of {len(intake.passed)} tests fail {what}")
    print(task.id)
    return DONE


def _proof(options: argparse.Namespace, intake: Intake, runner: Runner, progress: ProgressLine) -> Proof:
    tests = frozenset(intake.test_files)
    if options.function:
        target = removal_target(intake.repository.tree, options.function, tests)
        return prove(intake, (target,), runner, min_failing=options.min_failing, on_progress=progress.making)
    tried = 0
    for target in random_targets(intake, options.seed):
        if tried == MAX_TRIES:
            break
        if intake.test_map and len(intake.test_map.seeing((target.name,))) < options.min_failing:
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


def _removal(options: argparse.Namespace) -> dict[str, Any]:
    picked = {"function": options.function} if options.function else {"seed": options.seed}
    return {"corruption": remove_body.__name__, **picked}


def _corrupting(options: argparse.Namespace) -> tuple[ChatModel, LoopSettings] | None:
    """Return the model that is to corrupt, looked for before anything costs time; None where a body is removed."""
    if options.mode == Mode.REMOVE:
        if options.model:
            raise UserError("--model corrupts a function; removing needs none.", hint="Add --mode discovery.")
        return None
    if not options.function:
        raise UserError("A discovery task needs --function: what the model is to corrupt.")
    return model_of(options)


def _corrupted(
    options: argparse.Namespace,
    intake: Intake,
    runner: Runner,
    progress: ProgressLine,
    model: ChatModel,
    settings: LoopSettings,
) -> tuple[Proof, dict[str, Any]]:
    def told(item: Round) -> None:
        shown = f"{item.trial.failing} tests fail, subtlety {item.subtlety:.2f}" if item.trial else item.detail
        progress.line(f"  submission {item.number}: {item.verdict.value.replace('_', ' ')}; {shown}")

    progress.line(f"{model.name} corrupts {options.function}")
    made = corrupt_by_model(
        intake, options.function, model, runner, settings=settings, on_progress=progress.making, on_round=told
    )
    usage = made.result.usage
    cost = "" if usage.cost_usd is None else f", {usage.cost_usd:.4f} US dollars"
    progress.line(f"{made.result.requests} requests, {usage.tokens} tokens{cost}")
    try:
        if made.target is None:
            raise NoTaskError(NoGood.NO_CORRUPTION, made.reason)
        proof = prove(intake, (made.target,), runner, min_failing=options.min_failing, on_progress=progress.making)
    except NoTaskError as refusal:
        kept = _keep_unkept(made, intake)
        hint = f"Every submission is kept in {kept}, below the data folder (gistpoint paths)."
        raise NoTaskError(refusal.reason, refusal.message, hint=f"{refusal.hint}\n{hint}".strip()) from refusal
    return proof, {"parts": [made.provenance()]}


def _keep_unkept(made: ModelCorruption, intake: Intake) -> str:
    """Write what a model made, though no task comes of it: it was paid for. Return where, below the data folder."""
    source = intake.repository.source
    about = {"kind": source.kind, "name": source.name, "revision": source.revision}
    text = json.dumps({"source": about, **made.record()}, indent=1)
    folder = Locations.of_user().unkept_corruptions
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"{sha256_of_text(text)[:12]}.json"
    place.write_text(text, "utf-8")
    return str(place.relative_to(Locations.of_user().data))


def _written(options: argparse.Namespace, intake: Intake, proof: Proof, runner: Runner, how: Mapping[str, Any]) -> Task:
    return write_proven(
        intake,
        proof,
        Mode(options.mode),
        runner.backend.name,
        Locations.of_user().tasks,
        rules=Rules(min_failing=options.min_failing),
        provenance={**how, "gistpoint": __version__},
    )
