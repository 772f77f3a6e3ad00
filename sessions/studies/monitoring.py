"""The progress of a running study and its alerts, for the organiser to watch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gistpoint.core.study.progress import StudyProgress, blinded, study_progress
from gistpoint.core.text import plural
from gistpoint.sessions.studies.auditing import audit
from gistpoint.sessions.studies.folder import StudyFolder
from gistpoint.sessions.studies.loading import rows_of_people

AUDITS_AFTER_MS = 60_000
"""The seconds after which a repeated reading audits the folder again; an audit reads every journal."""


@dataclass(frozen=True, slots=True)
class Alert:
    """A problem or a fact that needs the organiser's attention."""

    kind: str
    """`audit`, `flag`, `late` or `data`."""
    name: str
    """The name of the audit's finding or of the flag; otherwise `timed_out` or `unreadable`."""
    words: str


@dataclass(frozen=True, slots=True)
class MonitoredStudy:
    """The progress of a study, and its alerts."""

    progress: StudyProgress
    alerts: tuple[Alert, ...] = ()


class Monitor:
    """Reads a study repeatedly."""

    def __init__(self, study: StudyFolder, *, hidden: bool) -> None:
        """`hidden` leaves out everything that reveals outcomes."""
        self._study, self._hidden = study, hidden
        self._audited_ms: int | None = None
        self._audit: tuple[Alert, ...] = ()

    def read(self) -> MonitoredStudy:
        """Return the current progress and alerts. Raises `StudyError` if the study can't be read."""
        study = self._study
        study.reload()
        now = study.clock.utc_ms()
        if self._audited_ms is None or now - self._audited_ms >= AUDITS_AFTER_MS:
            self._audit = tuple(_audited(study))
            self._audited_ms = now
        rows, problems = rows_of_people(study)
        if self._hidden:
            rows = tuple(blinded(row, study.study.quality) for row in rows)
        found = study_progress(study.study, study.tasks, study.ledger, rows, now)
        return MonitoredStudy(
            found, (*self._audit, *self._alerts(found), *(_problem(one) for one in problems))
        )

    def _alerts(self, found: StudyProgress) -> Iterator[Alert]:
        study = self._study
        excluding = set(study.study.quality.exclude_on)
        for flag, number in sorted(found.flags.items()):
            out = ", which excludes" if flag in excluding else ""
            yield Alert("flag", flag, f"{plural(number, 'attempt')} with the flag {flag}{out}")
        if found.late:
            tasks = plural(len(found.late), "open task")
            words = f"{tasks} timed out: gistpoint study return {study.named} --late"
            yield Alert("late", "timed_out", words)


def _audited(study: StudyFolder) -> Iterator[Alert]:
    for finding in audit(study):
        if not finding.note:
            yield Alert("audit", finding.name, finding.sentence)


def _problem(words: str) -> Alert:
    return Alert("data", "unreadable", words)
