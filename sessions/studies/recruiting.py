"""Recruiting: people enrolled from a table, random codes for recruiters' identifiers, and caps by stratum.

A recruiter's identifier, such as a Prolific id, identifies a person. It never becomes a code, because codes
are part of file names: the table that links the two is in the study's private folder (decision 166).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gistpoint.core.attempts.identity import Role
from gistpoint.core.csv_text import CsvTable, csv_line, csv_table, text_of_cell
from gistpoint.core.errors import cause
from gistpoint.core.locations import opened_regular
from gistpoint.core.logs import replace_file
from gistpoint.core.study.declaration import Participants
from gistpoint.core.study.ledger import Ledger, Person, person_sha256
from gistpoint.core.study.operations import StudyError
from gistpoint.core.text import plural
from gistpoint.sessions.studies.pseudonyms import private_folder

RECRUITS = "recruits.csv"
COLUMNS = ("external", "code", "stratum", "role")
_KEPT = ("external", "code", "stratum")
_LARGEST = 1_000_000
_IDENTITIES = {
    "a Prolific id": re.compile(r"[0-9a-f]{24}", re.IGNORECASE),
    "a worker's id of Mechanical Turk": re.compile(r"A[0-9A-Z]{11,14}"),
    "a UUID": re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE),
    "a telephone or matriculation number": re.compile(r"[0-9]{6,}"),
}


@dataclass(frozen=True, slots=True)
class Recruit:
    """A row in a table of people to enrol."""

    external: str = ""
    """The recruiter's identifier; without a `code`, the person gets a random code."""
    code: str = ""
    stratum: str = ""
    role: str = ""


def read_recruits(path: Path) -> list[Recruit]:
    """Return the rows of a table with the columns `external` or `code`, and optionally `stratum` and `role`.

    Raises `StudyError` for a table that can't be read or has no rows, an unknown column, a row with neither
    identifier nor code, and an identifier or code that occurs twice.
    """
    columns, rows = _table(path)
    if unknown := [name for name in columns if name not in COLUMNS]:
        raise StudyError(
            f"{path.name} has the column {unknown[0][:40]!r}, which a study may not contain.",
            hint=f"Columns: {', '.join(COLUMNS)}. Leave names and addresses out.",
        )
    found = [
        Recruit(**{name: (row.get(name) or "").strip() for name in columns})
        for row in rows
        if any(row.values())
    ]
    _require_distinct(path, found)
    return found


def _table(path: Path) -> CsvTable:
    """Return the table in a file. Raises `StudyError` if it can't be read or is too long."""
    try:
        with opened_regular(path) as file:
            text = file.read(_LARGEST + 1).decode("utf-8-sig")
        if len(text) > _LARGEST:
            raise StudyError(f"{path.name} is longer than {_LARGEST:,} characters.")
        return csv_table(text)
    except (OSError, ValueError) as error:
        why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else cause(error)
        raise StudyError(f"{path.name} can't be read: {why}.") from error


def _require_distinct(path: Path, found: list[Recruit]) -> None:
    """Raise `StudyError` if a table has no rows, or a row names nobody or the same person as another row."""
    if not found:
        raise StudyError(f"{path.name} contains nobody.")
    for number, recruit in enumerate(found, 2):
        if not recruit.external and not recruit.code:
            raise StudyError(f"{path.name}, line {number} has neither an external identifier nor a code.")
    for name in ("external", "code"):
        values = Counter(getattr(recruit, name).lower() for recruit in found)
        if twice := [value for value, times in values.items() if value and times > 1]:
            raise StudyError(f"{path.name} has {twice[0][:60]!r} twice in the column {name!r}.")


def require_no_identity(code: str) -> None:
    """Raise `StudyError` if a code looks like an identifier that a person has in another system."""
    for what, pattern in _IDENTITIES.items():
        if pattern.fullmatch(code):
            raise StudyError(
                f"{code[:60]!r} looks like {what}, and codes appear in the names of files.",
                hint="Put it into the column `external` of a table, for `gistpoint study enrol DIR --from`.",
            )


# The private table of recruiters' identifiers


def recruits_of(root: Path) -> dict[str, str]:
    """Return the recruiters' identifiers by code; empty on a machine without the private table.

    Raises `StudyError` if the table can't be read.
    """
    return {row["code"]: row["external"] for row in _rows(root)}


def remember(root: Path, recruits: Mapping[str, Recruit], enrolled: Collection[str]) -> None:
    """Add people's identifiers to the private table, by code.

    Rows with codes that are not `enrolled` are dropped, because they come from a failed enrolment. Raises
    `StudyError` for an identifier that is already enrolled, and if the table can't be written.
    """
    named = {code: one for code, one in recruits.items() if one.external}
    if not named:
        return
    rows = [row for row in _rows(root) if row["code"] in enrolled]
    known = {row["external"].lower() for row in rows}
    for code, one in named.items():
        if one.external.lower() in known:
            raise StudyError(f"{one.external[:60]!r} is already enrolled under another code.")
        rows.append({"external": one.external, "code": code, "stratum": one.stratum})
    _write(root, rows)


def forget(root: Path, people: Collection[str]) -> None:
    """Delete people, given by the hashes of their codes, from the private table."""
    rows = _rows(root)
    kept = [row for row in rows if person_sha256(row["code"]) not in people]
    if len(kept) < len(rows):
        _write(root, kept)


def _rows(root: Path) -> list[dict[str, str]]:
    path = private_folder(root) / RECRUITS
    if not path.exists():
        return []
    try:
        with opened_regular(path, links=False) as file:
            rows = csv_table(file.read(_LARGEST * 10).decode("utf-8")).rows
    except (OSError, ValueError) as error:
        raise StudyError(f"The private table {RECRUITS} can't be read.") from error
    return [{name: text_of_cell(row.get(name) or "") for name in _KEPT} for row in rows]


def _write(root: Path, rows: Iterable[Mapping[str, str]]) -> None:
    lines = [csv_line(_KEPT), *(csv_line([row[name] for name in _KEPT]) for row in rows)]
    try:
        path = private_folder(root, make=True) / RECRUITS
        replace_file(path, "".join(lines).encode(), mode=0o600)
    except OSError as error:
        raise StudyError(f"The private table {RECRUITS} can't be written: {error.strerror}.") from error


# Caps


def takes_a_place(one: Person) -> bool:
    """Return whether a person counts towards a cap: a baseline, not withdrawn, declined or screened out."""
    is_counted = one.enrolled is not None and one.role == Role.BASELINE.value
    is_gone = one.withdrawn is not None or one.declined or one.screened_out is not None
    return is_counted and not is_gone


def require_room(participants: Participants, ledger: Ledger, strata: Iterable[str]) -> None:
    """Raise `StudyError` if people of the given strata, one entry each, exceed a cap of the study."""
    new = Counter(strata)
    taken = Counter(one.stratum for one in ledger.people.values() if takes_a_place(one))
    caps = {name: (limit, taken[name], new[name]) for name, limit in participants.caps.items()}
    if participants.cap:
        caps[""] = (participants.cap, taken.total(), new.total())
    for name, (limit, there, more) in caps.items():
        if more and there + more > limit:
            of = f" of the stratum {name!r}" if name else ""
            raise StudyError(
                f"The study accepts at most {plural(limit, 'person', 'people')}{of}: {there} take part, so"
                f" {more} more can't.",
                hint="Somebody who withdraws, declines or is screened out leaves a place free.",
            )
