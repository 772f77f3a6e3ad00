"""The effects of Enter and other keys on lines; `|` is the cursor."""

from __future__ import annotations

import pytest

from gistpoint.tui.widgets.python_typing import (
    backspace_length,
    commented,
    indented,
    level_of,
    new_line,
    outdented,
)


def entered(text: str) -> str:
    head, _, tail = text.partition("|")
    lines = (head + tail).split("\n")
    row, column = head.count("\n"), len(head.rpartition("\n")[2])
    new = new_line(lines, row, column)
    before = head[: len(head) - new.before] + new.text
    cursor = len(before) - new.back
    return f"{before[:cursor]}|{before[cursor:]}{tail[new.after :]}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    x = 1|", "    x = 1\n    |"),
        ("if x:|", "if x:\n    |"),
        ("    if x:  # why:|", "    if x:  # why:\n        |"),
        ("# see:|", "# see:\n|"),
        ("    x = 'a:|'", "    x = 'a:\n    |'"),
        ('    """doc:|', '    """doc:\n    |'),
        ("    return 1|", "    return 1\n|"),
        ("    returned = 1|", "    returned = 1\n    |"),
        ("    return 1|  # why", "    return 1\n    |# why"),
        ("f(|)", "f(\n    |\n)"),
        ("    f(|", "    f(\n        |"),
        ("    x = [1,|", "    x = [1,\n        |"),
        ("    x = [\n        1,|\n    ]", "    x = [\n        1,\n        |\n    ]"),
        ("    x = [\n        1|]", "    x = [\n        1\n    |]"),
        ("def f(\n    a,\n) -> None:|", "def f(\n    a,\n) -> None:\n    |"),
        ("    x = f(1,\n          2)|", "    x = f(1,\n          2)\n    |"),
        ("    raise X(\n    )|", "    raise X(\n    )\n|"),
        ("  x = 1 + \\|", "  x = 1 + \\\n      |"),
        ("  x = 1 + \\\n      2|", "  x = 1 + \\\n      2\n  |"),
        ("    |x", "\n    |x"),
        ("    |", "\n    |"),
        ("x = 1|  + 2", "x = 1\n|+ 2"),
        ("x = '('|", "x = '('\n|"),
        ("x = ')'\nif (a and\n    b):|", "x = ')'\nif (a and\n    b):\n    |"),
        ("\tif x:|", "\tif x:\n\t\t|"),
        ("if x:\n  if y:|", "if x:\n  if y:\n    |"),
        ("broken = (\ndef f():|", "broken = (\ndef f():\n    |"),
    ],
)
def test_enter(before: str, after: str) -> None:
    assert entered(before) == after


def test_a_level_is_what_the_text_uses() -> None:
    assert level_of(["if x:", "  y"]) == "  "
    assert level_of(["if x:", "", "\ty"]) == level_of(["\tx"]) == "\t"
    assert level_of(["x", "   y"]) == "    "


@pytest.mark.parametrize(
    ("head", "taken"), [("        ", 4), ("      ", 2), ("   ", 3), ("    x", 1), ("", 1), ("\t", 1)]
)
def test_backspace(head: str, taken: int) -> None:
    assert backspace_length(head, "    ") == taken


def test_lines_are_moved_and_moved_back() -> None:
    lines = ["a", "", "  b", "\tc"]
    assert indented(lines, "    ") == ["    a", "", "      b", "    \tc"]
    assert outdented(["    a", "", "  b", "\tc"], "    ") == ["a", "", "b", "c"]


@pytest.mark.parametrize("lines", [["    a", "", "      b"], ["# a"], [""], ["", "x  # y"]])
def test_comments_are_made_and_taken_back(lines: list[str]) -> None:
    once = commented(lines)
    assert commented(once) == lines or lines == ["# a"]
    assert all(line.lstrip().startswith("#") for line in once if line.strip()) or lines == ["# a"]


def test_a_comment_begins_at_the_smallest_indent() -> None:
    assert commented(["      b", "    a"]) == ["    #   b", "    # a"]
    assert commented(["#a", "  # b"]) == ["a", "  b"]
