from itertools import cycle

from msgspec import structs
from shown_screen import Stage, rows

from gistpoint.core.attempts.clock import Clock, ClockActivity
from gistpoint.core.attempts.parts import Ending
from gistpoint.core.attempts.revealed import Knowledge
from gistpoint.core.attempts.state import AttemptState
from gistpoint.core.outcomes import BackendRecord, Outcome, TestResult
from gistpoint.core.readable import duration
from gistpoint.core.tasks.budgets import Budgets, Remaining
from gistpoint.core.tools.declaration import Revealed
from gistpoint.tui.widgets.budget_bar import BudgetBar, pips
from gistpoint.tui.widgets.knowledge_tree import KnowledgeTree
from gistpoint.tui.widgets.outcome_table import OutcomeTable

STATE = AttemptState(budgets=Budgets(16, 4, 600), remaining=Remaining(11, 1))


async def test_the_bar_says_everything_at_each_width() -> None:
    for width in (160, 100, 80):
        bar = BudgetBar("Tickets that cost too much")
        app = Stage(bar)
        async with app.run_test(size=(width, 3)) as pilot:
            clock = Clock(reading=1000, exploring=64_000, running=ClockActivity.EDITING)
            bar.update_from(STATE, clock, backend=BackendRecord("plain", isolated=False))
            await pilot.pause()
            shown = rows(app)[0]
            for part in ("Tickets that cost", "◆ 11", "▶ 1", "left", "✎", "1:05 (8:55 left)", "UNSANDBOXED"):
                assert part in shown
            assert ("Tickets that cost too much" in shown) == (width > 80)
            assert ("11 tool uses left" in shown) == (width == 160)
            assert ("●●●●●●●●●●●○○○○○" in shown) == (width == 160)
            assert ("●○○○" in shown) == (width > 80)


async def test_a_bar_with_hardly_any_room_still_says_unsandboxed() -> None:
    bar = BudgetBar()
    app = Stage(bar)
    async with app.run_test(size=(40, 3)) as pilot:
        bar.update_from(
            STATE, Clock(running=ClockActivity.PAUSED), backend=BackendRecord("plain", isolated=False)
        )
        await pilot.pause()
        assert "UNSANDBOXED" in rows(app)[0]
        assert bar.has_class("-paused")


async def test_an_attempt_that_is_over_is_ended_and_not_paused() -> None:
    bar = BudgetBar()
    app = Stage(bar)
    async with app.run_test(size=(80, 3)) as pilot:
        over = structs.replace(STATE, ending=Ending("solved"))
        bar.update_from(
            over, Clock(running=ClockActivity.PAUSED), backend=BackendRecord("bwrap", isolated=True)
        )
        await pilot.pause()
        assert "■ ended" in rows(app)[0]
        assert "paused" not in rows(app)[0]
        assert not bar.has_class("-paused")


def test_pips_and_durations() -> None:
    assert pips(1, 4) == "●○○○"
    assert pips(0, 4) == "○○○○"
    assert pips(2, 20) == "●●" + "○" * 18, "one a use, however many there are"
    assert pips(3, 0) == ""
    assert [duration(ms) for ms in (-5, 59_999, 60_000, 3_600_000)] == ["0:00", "0:59", "1:00", "1:00:00"]


KNOWN = Knowledge().with_revealed(
    Revealed(
        entries=(("src", "dir"), ("src/a.py", "file"), ("tests", "dir"), ("setup.py", "file")),
        listed=("", "src"),
        files=("src/a.py",),
        functions=(("src/a.py::A.g", 9, 12), ("src/a.py::f", 3, 5)),
        sources=("src/a.py::f",),
    ),
    "call-1",
)


class Asked(Stage):
    def __init__(self, widget: KnowledgeTree) -> None:
        super().__init__(widget)
        self.asked: list[tuple[str, ...]] = []

    def on_knowledge_tree_list_folder(self, message: KnowledgeTree.ListFolder) -> None:
        self.asked.append(("ListFolder", message.path))

    def on_knowledge_tree_open_file(self, message: KnowledgeTree.OpenFile) -> None:
        self.asked.append(("OpenFile", message.path))

    def on_knowledge_tree_open_function(self, message: KnowledgeTree.OpenFunction) -> None:
        self.asked.append(("OpenFunction", message.function))

    def on_knowledge_tree_show_again(self, message: KnowledgeTree.ShowAgain) -> None:
        self.asked.append(("ShowAgain", message.call_id, message.place))


async def test_the_tree_shows_what_is_known_and_asks_for_the_rest() -> None:
    tree = KnowledgeTree()
    app = Asked(tree)
    async with app.run_test(size=(60, 12)) as pilot:
        tree.update_from(KNOWN, suspects=["src/a.py::A.g"])
        tree.root.expand_all()
        tree.focus()
        await pilot.pause()
        shown = [row.strip("│├└─ ▼") for row in rows(app)]
        assert shown[:7] == ["● /", "● src/", "● a.py", "● f", "○ A.g ⚑", "○ tests/", "○ setup.py"]
        src, tests, setup = tree.root.children
        file = src.children[0]
        for node in (file.children[1], file.children[0], file, tests, setup, src):
            tree.move_cursor(node)
            await pilot.press("enter")
        await pilot.pause()
        assert app.asked == [
            ("OpenFunction", "src/a.py::A.g"),
            ("ShowAgain", "call-1", "src/a.py::f"),
            ("ShowAgain", "call-1", "src/a.py"),
            ("ListFolder", "tests"),
            ("OpenFile", "setup.py"),
            ("ShowAgain", "call-1", "src"),
        ]
        assert not src.is_expanded


async def test_the_price_is_shown_where_the_cursor_is() -> None:
    tree = KnowledgeTree()
    app = Asked(tree)
    async with app.run_test(size=(60, 12)) as pilot:
        tree.update_from(KNOWN)
        tree.focus()
        await pilot.press("G")
        tree.move_cursor(tree.root.children[-1])
        await pilot.pause()
        assert [row for row in rows(app) if "−1 tool use" in row] == [
            row for row in rows(app) if "setup.py" in row
        ]


async def test_the_tree_keeps_its_place_when_more_becomes_known() -> None:
    tree = KnowledgeTree()
    app = Asked(tree)
    async with app.run_test(size=(60, 12)) as pilot:
        tree.update_from(KNOWN)
        tree.root.children[0].expand()
        await pilot.pause()
        tree.move_cursor(tree.root.children[-1])
        more = KNOWN.with_revealed(Revealed(entries=(("src/b.py", "file"),)), "call-2")
        tree.update_from(more)
        await pilot.pause()
        assert tree.place is not None
        assert tree.place.name == "setup.py"
        assert any("b.py" in row for row in rows(app))


FAILING = (Outcome.FAILED, Outcome.ERROR)
RESULTS = [
    TestResult(
        f"tests/test_{i % 7}.py::test_{i}[{i}]", outcome, i / 10, f"E {i}" if outcome in FAILING else ""
    )
    for i, outcome in zip(range(5_000), cycle(Outcome), strict=False)
]


async def test_outcomes_are_filtered_and_failures_shown() -> None:
    table = OutcomeTable()
    app = Stage(table)
    async with app.run_test(size=(100, 30)) as pilot:
        table.show_results(RESULTS)
        table.table.focus()
        await pilot.pause()
        assert "✔ passed" in rows(app)[3]
        assert not table.has_class("-failure")
        await pilot.press("down")
        await pilot.pause()
        assert any(row.endswith("E 1") for row in rows(app))
        await pilot.press("slash", *"failed test_7.py::")
        await pilot.pause(0.4)
        assert table.shown == []
        await pilot.press(*["backspace"] * 11, *"3.py::test_31[")
        await pilot.pause(0.4)
        assert [r.id for r in table.shown] == ["tests/test_3.py::test_31[31]"]
        assert "showing 1 of 5,000 tests" in "\n".join(rows(app))
