"""Writes a proven corruption as a task folder."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gistpoint import __version__
from gistpoint.core.code.index import index_source
from gistpoint.core.generation.intake import Intake
from gistpoint.core.generation.library import SourceLibrary
from gistpoint.core.generation.proof import CorruptionProof
from gistpoint.core.generation.settings import CampaignSettings
from gistpoint.core.generation.verdicts import ProvenCorruption
from gistpoint.core.kinds.folder import read_task, write_task
from gistpoint.core.kinds.repair.brief import template_for
from gistpoint.core.outcomes import Outcome, RunStatus, SuiteReport, TestResult
from gistpoint.core.tasks.brief import template_sha256
from gistpoint.core.tasks.budgets import DEFAULT_BUDGETS, SEVERAL_CORRUPTIONS_BUDGETS, Budgets
from gistpoint.core.tasks.documents import TASK_FILE
from gistpoint.core.tasks.identity import hash_of_ids, task_id
from gistpoint.core.tasks.model import Answer, Brief, Mode, Rules, Suite, Target, Task, ToolLimits
from gistpoint.core.tasks.trees import corrupted_tree
from gistpoint.core.trees import SourceTree, write_tar

_UNFINISHED = ".making-"
_STALE_S = 3600.0
"""A task is written in seconds: an hour-old folder was left by a program that was killed."""


def write_proven(
    intake: Intake,
    proof: CorruptionProof,
    mode: Mode,
    backend: str,
    into: Path,
    *,
    rules: Rules | None = None,
    budgets: Budgets | None = None,
    demo: bool = False,
    metrics: Mapping[str, Any] | None = None,
    provenance: Mapping[str, Any] | None = None,
    announce: Callable[[str], None] = lambda id: None,
) -> Task:
    """Write the task below `into`, in a folder named by its id, and return it; an existing one is kept.

    `announce` is called with the id of a new one just before it is there.
    """
    rules, limits = rules or Rules(), ToolLimits()
    several = len(proof.targets) > 1
    into.mkdir(parents=True, exist_ok=True)
    _sweep(into)
    folder = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=into))
    try:
        tree_sha256 = write_tar(proof.tree, folder / "workspace" / "tree.tar")
        environment, source = intake.repository.environment, intake.repository.source
        ids_sha256 = hash_of_ids(intake.passed)
        identity = task_id(
            mode=mode,
            source_name=source.name,
            source_revision=source.revision,
            tree_sha256=tree_sha256,
            targets=proof.targets,
            lock=environment.lock,
            build_steps=environment.build_steps,
            ids_sha256=ids_sha256,
        )
        task = Task(
            id=identity,
            mode=mode,
            source=replace(source, location=""),
            tree_sha256=tree_sha256,
            brief=_brief(intake, proof, mode, rules, limits),
            suite=Suite(
                tests=len(intake.passed),
                ids_sha256=ids_sha256,
                seconds=round(intake.seconds, 2),
                timeout_s=intake.timeout_s,
                deselected=intake.flaky,
                test_files=intake.test_files,
            ),
            environment=environment,
            budgets=budgets or (SEVERAL_CORRUPTIONS_BUDGETS if several else DEFAULT_BUDGETS),
            limits=limits,
            rules=rules,
            demo=demo,
            several=several,
            folder=folder,
        )
        entered = intake.test_map.entered if intake.test_map else {}
        baselines = (proof.baseline(intake, backend),)
        write_task(task, Answer(proof.targets, baselines, metrics or {}, provenance or {}, entered=entered))
        place = into / identity
        if not (place / TASK_FILE).is_file():
            announce(identity)
            folder.rename(place)
        return read_task(place)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_task(place: Path, in_use: Callable[[str], bool]) -> bool:
    """Remove a task's folder, unless somebody uses it; return whether it is gone."""
    if not place.is_dir():
        return True
    if in_use(place.name):
        return False
    away = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=place.parent)) / place.name
    place.rename(away)
    if in_use(place.name):  # begun in this moment
        away.rename(place)
        away.parent.rmdir()
        return False
    shutil.rmtree(away.parent, ignore_errors=True)
    return True


def _sweep(into: Path) -> None:
    for left in into.glob(f"{_UNFINISHED}*"):
        with contextlib.suppress(OSError):  # another process was first
            if time.time() - left.stat().st_mtime > _STALE_S:
                shutil.rmtree(left)


def _brief(intake: Intake, proof: CorruptionProof, mode: Mode, rules: Rules, limits: ToolLimits) -> Brief:
    template = template_for(mode, len(proof.targets), refused_costs_attempt=rules.refused_costs_attempt)
    brief = Brief(template, template_sha256(template), proof.failures(limits))
    if mode is Mode.REMOVE:
        target = proof.targets[0]
        signature, docstring = _header(intake.repository.tree, target)
        return replace(brief, target=target.name, signature=signature, docstring=docstring)
    return replace(brief, targets=len(proof.targets) if rules.tell_count else 0)


def _header(tree: SourceTree, target: Target) -> tuple[str, str]:
    definition = index_source(target.path, tree.read(target.path)).get(target.qualname)
    decorators = "".join(f"@{text}\n" for text in definition.decorators)
    return f"{decorators}{definition.signature}:", definition.docstring or ""


def write_kept(
    library: SourceLibrary,
    settings: CampaignSettings,
    kept: ProvenCorruption,
    into: Path,
    *,
    announce: Callable[[str], None] = lambda id: None,
) -> Task:
    """Write the task of a proven corruption below `into`; an existing one is kept. See `write_proven`."""
    return write_proven(
        library.mapped_intake,
        proof_of(library, kept),
        settings.mode.of_tasks,
        library.backend,
        into,
        rules=Rules(tell_count=settings.groups.tell_count, min_failing=settings.min_failing),
        metrics=_metrics(library, kept),
        provenance=_provenance(library, settings, kept),
        announce=announce,
    )


def proof_of(library: SourceLibrary, kept: ProvenCorruption) -> CorruptionProof:
    """Restore the proof from the stored verdict."""
    passed = library.intake.passed
    failing = frozenset(failure.id for failure in kept.failing) | frozenset(kept.missing)
    results = {id: TestResult(id, Outcome.PASSED) for id in sorted(passed - failing)}
    results.update({failure.id: TestResult(failure.id, Outcome.FAILED, 0.0, failure.text) for failure in kept.failing})
    report = SuiteReport(RunStatus.FINISHED, results)
    tree = corrupted_tree(library.intake.repository.tree, kept.targets)
    return CorruptionProof(kept.targets, tree, report, failing, kept.any_order)


def _metrics(library: SourceLibrary, kept: ProvenCorruption) -> dict[str, Any]:
    return {
        "functions": {target.name: library.metrics_of(target.name) for target in kept.targets},
        "population": len(library.rows),
    }


def _provenance(library: SourceLibrary, settings: CampaignSettings, kept: ProvenCorruption) -> dict[str, Any]:
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
