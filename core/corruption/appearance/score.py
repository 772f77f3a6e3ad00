"""The glance score: the probability that a reader sees a corruption, from features and calibrated weights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources

import msgspec

from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.source_text import python_text
from gistpoint.core.code.testfiles import is_protected
from gistpoint.core.corruption.appearance.changes import Version
from gistpoint.core.corruption.appearance.features import FunctionReading
from gistpoint.core.corruption.appearance.naturalness import CodeModel, PlacedToken, StandardCounts, tokens_of
from gistpoint.core.corruption.appearance.symmetry import LineCounts
from gistpoint.core.corruption.blind import GlanceScore
from gistpoint.core.corruption.facts import facts_of
from gistpoint.core.decoding import decodable
from gistpoint.core.ports import Linter
from gistpoint.core.running import OnCount
from gistpoint.core.tasks.model import Target
from gistpoint.core.trees import SourceTree

_MOST_TOKENS = 400_000
"""The maximum number of a library's tokens that its model counts."""


class Weight(msgspec.Struct, frozen=True):
    """The weight of a feature, and its mean and spread over the readings, which standardise it."""

    weight: float
    mean: float
    spread: float


class GlanceWeights(msgspec.Struct, frozen=True):
    """A logistic model of corruptions seen at a glance; fitted by tests/studies/glance_score.py."""

    intercept: float
    threshold: float
    """The score above which a corruption is not tried."""
    weights: dict[str, Weight]
    families: dict[str, float] = {}
    """For each family, the deviation of its log odds of being seen from the average, shrunk towards 0."""
    truth_sha256: str = ""
    """The hash of the readings on which it was fitted; empty if the weights were set by hand."""

    def of_family(self, families: Iterable[str]) -> float:
        """Return the feature of a corruption's families: the highest of their values; 0 if none is known."""
        return max((self.families[name] for name in families if name in self.families), default=0.0)

    def score(self, features: Mapping[str, float]) -> GlanceScore:
        """Return the score of a corruption, with the features that have a weight."""
        used = {name: features[name] for name in self.weights}
        total = self.intercept + sum(
            weight.weight * (used[name] - weight.mean) / weight.spread
            for name, weight in self.weights.items()
        )
        return GlanceScore(round(1 / (1 + math.exp(-max(min(total, 30.0), -30.0))), 4), used)


@cache
def glance_weights() -> GlanceWeights:
    """Return the weights that come with the package."""
    return msgspec.json.decode(_data("weights.json"), type=decodable(GlanceWeights))


@cache
def _standard() -> StandardCounts:
    return StandardCounts.read(_data("standard_library.json"))


def _data(name: str) -> bytes:
    return (resources.files("gistpoint.core.corruption.appearance") / name).read_bytes()


@dataclass(frozen=True)
class GlanceScorer:
    """Scores corruptions of one library's functions."""

    tree: SourceTree
    test_files: frozenset[str]
    linter: Linter

    @cached_property
    def _texts(self) -> list[tuple[PlacedToken, ...]]:
        found: list[tuple[PlacedToken, ...]] = []
        left = _MOST_TOKENS
        for path, data in self.tree.read_all(".py"):
            if left > 0 and not is_protected(path, self.test_files):
                found.append(tokens_of(python_text(data))[:left])
                left -= len(found[-1])
        return found

    @cached_property
    def _model(self) -> CodeModel:
        return CodeModel(self._texts, _standard())

    @cached_property
    def _lines(self) -> LineCounts:
        return LineCounts(self._texts)

    def features(
        self, targets: Sequence[Target], on_reading: OnCount = lambda done, total: None
    ) -> list[dict[str, float]]:
        """Return the features of corruptions of one function, except for the feature of their families.

        `targets` must not be empty. `on_reading` is called with the numbers of corruptions read and in total.
        Raises `CodeError` if a corruption can't be read, and anything that `on_reading` raises.
        """
        on_reading(0, len(targets))
        original = Version(facts_of(targets[0].original))
        model = self._model.of_function(original.facts.text)
        reading = FunctionReading(original, targets[0].qualname, model, self._lines)
        found = self._findings(targets)
        features: list[dict[str, float]] = []
        for target, number in zip(targets, found, strict=True):
            on_reading(len(features), len(targets))
            features.append(reading.features(Version(facts_of(target.corrupted)), number))
        return features

    def scores(
        self,
        targets: Sequence[Target],
        families: Sequence[Sequence[str]] = (),
        on_reading: OnCount = lambda done, total: None,
    ) -> list[GlanceScore]:
        """Return the scores of corruptions of one function; 1 for all of them if one can't be read.

        `families` are the families of each corruption; by default, none are known. `on_reading` is called
        with the numbers of corruptions read and in total.
        """
        if not targets:
            return []
        # Corruptions above the threshold are not tried (decision 95): unreadable code gets the highest score.
        weights = glance_weights()
        try:
            found = self.features(targets, on_reading)
        except CodeError:
            return [GlanceScore(1.0, {}) for _ in targets]
        own = families or [()] * len(found)
        return [
            weights.score({**item, "family": weights.of_family(names)})
            for item, names in zip(found, own, strict=True)
        ]

    def _findings(self, targets: Sequence[Target]) -> Iterable[int]:
        # One call for all functions: starting a linter costs more than reading a function (decision 95).
        first, *rest = self.linter.findings([targets[0].original, *(target.corrupted for target in targets)])
        return [(found - first).total() for found in rest]
