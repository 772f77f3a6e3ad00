"""The value of an expression of literal texts and numbers, found without running any of it."""

from __future__ import annotations

import ast
import base64
import binascii
import codecs
import itertools
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

_MOST = 64
_LONGEST = 10_000
_LARGEST = 1_000_000
_DEEPEST = 40
_WIDE = re.compile(r"[0-9]{4,}")

Lookup = Callable[[ast.Name], "tuple[ast.expr, ...] | None"]
"""Returns the expressions that a name may mean; None if unknown."""

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mod: operator.mod, ast.BitXor: operator.xor,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.RShift: operator.rshift, ast.FloorDiv: operator.floordiv,
}  # fmt: skip
_CALLS: Mapping[str, Callable[..., Any]] = {
    "builtins.chr": chr, "builtins.ord": ord, "builtins.str": str, "builtins.bytes": bytes, "builtins.list": list,
    "builtins.bytearray": bytes, "builtins.tuple": tuple, "builtins.sorted": sorted, "builtins.len": len,
    "builtins.int": int, "builtins.reversed": lambda value: value[::-1], "builtins.ascii": ascii, "builtins.hex": hex,
    "base64.b64decode": base64.b64decode, "base64.b32decode": base64.b32decode, "base64.b16decode": base64.b16decode,
    "base64.b85decode": base64.b85decode, "base64.a85decode": base64.a85decode, "codecs.decode": codecs.decode,
    "base64.urlsafe_b64decode": base64.urlsafe_b64decode, "base64.decodebytes": base64.decodebytes,
    "codecs.encode": codecs.encode, "binascii.unhexlify": binascii.unhexlify, "binascii.a2b_hex": binascii.a2b_hex,
    "binascii.a2b_base64": binascii.a2b_base64, "bytes.fromhex": bytes.fromhex, "bytearray.fromhex": bytes.fromhex,
}  # fmt: skip
_CODECS = frozenset(
    {"ascii", "latin-1", "latin1", "utf-8", "utf8", "rot13", "rot_13", "hex", "base64", "unicode_escape"}
)
_METHODS = frozenset({
    "capitalize", "casefold", "count", "decode", "encode", "find", "format", "hex", "index", "join", "lower", "lstrip",
    "partition", "removeprefix", "removesuffix", "replace", "rpartition", "rsplit", "rstrip", "split", "strip",
    "swapcase", "title", "to_bytes", "translate", "upper", "zfill",
})  # fmt: skip


class Unknown(Exception):
    """The value of an expression can't be known without running it."""


class Folding:
    """Computes values; `lookup` gives the meaning of names, `path` the name of a function."""

    def __init__(self, lookup: Lookup, path: Callable[[ast.expr], str]) -> None:
        self._lookup = lookup
        self._path = path
        self._depth = 0
        self._inside: list[Mapping[str, Any]] = []

    def texts(self, node: ast.expr) -> tuple[str, ...] | None:
        """Return the possible texts of an expression; None if any of them is unknown."""
        try:
            values = self.values(node)
        except Unknown:
            return None
        found: list[str] = []
        for value in values:
            if isinstance(value, bytes):
                found.append(value.decode("latin-1"))
            elif isinstance(value, str):
                found.append(value)
            else:
                return None
        return tuple(dict.fromkeys(found))

    def values(self, node: ast.expr) -> list[Any]:
        """Return at most 64 values. Raises `Unknown` if there are more, or if any of them is unknown."""
        self._depth += 1
        try:
            if self._depth > _DEEPEST:
                raise Unknown
            found = list(itertools.islice(self._values(node), _MOST + 1))
        except Unknown:
            raise
        except Exception as error:  # any error of an operation on constants, which the program would raise too
            raise Unknown from error
        finally:
            self._depth -= 1
        if len(found) > _MOST or any(_size(value) > _LONGEST for value in found):
            raise Unknown
        return found

    def _values(self, node: ast.expr) -> Iterator[Any]:
        match node:
            case ast.Constant(value=value):
                yield value
            case ast.Name():
                yield from self._named(node)
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                yield from (list(chosen) for chosen in self._product(items))
            case ast.BinOp() | ast.UnaryOp(op=ast.USub()):
                yield from self._calculated(node)
            case ast.Subscript():
                yield from self._taken(node)
            case ast.JoinedStr(values=parts):
                yield from ("".join(map(str, chosen)) for chosen in self._product(parts))
            case ast.FormattedValue(value=value, format_spec=None):
                yield from self.values(value)
            case ast.IfExp(body=body, orelse=other):
                yield from (*self.values(body), *self.values(other))
            case ast.NamedExpr(value=value):
                yield from self.values(value)
            case ast.ListComp() | ast.GeneratorExp():
                yield self._comprehended(node)
            case ast.Call():
                yield from self._called(node)
            case _:
                raise Unknown

    def _product(self, nodes: list[ast.expr]) -> Iterator[tuple[Any, ...]]:
        return itertools.product(*(self.values(node) for node in nodes))

    def _calculated(self, node: ast.BinOp | ast.UnaryOp) -> Iterator[Any]:
        match node:
            case ast.UnaryOp(operand=operand):
                yield from (-value for value in self.values(operand))
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                yield from (a * b for a, b in self._product([left, right]) if _small(a, b))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                yield from (_BINARY[type(op)](a, b) for a, b in self._operands(left, op, right))
            case _:
                raise Unknown

    def _taken(self, node: ast.Subscript) -> Iterator[Any]:
        match node.slice:
            case ast.Slice(lower=lower, upper=upper, step=step):
                ends = [item or ast.Constant(None) for item in (lower, upper, step)]
                yield from (whole[a:b:c] for whole, a, b, c in self._product([node.value, *ends]))
            case index:
                yield from (whole[at] for whole, at in self._product([node.value, index]))

    def _operands(self, left: ast.expr, op: ast.operator, right: ast.expr) -> Iterator[tuple[Any, Any]]:
        for a, b in self._product([left, right]):
            if isinstance(op, ast.Mod) and isinstance(a, str | bytes):
                _require_short(a, [b])
                yield a, tuple(b) if isinstance(b, list) else b
            else:
                yield a, b

    def _named(self, node: ast.Name) -> Iterator[Any]:
        for known in reversed(self._inside):
            if node.id in known:
                yield known[node.id]
                return
        meant = self._lookup(node)
        if not meant:
            raise Unknown
        for expression in meant:
            yield from self.values(expression)

    def _comprehended(self, node: ast.ListComp | ast.GeneratorExp) -> list[Any]:
        match node.generators:
            case [ast.comprehension(target=ast.Name(id=name), iter=over, ifs=[], is_async=0)]:
                made: list[Any] = []
                (items,) = self.values(over)
                for item in _few(items):
                    self._inside.append({name: item})
                    try:
                        (value,) = self.values(node.elt)
                    finally:
                        self._inside.pop()
                    made.append(value)
                return made
        raise Unknown

    def _called(self, node: ast.Call) -> Iterator[Any]:
        if node.keywords or any(isinstance(item, ast.Starred) for item in node.args):
            raise Unknown
        path = self._path(node.func)
        if path == "builtins.map" and len(node.args) == 2:
            function, over = node.args
            (items,) = self.values(over)
            called = [ast.Call(function, [ast.Constant(item)], []) for item in _few(items)]
            yield [value for item in called for value in self.values(item)]
        elif path == "builtins.range":
            yield from (_few(range(*ends)) for ends in self._product(node.args))
        elif path in _CALLS or (isinstance(node.func, ast.Attribute) and _spelled(node.func) in _CALLS):
            function_of = _CALLS.get(path) or _CALLS[_spelled(node.func)]
            for values in self._product(node.args):
                if path.startswith("codecs.") and values[1:] and values[1] not in _CODECS:
                    raise Unknown
                if any(isinstance(value, int) and abs(value) > _LONGEST for value in values) and path != "builtins.chr":
                    raise Unknown
                yield function_of(*values)
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            for whole, *given in self._product([node.func.value, *node.args]):
                if node.func.attr in ("encode", "decode") and given and given[0] not in _CODECS:
                    raise Unknown
                _require_short(whole, given)
                made = getattr(whole, node.func.attr)(*given)
                yield list(made) if isinstance(made, tuple) else made
        else:
            raise Unknown


def _spelled(node: ast.expr) -> str:
    return (
        f"{node.value.id}.{node.attr}" if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else ""
    )


def _few(items: Any) -> list[Any]:
    if not hasattr(items, "__len__") or len(items) > _LONGEST:
        raise Unknown
    return list(items)


def _require_short(whole: Any, values: Iterable[Any]) -> None:
    """Refuse an operation whose result could be disproportionately larger than its operands."""
    values = list(values)
    templates = [item.decode("latin-1") if isinstance(item, bytes) else item for item in (whole, *values)]
    wide = any(isinstance(item, str) and (_WIDE.search(item) or "*" in item) for item in templates)
    long = _size(whole) * max((_size(value) for value in values), default=1) > _LARGEST
    if wide or long or any(isinstance(value, int) and abs(value) > _LONGEST for value in values):
        raise Unknown


def _small(a: Any, b: Any) -> bool:
    if _size(a) * max(1, abs(b) if isinstance(b, int) else 1) > _LONGEST or (isinstance(a, int) and abs(a) > _LONGEST):
        raise Unknown
    return True


def _size(value: Any) -> int:
    if isinstance(value, list):
        return sum(map(_size, value)) + len(value)
    return len(value) if isinstance(value, str | bytes) else 1
