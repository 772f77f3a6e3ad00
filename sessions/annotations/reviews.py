"""Reviews of runs, folded from the operations of reviewers, which may be in any order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from gistpoint.core.decoding import decodable
from gistpoint.core.errors import SettingsError, UserError
from gistpoint.core.locations import read_toml
from gistpoint.core.operations import Operation, Text, standing
from gistpoint.sessions.annotations.keys import StepKey, TextRange, beginning_of, successive_keys
from gistpoint.sessions.annotations.side_files import Book, Codec, CommentData

if TYPE_CHECKING:
    from gistpoint.sessions.runs.document import RunDocument


class ReviewOperationKind(StrEnum):
    """The kinds of operations on reviews."""

    OPENED = "opened"
    """The run was opened for review; the data are those of `OpenedData`."""
    LABEL = "label"
    COMMENT = "comment"
    VERDICT = "verdict"
    SEEN = "seen"
    UNSEEN = "unseen"
    STOPPED = "stopped"
    """The step at which the reviewer stopped."""
    DELETE = "delete"
    """Withdraws the operation whose uuid is `target`."""


class RunVerdict(StrEnum):
    """A reviewer's verdict on an attempt or run; stored as `attempt_review`."""

    ACCEPT = "accept"
    ACCEPT_CORRECTED_TIME = "accept_corrected_time"
    EXCLUDE = "exclude"
    NEEDS_SECOND_REVIEWER = "needs_second_reviewer"
    SOLVED = "solved"
    """The agent solved the task; only for an agent's run."""
    NOT_SOLVED = "not_solved"
    """The agent did not solve the task, for the given reasons; only for an agent's run."""


WHOLE_VERDICTS = (RunVerdict.SOLVED.value, RunVerdict.NOT_SOLVED.value)
"""Verdicts whose names queries compare as a whole, because one name contains another."""


class ExcludeReason(StrEnum):
    """A reason why an attempt does not count."""

    EXPOSURE = "exposure"
    AID = "aid"
    SHORTCUT = "shortcut"
    ENVIRONMENT = "environment"
    NOT_SERIOUS = "not_serious"


class FailureReason(StrEnum):
    """A reason why an agent's run did not solve its task."""

    WRONG_THEORY = "wrong_theory"
    WRONG_PLACE = "wrong_place"
    INCOMPLETE = "incomplete"
    REGRESSION = "regression"
    SHORTCUT = "shortcut"
    GAVE_UP = "gave_up"
    OUT_OF_BUDGET = "out_of_budget"
    HARNESS_FAULT = "harness_fault"


VerdictReason = ExcludeReason | FailureReason
"""A reason why an attempt is excluded, or why a run did not solve its task."""


REASONED: Mapping[RunVerdict, type[ExcludeReason] | type[FailureReason]] = {
    RunVerdict.EXCLUDE: ExcludeReason,
    RunVerdict.NOT_SOLVED: FailureReason,
}
"""The verdicts that need a reason, and the reasons of each."""


def reasons_of(verdict: RunVerdict, names: Iterable[str]) -> tuple[VerdictReason, ...]:
    """Return the reasons with these names that a verdict may have; other names are ignored."""
    known = REASONED.get(verdict)
    return () if known is None else tuple(known(name) for name in names if name in set(known))


class ReviewOperation(Operation, frozen=True, omit_defaults=True, rename={"subject": "run"}):
    """One reviewer's operation on a run, on a step of it, or on a range of one of the step's text fields."""

    subject: Text
    """The key of the run."""
    step: StepKey | None = None
    range: TextRange | None = None


class ReviewError(UserError):
    """A review can't be read or written as requested."""


CODEC = Codec(
    "gistpoint.reviews",
    1,
    ReviewOperation,
    "review",
    ReviewError,
    as_text={"step": StepKey.parse},
    kinds=frozenset(ReviewOperationKind),
)


class OpenedData(msgspec.Struct, frozen=True):
    """The data of an `opened` operation: the name of the file, and whether the reviewer is blind."""

    name: str = ""
    blind: bool = False


class LabelData(msgspec.Struct, frozen=True, omit_defaults=True):
    """The data of a `label` operation: the id of a label and the name of its set."""

    label: Text
    set: str = ""


class RunVerdictData(msgspec.Struct, frozen=True, omit_defaults=True):
    """The data of a `verdict` operation."""

    verdict: RunVerdict
    blind: bool | None = None
    """Whether the model and the outcome were hidden from the reviewer; None if that is unknown."""
    reasons: tuple[str, ...] = ()
    """Values of `ExcludeReason`, of `FailureReason` if not solved, or reasons of a newer gistpoint."""
    note: str = ""
    corrected_time_s: float | None = None
    minutes: float | None = None
    words: str = ""
    """The verdict in the reviewer's own words."""


@dataclass(frozen=True, slots=True)
class LabelGiven:
    """A label on a step, on a range of its text, or on the run if `step` is None; `op` is its operation."""

    op: str
    label: str
    set: str
    step: StepKey | None
    range: TextRange | None
    reviewer: str
    utc_ms: int


@dataclass(frozen=True, slots=True)
class RunComment:
    """A comment on a step, on a range of its text, or on the run if `step` is None; `op` is its operation."""

    op: str
    text: str
    step: StepKey | None
    range: TextRange | None
    reviewer: str
    utc_ms: int


@dataclass(frozen=True, slots=True)
class RunVerdictGiven:
    """A verdict on a run; only a reviewer's last one counts."""

    op: str
    verdict: RunVerdict
    reasons: tuple[VerdictReason, ...]
    note: str
    corrected_time_s: float | None
    minutes: float | None
    """The minutes that the reviewer spent; None if they are unknown."""
    blind: bool
    """Whether the model and the outcome were hidden from the reviewer; False if that is unknown."""
    reviewer: str
    utc_ms: int
    words: str = ""

    @property
    def in_words(self) -> str:
        """The verdict in the reviewer's own words; without any, its name."""
        return self.words or self.verdict.value.replace("_", " ")

    def is_named(self, name: str) -> bool:
        """Return whether a name in lower case, with underscores for spaces, is the whole verdict."""
        return self.in_words.lower().replace(" ", "_") == name


@dataclass(frozen=True, slots=True)
class Review:
    """One reviewer's annotations of one run."""

    run: str
    reviewer: str
    labels: tuple[LabelGiven, ...] = ()
    comments: tuple[RunComment, ...] = ()
    verdict: RunVerdictGiven | None = None
    seen: frozenset[StepKey] = frozenset()
    stopped: StepKey | None = None
    blind: bool = False
    name: str = ""
    """The name of the file from which the run was opened, without its folder."""

    @property
    def hides_outcome(self) -> bool:
        """Whether the model and the outcome must be hidden: in blind mode, before the verdict is given."""
        return self.blind and self.verdict is None


class ReviewBook(Book[ReviewOperation, Review]):
    """All known operations on reviews, by run and reviewer."""

    def __init__(self, operations: Iterable[ReviewOperation] = ()) -> None:
        self._alike: dict[str, set[str]] = {}
        super().__init__(fold, operations)

    def add(self, operation: ReviewOperation) -> bool:
        """Add an operation; return False if its uuid is already known."""
        self._alike.setdefault(beginning_of(operation.subject), set()).add(operation.subject)
        return super().add(operation)

    def runs_like(self, key: str) -> frozenset[str]:
        """Return the keys of annotated runs that begin like the run with `key`."""
        return frozenset(self._alike.get(beginning_of(key), ()))

    @property
    def runs(self) -> tuple[str, ...]:
        """The keys of the runs that have annotations."""
        return self.subjects

    def review(self, run: str, reviewer: str) -> Review:
        """Return a reviewer's review of a run; it may be empty."""
        return self.state(run, reviewer)

    def reviews(self) -> Iterator[Review]:
        """Yield all reviews, sorted by run and reviewer."""
        return self.states()


def annotated_key(document: RunDocument, book: ReviewBook) -> str:
    """Return the most specific key under which a run has annotations, or else the key of its beginning.

    The run may have been annotated when it had fewer records, or when keys did not yet cover the records
    after the first reply.
    """
    keys = successive_keys(document)
    found = next(keys)
    alike = book.runs_like(found)
    if alike - {found}:
        for key in keys:
            found = key if key in alike else found
    return found


def fold(run: str, reviewer: str, operations: Iterable[ReviewOperation]) -> Review:
    """Return the review that results from a reviewer's operations on a run, in any order."""
    labels: list[LabelGiven] = []
    comments: list[RunComment] = []
    verdict: RunVerdictGiven | None = None
    opened = OpenedData()
    in_force = standing(operations)
    for item in in_force:
        if item.kind == ReviewOperationKind.LABEL and (label := item.read(LabelData)) is not None:
            given = LabelGiven(item.op, label.label, label.set, item.step, item.range, reviewer, item.utc_ms)
            labels.append(given)
        elif item.kind == ReviewOperationKind.COMMENT and (remark := item.read(CommentData)) is not None:
            comments.append(RunComment(item.op, remark.text, item.step, item.range, reviewer, item.utc_ms))
        elif item.kind == ReviewOperationKind.VERDICT:
            verdict = _verdict(item) or verdict
        elif item.kind == ReviewOperationKind.OPENED and (opening := item.read(OpenedData)) is not None:
            opened = OpenedData(opening.name or opened.name, opening.blind)
    seen, stopped = _steps(in_force)
    return Review(
        run,
        reviewer,
        tuple(labels),
        tuple(comments),
        verdict,
        frozenset(seen),
        stopped,
        opened.blind,
        opened.name,
    )


def _steps(operations: Iterable[ReviewOperation]) -> tuple[set[StepKey], StepKey | None]:
    """Return the steps that a reviewer has seen, and the step at which they last stopped, or None."""
    seen: set[StepKey] = set()
    stopped: StepKey | None = None
    for item in operations:
        if item.step is None:
            continue
        match item.kind:
            case ReviewOperationKind.SEEN:
                seen.add(item.step)
            case ReviewOperationKind.UNSEEN:
                seen.discard(item.step)
            case ReviewOperationKind.STOPPED:
                stopped = item.step
    return seen, stopped


def _verdict(operation: ReviewOperation) -> RunVerdictGiven | None:
    given = operation.read(RunVerdictData)
    if given is None:
        return None
    return RunVerdictGiven(
        operation.op,
        given.verdict,
        reasons_of(given.verdict, given.reasons),
        given.note,
        _plausible(given.corrected_time_s),
        _plausible(given.minutes),
        given.blind is True,
        operation.reviewer,
        operation.utc_ms,
        given.words,
    )


def _plausible(value: float | None) -> float | None:
    return value if value is not None and abs(value) < 1e12 else None


# Verdicts on a run that a single key assigns: the default ones, or the user's own in `review.toml`


_WORDS_FILE = "review.toml"
_HINT = "Correct it, or move it away."


class VerdictWord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A verdict in a reviewer's own words, and the key that assigns it."""

    key: Annotated[str, Meta(min_length=1, max_length=1)]
    words: Annotated[str, Meta(min_length=1, max_length=60)]
    means: RunVerdict
    reasons: tuple[str, ...] = ()
    """Values of `ExcludeReason`, or of `FailureReason` if the verdict means `not_solved`."""


DEFAULT_WORDS = (
    VerdictWord("Y", "accept", RunVerdict.ACCEPT),
    VerdictWord("W", "wrong way: passed without a repair", RunVerdict.EXCLUDE, (ExcludeReason.SHORTCUT,)),
    VerdictWord("K", "knew the answer", RunVerdict.EXCLUDE, (ExcludeReason.EXPOSURE,)),
    VerdictWord("H", "had help that is not allowed", RunVerdict.EXCLUDE, (ExcludeReason.AID,)),
    VerdictWord("J", "junk: the environment failed", RunVerdict.EXCLUDE, (ExcludeReason.ENVIRONMENT,)),
    VerdictWord("I", "idle: not a serious attempt", RunVerdict.EXCLUDE, (ExcludeReason.NOT_SERIOUS,)),
    VerdictWord("Q", "question: needs a second reviewer", RunVerdict.NEEDS_SECOND_REVIEWER),
)
"""The verdicts on a person's attempt: whether it counts."""

AGENT_WORDS = (
    VerdictWord("Y", "solved", RunVerdict.SOLVED),
    VerdictWord("W", "wrong place changed", RunVerdict.NOT_SOLVED, (FailureReason.WRONG_PLACE,)),
    VerdictWord("K", "kept a wrong theory", RunVerdict.NOT_SOLVED, (FailureReason.WRONG_THEORY,)),
    VerdictWord("H", "half solved", RunVerdict.NOT_SOLVED, (FailureReason.INCOMPLETE,)),
    VerdictWord("J", "environment failed", RunVerdict.EXCLUDE, (ExcludeReason.ENVIRONMENT,)),
    VerdictWord("I", "gave up", RunVerdict.NOT_SOLVED, (FailureReason.GAVE_UP,)),
    VerdictWord("Q", "needs a second reviewer", RunVerdict.NEEDS_SECOND_REVIEWER),
)
"""The verdicts on an agent's run: whether it solved the task, and if not, why."""


def read_verdict_words(
    config: Path, taken: Collection[str], default: tuple[VerdictWord, ...] = DEFAULT_WORDS
) -> tuple[VerdictWord, ...]:
    """Return the verdicts of `review.toml` in a folder, or `default` if the file is missing or has none.

    The file contains `[[verdict]]` tables with `key`, `words`, `means` (a value of `RunVerdict`) and, for the
    verdicts of `REASONED`, `reasons`. `taken` are keys with another meaning. Raises `SettingsError` if the
    file can't be read or its content is invalid.
    """
    path = config / _WORDS_FILE
    try:
        values = read_toml(path)
    except FileNotFoundError:
        return default
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} can't be read: {error}.", hint=_HINT) from error
    found = _verdict_words(path, values) or default
    keys: set[str] = set()
    for word in found:
        if not word.key.isprintable() or word.key.isspace():
            raise SettingsError(
                f"{path}: the key {word.key!r} of {word.words!r} is not a visible character.",
                hint="Choose a letter, a digit or another visible character.",
            )
        if word.key in keys or word.key in taken:
            raise SettingsError(
                f"{path}: the key {word.key!r} of {word.words!r} is already used.", hint="Choose another one."
            )
        keys.add(word.key)
        if word.means is RunVerdict.ACCEPT_CORRECTED_TIME:
            raise SettingsError(
                f"{path}: {word.words!r} needs a time, which no key can give.", hint="Give it with V."
            )
        _require_reasons(path, word)
    return found


_EXPECTED: Mapping[str, tuple[Any, str]] = {
    "key": (Annotated[str, Meta(min_length=1, max_length=1)], "one character"),
    "words": (Annotated[str, Meta(min_length=1, max_length=60)], "a string of 1 to 60 characters"),
    "means": (RunVerdict, f"one of {', '.join(RunVerdict)}"),
    "reasons": (tuple[str, ...], 'a list of strings, such as ["shortcut"]'),
}
"""The keys of a `[[verdict]]` table with their types, and the types in words."""


def _verdict_words(path: Path, values: Mapping[str, Any]) -> tuple[VerdictWord, ...]:
    """Return the verdicts that `review.toml` declares.

    Raises `SettingsError` that names the file, the place in it, and what is expected there.
    """
    for name in values:
        if name != "verdict":
            raise SettingsError(f"{path}: unknown key {name!r}.", hint="Write each verdict as [[verdict]].")
    tables = values.get("verdict", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise SettingsError(f"{path}: 'verdict' must be a list of tables.", hint="Write each as [[verdict]].")
    return tuple(_verdict_word(f"{path}: verdict {number}", table) for number, table in enumerate(tables, 1))


def _verdict_word(where: str, table: Mapping[str, Any]) -> VerdictWord:
    found: dict[str, Any] = {}
    for name in table:
        if name not in _EXPECTED:
            raise SettingsError(f"{where}: unknown key {name!r}.", hint=f"Known: {', '.join(_EXPECTED)}.")
    for name, (kind, words) in _EXPECTED.items():
        if name not in table:
            if name == "reasons":
                continue
            raise SettingsError(f"{where} has no {name!r}.", hint=f"Expected: {words}.")
        try:
            found[name] = msgspec.convert(table[name], decodable(kind))
        except msgspec.ValidationError as error:
            raise SettingsError(f"{where}: {name!r} must be {words}, not {table[name]!r}.") from error
    return VerdictWord(**found)


def _require_reasons(path: Path, word: VerdictWord) -> None:
    """Raise `SettingsError` unless a verdict has the reasons that it requires, and no others."""
    if word.means not in REASONED:
        if word.reasons:
            raise SettingsError(f"{path}: {word.words!r}: this verdict can't have reasons.", hint=_HINT)
        return
    if not word.reasons:
        raise SettingsError(f"{path}: {word.words!r}: this verdict needs a reason.", hint=_HINT)
    known = reasons_of(word.means, word.reasons)
    unknown = [name for name in word.reasons if name not in known]
    if unknown:
        raise SettingsError(f"{path}: {word.words!r}: unknown reason {unknown[0]!r}.", hint=_HINT)
