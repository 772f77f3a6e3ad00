"""Writes a run as web pages that make no requests; their script adds search and keyboard navigation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from html import escape
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from gistpoint.core.diffs import compute
from gistpoint.core.text import TextEnds, ends_of, plural, visible, visible_line
from gistpoint.sessions.exports.html.images import READ, has_image_placeholder, images_in
from gistpoint.sessions.exports.html.marking import (
    COLOURED,
    code_lines,
    diff_lines,
    file_lines,
    text_lines,
)
from gistpoint.sessions.exports.html.skeleton import content_hash, line, packaged, page_head
from gistpoint.sessions.formats.shared.calls import kind_of
from gistpoint.sessions.records.model import (
    CutText,
    FileEdit,
    RunCall,
    Step,
    StepKind,
    TextScope,
    also_text,
    json_text,
)
from gistpoint.sessions.runs.commands import path_of, same_path, views_of
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.facts import has_error
from gistpoint.sessions.runs.rendering import (
    EMPTY,
    UNANSWERED,
    header_facts,
    language_of,
    row_words,
    step_facts,
    summed_header,
    tilde_of,
    title_of,
    unanswered,
)

KEPT, KEPT_OF_DIFF = 12, 60
"""The number of lines in folded text, and in a folded diff, that stay visible; see `_folded`."""
WIDTH = 160
"""The number of characters in a line beyond which it counts as several."""
LONGEST = 100_000
"""The maximum number of characters in a string on the page; a longer one is cut in the middle."""
LARGE, LONGEST_IN_LARGE = 24_000_000, 4_000
"""The length of a page above which its text is cut sooner, and the maximum length of a string from then on.

Both are in characters.
"""
MOST_OF_IMAGES = 12_000_000
"""The maximum number of characters in all images on the page."""
STEPS_OF_PAGE = 1_000
"""The number of steps on a page of a file: a browser opens such a page at once (decision 169)."""
_BYTES_BEFORE_LINKS = 100_000
_CLOSED = frozenset({StepKind.STATE})


def html_text(document: RunDocument) -> Iterator[str]:
    """Yield a run as one HTML page, one step at a time; text of the run is never interpreted as markup."""
    document.build()
    yield from HtmlRunPage(document, PageOfRun(range(document.step_count))).pieces()


def html_pages(document: RunDocument, target: Path) -> Iterator[tuple[Path, Iterator[str]]]:
    """Yield the path and the pieces of each page of a run, the first one last, which is `target`.

    The others are next to it: `run.page-2.html`, `run.page-3.html`. They are yielded earlier so that all of
    them exist before the first page, which links to them.
    """
    document.build()
    starts = range(0, max(document.step_count, 1), STEPS_OF_PAGE)
    steps = [range(start, min(start + STEPS_OF_PAGE, document.step_count)) for start in starts]
    names = [page_path(target, number).name for number in range(1, len(steps) + 1)]
    for place in reversed(range(len(steps))):
        page = PageOfRun(
            steps[place],
            links=_links(names, steps, place),
            first=place == 0,
            last=place == len(steps) - 1,
            whole=True,
        )
        yield target.with_name(names[place]), HtmlRunPage(document, page).pieces()


def page_path(target: Path, number: int) -> Path:
    """Return the path of a page of a run, counted from 1; `target` is the first one."""
    return target if number == 1 else target.with_name(f"{target.stem}.page-{number}{target.suffix}")


def is_page_of(path: Path, target: Path) -> bool:
    """Return whether a file is another page of a run whose first page is `target`, judging by its links."""
    with path.open("rb") as file:
        head = file.read(_BYTES_BEFORE_LINKS).decode("utf-8", "replace")
    links = head.partition('<p class="pages">')[2].partition("</p>")[0]
    return f'href="{escape(quote(target.name))}"' in links


@dataclass(frozen=True, slots=True)
class PageOfRun:
    """The content of a page: some of a run's steps, and links to the pages with the others.

    The first page also contains the facts about the run, the last one its submission. A page that is `whole`
    cuts no strings.
    """

    steps: range
    links: str = ""
    first: bool = True
    last: bool = True
    whole: bool = False


class HtmlRunPage:
    """Writes one page of a run. `left_out` counts the omitted strings and characters."""

    def __init__(self, document: RunDocument, page: PageOfRun) -> None:
        self._document, self._page = document, page
        self.left_out = (0, 0)
        """The numbers of cut strings and of their characters that are not on the page."""
        self._written = 0
        self._entries: list[str] = []
        self._kinds: Counter[str] = Counter()
        self._errors = 0
        self._drawn: dict[str, int] = {}
        self._left_for_images = MOST_OF_IMAGES

    def pieces(self) -> Iterator[str]:
        """Yield the page, one step at a time."""
        run, page = self._document.header, self._page
        title = line(run.task or run.id or run.format, 200)
        yield _head(title) + page.links
        if page.first:
            yield self._run_section()
        if page.first and run.prompt:
            yield self._section("task", "text", "Task", self._block(run.prompt, 0))
        for index in page.steps:
            piece = self._step(self._document.step(index))
            self._written += len(piece)
            yield piece
        if page.last and run.submission:
            yield self._section(
                "submission", "diff", "Submission", self._block(run.submission, 0, kept=KEPT_OF_DIFF)
            )
        yield f"{page.links}</main>\n{self._index()}<script>{_script()}</script>\n</body>\n</html>\n"

    def _run_section(self) -> str:
        """Return the section about the run: its verdict, facts, warnings and omissions."""
        run = summed_header(self._document)
        facts = "".join(
            f"<dt>{line(name, 100)}</dt><dd>{line(fact, 2_000)}</dd>" for name, fact in header_facts(run)
        )
        mark = {"solved": "✔ ", "unsolved": "✘ "}.get(run.verdict, "")
        words = f"{tilde_of(run, 'verdict')}{run.verdict}"
        verdict = f'<p class="verdict">{mark}{line(words, 200)}</p>\n' if run.verdict else ""
        warnings = "".join(
            f'<p class="cut">Warning: {line(warning, 2_000)}</p>\n' for warning in run.warnings
        )
        noted = "".join(f"<h3>{line(one.path, 200)}</h3>{self._block(one.text, 0)}" for one in run.also)
        if run.not_shown:
            items = "".join(
                f"<li>{line(', '.join(one.names), 2_000)}: {line(one.reason)}</li>" for one in run.not_shown
            )
            noted += (
                '<details class="more"><summary>what of the records is not'
                f" shown</summary><ul>{items}</ul></details>"
            )
        return f'<section class="run" id="run">\n{verdict}<dl>{facts}</dl>\n{warnings}{noted}</section>\n'

    @staticmethod
    def _section(identity: str, kind: str, title: str, block: str) -> str:
        return f'<section id="{identity}" class="{kind}"><h2>{title}</h2>\n{block}</section>\n'

    def _step(self, step: Step) -> str:
        bad = has_error(step)
        kind, number = step.kind.value, step.index + 1
        words = line(" ".join(row_words(step).split()))
        classes = f"k-{kind}{' bad' if bad else ''}"
        flag = ' <span class="flag">✘ error</span>' if bad else ""
        short_flag = flag.replace(" error", "")
        self._kinds[kind] += 1
        self._errors += bad
        self._entries.append(
            f'<li class="{classes}"><a href="#step-{number}"><span>{number}</span><span'
            f' class="kind">{kind}</span><span class="what">{words}</span>{short_flag}</a></li>\n'
        )
        opened = "" if step.kind in _CLOSED else " open"
        facts = "".join(f"<span>{line(fact, 200)}</span> · " for fact in step_facts(step)[1:]).removesuffix(
            " · "
        )
        return (
            f'<details class="step {classes}" id="step-{number}" data-kind="{kind}"{opened}><summary>'
            f'<a class="number" href="#step-{number}">{number}</a> <span class="kind">{kind}</span> '
            f'<span class="what">{words}</span>{flag}</summary>\n<p class="facts">{facts}</p>\n'
            f"{''.join(self._parts(step))}</details>\n"
        )

    def _parts(self, step: Step) -> Iterator[str]:
        """Yield the blocks of a step, each result below its call."""
        number = step.index + 1
        if step.thought:
            yield _titled("thought", "thought", self._block(step.thought, number))
        if step.text:
            yield _titled("text", step.actor.value, self._block(step.text, number))
        drawn = [edit for edit in step.edits if step.diff or _is_drawn(edit)]
        if step.diff or drawn:
            changes = (
                self._block(step.diff, number, kept=KEPT_OF_DIFF)
                if step.diff
                else "".join(map(_change, drawn))
            )
            yield _titled("diff", "requested changes" if has_error(step) else "changes", changes)
        yield from self._calls(step, drawn)
        if also := also_text(step):
            yield _titled("also", "also recorded", self._block(also, number))
        if has_image_placeholder(step):
            yield from self._images(step)
        if step.links:
            yield f'<p class="facts">goes on in {", ".join(line(link, 200) for link in step.links)}</p>\n'

    def _calls(self, step: Step, drawn: Sequence[FileEdit]) -> Iterator[str]:
        """Yield the calls of a step with their results; calls whose edits are `drawn` as diffs are folded."""
        number = step.index + 1
        answered: set[int] = set()
        without_result = unanswered(step)
        for place, call in enumerate(step.calls):
            is_in_diff = any(len(step.calls) == 1 or same_path(edit.path, path_of(call)) for edit in drawn)
            title = title_of(step, TextScope.CALL, place)
            yield _titled("call", title, self._call(call, number, folded=is_in_diff))
            for at, result in enumerate(step.results):
                if call.id and result.call_id == call.id and at not in answered:
                    answered.add(at)
                    yield self._result(step, at, call)
            if place in without_result:
                yield _titled("result", f"result {call.id}".rstrip(), f"<pre>{UNANSWERED}</pre>")
        for at in range(len(step.results)):
            if at not in answered:
                yield self._result(step, at, step.calls[0] if len(step.calls) == 1 else None)

    def _images(self, step: Step) -> Iterator[str]:
        """Yield the images of a step for which there is room; an image shown earlier becomes a link."""
        shown: list[str] = []
        for image in images_in(self._document.raw(step.index, READ)):
            address = image.address
            before = self._drawn.setdefault(content_hash(address), step.index)
            if before < step.index:
                shown.append(
                    f'<p class="facts">the image of <a href="#step-{before + 1}">step {before + 1}</a></p>\n'
                )
            elif len(address) <= self._left_for_images:
                self._left_for_images -= len(address)
                shown.append(f'<img src="{address}" alt="image of step {step.index + 1}" loading="lazy">\n')
        if shown:
            yield _titled("images", "images", "".join(dict.fromkeys(shown)))

    def _call(self, call: RunCall, number: int, *, folded: bool) -> str:
        """Return the HTML of a call's arguments, the short ones first; `folded` hides them below a summary.

        Arguments that were recorded as text and could not be parsed are shown as recorded.
        """
        language = language_of(call)
        if not call.parsed:
            if not call.arguments:
                return EMPTY[TextScope.CALL]
            return self._block(call.arguments, number, _as_code(language))
        short: list[str] = []
        blocks: list[str] = []
        for name, value in call.parsed.items():
            label = f'<span class="arg">{line(name, 100)}</span>'
            text, kind = (value, language) if isinstance(value, str) else (json_text(value), "json")
            is_long = "\n" in text or len(text) > KEPT * WIDTH
            if is_long:
                mark = _as_code(kind or _suffix(path_of(call)))
                blocks.append(f"<h3>{label}</h3>{self._block(text, number, mark)}")
                continue
            shown = code_lines([visible_line(text)], "" if kind == "python" else kind)[0]
            is_only_command = kind == "bash" and len(call.parsed) == 1
            short.append(shown if is_only_command else f"{label}: {shown}")
        body = "".join(blocks)
        if short:
            body = f"<pre>{chr(10).join(short)}</pre>\n{body}"
        if not folded:
            return body
        return f'<details class="more"><summary>arguments as recorded</summary>{body}</details>\n'

    def _result(self, step: Step, place: int, call: RunCall | None) -> str:
        result = step.results[place]
        bad = bool(result.is_error or result.returncode)
        suffix = ""
        if call is not None and kind_of((call,)) is StepKind.VIEW and not bad:
            suffix = _viewed_suffix(call)
        mark: Callable[[str], list[str]] = text_lines
        if suffix:
            mark = partial(file_lines, language=suffix)
        block = f"<pre>{EMPTY[TextScope.RESULT]}</pre>"
        if result.text:
            block = self._block(result.text, step.index + 1, mark)
        title = f"{'✘ ' if bad else ''}{title_of(step, TextScope.RESULT, place)}"
        return _titled(f"result{' bad' if bad else ''}", title, block)

    def _block(
        self, text: str, number: int, mark: Callable[[str], list[str]] = text_lines, kept: int = KEPT
    ) -> str:
        """Return the blocks of a string; `number` is its step's number, counted from 1; 0 without a step."""
        part = self._part(text)
        shown = _folded(part.head, mark(part.head), kept)
        if part.left_out:
            where = f" at step {number} and press o" if number else ""
            shown += (
                f'<p class="cut">⋯ {part.left_out:,} characters are not on this page. To read them, open the'
                f' run in <code>gistpoint review</code>{where}.</p>\n<details class="more"><summary>the last'
                f" {len(part.tail):,} characters</summary><pre>{escape(visible(part.tail))}</pre></details>\n"
            )
        return shown

    def _part(self, text: str) -> TextEnds:
        pieces = self._document.full_text(text)
        if self._page.whole:
            return TextEnds("".join(pieces))
        part = ends_of(pieces, LONGEST if self._written < LARGE else LONGEST_IN_LARGE)
        if part.left_out:
            texts, characters = self.left_out
            self.left_out = texts + 1, characters + part.left_out
        return part

    def _index(self) -> str:
        """Return the list of the steps, with boxes to choose the kinds of steps that are shown."""
        boxes = "".join(
            f'<label><input type="checkbox" id="show-{kind}" checked> {kind} {count:,}</label>\n'
            for kind, count in self._kinds.most_common()
        )
        errors = plural(self._errors, "error")
        only = (
            f'<label><input type="checkbox" id="only-errors"> only the {errors}</label>\n'
            if self._errors
            else ""
        )
        return (
            '<nav aria-label="Steps">\n<details'
            f" open><summary>{plural(sum(self._kinds.values()), 'step')}</summary>\n"
            f"<fieldset>\n{boxes}{only}</fieldset>\n<ol>\n{''.join(self._entries)}</ol></details></nav>\n"
        )


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


def _titled(kind: str, title: str, block: str) -> str:
    return f'<section class="{kind}"><h3>{line(title, 300)}</h3>\n{block}</section>\n'


def _folded(text: str, marked: Sequence[str], kept: int) -> str:
    """Return the lines `marked` of a string; all but the first `kept` lines of a long string are folded.

    A string is long if it has at least 19 lines more than `kept`, or more than twice the characters of `kept`
    full lines.
    """
    if len(text) <= 2 * kept * WIDTH and len(marked) <= kept + 18:
        return f"<pre>{chr(10).join(marked)}</pre>\n"
    while len("\n".join(text.split("\n", kept)[:kept])) > kept * WIDTH:
        kept -= 1
    shown, hidden = marked[:kept], marked[kept:]
    more = f"<pre>{chr(10).join(hidden)}</pre></details>\n"
    if not kept:
        words = f"{plural(len(hidden), 'line')}, {len(text):,} characters"
        return f'<details class="more"><summary>{words}</summary>{more}'
    words = plural(len(hidden), "more line")
    return f'<pre>{chr(10).join(shown)}</pre>\n<details class="more"><summary>{words}</summary>{more}'


def _is_drawn(edit: FileEdit) -> bool:
    """Return whether both sides of an edit are recorded, and short enough to be drawn as a diff."""
    texts = (edit.old, edit.new)
    return all(
        isinstance(text, str) and not isinstance(text, CutText) and len(text) <= COLOURED for text in texts
    )


def _change(edit: FileEdit) -> str:
    """Return an edit as a diff of its old and new text."""
    diff = compute(edit.old or "", edit.new or "")
    title = f"{edit.path}  +{diff.added} −{diff.removed}"
    return f"<h3>{line(title, 300)}</h3>{_folded('', diff_lines(diff), KEPT_OF_DIFF)}"


def _as_code(language: str) -> Callable[[str], list[str]]:
    return lambda text: code_lines(visible(text).split("\n"), language)


def _suffix(path: str) -> str:
    """Return the suffix of a file's name in lower case, with its dot; empty if there is none."""
    found = PurePosixPath(path).suffix
    return found.lower() if found[1:].isalnum() and len(found) <= 12 else ""


def _viewed_suffix(call: RunCall) -> str:
    """Return the suffix of the files that a call prints; empty if they differ or there are none."""
    suffixes = {_suffix(view.path) for view in views_of(call)}
    return suffixes.pop() if len(suffixes) == 1 else ""


@cache
def _style() -> str:
    """Return the style sheet, with the rules that hide kinds of steps by classes."""
    kinds = ",".join(f".no-{kind} .k-{kind}" for kind in StepKind)
    return (
        f"\n{packaged('colours.css', 'page.css')}{kinds} {{ display: none }}\n"
        f".only-errors {_FAULTLESS} {{ display: none }}\n"
    )


@cache
def _scriptless_style() -> str:
    """Return the rules that hide kinds of steps if scripts are disabled.

    They must not apply otherwise, not even for the time before a script removes them: a rule with `:has` at
    the root is matched again after each change of the page, and when it is removed, Chromium looks at every
    element for each rule, which takes a minute for a page of 24 MB.
    """
    looks = "".join(f":root:has(#{look}:checked) {{ color-scheme: {look} }}\n" for look in ("light", "dark"))
    kinds = ",".join(f":root:has(#show-{kind}:not(:checked)) .k-{kind}" for kind in StepKind)
    errors = f":root:has(#only-errors:checked) {_FAULTLESS} {{ display: none }}\n"
    return f"\n@media screen {{\n{looks}}}\n{kinds} {{ display: none }}\n{errors}"


_FAULTLESS = ":is(.step, nav li):not(.bad)"


@cache
def _script() -> str:
    return f"\n{packaged('page.js')}"


def _policy() -> str:
    """Return the content security policy: only the page's own style and script, and no requests."""
    return (
        f"default-src 'none'; style-src {content_hash(_style())} {content_hash(_scriptless_style())}; "
        f"script-src {content_hash(_script())}; img-src data:; base-uri 'none'; form-action 'none'"
    )


_LINKS = '<meta name="referrer" content="no-referrer">\n<link rel="icon" href="data:,">\n'


def _head(title: str) -> str:
    scriptless = f"<noscript><style>{_scriptless_style()}</style></noscript>\n"
    keys = "".join(f"<dt>{_pressed(keys)}</dt><dd>{what}</dd>" for keys, what in _KEYS)
    return (
        page_head(title, _policy(), _style(), links=_LINKS, styles=scriptless)
        + f'<header class="bar">\n<h1>{title}</h1>\n<div class="scripted" role="search"><input type="search"'
        ' id="find" placeholder="search (/)" aria-label="search in the run"><button id="before"'
        ' aria-label="hit before">↑</button><button id="next" aria-label="next hit">↓</button><output'
        ' id="found"></output></div>\n<div class="scripted"><button id="unfold">expand'
        ' texts</button><button id="fold">collapse steps</button></div>\n<fieldset'
        ' aria-label="colours"><label><input type="radio" name="look" checked> auto</label><label><input'
        ' type="radio" name="look" id="light"> light</label><label><input type="radio" name="look"'
        ' id="dark"> dark</label></fieldset>\n<details class="keys'
        f' scripted"><summary>keys</summary><div><dl>{keys}</dl></div></details>\n</header>\n<main>\n'
    )


_KEYS = (
    ("j k", "next and previous step, the same as → and ←"),
    ("x X", "next and previous error"),
    ("/", "search; Enter goes to the next hit, Esc ends it"),
    ("n N", "next and previous hit"),
    ("o", "expand or collapse the step's long text"),
    ("O", "expand or collapse the long text of all steps"),
    ("?", "these keys"),
)


def _pressed(keys: str) -> str:
    return " ".join(f"<kbd>{escape(key)}</kbd>" for key in keys.split())
