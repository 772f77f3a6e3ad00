"""The page of what happened in a run, at a glance."""

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
"""Steps that are read before more urgent work is let through."""


@dataclass(frozen=True, slots=True)
class ProfileContent:
    """A profile, and the step in sight."""

    run: Run
    profile: Profile
    index: int
    hides: bool


class ProfilePage(RunPage[ProfileContent], LineView):
    """The profile of the run, with the place of the step in sight; Enter or a click goes to the step drawn there."""

    DEFAULT_CSS = """
    ProfilePage { scrollbar-size-vertical: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "go", "Go to the step", show=False)]

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.set_reactive(LineView.wrap, True)
        self._content: ProfileContent | None = None
        self._drawn: list[ProfileLine] = []
        self._made: tuple[RunDocument, int, Profiler] | None = None
        """The profile under way or made last, its run, and how many steps that had; of the loader's thread."""

    # In the loader's thread

    def read(self, context: PageContext, job: Job) -> ProfileContent:
        """Return the profile; the first time all steps are read, after that it is known."""
        document = context.document
        while not document.finished:
            document.ensure(document.step_count + _SLICE)
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
        """Show it."""
        self._content = content
        self._draw()
        return "Enter or a click: to that step"

    def on_resize(self, _event: events.Resize) -> None:
        """Draw it as wide as there is room."""
        self._draw()

    def _draw(self) -> None:
        found = self._content
        if found is None or not self.size:
            return
        width = self.size.width - self.styles.scrollbar_size_vertical
        self._drawn = drawn(found.run, found.profile, width, here=found.index, hides=found.hides)
        self.show_text("\n".join(line.text for line in self._drawn), keep_place=True)

    def spans(self, line: int, start: int, end: int) -> list[Span]:
        """Return the styles of a line's pieces."""
        found: list[Span] = []
        at = 0
        for text, style in self._drawn[line].pieces if line < len(self._drawn) else ():
            if style and text:
                found.append((max(start, at), min(end, at + len(text)), self.overlay(style)))
            at += len(text)
        return [span for span in found if span[0] < span[1]]

    def action_go(self) -> None:
        """Go to the step that is drawn at the cursor."""
        if self._content is not None and self.cursor_index < len(self._drawn):
            step = self._drawn[self.cursor_index].step_at(self.cursor_column, self._content.profile)
            if step is not None:
                self.post_message(Ruler.StepAsked(step))

    def on_click(self, event: events.Click) -> None:
        """Go to the step that is drawn under the mouse, once the cursor is there."""
        event.stop()
        self.call_later(self.action_go)
