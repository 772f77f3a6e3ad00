"""Writes a report as one HTML page without scripts and requests; all text from outside is escaped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import count

from gistpoint.core.analysis.findings import Findings, FindingsTable, Matrix, Number, Plot, Value
from gistpoint.core.analysis.naming import in_words
from gistpoint.core.analysis.pooling import SETTINGS_BY_GROUP, groups
from gistpoint.core.analysis.printing import (
    NOTHING,
    Extent,
    extent_of_plot,
    extent_of_table,
    iid_words,
    interval_words,
    shortfall_words,
    value_words,
)
from gistpoint.core.analysis.running import PRIMARY, RanAnalysis
from gistpoint.core.analysis.seeing import seen_in
from gistpoint.core.study.checklist import UNREPORTED, ChecklistAnswer
from gistpoint.core.study.prose import Passage, PassageKind
from gistpoint.sessions.exports.html.skeleton import line, lines, page_head
from gistpoint.sessions.exports.study.report.figures import draw
from gistpoint.sessions.exports.study.report.report import SIMULATED, StudyReport
from gistpoint.sessions.exports.study.report.styles import Look, SeriesStyles

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_STYLE = """
:root { color-scheme: light }
* { box-sizing: border-box }
body { font: 16px/1.5 system-ui, "DejaVu Sans", sans-serif; color: #111; background: #fff; max-width: 66rem;
  margin: 0 auto; padding: 1.5rem; overflow-wrap: anywhere }
h1 { line-height: 1.2; margin: .6rem 0 }
h2 { border-bottom: 2px solid #111; margin: 2.6rem 0 1rem; padding-bottom: .2rem }
h3 { margin: 2.2rem 0 .5rem }
a { color: #004a80 }
.banner { background: #b00020; color: #fff; font-weight: 700; padding: .7rem 1rem; font-size: 1.15rem }
.mark { color: #b00020; font-weight: 700 }
.from, small { color: #444; font-size: .86rem }
.extent { color: #444; font-size: .92em }
.box { border-left: .35rem solid #e69f00; background: #fff8e6; padding: .5rem .9rem; margin: .8rem 0 }
.wrong { border-color: #b00020; background: #fdeef0 }
nav ol { columns: 2 22rem; column-gap: 2rem; padding-left: 1.4rem }
nav li { break-inside: avoid }
.scroll { overflow-x: auto; margin: 1rem 0 }
table { border-collapse: collapse; font-size: .9rem; min-width: 50% }
caption { text-align: left; font-weight: 600; padding-bottom: .4rem }
caption .extent { font-weight: 400 }
th, td { text-align: left; vertical-align: top; padding: .3rem .7rem .3rem 0; border-bottom: 1px solid #ccc;
  overflow-wrap: break-word }
thead th { border-bottom: 2px solid #555 }
td { overflow-wrap: normal }
td.long, td.answer { overflow-wrap: anywhere }
td.number { font-variant-numeric: tabular-nums }
td.number strong, .interval { white-space: nowrap }
td small { display: block; font-size: .88em }
figure { margin: 1.4rem 0; max-width: 46rem }
figure.wide { max-width: none }
figure svg { width: 100%; height: auto; display: block }
figure svg * { stroke-linejoin: round; stroke-linecap: butt }
figcaption { font-size: .92rem; margin-top: .4rem }
.box ul { margin: .2rem 0; padding-left: 1.2rem; font-size: .92rem }
ul.notes { font-size: .9rem; color: #333 }
@media (max-width: 60rem) {
  table { font-size: .74rem }
  th, td { padding-right: .35rem }
  body { padding: 1rem }
}
.answer { white-space: pre-wrap }
@media print {
  body { max-width: none; padding: 0; font-size: 10.5pt }
  .banner { print-color-adjust: exact; -webkit-print-color-adjust: exact }
  figure, tr { break-inside: avoid }
  h2, h3, h3 + .from, caption { break-after: avoid }
  .scroll { overflow: visible }
  table { font-size: 7.5pt }
}
"""


def page(report: StudyReport) -> Iterator[str]:
    """Yield the HTML page of a report in pieces."""
    yield from _ReportPage(report).pieces()


_LONG = 30
"""The number of characters in a word beyond which it may be broken anywhere."""
_MANY = 9
"""The number of columns in a matrix beyond which its figure has the whole width."""


class _ReportPage:
    def __init__(self, report: StudyReport) -> None:
        self._report = report
        self._tables, self._figures = count(1), count(1)
        self._look = Look(palette=SeriesStyles.of(report.data), simulated=report.simulated)

    def pieces(self) -> Iterator[str]:
        report = self._report
        title = _line(report.title)
        mark = f"{SIMULATED}: " if report.simulated else ""
        yield page_head(f"{mark}{title}", POLICY, _STYLE) + "<header>\n"
        if report.simulated:
            yield (
                f'<p class="banner">{SIMULATED}. These people, attempts and times were made by a program. '
                "No number on this page says anything about real people or models.</p>\n"
            )
        yield f"<h1>{title}</h1>\n{self._overview()}</header>\n{self._attention()}{self._contents()}<main>\n"
        yield from self._confirmatory()
        yield from self._exploratory()
        yield f'<h2 id="methods">Methods</h2>\n{_blocks(report.methods)}'
        yield self._settings()
        yield from self._checklist()
        yield "</main>\n</body>\n</html>\n"

    def _overview(self) -> str:
        rows = "".join(
            f'<tr><th scope="row">{_line(name)}</th><td>{_line(value_words(value))}</td></tr>\n'
            for name, value in self._report.facts_of_study
        )
        caption = self._caption("The study", self._report.extent, numbered=False)
        return f'<div class="scroll"><table>{caption}<tbody>\n{rows}</tbody></table></div>\n'

    def _attention(self) -> str:
        """Return the notices at the top: failed analyses, problems of the data, and unanswered items."""
        report = self._report
        failed = [
            f'<a href="#{_id(one)}">{_line(one.analysis.title)}</a> failed: {_line(one.failed)}'
            for one in report.ran
            if one.failed
        ]
        wrong = failed + [_line(problem) for problem in report.data.problems]
        text = ""
        if wrong:
            items = "".join(f"<li>{sentence}</li>" for sentence in wrong)
            text += f'<section class="box wrong"><strong>Problems</strong><ul>{items}</ul></section>\n'
        if missing := [answer for answer in report.checklist if answer.open]:
            text += (
                f'<p class="box"><a href="#checklist">{len(missing)} of {len(report.checklist)} items of the '
                "checklist</a> have no answer yet.</p>\n"
            )
        return text

    def _contents(self) -> str:
        report = self._report

        def listed(analyses: Iterable[RanAnalysis]) -> str:
            items = "".join(
                f'<li><a href="#{_id(one)}">{_line(one.analysis.title)}</a></li>' for one in analyses
            )
            return f"<ol>{items}</ol>" if items else ""

        return (
            '<nav aria-label="Contents"><h2>Contents</h2>\n'
            '<p><a href="#confirmatory">Confirmatory: the declared primary analysis</a></p>'
            f"{listed(report.confirmatory)}"
            f'<p><a href="#exploratory">Exploratory analyses</a></p>{listed(report.exploratory)}'
            '<p><a href="#methods">Methods</a></p><p><a href="#checklist">Checklist</a></p></nav>\n'
        )

    def _confirmatory(self) -> Iterator[str]:
        report = self._report
        protocol = report.data.study.protocol
        yield '<h2 id="confirmatory">Confirmatory: the declared primary analysis</h2>\n'
        if protocol.question:
            yield f"<p><strong>Question.</strong> {_line(protocol.question)}</p>\n"
        if protocol.hypotheses:
            items = "".join(f"<li>{_line(sentence)}</li>" for sentence in protocol.hypotheses)
            yield f"<p><strong>Hypotheses.</strong></p><ol>{items}</ol>\n"
        yield f"<p>{_line(report.declared)}</p>\n"
        for ran in report.confirmatory:
            if ran.printed:
                yield from self._section(ran)
            else:
                yield (
                    f'<p class="box" id="{_id(ran)}">There is no attempt that counts to estimate it'
                    " from.</p>\n"
                )
        if not report.confirmatory:
            yield '<p class="box">The primary analysis is not part of this report.</p>\n'

    def _exploratory(self) -> Iterator[str]:
        yield (
            '<h2 id="exploratory">Exploratory analyses</h2>\n<p>None of these was declared as primary. Their'
            " intervals are not corrected for how many there are; read them as descriptions.</p>\n"
        )
        for ran in self._report.exploratory:
            yield from self._section(ran)
        if without := [
            one.analysis.title for one in self._report.ran if not one.printed and one.analysis.id != PRIMARY
        ]:
            yield f"<p>Without data in this study: {_line('; '.join(without))}.</p>\n"

    def _section(self, ran: RanAnalysis) -> Iterator[str]:
        analysis, findings = ran.analysis, ran.findings
        origin = f"{_line(analysis.paper)}; " if analysis.paper else ""
        yield (
            f'<section id="{_id(ran)}">\n<h3>{_line(analysis.title)}</h3>\n'
            f'<p class="from">{origin}<code>{_line(analysis.id)}</code></p>\n'
        )
        if ran.failed:
            why = _line(ran.failed)
            yield f'<p class="box wrong">This analysis failed: {why}. The others are not affected.</p>\n'
        if findings.not_estimated:
            items = "".join(f"<li>{_line(words)}</li>" for words in shortfall_words(findings.not_estimated))
            yield f'<div class="box"><strong>Not estimated</strong><ul>{items}</ul></div>\n'
        for table in findings.printed_tables:
            yield self._table(table, findings)
        for plot in findings.plots:
            yield self._figure(plot, findings)
        if findings.notes:
            items = "".join(f"<li>{_note(note)}</li>" for note in findings.notes)
            yield f'<ul class="notes">{items}</ul>\n'
        yield "</section>\n"

    def _caption(self, title: str, extent: Extent, *, numbered: bool = True) -> str:
        mark = f'<span class="mark">{SIMULATED}</span> ' if self._report.simulated else ""
        number = f"Table {next(self._tables)}. " if numbered else ""
        counts = f'<span class="extent">({_extent(extent)})</span>'
        return f"<caption>{mark}{number}{_line(in_words(title))} {counts}</caption>"

    def _table(self, table: FindingsTable, findings: Findings) -> str:
        extent = extent_of_table(table, findings, self._report.extent)
        head = "".join(f'<th scope="col">{_line(in_words(column))}</th>' for column in table.columns)
        made = _Rows(extent)
        rows = "".join(made.row(row) for row in table.rows)
        note = made.footnotes + (f'<p class="from">{_line(in_words(table.note))}</p>\n' if table.note else "")
        return (
            f'<div class="scroll"><table>{self._caption(table.title, extent)}<thead><tr>{head}</tr></thead>\n'
            f"<tbody>\n{rows}</tbody></table></div>\n{note}"
        )

    def _figure(self, plot: Plot, findings: Findings) -> str:
        simulated = self._report.simulated
        extent = extent_of_plot(plot, findings, self._report.extent)
        mark = f'<span class="mark">{SIMULATED}</span> ' if simulated else ""
        seen = " ".join(filter(None, (self._look.shown(in_words(seen_in(plot))), plot.caption)))
        caption = f" {_line(seen)}" if seen else ""
        try:
            drawn = draw(plot, self._look)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            drawn = f'<p class="box wrong">This figure could not be drawn: {_line(str(error)[:200])}</p>'
        wide = any(isinstance(mark, Matrix) and len(mark.columns) > _MANY for mark in plot.marks)
        kind = ' class="wide"' if wide else ""
        return (
            f"<figure{kind}>{drawn}\n<figcaption>{mark}"
            f"<strong>Figure {next(self._figures)}. {_line(in_words(plot.title))}.</strong>"
            f'{caption} <span class="extent">({_extent(extent)})</span></figcaption></figure>\n'
        )

    def _settings(self) -> str:
        """Return the settings of each group of attempts; only attempts under equal settings are pooled."""
        found = groups(self._report.data)
        rows = tuple((group.label, group.mode, len(group.rows), group.key or NOTHING) for group in found)
        table = FindingsTable("Settings of the groups", ("group", "mode", "attempts", "settings"), rows)
        return f'<h3 id="settings">Settings</h3>\n{self._table(table, Findings())}'

    def _checklist(self) -> Iterator[str]:
        report = self._report
        yield '<h2 id="checklist">Checklist</h2>\n'
        yield (
            "<p>The reporting checklist for human baselines by Wei and others (2025), with short names of our"
            " own. An answer by the program names its evidence and claims no more than this evidence"
            " shows.</p>\n"
        )
        missing = [answer for answer in report.checklist if answer.open]
        if missing:
            yield f'<h3 id="still-open">Still to be filled in: {len(missing)}</h3>\n'
            yield self._answers("Items without an answer", missing, last="What would answer it")
        else:
            yield "<p>Every item has an answer.</p>\n"
        yield "<h3>All items</h3>\n"
        yield self._answers("The checklist", report.checklist, last="Evidence")

    def _answers(self, title: str, answers: Sequence[ChecklistAnswer], last: str) -> str:
        rows = "".join(
            f"<tr><td>{answer.item.number}</td><td>{_line(answer.item.title)}</td>"
            f'<td class="answer">{lines(UNREPORTED if answer.open else answer.answer, _LONGEST)}</td>'
            f'<td class="answer">{lines(answer.evidence, _LONGEST)}</td></tr>\n'
            for answer in answers
        )
        head = "".join(f'<th scope="col">{name}</th>' for name in ("Item", "", "Answer", last))
        caption = self._caption(title, self._report.extent)
        body = f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>"
        return f'<div class="scroll"><table>{caption}{body}</table></div>\n'


def _extent(extent: Extent) -> str:
    return extent.words or "no attempts"


def _note(note: str) -> str:
    """Return a note; a note on the groups' settings becomes a link to their section."""
    if note.startswith(SETTINGS_BY_GROUP):
        return (
            'Only attempts under the same settings are pooled: <a href="#settings">settings of the'
            " groups</a>."
        )
    return _line(in_words(note))


class _Rows:
    """Builds the rows of a table.

    Notes on numbers become footnotes. A number shows its own extent if it is based on different attempts from
    those of its row.
    """

    def __init__(self, extent: Extent) -> None:
        """`extent` is the extent that the caption states."""
        self._extent = extent
        self._notes: dict[str, str] = {}

    def row(self, row: Sequence[Number | Value]) -> str:
        """Return a row, with the most frequent extent below its first cell if the caption states another."""
        extents = [_extent_of(cell) for cell in row if isinstance(cell, Number)]
        has_name = bool(extents) and not isinstance(row[0], Number)
        own = Counter(extents).most_common(1)[0][0] if has_name else self._extent
        below = ""
        if own != self._extent and own.words:
            below = f"<small>{own.words}</small>"
        cells = [self._cell(cell, own, "" if number else below) for number, cell in enumerate(row)]
        return f"<tr>{''.join(cells)}</tr>\n"

    def _cell(self, cell: Number | Value, extent: Extent, below: str) -> str:
        if not isinstance(cell, Number):
            kind = ""
            if isinstance(cell, int | float):
                kind = ' class="number"'
            elif isinstance(cell, str) and any(len(word) > _LONG for word in cell.split()):
                kind = ' class="long"'
            return f"<td{kind}>{_line(in_words(value_words(cell)))}{below}</td>"
        own = _extent_of(cell)
        mark = f"<sup>{self._letter(cell.note)}</sup>" if cell.note else ""
        interval = f' <span class="interval">{interval_words(cell)}</span>' if cell.low is not None else ""
        small = f"<small>{iid_words(cell)}</small>" if cell.iid else ""
        if own != extent and own.words:
            small += f"<small>{own.words}</small>"
        value = f"<strong>{_line(value_words(cell.value))}</strong>"
        return f'<td class="number">{value}{mark}{interval}{small}</td>'

    def _letter(self, note: str) -> str:
        letters = "abcdefghijklmnopqrstuvwxyz"
        number = len(self._notes)
        return self._notes.setdefault(note, letters[number] if number < len(letters) else str(number))

    @property
    def footnotes(self) -> str:
        """The footnotes below the table; empty if there are none."""
        items = "<br>".join(f"<sup>{letter}</sup> {_line(note)}" for note, letter in self._notes.items())
        return f'<p class="from">{items}</p>\n' if items else ""


def _extent_of(number: Number) -> Extent:
    return Extent(number.persons, number.tasks, number.rows)


def _blocks(blocks: Iterable[Passage]) -> str:
    """Return some passages as paragraphs, headings and lists."""
    text, inside = "", False
    for block in blocks:
        if inside and block.kind is not PassageKind.ITEM:
            text, inside = f"{text}</ul>\n", False
        match block.kind:
            case PassageKind.HEADING:
                text += f"<h3>{_line(block.text)}</h3>\n"
            case PassageKind.ITEM:
                text += ("" if inside else "<ul>\n") + f"<li>{_line(block.text)}</li>\n"
                inside = True
            case PassageKind.PARAGRAPH:
                text += f"<p>{_line(block.text)}</p>\n"
    return f"{text}</ul>\n" if inside else text


def _id(ran: RanAnalysis) -> str:
    return escape(f"analysis-{ran.analysis.id}")


_LONGEST = 4000
"""The maximum number of characters in a string on the page."""


def _line(text: str) -> str:
    return line(text, _LONGEST)
