"""The screens of a review, each imported when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gistpoint.tui.screens.review.settings import FoundHits, ReviewSettings

if TYPE_CHECKING:
    from textual.screen import Screen


class Screens:
    """The implementation of `ReviewScreens`."""

    def run(
        self,
        name: str,
        settings: ReviewSettings,
        *,
        runs: tuple[str, ...] = (),
        found: FoundHits | None = None,
        title: str = "",
    ) -> Screen[None]:
        """Return the screen for one run."""
        from gistpoint.tui.screens.review.screen import ReviewScreen

        return ReviewScreen(name, settings, runs=runs, found=found, title=title)

    def runs(self, paths: list[str], settings: ReviewSettings) -> Screen[None]:
        """Return the screen for a list of runs."""
        from gistpoint.tui.screens.review.runs import RunsScreen

        return RunsScreen(paths, settings)

    def comparison(self, left: str, right: str, settings: ReviewSettings) -> Screen[None]:
        """Return the screen for two runs side by side."""
        from gistpoint.tui.screens.review.compare import CompareScreen

        return CompareScreen(left, right, settings)
