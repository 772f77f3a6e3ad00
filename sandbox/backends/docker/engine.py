"""The engine that the user's Docker settings name, and its description of itself."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from docker import DockerClient
    from docker.tls import TLSConfig

_PROBE_S = 8
_CALL_S = 120
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


class EngineError(Exception):
    """The engine can't be used; `fix` describes the remedy, if there is one."""

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix


class EngineLostError(EngineError):
    """The engine did not answer, or the connection to it broke."""


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine that gistpoint is connected to."""

    client: DockerClient
    address: str
    version: str
    """The version of the engine, such as `20.10.24` or `podman 4.3.1`."""
    machine: str
    """The processor architecture as `uname -m` prints it, such as `x86_64` or `aarch64`."""
    not_enforced: tuple[str, ...]
    """The limits that the engine accepts and ignores, such as `memory`."""

    @property
    def podman(self) -> bool:
        """Whether the engine is Podman's service, which differs from Docker in some limits and removals."""
        return self.version.startswith("podman")


@dataclass(frozen=True, slots=True)
class Address:
    """The address of an engine; `tls` has the SDK's form, and `set_by` names the setting, if any."""

    url: str
    tls: TLSConfig | bool = False
    set_by: str = ""


def find_address(environment: Mapping[str, str] | None = None) -> Address:
    """Return the address of the engine that the settings name.

    The order is DOCKER_HOST, CONTAINER_HOST (Podman's variable), the context, and the usual socket. Raises
    `EngineError` for invalid TLS settings, and for a context that is missing or can't be read.
    """
    import docker.errors
    import docker.tls
    from docker.constants import DEFAULT_UNIX_SOCKET
    from docker.context import ContextAPI
    from docker.context.config import get_current_context_name

    # In the order of the `docker` command; no engine other than the named one is ever used.
    environment = os.environ if environment is None else environment
    if url := environment.get("DOCKER_HOST", ""):
        try:
            from docker.utils import kwargs_from_env

            found = kwargs_from_env(environment=dict(environment))
        except docker.errors.TLSParameterError as error:
            raise EngineError(f"DOCKER_TLS_VERIFY and DOCKER_CERT_PATH can't be used: {error}") from error
        return Address(str(found.get("base_url", url)), found.get("tls") or False, "DOCKER_HOST")
    if url := environment.get("CONTAINER_HOST", ""):
        return Address(url, set_by="CONTAINER_HOST")
    name = environment.get("DOCKER_CONTEXT") or get_current_context_name()
    if name == "default":
        return Address(DEFAULT_UNIX_SOCKET.replace("http+unix", "unix"))
    try:
        context = ContextAPI.get_context(name)
    except Exception as error:  # the SDK raises bare exceptions for broken files
        raise EngineError(f"the Docker context {name!r} can't be read: {error}") from error
    if context is None or not context.Host:
        raise EngineError(f"there is no Docker context {name!r}", "List them with `docker context ls`.")
    return Address(context.Host, context.TLSConfig or False, f"context {name}")


def connect() -> Engine:
    """Connect to the engine of the user's settings, and return it.

    Raises `EngineError` if the engine can't be used.
    """
    import docker

    address = find_address()
    with engine_errors(address.url):
        first = docker.DockerClient(base_url=address.url, tls=address.tls, version="auto", timeout=_PROBE_S)
        version = first.version()
        info = first.info()
        client = docker.DockerClient(
            base_url=address.url, tls=address.tls, version=first.api.api_version, timeout=_CALL_S
        )
        first.close()
    kind = info.get("OSType", "linux")
    if kind != "linux":
        raise EngineError(
            f"the engine at {address.url} runs {kind} containers", "Switch it to Linux containers."
        )
    parts = {
        str(part.get("Name", "")): str(part.get("Version", "")) for part in version.get("Components") or []
    }
    podman = next((number for name, number in parts.items() if name.startswith("Podman")), "")
    machine = str(info.get("Architecture", ""))
    return Engine(
        client,
        address.url,
        f"podman {podman}" if podman else str(version.get("Version", "unknown")),
        _MACHINES.get(machine, machine),
        ignored_limits(info),
    )


def ignored_limits(info: Mapping[str, object]) -> tuple[str, ...]:
    """Return the limits that an engine accepts but does not enforce, from its answer to `info`."""
    keys = {"memory": "MemoryLimit", "processes": "PidsLimit", "cpus": "CpuCfsQuota"}
    if str(info.get("CgroupDriver", "")) in ("none", ""):
        return tuple(keys)
    return tuple(limit for limit, key in keys.items() if info.get(key) is False)


@contextmanager
def engine_errors(address: str) -> Iterator[None]:
    """Convert the SDK's exceptions to `EngineError`, or to `EngineLostError` if the engine did not answer."""
    import docker.errors
    import requests

    try:
        yield
    except docker.errors.APIError as error:
        explanation = error.explanation or str(error)
        if error.response is not None and error.response.status_code == 401:
            raise EngineError(f"the engine at {address} requires a login: {explanation}") from error
        raise EngineError(f"the engine at {address} refused: {explanation}") from error
    except (docker.errors.DockerException, requests.RequestException, OSError) as error:
        text = str(error)
        if "Permission denied" in text or "PermissionError" in text:
            raise EngineError(
                f"you are not allowed to use the engine at {address}",
                "Join the group that owns its socket (`sudo usermod -aG docker $USER`, then log in again).",
            ) from error
        fix = (
            "Start it (`systemctl start docker`, Docker Desktop or `podman system service`), or name another"
            " with "
        )
        raise EngineLostError(f"no engine answers at {address}", f"{fix}DOCKER_HOST.") from error
