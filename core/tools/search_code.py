"""`search_code`: the lines of all Python files that match a regular expression."""

from __future__ import annotations

from collections.abc import Mapping

from gistpoint.core.tools.corpus import corpus_of
from gistpoint.core.tools.declaration import (
    Activity,
    Argument,
    Group,
    Kind,
    RefusalError,
    Revealed,
    Tool,
    ToolContext,
    ToolOutput,
)
from gistpoint.core.tools.search import LinePattern


def _run(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    limits = context.limits
    pattern = LinePattern(arguments["pattern"], limits.search_seconds)
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
                blocks.append(_block(path, text, starts, limits.search_context_lines, limits.search_line_characters))
            if more:
                break
    except TimeoutError:
        raise RefusalError(
            f"The search took longer than {limits.search_seconds:g} s and was stopped. A simpler pattern, with fewer "
            "nested repetitions, will be faster."
        ) from None
    except MemoryError:
        raise RefusalError("The search needed too much memory and was stopped. A simpler pattern will do.") from None
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
    """Return the matching lines with `around` lines of context; neighbouring contexts are joined."""
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
    arguments=(Argument("pattern", Kind.PATTERN, "Regular expression, matched within single lines."),),
    group=Group.INFO,
    activity=Activity.SEARCH,
    run=_run,
)
