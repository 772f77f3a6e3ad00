"""The evidence behind a score, line by line of the gist as it was handed in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gistpoint.core.kinds.gist.existence import ExistenceReason, LineExistence, OriginalLine
from gistpoint.core.kinds.gist.score import GistScore
from gistpoint.core.kinds.gist.splicing import SplicedGist


@dataclass(frozen=True, slots=True)
class LineEvidence:
    """One logical line of a gist. Lines of the test are judged as the original test that took their place: not here."""

    first: int
    last: int
    """Physical lines of the gist, 1-based and inclusive."""
    ran: bool | None
    """None where the line is not executable, or where the gist did not run."""
    existence: ExistenceReason
    original: OriginalLine | None = None
    """The line that it was matched to, or the block that it was looked for in."""

    @property
    def exists(self) -> bool:
        """Whether it counts as existing."""
        return self.existence in (ExistenceReason.IN_BLOCK, ExistenceReason.IN_TOP_LEVEL)


def line_evidence(score: GistScore, spliced: SplicedGist | None) -> tuple[LineEvidence, ...]:
    """Return the evidence of a score for the lines of the gist, in their order; none for one that does not parse.

    `spliced` is the text that was scored, where it is not the gist itself.
    """
    if score.existence is None:
        return ()
    origin = spliced.origin if spliced is not None else None
    lines = score.existence.lines
    runs = score.execution.lines if score.execution is not None else [None] * len(lines)
    found = []
    for one, run in zip(lines, runs, strict=True):
        first, last = _place(origin, one.line.first), _place(origin, one.line.last)
        if first and last:
            found.append(_evidence(one, first, last, run.ran if run is not None and run.counts else None))
    return tuple(found)


def _evidence(one: LineExistence, first: int, last: int, ran: bool | None) -> LineEvidence:
    return LineEvidence(first, last, ran, one.reason, one.original)


def _place(origin: Sequence[int | None] | None, line: int) -> int | None:
    """Return the line of the gist that stands behind a line of the scored text."""
    if origin is None:
        return line
    return origin[line - 1] if line <= len(origin) else None


def evidence_rows(lines: Iterable[LineEvidence]) -> list[list[Any]]:
    """Return evidence as it is journalled: first and last line, ran, the reason's name, path, block and line."""
    return [
        [
            line.first,
            line.last,
            line.ran,
            line.existence.name,
            *((line.original.path, line.original.block, line.original.line) if line.original else ()),
        ]
        for line in lines
    ]


def read_evidence(rows: Iterable[Sequence[Any]]) -> tuple[LineEvidence, ...]:
    """Read what `evidence_rows` wrote; rows of another shape are left out."""
    found = []
    for row in rows:
        if len(row) not in (4, 7) or row[3] not in ExistenceReason.__members__:
            continue
        original = OriginalLine(str(row[4]), str(row[5]), int(row[6])) if len(row) == 7 else None
        found.append(LineEvidence(int(row[0]), int(row[1]), row[2], ExistenceReason[row[3]], original))
    return tuple(found)
