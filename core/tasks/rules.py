"""The rules for solvers, in one versioned text for people and models.

The rules for people and for models differ only in the words in `FACES`, which name what a reader works with:
keys and a window, or tools and replies (decision 130).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum

from gistpoint.core.tasks.brief import template_text

RULES = "rules-2"
"""The name of the newest rules. Their wording never changes: new rules get a new name."""


class Face(StrEnum):
    """A kind of reader of the rules."""

    PERSON = "person"
    MODEL = "model"
    MODEL_IN_TEXT = "model_in_text"
    """A model that writes its calls as text."""


FACES: Mapping[str, Mapping[Face, Mapping[str, str]]] = {
    "rules-2": {
        Face.PERSON: {
            "means": "this program with everything in it, pen and paper,",
            "assistant": "an AI assistant that this program does not offer you",
            "stopping": "Ctrl+G gives up a task.",
            "heading": "TIME AND QUESTIONS",
            "details": (
                "The clock runs while a task is open. F10 stops the clock and covers the task: press it"
                " whenever you turn to something else. You can rest as long as you like between tasks.\n\n"
                "After each task, we ask whether you used anything that is not allowed. Please answer"
                " honestly: if you did, telling us helps the study and has no disadvantage for you."
            ),
        },
        Face.MODEL: {
            "means": "the tools that you are given",
            "assistant": "another model",
            "stopping": "Continue until an answer says that the attempt has ended.",
            "heading": "CALLS",
            "details": (
                "Only tool calls have an effect: nobody reads what you write between them, and nobody"
                " answers questions. The calls in one reply are carried out in their order. Each answer ends"
                " with what is left of your budgets."
            ),
        },
        Face.MODEL_IN_TEXT: {
            "means": "the tools that you are given",
            "assistant": "another model",
            "stopping": "Continue until an answer says that the attempt has ended.",
            "heading": "CALLS",
            "details": (
                "Only tool calls have an effect: nobody reads what you write around them, and nobody"
                " answers questions. Write one call in each reply, and wait for its answer: if a reply"
                " contains several calls, only the first is carried out. Each answer ends with what is left"
                " of your budgets."
            ),
        },
    },
}
"""The words that differ between a person and a model: by version of the rules, by reader and by field."""


def rules_text(face: Face, name: str = RULES) -> str:
    """Return the rules for a person or a model, without a final newline."""
    words = FACES[name][face]
    return re.sub(r"\{\{(\w+)\}\}", lambda found: words[found[1]], template_text(name)).strip()


def not_allowed(face: Face, name: str = RULES) -> str:
    """Return only the rules' paragraph on what is not allowed, for places too small for all the rules."""
    rules = rules_text(face, name)
    return rules.partition("NOT ALLOWED\n\n")[2].partition("\n")[0]
