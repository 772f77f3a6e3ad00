"""The user's settings as the screens take them: ids of bindings are known here alone."""

from __future__ import annotations

from pathlib import Path

from gistpoint.core.errors import SettingsError
from gistpoint.core.user_settings import FILE, UserSettings, nearest, read_user_settings
from gistpoint.tui.keys import KEYS


def read_settings(config: Path) -> UserSettings:
    """Read the settings from a folder; raises `SettingsError`, for an unknown binding too."""
    settings = read_user_settings(config)
    known = [key.id for key in KEYS]
    for id in settings.keys:
        if id not in known:
            hint = f"{nearest(id, known).partition(' Known')[0]} docs/guide/keys.md lists them."
            raise SettingsError(f"{config / FILE}: there is no binding {id!r}.", hint=hint)
    return settings
