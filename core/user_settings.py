"""The user's own settings: `config.toml` in the config folder, every key of it optional and none of it unknown."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from gistpoint.core.errors import SettingsError

FILE = "config.toml"
ENDPOINT_TEXTS = ("base_url", "model", "api_key")
ENDPOINT_NUMBERS = (
    "timeout_s", "max_tokens", "max_cost_usd", "usd_per_million_prompt_tokens", "usd_per_million_completion_tokens",
)  # fmt: skip
_KEYS = ("theme", "sandbox", "keys", "llm")
_MEND = "Mend it, or move it away."
_PLACE = re.compile(r" \(at line \d+, column \d+\)")


@dataclass(frozen=True, slots=True)
class UserSettings:
    """What a user can set."""

    theme: str = ""
    """`dark`, `light`, `terminal`, `terminal-light` or the name of a theme of Textual's; empty for the default."""
    sandbox: str = ""
    """The backend that is asked for; empty for the strongest that works."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Keys by the id of their binding, such as `attempt.submit = "f9,ctrl+r"`; ids are not looked at here."""
    endpoint: Mapping[str, str | float] = field(default_factory=dict)
    """The table `llm`: a chat model's endpoint, see `ENDPOINT_TEXTS` and `ENDPOINT_NUMBERS`."""


def read_user_settings(config: Path) -> UserSettings:
    """Read the settings from a folder.

    Raises `SettingsError` for a file that can't be read, an unknown key and a value of another kind: a setting that is
    spelled wrong must not be as if it were not there. No message holds a value, which may be a secret.
    """
    path = config / FILE
    values = _parsed(path)
    _refuse_unknown(path, "", values, _KEYS)
    theme, sandbox = (_text(path, values, key) for key in ("theme", "sandbox"))
    if "sandbox" in values and not sandbox:
        raise SettingsError(f"{path}: the key 'sandbox' is empty.", hint='Name one, such as sandbox = "bwrap".')
    keys, endpoint = (_table(path, values, key) for key in ("keys", "llm"))
    for id, key in keys.items():
        if not isinstance(key, str) or not key:
            raise SettingsError(f"{path}: 'keys.{id}' must be a string such as \"f9,ctrl+r\".")
    _refuse_unknown(path, "llm.", endpoint, (*ENDPOINT_TEXTS, *ENDPOINT_NUMBERS))
    texts = {key: _text(path, endpoint, key, "llm.") for key in ENDPOINT_TEXTS if key in endpoint}
    numbers = {key: _number(path, endpoint[key], key) for key in ENDPOINT_NUMBERS if key in endpoint}
    return UserSettings(theme, sandbox, keys, {**texts, **numbers})


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a hint that names the known word most like one that is not, or all that there are."""
    words = list(known)
    alike = get_close_matches(word, words, 1)
    return f"Did you mean {alike[0]!r}?" if alike else f"Known are: {', '.join(words)}."


def _parsed(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingsError(f"{path} can't be read: {error.strerror}.", hint=_MEND) from error
    except UnicodeDecodeError:
        raise SettingsError(f"{path} is not text in UTF-8.", hint=_MEND) from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        place = _PLACE.search(str(error))
        raise SettingsError(f"{path} is not sound TOML{place[0] if place else ''}.", hint=_MEND) from None


def _refuse_unknown(path: Path, table: str, values: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in values:
        if key not in known:
            raise SettingsError(f"{path}: the key '{table}{key}' is not known.", hint=nearest(key, known))


def _text(path: Path, values: Mapping[str, Any], key: str, table: str = "") -> str:
    value = values.get(key, "")
    if not isinstance(value, str):
        raise SettingsError(f"{path}: '{table}{key}' must be a string.")
    return value


def _table(path: Path, values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = values.get(key, {})
    if not isinstance(value, dict):
        raise SettingsError(f"{path}: '{key}' must be a table.")
    return value


def _number(path: Path, value: object, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise SettingsError(f"{path}: 'llm.{key}' must be a number of 0 or more.")
    return float(value)
