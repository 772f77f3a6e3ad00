"""Trajectories in the standard form of the Agent Data Protocol, each of which is a run.

The form is defined in `schema/` of neulab/agent-data-protocol: a trajectory is a list of actions (of an API,
of code, or a message) and observations (text, a web page, an image). Here, an action becomes a chat message
of the model and an observation the message that answers it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gistpoint.sessions.formats.shared.command_lines import reports_error
from gistpoint.sessions.formats.shared.messages import Shell, Turns, message_step, message_texts
from gistpoint.sessions.formats.shared.row_facts import HEADER, row_header
from gistpoint.sessions.records.format import Format, Raw, RunEntry, RunNames, RunReader, run_named
from gistpoint.sessions.records.model import Json, NotShown, Run, Step, StepTexts
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.record import Record
from gistpoint.sessions.records.tables import PARQUET, Places, Row, first_row, rows_of
from gistpoint.sessions.records.values import as_dict, as_str, as_text, joined, objects

_ACTIONS = frozenset({"api_action", "code_action", "message_action"})
_OBSERVATIONS = frozenset({"text_observation", "web_observation", "image_observation", "json_observation"})
_SHELLS = frozenset({"bash", "sh", "shell", "zsh"})
_ROLES = {"user": "user", "environment": "tool", "agent": "assistant"}
_KNOWN_PLACES = Places()


def _message(value: Json) -> Json:
    """Return an action or an observation as a chat message; any other value unchanged."""
    item = Record(value)
    kind = item.word("class_")
    if kind in _ACTIONS:
        return _reply(kind, item)
    if kind not in _OBSERVATIONS:
        return value
    role = _ROLES.get(item.word("source"), "user") if kind == "text_observation" else "tool"
    page = joined([item.word("url"), item.text("axtree") or item.text("html")])
    content = item.text("content") if item.has("content") else page
    answered = item.word("tool_call_id")
    return {"role": role, "content": content, **({"tool_call_id": answered} if answered else {})}


def _reply(kind: str, item: Record) -> Json:
    """Return the model's message for an action: what it wrote, and the call or the code."""
    message: dict[str, Json] = {
        "role": "assistant",
        "content": item.text("description"),
        "reasoning_content": item.text("reasoning_content"),
    }
    if kind == "message_action":
        parts = [item.text("description"), item.text("content")]
        return {**message, "content": "\n\n".join(filter(None, parts))}
    call: dict[str, Json] = {"id": item.word("tool_call_id"), "type": "function"}
    if kind == "api_action":
        call["function"] = {"name": item.word("function"), "arguments": item.get("kwargs")}
    else:
        language = item.word("language") or "code"
        argument = "command" if language in _SHELLS else "code"
        call["function"] = {"name": language, "arguments": {argument: item.text("content")}}
    return {**message, "tool_calls": [call]}


_SHELL = Shell(
    lambda _message, _text, _answer: (),
    expects=lambda message: bool(message.get("tool_calls")),
    fails=reports_error,
)
"""Many data sets record the output of a command as an observation whose source is the user."""


class _Reader(RunReader):
    format = "agent-data"
    arrays = ("content",)

    def __init__(self, probe: FileProbe, header: Run) -> None:
        super().__init__(probe)
        self._header = header
        self._turns = Turns(_SHELL)

    def place(self, fields: Json, step_count: int) -> int:
        return self._turns.place(_message(fields), step_count)

    def completed(self, value: Json) -> Json:
        return _message(value)

    def header(self) -> Run:
        return self._header

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        return message_step(index, raws, _SHELL)

    def texts(self, index: int, values: Sequence[Json]) -> StepTexts | None:
        return message_texts(values, _SHELL)


class AgentData(Format):
    """Recognised by a `content` of actions and observations, which have a `class_`."""

    name = "agent-data"
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(("class_", "source"), "the protocol's names of the kind of an item and of who made it"),
        NotShown(("html",), "the source of a page whose accessibility tree is shown"),
        NotShown(("image_observation", "viewport_size"), "the picture of a page, and its size"),
        NotShown(
            ("available_apis", "available_custom_tools", "available_code_languages"),
            "the tools offered to the model",
            of_run=True,
        ),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        if probe.head.startswith(PARQUET):
            return 0.0
        row: Mapping[str, Json] = probe.opening.members
        # A trajectory may be longer than the head of the file.
        if "content" not in row and (probe.array or probe.is_lines):
            row = first_row(probe)
        return 1.0 if _is_trajectory(row) else 0.0

    def runs(self, probe: FileProbe) -> Iterator[RunEntry]:
        """Yield each trajectory as a run."""
        for id, row in _named_rows(probe):
            yield RunEntry(id, _header(row, id))

    def open(self, probe: FileProbe, id: str) -> _Reader:
        """Return a reader of a trajectory, the first if `id` is empty.

        Raises `RunFileError` if there is none.
        """
        known = _KNOWN_PLACES.row(probe, id)
        if known is not None and _is_trajectory(known.fields):
            return _Reader(known.probe(probe), _header(known, id))
        id, row = run_named(probe, id, _named_rows(probe), hint="List it to see the ids.")
        return _Reader(row.probe(probe), _header(row, id))


def _is_trajectory(row: Mapping[str, Json]) -> bool:
    first = objects(row.get("content"))[:1]
    return any(as_str(item.get("class_")) in _ACTIONS | _OBSERVATIONS for item in first)


def _header(row: Row, id: str) -> Run:
    """Return the header of a trajectory, made from the details, whose values are often all strings."""
    details = as_dict(row.member("details"))
    run = row_header("agent-data", as_str(row.member("schema_version")), {n: details.get(n) for n in HEADER})
    own = {name: value for name, value in details.items() if name not in HEADER}
    return replace(run, id=id, extra={name: as_text(value) for name, value in own.items()})


def _named_rows(probe: FileProbe) -> Iterator[tuple[str, Row]]:
    """Yield the id and the row of each trajectory."""
    names, places = RunNames(), _KNOWN_PLACES.of(probe)
    for row in rows_of(probe):
        if _is_trajectory(row.fields):
            id = names.name(as_str(row.member("id")) or str(row.number))
            _KNOWN_PLACES.add(places, id, row)
            yield id, row


FORMAT = AgentData()
