"""The remaining budgets, the clock with its current activity, and the isolation of the tests; always visible."""

from __future__ import annotations

from textual.content import Content
from textual.style import Style
from textual.widget import Widget

from gistpoint.core.attempts.clock import Clock, ClockActivity
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.outcomes import BackendRecord
from gistpoint.tui.widgets.plain import plain_line

GLYPHS = {
    ClockActivity.READING: "¶",
    ClockActivity.EXPLORING: "◎",
    ClockActivity.EDITING: "✎",
    ClockActivity.WAITING: "…",
    ClockActivity.PAUSED: "‖",
    ClockActivity.IDLE: "z",
    ClockActivity.THINKING: "◌",
}

_MOST_PIPS = 16
"""Larger budgets are drawn to scale."""

_LOW = 0.25
"""A budget with this share or less left is drawn as running out."""


def duration(ms: int) -> str:
    """Return a duration as `m:ss` or `h:mm:ss`."""
    seconds = max(0, ms) // 1000
    hours, minutes = seconds // 3600, seconds // 60 % 60
    return f"{hours}:{minutes:02}:{seconds % 60:02}" if hours else f"{minutes}:{seconds % 60:02}"


def pips(left: int, of: int, most: int = _MOST_PIPS) -> str:
    """Return `of` pips, `left` of them full; at least one full while something is left."""
    if of <= 0:
        return ""
    drawn = min(of, most)
    full = min(drawn, -(-left * drawn // of))
    return "●" * full + "○" * (drawn - full)


class BudgetBar(Widget):
    """One line: tool uses, submissions, clock, isolation. If it is narrow, the pips are left out first."""

    DEFAULT_CSS = """
    BudgetBar { height: 1; width: 1fr; background: $panel; color: $foreground; padding: 0 1; }
    BudgetBar.-paused { background: $warning-muted; }
    BudgetBar.-unsandboxed { background: $error-muted; }
    BudgetBar:ansi { background: ansi_default; }
    """

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(name=name, id=id, classes=classes)
        self._state = AttemptState()
        self._clock = Clock()
        self._backend: BackendRecord | None = None

    def update_from(self, state: AttemptState, clock: Clock, *, backend: BackendRecord) -> None:
        """Show a state with the current clock."""
        self._state, self._clock, self._backend = state, clock, backend
        self.set_class(clock.running is ClockActivity.PAUSED and not state.ended, "-paused")
        self.set_class(not backend.isolated, "-unsandboxed")
        self.tooltip = self._explanation(backend)
        self.refresh()

    def render(self) -> Content:
        """Draw as much of the line as fits."""
        if self._backend is None:
            return Content("")
        for most in (_MOST_PIPS, 8, 0):
            content = self._line(self._backend, most, words=True)
            if content.cell_length <= self.size.width:
                return content
        short = self._line(self._backend, 0, words=False)
        if short.cell_length <= self.size.width or self._backend.isolated:
            return short
        return Content.assemble(self._badge(self._backend), " ", short).truncate(self.size.width, ellipsis=True)

    def _line(self, backend: BackendRecord, most: int, *, words: bool) -> Content:
        state, clock = self._state, self._clock
        gap = "   " if words else " "
        parts: list[str | Content | tuple[str, str | Style]] = []
        for name, short, left, of in _budgets(state):
            style = "bold $text-error" if left == 0 else "bold $text-warning" if left <= of * _LOW else "bold"
            drawn = f" {pips(left, of, most)}" if most else ""
            parts += [f"{name if words else short} ", (f"{left}/{of}", style), (drawn, style), gap]
        parts += [(duration(clock.active), "bold")]
        if state.budgets.time_limit_s is not None:
            parts.append(self._time_left(state.budgets.time_limit_s * 1000 - clock.active))
        activity = " ■ ended" if state.ended else f" {GLYPHS[clock.running]} {clock.running.value}"
        parts += [
            (activity, "bold reverse" if clock.running is ClockActivity.PAUSED and not state.ended else ""),
            gap,
            self._badge(backend),
        ]
        return Content.assemble(*parts)

    def _time_left(self, ms: int) -> tuple[str, str]:
        limit = self._state.budgets.time_limit_s or 0
        return f" ({duration(ms)} left)", "bold $text-error" if ms <= limit * 1000 * _LOW else ""

    def _badge(self, backend: BackendRecord) -> Content:
        if backend.isolated:
            return Content.assemble(("▣ ", "$text-success"), plain_line(backend.name))
        return Content.styled(" ⚠ UNSANDBOXED ", "bold $text-error reverse")

    def _explanation(self, backend: BackendRecord) -> Content:
        clock = self._clock
        times = "  ".join(f"{a.value} {duration(clock.of(a))}" for a in ClockActivity if clock.of(a))
        if backend.isolated:
            where = f"Tests run isolated by {backend.name} {backend.version}".rstrip()
        else:
            where = f"Tests run WITHOUT isolation ({backend.name}): code under test can reach your files"
        return plain_line(f"{where}.  {times}")


def _budgets(state: AttemptState) -> list[tuple[str, str, int, int]]:
    """Return name, short name, remainder and total of each budget that has a number."""
    left, of = state.remaining, state.budgets
    unit = state.of_kind.unit
    found = [(f"{unit}s", f"{unit.split()[0]}s", left.tool_uses, of.tool_uses)]
    if not state.of_kind.hands_in_once:
        found.append(("submissions", "subm.", left.submissions, of.submissions))
    if of.scores and left.scores is not None:
        found.append(("scores", "scores", left.scores, of.scores))
    return found
