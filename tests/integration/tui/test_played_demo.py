"""The demo's recorded attempt, played once through the real sandbox."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pytest

from gistpoint.tui import cli

# The tests run in one worker, so that the demo is played only once.
pytestmark = pytest.mark.xdist_group("played demo")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def at_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(home))


_printed: dict[Path, str] = {}


@pytest.fixture
def played(home: Path) -> str:
    """The output of playing the attempt."""
    if home not in _printed:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            assert cli.main(["demo", "--play", "--speed", "100000"]) == 0
        _printed[home] = printed.getvalue()
    return _printed[home]


def test_recorded_attempt_is_played_as_text_through_the_real_sandbox(played: str) -> None:
    assert played.startswith("Playing a recorded attempt at ")
    assert "\n> replace_function" in played
    assert "\nsolved: " in played


def test_what_is_played_is_a_replay_and_nobody_goes_on_with_it(
    played: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["attempt", "list", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["attempts"]
    assert (row["actor"], row["role"], row["participant"]) == ("replay", "demo", "")
