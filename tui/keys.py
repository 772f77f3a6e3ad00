"""The single table of key bindings, for footer, palette, help, documentation and the user's own keys."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS  # no public way to change a terminal's keys
from textual.binding import Binding
from textual.keys import format_key

from gistpoint.core.errors import SettingsError, UserError, did_you_mean
from gistpoint.core.locations import SETTINGS_FILE, Locations
from gistpoint.tui.bindings.general import (
    CAMPAIGN_KEYS,
    GENERAL_KEYS,
    GLANCE_KEYS,
    LABELLING_KEYS,
    STUDY_KEYS,
    WATCH_KEYS,
)
from gistpoint.tui.bindings.key import Key, KeyScope
from gistpoint.tui.bindings.reading import READING_KEYS
from gistpoint.tui.bindings.review import REVIEW_KEYS
from gistpoint.tui.bindings.solve import SOLVE_KEYS
from gistpoint.tui.bindings.validate import VALIDATE_KEYS
from gistpoint.tui.bindings.words import WORDS

if TYPE_CHECKING:
    from gistpoint.core.user_settings import UserSettings

__all__ = [
    "ALT_PUNCTUATION",
    "KEYS",
    "SCOPE_WORDS",
    "Key",
    "KeyScope",
    "bindings_of",
    "key_named",
    "keys_page",
    "read_settings",
    "settings_of",
    "shown_key",
    "shown_keys",
]

KEYS: tuple[Key, ...] = (
    *GENERAL_KEYS,
    *SOLVE_KEYS,
    *READING_KEYS,
    *STUDY_KEYS,
    *CAMPAIGN_KEYS,
    *GLANCE_KEYS,
    *LABELLING_KEYS,
    *WATCH_KEYS,
    *REVIEW_KEYS,
    *VALIDATE_KEYS,
)


def _read_alt_keys() -> None:
    """Have Textual read Escape and a character as Alt and that character.

    It reads Escape and a digit as a character typed on macOS, and loses the Alt of punctuation, which would
    then be typed into an editor.
    """
    sequences = cast("dict[str, object]", ANSI_SEQUENCES_KEYS)
    for digit in "123456789":
        sequences.pop(f"\x1b{digit}", None)
    for character, name in ALT_PUNCTUATION.items():
        sequences[f"\x1b{character}"] = (SimpleNamespace(value=f"alt+{name}"),)


ALT_PUNCTUATION = {
    "|": "vertical_line",
    "{": "left_curly_bracket",
    "}": "right_curly_bracket",
}
"""The punctuation that is bound with Alt, and Textual's names for it."""

_read_alt_keys()


def bindings_of(scope: KeyScope) -> list[Binding]:
    """Return the bindings of a screen or of the app."""
    return [key.binding() for key in KEYS if key.scope is scope]


def key_named(id: str) -> Key:
    """Return the binding with an id. Raises `KeyError` if there is none."""
    for key in KEYS:
        if key.id == id:
            return key
    raise KeyError(id)


def read_settings(config: Path) -> UserSettings:
    """Read the user's settings. Raises `SettingsError` if they can't be used, or name an unknown binding."""
    from gistpoint.core.user_settings import read_user_settings

    settings = read_user_settings(config)
    known = [key.id for key in KEYS]
    for id in settings.keys:
        if id not in known:
            hint = f"{did_you_mean(id, known)} docs/guide/keys.md lists them.".strip()
            raise SettingsError(f"{config / SETTINGS_FILE}: there is no binding {id!r}.", hint=hint)
    return settings


def settings_of(locations: Locations) -> tuple[str, Mapping[str, str], UserError | None]:
    """Return the theme, the keys by the id of their binding, and the error in the settings, or None.

    With an error or without a settings file, the theme and the keys are empty. Without a file, nothing is
    imported.
    """
    if not (locations.config / SETTINGS_FILE).exists():
        return "", {}, None
    try:
        settings = read_settings(locations.config)
    except UserError as error:
        return "", {}, error
    return settings.theme, settings.keys, None


_NAMES = {
    "escape": "Esc",
    "enter": "Enter",
    "space": "Space",
    "backspace": "Backspace",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "delete": "Del",
}


def shown_key(key: str) -> str:
    """Return the readable form of a key with a Textual name: `Ctrl+P`, `Alt+D`, `PgUp`, `N`, `/`."""
    *modifiers, name = key.split("+")
    shown = _NAMES.get(name) or format_key(name)
    if modifiers or len(shown) > 1:
        modifiers += ["shift"] if len(shown) == 1 and shown.isupper() else []
        shown = shown[0].upper() + shown[1:]
    return "+".join([*(modifier.capitalize() for modifier in modifiers), shown])


def shown_keys(keys: str) -> str:
    """Return the readable form of alternative keys."""
    return " or ".join(shown_key(key) for key in keys.split(","))


def keys_page() -> str:
    """Return the page of the user guide that lists every binding with its id, as Markdown."""
    words = [
        f"| {' '.join(f'`{_in_table(shown_key(name))}`' for name in word.keys.split())} | {word.meaning} |"
        for word in WORDS
    ]
    parts = [_PAGE_HEAD + "\n".join(words)]
    for scope in KeyScope:
        rows = [
            f"| `{key.id}` | {_in_table(shown_keys(key.keys))} | {key.description} | {key.tooltip} |"
            for key in KEYS
            if key.scope is scope
        ]
        parts.append(
            f"## {SCOPE_WORDS[scope]}\n\n| Id | Key | Name | What it does |\n| --- | --- | --- | --- |"
        )
        parts[-1] += "\n" + "\n".join(rows)
    return "\n\n".join(parts) + "\n"


def _in_table(words: str) -> str:
    """Return a string for a cell of a Markdown table, with `|` escaped."""
    return words.replace("|", "\\|")


SCOPE_WORDS = {
    KeyScope.APP: "Everywhere",
    KeyScope.HOME: "Home",
    KeyScope.SOLVE: "Solve, in any pane",
    KeyScope.SUMMARY: "Summary",
    KeyScope.DIALOG: "Dialogs",
    KeyScope.CONSOLE: "Solve: console",
    KeyScope.CODE: "Solve: code",
    KeyScope.EDITOR: "Solve: editor",
    KeyScope.RESULTS: "Solve: results",
    KeyScope.RUNS: "Review: list of runs",
    KeyScope.REVIEW: "Review: one run",
    KeyScope.PLACES_IN_RUNS: "Review: a search in all runs",
    KeyScope.COMPARE: "Review: two runs",
    KeyScope.PROFILES: "Review: many runs at a glance",
    KeyScope.TREE: "Review: many runs of one task",
    KeyScope.VALIDATE: "Validate: the queue and its task",
    KeyScope.PLACES: "Validate: code",
    KeyScope.VALIDATE_GIST: "Validate: gists",
    KeyScope.VALIDATE_PAGE: "Validate: a gist task",
    KeyScope.FILES: "Solve: files",
    KeyScope.GIST_SOLVE: "Gist, in any pane",
    KeyScope.GIST: "Gist: the text",
    KeyScope.TRACE: "Gist: the trace",
    KeyScope.BLIND_READING: "Blind reading",
    KeyScope.CAMPAIGN: "Making tasks",
    KeyScope.GLANCE: "Glance: a function read blind",
    KeyScope.GLANCE_DIFF: "Glance: what was changed",
    KeyScope.LABELLING: "Findings: labelling by hand",
    KeyScope.WATCH: "Watch",
    KeyScope.WATCH_RUN: "Watch: a run",
    KeyScope.TILES: "Watch: attempts at work",
    KeyScope.WATCH_ATTEMPT: "Watch: one attempt",
    KeyScope.BRIEF: "Solve: the first reading of the brief",
    KeyScope.ASSIGNED: "The tasks behind a participant's link",
    KeyScope.TOUR: "The tour",
    KeyScope.STUDY: "Taking part in a study",
    KeyScope.READING: "Lists and texts",
}
"""A heading for each scope."""
_PAGE_HEAD = """# Keys

Every key can be changed by its id, in `config.toml` in the config folder that `gistpoint admin paths` prints:

```toml
[keys]
"attempt.submit" = "f9,ctrl+r"
```

Several keys are separated by commas. Keys have the names that Textual uses.

You don't have to know the keys: **F1** or **?** lists those of the part with the focus, then those of the
screen, including your own, and what you type there filters the list. **Ctrl+P** offers what you can do now,
most used first. **Ctrl+O** puts a letter on everything visible that takes the focus: press one to go
there. **z** zooms a pane. Every key in the bottom line can be clicked.

## A key means one thing

A key means the same on every screen. Arrows, `h` `j` `k` `l`, `g` `G`, Page keys, Home, End, Enter, Space
and Tab have their usual meaning in lists, texts and forms, and in a field letters are text.

| Key | What it is about |
| --- | --- |
"""
