"""Makes a container for each run, with all limits and the owning program's name, and keeps one ready.

A shared container would keep what earlier runs left behind (decision 8).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import socket
import threading
import time
import uuid
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from gistpoint.sandbox.backends.docker.engine import Engine, EngineError, engine_errors
from gistpoint.sandbox.backends.docker.images import KIND
from gistpoint.sandbox.limits import RunLimits

if TYPE_CHECKING:
    from typing import Any


OWNER = "io.gistpoint.owner"
_PARTS = 5


@cache
def _place() -> str:
    """Return an opaque name for this machine, this user and, if there is one, the process namespace."""
    try:
        machine = Path("/etc/machine-id").read_text("ascii").strip()
    except (OSError, ValueError):
        machine = ""
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    text = f"{machine or uuid.getnode()} {platform.node()} {os.getuid()} {namespace}"
    return hashlib.sha256(text.encode()).hexdigest()[:24]


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except (OSError, ValueError):
        return "unknown"


def _began(pid: int) -> str:
    """Return when a process began, in the kernel's clock ticks since the boot.

    Returns `0` if that is unknown, and an empty string if there is no such process.
    """
    try:
        return (Path("/proc") / str(pid) / "stat").read_text("ascii", "replace").rsplit(")", 1)[1].split()[19]
    except (OSError, IndexError):
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except OSError:
        return "0"
    return "0"


def this_program() -> str:
    """Return the name of the running program, which no other program ever has."""
    return f"v1/{_place()}/{_boot()}/{os.getpid()}/{_began(os.getpid())}"


def is_gone(owner: str) -> bool:
    """Whether `owner` was a program of this user on this machine that no longer runs.

    False for a program of another user.
    """
    parts = owner.split("/")
    if len(parts) != _PARTS or not parts[3].isdigit():
        return False
    if parts[:2] != ["v1", _place()]:
        return False
    # A restart of the machine ends its processes, and their ids are reused.
    if parts[2] != _boot():
        return True
    return _began(int(parts[3])) != parts[4]


USER = 10001
SHOWN = "/gistpoint"
WORK = "/sandbox"
_CPUS = 1_000_000_000
_FOLDER = 64 << 20
_PODMAN_PROCESSES = 4096
_PODMAN_END_S = 10
_REMOVALS = 5
_REMOVAL_PAUSE_S = 0.3
_ENTRY = ["-I", "-S", f"{SHOWN}/inside/container_entry.py"]
PYTHON = "/usr/local/bin/python3"
"""The interpreter in the images that gistpoint makes from this machine or an official image."""
_MASKED = [
    *(
        f"/proc/{name}"
        for name in ("acpi", "asound", "interrupts", "kcore", "keys", "latency_stats", "sched_debug")
    ),
    *(
        "/proc/scsi",
        "/proc/timer_list",
        "/proc/timer_stats",
        "/sys/devices/virtual/powercap",
        "/sys/firmware",
    ),
    *("/proc/cmdline", "/proc/sys/kernel/random/boot_id"),
]
"""The paths that Docker itself masks, which this list replaces, and those that identify the machine."""
_COMMON = "rw,nosuid,nodev"


@dataclass(frozen=True, slots=True)
class ContainerSettings:
    """The settings of a container; a waiting container can serve any run that has the same settings."""

    image: str
    limits: RunLimits
    folders: tuple[str, ...]
    closed: bool = False
    """Whether the command can't write anywhere."""
    python: str = PYTHON
    """The interpreter of the first process."""


@dataclass(frozen=True, slots=True)
class DockerContainer:
    """A started container that waits for its work; `stream` is its standard input and output."""

    engine: Engine
    id: str
    stream: socket.socket
    held: object
    """The object that the SDK must not release while the stream is in use."""

    def discard(self) -> None:
        """End and remove the container; if the engine fails to do so, `remove_leftovers` does it later."""
        with contextlib.suppress(Exception):
            self.stream.close()
        remove(self.engine, self.id)

    def kill(self) -> None:
        """Kill everything in the container; errors of the engine are ignored."""
        import docker.errors
        import requests

        with contextlib.suppress(docker.errors.DockerException, requests.RequestException):
            self.engine.client.api.kill(self.id)

    def state(self) -> dict[str, object]:
        """Wait up to 10 s for the container to end, and return the engine's description of how it ended.

        The description is empty if the container has not ended by then, or if the engine fails.
        """
        import docker.errors
        import requests

        with contextlib.suppress(docker.errors.DockerException, requests.RequestException):
            self.engine.client.api.wait(self.id, timeout=10)
            state = self.engine.client.api.inspect_container(self.id)["State"]
            return dict(state)
        return {}


def start(engine: Engine, settings: ContainerSettings) -> DockerContainer:
    """Create a container, attach to it, start it, and return it.

    A missing image raises `docker.errors.ImageNotFound`, and is never pulled.
    """
    api = engine.client.api
    created = api.create_container(
        settings.image,
        entrypoint=[settings.python],
        command=_ENTRY,
        hostname="sandbox",
        user="0:0",
        stdin_open=True,
        labels={KIND: "run", OWNER: this_program()},
        working_dir="/",
        network_disabled=True,
        use_config_proxy=False,
        host_config={**api.create_host_config(**host_settings(engine, settings)), "MaskedPaths": _MASKED},
    )
    identity = str(created["Id"])
    try:
        held = api.attach_socket(identity, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
        stream: Any = getattr(held, "_sock", held)
        stream.settimeout(None)
        api.start(identity)
    except BaseException:
        remove(engine, identity)
        raise
    return DockerContainer(engine, identity, stream, held)


def host_settings(engine: Engine, settings: ContainerSettings) -> dict[str, Any]:
    """Return the settings that isolate a container and limit its resources.

    The first process is root, with only the rights to change its user and to give files away; the command
    runs as another user without rights. Every writable place is in memory, which counts towards the limit.
    """
    from docker.types import LogConfig, Ulimit

    limits = settings.limits
    places = {
        "/tmp": f"{_COMMON},exec,size={limits.temporary},mode=1777",
        WORK: f"{_COMMON},exec,size={limits.workspace},mode=0755",
    }
    if settings.closed:
        sizes = {"/tmp": limits.temporary, "/dev/shm": limits.temporary, WORK: limits.workspace}
        places = {place: f"{_COMMON},noexec,size={size},mode=0755" for place, size in sizes.items()}
    for name in settings.folders:
        places[f"{SHOWN}/{name}"] = f"{_COMMON},exec,size={_FOLDER},mode=0755"
    options: dict[str, Any] = {
        "network_mode": "none",
        "read_only": True,
        "cap_drop": ["ALL"],
        # Only for the first process, which becomes another user to start the command (decision 7).
        "cap_add": ["SETUID", "SETGID", "CHOWN"],
        "security_opt": ["no-new-privileges:true"],
        "ipc_mode": "private",
        "shm_size": limits.temporary,
        "tmpfs": places,
        "log_config": LogConfig(type="none"),
        "ulimits": [
            Ulimit(name="core", soft=0, hard=0),
            Ulimit(name="nofile", soft=max(limits.open_files, 1024), hard=max(limits.open_files, 1024)),
        ],
    }
    if engine.podman:  # Podman's default may be higher than this machine allows
        options["ulimits"].append(Ulimit(name="nproc", soft=_PODMAN_PROCESSES, hard=_PODMAN_PROCESSES))
    if "memory" not in engine.not_enforced:
        options |= {"mem_limit": limits.memory, "memswap_limit": limits.memory}
    if "processes" not in engine.not_enforced:
        options["pids_limit"] = limits.processes + 1
    if "cpus" not in engine.not_enforced:
        options["nano_cpus"] = _CPUS
    return options


def remove(engine: Engine, identity: str) -> None:
    """Remove a container, running or not; if the engine fails to do so, `remove_leftovers` does it later.

    An engine that is just registering the container's end may refuse at first. Podman instead accepts but
    keeps the container, so that the removal is requested only after the container has ended.
    """
    import docker.errors
    import requests

    if engine.podman:
        for call in (engine.client.api.kill, partial(engine.client.api.wait, timeout=_PODMAN_END_S)):
            with contextlib.suppress(docker.errors.DockerException, requests.RequestException):
                call(identity)
    for _ in range(_REMOVALS):
        try:
            engine.client.api.remove_container(identity, force=True, v=True)
        except (docker.errors.NotFound, requests.RequestException):
            return
        except docker.errors.DockerException:
            time.sleep(_REMOVAL_PAUSE_S)
        else:
            return


def remove_leftovers(engine: Engine) -> int:
    """Remove the containers of this user's dead programs, and return their number."""
    removed = 0
    for found in engine.client.api.containers(all=True, filters={"label": [f"{KIND}=run"]}):
        # Only those of this user on this machine: an engine may serve others (decision 8).
        if is_gone(str((found.get("Labels") or {}).get(OWNER, ""))):
            remove(engine, str(found["Id"]))
            removed += 1
    return removed


class WaitingContainer:
    """At most one started container, which waits for the next run.

    Containers are removed and prepared in the background.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ready: tuple[ContainerSettings, DockerContainer] | None = None
        self._preparing = False
        self._closed = False
        self._workers: set[threading.Thread] = set()

    def take(self, engine: Engine, settings: ContainerSettings) -> DockerContainer | None:
        """Return the waiting container if it was made for `settings` on `engine`; otherwise discard it.

        Returns None if there is no suitable container.
        """
        with self._lock:
            held = self._ready
            self._ready = None
        if held is None:
            return None
        if held[0] == settings and held[1].engine is engine:
            return held[1]
        held[1].discard()
        return None

    def replace(self, used: DockerContainer, settings: ContainerSettings, *, next_one: bool) -> None:
        """Remove a used container in the background and, if `next_one`, prepare another with `settings`."""
        worker = threading.Thread(
            target=self._replace, args=(used, settings, next_one), name="container-next"
        )
        with self._lock:
            self._workers = {known for known in self._workers if known.is_alive()} | {worker}
        worker.start()

    def close(self) -> None:
        """Remove the waiting container, and wait for removals and preparations in the background.

        This object can be used again afterwards.
        """
        with self._lock:
            self._closed = True
            workers = set(self._workers)
        for worker in workers:
            if worker is not threading.current_thread() and worker.ident is not None:
                worker.join()
        with self._lock:
            held = self._ready
            self._ready = None
            self._closed = False
        if held is not None:
            held[1].discard()

    def _replace(self, used: DockerContainer, settings: ContainerSettings, next_one: bool) -> None:
        used.discard()
        with self._lock:
            is_wanted = next_one and not self._closed
            is_coming = self._preparing or self._ready is not None
            if is_coming or not is_wanted:
                return
            self._preparing = True
        made: DockerContainer | None = None
        try:
            # Outside of the lock, because an engine may be slow, and a run can meanwhile start a container.
            with engine_errors(used.engine.address):
                made = start(used.engine, settings)
        except EngineError:
            return  # the next run reports it, if the problem persists
        finally:
            with self._lock:
                self._preparing = False
                is_wanted = self._ready is None and not self._closed
                if made is not None and is_wanted:
                    self._ready = (settings, made)
                    made = None
            if made is not None:
                made.discard()
