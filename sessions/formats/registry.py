"""Finds the format of a file by its content.

A module joins by standing in this folder with a `FORMAT`, or by the entry-point group `gistpoint.formats` of an
installed package; no list names it.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import cast

import gistpoint.sessions.formats as folder
from gistpoint.sessions.formats.foreign import Foreign, foreign_kind, looks_like
from gistpoint.sessions.formats.probe import Probe
from gistpoint.sessions.formats.protocol import Format
from gistpoint.sessions.runs.blobs import NoRunError, RunFileError

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
