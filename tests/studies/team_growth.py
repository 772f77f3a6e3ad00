"""Measures the sizes of a growing team store and of a machine's files, and the waiting times of people.

Usage: PYTHONPATH=src:tests uv run python tests/studies/team_growth.py FOLDER [TASKS ATTEMPTS PERCENT...]
       PYTHONPATH=src:tests uv run python tests/studies/team_growth.py study FOLDER [PEOPLE...]

For each percentage, a home and a database are made in bulk below FOLDER, measured and deleted. Journals are
copies of those of five scripted attempts, with other ids, people, times and hashes. `study` measures the
report of simulated studies. Times are those of whole commands, including their start, under the machine's
current load.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS)]

import psycopg  # noqa: E402
from builders import CHECKS, REPAIR, build_task  # noqa: E402
from fakes import FakeClock, FakeRunner  # noqa: E402
from postgres_server import PostgresServer  # noqa: E402
from team_machines import TeamMachine, make_schema  # noqa: E402

from gistpoint.core.attempts.engine import Attempt  # noqa: E402
from gistpoint.core.attempts.events import AttemptStarted, GiveUpCode, Pane  # noqa: E402
from gistpoint.core.attempts.identity import MODEL, TIME_CHARACTERS, Enrolment, Role, _base32  # noqa: E402
from gistpoint.core.kinds.folder import read_answer, write_task  # noqa: E402
from gistpoint.core.kinds.repair.judge import RepairJudge  # noqa: E402
from gistpoint.core.locations import Locations  # noqa: E402
from gistpoint.core.logs import line_hash  # noqa: E402
from gistpoint.core.tasks.identity import task_id  # noqa: E402
from gistpoint.core.tasks.model import Mode, Task  # noqa: E402
from gistpoint.sessions.heads import HEADS  # noqa: E402
from gistpoint.sessions.journal import JOURNAL, JournalWriter, decoded  # noqa: E402

PEOPLE, NEW = 50, 100
"""The number of pseudonyms, and the number of attempts per new one at the last synchronisation."""
FIRST_MS, APART_MS = 1_600_000_000_000, 1_800_000
MACHINE, PERSON = "zzzzzz", b'"participant":"%b"'
SETTINGS = ("fsync=off", "max_wal_size=96MB", "min_wal_size=32MB", "autovacuum=off")
"""The disk is in memory here, so the log of the database is kept small."""


@dataclass(frozen=True)
class Pattern:
    """The journal of a scripted attempt, and the values in it that copies replace."""

    lines: tuple[bytes, ...]
    """The lines, with `<PREV>` in place of the hash of the previous line."""
    began: int
    times: tuple[int, ...]
    attempt: bytes
    task: bytes
    participant: bytes
    actor: str

    @classmethod
    def of(cls, journal: Path) -> Pattern:
        lines, head, times = [], b"", list[int]()
        for line in journal.read_bytes().splitlines():
            event = decoded(line)
            assert event is not None
            lines.append(line.replace(b'"prev":"%b"' % head, b'"prev":"<PREV>"', 1))
            head, times = line_hash(line).encode(), [*times, event.utc_ms]
        first = decoded(journal.read_bytes().splitlines()[0])
        assert first is not None
        assert isinstance(first.data, AttemptStarted)
        begun = first.data
        person = (begun.participant or "").encode()
        return cls(
            tuple(lines),
            times[0],
            tuple(times),
            begun.attempt_id.encode(),
            begun.task_id.encode(),
            person,
            begun.actor,
        )

    def copy(self, attempt: str, task: str, participant: str, began: int) -> list[tuple[bytes, str]]:
        """Return the lines of another attempt, each with its hash."""
        found, head = [], ""
        for number, (line, at) in enumerate(zip(self.lines, self.times, strict=True)):
            if not number:
                line = line.replace(self.attempt, attempt.encode()).replace(self.task, task.encode())
                line = line.replace(PERSON % self.participant, PERSON % participant.encode())
            line = line.replace(b'"utc_ms":%d' % at, b'"utc_ms":%d' % (at + began - self.began), 1)
            line = line.replace(b"<PREV>", head.encode(), 1)
            head = line_hash(line)
            found.append((line, head))
        return found


def acted(
    folder: Path, task: Task, name: str, who: Enrolment, *, calls: int, edits: int, repair: str
) -> Path:
    """Write the journal of an attempt with this many calls and edits, and return its path.

    The attempt submits `repair`, or gives up if that is empty.
    """
    clock = FakeClock()
    name = f"acted-{name}"  # copies replace it wherever it occurs, so it must not occur in journals otherwise
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
        attempt.edit("shop/prices.py::discount", REPAIR + f"    # {number}\n" * number)
    if repair:
        attempt.call("submit_attempt", {"func_code": repair})
    else:
        attempt.give_up(GiveUpCode.TOO_HARD, "")
    writer.close()
    return folder / name / JOURNAL


def patterns(folder: Path, task: Task) -> list[Pattern]:
    """Return the journals that all others copy: of people who solve, fail or give up, and of a model."""
    person, model = (
        Enrolment(participant="P00"),
        Enrolment(MODEL, Role.QA, solver={"kind": "chat", "model": "m-1"}),
    )
    wrong = REPAIR.replace("100", "99")
    made = [
        acted(folder, task, "solved", person, calls=4, edits=5, repair=REPAIR),
        acted(folder, task, "wrong", person, calls=6, edits=8, repair=wrong),
        acted(folder, task, "gave-up", person, calls=2, edits=4, repair=""),
        acted(folder, task, "model", model, calls=5, edits=0, repair=REPAIR),
        acted(folder, task, "one-more", person, calls=3, edits=5, repair=REPAIR),
    ]
    return [Pattern.of(path) for path in made]


def copied(task: Task, root: Path, number: int) -> str:
    """Write a copy of a task as if it came from another library; return the copy's id.

    The answer is copied, too; the archive is a hard link.
    """
    source = replace(task.source, name=f"shop-{number}")
    answer = read_answer(task)
    identity = task_id(
        mode=task.mode,
        source_name=source.name,
        source_revision=source.revision,
        tree_sha256=task.tree_sha256,
        targets=answer.targets,
        lock=(),
        ids_sha256=task.suite.ids_sha256,
    )
    copy = replace(task, id=identity, source=source, folder=root / identity)
    (copy.folder / "workspace").mkdir(parents=True)
    os.link(task.tree_path, copy.tree_path)
    write_task(copy, answer)
    return identity


@dataclass
class Growth:
    """A machine and its team store, at one size."""

    machine: TeamMachine
    server: PostgresServer
    tasks: int
    attempts: int

    def make(self, *, rows: bool = True) -> None:
        """Write all tasks into the home, and all but a few attempts into both the home and the store.

        Of the remaining attempts, `add` writes half into the home and half into the store. Without `rows`,
        all attempts are written into the home alone.
        """
        places = self.machine.locations
        with tempfile.TemporaryDirectory(dir=self.machine.root.parent) as folder:
            made = [build_task(Path(folder) / "made", mode) for mode in (Mode.REMOVE, Mode.DISCOVERY)]
            places.tasks.mkdir(parents=True)
            self.ids = [copied(made[number % 2], places.tasks, number) for number in range(self.tasks)]
            self.patterns = patterns(Path(folder) / "acted", made[0])
        (places.attempts / HEADS).mkdir(parents=True, exist_ok=True)
        new = max(2, self.attempts // NEW) if rows else 0
        self.write(0, self.attempts - new, files=True, rows=rows)
        self.new = self.attempts - new, self.attempts - new // 2, self.attempts

    def add(self) -> None:
        """Add the few attempts that only one side has."""
        self.write(*self.new[:2], files=True, rows=False)
        self.write(*self.new[1:], files=False, rows=True)

    def write(self, start: int, end: int, *, files: bool, rows: bool) -> None:
        """Write attempts into files if `files`, and copy them into the database if `rows`."""
        kept: list[tuple[str, str, str, Pattern, int, list[tuple[bytes, str]]]] = []
        for number in range(start, end):
            began = FIRST_MS + number * APART_MS
            name = _base32(began, TIME_CHARACTERS) + f"{number:010d}"
            task = self.ids[number % self.tasks if number % 3 else number % 7 % self.tasks]
            pattern = self.patterns[number % len(self.patterns)]
            person = f"P{number // 5 % PEOPLE + 1:02}" if pattern.actor == "person" else ""
            lines = pattern.copy(name, task, person, began)
            if files:
                self._file(name, lines)
            kept.append((name, task, person, pattern, began, lines))
            if rows and (len(kept) == 2_000 or number == end - 1):
                self._copy(kept)
                kept = []

    def _file(self, name: str, lines: list[tuple[bytes, str]]) -> None:
        root = self.machine.locations.attempts
        (root / name).mkdir()
        (root / name / JOURNAL).write_bytes(b"".join(line + b"\n" for line, _ in lines))
        head = {
            "format": "gistpoint.head",
            "version": 1,
            "since": 1,
            "seq": len(lines),
            "sha256": lines[-1][1],
        }
        (root / HEADS / name).write_text(json.dumps(head))

    def _copy(self, kept: list[tuple[str, str, str, Pattern, int, list[tuple[bytes, str]]]]) -> None:
        with self.connected() as connection, connection.cursor() as cursor:
            columns = (
                "id, task, actor, participant, started_utc_ms, ended, seq, head, holder, lease_until, fence"
            )
            with cursor.copy(f"COPY attempts ({columns}) FROM STDIN") as copy:
                for name, task, person, pattern, began, lines in kept:
                    row = (name, task, pattern.actor, person, began, True, len(lines), lines[-1][1], MACHINE)
                    copy.write_row((*row, "2020-01-01", 1))
            columns = "file, writer, number, line, sha256, machine"
            with cursor.copy(f"COPY lines ({columns}) FROM STDIN (FORMAT BINARY)") as copy:
                copy.set_types(("text", "text", "int4", "bytea", "text", "text"))
                for name, *_, lines in kept:
                    for seq, (line, sha256) in enumerate(lines, start=1):
                        copy.write_row(("attempts", name, seq, line, sha256, MACHINE))

    @contextmanager
    def connected(self) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
        with psycopg.connect(f"host={self.server.root / 'socket'} dbname=team user=owner") as connection:
            yield connection

    def sizes(self) -> dict[str, float]:
        """Return the megabytes of the database, its largest tables and the files, and the number of lines."""
        with self.connected() as connection:
            connection.autocommit = True
            connection.execute("VACUUM ANALYZE")
            asked = {"database": "pg_database_size('team')"}
            tables = ("lines_of_attempts", "attempts", "tasks", "blobs")
            asked |= {name: f"pg_total_relation_size('{name}')" for name in tables}
            asked["index of lines"] = "pg_indexes_size('lines_of_attempts')"
            sizes = {
                name: connection.execute(f"SELECT {what}".encode()).fetchone() for name, what in asked.items()
            }
            counted = connection.execute(
                "SELECT count(*), sum(length(line)) FROM lines_of_attempts"
            ).fetchone()
        assert counted is not None
        files = sum(
            path.stat().st_size for path in self.machine.locations.attempts.rglob("*") if path.is_file()
        )
        rows = {name: row[0] / 1e6 for name, row in sizes.items() if row is not None}
        more = {
            "lines": counted[0],
            "bytes of lines": float(counted[1]) / 1e6,
            "files of attempts": files / 1e6,
        }
        return {**rows, **more}

    def measure(self) -> None:
        """Print the sizes, and the wall-clock time, the processor time and the memory of each command."""
        for name, words in {
            "first sync, of tasks": ("store", "sync"),
            "sync, nothing to do": ("store", "sync"),
            "store status": ("store", "status"),
            "task list": ("task", "list"),
            "attempt list, first": ("attempt", "list"),
            "attempt list, again": ("attempt", "list"),
            "home": ("home",),
        }.items():
            print(f"  {name}: {command(self.machine.root, *words)}", flush=True)
        print(f"  { ({name: round(size, 1) for name, size in self.sizes().items()}) }", flush=True)
        self.add()
        print(f"  sync, 1 % new: {command(self.machine.root, 'store', 'sync')}", flush=True)
        print(f"  store check: {command(self.machine.root, 'store', 'check')}", flush=True)


MEASURING = """
import json, resource, subprocess, sys, time
began = time.monotonic()
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
spent = time.monotonic() - began
print(json.dumps([done.returncode, spent, used.ru_utime + used.ru_stime, used.ru_maxrss, done.stdout.decode()[-600:]]))
"""
"""A small program in between, because the peak memory of a child includes that of its parent at the start."""


class CommandFailedError(Exception):
    """A measured command failed; the message has its exit code and the end of what it printed."""


def command(home: Path, *words: str) -> str:
    """Run a command in a home; return its time, processor time and memory, and the last printed line.

    Raises `CommandFailedError` if its exit code is not 0, so that no figure is that of a failure.
    """
    program = (
        [sys.executable, "-m", "gistpoint", *words]
        if words != ("home",)
        else [sys.executable, __file__, "home"]
    )
    text = subprocess.run(
        ["nice", "-n", "10", sys.executable, "-c", MEASURING, *program],
        env={**os.environ, "GISTPOINT_HOME": str(home), "COLUMNS": "200"}, check=True, capture_output=True,
    ).stdout  # fmt: skip
    code, spent, processor, memory, said = json.loads(text)
    if code:
        raise CommandFailedError(f"gistpoint {' '.join(words)}: exit {code}\n{said.strip()}")
    last = (said.strip().splitlines() or [""])[-1]
    return f"{spent:.1f} s ({processor:.1f} s cpu), {memory / 1000:.0f} MB: {last[:300]}"


async def open_home(home: Path) -> None:
    """Open the home screen, and print how long its first rows and all rows took."""
    from gistpoint import __version__
    from gistpoint.core.machine_time import SystemTime
    from gistpoint.sessions.attempts import AttemptStore
    from gistpoint.sessions.services import Services
    from gistpoint.sessions.tasks import TaskStore
    from gistpoint.tui.app import GistpointApp
    from gistpoint.tui.screens.home import HomeScreen

    places, clock = Locations(home / "data", home / "config", home / "cache"), SystemTime()
    services = Services(
        places,
        TaskStore(places.tasks),
        AttemptStore(places.attempts, clock, __version__, places.reviews),
        clock,
        runner_for=lambda task: FakeRunner(CHECKS),
        entrypoints_for=lambda task: None,  # type: ignore[arg-type,return-value]
    )
    app, began = GistpointApp(services), time.monotonic()
    async with app.run_test(size=(160, 48)):
        screen = app.screen
        assert isinstance(screen, HomeScreen)
        while not screen.tasks.rows:
            await asyncio.sleep(0.001)
        first = time.monotonic() - began
        while screen.rows is None or not screen.rows.complete:
            await asyncio.sleep(0.01)
        print(f"first rows after {first:.2f} s, all after {time.monotonic() - began:.1f} s")


def study(root: Path, people: list[int]) -> None:
    """Simulate studies of these numbers of people, and measure their reports."""
    from gistpoint.sessions.studies import simulation
    from gistpoint.tui import cli

    for count in people:
        place = root / f"study-{count}"
        try:
            os.environ["GISTPOINT_HOME"] = str(place / "home")
            simulation.DEMO_PEOPLE = count
            assert cli.main(["study", "demo", str(place / "study")]) == 0
            attempts = sum(1 for _ in place.rglob(JOURNAL))
            words = ["study", "report", str(place / "study"), "-o", str(place / "report" / "report.html")]
            (place / "report").mkdir()
            print(f"{count} people, {attempts} attempts: {command(place / 'home', *words)}", flush=True)
        finally:
            shutil.rmtree(place, ignore_errors=True)


def main() -> None:
    words = sys.argv[1:]
    if words[0] == "home":
        asyncio.run(open_home(Path(os.environ["GISTPOINT_HOME"])))
        return
    if words[0] == "study":
        study(Path(words[1]), [int(word) for word in words[2:]] or [5, 15, 50])
        return
    root = Path(words[0])
    tasks, attempts = (int(word) for word in words[1:3] or ("10000", "100000"))
    for percent in [float(word) for word in words[3:]] or [1.0, 10.0, 100.0]:
        place = root / f"growth-{percent:g}"
        server = PostgresServer(place / "server", settings=SETTINGS)
        try:
            place.mkdir(parents=True)
            server.start()
            make_schema(server)
            machine = TeamMachine(place / "home", server.url)
            growth = Growth(machine, server, round(tasks * percent / 100), round(attempts * percent / 100))
            print(
                f"{percent:g} %: {growth.tasks} tasks, {growth.attempts} attempts, {PEOPLE} people",
                flush=True,
            )
            began = time.monotonic()
            growth.make()
            print(f"  made in {time.monotonic() - began:.0f} s", flush=True)
            growth.measure()
        finally:
            server.kill()
            shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
