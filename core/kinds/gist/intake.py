"""Examines entrypoints of a repository on the original, and writes them as folders of gist tasks."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from gistpoint.core.code.packages import packages_of
from gistpoint.core.code.testfiles import is_test_path
from gistpoint.core.entrypoints.command import COMMAND_FILE, Entrypoint, EntrypointKind
from gistpoint.core.entrypoints.programs import console_scripts
from gistpoint.core.entrypoints.runs import DOCTEST, CommandRun, EntrypointRunner, OriginalRun, TestsRun
from gistpoint.core.errors import NegativeVerdictError, TaskError, UserError
from gistpoint.core.kinds.folder import read_task, write_task
from gistpoint.core.kinds.gist.answer import GistAnswer
from gistpoint.core.kinds.gist.brief import gist_template
from gistpoint.core.kinds.gist.fidelity import compare, instance_key, name_masks, normalised
from gistpoint.core.kinds.gist.flags import habits_of
from gistpoint.core.kinds.gist.found_tests import (
    NamesClashError,
    UnwrittenTestError,
    found_tests,
    written_test,
)
from gistpoint.core.kinds.gist.judge import sources_of
from gistpoint.core.kinds.gist.model import (
    GistSettings,
    GistTask,
    command_identity,
    command_version,
    with_settings,
)
from gistpoint.core.kinds.gist.original_test import GistTest, given_test
from gistpoint.core.kinds.gist.overrides import require_consistent
from gistpoint.core.kinds.gist.trace import Trace, difficulty, read_trace
from gistpoint.core.outcomes import Outcome, RunStatus
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.running import UNATTENDED, RunContext
from gistpoint.core.tasks.brief import template_sha256
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.documents import TASK_FILE
from gistpoint.core.tasks.identity import hash_of_ids, task_id
from gistpoint.core.tasks.model import Answer, Brief, Mode, Rules, Suite, Task, ToolLimits
from gistpoint.core.tasks.repository import MAX_SUITE_SECONDS, RUNS, Repository
from gistpoint.core.trees import SourceTree, write_tar
from gistpoint.core.unfinished import made_in

_GRACE_SECONDS = 30.0
_TRACED_TIMES = 3
"""The factor by which a traced run's time limit exceeds that of other runs."""
_OF_THE_RUNNER = frozenset(
    {"pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "exceptiongroup"}
)


class NoGist(StrEnum):
    """The reason why an entrypoint can't become a task; generation counts these reasons."""

    NO_SUCH_TEST = "no_such_test"
    FAILS = "fails"
    SKIPPED = "skipped"
    FLIPS = "flips"
    NEEDS_NETWORK = "needs_network"
    DEPENDS_ON_ITS_PLACE = "depends_on_its_place"
    TOO_SLOW = "too_slow"
    COULD_NOT_RUN = "could_not_run"
    TOUCHES_NOTHING = "touches_nothing_of_the_codebase"
    NEEDED_BY_THE_RUNNER = "needed_by_the_runner"
    INSTALLED_AS_WELL = "installed_as_well"
    NO_SUCH_COMMAND = "no_such_command"
    NAMES_CLASH = "names_clash"


class NoGistError(NegativeVerdictError):
    """The verdict that an entrypoint can't become a task, which is not a user error."""

    def __init__(self, reason: NoGist, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Examination:
    """The examination of one repository's entrypoints."""

    repository: Repository
    runner: EntrypointRunner
    allow_failing: bool = False
    compared_files: tuple[str, ...] = ()
    runs: int = RUNS
    run: RunContext = UNATTENDED
    max_seconds: float = MAX_SUITE_SECONDS
    """The seconds above which a run of a command is too slow; a traced run may take three times as long."""

    @property
    def environment(self) -> EnvironmentPins:
        """The environment of the repository, without arguments that select tests of its suite."""
        return of_one_command(self.repository).environment

    def examine(self, entrypoint: Entrypoint) -> GistAnswer:
        """Return everything that gists will be compared with.

        Raises `NoGistError` if the command can't become a task, and `CancelledError` when cancelled.
        """
        self._require_existing(entrypoint)
        seen: list[OriginalRun] = []
        for number in range(self.runs):
            seen.append(self._run(entrypoint, f"original, run {number + 1} of {self.runs}", hash_seed=number))
            _require_same_outcomes(seen)
            if entrypoint.kind is EntrypointKind.TEST:
                self._require_collected(entrypoint, seen[-1])
            self._require_usable(seen[-1])
        test = self._tests(entrypoint, seen[0])
        self._require_independent(entrypoint, seen)
        traced = self._run(entrypoint, "trace of the original", trace=True)
        if traced.trace is None or _outcomes(traced.run) != _outcomes(seen[0].run):
            raise NoGistError(
                NoGist.COULD_NOT_RUN,
                "The command behaves differently under the tracer, so its difficulty is unknown.",
                hint=traced.reason,
            )
        return self._answer(entrypoint, test, seen, traced)

    def trace(self, entrypoint: Entrypoint) -> Trace:
        """Return the trace of one run.

        Raises `NoGistError` if the run or its trace is not usable, and `CancelledError` when cancelled.
        """
        run = self._run(entrypoint, "", trace=True)
        self._require_usable(run)
        if run.trace is None:
            raise NoGistError(NoGist.COULD_NOT_RUN, "The run reported no trace.", hint=run.reason)
        return _usable_trace(run.trace)

    def _answer(
        self, entrypoint: Entrypoint, test: GistTest | None, seen: list[OriginalRun], traced: OriginalRun
    ) -> GistAnswer:
        tree = self.repository.tree
        trace = traced.trace or {}
        read = _usable_trace(trace)
        owned = owned_names(tree, self.repository.environment.import_roots, read.modules)
        self._require_not_part_of_pytest(owned)
        self._require_no_other_copy(owned)
        tests = _test_files(seen[0].run, read.files)
        if not set(read.files) - tests - {COMMAND_FILE}:
            raise NoGistError(
                NoGist.TOUCHES_NOTHING, "The command does not run any code of the codebase except its test."
            )
        modules = tuple(
            sorted(name for name in set(read.modules.values()) if name.partition(".")[0] in owned)
        )
        masks = name_masks(entrypoint, modules)
        sources = sources_of(tree)
        return GistAnswer(
            originals=tuple(_recorded(normalised(run.run, {**run.places, **masks})) for run in seen),
            owned=owned,
            modules=modules,
            trace=trace,
            difficulty=difficulty(read, sources, tests=tests),
            test=test,
            compared_files=self.compared_files,
            seconds=round(max(run.seconds for run in seen), 2),
            habits=habits_of([run.run.isolation for run in (*seen, traced)]),
        )

    def _require_no_other_copy(self, owned: Iterable[str]) -> None:
        """Raise `NoGistError` if the codebase is also in the environment, where a gist could import it."""
        installed = self.repository.installed
        copies = [f"{name}: {installed[name]}" for name in owned if name in installed]
        if copies:
            raise NoGistError(
                NoGist.INSTALLED_AS_WELL,
                f"The environment contains what a gist may not import ({', '.join(copies)}).",
                hint=(
                    "Make an image in which the codebase is installed from its folder only (`pip"
                    " install -e`)."
                ),
            )

    def _require_not_part_of_pytest(self, owned: Iterable[str]) -> None:
        """Raise `NoGistError` if pytest depends on the codebase: no gist could run without importing it."""
        clash = sorted(set(owned) & _OF_THE_RUNNER)
        if clash:
            raise NoGistError(
                NoGist.NEEDED_BY_THE_RUNNER,
                f"The runner itself needs {clash[0]}, which a gist may not import.",
            )

    def _require_existing(self, entrypoint: Entrypoint) -> None:
        """Raise `NoGistError` if the command names a file or a script that the source does not have."""
        tree = self.repository.tree
        if entrypoint.kind is EntrypointKind.CONSOLE:
            self._require_script(entrypoint.own[0])
        several = entrypoint.kind is EntrypointKind.TESTS
        named = entrypoint.files
        if several:
            named = tuple(word.partition("::")[0] for word in entrypoint.selected)
        for path in named:
            is_folder_of_tests = several and tree.is_directory(path)
            if not is_folder_of_tests and not tree.is_file(path):
                raise NoGistError(NoGist.NO_SUCH_TEST, f"There is no file {path} in the source.")

    def _require_collected(self, entrypoint: Entrypoint, run: OriginalRun) -> None:
        """Raise `NoGistError` if pytest did not find the test, unless the file defines the test."""
        node = entrypoint.node_id
        ids = run.run.tests if isinstance(run.run, TestsRun) else {}
        others = [id for id in ids if id != node and not id.startswith((f"{node}[", f"{node}::"))]
        if ids and not others:
            return
        try:
            if written_test(self.repository.tree, entrypoint.target, entrypoint.qualname) is not None:
                return
        except UnwrittenTestError as error:
            raise NoGistError(NoGist.NO_SUCH_TEST, error.message) from error
        raise NoGistError(
            NoGist.NO_SUCH_TEST,
            f"{entrypoint.target} does not define {entrypoint.qualname}, and pytest does not find it.",
        )

    def _tests(self, entrypoint: Entrypoint, run: OriginalRun) -> GistTest | None:
        """Return the tests that a usable run ran, with their source; None for a program.

        Raises `NoGistError` if a test has no source, or if one file can't contain all of them.
        """
        if not entrypoint.is_test:
            return None
        try:
            return found_tests(self.repository.tree, run)
        except NamesClashError as error:
            raise NoGistError(NoGist.NAMES_CLASH, error.message, hint=error.hint) from error
        except (UnwrittenTestError, SyntaxError, ValueError) as error:
            hint = error.hint if isinstance(error, UserError) else ""
            raise NoGistError(NoGist.NO_SUCH_TEST, str(error), hint=hint) from error

    def _require_script(self, name: str) -> None:
        known = console_scripts(self.repository.environment.metadata)
        if name not in known:
            raise NoGistError(
                NoGist.NO_SUCH_COMMAND,
                f"{name} is neither pytest nor python, nor a console script that the package declares.",
                hint=f"It declares {', '.join(sorted(known)) or 'none'}.",
            )

    def _run(
        self,
        entrypoint: Entrypoint,
        step: str,
        *,
        trace: bool = False,
        elsewhere: bool = False,
        hash_seed: int = 0,
    ) -> OriginalRun:
        if step:
            self.run.step(step)
        run = self.runner.run_original(
            self.repository.tree,
            self.environment,
            entrypoint,
            timeout_s=(self.max_seconds + _GRACE_SECONDS) * (_TRACED_TIMES if trace else 1),
            trace=trace,
            elsewhere=elsewhere,
            hash_seed=hash_seed,
            cancel=self.run.cancel,
        )
        self.run.check()
        return run

    def _require_usable(self, run: OriginalRun) -> None:
        """Raise `NoGistError` if a run took too long, or has no outcome that a task may have."""
        self._require_in_time(run)
        found = run.run
        failure = _failure_of(found)
        finished = found.status is RunStatus.FINISHED
        # Checked before all other failures: without a network, most of them are only symptoms.
        is_failed = not finished or bool(failure)
        if run.network and is_failed:
            raise NoGistError(
                NoGist.NEEDS_NETWORK, f"The command fails and needs {run.network[0]}.", hint=failure
            )
        if isinstance(found, TestsRun) and found.collection_error is not None:
            raise NoGistError(
                NoGist.FAILS, "The test can't be collected.", hint=found.collection_error.message
            )
        nothing_collected = isinstance(found, TestsRun) and not found.tests
        if nothing_collected or not finished:
            reason = run.reason or "No test was collected."
            raise NoGistError(
                NoGist.COULD_NOT_RUN, f"The command did not run: {reason}", hint=run.output[-2000:]
            )
        if failure and not self.allow_failing:
            raise NoGistError(
                NoGist.FAILS,
                "The command fails on the original.",
                hint=f"{failure}\n--allow-failing accepts it.",
            )
        if isinstance(found, TestsRun) and all(
            test.outcome is Outcome.SKIPPED for test in found.tests.values()
        ):
            raise NoGistError(NoGist.SKIPPED, "The test is skipped here: there is nothing to reproduce.")

    def _require_in_time(self, run: OriginalRun) -> None:
        limit_s = self.max_seconds * (_TRACED_TIMES if run.trace else 1)
        if run.run.status is RunStatus.TIMED_OUT or run.seconds - run.waited > limit_s:
            raise NoGistError(
                NoGist.TOO_SLOW,
                f"The command takes longer than {self.max_seconds:g} s.",
                hint="Raise the limit with --max-suite-seconds.",
            )

    def _require_independent(self, entrypoint: Entrypoint, seen: list[OriginalRun]) -> None:
        moved = self._run(entrypoint, "original elsewhere", elsewhere=True)
        masks = name_masks(entrypoint, ())
        recorded = [normalised(run.run, {**run.places, **masks}) for run in seen]
        found = compare(recorded, normalised(moved.run, {**moved.places, **masks}), (), self.compared_files)
        if found.differences:
            first = found.differences[0]
            what = f"{first.test}: {first.what}".lstrip(": ")
            details = [
                f"expected: {first.expected[:500]}",
                f"found: {first.found[:500]}",
                *_reasons_of(moved),
            ]
            raise NoGistError(
                NoGist.DEPENDS_ON_ITS_PLACE,
                f"The command has a different outcome alone in an empty folder, under another name ({what}).",
                hint="\n".join(details),
            )


def _usable_trace(reported: Mapping[str, Any]) -> Trace:
    """Return the trace that a run reported. Raises `NoGistError` if it is malformed."""
    try:
        return read_trace(reported)
    except TaskError as error:
        reason = "The run reported no usable trace."
        raise NoGistError(NoGist.COULD_NOT_RUN, reason, hint=error.message) from error


def _test_files(run: TestsRun | CommandRun, files: Iterable[str]) -> set[str]:
    """Return the files that are tests by their path, or in which pytest found a test of the command."""
    found = {path for path in files if is_test_path(path)}
    if isinstance(run, TestsRun):
        written = [id for id in run.tests if not instance_key(id).startswith(DOCTEST)]
        found |= {id.partition("::")[0] for id in written}
    return found


def _reasons_of(run: OriginalRun) -> list[str]:
    """Return why a run did not finish; empty if the run finished, or gives no reason."""
    if run.run.status is RunStatus.FINISHED:
        return []
    if isinstance(run.run, TestsRun) and run.run.collection_error is not None:
        return [f"why: {run.run.collection_error.message[:500]}"]
    reasons = filter(None, (run.reason, run.output.strip()))
    return [f"why: {reason[-500:]}" for reason in reasons]


def owned_names(
    tree: SourceTree, import_roots: tuple[str, ...], modules: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the top-level names under which the codebase, including its tests, can be imported.

    They are the packages and modules of the import roots, the packages of tests, and the names of all modules
    that files of the codebase had while the command ran. Names of the standard library are never included.
    """
    folders = [name for name, kind in tree.entries("") if kind == "dir"]
    packages = [name for name in folders if tree.is_file(f"{name}/__init__.py")]
    tests = {name for name in packages if is_test_path(f"{name}/module.py")}
    ran = {name.partition(".")[0] for name in modules.values()}
    names = {*packages_of(tree, import_roots), *tests, *ran} - {"__main__", ""}
    return tuple(sorted(names - sys.stdlib_module_names))


def _recorded(run: TestsRun | CommandRun) -> TestsRun | CommandRun:
    """Return a run without its observations, which are not compared."""
    return replace(run, isolation=type(run.isolation)())


def _outcomes(run: TestsRun | CommandRun) -> object:
    if isinstance(run, TestsRun):
        return {id: test.outcome for id, test in run.tests.items()}
    return run.status, run.exit_status, run.raised and run.raised.type


def _failure_of(run: TestsRun | CommandRun) -> str:
    """Return a description of the first failure in a finished run; empty if nothing fails."""
    if isinstance(run, CommandRun):
        if run.raised:
            return run.raised.text
        return f"It exited with status {run.exit_status}." if run.exit_status else ""
    for id, test in run.tests.items():
        if test.outcome in (Outcome.FAILED, Outcome.ERROR):
            return f"{id}: {test.raised.text if test.raised else test.outcome.value}"
    return ""


def _require_same_outcomes(seen: list[OriginalRun]) -> None:
    outcomes = [_outcomes(run.run) for run in seen]
    if any(outcome != outcomes[0] for outcome in outcomes):
        raise NoGistError(
            NoGist.FLIPS, f"Run {len(seen)} on the original had a different outcome from the ones before."
        )


_VALUED = frozenset(
    {
        "-k",
        "-m",
        "-o",
        "-p",
        "-W",
        "-c",
        "-n",
        "-r",
        "--override-ini",
        "--config-file",
        "--pythonwarnings",
        "--rootdir",
        "--confcutdir",
        "--basetemp",
        "--import-mode",
        "--ignore",
        "--ignore-glob",
        "--deselect",
        "--tb",
    }
)
"""Options of pytest whose value can be the next argument, where it could be mistaken for a file's path."""
_SELECTING = frozenset(("-k", "-m", "--ignore", "--ignore-glob", "--deselect"))


def of_one_command(repository: Repository) -> Repository:
    """Return the repository without the arguments of pytest that select tests.

    An entrypoint names its own tests. Paths in the repository and options such as `-k` are dropped, with
    their values; all other arguments are kept.
    """
    kept: list[str] = []
    option = ""
    for word in repository.environment.pytest_args:
        if option:
            # The value of an option is kept or dropped along with the option.
            if option not in _SELECTING:
                kept.append(word)
            option = ""
        elif word.startswith("-"):
            if not _selects(word):
                kept.append(word)
            option = word if word in _VALUED else ""
        elif not _is_path_in(repository.tree, word):
            kept.append(word)
    return replace(repository, environment=replace(repository.environment, pytest_args=tuple(kept)))


def _selects(word: str) -> bool:
    """Return whether an option selects tests; `-kNAME` and `--deselect=ID` contain their value."""
    if word.startswith("--"):
        return word.partition("=")[0] in _SELECTING
    return word[:2] in _SELECTING


def _is_path_in(tree: SourceTree, word: str) -> bool:
    path = word.partition("::")[0].rstrip("/")
    return path != "" and (tree.is_file(path) or tree.is_directory(path))


def write_gist_task(
    repository: Repository,
    entrypoint: Entrypoint,
    answer: GistAnswer,
    into: Path,
    *,
    settings: GistSettings | None = None,
    budgets: Budgets | None = None,
    demo: bool = False,
    provenance: Mapping[str, Any] | None = None,
) -> Task:
    """Write the task below `into`, in a folder named by its id, and return it.

    A task that already exists is kept. Raises `ContradictionError` for settings that contradict each other.
    """
    require_consistent(settings or GistSettings(), is_test=entrypoint.is_test)
    repository = of_one_command(repository)
    into.mkdir(parents=True, exist_ok=True)
    folder = made_in(into, "making")
    try:
        tree_sha256 = write_tar(repository.tree, folder / "workspace" / "tree.tar")
        task = _task(repository, entrypoint, answer, tree_sha256, folder)
        settings = replace(settings or GistSettings(), owned=answer.owned)
        template = gist_template(settings)
        test = given_test(answer.test) if settings.give_test else ""
        brief = Brief(template, template_sha256(template), (), test=test)
        task = replace(
            with_settings(task, settings), brief=brief, budgets=budgets or Budgets.of_steps(), demo=demo
        )
        write_task(task, Answer((), (), {}, provenance or {}, answer))
        place = into / task.id
        if not (place / TASK_FILE).is_file():
            folder.rename(place)
        return read_task(place)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _task(
    repository: Repository, entrypoint: Entrypoint, answer: GistAnswer, tree_sha256: str, folder: Path
) -> Task:
    first = answer.originals[0]
    environment = repository.environment
    source = repository.source
    ids = frozenset(first.tests) if isinstance(first, TestsRun) else frozenset[str]()
    ids_sha256 = hash_of_ids(ids)
    part = GistTask(entrypoint.text, GistSettings(), entrypoint.stdin, dict(entrypoint.variables))
    identity = task_id(
        mode=Mode.GIST,
        source_name=source.name,
        source_revision=source.revision,
        tree_sha256=tree_sha256,
        targets=(),
        lock=environment.lock,
        build_steps=environment.build_steps,
        ids_sha256=ids_sha256,
        of_kind=command_identity(part),
        image=environment.image,
        version=command_version(part, environment.image),
    )
    return Task(
        id=identity,
        mode=Mode.GIST,
        source=replace(source, location=""),
        tree_sha256=tree_sha256,
        brief=Brief("", "", ()),
        suite=Suite(
            tests=len(ids) or 1,
            ids_sha256=ids_sha256,
            seconds=answer.seconds,
            timeout_s=answer.timeout_s,
            test_files=tuple(sorted({id.partition("::")[0] for id in ids})),
        ),
        environment=environment,
        limits=ToolLimits(),
        rules=Rules(),
        of_kind=part,
        folder=folder,
    )
