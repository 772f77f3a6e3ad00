"""Widgets that resize to fit their content whenever it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from textual.geometry import Region
    from textual.widget import Widget as Base
else:
    Base = object  # Textual takes styles from the first base that is a widget


class Fitted(Base):
    """A mixin listed before a widget's class. The automatic size is measured again after each change.

    Textual 8.2.8 keeps the measured size until the next change, and merges two changes if the widget has not
    reported the first yet. On a busy machine, the screen is laid out between the two, and that size then
    stays: a table without height, a truncated message.
    """

    def refresh(
        self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False
    ) -> Self:
        """Draw again; with `layout`, also measure again."""
        if layout and self._layout_required:
            self._layout_updates += 1
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)
