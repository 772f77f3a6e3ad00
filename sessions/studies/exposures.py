"""Records in a study's log what a person has seen in other studies that it declares, or read blind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gistpoint.core.study.ledger import Ledger, Person
from gistpoint.core.study.operations import Exposed, StudyOperationKind, person
from gistpoint.sessions.studies.erasing import LOG
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.store import StudyLog

READ_BLIND = "a function of it was read blind"


def other_studies(study: StudyFolder) -> dict[str, Path | None]:
    """Return the folders of `exposed_elsewhere` by the names given there; None for one that is not here."""
    named = {name: study.root / name for name in study.study.design.exposed_elsewhere}
    return {name: folder if (folder / LOG).is_dir() else None for name, folder in named.items()}


def record_exposures(study: StudyFolder, code: str) -> int:
    """Record which tasks of this study a person has seen elsewhere, and return how many are new.

    A person has seen the tasks begun in, or exposed by, other studies, and every task of which the person has
    read a corrupted function blind on this machine, in any version or task. Equal codes, and names of
    readers, are the same person. A study whose folder is missing is skipped; `study check` reports it.
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
    read = study.glances.read_by(code)
    tasks, functions = {task for task, _ in read}, {(found.source, found.function) for _, found in read}
    return {
        identity
        for identity, task in study.tasks.items()
        if identity in tasks or any((task.source, target) in functions for target in task.targets)
    }
