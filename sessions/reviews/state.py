"""The fold from operations to what reviewers have said by now. It depends on the set of operations, not their order."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from gistpoint.core.errors import UserError
from gistpoint.sessions.reviews.keys import StepKey, TextRange
from gistpoint.sessions.runs.model import Json
from gistpoint.sessions.sidefiles.store import Book, Format, in_time, others, required, write

FORMAT = Format("gistpoint.reviews", 1)


class Kind(StrEnum):
    """What an operation does."""

    OPENED = "opened"
    """The run was opened for review; its data hold the `name` of the file and whether the reviewer is `blind`."""
    LABEL = "label"
    COMMENT = "comment"
    VERDICT = "verdict"
    SEEN = "seen"
    UNSEEN = "unseen"
    STOPPED = "stopped"
    """Where the reviewer was last."""
    DELETE = "delete"
    """Takes back the operation whose uuid is `target`."""


class Verdict(StrEnum):
    """A reviewer's verdict on an attempt or run, `attempt_review`."""

    ACCEPT = "accept"
    ACCEPT_CORRECTED_TIME = "accept_corrected_time"
    EXCLUDE = "exclude"
    NEEDS_SECOND_REVIEWER = "needs_second_reviewer"


class ExcludeReason(StrEnum):
    """Why an attempt does not count."""

    EXPOSURE = "exposure"
    AID = "aid"
    SHORTCUT = "shortcut"
    ENVIRONMENT = "environment"
    NOT_SERIOUS = "not_serious"


@dataclass(frozen=True, slots=True)
class Operation:
    """One act of a reviewer; `kind` may be one that a newer program wrote, which is kept and passed over."""

    op: str
    """uuid."""
    reviewer: str
    utc_ms: int
    run: str
    kind: str
    step: StepKey | None = None
    range: TextRange | None = None
    data: Mapping[str, Json] = field(default_factory=dict)
    extra: Mapping[str, Json] = field(default_factory=dict)
    """Members of the line that nobody here knows."""

    @property
    def subject(self) -> str:
        """What it is about: the key of the run."""
        return self.run

    def text(self, name: str) -> str:
        """Return a string of the data, empty where there is none."""
        value = self.data.get(name)
        return value if isinstance(value, str) else ""


_KNOWN = frozenset({"op", "reviewer", "utc_ms", "run", "kind", "step", "range", "data"})


def encode(operation: Operation) -> bytes:
    """Return the line of an operation, with its newline."""
    line: dict[str, Json] = {
        **operation.extra,
        "op": operation.op,
        "reviewer": operation.reviewer,
        "utc_ms": operation.utc_ms,
        "run": operation.run,
        "kind": operation.kind,
    }
    if operation.step is not None:
        line["step"] = str(operation.step)
    if operation.range is not None:
        line["range"] = operation.range.to_json()
    if operation.data:
        line["data"] = dict(operation.data)
    return write(line)


def decode(line: bytes) -> Operation | None:
    """Read a line; None for a header. Raises ValueError, with a sentence, for what is no operation."""
    value = FORMAT.read(line)
    if value is None:
        return None
    op, reviewer, at, run, kind = required(value, "run")
    step, place, data = value.get("step"), value.get("range"), value.get("data", {})
    if not isinstance(step, str | None) or not isinstance(place, dict | None) or not isinstance(data, dict):
        raise ValueError("Its step, range or data are of another kind.")
    return Operation(
        op,
        reviewer,
        at,
        run,
        kind,
        None if step is None else StepKey.parse(step),
        None if place is None else TextRange.from_json(place),
        data,
        others(value, _KNOWN),
    )


FILE = "labels.toml"
LABELS_FORMAT = "gistpoint.labels"
LABELS_VERSION = 1
_LONGEST = 60


class LabelsError(UserError):
    """The file of labels can't be used; the message names the file and the place in it."""


@dataclass(frozen=True, slots=True)
class Label:
    """What may be said about a step: `key` is one character or empty, `id` is what is stored."""

    id: str
    name: str
    key: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class LabelSet:
    """Labels that are offered together; no two share an id or a key."""

    name: str
    labels: tuple[Label, ...]

    def by_key(self, key: str) -> Label | None:
        """Return the label with a hot key."""
        return next((label for label in self.labels if key and label.key == key), None)

    def by_id(self, id: str) -> Label | None:
        """Return the label with an id."""
        return next((label for label in self.labels if label.id == id), None)


DEFAULT = LabelSet(
    "failure modes",
    (
        Label("key_insight", "key insight", "1", "The solver finds what is wrong."),
        Label("wrong_theory", "wrong theory", "2", "A wrong explanation is held to be true."),
        Label("ignored_evidence", "ignored evidence", "3", "A result says otherwise and is passed over."),
        Label("misread_result", "misread result", "4", "A result is taken to say what it does not."),
        Label("wrong_place", "wrong place", "5", "Something other than what is broken is read or changed."),
        Label("wasted", "wasted step", "6", "Nothing could be learned or gained by this step."),
        Label("tool_misuse", "tool misuse", "7", "A tool is called in a way that can't work."),
        Label("unverified", "unverified claim", "8", "Something is said to work that was not tried."),
        Label("shortcut", "shortcut", "9", "The tests are met without repairing the function."),
        Label("harness_fault", "harness fault", "0", "The environment failed, not the solver."),
    ),
)


def read_label_sets(config: Path) -> tuple[LabelSet, ...]:
    """Return one's own sets, in the file's order, and the default one last unless a set has its name.

    The file holds `[[set]]` tables with `name` and `[[set.label]]` tables with `id`, and `name`, `key` and
    `description` if wanted. Raises `LabelsError` for anything else.
    """
    path = config / FILE
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return (DEFAULT,)
    except (OSError, ValueError) as error:
        raise LabelsError(f"{path} can't be read: {error}.", hint="Mend it, or move it away.") from error
    if values.get("format", LABELS_FORMAT) != LABELS_FORMAT or values.get("version", LABELS_VERSION) != LABELS_VERSION:
        raise LabelsError(
            f"{path} is not version {LABELS_VERSION} of {LABELS_FORMAT}.", hint="A newer gistpoint may read it."
        )
    tables = values.get("set", [])
    if not isinstance(tables, list):
        raise LabelsError(f"{path}: 'set' must be written as [[set]].")
    sets = tuple(_set(path, number, table) for number, table in enumerate(tables, 1))
    names = [found.name for found in sets]
    if len(set(names)) < len(names):
        raise LabelsError(f"{path}: two sets have the same name.")
    return sets if DEFAULT.name in names else (*sets, DEFAULT)


def _set(path: Path, number: int, table: Any) -> LabelSet:
    where = f"{path}: set {number}"
    if not isinstance(table, dict) or not isinstance(table.get("label"), list) or not table["label"]:
        raise LabelsError(f"{where} has no labels.", hint="Write each as [[set.label]] with an id.")
    labels = tuple(_label(f"{where}, label {place}", item) for place, item in enumerate(table["label"], 1))
    keys = [label.key for label in labels if label.key]
    for what, values in (("id", [label.id for label in labels]), ("key", keys)):
        twice = next((value for value in values if values.count(value) > 1), None)
        if twice is not None:
            raise LabelsError(f"{where}: two labels have the {what} {twice!r}.")
    return LabelSet(_text(where, table, "name"), labels)


def _label(where: str, item: Any) -> Label:
    if not isinstance(item, dict):
        raise LabelsError(f"{where} is no table.")
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


@dataclass(frozen=True, slots=True)
class LabelGiven:
    """A label on a step, on a range of its text, or (without a step) on the run; `op` takes it back."""

    op: str
    label: str
    set: str
    step: StepKey | None
    range: TextRange | None
    reviewer: str
    utc_ms: int


@dataclass(frozen=True, slots=True)
class Comment:
    """A remark on a step, a range of its text, or the run; `op` takes it back."""

    op: str
    text: str
    step: StepKey | None
    range: TextRange | None
    reviewer: str
    utc_ms: int


@dataclass(frozen=True, slots=True)
class VerdictGiven:
    """A verdict on a run; the last one of a reviewer counts."""

    op: str
    verdict: Verdict
    reasons: tuple[ExcludeReason, ...]
    note: str
    corrected_time_s: float | None
    minutes: float | None
    """Minutes that the reviewer spent."""
    blind: bool
    """Whether model and outcome were hidden when it was given."""
    reviewer: str
    utc_ms: int


@dataclass(frozen=True, slots=True)
class Review:
    """What one reviewer has said about one run."""

    run: str
    reviewer: str
    labels: tuple[LabelGiven, ...] = ()
    comments: tuple[Comment, ...] = ()
    verdict: VerdictGiven | None = None
    seen: frozenset[StepKey] = frozenset()
    stopped: StepKey | None = None
    blind: bool = False
    name: str = ""
    """The file that it was opened from, without its folder."""

    @property
    def hides_outcome(self) -> bool:
        """Whether model and outcome are to be hidden: in blind mode, until the verdict is given."""
        return self.blind and self.verdict is None

    def labels_on(self, step: StepKey) -> tuple[LabelGiven, ...]:
        """Return the labels on a step and on ranges of it."""
        return tuple(label for label in self.labels if label.step == step)

    def comments_on(self, step: StepKey) -> tuple[Comment, ...]:
        """Return the comments on a step and on ranges of it."""
        return tuple(comment for comment in self.comments if comment.step == step)


class ReviewBook(Book[Operation, Review]):
    """All operations known, by run and reviewer, each folded when it is asked for."""

    def __init__(self, operations: Iterable[Operation] = ()) -> None:
        super().__init__(fold, operations)

    @property
    def runs(self) -> tuple[str, ...]:
        """The keys of the runs that something was said about."""
        return self.subjects

    def review(self, run: str, reviewer: str) -> Review:
        """Return what a reviewer has said about a run, which may be nothing."""
        return self.state(run, reviewer)

    def reviews(self) -> Iterator[Review]:
        """Yield every review, by run and reviewer."""
        return self.states()


def fold(run: str, reviewer: str, operations: Iterable[Operation]) -> Review:
    """Return the review that a reviewer's operations on one run amount to; a deletion counts wherever it stands."""
    known = sorted(operations, key=in_time)
    gone = {operation.text("target") for operation in known if operation.kind == Kind.DELETE}
    labels: list[LabelGiven] = []
    comments: list[Comment] = []
    verdict: VerdictGiven | None = None
    seen: set[StepKey] = set()
    stopped: StepKey | None = None
    blind, name = False, ""
    for item in known:
        if item.op in gone:
            continue
        if item.kind == Kind.LABEL and item.text("label"):
            labels.append(
                LabelGiven(item.op, item.text("label"), item.text("set"), item.step, item.range, reviewer, item.utc_ms)
            )
        elif item.kind == Kind.COMMENT:
            comments.append(Comment(item.op, item.text("text"), item.step, item.range, reviewer, item.utc_ms))
        elif item.kind == Kind.VERDICT:
            verdict = _verdict(item) or verdict
        elif item.kind == Kind.OPENED:
            blind, name = item.data.get("blind") is True, item.text("name") or name
        elif item.step is not None:
            if item.kind == Kind.SEEN:
                seen.add(item.step)
            elif item.kind == Kind.UNSEEN:
                seen.discard(item.step)
            elif item.kind == Kind.STOPPED:
                stopped = item.step
    return Review(run, reviewer, tuple(labels), tuple(comments), verdict, frozenset(seen), stopped, blind, name)


def _verdict(operation: Operation) -> VerdictGiven | None:
    given = operation.data
    if operation.text("verdict") not in set(Verdict):
        return None
    reasons = given.get("reasons")
    known = [ExcludeReason(item) for item in reasons if item in set(ExcludeReason)] if isinstance(reasons, list) else []
    return VerdictGiven(
        operation.op,
        Verdict(operation.text("verdict")),
        tuple(known),
        operation.text("note"),
        _number(given.get("corrected_time_s")),
        _number(given.get("minutes")),
        given.get("blind") is True,
        operation.reviewer,
        operation.utc_ms,
    )


def _number(value: object) -> float | None:
    return (
        float(value) if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e12 else None
    )
