"""The pages of the review screen. Each is an entry in `PAGES` and a widget in `screens/review/pages/`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from textual.widget import Widget


_FOLDER = "gistpoint.tui.screens.review.pages"


class ReviewPage(NamedTuple):
    """A page of the review screen: its tab, keys with Textual's names, and widget, imported when needed."""

    name: str
    title: str
    keys: str
    words: str
    widget: str
    """Module and class, as `.module:Class` in the folder of pages. The widget's `id` is the page's name.

    It is a string because the first frame must not wait for the import of hidden pages (decision 55).
    """
    in_footer: bool = False
    later: bool = False
    """Whether the tab appears only for runs that have content for it."""

    @property
    def id(self) -> str:
        """The id of the page's binding."""
        return f"page.{self.name.replace('-', '_')}"

    def make(self) -> Widget:
        """Return a new widget of the page."""
        module, _, name = self.widget.partition(":")
        widget: Widget = getattr(import_module(module, _FOLDER), name)(id=self.name)
        return widget


PAGES: tuple[ReviewPage, ...] = (
    ReviewPage("step", "Step", "f2", "Thought, calls and results", "..step_view:StepPage"),
    ReviewPage("diff", "Diff", "f3,d", "What this step changed", ".diffs:StepDiffPage", in_footer=True),
    ReviewPage("so-far", "So far", "f4,D", "Changes of all steps up to this one", ".diffs:SoFarPage"),
    ReviewPage("tests", "Tests", "f5", "Outcomes of tests that this step shows", ".outcomes:OutcomesPage"),
    ReviewPage("raw", "Raw", "f6", "The raw records, as in the file", ".texts:RawPage"),
    ReviewPage(
        "files", "Files", "f7,v", "The repository as it was at this step", ".files:FilesPage", in_footer=True
    ),
    ReviewPage("hits", "Hits", "f8", "The results of the search", "..hit_list:HitList"),
    ReviewPage("run", "Run", "i", "Known facts about the run, and what is missing", ".texts:RunInfoPage"),
    ReviewPage("profile", "Profile", "f12", "What happened in the run, at a glance", ".profile:ProfilePage"),
    ReviewPage("times", "Times", "percent_sign", "How long model and tools took", ".times:TimesPage"),
    ReviewPage("replay", "Replay", "A", "Results of its calls when repeated here", ".texts:ReplayPage"),
    ReviewPage(
        "gist",
        "Gist",
        "f11",
        "The gist as it was at this step, with its gutter",
        ".gist:StepGistPage",
        later=True,
    ),
)
