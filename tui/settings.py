"""The user's settings: `config.toml` in the config folder, every key of it optional."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gistpoint.core.errors import UserError
from gistpoint.tui.keys import KEYS

FILE = "config.toml"


class SettingsError(UserError):
    """The settings can't be used; the message names file and key."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user can set."""

    theme: str = ""
    """`dark`, `light`, `terminal`, `terminal-light` or the name of a theme of Textual's; empty for the default."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Keys by the id of their binding, such as `attempt.submit = "f9,ctrl+r"`."""


def read_settings(config: Path) -> Settings:
    """Read the settings from a folder; raises `SettingsError` for an unknown binding or a value of another kind."""
    path = config / FILE
    if not path.exists():
        return Settings()
    import tomllib

    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} can't be read: {error}.", hint="Mend it, or move it away.") from error
    theme, keys = values.get("theme", ""), values.get("keys", {})
    if not isinstance(theme, str):
        raise SettingsError(f"{path}: 'theme' must be a string.")
    if not isinstance(keys, dict):
        raise SettingsError(f"{path}: 'keys' must be a table.")
    known = {key.id for key in KEYS}
    for id, key in keys.items():
        if id not in known:
            raise SettingsError(f"{path}: there is no binding {id!r}.", hint="docs/guide/keys.md lists them.")
        if not isinstance(key, str) or not key:
            raise SettingsError(f"{path}: 'keys.{id}' must be a string such as \"f9,ctrl+r\".")
    return Settings(theme, keys)
