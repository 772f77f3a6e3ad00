"""Docker as a backend: each run has a container without network access or rights; the next is kept ready.

Nothing on this machine is mounted: the environment is sent as an image, the tree and the control files over
standard input, so that an engine on another machine works the same way. Nothing is pulled
unless the user requests it (decisions 6 to 8).
"""

from __future__ import annotations

import base64
import json
import math
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, ClassVar

from gistpoint.core.outcomes import BackendRecord, Writable
from gistpoint.core.pins import ImagePins
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.sandbox.backends.base import BackendProbe, Command, Ended, Environment, Stop, complaint_of
from gistpoint.sandbox.backends.docker import containers
from gistpoint.sandbox.backends.docker.containers import (
    PYTHON,
    SHOWN,
    USER,
    WORK,
    ContainerSettings,
    DockerContainer,
    WaitingContainer,
)
from gistpoint.sandbox.backends.docker.conversation import Conversation, FollowedRun, follow
from gistpoint.sandbox.backends.docker.engine import (
    Engine,
    EngineError,
    EngineLostError,
    connect,
    engine_errors,
)
from gistpoint.sandbox.backends.docker.layers import folder_entries, write_layer
from gistpoint.sandbox.backends.process import ResultLines, Tail
from gistpoint.sandbox.backends.runtime import RuntimeCache
from gistpoint.sandbox.backends.seccomp import filter_program
from gistpoint.sandbox.backends.trees import RESERVED, TreeParts
from gistpoint.sandbox.layout import MountPaths
from gistpoint.sandbox.limits import KERNEL, NOT_ENFORCED, RunLimits, enforcement

_RESULTS_FD = 9
_SPOOLED = 8 << 20
_GRACE_S = 30.0
_BROKE_OFF = (
    "The engine at {address} stopped answering in the middle of the run, so nothing in the run counts"
)
_AGAIN = "Make sure that it runs again, then repeat the run."


_Key = tuple[Environment, tuple[Path, ...], tuple[str, ...]]


class DockerBackend:
    """A backend that runs commands in containers of the engine that the user's Docker settings name."""

    name = "docker"
    expects: ClassVar[Mapping[str, str]] = {}

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._cache = RuntimeCache()
        self._images: dict[_Key, str] = {}
        self._waiting = WaitingContainer()
        self._probe: BackendProbe | None = None
        weakref.finalize(self, self._waiting.close)

    def probe(self) -> BackendProbe:
        """Run a trivial command with the settings of every run; return the result, which is cached."""
        if self._probe is None:
            self._probe = self._try()
        return self._probe

    def enforces(self) -> Mapping[str, str]:
        """Return how each limit is enforced, by its name; the engine may ignore some of them.

        Without a connection to the engine, all are reported as if it ignored none.
        """
        try:
            ignored = self._connected().not_enforced
        except EngineError:
            ignored = ()
        memory = NOT_ENFORCED if "memory" in ignored else KERNEL
        processes = NOT_ENFORCED if {"pids", "processes"} & set(ignored) else KERNEL
        return enforcement(
            memory=memory, processes=processes, disk=KERNEL, files=NOT_ENFORCED, network=KERNEL
        )

    def record(self, limits: RunLimits) -> BackendRecord:
        """Return the record of an isolated run, which also names the limits that the engine ignores."""
        try:
            engine = self._connected()
        except EngineError:
            return BackendRecord(self.name, "no engine", isolated=True, limits=limits.record())
        enforced: dict[str, int | float | str] = {**limits.record(), "cpus": 1}
        if engine.not_enforced:
            enforced["not_enforced"] = ", ".join(engine.not_enforced)
        return BackendRecord(self.name, engine.version, isolated=True, limits=enforced)

    def close(self) -> None:
        """Remove the container that waits for the next run."""
        self._waiting.close()

    def run(
        self, command: Command, *, on_line: Callable[[bytes], None], cancel: CancelToken = NEVER
    ) -> Ended:
        """Run `command` in a new or waiting container, which is removed afterwards; return how it ended.

        An error of the engine counts as `NOT_STARTED`, and is the reason.
        """
        began = time.monotonic()
        try:
            return self._run(command, on_line, cancel)
        except EngineError as error:
            if isinstance(error, EngineLostError):
                with self._lock:
                    self._engine = None
            reason = f"{error.message[:1].upper()}{error.message[1:]}. {error.fix}".strip()
            return Ended(Stop.NOT_STARTED, None, reason, time.monotonic() - began, reason=reason)

    def _connected(self) -> Engine:
        """Return the engine; on the first connection, remove the containers of dead programs.

        Raises `EngineError` if the engine can't be reached.
        """
        with self._lock:
            if self._engine is None:
                engine = connect()
                with engine_errors(engine.address):
                    containers.remove_leftovers(engine)
                self._engine = engine
            return self._engine

    def _image(self, engine: Engine, command: Command) -> str:
        from gistpoint.sandbox.backends.docker.images import environment_image, made_here, programs_image
        from gistpoint.sandbox.backends.docker.taskimages import prepared_image

        environment = command.environment
        key = _key(command)
        with self._lock:
            if key not in self._images and environment.image is not None:
                self._images[key] = prepared_image(engine, environment.image)
            if key not in self._images:
                runtime = self._cache.of(environment, command.shows)
                if command.programs and made_here(engine):
                    programs = self._cache.of_programs(command.programs)
                    self._images[key] = programs_image(engine, environment, runtime, programs)
                else:
                    self._images[key] = environment_image(engine, environment, runtime)
            return self._images[key]

    def _settings(self, engine: Engine, command: Command) -> ContainerSettings:
        image = self._image(engine, command)
        foreign = command.environment.image
        python = PYTHON if foreign is None else foreign.python
        folders = tuple(sorted(command.folders))
        return ContainerSettings(image, command.limits, folders, closed=bool(command.programs), python=python)

    def _start(self, engine: Engine, command: Command) -> tuple[ContainerSettings, DockerContainer]:
        """Start a container for `command`, and return its settings and the container.

        An image that was removed meanwhile is built again.
        """
        import docker.errors

        for last in (False, True):
            settings = self._settings(engine, command)
            try:
                return settings, containers.start(engine, settings)
            except docker.errors.ImageNotFound:
                self._images.pop(_key(command), None)
                if last:
                    raise
        raise AssertionError

    def _run(self, command: Command, on_line: Callable[[bytes], None], cancel: CancelToken) -> Ended:
        engine = self._connected()
        with engine_errors(engine.address):
            settings = self._settings(engine, command)
            container = self._waiting.take(engine, settings)
            if container is not None:
                ended = self._converse(container, settings, command, on_line, cancel)
                if ended is not None:
                    return ended
            # If there was no waiting container, or it had ended before it received the run, nothing has
            # run, and a new container is used; a run that has begun is never repeated (decision 8).
            settings, container = self._start(engine, command)
            ended = self._converse(container, settings, command, on_line, cancel)
        if ended is None:
            raise EngineLostError(_BROKE_OFF.format(address=engine.address), _AGAIN)
        return ended

    def _converse(
        self,
        container: DockerContainer,
        settings: ContainerSettings,
        command: Command,
        on_line: Callable[[bytes], None],
        cancel: CancelToken,
    ) -> Ended | None:
        """Send a container its work, follow it, and return how it ended; None if it sent nothing.

        In the background, the container is removed and, if the run has ended, the next one is prepared.
        Raises `EngineLostError` if the run's end is unknown.
        """
        limits = command.limits
        followed = FollowedRun(ResultLines(limits, on_line), Tail(limits.output))
        with ExitStack() as stack:
            parts = _work(command, container.engine, stack)
            began = time.monotonic()
            conversation = Conversation(container.stream, parts, command.requests)
            try:
                follow(conversation, followed, deadline=began + command.timeout_s, cancel=cancel)
                state = {} if followed.stop is not None else container.state()
                if followed.stop not in (Stop.EXITED, Stop.OUT_OF_MEMORY):
                    conversation.close()  # an engine whose output nobody reads any more might not answer
                    container.kill()
            finally:
                seconds = time.monotonic() - began
                conversation.close()
                self._waiting.replace(container, settings, next_one=followed.stop is not None)
        return _ended(container, followed, state, seconds)

    def _try(self) -> BackendProbe:
        try:
            engine = self._connected()
            complaint = complaint_of(self)
        except EngineError as error:
            return BackendProbe(works=False, why_not=error.message, fix=error.fix)
        if not complaint:
            return BackendProbe(works=True, version=engine.version, warning=_warning(engine))
        return BackendProbe(
            works=False, version=engine.version, why_not=complaint, fix="`docker info` shows more."
        )


def _key(command: Command) -> _Key:
    return command.environment, command.shows, command.programs


def _ended(
    container: DockerContainer, followed: FollowedRun, state: dict[str, object], seconds: float
) -> Ended | None:
    """Return how a run ended, as reported by its first process or by the engine; None if nothing began.

    Raises `EngineLostError` if the run had begun, and neither reports its end.
    """
    if followed.stop is not None:
        exit_code = followed.exit_code if followed.stop is Stop.EXITED else None
        output = followed.output.text() + followed.complaint
        return Ended(followed.stop, exit_code, output, seconds, writes=followed.writes)
    if state.get("OOMKilled"):
        return Ended(Stop.OUT_OF_MEMORY, None, followed.output.text(), seconds)
    if not followed.received:
        return None
    if not state:
        raise EngineLostError(_BROKE_OFF.format(address=container.engine.address), _AGAIN)
    # Nothing in a container can end its first process, so the solver is not charged (decision 121).
    reason = (
        f"The container was ended from outside (status {state.get('ExitCode')}); nothing in the run counts."
    )
    return Ended(Stop.NOT_STARTED, None, followed.output.text() + followed.complaint, seconds, reason=reason)


def _work(command: Command, engine: Engine, stack: ExitStack) -> list[bytes | IO[bytes]]:
    """Return the input of the first process: the order's length, the order, the folders and the tree."""
    foreign = command.environment.image
    places = MountPaths(
        workspace=f"{WORK}/repo",
        python=f"{SHOWN}/environment/bin/python" if foreign is None else foreign.python,
        home=f"{WORK}/home",
        temporary="/tmp",
        folders={name: f"{SHOWN}/{name}" for name in command.folders},
        results_fd=_RESULTS_FD,
    )
    # Sent, not mounted, because the engine may be on another machine (decision 6).
    folders = {name: _packed(command.folders[name], stack) for name in sorted(command.folders)}
    tree = _packed(command.tree, stack)
    order = {
        "ends_after": math.ceil(command.timeout_s + _GRACE_S),
        "folders": [[name, size] for name, (_, size) in folders.items()],
        "tree": tree[1],
        "user": USER,
        "home": places.home,
        "folder": places.workspace,
        **_shares(command, places),
        "limits": _limits(command, engine),
        "seccomp": base64.b64encode(filter_program(engine.machine) or b"").decode(),
        "results_fd": _RESULTS_FD,
        "requests": command.requests is not None,
        "watch": command.watch,
        **_call(command, places),
    }
    text = json.dumps(order).encode()
    return [len(text).to_bytes(4, "big"), text, *(file for file, _ in folders.values()), tree[0]]


def _shares(command: Command, places: MountPaths) -> dict[str, object]:
    """Return the parts of the order on the paths that the command may write.

    `own` are the paths that belong to its user, `shared` the folders to which it may add entries, except
    under the names in `reserved`.
    """
    own = [places.home]
    writable = command.writable or Writable(paths=(".",))
    if command.programs:
        # Read-only commands can't write anywhere, so that no program can be created (decision 40).
        own = []
        writable = Writable()
    parts = TreeParts.of(command.tree, writable)
    return {
        "own": [*own, *(f"{places.workspace}/{path}" for path in parts.paths)],
        "shared": [f"{places.workspace}/{folder}" for folder in parts.folders],
        "reserved": RESERVED,
    }


def _limits(command: Command, engine: Engine) -> dict[str, int]:
    """Return the limits that the first process sets, including that on processes if the engine ignores it."""
    limits = command.limits.of_a_process()
    if "processes" in engine.not_enforced:
        limits["RLIMIT_NPROC"] = command.limits.processes
    return limits


def _call(command: Command, places: MountPaths) -> dict[str, object]:
    invocation = command.invocation(places)
    variables = _variables(command.environment.image)
    return {"arguments": invocation.arguments, "environment": {**variables, **invocation.environment}}


def _variables(image: ImagePins | None) -> dict[str, str]:
    """Return the environment variables that runs get from an image, by name (decision 78)."""
    if image is None:
        return {}
    pairs = (line.partition("=") for line in image.environment)
    return {name: value for name, _, value in pairs}


def _packed(folder: Path, stack: ExitStack) -> tuple[IO[bytes], int]:
    file: IO[bytes] = stack.enter_context(tempfile.SpooledTemporaryFile(_SPOOLED))  # noqa: SIM115 # the stack closes it
    write_layer(folder_entries(folder, ""), file)
    return file, file.tell()


def _warning(engine: Engine) -> str:
    if not engine.not_enforced:
        return ""
    return (
        f"the engine ignores limits on: {', '.join(engine.not_enforced)} (rootless engines need cgroup v2 for"
        " them)"
    )
