"""A packet for a blind reader: a corrupted function among untouched ones, printed alike (decision 140)."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Annotated

import msgspec

from gistpoint.core.asking import objects_in
from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.chat import ChatMessage
from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.corruption.blind.reading import BlindAnswer, BlindItem, ShownVersion
from gistpoint.core.decoding import decodable
from gistpoint.core.text import whole_number

PACKET_TEMPLATE = "packet-2"
UNTOUCHED = 4
"""The number of untouched functions in a packet, if the library has enough."""
_MOST_WORDS = 500
_BARE_LINE = re.compile(r"\W*(?:line\W*)?(\d{1,6})\W*", re.IGNORECASE)
_PRINTED_NUMBER = re.compile(r"^\s*\d+ \| ?")
_BARE_NOTHING = re.compile(r"\W*nothing\W*", re.IGNORECASE)


@cache
def packet_prompt() -> str:
    """Return the instructions for a reader. A template never changes: a changed wording gets a new name."""
    place = files("gistpoint.core.corruption").joinpath("templates", f"{PACKET_TEMPLATE}.md")
    return place.read_text("utf-8").strip()


def packet_sha256() -> str:
    """Return the hash of the instructions, which is stored with the readings."""
    return sha256_of_text(packet_prompt())


class Named(StrEnum):
    """A reader's answer about a packet."""

    CHANGED = "changed"
    """A line that was changed."""
    ELSEWHERE = "elsewhere"
    """Another line of the corrupted function, or a fault without a line."""
    UNTOUCHED = "untouched"
    """A line of an untouched function."""
    NOTHING = "nothing"


class Basis(StrEnum):
    """The origin of a reader's answer, as the reader reports it."""

    TEXT = "text"
    """The text at first reading."""
    REASONING = "reasoning"
    """Thinking about how the function behaves."""
    MEMORY = "memory"
    """Knowing the library's code."""


class PacketReading(msgspec.Struct, frozen=True, omit_defaults=True):
    """One reading of a packet."""

    number: int
    """The number of the reading of this corruption, counted from 0."""
    named: Named | None = None
    """None if the reply had no usable answer, so that the reading does not count."""
    line: int = 0
    """The named line of the corrupted function, counted from 1; 0 if none of its lines was named."""
    words: str = ""
    """The reader's words, or what is wrong with the reply."""
    basis: Basis | None = None
    """None if the reader did not report it, as in readings from before the question was added."""

    @property
    def is_from_text(self) -> bool:
        """Whether a changed line was named from the text; a name without a basis counts as such."""
        return self.named is Named.CHANGED and self.basis in (Basis.TEXT, None)


@dataclass(frozen=True, slots=True)
class Packet:
    """The functions of one reading, with the place of the corrupted one."""

    number: int
    texts: tuple[str, ...]
    place: int
    """The index of the corrupted function in `texts`."""
    changed: frozenset[int]
    """The changed lines of the corrupted function, counted from 1."""

    @classmethod
    def of(cls, item: BlindItem, others: Sequence[str], number: int, seed: str) -> Packet:
        """Return the packet of a corruption and untouched functions, in an order that the seed decides."""
        own = item.text(ShownVersion.CORRUPTED)
        texts = [own, *map(_printed, others)]
        random.Random(f"packet {seed}").shuffle(texts)
        return cls(number, tuple(texts), texts.index(own), item.changed_lines)

    @property
    def messages(self) -> tuple[ChatMessage, ChatMessage]:
        """The messages of the request: the functions with numbered lines, and nothing about any of them."""
        return ChatMessage("system", packet_prompt()), ChatMessage("user", "\n".join(self._rows()))

    def _rows(self) -> Iterator[str]:
        width = len(str(len(self._lines())))
        number = 0
        for place, text in enumerate(self.texts):
            if place:
                yield ""
            for line in physical_lines(text):
                number += 1
                yield f"{number:>{width}} | {line}".rstrip()

    def _lines(self) -> list[tuple[int, int, str]]:
        """Return, for each numbered line, the index of its function, its number in it, and its text."""
        return [
            (place, number, line)
            for place, text in enumerate(self.texts)
            for number, line in enumerate(physical_lines(text), start=1)
        ]

    def reading(self, reply: str) -> PacketReading:
        """Return what a reply names; its `named` is None if the reply has no usable answer."""
        answer = _answer_in(reply)
        if answer is None:
            shown = " ".join(reply.split())[:100] or "it is empty"
            return PacketReading(self.number, words=f"The reply contains no answer: {shown}")
        words = answer.words.strip()[:_MOST_WORDS]
        if answer.answer is not BlindAnswer.FAULT:
            # A reader who only expresses doubts names nothing; the same is true of a person's reading
            # (decision 89).
            return PacketReading(self.number, Named.NOTHING, words=words)
        place, line = self._place_of(answer.line)
        if place not in (self.place, None):
            return PacketReading(self.number, Named.UNTOUCHED, words=words, basis=answer.known_basis)
        named = Named.CHANGED if line in self.changed else Named.ELSEWHERE
        return PacketReading(self.number, named, line, words, answer.known_basis)

    def _place_of(self, named: int | str | None) -> tuple[int | None, int]:
        """Return the function and the line in it that an answer names by number or by text, or None and 0.

        Text that occurs in several lines names none of them.
        """
        lines = self._lines()
        number = _number_of(named, [line.strip() for _, _, line in lines])
        if not 1 <= number <= len(lines):
            return None, 0
        place, line, _ = lines[number - 1]
        return place, line


def _number_of(named: int | str | None, lines: Sequence[str]) -> int:
    """Return the number of a line that is named by its number or its text; 0 if none or several fit."""
    if not isinstance(named, str):
        return named or 0
    number = whole_number(named.strip())
    if number is not None:
        return number
    text = _PRINTED_NUMBER.sub("", named).strip()
    return lines.index(text) + 1 if lines.count(text) == 1 else 0


def _printed(text: str) -> str:
    """Return an untouched function in the form in which a corrupted one is printed."""
    return "\n".join(line.rstrip() for line in physical_lines(text.rstrip())) + "\n"


_LineNumber = Annotated[int, msgspec.Meta(ge=0, lt=1_000_000)]
_LineText = Annotated[str, msgspec.Meta(max_length=1_000)]


class _Answer(msgspec.Struct, frozen=True):
    answer: BlindAnswer
    line: _LineNumber | _LineText | None = 0
    words: str = ""
    basis: object = None

    @property
    def known_basis(self) -> Basis | None:
        """The basis; None if it is missing or unknown, in which case the rest of the answer still counts."""
        return next((basis for basis in Basis if basis == self.basis), None)


def _answer_in(reply: str) -> _Answer | None:
    """Return the last answer in a reply; None if it has none.

    A reply may also be a bare line number, or the word `nothing`.
    """
    for value in objects_in(reply):
        try:
            return msgspec.convert(value, decodable(_Answer))
        except (ValueError, RecursionError):
            continue
    if _BARE_NOTHING.fullmatch(reply):
        return _Answer(BlindAnswer.NOTHING)
    bare = _BARE_LINE.fullmatch(reply)
    number = whole_number(bare[1]) if bare else None
    return None if number is None else _Answer(BlindAnswer.FAULT, number)
