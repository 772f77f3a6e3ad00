"""A run is read step by step, and the screen shows every string of it literally."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import pytest
from examples import at_the_gate
from hostile import CONTROLS, MARKUP, UNICODE
from recorded_runs import make_all
from screens.review.reviewing import TURNS, command, mini_run, reviewing

from gistpoint.core.text import visible, visible_line
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.opening import open_run
from gistpoint.tui.jobs import Job
from gistpoint.tui.screens.dialogs.ask import TextDialog
from gistpoint.tui.screens.review.loading import RunLoader
from gistpoint.tui.screens.review.navigation import Navigation
from gistpoint.tui.screens.review.runs import RunsScreen
from gistpoint.tui.screens.review.step_list import EVERY
from gistpoint.tui.screens.review.step_view import FOLD_LINES
from gistpoint.tui.widgets.diff_view import DiffView
from gistpoint.tui.widgets.outcome_table import OutcomeTable
from gistpoint.tui.widgets.text_view import TextView


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return mini_run(tmp_path / "a.traj.json", TURNS)


async def test_a_run_opens_at_its_first_step_and_is_walked(run: Path) -> None:
    async with reviewing(run) as driver:
        await driver.until_read(0)
        await driver.until(lambda: "step 1 of 8" in driver.text())
        await driver.press("right_square_bracket", "right_square_bracket")
        await driver.until_read(2)
        assert "step 3 of 8" in driver.text()
        assert "stats.py" in driver.text()
        await driver.press("dollar_sign")
        await driver.until_read(7)
        await driver.press("circumflex_accent")
        await driver.until_read(0)
        await driver.press("number_sign", "5", "enter")
        await driver.until_read(4)


async def test_a_step_that_is_read_slowly_does_not_hold_the_list_back(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = threading.Event()
    read = RunLoader._read

    def slow(loader: RunLoader, job: Job, index: int) -> None:
        assert index == 0 or allowed.wait(30)
        read(loader, job, index)

    monkeypatch.setattr(RunLoader, "_read", slow)
    async with reviewing(run) as driver:
        await driver.until_read(0)
        await driver.press("right_square_bracket")
        await driver.until(lambda: "step 2 of 8" in driver.text())
        assert driver.review.run.step is not None
        assert driver.review.run.step.index == 0
        allowed.set()
        await driver.until_read(1)


async def test_movement_stops_at_the_next_step_of_a_kind(run: Path) -> None:
    async with reviewing(run) as driver:
        await driver.until_read(0)
        await driver.until_surveyed()
        for key, step in (("e", 5), ("r", 6), ("R", 4), ("p", 7), ("X", 4)):
            await driver.press(key)
            await driver.until_read(step)
        await driver.press("U")
        await driver.until_read(3)


async def test_the_pages_show_diff_tests_raw_record_and_run(run: Path) -> None:
    async with reviewing(run, size=(160, 48)) as driver:
        await driver.until_read(0)
        await driver.press("number_sign", "6", "enter")
        await driver.until_read(5)
        await driver.press("d")
        await driver.until(lambda: driver.review.query_one("#diff", DiffView).files)
        assert "sum(values) / len(values)" in driver.text()
        await driver.press("f4")
        await driver.until(lambda: "derived from the edits" in driver.text())
        await driver.press("v")
        await driver.until(lambda: "stats.py" in driver.text() and "derived" in driver.text())
        await driver.press("right_square_bracket", "f5")
        await driver.until(lambda: driver.review.query_one(OutcomeTable).shown)
        assert "tests/test_stats.py::test_mean" in driver.text()
        await driver.press("f6")
        await driver.until(lambda: driver.review.query_one("#raw", TextView).text)
        raw = driver.review.query_one("#raw", TextView).text
        assert raw == open_run(run).raw(6).decode()
        await driver.press("i")
        await driver.until(lambda: "mini-swe-agent" in driver.review.query_one("#run", TextView).text)


async def test_a_page_of_changes_says_why_it_is_empty(run: Path) -> None:
    async with reviewing(run, size=(160, 48)) as driver:
        await driver.until_read(0)
        await driver.press("D")
        await driver.until(lambda: "No changes so far: no step up to this one edits a file" in driver.text())
        await driver.press("number_sign", "6", "enter")
        await driver.until(lambda: "sum(values) / len(values)" in driver.text())
        assert "No changes so far" not in driver.text()


async def test_a_page_that_was_left_before_it_was_loaded_is_loaded_later(run: Path) -> None:
    async with reviewing(run) as driver:
        await driver.until_read(0)
        held, passed = threading.Event(), threading.Event()
        driver.review.run.loader.do(lambda: held.wait(10))
        await driver.press("f6", "f2")
        held.set()
        driver.review.run.loader.do(passed.set)
        await driver.until(passed.is_set)
        await driver.press("f6")
        await driver.until(lambda: driver.review.query_one("#raw", TextView).text)


async def test_the_note_of_a_page_does_not_stay_above_the_step(run: Path) -> None:
    async with reviewing(run) as driver:
        await driver.until_read(0)
        await driver.press("f5")
        await driver.until(lambda: "The output does not name any tests." in driver.text())
        await driver.press("f2")
        assert "The output does not name any tests." not in driver.text()


async def test_long_results_are_folded_with_their_length_and_unfold(tmp_path: Path) -> None:
    lines = "\n".join(f"line {n}" for n in range(FOLD_LINES * 3))
    run = mini_run(tmp_path / "long.traj.json", [command("cat big", lines)])
    async with reviewing(run) as driver:
        await driver.until_read(0)
        await driver.press("dollar_sign")
        await driver.until_read(2)
        view = driver.review.step_page
        assert view.composed.folded
        assert f"{FOLD_LINES * 3 + 3:,} lines" in view.text
        assert f"line {FOLD_LINES * 3 - 1}" not in view.text
        await driver.press("f2", "o")
        await driver.until(lambda: f"line {FOLD_LINES * 3 - 1}\n" in view.text)
        await driver.press("o")
        await driver.until(lambda: view.composed.folded)


@pytest.mark.parametrize("kind", ["markup", "controls", "unicode"])
async def test_hostile_texts_stand_on_the_screen_as_in_the_file(tmp_path: Path, kind: str) -> None:
    corpus = [
        t.encode("utf-8", "replace").decode()
        for t in {"markup": MARKUP, "controls": CONTROLS, "unicode": UNICODE}[kind]
    ]
    turns = [command(text, text, thought=text) for text in corpus]
    run = mini_run(tmp_path / "hostile.traj.json", turns, model=corpus[0], task=corpus[1])
    async with reviewing(run, size=(200, 60)) as driver:
        await driver.until_read(0)
        await driver.press("right_square_bracket")
        await driver.until_read(1)
        for number, text in enumerate(corpus, 2):
            await driver.press("right_square_bracket")
            await driver.until_read(number)
            driver.app.notify(text, title=text)
            step = open_run(run).step(number)
            for raw in (step.text, step.thought, step.results[0].text):
                assert raw in driver.review.step_page.text
            shown = driver.text()
            last = [line for line in visible(text).split("\n") if line.strip()][-1]
            if "\t" not in last and last.isascii():
                assert last[:60].rstrip() in shown, (text, shown)
        driver.app.clear_notifications()
        await driver.press("c")
        await driver.until_on(TextDialog)
        driver.app.screen.dismiss(corpus[0])
        await driver.until(lambda: visible_line(corpus[0]) in driver.text())


async def test_every_format_opens_and_every_step_can_be_shown(tmp_path: Path) -> None:
    files = {made.format: made for made in make_all(tmp_path / "files")}
    for made in (*files.values(), *at_the_gate(make_all(tmp_path / "others"))):
        id, count = next(iter(made.steps.items()))
        name = f"{made.path}#{id}" if id and len(made.steps) > 1 else str(made.path)
        async with reviewing(name) as driver:
            await driver.until(
                lambda driver=driver: (
                    isinstance(driver.app.screen, RunsScreen) or driver.review.run.step is not None
                )
            )
            if isinstance(driver.app.screen, RunsScreen):
                await driver.until(lambda driver=driver: driver.on(RunsScreen).table.count >= 1)
                await driver.press("enter")
                await driver.until(lambda driver=driver: driver.review.run.step is not None)
            await driver.until(lambda driver=driver, count=count: driver.review.steps.count == count)
            driver.review.steps.action_list(EVERY)
            driver.review.steps.action_edge(-1)
            for index in range(count):
                await driver.until(lambda driver=driver, index=index: driver.review.run.step.index == index)
                await driver.press("right_square_bracket")


async def test_escape_sequences_are_shown_or_obeyed(tmp_path: Path) -> None:
    run = mini_run(tmp_path / "a.traj.json", [command("pytest", "\x1b[31mred\x1b[0m\r10%\r20%")])
    async with reviewing(run, size=(120, 40)) as driver:
        await driver.until_read(0)
        await driver.press("dollar_sign", "f2")
        await driver.until_read(2)
        assert "␛[31mred␛[0m␍10%␍20%" in driver.text()
        await driver.press("t")
        await driver.until(lambda: "␛" not in driver.text() and "20%" in driver.text())


async def test_a_run_that_grows_is_followed(run: Path) -> None:
    async with reviewing(run) as driver:
        await driver.until_read(0)
        await driver.until(lambda: driver.review.run.loader.document.finished)
        await driver.press("ctrl+f")
        await driver.until_read(7)
        document = json.loads(run.read_text())
        document["messages"] += command("echo more", "more")
        run.write_text(json.dumps(document, indent=2))
        await driver.until(lambda: driver.review.steps.count == 9)
        await driver.until_read(8)
        text = run.read_text()
        run.unlink()
        await driver.until(lambda: "The file was deleted" in driver.text())
        assert driver.review.steps.count == 9
        run.write_text(text.replace("echo more", "echo else"))
        await driver.until(lambda: "The file was replaced" in driver.text() and "echo else" in driver.text())


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """An event; until it is set, only the first steps are counted."""
    allowed = threading.Event()
    index = RunLoader._index

    def held(loader: RunLoader, job: Job, document: RunDocument) -> None:
        if allowed.wait(0.02):
            index(loader, job, document)

    monkeypatch.setattr(RunLoader, "_index", held)
    return allowed


@pytest.fixture
def long_run(tmp_path: Path) -> Path:
    return mini_run(
        tmp_path / "long.traj.json", [command(f"echo {n}", f"line {n} " * 400) for n in range(3_000)]
    )


async def test_the_last_step_is_read_before_the_others_are_counted(
    long_run: Path, counted: threading.Event
) -> None:
    async with reviewing(long_run) as driver:
        await driver.until_read(0)
        await driver.press("dollar_sign")
        await driver.until(lambda: "last step" in driver.text() and "echo 2999" in driver.text())
        assert "those before it are being counted" in driver.text()
        counted.set()
        await driver.until_read(3_001)
        await driver.until(lambda: "step 3,002 of 3,002" in driver.text() and "echo 2999" in driver.text())
        assert "Reading to the end" not in driver.text()


async def test_the_last_step_is_read_before_totals_that_take_long(
    long_run: Path, counted: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = threading.Event()
    sum_up = RunDocument._sum_up
    monkeypatch.setattr(RunDocument, "_sum_up", lambda *given: allowed.wait(60) and sum_up(*given))
    monkeypatch.setattr("gistpoint.tui.screens.review.loading._DRAWN_S", 1.0)
    async with reviewing(long_run) as driver:
        await driver.until_read(0)
        await asyncio.sleep(1.1)
        await driver.press("dollar_sign")
        await driver.until(lambda: "last step" in driver.text())
        counted.set()
        await driver.until(lambda: "step 3,002 of 3,002" in driver.text() and "echo 2999" in driver.text())
        allowed.set()


async def test_who_goes_elsewhere_is_not_taken_to_the_end(long_run: Path, counted: threading.Event) -> None:
    async with reviewing(long_run) as driver:
        await driver.until_read(0)
        await driver.press("dollar_sign")
        await driver.until(lambda: "last step" in driver.text())
        await driver.press("circumflex_accent")
        await driver.until_read(0)
        counted.set()
        await driver.until(lambda: driver.review.run.loader.document.finished)
        await driver.until(lambda: driver.review.steps.count == 3_002)
        assert driver.review.run.step.index == 0
        assert "step 1 of 3,002" in driver.text()


async def test_the_end_is_that_of_the_run_before_the_list_has_heard_of_it(
    long_run: Path, counted: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunLoader, "_report", lambda *_, **__: None)
    async with reviewing(long_run) as driver:
        await driver.until_read(0)
        counted.set()
        await driver.until(lambda: driver.review.run.loader.document.finished)
        assert driver.review.steps.count < 3_002
        await driver.press("dollar_sign")
        await driver.until(lambda: "step 3,002 of 3,002" in driver.text() and "echo 2999" in driver.text())


@pytest.mark.parametrize(("number", "arrives_at"), [("2500", 2_500), ("9999", 3_002)])
async def test_a_step_is_gone_to_by_its_number_once_it_is_read(
    number: str, arrives_at: int, long_run: Path, counted: threading.Event
) -> None:
    async with reviewing(long_run) as driver:
        await driver.until_read(0)
        await driver.press("number_sign", *number, "enter")
        await driver.until(lambda: f"Reading up to step {int(number):,} …" in driver.text())
        counted.set()
        await driver.until_read(arrives_at - 1)
        await driver.until(lambda: f"step {arrives_at:,} of 3,002" in driver.text())
        assert "Reading up to" not in driver.text()


async def test_playing_goes_on_beyond_what_has_been_read(
    long_run: Path, counted: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    moves: list[bool] = []
    play_on = Navigation._play_on
    monkeypatch.setattr(Navigation, "_play_on", lambda self: moves.append(play_on(self)) or moves[-1])
    async with reviewing(long_run) as driver:
        await driver.until_read(0)
        review = driver.review
        review.steps.cursor = review.steps.count - 1
        last = review.steps.cursor
        await driver.press("plus", "plus", "plus", "plus", "plus", "plus", "asterisk")
        await driver.until(lambda: len(moves) > 1)
        counted.set()
        await driver.until(lambda: review.steps.cursor > last + 2)
        assert review.run.navigation.player.playing


async def test_a_run_plays_by_itself(run: Path) -> None:
    async with reviewing(run) as driver:
        await driver.until_read(0)
        await driver.press("plus", "plus", "plus", "plus", "plus", "plus", "asterisk")
        await driver.until_read(7)
        await driver.until(lambda: not driver.review.run.navigation.player.playing)


async def test_what_cannot_be_read_is_reported(tmp_path: Path) -> None:
    odd = tmp_path / "odd.json"
    odd.write_text('{"nothing": "of ours"}')
    async with reviewing(odd) as driver:
        await driver.until(lambda: "That did not work" in driver.text())
