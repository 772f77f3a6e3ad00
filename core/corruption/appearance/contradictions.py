"""Contradictions between changed code and what is said around it: names, docstring, comments, annotations, messages."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

from gistpoint.core.corruption.appearance.changes import Change, Version
from gistpoint.core.corruption.naming import of_one_stem, words

_SAID = re.compile(r"[^\W\d_]{3,}|\d+")
_EMPTY = frozenset(
    {
        "the", "and", "for", "are", "with", "that", "this", "from", "not", "have", "has", "was", "were", "will", "can",
        "may", "its", "any", "all", "but", "one", "only", "when", "then", "than", "into", "out", "use", "used", "self",
        "return", "returns", "none", "true", "false", "def", "class",
    }
)  # fmt: skip
"""Words that say nothing of what code does."""
_KINDS: Mapping[str, tuple[type[ast.expr], ...]] = {
    "bool": (ast.List, ast.Dict, ast.Tuple, ast.JoinedStr, ast.BinOp),
    "str": (ast.List, ast.Dict, ast.Tuple, ast.Compare, ast.Set),
    "int": (ast.List, ast.Dict, ast.Tuple, ast.Compare, ast.JoinedStr, ast.Set),
    "list": (ast.Dict, ast.Tuple, ast.Compare, ast.JoinedStr),
    "dict": (ast.List, ast.Tuple, ast.Compare, ast.JoinedStr),
    "tuple": (ast.List, ast.Dict, ast.Compare, ast.JoinedStr),
}
"""Expressions that can't be the value of a function with such an annotation."""
_CONSTANTS = {"bool": (bool,), "str": (str,), "int": (int,), "float": (int, float), "bytes": (bytes,)}


@dataclass(frozen=True)
class SaidAround:
    """What is said about a function, besides its code: its names, its docstring and its comments by line."""

    qualname: str
    version: Version

    @cached_property
    def names(self) -> frozenset[str]:
        """The words of the function's name, and of the functions and classes around it."""
        return frozenset(word for part in self.qualname.split(".") for word in words(part) if word not in _EMPTY)

    @cached_property
    def docstring(self) -> frozenset[str]:
        """The words of the docstring."""
        return said(self.version.facts.docstring or "")

    @cached_property
    def comments(self) -> dict[int, frozenset[str]]:
        """The words of each comment, by its line."""
        return dict(_comments(self.version.facts.text))

    @cached_property
    def spoken(self) -> frozenset[str]:
        """All words of names, docstring, comments and signature."""
        return self.docstring.union(self.names, said(self.version.facts.header[1]), *self.comments.values())

    @cached_property
    def number_of_words(self) -> int:
        """How much is said in docstring and comments."""
        return len(self.docstring) + sum(map(len, self.comments.values()))


def said(text: str) -> frozenset[str]:
    """Return the words of some prose in lower case, parts of identifiers included, without those that say nothing."""
    found = (part for word in _SAID.findall(text) for part in (word.lower(), *words(word)))
    return frozenset(word for word in found if word not in _EMPTY)


def _comments(text: str) -> Iterator[tuple[int, frozenset[str]]]:
    try:
        for item in tokenize.generate_tokens(io.StringIO(text, newline="\n").readline):
            if item.type == tokenize.COMMENT:
                yield item.start[0], said(item.string)
    except (tokenize.TokenError, SyntaxError):
        return


def spoken_of(tokens: Counter[str], about: Set[str]) -> int:
    """Return how many of the tokens' words occur in `about`, by stem."""
    return sum(of_one_stem([word], about) for word in _words(tokens))


def _words(tokens: Iterable[str]) -> set[str]:
    found = (word for token in tokens if token[0] != "<" for word in (words(token) or (token,)))
    return {word for word in found if (len(word) > 2 or word.isdigit()) and word not in _EMPTY}


def contradiction(change: Change, about: Set[str]) -> float:
    """Return how many more words of `about` the code lost than it gained."""
    return float(spoken_of(change.lost, about) - spoken_of(change.added, about)) if about else 0.0


def comments_in_reach(change: Change, around: SaidAround) -> frozenset[str]:
    """Return the words of the comments in the blocks around the change, and at its lines."""
    near: set[str] = set()
    places = change.gone or frozenset(hunk.before.start for hunk in change.hunks)
    spans = [(min(places) - 2, max(places) + 1)]
    for owner, block in change.before.blocks:
        start, end = block[0].lineno, block[-1].end_lineno or block[-1].lineno
        if owner is not change.before.facts.node and any(start <= line <= end for line in places):
            spans.append((start - 2, end))
    for line, found in around.comments.items():
        if any(start <= line <= end for start, end in spans):
            near |= found
    return frozenset(near)


def against_annotation(change: Change) -> float:
    """Return 1 if a new `return` gives what the annotation of the result excludes, else 0."""
    node = change.after.facts.node
    kind = ast.unparse(node.returns) if node.returns is not None else ""
    if not kind:
        return 0.0
    new = [item for item in change.after.statements(change.seen) if isinstance(item, ast.Return)]
    return float(any(_excluded(kind, item.value) for item in new))


def _excluded(kind: str, value: ast.expr | None) -> bool:
    if value is None or (isinstance(value, ast.Constant) and value.value is None):
        return kind not in ("None", "Any", "object") and not re.search(r"None|Optional|Any|Iterator|Generator", kind)
    if kind == "None":
        return True
    plain = kind.partition("[")[0].lower()
    if isinstance(value, ast.Constant):
        return plain in _CONSTANTS and not isinstance(value.value, _CONSTANTS[plain])
    return isinstance(value, _KINDS.get(plain, ()))


def agreement_lost(change: Change) -> float:
    """Return how many of the changed assignments and keywords no longer name what they hold, as `height = width`."""
    before = _agreement(change.before, change.gone)
    after = _agreement(change.after, change.new)
    return float(max(before - after, 0))


def _agreement(version: Version, lines: frozenset[int]) -> int:
    found = 0
    for node in version.facts.nodes:
        if getattr(node, "lineno", 0) not in lines:
            continue
        if isinstance(node, ast.keyword) and node.arg:
            found += of_one_stem(words(node.arg), _named(node.value))
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found += of_one_stem({word for target in targets for word in _named(target)}, _named(node.value))
        elif isinstance(node, ast.Compare):
            pairs = zip([node.left, *node.comparators], node.comparators, strict=False)
            found += sum(of_one_stem(_named(one), _named(two)) for one, two in pairs)
    return found


def _named(node: ast.AST) -> set[str]:
    names = (item.id if isinstance(item, ast.Name) else getattr(item, "attr", "") for item in ast.walk(node))
    return {word for name in names for word in words(str(name)) if len(word) > 1 and word not in _EMPTY}


def message_contradicted(change: Change) -> float:
    """Return how many conditions that lead to an error with a message are changed: the message tells what they were."""
    before, after = change.before.facts.explained, change.after.facts.explained
    return float((before - after).total())
