"""Finds the lines of Python files that match a regular expression, as grep does, in bounded time."""

from __future__ import annotations

import io
import re
import time
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from gistpoint.core.tools.declaration import (
    Activity,
    Argument,
    ArgumentKind,
    Group,
    RefusalError,
    Revealed,
    Tool,
    ToolContext,
    ToolOutput,
)
from gistpoint.core.trees import SourceTree

if TYPE_CHECKING:
    from regex import Pattern


@dataclass(frozen=True, slots=True)
class Corpus:
    """Pairs of path and text, sorted by path, with LF newlines, and the paths of undecodable files."""

    texts: tuple[tuple[str, str], ...]
    undecodable: tuple[str, ...]


_known: WeakKeyDictionary[SourceTree, Corpus] = WeakKeyDictionary()
_lock = Lock()


def corpus_of(tree: SourceTree) -> Corpus:
    """Return the corpus of a tree, cached between searches."""
    with _lock:
        corpus = _known.get(tree)
    if corpus is None:
        corpus = _new_corpus(tree)
        with _lock:
            _known[tree] = corpus
    return corpus


def _new_corpus(tree: SourceTree) -> Corpus:
    texts, undecodable = [], []
    for path, data in tree.read_all(".py"):
        text = _decoded(data)
        if text is None:
            undecodable.append(path)
        else:
            texts.append((path, text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text))
    return Corpus(tuple(texts), tuple(undecodable))


def _decoded(data: bytes) -> str | None:
    if b"\0" in data:
        return None
    encoding = "utf-8-sig"
    try:
        if b"coding" in b"".join(data[:1024].split(b"\n", 2)[:2]):
            encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        return data.decode(encoding)
    except (SyntaxError, UnicodeError, LookupError):
        return None


_COUNT = re.compile(r"\{\d*,?\d*\}")
_GROUP = re.compile(r"\((?:\?:|\?P<\w+>|(?!\?))")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\[\]\\])*\]", re.DOTALL)
_SIMPLE_ESCAPES = frozenset("sSwWdDbBAZtnrfv")


def required_literals(pattern: str) -> tuple[str, ...]:
    """Return the strings of at least two characters that every match of `pattern` contains, longest first.

    Only text outside of groups is considered. The result is empty if no such string is known, as for a
    pattern with alternatives or flags outside groups.
    """
    runs, run, depth, at = [""], "", 0, 0
    while at < len(pattern):
        kept, text, size, step = _token_at(pattern, at)
        if size == 0 or (text == "|" and depth == 0):
            return ()
        depth += step
        if kept and depth == 0:
            run += text
        else:
            if text in ("*", "?", "{") and depth == 0:
                run = run[:-1]
            runs.append(run)
            run = ""
        at += size
    return tuple(
        sorted({text for text in (*runs, run) if len(text) > 1}, key=lambda text: (-len(text), text))
    )


def _token_at(pattern: str, at: int) -> tuple[bool, str, int, int]:
    """Return whether the token at `at` is literal, its text, its size, and how it changes the nesting depth.

    The size is 0 if it is unknown.
    """
    char = pattern[at]
    if char == "\\":
        following = pattern[at + 1 : at + 2]
        if following and not following.isalnum() and following.isascii() and following != "_":
            return True, following, 2, 0
        return False, "", 2 if following in _SIMPLE_ESCAPES and following else 0, 0
    if char == "[":
        found = _CLASS.match(pattern, at)
        return False, "", len(found.group()) if found else 0, 0
    if char == "(":
        found = _GROUP.match(pattern, at)
        return False, "", len(found.group()) if found else 0, 1
    if char == ")":
        return False, "", 1, -1
    if char == "{":
        found = _COUNT.match(pattern, at)
        return False, char, len(found.group()) if found else 0, 0
    return char not in "|*?+.^$}", char, 1, 0


MAX_PATTERN_CHARACTERS = 1_000
MAX_REPEATED_CHARACTERS = 100_000
"""The maximum length of a pattern times its repetition counts, which `regex` expands without any limit."""
_LITERAL = re.compile(r"[^\\.^$*+?{}\[\]|()\n]+")
_LEAST_REQUIRED = 3
_LONG_LINE = 1_000
"""The length of a line above which releasing the interpreter's lock costs less than the search."""
_COUNTS = re.compile(r"\{(\d*)(?:,(\d*))?\}")
_ONLY_BY_LINE = re.compile(r"\\[AZzGKXRN]|\(\?(?!:|P<|i\))|[*+?}]\+|\{[a-zA-Z]|\\n|\\r")


class SearchPattern:
    """A pattern in the dialect of the `regex` package, matched within single lines for at most `seconds`.

    Raises `RefusalError` for a pattern that is empty, invalid or too large.
    """

    def __init__(self, pattern: str, seconds: float) -> None:
        self.seconds = seconds
        self.literal = pattern if _LITERAL.fullmatch(pattern) else None
        self.required = required_literals(pattern)
        self.by_line = bool(_ONLY_BY_LINE.search(pattern))
        self.compiled: Pattern[str] = _compiled(pattern)
        self._deadline = 0.0

    def start(self) -> None:
        """Start the clock that all searches of this pattern share."""
        self._deadline = time.monotonic() + self.seconds

    def lines(self, text: str) -> Iterator[int]:
        """Yield the offset of each matching line's start in `text`.

        Raises `TimeoutError` once `seconds` have passed since `start`.
        """
        if self.literal is not None:
            return self._literal_lines(text, self.literal)
        if self.required and len(self.required[0]) >= _LEAST_REQUIRED:
            return self._lines_with(text, *self.required)
        return self._lines_one_by_one(text, 0, len(text)) if self.by_line else self._lines_of_whole(text)

    def _literal_lines(self, text: str, literal: str) -> Iterator[int]:
        at = text.find(literal)
        while at >= 0:
            yield text.rfind("\n", 0, at) + 1
            end = text.find("\n", at)
            at = text.find(literal, end) if end >= 0 else -1

    def _lines_with(self, text: str, first: str, *others: str) -> Iterator[int]:
        for start in self._literal_lines(text, first):
            line = text[start : _line_end(text, start)]
            if others and not all(other in line for other in others):
                continue
            if self.compiled.search(line, timeout=self._seconds_left(), concurrent=len(line) > _LONG_LINE):
                yield start

    def _lines_of_whole(self, text: str) -> Iterator[int]:
        at, size = 0, len(text)
        while at <= size:
            match = self.compiled.search(text, at, timeout=self._seconds_left(), concurrent=True)
            if match is None:
                return
            start = text.rfind("\n", 0, match.start()) + 1
            end = _line_end(text, match.start())
            if match.end() <= end:
                if start < size:
                    yield start
                at = end + 1
            else:
                last = _line_end(text, match.end() - 1)
                yield from self._lines_one_by_one(text, start, last + 1)
                at = last + 1

    def _lines_one_by_one(self, text: str, start: int, stop: int) -> Iterator[int]:
        while start < stop:
            end = _line_end(text, start)
            if self.compiled.search(text[start:end], timeout=self._seconds_left(), concurrent=True):
                yield start
            start = end + 1

    def _seconds_left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _repeated(pattern: str) -> int:
    size = len(pattern)
    for low, high in _COUNTS.findall(pattern):
        if len(low) > 9 or len(high) > 9:
            return MAX_REPEATED_CHARACTERS + 1
        size *= max(int(low or 1), int(high or 1), 1)
    return size


def _compiled(pattern: str) -> Pattern[str]:
    import regex

    if not pattern:
        raise RefusalError("The pattern is empty.")
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise RefusalError(
            f"The pattern has {len(pattern)} characters; at most {MAX_PATTERN_CHARACTERS} are taken."
        )
    if _repeated(pattern) > MAX_REPEATED_CHARACTERS:
        raise RefusalError(
            "The pattern repeats too much in braces; smaller counts, or fewer of them, will do."
        )
    fault = pattern_fault(pattern)
    if fault:
        raise RefusalError(
            f"The pattern is not a valid regular expression ({fault}). To search for it as text:"
            f" {as_text(pattern)}"
        )
    return regex.compile(pattern, regex.MULTILINE)


def pattern_fault(pattern: str) -> str:
    """Return the fault of a pattern; empty if it is valid, or too large to be parsed."""
    import regex

    if len(pattern) > MAX_PATTERN_CHARACTERS or _repeated(pattern) > MAX_REPEATED_CHARACTERS:
        return ""
    try:
        regex.compile(pattern, regex.MULTILINE)
    except (regex.error, ValueError, OverflowError, RecursionError, MemoryError) as error:
        return str(error) or type(error).__name__
    return ""


def as_text(pattern: str) -> str:
    """Return a regular expression that matches a string literally."""
    import regex

    return regex.escape(pattern)


def _run(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    limits = context.limits
    pattern = SearchPattern(arguments["pattern"], limits.search_seconds)
    corpus = corpus_of(context.tree)
    pattern.start()
    blocks: list[str] = []
    paths: list[str] = []
    matches, more = 0, False
    try:
        for path, text in corpus.texts:
            starts: list[int] = []
            for start in pattern.lines(text):
                if matches == limits.search_matches:
                    more = True
                    break
                starts.append(start)
                matches += 1
            if starts:
                paths.append(path)
                blocks.append(
                    _block(path, text, starts, limits.search_context_lines, limits.search_line_characters)
                )
            if more:
                break
    except TimeoutError:
        raise RefusalError(
            f"The search took longer than {limits.search_seconds:g} s and was stopped. A simpler pattern,"
            " with fewer nested repetitions, will be faster."
        ) from None
    except MemoryError:
        raise RefusalError(
            "The search needed too much memory and was stopped. A simpler pattern will do."
        ) from None
    text = "\n".join([_head(matches, len(paths), more), *blocks, *_skipped(corpus.undecodable)])
    return ToolOutput(text, revealed=Revealed(entries=tuple((path, "file") for path in paths)))


def _head(matches: int, files: int, more: bool) -> str:
    if more:
        return f"The first {matches} matching lines, in {files} files; there are more."
    lines = "line" if matches == 1 else "lines"
    return f"{matches} matching {lines} in {files} {'file' if files == 1 else 'files'}."


def _skipped(undecodable: tuple[str, ...]) -> list[str]:
    if not undecodable:
        return []
    return [f"Not searched, for they are no text in their declared encoding: {', '.join(undecodable[:10])}"]


def _block(path: str, text: str, starts: list[int], around: int, width: int) -> str:
    """Return the path and the matching lines, each cut to `width`, with `around` lines of context."""
    rows = [path]
    shown, number, at = 0, 1, 0
    hits: list[int] = []
    for start in starts:
        number += text.count("\n", at, start)
        at = start
        hits.append(number)
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    matching = set(hits)
    for hit in hits:
        first, last = max(hit - around, shown + 1), min(hit + around, len(lines))
        if first > shown + 1 and shown:
            rows.append("  --")
        for n in range(first, last + 1):
            line = lines[n - 1]
            cut = f"{line[:width]} [... {len(line) - width} characters]" if len(line) > width else line
            rows.append(f"{n:>6}{':' if n in matching else '-'} {cut}")
        shown = max(shown, last)
    return "\n".join(rows)


SEARCH_CODE = Tool(
    name="search_code",
    description="Search for a text or regex pattern across all .py files.",
    arguments=(
        Argument("pattern", ArgumentKind.PATTERN, "Regular expression, matched within single lines."),
    ),
    group=Group.INFO,
    activity=Activity.SEARCH,
    step="search",
    run=_run,
)
