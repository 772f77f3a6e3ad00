from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from study_parts import MINUTE, StudyLog, declared, study_tasks

from gistpoint.core.study.declaration import Feedback, Study
from gistpoint.core.study.ledger import Ledger
from gistpoint.core.study.operations import STUDY, person
from gistpoint.core.study.reading import protocol_sha256
from gistpoint.core.study.steps import (
    SITTING_LAPSES_MS,
    AttemptStep,
    BetweenStep,
    ConsentStep,
    DoneStep,
    FinishStep,
    FormStep,
    LocalJournal,
    PlanStep,
    ReadyStep,
    RefusalReason,
    RefusedStep,
    RulesStep,
    ScreenOutStep,
    SittingLimit,
    SittingOverStep,
    Situation,
    Step,
    WithdrawnStep,
    next_step,
)

FORMS = """\
[[questionnaire]]
id = "before"
at = "before"
use = ["experience-1", "sources-1"]
[[questionnaire]]
id = "forecast"
at = "after_brief"
use = ["forecast-1"]
[[questionnaire]]
id = "after"
at = "after"
use = ["end-1"]
"""


class Participant:
    """A participant who carries out each step on a machine with journals."""

    def __init__(self, study: Study, number: int = 8, code: str = "P07", machine: str = "111111") -> None:
        self.study = study
        self.tasks = study_tasks(number)
        self.log = StudyLog(study, self.tasks)
        self.code = code
        self.machine = machine
        self.journals: dict[str, LocalJournal] = {}
        self.went_on_after = ""
        self.sandbox = True
        self.log.open()
        self.log.enrol(code)

    def step(self, code: str = "", study: Study | None = None, **changes: object) -> Step:
        ledger = self.log.ledger
        shuffled = list(self.log.operations)
        Random(len(shuffled)).shuffle(shuffled)
        here = Situation(self.log.now_ms, self.machine, self.journals, self.sandbox, self.went_on_after)
        situation = replace(here, **changes)  # type: ignore[arg-type]
        arguments = study or self.study, self.tasks
        found = next_step(*arguments, ledger, code or self.code, situation)
        again = Ledger([*shuffled, *shuffled[:3]])
        assert next_step(*arguments, again, code or self.code, situation) == found
        return found

    def do(self, kind: str, **data: object) -> None:
        self.log.by(self.code, kind, machine=self.machine, **data)

    def begin(self, attempt: str) -> ReadyStep:
        step = self.step()
        assert isinstance(step, ReadyStep), step
        self.do("begun", assignment=step.assignment.id, attempt=attempt)
        self.journals[attempt] = LocalJournal.UNFINISHED
        return step

    def act(self, end: str = "solved") -> Step:
        """Carry out a step, and return it."""
        step = self.step()
        match step:
            case ConsentStep():
                self.do("consented", text_sha256="0" * 64, items=(True, True))
            case FormStep():
                self.do("answers", questionnaire=step.form.id, assignment=step.assignment, sha256=step.sha256)
            case RulesStep():
                self.do("sitting", state="began")
            case PlanStep():
                rows = [(a.id, a.task, a.condition, a.position) for a in step.assignments]
                self.do("planned", slot=step.slot, basis={}, assignments=rows, protocol=step.protocol)
            case ReadyStep():
                self.begin(f"attempt-{len(self.journals)}")
            case AttemptStep():
                for form in step.forecasts:
                    self.do("answers", questionnaire=form.form.id, assignment=step.assignment.id)
                self.journals[step.attempt] = LocalJournal.ENDED
            case FinishStep():
                self.do("finished", assignment=step.assignment.id, attempt=step.attempt, end=end)
            case BetweenStep():
                self.went_on_after = step.finished.id
            case SittingOverStep():
                self.do("sitting", state="ended")
            case ScreenOutStep():
                self.do("screened_out", item=step.item)
        return step

    def until(self, kind: type[Step]) -> Step:
        for _ in range(200):
            if isinstance(self.step(), kind):
                return self.step()
            self.act()
        raise AssertionError(f"There is no {kind}: {self.step()}")


def names(participant: Participant, limit: int = 100) -> list[str]:
    found = []
    for _ in range(limit):
        found.append(type(participant.act()).__name__.removesuffix("Step"))
        if found[-1] in ("Done", "Refused", "Withdrawn"):
            break
    return found


def test_the_whole_way() -> None:
    task = ["Ready", "Attempt", "Finish", "Form"]
    assert names(Participant(declared(FORMS))) == [
        *("Consent", "Form", "Rules", "Plan"),
        *(*task, "Between", *task, "Form", "Done"),
    ]


def test_training_comes_before_the_plan_and_is_asked_nothing() -> None:
    study = declared(FORMS, f'[training]\ntasks = ["{1:064x}", "{2:064x}"]')
    participant = Participant(study)
    found = names(participant)
    assert found[:10] == ["Consent", "Form", "Rules", *["Ready", "Attempt", "Finish"] * 2, "Plan"]
    assert {given.task for given in participant.log.ledger.assignments()}.isdisjoint(
        {f"{1:064x}", f"{2:064x}"}
    )


def test_training_is_repeated_until_it_is_solved_if_it_must_be() -> None:
    participant = Participant(declared(f'[training]\ntasks = ["{1:064x}"]\nmust_solve = true'))
    first = participant.until(ReadyStep)
    participant.act()
    participant.act()
    participant.act(end="gave_up")
    second = participant.step()
    assert isinstance(first, ReadyStep)
    assert isinstance(second, ReadyStep)
    assert second.training
    assert second.assignment.id != first.assignment.id
    assert second.assignment.task == first.assignment.task
    participant.act()
    participant.act()
    participant.act(end="solved")
    assert isinstance(participant.step(), PlanStep)


def test_training_that_need_not_end_can_be_passed_over() -> None:
    participant = Participant(declared(f'[training]\ntasks = ["{1:064x}"]\nmust_end = false'))
    step = participant.until(ReadyStep)
    assert isinstance(step, ReadyStep)
    assert step.may_skip
    participant.do("finished", assignment=step.assignment.id, attempt="", end="skipped")
    assert isinstance(participant.step(), PlanStep)


def refusal(step: Step) -> RefusalReason:
    assert isinstance(step, RefusedStep), step
    assert step.words
    assert step.hint
    return step.reason


def test_who_can_not_take_part_is_told_why() -> None:
    participant = Participant(declared())
    assert refusal(participant.step("P99")) is RefusalReason.UNKNOWN_CODE
    assert refusal(participant.step(sandbox_ready=False)) is RefusalReason.NO_SANDBOX
    assert refusal(participant.step(study=declared(changes={"seed = ": "simulated = true\nseed = "}))) is (
        RefusalReason.SIMULATED
    )
    assert refusal(participant.step(study=declared(changes={"per_person = 2": "per_person = 3"}))) is (
        RefusalReason.PROTOCOL_CHANGED
    )
    tasks, participant.tasks = participant.tasks, study_tasks(7)
    assert refusal(participant.step()) is RefusalReason.TASKS_CHANGED
    participant.tasks = tasks
    participant.do("declined")
    assert refusal(participant.step()) is RefusalReason.DECLINED
    participant.log.record(STUDY, "closed")
    assert refusal(participant.step()) is RefusalReason.CLOSED


def test_a_study_that_is_not_open_refuses() -> None:
    participant = Participant(declared())
    participant.log.operations = [o for o in participant.log.operations if o.subject != STUDY]
    assert refusal(participant.step()) is RefusalReason.NOT_OPEN


def test_an_amended_study_asks_for_consent_again() -> None:
    participant = Participant(declared())
    participant.until(RulesStep)
    participant.log.record(
        STUDY, "amended", protocol=protocol_sha256(participant.study, participant.tasks), why="x"
    )
    assert participant.step() == ConsentStep(again=True, changes=("x",), text_changed=True)
    participant.act()
    assert isinstance(participant.step(), RulesStep)


def test_consent_to_the_protocol_in_force_holds_whatever_the_clocks_say() -> None:
    participant = Participant(declared())
    protocol = protocol_sha256(participant.study, participant.tasks)
    participant.log.now_ms += 60 * MINUTE
    participant.log.record(STUDY, "amended", protocol=protocol, why="x")
    participant.log.now_ms -= 60 * MINUTE
    participant.do("consented", text_sha256="0" * 64, protocol="f" * 64)
    assert participant.step() == ConsentStep(again=True, changes=("x",), text_changed=True)
    participant.do("consented", text_sha256="0" * 64, protocol=protocol)
    assert isinstance(participant.step(), RulesStep)


@pytest.mark.parametrize("row", [["a", "gone", "alone", 1], ["a", f"{1:064x}", "gone", 1]])
def test_a_plan_that_the_study_has_outgrown_is_refused(row: list[object]) -> None:
    participant = Participant(declared())
    participant.until(PlanStep)
    participant.do("planned", assignments=[row])
    assert refusal(participant.step()) is RefusalReason.PLAN_CHANGED


def test_screening_ends_the_session() -> None:
    study = declared(
        '[participants]\nscreening = "start"\n[[questionnaire]]\nid = "start"\nat = "before"\n[[questionnaire.item]]\n'
        'id = "ai"\ntext = "Would you work without AI?"\nkind = "choice"\noptions = ["yes", "no"]\nscreen_out = ["no"]'
    )
    participant = Participant(study)
    participant.until(FormStep)
    participant.do("answers", questionnaire="start", values={"ai": "no"})
    assert participant.act() == ScreenOutStep("start.ai")
    assert refusal(participant.step()) is RefusalReason.SCREENED_OUT


def test_a_task_begun_without_a_journal_begins_and_one_with_a_journal_is_resumed() -> None:
    participant = Participant(declared(FORMS))
    participant.until(ReadyStep)
    participant.begin("attempt-a")
    participant.journals.clear()
    step = participant.step()
    assert isinstance(step, AttemptStep)
    assert (step.attempt, step.resume) == ("attempt-a", False)
    assert [form.form.id for form in step.forecasts] == ["forecast"]
    participant.journals["attempt-a"] = LocalJournal.UNFINISHED
    participant.do("answers", questionnaire="forecast", assignment=step.assignment.id)
    assert participant.step() == replace(step, resume=True, forecasts=())
    participant.journals["attempt-a"] = LocalJournal.ENDED
    assert participant.step() == FinishStep(step.assignment, "attempt-a")


def test_a_task_begun_on_another_machine_goes_on_there_or_is_returned() -> None:
    participant = Participant(declared())
    participant.until(ReadyStep)
    ready = participant.begin("attempt-a")
    participant.machine, participant.journals = "222222", {}
    assert refusal(participant.step()) is RefusalReason.ELSEWHERE
    participant.log.record(person("P07"), "returned", assignment=ready.assignment.id, why="broken screen")
    step = participant.until(ReadyStep)
    assert isinstance(step, ReadyStep)
    assert step.assignment.id != ready.assignment.id
    assert step.of == 1


def test_of_two_beginnings_of_one_task_the_first_counts() -> None:
    participant = Participant(declared())
    participant.until(ReadyStep)
    first = participant.begin("attempt-b")
    participant.log.by("P07", "begun", machine="222222", assignment=first.assignment.id, attempt="attempt-a")
    step = participant.step()
    assert isinstance(step, AttemptStep)
    assert step.attempt == "attempt-b"
    participant.log.by(
        "P07", "finished", machine="222222", assignment=first.assignment.id, attempt="attempt-a"
    )
    assert participant.step() == step
    assert refusal(participant.step(machine="222222", journals={})) is RefusalReason.ELSEWHERE


def test_a_sitting_has_its_number_of_tasks_and_minutes() -> None:
    participant = Participant(declared(changes={"per_person = 2": "per_person = 2\nper_sitting = 1"}))
    assert participant.until(SittingOverStep) == SittingOverStep(SittingLimit.TASKS, 1, 2)
    participant.act()
    assert isinstance(participant.step(), RulesStep)
    participant.act()
    assert isinstance(participant.step(), ReadyStep)

    participant = Participant(declared(changes={"per_person = 2": "per_person = 2\nsitting_minutes = 30"}))
    participant.until(ReadyStep)
    participant.begin("attempt-a")
    participant.log.now_ms += 40 * MINUTE
    assert isinstance(participant.act(), AttemptStep)
    assert isinstance(participant.act(), FinishStep)
    assert isinstance(participant.act(), FormStep)
    assert participant.step() == SittingOverStep(SittingLimit.MINUTES, 1, 2)


def test_a_sitting_that_a_crash_left_open_is_over_after_hours() -> None:
    participant = Participant(declared())
    participant.until(ReadyStep)
    later = participant.log.now_ms + SITTING_LAPSES_MS
    assert isinstance(participant.step(now_ms=later), RulesStep)
    assert isinstance(participant.step(now_ms=later - 1), ReadyStep)


@pytest.mark.parametrize(("feedback", "last"), [("none", False), ("outcome", True)])
def test_what_is_told_after_a_task(feedback: str, last: bool) -> None:
    participant = Participant(declared(changes={"[privacy]": f'feedback = "{feedback}"\n[privacy]'}))
    step = participant.until(BetweenStep)
    assert isinstance(step, BetweenStep)
    assert (step.done, step.of, step.feedback) == (1, 2, Feedback(feedback))
    assert step.break_offered
    participant.act()
    found = names(participant)
    assert ("Between" in found) is last
    assert found[-1] == "Done"


def test_no_task_is_left_for_who_has_seen_all() -> None:
    participant = Participant(declared(), number=2)
    for task in participant.tasks:
        participant.log.record(person("P07"), "exposed", task=task, how="a pilot")
    assert names(participant)[-1] == "Refused"
    assert refusal(participant.step()) is RefusalReason.NO_TASKS


def test_who_withdraws_is_asked_nothing_more() -> None:
    participant = Participant(declared())
    participant.until(ReadyStep)
    participant.do("withdrawn", data="keep")
    assert participant.step() == WithdrawnStep(keeps_data=True)
    participant.do("withdrawn", data="erase")
    assert participant.step() == WithdrawnStep(keeps_data=False)


def test_done_says_how_much() -> None:
    participant = Participant(declared(FORMS))
    assert participant.until(DoneStep) == DoneStep(2, 2)
