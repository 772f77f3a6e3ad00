"""The export formats of tasks by name, and the writer of `swebench`; entry points can add formats."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from gistpoint.core.errors import UserError, did_you_mean
from gistpoint.core.plugins import declared, is_callable, load, named, pieces_of
from gistpoint.core.tasks.model import CANARY
from gistpoint.core.text import shortened
from gistpoint.sessions.exports.tasks.exported import ExportedTask, TaskExporter, TaskExportSettings
from gistpoint.sessions.exports.tasks.harbor import harbor_files, inspect_files


def swebench_files(
    tasks: Sequence[ExportedTask], settings: TaskExportSettings
) -> Iterator[tuple[str, bytes]]:
    """Yield the path and content of the instances for solvers and for judging, the trees and the verifier."""
    yield "instances.jsonl", _lines([_instance(one) for one in tasks])
    yield "tests/instances.jsonl", _lines([_instance(one) | _judging(one, settings) for one in tasks])
    for one in tasks:
        yield f"trees/{one.name}.tar", one.tree()
        yield f"tests/{one.name}/expected.json", one.expected.encode("utf-8")
    for verifier in {one.verifier for one in tasks}:
        yield "tests/verify.pyz", verifier


def _lines(rows: Sequence[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _instance(one: ExportedTask) -> dict[str, Any]:
    source = one.task.source
    return {
        "instance_id": one.name,
        "repo": source.name,
        "base_commit": source.revision,
        "version": source.revision if source.kind == "sdist" else "",
        "problem_statement": one.brief(as_patch=True),
        "created_at": "",
        "tree": f"trees/{one.name}.tar",
        "gistpoint": {"id": one.task.id, "mode": str(one.task.mode), "canary": CANARY},
    }


def _judging(one: ExportedTask, settings: TaskExportSettings) -> dict[str, Any]:
    expected = json.loads(one.expected)
    gist = one.gist_path.rpartition("/")[2]
    fails = expected.get("FAIL_TO_PASS", sorted(expected["originals"][0].get("tests", ())) if gist else [])
    solution, corruption = one.patches() if settings.with_solution else ("", "")
    return {
        "FAIL_TO_PASS": fails,
        "PASS_TO_PASS": expected.get("PASS_TO_PASS", []),
        "patch": solution,
        "mutation_patch": corruption,
        "test_patch": "",
    }


TASK_ENTRY_POINTS = "gistpoint.task_exporters"
"""The entry-point group: each entry names one `TaskExporter`."""

_BUILT_IN: Mapping[str, TaskExporter] = {
    "harbor": harbor_files,
    "inspect": inspect_files,
    "swebench": swebench_files,
}
TASK_FORMATS = tuple(_BUILT_IN)


def task_exporter(name: str) -> TaskExporter:
    """Return the exporter of the format `name`. Raises `UserError` if it is unknown or can't be loaded."""
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    entry = named(TASK_ENTRY_POINTS, name)
    if entry is not None:
        return partial(pieces_of, entry, load(entry, is_callable), _fault_of_file)
    installed = [entry.name for entry in declared(TASK_ENTRY_POINTS)]
    known = ["archive", *TASK_FORMATS, *installed]
    raise UserError(
        f"Tasks can't be exported to {name!r}.{did_you_mean(name, known)}", hint=f"Known: {', '.join(known)}."
    )


def _fault_of_file(piece: Any) -> str:
    """Return why a file from another package's exporter can't be written below a folder; empty if it can.

    A path that leads out of the folder would replace the user's other files.
    """
    match piece:
        case (str() as name, bytes()):
            path = PurePosixPath(name)
            leads_out = path.is_absolute() or ".." in path.parts
            is_name = bool(path.parts) and "\0" not in name
            return "" if is_name and not leads_out else f"it yields the path {shortened(name, 100)!r}"
        case _:
            return f"it yields a {type(piece).__name__} that is not a path and its bytes"
