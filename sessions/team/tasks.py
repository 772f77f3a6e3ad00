"""Tasks in a team's store: the public half and the answer as an archive each, and every baseline as its file."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import select, text
from sqlalchemy.dialects.postgresql import insert

from gistpoint.core.errors import UserError
from gistpoint.core.kinds.archive import PUBLIC_FILES, pack_files, unpack_task
from gistpoint.core.kinds.folder import read_task
from gistpoint.core.tasks.documents import ANSWER_FILE, TASK_FILE, read_baseline
from gistpoint.core.tasks.entered import ENTERED_FILE
from gistpoint.core.tasks.model import Task
from gistpoint.core.trees import sha256_of
from gistpoint.sessions.tasks import TaskStore
from gistpoint.sessions.team.address import TeamStoreError
from gistpoint.sessions.team.alarms import Alarm
from gistpoint.sessions.team.blobs import get_blob, put_blob
from gistpoint.sessions.team.schema import baselines, tasks

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_LEVEL = 10
"""Of the archives' compression: the highest takes minutes for a large repository."""
_BASELINES = "answer/baselines"
_BLOB = text(
    "SELECT encode(sha256(string_agg(data, ''::bytea ORDER BY piece)), 'hex') FROM blobs WHERE sha256 = :sha256"
)


@dataclass(slots=True)
class SharedTasks:
    """What a synchronisation did with tasks."""

    sent: int = 0
    fetched: int = 0
    left: int = 0
    """Tasks that were deleted here and stay on the store."""
    alarms: list[Alarm] = field(default_factory=list)


def share_tasks(
    engine: Engine,
    store: TaskStore,
    machine: str,
    told: Callable[[int, int, str], None] = lambda done, total, what: None,
    *,
    sends: bool = True,
    deleted: bool = False,
) -> SharedTasks:
    """Send the tasks that the store lacks, and fetch those that are not here; `told` may raise to stop.

    Without `sends` only public halves are fetched, which is what a reader may do. One that was deleted here is fetched
    only where `deleted` ones are asked for, and one that differs is left alone.
    """
    found = SharedTasks()
    mine = local_tasks(store)
    with engine.begin() as connection:
        there = {row.id: row for row in connection.execute(select(tasks))}
    root, gone = store.roots[0], store.deleted
    for id in gone & mine.keys():
        store.forget_deleted(id)
    left = set() if deleted else (gone & there.keys()) - mine.keys()
    found.left = len(left)
    missing = [task for id, task in mine.items() if id not in there and has_answer(task)] if sends else []
    wanted = sorted(id for id in there.keys() - left if id not in mine or (sends and not has_answer(mine[id])))
    for number, task in enumerate(missing):
        told(number, len(missing) + len(wanted), task.short_id)
        try:
            read_task(task.folder)
            with engine.begin() as connection:
                _send(connection, task, machine)
        except UserError as error:
            found.alarms.append(Alarm(f"task {task.short_id}", words=f"it was not sent. {error}"))
        else:
            found.sent += 1
    for id in there.keys() & mine.keys() if sends else ():
        found.alarms += _compared(mine[id], there[id].public_sha256, there[id].answer_sha256)
    for number, id in enumerate(wanted):
        told(len(missing) + number, len(missing) + len(wanted), id[:12])
        row = there[id]
        try:
            with engine.begin() as connection:
                _fetch(connection, id, row.public_blob, row.answer_blob if sends else "", root)
        except UserError as error:
            found.alarms.append(Alarm(f"task {id[:12]}", words=f"it was not fetched. {error}"))
        else:
            store.forget_deleted(id)
            found.fetched += 1
    if sends:
        found.alarms += _share_baselines(engine, local_tasks(store))
    return found


def local_tasks(store: TaskStore) -> dict[str, Task]:
    """Return the user's own tasks by id; those of the demo are everywhere."""
    root = store.roots[0]
    return {
        entry.id: entry
        for entry in store.tasks()
        if isinstance(entry, Task) and entry.folder.parent.absolute() == root.absolute()
    }


def has_answer(task: Task) -> bool:
    """Whether a task is whole; one that came without its answer is not sent on."""
    return (task.folder / ANSWER_FILE).is_file()


def fingerprints(task: Task) -> tuple[str, str]:
    """Return the sha256 of `task.toml`, which names that of the tree, and that of what the answer says."""
    public = hashlib.sha256((task.folder / TASK_FILE).read_bytes()).hexdigest()
    answer = [task.folder / name for name in _answer_files(task.folder)]
    if not answer:
        return public, ""
    parts = (b"%d\n%b" % (path.stat().st_size, path.read_bytes()) for path in answer)
    return public, hashlib.sha256(b"".join(parts)).hexdigest()


def _answer_files(folder: Path) -> list[str]:
    return [name for name in (ANSWER_FILE, ENTERED_FILE) if (folder / name).is_file()]


def _send(connection: Connection, task: Task, machine: str) -> None:
    public_sha256, answer_sha256 = fingerprints(task)
    names = [*_answer_files(task.folder), *(f"{_BASELINES}/{name}" for name in _baselines_here(task))]
    public, answer = _put(connection, task, PUBLIC_FILES, secret=False), _put(connection, task, names, secret=True)
    connection.execute(
        insert(tasks)
        .values(
            id=task.id,
            mode=str(task.mode),
            source=task.source.name,
            public_sha256=public_sha256,
            public_blob=public,
            answer_sha256=answer_sha256,
            answer_blob=answer,
            machine=machine,
        )
        .on_conflict_do_nothing()
    )


def _put(connection: Connection, task: Task, names: Sequence[str], *, secret: bool) -> str:
    """Keep an archive of files of a task and return its sha256; empty if there is none."""
    if not names:
        return ""
    with tempfile.TemporaryDirectory(prefix="gistpoint-sending-") as scratch:
        archive = Path(scratch) / "half.tar.zst"
        pack_files(task.folder, names, archive, level=_LEVEL)
        return put_blob(connection, archive, secret=secret)


def _fetch(connection: Connection, id: str, public: str, answer: str, root: Path) -> None:
    """Unpack a task, verified, into a folder of its id. Raises `UserError`."""
    if (root / id).exists() and not (answer and (root / id / TASK_FILE).is_file()):
        raise TeamStoreError("A folder of its id is here and can't be read.", hint="Delete it, and sync again.")
    with tempfile.TemporaryDirectory(prefix=".fetching-") as scratch:
        archives = []
        for sha256 in filter(None, (public, answer)):
            archives.append(Path(scratch) / f"{sha256}.tar.zst")
            get_blob(connection, sha256, archives[-1], public=sha256 == public)
        with tempfile.TemporaryDirectory(prefix=".fetching-", dir=_made(root)) as place:
            task = unpack_task(archives[0], Path(place), *archives[1:])
            if task.id != id:
                raise TeamStoreError(f"The store holds the task {task.id[:12]} under this id.")
            if (root / id).exists():  # its public half is here
                (task.folder / "answer").rename(root / id / "answer")
            else:
                task.folder.rename(root / id)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _compared(task: Task, public_sha256: str, answer_sha256: str) -> Iterator[Alarm]:
    public, answer = fingerprints(task)
    if public != public_sha256:
        yield Alarm(f"task {task.short_id}, {TASK_FILE}", 0, public, public_sha256)
    if answer and answer_sha256 and answer != answer_sha256:
        yield Alarm(f"task {task.short_id}, {ANSWER_FILE}", 0, answer, answer_sha256)


def _baselines_there(connection: Connection) -> dict[str, dict[str, str]]:
    """Return the hashes of the baselines that the store has, by task and name; each task is there, if without any."""
    asked = text(
        "SELECT id, name, encode(sha256(data), 'hex') AS sha256 FROM tasks LEFT JOIN baselines ON task = id ORDER BY id"
    )
    found: dict[str, dict[str, str]] = {}
    for row in connection.execute(asked):
        of_task = found.setdefault(row.id, {})
        if row.name is not None:
            of_task[row.name] = row.sha256
    return found


def _baselines_here(task: Task) -> dict[str, Path]:
    return {path.name: path for path in sorted((task.folder / _BASELINES).glob("*.json"))}


def _share_baselines(engine: Engine, mine: dict[str, Task]) -> list[Alarm]:
    """Copy baselines to the side that lacks them; a baseline that differs is left as it is on both sides."""
    alarms = []
    with engine.begin() as connection:
        there = _baselines_there(connection)
    for id, theirs in there.items():
        if (task := mine.get(id)) is None:
            continue
        here = _baselines_here(task)
        for name, path in here.items():
            data = path.read_bytes()
            sha256 = hashlib.sha256(data).hexdigest()
            if name not in theirs:
                with engine.begin() as connection:
                    values = {"task": id, "name": name, "data": data}
                    connection.execute(insert(baselines).values(values).on_conflict_do_nothing())
            elif theirs[name] != sha256:
                alarms.append(Alarm(f"task {task.short_id}, {_BASELINES}/{name}", 0, sha256, theirs[name]))
        for name in sorted(theirs.keys() - here.keys()) if has_answer(task) else ():
            with engine.begin() as connection:
                asked = select(baselines.c.data).where(baselines.c.task == id, baselines.c.name == name)
                alarms += _add_baseline(task, name, bytes(connection.scalar(asked) or b""))
    return alarms


def _add_baseline(task: Task, name: str, data: bytes) -> list[Alarm]:
    """Write a baseline beside the others, if it is one and its name is that of a file."""
    folder = _made(task.folder / _BASELINES)
    what = f"task {task.short_id}, baseline {name[:80]!r}"
    if Path(name).name != name or not name.endswith(".json") or name.startswith("."):
        return [Alarm(what, words="is no name of a baseline; it was not fetched.")]
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=task.folder) as scratch:
        part = Path(scratch) / name
        part.write_bytes(data)
        try:
            read_baseline(part)
        except UserError as error:
            return [Alarm(what, words=f"it was not fetched. {error}")]
        part.replace(folder / name)
    return []


def task_differences(connection: Connection, store: TaskStore) -> Iterator[tuple[str, Alarm]]:
    """Yield what differs between the tasks here and on the store, each with its kind; blobs and trees are hashed."""
    mine = local_tasks(store)
    there = {row.id: row for row in connection.execute(select(tasks))}
    kept = _baselines_there(connection)
    for id in sorted(mine.keys() - there.keys()):
        if has_answer(mine[id]):
            yield "missing there", Alarm(f"task {id[:12]}", words="the store has none.")
    for id in sorted(there.keys() - mine.keys() - store.deleted):
        yield "missing here", Alarm(f"task {id[:12]}", words="it is on the store alone.")
    for id, row in sorted(there.items()):
        for sha256, what in ((row.public_blob, "public half"), (row.answer_blob, "answer")):
            if sha256 and connection.scalar(_BLOB, {"sha256": sha256}) != sha256:
                yield "blob damaged", Alarm(f"task {id[:12]}, {what}", words=f"the blob {sha256[:12]} is damaged.")
        if id not in mine:
            continue
        task = mine[id]
        if not has_answer(task):
            yield "missing here", Alarm(f"task {id[:12]}, answer", words="it is on the store alone.")
        for alarm in _compared(task, row.public_sha256, row.answer_sha256):
            yield "task differs", alarm
        if (tree := sha256_of(task.tree_path)) != task.tree_sha256:
            yield "task differs", Alarm(f"task {task.short_id}, workspace/tree.tar", 0, tree, task.tree_sha256)
        yield from _baseline_differences(task, kept.get(id, {}))


def _baseline_differences(task: Task, there: dict[str, str]) -> Iterator[tuple[str, Alarm]]:
    here = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in _baselines_here(task).items()}
    for name in sorted(there.keys() | here.keys()):
        what = f"task {task.short_id}, baseline {name}"
        if name not in here:
            yield "missing here", Alarm(what, words="it is on the store alone.")
        elif name not in there:
            yield "missing there", Alarm(what, words="the store has none.")
        elif here[name] != there[name]:
            yield "task differs", Alarm(what, 0, here[name], there[name])
