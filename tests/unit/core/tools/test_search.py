"""`search_code` finds the same lines as a search line by line, and stops in time."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import regex
from examples import examples
from hypothesis import example, given
from hypothesis import strategies as st
from small_trees import Link, ask, context_of

from gistpoint.core.tasks.model import ToolLimits
from gistpoint.core.tools.declaration import NOTHING_REVEALED, RefusalError
from gistpoint.core.tools.search_code import SearchPattern

PIECES = [
    "a",
    "b",
    "ab",
    ".",
    "^",
    "$",
    r"\s",
    r"\S",
    r"\w",
    r"\W",
    r"\b",
    r"\B",
    "[^a]",
    "[ab]",
    "(a|b)",
    "(?:a)",
    "x*",
    "a+",
    "a?",
    "a{2}",
    ".*",
    ".+?",
    r"\s*",
    r"\n",
    "|",
    r"(?=a)",
    r"(?!a)",
    r"(?<=a)",
    r"(?<!b)",
    r"\A",
    r"\Z",
    "(a)\\1",
    "é",
    r"\t",
    "(?i)",
    "a*+",
    r"\x0a",
    r"\d",
    r"\.",
    "[\\s\\S]",
    "\n",
]
TEXTS = st.text(alphabet="ab \té.1\nAB", max_size=40)
PATTERNS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join)


def found(pattern: str, text: str) -> list[int]:
    """Return the numbers of the lines that the tool's search finds."""
    search = SearchPattern(pattern, 10)
    search.start()
    return [text.count("\n", 0, start) + 1 for start in search.lines(text)]


def naive(pattern: str, text: str) -> list[int]:
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    compiled = regex.compile(pattern, regex.MULTILINE)
    return [number for number, line in enumerate(lines, start=1) if compiled.search(line)]


@examples(600)
@example(pattern=r"\s|^$", text="\n\na\n")
@example(pattern="x*", text="")
@example(pattern="x*", text="\n")
@example(pattern="$", text="a\n\nb")
@example(pattern=r"[^a]*$", text="a\nb\na\n")
@example(pattern=r"a\s*b", text="a\nb\nab\n")
@example(pattern="a\\", text="a")
@example(pattern="a{2", text="aa\na{2\n")
@given(pattern=PATTERNS, text=TEXTS)
def test_matching_lines_are_those_of_a_search_line_by_line(pattern: str, text: str) -> None:
    try:
        regex.compile(pattern, regex.MULTILINE)
    except regex.error:
        with pytest.raises(RefusalError, match="not a valid regular expression"):
            found(pattern, text)
        return
    assert found(pattern, text) == naive(pattern, text)


@examples(200)
@given(pattern=st.text(min_size=1, max_size=30))
def test_any_pattern_is_answered(tmp_path_factory: pytest.TempPathFactory, pattern: str) -> None:
    context = context_of({"a.py": "def f(x):\n    return [x]\n"}, tmp_path_factory.mktemp("search"))
    output = ask(context, "search_code", pattern=pattern)
    assert output.text.startswith("Refused: ") == output.refused


@pytest.mark.parametrize(
    ("pattern", "word", "times"),
    [
        (r"(\w+\s?)+$", "word ", 2000),
        (r"(a|a)*$", "a", 4000),
        (r"(\w+\s?)+\d", "word ", 2000),
        (r"(?=(\w+\s?)+$)", "word ", 2000),
        (r"(a*)*\1[^b]$", "a", 4000),
    ],
)
def test_pattern_that_takes_for_ever_is_stopped_with_a_refusal(
    tmp_path: Path, pattern: str, word: str, times: int
) -> None:
    context = context_of({"a.py": f"{word * times}!b\n"}, tmp_path, limits=ToolLimits(search_seconds=0.3))
    output = ask(context, "search_code", pattern=pattern)
    assert output.refused
    assert "took longer than 0.3 s and was stopped" in output.text
    assert output.revealed == NOTHING_REVEALED


def test_stated_time_is_two_seconds() -> None:
    assert ToolLimits().search_seconds == 2.0


@pytest.mark.parametrize("pattern", ["(", "[a", "*", "(?P<x", "\\", "(?<=a*b", r"\L<x>", "(?P<a>x)(?P<b"])
def test_invalid_pattern_is_refused_with_its_escaped_form(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(regex.error):
        regex.compile(pattern, regex.MULTILINE)
    output = ask(context_of({"a.py": f"x = {pattern!r}\n"}, tmp_path), "search_code", pattern=pattern)
    assert output.refused
    suggested = output.text.rsplit("To search for it as text: ", 1)[1]
    assert re.fullmatch(suggested, pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "x" * 1001,
        "(ab|cd){1000000}",
        "(a{1000}){1000}" * 20,
        "(" * 240 + "a" + "){2}" * 240,
        "a{99999999999999999999}",
        "(" * 900,
        "(" * 490 + "a" + ")" * 490,
    ],
)
def test_empty_or_monstrous_pattern_is_refused(tmp_path: Path, pattern: str) -> None:
    """Compiling some of these takes minutes and gigabytes or kills the process."""
    output = ask(context_of({"a.py": "x = 1\n"}, tmp_path), "search_code", pattern=pattern)
    assert output.refused
    assert len(output.text) < 4000


@pytest.mark.parametrize(
    "pattern", [r"\d{4}-\d{2}-\d{2}", r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", ".{120,}", r"\w{,9}"]
)
def test_counts_that_people_write_are_taken(tmp_path: Path, pattern: str) -> None:
    text = "# 2024-05-06 01234567-89ab-cdef-0123-456789abcdef " + "x" * 120
    output = ask(context_of({"a.py": text}, tmp_path), "search_code", pattern=pattern)
    assert output.text.startswith("1 matching line in 1 file.")


def test_answer_is_sorted_with_two_lines_around_and_contexts_joined(tmp_path: Path) -> None:
    context = context_of(
        {
            "b.py": "one\ntwo\nhit\nfour\nfive\nsix\n",
            "a.py": "hit\n2\n3\n4\nhit\n6\n7\n8\n9\n10\nhit",
            "c.txt": "hit\n",
            "link.py": Link("a.py"),
        },
        tmp_path,
    )
    assert ask(context, "search_code", pattern="h.t").text == "\n".join(
        [
            "4 matching lines in 2 files.",
            "a.py",
            "     1: hit",
            "     2- 2",
            "     3- 3",
            "     4- 4",
            "     5: hit",
            "     6- 6",
            "     7- 7",
            "  --",
            "     9- 9",
            "    10- 10",
            "    11: hit",
            "b.py",
            "     1- one",
            "     2- two",
            "     3: hit",
            "     4- four",
            "     5- five",
        ]
    )


def test_at_most_two_hundred_matches_and_long_lines_are_cut(tmp_path: Path) -> None:
    context = context_of({f"m{n}.py": "hit\n" * 90 for n in range(3)} | {"z.py": "hit" + "x" * 900}, tmp_path)
    text = ask(context, "search_code", pattern="hit").text
    assert text.startswith("The first 200 matching lines, in 3 files; there are more.")
    assert sum(": hit" in line for line in text.splitlines()) == 200
    cut = ask(context, "search_code", pattern="hitx").text
    assert cut.endswith("[... 403 characters]")


def test_exactly_the_limit_is_no_more(tmp_path: Path) -> None:
    text = ask(context_of({"a.py": "hit\n" * 200}, tmp_path), "search_code", pattern="hit").text
    assert text.startswith("200 matching lines in 1 file.")


def test_undecodable_files_are_named_and_the_others_searched(tmp_path: Path) -> None:
    context = context_of(
        {
            "bad.py": b"hit \xff\n",
            "null.py": b"hit\0\n",
            "strange.py": b"# coding: undefined\nhit\n",
            "latin.py": "# coding: latin-1\nhit é\n".encode("latin-1"),
            "two.py": "# coding: latin-1\nhit Ã©\n".encode("latin-1"),
            "old.py": b"hit\rhit\r\nhit\n",
        },
        tmp_path,
    )
    text = ask(context, "search_code", pattern="hit").text
    assert text.startswith("5 matching lines in 3 files.")
    assert text.endswith(
        "Not searched, for they are no text in their declared encoding: bad.py, null.py, strange.py"
    )
    assert "two.py" in ask(context, "search_code", pattern="Ã©").text


def test_search_sees_what_was_replaced(tmp_path: Path) -> None:
    context = context_of({"a.py": "old = 1\n", "b.py": "old = 2\n"}, tmp_path)
    assert ask(context, "search_code", pattern="old").text.startswith("2 matching")
    from dataclasses import replace

    changed = replace(context, tree=context.tree.with_files({"a.py": b"new = 1\n"}))
    assert ask(changed, "search_code", pattern="old").text.startswith("1 matching")
    assert ask(context, "search_code", pattern="old").text.startswith("2 matching")
