"""Reviewing a study's attempts: blind to their authors, with reviews kept in the study's folder."""

from __future__ import annotations

from pathlib import Path

from held_studies import Held
from screens.review.reviewing import reviewing
from textual.widgets import Button

from gistpoint.core.study.data import ReviewDecision
from gistpoint.tui.screens.review.annotation_dialogs import VerdictDialog


async def test_a_study_is_reviewed_blind_and_in_its_own_folder(tmp_path: Path) -> None:
    held = Held.at(tmp_path)
    discovery, remove = held.tasks
    for code in ("SECRET-A", "SECRET-B"):
        held.attempt(code, remove)
    held.attempt("SECRET-A", discovery)
    async with reviewing(held.folder.root, size=(160, 48)) as driver:
        await driver.until(lambda: driver.text().count("hidden") >= 3)
        assert "SECRET" not in driver.text()
        await driver.press("enter")
        await driver.until(lambda: "Runs:" not in driver.text() and driver.review.run.review is not None)
        assert "SECRET" not in driver.text()
        await driver.press("V")
        await driver.until_on(VerdictDialog)
        driver.app.screen.query_one(Button).press()
        await driver.until(lambda: driver.review.run.review.verdict is not None)
    (decision,) = held.load().data.decisions
    assert (decision.reviewer, decision.decision) == ("first", ReviewDecision.ACCEPT)
