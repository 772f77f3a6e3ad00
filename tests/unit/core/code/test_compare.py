import pytest

from gistpoint.core.code.compare import same_behaviour_tree
from gistpoint.core.code.errors import CodeError


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("def f(): return 1", "  def f():\n\n      # c\n      return (1)\n"),
        ("def f():\n  'a'\n  return 1", "def f():\n  'b'\n  return 1"),
        ("def f():\n  'a'\n  return 1", "def f():\n  return 1"),
        ("def f(): 'a'", "def f(): pass"),
        ("class A:\n  'a'\n  def f(self): 'x'; return 'b'", "class A:\n  def f(self): return u'b'"),
        ("def f(): return 0x10", "def f(): return 16"),
        ("def f(): return 'a' 'b'", "def f(): return 'ab'"),
    ],
)
def test_layout_comments_and_docstrings_make_no_difference(a: str, b: str) -> None:
    assert same_behaviour_tree(a, b)
    assert same_behaviour_tree(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("def f(): return 1", "def f(): return True"),
        ("def f(): return 1", "def f(): return 1.0"),
        ("def f(): return 'a'", "def f(): return b'a'"),
        ("def f(): return 1", "async def f(): return 1"),
        ("def f(a): return 1", "def f(b): return 1"),
        ("def f(a, b=1): pass", "def f(a, b=2): pass"),
        ("@d\ndef f(): pass", "def f(): pass"),
        ("def f():\n  x = 1\n  'a'", "def f():\n  x = 1"),
        ("def f(): return x", "def f(): return x; pass"),
        ("def f(): return {**a}", "def f(): return {None: a}"),
        ("def f():\n  'a'\n  'b'\n  return 1", "def f():\n  'b'\n  return 1"),
    ],
)
def test_other_programs_are_told_apart(a: str, b: str) -> None:
    assert not same_behaviour_tree(a, b)
    assert not same_behaviour_tree(b, a)


def test_depth_is_no_obstacle() -> None:
    deep = "x = " + " + ".join(["a"] * 900)
    assert same_behaviour_tree(deep, deep)
    assert not same_behaviour_tree(deep, deep + " + b")


def test_what_does_not_parse_is_refused() -> None:
    with pytest.raises(CodeError, match="line 1"):
        same_behaviour_tree("def f(:", "def f(): pass")
