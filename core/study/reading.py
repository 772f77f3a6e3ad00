"""Reads a study's declaration, `study.toml`, and its texts; errors name the file and, if known, the key."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.locations import lies_in, opened_regular, parsed_toml
from gistpoint.core.study.bank import ATTESTATION, block
from gistpoint.core.study.declaration import Moment, Question, Questionnaire, Study
from gistpoint.core.study.operations import StudyError
from gistpoint.core.study.soundness import check_declaration
from gistpoint.core.tasks.fields import Fields

FILE = "study.toml"
TEXTS = "texts"
FROM_FILE = "file:"
LARGEST_FILE = 1_000_000
"""The maximum number of bytes in the declaration, and in each file in `texts`."""
RULES_FORM = "rules"
"""The id of the form on keeping the rules, added after each task if no form of the study asks about this."""
_PLACE = re.compile(r"at line \d+, column \d+")
_CORRECT_IT = "Correct it in study.toml."
_NOT_TEXTS = frozenset({"solver", "tasks", "format", "id"})
"""Keys whose values are not texts; `file:` in a solver has another meaning."""


def read_study(folder: Path) -> Study:
    """Return the study declared in a folder, with its texts and the bank's questions inserted.

    Raises `StudyError` for any fault, including a file that is missing or can't be read. The error names the
    file and, if a key is at fault, the key.
    """
    if not os.path.lexists(folder / FILE):
        name = folder.name[:80]
        is_there = os.path.lexists(folder)
        raise StudyError(
            f"The folder {name!r} is not a study: it has no {FILE}."
            if is_there
            else f"There is no folder {name!r}.",
            hint="Check the path. `gistpoint study new DIR` makes a study, `study demo` a simulated one.",
        )
    return parse_study(_content(folder / FILE, FILE), lambda name: _text(folder / TEXTS, name))


def parse_study(declaration: str, text_of: Callable[[str], str]) -> Study:
    """Return the study that a declaration describes; `text_of` reads a file by the name after `file:`.

    Raises `StudyError` if the declaration has a fault; the error names the file and, except for invalid TOML,
    the key.
    """
    fields = Fields(_filled_in(_parsed(declaration), text_of), FILE, error=StudyError)
    try:
        study = fields.sparse(Study)
        study = msgspec.structs.replace(study, questionnaire=_with_blocks(study.questionnaire))
        check_declaration(study)
    except StudyError as error:
        raise StudyError(error.message, hint=error.hint or _CORRECT_IT) from None
    return study


def protocol_sha256(study: Study, tasks: Mapping[str, Any]) -> str:
    """Return the hash of the protocol: declaration, texts, questions and ids of the tasks.

    Members with default values are left out, so that a later version with more members computes the same
    hash (decision 83). `checklist` is left out because it only answers items of a report.
    """
    spelled = _spelled(study)
    spelled.pop("checklist", None)
    return sha256_of_json({"study": spelled, "tasks": sorted(tasks)})


def _spelled(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        spelled = {}
        for field in _fields_of(type(value)):
            item = getattr(value, field.name)
            if item != _default(field):
                spelled[field.name] = _spelled(item)
        return spelled
    if isinstance(value, list | tuple):
        return [_spelled(item) for item in value]
    return msgspec.to_builtins(value)


@cache
def _fields_of(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """Return the fields of a record type, cached: the hash is computed at every step."""
    return msgspec.structs.fields(kind)


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is msgspec.NODEFAULT:
        return field.default
    return field.default_factory()


def _parsed(declaration: str) -> Mapping[str, Any]:
    try:
        return parsed_toml(declaration)
    except tomllib.TOMLDecodeError as error:
        found = _PLACE.search(str(error))
        if found is None and isinstance(error.__cause__, ValueError):
            raise StudyError(f"{FILE} contains an invalid number or date.", hint=_CORRECT_IT) from None
        place = f" ({found[0]})" if found else ""
        raise StudyError(f"{FILE} is not valid TOML{place}.", hint=_CORRECT_IT) from None


def _filled_in(values: Mapping[str, Any], text_of: Callable[[str], str]) -> dict[str, Any]:
    """Return the declaration with `file:NAME` replaced by that file's content, where a string is expected."""

    def put_in(value: Any, key: str) -> Any:
        if isinstance(value, str) and value.startswith(FROM_FILE):
            return _put(value.removeprefix(FROM_FILE).strip(), key)
        if isinstance(value, dict):
            return {name: put_in(item, f"{key}.{name}") for name, item in value.items()}
        if isinstance(value, list):
            return [put_in(item, f"{key}[{n}]") for n, item in enumerate(value)]
        return value

    def _put(name: str, key: str) -> str:
        try:
            found = text_of(name)
        except StudyError as error:
            raise StudyError(f"{FILE}: the key {key!r}: {error.message}", hint=error.hint) from None
        if not found.strip():
            raise StudyError(f"{FILE}: the key {key!r}: {TEXTS}/{name} is empty.", hint="Write the text.")
        return found

    return {key: value if key in _NOT_TEXTS else put_in(value, key) for key, value in values.items()}


def _with_blocks(forms: tuple[Questionnaire, ...]) -> tuple[Questionnaire, ...]:
    """Return the forms with the bank's questions, and with an attestation after each task.

    Raises `StudyError` for a block that is not in the bank.
    """
    after_tasks = [form for form in forms if form.at is Moment.AFTER_TASK]
    if not any(ATTESTATION in form.use for form in after_tasks):
        forms = (*forms, Questionnaire(id=RULES_FORM, at=Moment.AFTER_TASK, use=(ATTESTATION,)))
    found: list[Questionnaire] = []
    for n, form in enumerate(forms):
        items = list[Question]()
        try:
            for name in form.use:
                items += block(name).item
        except StudyError as error:
            key = f"questionnaire[{n}].use"
            raise StudyError(f"{FILE}: the key {key!r}: {error.message}", hint=error.hint) from None
        found.append(msgspec.structs.replace(form, item=(*items, *form.item)))
    return tuple(found)


def _text(folder: Path, name: str) -> str:
    """Return text from the study's folder `texts`; nothing outside of the folder is read.

    Raises `StudyError` for a name that leads out of the folder, and for a file that can't be read.
    """
    place = Path(name)
    is_spelled_well = name.isprintable() and "\\" not in name
    leads_out = place.is_absolute() or ".." in place.parts
    is_below = name != "" and not leads_out
    if not is_below or not is_spelled_well:
        raise StudyError(
            f"{name[:80]!r} is not a valid file name in {TEXTS}/.", hint=f"Put the text into {TEXTS}/."
        )
    path = folder / place
    if not lies_in(path, folder):
        raise StudyError(
            f"{TEXTS}/{name[:80]} is a link to a file outside the folder.", hint="Put the text itself there."
        )
    return _content(path, f"{TEXTS}/{name[:80]}")


def _content(path: Path, named: str) -> str:
    try:
        if not path.is_file():
            raise StudyError(
                f"{named} does not exist, or is not a file.", hint=f"Write it, or correct {FILE}."
            )
        with opened_regular(path) as file:  # the file may have become a pipe since the check
            data = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "its name can't be used"
        raise StudyError(
            f"{named} can't be read: {reason}.", hint="Check the permissions of the file."
        ) from None
    if len(data) > LARGEST_FILE:
        raise StudyError(f"{named} has more than {LARGEST_FILE} bytes.", hint="Shorten it.")
    try:
        return data.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise StudyError(f"{named} is not text in UTF-8.", hint="Save it as UTF-8.") from None
