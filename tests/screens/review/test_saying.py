"""A reviewer's work: labels, comments, verdict, blind mode, seen steps, and the last position."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from screens.review.reviewing import TURNS, mini_run, reviewing
from textual.geometry import Offset
from textual.selection import Selection
from textual.widgets import Button, Input

from gistpoint.core.locations import Locations
from gistpoint.sessions.annotations import labels, reviews
from gistpoint.sessions.annotations.reviewer import Reviewer
from gistpoint.sessions.annotations.reviews import ExcludeReason, FailureReason, RunVerdict
from gistpoint.sessions.records.model import Actor, TextScope
from gistpoint.tui.screens.review.annotation_dialogs import VerdictDialog
from gistpoint.tui.screens.review.annotations import _bound_characters
from gistpoint.tui.screens.review.screen import ReviewScreen
from gistpoint.tui.screens.review.verdicts import form_for
from gistpoint.tui.widgets.options import Options


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return mini_run(tmp_path / "a.traj.json", TURNS, model="secret-model")


async def test_labels_by_hot_key_comments_and_taking_back(run: Path) -> None:
    async with reviewing(run) as driver:
        await driver.until_read(0)
        await driver.press("right_square_bracket", "right_square_bracket")
        await driver.until_read(2)
        await driver.press("1")
        await driver.until(lambda: driver.review.run.review.labels)
        label = driver.review.run.review.labels[0]
        assert label.label == "key_insight"
        assert label.step.index == 2
        assert label.range is None
        await driver.press("c")
        await driver.type("look here")
        await driver.press("enter")
        await driver.until(lambda: driver.review.run.review.comments)
        assert "look here" in driver.text()
        assert "⚑" in driver.text()
        await driver.press("circumflex_accent", "m")
        await driver.until_read(2)
        await driver.press("1")
        await driver.until(lambda: not driver.review.run.review.labels)
        await driver.press("backspace", "enter")
        await driver.until(lambda: not driver.review.run.review.comments)


async def test_a_label_written_just_before_leaving_is_stored(run: Path) -> None:
    async with reviewing(run) as driver:
        await driver.until_read(0)
        await driver.until(lambda: driver.review.run.review.seen)
        gate = threading.Event()
        driver.review.run.loader.do(gate.wait)
        driver.review.run.annotations.toggle_by_key("1")
        threading.Timer(0.2, gate.set).start()
        store = driver.review.run.annotations._reviewer.store
        key = driver.review.run.annotations._key
        await driver.press("q")
    assert [label.label for label in Reviewer(store, "first").review(key).labels] == ["key_insight"]


async def test_a_label_on_what_is_selected_names_its_range(run: Path) -> None:
    async with reviewing(run, size=(120, 40)) as driver:
        await driver.until_read(0)
        await driver.press("number_sign", "4", "enter", "f2")
        await driver.until_read(3)
        view = driver.review.step_page
        line = next(n for n in range(view.line_count) if view.lines[n].startswith("def mean"))
        driver.app.screen.selections = {view: Selection(Offset(0, line), Offset(8, line))}
        await driver.press("2")
        await driver.until(lambda: driver.review.run.review.labels)
        place = driver.review.run.review.labels[0].range
        assert place is not None
        assert place.scope is TextScope.RESULT
        assert driver.review.run.step.results[0].text[place.start : place.end] == "def mean"


async def test_blind_mode_hides_model_and_outcome_until_the_verdict(run: Path) -> None:
    async with reviewing(run, blind=True, size=(160, 48)) as driver:
        await driver.until_read(0)
        await driver.until(lambda: driver.review.run.review.blind)
        for key in ("i", "f6", "f2"):
            await driver.press(key)
            await driver.pilot.pause(0.2)
            assert "secret-model" not in driver.text()
            assert "Submitted" not in driver.text()
        await driver.press("V")
        await driver.until_on(VerdictDialog)
        driver.app.screen.query_one(Button).press()
        await driver.until(lambda: driver.review.run.review.verdict is not None)
        assert driver.review.run.review.verdict.verdict is RunVerdict.SOLVED
        assert driver.review.run.review.verdict.blind
        await driver.until(lambda: "secret-model" in driver.text())


async def test_an_exclusion_needs_a_reason(run: Path) -> None:
    async with reviewing(run, size=(100, 40)) as driver:
        await driver.until_read(0)
        await driver.press("V")
        await driver.until_on(VerdictDialog)
        await driver.press("down", "down", "enter")
        driver.app.screen.query_one(Button).press()
        await driver.until(lambda: "Choose at least one reason." in driver.text())
        assert isinstance(driver.app.screen, VerdictDialog)
        await driver.press("escape")
        await driver.until_on(ReviewScreen)
        assert driver.review.run.review.verdict is None


async def test_one_goes_on_where_one_stopped_and_what_was_seen_is_known(run: Path) -> None:
    async with reviewing(run) as driver:
        await driver.until_read(0)
        await driver.press("right_square_bracket")
        await driver.until_read(1)
        await driver.press("right_square_bracket")
        await driver.until_read(2)
        await driver.until(lambda: {key.index for key in driver.review.run.review.seen} == {0, 1, 2})
        await driver.press("q")
    async with reviewing(run) as driver:
        await driver.until_read(2)
        assert driver.review.run.annotations.seen >= {0, 1, 2}
        await driver.press("u")
        await driver.until_read(3)
    async with reviewing(run, reviewer="second") as driver:
        await driver.until_read(0)
        assert driver.review.run.annotations.seen == {0}


@pytest.mark.parametrize("end", ["q", "ctrl+q", "a signal"])
async def test_one_goes_on_where_one_stopped_however_the_program_ended(run: Path, end: str) -> None:
    async with reviewing(run) as driver:
        await driver.until_read(0)
        await driver.press("right_square_bracket", "right_square_bracket")
        await driver.until_read(2)
        await driver.until(lambda: {key.index for key in driver.review.run.review.seen} >= {0, 2})
        if end == "a signal":
            driver.app.exit(return_code=143)
        else:
            await driver.press(end)
    async with reviewing(run) as driver:
        await driver.until_read(2)


async def test_what_is_of_no_known_field_is_hidden_from_a_blind_reviewer(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    messages = [{"role": "user", "content": "Fix it", "grader": "it was solved"}]
    path.write_text(
        json.dumps({"messages": [*messages, {"role": "assistant", "content": "done"}]}), encoding="utf-8"
    )
    for blind in (False, True):
        async with reviewing(path, blind=blind, size=(100, 30), reviewer=f"blind-{blind}") as driver:
            await driver.until_read(0)
            await driver.until(lambda: "Fix it" in driver.text())
            assert ("also recorded" in driver.text(), "it was solved" in driver.text()) == (
                not blind,
                not blind,
            )


async def test_one_key_is_a_verdict_in_words_of_ones_own(run: Path) -> None:
    config = Locations.of_user().config
    config.mkdir(parents=True, exist_ok=True)
    word = '[[verdict]]\nkey = "W"\nwords = "right by luck"\nmeans = "exclude"\nreasons = ["shortcut"]\n'
    (config / "review.toml").write_text(word, encoding="utf-8")
    async with reviewing(run, size=(120, 40)) as driver:
        await driver.until_read(0)
        await driver.press("tab", "W")
        await driver.until(lambda: driver.review.run.review.verdict)
        verdict = driver.review.run.review.verdict
        assert (verdict.words, verdict.verdict, verdict.reasons) == (
            "right by luck", RunVerdict.EXCLUDE, (ExcludeReason.SHORTCUT,))  # fmt: skip
        assert "verdict right by luck" in driver.text()
        await driver.press("W")
        await driver.until(lambda: driver.review.run.review.verdict is None)
        await driver.press("Y")
        assert driver.review.run.review.verdict is None


async def test_a_verdict_that_is_typed_before_the_annotations_are_read_counts(run: Path) -> None:
    async with reviewing(run) as driver:
        await driver.press("Y")
        await driver.until(lambda: driver.review.run.review and driver.review.run.review.verdict)
        assert driver.review.run.review.verdict.words == "solved"


def test_keys_of_verdicts_mean_nothing_else() -> None:
    taken = _bound_characters() | {label.key for label in labels.DEFAULT.labels}
    assert not taken & {word.key for word in (*reviews.DEFAULT_WORDS, *reviews.AGENT_WORDS)}


async def test_an_agents_run_is_asked_whether_it_solved_its_task(run: Path) -> None:
    async with reviewing(run, size=(100, 40)) as driver:
        await driver.until_read(0)
        await driver.press("V")
        await driver.until_on(VerdictDialog)
        assert "Did this run solve its task?" in driver.text()
        await driver.press("down", "enter")
        await driver.until(lambda: "It kept a wrong theory" in driver.text())
        reasons = driver.app.screen.query_one("#reasons-not-solved", Options)
        reasons.pick(0)
        driver.app.screen.query_one(Button).press()
        await driver.until(lambda: driver.review.run.review.verdict is not None)
        given = driver.review.run.review.verdict
        assert given.verdict is RunVerdict.NOT_SOLVED
        assert given.reasons == (FailureReason.WRONG_THEORY,)


def test_a_persons_attempt_is_asked_whether_it_counts() -> None:
    person, agent = form_for(Actor.PERSON), form_for(Actor.AGENT)
    assert RunVerdict.ACCEPT in person.verdicts
    assert RunVerdict.SOLVED not in person.verdicts
    assert RunVerdict.SOLVED in agent.verdicts
    assert {word.means for word in agent.words} <= {*agent.verdicts}
    assert {word.means for word in person.words} <= {*person.verdicts}


async def test_a_verdict_is_shown_again_and_what_was_typed_survives_escape(run: Path) -> None:
    async with reviewing(run, size=(100, 40)) as driver:
        await driver.until_read(0)
        await driver.press("V")
        await driver.until_on(VerdictDialog)
        await driver.press("down", "enter")
        driver.app.screen.query_one("#reasons-not-solved", Options).pick(1)
        driver.app.screen.query_one("#note", Input).value = "changed the test"
        driver.app.screen.query_one(Button).press()
        await driver.until(lambda: driver.review.run.review.verdict is not None)
        await driver.press("V")
        await driver.until_on(VerdictDialog)
        dialog = driver.app.screen
        assert dialog.verdict is RunVerdict.NOT_SOLVED
        assert dialog.query_one("#reasons-not-solved", Options).chosen == {1}
        assert dialog.query_one("#note", Input).value == "changed the test"
        dialog.query_one("#note", Input).value = "changed the test, twice"
        await driver.pilot.pause()
        await driver.press("escape", "V")
        await driver.until_on(VerdictDialog)
        assert driver.app.screen.query_one("#note", Input).value == "changed the test, twice"
        await driver.press("escape", "c")
        await driver.until(lambda: driver.app.screen.query("#answer"))
        driver.app.screen.query_one("#answer", Input).value = "half a comment"
        await driver.pilot.pause()
        await driver.press("escape")
        await driver.until_on(ReviewScreen)
        await driver.press("c")
        await driver.until(lambda: driver.app.screen.query("#answer"))
        assert driver.app.screen.query_one("#answer", Input).value == "half a comment"


async def test_a_verdict_that_is_taken_back_names_the_one_before(run: Path) -> None:
    async with reviewing(run, size=(140, 40)) as driver:
        await driver.until_read(0)
        await driver.press("W")
        await driver.until(lambda: driver.review.run.review.verdict is not None)
        await driver.press("Y")
        await driver.until(lambda: driver.review.run.review.verdict.verdict is RunVerdict.SOLVED)
        await driver.press("Y")
        await driver.until(lambda: "in force again: wrong place changed" in driver.text())
        assert driver.review.run.review.verdict.verdict is RunVerdict.NOT_SOLVED
