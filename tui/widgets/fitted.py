"""Widgets whose size follows their content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from textual.geometry import Region
    from textual.widget import Widget as Base
else:
    Base = object  # not `Widget`: Textual takes the styles of the first base class that is one


class Fitted(Base):
    """A mixin for widgets with an automatic size, which is measured again after each change.

    Textual 8.2.8 keeps a measured size until the next change, and merges two changes if the first has not
    been processed yet. On a busy machine, the screen can be laid out between the two with a size that then
    remains: a table without height, or a message that is cut.
    """

    def refresh(
        self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False
    ) -> Self:
        """Draw again; with `layout`, also measure again."""
        if layout and self._layout_required:
            self._layout_updates += 1
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)
