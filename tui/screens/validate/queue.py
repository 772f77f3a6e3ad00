"""The queue of a validator: the tasks of a set, one per row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import nan

from textual import events
from textual.content import Content
from textual.geometry import Size

from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.kinds.titles import author_title, searched_words
from gistpoint.core.tasks.model import Task
from gistpoint.sessions.annotations.validations import TaskVerdict, Validation
from gistpoint.tui import signs
from gistpoint.tui.base_screen import WIDE
from gistpoint.tui.tables import Column
from gistpoint.tui.titles import mode_words
from gistpoint.tui.widgets.line_list import BAD, GOOD, MUTED, ODD
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.record_list import Piece
from gistpoint.tui.widgets.table import Table

PAGE_WIDTH = 80
"""The minimum width, in cells, of the pages next to the queue, however long its titles are."""


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A task in the queue, with this validator's annotations."""

    task: Task
    validation: Validation
    glance_rate: float | None = None
    """The share of blind readings that named the fault; None if there are no readings."""
    functions: tuple[str, ...] = ()
    """The functions of the answer as `path::qualname`; empty until they have been read, and for a gist."""
    readers: tuple[str, ...] = ()
    """The other team members who are reading the task."""
    verdict: TaskVerdict | None = None
    """The validator's verdict, or the decision in force if the validator adjudicates; None if missing."""

    @property
    def mode(self) -> str:
        """The name of the task's mode."""
        return mode_words(self.task)

    @property
    def name(self) -> str:
        """The functions of the answer, which validators may know, or a gist's command."""
        names = [name.rpartition("::")[2] for name in self.functions]
        return " + ".join(names) or kind_of(self.task).about(self.task)


_SHORT = {
    TaskVerdict.REJECT_UNFAIR_TESTS: "unfair",
    TaskVerdict.REJECT_TOO_EASY: "easy",
    TaskVerdict.REJECT_DUPLICATE: "dup",
    TaskVerdict.NEEDS_DISCUSSION: "talk",
}


def short_words(verdict: TaskVerdict) -> str:
    """Return a short word for a verdict."""
    return _SHORT.get(verdict, verdict.words)


class VerdictLine(Plain):
    """The verdicts with their keys, the given one marked. A click gives a verdict, as its key does."""

    def __init__(self) -> None:
        super().__init__("", id="validate-verdicts")

    def show(self, row: QueueRow | None) -> None:
        """Show the verdicts, and mark the one that was given on a row's task."""
        given = row.verdict if row is not None else None
        parts = [
            Content.assemble((key, "$text-primary"), (f" {name}", "bold reverse" if verdict is given else ""))
            for verdict, key, name in self._verdicts()
        ]
        self.update(Content(self._gap).join(parts), layout=False)

    async def on_click(self, event: events.Click) -> None:
        """Give the clicked verdict."""
        start = 0
        for verdict, key, name in self._verdicts():
            end = start + len(f"{key} {name}")
            if start <= event.x < end:
                await self.run_action(f"screen.verdict({verdict.value!r})")
            start = end + len(self._gap)

    @property
    def _is_wide(self) -> bool:
        return self.screen.size.width >= WIDE

    @property
    def _gap(self) -> str:
        return "  " if self._is_wide else " "

    def _verdicts(self) -> Iterator[tuple[TaskVerdict, str, str]]:
        """Yield each verdict with its key and its displayed name."""
        for number, verdict in enumerate(TaskVerdict, 1):
            yield verdict, str(number), verdict.words if self._is_wide else short_words(verdict)


def look_of(verdict: TaskVerdict | None) -> Piece:
    """Return the symbol for a verdict, with its style."""
    if verdict is None:
        return "·", MUTED
    if verdict is TaskVerdict.ACCEPT:
        return signs.GOOD, f"bold {GOOD}"
    return ("?", f"bold {ODD}") if verdict is TaskVerdict.NEEDS_DISCUSSION else (signs.BAD, f"bold {BAD}")


def _verdict_text(row: QueueRow) -> str:
    name = row.verdict.value if row.verdict is not None else "unjudged"
    return f"{name} {name.replace('_', ' ')}"


COLUMNS: tuple[Column[QueueRow], ...] = (
    Column(
        "seen",
        lambda r: " " if r.validation.seen else signs.SEEN,
        width=1,
        style=lambda r: "$text-primary",
        text=lambda r: "",
        words={"seen": lambda r: bool(r.validation.seen), "unseen": lambda r: not r.validation.seen},
        rank=1,
    ),
    Column("sign", lambda r: look_of(r.verdict)[0], width=1, style=lambda r: look_of(r.verdict)[1], rank=2),
    Column(
        "verdict",
        lambda r: short_words(r.verdict) if r.verdict is not None else "",
        style=lambda r: look_of(r.verdict)[1],
        text=_verdict_text,
        words={"judged": lambda r: r.verdict is not None, "unjudged": lambda r: r.verdict is None},
        rank=3,
    ),
    Column(
        "comments",
        lambda r: f"{signs.COMMENT}{len(r.validation.comments)}" if r.validation.comments else "",
        lambda r: len(r.validation.comments),
        style=lambda r: "$text-accent",
        rank=4,
    ),
    Column(
        "readers",
        lambda r: "".join(f"({name}) " for name in r.readers).strip(),
        style=lambda r: MUTED,
        rank=8,
    ),
    Column(
        "task",
        lambda r: author_title(r.task),
        text=lambda r: searched_words(r.task),
        rank=5,
        least=30,
        readable=60,
        keeps_end=True,
    ),
    Column(
        "glance_rate",
        lambda r: "" if r.glance_rate is None else f"{r.glance_rate:.2f} seen",
        lambda r: nan if r.glance_rate is None else r.glance_rate,
        style=lambda r: MUTED,
        rank=6,
    ),
    Column("mode", lambda r: r.mode, style=lambda r: MUTED),
    Column(
        "source",
        lambda r: f"{r.task.source.name} {r.task.source.revision[:12]}",
        style=lambda r: MUTED,
        text=lambda r: f"{r.task.source.name} {r.task.source.revision}",
        least=12,
    ),
    Column(
        "function",
        lambda r: r.name,
        text=lambda r: " ".join([r.name, *r.functions]),
        rank=7,
        least=16,
        keeps_end=True,
    ),
)


class QueueList(Table[QueueRow]):
    """The table of tasks, with a mark for unseen ones, the verdict, the title and the function."""

    HEAD, MARGIN, GAP = 0, 1, 1

    def __init__(self) -> None:
        super().__init__(COLUMNS, key=lambda row: row.task.id, id="queue")
        self._room_wanted = 0

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """Return the width that the rows need, but leave `PAGE_WIDTH` cells to the pages.

        `validate.tcss` sets the minimum.
        """
        return min(self._room_wanted, viewport.width - PAGE_WIDTH - self.gutter.width)

    def _draw(self, cursor: int | None = None) -> None:
        super()._draw(cursor)
        if self._room_wanted != self.full_width:
            self._room_wanted = self.full_width
            self.refresh(layout=True)
