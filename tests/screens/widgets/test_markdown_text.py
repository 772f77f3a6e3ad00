"""Markdown is drawn as text, word for word; its source is a key away, and what is copied."""

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
