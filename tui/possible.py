"""The keys that work now on the current screen at the focus."""

from __future__ import annotations

from dataclasses import dataclass

from textual.dom import DOMNode
from textual.screen import Screen

from gistpoint.tui.bindings.words import FREE
from gistpoint.tui.keys import KEYS, Key, KeyScope, shown_key

_BY_ID = {key.id: key for key in KEYS}
_NUMBERS = {key.id: number for number, key in enumerate(KEYS)}
_LAST = ("app.theme", "app.help", "app.quit")
_MOVES = FREE - {"enter", "space", "tab", "shift+tab"}


@dataclass(frozen=True, slots=True)
class PossibleKey:
    """A binding that works now, with its keys and the widget that performs its action."""

    key: Key
    spelt: str
    """The keys of this binding: the user's own if there are any."""
    node: DOMNode
    """The widget, screen or app that performs the action."""
    moves: bool
    """Whether the key only moves a cursor or the focus."""


def in_order(entry: PossibleKey) -> tuple[int, int]:
    """Return a sort key for the order of the table.

    The program's keys come after those of the screen; theme, help and quit come last.
    """
    id = entry.key.id
    last = _LAST.index(id) + 2 if id in _LAST else int(entry.key.scope is KeyScope.APP)
    return last, _NUMBERS[id]


def possible_now(screen: Screen[object]) -> list[PossibleKey]:
    """Return the keys that work now, those at the focus first, with one entry for all keys of an action."""
    found: dict[tuple[str, DOMNode], tuple[Key, list[str], DOMNode]] = {}
    for pressed, active in screen.active_bindings.items():
        key = _BY_ID.get(active.binding.id or "")
        if key is not None and active.enabled:
            _, names, _ = found.setdefault((key.action, active.node), (key, [], active.node))
            names.append(pressed)
    outwards = (*(screen.focused or screen).ancestors_with_self, screen.app)
    depths = {node: depth for depth, node in enumerate(outwards)}
    return [
        PossibleKey(
            key, " or ".join(map(shown_key, names)), node, FREE.issuperset(names) and bool(_MOVES & {*names})
        )
        for key, names, node in sorted(
            found.values(), key=lambda entry: (depths[entry[2]], _NUMBERS[entry[0].id])
        )
    ]
