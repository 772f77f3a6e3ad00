"""Whether a single failing test proves a fault: it enters the function and always fails (decision 142)."""

from __future__ import annotations

from gistpoint.core.generation.intake import RUNS_OF_ONE
from gistpoint.core.generation.trials.trial import CandidateDropped, CandidateTrial
from gistpoint.core.generation.verdicts import CandidateVerdict, Reason


def require_proof_by_one(trial: CandidateTrial, verdict: CandidateVerdict) -> None:
    """Raise `CandidateDropped` if a kept corruption makes one test fail, and that does not prove it.

    The test has to enter a corrupted function, and to fail alone in every one of several runs. Whether passes
    can be confirmed, which it needs too, is found out later.
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
