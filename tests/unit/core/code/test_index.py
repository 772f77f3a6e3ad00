import ast
import codecs
import sys

import pytest

from gistpoint.core.code.index import Definition, DefinitionKind, FileIndex, index_source
from gistpoint.core.code.names import FunctionRef
from gistpoint.core.code.parsing import CodeError

SOURCE = '''\
"""A module."""

import functools


@functools.cache  # kept
# between
@(
    functools.wraps
)(print)
def decorated(a, *, b=lambda: {1: 2}, c=":") -> "x:y":  # the header
    """Say it.

    Twice.
    """
    return 1  # last
    # a comment of the body

# a comment of the module


class Shape(Base, metaclass=Meta):
    size: int = 0

    def area(self): return self.size

    @property
    def value(self):
        return 1

    @value.setter
    def value(self, new):
        self.new = new

    async def fetch(self):
        def inner():
            class Local:
                def deep(self): ...
        return inner


if Shape:
    def chosen(): return 1
else:
    try:
        def chosen(): return 2
    except ValueError:
        async def chosen(): return 3

def area(): pass
'''


@pytest.fixture
def index() -> FileIndex:
    return index_source("pkg/mod.py", SOURCE.encode())


def test_definitions_come_in_source_order_under_their_names(index: FileIndex) -> None:
    assert [item.qualname for item in index.definitions] == [
        "decorated",
        "Shape",
        "Shape.area",
        "Shape.value",
        "Shape.value#2",
        "Shape.fetch",
        "Shape.fetch.<locals>.inner",
        "Shape.fetch.<locals>.inner.<locals>.Local",
        "Shape.fetch.<locals>.inner.<locals>.Local.deep",
        "chosen",
        "chosen#2",
        "chosen#3",
        "area",
    ]
    assert str(index.definitions[4].ref) == "pkg/mod.py::Shape.value#2"


def test_what_a_definition_is(index: FileIndex) -> None:
    kinds = {item.qualname: item.kind for item in index.definitions}
    assert kinds["decorated"] is DefinitionKind.FUNCTION
    assert kinds["Shape"] is DefinitionKind.CLASS
    assert kinds["Shape.area"] is DefinitionKind.METHOD
    assert kinds["Shape.fetch"] is DefinitionKind.ASYNC_METHOD
    assert kinds["Shape.fetch.<locals>.inner"] is DefinitionKind.FUNCTION
    assert kinds["Shape.fetch.<locals>.inner.<locals>.Local.deep"] is DefinitionKind.METHOD
    assert kinds["chosen#3"] is DefinitionKind.ASYNC_FUNCTION
    assert [item.qualname for item in index.definitions if item.is_conditional] == [
        "chosen",
        "chosen#2",
        "chosen#3",
    ]
    assert {item.qualname: item.duplicates for item in index.definitions}["chosen#2"] == 3
    assert index.get("Shape.value#2").parent == "Shape"
    assert index.get("area").parent is None


def test_spans_parts_and_offsets(index: FileIndex) -> None:
    found = index.get("decorated")
    assert (found.start_line, found.def_line, found.end_line) == (6, 11, 17)
    assert found.decorators == ("functools.cache", "(\n    functools.wraps\n)(print)")
    assert found.docstring == "Say it.\n\nTwice."
    assert found.signature == 'def decorated(a, *, b=lambda: {1: 2}, c=":") -> "x:y"'
    assert found.source == "\n".join(SOURCE.split("\n")[5:17])
    assert SOURCE.encode()[found.start_byte : found.end_byte].decode() == found.source
    assert index.get("Shape").signature == "class Shape(Base, metaclass=Meta)"
    assert index.get("Shape.area").docstring is None


@pytest.mark.parametrize(
    "decorator",
    [
        "@d",
        "@ d",
        "@\\\nd",
        "@(\n  # a @ b\n  d\n)",
        "@(d\n)",
        "@d \\\n.e",
        '@d("""@\n@x""")\n@(\n(d))',
        "@(é\n)",
        "@(\n'é@', d)[1]",
    ],
)
def test_a_definition_starts_at_its_first_at_sign(decorator: str) -> None:
    source = f"x = 1 @ y\n{decorator}\ndef f(): pass\n"
    found = index_source("a.py", source.encode()).get("f")
    assert found.source == source.partition("\n")[2].rstrip("\n")


@pytest.mark.parametrize(
    ("source", "end_line"),
    [
        ("def f():\n    return 1\n    # mine\n\n    # mine\n\n# not\n    # not\nx = 1\n", 5),
        ("def f(): return 1; \\\n\nx = 1\n", 2),
        ("def f():\n  return 1 \\\n\n  # c\n", 4),
        ("def f():\n\tx = '''\n# text\n'''", 4),
        ("def f(): pass  # c \\\nx = 1", 1),
        ("def f(): pass\n  # c", 2),
    ],
)
def test_a_definition_ends_with_the_comments_of_its_body(source: str, end_line: int) -> None:
    assert index_source("a.py", source.encode()).get("f").end_line == end_line


@pytest.mark.parametrize(
    ("header", "signature"),
    [
        ("def f() -> lambda: 1: pass", "def f() -> lambda: 1"),
        ("def f(a, /, *, b: {1: 2} = ':', **k): pass", "def f(a, /, *, b: {1: 2} = ':', **k)"),
        ("def f(a=(1),  # : colon\n  ): pass", "def f(a=(1),  # : colon\n  )"),
        ("def f(a, *,  # :\n  b) -> (lambda: 1): # :\n  pass", "def f(a, *,  # :\n  b) -> (lambda: 1)"),
        ("async \\\n def f(é='é:'): pass", "async \\\n def f(é='é:')"),
        ("def f \\\n ( ) : pass", "def f \\\n ( ) "),
    ],
)
def test_the_signature_ends_at_the_colon_of_the_header(header: str, signature: str) -> None:
    assert index_source("a.py", header.encode()).get("f").signature == signature


def test_a_name_is_found_by_its_last_parts(index: FileIndex) -> None:
    assert index.find("fetch").qualname == "Shape.fetch"
    assert index.find("Local.deep").qualname.endswith("Local.deep")
    assert index.find("fetch.inner").qualname == "Shape.fetch.<locals>.inner"
    assert index.find("Shape.fetch.<locals>.inner").qualname == "Shape.fetch.<locals>.inner"
    assert index.find("pkg/mod.py::Shape.area").qualname == "Shape.area"
    assert index.find("area").qualname == "area"


def test_a_name_of_several_is_refused_with_the_candidates(index: FileIndex) -> None:
    with pytest.raises(CodeError, match=r"Shape\.value#1 \(line 28\), Shape\.value#2 \(line 32\)"):
        index.find("value")
    with pytest.raises(CodeError, match=r"chosen names 3 definitions"):
        index.find("chosen")
    assert index.find("chosen#1") is index.get("chosen")
    assert index.find("value#2") is index.get("Shape.value#2")
    assert index.find(FunctionRef("pkg/mod.py", "chosen")) is index.get("chosen")


@pytest.mark.parametrize(
    "name", ["", "hape", "Shape.", ".area", "locals", "x" * 10000, "chosen#4", "chosen#0", "a\0"]
)
def test_an_unknown_name_is_refused(index: FileIndex, name: str) -> None:
    with pytest.raises(CodeError, match="defines no"):
        index.find(name)
    with pytest.raises(CodeError):
        index.get(name)


def test_a_near_miss_is_suggested(index: FileIndex) -> None:
    with pytest.raises(CodeError, match=r"Did you mean decorated \(line 11\)"):
        index.find("decoratd")


def test_the_same_method_of_two_classes() -> None:
    index = index_source(
        "a.py", b"class A:\n  def f(self): 0\nclass A:\n  def f(self): 1\n  def g(self): 1\n"
    )
    assert [item.qualname for item in index.definitions] == ["A", "A.f", "A#2", "A.f#2", "A.g"]
    assert index.get("A.f#2").parent == "A#2"


def test_names_are_those_of_the_running_program() -> None:
    source = "class A:\n class B:\n  def f(self):\n   def g(): return g.__qualname__\n   return g()\nname = A.B().f()\n"
    space: dict[str, object] = {}
    exec(source, space)
    assert index_source("a.py", source.encode()).find("g").qualname == space["name"]


@pytest.mark.parametrize(
    ("source", "encoding", "newline"),
    [
        (b"def f(): pass\n", "utf-8", "\n"),
        (b"# coding: latin-1\r\ndef f(): return '\xe9'\r\n", "iso-8859-1", "\r\n"),
        (codecs.BOM_UTF8 + "def f(): return 'é'\r".encode(), "utf-8", "\r"),
        (b"#!x\r# vim: set fileencoding=cp1252 :\rdef f(): return '\x80'", "cp1252", "\r"),
        (b"a = 1\r\nb = 1\r\ndef f(): pass\n", "utf-8", "\r\n"),
        (b"# a\rcoding = 1\rdef f(): pass", "utf-8", "\r"),
    ],
)
def test_encoding_and_line_ends(source: bytes, encoding: str, newline: str) -> None:
    index = index_source("a.py", source)
    assert (index.encoding, index.newline) == (encoding, newline)
    assert source[index.get("f").start_byte :].startswith(b"def f()")
    assert not index.text.startswith("\ufeff")
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    assert index.get("f").def_line == nodes[0].lineno


@pytest.mark.parametrize(
    ("source", "line"),
    [
        (b"x = 1\ndef f(:\n", 2),
        (b"x = 1\ny = '\xff'\n", 2),
        (b"x = 1\r\r# \0", 3),
        (b"# coding: nonsense\n", 1),
        (b"# coding: rot13\n", 1),
        (b"# coding: undefined\n", 1),
        (b"# coding: utf-16\nx = 1\n", 1),
        (codecs.BOM_UTF8 + b"# coding: latin-1\n", 1),
        ("x = 1".encode("utf-16"), 1),
        (b"(" * 5000, 1),
        (b"x = " + b"-" * 100_000 + b"1", 1),
        (b"x = 1" + b" + 1" * 100_000, 1),
        (b"x = " + b"9" * 5000, 1),
        (b"\x7fELF\x02\x01", 1),
        (b"print 'a'\n", 1),
    ],
)
def test_what_is_no_python_is_refused_with_its_line(source: bytes, line: int) -> None:
    with pytest.raises(CodeError, match=rf"bad\.py.*line {line}|bad\.py") as refusal:
        index_source("bad.py", source)
    assert refusal.value.line == line


def test_an_empty_file_defines_nothing() -> None:
    index = index_source("a.py", b"")
    assert index.definitions == ()
    with pytest.raises(CodeError, match="no function or class"):
        index.find("f")


def test_deep_and_long_files_are_walked_without_recursion() -> None:
    ladder = "if a: pass\n" + "".join("elif a:\n def f(): pass\n" for _ in range(300))
    assert len(index_source("a.py", ladder.encode()).definitions) == 300
    assert sys.getrecursionlimit() <= 10_000


@pytest.mark.parametrize(
    ("bases", "expected"),
    [
        ("Protocol", True),
        ("typing.Protocol", True),
        ("A, Protocol[T]", True),
        ("MyProtocol", False),
        ("", False),
    ],
)
def test_protocols_are_told(bases: str, expected: bool) -> None:
    assert index_source("a.py", f"class P({bases}): pass".encode()).get("P").is_protocol is expected


def shown(source: str, name: str) -> str:
    found: Definition = index_source("a.py", source.encode()).find(name)
    return found.dedented


def test_what_is_shown_is_moved_to_the_margin_but_for_strings() -> None:
    source = 'class A:\r\n\t@p\r\n\tdef f(self):\r\n\t\t"""a\r\n\tb"""\r\n\r\n\t\tx = (1,\r\n2)\r\n'
    assert shown(source, "f") == '@p\ndef f(self):\n\t"""a\n\tb"""\n\n\tx = (1,\n2)'
    assert shown("class A:\n\f  def f(self):\n    pass\n", "f") == "def f(self):\n  pass"


def test_warnings_of_the_parser_are_not_shown(recwarn: pytest.WarningsRecorder) -> None:
    index_source("a.py", b"def f(): return '\\d' is 1\n")
    assert not recwarn.list
