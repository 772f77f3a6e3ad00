"""Text in a run that addresses a judge, or imitates its instructions, its answers or its marks.

It is reported, not removed: a run that tries to instruct its judge is itself a finding. Reports are
suspicions, based on simple patterns; a run about prompts or judges may honestly contain such text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gistpoint.core.judging.pieces import RunPassage
from gistpoint.core.judging.quotes import QuotePlace

MOST_REPORTED = 20
"""The maximum number of places reported in a run."""
# A line of a million equals signs must not be read again from each of them.
_PATTERNS = {
    "an order to ignore instructions": (
        r"\b(?:ignore|disregard|forget)\s+(?:all\s+|any\s+)?(?:of\s+)?(?:the\s+|your\s+)?"
        r"(?:previous|prior|above|earlier|system)\s+(?:instructions?|prompts?|rules)"
    ),
    "words to a judge": (
        r"\b(?:dear|attention|note\s+to(?:\s+the)?|instructions?\s+(?:to|for)(?:\s+the)?|you\s+are(?:\s+the|\s+a)?)"
        r"\s+(?:ai\s+|llm\s+|model\s+)?(?:judge|grader|annotator|evaluator|reviewer\s+model)\b"
    ),
    "an answer in the judge's form": r"\"answer\"\s*:\s*\"(?:present|absent)\"",
    "an imitated mark": r"(?<!=)={3,}+\s*[0-9a-f]{16,64}\s+(?:the run (?:begins|ends)|step \d+)",
    "an imitated end of the run": (
        r"(?<!=)={3,}+[^\n=]{0,80}\bthe run ends\b|\b(?:end of (?:the )?run)\b\s*={2,}"
    ),
    "an imitated message": (
        r"<\|(?:im_start|im_end|system|assistant|eot_id)\|?>|\[/?INST\]|</?(?:system|assistant)>"
    ),
    "an order about the answer": (
        r"\b(?:answer|mark|label|code|rate|report)\b[^\n.]{0,60}\b(?:as|with)\b\s+[\"'`]?(?:present|absent)\b"
    ),
}
_COMPILED = tuple((what, re.compile(pattern, re.IGNORECASE)) for what, pattern in _PATTERNS.items())


@dataclass(frozen=True, slots=True)
class Addressing:
    """A place in a run that seems to address its judge, and why it seems so."""

    what: str
    place: QuotePlace


def addressing_in(passages: Iterable[RunPassage]) -> tuple[Addressing, ...]:
    """Return the first places in a run that seem to address a judge, at most one of each kind per text."""
    return tuple(found for found, _ in zip(_all(passages), range(MOST_REPORTED), strict=False))


def _all(passages: Iterable[RunPassage]) -> Iterator[Addressing]:
    for passage in passages:
        for what, pattern in _COMPILED:
            found = pattern.search(passage.text)
            if found is not None:
                start, end = (passage.start + place for place in found.span())
                yield Addressing(what, QuotePlace(passage.step, passage.scope, passage.part, start, end))
