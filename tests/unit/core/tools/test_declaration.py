"""One declaration gives schema, usage and command line; a bad call is an answer, not an exception."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_trees import ask, call, context_of

from gistpoint.core.kinds.commandline import parse, spelled
from gistpoint.core.kinds.gist.tools import EDIT_AND_EXECUTE, TRACE
from gistpoint.core.tasks.model import Mode
from gistpoint.core.tools.browsing import LIST_DIRECTORY
from gistpoint.core.tools.declaration import Group, RefusalError, Tool, declarations_sha256, named
from gistpoint.core.tools.replacing import REPAIR_TOOLS

ALL = list({tool.name: tool for tools in REPAIR_TOOLS.values() for tool in tools}.values())
PAPER = {
    "list_directory": ["path"],
    "search_code": ["pattern"],
    "read_file": ["file_path"],
    "list_file_functions": ["file_path"],
    "read_function": ["function_name", "file_path"],
    "submit_attempt": ["func_code"],
    "replace_function": ["func_code", "func_name", "file_path"],
}
"""The tools and parameters in appendix A of the paper."""
OURS: dict[str, list[str]] = {}
"""Additional tools for solvers of repairs; a comment says why results stay comparable with the paper's."""


def test_names_and_arguments_are_those_of_the_paper() -> None:
    assert {tool.name: [a.name for a in tool.arguments] for tool in ALL} == PAPER | OURS
    assert [tool.name for tool in REPAIR_TOOLS[Mode.REMOVE]][-1] == "submit_attempt"
    assert [tool.name for tool in REPAIR_TOOLS[Mode.DISCOVERY]][-1] == "replace_function"
    assert {tool.name for tool in ALL if tool.group is Group.SUBMIT} == {"submit_attempt", "replace_function"}


@pytest.mark.parametrize("tool", ALL, ids=lambda tool: tool.name)
def test_schema_usage_and_command_line_agree(tool: Tool) -> None:
    schema = tool.json_schema()
    names = [argument.name for argument in tool.arguments]
    assert list(schema["parameters"]["properties"]) == names
    assert schema["parameters"]["additionalProperties"] is False
    required = schema["parameters"]["required"]
    assert tool.usage().split() == [tool.name, *(n if n in required else f"[{n}]" for n in names)]
    assert all(value["description"] for value in schema["parameters"]["properties"].values())
    parsed, arguments = parse(tool.usage().replace("[", "").replace("]", ""), (tool,))
    assert parsed is tool
    assert arguments == {name: name for name in names}


@pytest.mark.parametrize("tool", ALL, ids=lambda tool: tool.name)
@pytest.mark.parametrize(
    "arguments",
    [
        {"nonsense": "x"},
        {"path": 3},
        {"file_path": None},
        {"file_path": ["a"]},
        {"func_code": b"x"},
        {"pattern": {}},
        {},
    ],
)
def test_arguments_that_do_not_fit_are_refused(tmp_path: Path, tool: Tool, arguments: dict[str, Any]) -> None:
    context = context_of({"a.py": "x = 1\n"}, tmp_path, target="a.py::f")
    output = call(tool, context, arguments)
    if tool.name == "list_directory" and not arguments:
        assert not output.refused
    else:
        assert output.refused
        assert tool.name in output.text


@pytest.mark.parametrize(
    ("tool", "arguments", "bound"),
    [
        (LIST_DIRECTORY, {"path": None}, {"path": ""}),
        (TRACE, {"command": None}, {"command": ""}),
        (EDIT_AND_EXECUTE, {"content": "x", "execute": None}, {"content": "x", "execute": "true"}),
        (EDIT_AND_EXECUTE, {"content": "x", "execute": True}, {"content": "x", "execute": "true"}),
        (EDIT_AND_EXECUTE, {"content": "x", "execute": False}, {"content": "x", "execute": "false"}),
        (EDIT_AND_EXECUTE, {"content": "x", "execute": "maybe"}, {"content": "x", "execute": "maybe"}),
    ],
)
def test_null_stands_for_an_optional_argument_and_a_boolean_for_a_flag(
    tool: Tool, arguments: dict[str, Any], bound: dict[str, str]
) -> None:
    assert tool.bind(arguments).arguments == bound


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (LIST_DIRECTORY, {"path": False}),
        (TRACE, {"command": True}),
        (EDIT_AND_EXECUTE, {"content": None}),
        (EDIT_AND_EXECUTE, {"content": True}),
        (EDIT_AND_EXECUTE, {"content": "x", "execute": 1}),
        (EDIT_AND_EXECUTE, {"content": "x", "execute": 0.0}),
        (EDIT_AND_EXECUTE, {"content": "x", "execute": ["true"]}),
    ],
)
def test_nothing_else_is_coerced(tool: Tool, arguments: dict[str, Any]) -> None:
    with pytest.raises(RefusalError):
        tool.bind(arguments)


def test_a_refusal_repeats_no_long_name() -> None:
    with pytest.raises(RefusalError) as refusal:
        LIST_DIRECTORY.bind({"x" * 1_000_000: ""})
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize("tool", [tool for tool in ALL if not tool.submits], ids=lambda tool: tool.name)
@given(data=st.data())
def test_what_is_spelled_is_parsed_back(tool: Tool, data: st.DataObject) -> None:
    text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
    arguments = {a.name: data.draw(text) for a in tool.arguments}
    shuffled = dict(data.draw(st.permutations(list(arguments.items()))))
    assert parse(spelled(tool.name, shuffled), (tool,)) == (tool, arguments)


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("search_code def  f\\(x", {"pattern": "def  f\\(x"}),
        ("search_code it's", {"pattern": "it's"}),
        ("search_code '  quoted '", {"pattern": "  quoted "}),
        ("  read_file   a b.py ", {"file_path": "a b.py"}),
        ("read_file\ta.py", {"file_path": "a.py"}),
        ("list_directory", {}),
        ("list_directory ''", {"path": ""}),
        (
            "read_function Parser.parse src/parser.py",
            {"function_name": "Parser.parse", "file_path": "src/parser.py"},
        ),
        ("read_function 'f' \"a b.py\"", {"function_name": "f", "file_path": "a b.py"}),
    ],
)
def test_command_line_is_read_as_a_person_means_it(line: str, arguments: dict[str, str]) -> None:
    assert parse(line, tuple(ALL))[1] == arguments


@pytest.mark.parametrize(
    "line",
    ["", "   ", "nonsense a", "read_function f", "read_function f a b", "read_file 'open", "read_file"],
)
def test_command_line_that_does_not_fit_is_refused(line: str) -> None:
    with pytest.raises(RefusalError):
        parse(line, tuple(ALL))


def test_spelling_takes_what_a_model_sends(tmp_path: Path) -> None:
    assert spelled("read_file", {"file_path": 3}) == "read_file 3"
    assert spelled("unknown", {"b": "x y", "a": None}) == f"unknown {shlex.quote('x y')} None"
    assert spelled(
        "replace_function", {"file_path": "a.py", "func_name": "f", "func_code": "def f(): 1"}
    ) == ("replace_function f a.py")


def test_unknown_tool_names_the_others() -> None:
    with pytest.raises(RefusalError, match="replace_function"):
        named(REPAIR_TOOLS[Mode.DISCOVERY], "submit_attempt")


def test_declarations_have_one_hash_per_mode() -> None:
    assert declarations_sha256(REPAIR_TOOLS[Mode.REMOVE]) != declarations_sha256(REPAIR_TOOLS[Mode.DISCOVERY])
    assert declarations_sha256(REPAIR_TOOLS[Mode.REMOVE]) == declarations_sha256(REPAIR_TOOLS[Mode.REMOVE])


def test_answer_is_the_same_bytes_every_time(tmp_path: Path) -> None:
    files = {"b.py": "def f(): pass\n", "a.py": "def f(): pass\n"}
    first = context_of(files, tmp_path)
    second = context_of(dict(reversed(files.items())), tmp_path)
    for name, arguments in [
        ("list_directory", {}),
        ("search_code", {"pattern": "f"}),
        ("read_file", {"file_path": "a.py"}),
    ]:
        assert ask(first, name, **arguments).text == ask(second, name, **arguments).text
