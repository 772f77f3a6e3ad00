"""What a worker does: decide one candidate, or try one specimen on the whole suite. Jobs can be pickled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gistpoint.core.cancel import CancelToken
from gistpoint.core.errors import InfrastructureError
from gistpoint.core.generation.campaign.bench import Bench
from gistpoint.core.generation.campaign.candidates import Candidate
from gistpoint.core.generation.campaign.controls import compare
from gistpoint.core.generation.campaign.corrupting import decide_discovery
from gistpoint.core.generation.campaign.grouping import decide_group
from gistpoint.core.generation.campaign.learning import LibraryFolder, read_library
from gistpoint.core.generation.campaign.removing import decide_removal
from gistpoint.core.generation.campaign.settings import CampaignMode, Settings
from gistpoint.core.generation.campaign.trial import Desk, Dropped, Trial
from gistpoint.core.generation.campaign.verdicts import Specimen, Verdict

STOP = CancelToken()
"""Stops what this process is deciding; set by whoever runs the process."""

DECIDE: Mapping[CampaignMode, Callable[[Trial], Verdict]] = {
    CampaignMode.REMOVE: decide_removal,
    CampaignMode.DISCOVERY: decide_discovery,
    CampaignMode.MULTI: decide_group,
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a job works: the folder of a library that is known, and what runs its tests."""

    folder: Path
    bench: Bench
    settings: Settings


def decide(place: Place, candidate: Candidate) -> Verdict:
    """Return what comes of a candidate: the same in every process, whatever was decided before."""
    desk = _desk(place)
    trial = Trial(desk, candidate)
    try:
        return DECIDE[place.settings.mode](trial)
    except Dropped as why:
        return trial.dropped(why)


def control(place: Place, specimen: Specimen) -> dict[str, Any]:
    """Return what the whole suite says of a specimen, beside what the probe said."""
    desk = _desk(place)
    return compare(desk, specimen)


_open: dict[Place, Desk] = {}


def _desk(place: Place) -> Desk:
    """Return this process's desk for a library; that of another library is cleared."""
    if place not in _open:
        close_desks()
        runner = place.bench.runner()
        try:
            library = read_library(LibraryFolder(place.folder), runner.backend.name)
        except FileNotFoundError as error:
            raise InfrastructureError(
                f"A worker does not find {place.folder}.",
                hint="Workers of a cluster need the cache folder of this machine under the same path.",
            ) from error
        _open[place] = Desk(library, place.settings, runner, place.bench.prober(library.intake), STOP)
    return _open[place]


def close_desks() -> None:
    """End what this process keeps running."""
    while _open:
        _open.popitem()[1].prober.close()
