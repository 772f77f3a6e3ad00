"""Signs that end a line for `str.splitlines`, but neither for Python, nor in a file, count for nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from recorded_runs.raw_texts import (
    LAYOUTS,
    conversations_apart,
    rows,
    runs_in,
    sessions_apart,
    side_agents_apart,
)
from recorded_runs.traces import spans_of
from recorded_runs.trials import transcripts_of

from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.errors import UserError
from gistpoint.core.generation.choice import read_functions
from gistpoint.core.kinds.gist.answer import ReferenceGist
from gistpoint.core.kinds.gist.making import is_better
from gistpoint.core.kinds.gist.tools import size_words

SIGNS = ["\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]


@pytest.mark.parametrize("sign", SIGNS, ids=ascii)
def test_a_text_has_the_lines_that_python_and_files_have(sign: str) -> None:
    text = f"a = '{sign}'\nb = 1\n"
    assert len(text.splitlines()) == 3
    assert physical_lines(text) == [f"a = '{sign}'", "b = 1"]
    assert size_words(text).startswith("The gist has 2 lines")
    assert is_better(ReferenceGist(text, True), ReferenceGist("a\nb\nc\n", True))
    with pytest.raises(UserError, match="line 2"):
        read_functions(f"a.py::f  # {sign}\nnothing\n", "list")


@pytest.mark.parametrize("sign", SIGNS[5:], ids=ascii)
def test_a_string_in_json_lines_may_hold_any_sign(sign: str, tmp_path: Path) -> None:
    """Control characters must be escaped in JSON; these need not be."""
    path = tmp_path / "run.jsonl"

    def write(*values: object) -> Path:
        lines = [json.dumps(value, ensure_ascii=False) + "\n" for value in values]
        path.write_text("".join(lines), encoding="utf-8")
        return path

    said = {"content": f"a{sign}b"}
    assert side_agents_apart(write(said, said)) == [[said, said]]
    exchange = {"request": {"body": {"system": sign}}}
    assert conversations_apart(write(exchange, exchange)) == [[exchange, exchange]]
    assert sessions_apart(write({"sessionKey": sign}, said)) == [[{"sessionKey": sign}, said]]
    assert rows(write(said, said)) == [said, said]
    format = next(name for name, layout in LAYOUTS.items() if layout.runs is None and name != "breakpoint")
    assert runs_in(write(said, said), [format]) == [[said, said]]
    assert transcripts_of(write(*[{"transcripts": [{"messages": [sign]}]}] * 2)) == [[sign], [sign]]
    span = {"traceId": "t", "spanId": sign, "startTimeUnixNano": 1, "attributes": []}
    assert spans_of(write(*[{"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}] * 3)) != []
