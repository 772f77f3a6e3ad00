"""The user's own themes, one TOML file each, in the folder `themes` next to `config.toml`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from textual.color import Color, ColorParseError
from textual.theme import Theme

from gistpoint.core.errors import did_you_mean
from gistpoint.core.locations import read_toml
from gistpoint.tui.themes import is_built_in

FOLDER = "themes"
_LONGEST_NAME = 60
_MOST_THEMES = 200
_HUES = ("primary", "secondary", "accent", "warning", "error", "success")
_COLOURS = (*_HUES, "foreground", "background", "surface", "panel", "boost")
_SHARES = ("luminosity_spread", "text_alpha")
_FIELDS = ("name", "dark", *_COLOURS, *_SHARES, "variables")


class ThemeError(Exception):
    """A theme that can't be used. The message gives the reason."""


def read_themes(config: Path) -> tuple[Mapping[str, Theme], list[str]]:
    """Return the user's themes by name, and a sentence for each file without a valid theme.

    Only the first 200 files, by name, are read.
    """
    themes: dict[str, Theme] = {}
    problems: list[str] = []
    for file in _files(config / FOLDER):
        try:
            theme = _read(file)
            if theme.name in themes:
                raise ThemeError(f"there is another theme {theme.name!r} in the folder")
            themes[theme.name] = theme
        except (OSError, ThemeError, ValueError) as error:
            why = str(error.strerror if isinstance(error, OSError) else error)
            problems.append(f"{FOLDER}/{file.name}: {why}{'' if why.endswith('?') else '.'}")
    return themes, problems


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.iterdir() if file.suffix == ".toml")[:_MOST_THEMES]
    except OSError:
        return []


def _read(file: Path) -> Theme:
    values = read_toml(file)
    for key in values:
        if key not in _FIELDS:
            meant = did_you_mean(key, _FIELDS) or f" Known are: {', '.join(_FIELDS)}"
            raise ThemeError(f"the key {key!r} is not known.{meant}")
    name = values.get("name", file.stem)
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= _LONGEST_NAME:
        raise ThemeError("'name' must be a word")
    if is_built_in(name):
        raise ThemeError(f"'name' must be different: there is already a theme {name!r}")
    if not isinstance(values.get("dark", True), bool):
        raise ThemeError("'dark' must be true or false")
    if "primary" not in values:
        raise ThemeError("'primary' is missing, the one colour that every theme needs")
    theme = Theme(name=name, **{key: value for key, value in _checked(values) if key != "name"})
    theme.variables = _variables(values.get("variables", {}), theme)
    return theme


def _variables(variables: object, theme: Theme) -> dict[str, str]:
    """Return the variables of a theme. Raises `ThemeError` if they are not a table of known colours."""
    if not isinstance(variables, dict):
        raise ThemeError("'variables' must be a table")
    known = theme.to_color_system().generate()
    for key, value in variables.items():
        if not _is_colour(known.get(key, "")):
            raise ThemeError(
                f"'variables.{key}' is not a colour of a theme.{did_you_mean(key, known)}".rstrip(".")
            )
        if not _is_colour(value):
            raise ThemeError(f"'variables.{key}' must be a colour such as \"#6FA8DC\"")
    return variables


def _checked(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key in _COLOURS:
        if key in values:
            if not _is_colour(values[key], whole=True):
                raise ThemeError(f'{key!r} must be a colour such as "#6FA8DC"')
            yield key, values[key]
    for key in _SHARES:
        if key in values:
            if not isinstance(values[key], int | float) or not 0 <= values[key] <= 1:
                raise ThemeError(f"{key!r} must be a number from 0 to 1")
            yield key, values[key]
    yield "dark", values.get("dark", True)


def _is_colour(value: object, *, whole: bool = False) -> bool:
    """Return whether a value is a colour; with `whole`, an opaque one."""
    try:
        colour = Color.parse(value) if isinstance(value, str) else None
    except (ColorParseError, ValueError, OverflowError):  # no colour, or a number out of range
        return False
    return colour is not None and colour.ansi is None and not colour.auto and (colour.a == 1 or not whole)
