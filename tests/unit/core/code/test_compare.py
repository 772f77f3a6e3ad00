from __future__ import annotations

import ast
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gistpoint.core.code.compare import same_program
from gistpoint.core.code.parsing import CodeError

SAME = [
    ("def f(): return 1", "  def f():\n\n      # c\n      return (1)\n"),
    ("def f():\n  'a'\n  return 1", "def f():\n  'b'\n  return 1"),
    ("def f():\n  'a'\n  return 1", "def f():\n  return 1"),
    ("def f(): 'a'", "def f(): pass"),
    ("class A:\n  'a'\n  def f(self): 'x'; return 'b'", "class A:\n  def f(self): return u'b'"),
    ("def f(): return 0x10", "def f(): return 16"),
    ("def f(): return 'a' 'b'", "def f(): return 'ab'"),
    # Bare constants, `pass` and `...`
    ("def f():\n  x = 1\n  'a'", "def f():\n  x = 1"),
    ("def f():\n  'a'\n  'b'\n  return 1", "def f():\n  'b'\n  return 1"),
    ("def f():\n  1; None; b'x'; ...\n  return x", "def f(): return x"),
    ("def f(): return x", "def f(): return x; pass"),
    ("def f(): pass", "def f(): ..."),
    ("def f(): pass; pass", "def f(): 'a'; ...; 1"),
    ("def f():\n  for a in b:\n    pass; c()\n  else:\n    pass; d()", "def f():\n  for a in b: c()\n  else: d()"),
    ("def f():\n  if a: b\n  else: 'here'", "def f():\n  if a: b"),
    ("def f():\n  try: a()\n  except E: 'x'; b()", "def f():\n  try: a()\n  except E: b()"),
    ("def f():\n  match a:\n    case 1: pass; b()", "def f():\n  match a:\n    case 1: b()"),
    # Annotations
    ("def f(a: int, *b: str, c: 'x' = 1, **d: e) -> int: return a", "def f(a, *b, c=1, **d): return a"),
    ("def f():\n  x: int = 1\n  return x", "def f():\n  x = 1\n  return x"),
    ("def f():\n  x: int\n  x = 1", "def f():\n  x = 1"),
    ("def f():\n  x: int", "def f(): pass"),
    ("def f():\n  def g(a: int): y: str = a; return y\n  g", "def f():\n  def g(a): y = a; return y\n  g"),
    # Names of local variables
    ("def f(a):\n  x = a\n  return x", "def f(a):\n  y = a\n  return y"),
    ("def f():\n  for i, j in a: i(j)", "def f():\n  for j, i in a: j(i)"),
    ("def f():\n  with a as b: b()", "def f():\n  with a as c: c()"),
    ("def f():\n  try: a()\n  except E as e: e()", "def f():\n  try: a()\n  except E as x: x()"),
    ("def f(): return [x for x in a if x]", "def f(): return [y for y in a if y]"),
    ("def f():\n  x = 1\n  return [x for x in a], x", "def f():\n  y = 1\n  return [z for z in a], y"),
    ("def f():\n  import os\n  return os", "def f():\n  import os as o\n  return o"),
    ("def f():\n  from a import b\n  return b", "def f():\n  from a import b as c\n  return c"),
    ("def f():\n  def g(): return g\n  return g", "def f():\n  def h(): return h\n  return h"),
    ("def f():\n  class A: b = 1\n  return A.b", "def f():\n  class C: b = 1\n  return C.b"),
    ("def f():\n n = 0\n def g():\n  nonlocal n\n  n += 1", "def f():\n m = 0\n def g():\n  nonlocal m\n  m += 1"),
    ("def f():\n  if (n := a): return n", "def f():\n  if (m := a): return m"),
    ("def f(): return [y := 1 for x in a], y", "def f(): return [z := 1 for b in a], z"),
    ("def f():\n  match a:\n    case [b, *c]: b(c)", "def f():\n  match a:\n    case [c, *b]: c(b)"),
    ("def f():\n  match a:\n    case {1: b, **c}: b(c)", "def f():\n  match a:\n    case {1: x, **y}: x(y)"),
    ("def f():\n  x = 1\n  del x", "def f():\n  y = 1\n  del y"),
    ("def f():\n  x = 1\n  return lambda a: x + a", "def f():\n  y = 1\n  return lambda a: y + a"),
]  # fmt: skip
OTHER = [
    ("def f(): return 1", "def f(): return True"),
    ("def f(): return 1", "def f(): return 1.0"),
    ("def f(): return 'a'", "def f(): return b'a'"),
    ("def f(): return 1", "async def f(): return 1"),
    ("def f(): return 1", "def g(): return 1"),
    ("def f(a): return 1", "def f(b): return 1"),
    ("def f(a): return a", "def f(b): return b"),
    ("def f(): return lambda a: a", "def f(): return lambda b: b"),
    ("def f(a, b=1): pass", "def f(a, b=2): pass"),
    ("@d\ndef f(): pass", "def f(): pass"),
    ("def f(): return {**a}", "def f(): return {None: a}"),
    ("def f(): return x", "def f(): return y"),
    ("def f():\n  global x\n  x = 1", "def f():\n  global y\n  y = 1"),
    ("def f():\n  global x\n  x = 1", "def f():\n  x = 1"),
    ("def f():\n  x = 1\n  return y", "def f():\n  y = 1\n  return y"),
    ("def f():\n  x = a; y = b\n  return x", "def f():\n  x = a; y = b\n  return y"),
    ("def f():\n  x = 1\n  return [x for x in a], x", "def f():\n  x = 1\n  return [x for y in a], x"),
    ("def f():\n  import a.b\n  return a", "def f():\n  import c.b\n  return c"),
    ("def f(): self.x = 1", "def f(): self.y = 1"),
    ("def f(): self.x: int = 1", "def f(): self.x = 1"),
    ("def f():\n  class A: b: int = 1", "def f():\n  class A: b = 1"),
    ("def f():\n  class A: b = 1", "def f():\n  class A: c = 1"),
    ("def f(): g(a=1)", "def f(): g(b=1)"),
    # Only listed differences are ignored
    ("def f():\n  if True: return x", "def f(): return x"),
    ("def f():\n  if a: b()\n  else: pass", "def f():\n  if a: b()"),
    ("def f(): return x; y", "def f(): return x"),
    ("def f():\n  x\n  return 1", "def f(): return 1"),
    ("def f():\n  assert True\n  return 1", "def f(): return 1"),
    ("def f():\n  (1, 2)\n  return 1", "def f(): return 1"),
    ("def f():\n  f'{a}'\n  return 1", "def f(): return 1"),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), SAME)
def test_what_makes_no_difference(a: str, b: str) -> None:
    assert same_program(a, b)
    assert same_program(b, a)


@pytest.mark.parametrize(("a", "b"), OTHER)
def test_other_programs_are_told_apart(a: str, b: str) -> None:
    assert not same_program(a, b)
    assert not same_program(b, a)


def test_depth_is_no_obstacle() -> None:
    deep = "def f():\n  x = " + " + ".join(["a"] * 900)
    assert same_program(deep, deep.replace("x", "y"))
    assert not same_program(deep, deep + " + b")


def test_what_does_not_parse_is_refused() -> None:
    with pytest.raises(CodeError, match="line 1"):
        same_program("def f(:", "def f(): pass")


NAMES = ("v0", "v1", "v2")
"""Names of local variables in the programs below."""
terms = st.sampled_from([*NAMES, "p", "q", "1", "2", "K"])
simple = st.one_of(
    st.builds("{} = {} + {}".format, st.sampled_from(NAMES), terms, terms),
    st.builds(
        "{} = [{} * {} for {} in (p, q, 3)]".format, st.sampled_from(NAMES), *[st.sampled_from(NAMES)] * 3
    ),
    st.builds("{} = (lambda p: p - {})({})".format, st.sampled_from(NAMES), terms, terms),
    st.builds("{} += {}".format, st.sampled_from(NAMES), terms),
    st.builds("seen.append({})".format, terms),
)
idle = st.sampled_from(["pass", "...", "'text'", "0", "None", "v9: int"])
blocks = st.lists(simple, min_size=1, max_size=5)
programs = st.lists(
    st.one_of(
        simple.map(lambda line: [line]),
        st.tuples(terms, blocks).map(lambda it: [f"if {it[0]}:", *("    " + line for line in it[1])]),
        st.tuples(st.sampled_from(NAMES), blocks).map(
            lambda it: [f"for {it[0]} in (1, q):", *("    " + line for line in it[1])]
        ),
    ),
    min_size=1,
    max_size=5,
).map(lambda parts: list(itertools.chain.from_iterable(parts)))


def function(lines: list[str], names: tuple[str, ...] = NAMES, *, parameters: str = "p, q") -> str:
    head = [f"def f({parameters}):", "    v0 = v1 = v2 = p", "    seen = []"]
    text = "\n".join([*head, *("    " + line for line in lines), "    return v0, v1, v2, seen"])
    for old, new in zip(NAMES, names, strict=True):
        text = text.replace(old, new)
    return text


def result(text: str) -> Any:
    space: dict[str, Any] = {"K": 5}
    exec(text, space)
    shown = []
    for p, q in ((0, 1), (3, -2)):
        try:
            shown.append(repr(space["f"](p, q)))
        except (TypeError, OverflowError, MemoryError) as error:
            shown.append(type(error).__name__)
    return shown


@given(programs, st.permutations(["a", "_", "v7", "fox", "seen2"]), st.data())
def test_idle_statements_annotations_and_names_are_no_change(
    lines: list[str], names: list[str], data: st.DataObject
) -> None:
    busy = list(lines)
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(busy)))
        margin = len(busy[at]) - len(busy[at].lstrip()) if at < len(busy) else 0
        busy.insert(at, " " * margin + data.draw(idle))
    plain, other = function(lines), function(busy, tuple(names[:3]), parameters="p: int, q: 'K'")
    assert same_program(plain, other)


@given(programs, programs, st.lists(st.sampled_from(["a", "b", "c"]), min_size=3, max_size=3))
def test_what_is_called_the_same_does_the_same(lines: list[str], others: list[str], names: list[str]) -> None:
    """Variables whose new names are alike become one, which only differs where it shows."""
    one, renamed = function(lines), function(lines, tuple(names))
    assert same_program(one, renamed) or len(set(names)) < len(names)
    for other in (renamed, function(others)):
        if same_program(one, other):
            assert result(one) == result(other)


@given(programs, st.data())
def test_a_statement_less_is_a_change(lines: list[str], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(lines) - 1))
    fewer = [line for place, line in enumerate(lines) if place != at]
    try:
        ast.parse(function(fewer))
    except SyntaxError:
        return
    assert not same_program(function(lines), function(fewer))


@given(programs, st.data())
def test_one_variable_for_another_is_a_change_where_it_shows(lines: list[str], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(lines) - 1))
    a, b = data.draw(st.permutations(NAMES))[:2]
    changed = [line.replace(a, b) if place == at else line for place, line in enumerate(lines)]
    if result(function(lines)) != result(function(changed)):
        assert not same_program(function(lines), function(changed))
