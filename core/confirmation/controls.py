"""The controls of a task as a file of its answer (decision 113)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from gistpoint.core.confirmation.model import NOT_CONTROLLED, Controls
from gistpoint.core.decoding import decodable
from gistpoint.core.errors import TaskError
from gistpoint.core.locations import read_regular
from gistpoint.core.logs import replace_file
from gistpoint.core.machine_key import is_made_here, with_tag
from gistpoint.core.tasks.documents import basis_of, json_text

CONTROLS_FILE = "answer/controls.json"
FORMAT = "gistpoint.controls"
VERSION = 1


def write_controls(folder: Path, controls: Controls, canary: str) -> None:
    """Write controls that were made on this machine, or come from a trusted source, next to the answer."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "canary": canary,
        "controls": msgspec.to_builtins(controls),
    }
    text = json_text(with_tag(document, basis_of(folder)))
    replace_file(folder / CONTROLS_FILE, text.encode("ascii"), durable=False)


def read_controls(folder: Path) -> Controls:
    """Return the controls of the task in `folder`; `NOT_CONTROLLED` without a file.

    Anyone who passes a task on can change them; `controls_of_here` returns those that count. Raises
    `TaskError` if the file can't be read or is damaged.
    """
    return _read(folder)[0]


def controls_of_here(folder: Path) -> Controls | None:
    """Return the controls of the task in `folder` if this machine made them for its present answer.

    None if there are none, if they come from elsewhere or from an earlier version, or if the controls, the
    original functions or the way in which the tests are run were changed (decision 158). Raises
    `TaskError` if the file can't be read or is damaged.
    """
    controls, is_own = _read(folder)
    return controls if is_own else None


def _read(folder: Path) -> tuple[Controls, bool]:
    """Return the controls in a task's folder, and whether they were made here for its present answer."""
    try:
        document = json.loads(read_regular(folder / CONTROLS_FILE))
        return _controls(document), is_made_here(document, basis_of(folder))
    except FileNotFoundError:
        return NOT_CONTROLLED, False
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise TaskError(f"{CONTROLS_FILE} can't be read: {error}.", hint="Get the task again.") from error


def _controls(document: Mapping[str, Any]) -> Controls:
    if document["format"] != FORMAT or document["version"] != VERSION:
        raise ValueError(f"it is a {document['format']} of version {document['version']}")
    return msgspec.convert(document["controls"], decodable(Controls))
