"""`gistpoint gist new`, `reference` and `score`."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from signal import SIGINT, signal
from typing import Any

from gistpoint import __version__
from gistpoint.core.attempts.budgets import Budgets
from gistpoint.core.cancel import CancelToken
from gistpoint.core.errors import UserError
from gistpoint.core.generation.intake import MakingProgress
from gistpoint.core.kinds.gist.entrypoints import Entrypoint, parse_entrypoint
from gistpoint.core.kinds.gist.evidence import evidence_rows, line_evidence
from gistpoint.core.kinds.gist.intake import Examination, NoGistError, candidates, write_gist_task
from gistpoint.core.kinds.gist.judge import GistJudge
from gistpoint.core.kinds.gist.model import UNLIMITED, GistSettings, require_consistent
from gistpoint.core.kinds.gist.overrides import differing, toml_lines
from gistpoint.core.kinds.gist.references import ReferenceMaker
from gistpoint.core.kinds.gist.score import score_record
from gistpoint.core.locations import Locations
from gistpoint.core.tasks.folder import read_answer, write_task
from gistpoint.core.tasks.model import Answer, Mode, Task
from gistpoint.sessions.tasks import TaskStore
from gistpoint.tui.cli import DONE, NEGATIVE, build_entrypoint_runner
from gistpoint.tui.commands.gist_scores import print_evidence, print_score
from gistpoint.tui.commands.output import ProgressLine, print_json, print_text
from gistpoint.tui.commands.sources import spec_of
from gistpoint.tui.services import is_our_demo

_KEPT = (
    "{id} is there already, with other settings, and keeps them. To attempt it with those asked for, "
    "`gistpoint solve {id} --gist-settings FILE` with this in FILE:"
)


def new(options: argparse.Namespace) -> int:
    """Make gist tasks; each made one is a line of standard output that begins with its id."""
    named = [parse_entrypoint(command) for command in options.entrypoint]
    if not named and options.sample < 1:
        raise UserError("There is nothing to make.", hint="Name an --entrypoint, or draw some with --sample N.")
    settings = _settings(options)
    require_consistent(settings, is_test=all(entrypoint.is_test for entrypoint in named))
    from gistpoint.sandbox.environments.sources import fetch_repository

    spec = spec_of(options, options.source)
    runner = build_entrypoint_runner(options)
    with ProgressLine() as progress, tempfile.TemporaryDirectory(prefix="gistpoint-gists-") as scratch:
        repository = fetch_repository(
            spec,
            Path(scratch),
            Locations.of_user().cache,
            isolation=runner.backend,
            on_line=progress.line,
            on_detail=progress.detail,
        )
        examination = Examination(
            repository, runner, options.allow_failing, tuple(options.compared), on_progress=progress.making
        )
        made, refused = _made(named, examination, settings, options, progress)
    if options.json:
        print_json("gistpoint.gists/1", {"made": made, "refused": refused})
    elif len(named) == 1 and refused:
        print_text(f"{refused[0]['reason']}: {refused[0]['message']}\n{refused[0]['hint']}".rstrip())
    return DONE if made else NEGATIVE


def _made(
    named: list[Entrypoint],
    examination: Examination,
    settings: GistSettings,
    options: argparse.Namespace,
    progress: ProgressLine,
) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """Write a task of each entrypoint that is fit for one; return what to tell of these, and of those refused."""
    budgets = Budgets.of_steps(options.steps)
    provenance = {"gistpoint": __version__, "backend": examination.runner.backend.name}
    provenance |= {} if named else {"sample": options.sample, "seed": options.seed}
    made: list[dict[str, Any]] = []
    refused: list[dict[str, str]] = []
    for entrypoint in _wanted(named, examination, options):
        if not named and len(made) == options.sample:
            break
        try:
            answer = examination.examine(entrypoint)
        except NoGistError as refusal:
            progress.line(f"  {entrypoint.text}: {refusal.reason}: {refusal.message}")
            told = {"reason": refusal.reason, "message": refusal.message, "hint": refusal.hint}
            refused.append({"entrypoint": entrypoint.text, **told})
            continue
        task = write_gist_task(
            examination.repository,
            entrypoint,
            answer,
            Locations.of_user().tasks,
            settings=settings,
            budgets=budgets,
            provenance=provenance,
        )
        row = {"id": task.id, "entrypoint": entrypoint.text, "difficulty": asdict(answer.difficulty)}
        if wanted := differing(replace(task, gist=settings, budgets=budgets), task):
            progress.line(_KEPT.format(id=task.short_id))
            for line in toml_lines(wanted):
                progress.line(f"    {line}")
            row["other_settings"] = wanted
        made.append(row)
        if not options.json:
            print_text(f"{task.id}  {entrypoint.text}")
    return made, refused


def _wanted(named: list[Entrypoint], examination: Examination, options: argparse.Namespace) -> Iterator[Entrypoint]:
    if named:
        return iter(named)
    return (one.entrypoint for one in candidates(examination, options.sample, options.seed))


def _settings(options: argparse.Namespace) -> GistSettings:
    budget = options.score_budget
    return GistSettings(
        execution=options.execution,
        strategy=options.strategy,
        give_test=options.give_test,
        tools=tuple(dict.fromkeys(options.tools)),
        score_budget=None if budget == UNLIMITED else budget,
    )


def reference(options: argparse.Namespace) -> int:
    """Make the reference gist of a task and write it into the answer."""
    task, answer, judge = _judge(options)
    with ProgressLine() as progress, _interruptible() as cancel:

        def tell(query: int, lines: int) -> None:
            progress.detail(f"run {query}: {lines} lines")

        progress.making(MakingProgress(f"reference gist of {task.short_id}"))
        maker = ReferenceMaker(judge, time.monotonic, options.seconds, tell, cancel)
        found = maker.make()
    write_task(task, replace(answer, gist=replace(judge.answer, reference=found)))
    values = {key: value for key, value in asdict(found).items() if key != "text"}
    if options.json:
        text = {"text": found.text} if options.show else {}
        print_json("gistpoint.gist-reference/1", {"id": task.id, "runs": maker.queries, **values, **text})
    else:
        if options.show:
            print_text(found.text)
        rates = f"execution {found.line_execution or 0:.1f}, existence {found.line_existence or 0:.1f}"
        told = f"faithful, {rates}" if found.faithful else f"not faithful: {found.reason}"
        print_text(f"{task.short_id}: {told} ({maker.queries} runs, {found.seconds:.0f} s)")
    return DONE if found.faithful else NEGATIVE


def score(options: argparse.Namespace) -> int:
    """Score a gist and print every figure with its evidence."""
    task, _, judge = _judge(options)
    try:
        gist = Path(options.file).read_text("utf-8", "surrogateescape")
    except OSError as error:
        raise UserError(f"{options.file} can't be read: {error.strerror}.", hint="Name the file of a gist.") from error
    with ProgressLine() as progress, _interruptible() as cancel:
        judgement = judge.judge(gist, on_progress=lambda at: progress.making(MakingProgress(at.step)), cancel=cancel)
    lines = line_evidence(judgement.score, judgement.spliced)
    if options.json:
        record = {**score_record(judgement.score), "flips": judgement.flips, "lines": evidence_rows(lines)}
        print_json("gistpoint.gist-score/1", {"id": task.id, "backend": judge.runner.backend.name, **record})
    else:
        print_score(judgement)
        if options.lines:
            print_evidence(lines, gist)
    return DONE if judgement.score.execution_fidelity else NEGATIVE


def _judge(options: argparse.Namespace) -> tuple[Task, Answer, GistJudge]:
    locations = Locations.of_user()
    task = TaskStore(locations.tasks, locations.demo).find(options.task)
    if task.mode is not Mode.GIST:
        raise UserError(f"The task {task.short_id} is no gist.", hint="`gistpoint task list` shows which are.")
    answer = read_answer(task)
    runner = build_entrypoint_runner(options, demo=is_our_demo(task, locations))
    return task, answer, GistJudge(task, answer.gist_answer, runner)


@contextmanager
def _interruptible() -> Iterator[CancelToken]:
    """Turn the first Ctrl-C into a cancel; the second ends the program as ever."""
    cancel = CancelToken()

    def stop(*_: object) -> None:
        cancel.cancel()
        signal(SIGINT, before)

    before = signal(SIGINT, stop)
    try:
        yield cancel
    finally:
        signal(SIGINT, before)
