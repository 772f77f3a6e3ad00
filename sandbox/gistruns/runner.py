"""Runs entrypoints in the original tree, gists alone, and shell commands, each in a separate sandbox."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gistpoint.core.entrypoints.command import COMMAND_FILE, DOCTEST_MODULES, Entrypoint, EntrypointKind
from gistpoint.core.entrypoints.programs import program_text
from gistpoint.core.entrypoints.runs import CommandOutput, GistTrial, OriginalRun, TestGuard, Watched
from gistpoint.core.errors import CancelledError, HarnessFailedError, InfrastructureError
from gistpoint.core.outcomes import BackendRecord
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.backends.base import Backend, Command, Ended, Environment, Invocation, Stop, run_on
from gistpoint.sandbox.gistruns.moving import moved_files, moved_names, remove_data_of_tests
from gistpoint.sandbox.gistruns.shell import READING_PROGRAMS, refusal, shell_invocation
from gistpoint.sandbox.gistruns.transcripts import STOPPED, ObservedRun, ProgramTranscript, TestsTranscript
from gistpoint.sandbox.layout import (
    RESULTS_PLUGIN,
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
from gistpoint.sandbox.sealing import handed_over
from gistpoint.sandbox.testruns import EnvironmentSource, tools_of

if TYPE_CHECKING:
    from gistpoint.core.pins import EnvironmentPins

LAUNCHED = (
    "launcher.py",
    "program_runner.py",
    "code_watch.py",
    "fakes.py",
    "guards.py",
    "observing_code.py",
    "operands.py",
    "test_observer.py",
    "tracers.py",
)
"""The files of the payload that start an entrypoint and watch it."""
EMPTY_SETTINGS = "empty.ini"
STDIN = "stdin"
WATCHED = "watched.json"
_PATIENCE = 10.0
"""The multiple of the limit that a run may take on a busy machine, while it waits for a processor."""
_PYTEST = (
    "-p",
    "no:cacheprovider",
    "--assert=plain",
    "-q",
    "--tb=short",
    "--color=no",
    "--no-summary",
    "--maxfail=0",
)


def write_control(
    folder: Path, pins: EnvironmentPins, stdin: str = "", watched: Mapping[str, Any] | None = None
) -> None:
    """Write the control folder for a run.

    `stdin` is the text of a program's standard input, if any, and `watched` is the part of the launcher's
    order that grows with the text of a gist.
    """
    texts = {EMPTY_SETTINGS: "[pytest]\n"}
    if stdin:
        texts[STDIN] = stdin
    if watched:
        texts[WATCHED] = json.dumps(watched)
    fill_control(folder, pins, {name: name for name in (*LAUNCHED, RESULTS_PLUGIN)}, texts)


@dataclass(frozen=True, slots=True)
class _Run:
    """The specifics of one kind of run: its files, its folders, and the order to its launcher."""

    files: Path
    folders: Mapping[str, Path]
    order: Callable[[MountPaths], dict[str, Any]]
    is_test: bool
    importable: bool = True
    """Whether the codebase's packages can be imported, in child processes too."""
    build: bool = False
    """Whether the task's build steps run first."""
    hash_seed: int = 0
    stdin: str = ""
    variables: tuple[tuple[str, str], ...] = ()
    patience: float = 1.0
    """See `Command.patience`."""
    watched: Mapping[str, Any] | None = None
    """Members of the order that are passed in a file, because a command line is limited in length."""

    def invocation(self, places: MountPaths, pins: EnvironmentPins) -> Invocation:
        """Return the command line and all environment variables."""
        control = places.folders["control"]
        order = self.order(places)
        if self.watched:
            order["more"] = f"{control}/{WATCHED}"
        arguments = [places.python, f"{control}/launcher.py"]
        if self.is_test:
            arguments.append(json.dumps({**order, "plugin": f"{control}/{RESULTS_PLUGIN}"}))
        else:
            # A program runs below a trusted process, whose descriptors it can't open (decision 23).
            outer = {"folder": places.workspace, "files": order.get("files", ())}
            if self.stdin:
                outer["stdin"] = f"{control}/{STDIN}"
            parent = [places.python, "-I", f"{control}/program_runner.py", json.dumps(outer)]
            arguments = [*parent, *arguments, json.dumps(order)]
        if self.build:
            arguments = after_build_steps(places, pins, arguments)
        roots = _roots(places, pins) if self.importable else []
        # The reporter's variables come last, so that a task's variables can't replace them.
        variables = {**dict(self.variables), **reporting_environment(places, self.hash_seed, roots)}
        return Invocation(tuple(arguments), variables)


class GistRunner:
    """Runs entrypoints on one backend; implements `gistpoint.core.entrypoints.runs.EntrypointRunner`."""

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

    def tests(
        self, tree: SourceTree, environment: EnvironmentPins, *, timeout_s: float, cancel: CancelToken = NEVER
    ) -> tuple[str, ...]:
        """Return the ids of all tests.

        Raises `InfrastructureError` if they can't be collected, `CancelledError` if stopped, and
        `HarnessFailedError` if the isolation can't be started.
        """
        with run_folder() as base:
            lay_out(tree, base / "files")

            def order(places: MountPaths) -> dict[str, Any]:
                words = _pytest_words(places, environment, alone=False, settings=True)
                return {
                    "argv": [*words, "--collect-only"],
                    "path": [places.workspace, *_roots(places, environment)],
                }

            run = _Run(base / "files", {}, order, is_test=True, build=True)
            transcript = TestsTranscript()
            ended, _ = self._run(run, environment, base, transcript, timeout_s, cancel)
        # A list of tests is complete only if pytest has finished.
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
        cancel: CancelToken = NEVER,
    ) -> OriginalRun:
        """Run the command in the repository's tree, or only its file elsewhere, and return the run.

        If `elsewhere` is true, the file is moved to another location; if `trace` is true, the run is traced.
        Raises `CancelledError` if stopped, and `HarnessFailedError` if the isolation can't be started.
        """
        with run_folder() as base:
            folders: dict[str, Path] = {}
            called = entrypoint
            files = dict[str, bytes]()
            if elsewhere:
                # Only files that a gist could contain are moved, because otherwise no gist could be
                # faithful (decision 26).
                files, called = moved_files(tree, entrypoint)
                files |= _starter(entrypoint, environment)
                _write(base / "files", files)
                lay_out(tree, base / "codebase")
                remove_data_of_tests(tree, base / "codebase")
                folders["codebase"] = base / "codebase"
            else:
                lay_out(tree.with_files(_starter(entrypoint, environment)), base / "files")

            def order(places: MountPaths) -> dict[str, Any]:
                codebase = [places.folders["codebase"]] if elsewhere else []
                # Tests that have no separate file to move, such as doctests, are collected in place.
                stay = called.is_test and not files
                root = codebase[0] if codebase and stay else places.workspace
                settings: dict[str, Any] = {
                    "argv": _argv_of(
                        places, environment, called, alone=False, settings=not elsewhere, root=root
                    ),
                    "path": [*_own_place(places, called), *_roots(places, environment), *codebase],
                    "written": [places.home, places.temporary],
                    "own": [places.workspace, *codebase],
                    "name": called.called_as,
                }
                if trace:
                    settings["trace_root"] = places.workspace
                return settings

            run = _Run(
                base / "files",
                folders,
                order,
                called.is_test,
                build=not elsewhere,
                patience=_PATIENCE,
                hash_seed=hash_seed,
                stdin=called.stdin,
                variables=called.variables,
            )
            ended, seen, places = self._judged(run, environment, base, timeout_s, cancel)
        masks = _path_replacements(places)
        if elsewhere:
            # The moved file has temporary names, which must not count as a difference between two outputs.
            masks |= moved_names(called)
        return OriginalRun(
            run=seen.run,
            seconds=ended.seconds,
            places=masks,
            trace=seen.trace,
            network=seen.run.isolation.network,
            reason=seen.reason,
            output=ended.output,
            defined=seen.defined,
            waited=ended.waited,
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
        cancel: CancelToken = NEVER,
    ) -> GistTrial:
        """Run a gist alone in an empty folder, with imports of `owned` and reads of `forbidden` blocked.

        Returns the run, with the executed lines if `measure_lines` is true. Raises `CancelledError` if
        stopped, and `HarnessFailedError` if the isolation can't be started.
        """
        wanted = watched or Watched()
        called = gist_entrypoint(entrypoint)
        with run_folder() as base:
            _write(base / "files", {called.target: text.encode("utf-8", "surrogatepass")})

            def order(places: MountPaths) -> dict[str, Any]:
                file = f"{places.workspace}/{called.target}"
                return {
                    "argv": _argv_of(places, environment, called, alone=True, settings=False),
                    "path": _own_place(places, called),
                    # The names that a gist must not import, and the paths that it must not read.
                    "owned": sorted(owned),
                    "forbidden": sorted(forbidden),
                    "written": [places.workspace, places.home, places.temporary],
                    "given": [file],
                    "own": [places.workspace],
                    "name": entrypoint.called_as,
                    "modules": wanted.modules,
                    "file": file,
                    "lines": file if measure_lines else "",
                }

            run = _Run(
                base / "files",
                {},
                order,
                called.is_test,
                importable=False,
                patience=_PATIENCE,
                hash_seed=hash_seed,
                stdin=called.stdin,
                variables=called.variables,
                watched={
                    "suspected": wanted.lines,
                    "observed": wanted.observed,
                    "guard": asdict(guard) if guard is not None else None,
                },
            )
            ended, seen, places = self._judged(run, environment, base, timeout_s, cancel)
        return GistTrial(
            run=seen.run,
            seconds=ended.seconds,
            executed=seen.lines,
            places=_path_replacements(places),
            reason=seen.reason,
            output=ended.output,
            began=seen.began,
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
        cancel: CancelToken = NEVER,
    ) -> CommandOutput:
        """Run a shell command on `tree` with `files`, or return why it is refused.

        Without `execution`, only commands that read are allowed. Raises `CancelledError` if stopped, and
        `HarnessFailedError` if the isolation can't be started.
        """
        refused = "" if execution else refusal(command)
        if refused:
            return CommandOutput("", None, 0.0, refused)
        written = {path: text.encode("utf-8", "surrogatepass") for path, text in (files or {}).items()}
        with run_folder() as base:
            if tree is not None:
                lay_out(tree.with_files(written), base / "files")
            else:
                _write(base / "files", written)

            def invocation(places: MountPaths) -> Invocation:
                roots = roots_in(places.workspace, environment) if tree is not None else []
                return shell_invocation(command, places, roots, execution=execution)

            # Read-only commands see no environment, so they need no image.
            shown = environment if execution else replace(environment, image=None)
            ended = self._backend.run(
                Command(
                    tree=base / "files",
                    environment=self._environment(shown, cancel),
                    invocation=invocation,
                    timeout_s=timeout_s,
                    limits=self._limits,
                    programs=() if execution else READING_PROGRAMS,
                ),
                on_line=lambda line: None,
                cancel=cancel,
            )
        _require(ended)
        status, reason = STOPPED[ended.stop]
        return CommandOutput(ended.output, ended.exit_code, ended.seconds, status=status, reason=reason)

    def _environment(self, pins: EnvironmentPins, cancel: CancelToken) -> Environment:
        cancel.check()
        return self._environments.get(pins, self._backend, cancel=cancel)

    def _judged(
        self, run: _Run, pins: EnvironmentPins, base: Path, timeout_s: float, cancel: CancelToken
    ) -> tuple[Ended, ObservedRun, MountPaths]:
        transcript = TestsTranscript() if run.is_test else ProgramTranscript()
        ended, places = self._run(run, pins, base, transcript, timeout_s, cancel)
        return ended, transcript.conclude(ended), places

    def _run(
        self,
        run: _Run,
        pins: EnvironmentPins,
        base: Path,
        transcript: TestsTranscript | ProgramTranscript,
        timeout_s: float,
        cancel: CancelToken,
    ) -> tuple[Ended, MountPaths]:
        write_control(base / "control", pins, run.stdin, run.watched)
        known: list[MountPaths] = []

        def invocation(places: MountPaths) -> Invocation:
            known.append(places)
            return run.invocation(places, pins)

        environment = self._environment(pins, cancel)
        # Sent over standard input, which is read before pytest is imported (decision 42).
        with handed_over(transcript.order) as order:
            command = Command(
                tree=run.files,
                environment=environment,
                invocation=invocation,
                timeout_s=timeout_s,
                patience=run.patience,
                folders={"control": base / "control", **run.folders},
                limits=self._limits,
                requests=order if transcript.order else None,
                shows=tools_of(pins, environment) if run.build else (),
            )
            ended = run_on(self._backend, command, on_line=transcript.feed, cancel=cancel)
        _require(ended)
        return ended, known[-1]


def gist_entrypoint(entrypoint: Entrypoint) -> Entrypoint:
    """Return the entrypoint of a gist that reproduces `entrypoint`."""
    if entrypoint.kind is EntrypointKind.TESTS:
        switch = (DOCTEST_MODULES,) if entrypoint.doctests else ()
        return replace(entrypoint, target=entrypoint.gist_file, arguments=(*switch, entrypoint.gist_file))
    # A gist is one file, so a module or a console script is run as a script here.
    kind = EntrypointKind.TEST if entrypoint.is_test else EntrypointKind.SCRIPT
    return replace(entrypoint, kind=kind, target=entrypoint.gist_file, own=())


def _starter(entrypoint: Entrypoint, pins: EnvironmentPins) -> dict[str, bytes]:
    """Return, by path, the program that starts a command without a file; otherwise empty."""
    text = program_text(entrypoint, pins.metadata)
    if text:
        return {COMMAND_FILE: text.encode("utf-8", "surrogatepass")}
    return {}


def _require(ended: Ended) -> None:
    if ended.stop is Stop.CANCELLED:
        raise CancelledError("Stopped at your request.")
    if ended.stop is Stop.NOT_STARTED:
        reason = ended.reason or ended.output.strip()[-500:]
        raise HarnessFailedError(
            f"The isolation could not be started: {reason}", hint="`gistpoint doctor` shows more."
        )


def _argv_of(
    places: MountPaths,
    pins: EnvironmentPins,
    called: Entrypoint,
    *,
    alone: bool,
    settings: bool,
    root: str = "",
) -> list[str]:
    """Return the `argv` of an order; tests are collected below `root`, by default the working folder."""
    root = root or places.workspace
    if called.is_test:
        selected = frozenset(called.selected)
        below = "" if root == places.workspace else f"{root}/"
        words = called.arguments if called.kind is EntrypointKind.TESTS else (called.node_id,)
        chosen = [f"{below}{word}" if word in selected else word for word in words]
        return [*_pytest_words(places, pins, alone=alone, settings=settings, root=root), *chosen]
    if called.kind is EntrypointKind.MODULE:
        return ["-m", called.target, *called.arguments]
    return [called.target, *called.arguments]


def _pytest_words(
    places: MountPaths, pins: EnvironmentPins, *, alone: bool, settings: bool, root: str = ""
) -> list[str]:
    """Return `pytest` and its options; `alone` ignores `conftest.py`, `settings` uses the repository's."""
    root = root or places.workspace
    words = ["pytest", *_PYTEST, f"--rootdir={root}", f"--confcutdir={root}"]
    for plugin in pins.plugins:
        words += ["-p", plugin]
    if alone:
        words.append("--noconftest")
    if not settings:
        words += ["-c", f"{places.folders['control']}/{EMPTY_SETTINGS}"]
    return [*words, *pins.pytest_args]


def _roots(places: MountPaths, pins: EnvironmentPins) -> list[str]:
    """Return the folders from which a run of the original imports the codebase's packages."""
    return roots_in(places.folders.get("codebase", places.workspace), pins)


def _own_place(places: MountPaths, called: Entrypoint) -> list[str]:
    """Return, as a list, the folder that Python itself puts first on its path; empty for a console script."""
    if called.kind is EntrypointKind.CONSOLE:
        return []
    if called.kind is EntrypointKind.SCRIPT:
        return [posixpath.normpath(posixpath.join(places.workspace, posixpath.dirname(called.target)))]
    return [places.workspace]


def _path_replacements(places: MountPaths) -> dict[str, str]:
    """Return the replacements for the paths of a run in outputs, by path, except for temporary folders."""
    environment = posixpath.dirname(posixpath.dirname(places.python))
    found = {places.workspace: "<folder>", places.home: "<home>"}
    if environment != "/":
        found[environment] = "<environment>"
    if "codebase" in places.folders:
        found[places.folders["codebase"]] = "<folder>"
    return found


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    folder.mkdir()
    folder.chmod(0o755)
    for path, data in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    for inner in folder.rglob("*"):
        inner.chmod(0o755 if inner.is_dir() else 0o644)
