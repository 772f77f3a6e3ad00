"""The tests that enter each function, recorded once on the original and stored in a task's answer.

All functions are recorded, so that the order of a run reveals nothing about the corrupted ones (decision 10).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gistpoint.core.errors import TaskError
from gistpoint.core.locations import read_regular

ENTERED_FILE = "answer/entered.json"
FORMAT = "gistpoint.entered"
VERSION = 1


def write_entered(folder: Path, entered: Mapping[str, frozenset[str]], canary: str) -> None:
    """Write the map next to the answer, with numbered test ids; remove the file for an empty map."""
    path = folder / ENTERED_FILE
    if not entered:
        path.unlink(missing_ok=True)
        return
    tests = sorted(set().union(*entered.values()))
    number = {id: position for position, id in enumerate(tests)}
    document = {
        "format": FORMAT,
        "version": VERSION,
        "canary": canary,
        "tests": tests,
        "functions": {name: sorted(number[id] for id in entered[name]) for name in sorted(entered)},
    }
    path.write_text(json.dumps(document, ensure_ascii=True) + "\n", encoding="utf-8")


def read_entered(folder: Path) -> Mapping[str, frozenset[str]]:
    """Return the ids of the tests that enter each function, by `path::qualname`; empty if not recorded.

    Raises `TaskError` if the file is damaged.
    """
    try:
        document = json.loads(read_regular(folder / ENTERED_FILE))
        return _entered(document)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise TaskError(f"{ENTERED_FILE} can't be read: {error}.", hint="Get the task again.") from error


def _entered(document: Mapping[str, Any]) -> Mapping[str, frozenset[str]]:
    if document["format"] != FORMAT or document["version"] != VERSION:
        raise ValueError(f"it is a {document['format']} of version {document['version']}")
    tests = [str(id) for id in document["tests"]]
    return {
        str(name): frozenset(tests[n] for n in numbers) for name, numbers in document["functions"].items()
    }


def entering_tests(entered: Mapping[str, frozenset[str]], changed: tuple[str, ...]) -> tuple[str, ...]:
    """Return the ids of the tests that enter a changed function.

    They are ordered by function, from the one that the fewest tests enter, and then by id. `changed` names
    functions and classes as `path::qualname`; a class includes everything defined in it.
    """
    names = [
        function
        for name in changed
        for function in entered
        if function == name or function.startswith(f"{name}.")
    ]
    ordered = sorted(dict.fromkeys(names), key=lambda name: (len(entered[name]), name))
    return tuple(dict.fromkeys(id for name in ordered for id in sorted(entered[name])))
