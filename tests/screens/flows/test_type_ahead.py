"""Text typed after a key goes to the field that the key opens, even on a slow machine."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from examples import at_the_gate
from key_fuzzing import (
    GLANCE,
    PLAY,
    REVIEW,
    STUDY,
    VALIDATE,
    WORD,
    Found,
    Playground,
    Room,
    field_text,
    go_home,
    in_room,
    keys_of,
    sequences,
    slow_loop,
)
from screens.driving import LARGE, Driver, solving
from screens.settling import send_keys
from textual.widgets import Input

from gistpoint import tui
from gistpoint.core.tasks.model import Mode
from gistpoint.tui.keys import key_named
from gistpoint.tui.type_ahead import Followed
from gistpoint.tui.widgets.writing_area import WritingArea

PLACES = [
    (PLAY, "code"),
    (GLANCE, "code"),
    *at_the_gate(
        [(PLAY, "home"), (PLAY, "files"), (REVIEW, "first"), (REVIEW, "step"), (VALIDATE, "overview")]
    ),
]
PANE_KEYS = {"brief": "f2", "files": "f3", "code": "f4", "results": "f7", "editor": "f6", "gist": "f6"}
OPENERS = {
    "home": {"home.filter"},
    "code": {"solve.search", "code.line", "view.find", "code.outline", "pane.notes", "pane.console"},
    "files": {"solve.search", "attempt.end", "attempt.pause"},
    "step": {"review.search", "review.label", "review.comment", "go.number"},
    "overview": {"validate.filter", "judge.comment"},
}
"""Keys known to open a field; the test requires them, because it could otherwise pass without trying any."""
LEAVE = {"home.leave", "tour.leave", "attempt.leave", "runs.leave", "review.leave", "validate.leave"}
LEAVE |= {
    "review.back",
    "runs.back",
    "validate.back",
    "glance.leave",
    "home.tour",
    "home.start",
    "home.resume",
}


async def fields_below(ground: Playground) -> Input | None:
    """Return the first field of the dialog on the screen, or None."""
    found = ground.screen.query(Input) if ground.screen.is_modal else ()
    return next(iter(found), None)


@pytest.mark.parametrize(("room", "stage"), PLACES, ids=lambda value: getattr(value, "name", value))
async def test_the_letters_after_a_key_are_in_the_field_that_it_opens(
    tmp_path: Path, room: Room, stage: str
) -> None:
    """Presses every key of the screen; those that open a field are found by trying."""
    opened: set[str] = set()
    word = WORD if room is PLAY else "ÆØÅ"  # while nothing is played, `f` opens a list with a field
    async with in_room(room, tmp_path, seed=1, size=LARGE) as ground:
        await room.stages[stage](ground)
        keys = {id: key for id, key in keys_of(ground).items() if id not in LEAVE}
        for id, key in keys.items():
            await back_to(ground, room, stage)
            here, calls = ground.app.focused, ground.calls()
            ground.post(key, *word)
            await ground.settle()
            text = field_text(ground.app.focused)
            asks = await fields_below(ground)
            if ground.app.focused is not here and text is not None:
                assert word in text, f"{id}: {text!r} is in {ground.app.focused}"
                opened.add(id)
            elif asks is not None:
                opened.add(id)
            assert ground.calls() == calls, f"{id} made a call"
    assert room is GLANCE or opened >= OPENERS.get(stage, set())


async def back_to(ground: Playground, room: Room, stage: str) -> None:
    """Return to a stage with its usual focus and without previously typed text."""
    while ground.screen.is_modal:
        ground.screen.dismiss(None)
        await ground.settle()
    if isinstance(ground.app.focused, Input):
        await ground.press("escape")
    if ground.solve is not None and stage in PANE_KEYS:
        await ground.press(PANE_KEYS[stage])
        return
    await go_home(ground)
    await room.stages[stage](ground)


async def test_a_pattern_typed_at_once_is_searched_for_and_nothing_is_charged(tmp_path: Path) -> None:
    async with solving(tmp_path, Mode.DISCOVERY) as driver:
        await driver.console("read_file shop/prices.py")
        await driver.press("f4")
        before = len(driver.state.calls)
        with slow_loop(random.Random(1)):
            send_keys(driver.app, "Sdef f.e\n")
            await driver.until(lambda: len(driver.state.calls) > before)
        assert driver.state.calls[-1].arguments == {"pattern": "def f.e"}
        assert len(driver.state.calls) == before + 1


async def test_a_click_on_a_key_comes_before_what_is_typed_after_it(tmp_path: Path) -> None:
    async with in_room(PLAY, tmp_path, seed=1, size=LARGE) as ground:
        await PLAY.stages["code"](ground)
        row = ground.app.size.height - 1
        bar = "".join(ground.screen._compositor.render_strips()[row].text)
        ground.click(bar.index("Search"), row)
        ground.post(*WORD)
        await ground.settle()
        assert field_text(ground.app.focused) == WORD


@pytest.mark.parametrize("room", [PLAY, REVIEW, VALIDATE, STUDY, GLANCE], ids=lambda room: room.name)
async def test_pairs_and_triples_of_keys_at_once(tmp_path: Path, room: Room) -> None:
    """A short run of the study `key_fuzz.py`."""
    found = Found()
    await sequences(room, tmp_path, seed=7, count=4, found=found)
    assert found.broken == []


# Typed text is offered again


async def asked_again(driver: Driver, *keys: str) -> str:
    """Type into the field that keys open and leave it by Escape; return its text when opened again."""
    await driver.press(*keys)
    await driver.type("so far")
    await driver.press("escape")
    await driver.press(*keys)
    await driver.pilot.pause()
    return field_text(driver.screen.focused) or ""


@pytest.mark.parametrize(
    "keys",
    [
        ("f4", "S"),
        ("f5",),
        ("f4", "slash"),
        ("f4", "number_sign"),
        ("ctrl+g", "tab"),
        ("f10", "tab"),
        ("f4", "F"),
    ],
    ids="-".join,
)
async def test_escape_loses_nothing_that_was_typed(tmp_path: Path, keys: tuple[str, ...]) -> None:
    async with solving(tmp_path, Mode.DISCOVERY, size=LARGE) as driver:
        await driver.console("read_file shop/prices.py")
        assert await asked_again(driver, *keys) == "so far"


@pytest.mark.parametrize(("keys", "then"), [(("ctrl+g", "tab"), "so far on"), (("f4", "F"), " on")], ids=str)
async def test_typing_continues_a_text_and_replaces_a_filter(
    tmp_path: Path, keys: tuple[str, ...], then: str
) -> None:
    async with solving(tmp_path, Mode.DISCOVERY, size=LARGE) as driver:
        await driver.console("read_file shop/prices.py")
        await asked_again(driver, *keys)
        await driver.type(" on")
        assert field_text(driver.screen.focused) == then


async def test_what_was_sent_is_not_offered_again(tmp_path: Path) -> None:
    async with solving(tmp_path, Mode.DISCOVERY, size=LARGE) as driver:
        await driver.console("read_file shop/prices.py")
        await driver.press("f4", "number_sign")
        await driver.type("3\n")
        await driver.until_screen("SolveScreen")
        assert driver.solve.code.view.cursor_line == 3
        await driver.press("number_sign")
        assert field_text(driver.screen.focused) == ""


async def test_a_call_half_typed_outlives_a_search(tmp_path: Path) -> None:
    async with solving(tmp_path, Mode.DISCOVERY, size=LARGE) as driver:
        await driver.console("read_file shop/prices.py")
        await driver.press("f5")
        await driver.type("read_function disc")
        await driver.press("f4", "S")
        assert driver.solve.console.line.value == ""
        await driver.press("escape")
        assert driver.solve.console.line.value == "read_function disc"


async def test_a_call_half_typed_outlives_the_screen(tmp_path: Path) -> None:
    async with solving(tmp_path, Mode.DISCOVERY, size=LARGE) as driver:
        await driver.press("f5")
        await driver.type("read_file shop")
        await driver.press("ctrl+l")
        await driver.until_screen("HomeScreen")
        await driver.until(lambda: "unfinished" in driver.text())
        await driver.press("tab", "r")
        await driver.until_screen("SolveScreen")
        await driver.press("f4", "f5")
        assert driver.solve.console.line.value == "read_file shop"


def test_every_key_that_is_known_to_open_a_field_is_in_the_table() -> None:
    look: Callable[[str], object] = key_named
    for ids in OPENERS.values():
        for id in ids:
            look(id)


async def test_keys_after_a_pause_reach_the_attempt(tmp_path: Path) -> None:
    async with solving(tmp_path) as driver:
        for _ in range(2):
            await driver.press("f10")
            await driver.until_screen("ReasonDialog")
            await driver.press("enter")
            await driver.until_screen("PauseCover")
            await driver.press("enter")
            await driver.until(lambda: driver.screen is driver.solve)
        await driver.press("f3")
        await driver.until(lambda: "[F3 Files]" in driver.text())


def swallow(_: object, marker: Followed) -> None:
    marker.stop()


async def test_keys_are_not_held_forever_by_a_marker_that_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gistpoint.tui.type_ahead._LOST_S", 0.1)
    async with solving(tmp_path) as driver:
        monkeypatch.setattr(type(driver.solve), "on_followed", swallow, raising=False)
        await driver.press("f4")
        await driver.press("f3")
        await driver.until(lambda: "[F3 Files]" in driver.text())


async def test_what_is_typed_before_a_field_gets_the_focus_is_written_into_it(tmp_path: Path) -> None:
    async with in_room(PLAY, tmp_path, seed=1, size=LARGE) as ground:
        await PLAY.stages["notes"](ground)
        await ground.settle()
        notes = ground.app.focused
        assert isinstance(notes, WritingArea)
        solve = ground.solve
        assert solve is not None
        for round in range(5):
            solve.set_focus(solve.console.line)
            await ground.settle()
            solve.focus_later(notes)
            ground.post(*f"word{round}")
            await ground.settle()
            await ground.until(lambda: f"word{round}" in notes.text)  # noqa: B023
        assert not solve.console.line.value


async def test_keys_are_not_held_by_a_focus_that_never_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gistpoint.tui.base_screen._DRAWN_S", 0.05)
    async with solving(tmp_path) as driver:
        monkeypatch.setattr(driver.solve, "call_after_refresh", lambda *_: True)
        driver.solve.focus_later(driver.solve.console.line)
        await driver.press("f3")
        await driver.until(lambda: "[F3 Files]" in driver.text())


def test_no_screen_focuses_later_without_holding_the_keys() -> None:
    for source in Path(tui.__path__[0]).rglob("*.py"):
        assert not re.search(
            r"call_(after_refresh|later)\([\w.]*focus\b", source.read_text(encoding="utf-8")
        ), source


async def test_a_hit_that_is_read_has_the_focus_however_slow_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer with the hits is hidden when the file is read, and must not keep the focus."""
    async with solving(tmp_path, size=LARGE) as driver:
        await driver.press("f3", "S")
        await driver.type("def discount")
        await driver.press("enter")
        await driver.until(lambda: driver.app.focused is driver.solve.results.answer)
        await driver.press("enter")
        await driver.until(lambda: "Enter again opens it" in driver.text())
        app, later = driver.app, driver.app.call_later

        def call_much_later(*called: Any, **named: Any) -> bool:
            app.set_timer(0.2, lambda: later(*called, **named))
            return True

        monkeypatch.setattr(app, "call_later", call_much_later)
        await driver.press("enter")
        await driver.until(lambda: driver.app.focused is driver.solve.code.view)
        await driver.pilot.pause(0.5)
        assert driver.app.focused is driver.solve.code.view
