"""Fits the glance score to blind readings, and judges it on libraries that were left out.

Usage: python tests/studies/glance_score.py FOLDER [--truth TRUTH.jsonl] [--write]

FOLDER keeps the sdists, which are fetched if necessary. Prints the area under the curve (AUC) for "at a
glance" with every library left out once, its bootstrap interval, the mean AUC if a third of the libraries is
left out, and how many of the readings with the lowest scores are good and not seen at a glance. `--write`
stores the weights and the threshold.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from scipy.optimize import minimize

from gistpoint.core.corruption.appearance import GlanceScorer, GlanceWeights, Weight
from gistpoint.core.corruption.blind import GlanceVerdict
from gistpoint.core.corruption.corruptions import replay
from gistpoint.core.trees import SourceTree, write_tree
from gistpoint.sandbox.environments.sources import Fetcher
from gistpoint.sandbox.pools import RuffLinter

ROOT = Path(__file__).parents[2]
DIRECTIONS = {
    "family": 1, "surprise": 1, "said": 1, "disagreement": 1, "comments": 1, "docstring": 1, "mention": 1,
    "call_gone": 1, "fixed": 1, "lint": 1, "left_over": 1, "asymmetry": 1, "size": 1, "removal": -1, "part_gone": -1,
    "none_test": -1, "flag": -1, "step_gone": 1, "examples": 1, "forgotten": 1, "case_gone": -1,
}  # fmt: skip
"""The fitted features, with the signs of their weights."""
PENALTY = 8.0
"""The penalty on the squared differences between standardised weights and `EXPECTED`."""
EXPECTED = 0.15
"""The size of a weight without evidence: contradictions, repetitions and linter findings are visible."""
DRAWN = 4.0
"""The number of average readings that are added to those of each family."""
LEAST = 0.05
"""The minimum size of a weight, which it has if the readings contradict its sign."""
SPLITS = 60
QUANTILE = 0.15
"""The share of the readings below the threshold."""


@dataclass
class Reading:
    """A corruption that was read; `seen` says whether it was seen at a glance."""

    library: str
    families: Sequence[str]
    verdict: GlanceVerdict
    features: dict[str, float]

    @property
    def seen(self) -> bool:
        return self.verdict is GlanceVerdict.AT_A_GLANCE


@dataclass
class Fit:
    """A fitted model."""

    families: dict[str, float]
    intercept: float = 0.0
    weights: dict[str, Weight] = field(default_factory=dict)

    def model(self, threshold: float = 1.0, truth: str = "") -> GlanceWeights:
        return GlanceWeights(self.intercept, threshold, self.weights, self.families, truth)

    def score(self, reading: Reading) -> float:
        model = self.model()
        return model.score({**reading.features, "family": model.of_family(reading.families)}).value


def tree_of(source: str, folder: Path) -> SourceTree:
    tar = folder / f"{source}.tar"
    if not tar.exists():
        _, files = Fetcher().fetch(source, folder / source)
        write_tree(files, tar)
    return SourceTree.open(tar)


def verdict_of(readings: Sequence[Mapping[str, Any]]) -> GlanceVerdict:
    """Return the verdict of most readers; a tie is decided in the order good, borderline, seen."""
    counts = Counter(GlanceVerdict(item["verdict"]) for item in readings)
    return max(GlanceVerdict, key=lambda verdict: counts[verdict])


def read(truth: Path, folder: Path) -> list[Reading]:
    scorers: dict[str, GlanceScorer] = {}
    found: list[Reading] = []
    for line in truth.read_bytes().splitlines():
        item = json.loads(line)
        source = item["source"]
        if source not in scorers:
            scorers[source] = GlanceScorer(tree_of(source, folder), frozenset(), RuffLinter())
        target = replay(item["record"], scorers[source].tree)
        verdict = verdict_of(item["readings"])
        if verdict is not GlanceVerdict.NOT_A_FAULT:
            (features,) = scorers[source].features([target])
            found.append(Reading(source, item["record"]["families"], verdict, features))
    return found


def family_odds(readings: Sequence[Reading]) -> dict[str, float]:
    base = sum(item.seen for item in readings) / len(readings)
    total, seen = Counter[str](), Counter[str]()
    for item in readings:
        for name in set(item.families):
            total[name] += 1
            seen[name] += item.seen
    shares = {name: (seen[name] + DRAWN * base) / (total[name] + DRAWN) for name in sorted(total)}
    return {name: round(odds(share) - odds(base), 4) for name, share in shares.items()}


def odds(share: float) -> float:
    return math.log(share / (1 - share))


def fit(readings: Sequence[Reading]) -> Fit:
    """Fit on readings, and return the model.

    The family feature of a reading is computed from the other libraries, as in later use.
    """
    columns: list[list[float]] = []
    others = {
        library: family_odds([item for item in readings if item.library != library])
        for library in {item.library for item in readings}
    }
    for item in readings:
        known = Fit(others[item.library]).model()
        columns.append(
            [{**item.features, "family": known.of_family(item.families)}[name] for name in DIRECTIONS]
        )
    values = np.array(columns)
    mean, spread = values.mean(0), values.std(0)
    spread[spread < 1e-9] = 1.0
    standard, seen = (values - mean) / spread, np.array([item.seen for item in readings], float)

    expected = EXPECTED * np.array(list(DIRECTIONS.values()), float)

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        total = weights[0] + standard @ weights[1:]
        wrong = 1 / (1 + np.exp(-total)) - seen
        value = (
            np.logaddexp(0, total).sum()
            - (seen * total).sum()
            + PENALTY / 2 * ((weights[1:] - expected) ** 2).sum()
        )
        return value, np.r_[wrong.sum(), standard.T @ wrong + PENALTY * (weights[1:] - expected)]

    bounds = [(None, None), *((LEAST, None) if sign > 0 else (None, -LEAST) for sign in DIRECTIONS.values())]
    best = minimize(loss, np.zeros(len(bounds)), jac=True, method="L-BFGS-B", bounds=bounds).x
    weights = {
        name: Weight(round(float(weight), 4), round(float(mean[n]), 4), round(float(spread[n]), 4))
        for n, (name, weight) in enumerate(zip(DIRECTIONS, best[1:], strict=True))
    }
    return Fit(family_odds(readings), round(float(best[0]), 4), weights)


def auc(scores: Sequence[float], seen: Sequence[bool]) -> float:
    """Return the probability that a seen reading scores higher than an unseen one (Hanley and McNeil, 1982).

    Ties count half. NaN if all readings are seen, or none is.
    """
    above = np.array([score for score, is_seen in zip(scores, seen, strict=True) if is_seen])
    below = np.array([score for score, is_seen in zip(scores, seen, strict=True) if not is_seen])
    if not len(above) or not len(below):
        return math.nan
    return float((above[:, None] > below).mean() + (above[:, None] == below).mean() / 2)


def left_out(readings: Sequence[Reading]) -> list[float]:
    """Return the score of each reading from a model that was fitted without its library."""
    models = {
        library: fit([item for item in readings if item.library != library])
        for library in {item.library for item in readings}
    }
    return [models[item.library].score(item) for item in readings]


def interval(scores: Sequence[float], seen: Sequence[bool]) -> tuple[float, float]:
    chance = random.Random(1)
    found: list[float] = []
    for _ in range(2000):
        drawn = chance.choices(range(len(seen)), k=len(seen))
        found.append(auc([scores[n] for n in drawn], [seen[n] for n in drawn]))
    low, high = np.nanquantile(found, [0.025, 0.975])
    return float(low), float(high)


def thirds(readings: Sequence[Reading]) -> list[float]:
    """Return the AUCs on random thirds of the libraries, from fits on the others."""
    chance = random.Random(2)
    libraries = sorted({item.library for item in readings})
    found: list[float] = []
    for _ in range(SPLITS):
        out = set(chance.sample(libraries, len(libraries) // 3))
        model = fit([item for item in readings if item.library not in out])
        judged = [item for item in readings if item.library in out]
        found.append(auc([model.score(item) for item in judged], [item.seen for item in judged]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--truth", type=Path, default=ROOT / "tests/data/glance/truth.jsonl")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    readings = read(options.truth, options.folder)
    seen = [item.seen for item in readings]
    print(
        f"{len(readings)} readings of {len({item.library for item in readings})} libraries, {sum(seen)} at a glance"
    )
    scores = left_out(readings)
    low, high = interval(scores, seen)
    good = [item.verdict is GlanceVerdict.GOOD for item in readings]
    print(f"AUC, each library left out: {auc(scores, seen):.3f} ({low:.3f} to {high:.3f})")
    print(f"AUC of good against all others: {auc(scores, [not item for item in good]):.3f}")
    print(f"AUC on a third of the libraries left out, mean of {SPLITS}: {np.nanmean(thirds(readings)):.3f}")
    print(
        f"AUC on the readings it was fitted on: {auc([fit(readings).score(item) for item in readings], seen):.3f}"
    )
    order = sorted(range(len(readings)), key=lambda n: scores[n])
    for share in (0.05, 0.1, QUANTILE, 0.25, 0.3, 0.5):
        lowest = order[: max(round(share * len(order)), 1)]
        unseen, kept = sum(not seen[n] for n in lowest), sum(good[n] for n in lowest)
        print(
            f"lowest {share:4.0%}, {len(lowest):3} readings, scores up to {scores[lowest[-1]]:.3f}: "
            f"{unseen / len(lowest):.0%} not at a glance, {kept / len(lowest):.0%} good"
        )
    model = fit(readings)
    for name, weight in sorted(model.weights.items(), key=lambda item: -abs(item[1].weight)):
        alone = auc([item.features.get(name, 0.0) for item in readings], seen)
        print(f"{name:14} {weight.weight:+.3f}  AUC of the feature alone {alone:.3f}")
    threshold = round(sorted(scores)[round(QUANTILE * len(scores))], 2)
    if options.write:
        digest = hashlib.sha256(options.truth.read_bytes()).hexdigest()
        text = msgspec.json.format(msgspec.json.encode(model.model(threshold, digest)), indent=1)
        (ROOT / "core/corruption/appearance/weights.json").write_bytes(text + b"\n")


if __name__ == "__main__":
    main()
