"""Steps of each format: pairing, thoughts, times, tokens, diffs, and marks of derived values."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from recorded_runs import DIFF, make_all

from gistpoint.core.kinds.registry import all_tools
from gistpoint.core.tools.declaration import Tool
from gistpoint.sessions.formats.shared.calls import kind_of
from gistpoint.sessions.records.model import (
    Actor,
    ByteRange,
    FileEdit,
    Run,
    RunCall,
    Step,
    StepKind,
    TextScope,
    Tokens,
    parts_of,
)
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.opening import linked_name, open_run
from gistpoint.sessions.runs.rendering import header_texts
from gistpoint.sessions.runs.searching import Query, contains_its_words, search_document


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    make_all(root)
    return root


def steps_of(name: Path | str) -> tuple[Run, list[Step]]:
    document = open_run(name)
    steps = list(document.steps())
    return document.header, steps


def test_swe_agent(runs: Path) -> None:
    run, steps = steps_of(runs / "a-1.1")
    assert (run.task, run.model, run.exit_status, run.cost) == (
        "repo-1",
        "model-x",
        "submitted (exit_cost)",
        0.5,
    )
    assert (run.tokens, run.submission, run.prompt) == (Tokens(100, 7), DIFF, "Fix the mean.")
    assert [step.kind for step in steps] == [StepKind.VIEW, StepKind.VIEW, StepKind.TEST, StepKind.SUBMIT]
    assert steps[1].calls[0].parsed == {"command": "view", "path": "/repo/stats.py"}
    assert steps[1].results[0].text == "F  [100%]\r\n\x1b[31m1 failed\x1b[0m [tag=value: list[int]"
    assert steps[1].results[0].duration_s == 0.25
    assert steps[1].diff_so_far == DIFF
    assert steps[1].state == {"working_dir": "/repo"}
    assert steps[1].derived == {"kind", "calls.tool"}
    assert steps_of(runs / "a-0.5")[1][0].state == {"open_file": "n/a", "working_dir": "/repo"}
    versions = [steps_of(runs / f"a-{era}")[0].format_version for era in ("0.5", "0.7", "1.0", "1.1")]
    assert versions == ["0.5-0.7", "0.7", "1.0", "1.1"]


def test_mini_swe_agent_1(runs: Path) -> None:
    run, steps = steps_of(runs / "b-1")
    assert (run.format_version, run.task, run.exit_status) == ("1", "repo-1", "Submitted")
    reply = steps[2]
    assert (reply.thought, reply.tokens, reply.cost) == ("hm", Tokens(20, 5, 3), 0.01)
    assert reply.calls[0].arguments == "ls -la"
    assert reply.results[0].returncode == 1
    assert reply.flags == {"error"}
    assert {"calls", "results.returncode", "results.call_id"} <= reply.derived
    assert len(reply.records) == 2


def test_mini_swe_agent_2(runs: Path) -> None:
    _, steps = steps_of(runs / "b-2")
    assert [step.actor.value for step in steps] == [
        "system",
        "user",
        "agent",
        "agent",
        "agent",
        "agent",
        "environment",
    ]
    assert (steps[2].started, steps[2].ended, steps[2].cost) == (1_790_000_001.5, 1_790_000_002.0, 0.1)
    assert steps[2].result_of(steps[2].calls[0]) is not None
    assert steps[2].results[0].duration_s == 0.5
    assert (steps[4].thought, steps[4].text, steps[4].calls[0].tool) == ("think", "now", "bash")
    assert steps[4].results[0].text == "stats.py"
    assert steps[5].results == ()
    assert (steps[6].kind, steps[6].state["exit_status"]) == (StepKind.END, "Submitted")


def test_atif_and_its_sub_agents(runs: Path) -> None:
    run, steps = steps_of(runs / "c-1.7")
    assert (run.format_version, run.cost, run.links) == ("1.7", 0.25, ("atif-more.json",))
    assert (steps[1].kind, steps[1].thought, steps[1].cost) == (StepKind.EDIT, "hm", 0.25)
    assert steps[1].edits == (FileEdit("stats.py", "1", "2"),)
    assert steps[1].links == ("#sub-1",)
    inner = linked_name(str(runs / "c-1.7"), steps[1].links[0])
    assert inner is not None
    assert steps_of(inner)[0].id == "sub-1"
    assert linked_name(str(runs / "c-1.7"), "../../etc/passwd") is None


def test_byte_ranges_of_an_embedded_run_count_from_the_file(runs: Path) -> None:
    for name in ("c-1.7#sub-1", "d-out#two", "h-results#g", "e-json#2_epoch_1"):
        document = open_run(f"{runs}/{name}")
        place = document.step(1).raw
        data = (runs / name.split("#")[0]).read_bytes()
        assert data[place.start : place.end] == document.raw(1)[: place.length]
        assert data[place.start : place.start + 1] == b"{"


def test_openhands_pairs_by_cause(runs: Path) -> None:
    _, steps = steps_of(runs / "d-0")
    run = steps[1]
    assert (run.calls[0].tool, run.calls[0].parsed, run.thought) == (
        "execute_bash",
        {"command": "ls"},
        "look",
    )
    assert (run.results[0].text, run.results[0].returncode, run.results[0].is_error) == ("stats.py", 2, True)
    assert run.tokens == Tokens(5, 2)
    assert "started" in run.derived
    assert [step.kind for step in steps] == [
        StepKind.TASK,
        StepKind.VIEW,
        StepKind.STATE,
        StepKind.SUBMIT,
    ]


@pytest.mark.parametrize("calls", [1, 2, 5])
def test_a_reply_of_openhands_with_several_calls_counts_its_tokens_once(tmp_path: Path, calls: int) -> None:
    def made(number: int) -> dict[str, Any]:
        arguments = json.dumps({"command": f"ls {number}"})
        return {"id": f"c{number}", "function": {"name": "execute_bash", "arguments": arguments}}

    message = {"role": "assistant", "content": "All.", "tool_calls": [made(n) for n in range(calls)]}
    usage = {"prompt_tokens": 1000, "completion_tokens": 50}
    reply = {"id": "r", "model": "m", "usage": usage, "choices": [{"message": message}]}
    events: list[dict[str, Any]] = [
        {"id": 0, "source": "user", "action": "message", "args": {"content": "Look"}, "message": "Look"}
    ]
    for number in range(calls):
        metadata = {"function_name": "execute_bash", "tool_call_id": f"c{number}", "model_response": reply}
        action = {"action": "run", "args": {"command": f"ls {number}", "thought": ""}}
        observation = {"observation": "run", "content": "a", "extras": {"command": f"ls {number}"}}
        shared = {"source": "agent", "tool_call_metadata": metadata}
        events.append({"id": 2 * number + 1, **shared, **action})
        events.append({"id": 2 * number + 2, "cause": 2 * number + 1, **shared, **observation})
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps(events), encoding="utf-8")
    _, steps = steps_of(path)
    assert [len(step.calls) for step in steps[1:]] == [1] * calls
    assert sum((step.tokens for step in steps), Tokens()) == Tokens(1000, 50)


def test_openhands_1_joins_parallel_calls(runs: Path) -> None:
    for name in ("d-1", "d-folder"):
        _, steps = steps_of(runs / name)
        assert [call.id for call in steps[2].calls] == ["t1", "t2"]
        assert {result.call_id for result in steps[2].results} == {"t1", "t2"}
        assert (steps[4].kind, steps[4].label) == (StepKind.UNKNOWN, "SomethingNewEvent")
        assert '"what": 1' in steps[4].text


@pytest.mark.parametrize("name", ["e-deflate", "e-zstd", "e-chunked", "e-running", "e-json"])
def test_inspect_resolves_attachments(name: str, runs: Path) -> None:
    run, steps = steps_of(f"{runs}/{name}#1_epoch_1")
    assert (run.task, run.model, run.verdict) == ("some/1", "vendor/model-x", "solved")
    assert (steps[1].kind, steps[1].text) == (StepKind.TASK, "Fix the mean")
    reply = steps[2]
    assert (reply.thought, reply.text, reply.tokens.prompt) == ("hm", "I will look", 14)
    assert reply.results[0].text == "stats.py"
    assert reply.results[0].call_id == reply.calls[0].id == "c1"
    assert steps[4].kind is StepKind.UNKNOWN
    assert [(result.call_id, result.text) for result in steps[6].results] == [("c2", "from the conversation")]
    assert "results" in steps[6].derived


def test_claude_code_counts_a_reply_once(runs: Path) -> None:
    run, steps = steps_of(runs / "f-session")
    assert run.tokens == Tokens(26, 14, 20)
    assert run.links == ("agent-d0f.jsonl",)
    reply = steps[2]
    assert (reply.thought, len(reply.calls), len(reply.results)) == ("hm", 2, 2)
    assert reply.diff == "--- a/app/stats.py\n+++ b/app/stats.py\n@@ -1,1 +1,1 @@\n-1\n+2\n"
    assert reply.edits == (FileEdit("/app/stats.py", "1", "2"),)
    assert [step.kind for step in steps[3:5]] == [StepKind.CONTEXT, StepKind.UNKNOWN]
    side = linked_name(str(runs / "f-session"), reply.links[0])
    assert side is not None
    assert steps_of(side)[1][0].flags == {"side"}


def test_chat_keeps_arguments_that_are_no_json(runs: Path) -> None:
    for name in ("g-object", "g-array", "g-lines", "g-runs#one"):
        _, steps = steps_of(f"{runs}/{name}")
        assert (steps[2].calls[0].arguments, steps[2].calls[0].parsed) == ("{not json", None)
        assert steps[2].results[0].text == "ok"
        assert steps[3].thought == "hm"


def test_breakpoint_has_calls_without_results(runs: Path) -> None:
    run, steps = steps_of(f"{runs}/h-results#g")
    assert (run.score, run.verdict, run.submissions, run.extra["mode"]) == (0.5, "unsolved", 1, "discovery")
    assert [step.kind for step in steps] == [StepKind.VIEW, StepKind.SEARCH, StepKind.EDIT, StepKind.SCORE]
    assert steps[0].flags == {"result-not-recorded"}
    assert (steps[3].results[0].text, steps[3].state["failed"]) == ("boom", 2)
    assert steps_of(f"{runs}/h-results#f~2")[0].score == 0.0


def test_debug_gym(runs: Path) -> None:
    run, steps = steps_of(runs / "i-log")
    assert (run.task, run.model, run.verdict) == ("p1", "model-x", "solved")
    assert steps[0].text == "s\n\nFix\n\nstart"
    assert (steps[1].thought, steps[1].tokens, steps[1].results[0].text) == ("hm", Tokens(10, 3), "1 x = 1")


def test_a_journal_of_our_own(runs: Path) -> None:
    run, steps = steps_of(runs / "j-journal")
    assert (run.actor, run.id, run.verdict, run.exit_status, run.submissions) == (
        Actor.PERSON,
        "a1",
        "solved",
        "solved",
        1,
    )
    assert run.duration_s == 12.0
    read, submit = steps[1], steps[2]
    assert (read.actor, read.thought, read.results[0].text) == (Actor.PERSON, "look", "x = 1")
    assert (read.results[0].duration_s, read.ended) == (0.012, 1_790_000_006.0)
    assert (submit.kind, len(submit.records)) == (StepKind.SUBMIT, 5)
    assert steps[3].kind is StepKind.UNKNOWN


def test_every_raw_record_is_in_exactly_one_step_unless_it_is_divided(runs: Path) -> None:
    divided = {
        "api-log",
        "cline-window",
        "copilot-chat",
        "langfuse",
        "langsmith",
        "openclaw-telemetry",
        "otel",
        "terminal-bench",
    }
    for made in [made for made in make_all(runs) if made.format not in divided]:
        for id in made.records:
            document: RunDocument = open_run(f"{made.path}#{id.replace('#', '%23')}" if id else made.path)
            places: list[ByteRange] = [place for step in document.steps() for place in step.records]
            assert len(places) == len(set(places)) == document.record_count


def test_a_search_reads_every_text_of_a_step(runs: Path) -> None:
    for made in make_all(runs):
        for id in made.records:
            document: RunDocument = open_run(f"{made.path}#{id.replace('#', '%23')}" if id else made.path)
            for step in document.steps():
                whole = [part for part in parts_of(step) if part[2]]
                found = document.texts(step.index, lambda _: True)
                assert [part for part in found.parts if part[2]] == whole
                assert found.tools == [call.tool for call in step.calls]
                without = document.texts(step.index, lambda _: False)
                fields = [part for part in without.parts if part[2] and part[0] is not TextScope.ALSO]
                assert fields == [part for part in whole if part[0] is not TextScope.ALSO]


def test_every_word_of_a_step_is_in_its_records_where_its_format_says_so(runs: Path) -> None:
    looked_at: set[str] = set()
    for made in make_all(runs):
        for id in made.records:
            document: RunDocument = open_run(f"{made.path}#{id.replace('#', '%23')}" if id else made.path)
            if document.format.texts_in_records or not contains_its_words(document.format, document.blobs):
                continue
            looked_at.add(made.format)
            for step in document.steps():
                words = {word for _, _, text in parts_of(step) for word in re.findall(r"[A-Za-z_]\w+", text)}
                for word in words:
                    query = Query(word)
                    assert any(map(query.may_be_in, document.records(step.index))), (
                        made.path,
                        step.index,
                        word,
                    )
                for word in sorted(words, key=len)[-1:]:
                    assert step.index in [hit.step for hit in search_document(document, Query(word))]
    assert looked_at == {
        *("aider", "api-log", "breakpoint", "chat-markdown", "gemini-cli", "langfuse", "langsmith", "otel"),
        "tau-bench",
    }


OWN_NOTES = ("The journal does not contain the brief: it was made by an earlier version.",)
"""Notes of readers about a file, which contains no word of them."""


def test_a_search_finds_every_line_that_a_step_shows(runs: Path) -> None:
    missed: list[tuple[str, int, str]] = []
    for made in make_all(runs):
        for id in made.records:
            document: RunDocument = open_run(f"{made.path}#{id.replace('#', '%23')}" if id else made.path)
            for step in document.steps():
                for scope, part, text in parts_of(step):
                    lines = set(map(str.strip, str(text).split("\n"))) - set(OWN_NOTES)
                    for line in (line for line in lines if re.search(r"[A-Za-z_]\w", line)):
                        hits = search_document(document, Query(line, ignore_case=False))
                        if (step.index, scope, part) not in {(hit.step, hit.scope, hit.part) for hit in hits}:
                            missed.append((made.format, step.index, line))
    assert missed == []


def test_a_search_finds_every_text_of_a_header(runs: Path) -> None:
    for made in make_all(runs):
        for id in made.records:
            name = f"{made.path}#{id.replace('#', '%23')}" if id else str(made.path)
            document: RunDocument = open_run(name)
            document.build()
            for number, text in enumerate(header_texts(document.header)):
                for word in sorted(re.findall(r"[A-Za-z_]\w+", text), key=len)[-1:]:
                    hits = [hit for hit in search_document(open_run(name), Query(word)) if hit.step is None]
                    assert number in [hit.part for hit in hits], (name, word)
                    assert all(
                        text[hit.start : hit.end].lower() == word.lower()
                        for hit in hits
                        if hit.part == number
                    )
                    alone = search_document(open_run(name), Query(word, scopes=[TextScope.HEADER]))
                    assert list(alone) == hits


@pytest.mark.parametrize("tool", all_tools().values(), ids=lambda tool: tool.name)
def test_a_step_of_a_recorded_run_is_of_the_kind_that_its_tool_declares(tool: Tool) -> None:
    assert kind_of((RunCall("", tool.name, "{}", {}),)) is StepKind(tool.step)
