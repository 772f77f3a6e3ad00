"""Searches for corruptions of several functions near each other that can be made together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import Any

from gistpoint.core.generation.candidates import LEAST, SUBTLE, in_reach
from gistpoint.core.generation.library import SourceLibrary
from gistpoint.core.generation.settings import FaultSource
from gistpoint.core.generation.trials.discovery import Rated, good_corruptions
from gistpoint.core.generation.trials.history import RatedHistory, commits_of, good_earlier
from gistpoint.core.generation.trials.model import corruptions_by_model
from gistpoint.core.generation.trials.trial import STOPPED, CandidateDropped, CandidateTrial
from gistpoint.core.generation.verdicts import CandidateVerdict, Reason
from gistpoint.core.outcomes import RunStatus
from gistpoint.core.tasks.model import Target
from gistpoint.core.text import plural

_SPARE = 1
"""The number of parts to find beyond those needed, so that the worst can be left out.

No extra parts are found for a chain, whose order matters, or with a model, which costs money.
"""


FindGood = Callable[[CandidateTrial, str, tuple[int, int]], Sequence[Rated]]
"""Returns the good corruptions of a function, best first; may raise `CandidateDropped` if there are none."""


def decide_group(trial: CandidateTrial) -> CandidateVerdict:
    """Return the verdict with a good corruption of each function of a group, proven together.

    Raises `CandidateDropped` if too few functions have one, or if the corruption of one function adds nothing
    to the others.
    """
    parts = _parts_of_group(trial)
    targets = tuple(part.target for part in parts)
    alone = [frozenset(part.report.failed) for part in parts]
    _require_each_to_count(trial, targets, alone)
    proof = trial.confirm(targets)
    for part, failed in zip(parts, alone, strict=True):
        if not failed:
            raise CandidateDropped(Reason.PART_SILENT, part.target.name)
        if len(proof.failing) <= len(failed):
            raise CandidateDropped(
                Reason.UNION_NOT_LARGER, f"{part.target.name} alone breaks {plural(len(failed), 'test')}"
            )
    names = tuple(target.name for target in targets)
    provenance: dict[str, Any] = {
        "parts": [part.provenance() for part in parts],
        "failing_alone": [len(failed) for failed in alone],
        **distances(trial.library, names),
    }
    return trial.kept(proof, provenance)


def _parts_of_group(trial: CandidateTrial) -> list[Rated]:
    if trial.settings.source is FaultSource.HISTORY:
        return _parts_of_commit(trial)
    find = corruptions_by_model if trial.settings.model else good_corruptions
    return _parts(trial, trial.candidate.partners, find)


def _parts_of_commit(trial: CandidateTrial) -> list[Rated]:
    """Return a good part of each function that one commit changed together with the first one.

    The commits are tried from the newest on (decision 142).
    """
    commits = {name: commits_of(trial, name) for name in (trial.candidate.name, *trial.candidate.partners)}
    why = CandidateDropped(Reason.NO_PARTNER, "no commit changed another function near enough")
    for commit in commits[trial.candidate.name]:
        partners = [name for name in trial.candidate.partners if commit in commits[name]]
        if not partners:
            continue
        try:
            return _parts(trial, partners, partial(_good_of_commit, commit))
        except CandidateDropped as refusal:
            why = refusal
    raise why


def _good_of_commit(
    commit: str, trial: CandidateTrial, name: str, band: tuple[int, int]
) -> Sequence[RatedHistory]:
    return good_earlier(trial, name, band, commit)


def _parts(trial: CandidateTrial, partners: Sequence[str], find: FindGood) -> list[Rated]:
    """Return a good part of the candidate's first function, and of partners near it.

    Raises `CandidateDropped` if there are too few.
    """
    candidate, library, rules = trial.candidate, trial.library, trial.settings.groups
    if not partners:
        raise CandidateDropped(Reason.NO_PARTNER, "no other candidate is near enough")
    parts: list[Rated] = []
    least = candidate.size if rules.sizes else LEAST
    spare = 0 if rules.chain or trial.settings.model else _SPARE
    left = [candidate.name, *partners]
    while len(parts) < candidate.size + spare:
        names = [part.target.name for part in parts]
        name = next((name for name in left if in_reach(library, rules, name, names)), None)
        if name is None:
            break
        left.remove(name)
        fitting = _fitting(trial, name, parts, find)
        if fitting is not None:
            parts.append(fitting)
        elif not parts:
            # A group is chosen around its first function; without it, the partners have nothing in common.
            raise CandidateDropped(Reason.NONE_GOOD, name)
    if len(parts) < least:
        raise CandidateDropped(Reason.NO_PARTNER, "no function near enough has a good corruption")
    return parts if rules.chain else best_parts(parts, candidate.size, least)


def _fitting(trial: CandidateTrial, name: str, parts: list[Rated], find: FindGood) -> Rated | None:
    """Return a corruption of a function that adds to the parts; None if there is none.

    Raises `CandidateDropped` if the first function of a group has no corruption, because then there is no
    group.
    """
    try:
        found = find(trial, name, trial.settings.part_band)
    except CandidateDropped:
        if not parts:
            raise
        return None
    return next((item for item in found if _adds(item, parts)), None)


def best_parts(parts: list[Rated], size: int, least: int = LEAST) -> list[Rated]:
    """Return up to `size` parts, namely those that readers are least likely to see.

    Weak parts are kept only as far as a group of `least` needs them. A part can be left out only if each of
    the others still adds a failing test.
    """
    chosen = [*parts]
    for worst in sorted(parts, key=lambda part: (-part.glance.value, part.subtlety.value)):
        others = [part for part in chosen if part is not worst]
        unwanted = len(chosen) > size or worst.subtlety.value < SUBTLE
        if (
            len(chosen) > least
            and unwanted
            and all(_adds(p, [q for q in others if q is not p]) for p in others)
        ):
            chosen = others
    return chosen[:size]


def _adds(item: Rated, parts: list[Rated]) -> bool:
    """Return whether a part and the others each break a test that the other side doesn't; True if alone."""
    failed = item.report.failed.keys()
    others = {id for part in parts for id in part.report.failed}
    return not parts or not (failed <= others or others <= failed)


def _require_each_to_count(
    trial: CandidateTrial, targets: tuple[Target, ...], alone: list[frozenset[str]]
) -> None:
    """Raise `CandidateDropped` if a function breaks nothing alone, or if nothing fails once it is repaired.

    It is also raised if a run with one function repaired hangs. A group of two is not run again: the probe of
    each function has shown that it breaks something when the other one is repaired.
    """
    if not all(alone):
        raise CandidateDropped(Reason.PART_SILENT)
    if len(targets) == LEAST:
        return
    for left_out in targets:
        others = tuple(target for target in targets if target is not left_out)
        report = trial.probe(others, stop_after=1)
        if report.status in STOPPED:
            raise CandidateDropped(STOPPED[report.status])
        if report.status is RunStatus.FINISHED and not report.failed:
            raise CandidateDropped(Reason.MASKED, f"no test fails after {left_out.name} is repaired")


def distances(library: SourceLibrary, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the shortest call path between every two functions as `paths`, and the `largest_distance`.

    Calls are followed in either direction; the distance is a number of calls.
    """
    paths = [library.reach.path(one, other) for one, other in combinations(names, 2)]
    return {"paths": [list(path) for path in paths], "largest_distance": max(len(path) - 1 for path in paths)}
