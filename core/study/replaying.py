"""Replays a person's steps from the log, and finds those that must have been recorded but are missing.

A task is begun only after the consent, the forms, and the rules: a log with a start but without these
steps has lost lines (decision 165).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from gistpoint.core.study.declaration import Moment, Study, StudyTask
from gistpoint.core.study.ledger import Facts, Ledger, Person
from gistpoint.core.study.operations import (
    Answers,
    Begun,
    Consented,
    Fact,
    Finished,
    Planned,
    Sitting,
)
from gistpoint.core.study.steps import (
    ConsentStep,
    FormStep,
    RulesStep,
    Situation,
    Step,
    required_steps,
)

_OWN = (Consented, Answers, Planned, Begun, Finished, Sitting)
"""Operations that only the person's own program records; an organiser's records come from another machine."""


@dataclass(frozen=True, slots=True)
class MissingStep:
    """A step that is missing from the log, although the log contains a later step that requires it."""

    missing: str
    """The missing step, in words."""
    later: str
    """The step that was recorded without it, in words."""
    certain: bool
    """False if machines with different clocks may have recorded the two steps, so their order is unsure."""


def missing_steps(
    study: Study, tasks: Mapping[str, StudyTask], ledger: Ledger, person: Person
) -> Iterator[MissingStep]:
    """Yield each step that is missing from a person's records, once.

    Only records since the last amendment are replayed, because earlier ones followed another declaration.
    """
    by_kind: dict[str, list[Fact]] = defaultdict(list)
    kinds = {fact.op: kind for kind, facts in person.facts.by_kind.items() for fact in facts}
    ordered = sorted(chain.from_iterable(person.facts.by_kind.values()), key=lambda one: (one.utc_ms, one.op))
    machines = {fact.reviewer for fact in ordered if isinstance(fact, _OWN)}
    after = {form.id for form in study.questionnaires_at(Moment.AFTER)}
    since = ledger.amended_ms or 0
    reported = set[str]()
    for fact in ordered:
        if fact.utc_ms >= since and (later := _requiring(fact, after)):
            before = Person(person.code, Facts({kind: tuple(facts) for kind, facts in by_kind.items()}))
            situation = Situation(now_ms=fact.utc_ms, machine="")
            for step in required_steps(study, tasks, ledger, before, situation):
                words = _words(step)
                if words and words not in reported:
                    reported.add(words)
                    yield MissingStep(words, later, len(machines) == 1)
        by_kind[kinds[fact.op]].append(fact)


def _requiring(fact: Fact, after: set[str]) -> str:
    """Return a description of a record that requires earlier steps; empty for any other record."""
    match fact:
        case Begun():
            return f"the start of {fact.assignment}"
        case Answers() if fact.questionnaire in after:
            return f"the form {fact.questionnaire!r}"
    return ""


def _words(step: Step) -> str:
    match step:
        case ConsentStep():
            return "the consent to the declaration in force" if step.again else "the consent"
        case FormStep():
            of = f" of {step.assignment}" if step.assignment else ""
            return f"the form {step.form.id!r}{of}"
        case RulesStep():
            return "the rules at the beginning of the sitting"
    return ""
