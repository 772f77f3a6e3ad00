"""Tasks in the fields of SWE-bench, one JSON object a line: like SWE-bench, and not SWE-bench.

No public commit is the start of such a task. `instances.jsonl` is for who runs solvers, `trees/` has what they start
from, and `tests/` what judges them: its lines also have the ids of the tests, and the patches on demand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from gistpoint.core.tasks.model import CANARY
from gistpoint.sessions.exports.tasks.exported import ExportedTask, TaskExportSettings


def swebench_files(tasks: Sequence[ExportedTask], settings: TaskExportSettings) -> Iterator[tuple[str, bytes]]:
    """Yield the lines for solvers, the lines with what judges them, and each task's tree and verifier."""
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
