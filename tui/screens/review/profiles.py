"""Many runs at a glance: their profiles below one another, by task."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.getters import query_one
from textual.screen import Screen

from gistpoint.core.errors import CancelledError, UserError
from gistpoint.core.text import plural
from gistpoint.sessions.records.model import Run
from gistpoint.sessions.runs.opening import open_run
from gistpoint.sessions.runs.profile import profile_of
from gistpoint.tui.jobs import Job, Jobs
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.profile_drawing import ProfileLine
from gistpoint.tui.profile_rows import ORDERS, ProfiledRun, rows_drawn
from gistpoint.tui.screens.review.loading import known_task
from gistpoint.tui.screens.review.pages.profile import DrawnProfile
from gistpoint.tui.screens.review.settings import ReviewSettings
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.header_bar import HeaderBar
from gistpoint.tui.widgets.key_bar import KeyBar

_SHOW_S = 0.5
"""Seconds between drawings while the runs are being read."""


class ProfilesScreen(Screen[None]):
    """The profiles of the runs of a list, drawn as they are read."""

    CSS_PATH = "review.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.PROFILES)]
    HELP_PAGE = "profiles"
    SCOPES = (KeyScope.PROFILES,)

    view = query_one(DrawnProfile)

    def __init__(self, runs: Mapping[str, tuple[Run, bool]], settings: ReviewSettings) -> None:
        """`runs` has by name the header of each as the list has it, and whether solver and outcome are hidden."""
        super().__init__()
        self._names, self._settings = dict(runs), settings
        self._found: list[ProfiledRun] = []
        self._unread = 0
        self._order = next(iter(ORDERS))
        self._width = 80
        self._jobs = Jobs(self, "profiles")

    def compose(self) -> ComposeResult:
        """Lay out the header and the rows."""
        yield HeaderBar("Profiles", plural(len(self._names), "run"))
        yield framed(DrawnProfile(id="profiles"), "At a glance", "reading …")
        yield KeyBar()

    def on_mount(self) -> None:
        """Read the runs."""
        self.view.focus()
        self._jobs.do(self._read, self._take)

    def on_resize(self, event: events.Resize) -> None:
        """Draw the rows as wide as there is room."""
        self._width = event.size.width - 4
        self._draw()

    def on_unmount(self) -> None:
        """Stop reading."""
        self._jobs.stop()

    def _read(self, job: Job) -> list[ProfileLine]:
        due = time.monotonic() + _SHOW_S
        for name, (header, hides) in self._names.items():
            try:
                document = open_run(name)
                document.build(cancel=job.cancel)
                goals = known_task(document.header.task, self._settings.locations).goals
                run = replace(document.header, task=header.task or document.header.task, verdict=header.verdict)
                profile = profile_of(document, goals, cancel=job.cancel)
            except CancelledError:
                raise
            except UserError:
                self._unread += 1
                continue
            self._found.append(ProfiledRun(name, run, profile, hides))
            if time.monotonic() > due:
                job.hand(self._take, self._lines())
                due = time.monotonic() + _SHOW_S
        return self._lines()

    def _lines(self) -> list[ProfileLine]:
        return list(rows_drawn(tuple(self._found), self._width, self._order))

    def _draw(self) -> None:
        self._jobs.do(lambda _: self._lines(), self._take, key="draw")

    def _take(self, lines: list[ProfileLine]) -> None:
        read, count = len(self._found) + self._unread, len(self._names)
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
            self.app.push_screen(self._settings.screens.run(name, self._settings, runs=tuple(self._names)))

    def action_leave(self) -> None:
        """Go back to the list."""
        self.dismiss(None)
