"""Attempt ids and the event that starts an attempt."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from gistpoint.core.attempts.budgets import Budgets
from gistpoint.core.attempts.events import SCHEMA_VERSION
from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.outcomes import BackendRecord
from gistpoint.core.tasks.brief import render_brief
from gistpoint.core.tasks.model import Task

TOOL_SEMANTICS = 2
"""Of new attempts on any task: calls that can't be carried out cost a use; under 1 they cost nothing."""
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


PERSON, REPLAY = "person", "replay"
"""Kinds of actors that the program itself enrols."""


class Role(StrEnum):
    """What an attempt is for; estimates use baselines alone."""

    BASELINE = "baseline"
    QA = "qa"
    AUTHOR = "author"
    DEMO = "demo"
    TRAINING = "training"


SHOWS_EVIDENCE = frozenset({Role.QA, Role.AUTHOR, Role.DEMO, Role.TRAINING})
"""Roles in which the screen may show more than the tool result says, such as the outcome of every test."""


@dataclass(frozen=True, slots=True)
class Enrolment:
    """Who attempts a task, and for what; everything may be left out but the role."""

    actor: str = PERSON
    """`person`, `model`, `replay` or `simulated`."""
    role: Role = Role.BASELINE
    participant: str = ""
    """A pseudonym, never a name."""
    study: str | None = None
    condition: str | None = None
    assignment: str | None = None
    comforts_off: tuple[str, ...] = field(default_factory=tuple)


def new_attempt_id(utc_ms: int) -> str:
    """Return an id that sorts by time: ten characters of milliseconds and ten of chance, in Crockford's base 32."""
    return _base32(utc_ms, 10) + "".join(secrets.choice(_ALPHABET) for _ in range(10))


def _base32(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, digit = divmod(number, 32)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))


def start_data(
    task: Task,
    attempt_id: str,
    enrolment: Enrolment,
    budgets: Budgets,
    backend: BackendRecord,
    version: str,
    of_kind: Mapping[str, Any],
) -> Mapping[str, Any]:
    """Return the data of `attempt_started`; `of_kind` is what the kind of task adds."""
    brief = render_brief(task)
    return {
        "schema": SCHEMA_VERSION,
        "gistpoint": version,
        "attempt_id": attempt_id,
        "task_id": task.id,
        "mode": task.mode.value,
        "tree_sha256": task.tree_sha256,
        **{key: list(value) if isinstance(value, tuple) else value for key, value in asdict(enrolment).items()},
        **of_kind,
        "brief": brief,
        "brief_sha256": sha256_of_text(brief),
        "budgets": asdict(budgets),
        "backend": {**asdict(backend), "limits": dict(backend.limits)},
    }
