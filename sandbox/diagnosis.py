"""What works on this machine: every backend probed, with what keeps it from working and what would mend that."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from gistpoint.core.outcomes import BackendRecord
from gistpoint.sandbox.attacks.stage import staged
from gistpoint.sandbox.attacks.table import ATTACKS, Attack
from gistpoint.sandbox.attacks.trying import Finding, try_attack
from gistpoint.sandbox.backends.base import Backend, Probe
from gistpoint.sandbox.enforcement import enforcement
from gistpoint.sandbox.environments import EnvironmentStore
from gistpoint.sandbox.ladder import builtin_backends, installed_backends
from gistpoint.sandbox.limits import Limits

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
