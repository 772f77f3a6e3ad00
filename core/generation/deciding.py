"""How a candidate is decided: by removal, by a corruption, by a model, or several functions at once.

A `CandidateTrial` tries corruptions on the tests that can see them, and on whole suites, and adds up their costs.
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from gistpoint.core.chat import ChatProblem
from gistpoint.core.code.index import index_source
from gistpoint.core.code.names import FunctionRef
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.splice import remove_body
from gistpoint.core.corruption.corruptions import Corruption, enumerate_corruptions, pairs_of, record_of
from gistpoint.core.corruption.edits import changed_lines
from gistpoint.core.corruption.evidence import Evidence, Subtlety, is_good, is_own_test, ochiai_rank, subtlety
from gistpoint.core.corruption.model import End, LoopSettings, ModelTrial, SubmissionVerdict
from gistpoint.core.corruption.subject import NamesInReach
from gistpoint.core.errors import EndpointError, InfrastructureError, SourceError
from gistpoint.core.generation.by_model import ModelCorruption, corrupt_by_model
from gistpoint.core.generation.candidates import LEAST, LOCATED, CorruptionCandidate, effort_for, in_reach
from gistpoint.core.generation.context import Context, opened
from gistpoint.core.generation.intake import LOOK, NoGood, NoTaskError
from gistpoint.core.generation.library import SourceLibrary
from gistpoint.core.generation.proof import CorruptionProof, prove
from gistpoint.core.generation.removal import removal_target
from gistpoint.core.generation.settings import CampaignMode
from gistpoint.core.generation.verdicts import CandidateVerdict, Cost, ProvenCorruption, Reason, Specimen
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.ports import ProbeReport
from gistpoint.core.tasks.leaks import leaks_of
from gistpoint.core.tasks.model import Failure, Target, ToolLimits

_PARAMETERS = re.compile(r"\[.*\]$", re.DOTALL)


def evidence_of(report: ProbeReport, target: Target, library: SourceLibrary) -> Evidence:
    """Return the evidence of a probe that finished."""
    name, failed = target.name, report.failed
    steps = library.reach_from_tests.steps(name)
    return Evidence(
        failing=len(failed),
        by_assertion=sum(failure.assertion for failure in failed.values()),
        through_target=sum(failure.through_target for failure in failed.values()),
        entering=len(library.entering(name)),
        distances=tuple(steps.get(function_of_test(id)) for id in sorted(failed)),
        own_tests=sum(is_own_test(name, id) for id in failed),
        rank=ochiai_rank(name, frozenset(failed), library.test_map),
        messages=len({failure.message for failure in failed.values()}),
        changed_lines=changed_lines(target.original, target.corrupted),
    )


def function_of_test(id: str) -> str:
    """Return the function of a test id by its name in the call graph: `path::Class.test_it`."""
    path, _, rest = _PARAMETERS.sub("", id).partition("::")
    return f"{path}::{rest.replace('::', '.')}"


REFUSALS: Mapping[NoGood, Reason] = {
    NoGood.TOO_FEW_FAILING: Reason.TOO_FEW_FAILING,
    NoGood.BREAKS_COLLECTION: Reason.BREAKS_COLLECTION,
    NoGood.HANGS: Reason.HANGS,
    NoGood.COULD_NOT_RUN: Reason.NO_RESULT,
    NoGood.NOT_REMOVABLE: Reason.NOT_REMOVABLE,
}
STOPPED = {RunStatus.TIMED_OUT: Reason.HANGS, RunStatus.OUT_OF_MEMORY: Reason.HANGS}


class CandidateDropped(Exception):
    """The candidate makes no task, for a reason that is counted."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class CandidateTrial:
    """Runs the probes and suites of one candidate, and adds up their costs."""

    def __init__(self, context: Context, candidate: CorruptionCandidate) -> None:
        self.library, self.settings, self.candidate = context.library, context.settings, candidate
        self.fates: Counter[str] = Counter()
        self.context = context
        self._probes: list[float] = []
        self._warm = 0
        self._confirmations, self._confirming = 0, 0.0
        self._specimen: Specimen | None = None
        self.record: Mapping[str, Any] | None = None
        """The model's rounds on the candidate, for the verdict if nothing is kept."""
        self._chance = random.Random(f"specimen {candidate.key}")

    def probe(self, targets: tuple[Target, ...], stop_after: int | None = None) -> ProbeReport:
        """Run the tests that can see the targets, until `stop_after` of them have failed."""
        select = self.library.seeing(target.name for target in targets)
        started = time.perf_counter()
        try:
            report = self.context.prober.decide(targets, select, stop_after=stop_after, cancel=self.context.run.cancel)
        except CodeError as error:
            return ProbeReport(RunStatus.COULD_NOT_RUN, reason=str(error))
        self.context.run.check()
        if report.status is RunStatus.INFRASTRUCTURE:
            raise InfrastructureError(f"{targets[0].name} could not be tried. {report.reason}".strip(), hint=LOOK)
        self._probes.append(round(time.perf_counter() - started, 4))
        self._warm += report.how == "warm"
        if self._chance.random() < 1 / len(self._probes):
            cut_short = stop_after is not None and len(report.failed) >= stop_after and report.ran < len(select)
            self._specimen = Specimen(targets, report.status.value, tuple(sorted(report.failed)), cut_short)
        return report

    def confirm(self, targets: tuple[Target, ...]) -> CorruptionProof:
        """Run the whole suite; raises `CandidateDropped` if it makes no task or its original is left in the tree."""
        started = time.perf_counter()
        try:
            proof = prove(
                self.library.mapped_intake,
                targets,
                self.context.runner,
                min_failing=self.settings.min_failing,
                run=self.context.run,
            )
        except NoTaskError as refusal:
            raise CandidateDropped(REFUSALS[refusal.reason], refusal.message) from refusal
        finally:
            self._confirmations += 1
            self._confirming += time.perf_counter() - started
        leak = next(leaks_of(proof.tree, targets), None)
        if leak is not None:
            raise CandidateDropped(Reason.LEAKS, leak)
        return proof

    def dropped(self, why: CandidateDropped) -> CandidateVerdict:
        """Return the verdict on a candidate that makes no task."""
        return self._verdict((self.candidate.name,), why.reason, why.detail, None)

    def kept(self, proof: CorruptionProof, provenance: Mapping[str, Any]) -> CandidateVerdict:
        """Return the verdict on a candidate whose corruption was proven."""
        failing = proof.failures(ToolLimits())
        missing = proof.failing - {result.id for result in proof.report.results.values()}
        kept = ProvenCorruption(
            proof.targets,
            tuple(failure for failure in failing if failure.id not in missing),
            tuple(sorted(missing)),
            proof.any_order,
            provenance,
        )
        return self._verdict(tuple(target.name for target in proof.targets), Reason.KEPT, "", kept)

    def _verdict(
        self, names: tuple[str, ...], reason: Reason, detail: str, kept: ProvenCorruption | None
    ) -> CandidateVerdict:
        cost = Cost(tuple(self._probes), self._warm, self._confirmations, round(self._confirming, 3))
        record = self.record if kept is None else None
        return CandidateVerdict(
            self.candidate.key, names, reason, detail, dict(self.fates), cost, kept, self._specimen, record
        )


def decide_removal(trial: CandidateTrial) -> CandidateVerdict:
    """Return the verdict on deleting the body of the candidate."""
    library, name, needed = trial.library, trial.candidate.name, trial.settings.min_failing
    try:
        target = removal_target(library.intake.repository.tree, name, library.test_files)
    except (NoTaskError, SourceError, CodeError) as error:
        raise CandidateDropped(Reason.NOT_REMOVABLE, str(error)) from error
    report = trial.probe((target,), stop_after=needed)
    if report.status in STOPPED:
        raise CandidateDropped(STOPPED[report.status])
    if report.status is RunStatus.FINISHED and len(report.failed) < needed:
        raise CandidateDropped(Reason.TOO_FEW_FAILING, f"{len(report.failed)} of {report.ran} tests fail")
    proof = trial.confirm((target,))
    entering = len(library.entering(name))
    return trial.kept(proof, {"corruption": remove_body.__name__, "entering": entering})


MOST_PAIRS = 6
ENOUGH = 4
"""Good corruptions to choose from; the search ends with these if one of them is hard to locate."""
PLENTY = 8
"""Good corruptions after which the search ends, even if the spectrum of failing tests gives each away."""
_CONFIRMED = 3
"""Most good corruptions that are tried on the whole suite."""
_MORE_TESTS = 1
"""Failing tests beyond the band after which a probe stops."""


@dataclass(frozen=True, slots=True)
class Rated:
    """A corruption that was tried, with the results of the tests."""

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
        """Return the provenance that a task keeps."""
        return {
            "record": record_of(self.corruption),
            "families": list(self.corruption.families),
            "subtlety": {"value": self.subtlety.value, "parts": dict(self.subtlety.parts)},
            "evidence": _as_json(self.evidence),
            "good": self.good,
        }


def _as_json(evidence: Evidence) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(evidence).items()}


def decide_discovery(trial: CandidateTrial) -> CandidateVerdict:
    """Return the verdict: the best good corruption, proven by the whole suite, or why there is none."""
    rated = good_corruptions(trial, trial.candidate.name, trial.settings.band)
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
    """Return the good corruptions of a function, the most subtle first; count the reasons against the others."""
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


def _singles(trial: CandidateTrial, name: str) -> tuple[tuple[Corruption, ...], NamesInReach]:
    library, (path, _, qualname) = trial.library, name.partition("::")
    index = index_source(path, library.intake.repository.tree.read(path))
    try:
        definition = index.get(qualname)
    except CodeError as error:
        raise CandidateDropped(Reason.NO_CORRUPTION, str(error)) from error
    found = enumerate_corruptions(index, definition, library.vocabulary)
    trial.fates.update({f"gate: {reason.value}": count for reason, count in found.dropped.items()})
    if not found.kept:
        raise CandidateDropped(Reason.NO_CORRUPTION)
    return found.kept, library.vocabulary.scope(definition)


def _picked(corruptions: Sequence[Corruption], most: int, seed: str) -> Iterator[Corruption]:
    """Yield up to `most` in a random order in which those with a high prior tend to come first.

    Weighted drawing without replacement by exponential keys (Efraimidis and Spirakis 2006).
    """
    chance = random.Random(f"corruptions {seed}")
    keyed = [(chance.expovariate(1) / max(item.prior, 1e-6), n) for n, item in enumerate(corruptions)]
    yield from (corruptions[n] for _, n in sorted(keyed)[:most])


def _rate(trial: CandidateTrial, corruption: Corruption, band: tuple[int, int]) -> Rated | None:
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


def _difference(proof: CorruptionProof, report: ProbeReport) -> str:
    probed = frozenset(report.failed)
    return (
        f"{len(proof.failing - probed)} tests fail only in the suite, {len(probed - proof.failing)} only in the probe"
    )


def decide_group(trial: CandidateTrial) -> CandidateVerdict:
    """Return the verdict on a group: a good corruption of each function, proven together, or why there is none."""
    parts = _parts(trial)
    targets = tuple(part.target for part in parts)
    alone = [frozenset(part.report.failed) for part in parts]
    _require_each_to_count(trial, targets, alone)
    proof = trial.confirm(targets)
    for part, failed in zip(parts, alone, strict=True):
        if not failed:
            raise CandidateDropped(Reason.PART_SILENT, part.target.name)
        if len(proof.failing) <= len(failed):
            raise CandidateDropped(Reason.UNION_NOT_LARGER, f"{part.target.name} alone breaks {len(failed)} tests")
    names = tuple(target.name for target in targets)
    provenance: dict[str, Any] = {
        "parts": [part.provenance() for part in parts],
        "failing_alone": [len(failed) for failed in alone],
        **distances(trial.library, names),
    }
    return trial.kept(proof, provenance)


def _parts(trial: CandidateTrial) -> list[Rated]:
    candidate, library = trial.candidate, trial.library
    if not candidate.partners:
        raise CandidateDropped(Reason.NO_PARTNER, "no other candidate is near enough")
    parts: list[Rated] = []
    for name in (candidate.name, *candidate.partners):
        if len(parts) == candidate.size:
            break
        if not in_reach(library, name, [part.target.name for part in parts]):
            continue
        try:
            found = good_corruptions(trial, name, trial.settings.part_band)
        except CandidateDropped:
            if not parts:
                raise
            found = []
        fitting = next((item for item in found if _adds(item, parts)), None)
        if fitting is not None:
            parts.append(fitting)
        elif not parts:
            raise CandidateDropped(Reason.NONE_GOOD, name)
    if len(parts) < LEAST:
        raise CandidateDropped(Reason.NO_PARTNER, "no function near enough has a good corruption")
    return parts


def _adds(item: Rated, parts: list[Rated]) -> bool:
    """Whether a part breaks a test that the others do not, and the other way round."""
    failed = item.report.failed.keys()
    others = {id for part in parts for id in part.report.failed}
    return not parts or not (failed <= others or others <= failed)


def _require_each_to_count(trial: CandidateTrial, targets: tuple[Target, ...], alone: list[frozenset[str]]) -> None:
    """Drop the group if repairing one function repairs everything, on the tests that can see the others.

    The probe of each function has already shown that it breaks something when all others are repaired.
    """
    if not all(alone):
        raise CandidateDropped(Reason.PART_SILENT)
    if len(targets) == LEAST:
        return
    for left_out in targets:
        others = tuple(target for target in targets if target is not left_out)
        report = trial.probe(others, stop_after=1)
        if report.status in STOPPED:
            raise CandidateDropped(STOPPED[report.status])
        if report.status is RunStatus.FINISHED and not report.failed:
            raise CandidateDropped(Reason.MASKED, f"with {left_out.name} repaired no test fails")


def distances(library: SourceLibrary, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the shortest paths of calls, in either direction, between every two functions, and the longest of them."""
    paths = [library.reach.path(one, other) for one, other in combinations(names, 2)]
    return {"paths": [list(path) for path in paths], "largest_distance": max(len(path) - 1 for path in paths)}


_OF_THE_FUNCTION = (End.REJECTED, End.MALFORMED_REPLY)
"""Ends that one function can cause, such as a text that is too long; on a first request the endpoint is to blame."""
_SHOWN_FAILURES = 2


def decide_by_model(trial: CandidateTrial) -> CandidateVerdict:
    """Return the verdict on the candidate. Raises `EndpointError` if the failure would affect every candidate."""
    probing = _Probing(trial)
    model, name = trial.context.model, trial.candidate.name
    assert model is not None
    made = corrupt_by_model(
        trial.library.intake,
        FunctionRef.parse(name),
        model,
        trial.context.runner,
        settings=trial.settings.loop or LoopSettings.for_tasks(trial.settings.min_failing),
        tests=trial.library.seeing((name,)),
        try_out=probing,
        run=trial.context.run,
    )
    trial.record = made.record()
    trial.fates.update(f"model: {item.verdict.value}" for item in made.result.rounds)
    kept = made.result.kept
    if kept is None or kept.target is None or kept.trial is None:
        _check_endpoint(made)
        raise CandidateDropped(Reason.NONE_GOOD, made.reason)
    proof = trial.confirm((kept.target,))
    if proof.failing != kept.trial.failing_ids:
        raise CandidateDropped(Reason.SUITE_DIFFERS, f"{len(proof.failing ^ kept.trial.failing_ids)} tests differ")
    return trial.kept(proof, {"parts": [_provenance(made, probing.evidence[kept.target.corrupted], trial)]})


def _check_endpoint(made: ModelCorruption) -> None:
    """Raise `EndpointError` if the endpoint ended the conversation, not the function."""
    end, first = made.result.end, made.result.requests == 1
    if end.value in set(ChatProblem) and (first or end not in _OF_THE_FUNCTION):
        raise EndpointError(
            f"The model can't be asked any more: {made.result.detail}",
            hint="What was decided is kept: run the same command again when the endpoint answers.",
        )


def _provenance(made: ModelCorruption, evidence: Evidence, trial: CandidateTrial) -> dict[str, Any]:
    return {**made.provenance(), "evidence": _as_json(evidence), "good": is_good(evidence, *trial.settings.band)}


class _Probing:
    """Tries submissions with the prober, and keeps the evidence by corrupted text."""

    def __init__(self, trial: CandidateTrial) -> None:
        self._trial = trial
        self.evidence: dict[str, Evidence] = {}

    def __call__(self, target: Target) -> ModelTrial:
        report = self._trial.probe((target,))
        if report.status is not RunStatus.FINISHED:
            hangs = STOPPED.get(report.status) is Reason.HANGS
            return ModelTrial(
                SubmissionVerdict.HANGS if hangs else SubmissionVerdict.COULD_NOT_RUN, detail=report.reason
            )
        evidence = evidence_of(report, target, self._trial.library)
        self.evidence[target.corrupted] = evidence
        rated = subtlety(evidence, *self._trial.settings.band)
        shown = list(report.failed.items())[:_SHOWN_FAILURES]
        return ModelTrial(
            SubmissionVerdict.ACCEPTED,
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


_WAYS: Mapping[CampaignMode, Callable[[CandidateTrial], CandidateVerdict]] = {
    CampaignMode.REMOVE: decide_removal,
    CampaignMode.DISCOVERY: decide_discovery,
    CampaignMode.MULTI: decide_group,
}


def decide(context: Context, candidate: CorruptionCandidate) -> CandidateVerdict:
    """Return the verdict on a candidate: the same in every process, independent of earlier decisions."""
    with opened(context) as here:
        trial, settings = CandidateTrial(here, candidate), context.settings
        try:
            return decide_by_model(trial) if settings.model else _WAYS[settings.mode](trial)
        except CandidateDropped as why:
            return trial.dropped(why)
