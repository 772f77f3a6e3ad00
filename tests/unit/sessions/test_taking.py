"""A participant's way through a study: records, next steps, and the state that a killed process leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fakes import FakeClock
from small_study import CODE, answers_of, do, judge_for, opened, participation, solve, study_at, take_part
from study_folders import Machine

from gistpoint.core.attempts.identity import Role
from gistpoint.core.attempts.state import AttemptState, fold
from gistpoint.core.outcomes import BackendRecord
from gistpoint.core.study.operations import ERASE, KEEP, Begun, Finished, StudyError
from gistpoint.core.study.steps import (
    AttemptStep,
    BetweenStep,
    FormStep,
    ReadyStep,
    RefusalReason,
    RefusedStep,
    RulesStep,
    Step,
    WithdrawnStep,
)
from gistpoint.sessions.journal import JOURNAL, read_journal
from gistpoint.sessions.studies.drafts import FormDraft, FormDrafts
from gistpoint.sessions.studies.taking import Participation, TakenAttempt


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine.at(tmp_path / "home")


def joined(
    machine: Machine, root: Path, more: dict[str, Any] | None = None, *, training: bool = False
) -> Path:
    opened(machine.open(study_at(root, more, training=training)))
    return root


def until(part: Participation, kind: type[Step]) -> Step:
    """Do all steps before the first one of a kind and return that."""
    while not isinstance(step := part.step(), kind):
        assert do(part, step), step
    return step


def begun(part: Participation) -> TakenAttempt:
    step = until(part, ReadyStep)
    assert isinstance(step, ReadyStep)
    return part.begin(step)


def state_of(machine: Machine, attempt: str) -> AttemptState:
    return machine.attempts.summary(attempt).state


def test_everything_from_consent_to_done(machine: Machine, tmp_path: Path) -> None:
    part = participation(machine, joined(machine, tmp_path / "study", training=True))
    names = [type(step).__name__.removesuffix("Step") for step in take_part(part)]
    assert names == [
        "Consent", "Form", "Rules", "Ready", "Ready", "Form", "Between", "Ready", "Form", "Form", "Done",
    ]  # fmt: skip
    person = part.person
    assert len(person.finished) == 3
    assert {end.end for end in person.finished.values()} == {"solved"}
    assert [published.id for published in part.folder.attempts()] == sorted(person.finished)
    headers = [state_of(machine, attempt).header for attempt in person.finished]
    assert [header.role for header in headers] == [Role.TRAINING, Role.BASELINE, Role.BASELINE]
    given = {assignment.id: assignment for assignment in person.assignments}
    for header in headers[1:]:
        assert (header.role, header.participant, header.study) == (Role.BASELINE, CODE, "shop-2026")
        assert (header.condition, header.assistance) == ("few", "none")
        assert header.protocol_sha256 == part.folder.ledger.protocol
        assert (header.budgets.tool_uses, header.budgets.submissions) == (6, 2)
        assert "6 tool uses" in header.brief
        assert given[header.assignment or ""].task == header.task_id
        assert header.comforts_off == ("external_editor",)


def test_answers_after_the_brief_are_in_the_journal_and_in_the_log_and_cost_no_time(
    machine: Machine, tmp_path: Path
) -> None:
    assert isinstance(machine.clock, FakeClock)
    part = participation(machine, joined(machine, tmp_path / "study"))
    taken = begun(part)
    (form,) = taken.forecasts
    machine.clock.advance(30_000)
    part.ask(taken)
    machine.clock.advance(20_000)
    part.answer_within(taken, form, {"minutes": 12, "chance": None}, 20.0)
    machine.clock.advance(1_000)
    clock = taken.opened.attempt.clock()
    assert (clock.reading, clock.paused) == (31_000, 20_000)
    answers = part.person.answers("forecast", taken.step.assignment.id)
    assert answers is not None
    assert answers.values == {"minutes": 12, "chance": None} == taken.state.questionnaires[0].values
    assert taken.forecasts == ()
    part.close(taken)


def test_a_beginning_without_a_journal_is_begun_with_its_id(machine: Machine, tmp_path: Path) -> None:
    part = participation(machine, joined(machine, tmp_path / "study"))
    taken = begun(part)
    taken.opened.close()
    for path in sorted(taken.opened.journal.path.parent.iterdir()):
        path.unlink()
    again = participation(machine, tmp_path / "study")
    step = again.step()
    assert isinstance(step, AttemptStep)
    assert (step.attempt, step.resume) == (taken.step.attempt, False)
    other = again.open(step)
    assert other.state.attempt_id == taken.step.attempt
    other.opened.close()


def test_an_attempt_that_a_process_left_is_resumed_and_its_answers_are_recorded(
    machine: Machine, tmp_path: Path
) -> None:
    part = participation(machine, joined(machine, tmp_path / "study"))
    taken = begun(part)
    (form,) = taken.forecasts
    part.ask(taken)
    part.answer = lambda *_: None  # type: ignore[method-assign]  # the process dies between journal and log
    part.answer_within(taken, form, answers_of(form), 3.0)
    taken.opened.close()
    again = participation(machine, tmp_path / "study")
    assert again.person.answers("forecast", taken.step.assignment.id) is None
    step = again.step()
    assert isinstance(step, AttemptStep)
    resumed = again.open(step)
    assert again.person.answers("forecast", taken.step.assignment.id) is not None
    assert resumed.forecasts == ()
    resumed.opened.close()


def test_an_end_that_was_not_recorded_is_recorded_by_the_next_process(
    machine: Machine, tmp_path: Path
) -> None:
    part = participation(machine, joined(machine, tmp_path / "study"))
    taken = begun(part)
    solve(taken.opened.attempt)
    taken.opened.close()
    again = participation(machine, tmp_path / "study")
    assert isinstance(again.step(), FormStep)
    (end,) = again.person.facts.all(Finished)
    assert (end.attempt, end.end) == (taken.step.attempt, "solved")
    assert end.head == read_journal(machine.locations.attempts / end.attempt / JOURNAL).head
    assert fold(read_journal(machine.locations.attempts / end.attempt / JOURNAL).events).processes == 1


def test_leaving_publishes_and_another_machine_can_not_go_on(machine: Machine, tmp_path: Path) -> None:
    part = participation(machine, joined(machine, tmp_path / "study"))
    taken = begun(part)
    part.close(taken)
    assert [published.id for published in part.folder.attempts()] == [taken.step.attempt]
    elsewhere = participation(Machine.at(tmp_path / "other", machine.clock), tmp_path / "study")
    step = elsewhere.step()
    assert isinstance(step, RefusedStep)
    assert step.reason is RefusalReason.ELSEWHERE


def test_a_pause_publishes(machine: Machine, tmp_path: Path) -> None:
    part = participation(machine, joined(machine, tmp_path / "study"))
    taken = begun(part)
    part.pause(taken)
    assert part.folder.attempt(taken.step.attempt) is not None
    part.close(taken)


@pytest.mark.parametrize("data", [KEEP, ERASE])
def test_withdrawing_within_an_attempt(machine: Machine, tmp_path: Path, data: str) -> None:
    part = participation(machine, joined(machine, tmp_path / "study"))
    taken = begun(part)
    part.drafts.write("task", "", FormDraft(values={"how": "half"}))
    part.withdraw(data, "no time", taken)
    step = part.step()
    told = [
        path
        for path in (tmp_path / "study").rglob("*")
        if path.is_file() and CODE.encode() in path.read_bytes()
    ]
    left = list(machine.locations.attempts.glob(f"*/{JOURNAL}"))
    assert not part.drafts.folder.exists()
    if data == KEEP:
        assert isinstance(step, WithdrawnStep)
        assert state_of(machine, taken.step.attempt).ending is not None
        assert [end.end for end in part.person.finished.values()] == ["withdrawn"]
    else:
        assert isinstance(step, RefusedStep)
        assert (step.reason, told, left) == (RefusalReason.ERASED, [], [])


def test_erasing_is_finished_by_the_next_process(machine: Machine, tmp_path: Path) -> None:
    part = participation(machine, joined(machine, tmp_path / "study"))
    until(part, ReadyStep)
    part.folder.erase = lambda code: None  # type: ignore[method-assign,assignment,return-value]
    part.withdraw(ERASE)
    assert isinstance(part.step(), WithdrawnStep)
    again = participation(machine, tmp_path / "study")
    assert isinstance(again.step(), RefusedStep)
    assert again.folder.ledger.is_erased(CODE)


def test_nothing_begins_outside_of_the_demanded_sandbox(machine: Machine, tmp_path: Path) -> None:
    part = participation(machine, joined(machine, tmp_path / "study", {"sandbox": {"demand": "bwrap"}}))
    step = until(part, ReadyStep)
    assert isinstance(step, ReadyStep)
    with pytest.raises(StudyError, match="needs bwrap, and the code here runs in fake"):
        part.begin(step)
    assert part.person.facts.all(Begun) == ()


def test_a_training_task_can_be_passed_over_where_that_is_declared(machine: Machine, tmp_path: Path) -> None:
    root = study_at(tmp_path / "study", training=True)
    text = (root / "study.toml").read_text(encoding="utf-8")
    (root / "study.toml").write_text(
        text.replace("[training]", "[training]\nmust_end = false"), encoding="utf-8"
    )
    opened(machine.open(root))
    part = participation(machine, root)
    step = until(part, ReadyStep)
    assert isinstance(step, ReadyStep)
    assert step.training
    part.pass_over(step)
    step = until(part, ReadyStep)
    assert isinstance(step, ReadyStep)
    assert not step.training
    with pytest.raises(StudyError, match="can't be skipped"):
        part.pass_over(step)


def test_stopping_for_today_asks_for_the_rules_again(machine: Machine, tmp_path: Path) -> None:
    part = participation(machine, joined(machine, tmp_path / "study"))
    until(part, BetweenStep)
    part.end_sitting()
    assert isinstance(participation(machine, tmp_path / "study").step(), RulesStep)


def test_drafts_survive_and_an_unreadable_one_counts_as_none(tmp_path: Path) -> None:
    drafts = FormDrafts(tmp_path, "s", CODE)
    assert drafts.read("task", "a") == FormDraft()
    drafts.write("task", "a", FormDraft(values={"how": "half \ud83d\n", "ease": 3}, seconds=4.5))
    assert FormDrafts(tmp_path, "s", CODE).read("task", "a").values["ease"] == 3
    assert CODE not in str(drafts.folder)
    for path in drafts.folder.iterdir():
        path.write_bytes(b"{")
    assert drafts.read("task", "a") == FormDraft()
    drafts.remove_all()
    assert not drafts.folder.exists()


def test_an_unisolated_backend_is_refused_whatever_is_demanded(machine: Machine, tmp_path: Path) -> None:
    part = participation(machine, joined(machine, tmp_path / "study"))
    step = until(part, ReadyStep)
    assert isinstance(step, ReadyStep)

    def open_judge(task: Any) -> Any:
        judge = judge_for(task)
        judge.runner.backend = BackendRecord("plain", "", isolated=False)  # type: ignore[attr-defined]
        return judge

    unsafe = Participation(part.folder, CODE, machine.attempts, open_judge, part.drafts)
    with pytest.raises(StudyError, match="needs a sandbox that isolates"):
        unsafe.begin(step)
