"""The findings of `study check` before anybody is invited, beyond faults."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from builders import build_task
from small_study import study_at
from study_folders import MINIMAL, Machine, declare

from gistpoint.core.study.operations import ORGANISER, STUDY, PowerRecorded, StudyOperationKind
from gistpoint.core.tasks.leaks import CheckFinding
from gistpoint.core.tasks.model import Mode
from gistpoint.sessions.studies.course import preregistration
from gistpoint.sessions.studies.readiness import readiness


def found(machine: Machine, root: Path) -> dict[str, CheckFinding]:
    return {finding.name: finding for finding in readiness(machine.open(root))}


def test_tasks_that_only_this_machine_has_are_named(tmp_path: Path) -> None:
    machine = Machine.at(tmp_path / "home")
    root = study_at(tmp_path / "study")
    assert not found(machine, root)["portability"].reduced
    task = build_task(machine.locations.tasks, Mode.REMOVE, library="elsewhere")
    listed = declare(tmp_path / "listed", {"tasks": "tasks.txt"}, tasks=False)
    (listed / "tasks.txt").write_text(f"{task.id}\n")
    portability = found(machine, listed)["portability"]
    assert portability.reduced
    assert portability.passed
    assert task.id[:12] in portability.detail
    assert "only this machine has 1 task" in portability.detail
    (listed / "own").mkdir()
    shutil.copytree(task.folder, listed / "own" / task.id)
    (listed / "tasks.txt").write_text(f"own/{task.id}\n")
    assert not found(machine, listed)["portability"].reduced


def limited(tmp_path: Path, name: str, condition: dict[str, Any]) -> CheckFinding:
    root = study_at(tmp_path / name, {"condition": [{"id": "alone", **condition}]})
    return found(Machine.at(tmp_path / "home"), root)["time limit"]


def test_a_condition_without_a_limit_of_time_is_named(tmp_path: Path) -> None:
    assert not limited(tmp_path, "a", {"time_limit_s": 1800}).reduced
    without = limited(tmp_path, "b", {})
    assert without.reduced
    assert "4 tasks of 4 in condition 'alone'" in without.detail


def test_a_thin_contrast_says_what_is_short(tmp_path: Path) -> None:
    two = {"condition": [{"id": "alone"}, {"id": "other"}]}
    thin = found(Machine.at(tmp_path / "home"), study_at(tmp_path / "study", two))["contrast"]
    assert thin.reduced
    # 4 tasks x 5 attempts are 20 on each side, by (2 x 20) / 2 people.
    assert "attempts on each side" not in thin.detail
    assert "4 tasks, fewer than 8" in thin.detail
    fewer = {**two, "design": {"tasks_per_person": 1, "target_per_task": 2, "conditions": "within"}}
    worse = found(Machine.at(tmp_path / "home"), study_at(tmp_path / "worse", fewer))["contrast"]
    assert "8 attempts on each side, fewer than 20" in worse.detail
    assert "too few tasks per person to meet every condition" in worse.detail


def test_a_consent_without_controller_version_or_recipient_of_the_chat_is_named(tmp_path: Path) -> None:
    chat = {"id": "chat", "assistance": "chat", "chat": {"model": "model-x"}}
    root = study_at(tmp_path / "study", {"condition": [chat]})
    consent = found(Machine.at(tmp_path / "home"), root)["consent"]
    assert consent.reduced
    for key in ("texts.consent_version", "privacy.controller", "privacy.chat_recipient", "[tasks]"):
        assert key in consent.detail
    texts = {**MINIMAL["texts"], "consent_version": "2", "consent_items": ["[required] Yes", "[tasks] Reuse"]}
    privacy = {"contact": "a", "controller": "b", "retention_days": 9, "chat_recipient": "c"}
    whole = study_at(tmp_path / "whole", {"condition": [chat], "texts": texts, "privacy": privacy})
    assert not found(Machine.at(tmp_path / "home"), whole)["consent"].reduced


def test_a_preregistration_carries_the_figures_of_the_last_power_run(tmp_path: Path) -> None:
    study = Machine.at(tmp_path / "home").open(study_at(tmp_path / "study"))
    assert "the precision that the design promises" in preregistration(study)
    for half_width in (0.4, 0.257):
        figure = {"people": 12, "each": 6, "attempts": 72, "half_width": half_width, "power": None}
        assumed = {"ability": 0.8, "effect": None}
        data = PowerRecorded(what="share solved", assumed=assumed, figures=(figure,))
        study.record(ORGANISER, STUDY, StudyOperationKind.POWER, data)
    text = preregistration(study)
    assert "people 12, each 6, attempts 72, half width 0.257" in text
    assert "ability 0.8" in text
    assert "the precision that the design promises" not in text
    assert "0.4" not in text


def test_a_primary_contrast_of_times_needs_two_conditions_of_people(tmp_path: Path) -> None:
    machine = Machine.at(tmp_path / "home")
    solver = [{"name": "m", "runs": ["runs/*"], "condition": "alone"}]
    for n, (primary, contrast, fault) in enumerate(
        [
            ("time_ratio", ["alone", "m"], True),
            ("time_to_solve", ["people", "m"], True),
            ("solve_rate", ["people", "m"], False),
            ("solve_rate", ["alone", "m"], False),
        ]
    ):
        protocol = {"primary": primary, "primary_contrast": contrast}
        root = declare(tmp_path / f"study{n}", {"protocol": protocol, "solver": solver})
        finding = found(machine, root).get("primary contrast")
        assert (finding is not None and not finding.passed) == fault
