"""Every test has a separate home and no animations, and its app must not crash."""

from __future__ import annotations

from pathlib import Path

import pytest
from screens.settling import answered, drawn_at_a_pause, parsed_once, paused, settled
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot
from textual.screen import Screen


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GISTPOINT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for module in ("textual.app", "textual.pilot"):
        monkeypatch.setattr(f"{module}.wait_for_idle", settled)
    monkeypatch.setattr(Pilot, "_wait_for_screen", answered)
    monkeypatch.setattr(Pilot, "pause", paused)
    monkeypatch.setattr(Screen, "_compositor_refresh", drawn_at_a_pause)
    monkeypatch.setattr(Stylesheet, "_parse_rules", parsed_once)
