"""The help: the keys that work at the focus, the other keys of the screen, and the screen's help page."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import ClassVar

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical, VerticalScroll
from textual.content import Content
from textual.getters import query_one
from textual.screen import ModalScreen, Screen
from textual.style import Style
from textual.widget import Widget
from textual.widgets import Input, Markdown, TextArea

from gistpoint.core.text import visible_line
from gistpoint.tui import signs
from gistpoint.tui.base_screen import BaseScreen
from gistpoint.tui.bindings.key import Key
from gistpoint.tui.keys import KEYS, SCOPE_WORDS, KeyScope, bindings_of, shown_key, shown_keys
from gistpoint.tui.possible import possible_now
from gistpoint.tui.widgets.frames import framed
from gistpoint.tui.widgets.function_editor import FunctionEditor
from gistpoint.tui.widgets.plain import Plain
from gistpoint.tui.widgets.writing_area import WritingArea, WritingLine

_WIDEST = 18
"""The largest width, in cells, of the column with keys and of the one with names."""


@dataclass(frozen=True, slots=True)
class HelpRow:
    """A row of the help: one or more keys as displayed, and the name and effect of their action."""

    spelt: str
    name: str
    words: str

    def matches(self, wanted: str) -> bool:
        """Return whether the row is for the key `wanted`, or contains all words of `wanted`.

        A single character is only compared with keys.
        """
        if wanted in self.spelt.split(" or "):
            return True
        text = f"{self.spelt} {self.name} {self.words}".lower()
        return len(wanted) > 1 and all(word in text for word in wanted.lower().split())


Section = tuple[str, Sequence[HelpRow]]
Sections = Sequence[Section]


def sections(screen: Screen[object], keymap: Mapping[str, str]) -> Sections:
    """Return the sections of the help that contain any keys, each with its title.

    In this order, they contain the keys that work now, by scope; the other keys of the screen; and the keys
    for typing, for moving, and of the app. `keymap` contains the user's own keys by the ids of bindings.
    """
    here: dict[str, list[HelpRow]] = {}
    moving: list[HelpRow] = []
    shown = _never_here(screen)
    for one in possible_now(screen):
        shown.add((one.key.scope, one.key.action))
        rows = moving if one.moves else here.setdefault(SCOPE_WORDS[one.key.scope], [])
        rows.append(HelpRow(one.spelt, one.key.description, one.key.tooltip))
    program = here.pop(SCOPE_WORDS[KeyScope.APP], [])
    found: list[Section] = list(here.items())
    for scope in getattr(screen, "SCOPES", ()):
        title = SCOPE_WORDS[scope]
        rest = list(rows_of(scope, keymap, without=shown))
        if rest:
            found.append((f"{title} (not now)" if title in here else title, rest))
    focused = screen.focused
    typing = typing_rows(type(focused), _taken(screen)) if isinstance(focused, TextArea | Input) else []
    after = (("Typing", typing), ("Moving about", moving), ("Everywhere", program))
    return [(title, rows) for title, rows in (*found, *after) if rows]


def _never_here(screen: Screen[object]) -> set[tuple[KeyScope, str]]:
    """Return the scope and the action of each key that the screen does not have, or uses for something else.

    A more specific screen can replace keys of its base class, and two pages can share a key if a task has
    only one of them.
    """
    own = {binding.id for bindings in screen._bindings.key_to_bindings.values() for binding in bindings}
    used = {
        pressed: active.binding.id
        for pressed, active in screen.active_bindings.items()
        if active.node is screen and active.binding.id
    }

    def means_another(key: Key) -> bool:
        return all(used.get(pressed, key.id) != key.id for pressed in key.keys.split(","))

    scopes = {key.scope for key in KEYS if key.id in own}
    candidates = (key for key in KEYS if key.scope in scopes)
    return {(key.scope, key.action) for key in candidates if key.id not in own or means_another(key)}


_TYPED_IN: Mapping[str, type[Widget]] = {
    "pane.editor": FunctionEditor,
    "about.fix": FunctionEditor,
    "pane.notes": WritingArea,
    "pane.console": WritingLine,
}
"""The widget for typing that each of these keys opens, by the id of its binding."""


def elsewhere(screen: Screen[object]) -> Sections:
    """Return the typing keys of the panes that don't have the focus, one section for each."""
    found: dict[str, tuple[str, list[HelpRow]]] = {}
    for pressed, active in screen.active_bindings.items():
        id = active.binding.id or ""
        kind = _TYPED_IN.get(id)
        if kind is not None and active.enabled and type(screen.focused) is not kind and id not in found:
            there = f"{shown_key(pressed)} {active.binding.description}"
            found[id] = f"Not here; in {there}", typing_rows(kind, _taken(screen))
    return [found[id] for id in _TYPED_IN if id in found]


def _taken(screen: Screen[object]) -> set[str]:
    return {key for key, active in screen.active_bindings.items() if active.binding.priority}


def typing_rows(kind: type[Widget], taken: Iterable[str]) -> list[HelpRow]:
    """Return the rows for the editing keys of a widget for typing, which are not in the table of keys.

    Keys in `taken` and combinations with Super are left out.
    """
    keys: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    seen = {*taken}
    for owner in (owner for owner in kind.__mro__ if issubclass(owner, TextArea | Input)):
        for binding in Binding.make_bindings(vars(owner).get("BINDINGS", ())):
            if binding.key not in seen and not binding.id and not binding.key.startswith("super+"):
                keys.setdefault(binding.action, []).append(shown_key(binding.key))
                names.setdefault(binding.action, binding.description)
            seen.add(binding.key)
    return [HelpRow(" or ".join(spelt), names[action], "") for action, spelt in keys.items()]


def rows_of(
    scope: KeyScope, keymap: Mapping[str, str], *, without: Collection[tuple[KeyScope, str]] = ()
) -> Iterator[HelpRow]:
    """Yield the rows for the keys of a scope, with the user's own keys from `keymap`.

    Actions in `without` are left out.
    """
    for key in KEYS:
        if key.scope is scope and (scope, key.action) not in without:
            yield HelpRow(shown_keys(keymap.get(key.id, key.keys)), key.description, key.tooltip)


def _widest(texts: Iterable[str]) -> int:
    return min(max(map(cell_len, texts), default=0), _WIDEST)


def _table(rows: Sequence[HelpRow], keys: int, names: int) -> Table:
    explained = any(row.words for row in rows)
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(width=keys, style="bold")
    table.add_column(width=names if explained else None)
    for row in rows:
        cells = (row.spelt, row.name, row.words) if explained else (row.spelt, row.name)
        table.add_row(*(Text(visible_line(cell)) for cell in cells))
    return table


def page_text(page: str) -> str:
    """Return a help page as Markdown."""
    return files("gistpoint.tui").joinpath("help", f"{page}.md").read_text(encoding="utf-8")


def page_title(page: str) -> str:
    """Return the heading of a help page."""
    return page_text(page).partition("\n")[0].removeprefix("# ")


class HelpScreen(ModalScreen[None], BaseScreen[None]):
    """The keys and the help page, over the screen that they describe. Typing filters the keys."""

    CSS_PATH = "help.tcss"
    HELP_PAGE = "dialog"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of(KeyScope.DIALOG)]

    words = query_one("#help-filter", Input)
    keys = query_one("#help-keys", Plain)
    page = query_one("#help-scroll", VerticalScroll)

    def __init__(
        self, page: str, known: Sections, about: str = "", elsewhere: Sections = (), *, title: str = ""
    ) -> None:
        """`about` describes the focused widget. Keys in `elsewhere` appear only if a filter matches them.

        `title` is the subject of the help; by default, the heading of its page.
        """
        super().__init__()
        self._title = title or page_title(page)
        self._page, self._known, self._about, self._elsewhere = page, known, about, elsewhere

    def compose(self) -> ComposeResult:
        """Lay out the filter and the keys. The page is mounted later."""
        closes = Content("Esc closes").stylize(Style.from_meta({"@click": "screen.cancel"}))
        moves = Content(f"type to filter  {signs.UP_KEY} {signs.DOWN_KEY} PgDn scroll  ")
        with framed(Vertical(id="help-box"), f"Help: {self._title}", moves + closes):
            yield Input(placeholder="Type a key, or part of what it does", id="help-filter", compact=True)
            with VerticalScroll(id="help-scroll", can_focus=False), Container(id="help-body"):
                yield Plain("", id="help-keys")

    def on_mount(self) -> None:
        """Show all keys, and mount the page afterwards."""
        self.words.focus()
        self._show("")
        self.call_after_refresh(
            self.query_one("#help-body").mount, Markdown(page_text(self._page), open_links=False)
        )

    @on(Input.Changed)
    def narrow(self, event: Input.Changed) -> None:
        """Show the keys that match the filter."""
        event.stop()
        wanted = event.value.strip()
        self._show(wanted[1:] if wanted.startswith("/") and len(wanted) > 1 else wanted)

    def _show(self, wanted: str) -> None:
        parts: list[RenderableType] = [Text(f"{self._about}\n")] if self._about and not wanted else []
        every = [row for _, rows in self._known for row in rows]
        widths = _widest(row.spelt for row in every), _widest(row.name for row in every if row.words)
        for title, rows in self._matching(wanted) if wanted else self._known:
            if rows:
                parts += [Text(title, style="bold underline"), _table(rows, *widths), Text("")]
        self.keys.update(Group(*parts) if parts else Text("No key on this screen does this."))
        for page in self.query(Markdown):
            page.display = not wanted

    def _matching(self, wanted: str) -> Iterator[tuple[str, list[HelpRow]]]:
        """Yield the sections with the rows that match, each row only in the first of its sections."""
        shown_before: set[HelpRow] = set()
        for title, rows in (*self._known, *self._elsewhere):
            matching = [row for row in rows if row.matches(wanted) and row not in shown_before]
            shown_before.update(matching)
            yield title, matching

    def on_key(self, event: events.Key) -> None:
        """Scroll the help with the keys for moving; the focus stays in the filter."""
        scroll = {
            "up": self.page.scroll_up,
            "down": self.page.scroll_down,
            "pageup": self.page.scroll_page_up,
            "pagedown": self.page.scroll_page_down,
        }.get(event.key)
        if scroll is not None:
            event.stop()
            scroll(animate=False)

    def action_cancel(self) -> None:
        """Close the help."""
        self.dismiss(None)
