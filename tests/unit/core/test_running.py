"""Stages derived from the progress of long work, and the remaining time."""

from __future__ import annotations

from gistpoint.core.running import RunProgress, WorkStage, stages_after, time_left


def test_a_report_with_another_name_ends_the_stage_before_it() -> None:
    stages: tuple[WorkStage, ...] = ()
    for now, report in enumerate(
        [
            RunProgress("preparing", step="build"),
            RunProgress("running", 3, 9),
            RunProgress(step="prove"),
            RunProgress("running", 1, 4, step="prove"),
        ]
    ):
        stages = stages_after(stages, report, float(now))
    assert stages == (
        WorkStage("build", 0.0, "running", 3, 9, took=2.0),
        WorkStage("prove", 2.0, "running", 1, 4),
    )


def test_what_is_left_is_known_once_something_is_done() -> None:
    assert [time_left(10.0, done, 6 - done) for done in (0, 2, 6)] == [None, 20.0, 0.0]
