"""Enrolling, withdrawing and erasing people, and an organiser's decisions, without a command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fakes import FakeClock
from held_studies import Held
from study_folders import Machine, declare

from gistpoint.core.study.ledger import person_sha256
from gistpoint.core.study.operations import (
    ORGANISER,
    STUDY,
    Begun,
    Exported,
    Finished,
    Planned,
    StudyError,
    StudyOperationKind,
    Withdrawn,
    person,
)
from gistpoint.sessions.studies.course import (
    AmendStudy,
    amend_study,
    close_study,
    open_for_people,
    outcomes_hidden,
    preregistration,
    require_unblinded,
)
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.people import (
    EnrolPeople,
    ReturnAssignment,
    WithdrawPerson,
    codes_to_serve,
    enrol_people,
    erase_people,
    people_expired,
    require_servable,
    return_assignment,
    stratum_in_turn,
    withdraw_person,
)
from gistpoint.sessions.studies.settling import (
    SettleAttempt,
    exclude_attempt,
    include_attempt,
    published_attempt,
)

DAY_MS = 86_400_000
ONE = WithdrawPerson(code="P1", erase=True)


def opened(
    tmp_path: Path, changes: dict[str, Any] | None = None, clock: FakeClock | None = None
) -> StudyFolder:
    """Return an open study, as a program without a command line gets it."""
    study = Machine.at(tmp_path / "home", clock).open(declare(tmp_path / "shop", changes))
    open_for_people(study)
    return study


def test_random_codes_are_all_different_and_get_the_stratum_and_the_role(tmp_path: Path) -> None:
    study = opened(tmp_path, {"participants": {"strata": ["junior", "senior"]}})
    codes = enrol_people(study, EnrolPeople(number=20, stratum="senior", role="qa"))
    assert len(set(codes)) == 20
    assert set(study.ledger.people) == set(codes)
    assert {(who.stratum, who.role) for who in study.ledger.people.values()} == {("senior", "qa")}


def test_who_is_of_the_team_is_an_author_unless_it_is_said(tmp_path: Path) -> None:
    study = opened(tmp_path, {"participants": {"team": ["ME", "YOU"]}})
    enrol_people(study, EnrolPeople(code="ME"))
    enrol_people(study, EnrolPeople(code="YOU", role="baseline"))
    enrol_people(study, EnrolPeople(code="P1"))
    assert {code: who.role for code, who in study.ledger.people.items()} == {
        "ME": "author",
        "YOU": "baseline",
        "P1": "baseline",
    }


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (EnrolPeople(number=2), "Name the stratum."),
        (EnrolPeople(number=2, stratum="old"), "'old' is not a stratum"),
        (EnrolPeople(code="p1", stratum="junior"), "P1 is already in the study"),
        (EnrolPeople(code="P 2", stratum="junior"), "is not a valid code"),
        (EnrolPeople(code="P3", stratum="junior"), "was erased"),
    ],
)
def test_nobody_is_enrolled_if_one_can_not_be(tmp_path: Path, wanted: EnrolPeople, said: str) -> None:
    study = opened(tmp_path, {"participants": {"strata": ["junior"]}})
    for code in ("P1", "P3"):
        enrol_people(study, EnrolPeople(code=code, stratum="junior"))
    study.erase("P3")
    with pytest.raises(StudyError, match=said):
        enrol_people(study, wanted)
    assert list(study.ledger.people) == ["P1"]


def test_strata_are_taken_in_turn(tmp_path: Path) -> None:
    study = opened(tmp_path, {"participants": {"strata": ["a", "b", "c"]}}).study
    assert [stratum_in_turn(study, number) for number in range(5)] == ["a", "b", "c", "a", "b"]
    assert stratum_in_turn(opened(tmp_path / "other").study, 3) == ""


def test_the_course_of_a_study_has_one_direction(tmp_path: Path) -> None:
    study = Machine.at(tmp_path / "home").open(declare(tmp_path / "shop"))
    study.named = "my shop"
    assert "shop-2026" in preregistration(study)
    for act in (lambda: enrol_people(study, EnrolPeople()), lambda: close_study(study)):
        with pytest.raises(StudyError, match="not open yet") as refused:
            act()
        assert refused.value.hint == "gistpoint study open my shop"
    open_for_people(study)
    with pytest.raises(StudyError, match="too late to register"):
        preregistration(study)
    with pytest.raises(StudyError, match="already open"):
        open_for_people(study)
    with pytest.raises(StudyError, match="Nothing that belongs to the protocol has changed"):
        amend_study(study, AmendStudy(why="texts"))
    close_study(study)
    with pytest.raises(StudyError, match="already closed"):
        close_study(study)
    with pytest.raises(StudyError, match="nobody can be enrolled any more"):
        enrol_people(study, EnrolPeople())


def test_an_amendment_returns_the_protocol_before_and_needs_a_reason(tmp_path: Path) -> None:
    first = opened(tmp_path).protocol
    (tmp_path / "shop" / "texts" / "rules.md").write_text("Some help.", encoding="utf-8")
    study = Machine.at(tmp_path / "home").open(tmp_path / "shop")
    with pytest.raises(StudyError, match="needs a reason"):
        amend_study(study, AmendStudy(why=" "))
    assert amend_study(study, AmendStudy(why=" the rules ")) == first
    assert study.ledger.protocol == study.protocol != first


def test_outcomes_are_hidden_while_a_study_is_open_and_who_looks_is_written_down(tmp_path: Path) -> None:
    study = Machine.at(tmp_path / "home").open(declare(tmp_path / "shop"))
    assert not outcomes_hidden(study, unblind=True)
    open_for_people(study)
    assert outcomes_hidden(study, unblind=False)
    with pytest.raises(StudyError, match="hidden until it is closed"):
        require_unblinded(study, unblind=False)
    assert study.ledger.study.when(StudyOperationKind.UNBLINDED) is None
    assert not outcomes_hidden(study, unblind=True)
    assert study.ledger.study.when(StudyOperationKind.UNBLINDED) is not None
    close_study(study)
    assert not outcomes_hidden(study, unblind=False)


def test_only_who_is_enrolled_and_has_not_left_is_served(tmp_path: Path) -> None:
    study = opened(tmp_path)
    require_servable(study)
    with pytest.raises(StudyError, match="Nobody is enrolled"):
        codes_to_serve(study)
    for code in ("P1", "P2"):
        enrol_people(study, EnrolPeople(code=code))
    withdraw_person(study, WithdrawPerson(code="P1", keep=True))
    assert codes_to_serve(study) == ["P2"]
    close_study(study)
    with pytest.raises(StudyError, match="nobody can take part any more"):
        codes_to_serve(study)


def test_an_assignment_is_freed_once_and_not_after_its_end(tmp_path: Path) -> None:
    study = opened(tmp_path)
    enrol_people(study, EnrolPeople(code="P1"))
    given = tuple((f"P1-{place}", task, "alone", place) for place, task in enumerate(study.tasks, start=1))
    study.record("P1", person("P1"), StudyOperationKind.PLANNED, Planned(slot=1, assignments=given))
    first, second = study.ledger.person("P1").assignments
    for unknown in ("zzz", ""):
        with pytest.raises(StudyError, match=f"There is no assignment '{unknown}'"):
            return_assignment(study, ReturnAssignment(assignment=unknown, why="x"))
    with pytest.raises(StudyError, match=f"{len(given)} assignments have ids that begin with P1-"):
        return_assignment(study, ReturnAssignment(assignment="P1-", why="x"))
    with pytest.raises(StudyError, match="needs a reason"):
        return_assignment(study, ReturnAssignment(assignment=first.id, why=" "))
    assert return_assignment(study, ReturnAssignment(assignment=first.id, why=" it broke ")).id == first.id
    assert study.ledger.person("P1").returned[first.id].why == "it broke"
    with pytest.raises(StudyError, match="was already returned"):
        return_assignment(study, ReturnAssignment(assignment=first.id, why="x"))
    study.record("P1", person("P1"), StudyOperationKind.BEGUN, Begun(assignment=second.id, attempt="one"))
    ended = Finished(assignment=second.id, attempt="one", end="solved")
    study.record("P1", person("P1"), StudyOperationKind.FINISHED, ended)
    with pytest.raises(StudyError, match="has ended with attempt one"):
        return_assignment(study, ReturnAssignment(assignment=second.id, why="x"))


def test_who_is_erased_is_deleted_and_what_may_hold_copies_is_named(tmp_path: Path) -> None:
    study = opened(tmp_path, {"participants": {"team": ["P1"]}})
    for code in ("P1", "P2"):
        enrol_people(study, EnrolPeople(code=code))
    for code in ("P1", "P2"):
        export = Exported(to=(f"of-{code}",), people=(person_sha256(code),))
        study.record(ORGANISER, STUDY, StudyOperationKind.EXPORTED, export)
    (study.root / "report.html").write_text("figures", encoding="utf-8")
    left = withdraw_person(study, ONE)
    assert (left.data, left.named, left.reported, left.away) == ("erase", True, True, "")
    assert [export.to for export in left.exports] == [("of-P1",)]
    assert left.erasure is not None
    assert left.erasure.logs
    assert list(study.ledger.people) == ["P2"]
    with pytest.raises(StudyError, match="already erased"):
        withdraw_person(study, ONE)


def test_who_withdraws_and_keeps_their_data_may_say_why(tmp_path: Path) -> None:
    study = opened(tmp_path)
    enrol_people(study, EnrolPeople(code="P1"))
    left = withdraw_person(study, WithdrawPerson(code="P1", keep=True, words="no time"))
    assert (left.data, left.erasure) == ("keep", None)
    said = study.ledger.person("P1").withdrawn
    assert isinstance(said, Withdrawn)
    assert (said.data, said.words) == ("keep", "no time")


def test_retention_ends_for_who_has_said_nothing_for_so_long(tmp_path: Path) -> None:
    clock = FakeClock()
    study = opened(tmp_path, {"privacy": {"contact": "the lab", "retention_days": 30}}, clock)
    enrol_people(study, EnrolPeople(code="P1"))
    clock.advance(20 * DAY_MS)
    enrol_people(study, EnrolPeople(code="P2"))
    clock.advance(10 * DAY_MS)
    assert people_expired(study) == []
    clock.advance(1)
    assert people_expired(study) == ["P1"]
    erase_people(study, ["P1"])
    assert list(study.ledger.people) == ["P2"]
    with pytest.raises(StudyError, match="retention_days is 0"):
        people_expired(opened(tmp_path / "other"))


def test_an_attempt_is_excluded_and_taken_back_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    held = Held.at(tmp_path)
    for code in ("P01", "P02"):
        held.attempt(code, held.tasks[1])
    study = held.folder
    first = min(one.id for one in study.attempts())
    assert published_attempt(study, first).id == first
    for named, said in ((first[:4], "beginning of 2"), ("", "not a published"), ("zz", "not a published")):
        with pytest.raises(StudyError, match=said):
            published_attempt(study, named)
    out = exclude_attempt(study, SettleAttempt(attempt=first, why="a fire"))
    assert (out.attempt, out.counted) == (first, False)
    assert include_attempt(study, SettleAttempt(attempt=first, why="no fire")).counted
