"""Lists the text that people read, and draws sentences from it by seed, for a review of the language.

python tests/studies/texts_of_people.py --draw 100 --seed 20261201
python tests/studies/texts_of_people.py --list tui/screens/study

Texts are string literals of the program that are sentences or labels (no docstrings, stored names or code), pages
of help, templates, guides, README, briefs, prompts and rules.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("tui", "core", "sandbox", "sessions")
PAGES = (
    "README.md",
    "docs/guide/[!k]*.md",
    "tui/help/*.md",
    "core/tasks/briefs/*.md",
    "core/agents/prompts/*.md",
    "core/kinds/*/prompts/*.md",
    "core/assist/templates/*.md",
    "core/study/templates/texts/*.md",
    "core/study/*.md",
)
FROZEN = re.compile(r"-1\.md$|gist(?:-\w+)*-2\.md$|/bank/|assist-1|breakpoint-appendix")
"""The texts that must never change, because tasks, attempts or studies were made with them."""
_WORD = re.compile(r"[A-Za-z][a-z']+")
_STOPS = re.compile(r"(?<=[.!?]) +(?=[A-Z`*\"(])")
_NOT_TEXT = re.compile(r"^[\w./:*@{}%#=,;\[\]()<>|+\\^$?!&~'\"-]*$")
_TECHNICAL = {
    *(
        "formats",
        "payload",
        "inside",
        "corruption",
        "suspicion",
        "verifier",
        "attacks",
        "library",
        "migrations",
    ),
    *("words.py", "searching.py", "requests.py", "syntax.py", "sealing.py", "meanings.py"),
}
"""The folders and modules whose literals are code or terms of other programs."""
_OF_SOLVERS = {
    *("browsing.py", "replacing.py", "search_code.py", "tools.py", "transcripts.py", "verdict.py"),
    *(
        "failures.py",
        "judge.py",
        "rates.py",
        "score.py",
        "shell.py",
        "snippet.py",
        "splice.py",
        "testruns.py",
    ),
    *("source_text.py", "malformed.py", "index.py", "parsing.py", "searcher.py"),
}
"""Modules whose texts are part of tools and their answers, which are compared byte by byte when replayed."""
_CODE = re.compile(
    r"\b(SELECT|INSERT|UPDATE|DELETE|GRANT) |[{;] \w[\w-]*: |</?\w+[ >]|\bimport \w+( |$)|^def |^bold |[$]text-|\\\["
    r"|^\W*[\w.]+\(|pytest_collection|:\w+ AS |^`[\w.]+`$|^[\w.]+: [\w.]+$|/\{…\}\w|[#.]\w+-\w+ "
)
"""Patterns that show that a literal is code: SQL, CSS, HTML, Python, a style or a regular expression."""


@dataclass(frozen=True, slots=True)
class Text:
    """A sentence with its place."""

    place: str
    words: str


def literals(path: Path) -> Iterator[Text]:
    """Yield the sentences in the string literals of a module, with fields as `{…}`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            skipped.update(id(part) for part in ast.walk(node) if part is not node)
        if isinstance(node, ast.Call) and _is_technical_call(node):
            skipped.update(id(part) for argument in node.args for part in ast.walk(argument))
        if isinstance(node, ast.Raise) and _raises_internal(node):
            skipped.update(id(part) for part in ast.walk(node))
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        text = _text_of(node)
        if text and is_prose(text):
            yield Text(f"{path.relative_to(ROOT)}:{node.lineno}", " ".join(text.split()))  # type: ignore[attr-defined]


def _is_technical_call(node: ast.Call) -> bool:
    """Whether a call's arguments are not text for people, but patterns, separators, names or types."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in {"compile", "cast", "getattr", "TypeVar", "namedtuple", "match", "search", "sub", "split"}


def _raises_internal(node: ast.Raise) -> bool:
    """Whether an error is a programming error (such as `TypeError`), whose message no user reads."""
    error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return getattr(error, "id", "") in {"TypeError", "NotImplementedError", "AssertionError", "KeyError"}


def _text_of(node: ast.AST) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(part.value if isinstance(part, ast.Constant) else "{…}" for part in parts)
    return ""


def is_prose(text: str) -> bool:
    """Whether a literal is prose: at least three words, which make up more than half of it, and no code."""
    if _NOT_TEXT.match(text) and " " not in text.strip():
        return False
    words = _WORD.findall(text)
    if _CODE.search(text):
        return False
    return len(words) >= 3 and len(" ".join(words)) > len(text) * 0.5


def of_pages() -> Iterator[Text]:
    """Yield the sentences of pages, without code blocks and frozen texts."""
    for pattern in PAGES:
        for path in sorted(ROOT.glob(pattern)):
            place = str(path.relative_to(ROOT))
            if not FROZEN.search(place):
                yield from _of_page(path, place)


def _of_page(path: Path, place: str) -> Iterator[Text]:
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    blocks = re.split(r"\n\n|\n(?=[-#|] |\d+\. |\[)", text)
    for block in blocks:
        for sentence in _STOPS.split(" ".join(block.split())):
            for cell in sentence.split(" | ") if "|" in sentence else [sentence]:
                if is_prose(cell):
                    yield Text(place, cell.strip("| "))


def of_program(below: str = "") -> Iterator[Text]:
    """Yield the texts in the program's modules whose path begins with `below`.

    Modules with technical literals, and those whose texts are for solvers, are left out.
    """
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            place = path.relative_to(ROOT)
            if str(place).startswith(below) and not (_TECHNICAL | _OF_SOLVERS) & set(place.parts):
                yield from literals(path)


def sentences(below: str = "") -> list[Text]:
    """Return the sentences of the modules below a path, each once; without a path, also those of pages."""
    found = list(of_program(below))
    if not below:
        found += of_pages()
    once = dict[str, Text]()
    for text in found:
        for sentence in _STOPS.split(text.words):
            if is_prose(sentence):
                once.setdefault(sentence, Text(text.place, sentence))
    return list(once.values())


def main() -> None:
    """Print the texts that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", metavar="PREFIX", help="all texts of the modules below PREFIX")
    parser.add_argument("--draw", type=int, default=100, help="how many sentences")
    parser.add_argument("--seed", type=int, default=20261201)
    given = parser.parse_args()
    if given.list is not None:
        for text in of_program(given.list):
            print(f"{text.place}\t{text.words}")
        return
    all_of_them = sentences()
    drawn = random.Random(given.seed).sample(all_of_them, min(given.draw, len(all_of_them)))
    print(f"{len(all_of_them)} sentences; {len(drawn)} drawn with seed {given.seed}", file=sys.stderr)
    for number, text in enumerate(drawn, 1):
        print(f"{number}\t{text.place}\t{text.words}")


if __name__ == "__main__":
    main()
