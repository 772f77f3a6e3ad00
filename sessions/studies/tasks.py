"""Reads the tasks of a study from folders, archives or a list, with the facts that assigning requires."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from gistpoint.core.attempts.identity import Role
from gistpoint.core.demo.tasks import demo_named
from gistpoint.core.errors import TaskError, UserError
from gistpoint.core.generation.earlier import HISTORY
from gistpoint.core.kinds.archive import unpack_task
from gistpoint.core.kinds.folder import content_sha256, read_answer, read_task
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.kinds.titles import author_title, demo_title, solver_title
from gistpoint.core.locations import LARGEST_SETTINGS, mark_used, read_regular
from gistpoint.core.study.declaration import StudyTask
from gistpoint.core.study.operations import StudyError
from gistpoint.core.tasks.documents import TASK_FILE
from gistpoint.core.tasks.model import Answer, Task
from gistpoint.core.tasks.names import word_name
from gistpoint.core.trees import sha256_of
from gistpoint.sessions.studies.metrics import read_metrics
from gistpoint.sessions.tasks import TaskStore, read_set, repeated

ARCHIVE = ".tar.zst"
RELEASES = "releases.csv"
"""The file in a study's folder with the month in which each library was released."""
_MONTH = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])")


@dataclass(frozen=True, slots=True)
class StudyTasks:
    """The tasks of a study and their folders by id, and a sentence for each problem."""

    by_id: Mapping[str, StudyTask] = field(default_factory=dict)
    folders: Mapping[str, Path] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def read_tasks(root: Path, name: str, store: TaskStore, unpacked: Path) -> StudyTasks:
    """Return the tasks that a study names; a path in `name` is relative to the study's folder `root`.

    Archives are unpacked once, below `unpacked`. A task or an archive that can't be read is reported as a
    problem; the others are read nevertheless. Raises `StudyError` if nothing has that name or an entry of a
    list can't be used.
    """
    metrics, released = read_metrics(root).tasks, read_releases(root)
    by_id: dict[str, StudyTask] = {}
    folders: dict[str, Path] = {}
    problems: list[str] = []
    read: dict[str, Task] = {}
    for found in _tasks_at(root / name, store):
        try:
            task = found if isinstance(found, Task) else _read(found, unpacked)
            facts = study_task(task, read_answer(task), metrics.get(task.id, {}))
            if task.source.name in released:
                facts = msgspec.structs.replace(facts, released=released[task.source.name])
            by_id.setdefault(task.id, facts)
            folders.setdefault(task.id, task.folder)
            read.setdefault(task.id, task)
        except UserError as error:
            where = found.folder.name if isinstance(found, Task) else found.name
            problems.append(f"{where}: {error}")
        except OSError as error:
            where = found.folder.name if isinstance(found, Task) else found.name
            problems.append(f"{where} can't be read: {error.strerror}.")
    for id, earlier in repeated(read.values(), content_sha256).items():
        problems.append(
            f"{id[:12]} is the same task as {earlier.short_id} under another id: name only one of them."
        )
    return StudyTasks(by_id, folders, tuple(problems))


def study_task(task: Task, answer: Answer, measured: Mapping[str, float] | None = None) -> StudyTask:
    """Return the facts about a task that assignments and analyses need.

    `measured` are its metrics if its answer has none.
    """
    kind = kind_of(task)
    targets = kind.targets(task, answer)
    budgets = kind.budgets(task, Role.BASELINE)
    return StudyTask(
        id=task.id,
        mode=str(task.mode),
        source=task.source.name,
        revision=task.source.revision,
        targets=targets,
        tool_uses=budgets.tool_uses,
        submissions=budgets.submissions,
        time_limit_s=budgets.time_limit_s,
        tools=tuple(tool.name for tool in kind.tools_of(task, budgets)),
        template=task.brief.template,
        metrics=dict(kind.metrics(answer)) or metrics_of(answer, targets) or dict(measured or {}),
        corruptions=max(1, len(answer.targets)),
        failing=len(task.brief.failing),
        names=_names_of(task),
        in_history=any(HISTORY in part for part in _origins(answer)),
    )


def _names_of(task: Task) -> tuple[str, ...]:
    """Return the names by which a declaration can refer to a task, as in commands (`TaskStore.find`)."""
    title = demo_title(task)
    names = (demo_named(title), title) if title else (solver_title(task), author_title(task))
    return (*names, word_name(task.id).partition(" ")[0])


def _origins(answer: Answer) -> Iterator[Mapping[str, object]]:
    """Yield the origin of each corruption according to a task's answer."""
    parts = answer.provenance.get("parts")
    for part in parts if isinstance(parts, list | tuple) else ():
        if isinstance(part, Mapping):
            yield part


def read_releases(root: Path) -> Mapping[str, str]:
    """Return the month of each library's release in `releases.csv`, by library; empty if there is no file.

    Raises `StudyError` for a file without the columns `library` and `month`, or a month not like 2025-06.
    """
    path = root / RELEASES
    if not path.is_file():
        return {}
    from gistpoint.core.csv_text import csv_table

    try:
        text = read_regular(path, LARGEST_SETTINGS).decode("utf-8-sig")
        rows = [(row["library"].strip(), row["month"].strip()) for row in csv_table(text).rows]
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise StudyError(
            f"{RELEASES} can't be read.", hint="Its first line is `library,month`; a month is like 2025-06."
        ) from error
    for library, month in rows:
        if not _MONTH.fullmatch(month):
            raise StudyError(
                f"{RELEASES}: {month[:20]!r}, the month of {library[:60]!r}, is not like 2025-06."
            )
    return dict(rows)


def metrics_of(answer: Answer, targets: tuple[str, ...]) -> dict[str, float]:
    """Return the metrics in a task's answer, by name: means over the targets that have the metric."""
    if not answer.metrics:
        return {}
    from gistpoint.core.metrics.table import standings_from_json  # loads the call graph

    values: dict[str, list[float]] = {}
    for target in targets:
        for rank in standings_from_json(answer.metrics, target):
            values.setdefault(rank.metric, []).append(float(rank.value))
    return {metric: sum(found) / len(found) for metric, found in values.items()}


def _tasks_at(path: Path, store: TaskStore) -> Iterator[Task | Path]:
    """Yield the tasks in a list, or the paths of the task folders and archives in a folder.

    Raises `StudyError` if there is no such folder or list, or if the list is invalid.
    """
    if path.is_dir() and not (path / TASK_FILE).is_file():
        for entry in sorted(path.iterdir()):
            is_archive = entry.name.endswith(ARCHIVE) and entry.is_file()
            if is_archive or (entry / TASK_FILE).is_file():
                yield entry
        return
    if not path.exists():
        raise StudyError(
            f"study.toml: the key 'tasks' names {path.name!r}, but there is no such folder or list.",
            hint=(
                "It is a folder of tasks or archives, or a text file with one task per line, next to"
                " study.toml."
            ),
        )
    try:
        selected = read_set([str(path)], store)
    except TaskError as error:
        raise StudyError(error.message, hint=error.hint) from error
    if selected.problems:
        raise StudyError(
            selected.problems[0], hint=f"{path.name} contains one id, path or name of a demo task per line."
        )
    yield from selected.tasks


def _read(entry: Path, unpacked: Path) -> Task:
    """Return the task in a folder or in an archive. Raises `UserError` or OSError if it can't be read."""
    found = entry if entry.is_dir() else _unpacked(entry, unpacked)
    return found if isinstance(found, Task) else read_task(found, verify=False)


def _unpacked(archive: Path, below: Path) -> Task | Path:
    """Return the task in an archive, or its folder if the archive was unpacked before."""
    place = below / sha256_of(archive)[:16]
    here = [folder for folder in place.iterdir() if (folder / TASK_FILE).is_file()] if place.is_dir() else []
    if not here:
        return unpack_task(archive, place)
    mark_used(place)
    return here[0]
