"""Markdown is drawn as text, word for word; a key shows its source, which is also the copied text."""

from __future__ import annotations

from shown_screen import Stage, rows

from gistpoint.tui.widgets.markdown_text import MarkdownText, drawn_lines

SOURCE = """# Repair `f` and **only** it

- Every test
- passes

```
def f(): return '# no heading'
```
## Done"""


def test_marks_go_and_words_stay() -> None:
    drawn = drawn_lines(SOURCE)
    assert [line.text for line in drawn] == [
        "Repair f and only it",
        "",
        "• Every test",
        "• passes",
        "",
        "  def f(): return '# no heading'",
        "Done",
    ]
    assert [line.source for line in drawn] == [0, 1, 2, 3, 4, 6, 8]


async def test_the_source_is_shown_and_copied() -> None:
    view = MarkdownText()
    app = Stage(view)
    async with app.run_test(size=(60, 12)) as pilot:
        view.show(SOURCE)
        view.focus()
        view.go_to(3)
        await pilot.press("y")
        assert app.clipboard == "- Every test"
        assert "• Every test" in "\n".join(rows(app))
        await pilot.press("end")
        assert view.cursor_line == 7
        await pilot.press("v")
        assert view.text == SOURCE
        assert "- Every test" in "\n".join(rows(app))


BLOCKS = """Its docstring:

```
If one row can hold the party, the row with the fewest free
seats that suffice is used, for larger parties.

Args:
    size: how many people want to sit with one another in the
        same row, and from which station on
    - a list stays as it is, even if its line is long enough
    - and so does this
```

```
tests/test_boards.py:90: in test_overview
    assert show(overview(timetable, Tariff(), day, origin)) == 1
E   AssertionError: assert 1 == 2 for this and for that, in vain
```

```
@cached
def find_block(self, size: int) -> list[str]:
```"""


async def test_prose_is_wrapped_to_the_view_and_only_code_has_colours() -> None:
    drawn = drawn_lines(BLOCKS)
    texts = [line.text for line in drawn]
    assert texts[2] == (
        "If one row can hold the party, the row with the fewest free seats that suffice is used, for larger parties."
    )
    assert texts[4:9] == BLOCKS.split("\n")[6:11], "a list, and what has another margin, stays as it is"
    assert [line.text for line in drawn if line.code] == [
        "  @cached",
        "  def find_block(self, size: int) -> list[str]:",
    ]
    assert "      assert show(overview(timetable, Tariff(), day, origin)) == 1" in texts
    view = MarkdownText()
    app = Stage(view)
    async with app.run_test(size=(60, 30)) as pilot:
        view.show(BLOCKS)
        view.focus()
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        assert [bool(view.line_tokens(line)) for line in (2, 12)] == [False, False]
        assert view.line_tokens(len(texts) - 1)
        view.go_to(3)
        await pilot.press("y")
        assert app.clipboard == "\n".join(BLOCKS.split("\n")[3:5]), "the source is copied"
