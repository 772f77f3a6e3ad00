"""The conditions of a task: everything outside of its id that affects its solvers.

Every attempt records their digest. Tasks with the same id are compared by their conditions (decision 119).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from gistpoint.core.canonical import sha256_of_json, sha256_of_text
from gistpoint.core.errors import TaskError
from gistpoint.core.tasks.model import Task

_SHOWN = 80


class TaskConflictError(TaskError):
    """Raised if a task with the same id and different conditions is already present."""


def conditions_of(task: Task, of_kind: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the conditions of a task by part and key; `of_kind` is the part specific to its kind."""
    brief, suite, pins = task.brief, task.suite, task.environment
    return {
        "budgets": asdict(task.budgets),
        "limits": asdict(task.limits),
        "rules": asdict(task.rules),
        "brief": {
            "target": brief.target,
            "targets": brief.targets,
            "several": task.several,
            "failing": sorted(failure.id for failure in brief.failing),
        },
        "suite": {
            "tests": suite.tests,
            "ids_sha256": suite.ids_sha256,
            "deselected": sorted(suite.deselected),
            "test_files": sorted(suite.test_files),
        },
        "environment": {"pytest_args": list(pins.pytest_args), "plugins": list(pins.plugins)},
        "kind": dict(of_kind),
    }


def conditions_sha256(task: Task, of_kind: Mapping[str, Any], brief: str, tool_semantics: int) -> str:
    """Return the digest of an attempt's conditions: those of its task, its brief and its tool semantics."""
    texts = {"template": task.brief.template, "template_sha256": task.brief.template_sha256}
    return sha256_of_json(
        {
            **conditions_of(task, of_kind),
            "texts": {**texts, "brief_sha256": sha256_of_text(brief)},
            "tool_semantics": tool_semantics,
        }
    )


def require_same_conditions(
    known: Task, known_kind: Mapping[str, Any], other: Task, kind: Mapping[str, Any]
) -> None:
    """Raise `TaskConflictError`, naming a difference, if two tasks with the same id differ in conditions."""
    for key, here, there in _differing(conditions_of(known, known_kind), conditions_of(other, kind)):
        raise TaskConflictError(
            f"There is already another task with the id {known.short_id}: its key {key!r} is {_quoted(here)},"
            f" but in this one it is {_quoted(there)}.",
            hint=(
                "Ask its author which one is right. `gistpoint task delete` deletes the one on this machine."
            ),
        )


def kept_differences(known: Task, other: Task) -> tuple[str, ...]:
    """Return the keys outside of the conditions in which two tasks differ: in measurements and wording."""
    found = _differing(_measured(known), _measured(other))
    return tuple(key for key, _, _ in found)


def _measured(task: Task) -> dict[str, dict[str, Any]]:
    pins, brief = asdict(task.environment), task.brief
    return {
        "suite": {"seconds": task.suite.seconds, "timeout_s": task.suite.timeout_s},
        "brief": {
            "template": brief.template,
            "template_sha256": brief.template_sha256,
            "signature": brief.signature,
            "docstring": brief.docstring,
            "test": brief.test,
            "failing": [failure.text for failure in brief.failing],
        },
        "environment": {
            key: value for key, value in pins.items() if key not in ("pytest_args", "plugins", "lock")
        },
    }


def _differing(
    one: Mapping[str, Mapping[str, Any]], other: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, Any, Any]]:
    for part, values in one.items():
        for key in sorted({*values, *other[part]}):
            here, there = values.get(key), other[part].get(key)
            if here != there:
                yield (key if part == "kind" else f"{part}.{key}"), here, there


def _quoted(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
