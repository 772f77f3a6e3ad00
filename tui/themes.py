"""The themes: our dark and light ones, and two in the terminal's 16 colours. Textual's are available too."""

from __future__ import annotations

import os
from collections.abc import Mapping

from textual.theme import BUILTIN_THEMES, Theme

DARK = Theme(
    name="gistpoint-dark",
    primary="#6FA8DC",
    secondary="#8AB8A8",
    accent="#C9A0DC",
    warning="#E6B450",
    error="#EF7A72",
    success="#8CC570",
    foreground="#E4E8EC",
    background="#14181D",
    surface="#1A1F26",
    panel="#232A33",
    dark=True,
    variables={
        "block-cursor-background": "#223850",
        "block-cursor-foreground": "#FFFFFF",
        "block-cursor-blurred-background": "#26313D",
        "footer-key-foreground": "#E6B450",
        "scrollbar": "#637282",
        "scrollbar-hover": "#77879A",
        "scrollbar-active": "#6FA8DC",
        "scrollbar-background": "#1A1F26",
        "border": "#6FA8DC",
        "border-blurred": "#637282",
    },
)

LIGHT = Theme(
    name="gistpoint-light",
    primary="#1F5F99",
    secondary="#2F6B5B",
    accent="#7A3E9D",
    warning="#8A5A00",
    error="#B3261E",
    success="#2E6B1F",
    foreground="#0C1014",
    background="#FBFAF7",
    surface="#F3F1EC",
    panel="#E6E3DB",
    dark=False,
    variables={
        "block-cursor-background": "#DCE8F3",
        "block-cursor-foreground": "#101418",
        "block-cursor-blurred-background": "#E3E8EC",
        "footer-key-foreground": "#8A5A00",
        "scrollbar": "#8A857A",
        "scrollbar-hover": "#6E695F",
        "scrollbar-active": "#1F5F99",
        "scrollbar-background": "#F3F1EC",
        "border": "#1F5F99",
        "border-blurred": "#8A857A",
    },
)

TERMINAL_DARK, TERMINAL_LIGHT = "ansi-dark", "ansi-light"
"""Textual's themes of the terminal's own 16 colours."""

OWN = (DARK, LIGHT)
DEFAULT = DARK.name


def theme_named(wanted: str, environment: Mapping[str, str] | None = None) -> str:
    """Return the name of the theme for `dark`, `light`, `terminal`, `terminal-light` or a theme's own name.

    An empty string means the default: the terminal's colours if `NO_COLOR` is set or the terminal reports
    only 16 colours, otherwise dark. With `NO_COLOR` Textual removes all colours from any theme; the
    terminal's theme then keeps the background.
    """
    env = os.environ if environment is None else environment
    known = {
        "dark": DARK.name,
        "light": LIGHT.name,
        "terminal": TERMINAL_DARK,
        "terminal-light": TERMINAL_LIGHT,
    }
    if wanted:
        return known.get(wanted, wanted)
    return TERMINAL_DARK if env.get("NO_COLOR") is not None or _has_16_colours(env) else DEFAULT


def is_built_in(name: str) -> bool:
    """Return whether a theme comes with gistpoint or Textual."""
    return name in BUILTIN_THEMES or any(theme.name == name for theme in OWN)


def _has_16_colours(environment: Mapping[str, str]) -> bool:
    if environment.get("COLORTERM", "") in ("truecolor", "24bit"):
        return False
    return environment.get("TERM", "") in ("linux", "ansi", "vt100", "vt220", "xterm-16color", "cygwin")
