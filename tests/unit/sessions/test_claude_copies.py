"""Claude Code writes records again, with the same id: a copy adds nothing to a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recorded_runs.coding_agents import claude_stream
from recorded_runs.events import claude_session
from recorded_runs.written import written_lines

from gistpoint.sessions.runs.document import RunDocument

SESSIONS: dict[str, Callable[[], list[Any]]] = {"session": claude_session, "stream": claude_stream}


def named(records: list[Any]) -> list[Any]:
    """Return the records, each with an id."""
    return [{"uuid": f"u{number}", **record} for number, record in enumerate(records)]


def shown(document: RunDocument) -> list[Any]:
    return [(step.kind, step.text, step.thought, step.calls, step.results, step.tokens, step.also)
            for step in document.steps()]  # fmt: skip


@pytest.mark.parametrize("kind", SESSIONS)
def test_records_that_are_written_again_are_shown_once(kind: str, tmp_path: Path) -> None:
    records = named([record for record in SESSIONS[kind]() if isinstance(record, dict)])
    once = written_lines(tmp_path / "once", records)
    for number in range(1, len(records) + 1):
        # A session that is resumed repeats its beginning; a defect repeats a record at once.
        for name, repeated in {
            "resumed": [*records[:number], *records],
            "at once": [*records[:number], *records[number - 1 :]],
        }.items():
            again = written_lines(tmp_path / f"{name} {number}", repeated)
            assert shown(again) == shown(once), (name, number)
            assert (again.header.tokens, again.header.cost) == (once.header.tokens, once.header.cost)


@pytest.mark.parametrize("kind", SESSIONS)
def test_the_last_version_of_a_record_counts(kind: str, tmp_path: Path) -> None:
    records = named([record for record in SESSIONS[kind]() if isinstance(record, dict)])
    place = next(at for at, record in enumerate(records) if record.get("type") == "assistant")
    early = {**records[place], "message": {**records[place]["message"], "content": []}, "gitBranch": "old"}
    grown = written_lines(tmp_path / "grown", [*records[:place], early, *records[place:]])
    assert shown(grown) == shown(written_lines(tmp_path / "once", records))


def test_a_result_that_was_written_before_its_call_is_paired(tmp_path: Path) -> None:
    def record(type: str, *blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"type": type, "sessionId": "s", "message": {"content": [*blocks], **more}}

    def call(id: str) -> dict[str, Any]:
        return {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": f"run {id}"}}

    def result(id: str) -> dict[str, Any]:
        return {"type": "tool_result", "tool_use_id": id, "content": f"output of {id}"}

    document = written_lines(
        tmp_path / "run",
        [
            record("user", {"type": "text", "text": "Fix it."}),
            record("user", result("cut off")),
            record("user", result("t1")),
            record("assistant", call("t1"), id="m1"),
            record("user", result("t3")),
            record("assistant", call("t2"), id="m2"),
            record("assistant", call("t3"), id="m3"),
            record("user", result("t2")),
        ],
    )
    steps = [([call.id for call in step.calls], [one.text for one in step.results], "unpaired" in step.flags)
             for step in document.steps()]  # fmt: skip
    assert steps == [
        ([], [], False),
        ([], ["output of cut off"], True),
        (["t1"], ["output of t1"], False),
        (["t3"], ["output of t3"], False),
        (["t2"], ["output of t2"], False),
    ]


def test_reviews_keep_the_numbers_of_steps_that_were_copies(tmp_path: Path) -> None:
    records = named([record for record in claude_session() if isinstance(record, dict)])
    asked = next(record for record in records if record.get("type") == "user")
    later = {**asked, "uuid": "later", "message": {"role": "user", "content": "one more thing"}}
    document = written_lines(tmp_path / "run", [*records, asked, later])
    last = document.step_count - 1
    assert document.step(last).text == "one more thing"
    assert document.number_of(last) == written_lines(tmp_path / "once", [*records, later]).number_of(last) + 1
