"""The screen with the profiles of many runs, below one another and grouped by task."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from stat import S_ISREG
from typing import ClassVar, TypeAlias

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.getters import query_one

from gistpoint.core.errors import CancelledError, UserError
from gistpoint.core.text import plural
from gistpoint.sessions.records.model import Run
from gistpoint.sessions.runs.opening import open_run, split_name
from gistpoint.sessions.runs.profile import Profile, profile_of
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.jobs import Job, Jobs
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.profile_drawing import ProfileLine
from gistpoint.tui.profile_rows import ORDERS, ProfiledRun, rows_drawn
from gistpoint.tui.screens.review.pages.profile import DrawnProfile
from gistpoint.tui.screens.review.run_rows import RunRow, task_words
from gistpoint.tui.screens.review.run_task import known_task
from gistpoint.tui.screens.review.settings import ReviewSettings
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.header_bar import HeaderBar
from gistpoint.tui.widgets.key_bar import KeyBar

_SHOW_S = 0.5
"""Seconds between two drawings while the runs are being read."""
_MOST_KNOWN = 1_000
_Stamp: TypeAlias = tuple[int, int]


class KnownProfiles:
    """A cache of the profiles and headers of runs, valid while their files don't change. For one thread."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[_Stamp, Run, Profile]] = OrderedDict()

    def find(self, name: str) -> tuple[Run, Profile] | None:
        """Return the header and profile of a run; None if the run is unknown or its file has changed."""
        known = self._known.get(name)
        return known[1:] if known is not None and known[0] == stamp_of(name) else None

    def put(self, name: str, stamp: _Stamp | None, run: Run, profile: Profile) -> None:
        """Remember a run under the stamp that its file had before it was read; if it is None, do nothing."""
        if stamp is not None:
            self._known[name] = stamp, run, profile
        while len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)


def stamp_of(name: str) -> _Stamp | None:
    """Return a run's file size in bytes and modification time in ns; None if it isn't a regular file."""
    path, _ = split_name(name)
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_size, found.st_mtime_ns) if S_ISREG(found.st_mode) else None


class ProfilesScreen(BaseScreen[None]):
    """The profiles of a list's runs, drawn while they are being read."""

    CSS_PATH = "review.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.PROFILES)]
    HELP_PAGE = "profiles"
    SCOPES = (KeyScope.PROFILES,)

    view = query_one(DrawnProfile)

    def __init__(self, rows: Sequence[RunRow], settings: ReviewSettings, known: KnownProfiles) -> None:
        """`rows` are the rows of the list, `known` the cache of profiles."""
        super().__init__()
        self._rows, self._settings, self._known = rows, settings, known
        self._found: list[ProfiledRun] = []
        self._unread = 0
        self._order = next(iter(ORDERS))
        self._width = 80
        self._jobs = Jobs(self, "profiles")

    def compose(self) -> ComposeResult:
        """Lay out the header and the profiles."""
        yield HeaderBar("Profiles", plural(len(self._rows), "run"))
        yield framed(DrawnProfile(id="profiles"), "At a glance", "reading …")
        yield KeyBar()

    def on_mount(self) -> None:
        """Start reading the runs."""
        self.view.focus()
        self._jobs.do(self._read, self._show_lines)

    def on_resize(self, event: events.Resize) -> None:
        """Draw the profiles in the new width."""
        self._width = event.size.width - 4
        self._draw()

    def on_unmount(self) -> None:
        """Stop reading."""
        self._jobs.stop()

    def _read(self, job: Job) -> list[ProfileLine]:
        due = time.monotonic() + _SHOW_S
        for row in self._rows:
            try:
                run, profile = self._known.find(row.name) or self._profiled(row, job)
            except CancelledError:
                raise
            except UserError:
                self._unread += 1
                continue
            run = replace(run, task=row.header.task or run.task, verdict=row.header.verdict)
            self._found.append(ProfiledRun(row.name, run, profile, row.hides, task_words(row)))
            if time.monotonic() > due:
                job.hand(self._show_lines, self._lines())
                due = time.monotonic() + _SHOW_S
        return self._lines()

    def _profiled(self, row: RunRow, job: Job) -> tuple[Run, Profile]:
        stamp = stamp_of(row.name)
        document = open_run(row.name, known=row.listed.format)
        document.build(cancel=job.cancel)
        run = document.header
        profile = profile_of(
            document, known_task(run.task, self._settings.locations).goals, cancel=job.cancel
        )
        self._known.put(row.name, stamp, run, profile)
        return run, profile

    def _lines(self) -> list[ProfileLine]:
        return list(rows_drawn(tuple(self._found), self._width, self._order))

    def _draw(self) -> None:
        self._jobs.do(lambda _: self._lines(), self._show_lines, key="draw")

    def _show_lines(self, lines: list[ProfileLine]) -> None:
        read, count = len(self._found) + self._unread, len(self._rows)
        words = f"{read:,} of {count:,} read …" if read < count else plural(len(self._found), "run")
        problems = f", {self._unread:,} can't be read" if self._unread else ""
        framed(self.view, f"At a glance, sorted by {self._order}", words + problems)
        self.view.show_lines(lines)

    def action_sort(self) -> None:
        """Sort the runs of each task by the next order."""
        orders = list(ORDERS)
        self._order = orders[(orders.index(self._order) + 1) % len(orders)]
        self._draw()

    def action_open(self) -> None:
        """Open the run under the cursor."""
        name = self.view.here.run
        if name:
            names = tuple(row.name for row in self._rows)
            self.app.push_screen(self._settings.screens.run(name, self._settings, runs=names))

    def action_leave(self) -> None:
        """Close the screen."""
        self.dismiss(None)
