"""Finds inputs that a function's source suggests by its literals and the types and attributes it names."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

from gistpoint.core.code.index import index_source
from gistpoint.core.code.nodes import has_any, inside, only
from gistpoint.core.code.parsing import CodeError, parse
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.equivalence import tags
from gistpoint.sandbox.equivalence.encoded import Encoded, contents_in, spread

_MOST_LITERALS = 60
_MOST_OF_A_CONSTANT = 20
"""The maximum number of values that are taken from one constant of a module, such as a table."""
_MOST_LINES = 40
_LONGEST_TEXT = 80
_LONGEST = 64
"""The largest number in a source that may be meant as a length."""
_LARGEST = 10**12
_KINDS = {
    "str": tags.TEXT,
    "bytes": tags.BYTES,
    "int": tags.INTEGER,
    "float": tags.FLOAT,
    "bool": tags.BOOLEAN,
    "list": tags.LIST,
    "tuple": tags.TUPLE,
    "set": tags.SET,
    "frozenset": tags.FROZENSET,
    "dict": tags.DICTIONARY,
}
_ABSTRACT = {
    **dict.fromkeys(("Sequence", "Reversible"), tags.TEXT + tags.BYTES + tags.SEQUENCES),
    "MutableSequence": tags.LIST,
    **dict.fromkeys(("Mapping", "MutableMapping"), tags.DICTIONARY),
    **dict.fromkeys(("Set", "AbstractSet", "MutableSet"), tags.SET + tags.FROZENSET),
    **dict.fromkeys(
        ("Iterable", "Collection", "Container", "Sized"),
        tags.TEXT + tags.BYTES + tags.COLLECTIONS + tags.DICTIONARY,
    ),
    **dict.fromkeys(("Number", "Complex", "Real", "Rational", "Integral"), tags.NUMBERS),
    **dict.fromkeys(("basestring", "string_types", "text_type"), tags.TEXT),
}
"""The tags of the built-in types that belong to an abstract class, or to a name for several types."""
_QUESTIONS = frozenset(("isinstance", "issubclass", "type"))
"""Built-in functions whose answer may be different for an object of a subclass."""

_EXCEPTIONS = frozenset(
    name
    for name, found in vars(builtins).items()
    if isinstance(found, type) and issubclass(found, BaseException)
)

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Hints:
    """The literals, types and attributes in the sources of two versions of a function."""

    literals: tuple[Encoded, ...] = ()
    kinds: frozenset[str] = frozenset()
    """The tags of the built-in types that are named."""
    names: frozenset[str] = frozenset()
    """The names of the attributes that are used, and the strings that may be keys, as `[text]`."""
    asks_for_types: bool = False
    catches: frozenset[str] = frozenset()
    """The names of the built-in exceptions that the original catches."""
    converts: bool = False
    """Whether the original calls a type in `kinds` on a value, which may then be of any other type."""
    members: tuple[str, ...] = ()
    """The texts that the function may look up in enumerations."""
    lines: tuple[str, ...] = ()
    """Lines of recorded texts, one of each kind."""

    def joined(self, other: Hints) -> Hints:
        """Return these hints together with those of another function; at most 60 literals are kept."""
        literals = {repr(value): value for value in (*self.literals, *other.literals)}
        return Hints(
            tuple(literals.values())[:_MOST_LITERALS],
            self.kinds | other.kinds,
            self.names | other.names,
            self.asks_for_types or other.asks_for_types,
            self.catches | other.catches,
            self.converts or other.converts,
            tuple(dict.fromkeys((*self.members, *other.members))),
            self.lines,
        )

    @property
    def numbers(self) -> list[int]:
        """The whole numbers among the literals."""
        return list(map(int, contents_in(self.literals, tags.INTEGER)))

    @property
    def texts(self) -> list[str]:
        """The strings among the literals."""
        return list(contents_in(self.literals, tags.TEXT))

    @property
    def lengths(self) -> list[int]:
        """The lengths from 1 to 64 that are equal to or next to a number among the literals, sorted."""
        near = (number + step for number in self.numbers for step in (-1, 0, 1))
        return sorted({length for length in near if 0 < length <= _LONGEST})


NO_HINTS = Hints()


def lines_in(examples: Iterable[Iterable[Encoded]]) -> tuple[str, ...]:
    """Return lines of the texts in recorded calls, the shortest of each kind.

    A parser decides by the beginning of a line what it is, so lines are of one kind if they begin alike. The
    result is empty if no text has several lines.
    """
    texts = contents_in(chain.from_iterable(examples), tags.TEXT)
    lines = chain.from_iterable(text.split("\n") for text in texts if "\n" in text)
    found: dict[tuple[bool, str], str] = {}
    for line in lines:
        kind = line[:1].isspace(), _class_of(line.lstrip()[:1])
        longest = len(found[kind]) - 1 if kind in found else _LONGEST_TEXT
        if len(line) <= longest:
            found[kind] = line
    return tuple(found.values())[:_MOST_LINES]


def _class_of(letter: str) -> str:
    return "a" if letter.isalpha() else "0" if letter.isdigit() else letter


def hints_of(trees: Iterable[SourceTree], path: str, qualname: str) -> Hints:
    """Return the hints of the function with this name in all trees; the first tree is the original.

    A tree without such a function adds none. At most 60 literals are kept.
    """
    found = NO_HINTS
    for number, tree in enumerate(trees):
        try:
            module, function = _parsed(tree, path, qualname)
        except (CodeError, SyntaxError, ValueError, LookupError, RecursionError):
            continue
        hints = _hints_in(module, function)
        # Only the original shows that it accepts other types; a repair may convert a value that is always a
        # number.
        if number > 0:
            hints = replace(hints, converts=False, catches=frozenset())
        found = found.joined(hints)
    keys = {f"[{text}]" for text in found.texts}
    return replace(found, names=found.names | keys)


def _hints_in(module: ast.Module, function: _Function) -> Hints:
    """Return the hints of one version of a function."""
    used = {node.id for node in inside(ast.Name, function)}
    attributes = _attributes_in(function)
    kinds = chain(
        (_KINDS.get(name, "") for name in used), (_ABSTRACT.get(name, "") for name in used | attributes)
    )
    return Hints(
        tuple(chain(_literals(function), _constants(module, used))),
        frozenset("".join(kinds)),
        frozenset(_with_properties(module, attributes)),
        asks_for_types=not used.isdisjoint(_QUESTIONS),
        catches=_caught(function),
        converts=any(map(_converts, ast.walk(function))),
        members=tuple(_members(module, function)),
    )


def _attributes_in(function: _Function) -> set[str]:
    return {node.attr for node in inside(ast.Attribute, function)}


def _with_properties(module: ast.Module, names: set[str]) -> set[str]:
    """Return `names`, and the names of the attributes that the module's properties of these names use.

    Objects usually store a property's value under another name, such as `_width` for `width`.
    """
    behind: dict[str, set[str]] = {}
    for node in ast.walk(module):
        if isinstance(node, _Function) and any(map(_makes_property, node.decorator_list)):
            behind.setdefault(node.name, set()).update(_attributes_in(node))
    found, new = set[str](), set(names)
    while new:
        found |= new
        new = set[str]().union(*(behind.get(name, ()) for name in new)) - found
    return found


def _makes_property(decorator: ast.expr) -> bool:
    return _last_name(decorator) in _PROPERTIES


def _last_name(node: ast.expr) -> str:
    """Return a name, or the last name in a chain of attributes; empty for other expressions."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


_PROPERTIES = frozenset(("property", "cached_property", "setter", "getter", "deleter"))


def _caught(function: _Function) -> frozenset[str]:
    """Return the names of the built-in exceptions in the `except` clauses of a function."""
    kinds = filter(None, (node.type for node in inside(ast.ExceptHandler, function)))
    return _EXCEPTIONS.intersection(part.id for part in inside(ast.Name, *kinds))


def _converts(node: ast.AST) -> bool:
    """Whether a node calls a built-in type with a value."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=[_, *_]):
            return name in _KINDS
    return False


def _parsed(tree: SourceTree, path: str, qualname: str) -> tuple[ast.Module, _Function]:
    source = tree.read(path)
    line = index_source(path, source).get(qualname).def_line
    module = parse(source)
    for node in ast.walk(module):
        if isinstance(node, _Function) and node.lineno == line:
            return module, node
    raise LookupError(f"{qualname} is not a function")


def _literals(function: _Function) -> Iterator[Encoded]:
    """Yield the encoded literals of a function, except those that are statements, such as docstrings.

    The value None is included if the function tests a variable for truth, because it may then be missing.
    """
    if has_any(ast.Name, _conditions(function)):
        yield [tags.NONE]
    alone = {id(node.value) for node in inside(ast.Expr, function)}
    values = [node.value for node in inside(ast.Constant, function) if id(node) not in alone]
    for value in (*values, *_powers(function, values)):
        yield from _encoded(value)


def _powers(function: _Function, values: Iterable[object]) -> Iterator[float]:
    """Yield the numbers whose logarithms a function may compare with the whole numbers among its literals."""
    used = {node.id for node in inside(ast.Name, function)} | _attributes_in(function)
    numbers = [value for value in values if type(value) is int and 0 < abs(value) <= _LARGEST_EXPONENT]
    for name, base in _BASES.items():
        if name in used:
            yield from (float(base) ** number for number in numbers)
    if "log" in used:  # the base is often a literal, as in sizes of files
        bases = (number for number in values if type(number) is int and 1 < number <= _LARGEST_BASE)
        yield from (float(base) ** exponent for base in bases for exponent in _EXPONENTS)


_BASES = {"log10": 10, "log2": 2}
_LARGEST_EXPONENT = 300
_LARGEST_BASE = 1024
_EXPONENTS = range(1, 9)


def _conditions(function: _Function) -> Iterator[ast.expr]:
    for node in ast.walk(function):
        match node:
            case ast.If(test=test) | ast.IfExp(test=test) | ast.UnaryOp(op=ast.Not(), operand=test):
                yield test
            case ast.BoolOp(values=values):
                yield from values


def _members(module: ast.Module, function: _Function) -> Iterator[str]:
    """Yield what a function may look up in the module's enumerations: names by `A[x]`, texts by `A(x)`."""
    by_name, by_value = set[str](), set[str]()
    for node in ast.walk(function):
        match node:
            case ast.Subscript(value=ast.Name(id=name)):
                by_name.add(name)
            case ast.Call(func=ast.Name(id=name)):
                by_value.add(name)
    for made in module.body:
        if not isinstance(made, ast.ClassDef) or not any(map(_is_enumeration, made.bases)):
            continue
        for member in made.body:
            match member:
                case ast.Assign(targets=[ast.Name(id=name)]) if made.name in by_name:
                    yield name
                case ast.Assign(value=ast.Constant(value=str(text))) if made.name in by_value:
                    yield text


def _is_enumeration(base: ast.expr) -> bool:
    return _last_name(base).endswith(("Enum", "Flag"))


def _constants(module: ast.Module, used: set[str]) -> Iterator[Encoded]:
    """Yield encoded values from each constant of the module whose name is in `used`."""
    for statement in module.body:
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
            continue
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if used.isdisjoint(target.id for target in only(ast.Name, targets)):
            continue
        constants = (node.value for node in inside(ast.Constant, statement.value))
        values = list(chain.from_iterable(map(_encoded, constants)))
        yield from spread(values, _MOST_OF_A_CONSTANT)


def _encoded(value: object) -> Iterator[Encoded]:
    match value:
        case None:
            yield [tags.NONE]
        case bool():
            yield [tags.BOOLEAN, value]
        case int() if abs(value) <= _LARGEST:
            yield [tags.INTEGER, str(value)]
        case float():
            yield [tags.FLOAT, repr(value)]
        case str() if len(value) <= _LONGEST_TEXT:
            yield [tags.TEXT, value]
        case bytes() if len(value) <= _LONGEST_TEXT:
            yield [tags.BYTES, value.hex()]
