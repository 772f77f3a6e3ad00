"""A judge's answer to a piece of a run, and the one answer for the run that follows from all pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from gistpoint.core.asking import no_answer_in, objects_in
from gistpoint.core.decoding import decodable
from gistpoint.core.judging.pieces import Piece
from gistpoint.core.judging.quotes import LONGEST_QUOTE, QuotePlace, located
from gistpoint.core.judging.rubric import Coding, RubricLabel


class GivenAnswer(msgspec.Struct, frozen=True):
    """A judge's answer to one label, as it is received."""

    id: str
    answer: Literal["present", "absent"]
    confidence: Annotated[float, msgspec.Meta(ge=0, le=1)]
    quotes: tuple[str, ...] = ()


class _GivenAnswers(msgspec.Struct, frozen=True):
    labels: tuple[GivenAnswer, ...]


class PieceAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to one label for one piece, with the places of its quotes."""

    label: str
    label_sha256: str
    claimed: bool
    """Whether the judge answered "present"."""
    confidence: float
    places: tuple[QuotePlace, ...] = ()
    refused: tuple[str, ...] = ()
    """The quotes that are not in the piece, or too short."""

    @property
    def present(self) -> bool:
        """Whether the label is present and a quote shows it: a claim without proof does not count."""
        return self.claimed and bool(self.places)


def read_answers(
    text: str, labels: Sequence[RubricLabel], piece: Piece
) -> tuple[tuple[PieceAnswer, ...], str]:
    """Return the answers in a reply, in the order of the labels, or the fault if a label has no answer.

    Answers to other labels are left out. Quotes of "absent" are not looked up.
    """
    fault = no_answer_in(text)
    for value in objects_in(text):
        try:
            given = {one.id: one for one in msgspec.convert(value, decodable(_GivenAnswers)).labels}
        except (ValueError, RecursionError):
            continue
        missing = [label.id for label in labels if label.id not in given]
        if not missing:
            return tuple(_answer(given[label.id], label, piece) for label in labels), ""
        fault = f"The reply has no answer to {', '.join(missing[:5])}."
    return (), fault


def _answer(given: GivenAnswer, label: RubricLabel, piece: Piece) -> PieceAnswer:
    claimed = given.answer == "present"
    found = located(given.quotes if claimed else (), piece.passages)
    refused = tuple(quote[:LONGEST_QUOTE] for quote in found.refused)
    return PieceAnswer(label.id, label.sha256, claimed, given.confidence, found.places, refused)


class RunAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to one label for a whole run."""

    present: bool
    confidence: float
    places: tuple[QuotePlace, ...] = ()
    refused: int = 0
    """The number of quotes that are not in the pieces for which they were given, or too short."""
    unproven: int = 0
    """The number of pieces in which the judge claimed the label without a quote that proves it."""


def combined(answers: Sequence[PieceAnswer], coding: Coding) -> RunAnswer:
    """Return the answer for a run from those to all its pieces.

    A label that is coded in any piece is present if one piece shows it, and one coded in all pieces if every
    piece does. The confidence is that of the surest piece if one piece decides, otherwise that of the least
    sure. Without answers, the label is not present, with confidence 0.
    """
    shown = [answer for answer in answers if answer.present]
    present = bool(shown) and (coding is Coding.ANY or len(shown) == len(answers))
    sure = [answer.confidence for answer in answers if answer.present == present]
    # One piece decides if it shows a label coded in any piece, or does not show one coded in all pieces.
    decides = max if present == (coding is Coding.ANY) else min
    return RunAnswer(
        present=present,
        confidence=decides(sure, default=0.0),
        places=tuple(place for answer in shown for place in answer.places) if present else (),
        refused=sum(len(answer.refused) for answer in answers),
        unproven=sum(answer.claimed and not answer.present for answer in answers),
    )
