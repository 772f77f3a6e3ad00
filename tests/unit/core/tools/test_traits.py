"""Properties that the tools declare, and their consequences for a call."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_trees import context_of

from gistpoint.core.kinds.registry import all_tools, declared, submits
from gistpoint.core.tools.declaration import ArgumentKind


def names(trait: str) -> set[str]:
    return {tool.name for tool in all_tools().values() if getattr(tool, trait)}


def test_traits_of_the_tools() -> None:
    assert names("submits") == {"submit_attempt", "replace_function", "submit_gist"}
    assert names("writes_gist") == {"write_gist", "edit_gist", "edit_and_execute"}
    assert names("replaces_text") == {"write_gist", "edit_and_execute"}
    assert names("runs_gist") == {"edit_and_execute"}
    assert names("runs_code") == {"trace", "bash", "edit_and_execute", "score_gist"} | names("submits")


def test_a_call_that_the_harness_carries_out_has_no_answer_of_its_tool(tmp_path: Path) -> None:
    harness_answers = {name: tool for name, tool in all_tools().items() if tool.run is None}
    assert harness_answers.keys() == {"submit_gist"}
    call = harness_answers["submit_gist"].bind({})
    with pytest.raises(AssertionError, match="submit_gist"):
        call.answer(context_of({"a.py": ""}, tmp_path))


def test_what_replaces_the_gist_writes_it() -> None:
    assert names("replaces_text") <= names("writes_gist")
    for tool in all_tools().values():
        if tool.rewrite is not None and tool.replaces_text:
            assert tool.rewrite("before", {"content": "after"}) == "after"


def test_a_name_without_a_declaration_is_no_tool_and_submits_nothing() -> None:
    assert declared("submit") is None
    assert not submits("submit")
    assert submits("replace_function")


def test_an_argument_is_found_by_its_kind() -> None:
    tool = declared("replace_function")
    assert tool is not None
    arguments = {"func_code": "def f(): ...", "func_name": 3, "file_path": "a.py"}
    assert tool.value(ArgumentKind.CODE, arguments) == "def f(): ..."
    assert tool.value(ArgumentKind.FUNCTION, arguments) is None
    assert tool.takes(ArgumentKind.FUNCTION)
    assert not tool.takes(ArgumentKind.COMMAND)
