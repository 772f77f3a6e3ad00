"""The calls of an attempt for formats that list them, with the arguments that may be published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gistpoint.core.attempts.state import fold
from gistpoint.core.study.rows import AttemptRow
from gistpoint.sessions.exports.study.registry import StudyExport
from gistpoint.sessions.journal import read_journal

_LONGEST = 200
LEFT_OUT = "(left out)"


@dataclass(frozen=True)
class ExportedCall:
    """One call of an attempt."""

    number: int
    tool: str
    kind: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    """The result; empty in public data."""
    at_s: float | None = None
    seconds: float = 0.0
    refused: bool = False


def calls_of(export: StudyExport, row: AttemptRow) -> tuple[ExportedCall, ...]:
    """Return the calls of an attempt; without its journal, they have no arguments.

    Public data contain no results, and neither code nor other long arguments, because people wrote them.
    """
    path = export.journals.get(row.attempt)
    recorded = (
        {call.number: call for call in fold(read_journal(path).events).calls} if path is not None else {}
    )
    return tuple(
        ExportedCall(
            call.number,
            call.tool,
            call.kind,
            _permitted_arguments(recorded[call.number].arguments, public=export.public)
            if call.number in recorded
            else {},
            (recorded[call.number].text or "") if call.number in recorded and not export.public else "",
            call.at_s,
            call.seconds,
            call.refused,
        )
        for call in row.calls
    )


def _permitted_arguments(arguments: Mapping[str, Any], *, public: bool) -> Mapping[str, Any]:
    if not public:
        return arguments
    return {
        name: value if name in _PLACES and _is_short(value) else LEFT_OUT for name, value in arguments.items()
    }


_PLACES = frozenset(
    {"file_path", "path", "func_name", "dir_path", "line", "start_line", "end_line", "offset", "limit"}
)
"""Arguments for the place where a call looks; people choose them from what exists."""


def _is_short(value: object) -> bool:
    return not isinstance(value, str) or (len(value) <= _LONGEST and "\n" not in value)
