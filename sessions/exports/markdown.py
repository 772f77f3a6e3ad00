"""Writes a run as Markdown, and as one HTML page without scripts."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from gistpoint.core.text import visible, visible_line
from gistpoint.sessions.records.model import Step, parts_of
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.rendering import EMPTY, header_lines, summary, title_of

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}"
    "pre{background:#8881;padding:.6rem;overflow:auto;white-space:pre-wrap;overflow-wrap:anywhere}"
    "h2{font-size:1rem;border-top:1px solid #8886;padding-top:.6rem}h3{font-size:.85rem;margin:.4rem 0}"
    "@media(prefers-color-scheme:dark){body{background:#111;color:#ddd}}"
)


def markdown_text(document: RunDocument) -> Iterator[str]:
    """Yield a run as Markdown, a step at a time; every text is in a fence longer than any run of ticks in it."""
    document.build()
    run = document.header
    yield f"# {_plain(run.task or run.id or run.format)}\n\n"
    yield _fenced("\n".join(header_lines(run)))
    if run.prompt:
        yield "## Task\n\n" + _fenced(run.prompt)
    for index in range(document.step_count):
        step = document.step(index)
        yield f"## {index + 1}. {step.kind.value}: {_plain(summary(step, 80))}\n\n"
        for title, text in _parts(document, step):
            yield f"**{_plain(title)}**\n\n" + _fenced(text)


def html_text(document: RunDocument) -> Iterator[str]:
    """Yield a run as one HTML page, a step at a time; text of the run is never interpreted as markup."""
    document.build()
    run = document.header
    title = html.escape(visible_line(run.task or run.id or run.format))
    yield f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>\n'
    yield f"<h1>{title}</h1>\n{_pre(chr(10).join(header_lines(run)))}"
    if run.prompt:
        yield f"<h2>Task</h2>\n{_pre(run.prompt)}"
    for index in range(document.step_count):
        step = document.step(index)
        shown = html.escape(visible_line(summary(step, 80)))
        yield f'<h2 id="step-{index + 1}">{index + 1}. {step.kind.value}: {shown}</h2>\n'
        for name, text in _parts(document, step):
            yield f"<h3>{html.escape(visible_line(name))}</h3>\n{_pre(text)}"
    yield "</html>\n"


def _parts(document: RunDocument, step: Step) -> Iterator[tuple[str, str]]:
    """Yield the texts of a step with their titles, none of them empty."""
    for scope, number, text in parts_of(step):
        shown = "".join(document.full_text(text)) or EMPTY.get(scope, "")
        if shown:
            yield title_of(step, scope, number), shown


def _plain(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>#&|!])", r"\\\1", visible_line(text))


def _fenced(text: str) -> str:
    fence = "`" * max(3, 1 + max((len(ticks) for ticks in re.findall(r"`+", text)), default=0))
    return f"{fence}text\n{visible(text)}\n{fence}\n\n"


def _pre(text: str) -> str:
    return f"<pre>{html.escape(visible(text))}</pre>\n"
