"""The result of an attempt has one source: its journal and the reviews of its pass."""

from __future__ import annotations

import pytest

from gistpoint.core.attempts.events import JournalEvent, event_data
from gistpoint.core.attempts.state import (
    AttemptResult,
    attempt_result,
    fold,
    result_of,
    solved_words,
    suspicions,
)

SOLVED, READ, NOT = AttemptResult.SOLVED, AttemptResult.TO_BE_READ, AttemptResult.NOT_SOLVED


@pytest.mark.parametrize(
    ("solved", "suspicious", "accepted", "result"),
    [
        (True, (), None, SOLVED), (True, (), True, SOLVED), (True, (), False, NOT),
        (True, ("gc",), None, READ), (True, ("gc",), True, SOLVED), (True, ("gc",), False, NOT),
        (False, (), None, NOT), (False, ("gc",), True, NOT),
    ],
)  # fmt: skip
def test_a_suspicious_pass_counts_after_it_was_accepted(solved, suspicious, accepted, result):
    assert result_of(solved, suspicious, accepted) is result


def test_one_clean_pass_is_enough():
    assert suspicions([("gc",), ("sys.modules", "gc")]) == ("gc", "sys.modules")
    assert suspicions([("gc",), ()]) == ()
    assert suspicions([]) == ()


def test_both_figures_are_told():
    assert solved_words([SOLVED, READ, NOT, READ]) == "1 of 4 solved, 2 more to be read"
    assert solved_words([SOLVED, NOT]) == "1 of 2 solved"
    assert solved_words([]) == "none has ended"


def journal(*submissions):
    """Return the events of submissions, each given by its test run's suspicions and whether it solved."""
    events = [("attempt_started", {"attempt_id": "a"})]
    for number, (found, solved) in enumerate(submissions):
        call = f"c{number}"
        events.append(("submit", {"call_id": call}))
        events.append(("test_run", {"call_id": call, "status": "finished", **found}))
        events.append(("score", {"call_id": call, "score": float(solved), "solved": solved}))
    return [JournalEvent(n, type, n, n, event_data(type, data)) for n, (type, data) in enumerate(events, 1)]


@pytest.mark.parametrize(
    ("submissions", "result"),
    [
        ([({"suspicious": ["_pytest", "gc"]}, True)], READ),  # as in journals of earlier versions
        ([({}, True)], SOLVED),  # as in the first journals
        ([({"suspicious": []}, True)], SOLVED),
        ([({"suspicious": ["gc"]}, False)], NOT),
        ([({"suspicious": ["gc"]}, False), ({"suspicious": []}, True)], SOLVED),
        ([], NOT),
    ],
)
def test_journals_tell_it(submissions, result):
    assert attempt_result(fold(journal(*submissions))) is result
