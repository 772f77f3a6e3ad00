"""Sets of tasks: a folder of them, a list of ids and paths in a file, single ones, or all that are here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gistpoint.core.errors import TaskError, UserError
from gistpoint.core.locations import path_of
from gistpoint.core.tasks.folder import TASK_FILE, read_task
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.tasks import BrokenTask, TaskStore


@dataclass(frozen=True, slots=True)
class TaskSet:
    """Tasks in the order of the set, no id twice, and a sentence for each that can't be read."""

    name: str
    """What it was called, folders left out."""
    tasks: tuple[Task, ...]
    problems: tuple[str, ...] = ()


def read_set(names: Iterable[str], store: TaskStore) -> TaskSet:
    """Return the tasks that some names stand for; without a name, all that the store has.

    A name is a task (id, beginning of an id, folder or `.tar.zst`), a folder of task folders, or a text file with one
    of these a line; there `#` begins a comment, and paths are relative to the file. Raises `TaskError` for a name that
    stands for nothing.
    """
    wanted = list(names)
    found: list[Task | str] = []
    for name in wanted:
        found += _named(name, store)
    if not wanted:
        found += [_read(entry) for entry in store.tasks()]
    tasks = {task.id: task for task in found if isinstance(task, Task)}
    problems = tuple(problem for problem in found if isinstance(problem, str))
    shown = " ".join(Path(name).name or name for name in wanted)
    return TaskSet(shown or "all tasks", tuple(tasks.values()), problems)


def _named(name: str, store: TaskStore) -> list[Task | str]:
    path = path_of(name)
    if path.is_dir() and not (path / TASK_FILE).is_file():
        entries = [_read(entry) for entry in TaskStore(path).tasks()]
        if not entries:
            raise TaskError(f"{name} holds no task.", hint=f"A task is a folder with a {TASK_FILE}.")
        return entries
    if path.is_file() and not path.name.endswith(".tar.zst") and path.name != TASK_FILE:
        return _listed(path, store)
    return [store.find(str(path.parent) if path.name == TASK_FILE else name)]


def _read(entry: Task | BrokenTask) -> Task | str:
    if isinstance(entry, Task):
        return entry
    return f"{entry.folder.name}: {entry.problem}"


def _listed(path: Path, store: TaskStore) -> list[Task | str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{path} can't be read as a list of tasks: {error}.") from error
    found: list[Task | str] = []
    for number, line in enumerate(lines, 1):
        name = line.partition("#")[0].strip()
        if not name:
            continue
        beside = path.parent / name
        try:
            found.append(read_task(beside) if (beside / TASK_FILE).is_file() else store.find(name))
        except UserError as error:
            found.append(f"{path.name}, line {number}: {error}")
    if not found:
        raise TaskError(f"{path} names no task.", hint="It holds an id or a path a line.")
    return found
