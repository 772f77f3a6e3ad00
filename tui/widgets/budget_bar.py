"""The bar with an attempt's title, remaining budgets, clock and isolation, which is always visible."""

from __future__ import annotations

from dataclasses import dataclass

from textual.content import Content
from textual.style import Style

from gistpoint.core.attempts.clock import Clock, ClockActivity
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.outcomes import BackendRecord
from gistpoint.core.readable import duration
from gistpoint.tui import signs
from gistpoint.tui.widgets.one_line import OneLine
from gistpoint.tui.widgets.plain import plain_line

GLYPHS = {
    ClockActivity.READING: signs.READS,
    ClockActivity.EXPLORING: signs.EXPLORES,
    ClockActivity.EDITING: signs.COMMENT,
    ClockActivity.WAITING: "…",
    ClockActivity.PAUSED: signs.PAUSED,
    ClockActivity.IDLE: "z",
    ClockActivity.THINKING: signs.IDLE,
}

_GAP, _GAP_TO_BADGE = 1, 2
_STEP = 8
_MOST_PIPS = 8
"""The maximum number of pips that people can count at a glance."""
_LOW_SHARE = 0.25
"""The remaining share up to which a budget is drawn as running out."""


def pips(left: int, total: int) -> str:
    """Return a pip for each unit of a budget, the first `left` of them full."""
    full = min(max(0, left), total)
    return signs.FULL * full + signs.EMPTY * (total - full)


@dataclass(frozen=True, slots=True)
class _Fit:
    """The parts of the line that are drawn."""

    title: int
    """The minimum number of cells to which the title is cut; with 0, it is left out."""
    nouns: bool
    pips: int
    """The largest budget that is drawn with pips."""
    activity: bool


_ALL = 1000
_FITS = (
    _Fit(_ALL, nouns=True, pips=_ALL, activity=True),
    _Fit(_ALL, nouns=False, pips=_ALL, activity=True),
    _Fit(_ALL, nouns=False, pips=_ALL, activity=False),
    _Fit(_ALL, nouns=False, pips=_MOST_PIPS, activity=True),
    _Fit(_ALL, nouns=False, pips=_MOST_PIPS, activity=False),
    _Fit(_ALL, nouns=False, pips=0, activity=False),
    _Fit(12, nouns=False, pips=0, activity=False),
    _Fit(0, nouns=False, pips=0, activity=False),
)
"""The choices of parts, from the full line to the shortest."""


class BudgetBar(OneLine):
    """A line with the title, the remaining budgets with a pip for each unit, the clock and the isolation.

    If the line is narrow, the nouns are left out first, then the activity or the pips of large budgets, then
    both, and then all pips; the title is cut last.
    """

    DEFAULT_CSS = """
    BudgetBar { dock: top; height: 1; width: 1fr; background: $panel; color: $foreground; padding: 0 1 0 0; }
    BudgetBar.-paused { background: $warning-muted; }
    BudgetBar.-unsandboxed { background: $error-muted; }
    BudgetBar:ansi { background: ansi_default; }
    """
    ALLOW_SELECT = False

    def __init__(
        self, title: str = "", *, name: str | None = None, id: str | None = None, classes: str | None = None
    ) -> None:
        """`title` is the name of the task."""
        super().__init__(name=name, id=id, classes=classes)
        self.title = title
        self._state = AttemptState()
        self._clock = Clock()
        self._backend: BackendRecord | None = None

    def update_from(self, state: AttemptState, clock: Clock, *, backend: BackendRecord) -> None:
        """Show a state with the current clock."""
        self._state, self._clock, self._backend = state, clock, backend
        self.set_class(clock.running is ClockActivity.PAUSED and not state.ended, "-paused")
        self.set_class(not backend.isolated, "-unsandboxed")
        self.tooltip = self._explanation(backend)
        self.redraw()

    def end_cells(self) -> int:
        """Return the number of cells for the time and the isolation, rounded up so that they rarely move."""
        if self._backend is None:
            return super().end_cells()
        needed = sum(len(words) for words, _ in self._times()) + _GAP_TO_BADGE
        needed += self._badge(self._backend).cell_length
        return -(-needed // _STEP) * _STEP

    def line(self) -> Content:
        """Return as much of the line as fits."""
        if self._backend is None:
            return Content("")
        width = self.content_size.width
        badge = self._badge(self._backend)
        for fit in _FITS:
            left, right = self._budgets(fit), Content.assemble(self._time(fit), " " * _GAP_TO_BADGE, badge)
            room = width - left.cell_length - right.cell_length - _GAP
            title = plain_line(f" {self.title} ") if self.title and fit.title else Content("")
            if room >= min(title.cell_length, fit.title):
                title = title.truncate(room, ellipsis=True).stylize("bold $text-warning reverse")
                return Content.assemble(title, left, " " * (room - title.cell_length + _GAP), right)
        least = Content.assemble(self._budgets(_FITS[-1]), " ", self._time(_FITS[-1]))
        return Content.assemble(badge, " ", least.truncate(max(0, width - badge.cell_length - 1)))

    def _budgets(self, fit: _Fit) -> Content:
        parts: list[str | Content | tuple[str, str | Style]] = []
        for sign, noun, left, of in _budgets(self._state):
            warning = _warning_style(left, of)
            word = f"{noun}{'' if left == 1 else 's'} left" if fit.nouns else "left"
            parts += ["  ", f"{sign} ", (f"{left} {word}", f"bold {warning}")]
            if of <= fit.pips:
                parts += [" ", (pips(left, of), warning or "$text-primary")]
        return Content.assemble(*parts)

    def _time(self, fit: _Fit) -> Content:
        state, clock = self._state, self._clock
        paused = clock.running is ClockActivity.PAUSED and not state.ended
        sign, word = (signs.ENDED, "ended") if state.ended else (GLYPHS[clock.running], clock.running.value)
        is_named = fit.activity or paused or state.ended
        activity = f"{sign} {word} " if is_named else f"{sign} "
        return Content.assemble((activity, "bold reverse" if paused else "$foreground 60%"), *self._times())

    def _times(self) -> list[tuple[str, str]]:
        """Return the parts that change every second, with their styles."""
        time, limit = [(duration(self._clock.active), "bold")], self._state.budgets.time_limit_s
        if limit is not None:
            time.append(self._time_left(limit * 1000 - self._clock.active))
        return time

    def _time_left(self, ms: int) -> tuple[str, str]:
        limit = self._state.budgets.time_limit_s or 0
        return f" ({duration(ms)} left)", "bold $text-error" if ms <= limit * 1000 * _LOW_SHARE else ""

    def _badge(self, backend: BackendRecord) -> Content:
        if backend.isolated:
            return Content.assemble(plain_line(backend.name), (f" {signs.GOOD}", "$text-success"))
        return Content.styled(f" {signs.WARNING} UNSANDBOXED ", "bold $text-error reverse")

    def _explanation(self, backend: BackendRecord) -> Content:
        clock = self._clock
        times = "  ".join(
            f"{activity.value} {duration(clock.of(activity))}"
            for activity in ClockActivity
            if clock.of(activity)
        )
        if backend.isolated:
            where = f"Tests run isolated by {backend.name} {backend.version}".rstrip()
        else:
            where = f"Tests run WITHOUT isolation ({backend.name}): code under test can reach your files"
        return plain_line(f"{where}.  {times}")


def _warning_style(left: int, total: int) -> str:
    """Return the style of a budget that is used up or running out; empty for any other."""
    if left == 0:
        return "$text-error"
    return "$text-warning" if left <= total * _LOW_SHARE else ""


def _budgets(state: AttemptState) -> list[tuple[str, str, int, int]]:
    """Return the symbol, the noun, the remaining number and the total number of each limited budget."""
    left, of = state.remaining, state.budgets
    found = [(signs.DIAMOND, state.of_kind.unit, left.tool_uses, of.tool_uses)]
    if not state.of_kind.hands_in_once:
        found.append((signs.FORWARD, "submission", left.submissions, of.submissions))
    if of.scores and left.scores is not None:
        found.append((signs.BEST, "score", left.scores, of.scores))
    return found
