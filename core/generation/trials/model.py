"""Whether a model finds a corruption of a function that can be kept."""

from __future__ import annotations

from typing import Any

from gistpoint.core.chat import ChatProblem
from gistpoint.core.code.names import FunctionRef
from gistpoint.core.corruption.evidence import Evidence, is_good, subtlety
from gistpoint.core.corruption.model import End, LoopSettings, ModelTrial, SubmissionVerdict
from gistpoint.core.errors import EndpointError
from gistpoint.core.generation.by_model import ModelCorruption, corrupt_by_model
from gistpoint.core.generation.trials.discovery import as_json
from gistpoint.core.generation.trials.evidence import evidence_of
from gistpoint.core.generation.trials.trial import STOPPED, CandidateDropped, CandidateTrial
from gistpoint.core.generation.verdicts import CandidateVerdict, Reason
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.tasks.model import Failure, Target

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
    kept = made.result.kept
    assert kept is not None
    assert kept.target is not None
    (glance,) = trial.context.scorer.scores([kept.target])
    good = is_good(evidence, *trial.settings.band)
    return {**made.provenance(), "glance": glance.to_json(), "evidence": as_json(evidence), "good": good}


class _Probing:
    """Tries submissions with the prober, and keeps the evidence by corrupted text."""

    def __init__(self, trial: CandidateTrial) -> None:
        self._trial = trial
        self.evidence: dict[str, Evidence] = {}

    def __call__(self, target: Target) -> ModelTrial:
        self._trial.next(target.name, self._trial.settings.model)
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
