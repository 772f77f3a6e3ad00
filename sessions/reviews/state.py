"""The fold from operations to what reviewers have said by now. It depends on the set of operations, not their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gistpoint.sessions.reviews.keys import StepKey, TextRange
from gistpoint.sessions.reviews.operations import ExcludeReason, Kind, Operation, Verdict
from gistpoint.sessions.sidefiles.book import Book, in_time


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
