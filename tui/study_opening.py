"""Opens a study, given by its folder or by its name on the team's store."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from gistpoint.core.locations import Locations, path_of
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.text import visible_line
from gistpoint.sessions.studies.blinded import remember_folder
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.team.study_note import STUDIES, read_note

_NAME = re.compile(r"[a-z0-9-]{3,40}")


def open_study(name: str) -> StudyFolder:
    """Return the study in a folder, or with a name on the team's store, opened with the machine's clock.

    A team's study is updated first. If its store does not answer, that is reported, and the folder is used as
    it is. Raises `StudyError` if the study can't be read, and another `UserError` if the store can't be used
    or a study can't be fetched from it.
    """
    locations = Locations.of_user()
    root = _folder_of(name, locations)
    note = read_note(root)
    if note is None:
        study = StudyFolder(root, locations, SystemTime())
    else:
        from gistpoint.sessions.team.connecting import require_extra

        require_extra()
        from gistpoint.sessions.team.study_sharing import open_team_study

        study = open_team_study(root, note, locations, SystemTime())
    study.named = name
    remember_folder(study, locations)
    if study.store.away:
        _print_note(f"{study.store.away} This is the study as of the last contact with the store.")
    return study


def _folder_of(name: str, locations: Locations) -> Path:
    """Return the study's folder. A study on the team's store is fetched when it is first named."""
    typed = path_of(name)
    if typed.exists() or not _NAME.fullmatch(name):
        return typed
    fetched = locations.data / STUDIES / name
    if fetched.is_dir():
        return fetched
    from gistpoint.sessions.team.address import chosen_address

    address = chosen_address(locations.config)
    if address is None:
        return typed
    from gistpoint.sessions.team.connecting import require_extra

    require_extra()
    from gistpoint.sessions.team.study_sharing import fetch

    fetch(name, address, locations)
    _print_note(f"The study {name} was fetched from {address} into {fetched}.")
    return fetched


def _print_note(words: str) -> None:
    print(f"gistpoint: {visible_line(words)}", file=sys.stderr)


def is_shared(study: StudyFolder) -> bool:
    """Return whether a study is on a team's store."""
    return read_note(study.root) is not None


def share_again(study: StudyFolder) -> bool:
    """Copy the changed declaration of a study to its team's store. Return whether it has a store.

    Raises `UserError` if the store can't be used.
    """
    note = read_note(study.root)
    if note is None:
        return False
    from gistpoint.sessions.team.connecting import require_extra

    require_extra()
    from gistpoint.sessions.team.study_sharing import share

    share(study, note.address)
    return True
