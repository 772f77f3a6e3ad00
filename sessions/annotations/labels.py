"""Sets of labels for the steps of a run: the default one, and those that `labels.toml` declares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gistpoint.core.errors import UserError
from gistpoint.core.locations import read_toml

FILE = "labels.toml"
LABELS_FORMAT = "gistpoint.labels"
LABELS_VERSION = 1
_LONGEST = 60


class LabelsError(UserError):
    """The file of labels can't be used; the message names the position of the error."""


@dataclass(frozen=True, slots=True)
class Label:
    """A label for steps: `id` is what reviews store, and `key` the character that assigns it, if any."""

    id: str
    name: str
    key: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class LabelSet:
    """Labels that are offered together, with distinct ids and keys."""

    name: str
    labels: tuple[Label, ...]

    def by_key(self, key: str) -> Label | None:
        """Return the label with this key; None if there is none."""
        return next((label for label in self.labels if key and label.key == key), None)

    def by_id(self, id: str) -> Label | None:
        """Return the label with this id; None if there is none."""
        return next((label for label in self.labels if label.id == id), None)


DEFAULT = LabelSet(
    "failure modes",
    (
        Label("key_insight", "key insight", "1", "The solver finds what is wrong."),
        Label("wrong_theory", "wrong theory", "2", "The solver believes a wrong explanation."),
        Label(
            "ignored_evidence", "ignored evidence", "3", "A result contradicts the solver, and is ignored."
        ),
        Label(
            "misread_result",
            "misread result",
            "4",
            "The solver infers from a result something that it does not show.",
        ),
        Label(
            "wrong_place",
            "wrong place",
            "5",
            "The solver reads or changes something other than what is broken.",
        ),
        Label("wasted", "wasted step", "6", "This step could not reveal or achieve anything."),
        Label("tool_misuse", "tool misuse", "7", "A tool is called in a way that can't work."),
        Label(
            "unverified",
            "unverified claim",
            "8",
            "The solver claims that something works without having tried it.",
        ),
        Label("shortcut", "shortcut", "9", "The tests pass without a repair of the function."),
        Label("harness_fault", "harness fault", "0", "The environment failed, not the solver."),
    ),
)


BEHAVIOURS = LabelSet(
    "behaviour with execution",
    (
        Label("runs_command_first", "runs the command first", "1", "To see which files it touches."),
        Label("runs_own_gist", "runs its own gist", "2", "After creating it, to verify that it works."),
        Label("compares_outputs", "compares outputs", "3", "Of the gist and of the original."),
        Label("runs_out_of_steps", "checks until the limit", "4", "Ends at the limit while checking."),
    ),
)
"""The patterns that the Gistify paper describes for agents that may run code (figure 16)."""
BUILT_IN = (DEFAULT, BEHAVIOURS)


def read_label_sets(config: Path) -> tuple[LabelSet, ...]:
    """Return the user's sets in the file's order, then the built-in ones with other names.

    The file `labels.toml` in `config` contains `[[set]]` tables with `name`, and `[[set.label]]` tables with
    `id` and optional `name`, `key` and `description`. Raises `LabelsError` if it can't be read or its content
    is invalid.
    """
    path = config / FILE
    try:
        values = read_toml(path)
    except FileNotFoundError:
        return BUILT_IN
    except (OSError, ValueError) as error:
        raise LabelsError(f"{path} can't be read: {error}.", hint="Correct it, or move it away.") from error
    if (
        values.get("format", LABELS_FORMAT) != LABELS_FORMAT
        or values.get("version", LABELS_VERSION) != LABELS_VERSION
    ):
        raise LabelsError(
            f"{path} is not version {LABELS_VERSION} of {LABELS_FORMAT}.",
            hint="A newer version of gistpoint may read it.",
        )
    tables = values.get("set", [])
    if not isinstance(tables, list):
        raise LabelsError(f"{path}: 'set' must be written as [[set]].")
    sets = tuple(_label_set(path, number, table) for number, table in enumerate(tables, 1))
    names = [found.name for found in sets]
    if len(set(names)) < len(names):
        raise LabelsError(f"{path}: two sets have the same name.")
    return (*sets, *(known for known in BUILT_IN if known.name not in names))


def _label_set(path: Path, number: int, table: Any) -> LabelSet:
    """Return the set of labels in a table. Raises `LabelsError` if it has none, or two that are alike."""
    where = f"{path}: set {number}"
    if not isinstance(table, dict) or not isinstance(table.get("label"), list) or not table["label"]:
        raise LabelsError(f"{where} has no labels.", hint="Write each as [[set.label]] with an id.")
    labels = tuple(_label(f"{where}, label {place}", item) for place, item in enumerate(table["label"], 1))
    _require_different(where, "id", [label.id for label in labels])
    _require_different(where, "key", [label.key for label in labels if label.key])
    return LabelSet(_text(where, table, "name"), labels)


def _require_different(where: str, what: str, values: Sequence[str]) -> None:
    twice = next((value for value in values if values.count(value) > 1), None)
    if twice is not None:
        raise LabelsError(f"{where}: two labels have the {what} {twice!r}.")


def _label(where: str, item: Any) -> Label:
    if not isinstance(item, dict):
        raise LabelsError(f"{where} is not a table.")
    id = _text(where, item, "id")
    key = _text(where, item, "key", "")
    if key and (len(key) != 1 or not key.isprintable() or key.isspace()):
        raise LabelsError(f"{where}: the key {key!r} must be one character that can be typed.")
    description = item.get("description", "")
    if not isinstance(description, str):
        raise LabelsError(f"{where}: 'description' must be a string.")
    return Label(id, _text(where, item, "name", id), key, description)


def _text(where: str, table: dict[str, Any], name: str, default: str | None = None) -> str:
    value = table.get(name, default)
    if not isinstance(value, str) or (not value and default is None) or len(value) > _LONGEST:
        raise LabelsError(f"{where}: {name!r} must be a string of at most {_LONGEST} characters.")
    return value
