"""`gistpoint search` and `convert`: recorded runs of any format, without a screen."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gistpoint.core.errors import AttemptError, UserError
from gistpoint.core.locations import path_of
from gistpoint.core.requests import Request
from gistpoint.core.text import is_ordinary, plural, visible_line
from gistpoint.sessions.exports.registry import NAMES, exporter
from gistpoint.sessions.records.archives import RunFileError
from gistpoint.sessions.records.model import OWN_FORMAT, TextScope
from gistpoint.sessions.runs.document import RunDocument
from gistpoint.sessions.runs.opening import ListedRun, doubt_of, list_runs, open_run, split_name
from gistpoint.tui.commands.arguments import JSON, READ_AS, WHERE, read_files_as
from gistpoint.tui.commands.command import DONE, NEGATIVE
from gistpoint.tui.commands.options import CliCommand, argument, option
from gistpoint.tui.commands.output import drawn_on, is_stream, print_json, warn_unless_html, write_whole
from gistpoint.tui.commands.run_files import print_problems, problem_record, settled_document

if TYPE_CHECKING:
    from gistpoint.sessions.runs.found_lines import FoundLine
    from gistpoint.sessions.runs.opening import Wants
    from gistpoint.sessions.runs.searching import Hit


_BOLD, _PLAIN = "\x1b[1;33m", "\x1b[0m"
"""The codes that a terminal gets before and after a match."""
_LONGEST_BLOCK = 1_000
"""The maximum number of hits that are printed at once."""
_MOST_UNREAD = 5
"""The maximum number of a folder's unreadable files that a search reports by name."""
RUN_HELP = "a file, FILE#ID for one of several runs in it, or the id of an attempt"


def open_named(name: str) -> RunDocument:
    """Return an open run, given its path, `FILE#ID`, or the id of a stored attempt.

    Raises `RunFileError` if it can't be read.
    """
    try:
        return open_run(name)
    except RunFileError:
        folder = attempt_folder(name)
        if folder is None:
            raise
    return open_run(folder)


def attempt_folder(name: str) -> Path | None:
    """Return the folder of a stored attempt, given its id or a prefix; None unless exactly one matches.

    A name that is a path, or looks like one, is never taken for an id.
    """
    path, id = split_name(name)
    if id or "/" in name or path.exists():
        return None
    from gistpoint.core.locations import Locations
    from gistpoint.core.machine_time import SystemTime
    from gistpoint.sessions.attempts import AttemptStore

    try:
        return AttemptStore(Locations.of_user().attempts, SystemTime(), "").folder(name)
    except AttemptError:
        return None


def warn_if_doubtful(document: RunDocument) -> int:
    """Return the exit code for a run that was read, and warn if it is doubtful."""
    doubt = doubt_of(document)
    if doubt:
        print(f"gistpoint: {visible_line(doubt)}", file=sys.stderr)
    return NEGATIVE if doubt else DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRuns(Request):
    """A request to search runs for a pattern."""

    pattern: str
    paths: tuple[str, ...]
    where: str = ""
    regex: bool = False
    scope: tuple[TextScope, ...] = ()
    json: bool = False
    read_as: str = ""


def search(request: SearchRuns) -> int:
    """Print each line with matches once, or all matches as JSON.

    Return 0, 1 if there is none or a named file is not a run, or 2 if a named path can't be read.
    """
    read_files_as(request.read_as)
    from gistpoint.sessions.runs.found_lines import FoundLines, counted_words
    from gistpoint.sessions.runs.searching import Query, search_document
    from gistpoint.sessions.runs.searching_files import Sieve

    query = Query(request.pattern, regex=request.regex, scopes=request.scope or tuple(TextScope))
    problems: list[ListedRun] = []
    rows: list[dict[str, Any]] = []
    found, print_lines = FoundLines(), _line_printer()
    searched, found_in, sieve = 0, set[str](), Sieve(query)
    paths = [str(attempt_folder(path) or path) for path in request.paths]
    for document in _documents(paths, problems, sieve.wants, request.where):
        searched += 1
        for block in _blocks(search_document(document, query)):
            found_in.add(document.name)
            found.add(block)
            # A line is printed only after its last match was found, because all its matches are marked.
            lines = found.take(with_last=False)
            if request.json:
                rows += map(_hit_record, block)
            else:
                print_lines(lines)
    last = found.take(with_last=True)
    if request.json:
        print_json(
            "gistpoint.search/1", {"hits": rows, "problems": [problem_record(item) for item in problems]}
        )
    elif last:
        print_lines(last)
        words = counted_words(found.taken, found.places)
        _print_count(words, f"{len(found_in):,} of {plural(searched, 'run')}", sieve.left_out)
    return _print_unread(problems, paths, DONE if found.places else NEGATIVE)


def _print_count(lines: str, runs: str, left_out: int) -> None:
    """Print how much was found, in how many of the runs, and how many other files can't contain it."""
    others = f"; {plural(left_out, 'other file')} can't contain it" if left_out else ""
    print(f"gistpoint: {lines} in {runs}{others}.", file=sys.stderr)


def _blocks(hits: Iterable[Hit]) -> Iterator[list[Hit]]:
    """Yield hits in blocks of one step, which are printed at once; a step with very many has several."""
    block: list[Hit] = []
    for hit in hits:
        if block and (hit.step != block[0].step or len(block) >= _LONGEST_BLOCK):
            yield block
            block = []
        block.append(hit)
    if block:
        yield block


def _hit_record(hit: Hit) -> dict[str, Any]:
    place = {"part": hit.part + 1, "start": hit.start, "end": hit.end, "line": hit.line}
    step = None if hit.step is None else hit.step + 1
    error = {"traceback_of": hit.error} if hit.error else {}
    return {"run": hit.run, "step": step, "scope": hit.scope.value, **place, **error}


def _line_printer() -> Callable[[Sequence[FoundLine]], None]:
    """Return the function that prints found lines: with marked matches on a terminal, otherwise as text."""
    is_marked = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    return _print_marked if is_marked else _print_plain


def _print_plain(lines: Iterable[FoundLine]) -> None:
    texts = [f"{_place_of(line)}{line.quoted}{_error_of(line)}" for line in lines]
    # A block is tested once, instead of each of its lines.
    if not is_ordinary("".join(texts)):
        texts = [*map(visible_line, texts)]
    sys.stdout.write("".join([f"{text}\n" for text in texts]))


def _print_marked(lines: Iterable[FoundLine]) -> None:
    for found in lines:
        line, at, pieces = found.quoted, 0, [visible_line(_place_of(found))]
        for first, end in found.marks:
            pieces += [visible_line(line[at:first]), _BOLD, visible_line(line[first:end]), _PLAIN]
            at = end
        print("".join([*pieces, visible_line(line[at:] + _error_of(found))]), file=drawn_on(sys.stdout))


def _place_of(found: FoundLine) -> str:
    """Return the run, step and part of a found line, as they are printed before it."""
    step = found.first.step
    return f"{found.first.run}{'' if step is None else f':{step + 1}'}:{found.part}: "


def _error_of(found: FoundLine) -> str:
    """Return the error of the traceback that contains a found line, as it is printed after the line."""
    error = found.first.error
    return f"  ({error})" if error else ""


def _print_unread(problems: list[ListedRun], paths: Sequence[str], code: int) -> int:
    """Print which files were not searched, and return the exit code.

    Each file named in `paths` is reported. Of the files in folders, only the first few are, along with the
    number of all, because a folder of runs may contain many other files. These don't change the exit code,
    since the hits in the runs are valid all the same.
    """
    named = [item for item in problems if item.name in paths]
    others = [item for item in problems if item.name not in paths]
    code = print_problems(named, paths, code)
    print_problems(others[:_MOST_UNREAD], paths, code)
    if others:
        more = f"; the first {_MOST_UNREAD} are named" if len(others) > _MOST_UNREAD else ""
        print(f"gistpoint: {plural(len(others), 'file')} could not be searched{more}.", file=sys.stderr)
    return code


def _documents(
    paths: Iterable[str], problems: list[ListedRun], wants: Wants, where: str
) -> Iterator[RunDocument]:
    """Yield the runs to search: those that match `where` or, without it, those in files that `wants` accepts.

    Files that can't be read are added to `problems`.
    """
    if where:
        from gistpoint.tui.commands.run_list import found_runs

        yield from (open_run(found.name) for found in found_runs(paths, problems, where))
        return
    for listed in list_runs(paths, wants=wants, with_unread=True):
        if listed.header is None:
            problems.append(listed)
            continue
        try:
            yield open_run(listed.name, known=listed.format)
        except RunFileError as error:
            problems.append(ListedRun(listed.name, listed.size, None, str(error)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertRun(Request):
    """A request to write a run in another format."""

    recorded: str
    to: str
    where: str = ""
    output: str | None = None
    read_as: str = ""


def convert(request: ConvertRun) -> int:
    """Write a run in another format, to standard output or a file. Return 1 if it is doubtful or damaged.

    With a query, write every run that matches it to a file in a folder. Raises `UserError` if the file is the
    run itself.
    """
    read_files_as(request.read_as)
    exporter(request.to)
    if request.where:
        return _convert_all(request)
    return _convert_one(request, open_named(request.recorded))


def _convert_all(request: ConvertRun) -> int:
    """Write each run that matches a query to a separate file in the folder of the output.

    Raises `UserError` if no folder is named, or if it can't be made.
    """
    if request.output is None:
        raise UserError("Several runs are written to a folder.", hint="Name it with -o FOLDER.")
    folder = path_of(request.output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder} is not a folder: {error.strerror}.", hint="Name another one.") from error
    from gistpoint.tui.commands.run_list import found_runs

    problems: list[ListedRun] = []
    codes: list[int] = []
    for found in found_runs([request.recorded], problems, request.where):
        name = f"{len(codes) + 1:05}-{_UNSAFE.sub('_', found.name.rpartition('/')[2])[-80:]}"
        target = str(folder / f"{name}{_ENDINGS.get(request.to, '.txt')}")
        codes.append(_convert_one(replace(request, recorded=found.name, output=target), open_run(found.name)))
    print(f"gistpoint: {plural(len(codes), 'run')} written to {visible_line(str(folder))}.", file=sys.stderr)
    return print_problems(problems, [request.recorded], max(codes, default=NEGATIVE))


_UNSAFE = re.compile(r"[^\w.-]+")
_ENDINGS = {"atif": ".json", "chat": ".json", "markdown": ".md", "html": ".html", "cast": ".cast"}
"""The extensions of files, by format; all other formats have `.txt`."""


def _convert_one(request: ConvertRun, opened: RunDocument) -> int:
    """Write an open run. Return 1 if it is doubtful or damaged."""
    write = exporter(request.to)
    document = settled_document(opened)
    if request.to == "chat":
        _write_chat(document, request)
    elif request.to == "html":
        _write_html(document, request)
    else:
        _write_pieces(write(document), request)
    return max(warn_if_doubtful(document), _warn_if_damaged(document))


def _warn_if_damaged(document: RunDocument) -> int:
    """Return the exit code for the journal of an attempt, and warn if it is damaged."""
    if document.header.format != OWN_FORMAT or not document.warnings:
        return DONE
    for warning in document.warnings:
        print(f"gistpoint: {visible_line(warning)}", file=sys.stderr)
    return NEGATIVE


def _write_chat(document: RunDocument, request: ConvertRun) -> None:
    """Write a chat; report what it leaves out, and what was changed so that the API of OpenAI accepts it."""
    from gistpoint.sessions.exports.chat import ChatWriter, left_out

    if missing := left_out(document):
        hint = "html, markdown and atif contain them."
        print(f"gistpoint: The chat leaves out {visible_line(missing)}: {hint}", file=sys.stderr)
    writer = ChatWriter(document)
    _write_pieces(writer.pieces(), request)
    if changed := writer.sequence.words:
        print(f"gistpoint: To fit the rules of chat APIs: {visible_line(changed)}.", file=sys.stderr)


def _write_html(document: RunDocument, request: ConvertRun) -> None:
    """Write pages that contain all text; on standard output, one page, and report what it leaves out."""
    from gistpoint.sessions.exports.html.page import HtmlRunPage, PageOfRun, html_pages

    target = path_of(request.output or "/dev/stdout")
    if not is_stream(target):
        warn_unless_html(target)
        _write_html_pages([*html_pages(document, target)], target, request)
        return
    document.build()
    page = HtmlRunPage(document, PageOfRun(range(document.step_count)))
    _write_pieces(page.pieces(), request)
    texts, characters = page.left_out
    if texts:
        left_out = f"{plural(characters, 'character')} of {plural(texts, 'text')}"
        print(f"gistpoint: The page leaves out {left_out}; -o FILE writes all of it.", file=sys.stderr)


def _write_html_pages(pages: Sequence[tuple[Path, Iterator[str]]], target: Path, request: ConvertRun) -> None:
    """Write the pages of a run, and remove the pages of a longer run that were written here before.

    Raises `UserError` if a page would replace a file that is not a page of a run.
    """
    from gistpoint.sessions.exports.html.page import is_page_of, page_path

    for path, _ in pages:
        if path != target and path.exists() and not (path.is_file() and is_page_of(path, target)):
            raise UserError(
                f"A page of the run would replace {path}, which is another file.",
                hint="Move it away, or choose another name.",
            )
    for path, pieces in pages:
        _write_file(path, pieces, request)
    number = len(pages) + 1
    while (old := page_path(target, number)).is_file() and is_page_of(old, target):
        old.unlink()
        number += 1
    if len(pages) > 1:
        print(
            f"gistpoint: {plural(len(pages), 'page')} were written; {target} is the first.", file=sys.stderr
        )


def _write_pieces(pieces: Iterable[str], request: ConvertRun) -> None:
    """Write to the output of a request. Raises `UserError` if it is the run itself."""
    if request.output is None:
        sys.stdout.writelines(pieces)
    else:
        _write_file(path_of(request.output), pieces, request)


def _write_file(target: Path, pieces: Iterable[str], request: ConvertRun) -> None:
    """Write a file. Raises `UserError` if it is the run itself."""
    source, _ = split_name(request.recorded)
    if target.exists() and source.exists() and target.samefile(source):
        raise UserError(f"{target} is the run itself.", hint="Name another file to write.")
    is_named = target == path_of(request.output or "")
    write_whole(target, (piece.encode("utf-8", "backslashreplace") for piece in pieces), named=is_named)


_RUN = argument("RUN", RUN_HELP)
SEARCH = CliCommand(
    SearchRuns,
    search,
    {
        "pattern": argument("PATTERN", "a string, or with --regex a regular expression"),
        "paths": argument("PATH", "a file, a folder, an archive, FILE#ID or the id of an attempt"),
        "where": WHERE,
        "regex": option("PATTERN is a regular expression"),
        "scope": option("where to search; may be given several times (default: everywhere)"),
        "json": JSON,
        "read_as": READ_AS,
    },
    about=(
        "Prints every line with a match, with its run and step; as JSON, every match. Upper and lower"
        " case are distinguished only if the pattern has an upper-case letter."
    ),
)
CONVERT = CliCommand(
    ConvertRun,
    convert,
    {
        "recorded": _RUN,
        "where": replace(
            WHERE, help=f"{WHERE.help}; RUN may then be a folder, and -o names the folder to write to"
        ),
        "to": option(f"{', '.join(NAMES[:-1])} or {NAMES[-1]}", metavar="FORMAT"),
        "output": option("file to write (default: standard output)", "-o", "--output", metavar="FILE"),
        "read_as": READ_AS,
    },
)
