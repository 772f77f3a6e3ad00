"""Searches for a good corruption of a function: several are tried, and the best one is proven."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from gistpoint.core.code.index import index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.corruption.appearance import glance_weights
from gistpoint.core.corruption.blind import GlanceScore
from gistpoint.core.corruption.corruptions import Corruption, enumerate_corruptions, pairs_of, record_of
from gistpoint.core.corruption.evidence import Evidence, Subtlety, is_good, subtlety
from gistpoint.core.corruption.subject import NamesInReach
from gistpoint.core.generation.candidates import LOCATED, effort_for
from gistpoint.core.generation.intake import CorruptionProof
from gistpoint.core.generation.trials.evidence import evidence_of
from gistpoint.core.generation.trials.trial import STOPPED, CandidateDropped, CandidateTrial
from gistpoint.core.generation.verdicts import CandidateVerdict, Reason
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.ports import ProbeReport
from gistpoint.core.tasks.model import Target

MOST_PAIRS = 6
ENOUGH = 4
"""The number of good corruptions that end the search if one of them is hard to locate."""
PLENTY = 8
"""The number of good corruptions that end the search even if none of them is hard to locate."""
_MOST_READ = 400
"""The maximum number of corruptions to read per function, likeliest first; few functions have even 100."""
_CONFIRMED = 3
"""The maximum number of good corruptions that are tried on the whole suite."""
_MORE_TESTS = 1
"""The number of failing tests beyond the desired range that ends a probe."""


Read = tuple[Corruption, GlanceScore]
"""A corruption with its predicted visibility to a reader."""


@dataclass(frozen=True, slots=True)
class Rated:
    """A corruption that was tried, with the results of the tests."""

    corruption: Corruption
    report: ProbeReport
    evidence: Evidence
    subtlety: Subtlety
    glance: GlanceScore
    good: bool

    @property
    def target(self) -> Target:
        """The corrupted function."""
        return self.corruption.target

    def provenance(self) -> dict[str, Any]:
        """Return the provenance that a task stores."""
        return {
            "record": record_of(self.corruption),
            "families": list(self.corruption.families),
            "subtlety": {"value": self.subtlety.value, "parts": dict(self.subtlety.parts)},
            "glance": self.glance.to_json(),
            "evidence": as_json(self.evidence),
            "good": self.good,
        }


def as_json(evidence: Evidence) -> dict[str, Any]:
    """Return the evidence as a JSON object."""
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in asdict(evidence).items()
    }


R = TypeVar("R", bound=Rated)


def decide_discovery(trial: CandidateTrial) -> CandidateVerdict:
    """Return the verdict with the best good corruption that the whole suite proves; at most three are tried.

    Raises `CandidateDropped` if none of them is proven.
    """
    return prove_best(trial, good_corruptions(trial, trial.candidate.name, trial.settings.band))


def prove_best(trial: CandidateTrial, rated: Sequence[Rated]) -> CandidateVerdict:
    """Return the verdict with the first corruption that the whole suite proves; at most three are tried.

    Raises `CandidateDropped` if none is proven.
    """
    why = CandidateDropped(Reason.NONE_GOOD, f"{sum(trial.fates.values())} were looked at")
    for item in rated[:_CONFIRMED]:
        try:
            proof = trial.confirm((item.target,))
        except CandidateDropped as refusal:
            trial.fates[refusal.reason.value] += 1
            why = refusal
            continue
        if proof.failing != frozenset(item.report.failed):
            trial.fates[Reason.SUITE_DIFFERS.value] += 1
            why = CandidateDropped(Reason.SUITE_DIFFERS, _difference(proof, item.report))
            continue
        return trial.kept(proof, {"parts": [item.provenance()]})
    raise why


def good_corruptions(trial: CandidateTrial, name: str, band: tuple[int, int]) -> list[Rated]:
    """Return the good corruptions of a function, best hidden first, and count the outcomes of all.

    A good corruption that is hard to locate precedes one that is easy to locate, however visible the two are.
    The result is empty if no tried corruption is good. Raises `CandidateDropped` if there is no corruption to
    try.
    """
    singles, scope = _singles(trial, name)
    unseen = _unseen(trial, singles)
    if not unseen:
        raise CandidateDropped(Reason.AT_A_GLANCE, f"{len(singles)} were read")
    least, _ = band
    effort = effort_for(trial.library, name, least)
    good: list[Rated] = []
    quiet: list[Corruption] = []
    for tried, (corruption, glance) in enumerate(
        _picked(unseen, effort.singles, f"{trial.settings.seed} {name}")
    ):
        if _suffice(good) or (tried == effort.give_up and not good):
            break
        rated = _rate(trial, corruption, glance, band)
        if rated is not None and rated.good:
            good.append(rated)
        elif rated is not None and rated.evidence.failing < least:
            quiet.append(corruption)
    if not good:
        pairs = (
            _rate(trial, *pair, band) for pair in _unseen(trial, pairs_of(quiet, scope, most=MOST_PAIRS))
        )
        good += [rated for rated in pairs if rated is not None and rated.good]
    return good_first(good)


def good_first(good: Iterable[R]) -> list[R]:
    """Return good corruptions, best hidden first."""
    return sorted(good, key=_sort_key)


def _sort_key(item: Rated) -> tuple[bool, float, float, str]:
    return not hard_to_locate(item), item.glance.value, -item.subtlety.value, item.target.corrupted


def hard_to_locate(item: Rated) -> bool:
    """Return whether a localisation by the spectrum of failing tests ranks enough other functions first."""
    return item.evidence.rank is not None and item.evidence.rank > LOCATED


def _suffice(good: Sequence[Rated]) -> bool:
    return len(good) >= PLENTY or (len(good) >= ENOUGH and any(hard_to_locate(item) for item in good))


def _singles(trial: CandidateTrial, name: str) -> tuple[tuple[Corruption, ...], NamesInReach]:
    library, (path, _, qualname) = trial.library, name.partition("::")
    index = index_source(path, library.intake.repository.tree.read(path))
    try:
        definition = index.get(qualname)
    except CodeError as error:
        raise CandidateDropped(Reason.NO_CORRUPTION, str(error)) from error
    with trial.reading("looking for corruptions") as on_reading:
        found = enumerate_corruptions(
            index, definition, library.vocabulary, most=_MOST_READ, on_reading=on_reading
        )
    trial.fates.update({f"gate: {reason.value}": count for reason, count in found.dropped.items()})
    if not found.kept:
        raise CandidateDropped(Reason.NO_CORRUPTION)
    return found.kept, library.vocabulary.scope(definition)


def _unseen(trial: CandidateTrial, corruptions: Sequence[Corruption]) -> list[Read]:
    """Return the corruptions that a reader misses at a glance, with their scores; count the others."""
    most = trial.settings.max_glance
    threshold = glance_weights().threshold if most is None else most
    with trial.reading("reading corruptions") as on_reading:
        scores = trial.context.scorer.scores(
            [item.target for item in corruptions], [item.families for item in corruptions], on_reading
        )
    unseen = [
        (item, score) for item, score in zip(corruptions, scores, strict=True) if score.value <= threshold
    ]
    if len(unseen) < len(corruptions):
        trial.fates[Reason.AT_A_GLANCE.value] += len(corruptions) - len(unseen)
    return unseen


def _picked(corruptions: Sequence[Read], most: int, seed: str) -> Iterator[Read]:
    """Yield up to `most` corruptions in a random order that favours good ones that are hard to notice.

    They are drawn by weight without replacement, with exponential keys (Efraimidis and Spirakis 2006).
    """
    chance = random.Random(f"corruptions {seed}")
    weights = [max(item.prior * (1 - score.value) ** 2, 1e-6) for item, score in corruptions]
    keyed = [(chance.expovariate(1) / weight, n) for n, weight in enumerate(weights)]
    yield from (corruptions[n] for _, n in sorted(keyed)[:most])


def _rate(
    trial: CandidateTrial, corruption: Corruption, glance: GlanceScore, band: tuple[int, int]
) -> Rated | None:
    least, most = band
    trial.next(corruption.target.name, ", ".join(corruption.families))
    report = trial.probe((corruption.target,), stop_after=most + _MORE_TESTS)
    if report.status is not RunStatus.FINISHED:
        trial.count_outcome(STOPPED.get(report.status, Reason.NO_RESULT).value)
        return None
    if len(report.failed) > most:
        trial.count_outcome("too_many_failing_tests")
        return None
    evidence = evidence_of(report, corruption.target, trial.library)
    good = is_good(evidence, least, most)
    trial.count_outcome("good" if good else fault(evidence, least))
    return Rated(corruption, report, evidence, subtlety(evidence, least, most), glance, good)


def fault(evidence: Evidence, least: int) -> str:
    """Return why a corruption is not good, provided that not too many tests fail."""
    if evidence.failing == 0:
        return "no_test_fails"
    if evidence.failing < least:
        return "too_few_failing_tests"
    if 2 * evidence.by_assertion < evidence.failing:
        return "few_fail_by_assertion"
    return "tracebacks_show_the_function"


def _difference(proof: CorruptionProof, report: ProbeReport) -> str:
    probed = frozenset(report.failed)
    return (
        f"{len(proof.failing - probed)} tests fail only in the suite, {len(probed - proof.failing)} only in"
        " the probe"
    )
