"""The page with a run's profile: the run at a glance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import Binding, BindingType

from gistpoint.sessions.records.model import Run
from gistpoint.sessions.runs.profile import Profile, Profiler
from gistpoint.tui.jobs import Job
from gistpoint.tui.profile_drawing import ProfileLine, drawn
from gistpoint.tui.screens.review.ruler import Ruler
from gistpoint.tui.screens.review.run_pages import PageContext, RunPage
from gistpoint.tui.widgets.line_view import LineView, Span

if TYPE_CHECKING:
    from gistpoint.sessions.runs.document import RunDocument

_SLICE = 48
"""The number of steps read between two chances for more urgent jobs."""


@dataclass(frozen=True, slots=True)
class ProfileContent:
    """A run's profile, the index of the visible step, and whether model and outcome are hidden."""

    run: Run
    profile: Profile
    index: int
    hides: bool


class DrawnProfile(LineView):
    """A view of styled lines that draw one or several profiles."""

    DEFAULT_CSS = """
    DrawnProfile { scrollbar-size-vertical: 1; }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.set_reactive(LineView.wrap, True)
        self.drawn: list[ProfileLine] = []

    @property
    def here(self) -> ProfileLine:
        """The line at the cursor; an empty one if there is none."""
        return self.drawn[self.cursor_index] if self.cursor_index < len(self.drawn) else ProfileLine()

    def show_lines(self, lines: list[ProfileLine]) -> None:
        """Show other lines, and keep the place."""
        self.drawn = lines
        self.show_text("\n".join(line.text for line in lines), keep_place=True)

    def spans(self, line: int, start: int, end: int) -> list[Span]:
        """Return the styles of a line's pieces between the columns `start` and `end`."""
        found: list[Span] = []
        at = 0
        for text, style in self.drawn[line].pieces if line < len(self.drawn) else ():
            first, last = max(start, at), min(end, at + len(text))
            if style and first < last:
                found.append((first, last, self.overlay(style)))
            at += len(text)
        return found


class ProfilePage(RunPage[ProfileContent], DrawnProfile):
    """The profile of the run, with a mark at the visible step.

    Enter or a click goes to the step that is drawn there.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "go", "Go to the step", show=False)]

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._content: ProfileContent | None = None
        self._made: tuple[RunDocument, int, Profiler] | None = None
        """The run, its number of steps, and the profiler fed last. Used only in the loader's thread."""

    # In the loader's thread

    def read(self, context: PageContext, job: Job) -> ProfileContent:
        """Return the profile. The first call reads all steps of the run."""
        document = context.document
        while not document.summed_up:
            document.advance()
            job.give_way()
        if self._made is None or self._made[:2] != (document, document.step_count):
            self._made = document, document.step_count, Profiler(document.header, context.loader.task.goals)
        profiler = self._made[2]
        while profiler.fed < document.step_count:
            profiler.feed(document.step(profiler.fed))
            if profiler.fed % _SLICE == 0:
                job.give_way()
        return ProfileContent(document.header, profiler.profile(), context.index, context.hides)

    # On the UI thread

    def fill(self, content: ProfileContent) -> str:
        """Draw the profile, and return a note on its use."""
        self._content = content
        self._draw()
        return "Enter or a click goes to that step"

    def on_resize(self, _event: events.Resize) -> None:
        """Draw the profile in the new width."""
        self._draw()

    def _draw(self) -> None:
        found = self._content
        if found is None or not self.size:
            return
        width = self.size.width - self.styles.scrollbar_size_vertical
        self.show_lines(drawn(found.run, found.profile, width, here=found.index, hides=found.hides))

    def action_go(self) -> None:
        """Go to the step that is drawn at the cursor."""
        if self._content is not None:
            step = self.here.step_at(self.cursor_column, self._content.profile)
            if step is not None:
                self.post_message(Ruler.StepRequested(step))

    def on_click(self, event: events.Click) -> None:
        """Go to the step that is drawn under the mouse, after the click has moved the cursor there."""
        event.stop()
        self.call_later(self.action_go)
