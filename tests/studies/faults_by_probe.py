"""Draws faults of analysed libraries with the tests that can detect them, without running whole suites.

    python tests/studies/faults_by_probe.py HOME --from history|operators [--seconds 240] [--seed 1]
        [--max-glance SHARE] [--most N]

HOME is a GISTPOINT_HOME whose libraries were analysed by `gistpoint task generate`, for the history with
`--from history`. Functions are tried in a random order by the search of `task generate`. The best good
corruption of each is written to HOME/probed/LIBRARY-SOURCE.jsonl, in the form of a campaign's file, if the
same tests fail again and pass on the original. Further steps of making a task are left out: the whole suite,
the five runs of a single failing test, and the controls. A few of these corruptions would therefore not
become tasks. `tests/studies/blind_packets.py` shows them to readers.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from dataclasses import replace
from pathlib import Path

from studies.glance_truth import harness

from gistpoint.core.errors import InfrastructureError
from gistpoint.core.generation.candidates import CorruptionCandidate
from gistpoint.core.generation.context import Context
from gistpoint.core.generation.library import SourceLibrary, read_library
from gistpoint.core.generation.removal import MIN_LINES, definitions
from gistpoint.core.generation.settings import CampaignMode, CampaignSettings, FaultSource
from gistpoint.core.generation.trials.discovery import Rated, good_corruptions
from gistpoint.core.generation.trials.history import good_earlier
from gistpoint.core.generation.trials.trial import CandidateDropped, CandidateTrial
from gistpoint.core.generation.verdicts import CandidateVerdict, ProvenCorruption, Reason
from gistpoint.core.tasks.model import Failure


def functions(library: SourceLibrary, chance: random.Random) -> list[str]:
    """Return the functions that a test enters, in a random order, those that run at import last.

    Functions with fewer than `MIN_LINES` lines are left out.
    """
    found = [
        str(one.ref)
        for one in definitions(library.intake.repository.tree, library.test_files)
        if one.end_line - one.def_line >= MIN_LINES and library.entering(str(one.ref))
    ]
    chance.shuffle(found)
    return sorted(found, key=lambda name: name in library.test_map.at_import)


def good_of(trial: CandidateTrial) -> list[Rated]:
    """Return the good corruptions of a function, subtlest first."""
    name, band = trial.candidate.name, trial.settings.band
    if trial.settings.source is FaultSource.HISTORY:
        return [*sorted(good_earlier(trial, name, band), key=lambda item: len(item.signs))]
    return good_corruptions(trial, name, band)


def _require_steady(trial: CandidateTrial, best: Rated) -> None:
    """Raise `CandidateDropped` unless the same tests fail again, and none with the original."""
    target = best.target
    again = trial.probe((target,))
    before = trial.probe((replace(target, corrupted=target.original),))
    if again.failed.keys() != best.report.failed.keys() or before.failed:
        raise CandidateDropped(Reason.SUITE_DIFFERS, f"{sorted(before.failed)[:3]} fail before")


def decided(trial: CandidateTrial) -> CandidateVerdict:
    """Return the verdict of the probes alone."""
    candidate = trial.candidate
    try:
        good = good_of(trial)
        if not good:
            raise CandidateDropped(Reason.NONE_GOOD)
        trial.refuse_leak((good[0].target,))
        _require_steady(trial, good[0])
    except CandidateDropped as why:
        fates = dict(trial.fates)
        return CandidateVerdict(candidate.key, (candidate.name,), why.reason, str(why)[:200], fates)
    best = good[0]
    failing = tuple(Failure(id, "") for id in sorted(best.report.failed))
    provenance = {"parts": [best.provenance()], "proof": "probe"}
    kept = ProvenCorruption((best.target,), failing, (), False, provenance)
    return CandidateVerdict(candidate.key, (candidate.name,), Reason.KEPT, "", dict(trial.fates), kept=kept)


def draw(folder: Path, library: SourceLibrary, options: argparse.Namespace) -> None:
    """Try functions of one library until the time is up or enough are kept, continuing an earlier call."""
    source = library.intake.repository.source
    place = options.home / "probed" / f"{source.name}-{options.source}.jsonl"
    place.parent.mkdir(exist_ok=True)
    settings = CampaignSettings(
        CampaignMode.DISCOVERY,
        seed=options.seed,
        min_failing=1,
        max_glance=options.max_glance,
        source=FaultSource(options.source),
    )
    if not place.exists():
        about = {"source": [source.kind, source.name, source.revision], "settings": settings.deciding()}
        place.write_text(json.dumps(about) + "\n", "utf-8")
    known = {json.loads(line).get("key") for line in place.read_bytes().splitlines()}
    context = Context(folder, harness(), settings, learned=library)
    began, kept, tried = time.monotonic(), 0, 0
    for name in functions(library, random.Random(options.seed)):
        if time.monotonic() - began > options.seconds or kept == options.most:
            break
        if name in known:
            continue
        try:
            verdict = decided(CandidateTrial(context, CorruptionCandidate(name, name)))
        except InfrastructureError as error:
            print(f"{name}: {error}", flush=True)
            continue
        tried, kept = tried + 1, kept + (verdict.kept is not None)
        with place.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"type": "verdict", **verdict.to_json()}) + "\n")
    context.prober.close()
    print(
        f"{source.name} {options.source}: {kept} of {tried} in {time.monotonic() - began:.0f} s", flush=True
    )


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("home", type=Path)
    parser.add_argument("--from", dest="source", choices=("history", "operators"), required=True)
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--most", type=int, default=40)
    parser.add_argument("--max-glance", type=float)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    backend = harness().runner().backend.name
    for folder in sorted((options.home / "cache" / "libraries").iterdir()):
        try:
            library = read_library(folder, backend)
        except (FileNotFoundError, ValueError):
            continue
        draw(folder, library, options)


if __name__ == "__main__":
    main()
