"""Exports each attempt of a study to its own file, with the exporters of runs."""

from __future__ import annotations

from collections.abc import Iterator

from gistpoint.sessions.exports.atif import atif_text
from gistpoint.sessions.exports.cast import cast_text
from gistpoint.sessions.exports.registry import Exporter
from gistpoint.sessions.exports.study.naming import prefix_of
from gistpoint.sessions.exports.study.registry import StudyExport
from gistpoint.sessions.runs.opening import open_run


def atif_files(export: StudyExport) -> Iterator[tuple[str, bytes]]:
    """Yield the file name and the ATIF trajectory of each published attempt."""
    return _files(export, atif_text, "json")


def cast_files(export: StudyExport) -> Iterator[tuple[str, bytes]]:
    """Yield the file name and the asciinema recording of each published attempt."""
    return _files(export, cast_text, "cast")


def _files(export: StudyExport, exporter: Exporter, ending: str) -> Iterator[tuple[str, bytes]]:
    for identity, journal in sorted(export.journals.items()):
        text = "".join(exporter(open_run(journal)))
        yield f"{prefix_of(export.data)}{identity}.{ending}", text.encode("utf-8", "backslashreplace")
