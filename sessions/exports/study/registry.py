"""The export formats of studies, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import cast

from gistpoint.core.analysis.running import PRIMARY, RanAnalysis, chosen, missing_extra, run_analyses
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.operations import StudyError


@dataclass(frozen=True)
class StudyExport:
    """The data that an exporter may use."""

    data: StudyData
    journals: Mapping[str, Path] = field(default_factory=dict)
    """The paths of the published journals, by the attempts' ids in the data."""
    runs: Mapping[str, str] = field(default_factory=dict)
    """The names of models' recorded runs, as `open_run` takes them, by the attempts' ids in the data."""
    public: bool = False
    """Whether the data are pseudonymous, so that no text by people and no names may be added to them."""
    simulated_wanted: bool = False
    """Whether formats without room for the word SIMULATED may contain simulated data."""

    @cached_property
    def ran(self) -> tuple[RanAnalysis, ...]:
        """The declared and primary analyses, except failed ones, run once for all formats that need them.

        If no analysis is declared, all known analyses run.
        """
        declared = self.data.study.report.analyses
        found = run_analyses(self.data, chosen([*declared, PRIMARY] if declared else []))
        return tuple(ran for ran in found if not ran.failed)


StudyExporter = Callable[[StudyExport], Iterator[tuple[str, bytes]]]
"""A function that yields each file's name, relative to the format's folder, and content."""

_BUILT_IN: Mapping[str, str] = {
    "tidy": "gistpoint.sessions.exports.study.tidy:tidy_files",
    "breakpoint": "gistpoint.sessions.exports.study.breakpoint:breakpoint_files",
    "metr": "gistpoint.sessions.exports.study.metr:metr_files",
    "inspect": "gistpoint.sessions.exports.study.inspect_eval:inspect_files",
    "atif": "gistpoint.sessions.exports.study.recordings:atif_files",
    "cast": "gistpoint.sessions.exports.study.recordings:cast_files",
    "figures": "gistpoint.sessions.exports.study.pictures:figure_files",
    "latex": "gistpoint.sessions.exports.study.pictures:latex_files",
}
NAMES = tuple(_BUILT_IN)


_OF_WHOLE_JOURNALS = frozenset({"atif", "cast"})
"""Formats that contain all text written by people."""


def study_exporter(name: str, *, public: bool = False) -> StudyExporter:
    """Load and return the exporter of a format. Raises `StudyError` if it is unknown or can't be public."""
    if name not in _BUILT_IN:
        raise StudyError(
            f"There is no export of studies to {name[:40]!r}.", hint=f"Known: {', '.join(NAMES)}."
        )
    if public and name in _OF_WHOLE_JOURNALS:
        raise StudyError(
            f"The format {name} contains whole attempts, with everything that people wrote, so it"
            " can't be used for a public export.",
            hint="Public exports are possible in:"
            f" {', '.join(name for name in NAMES if name not in _OF_WHOLE_JOURNALS)}.",
        )
    module, _, function = _BUILT_IN[name].partition(":")
    try:
        return cast("StudyExporter", getattr(import_module(module), function))
    except ModuleNotFoundError as error:
        raise missing_extra(error) from error
