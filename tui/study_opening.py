"""Opening a study's folder that somebody has typed."""

from __future__ import annotations

from gistpoint.core.attempts.clock import SystemTime
from gistpoint.core.locations import Locations, path_of
from gistpoint.core.study.operations import ORGANISER, STUDY, StudyError, StudyOperationKind
from gistpoint.sessions.studies.folder import StudyFolder

FOLDER_HELP = "the study's folder"
"""What the command line says of the argument that names it."""


def open_study(name: str) -> StudyFolder:
    """Open the study in a folder with the user's clock and data. Raises `StudyError`."""
    return StudyFolder(path_of(name), Locations.of_user(), SystemTime())


def require_unblinded(study: StudyFolder, name: str, *, unblind: bool) -> None:
    """Refuse to tell outcomes of a study of people that is still open, unless that is asked for; then write it down.

    `name` is the study's folder as it was typed. Raises `StudyError`.
    """
    if study.study.simulated or study.ledger.opened is None or study.ledger.closed:
        return
    if not unblind:
        raise StudyError(
            f"{study.study.id} is still open: outcomes are hidden until it is closed.",
            hint=f"gistpoint study close {name}, or --unblind, which the log and the report will tell.",
        )
    study.record(ORGANISER, STUDY, StudyOperationKind.UNBLINDED)
