"""The same calls get the same answers and costs in line mode, from a model, over MCP and in a replay."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from agent_attempts import ByTurn
from builders import REPAIR
from gist_tasks import FAITHFUL
from gist_tasks import WRONG as WRONG_GIST
from mcp.client.client import Client
from mcp_client import TOKEN, Case, connected, left, listening, over_http, say, text
from scripted_endpoint import reply

from gistpoint.core.agents.conversation import conversation
from gistpoint.core.agents.loop import TerminationReason, work
from gistpoint.core.agents.settings import AgentSettings
from gistpoint.core.agents.text_calls import written_call
from gistpoint.core.attempts.identity import MODEL, Enrolment, Role
from gistpoint.core.kinds.commandline import spelled
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.tasks.model import Mode
from gistpoint.core.text import visible
from gistpoint.sessions.replay.replaying import Replay, Sameness
from gistpoint.sessions.runs.opening import open_run
from gistpoint.tui.commands.solve_lines import solve_in_line_mode

Calls = Sequence[tuple[str, Any]]
WRONG = REPAIR.replace("100", "99")
PLACE = {"func_name": "discount", "file_path": "shop/prices.py"}
LOOKS: Calls = [
    ("list_directory", {}),
    ("list_directory", {"path": "shop"}),
    ("list_directory", {"path": "nowhere"}),
    ("read_file", {"file_path": "README.md"}),
    ("read_file", {"file_path": "shop/prices.py"}),
    ("read_file", {"file_path": "../answer/answer.json"}),
    ("list_file_functions", {"file_path": "shop/prices.py"}),
    ("list_file_functions", {"file_path": "README.md"}),
    ("read_function", {"function_name": "discount", "file_path": "shop/prices.py"}),
    ("read_function", {"function_name": "Basket.total", "file_path": "shop/prices.py"}),
    ("read_function", {"function_name": "gone", "file_path": "shop/prices.py"}),
    ("search_code", {"pattern": "price"}),
    ("search_code", {"pattern": "("}),
    ("search_code", {"pattern": "où\u2028\x1b[31m"}),
]
GIST_LOOKS: Calls = [
    *LOOKS,
    ("write_gist", {"content": WRONG_GIST}),
    ("edit_gist", {"old": "nowhere", "new": ""}),
    ("edit_gist", {"old": "price + price", "new": "price - price"}),
]
MALFORMED: Calls = [
    ("grep", {"pattern": "x"}),
    ("", {}),
    ("read_file", {}),
    ("read_file", {"path": "README.md"}),
    ("read_file", {"file_path": None}),
    ("read_file", {"file_path": ["README.md"]}),
    ("read_file", {"file_path": {"a": [1, 2.5, True]}}),
    ("read_file", ["README.md"]),
    ("read_file", "README.md"),
    ("list_directory", 3),
]


def _fifty(looks: Calls, hand_ins: Calls) -> Calls:
    """Return fifty calls: views and hand-ins, then views again."""
    calls = [*looks, *hand_ins]
    return [*calls, *(looks[n % len(looks)] for n in range(50 - len(calls)))]


@dataclass(frozen=True)
class Table:
    """Valid or refused calls, and malformed ones after them."""

    mode: Mode
    calls: Calls
    malformed: Calls
    budgets: Budgets
    ends: str = ""
    """Why the attempt ends; empty if it continues."""


TABLES = {
    "repair": Table(
        Mode.REMOVE,
        _fifty(
            LOOKS,
            [
                ("submit_attempt", {"func_code": WRONG}),
                ("submit_attempt", {"func_code": "def discount("}),
                ("submit_attempt", {"func_code": "def other(price, percent):\n    return 1"}),
            ],
        ),
        MALFORMED,
        Budgets(70, 12),
    ),
    "discovery": Table(
        Mode.DISCOVERY,
        _fifty(
            LOOKS,
            [
                ("replace_function", {"func_code": WRONG, **PLACE}),
                ("replace_function", {"func_code": "def discount(", **PLACE}),
                ("replace_function", {"func_code": REPAIR, **PLACE, "func_name": "gone"}),
            ],
        ),
        MALFORMED,
        Budgets(70, 12),
    ),
    "gist": Table(
        Mode.GIST,
        _fifty(GIST_LOOKS, [("score_gist", {"content": FAITHFUL})]),
        MALFORMED,
        Budgets.of_steps(70),
    ),
    "the last use of a repair": Table(
        Mode.REMOVE,
        [*LOOKS[:3], ("read_file", {"file_path": "README.md"}), ("submit_attempt", {"func_code": WRONG})],
        [],
        Budgets(4, 2),
        "calls_exhausted",
    ),
    "a solved discovery": Table(
        Mode.DISCOVERY,
        [LOOKS[0], ("replace_function", {"func_code": REPAIR, **PLACE})],
        [],
        Budgets(4, 2),
        "solved",
    ),
    "a gist handed in": Table(
        Mode.GIST,
        [("write_gist", {"content": FAITHFUL}), ("submit_gist", {})],
        [],
        Budgets.of_steps(4),
        "solved",
    ),
}


@dataclass(frozen=True)
class Said:
    """A call in an attempt's journal: its answer, and the remaining budgets."""

    text: str
    refused: bool
    budget: Any


def journalled(case: Case) -> list[Said]:
    events = [json.loads(line) for line in case.journal().read_bytes().splitlines()]
    results = [event["data"] for event in events if event["type"] == "tool_result"]
    return [Said(data["text"], data["refused"], data["budget"]) for data in results]


def lines_of(table: Table) -> Iterator[str]:
    """Yield calls as a user types them; calls with code, and all calls of an attempt that ends, are JSON."""
    for name, arguments in table.calls:
        exactly = table.ends or {"func_code", "content", "old", "new"} & arguments.keys()
        yield json.dumps({"tool": name, "arguments": arguments}) if exactly else spelled(name, arguments)


def made_in_line_mode(case: Case, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Type the valid and refused calls; a mistyped one would cause a question, not a call."""
    monkeypatch.setattr(
        "sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines_of(table)), newline="\n")
    )
    solve_in_line_mode(case.services, case.task)


def made_by_replies(case: Case, table: Table) -> list[str]:
    """Let a model make all calls, one to four in a reply; return the messages that it receives."""
    calls = [*table.calls, *table.malformed]
    replies, start = [], 0
    while start < len(calls):
        size = 1 + len(replies) % 4
        replies.append(reply(*calls_of_reply(calls[start : start + size]), content=f"reply {len(replies)}"))
        start += size
    opened = case.services.start(case.task, enrolment=Enrolment(actor=MODEL, role=Role.QA))
    with closing(opened):
        left = work(
            opened.attempt,
            ByTurn(replies),
            AgentSettings(),
            stop=lambda: len(opened.attempt.state.calls) == len(calls),
        )
        assert left.reason is (TerminationReason.ENDED if table.ends else TerminationReason.STOPPED)
        sent = conversation(opened.attempt.state, AgentSettings())
    return [message.content for message in sent[1:] if message.role != "assistant"]


def calls_of_reply(calls: Calls) -> list[tuple[str, str]]:
    return [(name, json.dumps(arguments)) for name, arguments in calls]


def made_by_text(case: Case, table: Table) -> list[str]:
    """Let a model write all calls as text, one in a reply; return the answers that it receives."""
    calls = calls_of_reply([*table.calls, *table.malformed])
    settings = AgentSettings(calls="text")
    opened = case.services.start(case.task, enrolment=Enrolment(actor=MODEL, role=Role.QA))
    with closing(opened):
        left = work(
            opened.attempt,
            ByTurn([reply(content=written_call(*call)) for call in calls]),
            settings,
            stop=lambda: len(opened.attempt.state.calls) == len(calls),
        )
        assert left.reason is (TerminationReason.ENDED if table.ends else TerminationReason.STOPPED)
        sent = conversation(opened.attempt.state, settings, opened.attempt.tools)
    return [message.content for message in sent[1:] if message.role != "assistant"]


async def made_by_client(client: Client, table: Table) -> list[Said]:
    answers = [await say(client, name, arguments) for name, arguments in [*table.calls, *table.malformed]]
    return [Said(text(answer), bool(answer.is_error), dict(left(answer))) for answer in answers]


@pytest.mark.parametrize("name", TABLES)
async def test_calls_are_answered_alike_whoever_makes_them(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = TABLES[name]
    assert table.ends or (len(table.calls), len(table.malformed)) == (50, 10)
    ways = ("lines", "replies", "text", "streams", "http")
    cases = {way: Case(tmp_path / way, table.mode, written=table.budgets) for way in ways}
    made_in_line_mode(cases["lines"], table, monkeypatch)
    printed = capsys.readouterr().out
    sent = made_by_replies(cases["replies"], table)
    in_text = made_by_text(cases["text"], table)
    async with connected(cases["streams"]) as client:
        over_streams = await made_by_client(client, table)
    async with listening(cases["http"].served()) as url, over_http(url) as client:
        over_web = await made_by_client(client, table)

    said = {way: journalled(case) for way, case in cases.items()}
    every = said["replies"]
    assert len(every) == len(table.calls) + len(table.malformed)
    assert said["lines"] == every[: len(table.calls)]
    assert said["text"] == said["streams"] == said["http"] == over_streams == over_web == every
    (brief,) = {case.state().header.brief for case in cases.values()}
    assert sent == [brief, *(one.text for one in every)]
    assert in_text[0] == brief
    for written, one in zip(in_text[1:], every, strict=True):
        assert written.partition(":\n\n")[2].startswith(one.text)
    assert printed == "".join(f"{visible(text)}\n" for text in (brief, *(one.text for one in said["lines"])))
    assert not [
        path for path in tmp_path.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()
    ]
    for way, case in cases.items():
        ending = case.state().ending
        assert (ending.reason if ending else "") == table.ends
        replay = Replay(open_run(case.journal()), case.services.judge_for(case.task))
        again = list(replay.calls())
        assert {(call.sameness, call.exact) for call in again} == {(Sameness.SAME, True)}
        assert [call.text for call in again] == [one.text for one in said[way]]
        assert replay.attempt.state.remaining == case.state().remaining
