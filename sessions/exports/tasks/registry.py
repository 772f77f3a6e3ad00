"""The formats of exported tasks, by the name that the user gives; packages can add theirs by entry point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from gistpoint.core.errors import UserError
from gistpoint.core.plugins import declared, is_callable, load
from gistpoint.sessions.exports.tasks.exported import TaskExporter
from gistpoint.sessions.exports.tasks.harbor import harbor_files
from gistpoint.sessions.exports.tasks.inspect import inspect_files
from gistpoint.sessions.exports.tasks.swebench import swebench_files

TASK_ENTRY_POINTS = "gistpoint.task_exporters"
"""The entry-point group: each entry names one `TaskExporter`."""

_BUILT_IN: Mapping[str, TaskExporter] = {"harbor": harbor_files, "inspect": inspect_files, "swebench": swebench_files}
TASK_FORMATS = tuple(_BUILT_IN)


def task_exporter(name: str) -> TaskExporter:
    """Return the writer of the format `name`. Raises `UserError` if it is unknown or can't be loaded."""
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    installed = {entry.name: entry for entry in declared(TASK_ENTRY_POINTS)}
    if name in installed:
        return cast("TaskExporter", load(installed[name], is_callable))
    known = ", ".join(["archive", *TASK_FORMATS, *installed])
    raise UserError(f"Tasks can't be exported to {name!r}.", hint=f"Known: {known}.")
