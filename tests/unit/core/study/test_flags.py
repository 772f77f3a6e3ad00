"""Each flag of an attempt: its causes and the events it names; no flag changes a number by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders import CHECKS, REPAIR, SUSPICIOUS
from fakes import FakeRunner
from study_attempts import AFTER, StudyAttempt, a_study, begin

from gistpoint.core.attempts.events import Crashed, EndReason, GiveUpCode, Pane, event_data
from gistpoint.core.outcomes import BackendRecord, RunStatus
from gistpoint.core.study.declaration import Quality
from gistpoint.core.study.flags import FLAGS, OF_PASSES, flags_of
from gistpoint.core.study.operations import StudyOperationKind
from gistpoint.core.study.progress import blinded
from gistpoint.core.study.rows import AttemptRow

ASKING = a_study(questionnaire=(AFTER,))
HONEST = {"seen_before": "no", "aids_ai": "no"}


def _look(begun: StudyAttempt) -> None:
    begun.attempt.call("read_file", {"file_path": "shop/prices.py"})


def _clean(begun: StudyAttempt) -> None:
    """Act without anything that could be flagged."""
    _look(begun)
    begun.clock.advance(40_000)
    begun.attempt.call("submit_attempt", {"func_code": REPAIR})
    begun.answer(HONEST)


def _not_isolated(begun: StudyAttempt) -> None:
    begun.memory.change(0, backend=msgspec.to_builtins(BackendRecord("plain", isolated=False)))
    _clean(begun)


def _wrong_protocol(begun: StudyAttempt) -> None:
    begun.memory.change(0, protocol_sha256="0" * 64)
    _clean(begun)


def _amended(begun: StudyAttempt) -> None:
    at = begun.clock.utc_ms() - 5
    begun.log.add("study", StudyOperationKind.AMENDED, "desk@bbbbbb", at=at, protocol="1" * 64)
    _clean(begun)


def _other_text(begun: StudyAttempt) -> None:
    begun.memory.change(0, brief="Do something else.")
    _clean(begun)


def _exposed(begun: StudyAttempt) -> None:
    begun.log.add("person:P07", StudyOperationKind.EXPOSED, source="shop", how="worked on it")
    _clean(begun)


def _seen(begun: StudyAttempt) -> None:
    _clean(begun)
    begun.answer(HONEST | {"seen_before": "yes"})


def _aid(begun: StudyAttempt) -> None:
    _clean(begun)
    begun.answer(HONEST | {"aids_ai": "yes"})


def _unattested(begun: StudyAttempt) -> None:
    _look(begun)
    begun.attempt.end(EndReason.FINAL_WRONG)


def _fast(begun: StudyAttempt) -> None:
    _look(begun)
    begun.clock.advance(29_000)
    begun.attempt.call("submit_attempt", {"func_code": REPAIR})
    begun.answer(HONEST)


def _idle(begun: StudyAttempt) -> None:
    begun.clock.advance(200_000)
    begun.attempt.ask_idle(begun.clock.mono_ms() - 150_000)
    begun.attempt.answer_idle(away=True)
    _clean(begun)


def _set_back(begun: StudyAttempt) -> None:
    begun.clock._utc -= 60_000
    _clean(begun)


def _slept(begun: StudyAttempt) -> None:
    begun.clock._utc += 60_000
    _clean(begun)


def _crashed(begun: StudyAttempt) -> None:
    begun.attempt.append(Crashed("ValueError", "no", "crash.log"))
    _clean(begun)


def _suspicious(begun: StudyAttempt) -> None:
    _look(begun)
    begun.clock.advance(40_000)
    begun.attempt.call("submit_attempt", {"func_code": SUSPICIOUS})
    begun.answer(HONEST)


def _pasted(begun: StudyAttempt) -> None:
    begun.attempt.pasted("x" * 81, outside=True)
    _clean(begun)


def _editor(begun: StudyAttempt) -> None:
    begun.attempt.use_affordance("external_editor")
    _clean(begun)


def _assistant(begun: StudyAttempt) -> None:
    begun.attempt.append(event_data("heartbeat", {}))
    number = len(begun.memory.events) - 1
    event = begun.memory.events[number]
    data = event_data("assist_answered", {"exchange": 1, "problem": "timed_out"})
    begun.memory.events[number] = replace(event, type="assist_answered", data=data)
    _clean(begun)


def _again(begun: StudyAttempt) -> None:
    runner = begun.attempt.judge.runner  # type: ignore[attr-defined]
    _look(begun)
    begun.clock.advance(40_000)
    runner.status = RunStatus.INFRASTRUCTURE
    begun.attempt.call("submit_attempt", {"func_code": REPAIR})
    runner.status = RunStatus.FINISHED
    begun.attempt.call("submit_attempt", {"func_code": REPAIR})
    begun.answer(HONEST)


def _blind(begun: StudyAttempt) -> None:
    begun.clock.advance(40_000)
    begun.attempt.call("read_file", {"file_path": "no/such.py"})
    begun.attempt.call("submit_attempt", {"func_code": REPAIR})
    begun.answer(HONEST)


def _gave_up(begun: StudyAttempt) -> None:
    begun.attempt.give_up(GiveUpCode.TOO_HARD)
    begun.answer(HONEST)


CASES: list[tuple[str, Callable[[StudyAttempt], None], Mapping[str, Any], tuple[str, ...]]] = [
    ("", _clean, {}, ()),
    ("chain_broken", _clean, {"fault": "Its chain of hashes breaks at line 3."}, ("attempt_ended",)),
    ("not_isolated", _not_isolated, {}, ("attempt_started",)),
    ("wrong_protocol", _wrong_protocol, {}, ("attempt_started",)),
    ("wrong_protocol", _amended, {}, ("attempt_started",)),
    ("wrong_brief", _clean, {"brief_sha256": "0" * 64}, ("attempt_started",)),
    ("wrong_brief", _other_text, {}, ("attempt_started",)),
    ("wrong_tools", _clean, {"tools_sha256": "0" * 64}, ("attempt_started",)),
    ("exposed", _exposed, {}, ()),
    ("exposed", _seen, {}, ()),
    ("aid_admitted", _aid, {}, ()),
    ("rules_unattested", _unattested, {}, ()),
    ("fast", _fast, {}, ("score",)),
    ("idle_share", _idle, {}, ("idle_prompt", "idle_prompt")),
    ("clock_jump", _set_back, {}, ("tool_call",)),
    ("slept", _slept, {}, ("tool_call",)),
    ("crashed", _crashed, {}, ("crash",)),
    ("suspicious_names", _suspicious, {}, ("test_run",)),
    ("large_paste", _pasted, {}, ("comfort",)),
    ("external_editor", _editor, {}, ("comfort",)),
    ("assist_failed", _assistant, {}, ("assist_answered",)),
    ("infrastructure_retry", _again, {}, ("test_run",)),
    ("low_effort", _blind, {}, ("submit",)),
    ("low_effort", _gave_up, {}, ("attempt_ended",)),
]


@pytest.mark.parametrize(
    ("flag", "act", "known", "events"), CASES, ids=[f"{c[0]}{c[1].__name__}" for c in CASES]
)
def test_a_flag_and_its_events(
    tmp_path: Path,
    flag: str,
    act: Callable[[StudyAttempt], None],
    known: Mapping[str, Any],
    events: tuple[str, ...],
) -> None:
    begun = begin(tmp_path, study=ASKING, runner=FakeRunner(CHECKS))
    act(begun)
    found = flags_of(begun.evidence(**known))
    assert [one.flag for one in found] == ([flag] if flag else [])
    types = {event.seq: event.type for event in begun.memory.events}
    assert tuple(types[seq] for one in found for seq in one.events) == events
    assert all(one.words for one in found)


def test_every_flag_is_shown_here() -> None:
    elsewhere = {"second_exposure"}
    assert {case[0] for case in CASES if case[0]} == set(FLAGS) - elsewhere


def _wrong(names: Mapping[str, Any]) -> None:
    raise AssertionError("wrong")


FAILING = dict.fromkeys(CHECKS, _wrong)


def _blinded_and_flagged(
    folder: Path, act: Callable[[StudyAttempt], None], known: Mapping[str, Any], checks: Mapping[str, Any]
) -> tuple[AttemptRow, set[str]]:
    """Return an attempt's blinded row in a study in which every flag excludes, and its flags."""
    quality = Quality(exclude_on=tuple(FLAGS))
    study = a_study(questionnaire=(AFTER,), quality=quality)
    begun = begin(folder, study=study, runner=FakeRunner(checks))
    act(begun)
    if not begun.attempt.state.ended:
        begun.attempt.end(EndReason.FINAL_WRONG)
    row = begun.row(**known)
    return blinded(row, quality), {flag.flag for flag in row.flags}


def test_a_blinded_row_is_the_same_whether_the_attempt_is_solved(tmp_path: Path) -> None:
    differing: set[str] = set()
    for number, (_, act, known, _) in enumerate(CASES):
        solved, flags = _blinded_and_flagged(tmp_path / f"{number}", act, known, CHECKS)
        failed, others = _blinded_and_flagged(tmp_path / f"{number}-failed", act, known, FAILING)
        assert solved == failed, act.__name__
        differing |= flags ^ others
    assert differing == OF_PASSES


def test_an_unfinished_attempt_remains_unfinished_when_blinded(tmp_path: Path) -> None:
    begun = begin(tmp_path)
    row = blinded(begun.row(), begun.study.quality)
    assert (row.counted, row.exclusion, row.end) == (False, "unfinished", "")


def test_the_flags_that_exclude_are_those_that_were_declared(tmp_path: Path) -> None:
    begun = begin(tmp_path, study=a_study(quality=Quality(exclude_on=("external_editor",))))
    _fast(begun)
    before = begun.row()
    assert (before.counted, [flag.flag for flag in before.flags]) == (True, ["fast"])
    begun.study = a_study(quality=Quality(exclude_on=("fast",)))
    after = begun.row()
    assert (after.counted, after.exclusion) == (False, "fast")
    assert msgspec.structs.replace(after, counted=True, exclusion="") == before


@pytest.mark.parametrize("ms", [400, 28_600, 29_499, 29_500, 29_999])
def test_a_fast_attempt_is_not_said_to_have_taken_as_long_as_the_least_time(tmp_path: Path, ms: int) -> None:
    begun = begin(tmp_path, study=ASKING, runner=FakeRunner(CHECKS))
    _look(begun)
    begun.clock.advance(ms)
    begun.attempt.call("submit_attempt", {"func_code": REPAIR})
    begun.answer(HONEST)
    (fast,) = flags_of(begun.evidence())
    assert fast.words == f"Solved after {ms // 1000} s of work, less than 30 s."


def test_a_paste_that_a_result_has_shown_is_no_flag(tmp_path: Path) -> None:
    begun = begin(tmp_path)
    _look(begun)
    shown = begun.attempt.state.calls[-1].text or ""
    begun.attempt.view(Pane.EDITOR)
    begun.attempt.pasted(shown[40:240], outside=False)
    begun.attempt.pasted("y" * 80, outside=True)
    begun.attempt.end(EndReason.FINAL_WRONG)
    assert flags_of(begun.evidence()) == ()


def test_answers_are_columns_and_none_for_what_was_declined(tmp_path: Path) -> None:
    begun = begin(tmp_path, study=ASKING)
    _clean(begun)
    begun.answer({"seen_before": None, "aids_ai": "no"})
    assert begun.row().answers == {"after.seen_before": None, "after.aids_ai": "no"}
