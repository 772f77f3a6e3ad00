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
from study_attempts import AFTER, Acted, a_study, begin

from gistpoint.core.attempts.events import Crashed, EndReason, GiveUpCode, Pane, event_data
from gistpoint.core.outcomes import BackendRecord, RunStatus
from gistpoint.core.study.declaration import Quality
from gistpoint.core.study.flags import FLAGS, OF_PASSES, flags_of
from gistpoint.core.study.operations import StudyOperationKind
from gistpoint.core.study.progress import blinded
from gistpoint.core.study.rows import AttemptRow

ASKING = a_study(questionnaire=(AFTER,))
HONEST = {"seen_before": "no", "aids_ai": "no"}


def _look(acted: Acted) -> None:
    acted.attempt.call("read_file", {"file_path": "shop/prices.py"})


def _clean(acted: Acted) -> None:
    """Act without anything that could be flagged."""
    _look(acted)
    acted.clock.advance(40_000)
    acted.attempt.call("submit_attempt", {"func_code": REPAIR})
    acted.answer(HONEST)


def _not_isolated(acted: Acted) -> None:
    acted.memory.change(0, backend=msgspec.to_builtins(BackendRecord("plain", isolated=False)))
    _clean(acted)


def _wrong_protocol(acted: Acted) -> None:
    acted.memory.change(0, protocol_sha256="0" * 64)
    _clean(acted)


def _amended(acted: Acted) -> None:
    at = acted.clock.utc_ms() - 5
    acted.log.add("study", StudyOperationKind.AMENDED, "desk@bbbbbb", at=at, protocol="1" * 64)
    _clean(acted)


def _other_text(acted: Acted) -> None:
    acted.memory.change(0, brief="Do something else.")
    _clean(acted)


def _exposed(acted: Acted) -> None:
    acted.log.add("person:P07", StudyOperationKind.EXPOSED, source="shop", how="worked on it")
    _clean(acted)


def _seen(acted: Acted) -> None:
    _clean(acted)
    acted.answer(HONEST | {"seen_before": "yes"})


def _aid(acted: Acted) -> None:
    _clean(acted)
    acted.answer(HONEST | {"aids_ai": "yes"})


def _unattested(acted: Acted) -> None:
    _look(acted)
    acted.attempt.end(EndReason.FINAL_WRONG)


def _fast(acted: Acted) -> None:
    _look(acted)
    acted.clock.advance(29_000)
    acted.attempt.call("submit_attempt", {"func_code": REPAIR})
    acted.answer(HONEST)


def _idle(acted: Acted) -> None:
    acted.clock.advance(200_000)
    acted.attempt.ask_idle(acted.clock.mono_ms() - 150_000)
    acted.attempt.answer_idle(away=True)
    _clean(acted)


def _set_back(acted: Acted) -> None:
    acted.clock._utc -= 60_000
    _clean(acted)


def _slept(acted: Acted) -> None:
    acted.clock._utc += 60_000
    _clean(acted)


def _crashed(acted: Acted) -> None:
    acted.attempt.append(Crashed("ValueError", "no", "crash.log"))
    _clean(acted)


def _suspicious(acted: Acted) -> None:
    _look(acted)
    acted.clock.advance(40_000)
    acted.attempt.call("submit_attempt", {"func_code": SUSPICIOUS})
    acted.answer(HONEST)


def _pasted(acted: Acted) -> None:
    acted.attempt.pasted("x" * 81, outside=True)
    _clean(acted)


def _editor(acted: Acted) -> None:
    acted.attempt.use_affordance("external_editor")
    _clean(acted)


def _assistant(acted: Acted) -> None:
    acted.attempt.append(event_data("heartbeat", {}))
    number = len(acted.memory.events) - 1
    event = acted.memory.events[number]
    data = event_data("assist_answered", {"exchange": 1, "problem": "timed_out"})
    acted.memory.events[number] = replace(event, type="assist_answered", data=data)
    _clean(acted)


def _again(acted: Acted) -> None:
    runner = acted.attempt.judge.runner  # type: ignore[attr-defined]
    _look(acted)
    acted.clock.advance(40_000)
    runner.status = RunStatus.INFRASTRUCTURE
    acted.attempt.call("submit_attempt", {"func_code": REPAIR})
    runner.status = RunStatus.FINISHED
    acted.attempt.call("submit_attempt", {"func_code": REPAIR})
    acted.answer(HONEST)


def _blind(acted: Acted) -> None:
    acted.clock.advance(40_000)
    acted.attempt.call("read_file", {"file_path": "no/such.py"})
    acted.attempt.call("submit_attempt", {"func_code": REPAIR})
    acted.answer(HONEST)


def _gave_up(acted: Acted) -> None:
    acted.attempt.give_up(GiveUpCode.TOO_HARD)
    acted.answer(HONEST)


CASES: list[tuple[str, Callable[[Acted], None], Mapping[str, Any], tuple[str, ...]]] = [
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
    act: Callable[[Acted], None],
    known: Mapping[str, Any],
    events: tuple[str, ...],
) -> None:
    acted = begin(tmp_path, study=ASKING, runner=FakeRunner(CHECKS))
    act(acted)
    found = flags_of(acted.evidence(**known))
    assert [one.flag for one in found] == ([flag] if flag else [])
    types = {event.seq: event.type for event in acted.memory.events}
    assert tuple(types[seq] for one in found for seq in one.events) == events
    assert all(one.words for one in found)


def test_every_flag_is_shown_here() -> None:
    elsewhere = {"second_exposure"}
    assert {case[0] for case in CASES if case[0]} == set(FLAGS) - elsewhere


def _wrong(names: Mapping[str, Any]) -> None:
    raise AssertionError("wrong")


FAILING = dict.fromkeys(CHECKS, _wrong)


def _blinded_and_flagged(
    folder: Path, act: Callable[[Acted], None], known: Mapping[str, Any], checks: Mapping[str, Any]
) -> tuple[AttemptRow, set[str]]:
    """Return an attempt's blinded row in a study in which every flag excludes, and its flags."""
    quality = Quality(exclude_on=tuple(FLAGS))
    study = a_study(questionnaire=(AFTER,), quality=quality)
    acted = begin(folder, study=study, runner=FakeRunner(checks))
    act(acted)
    if not acted.attempt.state.ended:
        acted.attempt.end(EndReason.FINAL_WRONG)
    row = acted.row(**known)
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
    acted = begin(tmp_path)
    row = blinded(acted.row(), acted.study.quality)
    assert (row.counted, row.exclusion, row.end) == (False, "unfinished", "")


def test_the_flags_that_exclude_are_those_that_were_declared(tmp_path: Path) -> None:
    acted = begin(tmp_path, study=a_study(quality=Quality(exclude_on=("external_editor",))))
    _fast(acted)
    before = acted.row()
    assert (before.counted, [flag.flag for flag in before.flags]) == (True, ["fast"])
    acted.study = a_study(quality=Quality(exclude_on=("fast",)))
    after = acted.row()
    assert (after.counted, after.exclusion) == (False, "fast")
    assert msgspec.structs.replace(after, counted=True, exclusion="") == before


def test_a_paste_that_a_result_has_shown_is_no_flag(tmp_path: Path) -> None:
    acted = begin(tmp_path)
    _look(acted)
    shown = acted.attempt.state.calls[-1].text or ""
    acted.attempt.view(Pane.EDITOR)
    acted.attempt.pasted(shown[40:240], outside=False)
    acted.attempt.pasted("y" * 80, outside=True)
    acted.attempt.end(EndReason.FINAL_WRONG)
    assert flags_of(acted.evidence()) == ()


def test_answers_are_columns_and_none_for_what_was_declined(tmp_path: Path) -> None:
    acted = begin(tmp_path, study=ASKING)
    _clean(acted)
    acted.answer({"seen_before": None, "aids_ai": "no"})
    assert acted.row().answers == {"after.seen_before": None, "after.aids_ai": "no"}
