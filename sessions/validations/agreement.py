"""How far two validators agree on the tasks that both have judged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gistpoint.sessions.sidefiles.kappa import cohen_kappa
from gistpoint.sessions.validations.operations import TaskVerdict
from gistpoint.sessions.validations.state import ValidationBook


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
