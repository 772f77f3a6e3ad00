"""One candidate being tried: corruptions on the tests that can see them, and whole suites, with what each costs."""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gistpoint.core.cancel import CancelToken
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.corruption.edits import changed_lines
from gistpoint.core.corruption.evidence import Evidence, is_own_test, ochiai_rank
from gistpoint.core.errors import InfrastructureError
from gistpoint.core.generation.campaign.candidates import Candidate
from gistpoint.core.generation.campaign.library import Library
from gistpoint.core.generation.campaign.settings import Settings
from gistpoint.core.generation.campaign.verdicts import Cost, Kept, Reason, Specimen, Verdict
from gistpoint.core.generation.check import leaks_of
from gistpoint.core.generation.intake import LOOK, NoGood, NoTaskError
from gistpoint.core.generation.proof import Proof, prove
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.ports import ChatModel, Prober, ProbeReport, Runner
from gistpoint.core.tasks.model import Limits, Target

_PARAMETERS = re.compile(r"\[.*\]$", re.DOTALL)


def evidence_of(report: ProbeReport, target: Target, library: Library) -> Evidence:
    """Return the evidence of a probe that ran to its end."""
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
    """Return the function of a test id as the call graph names it: `path::Class.test_it`."""
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


@dataclass(frozen=True)
class Desk:
    """What a worker has at hand for the candidates of one library."""

    library: Library
    settings: Settings
    runner: Runner
    prober: Prober
    cancel: CancelToken
    model: ChatModel | None = None
    """What corrupts, where the settings name a model."""


class Dropped(Exception):
    """The candidate comes to nothing, for a reason that is counted."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class Trial:
    """Runs the probes and suites of one candidate, and adds up what they cost."""

    def __init__(self, desk: Desk, candidate: Candidate) -> None:
        self.library, self.settings, self.candidate = desk.library, desk.settings, candidate
        self.fates: Counter[str] = Counter()
        self.desk = desk
        self._probes: list[float] = []
        self._warm = 0
        self._confirmations, self._confirming = 0, 0.0
        self._specimen: Specimen | None = None
        self.record: Mapping[str, Any] | None = None
        """What a model made of the candidate, for the verdict where nothing is kept."""
        self._chance = random.Random(f"specimen {candidate.key}")

    def probe(self, targets: tuple[Target, ...], stop_after: int | None = None) -> ProbeReport:
        """Run the tests that can see the targets, up to the failing test of the number `stop_after`."""
        select = self.library.seeing(target.name for target in targets)
        started = time.perf_counter()
        try:
            report = self.desk.prober.decide(targets, select, stop_after=stop_after, cancel=self.desk.cancel)
        except CodeError as error:
            return ProbeReport(RunStatus.COULD_NOT_RUN, reason=str(error))
        self.desk.cancel.check()
        if report.status is RunStatus.INFRASTRUCTURE:
            raise InfrastructureError(f"{targets[0].name} could not be tried. {report.reason}".strip(), hint=LOOK)
        self._probes.append(round(time.perf_counter() - started, 4))
        self._warm += report.how == "warm"
        if self._chance.random() < 1 / len(self._probes):
            cut_short = stop_after is not None and len(report.failed) >= stop_after and report.ran < len(select)
            self._specimen = Specimen(targets, report.status.value, tuple(sorted(report.failed)), cut_short)
        return report

    def confirm(self, targets: tuple[Target, ...]) -> Proof:
        """Run the whole suite; raises `Dropped` where the corruption makes no task, or its original lies about."""
        started = time.perf_counter()
        try:
            proof = prove(
                self.library.mapped_intake,
                targets,
                self.desk.runner,
                min_failing=self.settings.min_failing,
                cancel=self.desk.cancel,
            )
        except NoTaskError as refusal:
            raise Dropped(REFUSALS[refusal.reason], refusal.message) from refusal
        finally:
            self._confirmations += 1
            self._confirming += time.perf_counter() - started
        leak = next(leaks_of(proof.tree, targets), None)
        if leak is not None:
            raise Dropped(Reason.LEAKS, leak)
        return proof

    def dropped(self, why: Dropped) -> Verdict:
        """Return the verdict on a candidate that came to nothing."""
        return self._verdict((self.candidate.name,), why.reason, why.detail, None)

    def kept(self, proof: Proof, provenance: Mapping[str, Any]) -> Verdict:
        """Return the verdict on a candidate whose corruption was proven."""
        told = proof.failures(Limits())
        missing = proof.failing - {result.id for result in proof.report.results.values()}
        kept = Kept(
            proof.targets,
            tuple(failure for failure in told if failure.id not in missing),
            tuple(sorted(missing)),
            proof.any_order,
            provenance,
        )
        return self._verdict(tuple(target.name for target in proof.targets), Reason.KEPT, "", kept)

    def _verdict(self, names: tuple[str, ...], reason: Reason, detail: str, kept: Kept | None) -> Verdict:
        cost = Cost(tuple(self._probes), self._warm, self._confirmations, round(self._confirming, 3))
        record = self.record if kept is None else None
        return Verdict(self.candidate.key, names, reason, detail, dict(self.fates), cost, kept, self._specimen, record)
