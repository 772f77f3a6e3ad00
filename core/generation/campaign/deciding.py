"""How a candidate is decided: by removal, by a corruption, by a model, or several functions at once."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from gistpoint.core.chat import ChatProblem
from gistpoint.core.code.index import index_source
from gistpoint.core.code.names import FunctionRef
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.splice import remove_body
from gistpoint.core.corruption.corruptions import Corruption, enumerate_corruptions, pairs_of, record_of
from gistpoint.core.corruption.evidence import Evidence, Subtlety, is_good, subtlety
from gistpoint.core.corruption.model.corruption import ModelCorruption, corrupt_by_model
from gistpoint.core.corruption.model.loop import End, LoopSettings
from gistpoint.core.corruption.model.loop import Trial as Shown
from gistpoint.core.corruption.model.loop import Verdict as ModelVerdict
from gistpoint.core.corruption.subject import Scope
from gistpoint.core.errors import EndpointError, SourceError
from gistpoint.core.generation.campaign.candidates import LEAST, LOCATED, effort_for, in_reach
from gistpoint.core.generation.campaign.library import Library
from gistpoint.core.generation.campaign.trial import STOPPED, Dropped, Trial, evidence_of
from gistpoint.core.generation.campaign.verdicts import Reason, Verdict
from gistpoint.core.generation.intake import NoTaskError
from gistpoint.core.generation.proof import Proof
from gistpoint.core.generation.removal import removal_target
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.ports import ProbeReport
from gistpoint.core.tasks.model import Failure, Target


def decide_removal(trial: Trial) -> Verdict:
    """Return what comes of deleting the body of the candidate."""
    library, name, needed = trial.library, trial.candidate.name, trial.settings.min_failing
    try:
        target = removal_target(library.intake.repository.tree, name, library.test_files)
    except (NoTaskError, SourceError, CodeError) as error:
        raise Dropped(Reason.NOT_REMOVABLE, str(error)) from error
    report = trial.probe((target,), stop_after=needed)
    if report.status in STOPPED:
        raise Dropped(STOPPED[report.status])
    if report.status is RunStatus.FINISHED and len(report.failed) < needed:
        raise Dropped(Reason.TOO_FEW_FAILING, f"{len(report.failed)} of {report.ran} tests fail")
    proof = trial.confirm((target,))
    entering = len(library.entering(name))
    return trial.kept(proof, {"corruption": remove_body.__name__, "entering": entering})


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


def decide_group(trial: Trial) -> Verdict:
    """Return what comes of a group: a good corruption of each function, proven together, or why there is none."""
    parts = _parts(trial)
    targets = tuple(part.target for part in parts)
    alone = [frozenset(part.report.failed) for part in parts]
    _require_each_to_count(trial, targets, alone)
    proof = trial.confirm(targets)
    for part, failed in zip(parts, alone, strict=True):
        if not failed:
            raise Dropped(Reason.PART_SILENT, part.target.name)
        if len(proof.failing) <= len(failed):
            raise Dropped(Reason.UNION_NOT_LARGER, f"{part.target.name} alone breaks {len(failed)} tests")
    names = tuple(target.name for target in targets)
    provenance: dict[str, Any] = {
        "parts": [part.provenance() for part in parts],
        "failing_alone": [len(failed) for failed in alone],
        **distances(trial.library, names),
    }
    return trial.kept(proof, provenance)


def _parts(trial: Trial) -> list[Rated]:
    candidate, library = trial.candidate, trial.library
    if not candidate.partners:
        raise Dropped(Reason.NO_PARTNER, "no other candidate is near enough")
    parts: list[Rated] = []
    for name in (candidate.name, *candidate.partners):
        if len(parts) == candidate.size:
            break
        if not in_reach(library, name, [part.target.name for part in parts]):
            continue
        try:
            found = good_corruptions(trial, name, trial.settings.part_band)
        except Dropped:
            if not parts:
                raise
            found = []
        fitting = next((item for item in found if _adds(item, parts)), None)
        if fitting is not None:
            parts.append(fitting)
        elif not parts:
            raise Dropped(Reason.NONE_GOOD, name)
    if len(parts) < LEAST:
        raise Dropped(Reason.NO_PARTNER, "no function near enough has a good corruption")
    return parts


def _adds(item: Rated, parts: list[Rated]) -> bool:
    """Whether a part breaks something that the others do not, and they something that it does not."""
    failed = item.report.failed.keys()
    others = {id for part in parts for id in part.report.failed}
    return not parts or not (failed <= others or others <= failed)


def _require_each_to_count(trial: Trial, targets: tuple[Target, ...], alone: list[frozenset[str]]) -> None:
    """Drop the group where repairing one function mends everything, on the tests that can see the others.

    That each breaks something when all others are repaired is what its own probe has shown.
    """
    if not all(alone):
        raise Dropped(Reason.PART_SILENT)
    if len(targets) == LEAST:
        return
    for left_out in targets:
        others = tuple(target for target in targets if target is not left_out)
        report = trial.probe(others, stop_after=1)
        if report.status in STOPPED:
            raise Dropped(STOPPED[report.status])
        if report.status is RunStatus.FINISHED and not report.failed:
            raise Dropped(Reason.MASKED, f"with {left_out.name} repaired no test fails")


def distances(library: Library, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the shortest paths of calls, in either direction, between every two functions, and the longest of them."""
    paths = [library.reach.path(one, other) for one, other in combinations(names, 2)]
    return {"paths": [list(path) for path in paths], "largest_distance": max(len(path) - 1 for path in paths)}


_OF_THE_FUNCTION = (End.REJECTED, End.MALFORMED_REPLY)
"""Ends that can lie with one function, such as a text that is too long; on a first request they lie with all."""
_SHOWN_FAILURES = 2


def decide_by_model(trial: Trial) -> Verdict:
    """Return what comes of the candidate. Raises `EndpointError` where no candidate would fare better."""
    probing = _Probing(trial)
    model, name = trial.desk.model, trial.candidate.name
    assert model is not None
    made = corrupt_by_model(
        trial.library.intake,
        FunctionRef.parse(name),
        model,
        trial.desk.runner,
        settings=trial.settings.loop or LoopSettings.for_tasks(trial.settings.min_failing),
        tests=trial.library.seeing((name,)),
        try_out=probing,
        cancel=trial.desk.cancel,
    )
    trial.record = made.record()
    trial.fates.update(f"model: {item.verdict.value}" for item in made.result.rounds)
    kept = made.result.kept
    if kept is None or kept.target is None or kept.trial is None:
        _check_endpoint(made)
        raise Dropped(Reason.NONE_GOOD, made.reason)
    proof = trial.confirm((kept.target,))
    if proof.failing != kept.trial.failing_ids:
        raise Dropped(Reason.SUITE_DIFFERS, f"{len(proof.failing ^ kept.trial.failing_ids)} tests differ")
    return trial.kept(proof, {"parts": [_provenance(made, probing.evidence[kept.target.corrupted], trial)]})


def _check_endpoint(made: ModelCorruption) -> None:
    """Raise `EndpointError` where it is the endpoint that ended the conversation, not the function."""
    end, first = made.result.end, made.result.requests == 1
    if end.value in set(ChatProblem) and (first or end not in _OF_THE_FUNCTION):
        raise EndpointError(
            f"The model can't be asked any more: {made.result.detail}",
            hint="What was decided is kept: run the same command again when the endpoint answers.",
        )


def _provenance(made: ModelCorruption, evidence: Evidence, trial: Trial) -> dict[str, Any]:
    told = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(evidence).items()}
    return {**made.provenance(), "evidence": told, "good": is_good(evidence, *trial.settings.band)}


class _Probing:
    """Tries submissions by the prober, and keeps the evidence by the corrupted text."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self.evidence: dict[str, Evidence] = {}

    def __call__(self, target: Target) -> Shown:
        report = self._trial.probe((target,))
        if report.status is not RunStatus.FINISHED:
            hangs = STOPPED.get(report.status) is Reason.HANGS
            return Shown(ModelVerdict.HANGS if hangs else ModelVerdict.COULD_NOT_RUN, detail=report.reason)
        evidence = evidence_of(report, target, self._trial.library)
        self.evidence[target.corrupted] = evidence
        rated = subtlety(evidence, *self._trial.settings.band)
        shown = list(report.failed.items())[:_SHOWN_FAILURES]
        return Shown(
            ModelVerdict.ACCEPTED,
            evidence.failing,
            len(self._trial.library.intake.passed),
            evidence.by_assertion,
            evidence.through_target,
            frozenset(report.failed),
            evidence.messages,
            tuple(Failure(id, failure.message) for id, failure in shown),
            rated.value,
            rated.parts,
        )
