"""Discovery mode: of many corruptions of a function, the most subtle one that the tests show to be good."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gistpoint.core.code.errors import CodeError
from gistpoint.core.code.index import index_source
from gistpoint.core.corruption.corruptions import Corruption, enumerate_corruptions, pairs_of
from gistpoint.core.corruption.evidence import Evidence, is_good
from gistpoint.core.corruption.record import record_of
from gistpoint.core.corruption.subtlety import Subtlety, subtlety
from gistpoint.core.corruption.vocabulary import Scope
from gistpoint.core.generation.campaign.effort import LOCATED, effort_for
from gistpoint.core.generation.campaign.observing import evidence_of
from gistpoint.core.generation.campaign.trial import STOPPED, Dropped, Trial
from gistpoint.core.generation.campaign.verdicts import Reason, Verdict
from gistpoint.core.generation.proof import Proof
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.ports import ProbeReport
from gistpoint.core.tasks.model import Target

MOST_PAIRS = 6
ENOUGH = 4
"""Good ones to choose from; no more are looked for where one of them is hard to locate."""
PLENTY = 8
"""Good ones behind which no more are looked for, though the spectrum of the failing tests gives each away."""
_CONFIRMED = 3
"""Of the good ones, the most that are tried on the whole suite."""
_MORE_TESTS = 1
"""Failing tests beyond the band behind which a probe stops."""


@dataclass(frozen=True, slots=True)
class Rated:
    """A corruption that was tried, with what the tests showed of it."""

    corruption: Corruption
    report: ProbeReport
    evidence: Evidence
    subtlety: Subtlety
    good: bool

    @property
    def target(self) -> Target:
        """The corrupted function."""
        return self.corruption.target

    def provenance(self) -> dict[str, Any]:
        """Return what a task keeps of it."""
        return {
            "record": record_of(self.corruption),
            "families": list(self.corruption.families),
            "subtlety": {"value": self.subtlety.value, "parts": dict(self.subtlety.parts)},
            "evidence": {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(self.evidence).items()},
            "good": self.good,
        }


def decide_discovery(trial: Trial) -> Verdict:
    """Return what comes of the candidate: its best good corruption, proven by the whole suite, or why there is none."""
    rated = good_corruptions(trial, trial.candidate.name, trial.settings.band)
    why = Dropped(Reason.NONE_GOOD, f"{sum(trial.fates.values())} were looked at")
    for item in rated[:_CONFIRMED]:
        try:
            proof = trial.confirm((item.target,))
        except Dropped as refusal:
            trial.fates[refusal.reason.value] += 1
            why = refusal
            continue
        if proof.failing != frozenset(item.report.failed):
            trial.fates[Reason.SUITE_DIFFERS.value] += 1
            why = Dropped(Reason.SUITE_DIFFERS, _difference(proof, item.report))
            continue
        return trial.kept(proof, {"parts": [item.provenance()]})
    raise why


def good_corruptions(trial: Trial, name: str, band: tuple[int, int]) -> list[Rated]:
    """Return the good corruptions of a function, the most subtle first; counts the end that each other one met."""
    singles, scope = _singles(trial, name)
    least, _ = band
    effort = effort_for(trial.library, name, least)
    good: list[Rated] = []
    quiet: list[Corruption] = []
    for tried, corruption in enumerate(_picked(singles, effort.singles, f"{trial.settings.seed} {name}")):
        if _suffice(good) or (tried == effort.give_up and not good):
            break
        rated = _rate(trial, corruption, band)
        if rated is not None and rated.good:
            good.append(rated)
        elif rated is not None and rated.evidence.failing < least:
            quiet.append(corruption)
    if not good:
        pairs = (_rate(trial, pair, band) for pair in pairs_of(quiet, scope, most=MOST_PAIRS))
        good += [rated for rated in pairs if rated is not None and rated.good]
    return sorted(good, key=lambda item: (not hard_to_locate(item), -item.subtlety.value, item.target.corrupted))


def hard_to_locate(item: Rated) -> bool:
    """Whether a localisation by the spectrum of the failing tests puts other functions first."""
    return item.evidence.rank is not None and item.evidence.rank > LOCATED


def _suffice(good: Sequence[Rated]) -> bool:
    return len(good) >= PLENTY or (len(good) >= ENOUGH and any(hard_to_locate(item) for item in good))


def _singles(trial: Trial, name: str) -> tuple[tuple[Corruption, ...], Scope]:
    library, (path, _, qualname) = trial.library, name.partition("::")
    index = index_source(path, library.intake.repository.tree.read(path))
    try:
        definition = index.get(qualname)
    except CodeError as error:
        raise Dropped(Reason.NO_CORRUPTION, str(error)) from error
    found = enumerate_corruptions(index, definition, library.vocabulary)
    trial.fates.update({f"gate: {reason.value}": count for reason, count in found.dropped.items()})
    if not found.kept:
        raise Dropped(Reason.NO_CORRUPTION)
    return found.kept, library.vocabulary.scope(definition)


def _picked(corruptions: Sequence[Corruption], most: int, seed: str) -> Iterator[Corruption]:
    """Yield up to `most` in a random order in which those with a high prior tend to come first.

    Weighted drawing without replacement by exponential keys (Efraimidis and Spirakis 2006).
    """
    chance = random.Random(f"corruptions {seed}")
    keyed = [(chance.expovariate(1) / max(item.prior, 1e-6), n) for n, item in enumerate(corruptions)]
    yield from (corruptions[n] for _, n in sorted(keyed)[:most])


def _rate(trial: Trial, corruption: Corruption, band: tuple[int, int]) -> Rated | None:
    least, most = band
    report = trial.probe((corruption.target,), stop_after=most + _MORE_TESTS)
    if report.status is not RunStatus.FINISHED:
        trial.fates[STOPPED.get(report.status, Reason.NO_RESULT).value] += 1
        return None
    if len(report.failed) > most:
        trial.fates["too_many_failing_tests"] += 1
        return None
    evidence = evidence_of(report, corruption.target, trial.library)
    good = is_good(evidence, least, most)
    trial.fates["good" if good else fault(evidence, least)] += 1
    return Rated(corruption, report, evidence, subtlety(evidence, least, most), good)


def fault(evidence: Evidence, least: int) -> str:
    """Return why a corruption, with no more failing tests than the band allows, is not good."""
    if evidence.failing == 0:
        return "no_test_fails"
    if evidence.failing < least:
        return "too_few_failing_tests"
    if 2 * evidence.by_assertion < evidence.failing:
        return "few_fail_by_assertion"
    return "tracebacks_show_the_function"


def _difference(proof: Proof, report: ProbeReport) -> str:
    probed = frozenset(report.failed)
    return (
        f"{len(proof.failing - probed)} tests fail only in the suite, {len(probed - proof.failing)} only in the probe"
    )


def share_of_good(parts: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the share of corruptions, as provenance tells them, that are good; None for none."""
    known = [bool(part["good"]) for part in parts if "good" in part]
    return sum(known) / len(known) if known else None
