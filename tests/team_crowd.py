"""A crowd on several machines in one team's study, while the server is killed, and the checks afterwards.

Each machine is a process with its own home. Its people take turns in the study, a step at a time, with
the code that the program runs. The operations of a step are acknowledged when the step returns, and are then
listed.
"""

from __future__ import annotations

import json
import multiprocessing
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

from builders import build_task
from postgres_server import PostgresServer
from small_study import FORMS, changes, do, judge_for, opened
from study_folders import Machine, declare
from team_studies import contents, wrong

from gistpoint.core.machine_time import SystemTime
from gistpoint.core.study.operations import ORGANISER, STUDY, StudyOperationKind
from gistpoint.core.tasks.model import Mode
from gistpoint.sessions.studies.drafts import FormDrafts
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.syncing import synchronise
from gistpoint.sessions.studies.taking import Participation
from gistpoint.sessions.team.address import UnreachableError, choose, parse_address
from gistpoint.sessions.team.study_note import STUDIES
from gistpoint.sessions.team.study_sharing import fetch, share

TASKS_EACH = 3
UNTIL_S = 1800.0
DOWN_S = 3.0


@dataclass
class CrowdFigures:
    """The actions of a crowd, and the findings afterwards."""

    machines: int = 0
    people: int = 0
    attempts: int = 0
    acknowledged: int = 0
    lost: list[str] = field(default_factory=list)
    """Acknowledged operations that are missing on a machine."""
    twice: list[str] = field(default_factory=list)
    """Tasks that a person got in two attempts."""
    unfinished: list[str] = field(default_factory=list)
    kills: int = 0
    waited: int = 0
    """How often a person was informed that the next task can't begin now."""
    taken_back: int = 0
    """The number of plans and starts that the server never received."""
    wrong: list[str] = field(default_factory=list)
    """The findings of the audits on each machine."""
    unlike: list[str] = field(default_factory=list)
    """The machines whose folder differs from the organiser's."""
    attempts_per_task: tuple[int, int] = (0, 0)
    """The minimum and the maximum."""
    seconds: float = 0.0

    @property
    def faults(self) -> list[str]:
        return [*self.lost, *self.twice, *self.unfinished, *self.wrong, *self.unlike]

    def __str__(self) -> str:
        fewest, most = self.attempts_per_task
        return (
            f"{self.machines} machines, {self.people} people, {self.attempts} attempts, {self.kills} kills of the "
            f"server; {self.acknowledged} acknowledged operations, {len(self.lost)} lost; {len(self.twice)} tasks met "
            f"twice; {len(self.unfinished)} people without an end; told to wait {self.waited} times, {self.taken_back} "
            f"plans and starts taken back; {fewest} to {most} attempts a task; {len(self.wrong)} findings of "
            f"audits; {len(self.unlike)} folders that differ; {self.seconds:.0f} s"
        )


@dataclass
class Crowd:
    """The study of a crowd, with its organiser."""

    base: Path
    server: PostgresServer
    machines: int
    codes: tuple[str, ...]
    guests: tuple[str, ...] = ()
    """The people who take part in another way, such as with a browser."""
    tasks: int = 12
    name: str = "crowd-2026"

    def __post_init__(self) -> None:
        self.figures = CrowdFigures(self.machines, len(self.codes) + len(self.guests))
        self.organiser = Machine.at(self.base / "organiser", SystemTime())
        self.root = self.base / "organiser" / "study"

    def begin(self) -> None:
        """Declare the study, open it, and share it."""
        for number in range(self.tasks):
            mode = Mode.DISCOVERY if number % 2 else Mode.REMOVE
            build_task(self.root / "tasks", mode, library=f"shop{number}")
        design = {"tasks_per_person": TASKS_EACH, "per_source": 0}
        forms = [form for form in FORMS if form["id"] in ("task", "end")]
        declare(self.root, changes(id=self.name, design=design, questionnaire=forms), tasks=False)
        study = opened(self.organiser.open(self.root), *self.codes, *self.guests)
        choose(self.organiser.locations.config, self.server.url)
        share(study, self.server.address)
        synchronise(self.open())

    def open(self) -> StudyFolder:
        """Open the organiser's folder."""
        return self.organiser.open(self.root)

    @contextmanager
    def at_work(self, kills: int) -> Iterator[None]:
        """Let all machines work, and kill the server at regular intervals of progress.

        Everybody has finished at the end of the context.
        """
        began, context = time.monotonic(), multiprocessing.get_context("spawn")
        groups = [self.codes[number :: self.machines] for number in range(self.machines)]
        workers = [
            context.Process(target=work, args=(self.base, number, self.name, self.server.url, codes))
            for number, codes in enumerate(groups)
        ]
        for worker in workers:
            worker.start()
        killer = Thread(target=self._kill, args=(kills,))
        killer.start()
        try:
            yield
            for worker in workers:
                worker.join(UNTIL_S)
            killer.join(UNTIL_S)
        finally:
            for worker in workers:
                if worker.is_alive():
                    worker.kill()
        self.figures.unfinished += [
            f"machine {n}: {w.exitcode}" for n, w in enumerate(workers) if w.exitcode != 0
        ]
        self.figures.seconds = time.monotonic() - began

    def _kill(self, kills: int) -> None:
        """Kill and restart the server `kills` times, after equal shares of the expected operations."""
        expected = len(self.codes) * (4 + 3 * TASKS_EACH)
        until = time.monotonic() + UNTIL_S
        for number in range(kills):
            while self._acknowledged() < expected * (number + 1) / (kills + 1) and time.monotonic() < until:
                time.sleep(0.05)
            self.server.kill()
            self.figures.kills += 1
            time.sleep(DOWN_S)
            self.server.start()

    def _acknowledged(self) -> int:
        return sum(path.read_bytes().count(b"\n") for path in self.base.glob("told-*"))

    def end(self) -> CrowdFigures:
        """Close the study, bring every machine up to date, compare them, and return the figures."""
        found = self.figures
        homes = [Machine.at(self.base / f"machine-{number}", SystemTime()) for number in range(self.machines)]
        folders = [self.open(), *(home.open(home.locations.data / STUDIES / self.name) for home in homes)]
        folders[0].record(ORGANISER, STUDY, StudyOperationKind.CLOSED)
        for _ in range(2):  # the first round sends what others fetch in the second
            for folder in folders:
                synchronise(folder)
        reported = [
            json.loads(line)
            for path in sorted(self.base.glob("told-*"))
            for line in path.read_bytes().splitlines()
        ]
        found.waited = sum("waited" in line for line in reported)
        acknowledged = {line["op"] for line in reported if "op" in line}
        found.acknowledged = len(acknowledged)
        everything = contents(self.root)
        for place, folder in enumerate(folders):
            known = {operation.op for operation in folder.store.operations()}
            found.lost += [f"{op} on machine {place}" for op in sorted(acknowledged - known)]
            found.wrong += [f"machine {place}: {finding.sentence}" for finding in wrong(folder)]
            if contents(folder.root) != everything:
                found.unlike.append(f"machine {place}")
        self._look_at_people(folders[0])
        return found

    def _look_at_people(self, study: StudyFolder) -> None:
        found, tasks = self.figures, Counter[str]()
        deleted = [one for one in study.store.operations() if one.kind == StudyOperationKind.DELETE]
        found.taken_back, found.attempts = len(deleted), sum(1 for _ in study.attempts())
        for code in (*self.codes, *self.guests):
            who = study.ledger.person(code)
            met = Counter(given.task for given in who.assignments for _ in who.begun.get(given.id, ()))
            found.twice += [f"{code}: {task}" for task, times in met.items() if times > 1]
            tasks.update(met.keys())
            if len(who.finished) != TASKS_EACH or len(met) != TASKS_EACH:
                found.unfinished.append(f"{code}: {len(met)} begun, {len(who.finished)} ended")
        found.attempts_per_task = min(tasks.values(), default=0), max(tasks.values(), default=0)

    def plain_copy(self, into: Path) -> Path:
        """Return a copy of the study as a folder without a store."""
        shutil.copytree(self.root, into)
        (into / "team.toml").unlink()
        return into


def work(base: Path, number: int, name: str, url: str, codes: Sequence[str]) -> None:
    """Let people go through the study on one machine, in turn, whatever happens to the server."""
    machine = Machine.at(base / f"machine-{number}", SystemTime())
    root = machine.locations.data / STUDIES / name
    choose(machine.locations.config, url)
    with (base / f"told-{number}").open("a", encoding="utf-8", buffering=1) as told:
        while not root.exists():
            try:
                fetch(name, parse_address(url), machine.locations)
            except UnreachableError:
                time.sleep(0.2)
        live, seen = {code: sit_down(machine, root, code) for code in codes}, set[str]()
        while live:
            for code, part in list(live.items()):
                try:
                    if not do(part, part.step()):
                        del live[code]
                except UnreachableError:
                    told.write(json.dumps({"waited": code}) + "\n")
                    time.sleep(0.2)
                    continue
                for operation in part.folder.ledger.operations:
                    if operation.op not in seen and operation.reviewer.startswith(f"{code}@"):
                        seen.add(operation.op)
                        told.write(json.dumps({"op": operation.op, "kind": operation.kind}) + "\n")


def sit_down(machine: Machine, root: Path, code: str) -> Participation:
    folder = machine.open(root)
    part = Participation(
        folder, code, machine.attempts, judge_for, FormDrafts(machine.locations.data, folder.study.id, code)
    )
    part.come()
    return part
