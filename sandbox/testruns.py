"""Runs suites: lays out the tree, runs pytest in isolation, and reports the results by test id."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gistpoint.core.errors import CancelledError, EnvironmentBuildError, TaskError
from gistpoint.core.outcomes import BackendRecord, RunStatus, SuiteReport
from gistpoint.core.ports import RunRequest
from gistpoint.core.running import NEVER, UNATTENDED, RunContext, RunProgress
from gistpoint.sandbox.backends.base import Backend, Command, Ended, Environment, Invocation, Stop, run_on
from gistpoint.sandbox.layout import (
    RESULTS_PLUGIN,
    RUN_WATCH,
    MountPaths,
    after_build_steps,
    fill_control,
    lay_out,
    remove_leftovers,
    reporting_environment,
    roots_in,
    run_folder,
)
from gistpoint.sandbox.limits import RunLimits
from gistpoint.sandbox.sealing import RunSecret, handed_over
from gistpoint.sandbox.verdict import Conclusion, Transcript

if TYPE_CHECKING:
    from gistpoint.core.pins import EnvironmentPins
    from gistpoint.core.running import CancelToken

_MARK, _MOST_MARKS = 200, 100
_STOPPED = {
    Stop.TIMED_OUT: (RunStatus.TIMED_OUT, "The tests were stopped at their time limit of {timeout:g} s."),
    Stop.CANCELLED: (RunStatus.CANCELLED, "The tests were stopped at your request."),
    Stop.OUT_OF_MEMORY: (
        RunStatus.OUT_OF_MEMORY,
        "The tests were stopped at their memory limit of {memory} MiB.",
    ),
    Stop.TOO_MUCH_DISK: (RunStatus.CRASHED, "The run was stopped at its limit of {disk} MiB of files."),
    Stop.TOO_MANY_RESULTS: (RunStatus.INVALID, "The run wrote more on its result pipe than any suite would."),
    Stop.NOT_STARTED: (RunStatus.HARNESS_FAILED, "The isolation could not be started; its output says why."),
}


class EnvironmentSource(Protocol):
    """A source of built environments."""

    def get(
        self,
        pins: EnvironmentPins,
        backend: Backend,
        *,
        on_line: Callable[[str], None] | None = None,
        cancel: CancelToken = NEVER,
    ) -> Environment:
        """Return the environment of `pins`; it is built on `backend` if it does not exist yet.

        Raises `EnvironmentBuildError` if it can't be built, and `CancelledError` if stopped.
        """
        ...


class SuiteRunner:
    """A runner of suites on one backend; implements `gistpoint.core.ports.Runner`."""

    def __init__(
        self, backend: Backend, environments: EnvironmentSource, limits: RunLimits | None = None
    ) -> None:
        self._backend = backend
        self._environments = environments
        self._limits = limits or RunLimits()
        self._record = backend.record(self._limits)
        remove_leftovers()

    @property
    def backend(self) -> BackendRecord:
        """The isolation of all runs."""
        return self._record

    def run(
        self,
        request: RunRequest,
        *,
        run: RunContext = UNATTENDED,
    ) -> SuiteReport:
        """Run a suite and return the report; its status shows if it was stopped or could not run."""
        run.progress(RunProgress("preparing"))
        try:
            run.check()
            environment = self._environments.get(request.environment, self._backend, cancel=run.cancel)
            with run_folder() as base:
                lay_out(request.tree, base / "tree")
                return self._run(request, environment, base, run)
        except CancelledError as error:
            return self._report(RunStatus.CANCELLED, error.message)
        except (EnvironmentBuildError, TaskError, OSError) as error:
            # Nothing of the tree has run yet, so the submission is not charged (decision 121).
            return self._report(RunStatus.INFRASTRUCTURE, str(error))

    def _report(self, status: RunStatus, reason: str) -> SuiteReport:
        return SuiteReport(status, reason=reason, backend=self._record)

    def _run(
        self,
        request: RunRequest,
        environment: Environment,
        base: Path,
        run: RunContext,
    ) -> SuiteReport:
        control, secret = base / "control", RunSecret.new()
        program = pytest_control(control, request.environment, _payload(request))

        def invocation(places: MountPaths) -> Invocation:
            return invoke_pytest(places, request.environment, program, RESULTS_PLUGIN, request.hash_seed)

        transcript = Transcript(secret)

        def on_line(line: bytes) -> None:
            before = transcript.collected
            latest = transcript.feed(line)
            if latest is not None or transcript.collected != before:
                run.progress(RunProgress("running", transcript.done, transcript.collected or 0, latest))

        run.progress(RunProgress("collecting"))
        # Sent over a pipe, because the tested code could read the sentinels in a file (decision 42).
        with handed_over(_order(request, secret)) as order:
            command = Command(
                tree=base / "tree",
                environment=environment,
                invocation=invocation,
                timeout_s=request.timeout_s,
                patience=request.patience,
                folders={"control": control},
                limits=self._limits,
                writable=request.writable,
                watch=request.watch,
                shows=tools_of(request.environment, environment),
                requests=order,
            )
            ended = run_on(self._backend, command, on_line=on_line, cancel=run.cancel)
        run.progress(RunProgress("finished", transcript.done, transcript.collected or 0))
        return self._conclude(request, transcript, ended)

    def _conclude(self, request: RunRequest, transcript: Transcript, ended: Ended) -> SuiteReport:
        altered = list(ended.altered)
        # Checked before the records, which do not count if the tree was changed (decision 41).
        if ended.stop is Stop.EXITED and altered:
            more = f" and {len(altered) - 1} more" if len(altered) > 1 else ""
            first = "the top folder of its tree" if altered[0] == "." else altered[0]
            reason = f"The run changed {first}{more}, which must not change during a run."
            conclusion = Conclusion(RunStatus.INVALID, reason)
        elif ended.stop is Stop.EXITED:
            conclusion = transcript.conclude(ended.exit_code, request.expected)
        else:
            status, reason = _STOPPED[ended.stop]
            memory, disk = self._limits.memory >> 20, self._limits.disk >> 20
            usual = reason.format(timeout=request.timeout_s, memory=memory, disk=disk)
            conclusion = Conclusion(status, ended.reason or usual)
        finished = conclusion.status is RunStatus.FINISHED
        return SuiteReport(
            status=conclusion.status,
            results=dict(transcript.results),
            reason=conclusion.reason,
            collection_errors=tuple(transcript.collection_errors),
            in_flight="" if finished else transcript.in_flight,
            seconds=ended.seconds,
            waited=ended.waited,
            backend=self._record,
            output=ended.output,
            writes=ended.writes,
            began=transcript.began,
            watched=_watched(request, transcript) if finished else (),
        )


def tools_of(pins: EnvironmentPins, environment: Environment) -> tuple[Path, ...]:
    """Return the paths that a run sees in addition to the usual ones: a compiler's, for build steps.

    The result is empty for a task without build steps, and for one in an image.
    """
    if not pins.build_steps or pins.image is not None:
        return ()
    from gistpoint.sandbox.backends.runtime import toolchain

    return toolchain(environment)


def _payload(request: RunRequest) -> Mapping[str, str]:
    names = (RESULTS_PLUGIN, RUN_WATCH) if request.watched else (RESULTS_PLUGIN,)
    return {name: name for name in names}


def _watched(request: RunRequest, transcript: Transcript) -> tuple[str, ...]:
    """Return the first marks that the hook reported in a finished run, sorted; empty if it was not watched.

    At most `_MOST_MARKS` marks are returned. If the hook did not report exactly once, the result is one
    mark that says so.
    """
    if not request.watched:
        return ()
    notes = [note.get("marks") for note in transcript.notes if note.get("kind") == "watched"]
    # A run without a report is marked too: the tested process may have removed the hook (decision 116).
    if len(notes) != 1 or not isinstance(notes[0], list):
        return ("the watched run did not report",)
    return tuple(sorted(str(mark)[:_MARK] for mark in notes[0][:_MOST_MARKS]))


def _order(request: RunRequest, secret: RunSecret) -> dict[str, object]:
    return {
        **secret.order(),
        "select": request.select,
        "deselect": request.deselect,
        "first": request.first,
        "backwards": request.backwards,
        "watched": [[span.path, span.first, span.last] for span in request.watched],
        "tests": sorted({id.partition("::")[0] for id in request.expected or ()}) if request.watched else [],
        "ids_in_arguments": any("::" in argument for argument in request.environment.pytest_args),
    }


def pytest_control(folder: Path, pins: EnvironmentPins, files: Mapping[str, str]) -> str:
    """Fill the control folder of a pytest run with `files`; return the name of the module that starts it.

    The name is random, because the folder comes first on the import path, and the name must not hide a module
    of the repository.
    """
    program = f"run_{os.urandom(8).hex()}"
    fill_control(folder, pins, {**files, f"{program}.py": "run_pytest.py"})
    return program


def invoke_pytest(
    places: MountPaths, pins: EnvironmentPins, program: str, plugin: str, hash_seed: int = 0
) -> Invocation:
    """Return the command line and all environment variables of pytest for one run.

    `program` is the module that starts pytest, `plugin` the file that reports; both are in the control
    folder.
    """
    control = places.folders["control"]
    # Started by gistpoint's module, not with `-m pytest`, because a plugin on the command line is imported
    # after those that the repository's settings name (decision 42).
    arguments = [places.python, "-m", program, f"{control}/{plugin}", "-p", "no:cacheprovider"]
    for name in pins.plugins:
        arguments += ["-p", name]
    arguments += ["-q", "--tb=short", "--color=no", "--no-summary", f"--rootdir={places.workspace}"]
    arguments += ["--continue-on-collection-errors", "--maxfail=0", *pins.pytest_args]
    environment = reporting_environment(places, hash_seed, (control, *roots_in(places.workspace, pins)))
    return Invocation(tuple(after_build_steps(places, pins, arguments)), environment)
