"""Describes the codes in `AttemptRow.exclusion`, which are reasons why an attempt does not count."""

from __future__ import annotations

from collections.abc import Mapping

from gistpoint.core.attempts.identity import REPLAY, Role
from gistpoint.core.attempts.reasons import EndReason
from gistpoint.core.study.flags import FLAGS

ROLE, ACTOR = "role_", "actor_"
"""The prefixes of codes that end with an attempt's role or actor."""
TRAINING_TASK = "training_task"
"""The code of a model's run at a task that people use only for training."""
NO_VERDICT = "no_verdict"
"""The code of a run of another program whose file does not record a result."""
_WORDS: Mapping[str, str] = {
    "unfinished": "it has not ended",
    "mixed": "both a person and a model worked on it",
    "not_assigned": "this study did not assign it",
    "returned": "its task was returned",
    "second_exposure": "the participant had already begun the task",
    "reviewers": "the reviewers excluded it",
    "excluded": "the organiser excluded it",
    TRAINING_TASK: "its task is only for training",
    NO_VERDICT: "its file does not record whether it is solved",
    EndReason.INFRASTRUCTURE: "the machine or the sandbox failed",
    EndReason.WITHDRAWN: "the participant withdrew",
    EndReason.DISQUALIFIED: "it was disqualified",
    f"{ROLE}{Role.QA}": "it was made to check the task",
    f"{ROLE}{Role.AUTHOR}": "an author made it",
    f"{ROLE}{Role.DEMO}": "it was made as a demo, in which results are shown during the attempt",
    f"{ROLE}{Role.TRAINING}": "it was made for training",
    f"{ROLE}unknown": "its role is not recorded",
    f"{ACTOR}{REPLAY}": "it is a recording that was played back",
    f"{ACTOR}unknown": "its file does not record who made it",
}


def exclusion_words(exclusion: str) -> str:
    """Return why an attempt does not count, as a clause without a full stop.

    A code that gistpoint does not know is the reason that an organiser gave.
    """
    if exclusion in _WORDS:
        return _WORDS[exclusion]
    if exclusion in FLAGS:
        return f"it has the flag {exclusion}"
    for beginning, words in ((ROLE, "its role is"), (ACTOR, "it was made by a")):
        if exclusion.startswith(beginning):
            return f"{words} {exclusion.removeprefix(beginning)}"
    return f"the organiser excluded it: {exclusion.replace('_', ' ')}"
