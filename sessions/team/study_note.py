"""`team.toml` in a study's folder, which names the study and the team's store that has the original."""

from __future__ import annotations

from pathlib import Path

import msgspec

from gistpoint.core.decoding import decodable
from gistpoint.core.locations import read_toml
from gistpoint.core.logs import replace_file
from gistpoint.core.study.operations import StudyError
from gistpoint.sessions.team.address import StoreAddress, parse_address

FILE = "team.toml"
STUDIES = "studies"
"""The folder in the data folder that contains the fetched studies."""
FORMAT, VERSION = "gistpoint.team-study", 1
_HINT = "`gistpoint study share DIR` writes it again."


class TeamNote(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of `team.toml`; it contains no secrets."""

    study: str
    """The id of the study."""
    store: str
    """The store's address as a URL, which `parse_address` can read."""
    files_sha256: str
    """The hash of the declaration's files when they were shared or fetched."""
    fetched: bool = False
    """Whether the folder was fetched, so that its declaration follows the one in the store."""
    format: str = FORMAT
    version: int = VERSION

    @property
    def address(self) -> StoreAddress:
        """The store's address. Raises `TeamStoreError` if it is invalid."""
        return parse_address(self.store)


def read_note(root: Path) -> TeamNote | None:
    """Return the note in a study's folder; None if it is not shared with a team.

    Raises `StudyError` if the note can't be read or has another format.
    """
    try:
        note = msgspec.convert(read_toml(root / FILE, links=False), decodable(TeamNote))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise StudyError(f"{FILE} in the study's folder can't be read: {error}.", hint=_HINT) from error
    if (note.format, note.version) != (FORMAT, VERSION):
        raise StudyError(f"{FILE} in the study's folder is not version {VERSION} of {FORMAT}.", hint=_HINT)
    return note


def write_note(root: Path, note: TeamNote) -> None:
    """Write the note of a study's folder."""
    import tomli_w

    replace_file(root / FILE, tomli_w.dumps(msgspec.to_builtins(note)).encode("utf-8"), durable=False)
