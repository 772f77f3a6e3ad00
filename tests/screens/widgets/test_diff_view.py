from screens.settling import until
from shown_screen import Stage, rows

from gistpoint.core.diffs import parse
from gistpoint.tui.widgets.diff_view import DiffView

BEFORE = "".join(f"line {i}\n" for i in range(60))
AFTER = (
    BEFORE.replace("line 5\n", "line five\n").replace("line 40\n", "").replace("line 50\n", "line 50\nnew\n")
)


async def test_unified_where_it_is_narrow() -> None:
    view = DiffView()
    app = Stage(view)
    async with app.run_test(size=(80, 24)) as pilot:
        view.load(BEFORE, AFTER, name="x.py")
        await app.workers.wait_for_complete()
        await pilot.pause()
        shown = rows(app)
        assert not view.split
        assert shown[0].endswith("x.py  +2 -2")
        assert "   6     - line 5" in shown[5]
        assert "       6 + line five" in shown[6]
        view.load(BEFORE, AFTER, first_line=101)
        await until(pilot, lambda: " 106     - line 5" in rows(app)[5])
        assert "@@ -103,7 +103,7 @@" in rows(app)[1]
        assert "     106 + line five" in rows(app)[6]


async def test_side_by_side_where_it_is_wide_and_back() -> None:
    view = DiffView()
    app = Stage(view)
    async with app.run_test(size=(140, 24)) as pilot:
        view.load(BEFORE, AFTER, name="x.py")
        view.focus()
        await pilot.pause()
        assert view.split
        row = next(row for row in rows(app) if "line five" in row)
        assert "6 - line 5" in row
        assert "6 + line five" in row
        last = next(row for row in rows(app) if "+ new" in row)
        assert "- " not in last
        context = next(row for row in rows(app) if row.count("line 52") == 2)
        assert " 53   line 52" in context
        assert context.count(" 53   line 52") == 2
        await pilot.press("w")
        await pilot.pause()
        assert not view.split
        await pilot.press("w")
        await pilot.resize_terminal(100, 24)
        await until(pilot, lambda: not view.split)


async def test_n_goes_from_change_to_change() -> None:
    view = DiffView()
    app = Stage(view)
    async with app.run_test(size=(80, 12)) as pilot:
        view.load(BEFORE, AFTER)
        view.focus()
        found = []
        for key in "nnnnNNN":
            await pilot.press(key)
            found.append(view.pane.lines[view.pane.cursor_index])
        assert found == ["line 5", "line 40", "new", "new", "line 40", "line 5", "line 5"]


async def test_n_goes_from_match_to_match_while_something_is_searched_for() -> None:
    view = DiffView()
    app = Stage(view)
    async with app.run_test(size=(80, 12)) as pilot:
        view.load(BEFORE, AFTER)
        view.focus()
        view.search("line 4")
        found = []
        for key in "nnN":
            found.append(view.pane.lines[view.pane.cursor_index])
            await pilot.press(key)
        assert found == ["line 4", "line 40", "line 41"]
        assert view.pane.lines[view.pane.cursor_index] == "line 40"
        view.search("")
        await pilot.press("n")
        assert view.pane.lines[view.pane.cursor_index] == "new"


async def test_both_sides_scroll_together() -> None:
    view = DiffView()
    app = Stage(view)
    async with app.run_test(size=(140, 12)) as pilot:
        view.load(BEFORE, BEFORE.replace("line", "LINE"))
        view.focus()
        await pilot.pause()  # before the first layout, there is nothing to scroll
        await pilot.press("pagedown", "pagedown")
        await pilot.pause()
        left, right = view.query("DiffPane")
        assert left.scroll_offset == right.scroll_offset
        assert left.scroll_offset.y > 10


async def test_a_parsed_diff_of_several_files() -> None:
    text = (
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
        "--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+c\n\\ No newline at end of file\n"
    )
    view = DiffView()
    app = Stage(view)
    async with app.run_test(size=(80, 12)) as pilot:
        view.load_diff(parse(text))
        await pilot.pause()
        shown = "\n".join(rows(app))
        assert "y (new)  +1 -0" in shown
        assert "+ c  (no newline at the end)" in shown


async def test_equal_texts_say_so() -> None:
    view = DiffView()
    app = Stage(view)
    async with app.run_test(size=(80, 12)) as pilot:
        view.load(BEFORE, BEFORE, name="x")
        await pilot.press("n")
        await pilot.pause()
        assert "x  no differences" in rows(app)[0]


async def test_long_texts_are_compared_in_a_thread() -> None:
    before = "".join(f"line number {i}\n" for i in range(20_000))
    view = DiffView()
    app = Stage(view)
    async with app.run_test(size=(80, 12)) as pilot:
        view.load(before, before + "end\n", name="x")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert "x  +1 -0" in rows(app)[0]


async def test_a_whole_text_is_shown_with_what_differs_marked_or_nothing() -> None:
    before = "".join(f"line {number}\n" for number in range(40))
    view = DiffView()
    app = Stage(view)
    async with app.run_test(size=(60, 60)) as pilot:
        for after, title, marked in (
            (before, "no differences", 0),
            (before.replace("line 20", "LINE"), "+1 -1", 2),
        ):
            view.load(before, after, whole=True)
            await pilot.pause()
            shown = rows(app)
            assert shown[0].endswith(title)
            assert "@@" not in "".join(shown)
            assert [line for line in shown if "line 0" in line or "line 39" in line] == [
                shown[1],
                shown[40 + marked // 2],
            ]
            assert sum("+ " in line[:12] or "- " in line[:12] for line in shown) == marked
