"""Claude Code's `stream-json`: assembled replies, separate side agents, end and counts from the result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recorded_runs.coding_agents import claude_stream

from gistpoint.sessions.records.model import Actor, StepKind, Tokens
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.kept import kept_of
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


def test_the_tokens_of_a_side_agent_are_counted_once(tmp_path: Path) -> None:
    records = claude_stream()
    models = [found["modelUsage"] for found in records if isinstance(found, dict) and "modelUsage" in found]
    spent = [counts for model in models for counts in model.values()]
    kept = [kept_of(opened(found.name), found.header) for found in list_runs([written(tmp_path / "out", records)])
            if found.header is not None]  # fmt: skip
    main, side = (found.run.tokens for found in kept)
    assert main.completion == sum(counts["outputTokens"] for counts in spent) == 22
    assert side.completion is None, "the main run's total contains those of its side agents"
    assert sum(found.run.cost or 0 for found in kept) == 0.25


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


def turn(number: int, output: int, **sums: Any) -> list[dict[str, Any]]:
    """Return the records of a turn: a question, a reply, and a result with `output` tokens of its own."""

    def said(kind: str, **more: Any) -> dict[str, Any]:
        content = [{"type": "text", "text": f"{kind} {number}"}]
        return {"type": kind, "session_id": "s", "message": {"role": kind, "content": content, **more}}

    usage = {"input_tokens": 10, "output_tokens": output}
    ended = {"type": "result", "subtype": "success", "session_id": "s", "uuid": f"r{number}", "num_turns": 2,
             "duration_ms": 1000, "usage": usage, **sums}  # fmt: skip
    return [said("user"), said("assistant", id=f"m{number}"), ended]


def sums(cost: float, prompt: int, output: int) -> dict[str, Any]:
    """Return what a program has added up since it began."""
    return {
        "total_cost_usd": cost,
        "duration_api_ms": 700,
        "modelUsage": {"m": {"inputTokens": prompt, "outputTokens": output, "contextWindow": 200_000}},
    }


BEGUN = {"type": "system", "subtype": "init", "session_id": "s", "model": "m"}


@pytest.mark.parametrize(
    ("turns", "tokens", "cost"),
    [
        # One program answers both turns: its result repeats the sums of the first turn.
        ([turn(1, 5, **sums(0.5, 10, 5)), turn(2, 7, **sums(1.25, 20, 12))], Tokens(20, 12), 1.25),
        # Another program continues the session, with sums of its own, smaller or larger.
        ([turn(1, 5, **sums(0.5, 10, 5)), turn(2, 4, **sums(0.25, 10, 4))], Tokens(20, 9), 0.75),
        ([turn(1, 5, **sums(0.5, 10, 5)), turn(2, 7, **sums(0.75, 10, 7))], Tokens(20, 12), 1.25),
        # Without sums by model, the tokens are those of each turn.
        ([turn(1, 5, total_cost_usd=0.5), turn(2, 7, total_cost_usd=1.25)], Tokens(20, 12), 1.25),
        ([turn(1, 5), turn(2, 7)], Tokens(20, 12), None),
    ],
)
def test_the_counts_are_those_of_all_turns(
    tmp_path: Path, turns: list[list[dict[str, Any]]], tokens: Tokens, cost: float | None
) -> None:
    copied = turns[0][-1]  # a resumed session writes records again
    records = [BEGUN, *turns[0], BEGUN, copied, *turns[1]]
    array = tmp_path / "array.json"
    array.write_text(json.dumps(records), encoding="utf-8")
    for file in (written(tmp_path / "lines", records), array):
        header = opened(file).header
        assert (header.tokens, header.cost, header.duration_s) == (tokens, cost, 2.0)
        assert (header.extra["turns"], header.exit_status) == (4, "success")
        (listed,) = list_runs([file])
        assert listed.header is not None
        assert (listed.header.tokens, listed.header.duration_s) == (tokens, 2.0)


def test_a_run_has_not_ended_while_its_next_turn_is_being_written(tmp_path: Path) -> None:
    first, second = turn(1, 5, **sums(0.5, 10, 5)), turn(2, 7, **sums(1.25, 20, 12))
    file = written(tmp_path / "out", [BEGUN, *first])
    document = opened(file)
    assert document.header.exit_status == "success"
    for until, status in ((1, ""), (2, ""), (3, "success")):
        written(file, [BEGUN, *first, *second[:until]])
        assert document.grow()
        document.build()
        assert document.header.exit_status == opened(file).header.exit_status == status
    assert (document.header.tokens, document.header.duration_s) == (Tokens(20, 12), 2.0)


@pytest.mark.parametrize("synthetic", [False, True])
def test_a_prompt_is_known_before_the_records_are_read(tmp_path: Path, synthetic: bool) -> None:
    first, *others = claude_stream()
    prompt = {
        "type": "user", "session_id": "cs-1", "isSynthetic": synthetic,
        "message": {"role": "user", "content": "Repair it."},
    }  # fmt: skip
    file = written(tmp_path / "out", [first, prompt, *others])
    expected = ("The prompt is not recorded.",) if synthetic else ()
    (main, *_) = list_runs([file])
    assert main.header is not None
    assert main.header.warnings == expected
    assert opened(file).header.warnings == expected
