"""Studies in folders, and attempts that people have made for them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w
from builders import CHECKS, build_task
from fakes import FakeClock, FakeRunner

from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.locations import Locations
from gistpoint.core.ports import TimeSource
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.team.study_note import read_note

CONSENT = "I take part of my own free will."
MINIMAL: dict[str, Any] = {
    "format": "gistpoint.study",
    "version": 1,
    "id": "shop-2026",
    "title": "The shop",
    "seed": 7,
    "design": {"tasks_per_person": 2},
    "condition": [{"id": "alone"}],
    "texts": {"consent": "file:consent.md", "consent_items": ["[required] Yes"], "rules": "file:rules.md"},
    "privacy": {"contact": "the lab"},
}


def declare(root: Path, changes: Mapping[str, Any] | None = None, *, tasks: bool = True) -> Path:
    """Write a study with two tiny tasks that is not open yet, and return its folder."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "study.toml").write_text(tomli_w.dumps({**MINIMAL, **(changes or {})}), encoding="utf-8")
    (root / "texts").mkdir()
    (root / "texts" / "consent.md").write_text(CONSENT, encoding="utf-8")
    (root / "texts" / "rules.md").write_text("No help.", encoding="utf-8")
    if tasks:
        build_task(root / "tasks", Mode.REMOVE)
        build_task(root / "tasks", Mode.DISCOVERY)
    return root


@dataclass
class Machine:
    """A machine with its data folder, from which people take part."""

    home: Path
    clock: TimeSource

    @classmethod
    def at(cls, home: Path, clock: TimeSource | None = None) -> Machine:
        return cls(home, clock or FakeClock())

    @classmethod
    def past(cls, home: Path, utc_ms: int) -> Machine:
        """Return the machine at an earlier time."""
        return cls(home, FakeClock(utc_ms))

    @property
    def locations(self) -> Locations:
        return Locations(self.home / "data", self.home / "config", self.home / "cache")

    def open(self, root: Path) -> StudyFolder:
        note = read_note(root)
        if note is None:
            return StudyFolder(root, self.locations, self.clock)
        from gistpoint.sessions.team.study_sharing import open_team_study

        return open_team_study(root, note, self.locations, self.clock)

    @property
    def attempts(self) -> AttemptStore:
        return AttemptStore(self.locations.attempts, self.clock, "test")

    def attempt(
        self, task: Task, code: str, study: str = "shop-2026", calls: int = 1, assignment: str = "a"
    ) -> Path:
        """Make an unfinished attempt with some calls, and return its folder."""
        enrolment = Enrolment(participant=code, study=study, condition="alone", assignment=assignment)
        opened = self.attempts.start(task, judge_of(task), enrolment)
        for _ in range(calls):
            opened.attempt.call("read_file", {"file_path": "README.md"})
        opened.close()
        return opened.journal.path.parent

    def go_on(self, task: Task, attempt: Path, calls: int = 1) -> None:
        """Continue an attempt with some more calls."""
        opened = self.attempts.resume(attempt.name, task, judge_of(task))
        for _ in range(calls):
            opened.attempt.call("read_file", {"file_path": "README.md"})
        opened.close()

    @contextmanager
    def held(self, task: Task, attempt: Path) -> Iterator[None]:
        """Keep an attempt open, as another window would."""
        opened = self.attempts.resume(attempt.name, task, judge_of(task))
        yield
        opened.close()


def judge_of(task: Task) -> RepairJudge:
    return RepairJudge(task, read_answer(task), FakeRunner(CHECKS))


def copy_of(root: Path, to: Path) -> Path:
    """Copy a study's folder, as synchronising does, and return the copy."""
    shutil.copytree(root, to)
    return to
