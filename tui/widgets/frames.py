"""Frames around panes, with a title and a note. The frame around the focus is bright."""

from __future__ import annotations

from typing import TypeVar

from textual.content import Content
from textual.widget import Widget

from gistpoint.tui.widgets.plain import plain_line

PANE = "pane"
"""The CSS class of framed panes, whose look is in `base.tcss`."""

Framed = TypeVar("Framed", bound=Widget)


def framed(widget: Framed, title: str | Content = "", note: str | Content = "") -> Framed:
    """Frame a widget, with a title at the top and a note at the bottom right. Return the widget.

    A string is shown literally. Call this again to change title and note; unchanged parts are not drawn
    again.
    """
    widget.add_class(PANE)
    widget.ALLOW_MAXIMIZE = True  # type: ignore[misc]  # Textual's switch is a class variable
    title = plain_line(title) if isinstance(title, str) else title
    note = plain_line(note) if isinstance(note, str) else note
    if not _is_shown(widget.border_title, title):
        widget.border_title = title
    if not _is_shown(widget.border_subtitle, note):
        widget.border_subtitle = note
    return widget


def pane_around(widget: Widget | None) -> Widget | None:
    """Return the framed pane that is or contains a widget; None if there is none."""
    around = widget.ancestors_with_self if widget is not None else ()
    return next((node for node in around if isinstance(node, Widget) and node.has_class(PANE)), None)


def _is_shown(shown: str | None, wanted: Content) -> bool:
    """Return whether a title is already shown. Textual returns a title as markup, whatever was set."""
    return (shown or "") == wanted.markup
