"""Writes proven corruptions as task folders, for single tasks and for a campaign's growing set."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gistpoint import __version__
from gistpoint.core.code.index import index_source
from gistpoint.core.confirmation.controls import CONTROLS_FILE, write_controls
from gistpoint.core.confirmation.model import Controls
from gistpoint.core.generation.intake import CorruptionProof, Intake
from gistpoint.core.generation.library import SourceLibrary
from gistpoint.core.generation.progress import KeptTask
from gistpoint.core.generation.removal import is_class
from gistpoint.core.generation.settings import CampaignSettings
from gistpoint.core.generation.verdicts import (
    READER,
    CandidateVerdict,
    ProvenCorruption,
    StateFile,
    glance_of,
)
from gistpoint.core.kinds.folder import folders_of_content, put_provenance, read_task, write_task
from gistpoint.core.kinds.titles import author_title
from gistpoint.core.outcomes import Outcome, RunStatus, SuiteReport, TestResult
from gistpoint.core.tasks.brief import template_sha256
from gistpoint.core.tasks.budgets import DEFAULT_BUDGETS, SEVERAL_CORRUPTIONS_BUDGETS, Budgets
from gistpoint.core.tasks.documents import TASK_FILE
from gistpoint.core.tasks.identity import (
    commitment,
    hash_of_ids,
    new_secret,
    public_source,
    salted_id,
    seal,
    task_id,
)
from gistpoint.core.tasks.model import (
    CANARY,
    Answer,
    Brief,
    Mode,
    Rules,
    Seal,
    Source,
    Suite,
    Target,
    Task,
    ToolLimits,
)
from gistpoint.core.tasks.trees import corrupted_tree
from gistpoint.core.text import failing_in_words
from gistpoint.core.trees import SourceTree, write_tar
from gistpoint.core.unfinished import made_in

ControlsOf = Callable[[Task, Answer], Controls | None]
"""Returns the controls of a task whose folder is being written; None if no controls are made."""


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
    secret: bytes | None = None,
    announce: Callable[[str], None] = lambda id: None,
    controls_of: ControlsOf = lambda task, answer: None,
) -> Task:
    """Write the task below `into`, in a folder named by its id, and return it.

    An existing task with the same content is kept and returned instead. In discovery, the id has a salt made
    from `secret`, by default a new one. For a new task, `controls_of` is called with the written task, and
    `announce(id)` just before its folder appears.
    """
    rules, limits = rules or Rules(), ToolLimits()
    several = len(proof.targets) > 1
    into.mkdir(parents=True, exist_ok=True)
    folder = made_in(into, "making")
    try:
        tree_sha256 = write_tar(proof.tree, folder / "workspace" / "tree.tar")
        environment, source = intake.repository.environment, intake.repository.source
        ids_sha256 = hash_of_ids(intake.passed)
        content = task_id(
            mode=mode,
            source_name=source.name,
            source_revision=source.revision,
            tree_sha256=tree_sha256,
            targets=proof.targets,
            lock=environment.lock,
            build_steps=environment.build_steps,
            ids_sha256=ids_sha256,
            image=environment.image,
        )
        if known := next(folders_of_content(into, content), None):
            return read_task(known)
        salted = mode == Mode.DISCOVERY
        named = (
            _task_identity(source, content, secret or new_secret())
            if salted
            else _TaskIdentity(content, source)
        )
        task = Task(
            id=named.id,
            mode=mode,
            source=replace(named.source, location=""),
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
            salt_sha256=commitment(named.seal.salt) if named.seal else "",
            folder=folder,
        )
        entered = intake.test_map.entered if intake.test_map else {}
        baselines = (proof.baseline(intake, backend),)
        answer = Answer(
            proof.targets, baselines, metrics or {}, provenance or {}, entered=entered, seal=named.seal
        )
        write_task(task, answer)
        place = into / task.id
        _add_controls(task, answer, place, controls_of)
        if not (place / TASK_FILE).is_file():
            announce(task.id)
            folder.rename(place)
        return read_task(place)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class _TaskIdentity:
    """The id of a task, its source in the public part, and the hidden parts of a salted id."""

    id: str
    source: Source
    seal: Seal | None = None


def _task_identity(source: Source, content: str, secret: bytes) -> _TaskIdentity:
    sealed, public = seal(secret, content, source), public_source(secret, source)
    return _TaskIdentity(salted_id(sealed, public), public, sealed)


def _add_controls(task: Task, answer: Answer, place: Path, controls_of: ControlsOf) -> None:
    """Write the controls of a new task into its folder, or into `place` if that exists without controls."""
    known = (place / TASK_FILE).is_file()
    if known and (place / CONTROLS_FILE).exists():
        return
    made = controls_of(task, answer)
    if made is not None:
        write_controls(place if known else task.folder, made, CANARY)


def remove_task(place: Path, in_use: Callable[[str], bool]) -> bool:
    """Remove a task's folder from the tasks unless the task is in use; return whether the folder is gone.

    Files that can't be deleted remain in a temporary folder.
    """
    if not place.is_dir():
        return True
    if in_use(place.name):
        return False
    away = made_in(place.parent, "making") / place.name
    place.rename(away)
    if in_use(place.name):  # somebody has just begun an attempt
        away.rename(place)
        away.parent.rmdir()
        return False
    shutil.rmtree(away.parent, ignore_errors=True)
    return True


TEMPLATES = {
    "remove": "repair-remove-2",
    "remove_class": "repair-remove-class-2",
    "discovery": "repair-discovery-2",
    "several": "repair-several-2",
}
REFUSALS_COST = {
    "remove": "repair-remove-refusals-cost-2",
    "remove_class": "repair-remove-class-refusals-cost-2",
    "discovery": "repair-discovery-refusals-cost-2",
    "several": "repair-several-refusals-cost-2",
}
"""Templates for tasks with the rule `refused_costs_attempt`, with a different sentence on refusals."""


def template_for(
    mode: Mode, targets: int, *, of_class: bool = False, refused_costs_attempt: bool = False
) -> str:
    """Return the name of the newest template for a mode and a number of targets.

    `of_class` is true if the bodies in a class were removed. With `refused_costs_attempt`, the text says that
    a refused submission costs an attempt.
    """
    named = "several" if targets > 1 else mode.value
    if of_class:  # only removal has classes as targets
        named = "remove_class"
    return (REFUSALS_COST if refused_costs_attempt else TEMPLATES)[named]


def _brief(intake: Intake, proof: CorruptionProof, mode: Mode, rules: Rules, limits: ToolLimits) -> Brief:
    template = template_for(
        mode,
        len(proof.targets),
        of_class=is_class(proof.targets[0]),
        refused_costs_attempt=rules.refused_costs_attempt,
    )
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
    secret: bytes | None = None,
    announce: Callable[[str], None] = lambda id: None,
    controls: Controls | None = None,
) -> Task:
    """Return the task of a proven corruption, written below `into` unless it exists; see `write_proven`."""
    return write_proven(
        library.mapped_intake,
        proof_of(library, kept),
        settings.mode.of_tasks,
        library.backend,
        into,
        rules=Rules(tell_count=settings.groups.tell_count, min_failing=settings.min_failing),
        metrics=_metrics(library, kept),
        provenance=_provenance(library, settings, kept),
        secret=secret,
        announce=announce,
        controls_of=lambda task, answer: controls,
    )


def proof_of(library: SourceLibrary, kept: ProvenCorruption) -> CorruptionProof:
    """Return the proof in a stored verdict; only the first few failing tests have messages."""
    passed = library.intake.passed
    failing = frozenset(failure.id for failure in kept.failing) | frozenset(kept.missing)
    results = {id: TestResult(id, Outcome.PASSED) for id in sorted(passed - failing)}
    results.update(
        {failure.id: TestResult(failure.id, Outcome.FAILED, 0.0, failure.text) for failure in kept.failing}
    )
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


# The tasks of a running campaign on disk: written as soon as they are proven, replaced by better ones


InUse = Callable[[str], bool]
"""Returns whether the task with an id is in use; such a task is never removed."""


@dataclass
class WrittenSet:
    """The task folders of a running campaign; implements `CampaignTasks` of `generation/campaign.py`.

    The set is complete after every verdict, so later verdicts replace some of its tasks (decision 92). Only
    tasks of this campaign are removed, and none of a finished run. The state names each task before it is
    written, so that the next run removes what a killed run left.
    """

    library: SourceLibrary
    settings: CampaignSettings
    folder: Path
    state: StateFile
    note: Callable[[str], None]
    in_use: InUse = lambda id: False
    present: dict[str, KeptTask] = field(default_factory=dict)
    """The current tasks by the key of their verdict, in the order of their acceptance."""
    read: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """The results of a blind reader's readings, by the id of the task."""

    def become(self, kept: Sequence[CandidateVerdict]) -> None:
        """Write the new tasks, then remove the tasks that they replace."""
        keys = {verdict.key for verdict in kept}
        leaving = [task for key, task in self.present.items() if key not in keys]
        before, self.present = self.present, {}
        for verdict in kept:
            known = before.get(verdict.key)
            if known is None:
                known = self._write(verdict, leaving[0].id if leaving else "")
                leaving = leaving[1:]
            self.present[verdict.key] = known
            self._record_readings(known.id, verdict)
        current = {task.id for task in self.present.values()}
        for id in sorted(self.state.provisional - current):
            self._withdraw(id)

    def settle(self) -> None:
        """Make the current tasks final: no later run of the campaign removes them."""
        self.state.settle()

    def _write(self, verdict: CandidateVerdict, replaces: str) -> KeptTask:
        assert verdict.kept is not None
        task = write_kept(
            self.library,
            self.settings,
            verdict.kept,
            self.folder,
            secret=self.state.secret,
            announce=self.state.add_task,
            controls=verdict.controls,
        )
        functions = tuple(target.name for target in verdict.kept.targets)
        failing = len(verdict.kept.failing) + len(verdict.kept.missing)
        instead = f", instead of {replaces[:12]}" if replaces else ""
        tests = failing_in_words(failing, len(self.library.intake.passed))
        title = author_title(task)
        self.note(f"  {task.short_id} {title}: {', '.join(functions)}, {tests}{instead}")
        return KeptTask(task.id, functions, failing, glance_of(verdict), replaces, title)

    def _record_readings(self, id: str, verdict: CandidateVerdict) -> None:
        """Write the results of a blind reader's readings into the task's answer, and add them to `read`."""
        assert verdict.kept is not None
        record = verdict.kept.provenance.get(READER)
        if record is not None and self.read.get(id) != record:
            put_provenance(read_task(self.folder / id, verify=False), {READER: record})
            self.read[id] = record

    def _withdraw(self, id: str) -> None:
        removed = remove_task(self.folder / id, self.in_use)
        self.state.drop_task(id)
        if not removed:
            self.note(
                f"  {id[:12]} was replaced by a better one, but is kept because somebody has worked on it"
            )
