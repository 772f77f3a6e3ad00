"""Shares tasks through a team's store: archives of the public half and of the answer, and all baselines."""

from __future__ import annotations

import hashlib
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import select, text, tuple_
from sqlalchemy.dialects.postgresql import insert

from gistpoint.core.confirmation.controls import CONTROLS_FILE
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.archive import PUBLIC_FILES, pack_files, unpack_task
from gistpoint.core.kinds.folder import compare, read_task
from gistpoint.core.tasks.documents import ANSWER_FILE, TASK_FILE, read_baseline
from gistpoint.core.tasks.entered import ENTERED_FILE
from gistpoint.core.tasks.model import Task
from gistpoint.core.trees import sha256_of
from gistpoint.core.unfinished import mark, scratch_folder
from gistpoint.sessions.studies.made_from import studies_of
from gistpoint.sessions.tasks import TaskStore
from gistpoint.sessions.team.address import TeamStoreError
from gistpoint.sessions.team.blobs import blob_sizes, get_blobs, put_blobs, whole_blob
from gistpoint.sessions.team.conflicts import Conflict
from gistpoint.sessions.team.replication import portions
from gistpoint.sessions.team.schema import PIECE, baselines, tasks

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_LEVEL = 10
"""The compression level of archives; the highest takes minutes for a large repository."""
_BASELINES = "answer/baselines"
_AT_ONCE, _TOGETHER = 100, 2 * PIECE
"""The maximum number of tasks in one transaction, and of bytes in them if there are several."""
_BASELINES_AT_ONCE = 500
_BASELINE = tuple_(baselines.c.task, baselines.c.name)
_BLOB = text(
    "SELECT encode(sha256(string_agg(data, ''::bytea ORDER BY piece)), 'hex') FROM blobs WHERE sha256 ="
    " :sha256"
)


@dataclass(slots=True)
class SharedTasks:
    """The result of synchronising tasks."""

    sent: int = 0
    fetched: int = 0
    left: int = 0
    """The number of tasks that were deleted here and remain in the store."""
    conflicts: list[Conflict] = field(default_factory=list)


def share_tasks(
    engine: Engine,
    store: TaskStore,
    machine: str,
    report: Callable[[int, int, str], None] = lambda done, total, what: None,
    *,
    sends: bool = True,
    deleted: bool = False,
) -> SharedTasks:
    """Send the tasks missing from the store, fetch those missing here, and return the result.

    Without `sends`, only public halves are fetched, as for a reader. Tasks that were deleted here are fetched
    only with `deleted`. Tasks that differ are left unchanged and reported as conflicts. `report` receives the
    number of finished tasks, the total and the current task; it may raise to stop.
    """
    found = SharedTasks()
    local = local_tasks(store)
    with engine.begin() as connection:
        there = {row.id: row for row in connection.execute(select(tasks))}
    # A task that one person deletes stays in the store for others, but is not fetched by that person again
    # (decision 107).
    gone = store.deleted
    for id in gone & local.keys():
        store.forget_deleted(id)
    left = set() if deleted else (gone & there.keys()) - local.keys()
    found.left = len(left)
    missing = [task for id, task in local.items() if id not in there and may_be_sent(task)] if sends else []

    def is_wanted(id: str) -> bool:
        return id not in local or (sends and not has_answer(local[id]))

    to_fetch = sorted(filter(is_wanted, there.keys() - left))
    total = len(missing) + len(to_fetch)
    for batch in portions(missing, _AT_ONCE, lambda task: task.tree_path.stat().st_size, _TOGETHER):
        _send(engine, batch, machine, found, lambda done, name: report(done, total, name))
    if sends:
        for id in there.keys() & local.keys():
            found.conflicts += _compared(local[id], there[id].public_sha256, there[id].answer_sha256)
    blobs_by_task = {
        id: [there[id].public_blob, *([there[id].answer_blob] if sends else [])] for id in to_fetch
    }

    def report_fetched(done: int, name: str) -> None:
        report(len(missing) + done, total, name)

    _fetch_all(engine, blobs_by_task, store, found, report_fetched, public=not sends)
    if sends:
        found.conflicts += _share_baselines(engine, local_tasks(store))
    return found


def local_tasks(store: TaskStore) -> dict[str, Task]:
    """Return the user's own tasks by id, without the demo's, which every machine has."""
    root = store.roots[0]
    return {
        entry.id: entry
        for entry in store.tasks()
        if isinstance(entry, Task) and entry.folder.parent.absolute() == root.absolute()
    }


def has_answer(task: Task) -> bool:
    """Return whether a task has its answer; a task that was fetched without it is not sent."""
    return (task.folder / ANSWER_FILE).is_file()


def may_be_sent(task: Task) -> bool:
    """Return whether a task may be sent: complete ones may, unless they contain a study participant's code.

    The store keeps everything that it receives, so an erasure could not reach such a task there (decision
    141).
    """
    return has_answer(task) and not studies_of(task)


def fingerprints(task: Task) -> tuple[str, str]:
    """Return the SHA-256 of `task.toml`, which covers the tree, and of the answer; empty if there is none."""
    public = hashlib.sha256((task.folder / TASK_FILE).read_bytes()).hexdigest()
    answer = [task.folder / name for name in _answer_files(task.folder)]
    if not answer:
        return public, ""
    parts = (b"%d\n%b" % (path.stat().st_size, path.read_bytes()) for path in answer)
    return public, hashlib.sha256(b"".join(parts)).hexdigest()


def _answer_files(folder: Path) -> list[str]:
    return [name for name in (ANSWER_FILE, ENTERED_FILE) if (folder / name).is_file()]


def _controls(folder: Path) -> list[str]:
    """Return the file of the controls, if any; no digest covers it, because any machine can make it later."""
    return [CONTROLS_FILE] if (folder / CONTROLS_FILE).is_file() else []


def _send(
    engine: Engine,
    batch: Sequence[Task],
    machine: str,
    found: SharedTasks,
    report: Callable[[int, str], None],
) -> None:
    """Send tasks in one transaction; unreadable ones are reported and left out."""
    rows: list[dict[str, str]] = []
    with scratch_folder("sending") as name:
        scratch = Path(name)
        for task in batch:
            report(found.sent + len(rows), task.short_id)
            try:
                rows.append({**_packed(task, scratch), "machine": machine})
            except UserError as error:
                found.conflicts.append(Conflict(f"task {task.short_id}", words=f"it was not sent. {error}"))
        if not rows:
            return
        with engine.begin() as connection:
            put_blobs(connection, [scratch / row["public_blob"] for row in rows], secret=False)
            put_blobs(connection, [scratch / row["answer_blob"] for row in rows], secret=True)
            connection.execute(insert(tasks).values(rows).on_conflict_do_nothing())
    found.sent += len(rows)


def _packed(task: Task, scratch: Path) -> dict[str, str]:
    """Write the archives of a task's halves to a folder, named by their SHA-256, and return the task's row.

    Raises `UserError` if the task can't be read.
    """
    read_task(task.folder)
    public, answer = fingerprints(task)
    names = [
        *_answer_files(task.folder),
        *_controls(task.folder),
        *(f"{_BASELINES}/{name}" for name in _baselines_here(task)),
    ]
    row = {"id": task.id, "mode": str(task.mode), "source": task.source.name}
    row |= {"public_sha256": public, "answer_sha256": answer}
    for half, members in (("public_blob", PUBLIC_FILES), ("answer_blob", names)):
        pack_files(task.folder, members, scratch / half, level=_LEVEL)
        row[half] = sha256_of(scratch / half)
        (scratch / half).rename(scratch / row[half])
    return row


def _fetch_all(
    engine: Engine,
    blobs_by_task: Mapping[str, Sequence[str]],
    store: TaskStore,
    found: SharedTasks,
    report: Callable[[int, str], None],
    *,
    public: bool,
) -> None:
    """Fetch tasks; `blobs_by_task` has each task's blobs: the public half, and the answer if requested."""
    sizes = blob_sizes(engine, {name for names in blobs_by_task.values() for name in names}, public=public)
    for batch in portions(
        blobs_by_task, _AT_ONCE, lambda id: sum(map(sizes.__getitem__, blobs_by_task[id])), _TOGETHER
    ):
        with tempfile.TemporaryDirectory(prefix=f".fetching-{mark()}-") as name:
            scratch = Path(name)
            names = [*chain.from_iterable(blobs_by_task[id] for id in batch)]
            with engine.begin() as connection:
                get_blobs(connection, names, scratch, public=public, streamed=len(batch) == 1)
            for id in batch:
                report(found.fetched, id[:12])
                try:
                    _fetch(id, [name for name in blobs_by_task[id] if name], scratch, store.roots[0])
                except UserError as error:
                    found.conflicts.append(Conflict(f"task {id[:12]}", words=f"it was not fetched. {error}"))
                else:
                    store.forget_deleted(id)
                    found.fetched += 1


def _fetch(id: str, blobs: Sequence[str], scratch: Path, root: Path) -> None:
    """Unpack a task from its blobs, the public half and the answer if any, into a folder, and verify it.

    Raises `UserError` if a blob is missing or damaged or contains another task, or if another folder has the
    task's name.
    """
    if (root / id).exists() and not (len(blobs) > 1 and (root / id / TASK_FILE).is_file()):
        raise TeamStoreError(
            "A folder with its id is here and can't be read.", hint="Delete it, and sync again."
        )
    with tempfile.TemporaryDirectory(prefix=f".fetching-{mark()}-", dir=_made(root)) as place:
        public, *answer = (whole_blob(scratch, name) for name in blobs)
        task = unpack_task(public, Path(place), *answer)
        if task.id != id:
            raise TeamStoreError(f"The store has the task {task.id[:12]} under this id.")
        if (root / id).exists():  # this machine has only the public half
            compare(read_task(root / id), task)
            (task.folder / "answer").rename(root / id / "answer")
        else:
            task.folder.rename(root / id)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _compared(task: Task, public_sha256: str, answer_sha256: str) -> Iterator[Conflict]:
    public, answer = fingerprints(task)
    if public != public_sha256:
        yield Conflict(f"task {task.short_id}, {TASK_FILE}", 0, public, public_sha256)
    if answer and answer_sha256 and answer != answer_sha256:
        yield Conflict(f"task {task.short_id}, {ANSWER_FILE}", 0, answer, answer_sha256)


def _baselines_there(connection: Connection) -> dict[str, dict[str, str]]:
    """Return the hashes of the baselines in the store, by task and name."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for id, name, sha256 in connection.execute(
        text("SELECT task, name, encode(sha256(data), 'hex') FROM baselines")
    ):
        found[id][name] = sha256
    return found


def _baselines_here(task: Task) -> dict[str, Path]:
    return {path.name: path for path in sorted((task.folder / _BASELINES).glob("*.json"))}


def _share_baselines(engine: Engine, local: dict[str, Task]) -> list[Conflict]:
    """Copy baselines to the side where they are missing; return a conflict for each one that can't be copied.

    A baseline can't be copied if it differs between the sides, or is invalid in the store.
    """
    conflicts: list[Conflict] = []
    rows: list[dict[str, Any]] = []
    wanted: list[tuple[str, str]] = []
    with engine.begin() as connection:
        kept = _baselines_there(connection)
        for id in local.keys() & set(connection.scalars(select(tasks.c.id))):
            for name, here, there in _compared_baselines(local[id], kept[id]):
                if not there:
                    data = (local[id].folder / _BASELINES / name).read_bytes()
                    rows.append({"task": id, "name": name, "data": data})
                elif here:
                    conflicts.append(
                        Conflict(f"task {local[id].short_id}, {_BASELINES}/{name}", 0, here, there)
                    )
                elif has_answer(local[id]):
                    wanted.append((id, name))
        for batch in portions(rows, _BASELINES_AT_ONCE, lambda row: len(row["data"]), PIECE):
            connection.execute(insert(baselines).values(batch).on_conflict_do_nothing())
        for names in portions(wanted, _BASELINES_AT_ONCE):
            for id, name, data in connection.execute(select(baselines).where(_BASELINE.in_(names))):
                conflicts += _add_baseline(local[id], name, bytes(data))
    return conflicts


def _compared_baselines(task: Task, there: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield the name and both hashes, here and in the store, of each baseline that differs or is missing."""
    here = {
        name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in _baselines_here(task).items()
    }
    for name in sorted(dict(here.items() ^ there.items())):
        yield name, here.get(name, ""), there.get(name, "")


def _add_baseline(task: Task, name: str, data: bytes) -> list[Conflict]:
    """Write a baseline next to the others, or return a conflict if it or its name is invalid."""
    folder = _made(task.folder / _BASELINES)
    what = f"task {task.short_id}, baseline {name[:80]!r}"
    if Path(name).name != name or not name.endswith(".json") or name.startswith("."):
        return [Conflict(what, words="is not a valid name of a baseline; it was not fetched.")]
    with tempfile.TemporaryDirectory(prefix=f".fetching-{mark()}-", dir=task.folder) as scratch:
        part = Path(scratch) / name
        part.write_bytes(data)
        try:
            read_baseline(part, None)
        except UserError as error:
            return [Conflict(what, words=f"it was not fetched. {error}")]
        part.replace(folder / name)
    return []


def task_differences(connection: Connection, store: TaskStore) -> Iterator[tuple[str, Conflict]]:
    """Yield the differences between the tasks here and in the store, each with its kind.

    Blobs and trees are hashed again.
    """
    local = local_tasks(store)
    there = {row.id: row for row in connection.execute(select(tasks))}
    kept = _baselines_there(connection)
    for id in sorted(local.keys() - there.keys()):
        if may_be_sent(local[id]):
            yield "missing there", Conflict(f"task {id[:12]}", words="the store has none.")
    for id in sorted(there.keys() - local.keys() - store.deleted):
        yield "missing here", Conflict(f"task {id[:12]}", words="it is only on the store.")
    for id, row in sorted(there.items()):
        for sha256, what in ((row.public_blob, "public half"), (row.answer_blob, "answer")):
            if sha256 and connection.scalar(_BLOB, {"sha256": sha256}) != sha256:
                yield (
                    "blob damaged",
                    Conflict(f"task {id[:12]}, {what}", words=f"the blob {sha256[:12]} is damaged."),
                )
        if id not in local:
            continue
        task = local[id]
        if not has_answer(task):
            yield "missing here", Conflict(f"task {id[:12]}, answer", words="it is only on the store.")
        for conflict in _compared(task, row.public_sha256, row.answer_sha256):
            yield "task differs", conflict
        if (tree := sha256_of(task.tree_path)) != task.tree_sha256:
            yield (
                "task differs",
                Conflict(f"task {task.short_id}, workspace/tree.tar", 0, tree, task.tree_sha256),
            )
        yield from _baseline_differences(task, kept[id])


def _baseline_differences(task: Task, kept: Mapping[str, str]) -> Iterator[tuple[str, Conflict]]:
    for name, here, there in _compared_baselines(task, kept):
        what = f"task {task.short_id}, baseline {name}"
        if not here:
            yield "missing here", Conflict(what, words="it is only on the store.")
        elif not there:
            yield "missing there", Conflict(what, words="the store has none.")
        else:
            yield "task differs", Conflict(what, 0, here, there)
