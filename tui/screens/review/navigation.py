"""Movement in a run: to the next step of a kind, to its first or last step, or at the recorded pace."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from textual.timer import Timer

from gistpoint.core.text import whole_number
from gistpoint.sessions.records.archives import FileBlob, SliceBlob
from gistpoint.tui import signs
from gistpoint.tui.screens.review.view import ReviewView, VisibleRun

if TYPE_CHECKING:
    from gistpoint.sessions.runs.document import RunDocument
    from gistpoint.tui.screens.review.survey import Survey

WANTED = {
    "submission": ("submission",),
    "error": ("error",),
    "edit": ("edit",),
    "test": ("test_run",),
    "mark": (
        "first_read_right_file",
        "first_view_right_function",
        "first_edit_right_function",
        "repeated_command",
        "reread",
        "revert",
        "submission",
    ),
}
"""The marks at which each kind of movement stops."""
MILESTONES: dict[str, tuple[str, int]] = {
    "first edit": ("edit", 1),
    "last error": ("error", -1),
    "submission": ("submission", -1),
    "end": ("", -1),
}
"""The milestones at which runs can open: the kind of step, and 1 for its first or -1 for its last."""
SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
STEADY_S = 1.0
"""The seconds for which a step is shown at normal speed if its duration is unknown."""
LONGEST_S = 10.0
"""The maximum number of seconds for which a step is shown at normal speed."""


UNKNOWN: tuple[int | None, bool] = (None, False)
"""The answer of `next_step` and `next_turn` before anything was surveyed."""


def _ahead(here: int, by: int, count: int) -> Iterable[int]:
    return range(here + 1, count) if by > 0 else range(here - 1, -1, -1)


def next_step(survey: Survey, here: int, by: int, count: int, kind: str) -> tuple[int | None, bool]:
    """Return the nearest step of a kind after `here`, before it if `by` is negative; None if none is found.

    The second value is whether all steps on the way were surveyed. If not, the search ended early, with None.
    """
    from gistpoint.tui.screens.review.survey import bit_of

    bits = sum(bit_of(name) for name in WANTED[kind])
    return _next_surveyed(survey, here, by, count, lambda index: bool(survey.bits[index] & bits))


def next_turn(survey: Survey, here: int, by: int, count: int) -> tuple[int | None, bool]:
    """Return the nearest step of the solver, and whether all steps on the way were surveyed.

    The step is None if none is found.
    """
    return _next_surveyed(survey, here, by, count, lambda index: bool(survey.turns[index]))


def _next_surveyed(
    survey: Survey, here: int, by: int, count: int, is_wanted: Callable[[int], bool]
) -> tuple[int | None, bool]:
    for index in _ahead(here, by, count):
        # The list of steps is complete before they are surveyed, so the cursor may be far beyond the survey.
        if index >= len(survey):
            return None, False
        if is_wanted(index):
            return index, True
    return None, by < 0 or survey.finished


def _file_change_of(document: RunDocument) -> str:
    blob = next(iter(document.blobs), None)
    while isinstance(blob, SliceBlob):
        blob = blob.whole
    return blob.fate if isinstance(blob, FileBlob) else ""


_END = sys.maxsize
"""The place of the last step while it is not known."""


class Player:
    """A timer that moves to the next step at the recorded pace."""

    def __init__(self, view: ReviewView, seconds_of: Callable[[], float], go_on: Callable[[], bool]) -> None:
        """`seconds_of` returns the duration of the current step, 0 if unknown.

        `go_on` moves to the next step, and returns False at the end.
        """
        self._view, self._seconds_of, self._go_on = view, seconds_of, go_on
        self._timer: Timer | None = None
        self._speed = SPEEDS.index(1.0)

    @property
    def playing(self) -> bool:
        """Whether the run is playing."""
        return self._timer is not None

    @property
    def speed(self) -> float:
        """The speed as a multiple of the recorded one."""
        return SPEEDS[self._speed]

    def faster(self, by: int) -> None:
        """Change the speed by `by` places in `SPEEDS`, but not beyond its ends."""
        self._speed = min(max(0, self._speed + by), len(SPEEDS) - 1)
        if self.playing:
            self._schedule()

    def toggle(self) -> None:
        """Play or pause."""
        if self.playing:
            self.stop()
        else:
            self._schedule()

    def stop(self) -> None:
        """Pause."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None

    def _schedule(self) -> None:
        self.stop()
        seconds = min(LONGEST_S, self._seconds_of() or STEADY_S) / self.speed
        self._timer = self._view.set_timer(max(0.02, seconds), self._next)

    def _next(self) -> None:
        self._timer = None
        if self._go_on():
            self._schedule()


class Navigation:
    """The movement of the review screen's cursor within one run."""

    def __init__(self, run: VisibleRun, view: ReviewView, *, opens_at: str = "") -> None:
        """`opens_at` is the milestone at which the run opens; empty for where the reviewer stopped."""
        self._run, self._view, self.opens_at = run, view, opens_at
        self._arriving = opens_at
        self.player = Player(view, self._seconds, self._play_on)
        self.following = False
        """Whether the cursor stays at the end of a run that is still being written."""
        self.uncounted = False
        """Whether the visible step is the last one, with a number that is not known yet."""
        self._sought: int | None = None
        """The step to move to once it has been read; `_END` for the last one, None if none is sought."""
        self._file_change = ""
        """The last reported change of the run's file, such as `deleted`; empty if there is none."""

    # Moving to a step

    def edge(self, end: int) -> None:
        """Move to the first step, or, if `end` is positive, to the last one, which may not be known yet."""
        view, document = self._view, self._run.loader.document
        if end > 0 and (document is None or not document.finished):
            self._seek(_END, "Reading to the end …")
            return
        self._stop_seeking()
        self._list_all_read()
        view.steps.action_edge(end)
        step = self._run.step
        if self.uncounted and step is not None and step.index == view.steps.cursor:
            view.show_step()

    def _seek(self, index: int, words: str) -> None:
        self._sought = index
        self._view.steps.drawing_delay.hold()
        self._run.loader.index_fully()
        self._view.show_message(words)

    def _stop_seeking(self) -> None:
        if self._sought is not None:
            self._sought = None
            self._view.show_message("")

    def _list_all_read(self) -> bool:
        """List all steps that have been read, and return whether these are all steps of the run.

        Otherwise, new steps reach the list in a message, which may not have arrived yet.
        """
        document, steps = self._run.loader.document, self._view.steps
        if document is None:
            return False
        finished = document.finished  # before the count, which the loader's thread may raise at any moment
        count = document.step_count if finished else max(steps.count, document.step_count)
        if count != steps.count:
            steps.set_count(count)
        return finished

    def ask_number(self) -> None:
        """Ask for the number of a step, and move there."""
        from gistpoint.tui.screens.dialogs.ask import TextDialog

        steps = self._view.steps

        def answered(value: str | None) -> None:
            number = whole_number((value or "").strip())
            if number is None:
                return
            if not self._list_all_read() and number > steps.count:
                self._seek(number - 1, f"Reading up to step {number:,} …")
            else:
                steps.cursor = number - 1

        self._view.open(
            TextDialog("Go to step", placeholder=f"1 to {steps.count:,}", replaces=True), answered
        )

    def go(self, kind: str, by: int) -> None:
        """Move to the next or previous step of a kind in `WANTED`."""
        survey, steps = self._run.loader.survey, self._view.steps
        found = UNKNOWN if survey is None else next_step(survey, steps.cursor, by, steps.count, kind)
        self._go_to_surveyed(found, kind, by)

    def go_among(self, places: Collection[int], name: str, by: int) -> None:
        """Move to the next or previous step among `places`.

        `name` describes the steps in the message if there is none.
        """
        here = self._view.steps.cursor
        ahead = [place for place in places if (place > here if by > 0 else place < here)]
        self._go_to(min(ahead, key=lambda place: abs(place - here), default=None), name, by, "none")

    def go_outside(self, places: Collection[int], name: str, by: int) -> None:
        """Move to the next or previous listed step that is not among `places`."""
        steps = self._view.steps
        ahead = (n for n in _ahead(steps.cursor, by, steps.count) if n not in places and steps.lists(n))
        self._go_to(next(ahead, None), name, by, "none")

    def turn(self, by: int) -> None:
        """Move to the solver's next or previous step."""
        survey, steps = self._run.loader.survey, self._view.steps
        found = UNKNOWN if survey is None else next_turn(survey, steps.cursor, by, steps.count)
        self._go_to_surveyed(found, "turn of the solver", by)

    def _go_to_surveyed(self, found: tuple[int | None, bool], name: str, by: int) -> None:
        place, was_surveyed = found
        self._go_to(place, name, by, "none" if was_surveyed else "none so far: the run is still being read")

    def _go_to(self, place: int | None, name: str, by: int, words: str) -> None:
        if place is not None:
            self._view.steps.cursor = place
        else:
            self._view.show_message(f"{'Next' if by > 0 else 'Previous'} {name}: {words}")

    # Opening at a milestone

    def open_at_next(self) -> None:
        """Choose the next milestone at which runs open, and move there in this run.

        After the last milestone, runs open where the reviewer stopped.
        """
        order = ["", *MILESTONES]
        self.opens_at = self._arriving = order[(order.index(self.opens_at) + 1) % len(order)]
        self._view.show_message(
            f"Runs open at: {self.opens_at or 'where you stopped'}. @ changes it, ) goes to the next run."
        )
        self.arrive()

    def arrive(self) -> None:
        """Move to the milestone at which runs open, after all steps have been surveyed.

        If the cursor was moved before that, do nothing.
        """
        survey, steps = self._run.loader.survey, self._view.steps
        if not self._arriving or survey is None or not survey.finished:
            return
        name, (kind, by) = self._arriving, MILESTONES[self._arriving]
        self._arriving = ""
        steps.set_count(len(survey))
        if not kind:
            steps.action_edge(1)
            return
        place, _ = next_step(survey, -1 if by > 0 else len(survey), by, len(survey), kind)
        if place is not None:
            steps.cursor = place
        else:
            self._view.show_message(f"{name.capitalize()}: this run has none.")

    # Playing and following

    def play(self) -> None:
        """Play or pause, and show which."""
        self.player.toggle()
        self._show_playing()

    def faster(self, by: int) -> None:
        """Change the speed by `by` places in `SPEEDS`, and show it."""
        self.player.faster(by)
        self._show_playing()

    def _show_playing(self) -> None:
        state = f"{signs.FORWARD} plays" if self.player.playing else f"{signs.PAUSED} paused"
        self._view.show_message(
            f"{state}, {self.player.speed:g} times as fast as recorded; waits are limited to 10 s"
        )

    def _seconds(self) -> float:
        survey, here = self._run.loader.survey, self._view.steps.cursor
        return float(survey.seconds[here]) if survey is not None and here < len(survey) else 0.0

    def _play_on(self) -> bool:
        steps = self._view.steps
        here, all_read = steps.cursor, self._list_all_read()
        steps.action_move(1)
        if steps.cursor == here and all_read:
            self._view.show_message(f"{signs.FORWARD} The end.")
        return steps.cursor != here or not all_read

    def follow(self) -> None:
        """Stay at the end of a run that is still being written, or stop doing so."""
        self.following = not self.following
        if self.following:
            self._view.steps.action_edge(1)
        words = "Following: new steps are shown as they are written." if self.following else "Not following."
        self._view.show_message(words)

    # Reactions to the loader's messages

    def check_growth(self) -> None:
        """Read on if the run's file has grown, report once if it was deleted, or read its replacement."""
        document = self._run.loader.document
        if document is None or not document.finished:
            return
        change, reported = _file_change_of(document), self._file_change
        self._file_change = change
        if change == "replaced":
            self._view.show_message("The file was replaced by another one, which is being read now.")
            self._run.loader.open_again()
        elif change and not reported:
            self._view.show_message(
                "The file was deleted, so no new steps will come. The loaded steps can still be read."
            )
        elif document.changed:
            self._run.loader.check_growth()

    def step_shown(self) -> None:
        """Record that the number of the visible step is known."""
        self.uncounted = False

    def moved(self) -> None:
        """Record that the cursor was moved, which cancels a pending movement to the end or to a milestone."""
        self._sought = None
        self._arriving = ""

    def takes_last_step(self) -> bool:
        """Return whether to show the last step before its number is known. If so, record that it is shown."""
        if self._sought != _END or self._view.pages.current != "step":
            return False
        self.uncounted = True
        return True

    def run_grew(self) -> None:
        """Move to the requested milestone or step once it is known, or to the end if the run is followed."""
        self.arrive()
        sought = _END if self._sought is None and self.following else self._sought
        if sought is None:
            return
        steps, all_read = self._view.steps, self._list_all_read()
        if all_read or sought < steps.count:
            self._stop_seeking()
            if sought == _END:
                steps.action_edge(1)
            else:
                steps.cursor = sought
