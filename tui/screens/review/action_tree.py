"""The screen with many runs of one task as a tree of their actions, which shows where the runs diverge."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.getters import query_one

from gistpoint.core.errors import CancelledError, UserError
from gistpoint.core.text import plural, shortened, visible_line
from gistpoint.sessions.records.model import Run
from gistpoint.sessions.runs.action_tree import (
    ActionNode,
    RunActions,
    TreeRow,
    outcomes_of,
    pair_of,
    rows_of,
    run_actions,
    tree_of,
    with_common_paths,
)
from gistpoint.sessions.runs.blind_view import blind_run
from gistpoint.sessions.runs.opening import open_run
from gistpoint.tui import signs
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.jobs import Job, Jobs
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.screens.review.loading import solver_words
from gistpoint.tui.screens.review.places import differences
from gistpoint.tui.screens.review.run_rows import RunRow, task_words
from gistpoint.tui.screens.review.settings import ReviewSettings
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.header_bar import HeaderBar
from gistpoint.tui.widgets.key_bar import KeyBar
from gistpoint.tui.widgets.record_list import Piece, RecordList
from gistpoint.tui.widgets.splitter import Splits
from gistpoint.tui.widgets.text_view import TextView

_SHOW_S = 0.5
"""Seconds between two drawings while the runs are being read."""
_DEEPEST = 16
"""The depth up to which rows are indented."""
_LONGEST_NAME = 28
_MUTED = "$foreground 60%"
_MARKS = {"solved": (signs.GOOD, "$text-success"), "unsolved": (signs.BAD, "$text-error")}


@dataclass(frozen=True, slots=True)
class ReadRuns:
    """The runs read so far with their short names and the tree of their actions, and the number unread."""

    runs: Sequence[RunActions]
    names: Sequence[str]
    root: ActionNode
    unread: int


class ActionTree(RecordList):
    """The rows of the tree: the number of runs, their outcomes, and their actions."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.read = ReadRuns((), (), tree_of(()), 0)
        self.rows = rows_of(self.read.root)
        self.folded: set[int] = set()
        """The numbers of the nodes whose children are not listed."""
        self.picked: list[str] = []
        """The names of the picked runs."""

    def show(self, read: ReadRuns) -> None:
        """Show another tree, with the cursor on the same row."""
        self.read = read
        self.list_rows()

    def list_rows(self, at: int | None = None) -> None:
        """List the rows that are not folded away. `at` is the number of the node for the cursor, if any."""
        self.rows = rows_of(self.read.root, self.folded)
        row = next((n for n, row in enumerate(self.rows) if row.number == at), None)
        self.set_count(len(self.rows), cursor=row)

    @property
    def here(self) -> TreeRow:
        """The row at the cursor. There is always one: the root's."""
        return self.rows[self.cursor]

    def row(self, index: int, width: int) -> list[Piece]:
        """Return a node's number of runs, outcome and actions and, for a single run, the run's name."""
        read, row = self.read, self.rows[index]
        node = row.node
        run = read.runs[node.runs[0]] if node.runs and not node.parts else None
        is_picked = run is not None and run.name in self.picked
        mark = signs.GOOD if is_picked else signs.HERE if index == self.cursor else " "
        fold = (signs.HERE if row.number in self.folded else signs.UNFOLDED) if node.parts else signs.SEEN
        return [
            (f"{mark} ", "bold $text-accent"),
            (f"{len(node.runs):>4} ", "bold" if node.parts else ""),
            *_outcome(node, read.runs),
            (" " * min(row.depth, _DEEPEST) + f"{fold} ", _MUTED),
            *([(f"{read.names[node.runs[0]]}: ", "$text-primary")] if run is not None else []),
            (node.words, ""),
        ]


def _outcome(node: ActionNode, runs: Sequence[RunActions]) -> list[Piece]:
    found = outcomes_of(node, runs)
    if not any(run.run.verdict for run in runs):
        return []
    if not found.judged:
        return [(" " * 9, "")]
    if found.runs == 1:
        sign, style = _MARKS.get(runs[node.runs[0]].run.verdict, ("?", "$text-warning"))
        return [(f"{sign:<9}", style)]
    style = "$text-success" if found.solved == found.judged else "" if found.solved else "$text-error"
    return [(f"{f'{signs.GOOD} {found.solved}/{found.judged}':<9}", style)]


class ActionTreeScreen(BaseScreen[None]):
    """The tree of the actions of many runs. The actions at the cursor are listed below it."""

    CSS_PATH = "review.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.TREE)]
    HELP_PAGE = "action_tree"
    SCOPES = (KeyScope.TREE,)

    tree_rows = query_one(ActionTree)
    header_bar = query_one(HeaderBar)

    def __init__(self, rows: Sequence[RunRow], settings: ReviewSettings) -> None:
        """`rows` are the rows of the runs in the list."""
        super().__init__()
        self._rows, self._settings = rows, settings
        self._jobs = Jobs(self, "action tree")

    def compose(self) -> ComposeResult:
        """Lay out the tree and the list of actions."""
        yield HeaderBar("Compare", plural(len(self._rows), "run"))
        tree = framed(ActionTree(id="action-tree"), "What was tried", "reading …")
        yield Splits(tree, framed(TextView(id="actions-here"), "Here"), vertical=True)
        yield KeyBar()

    def on_mount(self) -> None:
        """Start reading the runs."""
        self.tree_rows.focus()
        self._jobs.do(self._read, self._show_runs)

    def on_unmount(self) -> None:
        """Stop reading."""
        self._jobs.stop()

    # Reading

    def _read(self, job: Job) -> ReadRuns:
        found: list[RunActions] = []
        hides, unread = [], 0
        due = time.monotonic() + _SHOW_S
        for row in self._rows:
            try:
                document = open_run(row.name, known=row.listed.format)
                found.append(run_actions(row.name, document, _shown_header(row), cancel=job.cancel))
                hides.append(row.hides)
            except CancelledError:
                raise
            except UserError:
                unread += 1
            if time.monotonic() > due:
                job.report(self._show_runs, _read_runs(found, hides, unread))
                due = time.monotonic() + _SHOW_S
        return _read_runs(found, hides, unread)

    def _show_runs(self, read: ReadRuns) -> None:
        self.tree_rows.show(read)
        done, count = len(read.runs) + read.unread, len(self._rows)
        words = f"{done:,} of {count:,} read …" if done < count else str(outcomes_of(read.root, read.runs))
        problems = f"{read.unread:,} can't be read" if read.unread else ""
        framed(
            self.tree_rows,
            "What was tried, by frequency",
            ", ".join(filter(None, [words, problems])),
        )
        self.header_bar.show(words=f"{plural(count, 'run')} of {task_words(self._rows[0])}")
        self._list_actions()

    @on(RecordList.Moved, "#action-tree")
    def moved(self) -> None:
        """List the actions of the node at the cursor."""
        self._list_actions()

    def _list_actions(self) -> None:
        read, row = self.tree_rows.read, self.tree_rows.here
        node = row.node
        lines = [
            f"{node.place + n:>5,}  {visible_line(str(action))}" for n, action in enumerate(node.actions, 1)
        ]
        lines += _ways(node) if node.parts else _ends(node, read)
        view = self.query_one("#actions-here", TextView)
        view.load("\n".join(lines))
        framed(view, f"Here: {plural(len(node.runs), 'run')}", str(outcomes_of(node, read.runs)))

    # Keys

    def action_difference(self, by: int) -> None:
        """Move to the next or the previous node at which runs diverge."""
        rows, here = self.tree_rows.rows, self.tree_rows.cursor
        places = range(here + 1, len(rows)) if by > 0 else range(here - 1, -1, -1)
        place = next((place for place in places if rows[place].node.parts), None)
        if place is None:
            self.app.notify(f"There is no {'later' if by > 0 else 'earlier'} difference.")
        else:
            self.tree_rows.cursor = place

    def action_fold(self, folded: bool) -> None:
        """Hide or list the rows below the node at the cursor; if there are none to hide, go to its parent."""
        tree, row = self.tree_rows, self.tree_rows.here
        if row.node.parts and folded != (row.number in tree.folded):
            tree.folded ^= {row.number}
            tree.list_rows(row.number)
        elif folded:
            before = (place for place in range(tree.cursor, -1, -1) if tree.rows[place].depth < row.depth)
            tree.cursor = next(before, tree.cursor)

    def action_fold_all(self) -> None:
        """Hide the rows below the first differences, or list all rows."""
        tree = self.tree_rows
        inner = {row.number for row in rows_of(tree.read.root) if row.node.parts and row.depth > 0}
        tree.folded = set() if tree.folded else inner
        tree.list_rows(0)

    def action_pick(self) -> None:
        """Pick or unpick the run at the cursor."""
        tree = self.tree_rows
        name = self._leaf()
        if not name:
            self.app.notify("Space picks a run: the rows with a name.")
            return
        tree.picked = [one for one in tree.picked if one != name] + [name] * (name not in tree.picked)
        tree.action_move(1)
        tree.refresh()

    def _leaf(self) -> str:
        """Return the name of the run at the cursor; empty if runs diverge there."""
        tree, row = self.tree_rows, self.tree_rows.here
        names = [tree.read.runs[number].name for number in row.node.runs[:1]]
        return "" if row.node.parts else "".join(names)

    def action_compare(self) -> None:
        """Compare the two picked runs; if none are picked, two runs that diverge at the cursor."""
        tree, row = self.tree_rows, self.tree_rows.here
        pair = pair_of(row.node, tree.read.runs) or ()
        names = tree.picked or [tree.read.runs[number].name for number in pair]
        if len(names) != 2:
            self.app.notify("Pick two runs with Space, or go to a row where runs part ways.")
            return
        self.app.push_screen(self._settings.screens.comparison(names[0], names[1], self._settings))

    @on(RecordList.Chosen, "#action-tree")
    def chosen(self) -> None:
        """Open the run at the cursor, or hide or list the rows below the node."""
        self.action_open()

    def action_open(self) -> None:
        """Open the run at the cursor, or hide or list the rows below the node."""
        tree, row = self.tree_rows, self.tree_rows.here
        name = self._leaf()
        if name:
            names = tuple(run.name for run in tree.read.runs)
            self.app.push_screen(self._settings.screens.run(name, self._settings, runs=names))
        else:
            self.action_fold(row.number not in tree.folded)

    def action_leave(self) -> None:
        """Close the screen."""
        self.dismiss(None)


def _shown_header(row: RunRow) -> Run:
    """Return the header of a run, without the parts that are hidden from the reviewer."""
    return blind_run(row.header) if row.hides else row.header


def _read_runs(found: Sequence[RunActions], hides: Sequence[bool], unread: int) -> ReadRuns:
    runs = with_common_paths(found)
    parts = differences([run.name for run in runs], hidden=any(hides))
    named: Callable[[str, Run], str] = lambda part, run: " ".join(  # noqa: E731
        filter(None, [shortened(part, _LONGEST_NAME), visible_line(solver_words(run).rpartition("/")[2])])
    )
    names = [named(part, run.run) for part, run in zip(parts, runs, strict=True)]
    return ReadRuns(runs, names, tree_of(runs), unread)


def _ways(node: ActionNode) -> list[str]:
    """Return the lines with the next actions, after those that runs have in common."""
    lines = ["", "Then they part ways:"] if node.actions else ["They begin differently:"]
    for child in node.children:
        what = str(child.actions[0]) if child.actions else "nothing more"
        lines.append(f"{len(child.runs):>5,}  {visible_line(what)}")
    return lines


def _ends(node: ActionNode, read: ReadRuns) -> list[str]:
    """Return the lines with the runs that end with these actions."""
    lines = ["", "To the end of:"]
    for number in node.runs:
        run = read.runs[number]
        more = "  (more actions follow, which are not compared)" if run.is_cut else ""
        lines.append(f"       {visible_line(read.names[number])}  {run.run.verdict}{more}".rstrip())
    return lines
