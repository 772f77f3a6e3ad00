"""Finds the format of a file by its content.

A module joins by standing in this folder with a `FORMAT`, or by the entry-point group `gistpoint.formats` of an
installed package; no list names it.
"""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol, cast

import gistpoint.sessions.formats as folder
from gistpoint.sessions.formats.foreign import Foreign, foreign_kind, looks_like
from gistpoint.sessions.formats.probe import Probe
from gistpoint.sessions.runs.archives import Blob, NoRunError, RunFileError
from gistpoint.sessions.runs.model import Actor, Json, NotShown, Run, Step
from gistpoint.sessions.runs.reader import Raw, RunReader
from gistpoint.sessions.runs.scanning import Record

_LONGEST_ID = 120


@dataclass(frozen=True, slots=True)
class RunEntry:
    """One run of a file: `id` is empty where the file holds just one."""

    id: str
    header: Run


class Format(Protocol):
    """A format of recorded runs. Neither method trusts the name of the file."""

    @property
    def name(self) -> str:
        """Short name, as shown: `swe-agent`."""
        ...

    @property
    def not_shown(self) -> Sequence[NotShown]:
        """Members of the raw records that no step shows, and why not."""
        ...

    def sniff(self, probe: Probe) -> float:
        """Return how sure it is, 0 to 1, from both ends of the bytes alone."""
        ...

    def runs(self, probe: Probe) -> Iterator[RunEntry]:
        """List the runs in the file, each with as much of its header as is cheap."""
        ...

    def open(self, probe: Probe, id: str) -> RunReader:
        """Open the run named `id`, or the only one. Raises `RunFileError` where there is no such run."""
        ...


class BaseReader(ABC):
    """A reader of one blob whose every record is a step; subclasses say otherwise."""

    format = ""

    def __init__(self, probe: Probe) -> None:
        self.probe = probe
        self.blobs: Sequence[Blob] = [probe.blob]
        self.warnings: list[str] = []
        self.facts: dict[str, Json] = {}

    def fact(self, key: str) -> Json:
        """Return a member of the top object: as indexed, else as seen at either end of the file."""
        return self.facts[key] if key in self.facts else self.probe.early(key)

    def more(self, offset: int, before: int) -> Iterator[Record] | None:
        """The file is written anew with every step, unless a subclass says otherwise."""
        return None

    def place(self, fields: Json, step_count: int) -> int:
        """Every record is a step."""
        return step_count

    def had_a_step(self, fields: Json) -> bool:
        """Reviews have known the steps as they are."""
        return False

    def completed(self, value: Json) -> Json:
        """Records refer to nothing."""
        return value

    @abstractmethod
    def records(self) -> Iterator[Record]:
        """Yield every record."""

    @abstractmethod
    def header(self) -> Run:
        """Return what is known of the run by now."""

    @abstractmethod
    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        """Make a step."""


class RunNames:
    """Gives each run of a file an id of its own: its name, `~2` and on where that repeats, cut where it is too long."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def name(self, name: str) -> str:
        """Return the id of the next run."""
        if len(name) > _LONGEST_ID:
            import hashlib

            digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
            name = f"{name[:_LONGEST_ID]}~{digest}"
        name = name.encode("utf-8", "replace").decode()
        self._seen[name] = self._seen.get(name, 0) + 1
        return name if self._seen[name] == 1 else f"{name}~{self._seen[name]}"


class SingleRun(ABC):
    """A format whose files hold one run each."""

    name = ""
    not_shown: Sequence[NotShown] = ()

    @abstractmethod
    def reader(self, probe: Probe) -> RunReader:
        """Open the run."""

    def runs(self, probe: Probe) -> Iterator[RunEntry]:
        """List the one run."""
        yield RunEntry("", self.reader(probe).header())

    def open(self, probe: Probe, id: str) -> RunReader:
        """Open the one run; it has no id."""
        if id:
            raise RunFileError(
                f"{probe.name or 'The file'} holds one run only: there is no #{id}.", hint="Leave the # out."
            )
        return self.reader(probe)


def actor_of(role: str) -> Actor:
    """Return who speaks under a role of chat messages."""
    return {
        "assistant": Actor.AGENT, "agent": Actor.AGENT, "model": Actor.AGENT, "user": Actor.USER, "human": Actor.USER,
        "system": Actor.SYSTEM, "developer": Actor.SYSTEM,
    }.get(role, Actor.ENVIRONMENT)  # fmt: skip


ENTRY_POINTS = "gistpoint.formats"


CERTAIN = 0.9
"""How sure a built-in format must be for installed ones not to be asked."""


@cache
def formats() -> tuple[Format, ...]:
    """Return every format known, built-in ones first."""
    return (*_built_in(), *_installed())


@cache
def _built_in() -> tuple[Format, ...]:
    found: list[Format] = []
    for module in pkgutil.iter_modules(folder.__path__, folder.__name__ + "."):
        loaded = importlib.import_module(module.name)
        if hasattr(loaded, "FORMAT"):
            found.append(cast("Format", loaded.FORMAT))
    return tuple(found)


@cache
def _installed() -> tuple[Format, ...]:
    from importlib.metadata import entry_points

    return tuple(cast("Format", point.load()) for point in entry_points(group=ENTRY_POINTS))


def recognise(probe: Probe) -> Format:
    """Return the format that is surest of the bytes. Raises `RunFileError` where none is."""
    where = probe.name or "The file"
    if not probe.blob.size:
        raise RunFileError(f"{where} is empty.")
    for known, certain in ((_built_in, CERTAIN), (_built_in, CERTAIN), (formats, 0.0)):
        sureness = [(format.sniff(probe), number) for number, format in enumerate(known())]
        sure, number = max(sureness, key=lambda pair: pair[0])
        if sure > 0 and sure >= certain:
            return known()[number] if sure >= 1 else _unless_foreign(probe, known()[number])
        probe.widen()
    kind = foreign_kind(probe)
    if kind is not None:
        raise _no_reader(probe, kind)
    if probe.head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise RunFileError(f"{where} is UTF-16 text.", hint="Convert it to UTF-8 first.")
    if b"\0" in probe.head[:4096].strip(b"\0"):
        raise RunFileError(f"{where} is binary data of no known format.")
    names = ", ".join(format.name for format in formats())
    shape = looks_like(probe)
    if shape:
        raise NoRunError(f"{where} is in no format that is known here: it looks like {shape}.", hint=f"Known: {names}.")
    raise RunFileError(f"{where} is in no format that is known here.", hint=f"Known: {names}.")


def _unless_foreign(probe: Probe, format: Format) -> Format:
    """Return the format; raise if the file is of another one, which no installed format reads either."""
    kind = foreign_kind(probe)
    if kind is None or format in _installed():
        return format
    sure, number = max(((other.sniff(probe), number) for number, other in enumerate(_installed())), default=(0.0, 0))
    if sure > 0:
        return _installed()[number]
    raise _no_reader(probe, kind)


def _no_reader(probe: Probe, kind: Foreign) -> NoRunError:
    where = probe.name or "The file"
    return NoRunError(f"{where} seems to be {kind.name}, for which there is no reader here.", hint=kind.hint)
