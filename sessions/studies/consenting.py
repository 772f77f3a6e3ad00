"""Copies of the consent for participants: as text, and saved where a participant asks for it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from gistpoint import __version__
from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.readable import utc_day
from gistpoint.core.study.consent import consent_copy, shown_sha256
from gistpoint.core.study.operations import StudyError
from gistpoint.sessions.studies.folder import StudyFolder


def copy_for(study: StudyFolder, code: str = "") -> str:
    """Return the consent that a participant agreed to, or the current text if no code is given.

    Raises `StudyError` for an unknown code, for a person who has not agreed, and if the text has changed
    since.
    """
    if not code:
        return consent_copy(study.study, None, None, __version__)
    consent = study.ledger.person(code).consent
    if consent is None:
        raise StudyError(f"{code[:60]!r} has not agreed to take part, or is not in the study.")
    current = consent.shown_sha256 == shown_sha256(study.study)
    if not consent.shown_sha256:
        current = consent.text_sha256 == sha256_of_text(study.study.texts.consent)
    if not current:
        raise StudyError(
            "The text here differs from the one that this person agreed to: it has changed since.",
            hint="Use a copy of the folder from before the change, or ask for the consent again.",
        )
    return consent_copy(study.study, consent.items, consent.utc_ms, __version__)


def save_copy(study: StudyFolder, folder: Path, ticked: Sequence[bool]) -> Path:
    """Save the consent that is on a participant's screen, and return the new file.

    Its name contains neither a code nor a name. Raises `StudyError` if it can't be written.
    """
    text = consent_copy(study.study, ticked, None, __version__)
    stem = f"consent-{study.study.id}-{utc_day(study.clock.utc_ms())}"
    for number in range(1, 100):
        path = folder / f"{stem}{f'-{number}' if number > 1 else ''}.txt"
        try:
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(text.encode())
        except FileExistsError:
            continue
        except OSError as error:
            raise StudyError(f"The copy can't be saved in {folder}: {error.strerror}.") from error
        return path
    raise StudyError(f"{folder} already contains many copies of the consent.")
