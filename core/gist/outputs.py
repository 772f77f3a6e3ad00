"""Outputs made comparable: what differs from run to run by its nature is masked before two of them are compared."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b0x[0-9a-fA-F]{6,16}\b"), "<address>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? +\d\d? \w{3} \d{4} \d\d:\d\d:\d\d(?: GMT)?"), "<time>"),
    (re.compile(r"\b\d\d/\w{3}/\d{4}[: ]\d\d:\d\d:\d\d(?: [+-]\d{4})?"), "<time>"),
    (re.compile(r"\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"), "<time>"),
    (re.compile(r"\b\d+(?:\.\d+)?(?:e-?\d+)? ?(?:ns|us|µs|ms|s|sec|secs|seconds?|minutes?)\b"), "<duration>"),
    (re.compile(r"(?i)\b(pid|seed|random[ _-]?seed)([ =:]+)\d+"), r"\1\2<number>"),
    (re.compile(r'(?P<q>["\']?)(?:/private)?/tmp/[^\s"\':,)]*(?P=q)'), "<path>"),
    (re.compile(r'(File ")([^"]*)(", line )\d+'), r"\1<path>\3<line>"),
    (re.compile(r"(?m)^(\S+\.py):\d+(?=: )"), r"<path>:<line>"),
    (re.compile(r"\bid=\d{9,}\b"), "id=<number>"),
)


def normalise_output(text: str, places: Mapping[str, str] | None = None) -> str:
    """Mask times, durations, addresses, process ids, seeds, temporary paths and line numbers of tracebacks.

    `places` maps paths and file names of this run (working folder, gist, interpreter) to what stands for them;
    longer ones are replaced first. ANSI sequences and carriage returns are taken out.
    """
    text = _ANSI.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    for place, word in sorted((places or {}).items(), key=lambda item: -len(item[0])):
        if place:
            text = text.replace(place, word)
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text


@dataclass(frozen=True, slots=True)
class OutputPattern:
    """What an output must look like: its lines, with gaps where two runs of the original differed."""

    parts: tuple[str | int | None, ...]
    """A line that must be there, a number of lines that may hold anything, or None for any number of such lines."""

    @classmethod
    def of(cls, runs: Sequence[str]) -> OutputPattern:
        """Build it from the normalised outputs of one or more runs of the original."""
        parts: list[str | int | None] = list(runs[0].splitlines()) if runs else []
        for run in runs[1:]:
            parts = _merged(parts, run.splitlines())
        return cls(tuple(parts))

    def matches(self, text: str) -> bool:
        """Whether a normalised output fits."""
        lines = text.splitlines()
        reached = {0}
        for part in self.parts:
            if part is None:
                reached = set(range(min(reached), len(lines) + 1))
            elif isinstance(part, int):
                reached = {place + part for place in reached if place + part <= len(lines)}
            else:
                reached = {place + 1 for place in reached if place < len(lines) and lines[place] == part}
            if not reached:
                return False
        return len(lines) in reached

    @property
    def text(self) -> str:
        """The pattern as text to show, a gap as `[varies]`."""
        return "\n".join(part if isinstance(part, str) else "[varies]" for part in self.parts)


def _merged(parts: list[str | int | None], lines: list[str]) -> list[str | int | None]:
    keys = [part if isinstance(part, str) else "\0" for part in parts]
    merged: list[str | int | None] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, keys, lines, autojunk=False).get_opcodes():
        if kind == "equal":
            merged.extend(parts[a:b])
        elif all(not isinstance(part, str) for part in parts[a:b]) and None in parts[a:b]:
            merged.append(None)
        else:
            width = sum(part if isinstance(part, int) else 1 for part in parts[a:b])
            merged.append(width if None not in parts[a:b] and width == d - c else None)
    return merged
