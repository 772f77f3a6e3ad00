"""The six random characters that identify a machine in files and databases that it shares with others."""

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
"""The form of a machine's name."""


def crockford(characters: int = 6) -> str:
    """Return random characters of Crockford's base 32, in lower case."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(characters))


def machine_of(data: Path) -> str:
    """Return the six random characters that identify this machine, kept in its data folder."""
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
            f"The file {MACHINE_FILE} in the data folder does not hold the six characters of this machine.",
            hint="Delete it: the machine gets others, and counts as another one.",
        )
    return name
