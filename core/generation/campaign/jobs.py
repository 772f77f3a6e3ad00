"""What a worker does: decide one candidate, or try one specimen on the whole suite. Jobs can be pickled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gistpoint.core.generation.campaign.by_model import decide_by_model
from gistpoint.core.generation.campaign.candidates import Candidate
from gistpoint.core.generation.campaign.controls import compare
from gistpoint.core.generation.campaign.corrupting import decide_discovery
from gistpoint.core.generation.campaign.desks import Place, desk_at
from gistpoint.core.generation.campaign.grouping import decide_group
from gistpoint.core.generation.campaign.removing import decide_removal
from gistpoint.core.generation.campaign.settings import CampaignMode
from gistpoint.core.generation.campaign.trial import Dropped, Trial
from gistpoint.core.generation.campaign.verdicts import Specimen, Verdict

DECIDE: Mapping[CampaignMode, Callable[[Trial], Verdict]] = {
    CampaignMode.REMOVE: decide_removal,
    CampaignMode.DISCOVERY: decide_discovery,
    CampaignMode.MULTI: decide_group,
}


def decide(place: Place, candidate: Candidate) -> Verdict:
    """Return what comes of a candidate: the same in every process, whatever was decided before."""
    with desk_at(place) as desk:
        trial = Trial(desk, candidate)
        try:
            return decide_by_model(trial) if place.settings.model else DECIDE[place.settings.mode](trial)
        except Dropped as why:
            return trial.dropped(why)


def control(place: Place, specimen: Specimen) -> dict[str, Any]:
    """Return what the whole suite says of a specimen, beside what the probe said."""
    with desk_at(place) as desk:
        return compare(desk, specimen)
