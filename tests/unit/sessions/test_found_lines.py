"""Found lines: each once, with its matches and the error of the surrounding traceback."""

from __future__ import annotations

import json
from pathlib import Path

from gistpoint.sessions.records.model import TextScope
from gistpoint.sessions.runs.found_lines import FoundLines, counted_words
from gistpoint.sessions.runs.opening import open_run
from gistpoint.sessions.runs.searching import Hit, Query, search_document

TRACEBACK = """start
Traceback (most recent call last):
  File "timeouts.py", line 12, in wait
    read_timeout = timeout if timeout is not None else read_timeout
  File "timeouts.py", line 3, in check

    raise ValueError(read_timeout)
ValueError: read_timeout is negative
read_timeout of the next run"""


def found_in(text: str, pattern: str, folder: Path) -> FoundLines:
    run = folder / "run.json"
    run.write_text(json.dumps([{"role": "user", "content": text}]))
    found = FoundLines()
    found.add(search_document(open_run(str(run)), Query(pattern)))
    return found


def test_a_line_is_found_once_with_all_its_matches_marked(tmp_path: Path) -> None:
    found = found_in(TRACEBACK, "read_timeout", tmp_path)
    lines = [line.first.line.strip() for line in found.lines]
    assert lines == [line.strip() for line in TRACEBACK.splitlines() if "read_timeout" in line]
    assert [len(line.spans) for line in found.lines] == [2, 1, 1, 1]
    for line in found.lines:
        assert {line.first.line[start:end] for start, end in line.spans} == {"read_timeout"}
    assert [line.at for line in found.lines] == [0, 2, 3, 4]
    assert counted_words(len(found.lines), found.places) == "4 lines (5 places)"
    assert counted_words(2, 2) == "2 lines"


def test_a_line_in_a_traceback_has_its_last_line(tmp_path: Path) -> None:
    errors = [line.first.error for line in found_in(TRACEBACK, "read_timeout", tmp_path).lines]
    assert errors == ["ValueError: read_timeout is negative"] * 2 + ["", ""]
    assert found_in("File x\nValueError: y", "file", tmp_path).lines[0].first.error == ""


def test_a_match_far_along_a_long_line_is_quoted_where_it_is(tmp_path: Path) -> None:
    found = found_in(f"{'x' * 3_000} needle and needle {'y' * 3_000}", "needle", tmp_path)
    (line,) = found.lines
    assert [line.first.line[start:end] for start, end in line.spans] == ["needle", "needle"]


def test_what_is_also_recorded_does_not_repeat_a_line_of_its_step() -> None:
    def hit(step: int, scope: TextScope, line: str) -> Hit:
        return Hit("run", step, scope, 0, 0, 1, line)

    found = FoundLines()
    found.add(
        [
            hit(0, TextScope.RESULT, "  a = 1"),
            hit(0, TextScope.ALSO, "output: a = 1"),
            hit(0, TextScope.ALSO, "exit code: 1"),
            hit(1, TextScope.ALSO, "a = 1"),
        ]
    )
    assert [(line.first.step, line.part) for line in found.lines] == [
        (0, "result"),
        (0, "also recorded"),
        (1, "also recorded"),
    ]
    assert found.places == 4
    assert [line.at for line in found.lines] == [0, 2, 3]


def test_a_long_line_is_quoted_with_whole_words_and_an_ellipsis_where_it_is_cut(tmp_path: Path) -> None:
    words = " ".join(f"word{number}" for number in range(60))
    for text, begins, ends in (
        (f"{words} limit {words}", False, False),
        (f"limit {words}", True, False),
        (f"{words} limit", False, True),
        (f"first\n{words[:79]} limit\nlast", True, True),
        ("limit", True, True),
    ):
        (line,) = found_in(text, "limit", tmp_path).lines
        assert (not line.quoted.startswith("…"), not line.quoted.endswith("…")) == (begins, ends)
        assert set(line.quoted.strip("…").split()) <= set(text.split())
        ((start, end),) = line.marks
        assert line.quoted[start:end] == "limit"
