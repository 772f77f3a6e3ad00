"""Discovery mode by a model: one conversation a function, each submission tried on the tests that can see it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from gistpoint.core.chat import ChatProblem
from gistpoint.core.code.names import FunctionRef
from gistpoint.core.corruption.evidence import Evidence, is_good
from gistpoint.core.corruption.model_corruption import ModelCorruption, corrupt_by_model
from gistpoint.core.corruption.model_rounds import End, LoopSettings, Verdict
from gistpoint.core.corruption.model_rounds import Trial as Shown
from gistpoint.core.corruption.subtlety import subtlety
from gistpoint.core.errors import EndpointError
from gistpoint.core.generation.campaign.observing import evidence_of
from gistpoint.core.generation.campaign.trial import STOPPED, Dropped, Trial
from gistpoint.core.generation.campaign.verdicts import Reason
from gistpoint.core.generation.campaign.verdicts import Verdict as Decision
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.tasks.model import Failure, Target

_OF_THE_FUNCTION = (End.REJECTED, End.MALFORMED_REPLY)
"""Ends that can lie with one function, such as a text that is too long; on a first request they lie with all."""
_SHOWN_FAILURES = 2


def decide_by_model(trial: Trial) -> Decision:
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
            return Shown(Verdict.HANGS if hangs else Verdict.COULD_NOT_RUN, detail=report.reason)
        evidence = evidence_of(report, target, self._trial.library)
        self.evidence[target.corrupted] = evidence
        rated = subtlety(evidence, *self._trial.settings.band)
        shown = list(report.failed.items())[:_SHOWN_FAILURES]
        return Shown(
            Verdict.ACCEPTED,
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
