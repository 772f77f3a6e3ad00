"""Patterns for outputs: aligned runs of the original, with gaps where the runs differ.

Lines that are in every run are required. A line that differs is compared by its tokens, which are
numbers, words, whitespace and symbols. Tokens that are the same in all runs are required too, and a gap
accepts only the kinds of tokens that the runs had in it; if these differ only in order, as in sets, the gap
accepts the same tokens in any order (decision 46).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

_NUMBER = r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?!\w)"
_NUMBERS = re.compile(rf"{_NUMBER}(?:, ?{_NUMBER})*")
_STRING = r"""(?:'[^'\n]*'|"[^"\n]*")"""
_PAIR = rf"{_STRING}(?:: ?(?:{_STRING}|{_NUMBER}))?"
_LIST = re.compile(rf"{_PAIR}(?:, ?{_PAIR})+")
_CODED = r"[0-9a-fA-F]{4,}(?:-[0-9a-fA-F]{4,})+|[\w+/]{20,}=*"
"""A UUID or base64 text, which is one word."""
_TOKEN = re.compile(rf"{_CODED}|{_NUMBERS.pattern}|\w+|\s+|[^\w\s]")
_TOKEN_OR_LIST = re.compile(rf"{_LIST.pattern}|{_TOKEN.pattern}")
_SIGN_OR_WORD = re.compile(r"\w+|[^\w\s]")
_LETTER = re.compile(r"[^\W\d]")
_MOST_TOKENS = 200
"""The maximum number of tokens in a line that is searched for words shared by all variants."""
_VARIES = "[varies]"


@dataclass(frozen=True, slots=True)
class Gap:
    """A place where runs differ, with the kinds of tokens that it accepts."""

    numbers: bool
    """Whether it accepts exactly one number, or one list of numbers."""
    spaces: bool
    letters: bool
    may_be_empty: bool
    bag: tuple[str, ...] | None = None
    """The symbols and words themselves, sorted, if all runs have the same ones; otherwise None."""

    @classmethod
    def of(cls, found: Iterable[Sequence[str]]) -> Gap:
        """Return the gap for the tokens of the runs in one place."""
        slices = list(found)
        tokens = list(chain.from_iterable(slices))
        bags = set(map(_bag, slices))
        are_single = set(map(len, slices)) <= {1}
        # Sets are printed in varying order, so the same tokens are required in any order (decision 46).
        is_shuffled = len(slices) > 1 and len(bags) == 1
        return cls(
            numbers=are_single and all(map(_NUMBERS.fullmatch, tokens)),
            spaces=any(map(str.isspace, tokens)),
            letters=any(map(_LETTER.search, tokens)),
            may_be_empty=not all(slices),
            bag=bags.pop() if is_shuffled else None,
        )

    def takes(self, token: str) -> bool:
        """Return whether the gap accepts a token, regardless of `bag`."""
        if self.numbers:
            return _NUMBERS.fullmatch(token) is not None
        if token.isspace():
            return self.spaces
        return self.letters or not _LETTER.search(token)

    def reached(self, places: set[int], tokens: Sequence[str]) -> set[int]:
        """Return the places where the gap may end, given the places where it may begin."""
        found = set[int]()
        if self.bag is not None:
            for start in places:
                found.update(self._ends_of_bag(start, tokens))
            return found
        if self.may_be_empty:
            found |= places
        for start in sorted(places):
            found.update(self._ends_of_run(start, tokens, found))
        return found

    def _ends_of_run(self, start: int, tokens: Sequence[str], known: Collection[int]) -> list[int]:
        """Return the ends of a gap that begins at `start`, up to the first one that is `known`."""
        ends = list[int]()
        for place in range(start, len(tokens)):
            if not self.takes(tokens[place]) or place + 1 in known:
                break
            ends.append(place + 1)
            if self.numbers:
                break
        return ends

    def _ends_of_bag(self, start: int, tokens: Sequence[str]) -> Iterator[int]:
        wanted = self.bag or ()
        size = 0
        for end in range(start, len(tokens) + 1):
            if size >= len(wanted) and _bag(tokens[start:end]) == wanted:
                yield end
            if size > len(wanted) or end == len(tokens):
                return
            size += len(_SIGN_OR_WORD.findall(tokens[end]))


def _bag(tokens: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(_SIGN_OR_WORD.findall(" ".join(tokens))))


@dataclass(frozen=True, slots=True)
class VariableLine:
    """One line that differs between the runs."""

    parts: tuple[str | Gap, ...]
    token: re.Pattern[str]

    @classmethod
    def of(cls, variants: Sequence[str]) -> VariableLine:
        """Return the line aligned from its variants; a list that differs only in its order is one token."""
        bags = {tuple(_bag([found]) for found in _LIST.findall(line)) for line in variants}
        token = _TOKEN_OR_LIST if len(bags) == 1 else _TOKEN
        return cls(tuple(_aligned([token.findall(line) for line in variants])), token)

    def matches(self, line: str) -> bool:
        """Return whether a line of output matches this line."""
        tokens = self.token.findall(line)
        places = {0}
        for part in self.parts:
            if isinstance(part, Gap):
                places = part.reached(places, tokens)
            else:
                here = {place for place, token in enumerate(tokens) if token == part}
                places = {place + 1 for place in places & here}
        return len(tokens) in places

    @property
    def text(self) -> str:
        """The line as text to show, with gaps as `[varies]`."""
        return "".join(part if isinstance(part, str) else _VARIES for part in self.parts)


def _aligned(variants: Sequence[list[str]]) -> Iterator[str | Gap]:
    """Yield the tokens that all variants share, and the gaps between them."""
    first = variants[0]
    if all(tokens == first for tokens in variants):
        yield from first
    elif len(set(map(_bag, variants))) == 1:
        yield Gap.of(variants)
    else:
        head = _common(variants)
        tail = _common([tokens[::-1] for tokens in variants])
        tail = min(tail, min(map(len, variants)) - head)
        ends = [len(tokens) - tail for tokens in variants]
        yield from first[:head]
        yield from _around_words([tokens[head:end] for tokens, end in zip(variants, ends, strict=True)])
        yield from first[ends[0] :]


def _by_columns(variants: Sequence[list[str]]) -> Iterator[str | Gap]:
    """Yield each column that is the same in all variants, and a gap for each run of other columns."""
    gap: list[tuple[str, ...]] = []
    for column in zip(*variants, strict=True):
        if len(set(column)) > 1:
            gap.append(column)
            continue
        if gap:
            yield Gap.of(zip(*gap, strict=True))
            gap = []
        yield column[0]
    if gap:
        yield Gap.of(zip(*gap, strict=True))


def _common(variants: Sequence[Sequence[str]]) -> int:
    """Return the number of tokens with which all variants begin."""
    count = 0
    for column in zip(*variants, strict=False):
        if len(set(column)) > 1:
            break
        count += 1
    return count


def _around_words(variants: Sequence[list[str]]) -> Iterator[str | Gap]:
    """Yield the parts around a word that occurs once in each variant; without one, the columns or one gap."""
    word = _shared_word(variants)
    if word is None:
        lengths = {len(tokens) for tokens in variants}
        if len(lengths) == 1:
            yield from _by_columns(variants)
        else:
            yield Gap.of(variants)
        return
    places = [tokens.index(word) for tokens in variants]
    yield from _aligned([tokens[:place] for tokens, place in zip(variants, places, strict=True)])
    yield word
    yield from _aligned([tokens[place + 1 :] for tokens, place in zip(variants, places, strict=True)])


def _shared_word(variants: Sequence[list[str]]) -> str | None:
    """Return the first word that occurs once in each variant; None if there is none or one is too long."""
    # Counting each word in each variant takes quadratic time.
    if max(map(len, variants)) > _MOST_TOKENS:
        return None
    for token in variants[0]:
        if _LETTER.search(token) and all(tokens.count(token) == 1 for tokens in variants):
            return token
    return None


@dataclass(frozen=True, slots=True)
class OutputPattern:
    """The pattern that an output must match."""

    parts: tuple[str | VariableLine | Gap, ...]
    """Each part is a required line, a line that differs, or a gap for any number of lines."""

    @classmethod
    def of(cls, runs: Sequence[str]) -> OutputPattern:
        """Return the pattern for the normalised outputs of one or more runs of the original."""
        outputs = [_lines_of(run) for run in runs]
        if not outputs:
            return cls(())
        return cls(tuple(_merged(outputs)))

    def matches(self, text: str) -> bool:
        """Return whether a normalised output matches the pattern."""
        lines = _lines_of(text)
        places = {0}
        for part in self.parts:
            if isinstance(part, Gap):
                places = _lines_in(part, places, lines)
            else:
                within = [place for place in places if place < len(lines)]
                places = {place + 1 for place in within if _fits(part, lines[place])}
            if not places:
                return False
        return len(lines) in places

    @property
    def text(self) -> str:
        """The pattern as text to show, with gaps as `[varies]`."""
        return "\n".join(map(_shown, self.parts))


def _lines_of(text: str) -> list[str]:
    """Return the lines of a normalised output; only a line feed ends one, not a form feed or U+2028."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _merged(outputs: Sequence[list[str]]) -> Iterator[str | VariableLine | Gap]:
    begins = [0] * len(outputs)
    ends = [len(lines) for lines in outputs]
    for places in [*_common_lines(outputs), ends]:
        between = [lines[begin:end] for lines, begin, end in zip(outputs, begins, places, strict=True)]
        # If all runs have the same number of lines here, these are compared one by one, otherwise as a whole
        # (decision 46).
        lengths = {len(lines) for lines in between}
        if len(lengths) == 1:
            yield from map(VariableLine.of, zip(*between, strict=True))
        else:
            yield Gap.of(map(_tokens_of, between))
        if places[0] < len(outputs[0]):
            yield outputs[0][places[0]]
        begins = [place + 1 for place in places]


def _tokens_of(lines: Iterable[str]) -> list[str]:
    return list(chain.from_iterable(map(_TOKEN.findall, lines)))


def _common_lines(outputs: Sequence[list[str]]) -> Iterator[list[int]]:
    """Yield, for each line that all runs have in the same order, its place in each run."""
    first = outputs[0]
    maps: list[dict[int, int]] = []
    for lines in outputs[1:]:
        matcher = difflib.SequenceMatcher(None, first, lines, autojunk=False)
        maps.append({a + n: b + n for a, b, size in matcher.get_matching_blocks() for n in range(size)})
    for place in range(len(first)):
        if all(place in known for known in maps):
            yield [place, *(known[place] for known in maps)]


def _fits(part: str | VariableLine, line: str) -> bool:
    if isinstance(part, str):
        return part == line
    return part.matches(line)


def _shown(part: str | VariableLine | Gap) -> str:
    match part:
        case str():
            return part
        case Gap():
            return _VARIES
        case _:
            return part.text


def _lines_in(gap: Gap, places: set[int], lines: Sequence[str]) -> set[int]:
    """Return the places where a gap of whole lines may end, given the places where it may begin."""
    found = set(places)
    for place in range(min(places), len(lines)):
        if place not in found:
            continue
        if all(map(gap.takes, _TOKEN.findall(lines[place]))):
            found.add(place + 1)
    return found
