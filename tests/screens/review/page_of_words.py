"""A page as a contributor would add it: this file, plus the entry in `PAGES` that `test_a_page.py` adds."""

from __future__ import annotations

from gistpoint.tui.jobs import Job
from gistpoint.tui.screens.review.run_pages import PageContext, RunPage
from gistpoint.tui.widgets.text_view import TextView


class WordsPage(RunPage[int], TextView):
    """The page with the number of words in a step."""

    def read(self, context: PageContext, job: Job) -> int:
        """Count the words."""
        step = context.document.step(context.index)
        return sum(
            len(text.split()) for text in (step.text, step.thought, *(result.text for result in step.results))
        )

    def fill(self, content: int) -> str:
        """Show the count."""
        self.load(f"{content} words")
        return "Thought, text and results."
