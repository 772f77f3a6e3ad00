"""A program's report on itself is read only in the expected form; any other makes the run invalid."""

from __future__ import annotations

import json

import pytest

from gistpoint.core.outcomes import RunStatus
from gistpoint.sandbox.backends.base import Ended, Stop
from gistpoint.sandbox.gistruns.transcripts import ObservedRun, ProgramTranscript, TestsTranscript

LISTS = ("modules", "functions", "made", "made_elsewhere", "processes", "stand_ins", "equals", "lines")
FORGED = ("5", "true", "null", '{"a": 1}', "[" * 5_000, "nothing", '"text"', "9" * 5_000)


def concluded(*notes: dict[str, object], exit: object = 0) -> ObservedRun:
    transcript = ProgramTranscript()
    records = [
        {"e": "note", "kind": "begin"},
        *({"e": "note", **note} for note in notes),
        {"e": "note", "kind": "end"},
        {"e": "finish", "exit": exit},
    ]
    for number, record in enumerate(records, 1):
        transcript.feed(json.dumps({"n": number, **record}).encode())
    return transcript.conclude(Ended(Stop.EXITED, 0, "", 0.1))


def test_an_honest_report_counts() -> None:
    honest = concluded(
        {"kind": "modules", "part": '["a"'},
        {"kind": "modules", "part": ', "b"]'},
        {"kind": "lines", "part": "[1, 2]"},
        {"kind": "stand_ins", "part": '[["f", "mock"]]'},
    )
    assert honest.run.status is RunStatus.FINISHED
    assert honest.run.isolation.own_modules == ("a", "b")
    assert honest.run.isolation.stand_ins == (("f", "mock"),)
    assert honest.lines == {1, 2}


@pytest.mark.parametrize("part", FORGED, ids=range(len(FORGED)))
@pytest.mark.parametrize("kind", LISTS)
def test_a_report_of_another_form_makes_the_run_invalid(kind: str, part: str) -> None:
    found = concluded({"kind": kind, "part": part})
    assert found.run.status is RunStatus.INVALID
    assert kind in found.reason


@pytest.mark.parametrize("part", ["[1]", "[[1]]", '[["a", "b", "c"]]'])
def test_a_stand_in_is_a_pair(part: str) -> None:
    assert concluded({"kind": "stand_ins", "part": part}).run.status is RunStatus.INVALID


@pytest.mark.parametrize("exit", [float("inf"), float("nan"), "x", None, [], {}])
def test_an_exit_status_that_is_no_number_makes_the_run_invalid(exit: object) -> None:
    assert concluded(exit=exit).run.status is RunStatus.INVALID


@pytest.mark.parametrize("id", [[], {}, 5, None])
def test_an_id_that_is_no_text_belongs_to_no_test(id: object) -> None:
    transcript = TestsTranscript()
    transcript.suite.notes.append({"kind": "outcome", "id": id})
    assert transcript.conclude(Ended(Stop.EXITED, 0, "", 0.1)).defined == {}
