"""Makes gist tasks of one repository: examines entrypoints, writes tasks, and makes reference gists."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from gistpoint import __version__
from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.entrypoints.command import (
    Entrypoint,
    command_line,
    parameter_in,
    parse_entrypoint,
    with_input,
)
from gistpoint.core.entrypoints.runs import EntrypointRunner
from gistpoint.core.errors import InfrastructureError, UserError, cause
from gistpoint.core.kinds.folder import read_answer, write_task
from gistpoint.core.kinds.gist.answer import GistAnswer, ReferenceGist, gist_answer
from gistpoint.core.kinds.gist.drawing import EntrypointCandidate, candidates, hardest
from gistpoint.core.kinds.gist.intake import Examination, NoGist, NoGistError, write_gist_task
from gistpoint.core.kinds.gist.judge import GistJudge
from gistpoint.core.kinds.gist.model import UNLIMITED, GistSettings, with_settings
from gistpoint.core.kinds.gist.overrides import differing, require_consistent
from gistpoint.core.kinds.gist.references import ReferenceMaker, reference_of
from gistpoint.core.kinds.gist.trace import Difficulty
from gistpoint.core.requests import LOCAL, Count, Natural, Positive, Request
from gistpoint.core.running import UNATTENDED, RunContext, RunProgress
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Answer, Task
from gistpoint.core.tasks.repository import MAX_SUITE_SECONDS, Repository
from gistpoint.core.text import last_lines, plural
from gistpoint.core.unfinished import scratch_folder

FetchRepository = Callable[[Path, RunContext], tuple[Repository, Mapping[str, Any]]]
"""A function that fetches a repository below a folder, and returns it with the provenance of its tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawTests(Request):
    """A request to choose tests from a suite."""

    sample: Natural = 0
    """The number of tests to choose across all difficulties; 0 for none."""
    hard: Count = 0
    """The number of tests with the most calls, and of tests with the most files; 0 for none."""
    among: Natural = 0
    """The number of tests that are traced to find the hard ones; 0 for all."""
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GistTerms(Request):
    """A request to set the permissions of the solver and the contents of the brief."""

    execution: bool = False
    strategy: str = ""
    give_test: bool = False
    one_parameter: bool = False
    """Whether the brief names only one parameter of a test: the one in the command, or the first."""
    tools: tuple[str, ...] = ()
    steps: Count = 50
    score_budget: int = 0

    @property
    def settings(self) -> GistSettings:
        """The settings of the tasks."""
        return GistSettings(
            execution=self.execution,
            strategy=self.strategy,
            give_test=self.give_test,
            tools=tuple(dict.fromkeys(self.tools)),
            score_budget=None if self.score_budget == UNLIMITED else self.score_budget,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeReference(Request):
    """A request to make a reference gist and reduce it for up to `seconds`, or to make none."""

    no_reference: bool = False
    seconds: Positive = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeGists(Request):
    """A request to make gist tasks of a repository."""

    entrypoints: tuple[str, ...] = ()
    """Commands as a person types them."""
    stdin: Annotated[Path | None, LOCAL] = None
    """The file that the named commands read from their standard input."""
    env: tuple[str, ...] = ()
    """Variables of the named commands, as `NAME=VALUE`."""
    draw: DrawTests = field(default_factory=DrawTests)
    allow_failing: bool = False
    compared: tuple[str, ...] = ()
    """Files that a command writes and that are compared."""
    terms: GistTerms = field(default_factory=GistTerms)
    reference: MakeReference = field(default_factory=MakeReference)

    def named(self) -> list[Entrypoint]:
        """Return the named entrypoints, with their input.

        Raises `UserError` if nothing is to be made, or if parts of the request contradict each other.
        """
        stdin, variables = self._input()
        named = [with_input(parse_entrypoint(text), stdin, variables) for text in self.entrypoints]
        ways = sum(map(bool, (named, self.draw.sample, self.draw.hard)))
        if not ways:
            raise UserError(
                "There is nothing to make.",
                hint="Name an --entrypoint, or draw some with --sample N or --hard.",
            )
        if ways > 1:
            raise UserError(
                "Entrypoints are either named or drawn with --sample or --hard.",
                hint="Give only one of the three.",
            )
        require_consistent(self.terms.settings, is_test=all(entrypoint.is_test for entrypoint in named))
        return named

    def _input(self) -> tuple[str, dict[str, str]]:
        """Return the standard input and the variables that are part of the commands.

        Raises `UserError` if standard input can't be read as UTF-8, if a variable has no value, or if either
        is given for commands that are drawn and not named.
        """
        has_input = self.stdin or self.env
        is_drawn = self.draw.sample or self.draw.hard
        if has_input and is_drawn:
            raise UserError(
                "--stdin and --env apply only to named commands.", hint="Name them with --entrypoint."
            )
        unset = next((text for text in self.env if "=" not in text), None)
        if unset is not None:
            raise UserError(
                f"--env {unset} has no value.",
                hint=f"Write --env {unset}=VALUE; variables of your shell are not passed on.",
            )
        variables = dict(text.split("=", 1) for text in self.env)
        if self.stdin is None:
            return "", variables
        try:
            return self.stdin.read_bytes().decode("utf-8"), variables
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(
                f"{self.stdin} can't be read as UTF-8: {cause(error)}.", hint="Name a text file."
            ) from error


@dataclass(frozen=True, slots=True)
class MadeGist:
    """A task that was made, or that existed already."""

    task: Task
    entrypoint: str
    difficulty: Difficulty
    reference: ReferenceGist | None
    """The reference gist; None if none was requested."""
    other_settings: Mapping[str, Any]
    """The requested settings that an existing task does not have."""


@dataclass(frozen=True, slots=True)
class RefusedEntrypoint:
    """An entrypoint from which no task could be made, and why."""

    entrypoint: str
    reason: str
    message: str
    hint: str


@dataclass
class GistResults:
    """The tasks made so far, and the refused entrypoints; both are also valid after a stop."""

    made: list[MadeGist] = field(default_factory=list)
    refused: list[RefusedEntrypoint] = field(default_factory=list)

    @property
    def reasons(self) -> dict[str, int]:
        """The number of refused entrypoints by reason, most frequent first."""
        return dict(Counter(one.reason for one in self.refused).most_common())


OnMade = Callable[[MadeGist], None]
OnKept = Callable[[Task, Mapping[str, Any]], None]
"""A function called with a task that existed already, and the requested settings that it does not have."""


def make_gists(
    asked: MakeGists,
    named: list[Entrypoint],
    fetch: FetchRepository,
    runner: EntrypointRunner,
    tasks: Path,
    results: GistResults,
    *,
    on_kept: OnKept = lambda task, settings: None,
    on_made: OnMade = lambda gist: None,
    max_seconds: float = MAX_SUITE_SECONDS,
    run: RunContext = UNATTENDED,
) -> None:
    """Make the tasks in the folder `tasks`, and add each outcome to `results` immediately.

    `named` are the entrypoints of the request: its standard input may be a pipe, which can be read only once.
    `on_kept` is called before the reference gist of a task is made, and `on_made` after it. An original that
    takes more than `max_seconds` is refused. Raises `CancelledError` when cancelled, and any error that
    `fetch` raises.
    """
    with scratch_folder("gists") as scratch:
        repository, origin = fetch(Path(scratch), run)
        examination = Examination(
            repository, runner, asked.allow_failing, asked.compared, run=run, max_seconds=max_seconds
        )
        wanted = asked.draw.sample or len(named)
        _Making(asked, examination, tasks, results, origin, on_kept, on_made, wanted).make(named)


@dataclass
class _Making:
    """Makes one repository's tasks."""

    asked: MakeGists
    examination: Examination
    tasks: Path
    results: GistResults
    origin: Mapping[str, Any]
    on_kept: OnKept
    on_made: OnMade
    wanted: int
    """The number of tasks to be made; 0 if it is unknown."""
    current: str = ""
    """The entrypoint whose task is being made."""

    def make(self, named: list[Entrypoint]) -> None:
        """Make a task of each named entrypoint, or of chosen ones."""
        draw = self.asked.draw
        if named:
            for entrypoint, text in zip(named, self.asked.entrypoints, strict=True):
                self._make_one(entrypoint, {}, parameter_in(text))
        elif draw.sample:
            drawn = candidates(self.examination, draw.sample, draw.seed, self._refuse)
            self._make_until_enough(drawn, {"sample": draw.sample, "seed": draw.seed})
        else:
            self._make_hardest(draw)

    def _make_until_enough(self, drawn: Iterator[EntrypointCandidate], how: Mapping[str, Any]) -> None:
        for candidate in drawn:
            self._make_one(candidate.entrypoint, how)
            if len(self.results.made) == self.wanted:
                return
        self.examination.run.note(f"{len(self.results.made)} of {self.wanted}: no test of the suite is left.")

    def _make_hardest(self, draw: DrawTests) -> None:
        """Make tasks of the hard subset; the next hardest test replaces a test that can't become a task."""
        how = {"hard": draw.hard, "among": draw.among, "seed": draw.seed}
        ranked = hardest(self.examination, draw.hard, draw.seed, self._refuse, among=draw.among)
        candidate = next(ranked, None)
        while candidate is not None:
            unusable = not self._make_one(candidate.entrypoint, how)
            try:
                candidate = ranked.send(unusable)
            except StopIteration:
                return

    def _refuse(self, entrypoint: Entrypoint, refusal: NoGistError) -> None:
        """Record a refusal; after some of one kind, explain them once, and then only count them."""
        command = command_line(entrypoint)
        refused = RefusedEntrypoint(command, refusal.reason, refusal.message, refusal.hint)
        self.results.refused.append(refused)
        alike = self.results.reasons[refused.reason]
        if alike <= _SHOWN_OF_A_KIND:
            self.examination.run.note(f"  {command}: {refusal.reason}: {refusal.message}")
        if alike == _SHOWN_OF_A_KIND:
            for line in _explained(refused):
                self.examination.run.note(line)

    def _make_one(self, entrypoint: Entrypoint, how: Mapping[str, Any], parameter: str = "") -> bool:
        """Make the task of an entrypoint; return False if it can't become a task.

        `parameter` is the one that the command names, if any.
        """
        self.current = command_line(entrypoint)
        run = RunContext(self.examination.run.cancel, self._report)
        try:
            answer = replace(self.examination, run=run).examine(entrypoint)
            settings = self._settings(entrypoint, answer, parameter)
        except NoGistError as refusal:
            self._refuse(entrypoint, refusal)
            return False
        task, other = self._write(entrypoint, answer, settings, how)
        if other:
            self.on_kept(task, other)
        reference = None if self.asked.reference.no_reference else self._make_reference(task, run)
        made = MadeGist(task, self.current, answer.difficulty, reference, other)
        self.results.made.append(made)
        self.on_made(made)
        return True

    def _settings(self, entrypoint: Entrypoint, answer: GistAnswer, parameter: str) -> GistSettings:
        """Return the settings of a task, with the parameter that its brief names if one is requested.

        Raises `NoGistError` if the test does not have the parameter, or has none.
        """
        settings = self.asked.terms.settings
        if not self.asked.terms.one_parameter:
            return settings
        known = answer.parameters(entrypoint)
        if not known:
            raise NoGistError(
                NoGist.NO_SUCH_TEST,
                f"{entrypoint.text} is not a single test with parameters, so its brief can't name one.",
                hint="Leave --one-parameter out.",
            )
        if parameter and parameter not in known:
            raise NoGistError(
                NoGist.NO_SUCH_TEST,
                f"{entrypoint.text} does not have the parameter {parameter!r}.",
                hint=f"It has {', '.join(known[:_MOST_LISTED])}.",
            )
        return replace(settings, parameter=parameter or known[0])

    def _write(
        self, entrypoint: Entrypoint, answer: GistAnswer, settings: GistSettings, how: Mapping[str, Any]
    ) -> tuple[Task, dict[str, Any]]:
        """Return the task, and the requested settings that it does not have because it existed already."""
        budgets = Budgets.of_steps(self.asked.terms.steps)
        backend = self.examination.runner.backend.name
        task = write_gist_task(
            self.examination.repository,
            entrypoint,
            answer,
            self.tasks,
            settings=settings,
            budgets=budgets,
            provenance={"gistpoint": __version__, "backend": backend, **self.origin, **how},
        )
        return task, differing(replace(with_settings(task, settings), budgets=budgets), task)

    def _make_reference(self, task: Task, run: RunContext) -> ReferenceGist:
        """Try to make a task's reference gist, store the outcome, and return it; a faithful one is kept."""
        answer = read_answer(task)
        known = gist_answer(answer)
        if known.reference is not None and known.reference.faithful:
            return known.reference
        run.progress(RunProgress(step=_REFERENCE))
        judge = GistJudge(task, known, self.examination.runner)

        def on_query(query: int, lines: int) -> None:
            run.progress(RunProgress(f"run {query}: {plural(lines, 'line')}", step=_REFERENCE))

        try:
            return store_reference(judge, answer, self.asked.reference.seconds, on_query, run)
        except InfrastructureError as error:
            return _store(judge, answer, ReferenceGist("", False, reason=str(error)))

    def _report(self, progress: RunProgress) -> None:
        """Report the progress on one of several entrypoints as a part of the whole."""
        if self.wanted > 1 and progress.step:
            words = ": ".join(filter(None, (progress.step, progress.phase, self.current)))
            progress = RunProgress(words, len(self.results.made), self.wanted, step="making tasks")
        self.examination.run.progress(progress)


_SHOWN_OF_A_KIND = 5
_WHAT_HELPS = {
    NoGist.FAILS: "Supply what they need with --with PACKAGE, or accept them with --allow-failing.",
    NoGist.SKIPPED: "Supply what they need with --with PACKAGE.",
    NoGist.TOO_SLOW: "Raise the limit with --max-suite-seconds.",
    NoGist.COULD_NOT_RUN: "Give the options that the suite needs with --pytest-args or --build-step.",
}
_OTHER_TESTS = "Draw from other tests: leave these out with --pytest-args, such as --ignore=FILE."


def _explained(refused: RefusedEntrypoint) -> list[str]:
    """Return, as lines, the cause of a frequent refusal and what the user can do."""
    advice = _WHAT_HELPS.get(NoGist(refused.reason), _OTHER_TESTS)
    cause = last_lines(refused.hint).splitlines()
    return [
        f"{_SHOWN_OF_A_KIND} tests were refused as {refused.reason}; others are only counted. {advice}",
        *([] if not cause else [f"  The last one: {cause[0]}", *(f"    {line}" for line in cause[1:])]),
    ]


_REFERENCE = "reference gist"
_MOST_LISTED = 10


def store_reference(
    judge: GistJudge,
    answer: Answer,
    seconds: float,
    on_query: Callable[[int, int], None],
    run: RunContext = UNATTENDED,
) -> ReferenceGist:
    """Make the reference gist of the judge's task, reduced for up to `seconds`, and return the stored one.

    A stored gist that is better is kept. `on_query` is called before each run, with its number and the number
    of lines in the text. Raises `CancelledError` when cancelled and `InfrastructureError` if the isolation
    failed; then nothing is stored.
    """

    def maker(given: GistJudge) -> ReferenceMaker:
        return ReferenceMaker(given, time.monotonic, seconds, on_query, run.cancel)

    known, found = judge.answer.reference, reference_of(judge, maker)
    if known is not None and is_better(known, found):
        return known
    return _store(judge, answer, found)


def is_better(known: ReferenceGist, found: ReferenceGist) -> bool:
    """Return whether a reference gist is better than another: faithful, and the other isn't or is longer."""
    if not known.faithful or not found.faithful:
        return known.faithful
    return len(physical_lines(known.text)) < len(physical_lines(found.text))


def _store(judge: GistJudge, answer: Answer, found: ReferenceGist) -> ReferenceGist:
    write_task(judge.task, replace(answer, of_kind=replace(judge.answer, reference=found)))
    return found
