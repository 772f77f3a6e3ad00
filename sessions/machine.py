"""The six random characters that stand for a machine in files and databases that it shares with others."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

from gistpoint.core.errors import UserError
from gistpoint.core.logs import sync_file, sync_folder

MACHINE_FILE = "machine"
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
MACHINE = re.compile(f"[{_ALPHABET}]{{6}}")
"""What the name of a machine looks like."""


def crockford(characters: int = 6) -> str:
    """Return random characters of Crockford's base 32, in lower case."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(characters))


def machine_of(data: Path) -> str:
    """Return the six random characters that stand for this machine, kept in its data folder."""
    path = data / MACHINE_FILE
    if not path.exists():
        data.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{MACHINE_FILE}.{os.getpid()}.tmp")
        with part.open("w", encoding="ascii") as file:
            file.write(crockford() + "\n")
            file.flush()
            sync_file(file.fileno())
        try:
            path.hardlink_to(part)  # the first of two processes decides
            sync_folder(data)
        except FileExistsError:
            pass
        finally:
            part.unlink()
    try:
        name = path.read_text(encoding="ascii").strip()
    except ValueError:
        name = ""
    if not MACHINE.fullmatch(name):
        raise UserError(
            f"The file {MACHINE_FILE} in the data folder does not hold the six characters of this machine.",
            hint="Delete it: the machine gets others, and counts as another one.",
        )
    return name
