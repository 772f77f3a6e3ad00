"""A reviewer at work on runs."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gistpoint.core.errors import UserError
from gistpoint.core.ports import TimeSource
from gistpoint.sessions.reviews.keys import StepKey, TextRange
from gistpoint.sessions.reviews.state import (
    FORMAT,
    ExcludeReason,
    Kind,
    Operation,
    Review,
    ReviewBook,
    Verdict,
    decode,
    encode,
)
from gistpoint.sessions.runs.model import Json
from gistpoint.sessions.sidefiles.store import (
    LONGEST_NAME,
    Codec,
    ReadOperations,
    SideFileStore,
    is_reviewer,
    read_side_file,
)


class ReviewError(UserError):
    """A review can't be read or written as asked."""


CODEC = Codec(FORMAT.header, encode, decode, "review", ReviewError)


def read_operations(path: Path) -> ReadOperations[Operation]:
    """Read a file of operations. Raises `ReviewError` where the file can't be read."""
    return read_side_file(path, CODEC)


class ReviewStore(SideFileStore[Operation, ReviewBook]):
    """Those of every reviewer are read, each operation is added to its reviewer's file."""

    def __init__(self, folder: Path, clock: TimeSource) -> None:
        """Read what is there; the folder is made when something is written."""
        super().__init__(folder, clock, CODEC, ReviewBook)


@dataclass(slots=True)
class Reviewer:
    """One reviewer at work: each method is one operation, or one for each step; labels and verdicts are synced."""

    store: ReviewStore
    name: str

    def __post_init__(self) -> None:
        self.name = self.name.strip()
        if not is_reviewer(self.name):
            raise ReviewError(
                "The reviewer has no name that can be used.",
                hint=f"Take a pseudonym of at most {LONGEST_NAME} characters.",
            )

    def review(self, run: str) -> Review:
        """Return what this reviewer has said about a run."""
        return self.store.book.review(run, self.name)

    def open(self, run: str, name: str, *, blind: bool) -> Review:
        """Note that a run is opened, from which file, and whether blind; nothing is written if all that is known."""
        known = self.review(run)
        file = name.replace("\\", "/").rsplit("/", 1)[-1]
        if known.name != file or known.blind != blind:
            self._add(run, Kind.OPENED, data={"name": file, "blind": blind})
        return self.review(run)

    def label(
        self, run: str, label: str, step: StepKey | None, *, place: TextRange | None = None, label_set: str = ""
    ) -> Operation:
        """Put a label on a step, on a range of its text, or (without a step) on the run."""
        return self._add(run, Kind.LABEL, step, place, {"label": label, **({"set": label_set} if label_set else {})})

    def toggle(
        self, run: str, label: str, step: StepKey | None, *, place: TextRange | None = None, label_set: str = ""
    ) -> bool:
        """Put a label there, or take it back where it stands already; return whether it stands now."""
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

    def comment(self, run: str, text: str, step: StepKey | None = None, *, place: TextRange | None = None) -> Operation:
        """Say something about a step, a range of its text, or the run."""
        return self._add(run, Kind.COMMENT, step, place, {"text": text})

    def verdict(
        self,
        run: str,
        verdict: Verdict,
        *,
        reasons: Iterable[ExcludeReason] = (),
        note: str = "",
        corrected_time_s: float | None = None,
        minutes: float | None = None,
    ) -> Operation:
        """Give a verdict. Raises `ReviewError` for an exclusion without a reason, or a corrected time without a time.

        Whether it was given blind is told by the review as it stands.
        """
        why = sorted({reason.value for reason in reasons})
        if (verdict is Verdict.EXCLUDE) != bool(why):
            raise ReviewError("Exclusions, and they alone, have reasons.", hint=f"One of {', '.join(ExcludeReason)}.")
        if (verdict is Verdict.ACCEPT_CORRECTED_TIME) != (corrected_time_s is not None):
            raise ReviewError("A corrected time belongs to accept_corrected_time, and to nothing else.")
        data: dict[str, Json] = {"verdict": verdict.value, "blind": self.review(run).hides_outcome}
        data.update({"reasons": [*why]} if why else {})
        data.update({"note": note} if note else {})
        data.update({} if corrected_time_s is None else {"corrected_time_s": corrected_time_s})
        data.update({} if minutes is None else {"minutes": minutes})
        return self._add(run, Kind.VERDICT, data=data)

    def seen(self, run: str, steps: Iterable[StepKey]) -> None:
        """Note steps as seen; those that are already cost nothing. Synced with the next operation that is."""
        known = self.review(run).seen
        new = sorted(set(steps) - known)
        self.store.append([self._operation(run, Kind.SEEN, step) for step in new], durable=False)

    def unseen(self, run: str, steps: Iterable[StepKey]) -> None:
        """Note steps as not seen."""
        known = self.review(run).seen
        self.store.append([self._operation(run, Kind.UNSEEN, step) for step in sorted(set(steps) & known)])

    def stopped(self, run: str, step: StepKey) -> None:
        """Note where the reviewer is, so that the next time begins there."""
        if self.review(run).stopped != step:
            self.store.append([self._operation(run, Kind.STOPPED, step)])

    def delete(self, op: str) -> Operation:
        """Take back an operation of one's own. Raises `ReviewError` for any other."""
        target = self.store.book.get(op)
        if target is None or target.reviewer != self.name:
            raise ReviewError("Only what you said yourself can be taken back.")
        return self._add(target.run, Kind.DELETE, data={"target": op})

    def _add(
        self,
        run: str,
        kind: Kind,
        step: StepKey | None = None,
        place: TextRange | None = None,
        data: Mapping[str, Json] | None = None,
    ) -> Operation:
        operation = self._operation(run, kind, step, place, data)
        self.store.append([operation])
        return operation

    def _operation(
        self,
        run: str,
        kind: Kind,
        step: StepKey | None = None,
        place: TextRange | None = None,
        data: Mapping[str, Json] | None = None,
    ) -> Operation:
        now = self.store.next_ms(self.name)
        return Operation(str(uuid.uuid4()), self.name, now, run, kind.value, step, place, data or {})
