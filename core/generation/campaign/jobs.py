"""What a worker does: decide one candidate, or try one specimen on the whole suite. Jobs can be pickled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gistpoint.core.cancel import CancelToken
from gistpoint.core.errors import InfrastructureError
from gistpoint.core.generation.campaign.bench import Bench
from gistpoint.core.generation.campaign.candidates import Candidate
from gistpoint.core.generation.campaign.controls import compare
from gistpoint.core.generation.campaign.deciding import decide_by_model, decide_discovery, decide_group, decide_removal
from gistpoint.core.generation.campaign.learning import LibraryFolder, read_library
from gistpoint.core.generation.campaign.settings import CampaignMode, Settings
from gistpoint.core.generation.campaign.trial import Desk, Dropped, Trial
from gistpoint.core.generation.campaign.verdicts import Specimen, Verdict


@dataclass(frozen=True, slots=True)
class Place:
    """Where a job works: the folder of a library that is known, and what runs its tests. It can be pickled."""

    folder: Path
    bench: Bench
    settings: Settings


@dataclass
class _Open:
    place: Place
    desk: Desk
    busy: threading.Lock = field(default_factory=threading.Lock)

    def close(self) -> None:
        """Stop what is being decided, and end what is kept running."""
        self.desk.cancel.cancel()
        with self.busy:
            self.desk.prober.close()


_open: dict[int, _Open] = {}
_guard = threading.Lock()


@contextmanager
def desk_at(place: Place) -> Iterator[Desk]:
    """Yield this thread's desk for a library; that of another library is closed.

    Raises `InfrastructureError` where this machine does not have the library.
    """
    thread = threading.get_ident()
    with _guard:
        mine = _open.get(thread)
    if mine is None or mine.place != place or mine.desk.cancel.cancelled:
        if mine is not None:
            mine.close()
        mine = _Open(place, _new_desk(place))
        with _guard:
            _open[thread] = mine
    with mine.busy:
        yield mine.desk


def _new_desk(place: Place) -> Desk:
    runner = place.bench.runner()
    try:
        library = read_library(LibraryFolder(place.folder), runner.backend.name)
    except FileNotFoundError as error:
        raise InfrastructureError(
            f"A worker does not find {place.folder}.",
            hint="Workers of a cluster need the cache folder of this machine under the same path.",
        ) from error
    model = place.bench.model(place.settings.model) if place.settings.model else None
    return Desk(library, place.settings, runner, place.bench.prober(library), CancelToken(), model)


def close_desks() -> None:
    """Stop what any thread of this process is deciding, and end what is kept running for it."""
    with _guard:
        desks = list(_open.values())
        _open.clear()
    for desk in desks:
        desk.close()


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
