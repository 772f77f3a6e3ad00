"""An animated picture of a terminal program: frames of its screen, in one SVG that plays by itself.

A row of the screen that several frames have in common is written once. Nothing is loaded from elsewhere: the
font is the viewer's own monospaced one, stretched to the columns of the terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from xml.sax.saxutils import escape

from rich.cells import cell_len
from rich.style import Style
from textual.app import App
from textual.color import Color
from textual.strip import Strip

CELL, LINE, SIZE = 8.4, 18, 14
"""Width and height of a cell, and the size of the font, in pixels."""


@dataclass
class Animation:
    """The frames so far, each with the number of seconds for which it is shown."""

    columns: int
    rows: int
    frames: list[tuple[tuple[int, ...], float]] = field(default_factory=list)
    _rows: dict[str, int] = field(default_factory=dict)
    _styles: dict[str, str] = field(default_factory=dict)
    _ground: str = ""

    def take(self, app: App[object], seconds: float) -> None:
        """Add a frame with the current screen; if nothing changed, the last frame is shown longer instead."""
        strips = app.screen._compositor.render_strips()
        self._ground = Color.parse(app.get_css_variables()["background"]).hex6
        rows = tuple(self._row(strip) for strip in strips)
        if self.frames and self.frames[-1][0] == rows:
            self.frames[-1] = (rows, self.frames[-1][1] + seconds)
        else:
            self.frames.append((rows, seconds))

    def _row(self, strip: Strip) -> int:
        drawn = "".join(self._segments(strip))
        return self._rows.setdefault(drawn, len(self._rows))

    def _segments(self, strip: Strip) -> Iterator[str]:
        column = 0
        texts: list[str] = []
        for text, style, _ in strip.simplify():
            width = cell_len(text)
            fill, ground, more = self._colours(style or Style())
            x, wide = round(column * CELL, 1), round(width * CELL, 1)
            if ground != self._ground:
                yield (
                    f'<rect x="{x}" width="{wide}" height="{LINE}" class="{self._class(f"fill:{ground}")}"/>'
                )
            if text.strip():
                shown = text.strip(" ")
                blanks = len(text) - len(text.lstrip(" "))
                x, wide = round((column + blanks) * CELL, 1), round(cell_len(shown) * CELL, 1)
                css = self._class(f"fill:{fill}{more}")
                texts.append(
                    f'<text x="{x}" y="{SIZE}" textLength="{wide}" class="{css}">{escape(shown)}</text>'
                )
            column += width
        yield from texts

    def _class(self, css: str) -> str:
        return self._styles.setdefault(css, f"s{len(self._styles)}")

    def _colours(self, style: Style) -> tuple[str, str, str]:
        fill = style.color.get_truecolor().hex if style.color is not None else "#dddddd"
        ground = style.bgcolor.get_truecolor().hex if style.bgcolor is not None else self._ground
        if style.reverse:
            fill, ground = ground, fill
        more = ";font-weight:bold" if style.bold else ""
        more += ";font-style:italic" if style.italic else ""
        more += ";text-decoration:underline" if style.underline else ""
        more += ";opacity:.65" if style.dim else ""
        return fill, ground.lower(), more

    def svg(self, title: str) -> str:
        """Return the picture; a viewer that prefers no motion sees the last frame."""
        width, height = round(self.columns * CELL), self.rows * LINE
        starts = list(accumulate((seconds for _, seconds in self.frames), initial=0.0))
        whole = starts[-1]
        styles = "".join(f".{name}{{{css}}}" for css, name in self._styles.items())
        moving = "".join(
            f"@keyframes k{n}{{0%{{visibility:{'visible' if not n else 'hidden'}}}"
            f"{starts[n] / whole:.3%}{{visibility:visible}}{starts[n + 1] / whole:.3%}{{visibility:hidden}}}}"
            f"#f{n}{{animation:k{n} {whole:.1f}s step-end infinite}}"
            for n in range(len(self.frames))
        )
        last = len(self.frames) - 1
        shown = f".f{{animation:none!important}}#f{last}{{visibility:visible}}"
        still = f"@media(prefers-reduced-motion:reduce){{{shown}}}"
        known = "".join(f'<g id="r{number}">{row}</g>' for row, number in self._rows.items() if row)
        empty = self._rows.get("")
        frames = "".join(
            f'<g class="f" id="f{n}">{_frame(rows, empty)}</g>' for n, (rows, _) in enumerate(self.frames)
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
            f"<title>{escape(title)}</title><style>text{{font:{SIZE}px ui-monospace,Menlo,Consolas,'DejaVu"
            " Sans Mono',"
            f"monospace;white-space:pre}}.f{{visibility:hidden}}{styles}{moving}{still}</style><defs>{known}</defs>"
            f'<rect width="{width}" height="{height}" fill="{self._ground}"/>{frames}</svg>'
        )


def _frame(rows: Sequence[int], empty: int | None) -> str:
    return "".join(
        f'<use href="#r{row}" y="{number * LINE}"/>' for number, row in enumerate(rows) if row != empty
    )
