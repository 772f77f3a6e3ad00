"""`gistpoint gist new`: make gist tasks from a repository."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gistpoint.core.entrypoints.command import command_line
from gistpoint.core.errors import CancelledError, UserError
from gistpoint.core.generation.settings import SourceSpec, SuiteNeeds
from gistpoint.core.kinds.gist.making import FetchRepository, GistResults, MadeGist, MakeGists, make_gists
from gistpoint.core.kinds.gist.model import STRATEGIES
from gistpoint.core.kinds.gist.overrides import toml_lines
from gistpoint.core.kinds.gist.tools import OPTIONAL_TOOLS
from gistpoint.core.kinds.gist.trace import shown_difficulty
from gistpoint.core.kinds.titles import author_title
from gistpoint.core.locations import Locations
from gistpoint.core.metrics.bars import TOP
from gistpoint.core.requests import IsolationChoice, Request
from gistpoint.core.running import RunContext
from gistpoint.core.tasks.model import Task
from gistpoint.core.tasks.names import word_name
from gistpoint.core.tasks.repository import Repository
from gistpoint.object_graph import build_entrypoint_runner
from gistpoint.tui.commands.arguments import ISOLATION, JSON, SUITE, settled_source
from gistpoint.tui.commands.command import DONE, NEGATIVE
from gistpoint.tui.commands.gist_listing import reference_record, shown_reference
from gistpoint.tui.commands.options import CALLED, CliCommand, OptionTable, argument, option
from gistpoint.tui.commands.output import print_json, print_table, print_text
from gistpoint.tui.commands.progress import ProgressLine, long_work

if TYPE_CHECKING:
    from gistpoint.core.outcomes import BackendRecord
    from gistpoint.sandbox.environments.images import ImageSpec

_KEPT = (
    "{id} already exists with different settings, and keeps them. To attempt it with the requested"
    " settings, run `gistpoint solve {id} --gist-settings FILE` with this FILE:"
)
_INSTANCES = (
    "The entrypoint is `{command}`: parameters are left out, and all instances of the test are run."
    " With --one-parameter, the brief names only the given one."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageChoice(Request):
    """A request to take a repository and its environment from a Docker image."""

    image: str = ""
    workdir: str = ""
    python: str = ""
    pull: bool = False

    def spec(self, source: str, suite: SourceSpec) -> ImageSpec | None:
        """Return the requested image; None if there is none.

        Raises `UserError` if options contradict each other, or if the source, or the folder in the image, is
        missing.
        """
        from gistpoint.sandbox.environments.images import ImageSpec

        if not self.image:
            if self.workdir or self.python or self.pull:
                raise UserError("--workdir, --python and --pull need an image.", hint="Name it with --image.")
            if not source:
                raise UserError(
                    "No source was given.", hint="Name one, or an image with --image and --workdir."
                )
            return None
        if not self.workdir:
            raise UserError(
                "The folder of the repository in the image is missing.", hint="Add `--workdir /testbed`."
            )
        if suite.extra_requirements or suite.exclude_newer:
            raise UserError(
                "An image is the whole environment: --with and --exclude-newer can't add to it.",
                hint="Leave them out, or install what is missing in the image and give the new digest.",
            )
        return ImageSpec(
            self.image, self.workdir, self.python, self.pull, suite.pytest_args, suite.build_steps
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NewGists(Request):
    """A request to make gist tasks from a repository."""

    source: str = ""
    command: tuple[str, ...] = ()
    origin: ImageChoice = field(default_factory=ImageChoice)
    gists: MakeGists = field(default_factory=MakeGists)
    suite: SuiteNeeds = field(default_factory=SuiteNeeds)
    json: bool = False
    isolation: IsolationChoice = field(default_factory=IsolationChoice)
    called: tuple[str, ...] = ()

    def settings_of_gists(self) -> MakeGists:
        """Return the requested gists, with the command at the end of the line added.

        An image replaces the source, so the first word belongs to the command.
        """
        command = [self.source, *self.command] if self.origin.image else self.command
        if not any(command):
            return self.gists
        return replace(self.gists, entrypoints=(*self.gists.entrypoints, shlex.join(command)))


def new(request: NewGists) -> int:
    """Make gist tasks, and print a line for each, which begins with its id. Return 1 if none was made.

    Raises `CancelledError` if this was stopped, after printing the results so far.
    """
    asked = request.settings_of_gists()
    named = asked.named()
    spec = request.suite.of(request.source)
    image = request.origin.spec(request.source, spec)
    if image is None:
        spec = replace(spec, source=settled_source(spec.source, request.called))
    runner = build_entrypoint_runner(request.isolation, image=image is not None)
    results = GistResults()
    stopped: CancelledError | None = None
    try:
        with long_work(quiet=request.json, kept="The tasks made so far are kept.") as work:
            for text, entrypoint in zip(asked.entrypoints, named, strict=True):
                drops_parameter = entrypoint.is_test and "[" in text and not asked.terms.one_parameter
                if drops_parameter:
                    work.progress.line(_INSTANCES.format(command=command_line(entrypoint)), stamped=False)
            make_gists(
                asked,
                named,
                _fetching(spec, image, runner.backend),
                runner,
                Locations.of_user().tasks,
                results,
                on_kept=partial(_print_kept, work.progress),
                on_made=(lambda gist: None) if request.json else _print_made,
                max_seconds=request.suite.max_suite_seconds,
                run=work.run,
            )
    except CancelledError as error:
        stopped = error
    if request.json:
        _print_json(results)
    else:
        _print_refused(results, one=len(named) == 1, named=bool(named))
    if stopped is not None:
        raise stopped
    return DONE if results.made else NEGATIVE


def _fetching(spec: SourceSpec, image: ImageSpec | None, backend: BackendRecord) -> FetchRepository:
    """Return a function that fetches a source or image as a repository, with data for the provenance."""

    def fetch(scratch: Path, run: RunContext) -> tuple[Repository, Mapping[str, Any]]:
        from gistpoint.sandbox.environments.images import fetch_image
        from gistpoint.sandbox.pools import SandboxHarness

        if image is None:
            return SandboxHarness.on(backend).fetch(spec, scratch, run), {}
        fetched = fetch_image(image, scratch, run=run)
        return fetched.repository, {"image": fetched.record}

    return fetch


def _print_kept(progress: ProgressLine, task: Task, settings: Mapping[str, Any]) -> None:
    progress.line(_KEPT.format(id=task.short_id), stamped=False)
    for line in toml_lines(settings):
        progress.line(f"    {line}", stamped=False)


def _print_made(gist: MadeGist) -> None:
    reference = "" if gist.reference is None else f"; reference {shown_reference(gist.reference)}"
    names = f"{gist.task.id}  {word_name(gist.task.id)}  {gist.entrypoint}"
    print_text(f"{names}  {shown_difficulty(gist.difficulty)}{reference}")


def _print_json(results: GistResults) -> None:
    made = [
        {
            "id": gist.task.id,
            "title": author_title(gist.task),
            "entrypoint": gist.entrypoint,
            "difficulty": asdict(gist.difficulty),
            **({"other_settings": gist.other_settings} if gist.other_settings else {}),
            "reference": reference_record(gist.reference),
        }
        for gist in results.made
    ]
    refused = [asdict(one) for one in results.refused]
    print_json("gistpoint.gists/1", {"made": made, "refused": refused, "reasons": results.reasons})


def _print_refused(results: GistResults, *, one: bool, named: bool) -> None:
    """Print why entrypoints were refused: a message if only `one` was named, otherwise a table of reasons."""
    if not results.refused:
        return
    first = results.refused[0]
    if one:
        print_text(f"{first.reason}: {first.message}\n{first.hint}".rstrip())
        return
    examples = {row.reason: row.entrypoint for row in reversed(results.refused)}
    print_table(
        ["refused", "entrypoints" if named else "tests", "such as"],
        [[reason, str(number), examples[reason]] for reason, number in results.reasons.items()],
    )


_IMAGE = OptionTable(
    {
        "image": option("the image; a tag is resolved to its digest", metavar="NAME@sha256:DIGEST"),
        "workdir": option("the folder of the repository in the image", metavar="PATH"),
        "python": option(
            "the image's interpreter (default: that of the conda environment testbed, or else the python on"
            " its PATH)",
            metavar="PATH",
        ),
        "pull": option("pull the image if it is not on the engine"),
    },
    title="a repository in a Docker image, instead of a source",
)
_DRAW = OptionTable(
    {
        "sample": option(
            "draw N tests of every difficulty; refused tests are replaced by others, as long as"
            " there are any",
            metavar="N",
        ),
        "hard": option(
            f"the N tests with the most calls and the N that touch the most files (default: {TOP})",
            metavar="N",
            bare=TOP,
        ),
        "among": option("trace only M tests for --hard (default: all)", metavar="M"),
        "seed": option("seed of the draw (default: {default})"),
    },
    title="tests of the suite, instead of an entrypoint",
)
_TERMS = OptionTable(
    {
        "execution": option("allow running code before the hand-in"),
        "strategy": option("advice to add to the brief", choices=tuple(filter(None, STRATEGIES))),
        "give_test": option("put the test into the brief, and begin the gist with it"),
        "one_parameter": option(
            "name only one parameter of the test in the brief: the command's, or else the first; all are"
            " scored"
        ),
        "tools": option("offer this tool as well", "--tool", choices=tuple(OPTIONAL_TOOLS)),
        "steps": option("limit of tool calls (default: {default})", metavar="N"),
        "score_budget": option(
            "limit of uses of score_gist in an attempt that counts (default: {default})", metavar="N"
        ),
    },
    title="the solver's tools and knowledge",
)
_REFERENCE = OptionTable(
    {
        "no_reference": option("don't try to make a reference gist"),
        "seconds": option(
            "time for reducing the reference gist (default: {default}); `gist reference` searches longer",
            metavar="S",
        ),
    },
    title="the reference gist, which shows that a task has a solution",
)
_GIST_OPTIONS = OptionTable(
    {
        "entrypoints": option(
            "'pytest path::test', 'python -m package ARGUMENTS', 'python file.py', 'python -c CODE' or a"
            " console script of the package; may be given several times for several tasks",
            "--entrypoint",
            metavar="COMMAND",
        ),
        "stdin": option("standard input of the programs", metavar="FILE"),
        "env": option(
            "a variable for the commands; they get none of your other variables", metavar="NAME=VALUE"
        ),
        "draw": _DRAW,
        "allow_failing": option("also accept entrypoints that fail on the original"),
        "compared": option(
            "a file that the command writes and whose content must be the same",
            "--compare-file",
            metavar="PATH",
        ),
        "terms": _TERMS,
        "reference": _REFERENCE,
    }
)
_SUITE = SUITE.with_options(
    pytest_args=option("options for pytest, such as '-o asyncio_mode=auto'", "--pytest-args", metavar="ARGS"),
    build_steps=option(
        "shell command to run before each run of the original", "--build-step", metavar="COMMAND"
    ),
    max_suite_seconds=option(
        "refuse a command that takes longer on the original (default: {default})",
        "--max-suite-seconds",
        metavar="S",
    ),
)
NEW = CliCommand(
    NewGists,
    new,
    {
        "source": argument("SOURCE", "name==version, a folder, or git+URL@commit"),
        "command": argument("-- COMMAND", "an entrypoint, after a source or the image's options"),
        "origin": _IMAGE,
        "gists": _GIST_OPTIONS,
        "suite": _SUITE,
        "json": JSON,
        "isolation": ISOLATION,
        "called": CALLED,
    },
    about=(
        "Runs each entrypoint on the original three times, then once alone in an empty folder and once"
        " traced, and makes a task from it or reports why it can't. The exit code is 1 if no task was made."
    ),
)
