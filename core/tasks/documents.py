"""The names, formats and versions of a task's files; reads and writes its baselines and protections."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.errors import TaskError
from gistpoint.core.locations import LARGEST_RECORDS, parsed_toml, read_regular_text
from gistpoint.core.logs import replace_file
from gistpoint.core.machine_key import is_made_here, with_tag
from gistpoint.core.tasks.fields import Fields
from gistpoint.core.tasks.model import CANARY, FORMAT, VERSION, Baseline
from gistpoint.core.tasks.protection import Protection, protection_document, read_protections

TASK_FILE = "task.toml"
ANSWER_FILE = "answer/answer.json"
PROTECTIONS_FILE = "answer/protections.json"
"""The file with this machine's findings about the protection of a task's tree, which no archive contains."""
ANSWER, _BASELINE, _PROTECTIONS = "gistpoint.answer", "gistpoint.baseline", "gistpoint.protections"
ANSWER_VERSION = 1
"""The version of the answer's and the baselines' formats."""
FORMATS = {FORMAT: VERSION, **dict.fromkeys((ANSWER, _BASELINE, _PROTECTIONS), ANSWER_VERSION)}
"""The newest version of each format."""

UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {1: dict, 2: dict}
"""The upgrade from each version to the next; each has a golden file in the tests' data.

Version 2 only adds `environment.image`, and version 3 `salt_sha256`.
"""


def upgraded(document: dict[str, Any], file: str) -> dict[str, Any]:
    """Return a document in the current version's format.

    The key `version` keeps the file's value, because a task's id depends on it. Raises `TaskError` if the
    format or the version is missing or not known.
    """
    for key in ("format", "version"):
        if key not in document:
            raise TaskError(f"{file}: the key {key!r} is missing.")
    if not isinstance(document["format"], str) or document["format"] not in FORMATS:
        raise TaskError(f"{file}: the key 'format' is {document['format']!r}, not one of gistpoint's.")
    version, newest = document["version"], FORMATS[document["format"]]
    if not isinstance(version, int) or isinstance(version, bool) or version < 1 or version > newest:
        raise TaskError(
            f"{file}: the key 'version' is {version!r}; this version of gistpoint reads 1 to {newest}.",
            hint="Install a newer gistpoint." if isinstance(version, int) and version > newest else "",
        )
    while version < newest:
        document = UPGRADES[version](document)
        version += 1
    return document


def write_baseline(folder: Path, baseline: Baseline) -> None:
    """Write one baseline, replacing one of the same backend and environment."""
    fields = {
        key: sorted(value) if isinstance(value, frozenset) else value
        for key, value in asdict(baseline).items()
    }
    fields["protections"] = {name: protection_document(found) for name, found in baseline.protections.items()}
    document = {"format": _BASELINE, "version": ANSWER_VERSION, "canary": CANARY, **fields}
    path = folder / "answer" / "baselines" / f"{baseline.backend}-{baseline.environment[:12]}.json"
    text = json_text(with_tag(document, basis_of(folder)))
    replace_file(path, text.encode("ascii"), durable=False)  # others may be reading it


def write_protection(folder: Path, backend: str, found: Protection) -> None:
    """Store a protection found on this machine, for a task without a valid protection in its baselines.

    The file is separate and never shared, because baselines from other machines must remain unchanged.
    """
    path = folder / PROTECTIONS_FILE
    known = {name: protection_document(kept) for name, kept in protections_of(folder).items()}
    document = {"format": _PROTECTIONS, "version": ANSWER_VERSION, "canary": CANARY}
    document["protections"] = {**known, backend: protection_document(found)}
    replace_file(path, json_text(with_tag(document, basis_of(folder))).encode("ascii"), durable=False)


def protections_of(folder: Path, basis: str | None = None) -> Mapping[str, Protection]:
    """Return the protections that this machine found and stored, by backend; empty if there are none.

    `basis` is the task's (see `basis_of`) if known.
    """
    try:
        fields = read_document(folder / PROTECTIONS_FILE)
        known = is_made_here(fields.values, basis or basis_of(folder))
        return read_protections(fields.table("protections")) if known else {}
    except TaskError:
        return {}


def basis_of(folder: Path, answer: Mapping[str, Any] | None = None) -> str | None:
    """Return a hash of the parts of a task on which its measurements depend; None if they can't be read.

    It covers the id, and also the source of the original functions and the way in which the tests are run,
    which the id does not cover. Measurements made here count only for this basis (decision 158). `answer` has
    the values of the answer's document if it has been read.
    """
    try:
        public = read_document(folder / TASK_FILE).values
        if answer is None:
            answer = read_document(folder / ANSWER_FILE).values
        suite = public.get("suite", {})
        tests = [suite.get(key) for key in ("ids_sha256", "deselected", "test_files")]
        return sha256_of_json([public.get("id"), public.get("environment"), tests, answer.get("targets")])
    except (TaskError, AttributeError, TypeError, ValueError, RecursionError):
        return None


def json_text(document: Mapping[str, Any]) -> str:
    """Return the JSON text of a document for its file."""
    return json.dumps(document, indent=1, ensure_ascii=True, sort_keys=False) + "\n"


def read_document(path: Path) -> Fields:
    """Return the contents of a task's file, in the current version's format.

    Raises `TaskError`, which names the file, if it is missing, can't be read, contains no table, or has an
    unknown format or version.
    """
    name = path.name if path.name == TASK_FILE else "/".join(path.parts[-2:])
    try:
        text = read_regular_text(path, LARGEST_RECORDS)
        values = deepcopy(_parsed_task(text)) if path.suffix == ".toml" else json.loads(text)
    except FileNotFoundError:
        raise TaskError(f"{name} is missing from {path.parent.name or path.parent}.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise TaskError(f"{name} can't be read: {error}.") from error
    if not isinstance(values, dict):
        raise TaskError(f"{name} must contain a table at the top level.")
    return Fields(upgraded(values, name), name)


# The file of a task is also read with its answer and with each baseline, and parsing takes most of that time.
_parsed_task = lru_cache(maxsize=4)(parsed_toml)


def read_baseline(path: Path, basis: str | None) -> tuple[Baseline, bool]:
    """Return the baseline in a file, and whether it was recorded here for this basis (see `basis_of`).

    Raises `TaskError`, naming the file and the key, for a fault.
    """
    fields = read_document(path)
    fields.get("canary", str)
    baseline = Fields({**fields.values, "protections": {}}, fields.file).record(
        Baseline, optional=("any_order",)
    )
    protections = fields.table("protections") if "protections" in fields.values else Fields({}, fields.file)
    return replace(baseline, protections=read_protections(protections)), is_made_here(fields.values, basis)
