import pytest
from screens.settling import until
from shown_screen import Stage, rows
from textual.geometry import Offset
from textual.message import Message
from textual.selection import Selection

from gistpoint.tui.widgets.code_view import CodeView, PatternError
from gistpoint.tui.widgets.line_view import AffordanceTaken
from gistpoint.tui.widgets.text_view import TextView

SOURCE = "".join(f"def f{i}(x):\n\treturn os.path.join(x, {i})\n\n" for i in range(200))


class Listening(Stage):
    def __init__(self, widget: CodeView) -> None:
        super().__init__(widget)
        self.heard: list[Message] = []

    def on_line_view_cursor_moved(self, message: CodeView.CursorMoved) -> None:
        self.heard.append(message)

    def on_affordance_taken(self, message: AffordanceTaken) -> None:
        self.heard.append(message)


async def test_numbers_follow_the_file_and_go_to_stays_within_it() -> None:
    view = CodeView()
    app = Listening(view)
    async with app.run_test(size=(60, 10)) as pilot:
        view.load(SOURCE, first_line=100)
        view.go_to(340)
        await pilot.pause()
        assert view.cursor_line == 340
        assert any(row.startswith("▸ 340 def f80(x):") for row in rows(app))
        view.go_to(10_000)
        assert view.cursor_line == 100 + 600 - 1
        view.go_to(1)
        assert view.cursor_line == 100
        await pilot.pause()
        assert [m.line for m in app.heard if isinstance(m, CodeView.CursorMoved)][-1] == 100


async def test_going_somewhere_before_the_first_layout_arrives_there() -> None:
    class Early(CodeView):
        def on_mount(self) -> None:
            self.load(SOURCE)
            self.go_to(301)

    view = Early()
    app = Stage(view)
    async with app.run_test(size=(60, 10)) as pilot:
        await pilot.pause()
        assert view.scroll_offset.x == 0
        assert any(row.startswith("▸ 301 ") for row in rows(app))


async def test_keys_move_the_cursor() -> None:
    view = CodeView()
    app = Stage(view)
    async with app.run_test(size=(60, 11)) as pilot:
        view.load(SOURCE)
        view.focus()
        await pilot.press("down", "end")
        assert (view.cursor_line, view.cursor_column) == (2, 26)
        await pilot.press("right")
        assert (view.cursor_line, view.cursor_column) == (3, 0)
        await pilot.press("left", "home")
        assert (view.cursor_line, view.cursor_column) == (2, 1)
        await pilot.press("pagedown")
        assert view.cursor_line == 12
        await pilot.press("G")
        assert view.cursor_line == 600
        await pilot.press("g")
        assert (view.cursor_line, view.scroll_offset.y) == (1, 0)


async def test_the_mouse_puts_the_cursor_behind_an_expanded_tab() -> None:
    view = CodeView()
    app = Stage(view)
    async with app.run_test(size=(60, 11)) as pilot:
        view.load(SOURCE)
        await pilot.click(CodeView, offset=(view.gutter_width() + 4 + 11, 4))
        assert (view.cursor_line, view.cursor_column) == (5, 12)
        assert view.word_at_cursor() == "os.path"


@pytest.mark.parametrize(
    ("line", "column", "word"),
    [
        ("a.b.c", 0, "a"),
        ("a.b.c", 2, "a.b"),
        ("a.b.c", 5, "a.b.c"),
        ("x = föö(1)", 5, "föö"),
        ("x = 1.5", 4, ""),
        ("  + ", 2, ""),
        ("", 0, ""),
        ("f(self)", 1, "f"),
        ("...a", 3, "a"),
    ],
)
async def test_word_at_cursor(line: str, column: int, word: str) -> None:
    view = CodeView()
    async with Stage(view).run_test(size=(40, 5)):
        view.load(line)
        view.go_to(1, column)
        assert view.word_at_cursor() == word


async def test_search_counts_shows_and_goes_round() -> None:
    view = CodeView()
    app = Listening(view)
    async with app.run_test(size=(60, 10)) as pilot:
        view.load(SOURCE)
        assert view.search("RETURN OS") == 200
        assert (view.cursor_line, view.match_place) == (2, (1, 200))
        assert view.next_match()
        assert (view.cursor_line, view.match_place) == (5, (2, 200))
        view.previous_match()
        view.previous_match()
        assert (view.cursor_line, view.match_place) == (599, (200, 200))
        assert view.search("f(?=1.7)", regex=True) == 10
        assert view.search("list[int]") == 0
        assert view.match_place == (0, 0)
        assert not view.next_match()
        with pytest.raises(PatternError, match="not a regular expression"):
            view.search("(", regex=True)
        await pilot.pause(0.6)
        assert [m.kind for m in app.heard if isinstance(m, AffordanceTaken)] == ["search"]


async def test_scrolling_by_hand_is_reported_once_and_going_somewhere_is_not() -> None:
    view = CodeView()
    app = Listening(view)
    async with app.run_test(size=(60, 10)) as pilot:
        view.load(SOURCE)
        view.go_to(300)
        await pilot.pause(0.6)
        assert not [m for m in app.heard if isinstance(m, AffordanceTaken)]
        view.focus()
        for _ in range(5):  # at once, however slow the machine is
            view.action_cursor_pages(1)
        await pilot.pause(0.6)
        await until(pilot, lambda: any(isinstance(m, AffordanceTaken) for m in app.heard))
        assert [m.kind for m in app.heard if isinstance(m, AffordanceTaken)] == ["scroll"]


async def test_marks_and_colours() -> None:
    view = CodeView()
    app = Stage(view)
    async with app.run_test(size=(60, 10)) as pilot:
        view.load('"""a\nb"""\nx = 1\n')
        view.marks = {2: "●"}
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert rows(app)[1].startswith(" ●  2 b")
        styles = [view.render_line(1)._segments[i].style for i in range(4)]
        assert any(style is not None and style.italic for style in styles)


async def test_a_form_feed_or_line_separator_ends_no_line() -> None:
    view = CodeView()
    app = Stage(view)
    async with app.run_test(size=(60, 10)) as pilot:
        view.load("a = '\x0c\u2028\x1c'\nb = 1\n")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert view.line_count == 2
        assert rows(app)[1].endswith("2 b = 1")


async def test_selection_gives_back_raw_text() -> None:
    view = CodeView()
    app = Stage(view)
    async with app.run_test(size=(60, 10)):
        view.load("one\n\ttwo\x1b[0m\nthree")
        everything = view.get_selection(Selection(None, None))
        assert everything == ("one\n\ttwo\x1b[0m\nthree", "\n")
        part = view.get_selection(Selection(Offset(1, 0), Offset(6, 1)))
        assert part == ("ne\n\ttw", "\n")
        view.go_to(2)
        view.focus()
        view.action_copy_line()
        assert app.clipboard == "\ttwo\x1b[0m"


async def test_appending_follows_the_end_only_when_it_is_in_sight() -> None:
    view = TextView()
    app = Stage(view)
    async with app.run_test(size=(60, 10)) as pilot:
        for i in range(50):
            view.append(f"line {i}\n")
            await pilot.pause()
        assert rows(app)[9].endswith("line 49")
        view.go_to(1)
        view.append("one more\n")
        await pilot.pause()
        assert rows(app)[0].endswith("line 0")
        assert view.raw.endswith("line 49\none more\n")


async def test_escape_sequences_are_interpreted_only_where_that_is_allowed() -> None:
    for allowed in (False, True):
        view = TextView(can_interpret=allowed)
        app = Stage(view)
        async with app.run_test(size=(60, 5)) as pilot:
            view.load("\x1b[31m50%\r100%\x1b[0m")
            view.focus()
            await pilot.press("t")
            await pilot.pause()
            assert rows(app)[0].endswith("▸ 100%" if allowed else "␛[31m50%␍100%␛[0m")
            assert view.raw == "\x1b[31m50%\r100%\x1b[0m"


async def test_no_colour_and_the_terminals_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    for theme in ("ansi-dark", "ansi-light", "textual-dark"):
        view = CodeView()
        app = Stage(view)
        async with app.run_test(size=(60, 10)) as pilot:
            app.theme = theme
            view.load(SOURCE)
            view.search("return")
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert rows(app)[1].startswith("▸   2     return os.path")


async def test_a_search_counts_the_matches_of_text_that_grows() -> None:
    view, heard = TextView(), list[tuple[int, int]]()
    app = Stage(view)
    async with app.run_test(size=(60, 10)) as pilot:
        view.watch(view, "found", lambda place: heard.append(place), init=False)
        view.load("one\ntwo\n")
        assert view.search("x") == 0
        for text, place in (("x\nx", (0, 2)), ("\n", (0, 2)), ("x\n", (0, 3))):
            view.append(text)
            await pilot.pause()
            assert view.found == view.match_place == place
        assert heard == [(0, 2), (0, 3)]
        view.go_to(1)
        assert view.next_match()
        assert (view.found, view.cursor_line) == ((1, 3), 3)
        assert view.next_match()
        view.append("x\n")
        await pilot.pause()
        assert (view.found, view.cursor_line) == ((2, 4), 4)


async def test_a_match_that_growing_text_takes_away_is_no_longer_the_current_one() -> None:
    view = TextView()
    app = Stage(view)
    async with app.run_test(size=(60, 10)) as pilot:
        view.load("ax\nx")
        view.search("x$", regex=True)
        assert view.next_match()
        assert view.found == (2, 2)
        view.append("y\nzx\n")
        await pilot.pause()
        assert view.found == (0, 2)
        assert view.previous_match()
        assert view.found == (1, 2)
