"""Whether a test fails because an earlier version lacks a feature."""

from __future__ import annotations

import pytest

from gistpoint.core.corruption.missing import missing_feature

TODAY = """\
def read(text, *, strict=False):
    if strict and text.encoding != "utf-16":
        raise ValueError(text)
    return parse(text, limit=3)
"""


@pytest.mark.parametrize(
    ("earlier", "test", "found"),
    [
        ("def read(text):\n    return parse(text)\n", "def test():\n    read(a, strict=True)\n", "strict"),
        (TODAY.replace("encoding", "codec"), "def test():\n    assert a.encoding\n", "encoding"),
        (TODAY.replace("utf-16", "latin"), "def test():\n    read(file('utf-16'))\n", "utf-16"),
        (TODAY.replace("limit=3", ""), "def test():\n    read(a, limit=2)\n", "limit"),
        ("def other(strict): ...\ndef read(text):\n    pass\n", "def test():\n    read(strict=1)\n", ""),
        (TODAY, "def test():\n    read(a, strict=True)\n", ""),
        (TODAY.replace("limit=3", "limit=4"), "def test():\n    assert read(a, limit=2) == 3\n", ""),
        ("def read(text):\n    return parse(text)\n", "def test():\n    read(a)\n", ""),
        (TODAY.replace("found", "result"), "def test():\n    found = read(a)\n", ""),
    ],
)
def test_a_feature_is_in_todays_function_and_the_test_but_not_in_the_earlier_file(
    earlier: str, test: str, found: str
) -> None:
    assert missing_feature(TODAY, earlier, [test], ["AssertionError"]) == found


def test_not_implemented_is_a_missing_feature() -> None:
    assert missing_feature(TODAY, TODAY, [], ["NotImplementedError"]) == "NotImplementedError"
