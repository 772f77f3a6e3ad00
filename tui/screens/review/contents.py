"""What the pages beside the step itself show; computed in the reader's thread."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from gistpoint.core.diffs import DiffError, FileDiff, compute
from gistpoint.core.outcomes import Outcome, TestResult
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.model import Run, Step
from gistpoint.sessions.runs.rendering import header_lines

RAW_SHOWN = 2_000_000
"""Bytes of the raw records that are shown."""
_LINE = re.compile(r"^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\s+(\S+::\S.*?)(?: - (.*))?$")
_VERBOSE = re.compile(r"^(\S+::\S.*?)\s+(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b")
_OUTCOMES = {
    "PASSED": Outcome.PASSED,
    "FAILED": Outcome.FAILED,
    "ERROR": Outcome.ERROR,
    "SKIPPED": Outcome.SKIPPED,
    "XFAIL": Outcome.XFAILED,
    "XPASS": Outcome.XPASSED,
}
_MOST_LINES = 200_000


@dataclass(frozen=True, slots=True)
class DiffContent:
    """Files that changed, and a note on where that is known from."""

    files: tuple[FileDiff, ...]
    note: str


def step_diff(step: Step, before: str | None) -> DiffContent:
    """Return what a step changed: as recorded, else from the arguments of its edits.

    `before` is the recorded diff of all steps up to the one before.
    """
    if step.diff is not None:
        files = parsed(step.diff)
        if files is not None:
            how = "derived" if "diff" in step.derived else "recorded"
            return DiffContent(files, "" if files else f"Nothing changed in this step ({how}).")
    if before is not None and step.diff_so_far is not None and (files := _difference(before, step.diff_so_far)):
        return DiffContent(files, "What was added to the diff that the run recorded.")
    found: list[FileDiff] = []
    only_paths: list[str] = []
    for edit in step.edits:
        if edit.new is None:
            only_paths.append(edit.path)
        else:
            found.append(
                compute(
                    edit.old or "", edit.new, old_path=edit.path if edit.old is not None else None, new_path=edit.path
                )
            )
    if found:
        return DiffContent(tuple(found), "From the arguments of the edit: the place in the file is not known.")
    if only_paths:
        return DiffContent((), f"Changed, but how was not recorded: {', '.join(only_paths)}")
    return DiffContent((), "This step records no change.")


def _difference(before: str, after: str) -> tuple[FileDiff, ...]:
    from gistpoint.sessions.runs.index import between

    old, new = ({file.path: file for file in parsed(text) or ()} for text in (before, after))
    changes = (between(old.get(path), new.get(path)) for path in sorted(old.keys() | new.keys()))
    return tuple(change for change in changes if change is not None)


def parsed(diff: str) -> tuple[FileDiff, ...] | None:
    """Return a recorded diff; None where it is none."""
    from gistpoint.core.diffs import parse

    try:
        return parse(diff)
    except DiffError:
        return None


def outcomes(step: Step) -> list[TestResult]:
    """Return the tests that the results of a step name, as pytest prints them."""
    found: dict[str, TestResult] = {}
    for result in step.results:
        for line in result.text.split("\n", _MOST_LINES)[:_MOST_LINES]:
            line = line.rstrip("\r")
            summary = _LINE.match(line)
            if summary:
                found[summary[2]] = TestResult(summary[2], _OUTCOMES[summary[1]], message=summary[3] or "")
            elif (verbose := _VERBOSE.match(line)) is not None:
                found.setdefault(verbose[1], TestResult(verbose[1], _OUTCOMES[verbose[2]]))
    return list(found.values())


def raw_text(document: RunDocument, index: int) -> tuple[str, str]:
    """Return the raw records of a step, and a note where they are."""
    step = document.step(index)
    raw = document.raw(index, RAW_SHOWN)
    length = sum(record.length for record in step.records) or step.raw.length
    places = ", ".join(f"{record.start:,} to {record.end:,}" for record in (step.records or (step.raw,))[:3])
    more = f" and {len(step.records) - 3} more" if len(step.records) > 3 else ""
    member = f" of {step.raw.member}" if step.raw.member else ""
    cut = f"; the first {RAW_SHOWN:,} are shown" if length > len(raw) else ""
    return raw.decode("utf-8", "replace"), f"Bytes {places}{more}{member}: {length:,} in all{cut}"


def run_text(header: Run, name: str, *, blind: bool) -> str:
    """Return what is known of a run."""
    if blind:
        header = replace(header, extra={}, also=())
    lines = [f"{'file':<12} {name}", *header_lines(header)]
    if blind:
        hidden = ("model", "verdict", "suspicious", "score", "exit status", "cost")
        lines = [line for line in lines if not line.startswith(hidden)]
        lines.append(f"{'hidden':<12} model and outcome, until your verdict")
    if header.prompt:
        lines += ["", "── task", header.prompt]
    if header.submission and not blind:
        lines += ["", "── submission", header.submission]
    return "\n".join(lines)
