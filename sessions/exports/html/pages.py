"""Writes a run as web pages of 1,000 steps each, which contain all of its texts (decision 169).

A browser opens each page at once, however long the run is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote

from gistpoint.sessions.exports.html.page import PageOfRun, RunPage
from gistpoint.sessions.runs.document import RunDocument

STEPS_OF_PAGE = 1_000


def html_pages(document: RunDocument, target: Path) -> Iterator[tuple[Path, Iterator[str]]]:
    """Yield the path and the pieces of each page of a run, the first one last, which is `target`.

    The others lie beside it: `run.page-2.html`, `run.page-3.html`. Each is complete before the first page
    exists, which links to them.
    """
    document.build()
    starts = range(0, max(document.step_count, 1), STEPS_OF_PAGE)
    steps = [range(start, min(start + STEPS_OF_PAGE, document.step_count)) for start in starts]
    names = [
        target.name,
        *(f"{target.stem}.page-{number}{target.suffix}" for number in range(2, len(steps) + 1)),
    ]
    for place in reversed(range(len(steps))):
        page = PageOfRun(
            steps[place],
            links=_links(names, steps, place),
            first=place == 0,
            last=place == len(steps) - 1,
            whole=True,
        )
        yield target.with_name(names[place]), RunPage(document, page).pieces()


def _links(names: Sequence[str], steps: Sequence[range], place: int) -> str:
    """Return the links from a page to all pages; empty if there is only one."""
    if len(names) == 1:
        return ""
    parts = []
    for number, (name, inside) in enumerate(zip(names, steps, strict=True)):
        words = f"{inside.start + 1:,} to {inside.stop:,}"
        if number == place:
            parts.append(f'<b aria-current="page">{words}</b>')
            continue
        relation = {place - 1: ' rel="prev"', place + 1: ' rel="next"'}.get(number, "")
        parts.append(f'<a href="{escape(quote(name))}"{relation}>{words}</a>')
    return f'<p class="pages">steps {" · ".join(parts)}</p>\n'
