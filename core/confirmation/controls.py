"""The controls of a task as a file of its answer (decision 113)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from gistpoint.core.confirmation.model import NOT_CONTROLLED, Controls
from gistpoint.core.errors import TaskError
from gistpoint.core.locations import read_regular
from gistpoint.core.logs import replace_file
from gistpoint.core.tasks.documents import json_text

CONTROLS_FILE = "answer/controls.json"
FORMAT = "gistpoint.controls"
VERSION = 1


def write_controls(folder: Path, controls: Controls, canary: str) -> None:
    """Write the controls into the answer folder of a task."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "canary": canary,
        "controls": msgspec.to_builtins(controls),
    }
    replace_file(folder / CONTROLS_FILE, json_text(document).encode("ascii"), durable=False)


def read_controls(folder: Path) -> Controls:
    """Return the controls of the task in `folder`; `NOT_CONTROLLED` without a file.

    Raises `TaskError` if the file can't be read or is damaged.
    """
    try:
        document = json.loads(read_regular(folder / CONTROLS_FILE))
        return _controls(document)
    except FileNotFoundError:
        return NOT_CONTROLLED
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise TaskError(f"{CONTROLS_FILE} can't be read: {error}.", hint="Get the task again.") from error


def _controls(document: Mapping[str, Any]) -> Controls:
    if document["format"] != FORMAT or document["version"] != VERSION:
        raise ValueError(f"it is a {document['format']} of version {document['version']}")
    return msgspec.convert(document["controls"], Controls)
