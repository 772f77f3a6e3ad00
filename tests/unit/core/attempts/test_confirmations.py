"""The confirmation of a pass in the journal, in the fold, and in the result of an attempt."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from confirmers import CONFIRMED, CONTRADICTED, MARKED, UNCONFIRMED

from gistpoint.core.attempts.events import JournalEvent, OtherEvent, PassConfirmed, event_data
from gistpoint.core.attempts.results import Standing, by_tests_words, doubts, result_of
from gistpoint.core.attempts.state import AttemptResult, AttemptState, Submission, attempt_result, fold
from gistpoint.core.confirmation.model import Confirmation, Confirmed, Unconfirmable
from gistpoint.core.kinds.confirming import confirmation_lines, confirmation_words, standing, to_be_confirmed
from gistpoint.sessions.journal import decoded, encode, journal_in

MADE = Path(__file__).parents[3] / "data" / "journals"
ALL = (None, CONFIRMED, CONTRADICTED, UNCONFIRMED, MARKED)
DAY_MS = 86_400_000


def events_of(name: str) -> tuple[JournalEvent, ...]:
    return journal_in((MADE / f"{name}.jsonl").read_bytes()).events


def after(events: tuple[JournalEvent, ...], confirmation: Confirmation, late_ms: int = 0) -> JournalEvent:
    last = events[-1]
    call = next(event.data.written()["call_id"] for event in reversed(events) if event.type == "score")
    data = PassConfirmed.of(call, confirmation)
    return JournalEvent(last.seq + 1, data.type, last.utc_ms + late_ms, last.mono_ms + late_ms, data)


@pytest.mark.parametrize("confirmation", [one for one in ALL if one is not None])
def test_the_event_says_what_the_confirmation_says(confirmation: Confirmation) -> None:
    event = after(events_of("repair"), confirmation)
    read = decoded(encode(event).rstrip(b"\n"))
    assert read == event
    assert isinstance(read.data, PassConfirmed)
    assert read.data.confirmation == confirmation
    assert read.type == "confirmation"
    assert {"call_id", "result", "calls", "tests"} <= read.data.written().keys()
    assert set(PassConfirmed.__struct_fields__) == {"call_id", *Confirmation.__struct_fields__}


def test_words_of_a_newer_version_are_unconfirmed_and_told() -> None:
    data = event_data("confirmation", {"call_id": "call-1", "result": "confirmed_twice", "calls": 3})
    assert isinstance(data, PassConfirmed)
    assert data.confirmation.result is Confirmed.UNCONFIRMED
    assert "confirmed_twice" in data.confirmation.detail
    assert data.confirmation.calls == 3
    assert data.written()["result"] == "confirmed_twice"


def test_an_older_reader_keeps_the_event_as_one_it_does_not_know() -> None:
    line = encode(after(events_of("repair"), CONTRADICTED))
    unknown = decoded(line.replace(b'"type":"confirmation"', b'"type":"confirmation_of_later"').rstrip(b"\n"))
    assert unknown is not None
    assert isinstance(unknown.data, OtherEvent)
    assert unknown.data.written()["contradiction"]["call"] == "price(11, 10)"
    state = fold([*events_of("repair"), unknown])
    assert state.unknown == 1
    assert attempt_result(state) is AttemptResult.SOLVED


def test_a_confirmation_changes_nothing_else_and_takes_no_time() -> None:
    events = events_of("repair")
    before = fold(events)
    confirmed = fold([*events, after(events, CONFIRMED, late_ms=DAY_MS)])
    assert confirmed.clock == before.clock
    assert confirmed.events == before.events + 1
    assert confirmed.confirmation == CONFIRMED
    without = msgspec.structs.replace(confirmed, submissions=before.submissions, events=before.events)
    assert without == before


def test_the_last_of_several_confirmations_holds() -> None:
    events = events_of("repair")
    failed = Confirmation(Confirmed.UNCONFIRMED, Unconfirmable.SANDBOX)
    twice = (*events, after(events, failed))
    assert to_be_confirmed(fold(twice)) is not None
    twice = (*twice, after(twice, CONFIRMED))
    assert fold(twice).confirmation == CONFIRMED
    assert to_be_confirmed(fold(twice)) is None


@pytest.mark.parametrize("marks", [(), ("pytest",)])
@pytest.mark.parametrize("confirmation", ALL)
@pytest.mark.parametrize("accepted", [None, True, False])
def test_what_counts(
    marks: tuple[str, ...], confirmation: Confirmation | None, accepted: bool | None
) -> None:
    result = result_of(True, doubts(marks, confirmation), accepted)
    if accepted is not None:
        expected = AttemptResult.SOLVED if accepted else AttemptResult.NOT_SOLVED
    elif confirmation is None or confirmation.result is Confirmed.UNCONFIRMED:
        seen = confirmation.marks if confirmation is not None else ()
        expected = AttemptResult.TO_BE_READ if marks or seen else AttemptResult.SOLVED
    else:
        contradicted = confirmation.result is Confirmed.CONTRADICTED
        expected = AttemptResult.TO_BE_READ if contradicted else AttemptResult.SOLVED
    assert result is expected


def test_a_confirmed_pass_with_tests_that_were_not_run_counts_by_its_marks() -> None:
    some = msgspec.structs.replace(CONFIRMED, uncovered=1)
    assert doubts(("pytest",), CONFIRMED) == ()
    assert doubts(("pytest",), some) == ("pytest",)
    assert doubts((), some) == ()
    assert "at least 1 test could not be run this way" in confirmation_lines(some)


def test_marks_of_a_confirmed_pass_stay_as_notes() -> None:
    state = AttemptState(submissions=(passed(("pytest",), CONFIRMED),))
    assert (state.suspicious, state.marks) == ((), ("pytest",))
    assert attempt_result(state) is AttemptResult.SOLVED


def test_the_pass_that_counts_is_the_one_whose_confirmation_is_told() -> None:
    state = AttemptState(submissions=(passed((), CONTRADICTED), passed((), CONFIRMED)))
    assert state.confirmation == CONFIRMED
    assert attempt_result(state) is AttemptResult.SOLVED


@pytest.mark.parametrize(
    ("name", "expected"), [("repair", Standing.NOT_ASKED), ("discovery", None), ("gist", None)]
)
def test_how_attempts_from_before_stand(name: str, expected: Standing | None) -> None:
    state = fold(events_of(name))
    assert standing(state) is expected
    assert confirmation_words(state) == (expected.value if expected else "")


def test_figures_by_the_tests_alone_keep_the_standings_apart() -> None:
    found = [Standing.CONFIRMED, Standing.NOT_ASKED, None, Standing.CONFIRMED, Standing.CONTRADICTED]
    assert by_tests_words(found) == "4 of 5 by the tests alone: 2 confirmed, 1 contradicted, 1 not asked"
    assert by_tests_words([None, None]) == ""
    assert by_tests_words([Standing.EXEMPT, None]) == ""


def passed(marks: tuple[str, ...], confirmation: Confirmation | None) -> Submission:
    return Submission(
        1, "call-1", solved=True, status="finished", suspicious=marks, confirmation=confirmation
    )
