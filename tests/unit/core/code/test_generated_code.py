"""Functions that nobody would write, and text that is not code."""

from __future__ import annotations

import contextlib
import string

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gistpoint.core.code.index import index_source
from gistpoint.core.code.names import FunctionRef
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.splice import remove_body, replace_definition

STATEMENTS = (
    "pass",
    "a; b;",
    "raise a  # c: 'x'",
    "x = (1,\n2,\n      3)",
    'x = """a\n  b\n\tc\n"""',
    "x = '''\\\n'''",
    "x = f'''{a}\n {b!r:>{c}}\n'''",
    "x = 'a\\\n   b'",
    "x = ('a'  # c\n'b'\n  'c')",
    "x = a + \\\n  b",
    "# a comment, deep",
    "",
    "lambda: (yield)",
    "x = {1: lambda: 2, **{}}[1]",
    'x = rb"\\n" b"""\n"""',
    "x = 'é ü 漢 \U0001f600'",
    "x: int = 1; y = {'}': ')'}",
    "\f",
    "assert x, '# no comment'",
)
BLOCKS = (
    "if a:",
    "while a:  # c",
    "for _ in a:",
    "try:",
    "with a as b, \\\n  c:",
    "def inner(q='''\n'''):",
    "class C(\n):",
)
DECORATORS = ("@d", "@d(1,\n 2)", "@(\nd\n)", "@d  # c", "@d.e[0]", '@d("""\n@\n""")', "# between")
HEADERS = (
    "def f():",
    "async def f(a, *, b=':'):  # c",
    "def f(a=lambda: {1: 2},\n  # c\nb='''\n''') -> 'x:':",
    "def \\\n f ( ) :",
)
DOCSTRINGS = ("", "'doc'", '"""doc\n  more\n\t"""  # c', "('a'\n'b')")


def indented(text: str, margin: str) -> str:
    """Return `text` with `margin` before its first line only: later lines are in brackets or strings."""
    return margin + text if text.strip() else text


@st.composite
def bodies(draw: st.DrawFn, margin: str, unit: str, depth: int = 0) -> list[str]:
    lines = []
    for _ in range(draw(st.integers(1, 4))):
        if depth < 2 and draw(st.integers(0, 3)) == 0:
            block = draw(st.sampled_from(BLOCKS))
            lines.append(indented(block, margin))
            lines += draw(bodies(margin + unit, unit, depth + 1))
            lines.append(margin + unit + "pass")
            if block == "try:":
                lines += [f"{margin}finally:", f"{margin}{unit}pass"]
        else:
            lines.append(indented(draw(st.sampled_from(STATEMENTS)), margin))
    return lines


@st.composite
def functions(draw: st.DrawFn, margin: str, unit: str) -> str:
    lines = [indented(item, margin) for item in draw(st.lists(st.sampled_from(DECORATORS), max_size=3))]
    header = indented(draw(st.sampled_from(HEADERS)), margin)
    if draw(st.integers(0, 4)) == 0:
        one_line = header.partition("  #")[0] if header.endswith("# c") else header
        lines.append(
            one_line + draw(st.sampled_from((" pass", " 'doc'; x = '''\n'''; ", " return (1,\n2)  # c")))
        )
        return "\n".join(lines)
    lines.append(header)
    docstring = draw(st.sampled_from(DOCSTRINGS))
    if docstring:
        lines.append(indented(docstring, margin + unit))
    lines += draw(bodies(margin + unit, unit))
    lines.append(margin + unit + "pass")
    return "\n".join(lines)


@st.composite
def sources(draw: st.DrawFn) -> bytes:
    """Draw a file that contains `f` at some margin between other code, with some kind of line ends."""
    unit = draw(st.sampled_from(("    ", "  ", "\t", " \t")))
    depth = draw(st.integers(0, 2))
    parts = [draw(st.sampled_from(("", "#!/bin/x", "# c\n\f", "'''m\n'''")))]
    parts += [unit * level + ("class K:", "if 1:")[level] for level in range(depth)]
    margin = unit * depth
    parts += [margin + "before = '''\n'''  # c", draw(functions(margin, unit))]
    parts += draw(
        st.lists(st.sampled_from((margin + "# after", "", margin + "after = 1", "# left")), max_size=3)
    )
    text = "\n".join(parts) + draw(st.sampled_from(("", "\n")))
    newline = draw(st.sampled_from(("\n", "\r\n", "\r", "mixed")))
    if newline == "mixed":
        pieces = text.split("\n")
        ends = draw(
            st.lists(st.sampled_from(("\n", "\r\n", "\r")), min_size=len(pieces), max_size=len(pieces))
        )
        text = "".join(piece + end for piece, end in zip(pieces[:-1], ends, strict=False)) + pieces[-1]
        # A CR before an empty line that ends in LF would form a single line end.
        assume(
            "\r\n" not in text.replace("\r\n", "") and len(pieces) - 1 == sum(1 for _ in text_lines(text)) - 1
        )
    else:
        text = text.replace("\n", newline)
    return draw(st.sampled_from((b"", b"\xef\xbb\xbf"))) + text.encode()


def text_lines(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


@given(sources())
def test_any_function_replaced_by_itself_leaves_the_file_as_it_was(source: bytes) -> None:
    index = index_source("a.py", source)
    target = index.find("f")
    for code in (target.dedented, target.source, target.dedented.replace("\n", "\r\n")):
        assert replace_definition(index, target, code) == source


@given(sources(), functions("", "    "))
def test_any_function_replaced_by_another_leaves_the_rest_as_it_was(source: bytes, code: str) -> None:
    index = index_source("a.py", source)
    target = index.find("f")
    result = replace_definition(index, target, code, allow_decorator_change=True)
    assert result.startswith(source[: target.start_byte])
    assert result.endswith(source[target.end_byte :])
    again = replace_definition(index_source("a.py", result), index_source("a.py", result).find("f"), code)
    assert again == result


@given(sources())
def test_any_stub_is_taken_in_place_of_its_function(source: bytes) -> None:
    index = index_source("a.py", source)
    target = index.find("f")
    result = replace_definition(index, target, remove_body(index, target))
    stubbed = index_source("a.py", result).find("f")
    assert (stubbed.docstring, stubbed.decorators) == (target.docstring, target.decorators)
    assert remove_body(index_source("a.py", result), stubbed) == stubbed.dedented


PIECES = st.sampled_from(
    [
        "def f():",
        "\n",
        " ",
        "    ",
        "\t",
        "return 1",
        "'''",
        '"',
        "#",
        "\\",
        "(",
        ")",
        "@d",
        "class f:",
        ":",
        ";",
        "f'{",
        "}",
    ]
)
HOSTILE = st.one_of(
    st.text(max_size=60),
    st.text(st.characters(), max_size=60).map(lambda text: f"def f(): {text}"),
    st.text(string.printable, max_size=80).map(lambda text: f"def f():\n  {text}"),
    st.lists(PIECES, max_size=25).map("".join),
    st.text(st.sampled_from("\0\r\n\f\x0b\ud800\u2028\ufeff\x1a a'\"\\#"), max_size=20).map(
        lambda t: f"def f():\n '{t}"
    ),
)


@given(HOSTILE)
def test_any_text_is_taken_or_refused_and_never_more(code: str) -> None:
    source = b"a = 1\r\nclass K:\r\n  def f(self): pass\r\nb = 2"
    index = index_source("a.py", source)
    try:
        result = replace_definition(index, index.get("K.f"), code)
    except CodeError:
        return
    assert result.startswith(b"a = 1\r\nclass K:\r\n  ")
    assert result.endswith(b"\r\nb = 2")
    assert [item.ref.plain for item in index_source("a.py", result).definitions][:2] == ["K", "K.f"]


@given(st.binary(max_size=80) | HOSTILE.map(lambda text: text.encode(errors="surrogatepass")))
def test_any_bytes_are_indexed_or_refused(source: bytes) -> None:
    try:
        index = index_source("a.py", source)
    except CodeError:
        return
    for item in index.definitions:
        assert item.signature
        assert item.source.lstrip()


@given(st.text(max_size=30))
def test_any_name_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(CodeError):
        assert FunctionRef.parse(str(FunctionRef.parse(text))) == FunctionRef.parse(text)
    with pytest.raises(CodeError):
        index_source("a.py", b"x = 1").find(text)
