"""Reads the user's settings from `config.toml` in the config folder, and rejects unknown keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from sys import float_info
from typing import Annotated, Any, Literal, get_type_hints

import msgspec
from msgspec import Meta

from gistpoint.core.chat import CHAT_APIS, ChatApi
from gistpoint.core.decoding import decodable
from gistpoint.core.errors import SettingsError, did_you_mean
from gistpoint.core.locations import SETTINGS_FILE, read_toml

Text = Annotated[str, Meta(description="a string")]
Key = Annotated[str, Meta(min_length=1, description='a string such as "f9,ctrl+r"')]
Amount = Annotated[
    Annotated[float, Meta(ge=0, le=float_info.max)] | None, Meta(description="a number that is at least 0")
]
Switch = Annotated[bool, Meta(description="true or false")]
_HINT = "Correct it, or move it away."
_PLACE = re.compile(r" \(at line \d+, column \d+\)")


class EndpointTable(msgspec.Struct, frozen=True):
    """The keys of the tables `llm` and `reader`, which describe the endpoint of a chat model."""

    api: Annotated[ChatApi | Literal[""], Meta(description=f"one of {', '.join(CHAT_APIS)}")] = ""
    """The endpoint's API; empty for OpenAI's, which most servers support."""
    base_url: Text = ""
    model: Text = ""
    api_key: Text = ""
    timeout_s: Amount = None
    silence_s: Amount = None
    first_token_s: Amount = None
    no_stream: Switch = False
    requests_per_minute: Amount = None
    tokens_per_minute: Amount = None
    max_tokens: Amount = None
    max_cost_usd: Amount = None
    usd_per_million_prompt_tokens: Amount = None
    usd_per_million_completion_tokens: Amount = None
    echo_reasoning: Switch = False


class UserSettings(msgspec.Struct, frozen=True):
    """The settings of a user."""

    theme: Text = ""
    """`dark`, `light`, `terminal`, `terminal-light` or a Textual theme's name; empty for the default."""
    sandbox: Text = ""
    """The requested backend; empty for the strongest that works."""
    keys: Annotated[dict[str, Key], Meta(description="a table")] = {}
    """The keys by binding id, such as `attempt.submit = "f9,ctrl+r"`; other code checks the ids."""
    llm: Annotated[EndpointTable, Meta(description="a table")] = EndpointTable()
    reader: Annotated[EndpointTable, Meta(description="a table")] = EndpointTable()
    """The settings that differ for a blind reader; if they have an address, none of those in `llm` apply."""


def read_user_settings(config: Path) -> UserSettings:
    """Return the settings in a folder; the defaults if there is no file.

    Raises `SettingsError` for a file that can't be read, an unknown key, a value of a wrong type and an empty
    `sandbox`, because a misspelled setting must not be ignored. Messages never contain values, which may be
    secret.
    """
    path = config / SETTINGS_FILE
    values = _parsed(path)
    for id, key in _table(values, "keys").items():
        _checked(path, f"keys.{id}", key, Key)
    for name in ("llm", "reader"):
        _check_table(path, f"{name}.", _table(values, name), EndpointTable)
    _check_table(path, "", values, UserSettings)
    if values.get("sandbox") == "":
        raise SettingsError(
            f"{path}: the key 'sandbox' is empty.", hint='Name a backend, such as sandbox = "bwrap".'
        )
    return msgspec.convert(values, decodable(UserSettings))


def _parsed(path: Path) -> Mapping[str, Any]:
    try:
        return read_toml(path)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingsError(f"{path} can't be read: {error.strerror}.", hint=_HINT) from error
    except UnicodeDecodeError:
        raise SettingsError(f"{path} is not text in UTF-8.", hint=_HINT) from None
    except ValueError as error:  # `TOMLDecodeError`, whose module is not imported without a file
        place = _PLACE.search(str(error))
        raise SettingsError(f"{path} is not valid TOML{place[0] if place else ''}.", hint=_HINT) from None


def _table(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = values.get(key)
    return value if isinstance(value, dict) else {}


def _check_table(path: Path, name: str, values: Mapping[str, Any], kind: type[msgspec.Struct]) -> None:
    hints = get_type_hints(kind, include_extras=True)
    for key, value in values.items():
        if key not in hints:
            hint = did_you_mean(key, hints).strip() or f"Known are: {', '.join(hints)}."
            raise SettingsError(f"{path}: the key '{name}{key}' is not known.", hint=hint)
        _checked(path, f"{name}{key}", value, hints[key])


def _checked(path: Path, name: str, value: object, kind: Any) -> None:
    try:
        msgspec.convert(value, decodable(kind))
    except msgspec.ValidationError:
        words = kind.__metadata__[0].description
        raise SettingsError(
            f"{path}: '{name}' must be {words}.", hint="Correct the value, or remove the key."
        ) from None
