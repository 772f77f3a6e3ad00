"""Functions are read blind: nothing reveals the version, code disappears on time, and diffs come later."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from examples import at_sizes
from fakes import FakeClock
from screens import settling
from screens.settling import text_of
from textual.widgets import Input

from gistpoint.core.corruption.blind import BlindAnswer, BlindItem, GlanceVerdict, ShownVersion, in_order
from gistpoint.core.errors import UserError
from gistpoint.core.locations import Locations
from gistpoint.core.tasks.model import Target
from gistpoint.sessions.annotations.glance_reader import GlanceReader, GlanceStore
from gistpoint.tui.base_app import OneScreenApp
from gistpoint.tui.screens.dialogs.ask import MessageDialog, TextDialog
from gistpoint.tui.screens.glance import reading
from gistpoint.tui.screens.glance.reading import GlanceScreen
from gistpoint.tui.screens.glance.verdicts import VerdictScreen

SIZES = at_sizes((80, 24), (160, 48))
LONG_S = 600.0
until = partial(settling.until, seconds=120.0)


def items(versions: str) -> list[BlindItem]:
    """Return functions in ada's order with these versions under seed 0, corrupted (c) or original (o)."""
    pool = []
    for number in range(200):
        code = f"def f{number}(x):\n    a = x + 1\n    b = a\n    [red]\n    \x1b\n    return b\n"
        pool.append(
            BlindItem(f"{number:064}", "shop", Target("f.py", f"f{number}", code, code.replace("+ 1", "- 1")))
        )
    chosen = []
    for wanted in ("c", "o"):
        version = ShownVersion.CORRUPTED if wanted == "c" else ShownVersion.ORIGINAL
        chosen += [item for item in pool if item.version(0) is version][: versions.count(wanted)]
    ordered = in_order(chosen, 0, "ada")
    by_version = {
        version: [item for item in ordered if item.version(0) is version] for version in ShownVersion
    }
    names = {"c": ShownVersion.CORRUPTED, "o": ShownVersion.ORIGINAL}
    return [by_version[names[one]].pop(0) for one in versions]


def at_work(tmp_path: Path, limit_s: float = 0.0) -> GlanceReader:
    return GlanceReader(GlanceStore(tmp_path / "glances", FakeClock()), "ada", limit_s=limit_s)


def glance_app(functions: Sequence[BlindItem], reader: GlanceReader, **settings: Any) -> OneScreenApp:
    styles = "screens/glance/glance.tcss"
    return OneScreenApp(Locations.of_user(), styles, lambda: GlanceScreen(functions, reader, **settings))


@pytest.mark.parametrize("size", SIZES)
async def test_a_set_is_read_and_then_judged(tmp_path: Path, size: tuple[int, int]) -> None:
    reader, (bad, good, second) = at_work(tmp_path), items("coc")
    calls: list[int] = []
    app = glance_app([bad, good, second], reader, on_read=lambda: calls.append(1))
    async with app.run_test(size=size, notifications=True) as pilot:
        screen = app.screen
        assert isinstance(screen, GlanceScreen)
        await until(pilot, lambda: "a = x - 1" in text_of(app))
        shown = text_of(app)
        assert "Function 1 of 3" in shown
        assert "[red]" in shown  # shown literally, not as markup
        assert "\x1b" not in shown
        assert bad.task[:12] not in shown
        await pilot.press("down", "m")
        await until(pilot, lambda: "line 2 is marked" in text_of(app))
        assert "●" in text_of(app)
        await pilot.press("1")
        await until(pilot, lambda: isinstance(app.screen, TextDialog))
        await pilot.press(*"wrong", "enter")
        await until(pilot, lambda: "Function 2 of 3" in text_of(app))
        assert "a = x + 1" in text_of(app)
        assert "is marked" not in text_of(app)
        await pilot.press("1", *"typed", "escape")  # she changes her mind, so nothing is saved
        await until(pilot, lambda: app.screen is screen)
        await pilot.press("2")
        await until(pilot, lambda: isinstance(app.screen, TextDialog))
        assert app.screen.query_one(Input).value == "typed"
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)
        await pilot.press("3")
        await until(pilot, lambda: "Function 3 of 3" in text_of(app))
        await pilot.press("backspace")
        await until(pilot, lambda: "Function 2 of 3" in text_of(app))
        await pilot.press("1", "enter")
        await until(pilot, lambda: "Function 3 of 3" in text_of(app))
        assert not isinstance(app.screen, VerdictScreen)
        await pilot.press("3")
        await until(pilot, lambda: isinstance(app.screen, VerdictScreen))
        await until(pilot, lambda: "Corruption 1 of 2" in text_of(app))
        shown = text_of(app)
        assert "1 of 3 functions were unchanged; you called 1 of them faulty" in shown
        assert "at line 2, the changed place: wrong" in shown
        assert "at a glance" in shown
        assert "a = x - 1" in shown
        await pilot.press("3", *"plain", "enter")
        await until(pilot, lambda: "Corruption 2 of 2" in text_of(app))
        await pilot.press("2", "enter")
        await until(pilot, lambda: "Your verdict: borderline" in text_of(app))
        await pilot.press("backspace")
        await until(pilot, lambda: "No verdict yet" in text_of(app))
        await pilot.press("1", "enter", "left_square_bracket")
        await until(pilot, lambda: "Your verdict: at a glance: plain" in text_of(app))
        await pilot.press("q")
    assert app.crashes == []
    assert len(calls) == 4
    answers = [
        [(r.answer, r.line, r.hit) for r in reader.glances(item.task).readings]
        for item in (bad, good, second)
    ]
    assert answers == [
        [(BlindAnswer.FAULT, 2, True)],
        [(BlindAnswer.FAULT, 0, False)],
        [(BlindAnswer.NOTHING, 0, False)],
    ]
    verdicts = [reader.glances(item.task).verdicts[-1].verdict for item in (bad, second)]
    assert verdicts == [GlanceVerdict.AT_A_GLANCE, GlanceVerdict.GOOD]


@pytest.mark.parametrize("size", SIZES)
async def test_the_code_goes_after_its_time_and_the_mark_stays(tmp_path: Path, size: tuple[int, int]) -> None:
    reader, (bad, good) = at_work(tmp_path, LONG_S), items("co")
    app = glance_app([bad, good], reader)
    async with app.run_test(size=size) as pilot:
        await until(
            pilot,
            lambda: "Press Enter to see the next function. It is shown for 600 seconds." in text_of(app),
        )
        await pilot.press("1", "m")  # nothing can be said about unseen code
        assert "a = x" not in text_of(app)
        await pilot.press("enter")
        await until(pilot, lambda: "a = x - 1" in text_of(app))
        assert "s left" in text_of(app)
        await pilot.press("down", "m")
        reader.limit_s = 0.001  # the time has passed
        await until(pilot, lambda: "The code is hidden. What did you see?" in text_of(app))
        assert "a = x" not in text_of(app)
        assert "line 2 is marked" in text_of(app)
        reader.limit_s = LONG_S
        await pilot.press("enter", "m", "2", "enter")
        await until(pilot, lambda: "Function 2 of 2" in text_of(app))
        assert "a = x" not in text_of(app)
        await pilot.press("backspace")
        await until(pilot, lambda: "The code is hidden" in text_of(app))  # its time has passed
        assert "line 2 is marked" in text_of(app)
        await pilot.press("2")
        await until(pilot, lambda: isinstance(app.screen, TextDialog))
        await pilot.press("enter")
        await until(pilot, lambda: "Press Enter to see" in text_of(app))
        await pilot.press("enter")
        await until(pilot, lambda: "a = x + 1" in text_of(app))
        await pilot.press("1")  # an answer hides the code, so that nobody continues to read while writing
        await until(pilot, lambda: isinstance(app.screen, TextDialog))
        assert "a = x" not in text_of(app)
        await pilot.press("escape", "q")
    assert app.crashes == []
    (reading,) = reader.glances(bad.task).readings
    assert (reading.answer, reading.line, reading.hit) == (BlindAnswer.DOUBTFUL, 2, True)
    assert reader.glances(good.task).readings == ()


async def test_a_round_is_resumed_where_it_was_left_and_a_diff_can_come_at_once(tmp_path: Path) -> None:
    reader, chosen = at_work(tmp_path), items("coc")
    app = glance_app(chosen, reader, at_once=True)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: "Function 1 of 3" in text_of(app))
        await pilot.press("3")
        await until(pilot, lambda: "This function was corrupted" in text_of(app))
        await pilot.press("1", *"ok", "enter")
        await until(pilot, lambda: "Function 2 of 3" in text_of(app))
        await pilot.press("3")  # unchanged, so only its version is named
        await until(pilot, lambda: "Function 3 of 3" in text_of(app))
        await pilot.press("backspace")
        await until(pilot, lambda: "There is no answer" in text_of(app))
        await pilot.press("q")
    resumed = glance_app(chosen, at_work(tmp_path), at_once=True)
    async with resumed.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: "Function 3 of 3" in text_of(resumed))
        await pilot.press("3")
        await until(pilot, lambda: "This function was corrupted" in text_of(resumed))
        await pilot.press("right_square_bracket")  # without a verdict
        await until(pilot, lambda: "All 3 functions are read" in text_of(resumed))
        await pilot.press("3", "m", "enter", "q")
    assert app.crashes == resumed.crashes == []
    known = at_work(tmp_path)
    assert [len(known.glances(item.task).readings) for item in chosen] == [1, 1, 1]
    assert [len(known.glances(item.task).verdicts) for item in chosen] == [1, 0, 0]


def refused(*_arguments: object) -> None:
    raise UserError("The disk is full.")


async def test_what_can_not_be_saved_is_reported_and_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "glances").write_text("no folder")
    app = glance_app(items("c"), at_work(tmp_path))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "a = x - 1" in text_of(app))
        await pilot.press("3")
        await until(pilot, lambda: isinstance(app.screen, MessageDialog))
        assert "can't be saved" in text_of(app)
        await pilot.press("escape")
        await until(pilot, lambda: "Function 1 of 1" in text_of(app))
        await pilot.press("1", *"sign", "enter")
        await until(pilot, lambda: isinstance(app.screen, MessageDialog))
        await pilot.press("escape", "1")
        await until(pilot, lambda: isinstance(app.screen, TextDialog))
        assert app.screen.query_one(Input).value == "sign"  # the words are not lost
        await pilot.press("escape")
        (tmp_path / "glances").unlink()
        await pilot.press("3")
        await until(pilot, lambda: isinstance(app.screen, VerdictScreen))
        with monkeypatch.context() as broken:
            broken.setattr(GlanceReader, "verdict", refused)
            await pilot.press("1", *"x", "enter")
            await until(pilot, lambda: isinstance(app.screen, MessageDialog))
        await pilot.press("escape", "1")
        await until(pilot, lambda: isinstance(app.screen, TextDialog))
        assert app.screen.query_one(Input).value == "x"
        await pilot.press("escape", "q")
    assert app.crashes == []


async def test_an_answer_that_could_not_be_taken_back_still_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = at_work(tmp_path)
    app = glance_app(items("cc"), reader)
    with monkeypatch.context() as broken:
        async with app.run_test(size=(80, 24), notifications=True) as pilot:
            await until(pilot, lambda: "Function 1 of 2" in text_of(app))
            await pilot.press("3")
            await until(pilot, lambda: "Function 2 of 2" in text_of(app))
            broken.setattr(GlanceReader, "take_back", refused)
            await pilot.press("backspace")
            await until(pilot, lambda: isinstance(app.screen, MessageDialog))
            await pilot.press("escape")
            broken.undo()
            await until(pilot, lambda: "Function 2 of 2" in text_of(app))
            await pilot.press("backspace")
            await until(pilot, lambda: "Function 1 of 2" in text_of(app))
            await pilot.press("q")
    assert app.crashes == []


async def test_looking_again_after_an_answer_was_taken_back_adds_to_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_000.0]
    monkeypatch.setattr(reading, "monotonic", lambda: now[0])
    reader, chosen = at_work(tmp_path), items("cc")
    app = glance_app(chosen, reader)

    def looked() -> list[int]:
        return [one.looked_ms for item in chosen for one in reader.glances(item.task).readings]

    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "Function 1 of 2" in text_of(app))
        now[0] += 40
        await pilot.press("3")
        await until(pilot, lambda: "Function 2 of 2" in text_of(app))
        now[0] += 7
        await pilot.press("backspace")
        await until(pilot, lambda: "Function 1 of 2" in text_of(app))
        now[0] += 2
        await pilot.press("3")
        await until(pilot, lambda: "Function 2 of 2" in text_of(app))
        now[0] += 5
        await pilot.press("3")
        await until(pilot, lambda: isinstance(app.screen, VerdictScreen))
        await pilot.press("q")
    assert looked() == [42_000, 12_000]
    assert app.crashes == []


async def test_a_limit_also_counts_the_time_before_an_answer_was_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_000.0]
    monkeypatch.setattr(reading, "monotonic", lambda: now[0])
    app = glance_app(items("cc"), at_work(tmp_path, 60.0))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter")
        await until(pilot, lambda: "60 s left" in text_of(app))
        await pilot.press("3", "enter")
        await until(pilot, lambda: "Function 2 of 2" in text_of(app) and "60 s left" in text_of(app))
        now[0] += 50
        await until(pilot, lambda: "10 s left" in text_of(app))
        await pilot.press("backspace")
        await until(pilot, lambda: "Function 1 of 2" in text_of(app))
        await pilot.press("3", "enter")
        await until(pilot, lambda: "Function 2 of 2" in text_of(app) and "10 s left" in text_of(app))
        await pilot.press("q")
    assert app.crashes == []


async def test_a_limit_that_has_passed_shows_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_000.0]
    monkeypatch.setattr(reading, "monotonic", lambda: now[0])
    app = glance_app(items("cc"), at_work(tmp_path, 60.0))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter", "3", "enter")
        await until(pilot, lambda: "Function 2 of 2" in text_of(app) and "60 s left" in text_of(app))
        now[0] += 60
        await until(pilot, lambda: "The code is hidden" in text_of(app))
        await pilot.press("backspace")
        await until(pilot, lambda: "Function 1 of 2" in text_of(app))
        await pilot.press("3")
        await until(pilot, lambda: "Function 2 of 2" in text_of(app))
        assert "The code is hidden" in text_of(app)
        screen = app.screen
        assert isinstance(screen, GlanceScreen)
        await pilot.press("enter")
        assert not screen.code.display
        await pilot.press("q")
    assert app.crashes == []
