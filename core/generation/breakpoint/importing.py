"""A record made into a task: found in the source, corrupted, proven by the suite, and written with where it is from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gistpoint.core.cancel import CancelToken
from gistpoint.core.generation.breakpoint.records import Record
from gistpoint.core.generation.breakpoint.targets import target_of
from gistpoint.core.generation.intake import Intake, OnMaking
from gistpoint.core.generation.making import write_proven
from gistpoint.core.generation.proof import DEFAULT_MIN_FAILING, prove
from gistpoint.core.ports import Runner
from gistpoint.core.tasks.model import Rules, Task

DATA_SET = "breakpoint"


def import_record(
    record: Record,
    intake: Intake,
    runner: Runner,
    into: Path,
    *,
    min_failing: int = DEFAULT_MIN_FAILING,
    provenance: Mapping[str, Any] | None = None,
    on_progress: OnMaking | None = None,
    cancel: CancelToken | None = None,
) -> Task:
    """Prove a record and write its task below `into`.

    Refused submissions cost an attempt, as in the paper. The record is kept verbatim in the answer, beside the failing
    tests that are found anew. Raises `RefusedRecordError`, and `NoTaskError` where the tests do not bear it out.
    """
    found = target_of(record, intake.repository.tree, frozenset(intake.test_files))
    proof = prove(intake, (found.target,), runner, min_failing=min_failing, on_progress=on_progress, cancel=cancel)
    source = intake.repository.source
    marks = [*record.marks, *found.marks]
    if source.kind != "git" or not source.revision.startswith(record.commit):
        marks.append("not_from_the_commit")
    origin = {
        "data_set": DATA_SET,
        "id": record.id,
        "url": record.url,
        "commit": record.commit,
        "line": record.line,
        "marks": marks,
        "record": record.text,
    }
    return write_proven(
        intake,
        proof,
        record.mode,
        runner.backend.name,
        into,
        rules=Rules(refused_costs_attempt=True, min_failing=min_failing),
        provenance={"import": origin, **(provenance or {})},
    )
