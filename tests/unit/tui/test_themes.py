import pytest
from textual.color import Color
from textual.theme import Theme

from gistpoint.tui.themes import DARK, DEFAULT, LIGHT, OWN, theme_named


def luminance(color: Color) -> float:
    """Relative luminance, WCAG 2.2."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color.normalized]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: Color, other: Color) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", OWN, ids=lambda theme: theme.name)
def test_text_of_every_colour_can_be_read_on_every_background(theme: Theme) -> None:
    variables = theme.to_color_system().generate()
    for background in ("background", "surface", "panel"):
        behind = Color.parse(variables[background])
        for kind in ("primary", "secondary", "accent", "warning", "error", "success"):
            assert contrast(behind, Color.parse(variables[f"text-{kind}"])) >= 4.5
        assert contrast(behind, Color.parse(variables["foreground"])) >= 7


def test_which_theme_is_chosen() -> None:
    assert theme_named("", {}) == DEFAULT
    assert theme_named("", {"NO_COLOR": ""}) == "ansi-dark"
    assert theme_named("light", {"NO_COLOR": "1"}) == LIGHT.name
    assert theme_named("", {"TERM": "linux"}) == "ansi-dark"
    assert theme_named("", {"TERM": "xterm-256color"}) == DARK.name
    assert theme_named("nord", {}) == "nord"
