"""Enrolments, participants' codes, and ids of attempts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gistpoint.core.errors import AttemptError

TIME_CHARACTERS = 10
"""The number of leading characters of an attempt's id that encode its start, so that ids sort by time."""
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"

PERSON, REPLAY, MODEL, SIMULATED = "person", "replay", "model", "simulated"
"""The kinds of actors."""


_CODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
CODE_HINT = "A code has at most 64 letters, digits, '.', '-' and '_', and begins with a letter or a digit."


class Role(StrEnum):
    """The purpose of an attempt.

    Estimates use only baselines, and repairs by models with the role `demo` (decision 163).
    """

    BASELINE = "baseline"
    QA = "qa"
    AUTHOR = "author"
    DEMO = "demo"
    TRAINING = "training"


SHOWS_EVIDENCE = frozenset({Role.QA, Role.AUTHOR, Role.DEMO, Role.TRAINING})
"""The roles whose screens may show more than the tool result, such as the outcome of every test."""


@dataclass(frozen=True, slots=True)
class Enrolment:
    """The actor, purpose and circumstances of an attempt; only the role is required."""

    actor: str = PERSON
    """`person`, `model`, `replay` or `simulated`."""
    role: Role = Role.BASELINE
    participant: str = ""
    """The participant's pseudonym, never a name."""
    study: str | None = None
    condition: str | None = None
    assignment: str | None = None
    comforts_off: tuple[str, ...] = field(default_factory=tuple)
    solver: Mapping[str, Any] = field(default_factory=dict)
    """The settings of a program as solver, as in the journal; `model` is the model's name."""
    protocol_sha256: str = ""
    """The hash of the study's protocol."""
    assistance: str = ""
    """The condition's help, such as `chat`; `none` in a study's condition without help."""
    gist_help_sha256: str = ""
    """The hash of the gist that the condition shows with a repair."""


def is_code(text: str) -> bool:
    """Return whether a string is valid as a new participant's code; earlier versions allowed others."""
    return bool(_CODE.fullmatch(text))


def participant_code(code: str) -> str:
    """Return a participant's code, or an empty string for none. Raises `AttemptError` if it is invalid."""
    if code and not is_code(code):
        raise AttemptError(f"{code[:60]!r} is not a valid code for a participant.", hint=CODE_HINT)
    return code


def new_attempt_id(utc_ms: int) -> str:
    """Return an attempt id that sorts by time, in Crockford's base 32.

    Ten characters encode milliseconds and ten are random.
    """
    import secrets  # not needed before the first paint (decision 37)

    return _base32(utc_ms, TIME_CHARACTERS) + "".join(secrets.choice(_ALPHABET) for _ in range(10))


def _base32(number: int, width: int) -> str:
    digits = []
    for _ in range(width):
        number, digit = divmod(number, 32)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))
