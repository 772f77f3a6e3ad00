"""Writes `expected.json`: what the bundle compares a run with. It is as secret as the answer it is made from."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.gist.answer import GistAnswer
from gistpoint.core.kinds.gist.documents import gist_answer_document
from gistpoint.core.kinds.gist.model import command_identity, gist_task
from gistpoint.core.kinds.registry import kind_named
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.tasks.documents import json_text
from gistpoint.core.tasks.model import CANARY, Answer, Task

NAME = "expected.json"


def expected_text(task: Task, answer: Answer, backend: str = "docker") -> str:
    """Return the file for a task, with the baseline of `backend` if there is one. It holds no original code.

    Raises `TaskError` for a kind of task that the bundle does not judge.
    """
    known, kind = answer.of_kind, kind_named(task.mode)
    judged = isinstance(known, GistAnswer) or (kind is not None and kind.has_targets)
    if not judged:
        raise TaskError(
            f"Tasks of the mode {task.mode!r} are judged by gistpoint alone.", hint="`--to archive` exports them."
        )
    own = _of_gist(task, known) if isinstance(known, GistAnswer) else _of_repair(task, answer, backend)
    head = {"format": "gistpoint.expected", "version": 1, "canary": CANARY, "task": task.id}
    return json_text({**head, "environment": _environment(task.environment), **own})


def _environment(pins: EnvironmentPins) -> dict[str, Any]:
    return {
        "import_roots": pins.import_roots,
        "plugins": pins.plugins,
        "pytest_args": pins.pytest_args,
        "build_steps": pins.build_steps,
        "metadata": dict(pins.metadata),
    }


def _of_repair(task: Task, answer: Answer, backend: str) -> dict[str, Any]:
    baseline = answer.baseline_for(backend)
    known = baseline.protections.get(backend) or next(iter(baseline.protections.values()), None)
    writable = known.writable if known is not None else None
    return {
        "kind": "repair",
        "timeout_s": task.suite.timeout_s,
        "FAIL_TO_PASS": sorted(baseline.failing),
        "PASS_TO_PASS": sorted(baseline.passed - baseline.failing),
        "collected": sorted(baseline.collected),
        "deselected": task.suite.deselected,
        "test_files": task.suite.test_files,
        "writable": None if writable is None else asdict(writable),
        "targets": [
            {"path": target.path, "qualname": target.qualname, "corrupted": target.corrupted}
            for target in answer.targets
        ],
    }


def _of_gist(task: Task, answer: GistAnswer) -> dict[str, Any]:
    document = gist_answer_document(answer)
    return {
        "kind": "gist",
        "timeout_s": answer.timeout_s,
        **command_identity(gist_task(task)),
        "test": document["test"] if answer.test else None,
        **{key: document[key] for key in ("owned", "modules", "originals", "compared_files")},
    }
