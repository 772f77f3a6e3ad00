"""Reads the endpoint of a chat model, its name and its prices from the environment or `config.toml`."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn
from urllib.parse import unquote, urlsplit

import msgspec

from gistpoint.core.agents.solvers import RequestPace
from gistpoint.core.chat import ChatApi, Sampling
from gistpoint.core.errors import EndpointError, NoModelError
from gistpoint.core.locations import SETTINGS_FILE
from gistpoint.core.user_settings import EndpointTable, read_user_settings
from gistpoint.sandbox.endpoints.limits import MinuteLimits

_SHOWN = "[key]"
_LEAST_CHARACTERS = 6
"""The length of the shortest secret that is removed from text; shorter ones are placeholders."""


class ApiKey:
    """A secret key; `reveal` is only for the code that sends it."""

    __slots__ = ("_secrets", "_value")

    def __init__(self, value: str, *others: str) -> None:
        """`others` are further secrets that are removed from text."""
        self._value = value
        # A placeholder such as "none" is a word that often occurs in text.
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

    def removed_from(self, value: object) -> object:
        """Return a JSON value with the key removed from its strings and unpaired surrogates replaced."""
        if isinstance(value, str):
            return self.removed_from_text(value)
        if isinstance(value, list):
            return [self.removed_from(item) for item in value]
        if isinstance(value, dict):
            return {self.removed_from_text(str(key)): self.removed_from(item) for key, item in value.items()}
        return value

    def removed_from_text(self, text: str) -> str:
        """Return text with the key removed, and with unpaired surrogates replaced."""
        for secret in self._secrets:
            text = text.replace(secret, _SHOWN)
        if not text.isascii():
            return text.encode("utf-8", "replace").decode("utf-8")
        return text

    def removed_from_texts(self, members: Mapping[str, object]) -> dict[str, object]:
        """Return members with the key removed, even from strings that contain JSON."""

        def clean(value: object) -> object:
            if isinstance(value, str):
                return self.removed_from_json(value)
            if isinstance(value, list):
                return [clean(item) for item in value]
            if isinstance(value, dict):
                return {name: clean(item) for name, item in value.items()}
            return value

        return {name: clean(value) for name, value in members.items()}

    def removed_from_json(self, text: str) -> str:
        """Return the text of a JSON value with the key removed, whether it is escaped or not.

        In text that is not valid JSON, only the unescaped key is removed.
        """
        text = self.removed_from_text(text)
        if "\\" not in text:
            return text
        try:
            value = json.loads(text)
            plain = json.dumps(value, ensure_ascii=False)
            if any(secret in plain for secret in self._secrets):
                return json.dumps(self.removed_from(value))
            return text
        except (ValueError, RecursionError):
            return text


OPENAI = "https://api.openai.com/v1"
URL_NAME = "OPENAI_BASE_URL"
KEY_NAME = "OPENAI_API_KEY"
MODEL_NAME = "GISTPOINT_MODEL"
READER_KEY_NAME = "GISTPOINT_READER_API_KEY"
SILENCE_S, FIRST_TOKEN_S = 120.0, 600.0
LONGEST_WHOLE_S = 300.0
"""The default time limit of a request to OpenAI's API whose reply is sent whole, in seconds."""
LONGEST_STREAM_S = 3_600.0
"""The default time limit of a request whose reply is sent in pieces, in seconds."""


@dataclass(frozen=True, slots=True)
class Vendor:
    """The default address and time limit of an API's models, and the variables with their address and key."""

    url: str
    url_name: str
    """The environment variable of the address, as the vendor's own package reads it."""
    key_names: tuple[str, ...]
    """The environment variables that may contain the key; the first one that is set applies."""
    longest_whole_s: float = 600.0
    """The default time limit of a reply that is sent whole; by default that of Anthropic's package."""


VENDORS: Mapping[ChatApi, Vendor] = {
    "openai": Vendor(OPENAI, URL_NAME, (KEY_NAME,), LONGEST_WHOLE_S),
    "anthropic": Vendor("https://api.anthropic.com", "ANTHROPIC_BASE_URL", ("ANTHROPIC_API_KEY",)),
    "gemini": Vendor(
        "https://generativelanguage.googleapis.com",
        "GOOGLE_GEMINI_BASE_URL",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    ),
}


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of a model, in US dollars per million tokens."""

    prompt: float
    completion: float


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """An endpoint and a model on it."""

    model: str
    base_url: str = OPENAI
    key: ApiKey = field(default_factory=lambda: ApiKey(""))
    timeout_s: float | None = None
    """The time limit of one request, from its start to the last byte of its reply; None for the default."""
    silence_s: float = SILENCE_S
    """The time limit between two bytes of a reply that is received in pieces, once it has begun."""
    first_token_s: float = FIRST_TOKEN_S
    """The time limit between two bytes before that, because a slow server reads a long prompt in silence."""
    no_stream: bool = False
    """Whether replies are requested whole, although a server may send them in pieces."""
    limits: MinuteLimits = field(default_factory=MinuteLimits)
    """The maximum that all conversations of a process together send to the host in a minute."""
    prices: Prices | None = None
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    sampling: Sampling = field(default_factory=Sampling)
    echo_reasoning: bool = False
    """Whether a model's reasoning is sent back to it, as some endpoints require between tool calls."""
    api: ChatApi = "openai"

    def longest_s(self, *, streamed: bool) -> float:
        """Return the time limit of one request; the default is longer for a streamed reply."""
        return self.timeout_s or (LONGEST_STREAM_S if streamed else VENDORS[self.api].longest_whole_s)

    def paced(self, pace: RequestPace) -> EndpointSettings:
        """Return the settings with the limits that a run sets, and without streams if the run wants none."""
        requests = pace.requests_per_minute or self.limits.requests
        tokens = pace.tokens_per_minute or self.limits.tokens
        return replace(
            self, limits=MinuteLimits(requests, tokens), no_stream=self.no_stream or pace.no_stream
        )

    @property
    def sampling_fields(self) -> dict[str, object]:
        """The sampling members of a request to OpenAI's API; those without a value are left out.

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
        """The key and, as further secrets, the credentials in the address in each form that is sent."""
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
    config: Path,
    environment: Mapping[str, str],
    model: str | None = None,
    *,
    base_url: str = "",
    api: ChatApi | None = None,
    key_needed: bool = True,
) -> EndpointSettings:
    """Return the settings; the arguments override the environment, and the environment overrides the file.

    With `key_needed=False`, a missing key is not an error, because nothing will be sent.

    With an `api` other than the file's, the file's address, key, model and prices do not apply. Raises
    `EndpointError` or `SettingsError` if a setting is missing or wrong; no message contains one of the user's
    values.
    """
    given = read_user_settings(config).llm
    if api is not None and api != _api_of(given):
        given = EndpointTable(api=api, **{name: getattr(given, name) for name in _OF_EVERY_API})
    if base_url:
        environment = {**environment, VENDORS[_api_of(given)].url_name: base_url}
    return _settings_of(given, "llm", environment, model, key_needed=key_needed)


_OF_EVERY_API = (
    *("timeout_s", "silence_s", "first_token_s", "no_stream", "requests_per_minute", "tokens_per_minute"),
    *("max_tokens", "max_cost_usd"),
)
"""The settings that apply to an endpoint whatever its API."""


def _api_of(table: EndpointTable) -> ChatApi:
    return table.api or "openai"


def reader_settings(config: Path, environment: Mapping[str, str], name: str) -> EndpointSettings:
    """Return the settings of the blind reader with that name: those of the table `reader` of the file.

    If the table has an address, or an API other than that of the table `llm`, neither the environment's nor
    that table's settings apply, since a key must not reach another host; `GISTPOINT_READER_API_KEY` may hold
    the key. Otherwise the reader is at the same endpoint as other models, with the table's other settings.
    Raises `EndpointError` or `SettingsError` like `endpoint_settings`.
    """
    user = read_user_settings(config)
    own = user.reader
    if own.base_url or (own.api and own.api != _api_of(user.llm)):
        key = environment.get(READER_KEY_NAME, "")
        return _settings_of(own, "reader", {VENDORS[_api_of(own)].key_names[0]: key}, name)
    changed = {
        key: value for key, value in msgspec.structs.asdict(own).items() if value not in ("", None, False)
    }
    return _settings_of(msgspec.structs.replace(user.llm, **changed), "llm", environment, name)


def _settings_of(
    given: EndpointTable,
    table: str,
    environment: Mapping[str, str],
    model: str | None,
    *,
    key_needed: bool = True,
) -> EndpointSettings:
    """Return the settings in a table of the file, which the environment overrides."""
    name = model or environment.get(MODEL_NAME, "").strip() or given.model
    if not name:
        raise NoModelError("No model was given.", hint=f"Give --model NAME, or set {MODEL_NAME}.")
    api = _api_of(given)
    vendor = VENDORS[api]
    url = environment.get(vendor.url_name, "").strip() or given.base_url or vendor.url
    keys = [environment.get(name, "") for name in vendor.key_names]
    key = next(filter(None, keys), given.api_key).strip()
    if not key.isascii() or not key.isprintable():
        raise EndpointError(
            "The key of the endpoint contains characters that no key has.",
            hint=f"Look at {' or '.join(vendor.key_names)}.",
        )
    _check_url(url, vendor.url_name)
    if key_needed:
        _require_key(key, url, vendor)
    most_tokens = given.max_tokens
    return EndpointSettings(
        model=name,
        base_url=url,
        key=ApiKey(key),
        timeout_s=given.timeout_s or None,
        silence_s=given.silence_s or SILENCE_S,
        first_token_s=given.first_token_s or FIRST_TOKEN_S,
        no_stream=given.no_stream,
        limits=MinuteLimits(_whole(given.requests_per_minute), _whole(given.tokens_per_minute)),
        prices=_prices(given, table),
        max_tokens=int(most_tokens) if most_tokens is not None else None,
        max_cost_usd=given.max_cost_usd,
        echo_reasoning=bool(given.echo_reasoning),
        api=api,
    )


def _require_key(key: str, url: str, vendor: Vendor) -> None:
    if not key and url == vendor.url:
        names = " or ".join(vendor.key_names)
        raise EndpointError(
            "No key is set for the endpoint.",
            hint=f"Set {names}, or {vendor.url_name} to an endpoint that needs no key.",
        )


def _whole(amount: float | None) -> int | None:
    """Return a limit as a number of at least 1; None if there is no limit, which 0 also means."""
    return max(1, int(amount)) if amount else None


def _check_url(url: str, name: str) -> None:
    if not _is_web_address(url):
        raise EndpointError(
            "The address of the endpoint is not an http or https address.",
            hint=f"Set {name} to something like http://localhost:8000/v1.",
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
