"""Finding and scoring corruptions is shown while it lasts, bounded, timed, and can be stopped."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from gistpoint.core.code.index import index_source
from gistpoint.core.corruption.corruptions import enumerate_corruptions
from gistpoint.core.corruption.gates import GateRefusal
from gistpoint.core.corruption.subject import vocabulary_of
from gistpoint.core.errors import CancelledError
from gistpoint.core.generation import progress
from gistpoint.core.generation.candidates import CorruptionCandidate
from gistpoint.core.generation.progress import CampaignProgress, TrialProgress
from gistpoint.core.generation.trials import trial as trials
from gistpoint.core.generation.trials.trial import CandidateDropped, CandidateTrial
from gistpoint.core.generation.verdicts import CandidateVerdict, Counts, Reason
from gistpoint.core.running import CancelToken, RunContext, WorkStage
from gistpoint.tui.campaign_view import CampaignShown, stage_lines, work_lines
from gistpoint.tui.commands.set_results import share_words

CODE = b'''
def total(prices, discount, limit):
    """Return the sum of prices within a limit."""
    found = 0
    for price in prices:
        if price is None:
            continue
        if price > limit and limit:
            price = limit
        found += max(price - discount, 0)
    if not found:
        return None
    return found
'''


class Board:
    def __init__(self) -> None:
        self.posted: list[TrialProgress] = []

    def post(self, key: str, progress: TrialProgress) -> None:
        self.posted.append(progress)


def a_trial(cancel: CancelToken | None = None) -> tuple[CandidateTrial, Board]:
    board = Board()
    run = RunContext(cancel or CancelToken())
    context: Any = SimpleNamespace(library=None, settings=None, run=run, board=board)
    return CandidateTrial(context, CorruptionCandidate("shop.py::total", "key")), board


def test_what_is_read_is_reported_counted_and_may_be_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "_REPORTED_S", 0.0)
    cancel = CancelToken()
    trial, board = a_trial(cancel)
    with trial.reading("reading corruptions") as on_reading:
        on_reading(0, 40)
        time.sleep(0.05)
        on_reading(12, 40)
    shown = [progress.family for progress in board.posted]
    assert shown == [
        "",
        "reading corruptions",
        "reading corruptions, 0 of 40",
        "reading corruptions, 12 of 40",
    ]
    verdict = trial.dropped(CandidateDropped(Reason.AT_A_GLANCE))
    assert verdict.cost.reading >= 0.05
    assert CandidateVerdict.from_json(verdict.to_json()) == verdict
    assert Counts([verdict, verdict]).costs(10.0)["reading_seconds"] == pytest.approx(
        2 * verdict.cost.reading, abs=0.02
    )
    cancel.cancel()
    with trial.reading("reading corruptions") as on_reading, pytest.raises(CancelledError):
        on_reading(1, 40)


def test_reports_on_reading_are_few() -> None:
    trial, board = a_trial()
    with trial.reading("reading corruptions") as on_reading:
        for done in range(10_000):
            on_reading(done, 10_000)
    assert len(board.posted) < 20


def test_a_verdict_of_an_earlier_version_has_no_seconds_of_reading() -> None:
    stored = a_trial()[0].dropped(CandidateDropped(Reason.AT_A_GLANCE)).to_json()
    del stored["cost"]["reading"]
    assert CandidateVerdict.from_json(stored).cost.reading == 0


def test_corruptions_are_found_within_a_bound_the_likeliest_first() -> None:
    index = index_source("shop.py", CODE)
    definition, vocabulary = index.get("total"), vocabulary_of([index])
    seen: list[tuple[int, int]] = []
    everything = enumerate_corruptions(
        index, definition, vocabulary, on_reading=lambda done, total: seen.append((done, total))
    )
    proposed = seen[0][1]
    assert seen == [(number, proposed) for number in range(proposed)]
    assert enumerate_corruptions(index, definition, vocabulary, most=proposed) == everything
    some = enumerate_corruptions(index, definition, vocabulary, most=3)
    assert some.dropped[GateRefusal.BEYOND_THE_MOST_LIKELY] == proposed - 3
    assert some.kept == everything.kept[: len(some.kept)]


def test_the_screen_says_what_is_read_before_the_first_try() -> None:
    trial = TrialProgress("1", "shop.py::total", family="reading corruptions, 12 of 40", seconds=9.0)
    report = CampaignProgress(source="shop", wanted=3, candidates=9, trials=(trial,))
    (line,) = work_lines(CampaignShown(report), 100, most=3)
    assert line == "shop.py::total   reading corruptions, 12 of 40   0:09, 0 tests"


@pytest.mark.parametrize(
    ("share", "words"), [(None, ""), (0.0, "0"), (0.02, "1/50"), (0.4, "1/2"), (0.9, "0.9"), (3.14, "3.1")]
)
def test_a_probe_s_share_of_the_suite_is_never_one_of_nothing(share: float | None, words: str) -> None:
    assert share_words(share) == words


# The remaining time


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(progress.time, "monotonic", lambda: self.now)


def decided(number: int) -> CandidateVerdict:
    return CandidateVerdict(f"key {number}", (f"shop.py::f{number}",), Reason.NONE_GOOD)


def remaining_after(
    monkeypatch: pytest.MonkeyPatch, verdicts: int, seconds: float, running: float, accepted: int = 0
) -> float | None:
    """Return the estimate with `verdicts` of 10 candidates decided, and two that have run for `running` s."""
    clock = Clock(monkeypatch)
    found = {f"key {number}": decided(number) for number in range(verdicts)}
    state: Any = SimpleNamespace(verdicts={})
    meter = progress.CampaignMeter("shop", 5, 10, state)
    meter.report([], 0, {}, ())
    state.verdicts = found
    clock.now = seconds
    two = tuple(TrialProgress(str(n), f"shop.py::g{n}", seconds=running) for n in range(2))
    report = meter.report(list(found.values()), accepted, {}, two)
    assert report is not None
    return report.remaining


@pytest.mark.parametrize(
    ("verdicts", "seconds", "running", "left"),
    [
        (0, 60.0, 1.0, None),
        (2, 60.0, 1.0, None),  # two of ten do not predict the others
        (3, 60.0, 1.0, 140.0),
        (8, 60.0, 1.0, 15.0),
        (8, 600.0, 580.0, 580.0),  # jobs that have run for minutes will not end in the average time
        (10, 60.0, 1.0, 1.0),
    ],
)
def test_the_remaining_time_comes_from_what_was_measured(
    monkeypatch: pytest.MonkeyPatch, verdicts: int, seconds: float, running: float, left: float | None
) -> None:
    assert remaining_after(monkeypatch, verdicts, seconds, running) == (left and pytest.approx(left))


def test_one_kept_task_does_not_tell_how_long_the_others_take(monkeypatch: pytest.MonkeyPatch) -> None:
    assert remaining_after(monkeypatch, 5, 50.0, 1.0, accepted=1) == pytest.approx(50.0)
    assert remaining_after(monkeypatch, 5, 50.0, 1.0, accepted=4) == pytest.approx(12.5)
    assert remaining_after(monkeypatch, 5, 50.0, 1.0, accepted=5) == 0


@pytest.mark.parametrize("width", [60, 80, 160])
def test_the_times_of_stages_begin_in_one_column(width: int) -> None:
    names = ["fetching natsort==8.4.0", "running the suite on the original, 3 of 3, its tree read-only", "b"]
    stages = tuple(WorkStage(name, 10.0 * n, took=65.0 if n < 2 else None) for n, name in enumerate(names))
    lines = stage_lines(CampaignShown(stages=stages), width, 85.0, most=5)
    assert len({line.index("1:05") for line in lines}) == 1
    assert all(len(line) <= width for line in lines)
