"""Rows without outcomes, for those who watch a study before it is closed."""

from __future__ import annotations

from gistpoint.core.study.declaration import Quality
from gistpoint.core.study.flags import OF_PASSES
from gistpoint.core.study.rows import AttemptRow

ENDED = "ended"
"""The end of a blinded attempt that has ended."""


def blinded(row: AttemptRow, quality: Quality) -> AttemptRow:
    """Return a row of a person that is the same whether the attempt was solved or not.

    Only the fields that progress needs are kept. Flags that only a pass can have are left out, and an attempt
    that one of them excludes counts until the study is closed, unless another flag excludes it too: otherwise
    its absence would show that it was solved.
    """
    flags = tuple(flag for flag in row.flags if flag.flag not in OF_PASSES)
    exclusion = row.exclusion
    if exclusion in OF_PASSES:
        exclusion = next((flag.flag for flag in flags if flag.flag in quality.exclude_on), "")
    return AttemptRow(
        attempt=row.attempt,
        study=row.study,
        simulated=row.simulated,
        actor=row.actor,
        participant=row.participant,
        stratum=row.stratum,
        task=row.task,
        source=row.source,
        mode=row.mode,
        condition=row.condition,
        assignment=row.assignment,
        position=row.position,
        sitting=row.sitting,
        role=row.role,
        counted=not exclusion,
        exclusion=exclusion,
        end=ENDED if row.end else "",
        active_s=row.active_s,
        started_utc=row.started_utc,
        flags=flags,
    )
