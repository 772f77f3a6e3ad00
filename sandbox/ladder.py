"""Which backend a run gets: the configured one, or the strongest that works; no isolation only if the user agreed."""

from __future__ import annotations

import hashlib
import json
import platform
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path

from gistpoint.core.errors import SandboxUnavailableError
from gistpoint.core.outcomes import BackendRecord
from gistpoint.sandbox.attacks.stage import staged
from gistpoint.sandbox.attacks.table import ATTACKS, Attack
from gistpoint.sandbox.attacks.trying import Finding, try_attack
from gistpoint.sandbox.backends.base import Backend, Probe
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.limits import Limits, enforcement

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


PLUGIN_GROUPS = ("gistpoint.formats", "gistpoint.backends", "gistpoint.operators", "gistpoint.exporters")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One backend on this machine."""

    name: str
    probe: Probe
    record: BackendRecord | None
    """None where it does not work."""
    enforced: Mapping[str, str]
    plugin: bool = False

    @property
    def isolates(self) -> bool:
        """Whether it works and promises isolation."""
        return self.probe.works and self.record is not None and self.record.isolated


def diagnose(
    backends: Mapping[str, Callable[[], Backend]] | None = None,
) -> tuple[tuple[Diagnosis, ...], Mapping[str, Backend]]:
    """Probe every backend, those of other packages included; return what was found and those that work."""
    builtin = builtin_backends() if backends is None else backends
    plugins = installed_backends() if backends is None else {}
    found: list[Diagnosis] = []
    working: dict[str, Backend] = {}
    for name, make in {**builtin, **plugins}.items():
        try:
            backend = make()
            probe = backend.probe()
        except Exception as error:  # another package's code: what it raises says why it does not work
            if name not in plugins:
                raise
            probe = Probe(works=False, why_not=f"{type(error).__name__}: {error}", mend="Ask whoever made the plugin.")
            found.append(Diagnosis(name, probe, None, {}, plugin=True))
            continue
        record = backend.record(Limits()) if probe.works else None
        held = enforcement(record) if record is not None else {}
        found.append(Diagnosis(name, probe, record, held, plugin=name in plugins))
        if probe.works:
            working[name] = backend
    return tuple(found), working


def plugins() -> tuple[tuple[str, str, str], ...]:
    """Return group, name and distribution of every plugin in gistpoint's own environment; none is loaded."""
    found = []
    for group in PLUGIN_GROUPS:
        for point in metadata.entry_points(group=group):
            of = f"{point.dist.name} {point.dist.version}" if point.dist is not None else ""
            found.append((group, point.name, of))
    return tuple(sorted(found))


def versions() -> Mapping[str, str]:
    """Return the versions that matter for a run."""
    told = {"python": platform.python_version(), "system": f"{platform.system()} {platform.release()}"}
    for name in ("pytest", "uv", "docker"):
        try:
            told[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            told[name] = "missing"
    return {"gistpoint-python": sys.executable, **told}


def self_test(
    backends: Mapping[str, Backend], cache: Path, attacks: Sequence[Attack] = ATTACKS
) -> Iterator[tuple[Attack, Mapping[str, Finding]]]:
    """Try every attack on every backend; yields as they are done."""
    environments = EnvironmentStore(cache)
    with staged() as stage:
        for attack in attacks:
            tried = {name: try_attack(backend, attack, stage, environments) for name, backend in backends.items()}
            yield attack, tried
