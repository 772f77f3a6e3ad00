"""Contrast on the screen: the colour of text in a picture against the background behind it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from html import unescape
from xml.etree import ElementTree

from textual.color import Color

_SVG = "{http://www.w3.org/2000/svg}"
_STYLE = re.compile(r"\.(\S+-r\d+)\s*\{([^}]*)\}")
_FILL = re.compile(r"fill:\s*(#[0-9a-fA-F]{6}|[a-z]+)")
_DRAWN = re.compile(r"[\u2500-\u259f\u2800-\u28ff]")
"""The characters of frames, bars and sparklines."""


@dataclass(frozen=True, slots=True)
class Inked:
    """Text in one colour on one background."""

    text: str
    ink: str
    ground: str

    @property
    def ratio(self) -> float:
        """The contrast ratio according to WCAG 2.2, from 1 to 21."""
        light, dark = sorted((_luminance(self.ink), _luminance(self.ground)), reverse=True)
        return (light + 0.05) / (dark + 0.05)

    @property
    def needed(self) -> float:
        """The ratio that WCAG level AA requires: 3 for frames and bars alone, 4.5 for other text."""
        return 4.5 if _DRAWN.sub("", self.text).strip() else 3


def _luminance(color: str) -> float:
    """Return the relative luminance by WCAG 2.2."""
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in Color.parse(color).normalized
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def inked(svg: str) -> set[Inked]:
    """Return the coloured texts of a picture, except blanks, each with its colour and its background."""
    root = ElementTree.fromstring(svg)
    styles: dict[str, str] = dict(_STYLE.findall(svg))
    grounds: dict[float, list[tuple[float, float, str]]] = defaultdict(list)
    terminal = next(rect for rect in root.iter(f"{_SVG}rect")).get("fill", "#000000")
    for rect in root.iter(f"{_SVG}rect"):
        if rect.get("shape-rendering") == "crispEdges":
            x, width = float(rect.get("x", 0)), float(rect.get("width", 0))
            grounds[round(float(rect.get("y", 0)))].append((x, x + width, rect.get("fill", terminal)))
    lines = sorted(grounds)
    found = set()
    for text in root.iter(f"{_SVG}text"):
        rules = _FILL.search(styles.get(text.get("class", ""), ""))
        words = unescape("".join(text.itertext())).replace("\xa0", " ")
        if rules is None or not words.strip() or not lines:
            continue
        x, y = float(text.get("x", 0)), float(text.get("y", 0))
        row = lines[max(0, bisect_right(lines, y) - 1)]
        ground = next(
            (fill for left, right, fill in reversed(grounds[row]) if left <= x + 1 < right), terminal
        )
        found.add(Inked(words.strip(), rules.group(1), ground))
    return found
