"""The repository as far as the tool results of an attempt have shown it, and not a name further."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from rich.style import Style as RichStyle
from rich.text import Text
from textual import on
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.style import Style
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from gistpoint.core.attempts.knowledge import Knowledge
from gistpoint.tui.widgets.plain import plain_cell, plain_line

SUSPECT = "⚑"
KNOWN, UNKNOWN = "●", "○"


@dataclass(frozen=True, slots=True)
class Place:
    """What a node stands for: `dir`, `file` or `function`, and its path or `path::qualname`."""

    kind: str
    name: str


class KnowledgeTree(Tree[Place]):
    """Folders, files and functions that were shown; what would cost a tool use says so and only asks for it."""

    DEFAULT_CSS = """
    KnowledgeTree { height: 1fr; background: $background; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; }
    """
    HELP = "● has been read, ○ has not: enter asks for it and costs a tool use. ⚑ marks a suspect."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "open_node", "Open", show=False, id="tree.open"),
        Binding("left,h", "close_node", "Close", show=False, id="tree.close"),
        Binding("k", "cursor_up", "Up", show=False, id="tree.up"),
        Binding("j", "cursor_down", "Down", show=False, id="tree.down"),
    ]

    class _OnPlace(Message):
        def __init__(self, tree: KnowledgeTree) -> None:
            super().__init__()
            self.tree = tree

        @property
        def control(self) -> KnowledgeTree:
            """The tree."""
            return self.tree

    class ListFolder(_OnPlace):
        """A folder that was never listed is to be: it costs a tool use."""

        def __init__(self, tree: KnowledgeTree, path: str) -> None:
            super().__init__(tree)
            self.path = path

    class OpenFile(_OnPlace):
        """A file that was never read is to be: it costs a tool use."""

        def __init__(self, tree: KnowledgeTree, path: str) -> None:
            super().__init__(tree)
            self.path = path

    class OpenFunction(_OnPlace):
        """A function (`path::qualname`) whose source was never shown is to be: it costs a tool use."""

        def __init__(self, tree: KnowledgeTree, function: str) -> None:
            super().__init__(tree)
            self.function = function

    class ShowAgain(_OnPlace):
        """What a call has shown is to be seen again, which is free; `name` is the path or `path::qualname`."""

        def __init__(self, tree: KnowledgeTree, call_id: str, name: str) -> None:
            super().__init__(tree)
            self.call_id = call_id
            self.place = name

    def __init__(self, *, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(plain_cell("/"), Place("dir", ""), name=name, id=id, classes=classes)
        self.auto_expand = False
        self.guide_depth = 2
        self._knowledge = Knowledge()
        self._suspects: frozenset[str] = frozenset()
        self._cost = 1

    def on_mount(self) -> None:
        """Show what is known so far."""
        self._fill_anew()

    def update_from(self, knowledge: Knowledge, *, suspects: Collection[str] = (), cost: int = 1) -> None:
        """Show what is known; `cost` is the tool uses that a call takes, named where one is needed."""
        marked = frozenset(suspects)
        if (knowledge, marked, cost) == (self._knowledge, self._suspects, self._cost) and self.root.children:
            return
        self._knowledge, self._suspects, self._cost = knowledge, marked, cost
        if self.is_mounted:
            self._fill_anew()

    @property
    def place(self) -> Place | None:
        """What the cursor stands on."""
        return self.cursor_node.data if self.cursor_node is not None else None

    def _fill_anew(self) -> None:
        nodes = _walk(self.root)
        opened = {node.data for node in nodes if node.is_expanded and node.data is not None}
        closed = {node.data for node in nodes if node.children and not node.is_expanded and node.data is not None}
        here = self.place
        self.clear()
        self.root.set_label(self._label(Place("dir", "")))
        self.root.expand()
        self._add_folder(self.root, "", opened, closed)
        if here is not None:
            self._return_to(here)

    def _add_folder(self, node: TreeNode[Place], folder: str, opened: set[Place], closed: set[Place]) -> None:
        for path, kind in self._knowledge.children(folder):
            place = Place(kind, path)
            if kind == "dir":
                child = node.add(self._label(place), place, expand=place not in closed)
                self._add_folder(child, path, opened, closed)
                child.allow_expand = bool(child.children)
            else:
                self._add_file(node, place, opened)

    def _add_file(self, node: TreeNode[Place], place: Place, opened: set[Place]) -> None:
        prefix = f"{place.name}::"
        functions = sorted(
            (f for name, f in self._knowledge.functions.items() if name.startswith(prefix)), key=lambda f: f.start
        )
        child = node.add(self._label(place), place, expand=place in opened, allow_expand=bool(functions))
        for function in functions:
            leaf = Place("function", function.name)
            child.add_leaf(self._label(leaf, function.name.removeprefix(prefix)), leaf)

    def _return_to(self, place: Place) -> None:
        # Nodes have no line to go to before the lines are counted, which asking for the last one does.
        if self.last_line < 0:
            return
        for node in _walk(self.root):
            if node.data == place and self.last_line >= 0:  # asking for it gives the new nodes their lines
                self.move_cursor(node)
                return

    def _known(self, place: Place) -> str | None:
        known = {"dir": self._knowledge.listed, "file": self._knowledge.files, "function": self._knowledge.sources}
        return known[place.kind].get(place.name)

    def _label(self, place: Place, shown: str = "") -> Text:
        shown = shown or place.name.rpartition("/")[2]
        if place.kind == "dir":
            shown += "/"
        label = plain_cell(f"{KNOWN if self._known(place) else UNKNOWN} {shown}")
        if place.name in self._suspects:
            label.append(f" {SUSPECT}")
        return label

    def render_label(self, node: TreeNode[Place], base_style: RichStyle, style: RichStyle) -> Text:
        """Draw a label; what the cursor stands on says what entering it costs."""
        label = super().render_label(node, base_style, style)
        if node.data is not None and self._known(node.data) is None and node is self.cursor_node:
            price = Text(f"  −{self._cost} tool use", style=style + Style.parse("italic").rich_style)
            label = Text.assemble(label, price)
        return label

    def get_label_width(self, node: TreeNode[Place]) -> int:
        """Leave room for the price."""
        return super().get_label_width(node) + 14

    @on(Tree.NodeSelected)
    def _selected(self, event: Tree.NodeSelected[Place]) -> None:
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
        """Open the node under the cursor, or step into it."""
        node = self.cursor_node
        if node is None or not node.children:
            return
        if node.is_expanded:
            self.move_cursor(node.children[0])
        else:
            node.expand()

    def action_close_node(self) -> None:
        """Close the node under the cursor, or step out of it."""
        node = self.cursor_node
        if node is None:
            return
        if node.is_expanded and node.children:
            node.collapse()
        elif node.parent is not None:
            self.move_cursor(node.parent)

    def on_tree_node_highlighted(self, event: Tree.NodeHighlighted[Place]) -> None:
        """Explain the node under the cursor."""
        place = event.node.data
        if place is not None:
            free = "shown before: free" if self._known(place) else f"costs {self._cost} tool use"
            self.tooltip = plain_line(f"{place.name or '/'} ({free})")


def _walk(node: TreeNode[Place]) -> list[TreeNode[Place]]:
    found, waiting = [], [node]
    while waiting:
        current = waiting.pop()
        found.append(current)
        waiting.extend(reversed(current.children))
    return found
