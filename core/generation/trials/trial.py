"""The trial of one candidate: probes and whole suites with their costs, and the verdict."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from gistpoint.core.code.parsing import CodeError
from gistpoint.core.errors import InfrastructureError
from gistpoint.core.generation.candidates import CorruptionCandidate
from gistpoint.core.generation.context import Context
from gistpoint.core.generation.intake import (
    LOOK,
    RUNS_OF_ONE,
    CorruptionProof,
    NoGood,
    NoTaskError,
    prove,
)
from gistpoint.core.generation.progress import TrialProgress
from gistpoint.core.generation.settings import FaultSource
from gistpoint.core.generation.verdicts import CandidateVerdict, Cost, ProvenCorruption, Reason, Specimen
from gistpoint.core.outcomes import FREE, RunStatus
from gistpoint.core.ports import ProbeReport
from gistpoint.core.running import OnCount
from gistpoint.core.tasks.leaks import leaks_of
from gistpoint.core.tasks.model import Target, ToolLimits
from gistpoint.core.tasks.trees import corrupted_tree

REFUSALS: Mapping[NoGood, Reason] = {
    NoGood.TOO_FEW_FAILING: Reason.TOO_FEW_FAILING,
    NoGood.BREAKS_COLLECTION: Reason.BREAKS_COLLECTION,
    NoGood.HANGS: Reason.HANGS,
    NoGood.COULD_NOT_RUN: Reason.NO_RESULT,
    NoGood.NOT_REMOVABLE: Reason.NOT_REMOVABLE,
}
_REPORTED_S = 0.5
"""The seconds between two reports on corruptions that are being read; each report replaces a file."""
WHOLE_SUITE = "the whole suite"
"""Shown instead of a family while the whole suite runs."""
CONTROLS = "the controls"
"""Shown instead of a family while the controls are made."""
STOPPED = {RunStatus.TIMED_OUT: Reason.HANGS, RunStatus.OUT_OF_MEMORY: Reason.HANGS}


class CandidateDropped(Exception):
    """The candidate does not become a task, for a reason that is counted."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class CandidateTrial:
    """The probes and suites that are run for one candidate, with their costs."""

    def __init__(self, context: Context, candidate: CorruptionCandidate) -> None:
        self.library, self.settings, self.candidate = context.library, context.settings, candidate
        self.fates: Counter[str] = Counter()
        self.context = context
        self._began = time.monotonic()
        self._progress = TrialProgress("", candidate.name)
        self._probes: list[float] = []
        self._tests = 0
        self._clean: set[tuple[Target, ...]] = set()
        self._warm = 0
        self._confirmations, self._confirming = 0, 0.0
        self._reading = 0.0
        self._specimen: Specimen | None = None
        self.record: Mapping[str, Any] | None = None
        """The model's rounds on the candidate, which the verdict contains if nothing is kept."""
        self._chance = random.Random(f"specimen {candidate.key}")
        self._report_progress()

    def next(self, function: str, family: str) -> None:
        """Report that another corruption of `function` is being tried."""
        attempt = self._progress.attempt + 1 if function == self._progress.function else 1
        self._report_progress(function=function, attempt=attempt, family=family)

    @contextmanager
    def reading(self, what: str) -> Iterator[OnCount]:
        """Count the seconds of a block that reads corruptions without running tests.

        Yield a function that reports the numbers read and in total, and raises `CancelledError` when stopped.
        """
        began = time.monotonic()
        reported = float("-inf")

        def report(done: int, total: int) -> None:
            nonlocal reported
            self.context.run.check()
            now = time.monotonic()
            if now - reported >= _REPORTED_S:
                reported = now
                self._report_progress(family=f"{what}, {done} of {total}")

        self._report_progress(family=what)
        try:
            yield report
        finally:
            self._reading += time.monotonic() - began

    def count_outcome(self, fate: str) -> None:
        """Count the outcome of the last corruption."""
        self.fates[fate] += 1
        self._report_progress(latest=fate)

    def _report_progress(self, **changes: Any) -> None:
        seconds = round(time.monotonic() - self._began, 2)
        self._progress = replace(self._progress, tests=self._tests, seconds=seconds, **changes)
        self.context.board.post(self.candidate.key, self._progress)

    def probe(self, targets: tuple[Target, ...], stop_after: int | None = None) -> ProbeReport:
        """Run the tests that can see the targets, until `stop_after` have failed, and return the report.

        If a target does not fit its file, the report is `COULD_NOT_RUN`. Raises `InfrastructureError` if the
        sandbox fails, and `CancelledError` when stopped.
        """
        select = self.library.seeing(target.name for target in targets)
        started = time.perf_counter()
        try:
            report = self.context.prober.decide(
                targets, select, stop_after=stop_after, cancel=self.context.run.cancel
            )
        except CodeError as error:
            return ProbeReport(RunStatus.COULD_NOT_RUN, reason=str(error))
        self.context.run.check()
        if report.status in FREE:
            raise InfrastructureError(
                f"{targets[0].name} could not be tried. {report.reason}".strip(), hint=LOOK
            )
        self._probes.append(round(time.perf_counter() - started, 4))
        self._tests += report.ran
        self._warm += report.how == "warm"
        # A verdict that keeps nothing must not contain code of a person, who may be erased (decision 141).
        is_of_people = self.settings.source is FaultSource.ATTEMPTS
        if not is_of_people and self._chance.random() < 1 / len(self._probes):
            cut_short = (
                stop_after is not None and len(report.failed) >= stop_after and report.ran < len(select)
            )
            self._specimen = Specimen(targets, report.status.value, tuple(sorted(report.failed)), cut_short)
        return report

    def confirm(self, targets: tuple[Target, ...]) -> CorruptionProof:
        """Run the whole suite and return the proof.

        Raises `CandidateDropped` if the corruption can't become a task or the original is left in the tree,
        `InfrastructureError` if the sandbox fails, and `CancelledError` when stopped.
        """
        self.refuse_leak(targets)
        self._report_progress(family=WHOLE_SUITE)
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
        return proof

    def refuse_leak(self, targets: tuple[Target, ...]) -> None:
        """Raise `CandidateDropped` if the original of a target is left elsewhere in the tree."""
        if targets in self._clean:
            return
        leak = next(leaks_of(corrupted_tree(self.library.intake.repository.tree, targets), targets), None)
        if leak is not None:
            raise CandidateDropped(Reason.LEAKS, leak)
        self._clean.add(targets)

    def report_controls(self) -> None:
        """Report that the corruption is proven and its controls are being made."""
        self._report_progress(family=CONTROLS)

    def dropped(self, why: CandidateDropped) -> CandidateVerdict:
        """Return the verdict on a candidate that does not become a task."""
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
            {**provenance, "stratum": self.candidate.stratum} if self.candidate.stratum else provenance,
        )
        return self._verdict(tuple(target.name for target in proof.targets), Reason.KEPT, "", kept)

    def _verdict(
        self, names: tuple[str, ...], reason: Reason, detail: str, kept: ProvenCorruption | None
    ) -> CandidateVerdict:
        cost = Cost(
            tuple(self._probes), self._warm, self._confirmations, round(self._confirming, 3), self._tests
        )
        cost = replace(cost, reading=round(self._reading, 3))
        record = self.record if kept is None else None
        return CandidateVerdict(
            self.candidate.key, names, reason, detail, dict(self.fates), cost, kept, self._specimen, record
        )


def require_proof_by_one(trial: CandidateTrial, verdict: CandidateVerdict) -> None:
    """Raise `CandidateDropped` if a kept corruption makes only one test fail, and that does not prove it.

    The test has to enter a corrupted function, and to fail alone in every one of several runs. Its passes
    must also be confirmable, which is checked later.
    """
    kept = verdict.kept
    if kept is None or len(kept.failing_ids) > 1:
        return
    (test,) = kept.failing_ids
    if not any(test in trial.library.entering(target.name) for target in kept.targets):
        raise CandidateDropped(Reason.NOT_ABOUT_IT, test)
    for _ in range(RUNS_OF_ONE - 1):
        if frozenset(trial.probe(kept.targets).failed) != kept.failing_ids:
            raise CandidateDropped(Reason.SUITE_DIFFERS, "the only failing test does not always fail")
