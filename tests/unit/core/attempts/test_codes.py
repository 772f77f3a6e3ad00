"""Participants' codes: the same rules for attempts and studies, and old codes can still be read."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import build_task
from fakes import FakeClock
from study_folders import judge_of

from gistpoint.core.attempts.events import AttemptStarted
from gistpoint.core.attempts.identity import Enrolment, is_code
from gistpoint.core.errors import AttemptError
from gistpoint.core.requests import IsolationChoice
from gistpoint.core.study.operations import StudyError, StudyOperation
from gistpoint.object_graph import build_services
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.journal import JOURNAL, read_journal
from gistpoint.sessions.studies.writers import checked_code

CODES = ["7", "P01", "p.1_b-c", "x" * 64]
NO_CODES = [
    "=1+1",
    "+1",
    "-1",
    "@a",
    ".p",
    "_p",
    "x" * 65,
    "An na",
    "a\n",
    "é",
    "a/b",
    "\u0661",
    '=cmd|"/c calc"!A0',
]


@pytest.mark.parametrize("code", CODES)
def test_a_code_is_one_everywhere(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path))
    assert is_code(code)
    assert checked_code(code) == code
    assert build_services(IsolationChoice(), participant=code).enrolment.participant == code
    assert StudyOperation("op", f"{code}@abcdef", 1, "person:x", "enrolled").reviewer == f"{code}@abcdef"


@pytest.mark.parametrize("code", NO_CODES)
def test_what_is_no_code_begins_nothing(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path))
    task, store = build_task(tmp_path / "tasks"), AttemptStore(tmp_path / "attempts", FakeClock(), "test")
    with pytest.raises(AttemptError, match="is not a valid code for a participant"):
        store.start(task, judge_of(task), Enrolment(participant=code))
    assert not list(store.summaries())
    with pytest.raises(AttemptError, match="is not a valid code for a participant"):
        build_services(IsolationChoice(), participant=code)
    with pytest.raises(StudyError, match="is not a valid code for a participant"):
        checked_code(code)


def test_an_attempt_with_another_code_from_before_is_listed_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, store = build_task(tmp_path / "tasks"), AttemptStore(tmp_path / "attempts", FakeClock(), "test")
    judge = judge_of(task)
    monkeypatch.setattr("gistpoint.core.attempts.engine.participant_code", lambda code: code)
    store.start(task, judge, Enrolment(participant="=1+1")).close()
    monkeypatch.undo()
    (summary,) = store.summaries()
    assert (summary.participant, summary.problem) == ("=1+1", "")
    store.resume(summary.attempt_id, task, judge).close()
    first = read_journal(store.root / summary.attempt_id / JOURNAL).events[0]
    assert isinstance(first.data, AttemptStarted)
