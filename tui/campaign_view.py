"""The progress of making tasks: reports from the worker thread, and text for the screen."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from gistpoint.core.generation.progress import CampaignProgress, KeptTask, TrialProgress
from gistpoint.core.readable import duration
from gistpoint.core.running import RunProgress, WorkStage, stages_after, time_left
from gistpoint.core.text import plural, shortened, visible_line
from gistpoint.tui import signs
from gistpoint.tui.tables import Column
from gistpoint.tui.widgets.charts import gauge

_NOTES = 200
_MOST_REASONS = 6
"""The maximum number of reasons that are listed, most frequent first."""
_LEAST_NAME = 30
"""The smallest number of cells for the names of stages."""
_TIMES_WIDTH = 24
"""The number of cells that are left for times and counts."""
_NOT_REJECTED = "good"
"""The name under which corruptions that were not rejected are counted."""


@dataclass(frozen=True, slots=True)
class CampaignShown:
    """The state of the work at one moment."""

    campaign: CampaignProgress | None = None
    """The latest report on the current source; None until there is one."""
    before: tuple[CampaignProgress, ...] = ()
    """The last report on each finished source."""
    stages: tuple[WorkStage, ...] = ()
    """The stages before functions are tried, with the current one last; empty while functions are tried."""
    notes: tuple[str, ...] = ()
    """Sentences about results, with the latest one last."""
    ended: str = ""
    """The end of the work in words; empty while it is under way."""

    @property
    def source(self) -> str:
        """The current library; empty before it is known."""
        return self.campaign.source if self.campaign else ""

    @property
    def kept(self) -> list[KeptTask]:
        """The tasks kept so far, with those of finished sources first."""
        reports = (*self.before, *([self.campaign] if self.campaign else []))
        return [task for report in reports for task in report.kept]


@dataclass(slots=True)
class CampaignView:
    """Receives progress reports and keeps the state to show. Its methods may be called from any thread."""

    now: Callable[[], float] = time.monotonic
    _shown: CampaignShown = field(default_factory=CampaignShown)
    _notes: deque[str] = field(default_factory=lambda: deque(maxlen=_NOTES))
    _done: dict[str, CampaignProgress] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def shown(self) -> CampaignShown:
        """The current state, which is the same object until the next report."""
        return self._shown

    def take(self, progress: RunProgress) -> None:
        """Update the state to show from a progress report."""
        with self._lock:
            now = self._shown
            campaign, stages = now.campaign, now.stages
            if isinstance(progress, CampaignProgress):
                if campaign is not None and campaign.source != progress.source:
                    self._done[campaign.source] = campaign
                campaign, stages = progress, ()
            elif not progress.note:
                stages = stages_after(stages, progress, self.now())
            if progress.note:
                self._notes.append(progress.note.strip())
            before = tuple(
                report for source, report in self._done.items() if campaign and source != campaign.source
            )
            self._shown = CampaignShown(campaign, before, stages, tuple(self._notes))

    def end(self, how: str) -> None:
        """Record that the work and its current stage have ended; `how` is the end in words."""
        with self._lock:
            stages = self._shown.stages
            if stages:
                stages = (*stages[:-1], replace(stages[-1], took=self.now() - stages[-1].began))
            self._shown = replace(self._shown, stages=stages, ended=how)


def kept_words(shown: CampaignShown) -> str:
    """Return how many of the wanted tasks are kept; empty until a source is known."""
    report = shown.campaign
    return "" if report is None else f"{len(report.kept)} of {report.wanted} kept"


def time_words(shown: CampaignShown) -> str:
    """Return a line with the elapsed time and, while the work is under way, the remaining time and the pace.

    The pace is in tests per second. Until a source is known, the line is `shown.ended`.
    """
    report = shown.campaign
    if report is None:
        return shown.ended
    if shown.ended:
        return f"{shown.ended} after {duration(1000 * report.elapsed)}"
    left = "not known yet" if report.remaining is None else f"about {duration(1000 * report.remaining)}"
    return (
        f"elapsed {duration(1000 * report.elapsed)} · remaining {left} · {report.tests_per_second:.0f} tests"
        " a second"
    )


def stage_lines(shown: CampaignShown, width: int, now: float, *, most: int) -> list[str]:
    """Return a bar for the functions tried, or at most `most` lines for the stages before that."""
    report = shown.campaign
    if report is not None and not shown.stages:
        words = f" {report.tried} of {report.candidates} functions tried"
        return [gauge(report.tried, report.candidates, max(0, min(60, width - len(words)))) + words]
    stages = shown.stages[-most:]
    names = [visible_line(stage.name) or "beginning" for stage in stages]
    # All times begin in one column, if the longest name leaves room for them.
    cells = max(_LEAST_NAME, min(width - _TIMES_WIDTH, max(map(len, names), default=0)))
    return [
        _stage_words(stage, f"{shortened(name, cells):<{cells}}", width, now)
        for stage, name in zip(stages, names, strict=True)
    ]


def _stage_words(stage: WorkStage, name: str, width: int, now: float) -> str:
    if stage.took is not None:
        return f"{signs.GOOD} {name} {duration(1000 * stage.took)}"
    elapsed = now - stage.began
    words = f"{signs.HERE} {name} {duration(1000 * elapsed)}"
    if not stage.total:
        return f"{words} {visible_line(stage.phase)}".rstrip()
    counts = f" {stage.done}/{stage.total}"
    left = time_left(elapsed, stage.done, stage.total - stage.done)
    if left is not None:
        counts += f", about {duration(1000 * left)} left"
    return (
        f"{words}"
        f" {gauge(stage.done, stage.total, max(0, min(40, width - len(words) - len(counts) - 1)))}{counts}"
    )


def work_lines(shown: CampaignShown, width: int, *, most: int) -> list[str]:
    """Return a line for each of the first `most` functions being tried; the last also counts the others.

    Empty while no function is being tried, such as during an earlier stage.
    """
    report = shown.campaign
    if shown.ended or report is None or shown.stages or not report.trials:
        return []
    more = len(report.trials) - most
    rest = f"   and {more} more" if more > 1 else "   and one more" if more == 1 else ""
    trials = report.trials[:most]
    return [
        *(_trial_words(trial, width) for trial in trials[:-1]),
        _trial_words(trials[-1], width - len(rest)) + rest,
    ]


def _trial_words(trial: TrialProgress, width: int) -> str:
    """Return the line for a trial, in `width` characters if possible.

    If it is longer, the latest stage and then the time and the tests are left out, and the start of the
    function's name is cut off.
    """
    parts = [visible_line(trial.function)]
    if trial.attempt:
        parts.append(f"try {trial.attempt}{f', {spaced(trial.family)}' if trial.family else ''}")
    elif trial.family:
        parts.append(spaced(trial.family))
    parts.append(f"{duration(1000 * trial.seconds)}, {plural(trial.tests, 'test')}")
    if trial.latest:
        parts.append(f"last: {visible_line(spaced(trial.latest))}")
    while len(parts) > 2 and len("   ".join(parts)) > width:
        parts.pop()
    room = width - len("   ".join(["", *parts[1:]]))
    if len(parts[0]) > room > 1:
        parts[0] = f"…{parts[0][1 - room :]}"
    return "   ".join(parts)


def dropped_lines(shown: CampaignShown) -> list[str]:
    """Return lines about the rejected functions and corruptions, the most frequent reasons first."""
    report = shown.campaign
    if report is None:
        return []
    rejected = (("functions", report.dropped), ("corruptions", report.corruptions))
    return [f"{what}: {_reasons(counts)}" for what, counts in rejected if counts]


def _reasons(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    listed = [
        f"{count} {visible_line(spaced(reason))}"
        for reason, count in ordered
        if count and reason != _NOT_REJECTED
    ]
    rest = [f"{len(listed) - _MOST_REASONS} more reasons"] if len(listed) > _MOST_REASONS else []
    return ", ".join([*listed[:_MOST_REASONS], *rest])


def spaced(name: str) -> str:
    """Return a stored name with spaces instead of underscores."""
    return name.replace("_", " ")


def _names(task: KeptTask) -> str:
    return " + ".join(task.functions)


def _glance(task: KeptTask) -> str:
    return "" if task.glance is None else f"{task.glance:.2f}"


KEPT_COLUMNS: tuple[Column[KeptTask], ...] = (
    Column("id", lambda task: task.id[:4], width=4, rank=1),
    Column("fail", lambda task: str(task.failing), value=lambda task: task.failing, right=True, rank=2),
    Column("glance", _glance, value=lambda task: task.glance or 0.0, right=True, rank=3),
    Column("in place of", lambda task: task.replaces[:4]),
    Column("functions", _names, rank=4, least=16, keeps_end=True),
    Column("task", lambda task: task.title, least=16),
)
"""The columns for the kept tasks."""
