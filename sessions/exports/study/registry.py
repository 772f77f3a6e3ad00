"""The formats that a study is exported to, by the name that the user gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import cast

from gistpoint.core.study.data import StudyData
from gistpoint.core.study.operations import StudyError


@dataclass(frozen=True)
class StudyExport:
    """What an exporter may use."""

    data: StudyData
    journals: Mapping[str, Path] = field(default_factory=dict)
    """The published journal of each attempt of the data, by the attempt's id in the data."""
    public: bool = False
    """Whether the data have pseudonyms, so that nothing may be added from journals that people wrote or that
    names them.
    """
    simulated_wanted: bool = False
    """Whether formats that have no place for the word may hold simulated data."""


StudyExporter = Callable[[StudyExport], Iterator[tuple[str, bytes]]]
"""Yields the name of each file, relative to a folder of its own, and its content."""

_BUILT_IN: Mapping[str, str] = {
    "tidy": "gistpoint.sessions.exports.study.tidy:tidy_files",
    "breakpoint": "gistpoint.sessions.exports.study.breakpoint:breakpoint_files",
    "metr": "gistpoint.sessions.exports.study.metr:metr_files",
    "inspect": "gistpoint.sessions.exports.study.inspect_eval:inspect_files",
    "atif": "gistpoint.sessions.exports.study.recordings:atif_files",
    "cast": "gistpoint.sessions.exports.study.recordings:cast_files",
}
NAMES = tuple(_BUILT_IN)


_OF_WHOLE_JOURNALS = frozenset({"atif", "cast"})
"""Formats that hold what people wrote, wherever they wrote it."""


def study_exporter(name: str, *, public: bool = False) -> StudyExporter:
    """Return the exporter of a format; loaded now. Raises `StudyError` if it is unknown, or not for the
    public.
    """
    if name not in _BUILT_IN:
        raise StudyError(
            f"There is no export of studies to {name[:40]!r}.", hint=f"Known: {', '.join(NAMES)}."
        )
    if public and name in _OF_WHOLE_JOURNALS:
        raise StudyError(
            f"The format {name} holds whole attempts, with all that people wrote: there is no public export"
            " to it.",
            hint=f"There is one to: {', '.join(name for name in NAMES if name not in _OF_WHOLE_JOURNALS)}.",
        )
    module, _, function = _BUILT_IN[name].partition(":")
    return cast("StudyExporter", getattr(import_module(module), function))
