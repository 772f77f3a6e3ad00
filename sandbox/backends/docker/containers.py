"""Containers of one run each: made with every limit, started empty, given their work over standard input, removed."""

from __future__ import annotations

import contextlib
import socket
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from gistpoint.sandbox.backends.docker.engine import Engine
from gistpoint.sandbox.backends.docker.images import KIND
from gistpoint.sandbox.backends.docker.owners import OWNER, is_gone, this_program
from gistpoint.sandbox.limits import Limits

if TYPE_CHECKING:
    from typing import Any

USER = 10001
SHOWN = "/gistpoint"
WORK = "/sandbox"
_CPUS = 1_000_000_000
_FOLDER = 64 << 20
_PODMAN_PROCESSES, _PODMAN_END_S = 4096, 10
_REMOVALS, _REMOVAL_PAUSE_S = 5, 0.3
_ENTRY = ["/usr/local/bin/python3", "-I", "-S", f"{SHOWN}/inside/container_entry.py"]
_COMMON = "rw,nosuid,nodev"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a container is made for; one that waits serves any run with the same settings."""

    image: str
    limits: Limits
    folders: tuple[str, ...]
    closed: bool = False
    """Whether the command may write nowhere."""


@dataclass(frozen=True, slots=True)
class Container:
    """A started container that waits for its work; `stream` is its standard input and output."""

    engine: Engine
    id: str
    stream: socket.socket
    held: object
    """What the SDK must not drop while the stream is in use."""

    def discard(self) -> None:
        """End everything in it and remove it; what the engine does not do now is done at a later start."""
        with contextlib.suppress(Exception):
            self.stream.close()
        remove(self.engine, self.id)

    def kill(self) -> None:
        """End everything in it at once."""
        import docker.errors
        import requests

        with contextlib.suppress(docker.errors.DockerException, requests.RequestException):
            self.engine.client.api.kill(self.id)

    def state(self) -> dict[str, object]:
        """Return what the engine says of how it ended; empty where it says nothing."""
        import docker.errors
        import requests

        with contextlib.suppress(docker.errors.DockerException, requests.RequestException):
            self.engine.client.api.wait(self.id, timeout=10)
            state = self.engine.client.api.inspect_container(self.id)["State"]
            return dict(state)
        return {}


def start(engine: Engine, settings: Settings) -> Container:
    """Create, attach to and start a container; an image that is not there is an error, never pulled."""
    api = engine.client.api
    created = api.create_container(
        settings.image,
        command=_ENTRY,
        hostname="sandbox",
        user="0:0",
        stdin_open=True,
        labels={KIND: "run", OWNER: this_program()},
        working_dir="/",
        network_disabled=True,
        use_config_proxy=False,
        host_config=api.create_host_config(**host_settings(engine, settings)),
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
    return Container(engine, identity, stream, held)


def host_settings(engine: Engine, settings: Settings) -> dict[str, Any]:
    """Return the settings that isolate and bound a container.

    Its first process is root with the rights to change its user and to give files away, and no other; the command is
    run as somebody else and has none. Every place that can be written is memory, which counts towards the limit.
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
    if engine.podman:  # its own default may be above what this machine lets it set
        options["ulimits"].append(Ulimit(name="nproc", soft=_PODMAN_PROCESSES, hard=_PODMAN_PROCESSES))
    if "memory" not in engine.not_enforced:
        options |= {"mem_limit": limits.memory, "memswap_limit": limits.memory}
    if "processes" not in engine.not_enforced:
        options["pids_limit"] = limits.processes + 1
    if "cpus" not in engine.not_enforced:
        options["nano_cpus"] = _CPUS
    return options


def remove(engine: Engine, identity: str) -> None:
    """Remove a container, running or not; one that can't be removed now is left for a later start.

    An engine that is just taking note of the container's end may refuse, and agree a moment later. Podman's then says
    yes and keeps it, so it is asked only when the container has ended.
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
    """Remove the containers of programs of this user that no longer run, and return how many there were."""
    removed = 0
    for found in engine.client.api.containers(all=True, filters={"label": [f"{KIND}=run"]}):
        if is_gone(str((found.get("Labels") or {}).get(OWNER, ""))):
            remove(engine, str(found["Id"]))
            removed += 1
    return removed
