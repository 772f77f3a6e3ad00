"""The calls of an attempt for formats that list them, with the arguments that may be published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gistpoint.core.attempts.events import JournalEvent
from gistpoint.core.attempts.state import fold
from gistpoint.core.study.rows import AttemptRow
from gistpoint.sessions.exports.study.registry import StudyExport
from gistpoint.sessions.journal import read_journal
from gistpoint.sessions.records.model import OWN_FORMAT, RunCall, Step
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.opening import open_run
from gistpoint.sessions.runs.own import journal_of

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


def events_of(export: StudyExport, attempt: str) -> tuple[JournalEvent, ...]:
    """Return the events of an attempt by a person or a model; empty if gistpoint has no journal of it."""
    if attempt in export.journals:
        return read_journal(export.journals[attempt]).events
    if attempt in export.runs:
        document = open_run(export.runs[attempt])
        if document.format.name == OWN_FORMAT:
            return journal_of(document).events
    return ()


def calls_of(export: StudyExport, row: AttemptRow) -> tuple[ExportedCall, ...]:
    """Return the calls of an attempt; without its journal or recorded run, they have no arguments.

    Public data contain no results and only those short arguments that locate a call's target, because people
    wrote the others.
    """
    recorded = _recorded(export, row.attempt)
    nothing: _RecordedCall = {}, ""
    made = []
    for call in row.calls:
        arguments, text = recorded.get(call.number, nothing)
        permitted = _permitted_arguments(arguments, public=export.public)
        shown = "" if export.public else text
        made.append(
            ExportedCall(
                call.number, call.tool, call.kind, permitted, shown, call.at_s, call.seconds, call.refused
            )
        )
    return tuple(made)


_RecordedCall = tuple[Mapping[str, Any], str]
"""The arguments of a call and the text of its result."""


def _recorded(export: StudyExport, attempt: str) -> Mapping[int, _RecordedCall]:
    """Return the recorded calls of an attempt by their numbers; empty if they are not available."""
    if events := events_of(export, attempt):
        return {call.number: (call.arguments, call.text or "") for call in fold(events).calls}
    if attempt not in export.runs:
        return {}
    document = open_run(export.runs[attempt])
    document.build()
    made = ((step, call) for step in document.steps() for call in step.calls)
    return {number: _of_run(document, step, call) for number, (step, call) in enumerate(made, 1)}


def _of_run(document: RunDocument, step: Step, call: RunCall) -> _RecordedCall:
    """Return the arguments and the result of a call that another program recorded."""
    arguments = call.parsed if isinstance(call.parsed, dict) else {"arguments": call.arguments}
    result = step.result_of(call)
    return arguments, "" if result is None else "".join(document.full_text(result.text))


def _permitted_arguments(arguments: Mapping[str, Any], *, public: bool) -> Mapping[str, Any]:
    if not public:
        return arguments
    return {
        name: value if name in _PLACES and _is_short(value) else LEFT_OUT for name, value in arguments.items()
    }


_PLACES = frozenset(
    {"file_path", "path", "func_name", "dir_path", "line", "start_line", "end_line", "offset", "limit"}
)
"""Arguments that locate a call's target: names and numbers in existing files, not text that people wrote."""


def _is_short(value: object) -> bool:
    return not isinstance(value, str) or (len(value) <= _LONGEST and "\n" not in value)
