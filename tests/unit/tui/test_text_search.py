from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gistpoint.tui.widgets.code_view import PatternError, find_all


@given(st.text("aAbBİß漢\n[", max_size=60), st.text("aAbBİß漢[", min_size=1, max_size=3))
def test_every_literal_match_is_the_pattern_whatever_its_case(text: str, pattern: str) -> None:
    found = find_all(text, pattern)
    spans = list(zip(found.starts, found.ends, strict=True))
    assert all(text[a:b].casefold() == pattern.casefold() or len(text[a:b]) == len(pattern) for a, b in spans)
    assert all(a < b for a, b in spans)
    assert all(b <= c for (_, b), (c, _) in pairwise(spans))
    if pattern in text:
        assert spans


def test_empty_matches_are_none() -> None:
    assert len(find_all("aaa", "")) == 0
    assert len(find_all("aaa", "b*", regex=True)) == 0


def test_a_pattern_that_takes_for_ever_is_refused() -> None:
    with pytest.raises(PatternError, match=r"more than 0\.5 seconds"):
        find_all("a" * 5_000 + "b", "(a|aa)+$", regex=True)
