"""The demo's tasks, which are shipped as one archive each and unpacked into the user's data folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import msgspec

from gistpoint.core.decoding import decodable
from gistpoint.core.errors import TaskError, did_you_mean
from gistpoint.core.tasks.model import Mode, Task, shown_mode
from gistpoint.core.tasks.names import DEMO_LIBRARY, folded_name

PACKAGE = "gistpoint.core.demo"
LIBRARY = DEMO_LIBRARY
SECRET = b"the answers of the demo come with gistpoint"
"""The secret from which the salts of the demo's ids are made.

It hides nothing; it makes the ids the same everywhere.
"""
RECORDED = ("playthrough.json", "gist-playthrough.json")
RECORDED_MODEL = "seats-together.model.jsonl"
"""The journal of a model's attempt, in the folder of the recorded runs; its name begins with the task's."""


@dataclass(frozen=True, slots=True)
class DemoTarget:
    """A function of a demo task; `corrupted` is its corrupted source, or None if its body is removed."""

    function: str
    corrupted: str | None = None


@dataclass(frozen=True, slots=True)
class DemoTask:
    """One task of the demo, with the name that people type."""

    name: str
    title: str
    mode: Mode
    targets: tuple[DemoTarget, ...]
    tell_count: bool = False
    entrypoint: str = ""
    """The node id of a gist's test."""
    gist_tools: tuple[str, ...] = ()

    @property
    def shown_mode(self) -> str:
        """The mode as it is displayed."""
        return shown_mode(self.mode, several=len(self.targets) > 1, targets=len(self.targets))

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names: the mode, or `two` for the task with two functions."""
        return ("two",) if len(self.targets) > 1 else (self.mode.value,)


def demo_tasks() -> tuple[DemoTask, ...]:
    """Return the demo's tasks, easiest first."""
    return msgspec.convert(_json("recipe.json")["tasks"], decodable(tuple[DemoTask, ...]))


def demo_named(name: str) -> str:
    """Return the name of the demo's task with this name or title; empty if there is none.

    Case, spaces and punctuation don't matter.
    """
    wanted = folded_name(name)
    return next((t.name for t in demo_tasks() if wanted in map(folded_name, (t.name, t.title))), "")


def unpack_demo(into: Path) -> Iterator[tuple[DemoTask, Task]]:
    """Unpack the archives below `into` unless this was done already; yield each demo task with its task.

    Raises `TaskError` if an unpacked task is damaged.
    """
    # The kinds are not needed for the names of the demo's tasks.
    from gistpoint.core.kinds.folder import read_task

    for demo in demo_tasks():
        yield demo, read_task(_unpacked(demo, into), verify=False)


def _unpacked(demo: DemoTask, into: Path) -> Path:
    """Return the folder of a demo task; unpack it if that was not done already."""
    from gistpoint.core.tasks.documents import TASK_FILE
    from gistpoint.core.trees import sha256_of

    with as_file(files(PACKAGE).joinpath("archives", f"{demo.name}.tar.zst")) as archive:
        known = into / f".{demo.name}-{sha256_of(archive)[:16]}-adopted"  # its measurements were adopted
        if known.is_file() and (into / known.read_text("ascii") / TASK_FILE).is_file():
            return into / known.read_text("ascii")
        from gistpoint.core.kinds.archive import unpack_task

        task = unpack_task(archive, into, replaces=True)
        known.write_text(task.id, "ascii")
        return task.folder


def demo_task(name: str, into: Path) -> Task:
    """Return the demo's task with this name, alias or title, or with an id that begins with `name`.

    The beginning of an id needs at least four characters. The demo is unpacked below `into` if necessary.
    Raises `TaskError`, which lists the names, if there is no such task or if several have the title.
    """
    from gistpoint.core.kinds.folder import read_task
    from gistpoint.core.kinds.titles import tasks_called

    typed = name.casefold()
    for demo in demo_tasks():
        if typed in (demo.name, *demo.aliases):  # unpacking and reading the others would delay the screen
            return read_task(_unpacked(demo, into))
    tasks = list(unpack_demo(into))
    for _, task in tasks:
        if len(name) >= 4 and task.id.startswith(typed):
            return read_task(task.folder)
    called = tasks_called(name, [task for _, task in tasks])
    if len(called) == 1:
        return read_task(called[0].folder)
    known = ", ".join(f"{demo.name} ({demo.shown_mode})" for demo, _ in tasks)
    meant = did_you_mean(name, [word for demo, _ in tasks for word in (demo.name, *demo.aliases)])
    raise TaskError(f"The demo has no task {name!r}; it has {known}.{meant}")


def playthrough(name: str = "") -> tuple[str, list[dict[str, Any]]]:
    """Return the name of a task with a recorded attempt, and its steps; by default the first such task.

    Raises `TaskError` for a task without a recorded attempt.
    """
    recorded = [_json(file) for file in RECORDED]
    names = {other: demo.name for demo in demo_tasks() for other in (demo.name, *demo.aliases)}
    for one in recorded:
        if one["task"] == (names.get(name) if name else recorded[0]["task"]):
            return one["task"], one["steps"]
    known = ", ".join(one["task"] for one in recorded)
    raise TaskError(
        f"There is no recorded attempt at {name!r}.",
        hint=f"There is one at each of these: {known}.",
    )


def recorded_by_model() -> tuple[str, bytes]:
    """Return the name of the task that a model attempted, and the journal of its attempt."""
    return RECORDED_MODEL.partition(".")[0], (recorded_runs() / RECORDED_MODEL).read_bytes()


def recorded_runs() -> Path:
    """Return the folder of the recorded runs on the demo's tasks."""
    return Path(str(files(PACKAGE).joinpath("runs")))


def _json(name: str) -> Any:
    return json.loads(files(PACKAGE).joinpath(name).read_text(encoding="utf-8"))
