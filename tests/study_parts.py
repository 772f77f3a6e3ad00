"""A small study, its tasks, and a log written operation by operation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gistpoint.core.study.declaration import Study, StudyTask
from gistpoint.core.study.ledger import Ledger
from gistpoint.core.study.operations import STUDY, StudyOperation, person
from gistpoint.core.study.reading import parse_study, protocol_sha256

DECLARATION = """\
format = "gistpoint.study"
version = 1
id = "railway"
seed = 20261121
[design]
tasks_per_person = 2
[[condition]]
id = "alone"
[texts]
consent = "file:consent.md"
consent_items = ["[required] I take part of my own free will", "My attempts may be published"]
rules = "file:rules.md"
[privacy]
contact = "lab@example.org"
"""
TEXTS = {
    "consent.md": "What this is: small programs to repair.\n",
    "rules.md": "Paper is allowed, AI is not.\n",
}
MINUTE = 60_000


def declared(
    *more: str, changes: Mapping[str, str] | None = None, texts: Mapping[str, str] | None = None
) -> Study:
    """Return the study of the declaration with `changes` of its text and `more` appended."""
    text = "\n".join((DECLARATION, *more))
    for old, new in (changes or {}).items():
        assert old in text, old
        text = text.replace(old, new)
    return parse_study(text, (TEXTS | dict(texts or {})).__getitem__)


def study_tasks(
    number: int, *, modes: tuple[str, ...] = ("remove", "discovery"), sources: int = 3
) -> dict[str, StudyTask]:
    """Return tasks by their ids; mode and library alternate."""
    made = (
        StudyTask(
            id=f"{n:064x}",
            mode=modes[n % len(modes)],
            source=f"library-{n // len(modes) % sources}",
            targets=(f"part.py::f{n}",),
        )
        for n in range(1, number + 1)
    )
    return {task.id: task for task in made}


class StudyLog:
    """Operations, each one second after the previous one."""

    def __init__(self, study: Study, tasks: Mapping[str, StudyTask]) -> None:
        self.study = study
        self.tasks = tasks
        self.operations: list[StudyOperation] = []
        self.now_ms = 1_800_000_000_000

    def record(
        self, subject: str, kind: str, *, writer: str = "organiser@000000", **data: Any
    ) -> StudyOperation:
        """Append an operation, and return it."""
        self.now_ms += 1000
        op = f"{len(self.operations):032x}"
        operation = StudyOperation(op, writer, self.now_ms, subject, str(kind), data)
        self.operations.append(operation)
        return operation

    def by(self, code: str, kind: str, *, machine: str = "111111", **data: Any) -> StudyOperation:
        """Append an operation of a participant's program, and return it."""
        return self.record(person(code), kind, writer=f"{code}@{machine}", **data)

    def open(self) -> None:
        """Open the study."""
        self.record(
            STUDY, "opened", protocol=protocol_sha256(self.study, self.tasks), tasks=tuple(self.tasks)
        )

    def enrol(self, code: str, stratum: str = "") -> None:
        """Enrol a person."""
        self.record(person(code), "enrolled", stratum=stratum)

    def consent(self, code: str) -> None:
        """Record a person's consent, and the beginning of a sitting."""
        self.by(code, "consented", text_sha256="0" * 64, items=(True, False))
        self.by(code, "sitting", state="began")

    @property
    def ledger(self) -> Ledger:
        """The ledger folded from the log so far."""
        return Ledger(self.operations)
