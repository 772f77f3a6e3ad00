"""Several functions at once, near to each other on the call graph and proven together."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from gistpoint.core.generation.campaign.candidates import LEAST, in_reach
from gistpoint.core.generation.campaign.corrupting import Rated, good_corruptions
from gistpoint.core.generation.campaign.library import Library
from gistpoint.core.generation.campaign.trial import STOPPED, Dropped, Trial
from gistpoint.core.generation.campaign.verdicts import Reason, Verdict
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.tasks.model import Target


def decide_group(trial: Trial) -> Verdict:
    """Return what comes of a group: a good corruption of each function, proven together, or why there is none."""
    parts = _parts(trial)
    targets = tuple(part.target for part in parts)
    alone = [frozenset(part.report.failed) for part in parts]
    _require_each_to_count(trial, targets, alone)
    proof = trial.confirm(targets)
    for part, failed in zip(parts, alone, strict=True):
        if not failed:
            raise Dropped(Reason.PART_SILENT, part.target.name)
        if len(proof.failing) <= len(failed):
            raise Dropped(Reason.UNION_NOT_LARGER, f"{part.target.name} alone breaks {len(failed)} tests")
    names = tuple(target.name for target in targets)
    provenance: dict[str, Any] = {
        "parts": [part.provenance() for part in parts],
        "failing_alone": [len(failed) for failed in alone],
        **distances(trial.library, names),
    }
    return trial.kept(proof, provenance)


def _parts(trial: Trial) -> list[Rated]:
    candidate, library = trial.candidate, trial.library
    if not candidate.partners:
        raise Dropped(Reason.NO_PARTNER, "no other candidate is near enough")
    parts: list[Rated] = []
    for name in (candidate.name, *candidate.partners):
        if len(parts) == candidate.size:
            break
        if not in_reach(library, name, [part.target.name for part in parts]):
            continue
        try:
            found = good_corruptions(trial, name, trial.settings.part_band)
        except Dropped:
            found = []
        fitting = next((item for item in found if _adds(item, parts)), None)
        if fitting is not None:
            parts.append(fitting)
        elif not parts:
            raise Dropped(Reason.NONE_GOOD, name)
    if len(parts) < LEAST:
        raise Dropped(Reason.NO_PARTNER, "no function near enough has a good corruption")
    return parts


def _adds(item: Rated, parts: list[Rated]) -> bool:
    """Whether a part breaks something that the others do not, and they something that it does not."""
    failed = item.report.failed.keys()
    others = {id for part in parts for id in part.report.failed}
    return not parts or not (failed <= others or others <= failed)


def _require_each_to_count(trial: Trial, targets: tuple[Target, ...], alone: list[frozenset[str]]) -> None:
    """Drop the group where repairing one function mends everything, on the tests that can see the others.

    That each breaks something when all others are repaired is what its own probe has shown.
    """
    if not all(alone):
        raise Dropped(Reason.PART_SILENT)
    if len(targets) == LEAST:
        return
    for left_out in targets:
        others = tuple(target for target in targets if target is not left_out)
        report = trial.probe(others, stop_after=1)
        if report.status in STOPPED:
            raise Dropped(STOPPED[report.status])
        if report.status is RunStatus.FINISHED and not report.failed:
            raise Dropped(Reason.MASKED, f"with {left_out.name} repaired no test fails")


def distances(library: Library, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the shortest paths of calls, in either direction, between every two functions, and the longest of them."""
    paths = [library.reach.path(one, other) for one, other in combinations(names, 2)]
    return {"paths": [list(path) for path in paths], "largest_distance": max(len(path) - 1 for path in paths)}
