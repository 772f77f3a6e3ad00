from __future__ import annotations

import json

import pytest

from gistpoint.core.errors import RecordingError
from gistpoint.sandbox.candidates.recording import Records


@pytest.mark.parametrize(
    "line",
    [b"", b"7", b"[" * 100_000, b"{}", b'{"e": "test"}', b'{"e": "other"}', b'{"e": "collected", "count": "3"}',
     b'{"e": "codes", "rows": [["a.py", 1]]}', b'{"e": "entered", "id": "t", "codes": [true]}'],
)  # fmt: skip
def test_a_line_that_the_plugin_does_not_write(line):
    with pytest.raises(RecordingError, match="not a record"):
        Records().feed(line)


def test_the_seconds_of_a_test_are_summed():
    records = Records()
    for record in (
        {"e": "collected", "n": 1, "count": 2},
        *[{"e": "test", "id": "\udc80", "seconds": 1}] * 2,
    ):
        records.feed(json.dumps(record).encode())
    assert (records.collected, records.tests, records.finished) == (2, {"\udc80": 2.0}, False)
