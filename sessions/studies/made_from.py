"""Deletes the tasks that were made from the failed submissions of people who were erased (decision 141).

Such a task contains a part of its author's code. Its answer names the study and the attempt, never the
person. The verdicts of a campaign and the copy of the submissions for its workers contain the code as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from gistpoint.core.errors import UserError
from gistpoint.core.generation.submissions import SUBMISSIONS_FILE, origins_in
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.locations import Locations
from gistpoint.core.logs import take, torn_path
from gistpoint.core.study.operations import StudyError
from gistpoint.core.tasks.documents import ANSWER_FILE
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.tasks import TaskStore, contains

HasToGo = Callable[[str], bool]
"""Returns whether tasks made from an attempt of the study must be deleted."""


def studies_of(task: Task) -> frozenset[str]:
    """Return the ids of the studies from whose submissions a task was made; empty if it has no answer."""
    with suppress(UserError, OSError):
        return frozenset(study for study, _ in origins_in(read_answer(task).provenance) if study)
    return frozenset()


def delete_made_from(locations: Locations, study: str, has_to_go: HasToGo) -> tuple[str, ...]:
    """Delete the tasks made from submissions of a study if they have to be deleted, and return their ids.

    Raises `StudyError` while a campaign is running whose verdicts have to be deleted.
    """
    _delete_verdicts(locations.campaigns, study, has_to_go)
    for file in locations.libraries.glob(f"*/{SUBMISSIONS_FILE.format('*')}"):
        if contains(file, study):
            file.unlink(missing_ok=True)  # the next command collects the submissions again
    store, deleted = TaskStore(locations.tasks), []
    for task in _tasks_naming(store, study):
        origins = _origins(task)
        if any(of == study and has_to_go(attempt) for of, attempt in origins):
            store.remove(task)
            deleted.append(task.id)
    return tuple(deleted)


def _tasks_naming(store: TaskStore, study: str) -> Iterator[Task]:
    """Yield the tasks whose answers contain the id of a study, which limits how many answers are decoded."""
    tasks = [entry for entry in store.tasks() if isinstance(entry, Task)]
    return (task for task in tasks if contains(task.folder / ANSWER_FILE, study))


def _origins(task: Task) -> set[tuple[str, str]]:
    try:
        return origins_in(read_answer(task).provenance)
    except UserError:
        return set()


def _delete_verdicts(campaigns: Path, study: str, has_to_go: HasToGo) -> None:
    """Delete all verdicts of each campaign in which one must be deleted; tasks from other submissions stay.

    A line can't be removed from a log; the same command decides the other candidates again.
    """
    for file in sorted(campaigns.glob("*.jsonl")):
        if not contains(file, study) or not _verdicts_have_to_go(file, study, has_to_go):
            continue
        lock = take(file)
        if lock is None:
            raise StudyError(
                f"Tasks are being made from submissions of {study}, so they can't be deleted.",
                hint="Stop `gistpoint task generate` (Ctrl+C), then run the command again.",
            )
        with lock:
            for path in (file, torn_path(file)):
                path.unlink(missing_ok=True)


def _verdicts_have_to_go(file: Path, study: str, has_to_go: HasToGo) -> bool:
    for line in file.read_bytes().splitlines():
        with suppress(ValueError, RecursionError):
            value = json.loads(line)
            origins = origins_in(_provenance_in(value))
            if any(of == study and has_to_go(attempt) for of, attempt in origins):
                return True
    return False


def _provenance_in(line: Any) -> Mapping[str, Any]:
    """Return the provenance in a line of a campaign's file; empty if the line has none."""
    kept = line.get("kept") if isinstance(line, dict) else None
    found = kept.get("provenance") if isinstance(kept, dict) else None
    return found if isinstance(found, dict) else {}
