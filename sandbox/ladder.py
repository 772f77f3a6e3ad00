"""Chooses the backend of a run: the configured backend, or the strongest that works.

Code runs without isolation only with the user's consent.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gistpoint.core.errors import SandboxUnavailableError, UserError
from gistpoint.core.locations import read_regular
from gistpoint.core.outcomes import BackendRecord
from gistpoint.core.plugins import HINT, PluginError, declared, described, is_callable, load, named
from gistpoint.sandbox.backends.base import Backend, BackendProbe
from gistpoint.sandbox.limits import RunLimits

UNSANDBOXED = "plain"
_GROUP = "gistpoint.backends"
_CONSENT = "unsandboxed-consent.json"
_FORMAT = {"format": "gistpoint-consent", "version": 1}


def builtin_backends() -> Mapping[str, Callable[[], Backend]]:
    """Return functions that make the built-in backends, in order of preference.

    The keys are the backends' names. Each function imports only the module of its backend. Docker is used if
    bubblewrap does not work, or on request; Landlock, which guarantees less, comes after both.
    """
    return {"bwrap": _bubblewrap, "docker": _docker, "landlock": _landlock, UNSANDBOXED: _plain}


def _bubblewrap() -> Backend:
    from gistpoint.sandbox.backends.bubblewrap import BubblewrapBackend

    return BubblewrapBackend()


def _docker() -> Backend:
    from gistpoint.sandbox.backends.docker.backend import DockerBackend

    return DockerBackend()


def _landlock() -> Backend:
    from gistpoint.sandbox.backends.landlock import LandlockBackend

    return LandlockBackend()


def _plain() -> Backend:
    from gistpoint.sandbox.backends.plain import PlainBackend

    return PlainBackend()


def installed_backends() -> Mapping[str, Callable[[], Backend]]:
    """Return functions that make the backends of other packages in gistpoint's environment, by name.

    They are entry points in the group `gistpoint.backends`, used only on request, and can't replace a
    built-in backend.
    """
    # A package with a backend named `bwrap` would otherwise run the code of users who trust the built-in
    # backend.
    builtin = builtin_backends()
    return {
        entry.name: partial(_load_backend, entry.name)
        for entry in declared(_GROUP)
        if entry.name not in builtin
    }


def _load_backend(name: str) -> Backend:
    entry = named(_GROUP, name)
    assert entry is not None
    made: Backend = load(entry, is_callable)()
    return made


def choose(
    requested: str | None,
    *,
    consented: bool,
    backends: Mapping[str, Callable[[], Backend]] | None = None,
) -> Backend:
    """Return the backend for this machine: `requested`, or the first whose probe works.

    The backend without isolation requires `consented`, even if requested by name. Raises
    `SandboxUnavailableError`, with the remedy, if no backend can be used; a requested backend that does not
    work is never replaced with another.
    """
    available = backends if backends is not None else builtin_backends()
    if requested is not None:
        return _requested(requested, available if backends is not None else _every_backend(), consented)
    complaints = []
    for name, make in available.items():
        # The plain backend always works, so it is used only after all others, and only with consent.
        if name == UNSANDBOXED:
            continue
        backend = make()
        probe = backend.probe()
        if probe.works:
            return backend
        complaints.append(f"{name}: {probe.why_not}. {probe.fix}".strip())
    if consented and UNSANDBOXED in available:
        return available[UNSANDBOXED]()
    raise SandboxUnavailableError(
        "No isolation works on this machine: " + " ".join(complaints),
        hint=(
            "With --allow-unsandboxed, the code and the builds of its requirements run with your"
            " rights, which is safe only for code that you trust."
        ),
    )


def _every_backend() -> Mapping[str, Callable[[], Backend]]:
    return {**builtin_backends(), **installed_backends()}


def _probe_of(backend: Backend) -> BackendProbe:
    probe: object = backend.probe()
    if not isinstance(probe, BackendProbe):
        raise TypeError(f"its probe is a {type(probe).__name__}")
    return probe


def _requested(name: str, available: Mapping[str, Callable[[], Backend]], consented: bool) -> Backend:
    if name not in available:
        raise SandboxUnavailableError(
            f"There is no sandbox {name!r}.", hint=f"Known are: {', '.join(available)}."
        )
    if name == UNSANDBOXED and not consented:
        raise SandboxUnavailableError(
            "Running without isolation was requested, but has not been allowed on this machine.",
            hint=(
                "Allow it with --allow-unsandboxed: code and the builds of its requirements then run"
                " with your rights."
            ),
        )
    try:
        backend = available[name]()
        probe = _probe_of(backend)
    except (UserError, KeyboardInterrupt):
        raise
    except BaseException as error:  # another package's code, as in `plugins.load`
        if name in builtin_backends():
            raise
        raise SandboxUnavailableError(
            f"The sandbox {name} does not work here: {described(error)}.", hint=HINT
        ) from error
    if not probe.works:
        raise SandboxUnavailableError(
            f"The sandbox {name} does not work here: {probe.why_not}.", hint=probe.fix
        )
    return backend


def has_consented(config: Path) -> bool:
    """Whether the user has agreed to run code without isolation on this machine.

    `config` is the folder of the configuration.
    """
    try:
        known = json.loads(read_regular(config / _CONSENT))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(known, dict) and known == {**_FORMAT, "machine": _machine()}


def remember_consent(config: Path) -> None:
    """Store the user's agreement; if machines share the config folder, it is valid only for this one."""
    config.mkdir(parents=True, exist_ok=True)
    text = json.dumps({**_FORMAT, "machine": _machine()}, indent=1) + "\n"
    (config / _CONSENT).write_text(text, "utf-8")


def withdraw_consent(config: Path) -> None:
    """Delete the user's agreement."""
    (config / _CONSENT).unlink(missing_ok=True)


def _machine() -> str:
    """Return an identifier of this machine that reveals nothing about it."""
    try:
        own = Path("/etc/machine-id").read_text("ascii").strip()
    except (OSError, ValueError):
        own = ""
    return hashlib.sha256(f"{own or uuid.getnode()} {platform.node()}".encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The state of one backend on this machine."""

    name: str
    probe: BackendProbe
    record: BackendRecord | None
    """The backend's description for results; None if the backend does not work."""
    enforced: Mapping[str, str]
    plugin: bool = False

    @property
    def isolates(self) -> bool:
        """Whether the backend works and guarantees isolation."""
        return self.probe.works and self.record is not None and self.record.isolated


def diagnose(
    backends: Mapping[str, Callable[[], Backend]] | None = None,
) -> tuple[tuple[Diagnosis, ...], Mapping[str, Backend]]:
    """Probe every backend; return the findings, and the backends that work, by name.

    By default, the built-in backends and those of other packages are probed; an exception of another package
    becomes a finding.
    """
    builtin = builtin_backends() if backends is None else backends
    plugins = installed_backends() if backends is None else {}
    found: list[Diagnosis] = []
    working: dict[str, Backend] = {}
    for name, make in {**builtin, **plugins}.items():
        try:
            backend = make()
            probe = _probe_of(backend)
            record = backend.record(RunLimits()) if probe.works else None
            enforced = backend.enforces() if probe.works else {}
        except BaseException as error:  # another package's code, as in `plugins.load`
            if name not in plugins or isinstance(error, KeyboardInterrupt):
                raise
            why = error.why if isinstance(error, PluginError) else described(error)
            probe = BackendProbe(works=False, why_not=why, fix=HINT)
            found.append(Diagnosis(name, probe, None, {}, plugin=True))
            continue
        found.append(Diagnosis(name, probe, record, enforced, plugin=name in plugins))
        if probe.works:
            working[name] = backend
    return tuple(found), working


def versions() -> Mapping[str, str]:
    """Return the versions that matter for a run, by name; `missing` for a package that is not installed.

    `gistpoint-python` is the path of the interpreter.
    """
    from importlib import metadata

    found = {"python": platform.python_version(), "system": f"{platform.system()} {platform.release()}"}
    for name in ("pytest", "uv", "docker"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "missing"
    return {"gistpoint-python": sys.executable, **found}
