"""Outputs made comparable: what differs from run to run by its nature is masked before two of them are compared."""

from __future__ import annotations

import re
from collections.abc import Mapping

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
