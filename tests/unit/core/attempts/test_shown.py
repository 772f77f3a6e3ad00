"""The sources that answers show, from their events and from the text of older journals."""

from __future__ import annotations

from pathlib import Path

import pytest
from gist_tasks import OWNED, gist_case
from hypothesis import given
from hypothesis import strategies as st

from gistpoint.core.attempts.revealed import source_text, traced_functions
from gistpoint.core.kinds.gist.model import GistSettings
from gistpoint.core.tools.declaration import Revealed

LAST = "This was the last tool use before the final one, and nothing was submitted yet: only a submission can follow."


def test_functions_are_read_off_the_answer_of_trace() -> None:
    head = "1 files and 1 functions, in the order of first touch.\n\nFiles:\n  a b.py\n\nFunctions:\n"
    text = f"{head}  a b.py:3  f.<locals>.g\n"
    assert list(traced_functions(text, Revealed())) == [("a b.py", 3, "f.<locals>.g")]


def test_functions_of_a_trace_are_those_of_its_event() -> None:
    text = "Reworded.\n  a.py:1  other"
    assert list(traced_functions(text, Revealed(traced=(("a  b.py", 3, "f"),)))) == [("a  b.py", 3, "f")]


@pytest.mark.parametrize(
    "end",
    [
        "",
        "\n[3 tool uses and 1 submission left]",
        f"\n[1 tool use and 4 submissions left]\n{LAST}",
        "\n[1 step left]",
        "\n[20 steps and 1 score left]",
    ],
)
@pytest.mark.parametrize("source", ["", "a = 1", "a = 1\n", "[2 steps left]\na\n\n"])
def test_source_in_an_older_answer_lies_between_headline_and_budget(source: str, end: str) -> None:
    assert source_text(f"a.py: 1 line\n{source}{end}", Revealed(files=("a.py",))) == source


@given(head=st.text(), source=st.text(), tail=st.text())
def test_source_is_where_the_event_says(head: str, source: str, tail: str) -> None:
    assert source_text(head + source + tail, Revealed(span=(len(head), len(source)))) == source


def test_events_hold_what_the_text_of_an_answer_shows(tmp_path: Path) -> None:
    case = gist_case(tmp_path, GistSettings(OWNED, tools=("trace",)))
    case.call("trace")
    case.call("read_file", file_path="shop/prices.py")
    case.call("read_function", function_name="discount", file_path="shop/prices.py")
    traced, *sources = case.attempt.state.calls
    assert traced.revealed.traced
    functions = list(traced_functions(traced.text or "", traced.revealed))
    assert functions
    assert functions == list(traced_functions(traced.text or "", Revealed()))
    for call in sources:
        assert call.revealed.span
        assert source_text(call.text or "", call.revealed) == source_text(call.text or "", Revealed())
    assert (
        source_text(sources[0].text or "", sources[0].revealed)
        == case.attempt.tree.read("shop/prices.py").decode()
    )
