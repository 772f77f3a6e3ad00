"""Searches for a usable corruption of a function with a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gistpoint.core.chat import ChatProblem
from gistpoint.core.code.names import FunctionRef
from gistpoint.core.corruption.corruptions import Corruption
from gistpoint.core.corruption.edits import edits_between
from gistpoint.core.corruption.evidence import Evidence, Subtlety, is_good, subtlety
from gistpoint.core.corruption.rounds import End, LoopSettings, ModelTrial, SubmissionVerdict
from gistpoint.core.errors import EndpointError
from gistpoint.core.generation.by_model import KIND, REWRITE, ModelCorruption, corrupt_by_model
from gistpoint.core.generation.spending import SetStoppedError
from gistpoint.core.generation.trials.discovery import Rated, as_json
from gistpoint.core.generation.trials.evidence import evidence_of
from gistpoint.core.generation.trials.trial import STOPPED, CandidateDropped, CandidateTrial
from gistpoint.core.generation.verdicts import CandidateVerdict, Reason
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.ports import ChatModel, ProbeReport
from gistpoint.core.tasks.model import Failure, Target
from gistpoint.core.text import plural

_OF_THE_FUNCTION = (End.REJECTED, End.MALFORMED_REPLY, End.CONTEXT_FULL)
"""Ends that a single function can cause, such as code that is too long.

On a first request, the endpoint is to blame.
"""
_SHOWN_FAILURES = 2


@dataclass(frozen=True, slots=True)
class RatedModelCorruption(Rated):
    """A corruption that a model submitted, with the conversation."""

    made: ModelCorruption

    def provenance(self) -> dict[str, Any]:
        """Return the provenance that a task stores."""
        return {**self.made.provenance(), "evidence": as_json(self.evidence), "good": self.good}


def decide_by_model(trial: CandidateTrial) -> CandidateVerdict:
    """Return the verdict with the model's best corruption, proven by the whole suite.

    Raises `CandidateDropped` if there is none, and `EndpointError` if the failure would affect every
    candidate.
    """
    item = corruptions_by_model(trial, trial.candidate.name, trial.settings.band)[0]
    proof = trial.confirm((item.target,))
    if proof.failing != frozenset(item.report.failed):
        differing = len(proof.failing ^ frozenset(item.report.failed))
        raise CandidateDropped(Reason.SUITE_DIFFERS, f"{plural(differing, 'test')} changed outcome")
    return trial.kept(proof, {"parts": [item.provenance()]})


def corruptions_by_model(
    trial: CandidateTrial, name: str, band: tuple[int, int]
) -> list[RatedModelCorruption]:
    """Return the model's corruptions of a function that can be kept, best first.

    Raises `CandidateDropped` if there is none, and `EndpointError` if every function would fail in the same
    way, or the set has spent its budget.
    """
    probing = ModelProbing(trial, band)
    model = asked_model(trial)
    loop = trial.settings.loop or LoopSettings.for_tasks(trial.settings.min_failing)
    made = corrupt_by_model(
        trial.library.intake,
        FunctionRef.parse(name),
        model,
        trial.context.runner,
        settings=replace(loop, min_failing=band[0], most_failing=band[1]),
        tests=trial.library.seeing((name,)),
        try_out=probing,
        terms=trial.context.terms,
        score=lambda target: trial.context.scorer.scores([target])[0],
        run=trial.context.run,
    )
    require_kept(trial, made)
    return [probing.rated(replace(made, result=result)) for result in made.result.in_turn]


def asked_model(trial: CandidateTrial) -> ChatModel:
    """Return the model of the set. Raises `SetStoppedError` if it is useless or the set has stopped."""
    model, spending = trial.context.model, trial.context.terms.spending
    assert model is not None
    if spending is not None:
        spending.check()
    return model


def require_kept(trial: CandidateTrial, made: ModelCorruption) -> None:
    """Count a conversation that has ended, and store its record in case the candidate is dropped.

    Raises `CandidateDropped` if nothing was kept of it, and `EndpointError` if every function would fail in
    the same way, or the set has spent its budget.
    """
    spending, kept = trial.context.terms.spending, made.result.kept
    trial.record = _with_record(trial.record, made.record())
    trial.fates.update(f"{made.kind}: {item.verdict.value}" for item in made.result.rounds)
    if kept is None and (stop := _stopping_error(made)) is not None:
        if spending is not None:
            spending.stop(stop)
        raise stop
    if spending is not None:
        spending.ended(str(made.function), made.result.fault, made.result.detail)
    if kept is None:
        raise CandidateDropped(Reason.NONE_GOOD, made.reason)


def _with_record(known: Mapping[str, Any] | None, record: dict[str, Any]) -> dict[str, Any]:
    """Return a candidate's record with another conversation; a group's record lists its parts."""
    if known is None:
        return record
    parts = known["parts"] if "parts" in known else [dict(known)]
    return {"kind": KIND, "parts": [*parts, record]}


def _stopping_error(made: ModelCorruption) -> EndpointError | None:
    """Return the error that stops the set if its endpoint or its cap ended the conversation; else None."""
    end, first = made.result.end, made.result.requests == 1
    if end is End.SET_CAP:
        return SetStoppedError(
            f"The spending limit is reached: {made.result.detail}",
            hint=(
                "The results so far are kept: run the same command with a larger --max-cost or"
                " --max-tokens to continue."
            ),
        )
    # The first request of a rewrite contains the function's whole file.
    is_long_file = made.kind == REWRITE and end is End.CONTEXT_FULL
    of_function = is_long_file or (end in _OF_THE_FUNCTION and not first)
    if end.value in set(ChatProblem) and not of_function:
        return EndpointError(
            f"The model no longer answers: {made.result.detail}",
            hint="The results so far are kept: run the same command again when the endpoint answers.",
        )
    return None


class ModelProbing:
    """A function that tries submissions with the prober, and keeps their results by corrupted text."""

    def __init__(self, trial: CandidateTrial, band: tuple[int, int]) -> None:
        self._trial, self._band = trial, band
        self._found: dict[str, tuple[ProbeReport, Evidence, Subtlety]] = {}

    def rated(self, made: ModelCorruption) -> RatedModelCorruption:
        """Return the kept submission of a conversation, with its results."""
        kept = made.result.kept
        assert kept is not None
        target, glance = kept.target, kept.appearance.glance
        assert target is not None
        assert glance is not None
        report, evidence, rated = self._found[target.corrupted]
        corruption = Corruption(target, edits_between(target.original, target.corrupted), (made.kind,), 1.0)
        return RatedModelCorruption(
            corruption, report, evidence, rated, glance, is_good(evidence, *self._band), made
        )

    def __call__(self, target: Target) -> ModelTrial:
        """Run the tests that can see a submission, and return the results."""
        self._trial.next(target.name, self._trial.settings.model)
        report = self._trial.probe((target,))
        if report.status is not RunStatus.FINISHED:
            hangs = STOPPED.get(report.status) is Reason.HANGS
            return ModelTrial(
                SubmissionVerdict.HANGS if hangs else SubmissionVerdict.COULD_NOT_RUN, detail=report.reason
            )
        evidence = evidence_of(report, target, self._trial.library)
        rated = subtlety(evidence, *self._band)
        self._found[target.corrupted] = report, evidence, rated
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
