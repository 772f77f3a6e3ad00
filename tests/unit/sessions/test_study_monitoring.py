"""Alerts while a study runs: the audit's findings, flags, and tasks whose time has run out."""

from __future__ import annotations

from pathlib import Path

from fakes import FakeClock
from small_study import do, opened, participation, study_at, take_part
from study_folders import Machine

from gistpoint.core.study.steps import ReadyStep
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.monitoring import Monitor


def alerts(study: StudyFolder, *, hidden: bool = True) -> dict[str, str]:
    return {alert.name: alert.words for alert in Monitor(study, hidden=hidden).read().alerts}


def test_what_needs_attention_is_an_alert_and_no_outcome_is(tmp_path: Path) -> None:
    machine = Machine.at(tmp_path / "home", FakeClock(1_790_000_000_000))
    design = {"tasks_per_person": 2, "per_source": 0, "return_after_hours": 24}
    root = study_at(tmp_path / "study", {"design": design})
    opened(machine.open(root), "P1", "P2", "P3")
    take_part(participation(machine, root, "P1"))
    second = participation(machine, root, "P2")
    while not isinstance(step := second.step(), ReadyStep):
        assert do(second, step)
    study = machine.open(root)
    assert "fast" in alerts(study, hidden=False)
    assert alerts(study) == {}
    found = Monitor(study, hidden=True).read().progress
    assert [(one.code, one.state) for one in found.not_begun] == [("P2", "planned"), ("P3", "enrolled")]
    clock = machine.clock
    assert isinstance(clock, FakeClock)
    clock.advance(25 * 3_600_000)
    assert alerts(study) == {"timed_out": f"2 open tasks timed out: gistpoint study return {root} --late"}
    path = next((root / "log").glob("P1@*.jsonl"))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3] + lines[4:]))
    assert "line_missing" in alerts(study)


def test_a_repeated_reading_audits_again_only_after_a_minute(tmp_path: Path) -> None:
    machine = Machine.at(tmp_path / "home", FakeClock(1_790_000_000_000))
    study = opened(machine.open(study_at(tmp_path / "study")), "P1")
    monitor = Monitor(study, hidden=True)
    assert monitor.read().alerts == ()
    path = next((study.root / "log").glob("P1@*.jsonl"))
    path.write_bytes(path.read_bytes().replace(b'"enrolled"', b'"enrolles"'))
    clock = machine.clock
    assert isinstance(clock, FakeClock)
    assert [alert.kind for alert in monitor.read().alerts] == []
    clock.advance(60_000)
    assert "operation_changed" in {alert.name for alert in monitor.read().alerts}
