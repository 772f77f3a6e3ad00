"""Counts the turns, calls and results in the raw records of runs, and compares them with what readers show.

Usage: python tests/studies/formats_counted.py [-v] [--own] [FILE_OR_FOLDER…]    exit code 1 if a figure
differs

With --own, the runs that the tests make, a file of every format, and those that come with gistpoint are
included.

A line per file: its format, runs, steps, then turns of the agent, calls, results, texts found, and the
verdict or how many runs were solved; two figures are the reader's and, after a slash, that of a direct count,
with ✘ where they differ. The direct counts are in `COUNTERS`, a function for each format that uses no reader;
texts are those of `recorded_runs.raw_texts`. A format without a counter has `?` in place of the second
figure. With -v a line per run.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from recorded_runs import make_all
from recorded_runs.raw_texts import LAYOUTS, Tally, runs_in, tally_file

from gistpoint.sessions.runs.opening import list_runs, open_run

DEMO_RUNS = Path(__file__).parents[2] / "core" / "demo" / "runs"


@dataclass
class Count:
    """The figures of one run; a verdict is None if the count does not include it."""

    turns: int = 0
    calls: int = 0
    results: int = 0
    verdict: str | None = None


Runs = list[Any]
"""The runs of a file as `raw_texts.runs_in` decodes them."""


def _records(run: Any, *keys: str) -> list[Any]:
    return (
        run
        if isinstance(run, list)
        else next((run[key] for key in keys if isinstance(run.get(key), list)), [])
    )


def _of(items: Any, **wanted: str) -> list[Any]:
    return [
        i
        for i in items or []
        if isinstance(i, dict) and all(i.get(key) == value for key, value in wanted.items())
    ]


def _blocks(message: dict[str, Any], ending: str) -> int:
    content = message.get("content")
    return sum(str(part.get("type")).endswith(ending) for part in content) if isinstance(content, list) else 0


def api_log(run: Any) -> Count:
    """Count the replies, their calls, and the results in the last request, which repeats the others."""
    bodies = [(one["request"], one["response"]) for one in run]
    asked, told = [
        [side.get("body") or side["parsed_body"] for side in sides] for sides in zip(*bodies, strict=True)
    ]
    results = sum(_blocks(message, "tool_result") for message in asked[-1]["messages"])
    return Count(len(told), sum(_blocks(reply, "tool_use") for reply in told), results)


def atif(run: Any) -> Count:
    steps = run["steps"]
    results = sum(len((step.get("observation") or {}).get("results") or []) for step in steps)
    return Count(
        len(_of(steps, source="agent")), sum(len(step.get("tool_calls") or []) for step in steps), results
    )


def breakpoint_results(run: Any) -> Count:
    """Count the tools that were used, each as one turn, and the last test run."""
    told = run["metadata"]
    used = len(told["tool_usage"])
    return Count(used, used, "test_info" in told, "solved" if run["score"] == 1 else "unsolved")


def chat(run: Any) -> Count:
    messages = _records(run, "messages", "traj", "data")
    if any("type" in message for message in messages):
        return _of_items(
            messages[::-1] if isinstance(run, dict) and run.get("object") == "list" else messages
        )
    calls = sum(
        len(message.get("tool_calls") or []) + ("function_call" in message) + _blocks(message, "tool_use")
        for message in messages
    )
    results = len(_of(messages, role="tool") + _of(messages, role="function"))
    results += sum(_blocks(message, "tool_result") for message in messages)
    reward = run.get("reward", run.get("resolved")) if isinstance(run, dict) else None
    verdict = "" if reward is None else "solved" if reward == 1 else "unsolved"
    return Count(len(_of(messages, role="assistant")), calls, results, verdict)


def claude_code(run: Any) -> Count:
    records = run if isinstance(run, list) else [run]
    said = [record["message"] for record in _of(records, type="assistant")]
    told = [record["message"] for record in _of(records, type="user")]
    ids = {message.get("id") or id(message) for message in said}
    return Count(
        len(ids), sum(_blocks(m, "tool_use") for m in said), sum(_blocks(m, "tool_result") for m in told)
    )


def codex(run: Any) -> Count | None:
    """Count the items alone: a reply ends where a call is answered or a user speaks.

    None if an id names two calls.
    """
    items = [record.get("payload", record) for record in run if record["type"] == "response_item"]
    ids = [item["call_id"] for item in items if item["type"].endswith("_call") and item.get("call_id")]
    return None if len(set(ids)) < len(ids) else _of_items(items)


def _of_items(items: list[Any]) -> Count:
    """Count items of the Responses API; a call that a server carried out may contain its result."""
    count, is_open = Count(), False
    for item in items:
        kind = item.get("type", "message")
        if kind in ("reasoning", "message") or kind.endswith("_call"):
            is_reply = item.get("role", "assistant") == "assistant"
            count.turns += is_reply and not is_open
            is_open = is_reply
        count.calls += kind.endswith("_call")
        count.results += kind.endswith("_output") or bool(item.get("outputs") or item.get("error"))
        is_open = is_open and not kind.endswith("_output")
    return count


def codex_exec(run: Any) -> Count:
    """Count the commands, and a turn whenever something begins after the start or after a command's end."""
    count, begins = Count(), True
    for record in run:
        is_command = record.get("item", {}).get("type") == "command_execution"
        done = record["type"] == "item.completed"
        if record["type"] == "item.started" or (done and not is_command):
            count.turns += begins
            begins = False
        count.calls += done and is_command
        begins = begins or (done and is_command)
    count.results = count.calls
    return count


def cline_window(run: Any) -> Count:
    kinds = [record.get("say", record.get("ask")) for record in run]
    spoken, open_reply = ("task", "user_feedback", "error_retry", "api_req_failed"), False
    count, brought = Count(), False
    for number, kind in enumerate(kinds):
        if number == 0 or kind in spoken:
            open_reply = False
        elif kind == "api_req_started" or (
            not open_reply and kind in ("text", "tool", "command", "completion_result")
        ):
            count.turns, open_reply = count.turns + 1, True
        if kind in ("tool", "command"):
            count.calls, brought = (
                count.calls + 1,
                kind == "tool" and run[number]["text"]["tool"].startswith("search"),
            )
            count.results += brought
        if kind == "command_output" and run[number]["text"] and not brought:
            count.results, brought = count.results + 1, True
        if kind == "api_req_started":
            # The results of other calls are only in the next request to the model.
            sent = re.findall(r"^\[(\w+) for '.*'\] Result:", run[number]["text"].get("request", ""), re.M)
            count.results += sum(tool not in ("execute_command", "search_files") for tool in sent)
    return count


def cline(run: Any) -> Count:
    """Count calls and results that are blocks, and those within text blocks.

    The latter are XML elements for calls, and headings that name the call for results.
    """
    messages = _records(run, "messages")
    said = [
        block.get("text") or ""
        for message in messages
        for block in message["content"]
        if isinstance(block, dict)
    ]
    calls = sum(_blocks(m, "tool_use") for m in messages) + sum(
        bool(re.search(r"<\w+>\n<\w+>", text)) for text in said
    )
    told = sum(bool(re.fullmatch(r"\[\w+ for '.*'\] Result:", text)) for text in said)
    return Count(
        len(_of(messages, role="assistant")), calls, sum(_blocks(m, "tool_result") for m in messages) + told
    )


def copilot_chat(run: Any) -> Count:
    count = Count()
    for request in run["requests"]:
        metadata = (request.get("result") or {}).get("metadata") or {}
        rounds = [
            item for item in metadata.get("toolCallRounds") or [] if item["response"] or item["toolCalls"]
        ]
        if rounds:
            count.turns += len(rounds)
            count.calls += sum(len(item["toolCalls"]) for item in rounds)
            count.results += len(metadata.get("toolCallResults") or {})
            continue
        before = "call"
        for part in request["response"]:
            kind = part.get("kind")
            if kind in ("prepareToolInvocation", "undoStop", "mcpServersStarting") or part.get("value") == "":
                continue
            now = "call" if kind == "toolInvocationSerialized" else "text"
            count.turns += (before, now) == ("call", "text")
            count.calls += now == "call"
            count.results += now == "call" and part.get("isComplete", False)
            before = now
    return count


def copilot_cli(run: Any) -> Count:
    replies = _of(run, type="assistant.message")
    asked = [call["toolCallId"] for event in replies for call in event["data"]["toolRequests"]]
    begun = {event["data"]["toolCallId"] for event in _of(run, type="tool.execution_start")} - set(asked)
    return Count(len(replies), len(asked) + len(begun), len(_of(run, type="tool.execution_complete")))


def cursor(run: Any) -> Count:
    if "role" in run[0]:
        said = [record["message"] for record in _of(run, role="assistant")]
        told = [record["message"] for record in _of(run, role="user")]
        calls = sum(_blocks(m, "tool_use") for m in said)
        return Count(len(said), calls, sum(_blocks(m, "tool_result") for m in told))
    tools = _of(run, type="tool_call")
    kinds = [record["type"] for record in run if record["type"] in ("assistant", "thinking", "tool_call")]
    turns = sum(
        kind != "tool_call" and before in ("tool_call", "") for before, kind in pairwise(["", *kinds])
    )
    return Count(turns, len({record["call_id"] for record in tools}), len(_of(tools, subtype="completed")))


def opencode(run: Any) -> Count:
    replies = [message for message in run["messages"] if message["info"]["role"] == "assistant"]
    calls = [part["state"] for message in replies for part in _of(message["parts"], type="tool")]
    return Count(
        len(replies), len(calls), len(_of(calls, status="completed")) + len(_of(calls, status="error"))
    )


def continue_dev(run: Any) -> Count:
    messages = [item["message"] for item in run["history"]]
    calls = [call["id"] for message in messages for call in message.get("toolCalls") or []]
    ended = {state["toolCallId"] for item in run["history"] for state in item.get("toolCallStates") or []
             if state["status"] in ("done", "errored", "canceled")}  # fmt: skip
    return Count(len(_of(messages, role="assistant")), len(calls), len(ended))


def dataset_rows(run: Any) -> Count:
    if "trajectory_steps" in run:
        steps = len(run["trajectory_steps"])
        return Count(steps, steps, steps, "solved" if run["reward"] == 1 else "unsolved")
    if "from" in (run.get("conversations") or [{}])[0]:
        return _of_senders(run["conversations"])
    messages = _records(run, "messages", "trajectory", "conversations")
    count = Count(
        verdict={True: "solved", False: "unsolved", None: ""}[run.get("resolved", run.get("target"))]
    )
    for number, message in enumerate(messages):
        text = message.get("content") or message.get("text") or ""
        if message["role"] not in ("assistant", "ai"):
            continue
        calls = len(message.get("tool_calls") or []) or len(re.findall(r"<function=\w+>", text))
        calls = calls or (message["role"] == "ai" and text.count("```") > 1)
        count.turns += 1
        count.calls += calls
        count.results += bool(calls) and messages[number + 1 : number + 2] != []
    told = len(_of(messages, role="tool"))
    count.results = told or count.results
    return count


def _of_senders(messages: list[Any]) -> Count:
    """Count ShareGPT's messages; a call is a message from `function_call`, or part of one from the model."""
    of_model = [message for message in messages if message["from"] in ("gpt", "function_call")]
    calls = [
        message["from"] == "function_call" or bool(re.search(r"<tool_call>|<function=\w+>", message["value"]))
        for message in of_model
    ]
    answers = len([message for message in messages if message["from"] in ("observation", "tool")])
    said = len([message for message in messages if message["value"].startswith("EXECUTION RESULT")])
    return Count(len(of_model), sum(calls), answers or said)


def agent_data(run: Any) -> Count:
    """Count the actions; each observation after a call or code is its result."""
    kinds = [item["class_"].partition("_") for item in run["content"]]
    acted = [kind[0] in ("api", "code") and kind[2] == "action" for kind in kinds]
    results = sum(before and kind[2] == "observation" for before, kind in zip(acted, kinds[1:], strict=False))
    return Count(sum(kind[2] == "action" for kind in kinds), sum(acted), results)


def kimi(run: Any) -> Count:
    kinds = [record["event"]["type"] for record in _of(run, type="context.append_loop_event")]
    return Count(kinds.count("step.begin"), kinds.count("tool.call"), kinds.count("tool.result"))


def openclaw_telemetry(run: Any) -> Count:
    """Count the messages of the longest conversation, which repeats the others."""
    ends = [record["messages"] for record in _of(run, type="agent.end")]
    messages = max(ends, key=len, default=[])
    calls = sum(
        len(_of(message["content"], type="toolCall"))
        for message in messages
        if isinstance(message["content"], list)
    )
    return Count(len(_of(messages, role="assistant")), calls, len(_of(messages, role="toolResult")))


def gemini_cli(run: Any) -> Count:
    latest = {record["id"]: record for record in _records(run, "messages") if "id" in record}
    said = [message for message in latest.values() if message["type"] in ("gemini", "model")]
    calls = [call for message in said for call in message.get("toolCalls") or []]
    return Count(
        len(said), len(calls), sum("functionResponse" in part for call in calls for part in call["result"])
    )


def gemini_stream(run: Any) -> Count:
    """Count a turn whenever the model speaks or calls after anything else."""
    spoke = [
        record["type"] == "tool_use" or record.get("role") == "assistant"
        for record in run
        if record["type"] in ("init", "message", "tool_use", "tool_result")
    ]
    turns = sum(now and not before for before, now in pairwise([False, *spoke]))
    return Count(turns, len(_of(run, type="tool_use")), len(_of(run, type="tool_result")))


def journal(run: Any) -> Count:
    """Count the solver's calls, and its other actions: notes, suspicions and pauses."""
    kinds = [event["type"] for event in run]
    calls = kinds.count("tool_call")
    turns = calls + sum(map(kinds.count, ("note", "suspect", "pause")))
    return Count(turns, calls, kinds.count("tool_result"))


def qwen_code(run: Any) -> Count:
    parts = [part for record in run for part in (record.get("message") or {}).get("parts") or []]
    return Count(
        len({record["uuid"] for record in _of(run, type="assistant")}),
        sum("functionCall" in part for part in parts),
        sum("functionResponse" in part for part in parts),
    )


def inspect(run: Any) -> Count:
    pool = (run.get("events_data") or {}).get("messages") or []
    told = [*_of(pool, role="tool"), *_of(run.get("messages"), role="tool")]
    count, answered = Count(), {message["tool_call_id"] for message in told}
    for event in run["events"]:
        if event["event"] == "model":
            count.turns += 1
            choices = (event.get("output") or {}).get("choices") or []
            count.calls += sum(len(choice["message"].get("tool_calls") or []) for choice in choices)
            answered |= {message["tool_call_id"] for message in _of(event.get("input"), role="tool")}
        if event["event"] == "tool":
            answered.add(event["id"])
        count.calls += event["event"] == "sandbox"
        count.results += event["event"] == "sandbox"
    count.results += len(answered)
    scores = [score["value"] for score in (run.get("scores") or {}).values()]
    count.verdict = ("solved" if scores[0] in ("C", 1) else "unsolved") if scores else None
    return count


def mini_swe_agent(run: Any) -> Count:
    count = Count()
    messages = _records(run, "messages")
    for number, message in enumerate(messages):
        if message.get("object") == "response":
            count.turns += 1
            count.calls += len(_of(message["output"], type="function_call"))
        count.results += message.get("type") == "function_call_output"
        if message.get("role") != "assistant":
            continue
        count.turns += 1
        blocks = re.findall(
            r"```(?:bash|mswea_bash_command)\s*\n.*?\n```", message.get("content") or "", re.S
        )
        count.calls += len(message.get("tool_calls") or []) or len(blocks) == 1
        count.results += number + 1 < len(messages) and messages[number + 1].get("role") in ("user", "tool")
    return count


def openhands(run: Any) -> Count:
    """Count the agent's events except its system prompt; the oldest files pair actions and observations."""
    count = Count()
    events = [
        one for event in _records(run, "history") for one in (event if isinstance(event, list) else [event])
    ]
    for event in filter(None, events):
        if "kind" in event:
            count.turns += event["source"] == "agent" and event["kind"] != "SystemPromptEvent"
            count.calls += event["kind"] == "ActionEvent"
            count.results += event["kind"] in ("ObservationEvent", "AgentErrorEvent")
            continue
        action, observation = event.get("action"), event.get("observation")
        by_agent = event.get("source", "agent" if count.turns or action != "message" else "user") != "user"
        count.turns += action not in (None, "change_agent_state") and by_agent
        as_tool = action != "finish" or "tool_call_metadata" in event
        count.calls += action not in (None, "change_agent_state", "message") and as_tool
        count.results += observation not in (None, "null", "agent_state_changed")
    solved = run.get("success") if isinstance(run, dict) else None
    count.verdict = "" if solved is None else "solved" if solved else "unsolved"
    return count


def pi(run: Any) -> Count:
    """Count calls, including the commands that the user ran, which contain their results."""
    messages = [record["message"] for record in _of(run, type="message")]
    run_by_user = len(_of(messages, role="bashExecution"))
    calls = sum(_blocks(message, "toolCall") for message in messages) + run_by_user
    return Count(
        len(_of(messages, role="assistant")), calls, len(_of(messages, role="toolResult")) + run_by_user
    )


def langfuse(run: Any) -> Count:
    models, around = _of(run["observations"], type="GENERATION"), {}
    for seen in run["observations"]:
        around[seen["id"]] = seen.get("parentObservationId")
    outer = set[str]()
    for seen in models:
        above = around[seen["id"]]
        while above:
            outer.add(above)
            above = around.get(above)
    tools = len(_of(run["observations"], type="TOOL"))
    return Count(sum(seen["id"] not in outer for seen in models), tools, tools)


def langsmith(run: Any) -> Count:
    kinds = {record["id"]: record["run_type"] for record in run if "run_type" in record}
    tools = list(kinds.values()).count("tool")
    return Count(list(kinds.values()).count("llm"), tools, tools)


def otel(run: Any) -> Count:
    """Count the spans of models, their calls, and the spans of tools."""
    count = Count()
    for span in run:
        attributes = span["attributes"]
        kind = str(attributes.get("openinference", {}).get("span", {}).get("kind", [""])[0])
        operation = attributes.get("gen_ai", {}).get("operation", {}).get("name", [""])[0]
        count.turns += kind == "LLM" or operation == "chat"
        count.results += kind == "TOOL" or operation == "execute_tool"
        replied = (
            attributes.get("llm", {}).get("output_messages", {}).get("message", {}).get("tool_calls", {})
        )
        count.calls += len(replied.get("tool_call", {}).get("function", {}).get("name", []))
        for message in attributes.get("gen_ai", {}).get("output", {}).get("messages", [[]])[0]:
            count.calls += len(_of(message["parts"], type="tool_call"))
    return count


def swe_agent(run: Any) -> Count:
    if "trajectory" not in run:
        said = _of(run["history"], role="assistant")
        return Count(len(said), sum(len(message.get("tool_calls") or []) for message in said),
                     len(_of(run["history"], message_type="observation")) - 1)  # fmt: skip
    calls = sum(bool(step["action"].strip()) for step in run["trajectory"])
    return Count(len(run["trajectory"]), calls, calls)


def tau_bench(run: Any) -> Count:
    """Count messages; in a spoken dialogue, a turn of the agent lasts until the user alone speaks."""
    reward = run["reward"] if "reward" in run else (run.get("reward_info") or {}).get("reward")
    count = Count(verdict="" if reward is None else "solved" if reward >= 1 else "unsolved")
    if "ticks" in run:
        spoke = list[str]()
        for tick in run["ticks"]:
            by_agent = tick["agent_chunk"] or tick["agent_tool_calls"]
            spoke += ["agent"] if by_agent else ["user"] if tick["user_chunk"] else []
            count.calls += len(tick["agent_tool_calls"]) + len(tick["user_tool_calls"])
            count.results += len(tick["agent_tool_results"]) + len(tick["user_tool_results"])
        count.turns = sum(now == "agent" != before for before, now in pairwise(["", *spoke]))
        return count
    messages = _records(run, "traj", "messages")
    count.turns = len(_of(messages, role="assistant"))
    count.calls = sum(len(message.get("tool_calls") or []) for message in messages)
    count.results = sum(
        len(message.get("tool_messages") or [message]) for message in _of(messages, role="tool")
    )
    return count


def debug_gym(run: Any) -> Count:
    acted = sum(bool(step["action"]) for step in run["log"])
    return Count(acted, acted, acted, "solved" if run["success"] else "unsolved")


def docent(run: Any) -> Count:
    said = _of(run, role="assistant")
    return Count(len(said), sum(len(m.get("tool_calls") or []) for m in said), len(_of(run, role="tool")))


def harbor(run: Any) -> Count:
    """Return only the verdict, because the steps of a trial are in a separate file."""
    return Count(verdict="solved" if run["verifier_result"]["rewards"]["reward"] >= 1 else "unsolved")


def aider(path: Path, formats: list[str]) -> list[Count | None]:
    """Count replies, and those followed by notices; a chat with neither question nor reply is not listed."""
    found: list[Count | None] = []
    for chat in re.split(r"^(?=# aider chat started at )", path.read_text("utf-8"), flags=re.M)[1:]:
        count, asked, before, goes_on, is_next, blanks = Count(), False, "", False, False, 0
        for line in chat.split("\n")[1:]:
            if not line.strip():
                is_next, blanks = False, blanks + 1
                continue
            if goes_on:  # a notice ends with two spaces, on whichever line that is
                kind, goes_on = "notice", not line.endswith("  ")
            elif line.startswith("#### ") and (line.endswith("  ") or blanks > 1):
                kind, asked = "user", asked or not line.startswith(("#### /", "#### !"))
            elif line.startswith("> ") and (line.endswith("  ") or is_next or line.startswith("> Tokens: ")):
                kind, goes_on = "notice", not line.endswith("  ")
            else:
                kind = "notice" if is_next else "reply"
            is_next, blanks = kind in ("notice", "user"), 0
            count.turns += kind == "reply" != before
            count.results += (before, kind) == ("reply", "notice")
            before = kind
        found += [count] if asked or count.turns else []
    return found


def chat_markdown(path: Path, formats: list[str]) -> list[Count | None]:
    """Count the headings of the agent outside of fences, its calls, and the calls with fenced results."""
    text = re.sub(r"^```.*?^```", "```", path.read_text("utf-8"), flags=re.M | re.S)
    calls = re.findall(r"<tool-use\b.*?</tool-use>", text, flags=re.S)
    turns = len(re.findall(r"^_\*\*Agent \(|^\*\*(?:Cursor|Assistant)\*\*$", text, flags=re.M))
    return [Count(turns, len(calls), sum("```" in call for call in calls))]


def opencode_markdown(path: Path, formats: list[str]) -> list[Count | None]:
    """Count the headings of the agent below a rule, its calls, and their results."""
    text = path.read_text("utf-8")
    turns = len(re.findall(r"^---\n\n## Assistant(?: \(.*\))?$", text, flags=re.M))
    calls = len(re.findall(r"^\*\*Tool: .+\*\*$", text, flags=re.M))
    return [Count(turns, calls, len(re.findall(r"^\*\*(?:Output|Error):\*\*$", text, flags=re.M)))]


def terminal_bench(run: Any) -> Count:
    solved = run[0]["is_resolved"]
    return Count(verdict="" if solved is None else "solved" if solved else "unsolved")


def _each(count: Callable[[Any], Count | None]) -> Callable[[Path, list[str]], list[Count | None]]:
    """Return the counter of a file, made from the counter of a run."""
    return lambda path, formats: [count(run) for run in runs_in(path, formats)]


COUNTERS: dict[str, Callable[[Path, list[str]], list[Count | None]]] = {
    "aider": aider,
    "breakpoint": _each(breakpoint_results),
    "chat-markdown": chat_markdown,
    "opencode-markdown": opencode_markdown,
    "agent-data": _each(agent_data),
    "debug-gym": _each(debug_gym),
    "kimi": _each(kimi),
    "openclaw-telemetry": _each(openclaw_telemetry),
    "docent": _each(docent),
    "gemini-stream": _each(gemini_stream),
    "gistpoint": _each(journal),
    "harbor": _each(harbor),
    "api-log": _each(api_log),
    "atif": _each(atif),
    "chat": _each(chat),
    "claude-code": _each(claude_code),
    "claude-stream": _each(claude_code),
    "cline-window": _each(cline_window),
    "codex": _each(codex),
    "codex-exec": _each(codex_exec),
    "cline": _each(cline),
    "continue": _each(continue_dev),
    "copilot-chat": _each(copilot_chat),
    "copilot-cli": _each(copilot_cli),
    "cursor": _each(cursor),
    "dataset-rows": _each(dataset_rows),
    "gemini-cli": _each(gemini_cli),
    "inspect": _each(inspect),
    "langfuse": _each(langfuse),
    "langsmith": _each(langsmith),
    "mini-swe-agent": _each(mini_swe_agent),
    "opencode": _each(opencode),
    "otel": _each(otel),
    "openhands": _each(openhands),
    "qwen-code": _each(qwen_code),
    "pi": _each(pi),
    "swe-agent": _each(swe_agent),
    "terminal-bench": _each(terminal_bench),
    "tau-bench": _each(tau_bench),
}
"""For each format, a function that counts a file's runs in listed order, given the format of each run."""


@dataclass
class Row:
    """The figures of a run that its reader shows, and the direct count."""

    name: str
    format: str
    steps: int
    shown: Count
    direct: Count | None
    texts: int | None
    """The number of strings in its records and its own object; None if `raw_texts` can't read the format."""
    lost: int


def rows_of(path: Path) -> Iterator[Row | str]:
    """Yield a row for each run of a file, and the reason for each run that can't be read.

    If the direct count fails or finds another number of runs, one line about that replaces the rows.
    """
    listed = list(list_runs([path]))
    for refused in [item for item in listed if item.header is None]:
        yield refused.problem.replace(f"{path} ", "").split(", for which")[0].split(". Known")[0]
    names = [(item.name, item.header.format) for item in listed if item.header]
    if not names:
        return
    formats = [format for _, format in names]
    counter = COUNTERS.get(formats[0])
    direct: list[Count | None] = [None] * len(names)
    tallies: list[Tally] | list[None] = [None] * len(names)
    try:
        direct = counter(path, formats) if counter else direct
        tallies = [told for _, told in tally_file(path)] if set(formats) <= LAYOUTS.keys() else tallies
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        yield f"✘ the direct count does not know this file: {type(error).__name__} {error}"
        return
    if not len(names) == len(direct) == len(tallies):
        yield f"✘ {len(names)} runs are listed, {len(direct)} are in the file"
        return
    for (name, format), counted, told in zip(names, direct, tallies, strict=True):
        document = open_run(name)
        steps = list(document.steps())
        agents = [step for step in steps if step.actor.value in ("agent", "person")]
        calls, results = (sum(len(step.calls) for step in steps), sum(len(step.results) for step in steps))
        shown = Count(len(agents), calls, results, document.header.verdict)
        texts, lost = (None, 0) if told is None else (told.texts, len(told.lost))
        yield Row(name, format, len(steps), shown, counted, texts, lost)


LINE = "{:<58} {:<16} {:>4} {:>5}  {:<12} {:<12} {:<12} {:<14} {}"


def line_of(name: str, rows: list[Row]) -> str:
    """Return the table's line for the runs of a file, or for one run."""
    cells = [
        _cell([row.shown.turns for row in rows], [row.direct.turns if row.direct else None for row in rows])
    ]
    cells.append(
        _cell([row.shown.calls for row in rows], [row.direct.calls if row.direct else None for row in rows])
    )
    cells.append(
        _cell(
            [row.shown.results for row in rows], [row.direct.results if row.direct else None for row in rows]
        )
    )
    cells.append(_cell([(row.texts or 0) - row.lost for row in rows], [row.texts for row in rows]))
    told = [row.direct.verdict if row.direct else None for row in rows]
    wrong = (
        " ✘" if any(one not in (None, row.shown.verdict) for one, row in zip(told, rows, strict=True)) else ""
    )
    verdicts = [row.shown.verdict or "none" for row in rows]
    verdict = verdicts[0] if len(set(verdicts)) == 1 else f"{verdicts.count('solved')} of {len(rows)} solved"
    formats = "+".join(dict.fromkeys(row.format for row in rows))
    return LINE.format(
        name[-58:], formats, len(rows), sum(row.steps for row in rows), *cells, verdict + wrong
    )


def _cell(shown: list[int], direct: list[int | None]) -> str:
    known = [count for count in direct if count is not None]
    if len(known) < len(direct):
        return f"{sum(shown)}/?"
    return f"{sum(shown)}/{sum(known)}{'' if shown == known else ' ✘'}"


def files_below(given: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files at or below a path, with their names in the table."""
    if given.is_file():
        yield given, given.name
    else:
        yield from (
            (path, str(path.relative_to(given))) for path in sorted(given.rglob("*")) if path.is_file()
        )


def own_files(folder: Path) -> Iterator[tuple[Path, str]]:
    """Make the runs of the tests, and yield them together with those that come with gistpoint."""
    yield from ((made.path, f"made by the tests: {made.path.name}") for made in make_all(folder))
    yield from ((path, f"comes with gistpoint: {name}") for path, name in files_below(DEMO_RUNS))


def main() -> int:
    """Print the table; return 1 if a figure differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("-v", action="store_true", help="a line for each run too")
    parser.add_argument("--own", action="store_true", help="the runs of the tests and of the program too")
    options, differs = parser.parse_args(), False
    print(LINE.format("file", "format", "runs", "steps", "turns", "calls", "results", "texts", "verdict"))
    with tempfile.TemporaryDirectory() as folder:
        own = own_files(Path(folder)) if options.own else iter(())
        for path, name in chain(own, chain.from_iterable(map(files_below, options.paths))):
            found = list(rows_of(path))
            rows = [row for row in found if isinstance(row, Row)]
            lines = [f"{name[-58:]:<58} {told}" for told in found if isinstance(told, str)]
            lines += [line_of(name, rows)] if rows else []
            lines += [
                line_of(f"  {row.name.rpartition('#')[2]}", [row])
                for row in rows
                if options.v and len(rows) > 1
            ]
            print("\n".join(lines), flush=True)
            differs = differs or any("✘" in line for line in lines)
    return 1 if differs else 0


if __name__ == "__main__":
    raise SystemExit(main())
