"""Writes a proven corruption as a task folder."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gistpoint.core.attempts.budgets import DEFAULT_BUDGETS, SEVERAL_CORRUPTIONS_BUDGETS, Budgets
from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.code.index import index_source
from gistpoint.core.generation.intake import Intake
from gistpoint.core.generation.proof import Proof
from gistpoint.core.tasks.brief import template_for, template_sha256
from gistpoint.core.tasks.folder import TASK_FILE, read_task, write_task
from gistpoint.core.tasks.identity import hash_of_ids, task_id
from gistpoint.core.tasks.model import Answer, Baseline, Brief, Limits, Mode, Rules, Suite, Target, Task
from gistpoint.core.trees import SourceTree, write_tar

_UNFINISHED = ".making-"
_STALE_S = 3600.0
"""A task is written in seconds: what has stood for an hour was left by a program that was killed."""


def write_proven(
    intake: Intake,
    proof: Proof,
    mode: Mode,
    backend: str,
    into: Path,
    *,
    rules: Rules | None = None,
    budgets: Budgets | None = None,
    demo: bool = False,
    metrics: Mapping[str, Any] | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> Task:
    """Write the task below `into`, in a folder named by its id, and return it; one that is there already is kept."""
    rules, limits = rules or Rules(), Limits()
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
        baseline = Baseline(
            backend=backend,
            environment=sha256_of_json(sorted(environment.lock)),
            runs=intake.runs,
            collected=intake.collected,
            passed=intake.passed,
            passed_corrupted=proof.passed_corrupted & intake.passed,
            seconds=round(intake.seconds, 2),
            any_order=proof.any_order,
            protections={backend: intake.protection} if intake.protection else {},
        )
        entered = intake.test_map.entered if intake.test_map else {}
        write_task(task, Answer(proof.targets, (baseline,), metrics or {}, provenance or {}, entered=entered))
        place = into / identity
        if not (place / TASK_FILE).is_file():
            folder.rename(place)
        return read_task(place)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sweep(into: Path) -> None:
    for left in into.glob(f"{_UNFINISHED}*"):
        with contextlib.suppress(OSError):  # another process was first
            if time.time() - left.stat().st_mtime > _STALE_S:
                shutil.rmtree(left)


def _brief(intake: Intake, proof: Proof, mode: Mode, rules: Rules, limits: Limits) -> Brief:
    template = template_for(mode, len(proof.targets), refused_costs_attempt=rules.refused_costs_attempt)
    told = proof.failures(limits)
    brief = Brief(template, template_sha256(template), told)
    if mode is Mode.REMOVE:
        target = proof.targets[0]
        signature, docstring = _header(intake.repository.tree, target)
        return replace(brief, target=target.name, signature=signature, docstring=docstring)
    return replace(brief, targets=len(proof.targets) if rules.tell_count else 0)


def _header(tree: SourceTree, target: Target) -> tuple[str, str]:
    definition = index_source(target.path, tree.read(target.path)).get(target.qualname)
    decorators = "".join(f"@{text}\n" for text in definition.decorators)
    return f"{decorators}{definition.signature}:", definition.docstring or ""
