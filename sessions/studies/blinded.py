"""Decides whether the study of an attempt hides outcomes, and records where studies' folders are."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from gistpoint.core.errors import UserError
from gistpoint.core.locations import Locations, read_regular
from gistpoint.core.logs import replace_file
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.study.reading import FILE as STUDY_FILE
from gistpoint.sessions.studies.course import outcomes_hidden
from gistpoint.sessions.studies.folder import StudyFolder

_FOLDERS = "study-folders"


def remember_folder(study: StudyFolder, locations: Locations) -> None:
    """Record where the folder of a study is, so that lists of attempts know whether it is closed.

    If the record can't be written, the study stays unknown and counts as open.
    """
    place, root = locations.data / _FOLDERS / study.study.id, str(study.root).encode()
    with suppress(OSError):
        if not place.is_file() or read_regular(place) != root:
            place.parent.mkdir(parents=True, exist_ok=True)
            replace_file(place, root)


def is_hidden(study_id: str, attempt: Path, *, unblind: bool) -> bool:
    """Return whether outcomes of a study's people are hidden, given the folder of one of its attempts.

    The study is the one whose folder contains the attempt, or the one that was last used here under its id.
    If it is unknown or can't be read, it counts as open. With `unblind`, outcomes are shown, which the log of
    a known open study records.
    """
    root = _folder_of(study_id, attempt)
    if root is None:
        return not unblind
    try:
        study = StudyFolder(root, Locations.of_user(), SystemTime())
        if study.study.id != study_id:
            return not unblind
        return outcomes_hidden(study, unblind=unblind)
    except (UserError, OSError):
        return not unblind


def _folder_of(study_id: str, attempt: Path) -> Path | None:
    holding = [folder for folder in attempt.absolute().parents[:3] if (folder / STUDY_FILE).is_file()]
    if holding:
        return holding[0]
    if study_id != Path(study_id).name:
        return None  # a journal can contain any string as the id
    with suppress(OSError, ValueError):
        known = Path(read_regular(Locations.of_user().data / _FOLDERS / study_id).decode())
        if (known / STUDY_FILE).is_file():
            return known
    return None
