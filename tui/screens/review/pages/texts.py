"""The pages with one text: a step's raw records, its replayed calls, and the facts about the run."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from gistpoint.sessions.records.model import Run
from gistpoint.sessions.runs.blind_view import blind_run
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.rendering import header_lines, header_texts
from gistpoint.tui import signs
from gistpoint.tui.jobs import Job
from gistpoint.tui.screens.review.run_pages import PageContext, RunPage
from gistpoint.tui.screens.review.settings import SearchRequest
from gistpoint.tui.widgets.line_view import LineView
from gistpoint.tui.widgets.text_view import TextView

if TYPE_CHECKING:
    from gistpoint.sessions.runs.searching import Hit

RAW_SHOWN = 2_000_000
"""The maximum number of bytes in raw records that are shown."""
_SIGNS = {
    signs.SEEN: "not seen yet",
    signs.LABEL: "labelled",
    signs.COMMENT: "commented on",
    signs.FOLLOWS: "started another run",
    signs.GOOD: "the command returned 0",
    signs.BAD: "an error, or the command returned something else",
    "?": "no result of a call was recorded",
}
_HIDDEN = "Raw records are hidden until your verdict: they may name the model."


class PageText(NamedTuple):
    """Text, a note for the line above it, and the offset to move to, if any."""

    text: str
    note: str = ""
    at: int | None = None


class TextPage(RunPage[PageText], TextView):
    """A page with one text and a note above it. Subclasses return both from `read`."""

    def __init__(self, *, id: str) -> None:
        super().__init__(can_interpret=True, id=id)
        self.set_reactive(LineView.wrap, True)

    def fill(self, content: PageText) -> str:
        """Show the text, and return the note."""
        self.load(content.text)
        return content.note


class RawPage(TextPage):
    """The page with the raw records of a step."""

    def read(self, context: PageContext, job: Job) -> PageText:
        """Return the records, with a note on their place in the file, or only a note if they are hidden."""
        return (
            PageText("", _HIDDEN) if context.hides else PageText(*raw_text(context.document, context.index))
        )


class RunInfoPage(TextPage):
    """The page with the facts about the run."""

    sought: tuple[SearchRequest | None, Hit] | None = None
    """A search and its hit in the header, which the page shows the next time it is filled."""

    def read(self, context: PageContext, job: Job) -> PageText:
        """Return the facts in the header. If there is a hit to show, read all records first."""
        document, sought = context.document, self.sought
        while sought is not None and not document.finished:
            document.advance()
            job.give_way()
        header = document.header
        text = run_text(header, document.name, blind=context.hides)
        return PageText(text, at=_offset_of(header, sought[1], text) if sought is not None else None)

    def fill(self, content: PageText) -> str:
        """Show the text, moving to the hit if there is one, and return the note."""
        note = super().fill(content)
        if self.sought is not None and content.at is not None:
            (wanted, _), self.sought = self.sought, None
            line = self.lines.line_of(content.at)
            start = line + self.first_line, content.at - self.lines.starts[line]
            self.search(
                wanted.pattern if wanted else "", regex=wanted is not None and wanted.regex, start=start
            )
        return note


def _offset_of(header: Run, hit: Hit, text: str) -> int:
    """Return the offset of a hit in the page's text, which has the header's strings in the same order."""
    at = 0
    for part in header_texts(header)[: hit.part + 1]:
        at = max(at, text.find(part, at))
    return at + hit.start


def raw_text(document: RunDocument, index: int) -> tuple[str, str]:
    """Return a step's raw records as text, and a note on their place in the file.

    At most `RAW_SHOWN` bytes are returned.
    """
    step = document.step(index)
    raw = document.raw(index, RAW_SHOWN)
    length = sum(record.length for record in step.records) or step.raw.length
    places = ", ".join(f"{record.start:,} to {record.end:,}" for record in (step.records or (step.raw,))[:3])
    more = f" and {len(step.records) - 3} more" if len(step.records) > 3 else ""
    member = f" of {step.raw.member}" if step.raw.member else ""
    cut = f"; the first {RAW_SHOWN:,} are shown" if length > len(raw) else ""
    return raw.decode("utf-8", "replace"), f"Bytes {places}{more}{member}: {length:,} in all{cut}"


def run_text(header: Run, name: str, *, blind: bool) -> str:
    """Return the facts about a run as text; if `blind`, without who made it, its outcome and its folder."""
    if blind:
        header, name = blind_run(header), PurePath(name).name
    lines = [f"{'file':<12} {name}", *header_lines(header, limit=None)]
    if blind:
        lines = [line for line in lines if not line.startswith("actor ")]
        lines.append(f"{'hidden':<12} who made it and the outcome, until your verdict")
    lines += ["", f"{signs.HEADING} signs", *legend()]
    if header.prompt:
        lines += ["", f"{signs.HEADING} task", header.prompt]
    if header.submission:
        lines += ["", f"{signs.HEADING} submission", header.submission]
    return "\n".join(lines)


def legend() -> list[str]:
    """Return a line for each symbol of the strip and of the list of steps, with its meaning."""
    from gistpoint.tui.screens.review.survey import GLYPHS, WORDS

    marks = [f"{glyph}  {WORDS[mark]}" for mark, (glyph, _) in GLYPHS.items()]
    return [*marks, *(f"{sign}  {meaning}" for sign, meaning in _SIGNS.items())]


class ReplayPage(TextPage):
    """The page with the replayed calls of a step."""

    def read(self, context: PageContext, job: Job) -> PageText:
        """Return the results of the replay, with a note on the outcomes."""
        replay, index = context.replay, context.index
        if not replay.begun:
            return PageText("", "a repeats the recorded calls in a fresh workspace of the task.")
        waiting = "Not repeated yet." if replay.running else "This step has no call that was repeated."
        return PageText(replay.text(index), replay.words(index) or waiting)
