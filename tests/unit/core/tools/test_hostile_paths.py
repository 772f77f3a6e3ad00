"""Whatever path a solver gives, a tool answers with a refusal and with nothing from outside the tree."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_trees import Link, ask, context_of, tree_of

from gistpoint.core.errors import TaskError
from gistpoint.core.tools.declaration import NOTHING_REVEALED, ToolContext

SECRET = "the text of a file outside"
BY_PATH = ["list_directory", "read_file", "list_file_functions", "read_function", "replace_function"]


@pytest.fixture
def context(tmp_path: Path) -> ToolContext:
    (tmp_path / "secret.py").write_text(f"# {SECRET}\ndef f():\n    pass\n")
    return context_of(
        {
            "pkg/mod.py": "def f():\n    return 1\n",
            "out.py": Link("../secret.py"),
            "root.py": Link("/etc/passwd"),
            "deep/out": Link("../../"),
            "a.py": Link("b.py"),
            "b.py": Link("a.py"),
            "self": Link("self"),
            "dangling.py": Link("nothing.py"),
            "alias.py": Link("pkg/mod.py"),
            "folder": Link("pkg"),
        },
        tmp_path,
    )


def refused(context: ToolContext, tool: str, path: str) -> str:
    arguments = {"path": path} if tool == "list_directory" else {"file_path": path}
    if tool == "read_function":
        arguments["function_name"] = "f"
    if tool == "replace_function":
        arguments |= {"func_name": "f", "func_code": "def f():\n    return 2\n"}
    output = ask(context, tool, **arguments)
    assert output.refused
    assert output.text.startswith("Refused: ")
    assert output.revealed == NOTHING_REVEALED
    assert output.replacement is None
    assert SECRET not in output.text
    return output.text


@pytest.mark.parametrize("tool", BY_PATH)
@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/etc/passwd", "absolute"),
        ("//etc/passwd", "absolute"),
        ("~/secret.py", "absolute"),
        ("../secret.py", "leads upwards"),
        ("pkg/../../secret.py", "leads upwards"),
        ("pkg/..", "leads upwards"),
        ("pkg/mod.py\0.txt", "NUL"),
        ("x" * 5000, "5000 characters"),
        ("out.py", ""),
        ("root.py", ""),
        ("a.py", ""),
        ("self", ""),
        ("deep/out/secret.py", ""),
        ("dangling.py", ""),
        ("nowhere.py", "There is no f"),
        ("pkg/mod.py/inner", "There is no f"),
        ("\ud800", ""),
    ],
)
def test_path_is_refused_by_every_tool(context: ToolContext, tool: str, path: str, why: str) -> None:
    text = refused(context, tool, path)
    assert why in text
    assert len(text) < 1000
    assert "\0" not in text


def test_folder_for_a_file_and_a_file_for_a_folder_name_the_right_tool(context: ToolContext) -> None:
    assert "list_directory shows" in refused(context, "read_file", "pkg")
    assert "is a folder" in refused(context, "read_file", "")
    assert "read_file shows" in refused(context, "list_directory", "pkg/mod.py")


def test_links_within_the_tree_are_followed(context: ToolContext) -> None:
    assert "return 1" in ask(context, "read_file", file_path="alias.py").text
    assert "return 1" in ask(context, "read_file", file_path="folder/mod.py").text
    assert "mod.py" in ask(context, "list_directory", path="folder").text


@pytest.mark.parametrize("path", ["pkg/mod.py", "./pkg/mod.py", "pkg//mod.py", "pkg/./mod.py"])
def test_spellings_of_one_path_are_one_path(context: ToolContext, path: str) -> None:
    output = ask(context, "read_file", file_path=path)
    assert output.revealed.files == ("pkg/mod.py",)


@given(
    path=st.text(max_size=60)
    | st.lists(st.sampled_from(["..", ".", "", "pkg", "mod.py", "out.py", "deep", "~", "\0"])).map("/".join)
)
def test_no_path_raises_or_shows_the_outside(tmp_path_factory: pytest.TempPathFactory, path: str) -> None:
    folder = tmp_path_factory.mktemp("paths")
    (folder / "secret.py").write_text(SECRET)
    context = context_of(
        {"pkg/mod.py": "x = 1\n", "out.py": Link("../secret.py"), "deep": Link("..")}, folder
    )
    for tool in BY_PATH[:3]:
        output = ask(context, tool, **{"path" if tool == "list_directory" else "file_path": path})
        assert SECRET not in output.text


@pytest.mark.parametrize("name", ["../up.py", "/etc/x.py", "a/../../b.py", ".."])
def test_tar_with_a_path_that_climbs_out_is_no_tree(tmp_path: Path, name: str) -> None:
    with pytest.raises(TaskError, match="leads out of the tree"):
        tree_of({name: "x"}, tmp_path)


def test_names_that_only_begin_with_dots_are_ordinary(tmp_path: Path) -> None:
    context = context_of({"..hidden/...py": "x = 1\n"}, tmp_path)
    assert "x = 1" in ask(context, "read_file", file_path="..hidden/...py").text


def test_names_with_control_characters_are_listed_visibly(tmp_path: Path) -> None:
    context = context_of({"a\x1b[31m.py": "x = 1\n", "b\u202ec.py": "", "c\n d.py": ""}, tmp_path)
    text = ask(context, "list_directory", path="").text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert len(text.splitlines()) == 4
