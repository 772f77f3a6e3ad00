"""The progress of a campaign: the candidates being tried, those kept, and those dropped."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import threading
import time
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.decoding import decodable
from gistpoint.core.generation.verdicts import CandidateVerdict, Counts, StateFile
from gistpoint.core.logs import replace_file
from gistpoint.core.running import RunProgress


@dataclass(frozen=True, slots=True)
class TrialProgress:
    """One candidate that is being tried by one worker."""

    worker: str
    function: str
    """The `path::qualname` of the function, the first one of a group."""
    attempt: int = 0
    """The number of the corruption that is being tried; 0 before the first."""
    family: str = ""
    latest: str = ""
    """The outcome of the previous corruption, in a few words."""
    tests: int = 0
    """The number of tests run so far for this candidate."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class KeptTask:
    """A written task, which can be opened while the campaign runs."""

    id: str
    functions: tuple[str, ...]
    failing: int
    glance: float | None = None
    """The predicted rate at which readers see the corruption, for a group the mean; None if unknown."""
    replaces: str = ""
    """The id of the task that it replaces; empty if it replaces none."""
    title: str = ""
    """The task's title for its author."""


@dataclass(frozen=True, slots=True)
class CampaignProgress(RunProgress):
    """The state of a campaign on one source; reported at every change, and otherwise once a second."""

    source: str = ""
    wanted: int = 0
    candidates: int = 0
    tried: int = 0
    kept: tuple[KeptTask, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    """The number of dropped candidates, by reason."""
    corruptions: Mapping[str, int] = field(default_factory=dict)
    """The number of corruptions, by outcome."""
    trials: tuple[TrialProgress, ...] = ()
    tests_per_second: float = 0.0
    elapsed: float = 0.0
    """The seconds since the campaign began on this source."""
    remaining: float | None = None
    """Estimated seconds until the set is full or no candidate is left; None if too little is measured."""


_MEASURED = 3
"""The minimum numbers of decided and of accepted candidates for an estimate of the remaining time."""
_WINDOW_S = 10.0
_IDLE_S = 1.0


class CampaignMeter:
    """Creates the reports on a campaign, with rates measured in the current run."""

    def __init__(
        self, source: str, wanted: int, candidates: int, state: StateFile, *, known: int = 0
    ) -> None:
        """Start measuring; `known` is the number of candidates that already have a verdict."""
        self._report = CampaignProgress(source=source, wanted=wanted, candidates=candidates)
        self._state = state
        self._began = self._reported = time.monotonic()
        # The state may also have verdicts on other candidates, for example those of an earlier version.
        self._before = self._counted = len(state.verdicts)
        self._left = candidates - known
        self._tests = 0
        self._accepted_before: int | None = None
        self._window: deque[tuple[float, int]] = deque()
        self._tried = -1

    def report(
        self,
        verdicts: Sequence[CandidateVerdict],
        accepted: int,
        present: Mapping[str, KeptTask],
        trials: tuple[TrialProgress, ...],
    ) -> CampaignProgress | None:
        """Return a new report; None if nothing changed and the last report is less than a second old.

        `present` contains the current tasks by the key of their verdict.
        """
        now = time.monotonic()
        if self._accepted_before is None:
            self._accepted_before = accepted
        if len(self._state.verdicts) > self._counted:
            fresh = list(self._state.verdicts.values())[self._counted :]
            self._counted += len(fresh)
            self._tests += sum(verdict.cost.tests for verdict in fresh)
        kept = tuple(present.values())
        changes: dict[str, Any] = {"kept": kept, "trials": trials}
        if len(verdicts) != self._tried or kept != self._report.kept:
            self._tried, counts = len(verdicts), Counts([*verdicts])
            # A waiting verdict counts as left out until the last candidate is decided. Until then it may have
            # a task (decision 92), and a candidate with a task is not shown as dropped.
            dropped = Counts([verdict for verdict in verdicts if verdict.key not in present]).reasons
            changes |= {"tried": counts.tried, "dropped": dropped, "corruptions": counts.fates}
        changed = any(getattr(self._report, name) != value for name, value in changes.items())
        if not changed and now - self._reported < _IDLE_S:
            return None
        self._reported = now
        elapsed = now - self._began
        self._report = replace(
            self._report,
            **changes,
            tests_per_second=self._rate(now, self._tests + sum(trial.tests for trial in trials)),
            elapsed=elapsed,
            remaining=self._remaining(elapsed, accepted - self._accepted_before, accepted, trials),
        )
        return self._report

    def _rate(self, now: float, tests: int) -> float:
        self._window.append((now, tests))
        while now - self._window[0][0] > _WINDOW_S:
            self._window.popleft()
        began, before = self._window[0]
        return max(0.0, (tests - before) / (now - began)) if now > began else 0.0

    def _remaining(
        self, elapsed: float, gained: int, accepted: int, trials: Sequence[TrialProgress]
    ) -> float | None:
        """Return the seconds until the set is full or no candidate is left; None if too little is measured.

        The time of a few candidates says nothing about the others, which may take a hundred times as long.
        """
        decided = self._counted - self._before
        waiting = max(0, self._left - decided)
        if waiting and decided < _MEASURED:
            return None
        left = waiting * elapsed / decided if waiting else 0.0
        # A candidate that has already taken a minute is expected to take another minute, not the average.
        only_running = waiting <= len(trials)
        if only_running:
            left = max([left, *(trial.seconds for trial in trials)])
        wanted = self._report.wanted - accepted
        is_measured = gained >= _MEASURED or (gained > 0 and wanted <= 0)
        return min(left, wanted * elapsed / gained) if is_measured else left


# The trials of a campaign's workers: each writes its line to its own file in the library's folder


_STALE_S = 86400.0


class _Line(msgspec.Struct):
    """The status line of one worker."""

    key: str
    """The key of the candidate."""
    written: float
    trial: TrialProgress


class TrialBoard:
    """The folder with the lines of one campaign's workers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def post(self, key: str, trial: TrialProgress) -> None:
        """Replace this thread's line; disk errors are ignored."""
        own = f"{platform.node()}-{os.getpid()}-{threading.get_ident()}"
        place = self.folder / f"{sha256_of_text(own)[:16]}.json"
        with contextlib.suppress(OSError):
            replace_file(place, msgspec.json.encode(_Line(key, time.time(), trial)), durable=False)

    def trials(self, keys: Collection[str]) -> tuple[TrialProgress, ...]:
        """Return the newest lines about the candidates `keys`, numbered by worker."""
        newest: dict[str, tuple[str, _Line]] = {}
        for place in sorted(self.folder.glob("*.json")):
            with contextlib.suppress(OSError, ValueError, RecursionError):
                line = msgspec.json.decode(place.read_bytes(), type=decodable(_Line))
                if line.key in keys and (
                    line.key not in newest or newest[line.key][1].written < line.written
                ):
                    newest[line.key] = (place.name, line)
        shown = sorted(newest.values(), key=lambda item: item[0])
        return tuple(replace(line.trial, worker=str(number)) for number, (_, line) in enumerate(shown, 1))

    def open(self) -> None:
        """Clear all lines, and remove folders that killed campaigns left behind more than a day ago."""
        shutil.rmtree(self.folder, ignore_errors=True)
        for left in self.folder.parent.glob("*"):
            with contextlib.suppress(OSError):
                if time.time() - left.stat().st_mtime > _STALE_S:
                    shutil.rmtree(left)
        self.folder.mkdir(parents=True, exist_ok=True)

    def close(self) -> None:
        """Remove all lines as far as possible; errors are ignored."""
        shutil.rmtree(self.folder, ignore_errors=True)
