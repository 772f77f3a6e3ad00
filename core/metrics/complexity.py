"""Complexity measures of single functions, from their syntax trees."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate

from gistpoint.core.code.nodes import only
from gistpoint.core.code.parsing import parse
from gistpoint.core.metrics.halstead import measure_halstead

Definition = ast.FunctionDef | ast.AsyncFunctionDef

_CONDITIONALS = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler)
_BLOCKS = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.Try,
    ast.TryStar,
    ast.With,
    ast.AsyncWith,
    ast.Match,
)


@dataclass(frozen=True, slots=True)
class Complexity:
    """The complexity measures of one function.

    `code_lines` counts from the `def` to the end without decorators, blank lines, comments and docstrings.
    `cyclomatic` is radon's; `cyclomatic_paper` is 1 + conditionals (`if`, `elif`, `… if … else …`, cases of
    `match` except a wildcard without a condition), loops and exception handlers, as in the Breakpoint
    paper. Halstead's measures are radon's, which counts only operators of arithmetic, comparison and logic:
    difficulty n1/2 * N2/n2, volume N * log2(n); those that end in `_paper` count all operators and operands
    (see `measure_halstead`). `nesting` is the depth of blocks (an `elif` is no deeper than its `if`).
    Nested functions count only for `code_lines`, `nesting` and Halstead's measures.
    """

    code_lines: int
    cyclomatic: int
    cyclomatic_paper: int
    halstead_difficulty: float
    halstead_volume: float
    nesting: int
    halstead_difficulty_paper: float | None = None
    """None, like `halstead_volume_paper`, in records made before this was measured."""
    halstead_volume_paper: float | None = None

    @property
    def is_incomplete(self) -> bool:
        """Whether measures are missing because an earlier version did not compute them."""
        return self.halstead_volume_paper is None


def measure_complexity(files: Mapping[str, bytes]) -> dict[tuple[str, int], Complexity]:
    """Return the complexity of every function of `files` (bytes by path), by path and line of its `def`.

    Files that do not parse are left out.
    """
    # Imported here, because code that needs only the names of metrics must not load the analysis.
    from gistpoint.core.callgraph import run_deep

    return run_deep(lambda: dict(_measure_all(files)))


def _measure_all(files: Mapping[str, bytes]) -> Iterator[tuple[tuple[str, int], Complexity]]:
    for path in sorted(path for path in files if path.endswith(".py")):
        try:
            tree = parse(files[path])
            measured = list(_measure_file(tree, files[path]))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue  # a library may contain files for another Python
        for line, complexity in measured:
            yield (path, line), complexity


def _measure_file(tree: ast.Module, source: bytes) -> Iterator[tuple[int, Complexity]]:
    nodes = list(ast.walk(tree))
    code = _code_lines(nodes, source)
    for node in nodes:
        if isinstance(node, Definition):
            yield node.lineno, _measure(node, code)


def _measure(node: Definition, code: list[int]) -> Complexity:
    """Return the measures of one function; `code[n]` is the number of code lines up to line n."""
    from radon.complexity import ComplexityVisitor
    from radon.metrics import HalsteadVisitor, halstead_visitor_report

    alone = ast.Module([node], [])
    cyclomatic = ComplexityVisitor.from_ast(alone).functions[0].complexity
    halstead = halstead_visitor_report(HalsteadVisitor.from_ast(alone).function_visitors[0])
    literal = measure_halstead(node)
    last = node.end_lineno or node.lineno
    return Complexity(
        code_lines=code[last] - code[node.lineno - 1],
        cyclomatic=int(cyclomatic),
        cyclomatic_paper=1 + sum(_decides(item) for item in _own(node)),
        halstead_difficulty=float(halstead.difficulty),
        halstead_volume=float(halstead.volume),
        nesting=_nesting(node),
        halstead_difficulty_paper=literal.difficulty,
        halstead_volume_paper=literal.volume,
    )


def _decides(node: ast.AST) -> bool:
    match node:
        case ast.match_case(pattern=ast.MatchAs(pattern=None), guard=None):
            return False  # the wildcard, or a bare name, which matches everything
    return isinstance(node, (*_CONDITIONALS, ast.match_case))


def _own(function: Definition) -> Iterator[ast.AST]:
    """Yield the nodes of a function's body without those of nested functions and classes."""
    stack: list[ast.AST] = list(function.body)
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, Definition | ast.ClassDef):
            stack.extend(ast.iter_child_nodes(node))


def _nesting(function: Definition) -> int:
    deepest = 0
    stack: list[tuple[ast.AST, int]] = [(node, 0) for node in function.body]
    while stack:
        node, depth = stack.pop()
        if isinstance(node, _BLOCKS):
            depth += 1
            deepest = max(deepest, depth)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                stack.append((child, depth - 1 if _is_elif(node, child) else depth))
    return deepest


def _is_elif(node: ast.AST, child: ast.AST) -> bool:
    match node, child:
        case ast.If(orelse=[only]), ast.If():
            return only is child and child.col_offset == node.col_offset
    return False


def _code_lines(nodes: list[ast.AST], source: bytes) -> list[int]:
    """Return the cumulative number of code lines up to each line of the file."""
    lines = source.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    kinds = [bool(line.strip()) and not line.lstrip().startswith(b"#") for line in lines]
    # Strings come first, because their lines are code even if one begins with `#`; then docstrings, which are
    # strings but not code.
    for text in _strings_of_several_lines(nodes):
        below = range(text.lineno, min(text.end_lineno or 0, len(lines)))
        comments = _comments_between(text, lines) if any(_begins_comment(lines[n]) for n in below) else ()
        for number in below:
            kinds[number] = bool(lines[number].strip()) and number + 1 not in comments
    for node in nodes:
        for line in _docstring_lines(node, lines):
            kinds[line - 1] = False
    return list(accumulate(kinds, initial=0))


def _strings_of_several_lines(nodes: list[ast.AST]) -> Iterator[ast.Constant | ast.JoinedStr]:
    """Yield the strings of several lines, but no parts of f-strings.

    Since Python 3.12, these have separate places, in which `#` begins no comment.
    """
    within = [part for node in only(ast.JoinedStr, nodes) for part in node.values]
    parts = {id(part) for part in within} | {id(getattr(part, "format_spec", None)) for part in within}
    for node in nodes:
        if not isinstance(node, ast.Constant | ast.JoinedStr) or id(node) in parts:
            continue
        if (node.end_lineno or 0) > node.lineno:
            yield node


def _begins_comment(line: bytes) -> bool:
    return line.lstrip().startswith(b"#")


def _comments_between(node: ast.Constant | ast.JoinedStr, lines: list[bytes]) -> set[int]:
    """Return the lines that contain only a comment between parts of a string, counted from 1."""
    part = lines[node.lineno - 1 : node.end_lineno]
    part[-1] = part[-1][: node.end_col_offset]
    part[0] = part[0][node.col_offset :]
    source = b"(" + b"\n".join(part) + b"\n)"
    found = set[int]()
    try:
        for token in tokenize.tokenize(io.BytesIO(source).readline):
            if token.type == tokenize.COMMENT and _begins_comment(part[token.start[0] - 1]):
                found.add(node.lineno + token.start[0] - 1)
    except (tokenize.TokenError, SyntaxError, UnicodeError):
        return set()  # the file has another encoding than UTF-8
    return found


def _docstring_lines(node: ast.AST, lines: list[bytes]) -> Iterator[int]:
    """Yield the lines of a docstring, without those that also hold the header or another statement."""
    if not isinstance(node, Definition | ast.ClassDef) or ast.get_docstring(node, clean=False) is None:
        return
    docstring, following = node.body[0], node.body[1:2]
    shared = {statement.lineno for statement in following}
    if lines[docstring.lineno - 1][: docstring.col_offset].strip():
        shared.add(docstring.lineno)  # the end of the header is on this line
    numbers = range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1)
    yield from (number for number in numbers if number not in shared)
