"""The command palette: commands by name, most used first."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.fuzzy import FuzzySearch
from textual.screen import ModalScreen
from textual.widgets import Input

from gistpoint.core.locations import read_regular
from gistpoint.core.logs import replace_file
from gistpoint.core.text import visible_line
from gistpoint.tui import signs
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.keys import KeyScope, bindings_of
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.record_list import Piece, RecordList

_ROWS = 14
_SHORTEST_FUZZY = 3
"""The minimum length of a query that also matches names with only its letters in the same order."""


@dataclass(frozen=True, slots=True)
class PaletteEntry:
    """A command: its name, a note at the right, a sentence about it, and the function that runs it."""

    id: str
    name: str
    note: str
    words: str
    run: Callable[[], object]


def uses(path: Path) -> dict[str, int]:
    """Return how often each command was chosen, by id; empty if there is no valid record."""
    try:
        counts = json.loads(read_regular(path))
        return {id: count for id, count in counts.items() if isinstance(count, int)}
    except (OSError, ValueError, AttributeError, RecursionError):
        return {}


def count_use(path: Path, id: str) -> None:
    """Count the choice of a command. If the folder is not writable, do nothing."""
    counts = uses(path)
    counts[id] = counts.get(id, 0) + 1
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, json.dumps(counts).encode("ascii"), durable=False)


def matching(commands: Sequence[PaletteEntry], words: str) -> list[PaletteEntry]:
    """Return the commands that match a query, best matches first.

    Matches in the name come first, those at its beginning before others. Matches in the other text follow,
    then names that only contain the query's letters in the same order. An empty query matches all commands.
    """
    wanted = words.lower().split()
    if not wanted:
        return list(commands)
    fuzzy = FuzzySearch()
    ranked: list[tuple[int, PaletteEntry]] = []
    for command in commands:
        name, text = command.name.lower(), f"{command.name} {command.words} {command.note}".lower()
        if name.startswith(wanted[0]) and all(word in name for word in wanted):
            ranked.append((0, command))
        elif all(word in name for word in wanted):
            ranked.append((1, command))
        elif all(word in text for word in wanted):
            ranked.append((2, command))
        elif len(words) >= _SHORTEST_FUZZY and fuzzy.match(words, command.name)[0] > 0:
            ranked.append((3, command))
    return [command for _, command in sorted(ranked, key=lambda entry: entry[0])]


class CommandRows(RecordList, can_focus=False):
    """The list of commands, with the note of each at the right."""

    def __init__(self) -> None:
        super().__init__()
        self.commands: Sequence[PaletteEntry] = ()

    def show(self, commands: Sequence[PaletteEntry]) -> None:
        """Show other commands, with the cursor on the first one."""
        self.commands = commands
        self.styles.height = max(1, min(_ROWS, len(commands)))
        self.set_count(len(commands), cursor=0)

    def row(self, index: int, width: int) -> list[Piece]:
        """Return the mark, the name and the note of a command."""
        command = self.commands[index]
        mark = f"{signs.HERE} " if index == self.cursor else "  "
        note = visible_line(command.note)
        room = max(0, width - cell_len(note) - len(mark) - 1)
        name = visible_line(command.name)[:room]
        return [
            (mark, "bold"),
            (name, ""),
            (" " * max(1, room - cell_len(name)), ""),
            (note, "$foreground 70%"),
            (" ", ""),
        ]


class Palette(ModalScreen[PaletteEntry], BaseScreen[PaletteEntry]):
    """A field, the commands that match it, and an explanation of the one under the cursor."""

    CSS_PATH = "palette.tcss"
    HELP_PAGE = "palette"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.DIALOG)]

    def __init__(self, title: str, commands: Sequence[PaletteEntry], *, at: str = "") -> None:
        """Start with the cursor on the command with the id `at`, otherwise on the first one."""
        super().__init__()
        self._title, self._commands, self._at = title, commands, at

    @property
    def title_in_help(self) -> str:
        """The title of the list, which says what it contains: commands or themes."""
        return self._title

    def compose(self) -> ComposeResult:
        """Lay out the field above the list."""
        with Vertical(id="palette"):
            yield Input(placeholder="Type part of its name", compact=True)
            yield CommandRows()

    def on_mount(self) -> None:
        """Show all commands."""
        rows = self.query_one(CommandRows)
        rows.show(self._commands)
        rows.cursor = next((n for n, command in enumerate(self._commands) if command.id == self._at), 0)
        self._explain()

    @on(Input.Changed)
    def narrow(self, event: Input.Changed) -> None:
        """Show the commands that match the query."""
        event.stop()
        self.query_one(CommandRows).show(matching(self._commands, event.value))
        self._explain()

    @on(RecordList.Moved)
    def _explain(self) -> None:
        rows = self.query_one(CommandRows)
        words = rows.commands[rows.cursor].words if rows.commands else "No match: Backspace shows more"
        framed(self.query_one("#palette"), self._title, words)

    def key_down(self) -> None:
        """Move to the next command; the focus stays in the field."""
        self.query_one(CommandRows).action_move(1)

    def key_up(self) -> None:
        """Move to the previous command; the focus stays in the field."""
        self.query_one(CommandRows).action_move(-1)

    def key_pagedown(self) -> None:
        """Move forward by a screenful."""
        self.query_one(CommandRows).action_page(1)

    def key_pageup(self) -> None:
        """Move back by a screenful."""
        self.query_one(CommandRows).action_page(-1)

    @on(Input.Submitted)
    def choose(self) -> None:
        """Dismiss with the command under the cursor."""
        rows = self.query_one(CommandRows)
        if rows.commands:
            self.dismiss(rows.commands[rows.cursor])

    def on_click(self, event: events.Click) -> None:
        """Choose the clicked command; on a click outside the box, close the palette."""
        if isinstance(event.widget, CommandRows):
            self.choose()
        elif event.widget is self:
            self.action_cancel()

    def action_cancel(self) -> None:
        """Dismiss without a command."""
        self.dismiss(None)
