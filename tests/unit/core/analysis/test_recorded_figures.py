"""Figures of Breakpoint from attempts that the real engine recorded, compared with counts made by hand."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from pathlib import Path

import msgspec
import pytest
from builders import REPAIR
from study_attempts import DISCOUNT, StudyAttempt, begin
from study_rows import attempt_row, study_data

from gistpoint.core.analysis.catalogue import analysis
from gistpoint.core.analysis.findings import Findings, Number
from gistpoint.core.attempts.events import EndReason
from gistpoint.core.demo.tasks import playthrough
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.measuring import call_kind
from gistpoint.core.study.rows import AttemptRow, CallRow
from gistpoint.core.tasks.model import Mode

WRONG = REPAIR.replace("100", "99")


def run(identity: str, data: StudyData) -> Findings:
    known = analysis(identity)
    assert known is not None
    return known.run(data)


def hand_in(begun: StudyAttempt, text: str, function: str = "discount", path: str = "shop/prices.py") -> None:
    begun.attempt.call("replace_function", {"func_code": text, "func_name": function, "file_path": path})


def quick(begun: StudyAttempt) -> None:
    """View the right function after one minute and solve with the first submission a minute later."""
    begun.clock.advance(60_000)
    begun.attempt.call("read_function", {"function_name": "discount", "file_path": "shop/prices.py"})
    begun.clock.advance(60_000)
    hand_in(begun, REPAIR)


def slow(begun: StudyAttempt) -> None:
    """View the right function after four minutes and solve with the second submission."""
    begun.clock.advance(30_000)
    begun.attempt.call("list_directory", {"path": ""})
    begun.clock.advance(90_000)
    begun.attempt.call("search_code", {"pattern": "capacity"})
    begun.clock.advance(120_000)
    begun.attempt.call("read_function", {"function_name": "discount", "file_path": "shop/prices.py"})
    begun.clock.advance(60_000)
    hand_in(begun, WRONG)
    begun.clock.advance(60_000)
    hand_in(begun, REPAIR)


def lost(begun: StudyAttempt) -> None:
    """Change a function that was correct, and give up."""
    begun.clock.advance(60_000)
    begun.attempt.call("read_function", {"function_name": "capacity", "file_path": "shop/stock/shelf.py"})
    hand_in(
        begun, "def capacity(width, depth=2):\n    return width + depth", "capacity", "shop/stock/shelf.py"
    )
    begun.attempt.end(EndReason.GAVE_UP)


def recorded(folder: Path) -> StudyData:
    """Return the study data of three people's attempts at the discovery task."""
    rows: list[AttemptRow] = []
    acts: tuple[tuple[str, Callable[[StudyAttempt], None]], ...] = (("P1", quick), ("P2", slow), ("P3", lost))
    for person, act in acts:
        begun = begin(folder / person, Mode.DISCOVERY)
        act(begun)
        rows.append(msgspec.structs.replace(begun.row(), participant=person, attempt=person))
    return study_data(rows)


def values(findings: Findings) -> dict[str, float | None]:
    return {key.rpartition("/")[2]: number.value for key, number in findings.numbers.items()}


def counts(findings: Findings) -> dict[str, str]:
    """Return the counts that are printed where there are too few attempts for a rate."""
    found = {key.rpartition("/")[2]: number for key, number in findings.numbers.items()}
    assert all(number.value is None for number in found.values())
    return {key: number.note.partition(":")[0] for key, number in found.items()}


def test_found_changed_and_solved_are_what_the_journals_say(tmp_path: Path) -> None:
    found = run("bp-6", recorded(tmp_path))
    assert counts(found) == {
        "found": "2 of 3", "changed": "2 of 3", "solved": "2 of 3", "solved of found": "2 of 2",
    }  # fmt: skip
    moments = {row[1]: row for row in found.tables[1].rows}
    view = moments["first view"]
    assert view[2:4] == (2, 3)
    minutes, calls = view[4], view[5]
    assert isinstance(minutes, Number)
    assert isinstance(calls, Number)
    assert minutes.value == pytest.approx(sqrt(1 * 4))
    assert calls.value == pytest.approx(sqrt((1 + 1) * (1 + 3)) - 1)
    assert DISCOUNT.endswith("discount")


def test_solved_by_the_nth_submission_is_what_the_journals_say(tmp_path: Path) -> None:
    assert counts(run("bp-8", recorded(tmp_path))) == {"1": "1 of 3", "2": "2 of 3"}


def test_calls_for_information_are_what_the_journals_say(tmp_path: Path) -> None:
    data = recorded(tmp_path)
    assert values(run("bp-10", data)) == pytest.approx(
        {"information": (1 + 3 + 1) / 3, "submissions": (1 + 2 + 1) / 3}
    )
    by_tool = values(run("bp-11", data))
    assert by_tool == pytest.approx(
        {"list_directory": 1 / 3, "read_function": 1.0, "replace_function": 4 / 3, "search_code": 1 / 3}
    )


def test_the_demos_playthrough_has_eleven_uses_and_two_submissions() -> None:
    """Nine of the calls are for information; the other two are the submissions."""
    _, steps = playthrough()
    tools = [step["tool"] for step in steps if step["kind"] == "tool_call"]
    assert len(tools) == 11
    calls = tuple(CallRow(number=n, tool=tool, kind=call_kind(tool)) for n, tool in enumerate(tools, start=1))
    row = attempt_row(
        "A", "dear-tickets", mode="discovery", calls=calls, submissions=tools.count("replace_function")
    )
    assert values(run("bp-10", study_data([row]))) == {"information": 9, "submissions": 2}
