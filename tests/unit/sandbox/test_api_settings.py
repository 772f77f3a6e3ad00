"""The API of an endpoint: the sources of its address and key, and its part in a run's settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from gistpoint.core.agents.settings import AgentSettings
from gistpoint.core.chat import CHAT_APIS, ChatApi
from gistpoint.core.errors import EndpointError, SettingsError
from gistpoint.object_graph import solver_named
from gistpoint.sandbox.endpoints.settings import OPENAI, endpoint_settings, reader_settings
from gistpoint.sessions.agentruns.store import AgentRunStore, RunSettings, differing

ANTHROPIC, GEMINI = "https://api.anthropic.com", "https://generativelanguage.googleapis.com"
KEYS = {
    "OPENAI_API_KEY": "sk-of-openai",
    "ANTHROPIC_API_KEY": "sk-of-anthropic",
    "GEMINI_API_KEY": "sk-of-gemini",
    "GOOGLE_API_KEY": "sk-of-google",
}


def config(folder: Path, text: str) -> Path:
    (folder / "config.toml").write_text(text)
    return folder


def found(
    folder: Path, environment: dict[str, str] = KEYS, model: str | None = "m", **given: Any
) -> tuple[str, str, str]:
    settings = endpoint_settings(folder, environment, model, **given)
    return settings.api, settings.base_url, settings.key.reveal()


@pytest.mark.parametrize(
    ("api", "wanted"),
    [
        (None, ("openai", OPENAI, "sk-of-openai")),
        ("openai", ("openai", OPENAI, "sk-of-openai")),
        ("anthropic", ("anthropic", ANTHROPIC, "sk-of-anthropic")),
        ("gemini", ("gemini", GEMINI, "sk-of-gemini")),
    ],
)
def test_each_api_has_its_vendors_address_and_key(
    api: ChatApi | None, wanted: tuple[str, str, str], tmp_path: Path
) -> None:
    assert found(tmp_path, api=api) == wanted


def test_the_variables_are_those_of_the_vendors_packages(tmp_path: Path) -> None:
    environment = {
        "GOOGLE_API_KEY": "sk-of-google",
        "GOOGLE_GEMINI_BASE_URL": "http://gemini.example",
        "ANTHROPIC_BASE_URL": "http://claude.example",
    }
    assert found(tmp_path, environment, api="gemini") == ("gemini", "http://gemini.example", "sk-of-google")
    assert found(tmp_path, environment, api="anthropic") == ("anthropic", "http://claude.example", "")
    with pytest.raises(EndpointError) as missing:
        found(tmp_path, {}, api="gemini")
    assert "GEMINI_API_KEY or GOOGLE_API_KEY" in (missing.value.hint or "")


def test_an_address_that_is_given_is_that_of_the_api(tmp_path: Path) -> None:
    assert found(tmp_path, api="anthropic", base_url="http://h") == (
        "anthropic",
        "http://h",
        "sk-of-anthropic",
    )
    assert found(tmp_path, base_url="http://h/v1") == ("openai", "http://h/v1", "sk-of-openai")


def test_the_file_may_name_the_api(tmp_path: Path) -> None:
    config(tmp_path, '[llm]\napi = "anthropic"\nmodel = "claude"\napi_key = "sk-of-file"\n')
    assert found(tmp_path, {}, None) == ("anthropic", ANTHROPIC, "sk-of-file")
    with pytest.raises(SettingsError, match=r"'llm\.api' must be one of openai, anthropic, gemini"):
        endpoint_settings(config(tmp_path, '[llm]\napi = "other"\n'), {}, "m")


def test_a_key_and_an_address_of_the_file_are_not_for_another_api(tmp_path: Path) -> None:
    config(
        tmp_path,
        '[llm]\nbase_url = "http://own.example/v1"\nmodel = "own"\napi_key = "sk-of-file"\ntimeout_s = 7\n'
        "usd_per_million_prompt_tokens = 1\nusd_per_million_completion_tokens = 2\n",
    )
    settings = endpoint_settings(tmp_path, KEYS, "claude", api="anthropic")
    assert (settings.base_url, settings.key.reveal()) == (ANTHROPIC, "sk-of-anthropic")
    assert (settings.timeout_s, settings.prices) == (7, None)
    with pytest.raises(EndpointError, match="No model"):
        endpoint_settings(tmp_path, KEYS, api="anthropic")
    (tmp_path / "none").mkdir()
    found_in = [endpoint_settings(tmp_path / "none", KEYS, "m", api=api) for api in CHAT_APIS]
    assert [settings.longest_s(streamed=False) for settings in found_in] == [300, 600, 600]
    assert found(tmp_path, {}, "m", api="openai") == ("openai", "http://own.example/v1", "sk-of-file")


def test_a_reader_with_another_api_gets_no_key_of_the_models(tmp_path: Path) -> None:
    config(tmp_path, '[llm]\napi_key = "sk-of-file"\nmax_tokens = 5\n\n[reader]\napi = "anthropic"\n')
    with pytest.raises(EndpointError, match="No key"):
        reader_settings(tmp_path, KEYS, "claude")
    given = reader_settings(tmp_path, {**KEYS, "GISTPOINT_READER_API_KEY": "sk-of-reader"}, "claude")
    assert (given.api, given.base_url, given.key.reveal()) == ("anthropic", ANTHROPIC, "sk-of-reader")
    config(tmp_path, '[llm]\napi = "anthropic"\napi_key = "sk-of-file"\n')
    same = reader_settings(tmp_path, {}, "claude")
    assert (same.api, same.key.reveal()) == ("anthropic", "sk-of-file")


def test_the_default_api_leaves_the_digests_of_older_runs_as_they_are() -> None:
    plain, openai, native = AgentSettings(), AgentSettings(api="openai"), AgentSettings(api="gemini")
    assert "api" not in msgspec.to_builtins(openai)
    assert plain.digest() == openai.digest() != native.digest()
    assert msgspec.convert(msgspec.to_builtins(native), AgentSettings) == native
    assert (openai.chat_api, native.chat_api) == ("openai", "gemini")


def test_the_api_is_part_of_a_runs_settings(tmp_path: Path) -> None:
    store = AgentRunStore(tmp_path)
    settings = RunSettings(model="m", host="h", agent=AgentSettings(api="anthropic"))
    store.open_or_create("r", settings, 0, "1")
    again = store.open("r").settings
    assert (again.agent.chat_api, again.digest) == ("anthropic", settings.digest)
    assert again.model_and_api == "m (anthropic)"
    plain = RunSettings(model="m", host="h", agent=AgentSettings())
    assert plain.model_and_api == "m"
    assert differing(plain, again) == ["agent.api"]


def test_a_solver_knows_its_api_and_host(tmp_path: Path) -> None:
    solver = solver_named(tmp_path, KEYS, "claude", "", "anthropic")
    assert (solver.api, solver.host) == ("anthropic", "api.anthropic.com")
    assert type(solver.models()(AgentSettings()).model.model).__name__ == "AnthropicModel"  # type: ignore[attr-defined]
