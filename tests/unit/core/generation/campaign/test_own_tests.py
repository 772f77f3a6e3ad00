"""Whether a test is about a function, by its name."""

from __future__ import annotations

import pytest

from gistpoint.core.generation.campaign.observing import function_of_test, is_own_test


@pytest.mark.parametrize(
    ("id", "qualname", "own"),
    [
        ("t.py::test_split_lines", "split_lines", True),
        ("t.py::test_split_lines[a-split]", "split_lines", True),
        ("t.py::test_join[split_lines]", "split_lines", False),
        ("t.py::TestSplitLines::test_empty", "split_lines", True),
        ("t.py::TestText::test_split", "Text.split", True),
        ("t.py::TestText::test_join", "Text.split", False),
        ("t.py::TestText::test_join", "Text.__init__", True),
        ("t.py::test_splitter", "split", False),
        ("t.py::test_HTTPServer_close", "HTTPServer.__repr__", True),
        ("t.py::test_price", "outer.<locals>.price", True),
        ("t.py::test_value", "Text.value#2", True),
        ("t.py::test_x", "x", False),
    ],
)
def test_whole_words_of_the_name_count(id: str, qualname: str, own: bool) -> None:
    assert is_own_test(id, qualname) is own


def test_test_is_named_as_the_call_graph_names_it() -> None:
    assert function_of_test("tests/t.py::TestA::test_b[x::y[1]]") == "tests/t.py::TestA.test_b"
