"""The tree of those parts of the repository that an attempt's results have shown."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len
from rich.style import Style as RichStyle
from rich.text import Text
from textual import events, on
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.style import Style
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from gistpoint.core.attempts.revealed import Knowledge
from gistpoint.tui import signs
from gistpoint.tui.widgets.plain import plain_cell

SUSPECT = signs.LABEL
KNOWN, UNKNOWN = signs.FULL, signs.EMPTY
_PRICE = "  −1"
"""The price of an unknown node in a narrow tree."""
_SIGN = 2
"""The width in cells of the symbol before a node that can be opened."""


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """The data of a node: its kind (`dir`, `file` or `function`), and its path or `path::qualname`."""

    kind: str
    name: str


class KnowledgeTree(Tree[TreeEntry]):
    """The known folders, files and functions.

    Selecting a node only posts a request. If that costs a tool use, the node shows the price at the cursor.
    """

    DEFAULT_CSS = """
    KnowledgeTree {
        height: 1fr;
        background: $background;
        scrollbar-size-vertical: 1;
        scrollbar-size-horizontal: 1;
    }
    """
    HELP = (
        f"{signs.FULL} has been read, {signs.EMPTY} has not: Enter asks for it and costs a tool use."
        f" {signs.LABEL} marks a suspect."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "open_node", "Open", show=False, id="tree.open"),
        Binding("left,h", "close_node", "Close", show=False, id="tree.close"),
        Binding("k", "cursor_up", "Up", show=False, id="tree.up"),
        Binding("j", "cursor_down", "Down", show=False, id="tree.down"),
    ]

    enter_words = "Open"
    """The effect of Enter, for the line of keys."""

    class _OnPlace(Message):
        def __init__(self, tree: KnowledgeTree) -> None:
            super().__init__()
            self.tree = tree

        @property
        def control(self) -> KnowledgeTree:
            """The tree, for Textual's message selectors."""
            return self.tree

    class ListFolder(_OnPlace):
        """A request to list a folder that has not been listed yet, which costs a tool use."""

        def __init__(self, tree: KnowledgeTree, path: str) -> None:
            super().__init__(tree)
            self.path = path

    class OpenFile(_OnPlace):
        """A request to read a file that has not been read yet, which costs a tool use."""

        def __init__(self, tree: KnowledgeTree, path: str) -> None:
            super().__init__(tree)
            self.path = path

    class OpenFunction(_OnPlace):
        """A request to read a function (`path::qualname`) that has not been read, which costs a tool use."""

        def __init__(self, tree: KnowledgeTree, function: str) -> None:
            super().__init__(tree)
            self.function = function

    class ShowAgain(_OnPlace):
        """A request to show the result of an earlier call again, free of charge.

        `name` is a path or `path::qualname`.
        """

        def __init__(self, tree: KnowledgeTree, call_id: str, name: str) -> None:
            super().__init__(tree)
            self.call_id = call_id
            self.place = name

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(plain_cell("/"), TreeEntry("dir", ""), name=name, id=id, classes=classes)
        self.auto_expand = False
        self.guide_depth = 2
        self._knowledge = Knowledge()
        self._suspects: frozenset[str] = frozenset()
        self._use = "tool use"
        self._filled = False
        self._pointed: TreeEntry | None = None
        """The node that was clicked last; None before a click."""

    def on_mount(self) -> None:
        """Show the known nodes."""
        self._refill()

    def update_from(
        self, knowledge: Knowledge, *, suspects: Collection[str] = (), use: str = "tool use"
    ) -> None:
        """Show the known nodes. `use` is the unit of the price that unknown nodes show."""
        marked = frozenset(suspects)
        if self._filled and (knowledge, marked, use) == (self._knowledge, self._suspects, self._use):
            return
        self._knowledge, self._suspects, self._use = knowledge, marked, use
        if self.is_mounted:
            self._refill()

    @property
    def place(self) -> TreeEntry | None:
        """The data of the node at the cursor; None if there is none."""
        return self.cursor_node.data if self.cursor_node is not None else None

    def _refill(self) -> None:
        self._filled = True
        nodes = _walk(self.root)
        opened = {node.data for node in nodes if node.is_expanded and node.data is not None}
        closed = {
            node.data for node in nodes if node.children and not node.is_expanded and node.data is not None
        }
        here = self.place
        self.clear()
        self.root.set_label(self._label(TreeEntry("dir", "")))
        self.root.expand()
        self._add_folder(self.root, "", opened, closed)
        if here is not None:
            self._return_to(here)

    def _add_folder(
        self, node: TreeNode[TreeEntry], folder: str, opened: set[TreeEntry], closed: set[TreeEntry]
    ) -> None:
        for path, kind in self._knowledge.children(folder):
            place = TreeEntry(kind, path)
            if kind == "dir":
                child = node.add(self._label(place), place, expand=place not in closed)
                self._add_folder(child, path, opened, closed)
                child.allow_expand = bool(child.children)
            else:
                self._add_file(node, place, opened)

    def _add_file(self, node: TreeNode[TreeEntry], place: TreeEntry, opened: set[TreeEntry]) -> None:
        prefix = f"{place.name}::"
        functions = sorted(
            (function for name, function in self._knowledge.functions.items() if name.startswith(prefix)),
            key=lambda function: function.start,
        )
        child = node.add(self._label(place), place, expand=place in opened, allow_expand=bool(functions))
        for function in functions:
            leaf = TreeEntry("function", function.name)
            child.add_leaf(self._label(leaf, function.name.removeprefix(prefix)), leaf)

    def _return_to(self, place: TreeEntry) -> None:
        # New nodes get their line numbers only when `last_line` is read.
        if self.last_line < 0:
            return
        for node in _walk(self.root):
            if node.data == place and self.last_line >= 0:  # reading it numbers the new nodes
                self.move_cursor(node)
                return

    def _known(self, place: TreeEntry) -> str | None:
        known = {
            "dir": self._knowledge.listed,
            "file": self._knowledge.files,
            "function": self._knowledge.sources,
        }
        return known[place.kind].get(place.name)

    def _label(self, place: TreeEntry, shown: str = "") -> Text:
        shown = shown or place.name.rpartition("/")[2]
        if place.kind == "dir":
            shown += "/"
        label = plain_cell(f"{KNOWN if self._known(place) else UNKNOWN} {shown}")
        if place.name in self._suspects:
            label.append(f" {SUSPECT}")
        return label

    def render_label(self, node: TreeNode[TreeEntry], base_style: RichStyle, style: RichStyle) -> Text:
        """Return the label of a node; if it is unknown and at the cursor, with the price of opening it."""
        label = super().render_label(node, base_style, style)
        is_free = node.data is None or self._known(node.data) is not None
        if is_free or node is not self.cursor_node:
            return label
        price = f"  −1 {self._use}"
        if self._row_width(node, len(price)) > self.size.width:
            price = _PRICE  # without the unit, which the line above the console shows
        return Text.assemble(label, Text(price, style=style + Style.parse("italic").rich_style))

    def _row_width(self, node: TreeNode[TreeEntry], price: int) -> int:
        """Return the width in cells of a node's row, with its label and a price of `price` cells."""
        level, above = 0, node.parent
        while above is not None:
            level, above = level + 1, above.parent
        sign = _SIGN if node.allow_expand else 0
        return level * self.guide_depth + sign + cell_len(str(node.label)) + price

    @property
    def width_needed(self) -> int:
        """The width in cells needed for the visible rows, each with a price, and the scroll bar."""
        rows = (self._row_width(node, len(_PRICE)) for node in _walk(self.root, expanded=True))
        return max(rows, default=0) + self.styles.scrollbar_size_vertical

    async def _on_click(self, event: events.Click) -> None:
        """Select the clicked node.

        The first click on a node that has a price only moves the cursor there.
        """
        at = event.style.meta.get("line", -1)
        node = self.get_node_at_line(at)
        pointed, self._pointed = self._pointed, node.data if node is not None else None
        has_price = self._pointed is not None and self._known(self._pointed) is None
        is_first_click = pointed != self._pointed
        if has_price and is_first_click and not event.style.meta.get("toggle"):
            event.prevent_default()
            if at == self.cursor_line and node is not None:
                self.post_message(Tree.NodeHighlighted(node))  # whose handler shows the price
            self.cursor_line = at

    @on(Tree.NodeSelected)
    def _selected(self, event: Tree.NodeSelected[TreeEntry]) -> None:
        event.stop()
        place = event.node.data
        if place is None:
            return
        call_id = self._known(place)
        if call_id is not None:
            if place.kind == "dir":
                event.node.toggle()
            self.post_message(self.ShowAgain(self, call_id, place.name))
        elif place.kind == "dir":
            self.post_message(self.ListFolder(self, place.name))
        elif place.kind == "file":
            self.post_message(self.OpenFile(self, place.name))
        else:
            self.post_message(self.OpenFunction(self, place.name))

    def action_open_node(self) -> None:
        """Open the node at the cursor; if it is open, move to its first child."""
        node = self.cursor_node
        if node is None or not node.children:
            return
        if node.is_expanded:
            self.move_cursor(node.children[0])
        else:
            node.expand()

    def action_close_node(self) -> None:
        """Close the node at the cursor; if it is closed, move to its parent."""
        node = self.cursor_node
        if node is None:
            return
        if node.is_expanded and node.children:
            node.collapse()
        elif node.parent is not None:
            self.move_cursor(node.parent)


def _walk(node: TreeNode[TreeEntry], *, expanded: bool = False) -> list[TreeNode[TreeEntry]]:
    """Return a node and all nodes below it; with `expanded`, without those in collapsed folders."""
    found, waiting = [], [node]
    while waiting:
        current = waiting.pop()
        found.append(current)
        if current.is_expanded or not expanded:
            waiting.extend(reversed(current.children))
    return found
