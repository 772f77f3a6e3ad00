"""The name of a machine: six random characters that identify it in shared files and databases."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

from gistpoint.core.errors import UserError
from gistpoint.core.locations import read_regular
from gistpoint.core.logs import create_file

MACHINE_FILE = "machine"
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
MACHINE = re.compile(f"[{_ALPHABET}]{{6}}")
"""The pattern of a machine's name."""


def crockford(characters: int = 6) -> str:
    """Return random lower-case characters of Crockford's base 32."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(characters))


def machine_of(data: Path) -> str:
    """Return the name of this machine, which is created at its first use and kept in the data folder.

    Raises `UserError` if the file does not contain a name.
    """
    path = data / MACHINE_FILE
    if not path.exists():
        data.mkdir(parents=True, exist_ok=True)
        create_file(path, f"{crockford()}\n".encode())
    try:
        name = read_regular(path).decode("ascii").strip()
    except ValueError:
        name = ""
    if not MACHINE.fullmatch(name):
        raise UserError(
            f"The file {MACHINE_FILE} in the data folder does not contain the six characters of this"
            " machine.",
            hint="If you delete it, the machine gets new ones and counts as another machine.",
        )
    return name
