"""Which backend a run gets: the strongest that works here, and none without isolation unless the user agreed."""

from __future__ import annotations

import hashlib
import json
import platform
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from importlib import metadata
from pathlib import Path

from gistpoint.core.errors import SandboxUnavailableError
from gistpoint.sandbox.backends.base import Backend

UNSANDBOXED = "plain"
_GROUP = "gistpoint.backends"
_CONSENT = "unsandboxed-consent.json"
_FORMAT = {"format": "gistpoint-consent", "version": 1}


def builtin_backends() -> Mapping[str, Callable[[], Backend]]:
    """Return the backends that come with gistpoint, as functions that make them, in the order of choice.

    Docker is used where bubblewrap does not work, or when asked for; Landlock, which promises less, after both.
    """
    from gistpoint.sandbox.backends.bubblewrap import BubblewrapBackend
    from gistpoint.sandbox.backends.docker.backend import DockerBackend
    from gistpoint.sandbox.backends.landlock import LandlockBackend
    from gistpoint.sandbox.backends.plain import PlainBackend

    return {
        "bwrap": BubblewrapBackend,
        "docker": DockerBackend,
        "landlock": LandlockBackend,
        UNSANDBOXED: PlainBackend,
    }


def installed_backends() -> Mapping[str, Callable[[], Backend]]:
    """Return the backends of other packages in gistpoint's own environment: entry points of `gistpoint.backends`.

    They are used when they are asked for by name, never by themselves, and none takes the place of a built-in one.
    """
    builtin = builtin_backends()
    points = [point for point in metadata.entry_points(group=_GROUP) if point.name not in builtin]
    return {point.name: partial(_load, point) for point in points}


def _load(point: metadata.EntryPoint) -> Backend:
    made: Backend = point.load()()
    return made


def choose(
    requested: str | None,
    *,
    consented: bool,
    backends: Mapping[str, Callable[[], Backend]] | None = None,
) -> Backend:
    """Return the backend for this machine: `requested`, or the first whose probe works.

    The one without isolation needs `consented`, also when it is requested by name. Raises `SandboxUnavailableError`
    with what would mend it; a requested backend that fails is never replaced by another.
    """
    available = backends if backends is not None else builtin_backends()
    if requested is not None:
        return _requested(requested, available if backends is not None else _every_backend(), consented)
    complaints = []
    for name, make in available.items():
        if name == UNSANDBOXED:
            continue
        backend = make()
        probe = backend.probe()
        if probe.works:
            return backend
        complaints.append(f"{name}: {probe.why_not}. {probe.mend}".strip())
    if consented and UNSANDBOXED in available:
        return available[UNSANDBOXED]()
    raise SandboxUnavailableError(
        "No isolation works on this machine: " + " ".join(complaints),
        hint="With --allow-unsandboxed the code, and builds of what it needs, run with your own rights, which is safe "
        "only for code you trust.",
    )


def _every_backend() -> Mapping[str, Callable[[], Backend]]:
    return {**builtin_backends(), **installed_backends()}


def _requested(name: str, available: Mapping[str, Callable[[], Backend]], consented: bool) -> Backend:
    if name not in available:
        raise SandboxUnavailableError(f"There is no sandbox {name!r}.", hint=f"Known are: {', '.join(available)}.")
    if name == UNSANDBOXED and not consented:
        raise SandboxUnavailableError(
            "Running without isolation was asked for, but not agreed to on this machine.",
            hint="Agree with --allow-unsandboxed: code, and builds of what it needs, then run with your own rights.",
        )
    backend = available[name]()
    probe = backend.probe()
    if not probe.works:
        raise SandboxUnavailableError(f"The sandbox {name} does not work here: {probe.why_not}.", hint=probe.mend)
    return backend


def has_consented(config: Path) -> bool:
    """Whether the user agreed, on this machine, to run code without isolation; `config` is the config folder."""
    try:
        known = json.loads((config / _CONSENT).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(known, dict) and known == {**_FORMAT, "machine": _machine()}


def remember_consent(config: Path) -> None:
    """Remember that the user agreed; a config folder shared between machines holds it for this one alone."""
    config.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**_FORMAT, "machine": _machine()}, indent=1) + "\n"
    (config / _CONSENT).write_text(text, "utf-8")


def withdraw_consent(config: Path) -> None:
    """Forget that the user agreed."""
    (config / _CONSENT).unlink(missing_ok=True)


def _machine() -> str:
    """Return a name of this machine that tells nothing about it."""
    try:
        own = Path("/etc/machine-id").read_text("ascii").strip()
    except (OSError, ValueError):
        own = ""
    return hashlib.sha256(f"{own or uuid.getnode()} {platform.node()}".encode()).hexdigest()[:32]
