"""A reviewer, and the store of all reviews of runs."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gistpoint.core.ports import TimeSource
from gistpoint.sessions.annotations.keys import StepKey, TextRange
from gistpoint.sessions.annotations.reviews import (
    CODEC,
    REASONED,
    ExcludeReason,
    LabelData,
    OpenedData,
    Review,
    ReviewBook,
    ReviewError,
    ReviewOperation,
    ReviewOperationKind,
    RunVerdict,
    RunVerdictData,
    VerdictReason,
)
from gistpoint.sessions.annotations.side_files import CommentData, DeleteData, SideFileStore


class ReviewStore(SideFileStore[ReviewOperation, ReviewBook]):
    """The reviews of all reviewers; each operation is appended to its reviewer's file."""

    def __init__(self, folder: Path, clock: TimeSource) -> None:
        """Read the files; the folder is created at the first write."""
        super().__init__(folder, clock, CODEC, ReviewBook)


@dataclass(slots=True)
class Reviewer:
    """One reviewer; the methods that annotate append operations to the reviewer's file."""

    store: ReviewStore
    name: str

    def __post_init__(self) -> None:
        self.name = CODEC.name_of(self.name, "reviewer")

    def review(self, run: str) -> Review:
        """Return this reviewer's review of a run."""
        return self.store.book.review(run, self.name)

    def open(self, run: str, name: str, *, blind: bool) -> Review:
        """Record that a run was opened, unless that is already recorded, and return the review.

        `name` is the path of its file, and `blind` whether the reviewer works blind.
        """
        known = self.review(run)
        file = name.replace("\\", "/").rsplit("/", 1)[-1]
        if known.name != file or known.blind != blind:
            self._add(run, ReviewOperationKind.OPENED, data=OpenedData(file, blind))
        return self.review(run)

    def label(
        self,
        run: str,
        label: str,
        step: StepKey | None,
        *,
        place: TextRange | None = None,
        label_set: str = "",
    ) -> ReviewOperation:
        """Add a label to a step, to a range of its text, or to the run if `step` is None."""
        return self._add(run, ReviewOperationKind.LABEL, step, place, LabelData(label, label_set))

    def toggle(
        self,
        run: str,
        label: str,
        step: StepKey | None,
        *,
        place: TextRange | None = None,
        label_set: str = "",
    ) -> bool:
        """Add a label, or remove it if it exists; return whether it exists now."""
        same = [
            given.op
            for given in self.review(run).labels
            if (given.label, given.step, given.range) == (label, step, place)
        ]
        for op in same:
            self.delete(op)
        if not same:
            self.label(run, label, step, place=place, label_set=label_set)
        return not same

    def comment(
        self, run: str, text: str, step: StepKey | None = None, *, place: TextRange | None = None
    ) -> ReviewOperation:
        """Comment on a step, on a range of its text, or on the run if `step` is None."""
        return self._add(run, ReviewOperationKind.COMMENT, step, place, CommentData(text))

    def verdict(
        self,
        run: str,
        verdict: RunVerdict,
        *,
        reasons: Iterable[VerdictReason] = (),
        note: str = "",
        corrected_time_s: float | None = None,
        minutes: float | None = None,
        words: str = "",
    ) -> ReviewOperation:
        """Give a verdict on a run, in the reviewer's own `words` if there are any.

        Whether the verdict is blind follows from the review so far. Raises `ReviewError` for an exclusion or
        a "not solved" without a reason, for a missing corrected time, and for a reason or time with another
        verdict.
        """
        why = tuple(sorted({reason.value for reason in reasons}))
        if (verdict in REASONED) != bool(why):
            raise ReviewError(
                "Only an exclusion or 'not solved' can have reasons, and each needs one.",
                hint=f"One of {', '.join(REASONED.get(verdict, ExcludeReason))}.",
            )
        if (verdict is RunVerdict.ACCEPT_CORRECTED_TIME) != (corrected_time_s is not None):
            raise ReviewError("Only accept_corrected_time can have a corrected time.")
        data = RunVerdictData(
            verdict, self.review(run).hides_outcome, why, note, corrected_time_s, minutes, words
        )
        return self._add(run, ReviewOperationKind.VERDICT, data=data)

    def seen(self, run: str, steps: Iterable[StepKey]) -> None:
        """Mark steps as seen, except those already marked; they are synced with the next synced operation."""
        known = self.review(run).seen
        new = sorted(set(steps) - known)
        self.store.append(
            [self._operation(run, ReviewOperationKind.SEEN, step) for step in new], durable=False
        )

    def unseen(self, run: str, steps: Iterable[StepKey]) -> None:
        """Mark steps as not seen, except those that are not marked as seen."""
        known = self.review(run).seen
        self.store.append(
            [self._operation(run, ReviewOperationKind.UNSEEN, step) for step in sorted(set(steps) & known)]
        )

    def stopped(self, run: str, step: StepKey) -> None:
        """Record the step at which the reviewer stopped, so that the next session begins there."""
        if self.review(run).stopped != step:
            self.store.append([self._operation(run, ReviewOperationKind.STOPPED, step)])

    def delete(self, op: str) -> ReviewOperation:
        """Withdraw an operation. Raises `ReviewError` unless it is this reviewer's."""
        target = self.store.book.get(op)
        if target is None or target.reviewer != self.name:
            raise ReviewError("You can withdraw only what you wrote yourself.")
        return self._add(target.subject, ReviewOperationKind.DELETE, data=DeleteData(op))

    def _add(
        self,
        run: str,
        kind: ReviewOperationKind,
        step: StepKey | None = None,
        place: TextRange | None = None,
        data: msgspec.Struct | None = None,
    ) -> ReviewOperation:
        operation = self._operation(run, kind, step, place, data)
        self.store.append([operation])
        return operation

    def _operation(
        self,
        run: str,
        kind: ReviewOperationKind,
        step: StepKey | None = None,
        place: TextRange | None = None,
        data: msgspec.Struct | None = None,
    ) -> ReviewOperation:
        now = self.store.next_ms(self.name)
        written = {} if data is None else msgspec.to_builtins(data)
        return ReviewOperation(
            str(uuid.uuid4()), self.name, now, run, kind.value, written, step=step, range=place
        )
