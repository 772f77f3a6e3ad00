"""One statement per line, whatever the layout."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.kinds.gist.lines import is_placeholder, is_text_only
from gistpoint.core.kinds.gist.rates import unfolded

FOLDED = {
    "semicolons": ("a = 1; b = 2;c = 3\n", "a = 1; \nb = 2;\nc = 3\n"),
    "one-line body": ("if x: raise E\n", "if x: \n raise E\n"),
    "several in a body": ("def f(): a(); b(); return 1\n", "def f(): \n a(); \n b(); \n return 1\n"),
    "below a margin": ("class A:\n\tdef f(s): return 1\n", "class A:\n\tdef f(s): \n\t return 1\n"),
    "elif and else": ("if a: b()\nelif c: d()\nelse: e()\n", "if a: \n b()\nelif c: \n d()\nelse: \n e()\n"),
    "handlers": (
        "try: a()\nexcept E: b()\nfinally: c()\n",
        "try: \n a()\nexcept E: \n b()\nfinally: \n c()\n",
    ),
    "cases": (
        "match a:\n  case (\n 1): b()\n  case _: c()\n",
        "match a:\n  case (\n 1): \n   b()\n  case _: \n   c()\n",
    ),
    "behind a string": ('a = """\n  b"""; c()\n', 'a = """\n  b"""; \nc()\n'),
    "behind a bracket": ("if (a and\n  b): c()\n", "if (a and\n  b): \n c()\n"),
    "beside a placeholder": ("if a: pass; b()\n", "if a: \n pass; \n b()\n"),
    "behind a continuation": ("if a: \\\n    b(); c()\n", "if a: \\\n    \n b(); \n c()\n"),
    "behind wide characters": ("é = 'ü'; b()\n", "é = 'ü'; \nb()\n"),
    "carriage returns": ("a = 1; b = 2\r\nc = 3\r", "a = 1; \nb = 2\nc = 3\n"),
    "behind a form feed": ("\x0ca = 1; b = 2\n", "\x0ca = 1; \n\x0cb = 2\n"),
}
AS_IT_STANDS = [
    "import os, sys\nx = [\n    1,\n    2]\n",
    "class E(Exception): pass\ndef f(): ...\ndef g(): 'a docstring'\n",
    "a = 1;\nb = 2  # a comment; with a sign\n",
    "if a: \\\n    b()\n",
    "@d\ndef f(\n    a=1,\n):\n    return lambda: (a, a)\n",
]


@pytest.mark.parametrize(("source", "wanted"), FOLDED.values(), ids=FOLDED.keys())
def test_statements_that_share_a_line_get_one_each(source: str, wanted: str) -> None:
    assert unfolded(source) == wanted


@pytest.mark.parametrize("source", AS_IT_STANDS)
def test_a_text_with_one_statement_a_line_stays_as_it_is(source: str) -> None:
    assert unfolded(source) is source


SIMPLE = st.sampled_from(
    ["a()", "x = 1", "return_ = '''q\n;'''", "y = (1,\n 2)", "pass", "...", "'s'", "é = 'ü;:'", "d(\\\n1)"]
)
LISTS = st.lists(SIMPLE, min_size=1, max_size=4).map("; ".join)
HEADERS = ["if a:", "while (b and\n c):", "def f(q=1):", "class C:", "with w as v:", "for i in j:"]


def _compound(bodies: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    indented = bodies.map(lambda body: "\n" + "\n".join(_margin(body)))
    body = st.one_of(LISTS.map(lambda one: " " + one), LISTS.map(lambda one: " \\\n   " + one), indented)
    plain = st.builds("{}{}".format, st.sampled_from(HEADERS), body)
    tried = st.builds("try:{}\nexcept E as e:{}\nelse:{}\nfinally:{}".format, body, body, body, body)
    matched = st.builds("match m:\n case (\n1):{}\n case _:{}".format, LISTS, LISTS)
    decorated = st.builds("@d(1,\n 2)\nasync def g():{}".format, body)
    chained = st.builds("if a:{}\nelif b:{}\nelse:{}".format, body, body, body)
    return st.lists(
        st.one_of(LISTS, plain, tried, matched, decorated, chained, st.just("# a comment \\")),
        min_size=1,
        max_size=4,
    ).map(lambda parts: "\n".join([*parts, "z = 0"]))


def _margin(text: str) -> list[str]:
    """Indent a body including its strings, because both sides of the comparison have the same ones."""
    return ["    " + line for line in text.split("\n")]


@given(st.recursive(LISTS, _compound, max_leaves=12))
def test_the_syntax_tree_stays_and_no_statement_stands_behind_another(source: str) -> None:
    tree = ast.parse(source)
    text = unfolded(source)
    assert ast.dump(ast.parse(text)) == ast.dump(tree)
    lines = physical_lines(text)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt) and not (is_placeholder(node) or is_text_only(node)):
            before = lines[node.lineno - 1].encode()[: node.col_offset]
            assert not before.strip(), (source, text)
