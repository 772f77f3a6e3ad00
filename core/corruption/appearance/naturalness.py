"""Naturalness of code: cross-entropy under a token model with a cache.

The model follows Hindle et al. (2012) and Tu et al. (2014). Buggy code is less predictable than the code
around it (Ray et al., 2016, On the naturalness of buggy code).
"""

from __future__ import annotations

import io
import math
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import msgspec

from gistpoint.core.decoding import decodable

ORDER = 3
"""The maximum length of the runs of tokens that are counted."""
_CACHED = 0.3
"""The weight of the predictions from the function's own other lines."""
_BEGIN = ("<begin>",) * (ORDER - 1)
_VOCABULARY = 20_000
"""The size of the vocabulary; unknown tokens are assumed to be equally likely."""
_SHORT = 12
_ALONE = {tokenize.NEWLINE: "<end>", tokenize.INDENT: "<in>", tokenize.DEDENT: "<out>"}
_PLAIN = (tokenize.NAME, tokenize.OP, tokenize.NUMBER)

Gram = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlacedToken:
    """A token as the model counts it, and the line, counted from 1, on which it begins."""

    text: str
    line: int


def tokens_of(text: str) -> tuple[PlacedToken, ...]:
    """Return the tokens of code, without comments, up to the first that can't be read.

    Long literals are replaced by one placeholder.
    """
    return tuple(_tokens(text))


def _tokens(text: str) -> Iterator[PlacedToken]:
    try:
        for item in tokenize.generate_tokens(io.StringIO(text, newline="\n").readline):
            line = item.start[0]
            if item.type in _PLAIN:
                yield PlacedToken(item.string, line)
            elif item.type in _ALONE:
                yield PlacedToken(_ALONE[item.type], line)
            elif item.type not in (tokenize.COMMENT, tokenize.NL, tokenize.ENDMARKER):
                yield PlacedToken(item.string if len(item.string) <= _SHORT else "<text>", line)
    except (tokenize.TokenError, SyntaxError):
        return


@dataclass
class GramCounts:
    """Counts of the runs of up to `ORDER` tokens, and of the tokens that follow each run."""

    grams: Counter[Gram] = field(default_factory=Counter)
    following: Counter[Gram] = field(default_factory=Counter)
    kinds: Counter[Gram] = field(default_factory=Counter)

    def add(self, tokens: Iterable[str]) -> None:
        """Count the tokens of one piece of code."""
        run = [*_BEGIN, *tokens]
        fresh: Counter[Gram] = Counter()
        for order in range(1, ORDER + 1):
            fresh.update(zip(*(run[place:] for place in range(order)), strict=False))
        for gram, number in fresh.items():
            self.following[gram[:-1]] += number
            self.kinds[gram[:-1]] += gram not in self.grams
        self.grams.update(fresh)

    def likelihood(
        self, gram: Gram, without: GramCounts | None = None, least: float = 1 / _VOCABULARY
    ) -> float:
        """Return the probability of a gram's last token after the others (Witten and Bell, 1991).

        `without` contains counts to subtract; `least` is the probability of an unknown token.
        """
        chance = least
        # The loop proceeds from the token alone to the whole gram: each longer context corrects the
        # probability from the shorter one.
        for start in range(len(gram) - 1, -1, -1):
            part = gram[start:]
            before = part[:-1]
            total, kinds, own = self.following[before], self.kinds[before], self.grams[part]
            if without is not None:
                total, own = total - without.following[before], max(own - without.grams[part], 0)
                kinds = min(kinds, total)
            if total <= 0:
                return chance
            chance = (own + kinds * chance) / (total + kinds)
        return chance


class StoredCounts(msgspec.Struct, frozen=True):
    """Counts as they are stored; tests/studies/standard_library_counts.py computes them."""

    words: list[str]
    grams: list[list[int]]
    """For each length, the grams in sequence, each as the indexes of its words followed by its count."""


@dataclass(frozen=True)
class StandardCounts:
    """Pruned counts of the standard library; all unknown names are treated as one."""

    counts: GramCounts
    known: frozenset[str]

    @classmethod
    def read(cls, data: bytes) -> StandardCounts:
        """Return the counts in the JSON of a `StoredCounts`."""
        stored = msgspec.json.decode(data, type=decodable(StoredCounts))
        counts = GramCounts()
        for order, packed in enumerate(stored.grams, 1):
            places = iter(packed)
            for row in zip(*(places for _ in range(order + 1)), strict=True):
                gram = tuple(stored.words[place] for place in row[:-1])
                counts.grams[gram] = row[-1]
                counts.following[gram[:-1]] += row[-1]
                counts.kinds[gram[:-1]] += 1
        return cls(counts, frozenset(stored.words))

    def spelled(self, token: str) -> str:
        """Return the name that the counts use for a token: the token itself, or `<name>` if it is unknown."""
        return token if token in self.known else "<name>"


def pruned(texts: Iterable[str], least: int) -> StoredCounts:
    """Return the counts of the runs of tokens that occur at least `least` times.

    Tokens that occur fewer than `4 * least` times are replaced by `<name>`.
    """
    tokenised = [[item.text for item in tokens_of(text)] for text in texts]
    occurrences = Counter(chain.from_iterable(tokenised))
    counts = GramCounts()
    for tokens in tokenised:
        counts.add(token if occurrences[token] >= 4 * least else "<name>" for token in tokens)
    kept = {gram: number for gram, number in counts.grams.items() if number >= least}
    words = sorted(set(chain.from_iterable(kept)))
    place = {word: n for n, word in enumerate(words)}
    rows: list[list[int]] = [[] for _ in range(ORDER)]
    for gram, number in sorted(kept.items()):
        rows[len(gram) - 1] += *map(place.__getitem__, gram), number
    return StoredCounts(words, rows)


class CodeModel:
    """A model that predicts functions' tokens from the rest of their library and the standard library."""

    def __init__(self, texts: Iterable[Sequence[PlacedToken]], standard: StandardCounts) -> None:
        self._counts = GramCounts()
        for tokens in texts:
            self._counts.add(token.text for token in tokens)
        self._standard = standard

    def of_function(self, original: str) -> FunctionModel:
        """Return the model for versions of one function, without the counts of its own text."""
        return FunctionModel(self._counts, self._standard, original)


class FunctionModel:
    """A model that predicts the lines of one function's versions."""

    def __init__(self, library: GramCounts, standard: StandardCounts, original: str) -> None:
        self._library, self._standard = library, standard
        self._own = GramCounts()
        self._own.add(token.text for token in tokens_of(original))
        self._known: dict[Gram, float] = {}

    def bits(self, text: str) -> Mapping[int, tuple[float, ...]]:
        """Return the surprisal of each token in bits, by line number; keywords and layout are tokens, too.

        A token is predicted from the tokens before it and from all other lines of the function.
        """
        tokens = tokens_of(text)
        run = [*_BEGIN, *(token.text for token in tokens)]
        by_line: dict[int, Counter[str]] = {}
        pairs: dict[int, Counter[Gram]] = {}
        for place, token in enumerate(tokens):
            by_line.setdefault(token.line, Counter())[token.text] += 1
            pairs.setdefault(token.line, Counter())[(run[place + ORDER - 2], token.text)] += 1
        every = sum(by_line.values(), Counter())
        paired = sum(pairs.values(), Counter())
        found: dict[int, list[float]] = {}
        for place, token in enumerate(tokens):
            gram = tuple(run[place : place + ORDER])
            here, joined = by_line[token.line], pairs[token.line]
            total = len(tokens) - here.total()
            alone = (every[token.text] - here[token.text]) / total if total else 0.0
            before = every[gram[-2]] - here[gram[-2]]
            both = paired[gram[-2:]] - joined[gram[-2:]]
            cached = 0.5 * alone + 0.5 * (max(both, 0) / before if before > 0 else alone)
            chance = (1 - _CACHED) * self._likelihood(gram) + _CACHED * cached
            found.setdefault(token.line, []).append(-math.log2(chance))
        return {line: tuple(values) for line, values in found.items()}

    def _likelihood(self, gram: Gram) -> float:
        known = self._known.get(gram)
        if known is None:
            standard = self._standard
            spelled = tuple(map(standard.spelled, gram))
            general = standard.counts.likelihood(spelled)
            # An unknown name is one of many: it gets a fraction of their total probability.
            if spelled[-1] == "<name>":
                general /= 100.0
            known = self._known[gram] = self._library.likelihood(gram, self._own, max(general, 1e-6))
        return known


def mean_bits(bits: Mapping[int, tuple[float, ...]], lines: Iterable[int]) -> float:
    """Return the mean surprisal per token of these lines, in bits; 0 if the lines have no tokens."""
    values = [value for line in lines for value in bits.get(line, ())]
    return sum(values) / len(values) if values else 0.0
