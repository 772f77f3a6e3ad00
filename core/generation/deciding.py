"""The verdict on a candidate, by the mode of its campaign."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gistpoint.core.generation.candidates import CorruptionCandidate
from gistpoint.core.generation.context import Context, opened
from gistpoint.core.generation.settings import CampaignMode
from gistpoint.core.generation.trials.discovery import decide_discovery
from gistpoint.core.generation.trials.groups import decide_group
from gistpoint.core.generation.trials.model import decide_by_model
from gistpoint.core.generation.trials.removing import decide_removal
from gistpoint.core.generation.trials.trial import CandidateDropped, CandidateTrial
from gistpoint.core.generation.verdicts import CandidateVerdict

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
            alone = candidate.size == 1 and bool(settings.groups.sizes)
            if settings.model and (alone or not settings.mode.in_groups):
                return decide_by_model(trial)
            return decide_discovery(trial) if alone else _WAYS[settings.mode](trial)
        except CandidateDropped as why:
            return trial.dropped(why)
