"""The tasks that this user has: made here, brought here as folders or archives, and the demo's."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gistpoint.core.errors import TaskError, UserError
from gistpoint.core.locations import path_of
from gistpoint.core.tasks.archive import unpack_task
from gistpoint.core.tasks.folder import TASK_FILE, read_task
from gistpoint.core.tasks.model import Task


@dataclass(frozen=True, slots=True)
class BrokenTask:
    """A task folder that can't be read, and why."""

    folder: Path
    problem: str


class TaskStore:
    """The tasks below some folders; the first is where new ones go."""

    def __init__(self, *roots: Path) -> None:
        self.roots = roots

    def tasks(self) -> Iterator[Task | BrokenTask]:
        """Yield all tasks, those of the first folder first, by id."""
        for root in self.roots:
            for folder in sorted(root.iterdir()) if root.is_dir() else []:
                if not (folder / TASK_FILE).is_file():
                    continue
                try:
                    yield read_task(folder, verify=False)
                except UserError as error:
                    yield BrokenTask(folder, str(error))

    def find(self, name: str) -> Task:
        """Return a task by id, an unambiguous beginning of it, or the path of its folder or `.tar.zst` archive."""
        path = path_of(name)
        if path.name.endswith(".tar.zst") and path.is_file():
            return self.add(path)
        if (path / TASK_FILE).is_file():
            return read_task(path)
        found: dict[str, Task] = {}
        for task in self.tasks():
            if isinstance(task, Task) and name and task.id.startswith(name):
                found.setdefault(task.id, task)
        if len(found) == 1:
            return read_task(next(iter(found.values())).folder)
        if found:
            raise TaskError(f"{name} is the beginning of {len(found)} tasks' ids.", hint="Give more of it.")
        raise TaskError(f"There is no task {name!r}.", hint="`gistpoint task list` shows the tasks that there are.")

    def remove(self, task: Task) -> None:
        """Delete a task of the first folder. Raises `TaskError` for any other."""
        folder = task.folder.absolute()
        if folder.parent != self.roots[0].absolute() or folder.is_symlink():
            raise TaskError(
                f"{task.short_id} is not one of your own tasks.", hint="Those of the demo come by themselves."
            )
        with tempfile.TemporaryDirectory(prefix=".deleting-", dir=self.roots[0]) as gone:
            folder.rename(Path(gone) / "task")

    def add(self, archive: Path) -> Task:
        """Unpack an archive among the tasks and return it."""
        return unpack_task(archive, self.roots[0])
