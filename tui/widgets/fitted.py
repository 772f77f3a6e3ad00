"""Widgets as high or wide as what they hold, whenever that changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from textual.geometry import Region
    from textual.widget import Widget as Base
else:
    Base = object  # Textual takes styles from the first base that is a widget


class Fitted(Base):
    """Stands before a widget's class: its automatic size is measured again at each change.

    Textual 8.2.8 keeps the size that it measured until the next change, and takes two changes for one as long as the
    widget has not come to tell of the first. On a busy machine the screen is laid out between the two, and the size of
    then stays: a table of no height, a message cut off.
    """

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        """Draw again; with `layout`, measure again too."""
        if layout and self._layout_required:
            self._layout_updates += 1
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)
