"""What a node and a piece of code bind, also compared with the compiler's symbol tables of real files."""

from __future__ import annotations

import ast
import re
import symtable
from collections.abc import Iterator

import pytest
from code_corpus import STANDARD_LIBRARY, python_files

from gistpoint.core.code.bindings import bound_names, names_bound_in


@pytest.mark.parametrize(
    ("code", "bound"),
    [
        ("a = b.c = d[e] = 1", {"a"}),
        ("(a, *b), [c] = d", {"a", "b", "c"}),
        ("a += b; c: int = d; e: int", {"a", "c", "e"}),
        ("del a, b.c", {"a"}),
        ("import a.b, c.d as e; from f import g, h as i", {"a", "e", "g", "i"}),
        ("from a import *", set()),
        ("for a in b:\n    pass\nwith c as d, e as (f, g): pass", {"a", "d", "f", "g"}),
        ("try: pass\nexcept A as b: pass\nexcept C: pass", {"b"}),
        (
            "match a:\n    case {'b': c, **d}: pass\n    case [e, *f] | E(g=[e, *f]): pass\n    case _: pass",
            {*"cdef"},
        ),
        ("[a := b for c in d if (e := c)]", {"a", "c", "e"}),
        ("lambda a, /, *b, c=d, **e: f", {"a", "b", "c", "e"}),
        ("global a\nnonlocal_ = 1", {"nonlocal_"}),
    ],
)
def test_each_form_binds_what_the_reference_says(code: str, bound: set[str]) -> None:
    tree = ast.parse(code)
    assert names_bound_in(tree.body) == bound
    assert {name for node in ast.walk(tree) for name in bound_names(node)} == bound


def test_of_a_definition_only_the_name_is_taken_where_it_is_not_entered() -> None:
    tree = ast.parse(
        "@(x := 1)\ndef f(a, b=(y := 2)):\n    c = 1\nclass K(z := 3):\n    d = 1\ne = lambda g: [h for h in g]"
    )
    assert names_bound_in(tree.body, into_definitions=False) == {"f", "K", "e", "g", "h"}
    assert names_bound_in(tree.body) == {*"xfabyczKdegh"}


def _names_in(table: symtable.SymbolTable) -> Iterator[str]:
    for symbol in table.get_symbols():
        if symbol.is_assigned() or symbol.is_imported() or symbol.is_parameter() or symbol.is_namespace():
            yield symbol.get_name()
    for inner in table.get_children():
        yield from _names_in(inner)


def _whole(name: str) -> str:
    """Return a name without the class that the compiler prepends to a private one."""
    return re.sub(r"^_[^_]\w*?(?=__\w)", "", name)


@pytest.mark.parametrize("part", range(4))
def test_real_files_bind_what_the_compiler_says(part: int) -> None:
    files = [path for path in python_files(STANDARD_LIBRARY) if "test" not in path.parts][part::40]
    for path in files:
        text = path.read_text(encoding="utf-8", errors="replace")
        try:
            tree, table = ast.parse(text), symtable.symtable(text, str(path), "exec")
        except SyntaxError:
            continue
        said = {_whole(name) for name in _names_in(table)} - {".0", "*"}
        assert {_whole(name) for name in names_bound_in(tree.body)} == said, path
