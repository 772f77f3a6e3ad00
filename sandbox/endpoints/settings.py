"""Reads the endpoint of a chat model, its name and its prices from the environment or `config.toml`."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from urllib.parse import unquote, urlsplit

import msgspec

from gistpoint.core.chat import Sampling
from gistpoint.core.errors import EndpointError, NoModelError
from gistpoint.core.locations import SETTINGS_FILE
from gistpoint.core.user_settings import EndpointTable, read_user_settings

_SHOWN = "[key]"
_LEAST_CHARACTERS = 6
"""The length of the shortest key; shorter keys are placeholders, which are not removed from texts."""


class ApiKey:
    """A secret key; `reveal` is only for the code that sends it."""

    __slots__ = ("_secrets", "_value")

    def __init__(self, value: str, *others: str) -> None:
        """`others` are further secrets that are removed from texts."""
        self._value = value
        # A placeholder such as "none" is a word that occurs in many texts.
        self._secrets = tuple(secret for secret in (value, *others) if len(secret) >= _LEAST_CHARACTERS)

    def reveal(self) -> str:
        """Return the key itself."""
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return _SHOWN

    def __reduce__(self) -> NoReturn:
        raise TypeError("A key is never stored or sent to another process.")

    def taken_out_of(self, value: object) -> object:
        """Return a JSON value with the key removed from its strings and unpaired surrogates replaced."""
        if isinstance(value, str):
            return self.taken_out_of_text(value)
        if isinstance(value, list):
            return [self.taken_out_of(item) for item in value]
        if isinstance(value, dict):
            return {self.taken_out_of_text(str(key)): self.taken_out_of(item) for key, item in value.items()}
        return value

    def taken_out_of_text(self, text: str) -> str:
        """Return a text with the key removed, and with unpaired surrogates replaced."""
        for secret in self._secrets:
            text = text.replace(secret, _SHOWN)
        if not text.isascii():
            return text.encode("utf-8", "replace").decode("utf-8")
        return text

    def taken_out_of_json(self, text: str) -> str:
        """Return the text of a JSON value with the key removed, whether it is escaped or not.

        In a text that is not valid JSON, only the unescaped key is removed.
        """
        text = self.taken_out_of_text(text)
        if "\\" not in text:
            return text
        try:
            value = json.loads(text)
            plain = json.dumps(value, ensure_ascii=False)
            if any(secret in plain for secret in self._secrets):
                return json.dumps(self.taken_out_of(value))
            return text
        except (ValueError, RecursionError):
            return text


OPENAI = "https://api.openai.com/v1"
URL_NAME = "OPENAI_BASE_URL"
KEY_NAME = "OPENAI_API_KEY"
MODEL_NAME = "GISTPOINT_MODEL"
READER_KEY_NAME = "GISTPOINT_READER_API_KEY"


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of a model, in US dollars per million tokens."""

    prompt: float
    completion: float


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """An OpenAI-compatible endpoint and a model on it."""

    model: str
    base_url: str = OPENAI
    key: ApiKey = field(default_factory=lambda: ApiKey(""))
    timeout_s: float = 300.0
    """The time limit of one request, from its start to the last byte of its reply."""
    prices: Prices | None = None
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    sampling: Sampling = field(default_factory=Sampling)
    echo_reasoning: bool = False
    """Whether a model's reasoning is sent back to it, as some endpoints require between calls of tools."""

    @property
    def sampling_fields(self) -> dict[str, object]:
        """The sampling members of a request; those without a value are left out.

        OpenAI's own models refuse `max_tokens`, while some local servers know only that name. A limit on
        reasoning is sent in OpenRouter's form.
        """
        given = self.sampling
        most = "max_completion_tokens" if self.base_url == OPENAI else "max_tokens"
        fields: dict[str, object] = {
            "temperature": given.temperature,
            "top_p": given.top_p,
            "seed": given.seed,
            most: given.max_output_tokens,
            "reasoning_effort": given.reasoning_effort,
        }
        if given.thinking_tokens is not None:
            fields["reasoning"] = {"max_tokens": given.thinking_tokens}
        return {name: value for name, value in fields.items() if value is not None}

    @property
    def withheld(self) -> ApiKey:
        """The key, with the address's password as a further secret, in the forms in which it is sent."""
        parts = urlsplit(self.base_url)
        if not parts.username and not parts.password:
            return self.key
        user = unquote(parts.username or "")
        password = unquote(parts.password or "")
        header = base64.b64encode(f"{user}:{password}".encode()).decode()
        return ApiKey(self.key.reveal(), header, header.rstrip("="), password or user, parts.password or user)

    @property
    def has_secret(self) -> bool:
        """Whether there is a key, or a user or password in the address."""
        parts = urlsplit(self.base_url)
        return bool(self.key or parts.username or parts.password)

    @property
    def place(self) -> str:
        """The endpoint's host and port, for messages; paths, users and queries may contain secrets."""
        parts = urlsplit(self.base_url)
        host = parts.hostname or "the endpoint"
        if parts.port:
            return f"{host}:{parts.port}"
        return host

    @property
    def has_path(self) -> bool:
        """Whether the address has a path, such as the usual `/v1`."""
        return bool(urlsplit(self.base_url).path.strip("/"))


def endpoint_settings(
    config: Path, environment: Mapping[str, str], model: str | None = None
) -> EndpointSettings:
    """Return the settings; `model` overrides the environment, and the environment overrides the file.

    Raises `EndpointError` or `SettingsError` if a setting is missing or wrong; no message contains one of the
    user's values.
    """
    return _settings_of(read_user_settings(config).llm, "llm", environment, model)


def reader_settings(config: Path, environment: Mapping[str, str], name: str) -> EndpointSettings:
    """Return the settings of the blind reader with that name: those of the table `reader` of the file.

    If the table has an address, neither the environment's nor the table `llm`'s settings apply, since a key
    must not reach another host; `GISTPOINT_READER_API_KEY` may hold the key. Otherwise the reader is at the
    same endpoint as other models, with the table's other settings. Raises `EndpointError` or `SettingsError`
    like `endpoint_settings`.
    """
    user = read_user_settings(config)
    own = user.reader
    if own.base_url:
        key = environment.get(READER_KEY_NAME, "")
        return _settings_of(own, "reader", {KEY_NAME: key}, name)
    changed = {
        key: value for key, value in msgspec.structs.asdict(own).items() if value not in ("", None, False)
    }
    return _settings_of(msgspec.structs.replace(user.llm, **changed), "llm", environment, name)


def _settings_of(
    given: EndpointTable, table: str, environment: Mapping[str, str], model: str | None
) -> EndpointSettings:
    """Return the settings in a table of the file, which the environment overrides."""
    name = model or environment.get(MODEL_NAME, "").strip() or given.model
    if not name:
        raise NoModelError("No model was given.", hint=f"Give --model NAME, or set {MODEL_NAME}.")
    url = environment.get(URL_NAME, "").strip() or given.base_url or OPENAI
    key = (environment.get(KEY_NAME, "") or given.api_key).strip()
    if not key.isascii() or not key.isprintable():
        raise EndpointError(
            "The key of the endpoint contains characters that no key has.", hint=f"Look at {KEY_NAME}."
        )
    _check_url(url)
    if not key and url == OPENAI:
        raise EndpointError(
            "No key is set for the endpoint.",
            hint=f"Set {KEY_NAME}, or {URL_NAME} to an endpoint that needs no key.",
        )
    most_tokens = given.max_tokens
    return EndpointSettings(
        model=name,
        base_url=url,
        key=ApiKey(key),
        timeout_s=given.timeout_s or 300.0,
        prices=_prices(given, table),
        max_tokens=int(most_tokens) if most_tokens is not None else None,
        max_cost_usd=given.max_cost_usd,
        echo_reasoning=bool(given.echo_reasoning),
    )


def _check_url(url: str) -> None:
    if not _is_web_address(url):
        raise EndpointError(
            "The address of the endpoint is not an http or https address.",
            hint=f"Set {URL_NAME} to something like http://localhost:8000/v1.",
        )


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    if port is not None and port <= 0:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _prices(given: EndpointTable, table: str) -> Prices | None:
    prompt = given.usd_per_million_prompt_tokens
    completion = given.usd_per_million_completion_tokens
    if prompt is None and completion is None:
        return None
    if prompt is None or completion is None:
        raise EndpointError(
            f"{SETTINGS_FILE}: [{table}] gives a price for one side only.", hint="Give both, or none."
        )
    return Prices(prompt, completion)
