"""`gistpoint agent run --demo` without a model shows a recorded attempt, then lets the built-in solver work."""

from __future__ import annotations

from pathlib import Path

import pytest

from gistpoint.core.locations import Locations
from gistpoint.core.text import visible
from gistpoint.sessions.agentruns.recorded import RECORDED_RUN, recorded_attempt
from gistpoint.sessions.agentruns.store import AgentRunStore
from gistpoint.tui.cli import main
from gistpoint.tui.commands.review import _stored


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path))
    for name in ("OPENAI_BASE_URL", "GISTPOINT_MODEL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def test_the_demo_without_a_model_shows_the_recording_and_the_searcher(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["agent", "run", "--demo", "seats-together"]) == 0
    out = capsys.readouterr().out
    state = recorded_attempt()
    assert "This is a recording: no model is asked, and nothing is sent." in out
    at = 0
    for turn in state.turns:
        at = out.index(f"turn {turn.turn}, ", at)
        for line in turn.content.splitlines():
            at = out.index(visible(line), at)
    assert state.ending is not None
    result = "Solved" if state.solved else "Not solved"
    assert f"{result} ({state.ending.reason}" in out
    assert "1 gave_up: not_supported" in out, "the searcher has attempted the task"
    runs = AgentRunStore(Locations.of_user().runs)
    assert sorted(name.partition("-")[0] for name in runs.names()) == ["builtin", RECORDED_RUN]


def test_the_recording_opens_like_every_run(capsys: pytest.CaptureFixture[str]) -> None:
    main(["agent", "run", "--demo", "seats-together"])
    capsys.readouterr()
    assert main(["agent", "show", RECORDED_RUN]) == 0
    assert "written as text" in capsys.readouterr().out
    (place,) = _stored(RECORDED_RUN, Locations.of_user())
    assert main(["show", place]) == 0
    assert recorded_attempt().turns[0].content.splitlines()[0] in capsys.readouterr().out
