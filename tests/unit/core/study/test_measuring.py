"""Rows of attempts that the real engine has recorded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from builders import CHECKS, REPAIR, SUSPICIOUS
from examples import examples
from fakes import FakeClock, FakeRunner
from gist_tasks import FAITHFUL, OWNED
from gist_tasks import WRONG as WRONG_GIST
from hypothesis import given, strategies
from study_attempts import ATTEMPT, DISCOUNT, StudyAttempt, a_study, begin

from gistpoint.core.attempts.clock import ClockActivity
from gistpoint.core.attempts.events import EndReason, GiveUpCode, Pane, PauseReason
from gistpoint.core.attempts.identity import Role
from gistpoint.core.kinds.gist.model import GistSettings
from gistpoint.core.study.data import ReviewDecision, ReviewerDecision
from gistpoint.core.study.declaration import DeclaredSolver, DisputeRule, PrimaryTime, Protocol, Quality
from gistpoint.core.study.evidence import AttemptEvidence
from gistpoint.core.study.measuring import measured
from gistpoint.core.study.operations import StudyOperationKind
from gistpoint.core.study.timeline import FirstTime, milliseconds, timeline_of
from gistpoint.core.tasks.model import Mode

WRONG = REPAIR.replace("100", "99")


def _solve(begun: StudyAttempt) -> None:
    """Read for 10 s, look for 20 s, type for 30 s, fail, and solve the task after 5 s more."""
    attempt, clock = begun.attempt, begun.clock
    clock.advance(10_000)
    attempt.view(Pane.CODE)
    clock.advance(20_000)
    attempt.call("read_file", {"file_path": "shop/prices.py"})
    attempt.suspect(DISCOUNT)
    attempt.view(Pane.EDITOR)
    clock.advance(25_000)
    attempt.edit(DISCOUNT, WRONG)
    clock.advance(5_000)
    attempt.call("submit_attempt", {"func_code": WRONG})
    clock.advance(5_250)
    attempt.call("submit_attempt", {"func_code": REPAIR})


def test_a_solved_attempt(tmp_path: Path) -> None:
    begun = begin(tmp_path)
    _solve(begun)
    row = begun.row(head="abc")
    assert (row.attempt, row.study, row.participant, row.stratum) == (ATTEMPT, "shop-2026", "P07", "senior")
    assert (row.assignment, row.position, row.sitting, row.condition) == ("a1", 2, 1, "alone")
    assert (row.counted, row.exclusion, row.solved, row.end, row.censored) == (True, "", True, "solved", "")
    assert (row.score, row.best_score, row.number("found"), row.number("diagnosed")) == (1.0, 1.0, 1.0, 1.0)
    assert (row.tool_uses, row.submissions, row.tool_use_budget, row.submission_budget) == (3, 2, 16, 4)
    assert (row.reading_s, row.exploring_s, row.editing_s) == (10.0, 20.0, 35.25)
    assert row.active_s == row.active_corrected_s == row.primary_s == row.solved_s == 65.25
    assert (row.instructions_s, row.first_view_s, row.first_mark_s) == (10.0, 30.0, 30.0)
    assert (row.first_touch_s, row.first_submission_s) == (55.0, 60.0)
    assert [(call.kind, call.at_s) for call in row.calls] == [
        ("view", 30.0),
        ("submit", 60.0),
        ("submit", 65.25),
    ]
    assert [(one.number, one.solved, one.changed) for one in row.submitted] == [
        (1, False, (DISCOUNT,)),
        (2, True, (DISCOUNT,)),
    ]
    assert row.journal_head == "abc"
    assert row.started_utc == "2026-09-21T14:13:20.000Z"
    assert row.flags == ()


def test_corrections_move_the_primary_time_and_leave_the_raw_one(tmp_path: Path) -> None:
    begun = begin(tmp_path)
    _solve(begun)
    attempt = f"attempt:{ATTEMPT}"
    begun.log.add(
        attempt, StudyOperationKind.CORRECTED, "desk@bbbbbb", spans=[[12_000, 20_000, "paused"]], why="call"
    )
    begun.log.add(
        attempt, StudyOperationKind.CORRECTED, "desk@bbbbbb", spans=[[18_000, 22_000, "work"]], why="back"
    )
    row = begun.row()
    assert (row.active_s, row.active_corrected_s, row.primary_s) == (65.25, 59.25, 59.25)
    assert (row.paused_s, row.solved_s) == (0.0, 65.25)


def test_nothing_after_the_end_is_primary_time(tmp_path: Path) -> None:
    begun = begin(tmp_path)
    _solve(begun)
    begun.clock.advance(30_000)
    begun.attempt.note("an afterthought")
    begun.log.add(f"attempt:{ATTEMPT}", StudyOperationKind.CORRECTED, spans=[[0, 90_000, "work"]])
    assert (begun.row().primary_s, begun.row().solved_s) == (65.25, 65.25)


def test_a_correction_makes_idle_time_work_in_the_pane_of_then(tmp_path: Path) -> None:
    begun = begin(tmp_path)
    begun.attempt.view(Pane.EDITOR)
    begun.clock.advance(130_000)
    begun.attempt.ask_idle(begun.clock.mono_ms() - 120_000)
    begun.clock.advance(5_000)
    begun.attempt.answer_idle(away=True)
    begun.attempt.give_up(GiveUpCode.TOO_HARD)
    assert (begun.row().idle_s, begun.row().active_s) == (125.0, 10.0)
    begun.log.add(f"attempt:{ATTEMPT}", StudyOperationKind.CORRECTED, spans=[[10_000, 200_000, "work"]])
    row = begun.row()
    assert (row.active_s, row.active_corrected_s) == (10.0, 135.0)
    spans = begun.evidence().timeline.corrected(begun.evidence().notes.corrections)
    assert milliseconds(spans, (ClockActivity.EDITING,)) == 135_000


def test_the_primary_time_can_have_the_waiting_in_it(tmp_path: Path) -> None:
    clock = FakeClock()
    first = next(iter(CHECKS))

    def slow(names: Mapping[str, object]) -> None:
        clock.advance(7_000)
        CHECKS[first](names)

    study = a_study(protocol=Protocol(primary_time=PrimaryTime.ACTIVE_AND_WAITING))
    begun = begin(tmp_path, study=study, clock=clock, runner=FakeRunner({**CHECKS, first: slow}))
    begun.clock.advance(4_000)
    begun.attempt.call("submit_attempt", {"func_code": REPAIR})
    row = begun.row()
    assert (row.active_s, row.waiting_s, row.primary_s) == (4.0, 7.0, 11.0)


ENDS = {
    EndReason.SOLVED: ("", True),
    EndReason.SUBMISSIONS_EXHAUSTED: ("censored", True),
    EndReason.CALLS_EXHAUSTED: ("censored", True),
    EndReason.STEPS_EXHAUSTED: ("censored", True),
    EndReason.TIME_CAP: ("censored", True),
    EndReason.FINAL_WRONG: ("censored", True),
    EndReason.CONTEXT_EXHAUSTED: ("censored", True),
    EndReason.TOKEN_CAP: ("censored", True),
    EndReason.SETTLED: ("censored", True),
    EndReason.GAVE_UP: ("competing", True),
    EndReason.SKIPPED: ("competing", True),
    EndReason.INFRASTRUCTURE: ("", False),
    EndReason.WITHDRAWN: ("", False),
    EndReason.DISQUALIFIED: ("", False),
}


@pytest.mark.parametrize("reason", list(EndReason))
def test_each_end_is_one_statistical_event(tmp_path: Path, reason: EndReason) -> None:
    begun = begin(tmp_path)
    begun.clock.advance(3_000)
    if reason is EndReason.SOLVED:
        begun.attempt.call("submit_attempt", {"func_code": REPAIR})
    else:
        begun.attempt.end(reason)
    row = begun.row()
    censored, counted = ENDS[reason]
    assert (row.end, row.censored, row.counted) == (reason.value, censored, counted)
    assert row.exclusion == ("" if counted else reason.value)
    assert row.primary_s == 3.0


def test_an_attempt_that_goes_on_has_a_row_that_does_not_count(tmp_path: Path) -> None:
    row = begin(tmp_path).row()
    assert (row.counted, row.exclusion, row.end, row.censored) == (False, "unfinished", "", "")


def test_a_gist_is_solved_if_it_is_faithful_and_fakes_nothing(tmp_path: Path) -> None:
    begun = begin(tmp_path, Mode.GIST, settings=GistSettings(OWNED))
    begun.attempt.edit("gist", FAITHFUL)
    begun.attempt.call("submit_gist", {})
    row = begun.row()
    assert (row.solved, row.number("fidelity"), row.is_true("mocked"), row.text("error")) == (
        True,
        1.0,
        False,
        "",
    )
    assert (row.number("found"), row.number("diagnosed"), row.number("pass_rate")) == (None, None, 100.0)
    assert (row.number("test_recall"), row.number("test_precision"), row.names("gist_flags")) == (
        100.0,
        100.0,
        (),
    )
    assert row.condition_key.startswith("uses 0 / submissions 1 / steps 50 / limit 0 s / list_directory+")
    scored = next(n for n, event in enumerate(begun.memory.events) if event.type == "score")
    record = begun.memory.events[scored].data.written()["gist"]
    begun.memory.change(scored, gist={**record, "flags": {**record["flags"], "mocked": "a module"}})
    row = begun.row()
    assert row.names("gist_flags") == ("mocked",)
    assert (row.solved, row.number("fidelity"), row.is_true("mocked"), row.censored, row.solved_s) == (
        False,
        1.0,
        True,
        "censored",
        None,
    )


def test_a_gist_that_is_not_faithful(tmp_path: Path) -> None:
    begun = begin(tmp_path, Mode.GIST, settings=GistSettings(OWNED))
    begun.attempt.edit("gist", WRONG_GIST)
    begun.attempt.call("submit_gist", {})
    row = begun.row()
    assert (row.solved, row.number("fidelity"), row.number("pass_rate")) == (False, 0.0, 0.0)
    assert row.text("error")
    assert row.number("line_existence") is not None


def test_a_suspicious_pass_counts_once_it_was_accepted(tmp_path: Path) -> None:
    begun = begin(tmp_path)
    begun.attempt.call("read_file", {"file_path": "shop/prices.py"})
    begun.attempt.call("submit_attempt", {"func_code": SUSPICIOUS})
    unread = begun.row()
    assert (unread.solved, unread.censored) == (False, "censored")
    assert [flag.flag for flag in unread.flags if flag.flag == "suspicious_names"] == ["suspicious_names"]
    assert begun.row(accepted=True).solved
    assert not begun.row(accepted=False).solved


def test_what_is_no_counted_attempt_of_the_study(tmp_path: Path) -> None:
    def why(begun: StudyAttempt) -> str:
        begun.attempt.end(EndReason.FINAL_WRONG)
        return begun.row().exclusion

    assert why(begin(tmp_path / "1", role=Role.TRAINING)) == "role_training"
    assert why(begin(tmp_path / "2", actor="simulated")) == "actor_simulated"
    assert why(begin(tmp_path / "3", actor="simulated", study=a_study(simulated=True))) == ""
    other = begin(tmp_path / "4")
    other.study = a_study(id="another-study")
    assert why(other) == "not_assigned"
    returned = begin(tmp_path / "5")
    returned.log.add("person:P07", StudyOperationKind.RETURNED, "desk@bbbbbb", assignment="a1")
    assert why(returned) == "returned"
    gone = begin(tmp_path / "6")
    gone.log.add("person:P07", StudyOperationKind.WITHDRAWN, data="erase")
    assert why(gone) == "withdrawn"
    kept = begin(tmp_path / "7")
    kept.log.add("person:P07", StudyOperationKind.WITHDRAWN, data="keep")
    assert why(kept) == ""
    author = begin(tmp_path / "8")
    author.log.add("person:P07", StudyOperationKind.ENROLLED, "desk@bbbbbb", role="author")
    assert why(author) == "role_author"


def test_only_the_first_attempt_of_an_assignment_counts(tmp_path: Path) -> None:
    begun = begin(tmp_path, others=[("a1", "earlier", "")])
    begun.attempt.end(EndReason.FINAL_WRONG)
    row = begun.row()
    assert (row.counted, row.exclusion) == (False, "second_exposure")
    assert "second_exposure" in [flag.flag for flag in row.flags]


def test_organisers_exclude_and_include(tmp_path: Path) -> None:
    begun = begin(tmp_path, study=a_study(quality=Quality(exclude_on=("fast",))))
    begun.attempt.call("read_file", {"file_path": "shop/prices.py"})
    begun.attempt.call("submit_attempt", {"func_code": REPAIR})
    subject = f"attempt:{ATTEMPT}"
    assert begun.row().exclusion == "fast"
    begun.log.add(subject, StudyOperationKind.INCLUDED, "desk@bbbbbb", why="seen on the recording")
    assert begun.row().counted
    begun.log.add(subject, StudyOperationKind.EXCLUDED, "desk@bbbbbb", reason="interrupted", why="fire drill")
    assert begun.row().exclusion == "interrupted"


EXCLUDE, ACCEPT, REJECT_PASS = ReviewDecision.EXCLUDE, ReviewDecision.ACCEPT, ReviewDecision.REJECT_PASS


@pytest.mark.parametrize(
    ("rule", "said", "excluded"),
    [
        (DisputeRule.ORGANISER, [EXCLUDE], True),
        (DisputeRule.ORGANISER, [EXCLUDE, ACCEPT], False),
        (DisputeRule.ORGANISER, [], False),
        (DisputeRule.ANY_EXCLUDE, [ACCEPT, EXCLUDE], True),
        (DisputeRule.MAJORITY, [ACCEPT, EXCLUDE], False),
        (DisputeRule.MAJORITY, [ACCEPT, EXCLUDE, EXCLUDE], True),
        (DisputeRule.ORGANISER, [EXCLUDE, REJECT_PASS], False),
        (DisputeRule.MAJORITY, [EXCLUDE, REJECT_PASS], False),
        (DisputeRule.ANY_EXCLUDE, [REJECT_PASS], False),
        (DisputeRule.ANY_EXCLUDE, [REJECT_PASS, EXCLUDE], True),
    ],
)
def test_reviewers_exclude_by_the_declared_rule(
    tmp_path: Path, rule: DisputeRule, said: list[ReviewDecision], excluded: bool
) -> None:
    begun = begin(tmp_path, study=a_study(quality=Quality(rule=rule)))
    begun.attempt.end(EndReason.FINAL_WRONG)
    decisions = tuple(ReviewerDecision(ATTEMPT, f"r{number}", one) for number, one in enumerate(said))
    assert begun.row(decisions=decisions).exclusion == ("reviewers" if excluded else "")
    begun.log.add(f"attempt:{ATTEMPT}", StudyOperationKind.INCLUDED, "desk@bbbbbb", why="both wrong")
    assert begun.row(decisions=decisions).counted


@pytest.mark.parametrize(
    ("given", "primary"), [([12.5], 12.5), ([12.5, None], 12.5), ([12.5, 13], None), ([], None)]
)
def test_the_time_with_which_reviewers_accept_an_attempt_counts(
    tmp_path: Path, given: list[float | None], primary: float | None
) -> None:
    begun = begin(tmp_path)
    begun.attempt.call("read_file", {"file_path": "shop/prices.py"})
    begun.clock.advance(40_000)
    begun.attempt.end(EndReason.FINAL_WRONG)
    decisions = tuple(
        ReviewerDecision(ATTEMPT, f"r{number}", ACCEPT, seconds) for number, seconds in enumerate(given)
    )
    recorded, row = begun.row(), begun.row(decisions=decisions)
    assert recorded.primary_s is not None
    assert recorded.primary_s >= 40
    assert row.primary_s == row.active_corrected_s == (primary or recorded.primary_s)
    assert row.active_s == recorded.active_s
    spans = [[0, 10_000, "idle"]]
    begun.log.add(f"attempt:{ATTEMPT}", StudyOperationKind.CORRECTED, "desk@bbbbbb", spans=spans, why="call")
    assert begun.row(decisions=decisions).primary_s == recorded.primary_s - 10


def test_a_method_is_shown_touched_and_found_with_its_class(tmp_path: Path) -> None:
    events = begin(tmp_path, Mode.DISCOVERY)
    attempt, clock = events.attempt, events.clock
    attempt.call("read_function", {"function_name": "discount", "file_path": "shop/prices.py"})
    clock.advance(1_000)
    attempt.call("read_function", {"function_name": "Basket", "file_path": "shop/prices.py"})
    clock.advance(1_000)
    attempt.edit("shop/prices.py::Basket", "class Basket:")
    targets = ("shop/prices.py::Basket.add", "shop/prices.py::Basket.total", "shop/stock/shelf.py::capacity")
    found = timeline_of(events.memory.events, targets)
    assert {name: moment.active_ms for name, moment in found.firsts.items()} == {
        FirstTime.LEFT_BRIEF: 0,
        FirstTime.VIEW: 1_000,
        FirstTime.TOUCH: 2_000,
    }
    assert found.touched == frozenset(targets[:2])
    assert timeline_of(events.memory.events, ("shop/prices.py::Bask",)).firsts.keys() == {
        FirstTime.LEFT_BRIEF
    }


@pytest.mark.parametrize(("calls", "words"), [({}, ""), ({"calls": "text"}, ", calls text")])
def test_a_models_row_has_its_settings_after_the_shared_key(
    tmp_path: Path, calls: dict[str, str], words: str
) -> None:
    person = begin(tmp_path / "person")
    person.attempt.end(EndReason.FINAL_WRONG)
    solver = {"model": "m", "setting": "tools", **calls, "sampling": {"temperature": 0.5, "seed": 7}}
    model = begin(tmp_path / "model", actor="model", solver=solver)
    model.attempt.end(EndReason.FINAL_WRONG)
    found = model.evidence()
    declared = DeclaredSolver(name="model-x", runs=(), condition="alone", scaffold="ours")
    row = measured(AttemptEvidence(found.study, found.task, found.recorded, found.ledger, declared))
    assert (row.actor, row.solver, row.participant, row.scaffold, row.counted) == (
        "model",
        "model-x",
        "",
        "ours",
        True,
    )
    assert row.instructions_s is None
    assert row.condition_key.endswith(f" | setting tools{words}, temperature 0.5")
    assert row.budget_key == person.row().condition_key


def test_a_break_and_a_second_process(tmp_path: Path) -> None:
    begun = begin(tmp_path)
    begun.clock.advance(2_000)
    begun.attempt.pause(PauseReason.BREAK)
    begun.clock.advance(60_000)
    begun.attempt.resume()
    begun.attempt.resume_process()
    begun.attempt.end(EndReason.FINAL_WRONG)
    row = begun.row()
    assert (row.paused_s, row.active_s, row.resumes, row.primary_s) == (60.0, 2.0, 1, 2.0)


def test_events_that_do_not_fit_end_the_row(tmp_path: Path) -> None:
    begun = begin(tmp_path)
    begun.clock.advance(1_000)
    begun.attempt.note("one")
    begun.memory.change(2, text=["no", "text"])
    begun.attempt.end(EndReason.FINAL_WRONG)
    row = begun.row()
    assert (row.counted, row.exclusion) == (False, "unfinished")
    assert row.flags[0].flag == "chain_broken"


STEPS = strategies.lists(
    strategies.tuples(
        strategies.sampled_from(
            [
                "tree",
                "editor",
                "brief",
                "pause",
                "resume",
                "ask",
                "cover",
                "input",
                "worked",
                "away",
                "restart",
                "call",
            ]
        ),
        strategies.integers(0, 400_000),
    ),
    max_size=25,
)


@given(STEPS)
@examples(30)
def test_the_spans_of_a_timeline_add_up_to_the_clock(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    begun = begin(tmp_path_factory.mktemp("timeline"))
    for step, ms in steps:
        _do(begun, step, ms)
    timeline = begun.evidence().timeline
    for activity in ClockActivity:
        assert milliseconds(timeline.spans, (activity,)) == timeline.state.clock.of(activity)
    ends = [span.to_ms for span in timeline.spans]
    assert [span.from_ms for span in timeline.spans] == [0, *ends][: len(ends)]


def _do(begun: StudyAttempt, step: str, ms: int) -> None:
    attempt, clock = begun.attempt, begun.clock
    clock.advance(ms)
    match step:
        case "tree" | "editor" | "brief":
            attempt.view(Pane(step))
        case "pause" if attempt.state.pause is None:
            attempt.pause(PauseReason.BREAK)
        case "resume":
            attempt.resume()
        case "ask":
            attempt.ask_idle(clock.mono_ms() - min(ms, 120_000))
        case "cover":
            attempt.cover_idle()
        case "input":
            attempt.input_again()
        case "worked" | "away":
            attempt.answer_idle(away=step == "away")
        case "restart":
            attempt.resume_process()
        case "call" if attempt.state.pause is None and not attempt.state.ended:
            attempt.call("list_directory", {})
