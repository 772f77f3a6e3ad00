"""The store of the user's tasks, which are generated, imported from folders or archives, or the demo's."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TypeVar

from gistpoint.core.attempts.events import AttemptStarted
from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.demo.tasks import demo_named, demo_task, demo_tasks, unpack_demo
from gistpoint.core.errors import TaskError, UserError, did_you_mean
from gistpoint.core.kinds.archive import unpack_task
from gistpoint.core.kinds.folder import (
    compare,
    content_sha256,
    folders_of_content,
    is_salted,
    read_task,
    stored_content_sha256,
    target_names,
    task_of,
)
from gistpoint.core.kinds.registry import is_built_in
from gistpoint.core.kinds.titles import answer_title, author_title, tasks_called, tasks_like
from gistpoint.core.locations import Locations, path_of, read_regular_text
from gistpoint.core.tasks.documents import ANSWER_FILE, TASK_FILE
from gistpoint.core.tasks.model import TREE, Task, shown_mode
from gistpoint.core.tasks.names import word_name
from gistpoint.core.unfinished import made_in
from gistpoint.sessions.journal import JOURNAL, first_event
from gistpoint.sessions.task_documents import ListedTask, TaskDocuments, file_state

_FEW = 50
_WHOLE_ID = re.compile("[0-9a-f]{64}")
_BEGINNING_OF_ID = re.compile("[0-9a-f]{8,64}")
Found = TypeVar("Found", Task, ListedTask)


@dataclass(frozen=True, slots=True)
class BrokenTask:
    """A task folder that can't be read, and the reason."""

    folder: Path
    problem: str


class TaskStore:
    """The tasks below some folders. New ones go into the first; the demo's are unpacked into `demo`."""

    def __init__(
        self,
        *roots: Path,
        demo: Path | None = None,
        note: Callable[[str], None] = lambda text: None,
        index: Path | None = None,
    ) -> None:
        """`note` receives sentences about tasks, opened or added, that differ from or equal stored ones.

        `index` is the file that stores the fields of tasks; without one, each process reads all tasks.
        """
        self._documents = TaskDocuments(index)
        self.note = note
        self.roots = roots if demo is None else (*roots, demo)
        self._demo = demo
        self._known: dict[Path, tuple[object, Task]] = {}
        """The task in each folder that was read, and the version of its file."""
        self._by_id: dict[str, Task] | None = None
        self._asked = self._listed_alone = 0
        self._places: dict[str, str] = {}
        """The folder of each task that was listed, by the task's id."""

    def tasks(self) -> Iterator[Task | BrokenTask]:
        """Yield all tasks, sorted by folder and id; a task that is in two folders only once.

        A task that can't be read is yielded as a `BrokenTask`.
        """
        yield from self._each(lambda folder, state: self._task(Path(folder), state), fields=True)

    def listed(self) -> Iterator[ListedTask | BrokenTask]:
        """Yield the listed forms of all tasks, in the order of `tasks`.

        They come from the index where it is up to date.
        """
        yield from self._each(self._listed, fields=False)

    def _each(self, read: Callable[[str, bytes], Found], *, fields: bool) -> Iterator[Found | BrokenTask]:
        """Yield the result of `read` for each folder and the state of its file, each task once.

        With `fields`, `read` needs all fields of the tasks, and not only their listed forms.
        """
        seen: set[str] = set()
        for root in self.roots:
            names = sorted(os.listdir(root)) if root.is_dir() else []  # noqa: PTH208 - strings are faster
            for folder in self._documents.prepared(root, names, fields=fields):
                state = file_state(f"{folder}/{TASK_FILE}")
                if not state and not Path(folder, TASK_FILE).exists():
                    continue
                try:
                    task = read(folder, state)
                except UserError as error:
                    yield BrokenTask(Path(folder), str(error))
                    continue
                if task.id not in seen:
                    seen.add(task.id)
                    self._places[task.id] = folder
                    yield task

    def _listed(self, folder: str, state: bytes) -> ListedTask:
        return self._listed_in_index(folder, state) or listed_task(self._task(Path(folder), state))

    def _listed_in_index(self, folder: str, state: bytes) -> ListedTask | None:
        found = self._documents.listed(folder, state) if state else None
        return found if found is not None and file_state(f"{folder}/{TREE}") else None

    def folder_of(self, task_id: str) -> Path | None:
        """Return the folder of a task that was listed; None for any other task."""
        folder = self._places.get(task_id)
        return None if folder is None else Path(folder)

    def whole(self, listed: ListedTask) -> Task:
        """Return a task that was listed. Raises `TaskError` if it can no longer be read."""
        folder = self._places[listed.id]
        return self._task(Path(folder), file_state(f"{folder}/{TASK_FILE}"))

    def content_sha256(self, listed: ListedTask) -> str:
        """Return the hash of the content of a task that was listed, see `content_sha256`."""
        return stored_content_sha256(Path(self._places[listed.id])) if listed.salted else listed.id

    def answer_titles(self, task_ids: Collection[str]) -> dict[str, str]:
        """Return the titles of listed tasks for those who know their answers, by id.

        They come from the index where it is up to date. A task that can no longer be read is left out.
        """
        folders = {id: self._places[id] for id in task_ids if id in self._places}
        states = {
            folder: file_state(f"{folder}/{TASK_FILE}") + file_state(f"{folder}/{ANSWER_FILE}")
            for folder in folders.values()
        }
        known, found = self._documents.answer_titles(states), dict[str, str]()
        for id, folder in folders.items():
            if folder in known:
                found[id] = known[folder]
                continue
            with suppress(UserError, OSError):
                task = self._task(Path(folder), file_state(f"{folder}/{TASK_FILE}"))
                found[id] = answer_title(task, target_names(task))
                if is_built_in(task):
                    self._documents.keep_answer_title(folder, states[folder], found[id])
        self._documents.save()
        return found

    def stored(self, task_id: str) -> Task | None:
        """Return the task with this whole id; None if there is none.

        The first few are read from their folders; then all are read at once, which the index makes faster.
        """
        self._asked += 1
        if self._asked <= _FEW and self._by_id is None:
            with suppress(UserError, OSError):
                if (folder := self._folder_of(task_id)) is not None:
                    return self._task(folder, file_state(folder / TASK_FILE))
        if self._by_id is None:  # a folder's name may differ from its task's
            self._by_id = {task.id: task for task in self.tasks() if isinstance(task, Task)}
            if task_id not in self._by_id and self._demo is not None and not self._demo.is_dir():
                with suppress(UserError, OSError):  # lists then show the task without its title
                    self._by_id.update({task.id: task for _, task in unpack_demo(self._demo)})
        return self._by_id.get(task_id)

    def listed_one(self, task_id: str) -> ListedTask | None:
        """Return the listed form of the task with a whole id; None if there is none.

        The first few are looked up in the index one by one, then all at once, without the rest of the tasks.
        """
        self._listed_alone += 1
        if self._listed_alone == _FEW:
            self._documents.prepare(self.roots)
        if self._by_id is None and _WHOLE_ID.fullmatch(task_id) is not None:
            for folder in (f"{root}/{task_id}" for root in self.roots):
                listed = self._listed_in_index(folder, file_state(f"{folder}/{TASK_FILE}"))
                if listed is not None and listed.id == task_id:
                    return listed
        task = self.stored(task_id)
        return None if task is None else listed_task(task)

    def keep_listed(self) -> None:
        """Store what was read of tasks for the next process."""
        self._documents.save()

    def _task(self, folder: Path, version: bytes) -> Task:
        """Return the task in a folder; its file is not read again if it still has this `version`."""
        known = self._known.get(folder)
        if known is None or known[0] != version or not known[1].tree_path.is_file():
            fields = self._documents.read(folder, version)
            task = task_of(fields, folder)
            self._documents.keep(
                folder, version, fields, lambda: listed_task(task) if is_built_in(task) else None
            )
            known = self._known[folder] = (version, task)
        return known[1]

    def find(self, name: str) -> Task:
        """Return the task with this name. Raises `TaskError` if there is none or more than one.

        A name is an id, an unambiguous prefix of one, the path of a folder or `.tar.zst` archive, the name of
        a demo task, a title, or the two words that name a task. An archive is added to the store. Commands
        find tasks only with this function (decision 128).
        """
        if task := self._task_at(existing_path(name)):
            return task
        if (folder := self._folder_of(name)) is not None:
            return read_task(folder)
        return self._by_name_or_prefix(name)

    def _by_name_or_prefix(self, name: str) -> Task:
        """Return the task with this name, or with an id that begins with it; errors are those of `find`."""
        readable = list({task.id: task for task in self.tasks() if isinstance(task, Task)}.values())
        prefix = name.casefold()
        with_prefix = [task for task in readable if prefix and task.id.startswith(prefix)]
        # Ids take precedence over names, because scripts use ids.
        if not with_prefix and self._demo is not None and (demo_name := demo_named(name)):
            return demo_task(demo_name, self._demo)
        matches = with_prefix or tasks_called(name, readable) or self._in_demo(prefix)
        if not matches:
            raise _unknown_task(name, readable, demo=self._demo is not None)
        if len(matches) > 1:
            raise _ambiguous(name, matches, by_id=bool(with_prefix))
        return read_task(matches[0].folder)

    def _in_demo(self, identity: str) -> list[Task]:
        """Return the demo's tasks with this id, or with ids that begin with it.

        The demo is unpacked for this, because a restored home, or one whose cache was deleted, may have
        attempts at it.
        """
        if self._demo is None or _BEGINNING_OF_ID.fullmatch(identity) is None:
            return []
        return [task for _, task in unpack_demo(self._demo) if task.id.startswith(identity)]

    def _folder_of(self, task_id: str) -> Path | None:
        """Return the folder that has a whole id as its name and contains its task; None if there is none.

        This saves reading the other tasks, which would delay the screen of a resumed attempt.
        """
        if _WHOLE_ID.fullmatch(task_id) is None:
            return None
        for folder in (root / task_id for root in self.roots):
            with suppress(UserError, OSError):
                if self._task(folder, file_state(folder / TASK_FILE)).id == task_id:
                    return folder
        return None

    def _task_at(self, path: Path | None) -> Task | None:
        """Return the task in a folder or an archive; None if the path is None or neither."""
        if path is not None and path.name.endswith(".tar.zst") and path.is_file():
            return self.add(path)
        if path is not None and (path / TASK_FILE).is_file():
            return self._opened(path)
        return None

    def remove(self, task: Task) -> None:
        """Delete a task in the first folder, and record its id. Raises `TaskError` for a task elsewhere."""
        folder = task.folder.absolute()
        if folder.parent != self.roots[0].absolute() or folder.is_symlink():
            raise TaskError(
                f"{task.short_id} is not one of your own tasks.",
                hint="The tasks of the demo can't be deleted.",
            )
        gone = made_in(self.roots[0], "deleting")
        folder.rename(gone / "task")
        shutil.rmtree(gone, ignore_errors=True)
        # Without this record, the next synchronisation with a team's store would restore it (decision 107).
        self._notes.mkdir(exist_ok=True)
        (self._notes / task.id).touch()

    @property
    def deleted(self) -> set[str]:
        """The ids of tasks that were deleted here; a synchronisation restores them only on request."""
        return {note.name for note in self._notes.iterdir()} if self._notes.is_dir() else set()

    def forget_deleted(self, identity: str) -> None:
        """Forget that a task was deleted, because it was restored."""
        (self._notes / identity).unlink(missing_ok=True)

    @property
    def _notes(self) -> Path:
        return self.roots[0] / ".deleted"

    def add(self, archive: Path) -> Task:
        """Unpack an archive into the first folder and return its task; an existing task with its id is kept.

        `note` reports a task with the same content and another id. Raises `TaskError` if the archive can't be
        used, or if the existing task has other conditions.
        """
        task = unpack_task(archive, self.roots[0], known=self.roots[1:], note=self.note)
        if other := self._of_same_content(task):
            self.note(
                f"{archive.name}: {task.short_id} is the same task as {other[:12]}, which is here"
                " under another id."
            )
        return task

    def _of_same_content(self, task: Task) -> str:
        """Return the id of another stored task with the content of this one; empty if there is none."""
        content = content_sha256(task)
        found = (
            folder.name for root in self.roots for folder in folders_of_content(root, content) if content
        )
        return next((name for name in found if name != task.id), "")

    def _opened(self, folder: Path) -> Task:
        """Return the task in a folder or, with a note, the stored task with its id if they differ."""
        task = read_task(folder)
        here = (root / task.id for root in self.roots)
        known = next(
            (place for place in here if (place / TASK_FILE).is_file() and not place.samefile(folder)), None
        )
        if known is None:
            return task
        mine = read_task(known)
        if differing := compare(mine, task):
            self.note(
                f"{folder}: {mine.short_id} already exists, and counts. The new one differs in"
                f" {', '.join(differing)}."
            )
            return mine
        return task


def listed_task(task: Task) -> ListedTask:
    """Return the listed form of a task."""
    return ListedTask(
        id=task.id,
        title=author_title(task),
        name=word_name(task.id),
        mode=task.mode,
        shown_mode=shown_mode(task.mode, several=task.several, targets=task.brief.targets),
        tests=task.suite.tests,
        seconds=task.suite.seconds,
        failing=len(task.brief.failing),
        budgets=task.budgets,
        demo=task.demo,
        source=task.source.name,
        revision=task.source.revision,
        salted=is_salted(task),
    )


class TaskTitles:
    """Authors' titles of tasks by id, for lists that know only ids; each task is read only once."""

    def __init__(self, store: TaskStore) -> None:
        self._store = store
        self._known: dict[str, str] = {}

    def __call__(self, task_id: str) -> str:
        """Return the title of a task; the beginning of its id if it is not stored here."""
        if task_id not in self._known:
            task = self._store.stored(task_id)
            self._known[task_id] = task_id[:12] if task is None else author_title(task)
        return self._known[task_id]


_LISTED = 5
"""The maximum number of candidates in a message."""


def _candidates(tasks: Sequence[Task]) -> str:
    """Return the names, ids and titles of the first tasks that a name may mean, and how many more exist."""
    listed = [f"{word_name(task.id)} ({task.short_id}, {author_title(task)})" for task in tasks[:_LISTED]]
    if len(tasks) > _LISTED:
        listed.append(f"and {len(tasks) - _LISTED} more")
    return ", ".join(listed)


def _ambiguous(name: str, found: Sequence[Task], *, by_id: bool) -> TaskError:
    """Return the error for a name that several tasks have; with `by_id`, it is the start of their ids."""
    what = f"the beginning of {len(found)} tasks' ids" if by_id else f"the name of {len(found)} tasks"
    hint = "Give more characters of the id." if by_id else "Give the two words, or the id."
    return TaskError(f"{name} is {what}: {_candidates(found)}.", hint=hint)


def _unknown_task(name: str, known: Sequence[Task], *, demo: bool) -> TaskError:
    """Return the error for a name that no task has, with similar titles or names."""
    hint = "`gistpoint task list` shows all tasks."
    alike = tasks_like(name, known)
    if alike:
        return TaskError(f"There is no task {name!r}. Similar titles: {_candidates(alike)}.", hint=hint)
    named = [task.name for task in demo_tasks()] if demo else []
    for task in known:
        named += [word_name(task.id), author_title(task)]
    return TaskError(f"There is no task {name!r}.{did_you_mean(name, named)}", hint=hint)


@dataclass(frozen=True, slots=True)
class TaskSet:
    """Tasks in the order of their set, each once, and a sentence for each task that can't be read."""

    name: str
    """The name under which the set was requested, without folders."""
    tasks: tuple[Task, ...]
    problems: tuple[str, ...] = ()


def repeated(tasks: Iterable[Found], content_of: Callable[[Found], str]) -> dict[str, Found]:
    """Return the earlier task with the same content for each task that has one, by the later task's id.

    Each campaign that finds a corruption gives it another id; the contents show that it is the same.
    `content_of` returns the hash of a task's content; empty if it is unknown.
    """
    first: dict[str, Found] = {}
    found: dict[str, Found] = {}
    for task in tasks:
        earlier = first.setdefault(content_of(task) or task.id, task)
        if earlier.id != task.id:
            found[task.id] = earlier
    return found


def read_set(names: Iterable[str], store: TaskStore, *, distinct: bool = False) -> TaskSet:
    """Return the tasks that the names select; without names, all tasks of the store.

    A name is that of a task (see `TaskStore.find`), a folder of task folders, or a text file with one of
    these per line; in the file `#` begins a comment, and paths are relative to the file. With
    `distinct`, only the first of several tasks with the same content is returned, with a sentence for each of
    the others. Raises `TaskError` for a name that selects nothing.
    """
    wanted = list(names)
    found: list[Task | str] = []
    for name in wanted:
        try:
            found += _named(name, store)
        except TaskError as error:
            raise _with_quotes(error, wanted, store) from error
    if not wanted:
        found += [_read(entry) for entry in store.tasks()]
    tasks = {task.id: task for task in found if isinstance(task, Task)}
    problems = tuple(problem for problem in found if isinstance(problem, str))
    for id, earlier in repeated(tasks.values(), content_sha256).items() if distinct else ():
        problems += (f"{id[:12]} is the same as {earlier.short_id} under another id, and is left out.",)
        del tasks[id]
    shown = " ".join(Path(name).name or name for name in wanted)
    return TaskSet(shown or "all tasks", tuple(tasks.values()), problems)


def _with_quotes(error: TaskError, names: Sequence[str], store: TaskStore) -> TaskError:
    """Return the error for a name that selects nothing, with advice on quotes if the names form one title."""
    whole = " ".join(names)
    if len(names) < 2 or not tasks_called(whole, [t for t in store.tasks() if isinstance(t, Task)]):
        return error
    return TaskError(error.message, hint=f"A title with spaces needs quotes: {shlex.quote(whole)}.")


def existing_path(name: str) -> Path | None:
    """Return the name as a path if the path exists; None if not, or if the name can't be a path."""
    path = path_of(name)
    try:
        return path if path.exists() else None
    except (OSError, ValueError):
        return None


def _named(name: str, store: TaskStore) -> list[Task | str]:
    path = existing_path(name)
    if path is None:
        return [store.find(name)]
    if path.is_dir() and not (path / TASK_FILE).is_file():
        entries = [_read(entry) for entry in TaskStore(path).tasks()]
        if not entries:
            raise TaskError(
                f"{name} does not contain any tasks.", hint=f"A task is a folder with a {TASK_FILE}."
            )
        return entries
    if path.is_file() and not path.name.endswith(".tar.zst") and path.name != TASK_FILE:
        return _listed(path, store)
    return [store.find(str(path.parent) if path.name == TASK_FILE else name)]


def _read(entry: Task | BrokenTask) -> Task | str:
    if isinstance(entry, Task):
        return entry
    return f"{entry.folder.name}: {entry.problem}"


_COMMENT = re.compile(r"(?:^|(?<=\s))#|(?<=[0-9a-f]{12})#")
"""The beginning of a comment.

A `#` in a title does not begin a comment: it numbers definitions with the same name.
"""


def _listed(path: Path, store: TaskStore) -> list[Task | str]:
    try:
        lines = physical_lines(read_regular_text(path))
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{path} can't be read as a list of tasks: {error}.") from error
    found: list[Task | str] = []
    for number, line in enumerate(lines, 1):
        name = _COMMENT.split(line, maxsplit=1)[0].strip()
        if not name:
            continue
        folder = existing_path(str(path.parent / name))
        try:
            is_task = folder is not None and (folder / TASK_FILE).is_file()
            found.append(read_task(path.parent / name) if is_task else store.find(name))
        except UserError as error:
            found.append(f"{path.name}, line {number}: {error}")
    if not found:
        raise TaskError(f"{path} does not name a task.", hint="It contains one id or path per line.")
    return found


_OTHERS = frozenset({"tasks", "campaigns", "attempts", "imports"})
"""Folders whose files may name tasks without attempts; attempts are examined separately."""


def is_in_use(task_id: str, locations: Locations) -> bool:
    """Return whether a task has an attempt, or a record of a run, a reader or a validator."""
    for journal in locations.attempts.glob(f"*/{JOURNAL}"):
        first = first_event(journal)
        if first is not None and isinstance(first.data, AttemptStarted) and first.data.task_id == task_id:
            return True
    folders = [
        folder for folder in locations.data.glob("*") if folder.is_dir() and folder.name not in _OTHERS
    ]
    return any(contains(file, task_id) for folder in folders for file in folder.rglob("*.jsonl"))


def contains(file: Path, id: str) -> bool:
    """Return whether a file contains an id; False if it can't be read. A long file is not read at once."""
    with (
        suppress(OSError, ValueError),  # an empty file can't be mapped
        file.open("rb") as opened,
        mmap(opened.fileno(), 0, access=ACCESS_READ) as data,
    ):
        return data.find(id.encode()) >= 0
    return False
