"""The phases of a study: creation, opening, amendments, and closing, after which outcomes are shown."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gistpoint import __version__
from gistpoint.core.demo.tasks import unpack_demo
from gistpoint.core.locations import Locations
from gistpoint.core.requests import Request
from gistpoint.core.study.operations import (
    ORGANISER,
    STUDY,
    Amended,
    PowerRecorded,
    StudyError,
    StudyOpened,
    StudyOperationKind,
)
from gistpoint.core.study.reading import FILE as STUDY_FILE
from gistpoint.core.study.soundness import faults_with_tasks
from gistpoint.sessions.studies.folder import StudyFolder, StudyTemplate, create_study
from gistpoint.sessions.tasks import TaskStore, read_set

DEMO = "demo"
"""The name of the task set that is part of gistpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStudy(Request):
    """A request to create a study."""

    tasks: str | None = None
    """The set of tasks to copy, or `demo`; None for none."""
    template: StudyTemplate = StudyTemplate.BASELINE


def new_study(folder: Path, locations: Locations, request: NewStudy) -> None:
    """Write a new study into a folder; with tasks of the demo, also unpack the demo.

    Raises `StudyError` if the folder is not empty or a task can't be used, and `TaskError` if the set is
    unknown.
    """
    demo = request.tasks == DEMO
    store = TaskStore(locations.tasks, demo=locations.demo)
    selected = None if demo or request.tasks is None else read_set([request.tasks], store)
    if selected is not None and selected.problems:
        raise StudyError(
            f"A task of the set can't be used: {selected.problems[0]}", hint="Leave it out of the set."
        )
    create_study(folder, request.template, selected.tasks if selected else (), demo=demo)
    if demo:
        list(unpack_demo(locations.demo))


def open_for_people(study: StudyFolder) -> None:
    """Freeze the declaration and let people take part.

    Raises `StudyError` if the study is already open or its tasks have faults.
    """
    if study.ledger.opened is not None:
        raise StudyError(
            f"{study.study.id} is already open.",
            hint=f"After a change: gistpoint study amend {study.named} --why '...'",
        )
    _require_tasks(study)
    record_opening(study, __version__)


def record_opening(study: StudyFolder, version: str) -> None:
    """Record that a study is open, with its protocol and the `version` of gistpoint."""
    data = StudyOpened(
        protocol=study.protocol,
        tasks=tuple(sorted(study.tasks)),
        version=version,
        exclude_on=study.study.quality.exclude_on,
    )
    study.record(ORGANISER, STUDY, StudyOperationKind.OPENED, data)


@dataclass(frozen=True, slots=True, kw_only=True)
class AmendStudy(Request):
    """A request to put a changed declaration in force, with the reason."""

    why: str
    tell: str = ""
    """The changes in words for participants; if it is empty, they are shown the reason."""


def amend_study(study: StudyFolder, request: AmendStudy) -> str:
    """Put the current declaration in force, and return the hash of the previous protocol.

    Raises `StudyError` if the study is not open, nothing has changed, the reason is empty, or tasks have
    faults.
    """
    require_opened(study)
    before, why = study.ledger.protocol, request.why.strip()
    if before == study.protocol and study.ledger.version in ("", __version__):
        raise StudyError(
            "Nothing that belongs to the protocol has changed.", hint=f"Edit {STUDY_FILE} or texts/ first."
        )
    if not why:
        raise StudyError("An amendment needs a reason.", hint="--why 'what was changed, and why'")
    _require_tasks(study)
    data = Amended(
        protocol=study.protocol,
        why=why,
        tell=request.tell.strip(),
        version=__version__,
        exclude_on=study.study.quality.exclude_on,
    )
    study.record(ORGANISER, STUDY, StudyOperationKind.AMENDED, data)
    return before


def close_study(study: StudyFolder) -> None:
    """Close a study, so that nobody can continue with it, and outcomes are shown.

    Raises `StudyError` unless it is open.
    """
    require_opened(study)
    if study.ledger.closed:
        raise StudyError(f"{study.study.id} is already closed.", hint=f"gistpoint study report {study.named}")
    study.record(ORGANISER, STUDY, StudyOperationKind.CLOSED)


def preregistration(study: StudyFolder) -> str:
    """Return the pre-registration of a study as Markdown. Raises `StudyError` if the study was opened."""
    from gistpoint.core.study.facts import preregistration_markdown  # loads what reports are made of

    if study.ledger.opened is not None:
        raise StudyError(
            f"{study.study.id} is already open: it is too late to register it.",
            hint=f"gistpoint study report {study.named} writes the methods.",
        )
    return preregistration_markdown(study.study, study.tasks, study.ledger.study.last(PowerRecorded))


def require_opened(study: StudyFolder) -> None:
    """Raise `StudyError` if a study has not been opened."""
    if study.ledger.opened is None:
        raise StudyError(f"{study.study.id} is not open yet.", hint=f"gistpoint study open {study.named}")


def _require_tasks(study: StudyFolder) -> None:
    problems = [*study.read.problems, *faults_with_tasks(study.study, study.tasks)]
    if problems:
        raise StudyError(problems[0], hint=f"gistpoint study check {study.named} shows everything.")


def outcomes_hidden(study: StudyFolder, *, unblind: bool) -> bool:
    """Return whether people's outcomes are hidden, as they are while a study of people is open.

    With `unblind`, they are shown, and the log records that somebody saw them before the end.
    """
    if study.study.simulated or study.ledger.opened is None or study.ledger.closed:
        return False
    if unblind:
        study.record(ORGANISER, STUDY, StudyOperationKind.UNBLINDED)
    return not unblind


def require_unblinded(study: StudyFolder, *, unblind: bool) -> None:
    """Raise `StudyError` if outcomes are hidden; see `outcomes_hidden`."""
    if outcomes_hidden(study, unblind=unblind):
        raise StudyError(
            f"{study.study.id} is still open: outcomes are hidden until it is closed.",
            hint=(
                f"gistpoint study close {study.named}, or --unblind, which the log and the report will"
                " mention."
            ),
        )
