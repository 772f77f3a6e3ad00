from collections.abc import Callable
from itertools import pairwise

import pytest
from hostile import HOSTILE, HUGE_LINES
from shown_screen import Stage, rows
from textual.content import Content
from textual.widget import Widget

from gistpoint.core.attempts.clock import Clock
from gistpoint.core.attempts.revealed import Knowledge
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.outcomes import BackendRecord, Outcome, TestResult
from gistpoint.core.text import visible, visible_line
from gistpoint.core.tools.declaration import Revealed
from gistpoint.tui.widgets.budget_bar import BudgetBar
from gistpoint.tui.widgets.code_view import CodeView
from gistpoint.tui.widgets.diff_view import DiffView
from gistpoint.tui.widgets.function_editor import FunctionEditor
from gistpoint.tui.widgets.knowledge_tree import KnowledgeTree
from gistpoint.tui.widgets.outcome_table import OutcomeTable
from gistpoint.tui.widgets.plain import Plain, plain_line
from gistpoint.tui.widgets.text_view import TextView

SIZE = (100, 12)
TALL = (120, 2 * len(HOSTILE) + 10)


async def shown_by(widget: Widget, fill: Callable[[], None], size: tuple[int, int] = TALL) -> list[str]:
    app = Stage(widget)
    async with app.run_test(size=size, notifications=True, tooltips=True) as pilot:
        fill()
        await app.workers.wait_for_complete()
        await pilot.pause()
        return rows(app)


async def test_plain() -> None:
    plain = Plain()
    shown = await shown_by(plain, lambda: plain.update("\n".join(HOSTILE)))
    assert shown[: len(HOSTILE)] == [visible(text).rstrip() for text in HOSTILE]


async def test_code() -> None:
    view = CodeView()
    shown = await shown_by(view, lambda: view.load("\n".join(HOSTILE), language="python"))
    assert [row[6:] for row in shown[: len(HOSTILE)]] == [visible(text).rstrip() for text in HOSTILE]


async def test_titles_and_tooltips() -> None:
    view = CodeView()
    app = Stage(view)
    async with app.run_test(size=SIZE, notifications=True, tooltips=True) as pilot:
        view.styles.border = ("round", "red")
        for text in HOSTILE:
            view.load("", title=f"T{text}")
            view.tooltip = plain_line(text)
            app.notify(plain_line(text).plain, markup=False)
            await pilot.pause()
            assert f"T{visible_line(text)}".rstrip() in rows(app)[0]


async def test_text_and_appended_text() -> None:
    view = TextView()

    def fill() -> None:
        view.load(HOSTILE[0])
        for text in HOSTILE[1:]:
            view.append(f"\n{text}")

    shown = await shown_by(view, fill)
    assert [row[2:] for row in shown[: len(HOSTILE)]] == [visible(text).rstrip() for text in HOSTILE]


async def test_diff() -> None:
    view = DiffView()
    shown = await shown_by(
        view, lambda: view.load("a\n", "\n".join(("a", *HOSTILE, "")), name="[/x].py"), (100, 120)
    )
    assert any("[/x].py  +" in row for row in shown)
    added = [row.split("+ ", 1)[1] for row in shown[3:] if "+ " in row]
    assert added == [visible(text).rstrip() for text in HOSTILE]


async def test_editor_shows_and_keeps() -> None:
    editor = FunctionEditor()
    code = "".join(f"a = '''{text}'''\n" for text in HOSTILE)
    shown = await shown_by(editor, lambda: editor.load_buffer("p::[/x]", code))
    assert editor.code == code
    for text, row in zip(HOSTILE, shown, strict=False):
        assert f"a = '''{visible(text)}'''" in row


async def test_tree() -> None:
    names = [text.replace("/", "") for text in HOSTILE]
    known = Knowledge().with_revealed(
        Revealed(
            entries=tuple((f"{name}.py", "file") for name in names),
            functions=tuple((f"{name}.py::{name}", 1, 2) for name in names),
            files=tuple(f"{name}.py" for name in names),
        ),
        "call",
    )
    tree = KnowledgeTree()

    def fill() -> None:
        tree.update_from(known, suspects=[f"{name}.py::{name}" for name in names])
        tree.root.expand_all()

    shown = "\n".join(await shown_by(tree, fill))
    for name in names:
        assert f"● {visible_line(name)}.py" in shown
        assert f"○ {visible_line(name)} ⚑" in shown


async def test_outcomes() -> None:
    table = OutcomeTable()
    results = [TestResult(f"t[{text}]", Outcome.FAILED, 1, f"E {text}") for text in HOSTILE]
    shown = "\n".join(await shown_by(table, lambda: table.show_results(results), (120, 120)))
    for text in HOSTILE:
        assert f"t[{visible_line(text)}]" in shown
    assert f"E {visible(HOSTILE[0])}" in shown


async def test_budget_bar() -> None:
    bar = BudgetBar()
    app = Stage(bar)
    async with app.run_test(size=(160, 5), notifications=True, tooltips=True) as pilot:
        await pilot.hover(BudgetBar)
        for text in HOSTILE:
            bar.update_from(AttemptState(), Clock(), backend=BackendRecord(text, text))
            await pilot.pause()
            assert f"{visible_line(text)} ✔".strip() in rows(app)[0]
            assert isinstance(bar.tooltip, Content)
            assert visible_line(text) in bar.tooltip.plain


@pytest.mark.parametrize("line", HUGE_LINES, ids=range(len(HUGE_LINES)))
@pytest.mark.parametrize("wrap", [False, True])
async def test_huge_lines_are_drawn_a_row_at_a_time(line: str, wrap: bool) -> None:
    view = CodeView()
    app = Stage(view)
    async with app.run_test(size=SIZE) as pilot:
        view.wrap = wrap
        view.load(f"{line}\nlast")
        view.focus()
        await pilot.press("G", "end", "home", "g", "end")
        await pilot.pause()
        assert view.cursor_line == 1
        row = view.cursor_row
        assert view.rows.at(row)[2] == len(line)
        await pilot.press("G")
        await pilot.pause()
        assert any(shown.endswith("  2 last") for shown in rows(app))
        covered = [view.rows.at(index)[1:] for index in range(len(view.rows) - 1)]
        assert covered[0][0] == 0
        assert all(a[1] == b[0] for a, b in pairwise(covered))
        assert covered[-1][1] == len(line)


async def test_wrapped_rows_lose_no_character() -> None:
    text = "".join(HOSTILE).replace("\n", "") * 3 + "漢字" * 40
    view = CodeView()
    app = Stage(view)
    async with app.run_test(size=(60, 100)) as pilot:
        view.wrap = True
        view.load(text, language=None)
        await pilot.pause()
        shown = "".join(row[6:] for row in rows(app)[: len(view.rows)])
        assert shown.replace(" ", "") == visible(text).replace(" ", "")
