"""`gistpoint gist new`."""

from __future__ import annotations

import argparse
import shlex
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gistpoint import __version__
from gistpoint.core.entrypoints.command import Entrypoint, command_line, parse_entrypoint, with_input
from gistpoint.core.errors import CancelledError, InfrastructureError, UserError
from gistpoint.core.kinds.folder import read_answer, write_task
from gistpoint.core.kinds.gist.answer import ReferenceGist, gist_answer
from gistpoint.core.kinds.gist.drawing import EntrypointCandidate, candidates, hardest
from gistpoint.core.kinds.gist.intake import Examination, NoGistError, write_gist_task
from gistpoint.core.kinds.gist.judge import GistJudge
from gistpoint.core.kinds.gist.model import STRATEGIES, UNLIMITED, GistSettings, with_settings
from gistpoint.core.kinds.gist.overrides import differing, require_consistent, toml_lines
from gistpoint.core.kinds.gist.reference_judge import reference_of
from gistpoint.core.kinds.gist.references import ReferenceMaker
from gistpoint.core.kinds.gist.tools import OPTIONAL_TOOLS
from gistpoint.core.kinds.gist.trace import shown_difficulty
from gistpoint.core.locations import Locations
from gistpoint.core.metrics.bars import TOP
from gistpoint.core.running import NEVER, CancelToken, RunContext, RunProgress
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Task
from gistpoint.tui.commands.arguments import (
    add_isolation,
    add_suite,
    counted,
    isolation_of,
    natural,
    positive,
    settled_source,
    spec_of,
)
from gistpoint.tui.commands.command import DONE, NEGATIVE, Handler
from gistpoint.tui.commands.gist_listing import reference_record, shown_reference
from gistpoint.tui.commands.options import whole
from gistpoint.tui.commands.output import cause, print_json, print_table, print_text
from gistpoint.tui.commands.progress import LongWork, ProgressLine, long_work
from gistpoint.tui.object_graph import build_entrypoint_runner

if TYPE_CHECKING:
    from gistpoint.core.entrypoints.runs import EntrypointRunner
    from gistpoint.core.generation.settings import SourceSpec
    from gistpoint.core.tasks.repository import Repository
    from gistpoint.sandbox.environments.images import ImageSpec

_KEPT = (
    "{id} is there already, with other settings, and keeps them. To attempt it with those asked for, "
    "`gistpoint solve {id} --gist-settings FILE` with this in FILE:"
)
_INSTANCES = "The entrypoint is `{command}`: parameters are left out, and all instances of the test are run."
_SECONDS = 30.0


def new_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint gist new`."""
    parser.description = (
        "Runs each entrypoint three times on the original, once elsewhere and once traced, and makes a "
        "task of it or says why there is none. Exit code 1 if no task was made."
    )
    parser.add_argument(
        "source", metavar="SOURCE", nargs="?", default="", help="name==version, a folder, or git+URL@commit"
    )
    parser.add_argument(
        "command", nargs="*", metavar="-- COMMAND", help="an entrypoint, after a source or the image's options"
    )
    _add_image(parser)
    parser.add_argument(
        "--entrypoint", action="append", default=[], metavar="COMMAND",
        help="'pytest path::test', 'python -m package ARGUMENTS', 'python file.py', 'python -c CODE' or a console "
        "script of the package; several times for several tasks",
    )  # fmt: skip
    parser.add_argument(
        "--stdin", type=Path, metavar="FILE", help="what the programs named read from their standard input"
    )
    parser.add_argument(
        "--env", action="append", default=[], metavar="NAME=VALUE",
        help="a variable for the commands named; they get no other of yours",
    )  # fmt: skip
    _add_draw(parser)
    parser.add_argument("--allow-failing", action="store_true", help="take entrypoints that fail on the original, too")
    parser.add_argument(
        "--compare-file", dest="compared", action="append", default=[], metavar="PATH",
        help="a file that the command writes and that must come out alike",
    )  # fmt: skip
    _add_settings(parser)
    _add_reference(parser)
    add_suite(
        parser,
        pytest_args="options, such as '-o asyncio_mode=auto'",
        build_step="before each original",
        longest="above which a command on the original is too slow",
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_isolation(parser)
    return new


def _add_image(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("a repository in a Docker image, in place of a source")
    group.add_argument("--image", default="", metavar="NAME@sha256:DIGEST", help="the image; a tag is resolved")
    group.add_argument("--workdir", default="", metavar="PATH", help="the folder of the repository in it")
    group.add_argument(
        "--python", default="", metavar="PATH",
        help="its interpreter (default: of the conda environment testbed, else python on its PATH)",
    )  # fmt: skip
    group.add_argument("--pull", action="store_true", help="pull the image if it is not on the engine")


def _add_draw(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("tests of the suite, in place of an entrypoint")
    group.add_argument(
        "--sample", type=natural, default=0, metavar="N",
        help="draw N tests of every difficulty; one that is refused is replaced by another, until none is left",
    )  # fmt: skip
    group.add_argument(
        "--hard", type=counted, nargs="?", const=TOP, default=0, metavar="N",
        help=f"the N tests with the most calls and the N that touch the most files (default: {TOP})",
    )  # fmt: skip
    group.add_argument(
        "--among", type=natural, default=0, metavar="M", help="trace only M tests for --hard (default: all)"
    )
    group.add_argument("--seed", type=whole, default=0, help="of the draw (default: 0)")


def _add_settings(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what the solver may do and is told")
    group.add_argument("--execution", action="store_true", help="code may be run before the hand-in")
    group.add_argument(
        "--strategy", choices=[name for name in STRATEGIES if name], default="", help="advice in the brief"
    )
    group.add_argument("--give-test", action="store_true", help="the brief holds the test, and the gist begins with it")
    group.add_argument(
        "--tool", dest="tools", action="append", default=[], choices=OPTIONAL_TOOLS, help="offer this tool as well"
    )
    group.add_argument("--steps", type=counted, default=50, metavar="N", help="tool calls (default: 50)")
    group.add_argument(
        "--score-budget",
        type=whole,
        default=0,
        metavar="N",
        help="uses of score_gist when it counts (default: 0)",
    )


def _add_reference(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the reference gist, by which a task is known to have a solution")
    group.add_argument("--no-reference", action="store_true", help="don't try to make one")
    group.add_argument(
        "--seconds", type=positive, default=_SECONDS, metavar="S",
        help=f"for reducing it (default: {_SECONDS:g}); `gist reference` goes on with more",
    )  # fmt: skip


def new(options: argparse.Namespace) -> int:
    """Make gist tasks; print a line for each that begins with its id."""
    command = [options.source, *options.command] if options.image else options.command
    written = [shlex.join(command)] if any(command) else []
    stdin, variables = _input(options)
    texts = (*options.entrypoint, *written)
    named = [with_input(parse_entrypoint(text), stdin, variables) for text in texts]
    if not named and not options.sample and not options.hard:
        raise UserError(
            "There is nothing to make.", hint="Name an --entrypoint, or draw some with --sample N or --hard."
        )
    if sum(map(bool, (named, options.sample, options.hard))) > 1:
        raise UserError("Entrypoints are named, or drawn by --sample, or by --hard.", hint="Give one of the three.")
    settings = _settings(options)
    require_consistent(settings, is_test=all(entrypoint.is_test for entrypoint in named))
    spec = spec_of(options, options.source)
    image = _image(options, spec)
    if image is None:
        spec = replace(spec, source=settled_source(spec.source, options.called))
    runner = build_entrypoint_runner(isolation_of(options), image=image is not None)
    making: _Making | None = None
    stopped: CancelledError | None = None
    try:
        with (
            long_work(quiet=getattr(options, "json", False), kept="The tasks that were made are kept.") as work,
            tempfile.TemporaryDirectory(prefix="gistpoint-gists-") as scratch,
        ):
            for entrypoint in (one for text, one in zip(texts, named, strict=True) if one.is_test and "[" in text):
                work.progress.line(_INSTANCES.format(command=command_line(entrypoint)), stamped=False)
            repository, record = _fetched(spec, image, runner, Path(scratch), work)
            examination = Examination(
                repository,
                runner,
                options.allow_failing,
                tuple(options.compared),
                run=work.run,
                max_seconds=options.max_suite_seconds,
            )
            making = _Making(examination, settings, options, work.progress, record, work.cancel)
            making.make(named)
    except CancelledError as error:
        stopped = error
    _print(making, options, one=len(named) == 1)
    if stopped is not None:
        raise stopped
    return DONE if making is not None and making.made else NEGATIVE


def _input(options: argparse.Namespace) -> tuple[str, dict[str, str]]:
    """Return the standard input and the variables that are part of the commands. Raises `UserError`."""
    if (options.stdin or options.env) and (options.sample or options.hard):
        raise UserError("--stdin and --env are part of commands that are named.", hint="Name them with --entrypoint.")
    unnamed = next((text for text in options.env if "=" not in text), None)
    if unnamed is not None:
        raise UserError(f"--env {unnamed} has no value.", hint=f"Write --env {unnamed}=VALUE; nothing is taken over.")
    if options.stdin is None:
        return "", dict(text.split("=", 1) for text in options.env)
    try:
        stdin = options.stdin.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{options.stdin} can't be read as UTF-8: {cause(error)}.",
            hint="Name a text file.",
        ) from error
    return stdin, dict(text.split("=", 1) for text in options.env)


def _print(making: _Making | None, options: argparse.Namespace, *, one: bool) -> None:
    """Print what was refused; the tasks were printed as they were made. None if it was stopped before the first."""
    made, refused, reasons = (making.made, making.refused, making.reasons) if making is not None else ([], [], {})
    if options.json:
        print_json("gistpoint.gists/1", {"made": made, "refused": refused, "reasons": reasons})
    elif one and refused:
        print_text(f"{refused[0]['reason']}: {refused[0]['message']}\n{refused[0]['hint']}".rstrip())
    elif refused:
        examples = {row["reason"]: row["entrypoint"] for row in reversed(refused)}
        print_table(
            ["refused", "tests" if options.sample or options.hard else "entrypoints", "such as"],
            [[reason, str(number), examples[reason]] for reason, number in reasons.items()],
        )


def _image(options: argparse.Namespace, spec: SourceSpec) -> ImageSpec | None:
    """Return the image that is asked for, if any. Raises `UserError` for options that contradict each other."""
    from gistpoint.sandbox.environments.images import ImageSpec

    if not options.image:
        if options.workdir or options.python or options.pull:
            raise UserError("--workdir, --python and --pull are about an image.", hint="Name it with --image.")
        if not options.source:
            raise UserError("There is no source.", hint="Name one, or an image with --image and --workdir.")
        return None
    if not options.workdir:
        raise UserError("The folder of the repository in the image is missing.", hint="Add `--workdir /testbed`.")
    if spec.extra_requirements or spec.exclude_newer:
        raise UserError(
            "An image is the whole environment: --with and --exclude-newer can't add to it.",
            hint="Leave them out, or install what is missing in the image and name the new digest.",
        )
    return ImageSpec(options.image, options.workdir, options.python, options.pull, spec.pytest_args, spec.build_steps)


def _fetched(
    spec: SourceSpec, image: ImageSpec | None, runner: EntrypointRunner, scratch: Path, work: LongWork
) -> tuple[Repository, Mapping[str, Any]]:
    """Return the repository of a source or an image, and what the tasks' provenance says of the image."""
    from gistpoint.sandbox.environments.images import fetch_image
    from gistpoint.sandbox.environments.sources import fetch_repository

    if image is not None:
        fetched = fetch_image(image, scratch, run=work.run)
        return fetched.repository, {"image": fetched.record}
    cache = Locations.of_user().cache
    repository = fetch_repository(
        spec,
        scratch,
        cache,
        isolation=runner.backend,
        on_line=work.progress.stage,
        on_detail=work.progress.detail,
        cancel=work.cancel,
    )
    return repository, {}


@dataclass
class _Making:
    """The tasks that one command makes, and the entrypoints that it refuses."""

    examination: Examination
    settings: GistSettings
    options: argparse.Namespace
    progress: ProgressLine
    record: Mapping[str, Any]
    cancel: CancelToken = NEVER
    wanted: int = 0
    """How many tasks are to be made; 0 if that isn't known."""
    at_work: str = ""
    """The entrypoint that a task is being made of."""
    made: list[dict[str, Any]] = field(default_factory=list)
    refused: list[dict[str, str]] = field(default_factory=list)

    @property
    def reasons(self) -> dict[str, int]:
        """How many entrypoints were refused for which reason, the most frequent first."""
        return dict(Counter(row["reason"] for row in self.refused).most_common())

    def make(self, named: list[Entrypoint]) -> None:
        """Make a task of each entrypoint named, or of those that are drawn."""
        options = self.options
        self.wanted = options.sample or len(named)
        if named:
            for entrypoint in named:
                self._one(entrypoint, {})
        elif options.sample:
            drawn = candidates(self.examination, options.sample, options.seed, self._refuse)
            self._until(drawn, options.sample, {"sample": options.sample, "seed": options.seed})
        else:
            how = {"hard": options.hard, "among": options.among, "seed": options.seed}
            ranked = hardest(self.examination, options.hard, options.seed, self._refuse, among=options.among)
            candidate = next(ranked, None)
            while candidate is not None:
                unusable = not self._one(candidate.entrypoint, how)
                try:
                    candidate = ranked.send(unusable)
                except StopIteration:
                    break

    def _until(self, drawn: Iterator[EntrypointCandidate], wanted: int, how: Mapping[str, Any]) -> None:
        for candidate in drawn:
            self._one(candidate.entrypoint, how)
            if len(self.made) == wanted:
                return
        self.progress.line(f"{len(self.made)} of {wanted}: no test of the suite is left.")

    def _refuse(self, entrypoint: Entrypoint, refusal: NoGistError) -> None:
        self.progress.line(f"  {command_line(entrypoint)}: {refusal.reason}: {refusal.message}")
        told = {"reason": refusal.reason, "message": refusal.message, "hint": refusal.hint}
        self.refused.append({"entrypoint": command_line(entrypoint), **told})

    def _one(self, entrypoint: Entrypoint, how: Mapping[str, Any]) -> bool:
        """Write the task of an entrypoint, and return whether there is one."""
        self.at_work = command_line(entrypoint)
        examination = replace(self.examination, run=RunContext(self.cancel, self._report))
        settings = self.settings
        try:
            answer = examination.examine(entrypoint)
        except NoGistError as refusal:
            self._refuse(entrypoint, refusal)
            return False
        budgets = Budgets.of_steps(self.options.steps)
        backend = examination.runner.backend.name
        task = write_gist_task(
            examination.repository,
            entrypoint,
            answer,
            Locations.of_user().tasks,
            settings=settings,
            budgets=budgets,
            provenance={"gistpoint": __version__, "backend": backend, **self.record, **how},
        )
        row: dict[str, Any] = {
            "id": task.id,
            "entrypoint": command_line(entrypoint),
            "difficulty": asdict(answer.difficulty),
        }
        if wanted := differing(replace(with_settings(task, settings), budgets=budgets), task):
            self.progress.line(_KEPT.format(id=task.short_id), stamped=False)
            for line in toml_lines(wanted):
                self.progress.line(f"    {line}", stamped=False)
            row["other_settings"] = wanted
        reference = None if self.options.no_reference else self._reference(task)
        row["reference"] = reference_record(reference)
        self.made.append(row)
        if not self.options.json:
            told = "" if reference is None else f"; reference {shown_reference(reference)}"
            print_text(f"{task.id}  {command_line(entrypoint)}  {shown_difficulty(answer.difficulty)}{told}")
        return True

    def _reference(self, task: Task) -> ReferenceGist:
        """Try to make the reference gist of a task and store the outcome; a faithful one that is there is kept."""
        answer = read_answer(task)
        known = gist_answer(answer)
        if known.reference is not None and known.reference.faithful:
            return known.reference
        self._report(RunProgress(step="reference gist"))
        judge = GistJudge(task, known, self.examination.runner)

        def maker(given: GistJudge) -> ReferenceMaker:
            return ReferenceMaker(given, time.monotonic, self.options.seconds, self._tell, self.cancel)

        try:
            found = reference_of(judge, maker)
        except InfrastructureError as error:
            found = ReferenceGist("", False, reason=str(error))
        write_task(task, replace(answer, of_kind=replace(known, reference=found)))
        return found

    def _tell(self, query: int, lines: int) -> None:
        self._report(RunProgress(f"run {query}: {lines} lines", step="reference gist"))

    def _report(self, progress: RunProgress) -> None:
        """Show what is done for one of several entrypoints as a part of them all."""
        if self.wanted > 1 and progress.step:
            words = ": ".join(filter(None, (progress.step, progress.phase, self.at_work)))
            progress = RunProgress(words, len(self.made), self.wanted, step="making tasks")
        self.progress.making(progress)


def _settings(options: argparse.Namespace) -> GistSettings:
    budget = options.score_budget
    return GistSettings(
        execution=options.execution,
        strategy=options.strategy,
        give_test=options.give_test,
        tools=tuple(dict.fromkeys(options.tools)),
        score_budget=None if budget == UNLIMITED else budget,
    )
