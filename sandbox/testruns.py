"""Running a suite on a tree: laid out, run in isolation by pytest, reported by test id."""

from __future__ import annotations

import json
import os
import posixpath
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gistpoint.core.errors import CancelledError, EnvironmentBuildError, TaskError
from gistpoint.core.outcomes import BackendRecord, RunStatus, SuiteReport
from gistpoint.core.ports import EnvironmentPins, RunProgress, RunRequest
from gistpoint.sandbox.backends.base import Backend, Command, Ended, Environment, Invocation, Places, Stop
from gistpoint.sandbox.backends.runtime import toolchain
from gistpoint.sandbox.environments.projects import write_metadata
from gistpoint.sandbox.limits import Limits
from gistpoint.sandbox.sealing import Secret, handed_over
from gistpoint.sandbox.verdict import Conclusion, Transcript
from gistpoint.sandbox.workspaces import lay_out, remove_leftovers, run_folder

if TYPE_CHECKING:
    from gistpoint.core.cancel import CancelToken

RESULTS_PLUGIN, BUILD_STEPS = "results_plugin.py", "build_steps.py"
_INSIDE = Path(__file__).parent / "inside"
_STOPPED = {
    Stop.TIMED_OUT: (RunStatus.TIMED_OUT, "The run was stopped at its time limit of {timeout:g} s."),
    Stop.CANCELLED: (RunStatus.CANCELLED, "The run was stopped at your request."),
    Stop.OUT_OF_MEMORY: (RunStatus.OUT_OF_MEMORY, "The run was stopped at its memory limit of {memory} MiB."),
    Stop.TOO_MUCH_DISK: (RunStatus.CRASHED, "The run was stopped at its limit of {disk} MiB of files."),
    Stop.TOO_MANY_RESULTS: (RunStatus.INVALID, "The run wrote more on its result pipe than any suite would."),
    Stop.NOT_STARTED: (RunStatus.INFRASTRUCTURE, "The isolation could not be started; its output says why."),
}


class Environments(Protocol):
    """Where built environments come from."""

    def get(
        self,
        pins: EnvironmentPins,
        backend: Backend,
        *,
        on_line: Callable[[str], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> Environment:
        """Return the environment of `pins`, made if it is not there yet. Raises `EnvironmentBuildError`.

        Builds that it takes run on `backend`.
        """
        ...


class SuiteRunner:
    """Runs suites on one backend; implements `gistpoint.core.ports.Runner`."""

    def __init__(self, backend: Backend, environments: Environments, limits: Limits | None = None) -> None:
        self._backend = backend
        self._environments = environments
        self._limits = limits or Limits()
        self._record = backend.record(self._limits)
        remove_leftovers()

    @property
    def backend(self) -> BackendRecord:
        """The isolation that every run of it has."""
        return self._record

    def run(
        self,
        request: RunRequest,
        *,
        on_progress: Callable[[RunProgress], None] | None = None,
        cancel: CancelToken | None = None,
    ) -> SuiteReport:
        """Run and report; whatever the code under test does ends up in the report's status."""
        tell = on_progress or (lambda progress: None)
        tell(RunProgress("preparing"))
        try:
            if cancel is not None:
                cancel.check()
            environment = self._environments.get(request.environment, self._backend, cancel=cancel)
            with run_folder() as base:
                lay_out(request.tree, base / "tree")
                return self._run(request, environment, base, tell, cancel)
        except CancelledError as error:
            return self._report(RunStatus.CANCELLED, error.message)
        except (EnvironmentBuildError, TaskError, OSError) as error:
            return self._report(RunStatus.INFRASTRUCTURE, str(error))

    def _report(self, status: RunStatus, reason: str) -> SuiteReport:
        return SuiteReport(status, reason=reason, backend=self._record)

    def _run(
        self,
        request: RunRequest,
        environment: Environment,
        base: Path,
        tell: Callable[[RunProgress], None],
        cancel: CancelToken | None,
    ) -> SuiteReport:
        control, secret = base / "control", Secret.new()
        program = fill_control(control, request.environment, {RESULTS_PLUGIN: RESULTS_PLUGIN})

        def invocation(places: Places) -> Invocation:
            return invoke_pytest(places, request.environment, program, RESULTS_PLUGIN, request.hash_seed)

        transcript = Transcript(secret)

        def on_line(line: bytes) -> None:
            before = transcript.collected
            latest = transcript.feed(line)
            if latest is not None or transcript.collected != before:
                tell(RunProgress("running", transcript.done, transcript.collected or 0, latest))

        tell(RunProgress("collecting"))
        with handed_over(_order(request, secret)) as order:
            command = Command(
                tree=base / "tree",
                environment=environment,
                invocation=invocation,
                timeout_s=request.timeout_s,
                folders={"control": control},
                limits=self._limits,
                writable=request.writable,
                watch=request.watch,
                shows=tools_of(request.environment, environment),
                requests=order,
            )
            ended = self._backend.run(command, on_line=on_line, cancel=cancel)
        tell(RunProgress("finished", transcript.done, transcript.collected or 0))
        return self._conclude(request, transcript, ended)

    def _conclude(self, request: RunRequest, transcript: Transcript, ended: Ended) -> SuiteReport:
        altered = list(ended.altered)
        if ended.stop is Stop.EXITED and altered:
            more = f" and {len(altered) - 1} more" if len(altered) > 1 else ""
            first = "the top folder of its tree" if altered[0] == "." else altered[0]
            reason = f"The run changed {first}{more}, which was to stay as it is."
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
            backend=self._record,
            output=ended.output,
            writes=ended.writes,
        )


def tools_of(pins: EnvironmentPins, environment: Environment) -> tuple[Path, ...]:
    """Return what a run is shown beyond the usual: something to compile with, for build steps."""
    return toolchain(environment) if pins.build_steps else ()


def _order(request: RunRequest, secret: Secret) -> dict[str, object]:
    return {
        **secret.order(),
        "select": request.select,
        "deselect": request.deselect,
        "first": request.first,
        "backwards": request.backwards,
        "ids_in_arguments": any("::" in argument for argument in request.environment.pytest_args),
    }


def fill_control(folder: Path, pins: EnvironmentPins, files: Mapping[str, str]) -> str:
    """Make the folder that a run is shown: `files` of ours by their names there, and the metadata.

    Returns the name of the module that starts pytest.
    """
    folder.mkdir()
    program = f"run_{os.urandom(8).hex()}"
    for name, inside in {**files, f"{program}.py": "run_pytest.py", BUILD_STEPS: BUILD_STEPS}.items():
        shutil.copyfile(_INSIDE / inside, folder / name)
    if pins.metadata:
        write_metadata(folder / "metadata", pins.metadata)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return program


def building(places: Places, pins: EnvironmentPins, arguments: Sequence[str]) -> list[str]:
    """Return a command that runs the task's build steps first, if it has any."""
    if not pins.build_steps:
        return [*arguments]
    program = f"{places.folders['control']}/{BUILD_STEPS}"
    return [places.python, "-I", program, json.dumps(pins.build_steps), *arguments]


def invoke_pytest(places: Places, pins: EnvironmentPins, program: str, plugin: str, hash_seed: int = 0) -> Invocation:
    """Return the command line and the whole environment of pytest for one run.

    `program` is the module that starts pytest, `plugin` the file that reports; both lie in the control folder.
    """
    control = places.folders["control"]
    roots = [posixpath.normpath(f"{places.workspace}/{root}") for root in pins.import_roots]
    arguments = [places.python, "-m", program, f"{control}/{plugin}", "-p", "no:cacheprovider"]
    for name in pins.plugins:
        arguments += ["-p", name]
    arguments += ["-q", "--tb=short", "--color=no", "--no-summary", f"--rootdir={places.workspace}"]
    arguments += ["--continue-on-collection-errors", "--maxfail=0", *pins.pytest_args]
    environment = {
        "PATH": os.pathsep.join((posixpath.dirname(places.python), "/usr/local/bin", "/usr/bin", "/bin")),
        "HOME": places.home,
        "TMPDIR": places.temporary,
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "COLUMNS": "120",
        "PYTHONPATH": os.pathsep.join((control, *roots, f"{control}/metadata")),
        "PYTHONHASHSEED": str(hash_seed),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "GISTPOINT_ROOT": places.workspace,
        "GISTPOINT_RESULTS": str(places.results_fd),
    }
    return Invocation(tuple(building(places, pins, arguments)), environment)
