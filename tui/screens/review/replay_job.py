"""The replay of the open run's calls, with the outcomes by step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from gistpoint.core.errors import CancelledError
from gistpoint.core.running import RunContext, RunProgress
from gistpoint.tui import signs
from gistpoint.tui.jobs import Job
from gistpoint.tui.screens.review.loading import opener
from gistpoint.tui.screens.review.settings import Replaying
from gistpoint.tui.screens.review.view import ReviewView, VisibleRun
from gistpoint.tui.screens.review.view_job import ViewJob

if TYPE_CHECKING:
    from gistpoint.sessions.replay.replaying import Replay, ReplayedCall

GLYPHS = {"differs": signs.DIFFERS, "could not run": signs.NOTHING, "not recorded": "?", "same": "="}
"""The glyph for each outcome of a call, the worst outcome first."""


class ReplayJob(ViewJob):
    """The replay of the open run in a fresh workspace."""

    NAME = "replay"

    def __init__(self, run: VisibleRun, view: ReviewView) -> None:
        super().__init__(run, view)
        self._results: dict[int, list[ReplayedCall]] = {}

    def toggle(self) -> None:
        """Replay the recorded calls in a fresh workspace, or stop the replay."""
        view, replaying = self._view, self._view.settings.replaying
        if self.stops():
            return
        if replaying is None:
            view.show_message("Calls can't be replayed here: use `gistpoint replay`.")
        else:
            self._results = {}
            view.steps.badges = {}
            view.show_message("Repeating the calls …")
            self._job = self._jobs.do(lambda job: self._replay(job, replaying), self._ended)

    # In the job's thread

    def _replay(self, job: Job, replaying: Replaying) -> str:
        def progress(run: RunProgress) -> None:
            job.report(self._show_phase, f"{run.phase} {run.done}/{run.total}" if run.total else run.phase)

        try:
            replay = replaying(opener(self._run.name)())
            for replayed in replay.calls(run=RunContext(job.cancel, progress)):
                files = replay.files()
                job.hand(lambda found: self._add_results(*found), (replayed, files))
        except CancelledError:
            return "Stopped."
        return _verdicts(replay)

    # On the UI thread

    def _show_phase(self, words: str) -> None:
        if self._job is not None and not self._job.cancel.cancelled:
            self._view.show_message(f"Repeating the calls: {self.counts()}; {words}. Press a to stop.")

    def _add_results(self, replayed: ReplayedCall, files: Mapping[str, bytes | None]) -> None:
        view, loader, step = self._view, self._run.loader, replayed.call.step - 1
        self._results.setdefault(step, []).append(replayed)
        view.steps.badges = {**view.steps.badges, step: self._badge(step)}
        view.steps.refresh()
        view.show_message(f"Repeating the calls: {self.counts()}. Press a to stop.")
        loader.do(lambda: loader.history.put(step, files))
        if self._run.step is not None and step == self._run.step.index:
            view.show_step()

    def _ended(self, words: str) -> None:
        self._view.show_message(f"{self.counts()}. {words}")

    # Results

    def _badge(self, step: int) -> str:
        """Return the glyph for the worst outcome of a step's calls; empty if none was replayed."""
        found = {replayed.sameness.value for replayed in self._results.get(step, ())}
        return next((glyph for word, glyph in GLYPHS.items() if word in found), "")

    def counts(self) -> str:
        """Return the number of calls with each outcome, as text."""
        counted = Counter(replayed.sameness.value for step in self._results.values() for replayed in step)
        return (
            ", ".join(f"{counted[word]} {word}" for word in reversed(GLYPHS) if counted[word])
            or "no call yet"
        )

    def words(self, step: int) -> str:
        """Return the outcomes of a step's calls for the line above a page; empty if none was replayed."""
        found = [
            f"{result.sameness.value}{f' ({result.reason})' if result.reason else ''}"
            for result in self._results.get(step, ())
        ]
        return f"made again: {', '.join(found)}" if found else ""

    def text(self, step: int) -> str:
        """Return the replay of a step in full: each call, its outcome, and how its results differ."""
        from gistpoint.core.kinds.commandline import spelled

        parts = []
        for replayed in self._results.get(step, ()):
            call = replayed.call
            almost = "" if replayed.exact else " except for times, addresses and folders"
            parts.append(f"{spelled(call.tool, call.arguments or {})}\n{replayed.sameness.value}{almost}")
            parts.extend(part for part in (replayed.reason, replayed.diff) if part)
        return "\n\n".join(parts)


def _verdicts(replay: Replay) -> str:
    same = "the same" if replay.same_verdict() else "NOT the same"
    then, now = replay.verdict_then().words, replay.verdict_now().words
    notes = "".join(f" {note}" for note in replay.notes)
    return f"Outcome then: {then}; now, in {replay.judge.backend.name}: {now}; {same}.{notes}"
