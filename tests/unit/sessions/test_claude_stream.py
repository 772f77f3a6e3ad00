"""Claude Code's `stream-json`: assembled replies, separate side agents, end and counts from the result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from recorded_runs.coding_agents import claude_stream

from gistpoint.sessions.records.model import Actor, StepKind, Tokens
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.opening import linked_name, list_runs, open_run


def written(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def opened(name: str | Path) -> RunDocument:
    document = open_run(name)
    document.build()
    return document


def test_a_reply_in_several_records_is_one_step_with_its_results(tmp_path: Path) -> None:
    document = opened(written(tmp_path / "out", claude_stream()))
    first, second = list(document.steps())[2:4]
    assert (first.thought, [call.id for call in first.calls]) == ("Two places", ["t1", "t2"])
    assert {result.call_id: result.text for result in first.results} == {"t1": "In a.py", "t2": "done"}
    assert first.diff == "--- a/r/a.py\n+++ b/r/a.py\n@@ -1,1 +1,1 @@\n-x = 1\n+x = 2\n"
    assert (second.kind, second.results[0].is_error) == (StepKind.TEST, True)
    assert first.tokens == Tokens(10, None, 7)  # the tokens of a partial reply are not its count


def test_the_end_and_the_counts_are_those_of_the_result(tmp_path: Path) -> None:
    document = opened(written(tmp_path / "out", claude_stream()))
    end, header = document.step(4), document.header
    assert (end.kind, "error" in end.flags, "Denied" in end.text) == (StepKind.ERROR, True, True)
    assert (header.exit_status, header.cost, header.duration_s) == ("error_max_turns", 0.25, 2.5)
    assert header.tokens == Tokens(16, 22, 5)
    assert (header.id, header.model, header.format_version) == ("cs-1", "claude-x", "2.1.0")
    assert header.warnings == ("The prompt is not recorded.",)


def test_a_side_agent_is_a_run_that_its_call_links_to(tmp_path: Path) -> None:
    file = written(tmp_path / "out", claude_stream())
    main, side = list_runs([file])
    (link,) = opened(main.name).step(2).links
    assert linked_name(str(file), link) == side.name
    document = opened(side.name)
    task, turn = document.steps()
    assert (task.actor, task.kind, task.text) == (Actor.USER, StepKind.TASK, "Look around")
    assert (turn.model, turn.results[0].text) == ("claude-y", "a.py:1")
    assert document.header.agent == "claude-code side agent"


def test_a_file_that_grows_is_read_on_for_each_thread(tmp_path: Path) -> None:
    records = claude_stream()
    file = written(tmp_path / "out", records[:6])
    main, side = opened(file), opened(f"{file}#t1")
    before = main.step_count, side.step_count
    written(file, records)
    for document in (main, side):
        assert document.grow()
        document.build()
    assert (before, (main.step_count, side.step_count)) == ((3, 2), (5, 2))
    assert side.step(1).results[0].text == "a.py:1"


def test_pieces_of_a_reply_stand_with_it_or_in_its_place(tmp_path: Path) -> None:
    def pieces(identity: str, *texts: str) -> list[dict[str, Any]]:
        deltas = [
            {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}} for text in texts
        ]
        events = [{"type": "message_start", "message": {"id": identity}}, *deltas]
        return [{"type": "stream_event", "session_id": "s", "event": event} for event in events]

    whole = {
        "type": "assistant",
        "session_id": "s",
        "message": {"id": "a", "content": [{"type": "text", "text": "Hello"}]},
    }
    document = opened(
        written(tmp_path / "out", [*pieces("a", "Hel", "lo"), whole, *pieces("b", "Cut ", "of")])
    )
    assert [(step.text, step.also) for step in document.steps()] == [("Hello", ()), ("Cut of", ())]


def test_unknown_records_and_retries_are_shown(tmp_path: Path) -> None:
    retry = {"type": "system", "subtype": "api_retry", "session_id": "s", "error": "overloaded"}
    document = opened(
        written(tmp_path / "out", [retry, {"type": "brand_new", "session_id": "s", "what": "news"}])
    )
    assert [step.kind for step in document.steps()] == [StepKind.ERROR, StepKind.UNKNOWN]
    assert "overloaded" in document.step(0).text
