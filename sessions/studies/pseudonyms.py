"""Pseudonyms, which replace codes and the ids of attempts and assignments in published data.

They are derived from a key that never leaves the study's folder: all exports of one folder have the same
pseudonyms, and nobody without the key can test which code belongs to a pseudonym.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterable
from datetime import timedelta
from functools import cached_property
from pathlib import Path

from gistpoint.core.locations import LARGEST_SETTINGS, opened_regular
from gistpoint.core.logs import create_file, replace_file
from gistpoint.core.readable import utc_datetime
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.operations import ORGANISER, StudyError

PRIVATE, KEY = "private", "pseudonyms.key"
_KEY_TEXT = re.compile(r"[0-9a-f]{64}\n?")


def key_of(root: Path) -> bytes:
    """Return the key of the study in a folder; it is created at its first use and readable only by its owner.

    Raises `StudyError` if it is damaged, or can't be read or written.
    """
    folder = root / PRIVATE
    path = folder / KEY
    try:
        if not path.exists():
            _make(path)
        with opened_regular(path, links=False) as file:
            os.fchmod(file.fileno(), 0o600)
            text = file.read(LARGEST_SETTINGS).decode("ascii")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise StudyError(f"The key {PRIVATE}/{KEY} can't be used: {why}.") from error
    if not _KEY_TEXT.fullmatch(text):
        raise StudyError(
            f"{PRIVATE}/{KEY} does not contain a key.",
            hint="Restore it from a backup; if you delete it, later exports have different pseudonyms.",
        )
    return bytes.fromhex(text.strip())


def private_folder(root: Path, *, make: bool = False) -> Path:
    """Return a study's private folder, which stays on one machine; `make` creates it if it is missing."""
    folder = root / PRIVATE
    if make:
        folder.mkdir(mode=0o700, exist_ok=True)
        replace_file(folder / ".gitignore", b"*\n", durable=False)
    return folder


def _make(path: Path) -> None:
    private_folder(path.parent.parent, make=True)
    create_file(path, secrets.token_hex(32).encode() + b"\n")


class Pseudonyms:
    """The pseudonyms of one study's people, attempts and assignments."""

    def __init__(self, key: bytes, codes: Iterable[str]) -> None:
        self._key = key
        self._codes = frozenset(codes)

    @classmethod
    def of(cls, data: StudyData, key: bytes) -> Pseudonyms:
        """Return the pseudonyms of all people in a study's data."""
        return cls(key, {*data.ledger.people, *(row.participant for row in data.rows if row.participant)})

    @cached_property
    def _people(self) -> dict[str, str]:
        prefix = "H"
        while any(re.match(rf"{prefix}\d", code, re.IGNORECASE) for code in self._codes):
            prefix += "H"
        width = max(2, len(str(len(self._codes))))
        ordered = sorted(self._codes, key=lambda code: self._mac("person", code))
        return {code: f"{prefix}{number:0{width}}" for number, code in enumerate(ordered, 1)}

    def person(self, code: str) -> str:
        """Return the pseudonym of a code, such as H01; empty for an empty code.

        The key alone determines the order of the numbers.
        """
        return self._people[code] if code else ""

    def attempt(self, identity: str) -> str:
        """Return a pseudonym for an attempt's id, which would reveal a time; empty for an empty id."""
        return self._mac("attempt", identity)[:16] if identity else ""

    def assignment(self, identity: str) -> str:
        """Return the pseudonym of an assignment's id, which would reveal the code; empty for an empty id."""
        return self._mac("assignment", identity)[:12] if identity else ""

    def writer(self, name: str) -> str:
        """Return the public name of a writer: a person's pseudonym, or `ORGANISER`."""
        return self._people.get(name, ORGANISER)

    def _mac(self, kind: str, text: str) -> str:
        return hmac.new(self._key, f"{kind} {text}".encode(), hashlib.sha256).hexdigest()


def monday(utc_ms: int) -> int:
    """Return the start of a time's week, Monday 0:00 UTC, in milliseconds since 1970; 0 for 0."""
    if not utc_ms:
        return 0
    day = utc_datetime(utc_ms).replace(hour=0, minute=0, second=0, microsecond=0)
    return int((day - timedelta(days=day.weekday())).timestamp()) * 1000
