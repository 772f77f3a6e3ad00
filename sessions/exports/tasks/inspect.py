"""Tasks as Inspect runs them: one `task.py` for all of them, and a folder each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any

from gistpoint.core.kinds.registry import render_brief
from gistpoint.core.tasks.model import CANARY
from gistpoint.sessions.exports.tasks.exported import REPOSITORY, ExportedTask, TaskExportSettings
from gistpoint.sessions.exports.tasks.harbor import dockerfile, requirements, verifying_script


def inspect_files(tasks: Sequence[ExportedTask], settings: TaskExportSettings) -> Iterator[tuple[str, bytes]]:
    """Yield the program, its samples, and for each task its container and what judges it."""
    program = files("gistpoint.sessions.exports.tasks").joinpath("templates", "inspect_task.py.txt").read_text("utf-8")
    yield "task.py", program.replace("{{canary}}", CANARY).encode()
    rows = (json.dumps(_sample(one)) for one in tasks)
    yield "samples.jsonl", "".join(f"{row}\n" for row in rows).encode()
    for one in tasks:
        yield f"{one.name}/environment/Dockerfile", dockerfile(one, settings).encode()
        yield f"{one.name}/environment/requirements.txt", requirements(one).encode()
        yield f"{one.name}/environment/tree.tar", one.tree()
        yield f"{one.name}/tests/test.sh", verifying_script(one).encode()
        yield f"{one.name}/tests/verify.pyz", one.verifier
        yield f"{one.name}/tests/expected.json", one.expected.encode()
        yield f"{one.name}/tests/tree.tar", one.tree()
        if settings.with_solution:
            for path, data in one.solution_files().items():
                yield f"{one.name}/solution/files/{path}", data


def _sample(one: ExportedTask) -> dict[str, Any]:
    task = one.task
    gist = {"execution_enforced": False} if one.gist_path else {}
    return {
        "name": one.name,
        "id": task.id,
        "brief": one.brief(),
        "own_brief": render_brief(task),
        "place": one.gist_path or REPOSITORY,
        "gist": bool(one.gist_path),
        "budgets": {"tool_uses": task.budgets.tool_uses, "submissions": task.budgets.submissions, "enforced": False},
        "canary": CANARY,
        **gist,
    }
