"""Makes steps from Claude Code's replies, in sessions or printed output, with the results of their calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gistpoint.sessions.formats.shared.calls import edits_of, kind_of
from gistpoint.sessions.formats.shared.message_parts import merged, parts_of_message
from gistpoint.sessions.formats.shared.messages import stopped
from gistpoint.sessions.records.building import StepBuilder, any_error, spoken_result
from gistpoint.sessions.records.format import Raw
from gistpoint.sessions.records.model import Actor, FileEdit, Json, Result, Step, StepKind, Tokens
from gistpoint.sessions.records.record import Record, of_type, times_of, words_of
from gistpoint.sessions.records.usage import counted_apart
from gistpoint.sessions.records.values import (
    as_dict,
    as_float,
    as_str,
    as_text,
    in_seconds,
)


def tokens_of(usage: Record) -> Tokens:
    """Return the tokens of a reply; those of the prompt include tokens read from or written to a cache."""
    return counted_apart(
        usage.whole("input_tokens"),
        usage.whole("output_tokens"),
        read=usage.whole("cache_read_input_tokens"),
        written=usage.whole("cache_creation_input_tokens"),
    )


class Copies:
    """The records of a session so far, each of which Claude Code may write again, with the same id.

    It does so when it resumes a session, condenses a context or reads its input from a stream.
    """

    def __init__(self) -> None:
        self._steps: dict[int, int] = {}
        self._is_copy = False

    def step_of(self, record: dict[str, Json]) -> int | None:
        """Return the step of the record of which `record` is a copy; None if `record` is not a copy."""
        key = _identity(record)
        known = self._steps.get(hash(key)) if key else None
        self._is_copy = known is not None
        return known

    def add(self, record: dict[str, Json], step: int) -> None:
        """Add a record that is not a copy, and the step that it belongs to."""
        if key := _identity(record):
            self._steps[hash(key)] = step

    def had_a_step(self, record: dict[str, Json]) -> bool:
        """Return whether the last record was a copy that reviews of earlier versions show as its own step."""
        joined_its_reply = record.get("type") == "assistant" and as_dict(record.get("message")).get("id")
        return self._is_copy and not joined_its_reply


def _identity(record: dict[str, Json]) -> tuple[str, str] | None:
    name = as_str(record.get("uuid"))
    return (name, as_str(record.get("type"))) if name else None


def without_copies(records: Iterable[Record]) -> list[Record]:
    """Return records without copies: of each, only the last version, in the place of the first one."""
    found: dict[object, Record] = {}
    for number, record in enumerate(records):
        found[_identity(record.members) or number] = record
    return list(found.values())


def reply_step(index: int, raws: Sequence[Raw], records: list[Record]) -> Step:
    """Return the step of a reply, from the records that the model wrote and the answers to its calls."""
    replies = of_type(records, "assistant")
    answers = [record for record in records if record.get("type") != "assistant"]
    messages = [reply.inner("message") for reply in replies]
    parts = merged(parts_of_message(message.get("content")) for message in messages)
    calls, results = tuple(parts.calls), parts.results
    edits: list[FileEdit] = []
    # The program records more of a result than it sends to the model.
    known = [answer.inner("toolUseResult") for answer in answers]
    for answer, outcome in zip(answers, known, strict=True):
        results += _results(answer)
        edits += _edits(outcome)
    broken = any(reply.get("isApiErrorMessage") for reply in replies)
    return (
        StepBuilder(index, raws, Actor.AGENT, StepKind.ERROR if broken else kind_of(calls), "assistant")
        .thought(*parts.thought)
        .text(parts.text)
        .calls(calls)
        .results(results)
        .edits(edits or edits_of(calls))
        .diffs(map(_diff, known))
        .over(times_of(records, "timestamp"))
        .replied(times_of(replies, "timestamp"))
        .naive(replies[0].get("timestamp"))
        # Each record of a reply repeats its usage, as counted when the record was written: the last one
        # counts.
        .spent(tokens_of(messages[-1].inner("usage")))
        .model(messages[0].word("model"))
        .state(replies[0].kept("cwd"))
        .flag(*stopped([message.members for message in messages]))
        .flag_if(broken or any_error(results), "error")
        .flag_if(replies[0].get("isSidechain"), "side")
        .derived("kind", "ended")
        .links(f"agent-{agent}.jsonl" for agent in words_of(known, "agentId") if agent)
        .id(as_str(messages[0].first("id") or replies[0].get("uuid")))
        .build()
    )


def _results(record: Record) -> list[Result]:
    """Return the results in a user's record; other text in it becomes a result without a call."""
    parts = parts_of_message(record.get("message", "content"))
    spent = in_seconds(as_float(record.inner("toolUseResult").first("durationMs", "totalDurationMs")))
    return [
        *(replace(result, duration_s=spent) for result in parts.results),
        *spoken_result(parts.combined_text),
    ]


def _diff(outcome: Record) -> str:
    """Return a recorded `structuredPatch` as a unified diff; empty if there is none."""
    path = outcome.word("filePath")
    hunks = outcome.objects("structuredPatch")
    if not path or not hunks:
        return ""
    shown = [f"--- a/{path.lstrip('/')}", f"+++ b/{path.lstrip('/')}"]
    for hunk in hunks:
        old_start, old_lines, new_start, new_lines = (
            hunk.whole(key) or 0 for key in ("oldStart", "oldLines", "newStart", "newLines")
        )
        shown.append(f"@@ -{old_start},{old_lines} +{new_start},{new_lines} @@")
        shown += map(as_text, hunk.items("lines"))
    return "\n".join(shown) + "\n"


def _edits(outcome: Record) -> list[FileEdit]:
    path = outcome.word("filePath")
    if not path:
        return []
    if isinstance(outcome.get("newString"), str):
        return [FileEdit(path, outcome.text("oldString"), outcome.text("newString"))]
    # In a record of any other type, `content` is that of a file that was read.
    wrote = outcome.get("type") in ("create", "update") and isinstance(outcome.get("content"), str)
    return [FileEdit(path, None, outcome.text("content"))] if wrote else []
