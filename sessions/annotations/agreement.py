"""Agreement of two people, or of one person over time, on labels, verdicts and blind readings.

Kappa is Cohen's; it is None where it is undefined, as with a single verdict for everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from gistpoint.core.estimates import cohen_kappa
from gistpoint.sessions.annotations.glances import GlanceBook, Glances
from gistpoint.sessions.annotations.keys import StepKey
from gistpoint.sessions.annotations.reviews import Review, ReviewBook
from gistpoint.sessions.annotations.validations import TaskVerdict, ValidationBook

# Reviews


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of two reviewers on one label: how many units both, one or neither labelled."""

    label: str
    both: int
    first_only: int
    second_only: int
    neither: int
    kappa: float | None

    @property
    def units(self) -> int:
        """The number of units that both have judged."""
        return self.both + self.first_only + self.second_only + self.neither

    @property
    def observed(self) -> float | None:
        """The share of units on which they agree; None if there are no units."""
        return (self.both + self.neither) / self.units if self.units else None


@dataclass(frozen=True, slots=True)
class Agreements:
    """Agreement of two reviewers on the runs that both have reviewed."""

    first: str
    second: str
    runs: int
    steps: int
    """The number of steps that both have judged, which are the units of `on_steps`."""
    on_steps: tuple[Agreement, ...]
    """Agreement by step; a label on a range of text counts for its step."""
    on_runs: tuple[Agreement, ...]
    """Agreement by run; a label counts for its run, whichever step it is on."""
    verdicts: int
    """The number of runs to which both gave a verdict."""
    verdict_kappa: float | None


def agreement(book: ReviewBook, first: str, second: str) -> Agreements:
    """Return the agreement of two reviewers.

    A reviewer has judged a step if they saw it, labelled it or commented on it. They have reviewed a run if
    they judged a step of it, labelled it or gave it a verdict.
    """
    pairs = _reviewed_by_both(book, first, second)
    names = sorted({given.label for review in chain(*pairs) for given in review.labels})
    units = [_judged(one) & _judged(other) for one, other in pairs]
    on_steps: list[Agreement] = []
    on_runs: list[Agreement] = []
    for name in names:
        by_step: list[tuple[bool, bool]] = []
        by_run: list[tuple[bool, bool]] = []
        for (one, other), judged in zip(pairs, units, strict=True):
            of_one, of_other = _labelled(one, name), _labelled(other, name)
            by_step += [(step in of_one, step in of_other) for step in judged]
            by_run.append((bool(of_one), bool(of_other)))
        on_steps.append(_counted(name, by_step))
        on_runs.append(_counted(name, by_run))
    verdicts = [
        (one.verdict.verdict, other.verdict.verdict) for one, other in pairs if one.verdict and other.verdict
    ]
    return Agreements(
        first,
        second,
        len(pairs),
        sum(map(len, units)),
        tuple(on_steps),
        tuple(on_runs),
        len(verdicts),
        cohen_kappa(verdicts),
    )


def _reviewed_by_both(book: ReviewBook, first: str, second: str) -> list[tuple[Review, Review]]:
    pairs = [(book.review(run, first), book.review(run, second)) for run in book.runs]
    return [(one, other) for one, other in pairs if _is_reviewed(one) and _is_reviewed(other)]


def _labelled(review: Review, label: str) -> set[StepKey | None]:
    """Return the steps to which a review gives a label, and None if the label is on the whole run."""
    return {given.step for given in review.labels if given.label == label}


@dataclass(frozen=True, slots=True)
class AgreementWithOthers:
    """Agreement of one person's verdicts with those of others; a pair is a subject and another person."""

    pairs: int
    agreed: int
    kappa: float | None

    def __str__(self) -> str:
        """Return the agreement in words; empty if there are no pairs."""
        if not self.pairs:
            return ""
        kappa = f", κ {self.kappa:.2f}" if self.kappa is not None else ""
        return f"agree {self.agreed} of {self.pairs}{kappa}"


def agreement_with_others(verdicts: Iterable[tuple[str, str, str]], person: str) -> AgreementWithOthers:
    """Return the agreement of a person with all others; `verdicts` are (subject, person, verdict).

    Only subjects that the person has judged count, so that nobody learns other people's verdicts before
    judging.
    """
    given: dict[str, dict[str, str]] = {}
    for subject, who, verdict in verdicts:
        given.setdefault(subject, {})[who] = verdict
    pairs = [
        (by_person[person], other)
        for by_person in given.values()
        if person in by_person
        for who, other in sorted(by_person.items())
        if who != person
    ]
    return AgreementWithOthers(len(pairs), sum(one == other for one, other in pairs), cohen_kappa(pairs))


def _judged(review: Review) -> set[StepKey]:
    steps = {given.step for given in review.labels} | {comment.step for comment in review.comments}
    return set(review.seen) | {step for step in steps if step is not None}


def _is_reviewed(review: Review) -> bool:
    return bool(_judged(review) or review.labels or review.verdict)


def _counted(label: str, pairs: Sequence[tuple[bool, bool]]) -> Agreement:
    counts = Counter(pairs)
    return Agreement(
        label,
        counts[(True, True)],
        counts[(True, False)],
        counts[(False, True)],
        counts[(False, False)],
        cohen_kappa(pairs),
    )


# Validations


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A task on which two validators disagree."""

    task: str
    first: TaskVerdict
    second: TaskVerdict


@dataclass(frozen=True, slots=True)
class VerdictAgreement:
    """Agreement of two validators: on verdicts, and in the `*_accept` fields on whether to accept a task."""

    first: str
    second: str
    tasks: int
    """The number of tasks that both have judged."""
    agreed: int
    kappa: float | None
    agreed_accept: int
    kappa_accept: float | None
    disagreements: tuple[Disagreement, ...]

    @property
    def observed(self) -> float | None:
        """The share of tasks to which both gave the same verdict; None if there are no tasks."""
        return self.agreed / self.tasks if self.tasks else None

    @property
    def observed_accept(self) -> float | None:
        """The share of tasks that both accept or both do not accept; None if there are no tasks."""
        return self.agreed_accept / self.tasks if self.tasks else None


def verdict_agreement(
    book: ValidationBook, tasks: Iterable[str], first: str, second: str
) -> VerdictAgreement:
    """Return the agreement of two validators on some tasks; `needs_discussion` counts like other verdicts.

    Only verdicts that a validator gave before seeing those of others count (decision 134).
    """
    pairs: list[tuple[str, TaskVerdict, TaskVerdict]] = []
    for task in tasks:
        one, other = book.state(task, first).independent, book.state(task, second).independent
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


# Blind readings


@dataclass(frozen=True, slots=True)
class GlanceAgreement:
    """Agreement of two readers, or of two rounds of one reader if both names are the same."""

    first: str
    second: str
    functions: int
    """The number of versions of functions that both have read."""
    agreed: int
    kappa: float | None
    """Kappa of the three answers of a blind reading; None if it is undefined."""
    verdicts: int
    """The number of corruptions to which both gave a verdict."""
    agreed_verdicts: int
    kappa_verdicts: float | None


def glance_agreement(book: GlanceBook, tasks: Iterable[str], first: str, second: str) -> GlanceAgreement:
    """Return the agreement of two readers on some tasks: on first readings of a version and on last verdicts.

    If both names are the same, the reader's first two readings of each version are compared, and the verdicts
    of the first two rounds.
    """
    answers: list[tuple[str, str]] = []
    verdicts: list[tuple[str, str]] = []
    for task in tasks:
        one, other = book.state(task, first), book.state(task, second)
        left, right = _answers(one), _answers(other)
        given, others = _verdicts(one), _verdicts(other)
        if first == second:
            answers += [(round_1, round_2) for round_1, round_2, *_ in _repeated(left)]
            verdicts += [(round_1, round_2) for round_1, round_2, *_ in _repeated(given)]
        else:
            answers += [(mine[0], right[key][0]) for key, mine in left.items() if key in right]
            verdicts += [(mine[-1], others[key][-1]) for key, mine in given.items() if key in others]
    return GlanceAgreement(
        first,
        second,
        len(answers),
        sum(one == other for one, other in answers),
        cohen_kappa(answers),
        len(verdicts),
        sum(one == other for one, other in verdicts),
        cohen_kappa(verdicts),
    )


def _repeated(rounds: Mapping[Any, list[str]]) -> Iterator[list[str]]:
    """Yield the lists of answers or verdicts that have more than one element."""
    return (given for given in rounds.values() if len(given) > 1)


def _answers(glances: Glances) -> dict[tuple[str, str], list[str]]:
    """Return the answers about each function and version, in their order."""
    found: dict[tuple[str, str], list[str]] = {}
    for reading in glances.readings:
        found.setdefault((reading.function, reading.version), []).append(reading.answer)
    return found


def _verdicts(glances: Glances) -> dict[str, list[str]]:
    """Return the last verdict of each round, by function, in the order in which they were given."""
    last: dict[tuple[str, int, int], str] = {}
    for given in glances.verdicts:
        key = (given.function, given.seed, given.round)
        last.pop(key, None)
        last[key] = given.verdict
    found: dict[str, list[str]] = {}
    for (function, _, _), verdict in last.items():
        found.setdefault(function, []).append(verdict)
    return found
