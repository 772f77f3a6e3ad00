"""Signs at which only `str.splitlines` ends a line stay in their line where code or JSON is taken apart."""

from __future__ import annotations

import ast
import json
import sys
from typing import Any

import pytest

from gistpoint.core.agents.static import file_in
from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.corruption.blind import BlindItem, ShownVersion
from gistpoint.core.corruption.blind.judging import JudgeRequest
from gistpoint.core.corruption.blind.packets import Packet
from gistpoint.core.generation.examples import read_judged
from gistpoint.core.kinds.gist.lines import indented
from gistpoint.core.study.repairs import AttemptRepair
from gistpoint.core.tasks.model import Target
from gistpoint.core.tools.declaration import Replacement
from gistpoint.sandbox.scaffolds.passed_replies import reply_in
from gistpoint.sessions.formats.api_log import _bodies

SIGNS = [
    sign
    for sign in map(chr, range(sys.maxunicode + 1))
    if len(f"a{sign}b".splitlines()) == 2 and sign not in "\r\n"
]
pytestmark = pytest.mark.parametrize("sign", SIGNS, ids=ascii)


def code_with(sign: str, operator: str = "+") -> str:
    return f"def f(x):\n    a = 'x{sign}y'\n    return a {operator} x\n"


def test_lines_are_those_of_the_interpreter(sign: str) -> None:
    code = f"# a{sign}b\n{code_with(sign)}"
    assert "\n".join([*physical_lines(code), ""]) == code
    last = ast.parse(code).body[-1].end_lineno
    assert last == len(physical_lines(code))


@pytest.mark.parametrize("around", ["{}", "```python\n{}```", "Here it is{sign}:\n\n~~~\n{}~~~\nDone."])
def test_a_replied_file_is_the_one_that_was_written(sign: str, around: str) -> None:
    code = code_with(sign)
    assert file_in(around.format(code, sign=sign)) == code


def test_code_is_moved_right_only_at_its_beginning(sign: str) -> None:
    assert indented([f"a = 'x{sign}y'"], "    ") == [f"    a = 'x{sign}y'"]


def test_a_blind_reader_sees_the_code_as_it_is(sign: str) -> None:
    item = BlindItem("", "shop", Target("f.py", "f", code_with(sign), code_with(sign, "*")))
    assert item.text(ShownVersion.CORRUPTED) == code_with(sign, "*")
    assert item.changed_lines == {3}
    rows = [f"{number} | {line}" for number, line in enumerate(code_with(sign, "*").split("\n")[:3], 1)]
    seed = 0 if item.version(0) is ShownVersion.CORRUPTED else 1
    assert JudgeRequest(item, seed).messages[1].content == "\n".join(rows)
    assert Packet.of(item, (), 0, "a").messages[1].content == "\n".join(rows)


def test_repairs_that_differ_have_different_keys(sign: str) -> None:
    codes = (f"'''a{end}b'''" for end in (sign, "\n"))
    keys = [AttemptRepair("t", (Replacement("f.py", "f", code),)).key for code in codes]
    assert len({*keys}) == 2


def test_a_line_of_json_is_read_whole(sign: str) -> None:
    record = {"source": f"a{sign}b", "record": {}, "readings": [{"verdict": "good"}]}
    (judged,) = read_judged(json.dumps(record, ensure_ascii=False) + "\n", "x")
    assert judged.source == f"a{sign}b"


def test_an_event_of_a_stream_is_read_whole(sign: str) -> None:
    def event(**members: Any) -> str:
        return f"data: {json.dumps(members, ensure_ascii=False)}\n\n"

    message = {"id": "m", "type": "message", "model": "m", "content": [], "usage": {"input_tokens": 5}}
    delta = {"type": "text_delta", "text": f"x{sign}y"}
    body = (
        event(type="message_start", message=message)
        + event(type="content_block_start", index=0, content_block={"type": "text", "text": ""})
        + event(type="content_block_delta", index=0, delta=delta)
    )
    turn = reply_in("/v1/messages", {}, body.encode(), 1.0)
    assert turn is not None
    assert turn.content == f"x{sign}y"
    assert len(list(_bodies._events(body))) == 3
