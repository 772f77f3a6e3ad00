"""The rows of lists and of home have, in every field, what whole journals say, whatever happened to attempts."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from builders import REPAIR, SUSPICIOUS, build_services, build_task
from fakes import FakeClock
from hypothesis import given
from hypothesis import strategies as st

from gistpoint.core.attempts.events import GiveUpCode, PauseReason
from gistpoint.core.attempts.identity import MODEL, Enrolment, Role
from gistpoint.core.readable import duration, when
from gistpoint.core.tasks.model import Mode
from gistpoint.sessions.annotations.reviewer import Reviewer, ReviewStore
from gistpoint.sessions.annotations.settling import accept_attempt, reject_attempt
from gistpoint.sessions.attempt_summary import AttemptSummary, listed_attempt
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.blinding import Blinding
from gistpoint.sessions.heads import ELSEWHERE
from gistpoint.sessions.journal import JOURNAL
from gistpoint.sessions.services import Services
from gistpoint.tui.attempt_charts import score_cell
from gistpoint.tui.home_reader import HomeReader
from gistpoint.tui.home_rows import ATTEMPT_COLUMNS
from gistpoint.tui.view_models import end_words, used_words

ACTS = ("list", "wrong", "right", "suspicious", "pause", "give up", "close", "wait")
WHO = {
    "me": Enrolment(),
    "p07": Enrolment(participant="p07"),
    "studied": Enrolment(participant="p08", study="s1"),
    "model": Enrolment(MODEL, Role.QA, solver={"kind": "chat", "model": "m-1", "host": "here"}),
}


@dataclass(frozen=True)
class Made:
    """An attempt of a scenario."""

    who: str
    acts: tuple[str, ...]
    ruling: bool | None
    damaged: bool
    elsewhere: bool
    branch: bool


MADE = st.builds(
    Made,
    st.sampled_from([*WHO]),
    st.lists(st.sampled_from(ACTS), max_size=5).map(tuple),
    st.sampled_from([None, None, True, False]),
    st.sampled_from([False, False, False, True]),
    st.booleans(),
    st.sampled_from([False, False, False, True]),
)


def act(attempt: Any, clock: FakeClock, what: str) -> None:
    clock.advance(61_000)
    match what:
        case "list":
            attempt.call("list_directory", {})
        case "wrong":
            attempt.call("submit_attempt", {"func_code": REPAIR.replace("100", "99")})
        case "right":
            attempt.call("submit_attempt", {"func_code": REPAIR})
        case "suspicious":
            attempt.call("submit_attempt", {"func_code": SUSPICIOUS})
        case "pause":
            attempt.pause(PauseReason.BREAK)
        case "give up":
            attempt.give_up(GiveUpCode.TOO_HARD, "")


def make(services: Services, made: Made) -> None:
    clock = services.clock
    assert isinstance(clock, FakeClock)
    clock.advance(1_000)
    task = next(iter(services.tasks.tasks()))
    opened = services.attempts.start(task, services.judge_for(task), WHO[made.who])  # type: ignore[arg-type]
    for what in made.acts:
        if what == "close" or opened.attempt.state.ended or opened.attempt.state.pause is not None:
            break
        act(opened.attempt, clock, what)
    name, folder = opened.attempt.state.attempt_id, opened.journal.path.parent
    opened.close()
    if made.ruling is not None and opened.attempt.state.solved:
        reviewer = Reviewer(ReviewStore(services.locations.reviews, clock), "r1")
        (accept_attempt if made.ruling else reject_attempt)(reviewer, name, "read")
    if made.elsewhere:
        (services.attempts.root / ELSEWHERE).mkdir(exist_ok=True)
        (services.attempts.root / ELSEWHERE / name).touch()
    if made.damaged:
        whole = (folder / JOURNAL).read_bytes()
        (folder / JOURNAL).write_bytes(whole[: len(whole) * 2 // 3])
    if made.branch:
        folder.rename(folder.with_name(f"{name}~there"))


def store(services: Services, *, index: bool) -> AttemptStore:
    """Return the store as a new process would create it."""
    places = services.locations
    blinding = Blinding(lambda study, place: study == "s1")
    file = places.lists / "attempts.sqlite" if index else None
    return AttemptStore(
        places.attempts, services.clock, "test", places.reviews, index=file, blinding=blinding
    )


def result_cell(summary: AttemptSummary) -> str:
    state = summary.state
    if summary.problem:
        words = "damaged"
    elif state.ending is not None:
        words = (
            "hidden until closed" if summary.withheld else end_words(state.ending.reason, summary.result)[2:]
        )
    else:
        words = "open elsewhere" if summary.open else "unfinished" if state.pause is None else "paused"
    words = "used up" if words.endswith("used up") else words
    return f"{words}, branch" if summary.branch else words


def cells(summary: AttemptSummary, now_ms: int) -> Mapping[str, str]:
    """Return the cells of home that follow from a whole attempt."""
    state = summary.state
    other = summary.participant or state.header.model or summary.actor
    return {
        "Started": when(summary.started_utc_ms, now_ms),
        "Who": "you" if summary.is_of("") else other,
        "Best": score_cell(state.best),
        "Time": duration(state.clock.active),
        "Result": result_cell(summary),
        "Role": summary.role,
        "Last": score_cell(state.last),
        "Used": used_words(state),
        "Mode": "remove" if summary.task_id else "",
        "Actor": summary.actor,
    }


def values(summary: AttemptSummary) -> Mapping[str, float]:
    """Return the numbers by which home's queries compare a whole attempt."""
    state = summary.state
    return {
        "Best": -1 if state.best is None else state.best.score or 0,
        "Last": -1 if state.last is None else state.last.score or 0,
        "Time": state.clock.active / 1000,
        "Used": state.budgets.tool_uses - state.remaining.tool_uses,
    }


@given(st.lists(MADE, min_size=1, max_size=4))
def test_every_field_of_a_row_is_that_of_the_whole_attempt(scenario: list[Made]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        services = build_services(Path(folder), clock=FakeClock())
        build_task(services.locations.tasks, Mode.REMOVE)
        for made in scenario:
            make(services, made)
        whole = list(store(services, index=False).summaries())
        for _ in range(2):  # from the journals, then from the index
            rows = list(store(services, index=True).listed())
            assert rows == list(map(listed_attempt, whole))
        details = store(services, index=True).details_of(row.attempt_id for row in rows)
        assert list(map(listed_attempt, details.values())) == rows
        home = HomeReader(replace(services, attempts=store(services, index=True))).read()
        for entry, summary in zip(home.attempts, whole, strict=True):
            shown = {column.name: column.shown(entry) for column in ATTEMPT_COLUMNS}
            assert shown.items() >= cells(summary, services.clock.utc_ms()).items()
            numbers = {column.name: column.number(entry) for column in ATTEMPT_COLUMNS if column.value}
            assert numbers == values(summary)
            assert entry.mine is summary.is_of("")
            assert (entry.unfinished is not None) is (
                not summary.state.ended and not summary.problem and summary.actor == "person"
            )
