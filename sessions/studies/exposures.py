"""Records in a study's log which of its tasks a person has seen in other studies, or read blind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gistpoint.core.study.ledger import Ledger, Person
from gistpoint.core.study.operations import Exposed, StudyOperationKind, person
from gistpoint.sessions.studies.erasing import LOG
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.store import StudyLog

READ_BLIND = "one of its functions was read blind"


def other_studies(study: StudyFolder) -> dict[str, Path | None]:
    """Return the folders of the studies named in `exposed_elsewhere`, by name; None for a missing folder."""
    found: dict[str, Path | None] = {}
    for name in study.study.design.exposed_elsewhere:
        folder = study.root / name
        found[name] = folder if (folder / LOG).is_dir() else None
    return found


def record_exposures(study: StudyFolder, code: str) -> int:
    """Record which tasks of a study a person has seen elsewhere, and return how many are new.

    A person has seen the tasks that they began in other studies, or to which those studies record an
    exposure, and every task with a corrupted function that they read blind on this machine, in any version or
    task. Equal codes and names of readers mean the same person. A study whose folder is missing is skipped;
    `study check` reports it.
    """
    known = {fact.task for fact in study.ledger.person(code).exposures}
    new = 0
    for task in sorted(_read_blind(study, code) - known):
        study.record(code, person(code), StudyOperationKind.EXPOSED, Exposed(task=task, how=READ_BLIND))
        known.add(task)
        new += 1
    for folder in other_studies(study).values():
        if folder is None:
            continue
        elsewhere = Ledger(StudyLog(folder / LOG, study.clock).book.operations).person(code)
        for task in sorted((set(_seen(elsewhere)) & study.tasks.keys()) - known):
            data = Exposed(task=task, how=f"in the study in {folder.name}")
            study.record(code, person(code), StudyOperationKind.EXPOSED, data)
            known.add(task)
            new += 1
    return new


def _seen(who: Person) -> Iterator[str]:
    yield from (given.task for given in who.assignments if given.id in who.begun)
    yield from (fact.task for fact in who.exposures if fact.task)


def _read_blind(study: StudyFolder, code: str) -> set[str]:
    """Return the ids of the tasks that contain a function that a person has read blind."""
    read = study.glances.read_by(code)
    tasks = {task for task, _ in read}
    functions = {(found.source, found.function) for _, found in read}
    seen: set[str] = set()
    for identity, task in study.tasks.items():
        targets = {(task.source, target) for target in task.targets}
        if identity in tasks or not targets.isdisjoint(functions):
            seen.add(identity)
    return seen
