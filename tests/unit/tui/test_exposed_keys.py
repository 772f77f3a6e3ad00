"""A model at an endpoint with a key is not asked if its code would run as the user (decision 122)."""

from __future__ import annotations

from pathlib import Path

import pytest

from gistpoint.core.errors import SandboxUnavailableError
from gistpoint.core.requests import IsolationChoice
from gistpoint.object_graph import build_services, runs_as_user, solver_named
from gistpoint.tui import cli

KEY = "sk-0123456789-secret"
PLAIN = IsolationChoice(sandbox="plain", allow_unsandboxed=True)
SERVER = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "GISTPOINT_MODEL": "small"}


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**SERVER, "OPENAI_API_KEY": KEY}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    "secret",
    [
        {"OPENAI_API_KEY": KEY},
        {"OPENAI_BASE_URL": f"http://somebody:{KEY}@127.0.0.1:9/v1"},
    ],
)
def test_no_key_and_no_password_beside_code_that_runs_as_the_user(
    tmp_path: Path, secret: dict[str, str]
) -> None:
    with pytest.raises(SandboxUnavailableError) as refused:
        solver_named(tmp_path, {**SERVER, **secret}, exposed=lambda: True)
    assert KEY not in str(refused.value)
    assert solver_named(tmp_path, {**SERVER, **secret}, exposed=lambda: False).name == "small"


def test_a_key_in_the_settings_is_refused_too(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(f'[llm]\napi_key = "{KEY}"\n')
    with pytest.raises(SandboxUnavailableError):
        solver_named(tmp_path, SERVER, exposed=lambda: True)


def test_an_endpoint_without_a_key_works_on_plain(tmp_path: Path) -> None:
    assert solver_named(tmp_path, SERVER, exposed=lambda: True).name == "small"


def test_plain_is_what_runs_as_the_user() -> None:
    assert runs_as_user(PLAIN)


def test_the_services_of_plain_refuse_it() -> None:
    """Agent runs and the assistant get their solvers from these services."""
    with pytest.raises(SandboxUnavailableError, match="could read the key of its endpoint"):
        build_services(PLAIN).solver("small", "", None)


@pytest.mark.parametrize(
    "command",
    [
        ["task", "new", "shop==1.0", "--mode", "discovery", "--function", "a.py::f"],
        ["task", "generate", "shop==1.0", "--mode", "discovery"],
    ],
)
def test_corruption_by_a_model_is_refused_before_anything_is_fetched(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*command, "--model", "small", "--sandbox", "plain", "--allow-unsandboxed"]) != 0
    shown = capsys.readouterr().err
    assert "could read the key of its endpoint" in shown
    assert KEY not in shown
