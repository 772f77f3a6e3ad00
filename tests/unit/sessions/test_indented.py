"""Records of indented arrays: searches for fixed strings find the same as scanning line by line."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gistpoint.sessions.records import limits
from gistpoint.sessions.records.archives import BytesBlob
from gistpoint.sessions.records.scanning import CutOffError, DamagedError, LightKeys, Scanner, TooLongError

_KEYS = LightKeys(("role", "id"))
_SOUND = [
    "{",
    '  "role": "user",',
    '  "id": 7,',
    '  "text": "\\n{ role",',
    '  "parts": [',
    "    {",
    "    }",
    "  ]",
    "},",
]
_ODD = [
    "}",
    "[",
    "]",
    "{},",
    '"x",',
    "7,",
    '{"role": "user",',
    '  "role": "a\\"b",',
    '  "id": 1.5',
    "\t{",
    "},\r",
    "\xe9",
]


def _scanned(data: bytes, chunk: int) -> list[object]:
    """Return the records, followed by the end of the array or the error that prevents reaching it."""
    found: list[object] = []
    scanner = Scanner(BytesBlob(data))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "CHUNK", chunk)
        try:
            found.extend(scanner.elements(_KEYS))
            found.append(scanner.position)
        except (CutOffError, DamagedError, TooLongError) as error:
            found.append((type(error), error.start))
    return found


def _array(lines: list[str], indent: str, outer: str) -> bytes:
    body = "\n".join(line if line == "OUT" else indent + line for line in lines).replace("OUT", f"{outer}]")
    return f"[\n{body}\n{outer}]\n".encode("latin-1")


_RECORD = st.lists(st.sampled_from(_SOUND[1:-1]), max_size=6).map(lambda inner: ["{", *inner, "},"])
_STRETCHES = st.lists(
    st.one_of(_RECORD, _RECORD, _RECORD, st.sampled_from([*_SOUND, *_ODD, "OUT"]).map(lambda x: [x]))
)


@given(_STRETCHES, st.sampled_from([("  ", ""), ("    ", "  "), ("\t\t", "\t")]), st.integers(24, 400))
@example([["{", '  "role": "user",', "},"]] * 40, ("    ", "  "), 100)
@example([["{", "},"], ["{},"], ["},"], ["{", "},"]], ("  ", ""), 24)
@example([*[["{", "},"]] * 30, ['"x",'], *[["{", '  "id": 7', "},"]] * 60, ["OUT"]], ("  ", ""), 64)
def test_the_records_are_those_found_line_by_line(
    stretches: list[list[str]], indents: tuple[str, str], chunk: int
) -> None:
    indent, outer = indents
    lines = [
        "{",
        f'{indent[len(outer) :]}"role": "system"',
        "},",
        *(line for stretch in stretches for line in stretch),
    ]
    data = _array([line.replace("  ", indent[len(outer) :]) for line in lines], indent, outer)
    assert _scanned(data, chunk) == _scanned(data, 1 << 20)


@pytest.mark.parametrize("indent", [None, 2])
def test_a_long_text_is_not_held_while_its_end_is_looked_for(indent: int | None) -> None:
    records = [{"role": "user", "text": "a"}, {"role": "user", "text": '\\" and } on ' * 2_000_000}]
    data = json.dumps(records, indent=indent).encode()
    scanner = Scanner(BytesBlob(data))
    tracemalloc.start()
    try:
        if indent is None:
            scanner.skip()
        else:
            assert len(list(scanner.elements(_KEYS))) == len(records)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert scanner.position == len(data)
    assert peak < 8 * limits.CHUNK < len(data) / 2


@pytest.mark.parametrize("chunk", range(16, 26))
def test_no_quote_of_a_text_ends_it_wherever_the_text_is_cut(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = json.dumps(["a", '\\\\" \\' * 99, "b"]).encode()
    monkeypatch.setattr(limits, "CHUNK", chunk)
    scanner = Scanner(BytesBlob(data))
    scanner.skip()
    assert scanner.position == len(data)
