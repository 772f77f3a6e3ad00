"""Text that may differ between runs is unified, and no other text is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gistpoint.sessions.replay.replaying import normalised

SAME = [
    ("3 failed in 0.12s", "3 failed in 11.9s"),
    ("took 12 ms, then 3.5 seconds", "took 1 ms, then 0.25 seconds"),
    ("1.5e-05 s", "2e-7 s"),
    ("<Basket object at 0x7f3a5c0d1e80>", "<Basket object at 0x7fffe10a2b40>"),
    ("/tmp/tmpab12cd_9/a.txt is missing", "/tmp/tmpzz99yy_1/a.txt is missing"),
    ("'/tmp/pytest-of-ada/pytest-3/test_x0'", "'/tmp/pytest-of-bob/pytest-17/test_x0'"),
    ("open /private/var/folders/x1/abc/T/tmpq1/a", "open /tmp/run-7/a"),
    ("/srv/runs/tmpab12cd_9/a", "/srv/runs/tmp00000000/a"),
    ("C:\\Users\\ada\\AppData\\Local\\Temp\\one\\a", "C:\\Users\\bob\\AppData\\Local\\Temp\\two\\a"),
    ("/opt/a/lib/python3.11/json/decoder.py:355", "/data/b/.local/lib/python3.12/json/decoder.py:355"),
    ("(/opt/a/lib/python3.11/site-packages/x.py)", "(/srv/b/lib/python3.11/site-packages/x.py)"),
    ("at 2026-01-02T03:04:05.678Z", "at 2025-11-30 23:59:01"),
    ("[12:01:59] ready", "[00:00:00.123] ready"),
    ("one\r\ntwo", "one\ntwo"),
]
DIFFERENT = [
    ("11600 instead of 10800", "11600 instead of 10801"),
    ("3 failed in 0.12s", "4 failed in 0.12s"),
    ("version 3.11", "version 3.12"),
    ("0xff", "0xfe"),
    ("src/tmp/a.py", "src/tmp/b.py"),
    ("/data/ada/tmp/one", "/data/ada/tmp/two"),
    ("/tmp/one/a.txt", "/tmp/one/b.txt"),
    ("line 5 strings", "line 6 strings"),
    ("a 5 minuend", "a 6 minuend"),
    ("tests/test_x.py:12:34", "tests/test_x.py:12:35"),
    ("12345s(1)", "12346s(1)"),
    ("x0x7f3a5c0d", "x0x7f3a5c0e"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_may_change_is_made_one(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_counts_stays(one: str, other: str) -> None:
    assert normalised(one) != normalised(other)


@given(st.text(alphabet="/tmpvarx-_. :0123456789smns()e\n", max_size=200))
def test_normal_text_stays_as_it_is_and_lines_stay_lines(text: str) -> None:
    once = normalised(text)
    assert once.count("\n") == text.count("\n")
    assert normalised(once) == once


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "piece",
    [
        "/a",
        "/tmp",
        "/tmp/",
        "0x",
        "1",
        "1:",
        "12:34:",
        "9" * 11 + ".",
        "1e-",
        "a/lib/python3.1",
        "2026-01-01 ",
    ],
)
def test_hostile_text_is_read_in_time(piece: str) -> None:
    assert normalised(piece * 50_000 + "!").endswith("!")
