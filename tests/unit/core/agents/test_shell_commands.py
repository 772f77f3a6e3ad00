"""Commands of agents that know only a shell: their forms, and refusals by name."""

from __future__ import annotations

import pytest

from gistpoint.core.agents.shell_commands import call_in, example_of, usage_lines
from gistpoint.core.kinds.registry import all_tools
from gistpoint.core.tools.declaration import RefusalError, find_tool

TOOLS = tuple(all_tools().values())
CODE = "def f():\n    return 'EOF'\n"


@pytest.mark.parametrize(
    ("command", "tool", "arguments"),
    [
        ("read_file a.py", "read_file", {"file_path": "a.py"}),
        ("  list_directory\n", "list_directory", {}),
        ("search_code 'def x'", "search_code", {"pattern": "def x"}),
        ("search_code x << y", "search_code", {"pattern": "x", "<<": "", "y": ""}),
        ("search_code a=b", "search_code", {"pattern": "a=b"}),
        ("read_function P.f a.py", "read_function", {"function_name": "P.f", "file_path": "a.py"}),
        ("read_function file_path=a.py f", "read_function", {"function_name": "f", "file_path": "a.py"}),
        (f"submit_attempt <<'EOF'\n{CODE}EOF", "submit_attempt", {"func_code": CODE}),
        (f"submit_attempt << EOF\n{CODE}", "submit_attempt", {"func_code": CODE}),
        (
            f"replace_function f a.py <<CODE\n{CODE}CODE\n\n",
            "replace_function",
            {"func_code": CODE, "func_name": "f", "file_path": "a.py"},
        ),
        ("edit_gist <<A <<B\nx\nA\ny\nz\nB", "edit_gist", {"old": "x\n", "new": "y\nz\n"}),
        ("bash grep -n 'x y' a.py | head", "bash", {"command": "grep -n 'x y' a.py | head"}),
        ("trace 'pytest -q'", "trace", {"command": "pytest -q"}),
        ("ls -la", "ls", {}),
        ("", "", {}),
        ("cat <<'EOF' > a.py\nx\nEOF", "cat", {}),
    ],
)
def test_a_command_means_a_call(command: str, tool: str, arguments: dict[str, str]) -> None:
    call = call_in(command, TOOLS)
    assert (call.tool, call.arguments) == (tool, arguments)


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("read_file a.py | head", "'head'"),
        ("read_file a.py b.py", "'b.py'"),
        ("read_file a.py\nls", "'ls'"),
        ("read_file 'a.py", "'a.py"),
        ("submit_attempt <<A\nx\nA\nrm -r /", "'rm -r /'"),
        ("read_file", "file_path"),
    ],
)
def test_what_is_too_much_or_missing_is_refused_by_name(command: str, named: str) -> None:
    call = call_in(command, TOOLS)
    tool = find_tool(TOOLS, call.tool)
    assert tool is not None
    with pytest.raises(RefusalError, match=r".") as refused:
        tool.bind(call.arguments)
    assert named in str(refused.value)


def test_every_tool_is_explained_in_the_form_in_which_it_is_read() -> None:
    lines = usage_lines(TOOLS).splitlines()
    for tool, line in zip(TOOLS, lines, strict=True):
        form = line.removeprefix("- `").partition("`:")[0]
        assert form.startswith(tool.name)
        documents = [a.name.upper() for a in tool.arguments if f"<<'{a.name.upper()}'" in form]
        written = "\n".join([form.replace("[", "").replace("]", ""), *(f"x\n{end}" for end in documents)])
        assert tool.bind(call_in(written, TOOLS).arguments)


def test_the_example_is_of_a_tool_that_takes_code() -> None:
    tools = [tool for tool in TOOLS if tool.name in ("read_file", "submit_attempt")]
    assert call_in(example_of(tools), tools).arguments == {"func_code": "...\n"}
    assert example_of(tools[:0]) == ""
