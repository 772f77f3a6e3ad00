"""Makes a home with thousands of tasks and attempts, and compares its speed with that of a small home.

usage: python tests/benchmarks/large_home.py make FOLDER [TASKS ATTEMPTS]
       python tests/benchmarks/large_home.py time LARGE SMALL [ROUNDS]

FOLDER is the GISTPOINT_HOME; `make` is repeatable, because ids, times and results are derived from counters.
In `time`, each round opens both homes twice in new processes, without and then with the cache of the first
start; the ratio of both homes counts. Blocks of the event loop are given in processor time, which a busy
machine does not lengthen.
"""

from __future__ import annotations

import asyncio
import asyncio.events
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from builders import CHECKS, REPAIR
from fakes import FakeClock, FakeRunner
from textual.pilot import Pilot

from gistpoint import __version__
from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.events import AttemptStarted, GiveUpCode, JournalEvent, Pane
from gistpoint.core.attempts.identity import MODEL, TIME_CHARACTERS, Enrolment, Role, _base32
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.locations import Locations
from gistpoint.core.logs import line_hash
from gistpoint.core.tasks.documents import ANSWER_FILE, TASK_FILE
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.sessions.heads import HEADS
from gistpoint.sessions.journal import JOURNAL, JournalWriter, encode, read_journal

DAY_MS = 24 * 60 * 60 * 1000
FIRST_MS = 1_600_000_000_000
FOR_MS = 5 * 365 * DAY_MS


def locations_of(home: Path) -> Locations:
    return Locations(home / "data", home / "config", home / "cache")


# Making


def acted(
    folder: Path, task: Task, name: str, who: Enrolment, *, calls: int, edits: int, repair: str
) -> Path:
    """Make an attempt with this many calls and edits, and return the path of its journal.

    It submits `repair`; if that is empty, it gives up.
    """
    clock = FakeClock()
    writer = JournalWriter(folder / name, clock)
    attempt = Attempt(
        task, RepairJudge(task, read_answer(task), FakeRunner(CHECKS)), writer, clock, version="1"
    )
    attempt.start(who, attempt_id=name)
    for number in range(calls):
        clock.advance(9_000)
        attempt.view(Pane.CODE if number % 2 else Pane.TREE)
        attempt.call("read_function", {"function_name": "discount", "file_path": "shop/prices.py"})
    attempt.view(Pane.EDITOR)
    for number in range(edits):
        clock.advance(3_000)
        attempt.edit("shop/prices.py::discount", REPAIR + f"    # {number}\n" * (number % 30))
    if repair:
        attempt.call("submit_attempt", {"func_code": repair})
    else:
        attempt.give_up(GiveUpCode.TOO_HARD, "")
    writer.close()
    return folder / name / JOURNAL


def patterns(folder: Path, task: Task) -> list[Path]:
    """Return the attempts that all others copy: of people who solve, fail or give up, and of a model."""
    person, model = (
        Enrolment(),
        Enrolment(MODEL, Role.QA, solver={"kind": "chat", "model": "m-1", "host": "here"}),
    )
    wrong = REPAIR.replace("100", "99")
    return [
        acted(folder, task, "solved", person, calls=9, edits=60, repair=REPAIR),
        acted(folder, task, "wrong", person, calls=14, edits=90, repair=wrong),
        acted(folder, task, "gave-up", person, calls=4, edits=20, repair=""),
        acted(folder, task, "model", model, calls=12, edits=0, repair=REPAIR),
        acted(folder, task, "untouched", person, calls=5, edits=30, repair=wrong),
    ]


def copy_task(task: Task, tasks: Path, number: int) -> str:
    """Copy a task under another id, with a link to its archive; return the id."""
    identity = hashlib.sha256(f"{task.id} {number}".encode()).hexdigest()
    folder = tasks / identity
    for name in (TASK_FILE, ANSWER_FILE):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        text = (task.folder / name).read_text(encoding="utf-8").replace(task.id, identity)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "workspace").mkdir()
    os.link(task.tree_path, folder / "workspace" / "tree.tar")
    return identity


@cache
def events_of(pattern: Path) -> tuple[JournalEvent, ...]:
    return read_journal(pattern).events


def copy_attempt(pattern: Path, attempts: Path, number: int, task_id: str, apart_ms: int) -> None:
    """Copy an attempt under another id, time and task, with new hashes and a head."""
    began = FIRST_MS + number * apart_ms
    identity = _base32(began, TIME_CHARACTERS) + f"{number:010d}"
    events = events_of(pattern)
    shift, head, lines = began - events[0].utc_ms, "", []
    for event in events:
        data = event.data
        if isinstance(data, AttemptStarted):
            fields = {name: getattr(data, name) for name in data.__struct_fields__}
            data = AttemptStarted(**{**fields, "attempt_id": identity, "task_id": task_id})
        line = encode(replace(event, utc_ms=event.utc_ms + shift, prev=head, data=data))
        head = line_hash(line)
        lines.append(line)
    (attempts / identity).mkdir(parents=True)
    (attempts / identity / JOURNAL).write_bytes(b"".join(lines))
    (attempts / HEADS).mkdir(exist_ok=True)
    kept = {"format": "gistpoint.head", "version": 1, "since": 1, "seq": len(lines), "sha256": head}
    (attempts / HEADS / identity).write_text(json.dumps(kept))


def make(home: Path, tasks: int, attempts: int) -> None:
    """Fill an empty folder with tasks and attempts."""
    from builders import build_task

    places = locations_of(home)
    with tempfile.TemporaryDirectory() as folder:
        made = [build_task(Path(folder), mode) for mode in (Mode.REMOVE, Mode.DISCOVERY)]
        ids = [copy_task(made[number % 2], places.tasks, number) for number in range(tasks)]
        repeated = patterns(Path(folder) / "acted", made[0])
        apart_ms = min(DAY_MS // 12, FOR_MS // max(1, attempts))  # none in the future
        for number in range(attempts):
            # Most tasks have a few attempts, but some have hundreds.
            task_id = ids[number % tasks if number % 3 else number % 7 % tasks]
            copy_attempt(repeated[number % len(repeated)], places.attempts, number, task_id, apart_ms)


# Timing


class Blocks:
    """A measure of how long one callback held the event loop, in ms of processor time of its thread."""

    def __init__(self) -> None:
        self.longest = 0.0
        run = asyncio.events.Handle._run

        def timed(handle: asyncio.events.Handle) -> None:
            began = time.thread_time()
            run(handle)
            self.longest = max(self.longest, (time.thread_time() - began) * 1000)

        asyncio.events.Handle._run = timed  # type: ignore[method-assign,assignment]

    def taken(self) -> float:
        longest, self.longest = self.longest, 0.0
        return longest


async def opened(home: Path) -> dict[str, float]:
    """Open a home, press keys in it, and return the duration of each action, in milliseconds."""
    from gistpoint.sessions.attempts import ATTEMPTS_INDEX, AttemptStore
    from gistpoint.sessions.services import Services
    from gistpoint.sessions.task_documents import TASKS_INDEX
    from gistpoint.sessions.tasks import TaskStore
    from gistpoint.tui.app import GistpointApp
    from gistpoint.tui.screens.home import HomeScreen

    places, clock, found, blocks = locations_of(home), FakeClock(), dict[str, float](), Blocks()
    clock.advance(FIRST_MS)
    services = Services(
        places,
        TaskStore(places.tasks, index=places.lists / TASKS_INDEX),
        AttemptStore(
            places.attempts, clock, __version__, places.reviews, index=places.lists / ATTEMPTS_INDEX
        ),
        clock,
        runner_for=lambda task: FakeRunner(CHECKS),
        entrypoints_for=lambda task: None,  # type: ignore[arg-type,return-value]
    )
    app = GistpointApp(services)
    async with app.run_test(size=(160, 48)) as pilot:
        screen = app.screen
        assert isinstance(screen, HomeScreen)
        began, processor = time.perf_counter(), time.process_time()

        async def met(name: str, condition: Callable[[], object]) -> None:
            while not condition():
                await asyncio.sleep(0.001)
            found[name] = (time.perf_counter() - began) * 1000
            found[f"{name}, processor"] = (time.process_time() - processor) * 1000
            found[f"{name}, block"] = blocks.taken()

        blocks.taken()
        await met("first rows", lambda: screen.tasks.rows)
        times = []
        while screen.rows is None or not screen.rows.complete:
            times.append(await keys(pilot, "down"))
            await asyncio.sleep(0.1)
        found["a key while reading, median"] = statistics.median(times) if times else 0.0
        found["a key while reading, worst"] = max(times, default=0.0)
        await met("all rows", lambda: screen.rows is not None and screen.rows.complete)
        for name, keys_pressed in {
            "arrow": ["down"] * 15,
            "sort": ["s"] * 4,
            "attempts": ["f3"],
            "arrow in attempts": ["down"] * 15,
            "sort attempts": ["s"] * 4,
            "filter": ["slash", *"solv"],
        }.items():
            found[name] = statistics.median([await keys(pilot, key) for key in keys_pressed])
            found[f"{name}, block"] = blocks.taken()
        await pilot.press("escape")
        began, processor = time.perf_counter(), time.process_time()
        before = screen.rows
        screen.action_reload()
        await met(
            "again", lambda: screen.rows is not before and screen.rows is not None and screen.rows.complete
        )
    return found


async def keys(pilot: Pilot[object], key: str) -> float:
    """Return the milliseconds until a key was handled and the screen was drawn."""
    from textual import events

    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    pilot.app.post_message(events.Key(key, key if len(key) == 1 else None))
    quiet = 0
    while quiet < 5:  # ready callbacks run in rounds, and a message needs several rounds
        await asyncio.sleep(0)
        quiet = 0 if len(loop._ready) > 0 else quiet + 1  # type: ignore[attr-defined]
    return (time.perf_counter() - began) * 1000


def measured(home: Path) -> dict[str, float]:
    text = subprocess.run(
        [sys.executable, __file__, "open", str(home)], capture_output=True, check=True, text=True
    ).stdout
    return dict(json.loads(text))


def compare(large: Path, small: Path, rounds: int) -> None:
    """Print the durations in both homes, and their ratios."""
    rows: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for _ in range(rounds):
        for home in (large, small):
            shutil.rmtree(home / "cache" / "lists", ignore_errors=True)
        for start in ("first start", "second start"):
            both = measured(large), measured(small)
            for name in both[0]:
                rows.setdefault((start, name), []).append((both[0][name], both[1].get(name, 0.0)))
    for (start, name), values in rows.items():
        big, little = (statistics.median(value[at] for value in values) for at in (0, 1))
        ratio = f"{big / little:6.1f} x" if little else "       –"
        print(f"{start:13} {name:30} {big:9.1f} ms, small {little:8.1f} ms, {ratio}")


def main() -> None:
    word, *rest = sys.argv[1:]
    if word == "make":
        home = Path(rest[0])
        shutil.rmtree(home / "data", ignore_errors=True)
        make(home, *map(int, rest[1:3] or (1007, 5007)))
    elif word == "open":
        print(json.dumps(asyncio.run(opened(Path(rest[0])))))
    else:
        compare(Path(rest[0]), Path(rest[1]), int(rest[2]) if len(rest) > 2 else 3)


if __name__ == "__main__":
    main()
