"""The headers of compound statements, as a gist's lines count them."""

from __future__ import annotations

import ast

import pytest

from gistpoint.core.kinds.gist.lines import header_text

HEADERS = {
    "for i in x:\n    pass": "for i in x:",
    "async def f(a, *b: int, **c) -> int:\n    pass": "async def f(a, *b: int, **c) -> int:",
    "class A(B, metaclass=C):\n    pass": "class A(B, metaclass=C):",
    "with a as b, c:\n    pass": "with a as b, c:",
    "while a:\n    pass\nelse:\n    pass": "while a:",
    "match x:\n    case 1:\n        pass": "match x:",
}


@pytest.mark.parametrize("source", HEADERS)
def test_a_statement_is_made_with_all_its_fields(source: str) -> None:
    """Since Python 3.15, a statement can't be made without its required fields; here, none ever can."""
    (statement,) = ast.parse(source).body
    kind = type(statement)

    def strict(self: ast.stmt, *values: object, **fields: object) -> None:
        missing = set(kind._fields) - {"type_comment", "type_params", "returns"} - set(fields)
        if missing and not values:
            raise TypeError(f"{kind.__name__}.__init__ missing {sorted(missing)}")
        kind.__init__(self, *values, **fields)

    statement.__class__ = type(kind.__name__, (kind,), {"__init__": strict})
    assert header_text(statement).splitlines()[0] == HEADERS[source]
