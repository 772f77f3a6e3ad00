"""From a verdict to a task on the disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gistpoint import __version__
from gistpoint.core.generation.campaign.library import Library
from gistpoint.core.generation.campaign.settings import CampaignMode, Settings
from gistpoint.core.generation.campaign.verdicts import Kept
from gistpoint.core.generation.making import write_proven
from gistpoint.core.generation.proof import Proof, corrupted_tree
from gistpoint.core.outcomes import Outcome, RunStatus, SuiteReport, TestResult
from gistpoint.core.tasks.model import Mode, Rules, Task


def write_kept(library: Library, settings: Settings, kept: Kept, into: Path) -> Task:
    """Write the task of a proven corruption below `into`; one that is there already is kept."""
    mode = Mode.REMOVE if settings.mode is CampaignMode.REMOVE else Mode.DISCOVERY
    return write_proven(
        library.mapped_intake,
        proof_of(library, kept),
        mode,
        library.backend,
        into,
        rules=Rules(min_failing=settings.min_failing),
        metrics=_metrics(library, kept),
        provenance=_provenance(library, settings, kept),
    )


def proof_of(library: Library, kept: Kept) -> Proof:
    """Return the proof that a verdict tells of, put together again."""
    passed = library.intake.passed
    failing = frozenset(failure.id for failure in kept.failing) | frozenset(kept.missing)
    results = {id: TestResult(id, Outcome.PASSED) for id in sorted(passed - failing)}
    results.update({failure.id: TestResult(failure.id, Outcome.FAILED, 0.0, failure.text) for failure in kept.failing})
    report = SuiteReport(RunStatus.FINISHED, results)
    tree = corrupted_tree(library.intake.repository.tree, kept.targets)
    return Proof(kept.targets, tree, report, failing, kept.any_order)


def _metrics(library: Library, kept: Kept) -> dict[str, Any]:
    return {
        "functions": {target.name: library.metrics_of(target.name) for target in kept.targets},
        "population": len(library.rows),
    }


def _provenance(library: Library, settings: Settings, kept: Kept) -> dict[str, Any]:
    return {
        **kept.provenance,
        "gistpoint": __version__,
        "campaign": settings.to_json(),
        "map": {
            "functions": len(library.test_map.entered),
            "tests": len(library.intake.passed),
            "entering": {target.name: len(library.entering(target.name)) for target in kept.targets},
        },
        "stars": library.stars,
    }
