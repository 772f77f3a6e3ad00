"""The pieces in which a judge reads a run, and the request for each of them.

The run is hostile text: the lines that enclose it, and those that name its steps, contain a mark drawn for
each request, which the run's author could not know (decision 175).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.chat import ChatMessage
from gistpoint.core.judging.rubric import RubricLabel

TEMPLATE = "judge-2"
LEAST_PIECE = 2_000
"""The lowest possible maximum length of a piece, in characters."""
CHARACTERS_AROUND = 4_000
"""An upper bound on the characters of a request without its piece and its codebook."""
_HEADING = 80
"""The number of characters that the heading line of a passage is assumed to take up."""


@dataclass(frozen=True, slots=True)
class RunPassage:
    """A passage of a step; `scope` and `part` name where it is, and `start` is its position there."""

    step: int
    scope: str
    part: int
    text: str
    start: int = 0

    @property
    def name(self) -> str:
        """The place in words; steps and parts are counted from 1."""
        more = f", from character {self.start + 1}" if self.start else ""
        return f"step {self.step + 1}, {self.scope} {self.part + 1}{more}"


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive passages of a run; pieces are numbered from 0."""

    number: int
    passages: tuple[RunPassage, ...]

    @property
    def sha256(self) -> str:
        """The hash of its passages, each with its name."""
        return sha256_of_text("\0".join(f"{passage.name}\n{passage.text}" for passage in self.passages))

    @property
    def characters(self) -> int:
        """The length of the piece as it is sent, without the instructions."""
        return sum(len(passage.text) + _HEADING for passage in self.passages)


def pieces_of(passages: Iterable[RunPassage], most: int) -> Iterator[Piece]:
    """Yield the pieces of a run, each of at most `most` characters.

    Longer passages are divided, if possible at the end of a line. A `most` below `LEAST_PIECE` counts as
    `LEAST_PIECE`.
    """
    number, taken, length = 0, list[RunPassage](), 0
    for passage in _divided(passages, max(most, LEAST_PIECE) - _HEADING):
        size = len(passage.text) + _HEADING
        if taken and length + size > max(most, LEAST_PIECE):
            yield Piece(number, tuple(taken))
            number, taken, length = number + 1, [], 0
        taken.append(passage)
        length += size
    if taken:
        yield Piece(number, tuple(taken))


def _divided(passages: Iterable[RunPassage], most: int) -> Iterator[RunPassage]:
    """Yield passages of at most `most` characters each, without those that are blank."""
    for passage in passages:
        start = 0
        while start < len(passage.text):
            end = _end(passage.text, start, most)
            text = passage.text[start:end]
            if text.strip():
                yield RunPassage(passage.step, passage.scope, passage.part, text, passage.start + start)
            start = end


def _end(text: str, start: int, most: int) -> int:
    """Return where a part that begins at `start` ends: if possible, at the end of a line."""
    if len(text) - start <= most:
        return len(text)
    line_end = text.rfind("\n", start + most // 2, start + most)
    return line_end + 1 if line_end >= 0 else start + most


@cache
def instructions() -> str:
    """Return the instructions for a judge. A template never changes: a changed wording gets a new name."""
    place = files("gistpoint.core.judging").joinpath("templates", f"{TEMPLATE}.md")
    return place.read_text("utf-8").strip()


def instructions_sha256() -> str:
    """Return the hash of the instructions, which is stored with each answer."""
    return sha256_of_text(instructions())


@dataclass(frozen=True, slots=True)
class PieceRequest:
    """The request to judge one piece of a run."""

    run: str
    """The key of the run, which is not sent."""
    piece: Piece
    labels: tuple[RubricLabel, ...]
    mark: str = field(default_factory=lambda: secrets.token_hex(16))

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """The messages: the instructions with the codebook, and the run between two lines with the mark."""
        codebook = "\n\n".join(f"Label {label.id}:\n{label.words}" for label in self.labels)
        system = f"{instructions()}\n\nTHE CODEBOOK\n\n{codebook}\n\nThe mark of this request: {self.mark}"
        return ChatMessage("system", system), ChatMessage("user", "\n".join(self._lines()))

    def _lines(self) -> Iterator[str]:
        yield f"===== {self.mark} the run begins ====="
        for passage in self.piece.passages:
            yield f"===== {self.mark} {passage.name} ====="
            yield passage.text
        yield f"===== {self.mark} the run ends ====="
        yield "Answer with the JSON object for the codebook's labels: " + ", ".join(
            label.id for label in self.labels
        )


def characters_in(requests: Sequence[PieceRequest]) -> int:
    """Return the number of characters that the requests send."""
    return sum(len(message.content) for request in requests for message in request.messages)
