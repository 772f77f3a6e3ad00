"""The function to be corrupted: its text, its syntax tree, and the names in its scope."""

from __future__ import annotations

import ast
import bisect
import builtins
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, pairwise

from gistpoint.core.code.bindings import names_bound_in
from gistpoint.core.code.index import Definition, FileIndex, index_source
from gistpoint.core.code.names import LOCALS
from gistpoint.core.code.nodes import inside, only
from gistpoint.core.code.parsing import CodeError, DefinitionNode, parse_module, walk_definitions
from gistpoint.core.code.snippet import read_snippet
from gistpoint.core.code.source_text import SourceText, physical_lines
from gistpoint.core.code.testfiles import is_protected
from gistpoint.core.corruption.edits import TextEdit
from gistpoint.core.corruption.shapes import FunctionNode, Node, name_of
from gistpoint.core.trees import SourceTree

Placed = ast.expr | ast.stmt | ast.excepthandler | ast.keyword | ast.arg

# Nested functions, and those of nested classes, are corrupted separately (decision 30); f-strings stay as
# they are.
_CLOSED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.JoinedStr)
_OPERATIONS = (ast.BoolOp, ast.BinOp, ast.Compare, ast.UnaryOp, ast.IfExp, ast.Starred, ast.Await)
_SKIPPED = (
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.COMMENT,
    tokenize.ENDMARKER,
)


@dataclass(frozen=True, slots=True)
class Token:
    """One token of the code, with its text and its offsets."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class StatementBlock:
    """A list of statements, with the node that it belongs to and the name of the field that contains it."""

    owner: ast.AST
    name: str
    statements: tuple[ast.stmt, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CorruptionTarget:
    """A function's text at the left margin, with decorators, and the nodes of its body in source order.

    The nodes do not include the docstring, annotations of variables, or the parts of formatted strings (their
    positions are unreliable before Python 3.12) and of inner functions and classes, which are separate
    targets.
    """

    text: str
    node: FunctionNode
    scope: NamesInReach
    document: SourceText = field(repr=False)
    tokens: tuple[Token, ...] = field(repr=False)
    nodes: tuple[ast.AST, ...] = field(repr=False)
    parents: Mapping[ast.AST, ast.AST] = field(repr=False)
    blocks: tuple[StatementBlock, ...] = field(repr=False)

    def of(self, kind: type[Node] | tuple[type[Node], ...]) -> Iterator[Node]:
        """Yield the nodes of one type, or of several, in source order."""
        return only(kind, self.nodes)

    def statements(self) -> Iterator[ast.stmt]:
        """Yield the statements block by block, those of the function itself first."""
        return chain.from_iterable(block.statements for block in self.blocks)

    def neighbours(self) -> Iterator[tuple[ast.stmt, ast.stmt]]:
        """Yield each pair of consecutive statements in a block."""
        return chain.from_iterable(pairwise(block.statements) for block in self.blocks)

    def longer_blocks(self) -> Iterator[StatementBlock]:
        """Yield the blocks with more than one statement, whose code stays valid without one of them."""
        return (block for block in self.blocks if len(block.statements) > 1)

    def parent(self, node: ast.AST) -> ast.AST:
        """Return the parent of a node; the function for its own statements."""
        return self.parents.get(node, self.node)

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the ancestors of a node, innermost first, without the function."""
        while node in self.parents:
            node = self.parents[node]
            if node is self.node:
                return
            yield node

    def nearest(self, node: ast.AST, kind: type[Node] | tuple[type[Node], ...]) -> Node | None:
        """Return the innermost node of one of these types around a node; None if there is none."""
        return next(only(kind, self.around(node)), None)

    def span(self, node: Placed) -> tuple[int, int]:
        """Return the offsets of a node, without parentheses around it."""
        start = self.document.offset(node.lineno, node.col_offset)
        return start, self.document.offset(
            node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
        )

    def operand(self, node: ast.expr) -> tuple[int, int]:
        """Return the offsets of an operand with the parentheses that enclose only this operand."""
        start, end = self.span(node)
        parent = self.parent(node)
        if not isinstance(parent, _OPERATIONS):
            return start, end
        low, high = self.span(parent)
        while True:
            match self.before(start), self.after(end):
                case Token(text="(") as before, Token(text=")") as after if (
                    low <= before.start and after.end <= high
                ):
                    start, end = before.start, after.end
                case _:
                    return start, end

    def source(self, node: Placed) -> str:
        """Return the text of a node."""
        start, end = self.span(node)
        return self.text[start:end]

    def cut(self, span: tuple[int, int]) -> str:
        """Return the text between two offsets."""
        return self.text[span[0] : span[1]]

    def line_start(self, offset: int) -> int:
        """Return the offset at which the line of an offset begins."""
        return self.text.rfind("\n", 0, offset) + 1

    def before(self, offset: int) -> Token | None:
        """Return the last token that ends at or before an offset; None if there is none."""
        place = bisect.bisect_right(self.tokens, offset, key=lambda token: token.end) - 1
        return self.tokens[place] if place >= 0 else None

    def after(self, offset: int) -> Token | None:
        """Return the first token that starts at an offset or after it; None if there is none."""
        place = bisect.bisect_left(self.tokens, offset, key=lambda token: token.start)
        return self.tokens[place] if place < len(self.tokens) else None

    def between(self, left: ast.expr, right: ast.expr) -> tuple[int, int] | None:
        """Return the offsets of the operator between two operands.

        None if there are parentheses between the operands, or if a line ending splits the operator.
        """
        low, high = self.operand(left)[1], self.operand(right)[0]
        found = self.within(low, high)
        if not found or any(token.text in "()" for token in found):
            return None
        start, end = found[0].start, found[-1].end
        return None if "\n" in self.text[start:end] else (start, end)

    def within(self, low: int, high: int) -> tuple[Token, ...]:
        """Return the tokens between two offsets."""
        first = bisect.bisect_left(self.tokens, low, key=lambda token: token.start)
        last = bisect.bisect_right(self.tokens, high, key=lambda token: token.end)
        return self.tokens[first:last]

    def replaced(self, node: Placed, text: str) -> tuple[TextEdit, ...]:
        """Return the edit that replaces a node with `text`."""
        return (TextEdit(*self.span(node), text),)

    def replaced_after(self, part: Placed, whole: Placed, text: str = "") -> tuple[TextEdit, ...]:
        """Return the edit that replaces the code of a node after one of its parts with `text`."""
        return (TextEdit(self.span(part)[1], self.span(whole)[1], text),)

    def lines(self, statement: ast.stmt) -> tuple[int, int] | None:
        """Return the offsets of a statement's lines, without the last line ending.

        None if they contain anything else (another statement, a header or a comment), and for a definition
        with decorators.
        """
        start, end = self.span(statement)
        # The span of a definition does not include its decorators.
        if getattr(statement, "decorator_list", ()):
            return None
        first = self.line_start(start)
        last = self.text.find("\n", end)
        last = len(self.text) if last < 0 else last
        if self.text[first:start].strip() or self.text[end:last].strip():
            return None
        return first, last


def read_subject(definition: Definition, scope: NamesInReach) -> CorruptionTarget | None:
    """Return a function as a target; None if it can't be corrupted.

    Classes, unreadable code, and text that changes when moved to the left margin can't be corrupted.
    """
    try:
        return read_text(definition.dedented, scope)
    except CodeError:
        return None


def read_text(text: str, scope: NamesInReach) -> CorruptionTarget | None:
    """Return a function at the left margin as a target; None for a class and for text that can't be read."""
    try:
        snippet = read_snippet(text)
        tokens = tuple(_tokens(text, snippet.definition.document))
    except (CodeError, tokenize.TokenError, SyntaxError):
        return None
    node, document = snippet.node, snippet.definition.document
    # Edits are offsets into this text, so it must be exactly the parsed text.
    if isinstance(node, ast.ClassDef) or document.text != text:
        return None
    parents: dict[ast.AST, ast.AST] = {}
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    nodes = tuple(_walk(body, node, parents))
    return CorruptionTarget(
        text, node, scope, document, tokens, nodes, parents, tuple(_blocks(node, body, nodes))
    )


def _tokens(text: str, document: SourceText) -> Iterator[Token]:
    starts = document.line_starts
    for kind, string, (row, column), (end_row, end_column), _ in tokenize.generate_tokens(
        io.StringIO(text, newline="\n").readline
    ):
        if kind not in _SKIPPED:
            yield Token(starts[row - 1] + column, starts[end_row - 1] + end_column, string)


def _walk(body: Iterable[ast.AST], owner: ast.AST, parents: dict[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    for node in body:
        parents[node] = owner
        yield node
        # Before Python 3.12, the parts of formatted strings have no positions (decision 30); template strings
        # are left alone, too.
        if not isinstance(node, _CLOSED) and type(node).__name__ != "TemplateStr":
            yield from _walk(_children(node), node, parents)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the child nodes that are code.

    Annotations of variables, contexts, and binary and Boolean operators are left out.
    """
    unplaced = ast.expr_context | ast.operator | ast.boolop
    for name, value in ast.iter_fields(node):
        if name != "annotation" or not isinstance(node, ast.AnnAssign):
            parts = only(ast.AST, value if isinstance(value, list) else [value])
            yield from (child for child in parts if not isinstance(child, unplaced))


def _blocks(node: FunctionNode, body: list[ast.stmt], nodes: Iterable[ast.AST]) -> Iterator[StatementBlock]:
    yield StatementBlock(node, "body", tuple(body))
    for item in nodes:
        if isinstance(item, _CLOSED):
            continue
        for name in ("body", "orelse", "finalbody"):
            value = getattr(item, name, None)
            if isinstance(value, list) and value:
                yield StatementBlock(item, name, tuple(value))


BUILTINS = frozenset(name for name in dir(builtins) if not name.startswith("_"))
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class ClassNames:
    """The members of a class's instances: methods that can be called, and other attributes."""

    methods: Mapping[str, int]
    """The number of positional arguments that each method requires, without `self`."""
    attributes: frozenset[str]
    bases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileNames:
    """The names of one module, with the number of uses of each identifier."""

    names: frozenset[str]
    functions: Mapping[str, int]
    """The number of positional arguments that each function requires."""
    classes: Mapping[str, ClassNames]
    locals: Mapping[str, frozenset[str]]
    """The names that each function binds, by its qualified name."""
    uses: Mapping[str, int] = field(repr=False)
    imports_all: bool = False
    """Whether it imports all names of a module, so that `names` is incomplete."""
    longest: int = 79
    """The length of the module's longest line."""


@dataclass(frozen=True, slots=True)
class NamesInReach:
    """The names that one function can use without being noticed; only built-ins if its file is unknown."""

    known: frozenset[str] = BUILTINS
    functions: Mapping[str, int] = field(default_factory=dict)
    own: ClassNames = field(default_factory=lambda: ClassNames({}, frozenset()))
    """The class of a method, including its bases in the library."""
    uses: Mapping[str, int] = field(default_factory=dict, repr=False)
    longest: int = 0
    """The maximum length of a line that would not be noticed in the file; 0 if unknown."""
    around: tuple[str, ...] = ()
    """The names of the enclosing functions."""
    hidden: frozenset[str] = frozenset()
    """The built-ins whose names mean, or may mean, something else in its file or the enclosing functions."""

    def defines(self, name: str) -> bool:
        """Return whether a name is defined or imported by the file, or belongs to the class."""
        known = name in self.known or name in self.own.methods or name in self.own.attributes
        return known and name not in BUILTINS


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The names of a library, by the paths of its files."""

    files: Mapping[str, FileNames]

    def scope(self, definition: Definition) -> NamesInReach:
        """Return the names that a function can use without being noticed; built-ins for an unknown file."""
        names = self.files.get(definition.ref.path)
        if names is None:
            return NamesInReach()
        around: set[str] = set()
        parts = definition.ref.plain.split(f".{LOCALS}.")
        for end in range(1, len(parts)):
            around |= names.locals.get(f".{LOCALS}.".join(parts[:end]), frozenset())
        own = ClassNames({}, frozenset())
        if definition.parent is not None:
            own = self._with_bases(names, definition.parent)
        bound = names.names | around
        hidden = BUILTINS if names.imports_all else BUILTINS & bound
        outer = tuple(part.rpartition(".")[2] for part in parts[:-1])
        return NamesInReach(BUILTINS | bound, names.functions, own, names.uses, names.longest, outer, hidden)

    def _with_bases(self, names: FileNames, qualname: str) -> ClassNames:
        methods: dict[str, int] = {}
        attributes: set[str] = set()
        waiting, seen = [(names, qualname)], set[tuple[int, str]]()
        while waiting:
            file, name = waiting.pop(0)
            found = file.classes.get(name)
            if found is None or (id(file), name) in seen:
                continue
            seen.add((id(file), name))
            methods = {**found.methods, **methods}
            attributes |= found.attributes
            for base in found.bases:
                defining = self._files_with(base, file)
                # With several classes of one name, it is unknown which one is meant.
                if len(defining) == 1:
                    waiting.append((defining[0], base))
        return ClassNames(methods, frozenset(attributes))

    def _files_with(self, class_name: str, file: FileNames) -> list[FileNames]:
        """Return the files that define a class: `file` alone if it does."""
        if class_name in file.classes:
            return [file]
        return [other for other in self.files.values() if class_name in other.classes]


def vocabulary_of(indexes: Iterable[FileIndex]) -> Vocabulary:
    """Return the names of the files in these indexes."""
    return Vocabulary({index.path: _names_of(index) for index in indexes})


def read_vocabulary(tree: SourceTree, test_files: frozenset[str] = frozenset()) -> Vocabulary:
    """Return the names of all readable files of a tree that don't belong to tests."""
    return vocabulary_of(_indexes(tree, test_files))


def _indexes(tree: SourceTree, test_files: frozenset[str]) -> Iterator[FileIndex]:
    for path in tree.files(".py"):
        # Names that only tests use are not in reach of the library's code.
        if is_protected(path, test_files):
            continue
        try:
            yield index_source(path, tree.read(path))
        except CodeError:
            continue


def _names_of(index: FileIndex) -> FileNames:
    module = parse_module(index.text, index.path)
    functions: dict[str, int] = {}
    classes: dict[str, ClassNames] = {}
    locals_: dict[str, frozenset[str]] = {}
    for found in walk_definitions(module):
        if isinstance(found.node, ast.ClassDef):
            classes.setdefault(found.qualname, _class_names(found.node))
            continue
        locals_.setdefault(found.qualname, frozenset(names_bound_in([found.node])) - {found.node.name})
        if found.parent < 0:
            functions.setdefault(found.qualname, _required(found.node, method=False))
    return FileNames(
        frozenset(names_bound_in(module.body, into_definitions=False)),
        functions,
        classes,
        locals_,
        Counter(_WORD.findall(index.text)),
        any(alias.name == "*" for node in inside(ast.ImportFrom, module) for alias in node.names),
        max((len(line) for line in physical_lines(index.text)), default=0),
    )


def _class_names(node: ast.ClassDef) -> ClassNames:
    methods: dict[str, int] = {}
    attributes: set[str] = set()
    for item in node.body:
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
            if any(map(_is_of_property, item.decorator_list)):
                attributes.add(item.name)
            elif not item.decorator_list:
                methods[item.name] = _required(item, method=True)
            attributes |= set(_stored_on_self(item))
        elif isinstance(item, ast.Assign | ast.AnnAssign):
            attributes |= names_bound_in([item])
    return ClassNames(methods, frozenset(attributes - set(methods)), tuple(map(name_of, node.bases)))


def _is_of_property(decorator: ast.expr) -> bool:
    text = ast.unparse(decorator)
    return "property" in text or text.endswith((".setter", ".deleter"))


def _stored_on_self(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    own = next((item.arg for item in [*node.args.posonlyargs, *node.args.args]), "")
    for item in inside(ast.Attribute, node):
        if isinstance(item.ctx, ast.Store) and ast.unparse(item.value) == own:
            yield item.attr


def _required(node: DefinitionNode, *, method: bool) -> int:
    if isinstance(node, ast.ClassDef):
        return 0
    positional = len(node.args.posonlyargs) + len(node.args.args)
    own = 1 if method and positional else 0
    return max(positional - own - len(node.args.defaults), 0)
