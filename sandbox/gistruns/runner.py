"""Running entrypoints on the original and on gists alone; each run is a sandbox of its own."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gistpoint.core.errors import CancelledError, InfrastructureError
from gistpoint.core.kinds.gist.entrypoints import Entrypoint, EntrypointKind
from gistpoint.core.kinds.gist.fakes import Watched
from gistpoint.core.kinds.gist.original_test import TestGuard
from gistpoint.core.kinds.gist.runs import CommandOutput, GistTrial, OriginalRun
from gistpoint.core.kinds.gist.shell_rules import refusal
from gistpoint.core.outcomes import BackendRecord, RunStatus
from gistpoint.core.ports import EnvironmentPins
from gistpoint.sandbox.backends.base import Backend, Command, Ended, Environment, Invocation, Places, Stop
from gistpoint.sandbox.gistruns.control import (
    READING_PROGRAMS,
    invocation_of,
    moved_files,
    pytest_words,
    roots_in,
    shell_invocation,
    write_control,
)
from gistpoint.sandbox.gistruns.transcripts import ProgramTranscript, Seen, TestsTranscript
from gistpoint.sandbox.limits import Limits
from gistpoint.sandbox.sealing import handed_over
from gistpoint.sandbox.testruns import Environments, tools_of
from gistpoint.sandbox.workspaces import lay_out, remove_leftovers, run_folder

if TYPE_CHECKING:
    from gistpoint.core.cancel import CancelToken
    from gistpoint.core.trees import SourceTree

Order = Callable[[Places], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class _Run:
    """What is particular to one kind of run: its files, what else it is shown, and its order."""

    files: Path
    folders: Mapping[str, Path]
    order: Order
    importable: Callable[[Places], list[str]]
    is_test: bool
    build: bool = False
    hash_seed: int = 0


class GistRunner:
    """Runs on one backend; implements `gistpoint.core.ports.EntrypointRunner`."""

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

    def tests(
        self, tree: SourceTree, environment: EnvironmentPins, *, timeout_s: float, cancel: CancelToken | None = None
    ) -> tuple[str, ...]:
        """Return the ids of all tests that the suite collects. Raises `InfrastructureError` where it can't."""
        with run_folder() as base:
            lay_out(tree, base / "files")

            def order(places: Places) -> dict[str, Any]:
                words = pytest_words(places, environment, alone=False, settings=True)
                return {"argv": [*words, "--collect-only"], "path": _paths(places, environment)}

            def importable(places: Places) -> list[str]:
                return roots_in(places.workspace, environment)

            run = _Run(base / "files", {}, order, importable, is_test=True, build=True)
            transcript = TestsTranscript()
            ended, _ = self._run(run, environment, base, transcript, timeout_s, cancel)
        if not transcript.suite.ids or transcript.suite.finish != ended.exit_code:
            tail = ended.output[-2000:]
            raise InfrastructureError("The tests could not be collected.", hint=f"pytest printed:\n{tail}")
        return tuple(transcript.suite.ids)

    def run_original(
        self,
        tree: SourceTree,
        environment: EnvironmentPins,
        entrypoint: Entrypoint,
        *,
        timeout_s: float,
        trace: bool = False,
        elsewhere: bool = False,
        hash_seed: int = 0,
        cancel: CancelToken | None = None,
    ) -> OriginalRun:
        """Run the command in the repository's tree, or its file alone in another place."""
        with run_folder() as base:
            folders: dict[str, Path] = {}
            called = entrypoint
            if elsewhere:
                files, called = moved_files(tree, entrypoint)
                _write(base / "files", files)
                lay_out(tree, base / "codebase")
                folders["codebase"] = base / "codebase"
            else:
                lay_out(tree, base / "files")

            def importable(places: Places) -> list[str]:
                place = places.folders["codebase"] if elsewhere else places.workspace
                return roots_in(place, environment)

            def order(places: Places) -> dict[str, Any]:
                codebase = [places.folders["codebase"]] if elsewhere else []
                told: dict[str, Any] = {
                    "argv": _words(places, environment, called, alone=False, settings=not elsewhere),
                    "path": [*_own_place(places, called), *importable(places), *codebase],
                    "written": [places.home, places.temporary],
                    "own": [places.workspace, *codebase],
                }
                return told | ({"trace_root": places.workspace} if trace else {})

            run = _Run(base / "files", folders, order, importable, called.is_test, not elsewhere, hash_seed)
            ended, places = self._judged(run, environment, base, timeout_s, cancel)
            seen = ended[1]
        return OriginalRun(
            run=seen.run,
            seconds=ended[0].seconds,
            places={**_words_for(places), **(_moved_names(called) if elsewhere else {})},
            trace=seen.trace,
            network=seen.isolation.network,
            reason=seen.reason,
            output=ended[0].output,
        )

    def run_gist(
        self,
        text: str,
        environment: EnvironmentPins,
        entrypoint: Entrypoint,
        *,
        owned: Collection[str],
        timeout_s: float,
        forbidden: Collection[str] = (),
        measure_lines: bool = True,
        hash_seed: int = 0,
        guard: TestGuard | None = None,
        watched: Watched | None = None,
        cancel: CancelToken | None = None,
    ) -> GistTrial:
        """Run a gist alone in an empty folder, the names `owned` out of reach."""
        wanted = watched or Watched()
        called = gist_entrypoint(entrypoint)
        with run_folder() as base:
            _write(base / "files", {called.target: text.encode("utf-8", "surrogatepass")})

            def order(places: Places) -> dict[str, Any]:
                file = f"{places.workspace}/{called.target}"
                return {
                    "argv": _words(places, environment, called, alone=True, settings=False),
                    "path": _own_place(places, called),
                    "owned": sorted(owned),
                    "forbidden": sorted(forbidden),
                    "written": [places.workspace, places.home, places.temporary],
                    "given": [file],
                    "own": [places.workspace],
                    "suspected": wanted.lines,
                    "modules": wanted.modules,
                    "file": file,
                    "lines": file if measure_lines else "",
                    "guard": asdict(guard) if guard is not None else None,
                }

            run = _Run(base / "files", {}, order, lambda places: [], called.is_test, hash_seed=hash_seed)
            ended, places = self._judged(run, environment, base, timeout_s, cancel)
        return GistTrial(
            run=ended[1].run,
            seconds=ended[0].seconds,
            executed=ended[1].lines,
            places=_words_for(places),
            reason=ended[1].reason,
            output=ended[0].output,
        )

    def run_command(
        self,
        command: str,
        environment: EnvironmentPins,
        *,
        execution: bool,
        timeout_s: float,
        tree: SourceTree | None = None,
        files: Mapping[str, str] | None = None,
        cancel: CancelToken | None = None,
    ) -> CommandOutput:
        """Run a shell command where the solver's code may run, or say why it is refused."""
        refused = "" if execution else refusal(command)
        if refused:
            return CommandOutput("", None, 0.0, refused)
        written = {path: text.encode("utf-8", "surrogatepass") for path, text in (files or {}).items()}
        with run_folder() as base:
            if tree is not None:
                lay_out(tree.with_files(written), base / "files")
            else:
                _write(base / "files", written)

            def invocation(places: Places) -> Invocation:
                roots = roots_in(places.workspace, environment) if tree is not None else []
                return shell_invocation(command, places, roots, execution=execution)

            ended = self._backend.run(
                Command(
                    tree=base / "files",
                    environment=self._environment(environment, cancel),
                    invocation=invocation,
                    timeout_s=timeout_s,
                    limits=self._limits,
                    programs=() if execution else READING_PROGRAMS,
                ),
                on_line=lambda line: None,
                cancel=cancel,
            )
        _require(ended)
        stopped = {Stop.EXITED: RunStatus.FINISHED, Stop.OUT_OF_MEMORY: RunStatus.OUT_OF_MEMORY}
        status = stopped.get(ended.stop, RunStatus.TIMED_OUT)
        return CommandOutput(ended.output, ended.exit_code, ended.seconds, status=status)

    def _environment(self, pins: EnvironmentPins, cancel: CancelToken | None) -> Environment:
        if cancel is not None:
            cancel.check()
        return self._environments.get(pins, self._backend, cancel=cancel)

    def _judged(
        self, run: _Run, pins: EnvironmentPins, base: Path, timeout_s: float, cancel: CancelToken | None
    ) -> tuple[tuple[Ended, Seen], Places]:
        transcript = TestsTranscript() if run.is_test else ProgramTranscript()
        ended, places = self._run(run, pins, base, transcript, timeout_s, cancel)
        return (ended, transcript.conclude(ended)), places

    def _run(
        self,
        run: _Run,
        pins: EnvironmentPins,
        base: Path,
        transcript: TestsTranscript | ProgramTranscript,
        timeout_s: float,
        cancel: CancelToken | None,
    ) -> tuple[Ended, Places]:
        write_control(base / "control", pins)
        known: list[Places] = []

        def invocation(places: Places) -> Invocation:
            known.append(places)
            return invocation_of(
                places,
                pins,
                run.order(places),
                importable=run.importable(places),
                hash_seed=run.hash_seed,
                build=run.build,
            )

        environment = self._environment(pins, cancel)
        with handed_over(transcript.order) as order:
            command = Command(
                tree=run.files,
                environment=environment,
                invocation=invocation,
                timeout_s=timeout_s,
                folders={"control": base / "control", **run.folders},
                limits=self._limits,
                requests=order if transcript.order else None,
                shows=tools_of(pins, environment) if run.build else (),
            )
            ended = self._backend.run(command, on_line=transcript.feed, cancel=cancel)
        _require(ended)
        return ended, known[-1]


def gist_entrypoint(entrypoint: Entrypoint) -> Entrypoint:
    """Return the entrypoint of the gist that stands for `entrypoint`."""
    kind = EntrypointKind.TEST if entrypoint.is_test else EntrypointKind.SCRIPT
    return Entrypoint(kind, entrypoint.gist_file, entrypoint.qualname, entrypoint.arguments)


def _require(ended: Ended) -> None:
    if ended.stop is Stop.CANCELLED:
        raise CancelledError("Stopped at your request.")
    if ended.stop is Stop.NOT_STARTED:
        told = ended.reason or ended.output.strip()[-500:]
        raise InfrastructureError(f"The isolation could not be started: {told}", hint="`gistpoint doctor` says more.")


def _words(places: Places, pins: EnvironmentPins, called: Entrypoint, *, alone: bool, settings: bool) -> list[str]:
    if called.is_test:
        return [*pytest_words(places, pins, alone=alone, settings=settings), called.node_id]
    if called.kind is EntrypointKind.MODULE:
        return ["-m", called.target, *called.arguments]
    return [called.target, *called.arguments]


def _own_place(places: Places, called: Entrypoint) -> list[str]:
    """Return what Python itself would put first on its path."""
    if called.kind is EntrypointKind.SCRIPT:
        return [posixpath.normpath(posixpath.join(places.workspace, posixpath.dirname(called.target)))]
    return [places.workspace]


def _paths(places: Places, pins: EnvironmentPins) -> list[str]:
    return [places.workspace, *roots_in(places.workspace, pins)]


def _words_for(places: Places) -> dict[str, str]:
    """Return what stands in outputs for the paths of a run; temporary folders are masked by their form."""
    found = {places.workspace: "<folder>", places.home: "<home>"}
    environment = posixpath.dirname(posixpath.dirname(places.python))
    found[environment] = "<environment>"
    if "codebase" in places.folders:
        found[places.folders["codebase"]] = "<folder>"
    return found


def _moved_names(called: Entrypoint) -> dict[str, str]:
    """Return the names that the file has for the time being."""
    if called.kind is EntrypointKind.MODULE:
        return {}
    name = posixpath.basename(called.target)
    modules = {called.target.removesuffix(".py").replace("/", "."), name.removesuffix(".py")}
    return {called.target: "<file>", name: "<file>", **{f"{module}.": "<module>." for module in modules}}


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    folder.mkdir()
    folder.chmod(0o755)
    for path, data in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    for inner in folder.rglob("*"):
        inner.chmod(0o755 if inner.is_dir() else 0o644)
