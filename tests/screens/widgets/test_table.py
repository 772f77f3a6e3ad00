"""A drawn table: columns, headings, order, groups, selected rows and a query."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from builders import build_services, build_task
from fakes import FakeClock
from screens.driving import LARGE, driving
from screens.settling import until
from shown_screen import Stage, rows

from gistpoint.core.query_grammar import QueryError
from gistpoint.core.tasks.model import Mode
from gistpoint.tui import home_rows
from gistpoint.tui.tables import Column
from gistpoint.tui.widgets.table import Table

WORD: Column[str] = Column("word", str)
LENGTH: Column[str] = Column("length", lambda word: str(len(word)), len, width=6, right=True)
COLUMNS = (WORD, LENGTH)
WORDS = ["pear", "fig", "banana", "kiwi"]


def table(columns: Sequence[Column[str]] = COLUMNS, kind: type[Table[str]] = Table) -> Table[str]:
    return kind(columns, key=str, id="words")


async def test_rows_are_drawn_sorted_narrowed_and_grouped() -> None:
    words = table()
    app = Stage(words)
    async with app.run_test(size=(30, 10)) as pilot:
        words.show(WORDS)
        await pilot.pause()
        assert rows(app)[:3] == ["word   length", "pear        4", "fig         3"]
        words.sort_next()
        words.sort_next()
        await pilot.pause()
        assert rows(app)[0] == "word   length ▲"
        assert words.shown == ["fig", "pear", "kiwi", "banana"]
        words.reverse_order()
        assert words.shown == ["banana", "pear", "kiwi", "fig"]
        words.sort_next()
        words.narrow("length>3 -kiwi")
        assert words.shown == ["banana", "pear"]
        with pytest.raises(QueryError):
            words.narrow("weight>3")
        assert words.shown == ["banana", "pear"]
        words.narrow("")
        words.group_by(LENGTH)
        await pilot.pause()
        assert rows(app)[1:6] == [
            "fig           3",
            "banana        6",
            "- 2× 4",
            "  kiwi",
            "  pear",
        ]
        assert words.chosen == "pear"
        words.cursor = words.rows.index("fig")
        assert words.chosen_group is None
        words.fold(folded=True)
        words.pick()
        assert (len(words.rows), words.picked) == (5, ["fig"])


async def test_rows_do_not_repeat_the_heading_of_their_group() -> None:
    initial = Column("initial", lambda word: word[0])
    size = Column("size", lambda word: str(len(word)), grouped=lambda word: word[0])
    words = table((initial, WORD, size))
    app = Stage(words)
    async with app.run_test(size=(30, 10)) as pilot:
        words.show(["fig", "file", "pear", "plum"])
        words.group_by(initial)
        await pilot.pause()
        assert rows(app)[:4] == ["word   size", "- 2× f", "  fig  3", "  file 4"]
        words.show(["fig", "file", "pear"])
        await pilot.pause()
        assert rows(app)[:5] == [
            "initial word size",
            "- 2× f",
            "        fig  3",
            "        file 4",
            "p       pear 4",
        ]
        words.fold(folded=True)
        words.group_by(size)
        await pilot.pause()
        assert rows(app)[2].split() == ["f", "fig", "3"], "a cell that differs from its heading stays"


async def test_the_cursor_stays_on_its_row_and_a_renewed_row_in_its_place() -> None:
    pairs: Table[tuple[str, int]] = Table(
        (
            Column("name", lambda pair: pair[0]),
            Column("value", lambda pair: str(pair[1]), lambda pair: pair[1]),
        ),
        key=lambda pair: pair[0],
        id="pairs",
    )
    async with Stage(pairs).run_test(size=(30, 10)):
        pairs.show([("a", 1), ("b", 2), ("c", 3)], at="b")
        pairs.narrow("value<3")
        assert (pairs.chosen, len(pairs.records)) == (("b", 2), 3)
        pairs.update_records([("a", 1), ("b", 20), ("c", 3)])
        assert pairs.shown == [("a", 1), ("b", 20)]
        assert pairs.chosen == ("b", 20)
        pairs.show([("x", 0), ("a", 1), ("b", 2)])
        assert pairs.chosen == ("b", 2)
        pairs.show_none()
        assert (pairs.chosen, pairs.shown) == (None, [])
        pairs.narrow("")
        assert pairs.chosen == ("x", 0)


async def test_a_click_on_a_heading_sorts_and_one_on_a_row_goes_there() -> None:
    words = table()
    async with Stage(words).run_test(size=(30, 10)) as pilot:
        words.show(WORDS)
        await pilot.click(words, offset=(10, 0))
        assert words.shown == ["fig", "pear", "kiwi", "banana"]
        await pilot.click(words, offset=(10, 0))
        assert words.shown == ["banana", "pear", "kiwi", "fig"]
        await pilot.click(words, offset=(2, 0))
        assert words.column is WORD
        await pilot.click(words, offset=(2, 3))
        assert words.cursor == 2


async def test_headings_stay_while_rows_are_scrolled() -> None:
    numbers: Table[int] = Table(
        (Column("number", str, width=8), Column("square", lambda n: str(n * n))), id="numbers"
    )
    app = Stage(numbers)
    async with app.run_test(size=(20, 6)) as pilot:
        numbers.show(range(1_000))
        numbers.focus()
        await pilot.press("G")
        await pilot.pause()
        assert rows(app)[0].startswith("number   square")
        assert rows(app)[5].startswith("999      998001")
        assert numbers.in_sight == range(995, 1_000)
        await pilot.press("pageup", "pageup")
        assert numbers.cursor == 991
        await pilot.press("g")
        await pilot.pause()
        assert rows(app)[1].startswith("0        0")


class Sideways(Table[str]):
    MARGIN, GAP, SIDEWAYS = 1, 2, True
    DEFAULT_CSS = "Sideways { overflow-x: auto; }"


async def test_a_wide_row_is_scrolled_with_its_heading_or_cut() -> None:
    for kind, shown in ((Table, False), (Sideways, True)):
        words = table((WORD, Column("end", lambda word: "the end")), kind)
        app = Stage(words)
        async with app.run_test(size=(20, 6)) as pilot:
            words.show(["x" * 40])
            words.focus()
            await pilot.press(*["right"] * 40)
            await pilot.pause(0.4)
            assert ("the end" in rows(app)[1], "end" in rows(app)[0]) == (shown, shown)


async def test_the_last_column_ends_before_the_scroll_bar() -> None:
    words = table(
        (WORD, Column("also", lambda word: f"{word} from one end to the other", least=9, keeps_end=True))
    )
    app = Stage(words)
    async with app.run_test(size=(30, 6)) as pilot:
        words.show([f"word {number}" for number in range(40)])
        await pilot.pause()
        drawn = app.screen._compositor.render_strips()[1].text
        assert drawn[: words.sight.width].endswith("e other")
        assert words.sight.width == 29


async def test_picked_rows_are_marked_where_there_is_room_for_it() -> None:
    words = table(kind=Sideways)
    app = Stage(words)
    async with app.run_test(size=(30, 6)) as pilot:
        words.show(WORDS)
        words.pick()
        words.pick()
        words.cursor = 0
        words.pick()
        await pilot.pause()
        assert words.picked == ["fig"]
        assert [row[:1] for row in rows(app)[1:5]] == [" ", "✔", " ", " "]


async def test_cells_are_literal_and_cut_to_their_width() -> None:
    words = table((Column("[b]word[/b]", str, least=5), LENGTH))
    app = Stage(words)
    async with app.run_test(size=(18, 6)) as pilot:
        words.show(["[red]x[/red]", "\x1b[31m\n", "漢字漢字漢字漢字"])
        await pilot.pause()
        shown = rows(app)
        assert shown[0] == "[b]word[/b] length"
        assert shown[1].startswith("[red]x[/re… ")
        assert "\x1b" not in shown[2]
        assert "\n" not in shown[2]
        assert shown[3] == "漢字漢字漢…      8"


async def test_a_column_of_home_is_one_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing: Column[home_rows.TaskRow] = Column(
        "Failing", lambda row: f"{row.task.failing} fail", lambda row: row.task.failing
    )
    monkeypatch.setattr(home_rows, "TASK_COLUMNS", (failing, *home_rows.TASK_COLUMNS))
    clock = FakeClock()
    services = build_services(tmp_path, clock=clock)
    task = build_task(services.locations.tasks, Mode.REMOVE)
    count = len(task.brief.failing)
    async with driving(services, clock, size=LARGE) as driver:
        await driver.until(lambda: f"{count} fail" in driver.text())
        await driver.press("s")
        await driver.until(lambda: "by Failing" in driver.text())
        await driver.press("slash")
        await driver.type(f"failing>{count}")
        await driver.until(lambda: "Tasks (0 of 1)" in driver.text())
        await driver.press("backspace")
        await driver.type(f"{count - 1}")
        await driver.until(lambda: "Tasks (1" in driver.text())


async def test_a_query_of_home_may_name_a_column(tmp_path: Path) -> None:
    clock = FakeClock()
    services = build_services(tmp_path, clock=clock)
    build_task(services.locations.tasks, Mode.REMOVE)
    async with driving(services, clock, size=LARGE) as driver:
        await driver.until(lambda: "Tasks (1)" in driver.text())
        await driver.press("slash")
        await driver.type("best>=0.5")
        await driver.until(lambda: "Tasks (0 of 1)" in driver.text())
        await driver.press("escape", "slash")
        await driver.type("sizes>4")
        await driver.until(lambda: "There is no column sizes." in driver.text())
        await driver.press("escape")
        await driver.until(lambda: "Tasks (1)" in driver.text() and "no column" not in driver.text())


EXCERPT: Column[str] = Column("line", str, rank=2, least=16, marks=lambda text: [_place_of("limit", text)])
FOUND: tuple[Column[str], ...] = (
    Column("run", lambda text: "a run with a rather long name of its own", rank=1, least=12),
    EXCERPT,
    Column("error", lambda text: "KeyError" if text.endswith("!") else "", rank=3, least=8),
    Column("solver", lambda text: "a solver with a long name", rank=4, least=8),
)


def _place_of(word: str, text: str) -> tuple[int, int]:
    return text.index(word), text.index(word) + len(word)


@pytest.mark.parametrize("width", [50, 80, 120, 160, 200])
async def test_an_excerpt_uses_the_width_and_is_cut_between_words(width: int) -> None:
    words = (
        "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau"
    )
    texts = [
        f"{words} limit {words}",
        f"limit {words} {words}",
        f"{words} {words} limit",
        f"{words} limit {words}!",
    ]
    found = table(FOUND)
    async with (app := Stage(found)).run_test(size=(width, 8)) as pilot:
        found.show(texts)
        await pilot.pause()
        drawn = rows(app)
        left = drawn[0].index("line")
        following = [drawn[0].index(name) for name in ("error", "solver") if name in drawn[0]]
        room = (following[0] if following else width) - left
        assert room >= 48 or width < 80
        for text, row in zip(texts, drawn[1:], strict=False):
            has_error, names_solver = text.endswith("!"), "solver" in drawn[0]
            end = (
                following[0]
                if has_error and "error" in drawn[0]
                else (following[-1] if names_solver else width)
            )
            shown = row[left:end].strip()
            assert "limit" in shown
            assert len(shown) >= end - left - 16, "free space next to a line that is cut"
            assert shown.startswith("…") == (not text.startswith(shown[:8]))
            assert set(shown.strip("…").rstrip("!").split()) <= {*words.split(), "limit"}, "cut within a word"


async def test_a_long_list_is_arranged_in_a_thread_while_keys_are_answered() -> None:
    many = [f"w{number * 7919 % 100_003:06}" for number in range(30_000)]
    asked: list[str] = []

    def length(word: str) -> str:
        asked.append(threading.current_thread().name)
        return str(len(word))

    first = Column("first", lambda word: word[:3])
    words = table((WORD, Column("length", length, len), first))
    app = Stage(words)
    async with app.run_test(size=(30, 10)) as pilot:
        words.show(many)
        assert words.rows == [], "the rows of a long list come later"
        await until(pilot, lambda: len(words.rows) == len(many))
        assert len(asked) <= 500 + 10, "a sample is measured, and the rows on the screen are drawn"
        asked.clear()
        words.cursor = 17
        for query in ("w0", "w01", "length=7 w012"):  # a newer query ends an older one
            words.narrow(query)
        wanted = [word for word in many if "w012" in word]
        await until(pilot, lambda: words.shown == wanted)
        assert "rows" in asked
        words.narrow("")
        words.sort_by(WORD)
        words.reverse_order()
        await until(pilot, lambda: words.shown == sorted(many, reverse=True))
        assert words.chosen == wanted[0], "the cursor stays on its record"
        words.group_by(first)
        await until(pilot, lambda: len(words.rows) > len(many) and words.chosen_group is not None)


async def test_the_sample_of_a_long_list_includes_rows_of_all_its_parts() -> None:
    words = table()
    app = Stage(words)
    async with app.run_test(size=(40, 10)) as pilot:
        words.show(["a"] * 1_000 + ["a longer word"] * 900)
        await pilot.pause()
        assert rows(app)[0] == "word          length"


async def test_the_heading_of_a_group_stays_visible_while_its_rows_scroll() -> None:
    initial = Column("initial", lambda word: word[0])
    words = table((initial, WORD))
    app = Stage(words)
    names = [f"{letter}{n:02}" for letter in "ab" for n in range(20)]
    async with app.run_test(size=(30, 10)) as pilot:
        words.show(names)
        words.group_by(initial)
        await pilot.pause()
        for key, chosen in (("end", "b19"), ("up", "b18"), *[("up", "")] * 30, ("g", ""), ("pagedown", "")):
            await pilot.press(key)
            await pilot.pause()
            shown = rows(app)
            at = words.rows[words.cursor]
            assert str(at) in "\n".join(shown[1:]), "the cursor is visible"
            assert chosen in ("", at)
            assert shown[1].startswith("- 20× "), key
            assert f"- 20× {str(at).removeprefix('20× ')[0]}" in shown
        words.cursor = words.rows.index("b10")
        await pilot.pause()
        assert rows(app)[1] == "- 20× b"
        await pilot.click(words, offset=(3, 1))
        await pilot.pause()
        assert str(words.rows[words.cursor]) == "20× b", "a click on it goes to it"
        assert rows(app).count("- 20× b") == 1
        words.cursor = words.rows.index("b10")
        await pilot.pause()
        await pilot.click(words, offset=(3, 2))
        assert words.chosen == rows(app)[2].strip()
