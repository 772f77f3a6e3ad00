"""The queue: the tasks of the set, one per row."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

from gistpoint.core.tasks.model import Task
from gistpoint.sessions.annotations.validations import TaskVerdict, Validation
from gistpoint.tui.screens.validate.lines import BAD, GOOD, MUTED, ODD
from gistpoint.tui.tables import Column
from gistpoint.tui.titles import mode_words
from gistpoint.tui.widgets.record_list import Piece
from gistpoint.tui.widgets.table import Table


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A task and this validator's annotations of it."""

    task: Task
    said: Validation
    glance_rate: float | None = None
    """The share of blind readings in which the fault was seen; None if nobody has read it."""

    @property
    def verdict(self) -> TaskVerdict | None:
        """The last verdict."""
        return self.said.verdict.verdict if self.said.verdict is not None else None

    @property
    def mode(self) -> str:
        """The mode in words."""
        return mode_words(self.task)


def look_of(verdict: TaskVerdict | None) -> Piece:
    """Return the sign of a verdict and its style."""
    if verdict is None:
        return "·", MUTED
    if verdict is TaskVerdict.ACCEPT:
        return "✓", f"bold {GOOD}"
    return ("?", f"bold {ODD}") if verdict is TaskVerdict.NEEDS_DISCUSSION else ("✗", f"bold {BAD}")


def _verdict_text(row: QueueRow) -> str:
    name = row.verdict.value if row.verdict is not None else "unjudged"
    return f"{name} {name.replace('_', ' ')}"


COLUMNS: tuple[Column[QueueRow], ...] = (
    Column(
        "seen",
        lambda r: " " if r.said.seen else "•",
        width=1,
        style=lambda r: "$text-primary",
        text=lambda r: "",
        words={"seen": lambda r: bool(r.said.seen), "unseen": lambda r: not r.said.seen},
    ),
    Column("sign", lambda r: look_of(r.verdict)[0], width=1, style=lambda r: look_of(r.verdict)[1]),
    Column("task", lambda r: r.task.short_id[:8], width=8, text=lambda r: r.task.id),
    Column("mode", lambda r: r.mode, width=12, style=lambda r: MUTED),
    Column(
        "verdict",
        lambda r: r.verdict.words if r.verdict is not None else "",
        style=lambda r: look_of(r.verdict)[1],
        text=_verdict_text,
        words={"judged": lambda r: r.verdict is not None, "unjudged": lambda r: r.verdict is None},
    ),
    Column(
        "comments",
        lambda r: f"✎{len(r.said.comments)}" if r.said.comments else "",
        lambda r: len(r.said.comments),
        style=lambda r: "$text-accent",
    ),
    Column(
        "source",
        lambda r: f"{r.task.source.name} {r.task.source.revision[:12]}",
        style=lambda r: MUTED,
        text=lambda r: f"{r.task.source.name} {r.task.source.revision}",
    ),
    Column(
        "glance_rate",
        lambda r: "" if r.glance_rate is None else f"{r.glance_rate:.2f} seen",
        lambda r: nan if r.glance_rate is None else r.glance_rate,
        style=lambda r: MUTED,
    ),
)


class QueueList(Table[QueueRow]):
    """Seen mark, verdict, id, mode and source of each task."""

    HEAD = 0

    def __init__(self) -> None:
        super().__init__(COLUMNS, key=lambda row: row.task.id, id="queue")
