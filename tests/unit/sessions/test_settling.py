"""Only reviews settle a suspicious pass, and every export of it includes its status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from builders import CHECKS, SUSPICIOUS, build_task
from fakes import FakeClock, FakeRunner

from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.attempts.state import AttemptResult
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.sessions.annotations.keys import attempt_key, run_key
from gistpoint.sessions.annotations.reviewer import Reviewer, ReviewStore
from gistpoint.sessions.annotations.reviews import ExcludeReason, RunVerdict
from gistpoint.sessions.annotations.settling import accept_attempt, reject_attempt, ruling_on, settle
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.exports.registry import NAMES, exporter
from gistpoint.sessions.journal import JOURNAL
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.opening import open_run

MARK = "gc.collect"


@pytest.fixture
def store(tmp_path: Path) -> AttemptStore:
    clock = FakeClock()
    store = AttemptStore(tmp_path / "attempts", clock, "test", tmp_path / "reviews")
    task = build_task(tmp_path / "tasks")
    recorded = store.start(task, RepairJudge(task, read_answer(task), FakeRunner(CHECKS)), Enrolment())
    recorded.attempt.call("submit_attempt", {"func_code": SUSPICIOUS})
    recorded.close()
    return store


def reviewer(tmp_path: Path, name: str = "r1") -> Reviewer:
    return Reviewer(ReviewStore(tmp_path / "reviews", FakeClock()), name)


def opened(store: AttemptStore) -> RunDocument:
    (summary,) = store.summaries()
    document = open_run(store.folder(summary.attempt_id))
    document.build()
    return document


def test_it_does_not_count_until_it_was_accepted(store: AttemptStore, tmp_path: Path) -> None:
    (summary,) = store.summaries()
    journal = (store.folder(summary.attempt_id) / JOURNAL).read_bytes()
    assert (summary.result, summary.state.suspicious) == (AttemptResult.TO_BE_READ, (MARK,))
    assert summary.state.ending is not None
    assert summary.state.ending.reason == "solved"
    accept_attempt(reviewer(tmp_path), summary.attempt_id)
    assert store.summary(summary.attempt_id).result is AttemptResult.SOLVED
    reject_attempt(reviewer(tmp_path), summary.attempt_id, "It collects what it should not.")
    assert store.summary(summary.attempt_id).result is AttemptResult.NOT_SOLVED
    assert (store.folder(summary.attempt_id) / JOURNAL).read_bytes() == journal


def test_reviewers_who_do_not_agree_settle_nothing(store: AttemptStore, tmp_path: Path) -> None:
    (summary,) = store.summaries()
    accept_attempt(reviewer(tmp_path), summary.attempt_id)
    reject_attempt(reviewer(tmp_path, "r2"), summary.attempt_id, "No.")
    assert store.summary(summary.attempt_id).result is AttemptResult.TO_BE_READ
    accept_attempt(reviewer(tmp_path, "r2"), summary.attempt_id)
    assert store.summary(summary.attempt_id).result is AttemptResult.SOLVED


def test_the_key_is_that_of_the_review_screen_and_other_verdicts_say_nothing(
    store: AttemptStore, tmp_path: Path
) -> None:
    (summary,) = store.summaries()
    key = run_key(opened(store))
    assert key == attempt_key(summary.attempt_id)
    at_work = reviewer(tmp_path)
    at_work.verdict(key, RunVerdict.NEEDS_SECOND_REVIEWER)
    assert ruling_on(at_work.store.book, key) is None
    at_work.verdict(key, RunVerdict.EXCLUDE, reasons=[ExcludeReason.ENVIRONMENT])
    assert ruling_on(at_work.store.book, key) is None
    at_work.verdict(key, RunVerdict.ACCEPT_CORRECTED_TIME, corrected_time_s=3)
    assert ruling_on(at_work.store.book, key) is True


@pytest.mark.parametrize("name", NAMES)
def test_every_export_tells_it(store: AttemptStore, tmp_path: Path, name: str) -> None:
    document = opened(store)
    assert "solved, to be read" in "".join(exporter(name)(document))
    if name != "cast":
        assert MARK in "".join(exporter(name)(document))
    book = reviewer(tmp_path).store.book
    assert settle(document, book).header.verdict == AttemptResult.TO_BE_READ
    accept_attempt(reviewer(tmp_path), document.header.id)
    text = "".join(exporter(name)(settle(document, reviewer(tmp_path).store.book)))
    assert "to be read" not in text
    assert "solved" in text
    reject_attempt(reviewer(tmp_path), document.header.id, "No.")
    assert settle(document, reviewer(tmp_path).store.book).header.verdict == "unsolved"


def test_an_export_that_is_read_again_still_tells_it(store: AttemptStore, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("".join(exporter("atif")(opened(store))))
    again = open_run(tmp_path / "run.json").header
    assert (again.verdict, again.suspicious) == (AttemptResult.TO_BE_READ, (MARK,))


def test_results_of_breakpoint_tell_it(tmp_path: Path) -> None:
    line = {
        "problem": "p", "score": 1.0, "config": {},
        "metadata": {"test_info": {"success": True}, "suspicious": [MARK], "tool_usage": []},
    }  # fmt: skip
    (tmp_path / "results.jsonl").write_text(json.dumps(line) + "\n")
    run = open_run(tmp_path / "results.jsonl").header
    assert (run.verdict, run.suspicious) == (AttemptResult.TO_BE_READ, (MARK,))
