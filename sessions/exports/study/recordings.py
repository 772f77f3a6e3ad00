"""Exports each attempt of a study, by people and by models, to its own file with the exporters of runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gistpoint.sessions.exports.registry import exporter
from gistpoint.sessions.exports.study.naming import file_part, prefix_of
from gistpoint.sessions.exports.study.registry import StudyExport
from gistpoint.sessions.runs.opening import open_run


def atif_files(export: StudyExport) -> Iterator[tuple[str, bytes]]:
    """Yield the file name and the ATIF trajectory of each published attempt and of each model's run."""
    return _files(export, "atif", "json")


def cast_files(export: StudyExport) -> Iterator[tuple[str, bytes]]:
    """Yield the file name and the asciinema recording of each published attempt and of each model's run."""
    return _files(export, "cast", "cast")


def _files(export: StudyExport, format: str, ending: str) -> Iterator[tuple[str, bytes]]:
    write = exporter(format)
    recorded: dict[str, Path | str] = {**export.journals, **export.runs}
    names = {row.attempt: f"{file_part(row.solver)}-" for row in export.data.rows if row.solver}
    for identity, opened_as in sorted(recorded.items()):
        text = "".join(write(open_run(opened_as)))
        name = f"{names.get(identity, '')}{file_part(identity)}.{ending}"
        yield f"{prefix_of(export.data)}{name}", text.encode("utf-8", "backslashreplace")
