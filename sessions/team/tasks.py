"""Tasks in a team's store: the public half and the answer as an archive each, and every baseline as its file."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import select, text, tuple_
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
from gistpoint.sessions.team.blobs import blob_sizes, get_blobs, put_blobs, require_whole
from gistpoint.sessions.team.replication import portions
from gistpoint.sessions.team.schema import PIECE, baselines, tasks

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_LEVEL = 10
"""Of the archives' compression: the highest takes minutes for a large repository."""
_BASELINES = "answer/baselines"
_TOGETHER = 2 * PIECE
"""Most bytes of the tasks of one transaction, of which each counts as more than its files by a share."""
_SHARE = _TOGETHER // 100
_BASELINES_AT_ONCE = 500
_BASELINE = tuple_(baselines.c.task, baselines.c.name)
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
    total = len(missing) + len(wanted)
    for some in portions(missing, lambda task: _SHARE + task.tree_path.stat().st_size, _TOGETHER):
        _send(engine, some, machine, found, lambda done, task: told(done, total, task.short_id))
    for id in there.keys() & mine.keys() if sends else ():
        found.alarms += _compared(mine[id], there[id].public_sha256, there[id].answer_sha256)
    asked = {id: (there[id].public_blob, there[id].answer_blob if sends else "") for id in wanted}
    with engine.begin() as connection:
        kept = blob_sizes(connection, {name for names in asked.values() for name in names}, public=not sends)
    sizes = {id: sum(kept.get(name, 0) for name in names) for id, names in asked.items()}
    for some_ids in portions(wanted, lambda id: _SHARE + sizes[id], _TOGETHER):
        with tempfile.TemporaryDirectory(prefix=".fetching-") as scratch:
            archives = {name: Path(scratch) / f"{name}.tar.zst" for id in some_ids for name in asked[id] if name}
            with engine.begin() as connection:
                streamed = sum(sizes[id] for id in some_ids) > _TOGETHER
                get_blobs(connection, archives, public=not sends, streamed=streamed)
            for id in some_ids:
                told(len(missing) + found.fetched, total, id[:12])
                try:
                    _fetch(id, {name: archives[name] for name in asked[id] if name}, root)
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


def _send(
    engine: Engine, some: Sequence[Task], machine: str, found: SharedTasks, told: Callable[[int, Task], None]
) -> None:
    """Send tasks in one transaction; one that can't be read is told and does not keep the others back."""
    rows: list[dict[str, str]] = []
    halves: dict[str, list[Path]] = {"public_blob": [], "answer_blob": []}
    with tempfile.TemporaryDirectory(prefix="gistpoint-sending-") as scratch:
        for task in some:
            told(found.sent + len(rows), task)
            place = Path(scratch) / task.id
            try:
                read_task(task.folder)
                public_sha256, answer_sha256 = fingerprints(task)
                names = [*_answer_files(task.folder), *(f"{_BASELINES}/{name}" for name in _baselines_here(task))]
                for half, members in (("public_blob", PUBLIC_FILES), ("answer_blob", names)):
                    pack_files(task.folder, members, place.with_name(f"{task.id}.{half}"), level=_LEVEL)
            except UserError as error:
                found.alarms.append(Alarm(f"task {task.short_id}", words=f"it was not sent. {error}"))
                continue
            for half, files in halves.items():
                files.append(place.with_name(f"{task.id}.{half}"))
            about = {"id": task.id, "mode": str(task.mode), "source": task.source.name, "machine": machine}
            rows.append({**about, "public_sha256": public_sha256, "answer_sha256": answer_sha256})
        if not rows:
            return
        with engine.begin() as connection:
            for half, files in halves.items():
                for row, name in zip(rows, put_blobs(connection, files, secret=half == "answer_blob"), strict=True):
                    row[half] = name
            connection.execute(insert(tasks).values(rows).on_conflict_do_nothing())
    found.sent += len(rows)


def _fetch(id: str, archives: Mapping[str, Path], root: Path) -> None:
    """Unpack a task, verified, from its public half and its answer, if any, into a folder. Raises `UserError`."""
    if (root / id).exists() and not (len(archives) > 1 and (root / id / TASK_FILE).is_file()):
        raise TeamStoreError("A folder of its id is here and can't be read.", hint="Delete it, and sync again.")
    for sha256, archive in archives.items():
        require_whole(archive, sha256)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=_made(root)) as place:
        public, *answer = archives.values()
        task = unpack_task(public, Path(place), *answer)
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
    alarms: list[Alarm] = []
    rows: list[dict[str, Any]] = []
    wanted: list[tuple[str, str]] = []
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
                    rows.append({"task": id, "name": name, "data": data})
                elif theirs[name] != sha256:
                    alarms.append(Alarm(f"task {task.short_id}, {_BASELINES}/{name}", 0, sha256, theirs[name]))
            if has_answer(task):
                wanted += [(id, name) for name in sorted(theirs.keys() - here.keys())]
        for some in portions(rows, lambda row: len(row["data"]) + PIECE // _BASELINES_AT_ONCE, PIECE):
            connection.execute(insert(baselines).values(some).on_conflict_do_nothing())
        for names in portions(wanted, lambda _: 1, _BASELINES_AT_ONCE):
            for id, name, data in connection.execute(select(baselines).where(_BASELINE.in_(names))):
                alarms += _add_baseline(mine[id], name, bytes(data))
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
