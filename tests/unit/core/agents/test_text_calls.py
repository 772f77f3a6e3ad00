"""Calls that a model writes as text are read by stated rules, and never if the text is ambiguous."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gistpoint.core.agents.text_calls import calls_in, written_call
from gistpoint.core.attempts.malformed import Malformed, arguments_in
from gistpoint.core.kinds.registry import all_tools
from gistpoint.core.tools.declaration import RefusalError

CALL = '{"name": "read_file", "arguments": {"file_path": "a.py"}}'
DOUBLED = CALL.replace("{", "{{").replace("}", "}}")
RAW_LINES = '{"name": "read_file", "arguments": {"file_path": "a\n\tb"}}'
FENCED = f"```json\n{CALL}\n```"

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,20}", fullmatch=True)
texts = st.text(alphabet=st.sampled_from('ab"\\\n\t`{}~<>é\ud800 '), max_size=40) | st.just(
    "```\n</tool_call>"
)
arguments = st.dictionaries(st.text(max_size=8), texts, max_size=4)
FORMS = {
    "a fence": lambda call: f"```json\n{call}\n```",
    "a fence of tildes": lambda call: f"~~~json\n{call}\n~~~",
    "a fence of its own": lambda call: f"```tool_call\n{call}\n```",
    "a fence without a word": lambda call: f"```\n{call}\n```",
    "a fence on one line": lambda call: f"```json {call} ```",
    "an open fence": lambda call: f"```json\n{call}",
    "tags": lambda call: f"<tool_call>\n{call}\n</tool_call>",
    "tags around a fence": lambda call: f"<tool_call>\n```json\n{call}\n```\n</tool_call>",
    "an open tag": lambda call: f"<tool_call>{call}",
    "the object alone": lambda call: call,
}


def read(reply: str) -> list[tuple[str, Any]]:
    """Return the calls in a reply, with the values or the fault of their arguments."""
    return [(call.name, arguments_in(call.arguments)) for call in calls_in(reply)]


# Forms with one meaning


@pytest.mark.parametrize("form", FORMS)
@given(name=names, values=arguments)
def test_every_form_gives_back_the_call_that_was_written(
    form: str, name: str, values: dict[str, str]
) -> None:
    call = json.dumps({"name": name, "arguments": values})
    assert read(FORMS[form](call)) == [(name, values)]


@given(name=names, values=arguments)
def test_doubled_braces_are_read_as_single_ones(name: str, values: dict[str, str]) -> None:
    inner = json.dumps(values)
    whole = f'{{{{"name": "{name}", "arguments": {{{inner}}}}}}}'
    outermost = f'{{{{"name": "{name}", "arguments": {inner}}}}}'
    assert read(whole) == read(outermost) == [(name, values)]


@given(name=names, values=arguments, before=st.sampled_from(["", "I look.\n", "1. `x`\n"]))
def test_the_form_that_is_requested_is_read(name: str, values: dict[str, str], before: str) -> None:
    assert read(f"{before}{written_call(name, json.dumps(values))}\nThat is all.") == [(name, values)]


@pytest.mark.parametrize(
    "reply",
    [
        CALL.replace("arguments", "parameters"),
        CALL.replace('{"file_path": "a.py"}', json.dumps('{"file_path": "a.py"}')),
        CALL[:-1] + ', "id": "7", "type": "function"}',
        f"<think>\n```json\n{CALL.replace('a.py', 'b.py')}\n```\n</think>\n{FENCED}",
        f"```python\n'''\n{FENCED.replace('a.py', 'b.py').replace('```', '~~~')}\n'''\n```\n{FENCED}",
        f'```json\n{{"version": "1", "name": "pkg"}}\n```\n{FENCED}',
        f"  \n{FENCED}  ",
        FENCED.replace("json", "JSON"),
    ],
)
def test_other_ways_to_write_the_same_call(reply: str) -> None:
    assert read(reply) == [("read_file", {"file_path": "a.py"})]


def test_line_breaks_within_a_value_are_taken_as_they_are() -> None:
    assert read(f"```json\n{RAW_LINES}\n```") == [("read_file", {"file_path": "a\n\tb"})]


def test_a_name_alone_is_a_call_without_arguments() -> None:
    assert read('```json\n{"name": "list_directory"}\n```') == [("list_directory", {})]


def test_several_calls_are_read_in_order() -> None:
    other = FENCED.replace("a.py", "b.py")
    assert [values for _, values in read(f"{FENCED}\n{other}\n<tool_call>{CALL}</tool_call>")] == [
        {"file_path": "a.py"},
        {"file_path": "b.py"},
        {"file_path": "a.py"},
    ]


# Replies from a real model: Qwen2.5-Coder-1.5B-Instruct behind llama.cpp's server, to declared tools

UNFINISHED = "def find_block(self, size: int, stretches: range) -> list[str]:\n    pass\n"


@pytest.mark.parametrize(
    ("reply", "calls"),
    [
        (
            '```json\n{\n  "name": "find_block",\n  "arguments": {\n    "size": 4,\n'
            '    "stretches": range(1, 6)\n  }\n}\n```',
            [("find_block", Malformed.NOT_JSON)],
        ),
        (
            '```json\n{\n  "name": "submit_attempt",\n  "arguments": {\n    "func_code": '
            f"{json.dumps(UNFINISHED)}\n  }}\n}}\n```",
            [("submit_attempt", {"func_code": UNFINISHED})],
        ),
        (
            f'{{{{"name": "submit_attempt", "arguments": {json.dumps({"func_code": UNFINISHED})}}}}}',
            [("submit_attempt", {"func_code": UNFINISHED})],
        ),
    ],
    ids=["an expression as value", "over several lines", "doubled braces"],
)
def test_what_a_real_model_wrote_is_read(reply: str, calls: list[tuple[str, Any]]) -> None:
    assert read(reply) == calls


# Text that is not a call


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "I would read a.py.",
        f"I call {CALL} now.",
        f"{CALL} That is my call.",
        f"```python\n{CALL}\n```",
        f"> {FENCED}",
        FENCED[:-8],
        f"<tool_call>{CALL[:-1]}",
        f"<think>{FENCED}",
        '```json\n{"version": "1"}\n```',
        '```json\n{"name": "pkg", "version": "1"}\n```',
        '```json\n{"name": 3}\n```',
        "```json\n[1, 2]\n```",
        "```json\nread_file a.py\n```",
        "{'name': 'read_file'}",
    ],
)
def test_what_is_no_call_is_none(reply: str) -> None:
    assert read(reply) == []


# Calls that can't be carried out


@pytest.mark.parametrize(
    ("reply", "name", "fault"),
    [
        (f"```json\n{CALL[:-1]}\n```", "read_file", Malformed.NOT_JSON),
        (f"```json\n{CALL}\n{CALL}\n```", "read_file", Malformed.NOT_JSON),
        (f"{CALL}\n{CALL}", "read_file", Malformed.NOT_JSON),
        (f"{{{CALL}", "read_file", Malformed.NOT_JSON),
        (f"```json\n[{CALL}]\n```", "read_file", Malformed.NOT_OBJECT),
        (CALL.replace('{"file_path": "a.py"}', '["a.py"]'), "read_file", Malformed.NOT_OBJECT),
        (CALL.replace('{"file_path": "a.py"}', '"a.py"'), "read_file", Malformed.NOT_OBJECT),
        (CALL.replace('"a.py"', "NaN"), "read_file", Malformed.NOT_JSON),
        ("<tool_call>read_file</tool_call>", "", Malformed.NOT_JSON),
        ("<tool_call></tool_call>", "", Malformed.NOT_JSON),
        ("```tool_call\n[]\n```", "", Malformed.NOT_OBJECT),
    ],
)
def test_a_call_that_can_not_be_read_is_malformed(reply: str, name: str, fault: Malformed) -> None:
    assert read(reply) == [(name, fault)]


@pytest.mark.parametrize(
    "call",
    [
        '{"name": "read_file", "name": "read_function", "arguments": {"file_path": "a.py"}}',
        '{"name": "read_file", "arguments": {"file_path": "a.py"}, "arguments": {"file_path": "b.py"}}',
        '{"name": "read_file", "arguments": {"file_path": "a.py"}, "parameters": {"file_path": "b.py"}}',
        '{"name": "read_file", "arguments": {"file_path": "a.py"}, "file_path": "b.py"}',
    ],
)
def test_a_call_with_two_readings_is_malformed(call: str) -> None:
    ((_, values),) = read(f"```json\n{call}\n```")
    assert isinstance(values, dict)
    assert "arguments" in values
    assert all_tools()
    for tool in all_tools().values():
        with pytest.raises(RefusalError):
            tool.bind(values)


# Hostile texts


@given(
    st.lists(
        st.sampled_from(
            ["```json", "```", "~~~", "<tool_call>", "</tool_call>", "<think>", "</think>", "{", "}", "{{", '"',
             "\\", "\n", '"name"', ":", '"x"', '"arguments"', ",", "[", "]", " ", "é", "\ud800", CALL, "1"]
        ),
        max_size=30,
    )
)  # fmt: skip
def test_whatever_a_model_writes_is_read_without_an_error(parts: list[str]) -> None:
    reply = "".join(parts)
    calls = calls_in(reply)
    assert calls == calls_in(reply)
    assert all(isinstance(arguments_in(call.arguments), dict | Malformed) for call in calls)


@given(st.integers(min_value=0, max_value=len(FENCED)))
def test_a_reply_that_is_cut_off_holds_the_whole_call_or_none(length: int) -> None:
    assert read(FENCED[:length]) in ([], [("read_file", {"file_path": "a.py"})])


@pytest.mark.parametrize(
    "reply",
    [
        "<tool_call>{" * 90_000,
        "```json\n{\n```\n" * 60_000,
        "{{" + '"\\"' * 300_000 + "}}",
        "{" * 500_000 + "}" * 500_000,
        "```json\n" + "[" * 900_000 + "\n```",
        "`" * 1_000_000,
        "<tool_call>" + " " * 1_000_000 + "</tool_call>",
        "<tool_call></tool_call>" * 40_000,
    ],
    ids=["open tags", "open fences", "quotes", "braces", "brackets", "ticks", "blanks", "empty tags"],
)
def test_a_long_reply_is_read_in_bounds(reply: str) -> None:
    assert len(calls_in(reply)) <= 1_000
