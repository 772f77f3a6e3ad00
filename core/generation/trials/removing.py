"""Whether the body of a function can be deleted for a task."""

from __future__ import annotations

from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.splice import remove_body
from gistpoint.core.errors import SourceError
from gistpoint.core.generation.intake import NoTaskError
from gistpoint.core.generation.removal import removal_target
from gistpoint.core.generation.trials.trial import STOPPED, CandidateDropped, CandidateTrial
from gistpoint.core.generation.verdicts import CandidateVerdict, Reason
from gistpoint.core.outcomes import RunStatus


def decide_removal(trial: CandidateTrial) -> CandidateVerdict:
    """Return the verdict on deleting the body of the candidate.

    Every test that can see it is run, although fewer would do: one that hangs costs the whole suite its time limit.
    """
    library, name, needed = trial.library, trial.candidate.name, trial.settings.min_failing
    try:
        target = removal_target(library.intake.repository.tree, name, library.test_files)
    except (NoTaskError, SourceError, CodeError) as error:
        raise CandidateDropped(Reason.NOT_REMOVABLE, str(error)) from error
    trial.next(name, remove_body.__name__)
    trial.refuse_leak((target,))
    report = trial.probe((target,))
    if report.status in STOPPED:
        raise CandidateDropped(STOPPED[report.status])
    if report.status is RunStatus.FINISHED and len(report.failed) < needed:
        raise CandidateDropped(Reason.TOO_FEW_FAILING, f"{len(report.failed)} of {report.ran} tests fail")
    proof = trial.confirm((target,))
    entering = len(library.entering(name))
    return trial.kept(proof, {"corruption": remove_body.__name__, "entering": entering})
