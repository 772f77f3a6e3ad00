from pathlib import Path

import pytest
from contrast import Inked
from textual.color import Color
from textual.theme import Theme

from gistpoint.tui.themes import DARK, DEFAULT, LIGHT, OWN, theme_named

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "looks.md"
GROUNDS = ("background", "surface", "panel", "block-cursor-background")
INKS = {
    "text": "foreground",
    "muted text": "foreground 60%",
    **{name: f"text-{name}" for name in ("primary", "secondary", "accent", "warning", "error", "success")},
    "frame with the focus": "border",
    "frame without it": "border-blurred",
}


def ratios(theme: Theme, ink: str) -> list[float]:
    """Return the contrast of a colour on each background, as drawn on the screen."""
    colours = theme.to_color_system().generate()
    name, _, share = ink.partition(" ")
    found = []
    for ground in (Color.parse(colours[name]) for name in GROUNDS):
        drawn = ground.blend(Color.parse(colours[name]), int(share.rstrip("%")) / 100 if share else 1)
        found.append(Inked("x", drawn.hex6, ground.hex6).ratio)
    return found


@pytest.mark.parametrize("theme", OWN, ids=lambda theme: theme.name)
def test_text_of_every_colour_can_be_read_on_every_background(theme: Theme) -> None:
    for what, ink in INKS.items():
        on = ratios(theme, ink)
        if what.startswith("frame"):
            assert min(on[:2]) >= 3, (what, on)
        else:
            assert min(on) >= 4.5, (what, on)
    assert min(ratios(theme, "foreground")) >= 7


def test_the_guide_has_the_figures() -> None:
    rows = [
        f"| {what} | " + " | ".join(f"{ratio:.1f}" for theme in OWN for ratio in ratios(theme, ink)) + " |"
        for what, ink in INKS.items()
    ]
    assert "\n".join(rows) in GUIDE.read_text(encoding="utf-8"), "\n".join(rows)


def test_which_theme_is_chosen() -> None:
    assert theme_named("", {}) == DEFAULT
    assert theme_named("", {"NO_COLOR": ""}) == "ansi-dark"
    assert theme_named("light", {"NO_COLOR": "1"}) == LIGHT.name
    assert theme_named("", {"TERM": "linux"}) == "ansi-dark"
    assert theme_named("", {"TERM": "xterm-256color"}) == DARK.name
    assert theme_named("nord", {}) == "nord"
