"""How far two validators agree on the tasks that both have judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gistpoint.core.attempts.state import AttemptResult
from gistpoint.sessions.sidefiles.agreement import Row, cohen_kappa, utc_text
from gistpoint.sessions.validations.state import TaskVerdict, Validation, ValidationBook


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A task on which two validators differ."""

    task: str
    first: TaskVerdict
    second: TaskVerdict


@dataclass(frozen=True, slots=True)
class VerdictAgreement:
    """Two validators' verdicts; `agreed` and `kappa` over all nine, `*_accept` over accepted or not."""

    first: str
    second: str
    tasks: int
    """Tasks that both have judged."""
    agreed: int
    kappa: float | None
    agreed_accept: int
    kappa_accept: float | None
    disagreements: tuple[Disagreement, ...]

    @property
    def observed(self) -> float | None:
        """The share of tasks on which both gave the same verdict."""
        return self.agreed / self.tasks if self.tasks else None

    @property
    def observed_accept(self) -> float | None:
        """The share of tasks that both accept or both don't."""
        return self.agreed_accept / self.tasks if self.tasks else None


def verdict_agreement(book: ValidationBook, tasks: Iterable[str], first: str, second: str) -> VerdictAgreement:
    """Compare two validators on some tasks; needs_discussion is a verdict like any other."""
    pairs: list[tuple[str, TaskVerdict, TaskVerdict]] = []
    for task in tasks:
        one, other = book.state(task, first).verdict, book.state(task, second).verdict
        if one is not None and other is not None:
            pairs.append((task, one.verdict, other.verdict))
    accepted = [(one is TaskVerdict.ACCEPT, other is TaskVerdict.ACCEPT) for _, one, other in pairs]
    return VerdictAgreement(
        first,
        second,
        len(pairs),
        sum(one is other for _, one, other in pairs),
        cohen_kappa((one, other) for _, one, other in pairs),
        sum(one == other for one, other in accepted),
        cohen_kappa(accepted),
        tuple(Disagreement(*pair) for pair in pairs if pair[1] is not pair[2]),
    )


COLUMNS = (
    "task", "reviewer", "utc", "kind", "verdict", "text", "subject", "status", "score", "solved", "suspicious",
    "passing", "failing", "odd", "seconds", "backend", "clean", "evidence", "op",
)  # fmt: skip
"""Columns of the CSV and keys of the JSON lines. `odd` are ids in which a run was not as the task says."""


def rows(book: ValidationBook, tasks: Iterable[str]) -> Iterator[Row]:
    """Yield the rows of some tasks: by task, validator and time."""
    wanted = frozenset(tasks)
    for validation in book.states():
        if validation.task in wanted:
            yield from sorted(_of(validation), key=lambda row: (str(row["utc"]), str(row["op"])))


def _of(said: Validation) -> Iterator[Row]:
    if said.verdict is not None:
        given = said.verdict
        values: Row = {"kind": "verdict", "verdict": given.verdict.value, "evidence": [*given.evidence]}
        yield _row(said, given.op, given.utc_ms, values)
    for comment in said.comments:
        yield _row(said, comment.op, comment.utc_ms, {"kind": "comment", "text": comment.text})
    for trial in said.trials:
        values = {
            "kind": "trial",
            "subject": trial.subject.value,
            "status": trial.status,
            "score": trial.score,
            "solved": trial.result is AttemptResult.SOLVED,
            "suspicious": [*trial.suspicious],
            "passing": trial.passing,
            "failing": trial.failing,
            "odd": [*trial.odd],
            "seconds": trial.seconds,
            "backend": trial.backend,
        }
        yield _row(said, trial.op, trial.utc_ms, values)
    if said.check is not None:
        wrong = "; ".join(f"{name}: {detail}" for name, passed, _, detail in said.check.findings if not passed)
        values = {"kind": "check", "clean": said.check.clean, "backend": said.check.backend, "text": wrong or None}
        yield _row(said, said.check.op, said.check.utc_ms, values)


def _row(said: Validation, op: str, utc_ms: int, values: Row) -> Row:
    known: Row = {"task": said.task, "reviewer": said.reviewer, "utc": utc_text(utc_ms), "op": op}
    return dict.fromkeys(COLUMNS) | known | values
