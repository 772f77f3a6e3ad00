"""Formats that other packages declare. An exception in one becomes an error of the file being read.

Otherwise, one faulty format would break the list of all runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from gistpoint.core.plugins import PluginError, PluginFailedError, declared, guarded, instance_of, load
from gistpoint.sessions.records.archives import RunFileError
from gistpoint.sessions.records.format import Format, Raw, RunEntry, RunReader
from gistpoint.sessions.records.model import Run, Step
from gistpoint.sessions.records.probe import FileProbe

if TYPE_CHECKING:
    from importlib import metadata

T = TypeVar("T")


def fault_of_format(loaded: Any) -> str:
    """Return why an object can't be an additional format, in a few words; empty if it can."""
    fault = instance_of(Format)(loaded)
    if fault:
        return fault
    fields = {field: getattr(loaded, field, None) for field in Format.__annotations__}
    return "" if isinstance(fields["name"], str) and fields["name"] else "it has no name"


class InstalledFormat(Format):
    """A format of another package.

    Any exception other than `RunFileError` becomes one that names the package.
    """

    def __init__(self, entry: metadata.EntryPoint, loaded: Format) -> None:
        self._entry, self._loaded = entry, loaded
        for field in Format.__annotations__:
            setattr(self, field, getattr(loaded, field))

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that a file is in this format."""
        return self._guarded(probe, lambda: float(self._loaded.sniff(probe)))

    def runs(self, probe: FileProbe) -> Iterator[RunEntry]:
        """Yield the runs that the format of the other package finds in the file."""
        runs = self._guarded(probe, lambda: iter(self._loaded.runs(probe)))
        while True:
            entry = self._guarded(probe, lambda: _checked(next(runs, _END), RunEntry))
            if entry is None:
                return
            yield entry

    def open(self, probe: FileProbe, id: str) -> RunReader:
        """Return the reader of a run. Raises `RunFileError` if there is no such run."""
        reader: RunReader = self._guarded(probe, lambda: _checked(self._loaded.open(probe, id), RunReader))
        return InstalledReader(reader, partial(self._guarded, probe))

    def _guarded(self, probe: FileProbe, read: Callable[[], T]) -> T:
        try:
            return guarded(self._entry, read)
        except PluginFailedError as failed:
            where = probe.name or "The file"
            raise RunFileError(f"{where} can't be read. {failed.message}", hint=failed.hint) from failed


Guard = Callable[[Callable[[], Any]], Any]
_GIVEN: Mapping[str, type[Any]] = {"header": Run, "step": Step, "place": int}
"""The return types of the reader methods that every format has, by method."""


class InstalledReader(RunReader):
    """A reader of another package, whose members raise `RunFileError` if they fail."""

    def __init__(self, loaded: RunReader, guard: Guard) -> None:
        self._loaded, self._guard = loaded, guard

    def __getattribute__(self, name: str) -> Any:
        """Return a guarded member of the package's reader; names with a leading `_` belong to this object."""
        if name.startswith("_"):
            return super().__getattribute__(name)
        found = self._guard(lambda: getattr(self._loaded, name))
        return partial(self._called, name, found) if callable(found) else found

    def _called(self, name: str, method: Callable[..., Any], *given: Any) -> Any:
        kind = _GIVEN.get(name, object)
        found = self._guard(lambda: _checked(method(*given), kind))
        return self._all(found) if isinstance(found, Iterator) else found

    def _all(self, given: Iterator[Any]) -> Iterator[Any]:
        while (item := self._guard(lambda: next(given, _END))) is not _END:
            yield item

    def header(self) -> Run:
        """Satisfy the abstract class; `__getattribute__` returns the package's method instead."""
        raise NotImplementedError

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        """Satisfy the abstract class, like `header`."""
        raise NotImplementedError


_END = object()
"""Marks the end of what a package yields."""


def _checked(given: Any, kind: type[Any]) -> Any:
    """Return the object if it has the expected type; None at the end.

    Raises `TypeError` for anything else.
    """
    if given is _END:
        return None
    if not isinstance(given, kind):
        raise TypeError(f"it produces a {type(given).__name__}, not a {kind.__name__}")
    return given


def installed_formats(group: str) -> Iterator[InstalledFormat]:
    """Yield the formats that packages declare in an entry-point group, except those that can't be loaded."""
    for entry in declared(group):
        try:
            yield InstalledFormat(entry, load(entry, fault_of_format))
        except PluginError:
            continue
