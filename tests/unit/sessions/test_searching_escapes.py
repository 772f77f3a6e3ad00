"""A search finds signs that have a meaning in HTML, however the program that wrote the JSON escaped them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gistpoint.sessions.runs.opening import open_run
from gistpoint.sessions.runs.searching import Query, search_document

ESCAPED = {
    "Python": ("", "04x"),
    "Go": ("<>&", "04x"),
    "Gson": ("<>&='", "04x"),
    ".NET": ("<>&'\"+`", "04X"),
}
"""The signs that a program escapes in JSON strings, and how it writes their numbers."""
TEXT = """a <div class="x y"> &amp; b's `c` = d + é"""
SOUGHT = ['<div class="x', "&amp; b's", "`c` = d +", "s `C", "> &amp", "= d + é", "+ É", TEXT]


def written(value: object, program: str, *, ascii_only: bool = False) -> str:
    signs, number = ESCAPED[program]

    def string(found: re.Match[str]) -> str:
        inner = re.sub(
            r"""\\.|[<>&='"+`]""",
            lambda sign: f"\\u{ord(sign[0][-1]):{number}}" if sign[0][-1] in signs else sign[0],
            found[0][1:-1],
        )
        return f'"{inner}"'

    return re.sub(r'"(?:[^"\\]|\\.)*"', string, json.dumps(value, ensure_ascii=ascii_only))


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("inner", ESCAPED)
@pytest.mark.parametrize("outer", ESCAPED)
def test_a_search_finds_what_any_program_escaped(
    tmp_path: Path, outer: str, inner: str, ascii_only: bool
) -> None:
    arguments = written({"command": TEXT}, inner, ascii_only=ascii_only)
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": arguments}}
    messages = [
        {"role": "user", "content": "Begin."},
        {"role": "assistant", "content": "Now.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
        {"role": "assistant", "content": TEXT},
    ]
    path = tmp_path / "run.json"
    path.write_text(written({"messages": messages}, outer, ascii_only=ascii_only), encoding="utf-8")
    assert json.loads(path.read_text("utf-8")) == {"messages": messages}
    for sought in SOUGHT:
        steps = [hit.step for hit in search_document(open_run(path), Query(sought, ignore_case=True))]
        assert 2 in steps
        assert (1 in steps) or '"' in sought  # a call is shown as it is written
