"""The marks in the gutter of a gist, and the lines that would raise its scores. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any

from gistpoint.core.code.parsing import Fault
from gistpoint.core.kinds.gist.failures import ErrorKind
from gistpoint.core.kinds.gist.rates import ExistenceReason
from gistpoint.core.kinds.gist.score import LineEvidence

Marks = Mapping[int, LineEvidence]
"""The evidence of a line, by its number from 1; blank lines, comments and lines of the test have none."""

RAN, NOT_RUN, NO_RUN = "●", "○", "·"
STANDS, GLUE, INVENTED = "=", "~", "+"
LEGEND = f"{RAN} ran  {NOT_RUN} did not  {STANDS} stands in the original  {INVENTED} does not  {GLUE} glue"


@dataclass(frozen=True, slots=True)
class MissingLine:
    """A line of the gist (from 1) that lowers a score, and the reason in words."""

    line: int
    words: str


def marks_of(lines: Iterable[LineEvidence]) -> dict[int, LineEvidence]:
    """Return the evidence by the first line of each statement; of several on one line, the one that lowers a score."""
    marks: dict[int, LineEvidence] = {}
    for line in lines:
        known = marks.get(line.first, line)
        lacking = max(known, line, key=lambda one: (not one.exists, one.existence is not ExistenceReason.GLUE))
        ran = min((one.ran for one in (known, line) if one.ran is not None), default=None)
        marks[line.first] = replace(lacking, ran=ran)
    return marks


def carried(marks: Marks, before: str, after: str) -> dict[int, LineEvidence]:
    """Return the marks of the text `before` on the lines of `after` that are the same."""
    if before == after:
        return dict(marks)
    old, new = before.split("\n"), after.split("\n")
    head = _same(old, new)
    tail = _same(old[head:][::-1], new[head:][::-1])
    matcher = SequenceMatcher(None, old[head : len(old) - tail], new[head : len(new) - tail])
    moved = {head + a + n: head + b + n for a, b, size in matcher.get_matching_blocks() for n in range(size)}
    moved |= {n: n for n in range(head)} | {len(old) - n: len(new) - n for n in range(1, tail + 1)}
    moved = {a + 1: b + 1 for a, b in moved.items()}
    return {moved[line]: evidence for line, evidence in marks.items() if line in moved}


def _same(one: list[str], other: list[str]) -> int:
    """Return how many lines two texts begin with alike."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def glyphs(evidence: LineEvidence | None) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return two glyphs with their styles: whether the line ran, and whether it is in the original."""
    if evidence is None:
        return (" ", ""), (" ", "")
    ran = {True: (RAN, "$text-success"), False: (NOT_RUN, "bold $text-warning"), None: (NO_RUN, "$foreground 60%")}
    if evidence.exists:
        stands = (STANDS, "$text-success")
    elif evidence.existence is ExistenceReason.GLUE:
        stands = (GLUE, "$foreground 60%")
    else:
        stands = (INVENTED, "bold $text-error")
    return ran[evidence.ran], stands


def words_of(evidence: LineEvidence | None) -> str:
    """Return the evidence on a line as a sentence."""
    if evidence is None:
        return "nothing is counted on this line"
    ran = {True: "ran", False: "never ran", None: "is not counted as run or not"}[evidence.ran]
    place = evidence.original
    where = f": {place.path}:{place.line} in {place.block or 'its top level'}" if place is not None else ""
    return f"this line {ran}; it {_EXISTENCE[evidence.existence]}{where}"


_EXISTENCE = {
    ExistenceReason.IN_BLOCK: "stands in the original block",
    ExistenceReason.IN_TOP_LEVEL: "stands at the original's top level",
    ExistenceReason.NOT_IN_BLOCK: "does not stand in the original block",
    ExistenceReason.NO_BLOCK: "is in a block that the original has not",
    ExistenceReason.NOT_IN_TOP_LEVEL: "stands at no top level of the original",
    ExistenceReason.GLUE: "is glue that a flat file needs",
}


def missing_lines(lines: Iterable[LineEvidence], undefined: Iterable[tuple[int, str]]) -> list[MissingLine]:
    """Return the lines that lower the scores, in their order."""
    found = [MissingLine(line, f"{name} is not defined") for line, name in undefined]
    for line in lines:
        if line.ran is False:
            found.append(MissingLine(line.first, "never ran"))
        if not line.exists and line.existence is not ExistenceReason.GLUE:
            found.append(MissingLine(line.first, _EXISTENCE[line.existence]))
    return sorted(found, key=lambda lack: lack.line)


def figures(score: Mapping[str, Any]) -> str:
    """Return the figures of a score, as `core.kinds.gist.score` spells it, in one line."""
    if not score:
        return "not scored yet"
    error = score.get("error")
    if isinstance(error, Mapping) and error.get("kind") == ErrorKind.SYNTAX:
        return f"not faithful  {does_not_parse(str(error.get('evidence', '')))}"
    words = ["faithful" if score.get("execution_fidelity") else "not faithful"]
    words.append("self-contained" if score.get("self_contained") else "not self-contained")
    if score.get("instances"):
        words.append(f"tests {score.get('passed', 0)}/{score['instances']}")
    words += [f"ran {rate(score.get('line_execution'))}", f"stands {rate(score.get('line_existence'))}"]
    if isinstance(error, Mapping):
        words.append(" ".join(str(error.get(key) or "") for key in ("category", "kind")).replace("_", " ").strip())
    flags = score.get("flags")
    if isinstance(flags, Mapping):
        words += [name.replace("_", " ") for name, value in flags.items() if value]
    return "  ".join(words)


def does_not_parse(fault: Fault | str) -> str:
    """Return the message for a text that is not a Python module, given the result of `fault_in`."""
    return f"does not parse: {fault}"


def rate(report: object) -> str:
    """Return the rate of a report in percent."""
    value = report.get("rate") if isinstance(report, Mapping) else None
    return f"{value:.1f} %" if isinstance(value, int | float) else "none"
