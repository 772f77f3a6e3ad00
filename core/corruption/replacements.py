"""A corrupted function from code that somebody wrote, and the clues that such code can leave."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Iterator

from gistpoint.core.code.compare import same_tree
from gistpoint.core.code.errors import CodeError
from gistpoint.core.code.index import index_source
from gistpoint.core.code.names import FunctionRef
from gistpoint.core.code.snippet import read_snippet
from gistpoint.core.code.splice import replace_definition
from gistpoint.core.tasks.model import Target
from gistpoint.core.trees import SourceTree


def replaced_target(tree: SourceTree, ref: FunctionRef, code: str) -> Target:
    """Return the target whose corrupted text is `code` as it stands in the file, decorators of the file included.

    Raises `CodeError` for code that is not one definition of that name.
    """
    index = index_source(ref.path, tree.read(ref.path))
    definition = index.get(ref.qualname)
    data = replace_definition(index, definition, code)
    corrupted = index_source(ref.path, data).get(ref.qualname).dedented
    return Target(ref.path, ref.qualname, definition.dedented, corrupted)


def same_signature(target: Target) -> bool:
    """Whether name, parameters, annotations and defaults are those of the original."""
    headers = []
    for text in (target.original, target.corrupted):
        node = read_snippet(text).node
        node.body, node.decorator_list = [ast.Pass()], []
        headers.append(node)
    return same_tree(headers[0], headers[1])


def new_comments(target: Target) -> tuple[str, ...]:
    """Return the comments of the corrupted text that the original lacks."""
    added = Counter(_comments(target.corrupted)) - Counter(_comments(target.original))
    return tuple(added.elements())


def new_strings(target: Target) -> tuple[str, ...]:
    """Return the string literals of the corrupted text that the original lacks, docstrings aside."""
    known = set(_strings(target.original))
    return tuple(dict.fromkeys(text for text in _strings(target.corrupted) if text not in known))


def same_docstring(target: Target) -> bool:
    """Whether the docstring is the original's."""
    texts = [read_snippet(text).definition.docstring_text for text in (target.original, target.corrupted)]
    return texts[0] == texts[1]


def clue_of(target: Target) -> str:
    """Return in a sentence what in the corrupted text points to the change; empty where nothing does."""
    if not same_signature(target):
        return "The function definition was changed: copy its name, parameters and annotations over as they are."
    if not same_docstring(target):
        return "The docstring was changed: copy it over as it is."
    if comments := new_comments(target):
        return f"The comment {comments[0][:100]!r} is new: no comment may be added or reworded."
    if strings := new_strings(target):
        return f"The string {strings[0][:100]!r} is new: it can be found by searching the code."
    return ""


def _comments(text: str) -> Iterator[str]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(text + "\n").readline):
            if token.type == tokenize.COMMENT:
                yield " ".join(token.string.split())
    except (tokenize.TokenError, IndentationError) as error:
        raise CodeError(f"The code can't be read: {error}.") from error


def _strings(text: str) -> Iterator[str]:
    node = read_snippet(text).node
    if ast.get_docstring(node, clean=False) is not None:
        node.body = node.body[1:]
    for item in ast.walk(node):
        if isinstance(item, ast.Constant) and isinstance(item.value, str):
            yield item.value
        elif isinstance(item, ast.Constant) and isinstance(item.value, bytes):
            yield repr(item.value)
