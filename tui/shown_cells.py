"""What the terminal shows, so that a drawn screen is sent as the cells that have changed.

Textual sends every region that is drawn, and draws the whole screen whenever a part of it moves: the key of a
pane sent 50 kB at 160x48, of which most was on the screen already (decision 211).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby, repeat
from operator import itemgetter, ne
from typing import cast

from rich.cells import cell_len, get_character_cell_size
from rich.color import ColorSystem
from rich.console import Console, RenderableType
from rich.control import Control
from rich.style import Style
from textual import events
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate  # what the compositor returns
from textual.app import App
from textual.driver import Driver
from textual.geometry import Size
from textual.screen import Screen
from textual.strip import Strip

Cell = tuple[str, Style | None]
"""The text of a cell and its style. A wide character is in its first cell; the others are empty."""
_APART = 6
"""The number of unchanged cells between two changes below which it is shorter to send them as well."""


class ChangedCells(CompositorUpdate):
    """An update that has been turned into the sequences to send."""

    def __init__(self, sequences: str) -> None:
        self.sequences = sequences

    def render_segments(self, console: Console) -> str:
        """Return the sequences."""
        return self.sequences


class ShownCells:
    """The cells that the terminal shows, as far as they are known."""

    def __init__(self) -> None:
        self._lines: dict[int, list[Cell]] = {}
        self._size = Size()

    def forget(self) -> None:
        """Forget all cells, because something else may have drawn on the terminal."""
        self._lines.clear()

    def changes(self, update: LayoutUpdate | ChopsUpdate, console: Console) -> str:
        """Return the sequences that show an update on the terminal, and count it as shown.

        A whole screen of a new size is sent in full, because a terminal that has become smaller has wrapped
        and scrolled what was drawn for its earlier size.
        """
        colours = console._color_system or ColorSystem.TRUECOLOR
        is_whole = isinstance(update, LayoutUpdate)
        if isinstance(update, LayoutUpdate) and update.region.size != self._size:
            self._size = update.region.size
            self.forget()
        sequences: list[str] = []
        style: Style | None = None
        for y, x, strip in _whole_lines(update) if isinstance(update, LayoutUpdate) else _parts(update):
            new, line = cells_of(strip), self._lines.get(y, [])
            old = line[x : x + len(new)]
            line[x : x + len(new)] = new  # has no effect on a line whose cells are not known
            if is_whole:
                self._lines[y] = new
            for first, end in _changed(old, new):
                drawn, style = _drawn(new[first:end], style, colours)
                sequences += (Control.move_to(x + first, y).segment.text, drawn)
        return "".join([*sequences, _switched(style, None, colours)])


class SparingApp(App[object]):
    """An app that sends only changed cells to the terminal."""

    _cells: ShownCells | None = None
    _covering_screen: Screen[object] | None = None
    """The screen that covered the whole terminal when it was drawn last."""

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        """Send what is drawn. A screen that covers the whole terminal is sent as a whole at first.

        If another program has written on the terminal, the next screen thus replaces its text.
        """
        is_sent = self._running and not self._closed and not self._batch_count and not self.is_headless
        if is_sent and isinstance(renderable, LayoutUpdate | ChopsUpdate):
            cells = self._cells = self._cells or ShownCells()
            covering = [screen, *self._background_screens][-1]
            if covering is not self._covering_screen:
                self._covering_screen = covering
                cells.forget()
            changed = ChangedCells(cells.changes(renderable, self.console))
            renderable = cast("RenderableType", changed)  # Textual only asks for its sequences
        super()._display(screen, renderable)

    async def on_event(self, event: events.Event) -> None:
        """Send the whole screen when the terminal gets another size, or the program continues on it."""
        await super().on_event(event)
        if isinstance(event, events.Resize | Driver.SignalResume) and self._cells is not None:
            self._cells.forget()
            self.screen.refresh()


def _whole_lines(update: LayoutUpdate) -> Iterator[tuple[int, int, Strip]]:
    """Yield the lines of a drawn region: line, first column and text."""
    for y, strips in enumerate(update.strips, update.region.y):
        yield y, update.region.x, Strip.join(strips)


def _parts(update: ChopsUpdate) -> Iterator[tuple[int, int, Strip]]:
    """Yield the drawn parts of lines, as Textual's own method sends them."""
    for y, left, right in update.spans:
        for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if strip is not None and x < right and end > left:
                yield y, x, strip.crop(0, min(end, right) - x)


def cells_of(strip: Strip) -> list[Cell]:
    """Return the cells of a line. Text with characters of other widths than one cell is kept in one piece."""
    cells: list[Cell] = []
    for text, style, _ in strip:
        look = None if style is None else _visible_style(style)
        if text.isascii() or all(get_character_cell_size(character) == 1 for character in text):
            cells.extend(zip(text, repeat(look)))
        elif width := cell_len(text):
            cells += [(text, look), *repeat(("", look), width - 1)]
    return cells


@lru_cache(maxsize=4096)
def _visible_style(style: Style) -> Style:
    """Return a style without data that the terminal does not get."""
    return style.clear_meta_and_links()


def _changed(old: Sequence[Cell], new: Sequence[Cell]) -> list[tuple[int, int]]:
    """Return the spans of cells that differ: the whole line if a cell is not exactly one character."""
    if old == new:
        return []
    if len(old) != len(new) or {len(text) for text, _ in [*old, *new]} != {1}:
        return [(0, len(new))]
    spans: list[tuple[int, int]] = []
    for at, differs in enumerate(map(ne, old, new)):
        if differs and spans and at - spans[-1][1] < _APART:
            spans[-1] = spans[-1][0], at + 1
        elif differs:
            spans.append((at, at + 1))
    return spans


def _drawn(cells: Sequence[Cell], before: Style | None, colours: ColorSystem) -> tuple[str, Style | None]:
    """Return the sequences that draw cells, given the style in force before, and the style afterwards."""
    drawn = ""
    for look, run in groupby(cells, itemgetter(1)):
        text = "".join(map(itemgetter(0), run))
        if not (text.isspace() and _alike_when_blank(before, look)):
            drawn += _switched(before, look, colours)
            before = look
        drawn += text
    return drawn, before


_SEEN = sum(1 << bit for bit in (3, 6, 8, 9, 10, 11, 12))
"""The attributes that are visible on a blank: underlines, inversion, a strike, frames and an overline."""


@lru_cache(maxsize=4096)
def _alike_when_blank(one: Style | None, other: Style | None) -> bool:
    """Return whether blanks in two styles look alike."""
    if one is None or other is None:
        return False
    return one.bgcolor == other.bgcolor and not (_attributes(one) | _attributes(other)) & _SEEN


@lru_cache(maxsize=4096)
def _switched(before: Style | None, look: Style | None, colours: ColorSystem) -> str:
    """Return the sequence that changes one style into another: only the colours that differ, if possible."""
    if look is None:
        return "" if before is None else "\x1b[0m"
    if before is None or _form(before) != _form(look):
        return f"\x1b[0;{Strip.render_ansi(look, colours)}m"
    changed = Style(
        color=None if before.color == look.color else look.color,
        bgcolor=None if before.bgcolor == look.bgcolor else look.bgcolor,
    )
    codes = Strip.render_ansi(changed, colours)
    return f"\x1b[{codes}m" if codes else ""


def _form(style: Style) -> tuple[int, bool, bool]:
    """Return what only a reset can end: the style's attributes, and whether each colour is the default."""
    return _attributes(style), style.color is None, style.bgcolor is None


def _attributes(style: Style) -> int:
    return style._attributes & style._set_attributes
