"""Lines as people type them are understood in any usual form, or cause a question that costs nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gistpoint.core.attempts.revealed import Knowledge, ShownFunction
from gistpoint.core.kinds.commandline import QuestionError, parse, spelled
from gistpoint.core.kinds.gist.model import GistSettings
from gistpoint.core.kinds.gist.tools import OPTIONAL_TOOLS, gist_tools
from gistpoint.core.kinds.registry import all_tools
from gistpoint.core.tasks.model import Mode
from gistpoint.core.tools.declaration import ArgumentKind, Tool
from gistpoint.core.tools.replacing import REPAIR_TOOLS

REPAIR = REPAIR_TOOLS[Mode.DISCOVERY]
ALL = tuple(all_tools().values())
GIST = gist_tools(GistSettings(execution=True, tools=OPTIONAL_TOOLS), scoring=True)
SHOWN = Knowledge(
    entries={"net": "dir", "net/core.py": "file", "run.py": "file", "stop.py": "file", "a b.py": "file", "x=1": "file",
             "odd::name.py": "file", "bin": "file"},
    functions={
        name: ShownFunction(name, 1, 2)
        for name in ("net/core.py::Network.reach", "net/core.py::Network.add", "run.py::add", "run.py::main")
    },
)  # fmt: skip
REACH = {"function_name": "Network.reach", "file_path": "net/core.py"}


def asked(line: str, tools: tuple[Tool, ...] = REPAIR, shown: Knowledge | None = SHOWN) -> QuestionError:
    with pytest.raises(QuestionError) as question:
        parse(line, tools, shown)
    return question.value


@pytest.mark.parametrize("shown", [SHOWN, Knowledge(), None])
@pytest.mark.parametrize(
    "line",
    [
        "read_function Network.reach net/core.py",
        "read_function net/core.py Network.reach",
        "read_function net/core.py::Network.reach",
        "read_function 'net/core.py' 'Network.reach'",
        "read_function function_name=Network.reach file_path=net/core.py",
        "read_function file_path=net/core.py function_name=Network.reach",
        "read_function file_path='net/core.py' function_name=\"Network.reach\"",
        "read_function Network.reach file_path=net/core.py",
        "read_function file_path=net/core.py Network.reach",
        "read_function function_name=Network.reach net/core.py",
        "read_function function_name=net/core.py::Network.reach",
    ],
)
def test_a_function_and_its_file_are_understood_in_every_form(line: str, shown: Knowledge | None) -> None:
    assert parse(line, REPAIR, shown) == (REPAIR[4], REACH)


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("read_file file_path=net/core.py", {"file_path": "net/core.py"}),
        ("read_file file_path='a b.py'", {"file_path": "a b.py"}),
        ("read_file file_path= a b.py", {"file_path": "a b.py"}),
        ("list_directory path=net", {"path": "net"}),
        ("list_directory path=", {"path": ""}),
        ("search_code pattern=def  reach", {"pattern": "def  reach"}),
        ("search_code pattern='a  b'", {"pattern": "a  b"}),
        ("search_code 'pattern=x'", {"pattern": "pattern=x"}),
        ("search_code pattern=pattern=x", {"pattern": "pattern=x"}),
        ("search_code timeout=", {"pattern": "timeout="}),
        ("search_code a::b", {"pattern": "a::b"}),
        ("search_code net/core.py Network.reach", {"pattern": "net/core.py Network.reach"}),
        ("read_file x=1", {"file_path": "x=1"}),
        ("read_file odd::name.py", {"file_path": "odd::name.py"}),
        ("read_file 'a.py::f'", {"file_path": "a.py::f"}),
        ("read_file file_path=a.py::f", {"file_path": "a.py::f"}),
        (
            "read_function outer.<locals>.inner run.py",
            {"function_name": "outer.<locals>.inner", "file_path": "run.py"},
        ),
        ("read_function ./run.py Größe.wert#2", {"function_name": "Größe.wert#2", "file_path": "./run.py"}),
        ("read_function main bin", {"function_name": "main", "file_path": "bin"}),
        ("read_function bin main", {"function_name": "main", "file_path": "bin"}),
        ("read_function stop.py other.py", {"function_name": "other.py", "file_path": "stop.py"}),
        ("read_function other.py stop.py", {"function_name": "other.py", "file_path": "stop.py"}),
        (
            "read_function function_name=reach file_path=network",
            {"function_name": "reach", "file_path": "network"},
        ),
        (
            "replace_function @code.py Network.reach net/core.py",
            {"func_code": "@code.py", "func_name": "Network.reach", "file_path": "net/core.py"},
        ),
        (
            "replace_function @code.py net/core.py Network.reach",
            {"func_code": "@code.py", "func_name": "Network.reach", "file_path": "net/core.py"},
        ),
        (
            "replace_function net/core.py::Network.reach @code.py",
            {"func_code": "@code.py", "func_name": "Network.reach", "file_path": "net/core.py"},
        ),
        (
            "replace_function func_code='x = 1' net/core.py::Network.reach",
            {"func_code": "x = 1", "func_name": "Network.reach", "file_path": "net/core.py"},
        ),
    ],
)
def test_what_is_typed_is_understood(line: str, arguments: dict[str, str]) -> None:
    assert parse(line, REPAIR, SHOWN)[1] == arguments


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("bash X=1 python a.py", {"command": "X=1 python a.py"}),
        ("bash command=ls -l", {"command": "ls -l"}),
        ("edit_gist a=1 a=2", {"old": "a=1", "new": "a=2"}),
        ("edit_gist new=2 old=1", {"old": "1", "new": "2"}),
        ("edit_and_execute @gist.py execute=false", {"content": "@gist.py", "execute": "false"}),
        ("repo_graph net.core::Network", {"name": "net.core::Network"}),
        ("submit_gist", {}),
        ("score_gist", {}),
    ],
)
def test_tools_of_gists_are_understood_too(line: str, arguments: dict[str, str]) -> None:
    assert parse(line, GIST, SHOWN)[1] == arguments


@pytest.mark.parametrize(
    ("line", "suggested"),
    [
        ("raed_file run.py", "read_file run.py"),
        ("read_fucntion net/core.py Network.reach", "read_function Network.reach net/core.py"),
        ("nonsense", ""),
        ("read_function Network.reach", "read_function Network.reach net/core.py"),
        ("read_function reach", "read_function Network.reach net/core.py"),
        ("read_function reach network", "read_function Network.reach net/core.py"),
        ("read_function add", ""),
        ("read_function net/core.py", ""),
        ("read_function reach.py network.py", ""),
        ("read_function run.py stop.py", ""),
        ("read_function net/core.py run.py main", ""),
        ("read_function net/core.py:: main", ""),
        ("read_function ::main", ""),
        ("read_function path=run.py name=main", "read_function main run.py"),
        ("read_function file=run.py function=main", "read_function main run.py"),
        ("read_function main path=run.py", "read_function main run.py"),
        ("read_function main file_path=run.py file_path=stop.py", ""),
        ("read_function x=1 y=2", ""),
        ("read_function a b c", ""),
        ("read_function 'main run.py", ""),
        ("read_file path=run.py", "read_file run.py"),
        ("read_file name=run.py", "read_file run.py"),
        ("read_file run.py::main", "read_function main run.py"),
        ("read_file run.py main", "read_function main run.py"),
        ("read_file main run.py", "read_function main run.py"),
        ("list_file_functions net/core.py Network.reach", "read_function Network.reach net/core.py"),
        ("list_directory run.py::main", "read_function main run.py"),
        ("list_directory file_path=net", "list_directory net"),
        ("read_file 'run.py' 'main'", ""),
        ("read_file", ""),
        ("", ""),
    ],
)
def test_what_can_t_be_understood_is_a_question(line: str, suggested: str) -> None:
    question = asked(line)
    assert question.suggested == suggested
    if suggested:
        assert (
            spelled(parse(suggested, REPAIR, SHOWN)[0].name, parse(suggested, REPAIR, SHOWN)[1]) == suggested
        )
    assert str(question)


def test_only_what_was_shown_decides() -> None:
    """`bin` contains Python files in the tree, but they have not been shown yet."""
    assert asked("read_function bin main", shown=Knowledge()).suggested == ""
    assert asked("read_function reach", shown=Knowledge()).suggested == ""
    assert parse("read_file run.py main", REPAIR, Knowledge())[1] == {"file_path": "run.py main"}


def test_no_function_is_suggested_where_none_can_be_read() -> None:
    submitting = tuple(tool for tool in REPAIR if tool.submits)
    assert asked("read_file run.py::main", submitting).suggested == ""
    assert asked("read_function main run.py", submitting).suggested == ""
    assert asked("replace_functoin x main run.py", submitting).suggested == ""


WORDS = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12),
    st.sampled_from(
        ["a.py", "f", "net/core.py::f", "pattern=x", "file_path=a", "'", "x = 1", "a b.py", "C.m", "<locals>"]
    ),
)
KINDS = st.sampled_from(["file", "dir"])


SPELLED = [tool for tool in ALL if not (tool.submits or tool.takes(ArgumentKind.CODE))]
"""The tools whose calls can be spelled in one line."""


@pytest.mark.parametrize("tool", SPELLED, ids=lambda tool: tool.name)
@given(data=st.data())
def test_what_is_spelled_is_read_back_whatever_was_shown(tool: Tool, data: st.DataObject) -> None:
    arguments: dict[str, Any] = {a.name: data.draw(WORDS) for a in tool.arguments}
    shown = Knowledge(
        data.draw(st.dictionaries(st.one_of(WORDS, st.sampled_from(list(arguments.values()))), KINDS))
    )
    assert parse(spelled(tool.name, arguments), (tool,), shown) == (tool, arguments)


@given(line=st.text(max_size=40), tool=st.sampled_from(["", *(f"{t.name} " for t in ALL)]))
def test_any_line_is_a_call_or_a_question(line: str, tool: str) -> None:
    for tools in (REPAIR, GIST):
        for shown in (SHOWN, None):
            try:
                found, arguments = parse(tool + line, tools, shown)
            except QuestionError as question:
                words, suggested = str(question), question.suggested
                assert words.strip()
                if suggested:
                    meant, given = parse(suggested, tools, shown)
                    assert spelled(meant.name, given) == suggested
            else:
                found.bind(arguments)
                assert found in tools
                if found in SPELLED:
                    assert parse(spelled(found.name, arguments), tools, shown) == (found, arguments)


def test_a_tool_that_takes_its_file_first_asks_for_it_too() -> None:
    """A plug-in may declare its arguments in any order."""
    reader = REPAIR[4]
    reversed_reader = replace(reader, arguments=reader.arguments[::-1])
    assert [argument.name for argument in reversed_reader.arguments] == ["file_path", "function_name"]
    question = asked("read_function", (reversed_reader,))
    assert str(question).startswith("file_path is missing.")
