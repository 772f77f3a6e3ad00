"""What is shown while tasks are made: the reports of the work, taken on its thread, in words."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gistpoint.core.generation.progress import CampaignProgress, KeptTask, TrialProgress
from gistpoint.core.running import RunProgress
from gistpoint.core.text import visible_line
from gistpoint.tui.tables import Column
from gistpoint.tui.view_models import duration

_NOTES = 200
_GOOD = "good"
"""What corruptions are counted under that came to be good: they were not thrown away."""


@dataclass(frozen=True, slots=True)
class CampaignShown:
    """The state of the work at one moment."""

    campaign: CampaignProgress | None = None
    """Of the source that is worked on; None before the first one is known."""
    before: tuple[CampaignProgress, ...] = ()
    """The last reports on the sources that are done."""
    step: str = ""
    """The step under way, before functions are tried."""
    phase: str = ""
    notes: tuple[str, ...] = ()
    """Sentences on results, the latest last."""
    ended: str = ""
    """How the work ended; empty as long as it goes on."""

    @property
    def kept(self) -> list[KeptTask]:
        """The tasks that are written, those of sources that are done first."""
        reports = (*self.before, *([self.campaign] if self.campaign else []))
        return [task for report in reports for task in report.kept]


@dataclass(slots=True)
class CampaignView:
    """Takes the reports of the work. Any thread may call any method."""

    _shown: CampaignShown = field(default_factory=CampaignShown)
    _notes: deque[str] = field(default_factory=lambda: deque(maxlen=_NOTES))
    _done: dict[str, CampaignProgress] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def shown(self) -> CampaignShown:
        """The state now; the same object until a report comes."""
        return self._shown

    def take(self, progress: RunProgress) -> None:
        """Take a report."""
        with self._lock:
            now = self._shown
            campaign, step, phase = now.campaign, now.step, now.phase
            if isinstance(progress, CampaignProgress):
                if campaign is not None and campaign.source != progress.source:
                    self._done[campaign.source] = campaign
                campaign, step, phase = progress, "", ""
            elif not progress.note:
                step = progress.step or step
                phase = f"{progress.done}/{progress.total}" if progress.total else progress.phase
            if progress.note:
                self._notes.append(progress.note.strip())
            before = tuple(report for source, report in self._done.items() if campaign and source != campaign.source)
            self._shown = CampaignShown(campaign, before, step, phase, tuple(self._notes))

    def end(self, how: str) -> None:
        """Take that the work has ended; the last state stays."""
        with self._lock:
            self._shown = replace(self._shown, ended=how)


def _time(seconds: float) -> str:
    return duration(round(seconds * 1000))


def title_words(shown: CampaignShown) -> str:
    """Return how far the work is, in one line."""
    report = shown.campaign
    if report is None:
        return f"Making tasks   {shown.ended}".strip()
    parts = [visible_line(report.source), f"{len(report.kept)} of {report.wanted} kept"]
    return "   ".join([*parts, f"{report.tried} of {report.candidates} functions tried"])


def time_words(shown: CampaignShown) -> str:
    """Return the time so far and what is left of it, in one line; empty before a source is known."""
    report = shown.campaign
    if report is None:
        return ""
    if shown.ended:
        return f"{shown.ended} after {_time(report.elapsed)}"
    left = "not known yet" if report.remaining is None else f"about {_time(report.remaining)}"
    return f"elapsed {_time(report.elapsed)}   remaining {left}   {report.tests_per_second:.0f} tests a second"


def work_lines(shown: CampaignShown, *, most: int) -> list[str]:
    """Return what is being done now: a line for each function that is tried, at most `most`; else the step."""
    report = shown.campaign
    if shown.ended:
        return []
    if report is None or shown.step or not report.trials:
        words = " ".join(filter(None, (shown.step, shown.phase)))
        return [f"  {visible_line(words)}"] if words else []
    lines = [f"  {_trial_words(trial)}" for trial in report.trials[:most]]
    if (more := len(report.trials) - most) > 0:
        lines[-1] += f"   and {more} more" if more > 1 else "   and one more"
    return lines


def _trial_words(trial: TrialProgress) -> str:
    parts = [visible_line(trial.function)]
    if trial.attempt:
        parts.append(f"try {trial.attempt}{f', {spaced(trial.family)}' if trial.family else ''}")
    parts.append(f"{_time(trial.seconds)}, {trial.tests} tests")
    if trial.latest:
        parts.append(f"last: {visible_line(spaced(trial.latest))}")
    return "   ".join(parts)


def dropped_lines(shown: CampaignShown) -> list[str]:
    """Return what was thrown away and why, functions and corruptions, the most frequent reason first."""
    report = shown.campaign
    if report is None:
        return []
    told = (("functions", report.dropped), ("corruptions", report.corruptions))
    return [f"  {what}: {_reasons(counts)}" for what, counts in told if counts]


def _reasons(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(
        f"{count} {visible_line(spaced(reason))}" for reason, count in ordered if count and reason != _GOOD
    )


def spaced(name: str) -> str:
    """Return a stored name as people read it."""
    return name.replace("_", " ")


def _names(task: KeptTask) -> str:
    return " + ".join(task.functions)


def _glance(task: KeptTask) -> str:
    return "" if task.glance is None else f"{task.glance:.2f}"


KEPT_COLUMNS: tuple[Column[KeptTask], ...] = (
    Column("task", lambda task: task.id[:12], width=12, rank=1),
    Column("fail", lambda task: str(task.failing), value=lambda task: task.failing, right=True, width=5, rank=2),
    Column("glance", _glance, value=lambda task: task.glance or 0.0, right=True, width=6, rank=3),
    Column("functions", _names, rank=4),
    Column("in place of", lambda task: task.replaces[:12], width=12),
)
"""The columns of the tasks that were kept."""
