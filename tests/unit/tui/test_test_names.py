from __future__ import annotations

import pytest

from gistpoint.tui.test_names import ending, unescaped


@pytest.mark.parametrize(
    ("id", "shown"),
    [
        (r"t.py::test_a[\xc5SG-MJ\xd8-\u4e2d]", "t.py::test_a[ÅSG-MJØ-中]"),
        (r"t.py::test_a[\U0001f600]", "t.py::test_a[😀]"),
        (r"t.py::test_a[\\xc5]", r"t.py::test_a[\\xc5]"),
        (r"t.py::test_a[\x1b-\n-\x41]", r"t.py::test_a[\x1b-\n-\x41]"),
        (
            r"t.py::test_a[\u202e-\u0301-\u05d0-\ud800-\xa0-\x85]",
            r"t.py::test_a[\u202e-\u0301-\u05d0-\ud800-\xa0-\x85]",
        ),
        (r"t.py::test_a[\Uffffffff]", r"t.py::test_a[\Uffffffff]"),
    ],
)
def test_escapes_are_shown_as_letters_when_that_is_safe(id: str, shown: str) -> None:
    assert unescaped(id) == shown


def test_of_an_id_without_room_the_end_is_kept() -> None:
    assert ending("tests/test_a.py::test_b", 8) == "…:test_b"
    assert ending("test_b", 6) == "test_b"
