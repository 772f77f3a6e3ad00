"""The list of runs, and two runs side by side."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import CHECKS, build_task
from examples import at_sizes
from fakes import FakeClock, FakeRunner
from recorded_runs.repairs import RIGHT, WRONG, journal_run
from screens.review.reviewing import TURNS, command, mini_run, reviewing
from shown_screen import Stage, rows

from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.locations import Locations
from gistpoint.core.queries import RowQuery
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.records.model import Actor, Run, Tokens
from gistpoint.sessions.runs.digest import RunDigest
from gistpoint.sessions.runs.kept import KeptRun
from gistpoint.sessions.runs.opening import ListedRun
from gistpoint.tui.commands.run_list import COLUMNS as PRINTED
from gistpoint.tui.commands.run_list import FoundRun
from gistpoint.tui.screens.review.action_tree import ActionTreeScreen
from gistpoint.tui.screens.review.compare import CompareScreen
from gistpoint.tui.screens.review.run_pages import RunPages
from gistpoint.tui.screens.review.run_rows import COLUMNS, GROUPS, RunRow
from gistpoint.tui.screens.review.runs import RunsScreen, RunTable
from gistpoint.tui.screens.review.screen import ReviewScreen
from gistpoint.tui.tables import Heading, arranged, parse_query


def row(task: str, **known: object) -> RunRow:
    return RunRow(ListedRun(f"{task}.json", 1, Run("chat", task=task, **known)))  # type: ignore[arg-type]


ROWS = [
    row("b", model="m-1", verdict="solved", step_count=30, cost=0.5),
    row("a", model="m-2", verdict="unsolved", step_count=10, tokens=Tokens(111_000, 600), duration_s=95.0),
    row("c", model="m-1", step_count=20),
]


@pytest.mark.parametrize(
    ("query", "tasks"),
    [
        ("", "bac"),
        ("solved", "b"),
        ("unsolved", "a"),
        ("steps>15", "bc"),
        ("steps<=20 model:m-1", "c"),
        ("-model:m-1", "a"),
        ("-solver:m-1", "a"),
        ("cost>0.4", "b"),
        ("m-2", "a"),
        ("-steps=10", "bc"),
        ("tokens > 100k", "a"),
        ("tokens=112k", "a"),
        ("tokens<0.2M", "a"),
        ("cost>=$0.50", "b"),
        ("-cost<$1", "ac"),
        ("time>1:30", "a"),
    ],
)
def test_queries_narrow_the_list(query: str, tasks: str) -> None:
    assert "".join(found.header.task for found in ROWS if parse_query(query, COLUMNS).matches(found)) == tasks


@pytest.mark.parametrize("query", ["nothing>1", "steps>many"])
def test_a_query_that_means_nothing_says_why(query: str) -> None:
    with pytest.raises(UserError):
        parse_query(query, COLUMNS)


def test_hidden_outcomes_can_not_be_asked_for() -> None:
    hidden = RunRow(ROWS[0].listed, hides=True)
    assert not parse_query("solved", COLUMNS).matches(hidden)
    assert not parse_query("m-1", COLUMNS).matches(hidden)
    assert all(
        "m-1" not in column.shown(hidden) and "solved" not in column.shown(hidden) for column in COLUMNS
    )


def test_rows_are_sorted_and_grouped() -> None:
    steps, solver = (
        next(column for column in COLUMNS if column.name == name) for name in ("steps", "solver")
    )
    by_steps = [found.header.task for found in arranged(ROWS, RowQuery(), steps) if isinstance(found, RunRow)]
    assert by_steps == ["a", "c", "b"]
    grouped = arranged(ROWS, RowQuery(), group=solver)
    headings = [found for found in grouped if isinstance(found, Heading)]
    assert headings == ["2× m-1"], "a run that is alone in its group has no heading"
    assert grouped[-1] is ROWS[1]
    summaries = {column.name: column.summary(headings[0].rows)[1] for column in COLUMNS if column.summary}
    assert (summaries["outcome"], summaries["steps"], summaries["cost"], summaries["solver"]) == (
        "✔ 1 of 1",
        "25",
        "Σ$0.50",
        "m-1",
    )
    outcome = next(column for column in COLUMNS if column.name == "outcome")
    by_outcome = arranged(ROWS, RowQuery(), outcome, group=solver, folded=lambda name: name == "m-1")
    assert by_outcome == [ROWS[1], "2× m-1"]


def test_outcome_end_reason_and_verdict_are_three_things() -> None:
    shown = {column.name: column.shown for column in COLUMNS}
    ended = row("d", exit_status="Submitted")
    assert (shown["outcome"](ended), shown["end reason"](ended), shown["verdict"](ended)) == (
        "",
        "Submitted",
        "",
    )
    for query in ("end:submitted", "ending:submitted", "-outcome:submitted", "-verdict:submitted"):
        assert parse_query(query, COLUMNS).matches(ended), query


async def test_groups_are_folded_to_a_line_that_sums_them_up(tmp_path: Path) -> None:
    for number in range(6):
        turns = [command("ls", "", thought=f"run {number}"), *TURNS]
        mini_run(tmp_path / f"{number}.traj.json", turns, model=f"m-{number % 2}", task=f"t{number % 3}")
    async with reviewing(tmp_path) as driver:
        runs = driver.on(RunsScreen)
        await driver.until(lambda: runs.table.count == 6 and all(found.review for found in runs.table.shown))
        await driver.press("ampersand", "ampersand", "o")
        await driver.until(lambda: runs.table.count == 2)
        assert len(runs.table.shown) == 6
        assert "3× m-0" in driver.text()
        assert "Σ$0.75" in driver.text()
        await driver.press("enter", "down")
        await driver.until(lambda: runs.table.count == 5 and runs.table.chosen is not None)
        await driver.press("left")
        await driver.until(lambda: runs.table.count == 2 and runs.table.chosen is None)
        await driver.press("home", "space", "home", "right", "down", "enter")
        await driver.until_on(ReviewScreen)
        assert len(driver.review.others.names) == 3, "the group's runs are picked"
        await driver.until_read(0)
        await driver.press("Y", "q")
        await driver.until_on(RunsScreen)
        await driver.until(
            lambda: "1 of 3" in driver.text() and "solved" in driver.text() and "%" in driver.text()
        )
        await driver.press("home", "space", "home", "left", "enter", "down", "enter")
        await driver.until_on(ReviewScreen)
        assert len(driver.review.others.names) == 6, "runs of folded groups are still of the list"


async def test_a_folder_lists_fills_in_and_opens(tmp_path: Path) -> None:
    for number in range(40):
        mini_run(
            tmp_path / f"{number:02}.traj.json",
            TURNS[: 1 + number % 5],
            model=f"m-{number % 2}",
            task=f"task {number:02}",
        )
    async with reviewing(tmp_path, size=(160, 48)) as driver:
        runs = driver.on(RunsScreen)
        await driver.until(lambda: runs.table.count == 40)
        await driver.until(lambda: all(found.header.step_count for found in runs.table.rows))
        await driver.press("slash")
        await driver.type("stepz>6")
        await driver.until(
            lambda: "There is no column stepz" in driver.text() and "mean 'steps'?" in driver.text()
        )
        await driver.press(*["backspace"] * 3)
        await driver.type("s>6 m-1")
        await driver.until(lambda: 0 < runs.table.count < 40)
        assert all(found.header.step_count > 6 and found.header.model == "m-1" for found in runs.table.rows)
        await driver.press("enter", "enter")
        await driver.until_on(ReviewScreen)
        await driver.until_read(0)
        assert driver.review.steps.region.right <= driver.review.query_one(RunPages).region.x, (
            "beside each other"
        )
        await driver.press("1", "q")
        await driver.until_on(RunsScreen)
        await driver.until(lambda: "key_insight" in driver.text())


async def test_runs_of_one_task_are_compared_as_a_tree(tmp_path: Path) -> None:
    for name, turns in (("a", TURNS), ("b", TURNS[:4]), ("c", (TURNS[0], *TURNS[2:])), ("d", TURNS)):
        mini_run(
            tmp_path / f"{name}.traj.json", turns, model=f"m-{name}", task="other" if name == "d" else "mean"
        )
    async with reviewing(tmp_path, size=(110, 30)) as driver:
        await driver.until(lambda: driver.on(RunsScreen).table.count == 4)
        await driver.press("C")
        tree = await driver.until_on(ActionTreeScreen)
        await driver.until(lambda: "3 runs of mean" in driver.text())
        rows = [[str(action) for action in row.node.actions] for row in tree.tree_rows.rows]
        assert rows[0] == ["read"]
        assert rows[1] == ["read stats.py", "run tests", "edit stats.py"]
        assert [len(row.node.runs) for row in tree.tree_rows.rows] == [3, 2, 1, 1, 1]
        await driver.press("n")
        assert tree.tree_rows.cursor == 1
        await driver.until(lambda: "Then they part ways:" in driver.text())
        await driver.press("n")
        await driver.until(lambda: "There is no later difference." in driver.text())
        await driver.press("h", "h")
        assert [len(row.node.runs) for row in tree.tree_rows.rows] == [3, 2, 1]
        assert tree.tree_rows.cursor == 0
        await driver.press("o", "o")
        assert len(tree.tree_rows.rows) == 3
        await driver.press("o", "C")
        compare = await driver.until_on(CompareScreen)
        await driver.until(lambda: compare.rows.count > 0)
        await driver.press("escape")
        await driver.press("end", "space", "up", "space", "C")
        compare = await driver.until_on(CompareScreen)
        assert [Path(name).name[0] for name in compare._names] == ["c", "b"]
        await driver.press("escape", "enter")
        await driver.until_on(ReviewScreen)


async def test_a_tree_hides_who_made_its_runs_and_how_they_ended(tmp_path: Path) -> None:
    for number, submissions in enumerate(((RIGHT,), (WRONG, RIGHT), (WRONG,))):
        (tmp_path / str(number)).mkdir()
        journal_run(tmp_path / str(number), submissions)
    async with reviewing(tmp_path, size=(110, 30), blind=True) as driver:
        await driver.until(lambda: driver.on(RunsScreen).table.count == 3)
        await driver.press("C")
        await driver.until_on(ActionTreeScreen)
        await driver.until(lambda: "3 runs" in driver.text() and "#1" in driver.text())
        assert "solved" not in driver.text()


async def test_three_picked_runs_can_be_compared(tmp_path: Path) -> None:
    for name in "abc":
        mini_run(tmp_path / f"{name}.traj.json", TURNS[2:], model=name)
    async with reviewing(tmp_path) as driver:
        await driver.until(lambda: driver.on(RunsScreen).table.count == 3)
        await driver.press("space", "space", "space", "C")
        await driver.until_on(ActionTreeScreen)
        await driver.press("escape")
        await driver.until_on(RunsScreen)
        await driver.press("space", "C")
        await driver.until_on(CompareScreen)


async def test_runs_to_compare_with_are_distinguished_by_what_differs(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).mkdir()
        mini_run(tmp_path / name / "run.traj.json", TURNS[2:], model=name)
    mini_run(tmp_path / "c" / "more.traj.json", TURNS[2:], model="more")
    async with reviewing(tmp_path) as driver:
        await driver.until(lambda: driver.on(RunsScreen).table.count == 4)
        await driver.press("enter")
        await driver.until_on(ReviewScreen)
        await driver.until_read(0)
        await driver.press("C")
        await driver.until(lambda: "Compare with" in driver.text())
        assert str(tmp_path) not in driver.text().replace("\n", "")
        assert "c/more.traj.json" in driver.text()
        await driver.press(*"more", "enter")
        await driver.until_on(CompareScreen)


async def test_two_runs_are_aligned_by_their_milestones(tmp_path: Path) -> None:
    mini_run(tmp_path / "a.traj.json", TURNS, model="m-1")
    mini_run(tmp_path / "b.traj.json", [command("ls", ""), *TURNS[2:]], model="m-2")
    async with reviewing(tmp_path, size=(160, 48)) as driver:
        await driver.until(lambda: driver.on(RunsScreen).table.count == 2)
        await driver.press("C")
        await driver.until_on(CompareScreen)
        await driver.press("escape")
        await driver.until_on(RunsScreen)
        await driver.press("space", "space", "C")
        compare = await driver.until_on(CompareScreen)
        await driver.until(lambda: compare.rows.count > 0)
        assert " a.traj.json · b.traj.json" in driver.text()
        names = [str(name) for found in compare.rows.comparison.rows for name in found.milestones]
        assert "first edit" in names
        assert "submission 1" in names
        at = next(
            n
            for n, found in enumerate(compare.rows.comparison.rows)
            if "first edit" in map(str, found.milestones)
        )
        assert (compare.rows.comparison.rows[at].left, compare.rows.comparison.rows[at].right) == (5, 4)
        await driver.press("d")
        await driver.until(lambda: driver.text().count("Nothing changed so far.") == 2)
        await driver.press("d")
        await driver.press("home")
        places = sorted(compare.rows.comparison.different)
        assert places
        for place in places:
            await driver.press("n")
            await driver.until(lambda place=place: compare.rows.cursor == place)  # type: ignore[misc]
        await driver.press("n")
        await driver.until(lambda: "There is no later difference." in driver.text())
        await driver.press("home")
        while compare.rows.cursor < at:
            await driver.press("b")
        await driver.until(lambda: "step 6 of 8" in driver.text() and "step 5 of 7" in driver.text())
        await driver.press("d")
        await driver.until(lambda: driver.text().count("return sum(values) / len(values)") == 2)
        await driver.press("escape")
        await driver.until_on(RunsScreen)


async def test_a_change_that_is_not_known_is_not_called_none(tmp_path: Path) -> None:
    for name in ("one", "other"):
        mini_run(tmp_path / f"{name}.traj.json", [command("sed -i 's/a/b/' x.py", "")])
    async with reviewing(tmp_path) as driver:
        await driver.until(lambda: driver.on(RunsScreen).table.count == 2)
        await driver.press("space", "space", "C")
        compare = await driver.until_on(CompareScreen)
        await driver.until(lambda: compare.rows.count > 0)
        await driver.press("d", "end")
        await driver.until(lambda: driver.text().count("No changes are known so far.") == 2)
        assert driver.text().count("○ not fully known") == 2


async def test_an_attempt_opens_by_its_id_or_a_beginning_of_it(tmp_path: Path) -> None:
    task = build_task(tmp_path / "tasks")
    store = AttemptStore(Locations.of_user().attempts, FakeClock(), "test")
    opened = store.start(task, RepairJudge(task, read_answer(task), FakeRunner(CHECKS)), Enrolment())
    opened.attempt.call("read_file", {"file_path": "shop/prices.py"})
    opened.close()
    attempt = opened.attempt.state.attempt_id
    for name in (attempt, attempt[:12]):
        async with reviewing(name) as driver:
            await driver.until(lambda driver=driver: "shop/prices.py" in driver.text())  # type: ignore[misc]
            driver.on(ReviewScreen)


async def test_files_that_were_not_read_or_not_whole_are_counted_and_named(tmp_path: Path) -> None:
    mini_run(tmp_path / "whole.json", TURNS)
    mini_run(tmp_path / "cut.json", TURNS)
    (tmp_path / "cut.json").write_bytes((tmp_path / "cut.json").read_bytes()[:-400])
    (tmp_path / "half.jsonl").write_text('{"a": ')
    (tmp_path / "notes.md").write_text("# No run, and not meant as one")
    async with reviewing(tmp_path) as driver:
        table = driver.on(RunsScreen).table
        await driver.until(lambda: "1 damaged" in str(table.border_subtitle))
        assert "1 file not read" in str(table.border_subtitle)
        assert sorted(Path(row.name).name for row in table.shown if not row.warning) == ["whole.json"]
        await driver.press("i")
        await driver.until(lambda: "│ half.jsonl is in no known" in driver.text())
        assert "cut.json: The file ends within record" in driver.text()
        assert "notes.md" not in driver.text()


@pytest.mark.parametrize("size", at_sizes((80, 24), (120, 35), (160, 48), (200, 60)))
async def test_the_list_uses_the_width_that_is_there(size: tuple[int, int]) -> None:
    names = [f"a-library-with-a-long-name.function_number_{number}" for number in range(4)]
    table = RunTable(id="runs")
    app = Stage(table)
    async with app.run_test(size=size) as pilot:
        table.show(
            row(name, model="a-vendor/a-model-of-a-size", exit_status="LimitsExceeded", duration_s=7_187.0)
            for name in names
        )
        for group in (None, next(column for column in COLUMNS if column.name == "solver")):
            table.group_by(group)
            await pilot.pause()
            drawn = rows(app)[: table.count + 1]
            free = size[0] - max(map(len, drawn))
            assert free >= 0
            assert "verdict" not in drawn[0], "nobody has judged a run"
            is_cut = any("…" in line for line in drawn)
            assert not is_cut or free <= 1, "\n".join(drawn)
            if size[0] >= 120:
                assert "LimitsExceeded" in drawn[-1]
                assert "1:59:47" in drawn[-1]


def test_a_run_whose_file_was_cut_off_is_named_as_cut() -> None:
    outcome = next(column for column in COLUMNS if column.name == "outcome")
    cut = RunRow(ROWS[0].listed, warning="The file ends within record 3, at byte 7; all before it is shown.")
    assert outcome.shown(cut) == "! cut off, ✔ solved"
    assert outcome.shown(RunRow(ROWS[2].listed, warning=cut.warning)) == "! cut off"
    assert (
        outcome.shown(RunRow(ROWS[2].listed, warning="Record 7, at byte 9, can't be decoded.")) == "! damaged"
    )


def test_a_column_that_may_show_a_program_or_a_person_is_not_called_model() -> None:
    headers = (Run("f", model="m-1"), Run("f", agent="swe-agent"), Run("f", actor=Actor.PERSON))
    on_screen = {column.name: column for column in COLUMNS}
    printed = {column.name: column for column in PRINTED}
    assert "model" not in on_screen | printed
    for shown in (
        [on_screen["solver"].shown(RunRow(ListedRun("r", 0, header))) for header in headers],
        [
            printed["solver"].shown(FoundRun(ListedRun("r"), KeptRun(header, RunDigest()), header))
            for header in headers
        ],
    ):
        assert shown[:2] == ["m-1", "swe-agent"]
        assert "person" in shown[2]


async def test_runs_are_filtered_by_their_content_and_grouped_by_cause(tmp_path: Path) -> None:
    failed = command("python a.py", "Traceback (most recent call last):\n  a\nKeyError: 'x'", returncode=1)
    odd = command("python a.py", "bash: line 3: rg: command not found", returncode=127)
    for number, turn in enumerate((failed, odd, failed, TURNS[0], failed)):
        mini_run(tmp_path / f"{number}.traj.json", [turn, *TURNS[number % 2 :]], task=f"t{number}")
    async with reviewing(tmp_path, size=(160, 48)) as driver:
        runs = driver.on(RunsScreen)
        await driver.until(lambda: len(runs.table.shown) == 5 and all(row.digest for row in runs.table.shown))
        for _ in range(GROUPS.index(next(one for one in GROUPS if one is not None and one.name == "cause"))):
            await driver.press("ampersand")
        assert "3× KeyError: 'x'" in driver.text()
        await driver.press("slash")
        await driver.type('error:"keyerror" and tool:bash > 0')
        await driver.until(lambda: [row.header.task for row in runs.table.shown] == ["t0", "t2", "t4"])
        assert "Runs 3 of 5" in driver.text()
        await driver.type(" and (t2 or t4")
        await driver.until(lambda: "Character 40: this parenthesis is not closed" in driver.text())
        await driver.type(")")
        await driver.until(lambda: [row.header.task for row in runs.table.shown] == ["t2", "t4"])
        await driver.press("escape", "slash")
        await driver.type("text:nowhere")
        await driver.until(lambda: "none matches" in driver.text())


async def test_what_may_reveal_the_outcome_is_hidden_from_blind_reviewers(tmp_path: Path) -> None:
    for number in range(2):
        mini_run(tmp_path / f"{number}.traj.json", TURNS, task=f"t{number}")
    async with reviewing(tmp_path, size=(160, 48), blind=True) as driver:
        runs = driver.on(RunsScreen)
        await driver.until(lambda: len(runs.table.shown) == 2 and all(row.digest for row in runs.table.shown))
        table = runs.table
        for query in ("edited", "happened:edited", "answer:submission", "final:done", "meta:x"):
            table.narrow(query)
            assert not table.shown, query
        table.narrow("edits>0")
        assert len(table.shown) == 2


async def test_the_keys_that_are_shown_lead_somewhere(tmp_path: Path) -> None:
    """Where there is nothing to go back to, q is shown instead of Esc."""

    def keys() -> str:
        return driver.text().splitlines()[-1]

    paths = [mini_run(tmp_path / f"{name}.traj.json", TURNS) for name in "ab"]
    async with reviewing(*paths, size=(80, 24)) as driver:
        await driver.until_on(RunsScreen)
        await driver.until(lambda: "q Leave" in keys() and "Esc" not in keys())
        await driver.press("slash")
        await driver.until(lambda: "Esc Back" in keys() and "q Leave" not in keys())
        await driver.press("escape")
        await driver.until(lambda: "q Leave" in keys())
        await driver.press("enter")
        await driver.until_on(ReviewScreen)
        await driver.until(lambda: "Esc Back" in keys())
    async with reviewing(paths[0], size=(80, 24)) as driver:
        await driver.until_on(ReviewScreen)
        await driver.until_read(0)
        await driver.until(lambda: "q Leave" in keys() and "Esc" not in keys())
        await driver.press("f3")
        await driver.until(lambda: "Esc Back" in keys())
        await driver.press("escape")
        await driver.until(lambda: "q Leave" in keys())
