"""Contradictions between changed code and its names, docstring, comments, annotations and messages."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise

from gistpoint.core.code.nodes import inside, only
from gistpoint.core.corruption.appearance.changes import Change, Version
from gistpoint.core.corruption.naming import of_one_stem, words
from gistpoint.core.corruption.shapes import NAMED, is_none, name_of, targets_of

_PROSE_WORD = re.compile(r"[^\W\d_]{3,}|\d+")
_SMALL_WORDS = (
    "the and for are with that this from not have has was were will can may its any all but one only when"
    " then than into out use used self return returns none true false def class"
)
_EMPTY = frozenset(_SMALL_WORDS.split())
"""Words that reveal nothing about what code does."""
_KINDS: Mapping[str, tuple[type[ast.expr], ...]] = {
    "bool": (ast.List, ast.Dict, ast.Tuple, ast.JoinedStr, ast.BinOp),
    "str": (ast.List, ast.Dict, ast.Tuple, ast.Compare, ast.Set),
    "int": (ast.List, ast.Dict, ast.Tuple, ast.Compare, ast.JoinedStr, ast.Set),
    "list": (ast.Dict, ast.Tuple, ast.Compare, ast.JoinedStr),
    "dict": (ast.List, ast.Tuple, ast.Compare, ast.JoinedStr),
    "tuple": (ast.List, ast.Dict, ast.Compare, ast.JoinedStr),
}
"""The types of expressions that a function can't return, by the annotation of its result."""
_MAY_BE_NONE = re.compile(r"None|Optional|Any|Iterator|Generator")
_CONSTANTS: Mapping[str, tuple[type, ...]] = {
    "bool": (bool,),
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bytes": (bytes,),
}


@dataclass(frozen=True)
class SurroundingProse:
    """The prose about a function apart from its code: names, docstring, and comments by line."""

    qualname: str
    version: Version

    @cached_property
    def names(self) -> frozenset[str]:
        """The words of the function's name, and of the functions and classes around it."""
        return frozenset(
            word for part in self.qualname.split(".") for word in words(part) if word not in _EMPTY
        )

    @cached_property
    def docstring(self) -> frozenset[str]:
        """The words of the docstring."""
        return prose_words(self.version.facts.docstring or "")

    @cached_property
    def comments(self) -> dict[int, frozenset[str]]:
        """The words of each comment, by its line."""
        return dict(_comments(self.version.facts.text))

    @cached_property
    def mentioned(self) -> frozenset[str]:
        """All words of names, docstring, comments and signature."""
        return self.docstring.union(
            self.names, prose_words(self.version.facts.header[1]), *self.comments.values()
        )

    @cached_property
    def number_of_words(self) -> int:
        """The number of different meaningful words in the docstring, plus those in each comment."""
        return len(self.docstring) + sum(map(len, self.comments.values()))


def prose_words(text: str) -> frozenset[str]:
    """Return the meaningful words of text in lower case, including the words inside identifiers."""
    found = (part for word in _PROSE_WORD.findall(text) for part in (word.lower(), *words(word)))
    return frozenset(word for word in found if word not in _EMPTY)


def _comments(text: str) -> Iterator[tuple[int, frozenset[str]]]:
    try:
        for item in tokenize.generate_tokens(io.StringIO(text, newline="\n").readline):
            if item.type == tokenize.COMMENT:
                yield item.start[0], prose_words(item.string)
    except (tokenize.TokenError, SyntaxError):
        return


def mentions_of(tokens: Counter[str], about: Set[str]) -> int:
    """Return how many of the tokens' words occur in `about`; words with the same stem count as equal."""
    return sum(of_one_stem([word], about) for word in _words(tokens))


def _words(tokens: Iterable[str]) -> set[str]:
    # Layout tokens, such as `<end>`, and words of one or two letters carry no meaning.
    written = (token for token in tokens if not token.startswith("<"))
    found = chain.from_iterable(words(token) or (token,) for token in written)
    meaningful = {word for word in found if len(word) > 2 or word.isdigit()}
    return meaningful - _EMPTY


def contradiction(change: Change, about: Set[str]) -> float:
    """Return how many more words of `about` the code lost than it gained; 0 if `about` is empty."""
    if not about:
        return 0.0
    return float(mentions_of(change.lost, about) - mentions_of(change.added, about))


def comments_in_reach(change: Change, around: SurroundingProse) -> frozenset[str]:
    """Return the words of the comments near the changed lines and in the nested blocks that contain them."""
    places = change.gone or frozenset(hunk.before.start for hunk in change.hunks)
    reached = set(range(min(places) - 2, max(places) + 2))
    for owner, block in change.before.blocks:
        start, end = block[0].lineno, block[-1].end_lineno or block[-1].lineno
        is_changed = not places.isdisjoint(range(start, end + 1))
        if is_changed and owner is not change.before.facts.node:
            reached.update(range(start - 2, end + 1))
    near = (found for line, found in around.comments.items() if line in reached)
    return frozenset[str]().union(*near)


def against_annotation(change: Change) -> float:
    """Return 1 if a `return` at the change has a value that the annotation of the result excludes, else 0."""
    node = change.after.facts.node
    kind = ast.unparse(node.returns) if node.returns is not None else ""
    if not kind:
        return 0.0
    # A value that the annotation excludes is noticed without reading the rest of the function.
    new = only(ast.Return, change.after.statements(change.seen))
    return float(any(_excluded(kind, item.value) for item in new))


def _excluded(kind: str, value: ast.expr | None) -> bool:
    if value is None or is_none(value):
        return kind != "object" and not _MAY_BE_NONE.search(kind)
    if kind == "None":
        return True
    plain = kind.partition("[")[0].lower()
    if isinstance(value, ast.Constant):
        return not isinstance(value.value, _CONSTANTS.get(plain, object))
    return isinstance(value, _KINDS.get(plain, ()))


def agreement_lost(change: Change) -> float:
    """Return how many fewer pairs of names match in the changed lines than before; at least 0.

    A pair is the two sides of an assignment, a keyword argument or a comparison.
    """
    before = _agreement(change.before, change.gone)
    after = _agreement(change.after, change.new)
    return float(max(before - after, 0))


def _agreement(version: Version, lines: frozenset[int]) -> int:
    nodes = (node for node in version.facts.nodes if getattr(node, "lineno", 0) in lines)
    return sum(of_one_stem(one, two) for node in nodes for one, two in _words_of_sides(node))


def _words_of_sides(node: ast.AST) -> Iterator[tuple[Iterable[str], Iterable[str]]]:
    """Yield the words of both sides of an assignment, a keyword argument or a comparison."""
    match node:
        case ast.keyword(arg=str(name), value=value):
            yield words(name), _named(value)
        case ast.Assign(value=value) | ast.AugAssign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            yield _named(*targets_of(node)), _named(value)
        case ast.Compare(left=left, comparators=others):
            yield from pairwise(map(_named, (left, *others)))


def _named(*nodes: ast.AST) -> set[str]:
    found = chain.from_iterable(words(name_of(item)) for item in inside(NAMED, *nodes))
    return {word for word in found if len(word) > 1} - _EMPTY


def message_contradicted(change: Change) -> float:
    """Return how many of the conditions that error messages describe have changed."""
    before, after = change.before.facts.explained, change.after.facts.explained
    return float((before - after).total())
