"""Judgements of runs, folded from the operations of models and people, which may be in any order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import msgspec

from gistpoint.core.errors import UserError
from gistpoint.core.judging.answers import PieceAnswer
from gistpoint.core.operations import Operation, Text, standing
from gistpoint.core.ports import TimeSource
from gistpoint.core.tasks.fields import Count, Positive
from gistpoint.sessions.annotations.side_files import Book, Codec, SideFileStore


class JudgementKind(StrEnum):
    """The kinds of operations on judgements."""

    PIECE = "piece"
    """A model answered the labels of a rubric for one piece of a run."""
    LABEL = "label"
    """A person decided that a run has a label, or that it does not."""
    DELETE = "delete"
    """Withdraws the operation whose uuid is `target`."""


class LabelPart(StrEnum):
    """The part of a person's work in which a label was given."""

    RANDOM = "random"
    """On a run drawn at random, without knowing the judge's answer; only these labels feed estimates."""
    DISPUTED = "disputed"
    """On a disputed claim, with the judge's answer and quotes on the screen."""


class JudgementOperation(Operation, frozen=True, omit_defaults=True, rename={"subject": "run"}):
    """One judge's or person's operation on a run."""

    subject: Text
    """The key of the run (`sessions/annotations/keys.py`)."""


class JudgementError(UserError):
    """A judgement can't be read or written as requested."""


CODEC = Codec(
    "gistpoint.judgements",
    1,
    JudgementOperation,
    "judgement",
    JudgementError,
    kinds=frozenset(JudgementKind),
)


class PieceData(msgspec.Struct, frozen=True, omit_defaults=True):
    """The data of a `piece` operation."""

    piece_sha256: str
    """The hash of the piece that the model read."""
    most: Positive
    """The maximum length, in characters, of the pieces into which the run was divided."""
    answers: tuple[PieceAnswer, ...]
    number: Count = 0
    prompt_sha256: str = ""
    """The hash of the instructions, without the codebook."""
    cost_usd: float | None = None
    tokens: Count = 0


class HandLabelData(msgspec.Struct, frozen=True, omit_defaults=True):
    """The data of a `label` operation."""

    label: str
    label_sha256: str
    present: bool
    part: LabelPart
    round: Positive = 1
    """2 for a second reading."""
    seed: int = 0


class PieceJudged(PieceData, frozen=True, kw_only=True):
    """A piece of a run that a model has judged."""

    op: str
    reviewer: str
    utc_ms: int


class HandLabel(HandLabelData, frozen=True, kw_only=True):
    """A person's label of a run."""

    op: str
    reviewer: str
    utc_ms: int


@dataclass(frozen=True, slots=True)
class Judgements:
    """One model's or person's judgements of one run, by time."""

    run: str
    reviewer: str
    pieces: tuple[PieceJudged, ...] = ()
    labels: tuple[HandLabel, ...] = ()

    def label(self, label_sha256: str, part: LabelPart, round: int = 1) -> HandLabel | None:
        """Return the last label with a definition's hash in a part and round; None if there is none."""
        wanted = (label_sha256, part, round)
        return next(
            (
                given
                for given in reversed(self.labels)
                if (given.label_sha256, given.part, given.round) == wanted
            ),
            None,
        )


def fold(run: str, reviewer: str, operations: Iterable[JudgementOperation]) -> Judgements:
    """Return the judgements that result from a model's or person's operations on a run."""
    pieces, labels = list[PieceJudged](), list[HandLabel]()
    for item in standing(operations):
        if item.kind == JudgementKind.PIECE and (piece := item.read(PieceJudged)) is not None:
            pieces.append(piece)
        elif item.kind == JudgementKind.LABEL and (label := item.read(HandLabel)) is not None:
            labels.append(label)
    return Judgements(run, reviewer, tuple(pieces), tuple(labels))


class JudgementBook(Book[JudgementOperation, Judgements]):
    """All known judgements, by run and by model or person."""

    def __init__(self, operations: Iterable[JudgementOperation] = ()) -> None:
        super().__init__(fold, operations)


class JudgementStore(SideFileStore[JudgementOperation, JudgementBook]):
    """The judgements of all models and people; each operation is appended to its author's file."""

    def __init__(self, folder: Path, clock: TimeSource) -> None:
        """Read the files; the folder is created at the first write."""
        super().__init__(folder, clock, CODEC, JudgementBook)
