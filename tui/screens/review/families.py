"""Families of steps, each hidden and shown by a key in the list of steps."""

from __future__ import annotations

from enum import StrEnum

from gistpoint.sessions.records.model import OWN_FORMAT, Actor, Step, StepKind


class Family(StrEnum):
    """A family of steps that are hidden together.

    Scores, endings, errors, and unknown or unreadable steps belong to no family.
    """

    HARNESS = "harness"
    """Bookkeeping steps, and the steps of the harness itself."""
    MESSAGES = "messages"
    FINDING = "finding"
    COMMANDS = "commands"
    PATCHES = "patches"


FAMILIES = tuple(Family)
BY_SOLVERS = frozenset({Actor.AGENT, Actor.PERSON})
_OF_KIND = {
    StepKind.STATE: Family.HARNESS,
    StepKind.PAUSE: Family.HARNESS,
    StepKind.SYSTEM: Family.MESSAGES,
    StepKind.TASK: Family.MESSAGES,
    StepKind.MESSAGE: Family.MESSAGES,
    StepKind.CONTEXT: Family.MESSAGES,
    StepKind.NOTE: Family.MESSAGES,
    StepKind.VIEW: Family.FINDING,
    StepKind.SEARCH: Family.FINDING,
    StepKind.EXECUTE: Family.COMMANDS,
    StepKind.TEST: Family.COMMANDS,
    StepKind.TOOL: Family.COMMANDS,
    StepKind.DELEGATE: Family.COMMANDS,
    StepKind.EDIT: Family.PATCHES,
    StepKind.SUBMIT: Family.PATCHES,
}
_FOR_SOLVERS = frozenset({Family.FINDING, Family.COMMANDS, Family.PATCHES})
_HIDDEN_SHARE = 0.25
"""The share of a run's steps from which the steps of a foreign harness are hidden initially."""


def family_of(step: Step, format: str) -> Family | None:
    """Return the family of a step in a run of a format; None if the step is always listed."""
    family = _OF_KIND.get(step.kind)
    if format == OWN_FORMAT:
        return family if family is not Family.HARNESS or step.label != "comfort" else None
    by_harness = step.actor in (Actor.ENVIRONMENT, Actor.SYSTEM)
    if by_harness and (family in _FOR_SOLVERS or step.kind is StepKind.NOTE):
        return Family.HARNESS
    return family


def hidden_at_first(format: str, count: int, of_harness: int) -> frozenset[Family]:
    """Return the families that are hidden initially in a run: the harness's, or none.

    The run has `count` steps, `of_harness` of them by the harness. These are hidden in gistpoint's own runs,
    and in others if they are at least a quarter of all steps.
    """
    floods = of_harness and (format == OWN_FORMAT or of_harness >= _HIDDEN_SHARE * count)
    return frozenset({Family.HARNESS}) if floods else frozenset()
