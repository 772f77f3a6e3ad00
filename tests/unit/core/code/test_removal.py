import pytest

from gistpoint.core.code.index import index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.splice import remove_body, replace_definition


def stub(source: str, name: str = "f", path: str = "a.py") -> str:
    index = index_source(path, source.encode())
    return remove_body(index, index.find(name))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(): return 1", "def f():\n    pass"),
        ("def f(): 'doc'; return 1", "def f():\n    'doc'\n    pass"),
        ("def f():  # secret\n  # secret\n\n  return 1  # secret\n  # secret\n", "def f():\n  pass"),
        ("def f():  # secret\n  # secret\n  'doc'  # secret\n  return 1", "def f():\n  'doc'\n  pass"),
        (
            "def f():\n  ('doc'  # kept\n   'more'); secret()\n",
            "def f():\n  ('doc'  # kept\n   'more')\n  pass",
        ),
        ("class A:\n\tdef f(self):\n\t\t'''a\n\tb'''\n\t\tx", "def f(self):\n\t'''a\n\tb'''\n\tpass"),
        ("class A:\n\tdef f(self): return 1", "def f(self):\n\tpass"),
        (
            "@a\n# c\n@b(\n 1)\nasync def f(\n  x,  # c\n): return 1",
            "@a\n# c\n@b(\n 1)\nasync def f(\n  x,  # c\n):\n    pass",
        ),
        ("def f() -> lambda: 1: return 2", "def f() -> lambda: 1:\n    pass"),
        ("def f(\\\n  a):\r\n  return 1\r\n", "def f(\\\n  a):\n  pass"),
        ("def f():\n  @d\n  def g(): pass\n  return g", "def f():\n  pass"),
        ("def f():\n  f'no docstring'\n", "def f():\n  pass"),
        ("def f(): pass # secret", "def f():\n    pass"),
    ],
)
def test_what_callers_see_stays_and_nothing_else(source: str, expected: str) -> None:
    assert stub(source) == expected
    index = index_source("a.py", source.encode())
    result = replace_definition(index, index.find("f"), stub(source)).decode()
    assert "secret" not in result
    again = index_source("a.py", result.encode()).find("f")
    assert again.dedented == expected


@pytest.mark.parametrize("base", ["Protocol", "typing.Protocol[T]"])
def test_stubs_and_protocols_get_an_ellipsis(base: str) -> None:
    assert stub(f"class P({base}):\n  def f(self):\n    return 1") == "def f(self):\n  ..."
    assert stub("def f() -> int: return 1", path="a.pyi") == "def f() -> int:\n    ..."


def test_a_class_has_no_body_to_remove() -> None:
    with pytest.raises(CodeError, match="a class"):
        stub("class A:\n  def f(self): pass", "A")
