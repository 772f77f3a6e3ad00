import codecs
from pathlib import Path

import pytest
from small_trees import Link, tree_of

from gistpoint.core.code.index import index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.splice import replace_definition, with_definition


def replaced(source: bytes | str, name: str, code: str, *, allow_decorator_change: bool = False) -> str:
    data = source if isinstance(source, bytes) else source.encode()
    index = index_source("a.py", data)
    result = replace_definition(index, index.find(name), code, allow_decorator_change=allow_decorator_change)
    return result.decode(index.encoding)


def refusal(source: bytes | str, name: str, code: str) -> CodeError:
    with pytest.raises(CodeError) as caught:
        replaced(source, name, code)
    return caught.value


CLASS = """\
# top
class A:
    # above

    @d1  # one
    # between
    @d2(
        1
    )
    def f(self):  # header
        return 1  # last
        # tail

    # below
    def g(self): return 2
"""


def test_decorators_and_comments_around_stay() -> None:
    assert replaced(CLASS, "f", "def f(self):\n    return 3\n") == CLASS.replace(
        "def f(self):  # header\n        return 1  # last\n        # tail", "def f(self):\n        return 3"
    )


@pytest.mark.parametrize("decorators", ["@d1\n@d2(1)\n", "@ d1\n# other\n@d2( 1 , )\n", "@(d1)\n@d2(\n1)\n"])
def test_the_same_decorators_may_be_sent_and_keep_their_text(decorators: str) -> None:
    assert replaced(CLASS, "f", f"{decorators}def f(self): return 3") == replaced(
        CLASS, "f", "def f(self): return 3"
    )


@pytest.mark.parametrize("decorators", ["@d1\n", "@d2(1)\n@d1\n", "@d1\n@d2(2)\n", "@d1\n@d2(1)\n@d3\n"])
def test_other_decorators_are_refused_unless_allowed(decorators: str) -> None:
    code = f"{decorators}def f(self): return 3"
    assert "decorators" in refusal(CLASS, "f", code).message
    result = replaced(CLASS, "f", code, allow_decorator_change=True)
    head, tail = CLASS[: CLASS.index("    @d1")], CLASS[CLASS.index("\n\n    # below") :]
    assert result == head + "".join(f"    {line}\n" for line in code.split("\n"))[:-1] + tail


def test_decorators_on_a_bare_definition_are_refused() -> None:
    assert "none" in refusal(CLASS, "g", "@d1\ndef g(self): return 2").message


def test_a_definition_may_stand_at_any_margin() -> None:
    code = 'def f(self):\n    """doc\n  text\n    """\n    x = (1,\n2)\n    return f"""\n{x}\n  """'
    wanted = replaced(CLASS, "f", code)
    assert '"""doc\n  text\n    """\n' in wanted
    assert 'return f"""\n{x}\n  """' in wanted
    moved = (
        '\tdef f(self):\n\t    """doc\n  text\n    """\n\t    x = (1,\n\t2)\n\t    return f"""\n{x}\n  """'
    )
    assert replaced(CLASS, "f", moved) == wanted


def test_comments_and_blank_lines_around_the_code_are_not_taken() -> None:
    code = "\n# note\n\ndef g(self): return 2\n\n# end\n\n"
    assert replaced(CLASS, "g", code) == CLASS


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("sent", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("ended", [True, False])
def test_the_file_keeps_its_line_ends(newline: str, sent: str, ended: bool) -> None:
    source = CLASS.replace("\n", newline)
    source = source if ended else source.removesuffix(newline)
    code = 'def g(self):\n    return """a\nb"""\n'.replace("\n", sent)
    wanted = source.replace("def g(self): return 2", f'def g(self):{newline}        return """a{newline}b"""')
    assert replaced(source, "g", code) == wanted


def test_lines_that_stay_keep_their_bytes_in_a_file_of_mixed_line_ends() -> None:
    source = "class A:\r\n  def f(self):\n    a = 1\r\n \r\n    b = 2  \n    c = 3\r\n  x = 1\n"
    shown = "def f(self):\n  a = 1\n \n  b = 2  \n  c = 3"
    assert replaced(source, "f", shown) == source
    wanted = source.replace("    b = 2  \n", "    b = 4\r\n")
    assert replaced(source, "f", shown.replace("b = 2  ", "b = 4")) == wanted


def test_tabs_and_spaces_follow_the_file() -> None:
    tabs = "class A:\n\tdef f(self):\n\t\tif 1:\n\t\t\treturn 1\n"
    spaces = (
        "def f(self):\n    # c\n    if 1:\n        return (1,\n                2)\n    return '''\n    x'''"
    )
    wanted = (
        "class A:\n\tdef f(self):\n\t\t# c\n\t\tif 1:\n"
        "\t\t\treturn (1,\n\t\t\t        2)\n\t\treturn '''\n    x'''\n"
    )
    assert replaced(tabs, "f", spaces) == wanted
    two = "class A:\n  def f(self): return 1\n  def g(self):\n    return 1\n"
    assert replaced(two, "f", "def f(self):\n\tif 1:\n\t\treturn 2") == two.replace(
        "return 1\n", "\n    if 1:\n      return 2\n", 1
    ).replace(": \n", ":\n")


@pytest.mark.parametrize(
    ("source", "name", "code", "wanted"),
    [
        ("def f(): return 1", "f", "def f():\n  return 2\n", "def f():\n  return 2"),
        ("x = 1\ndef f(): a; b;  # c\ny = 1", "f", "def f(): pass", "x = 1\ndef f(): pass\ny = 1"),
        ("def f(): return 1 \\\n\ny = 1", "f", "def f(): pass", "def f(): pass\ny = 1"),
        ("\f\ndef f(): 1\n\f\ny = 1", "f", "def f(): 2", "\f\ndef f(): 2\n\f\ny = 1"),
        ("class A:\n\f  def f(self): 1\n", "f", "def f(self):\n  2", "class A:\n\f  def f(self):\n    2\n"),
        ("async def f(): await x\n", "f", "def f(): pass", "def f(): pass\n"),
        ("def f(): pass\n", "f", "async def f(): await x", "async def f(): await x\n"),
        ("def o():\n  def i(): 1\n  return i\n", "i", "def i(): 2", "def o():\n  def i(): 2\n  return i\n"),
        ("class A: pass", "A", "class A:\n  x = 1\n", "class A:\n  x = 1"),
        (
            "if 1:\n def f(): 1\nelse:\n def f(): 2\n",
            "f#2",
            "def f(): 3",
            "if 1:\n def f(): 1\nelse:\n def f(): 3\n",
        ),
        ("def ﬁ(): 1\n", "fi", "def fi(): 2", "def fi(): 2\n"),
        ("def f(): 1\n", "f", "\ufeffdef f(): 2", "def f(): 2\n"),
    ],
)
def test_odd_places(source: str, name: str, code: str, wanted: str) -> None:
    assert replaced(source, name, code) == wanted


def test_one_accessor_of_a_property_is_replaced_and_the_others_stay() -> None:
    source = (
        "class A:\n    @property\n    def v(self): return 1\n    @v.setter\n    def v(self, x): pass\n"
        "    @v.deleter\n    def v(self): pass\n"
    )
    assert replaced(source, "v#1", "def v(self): return 2") == source.replace("return 1", "return 2")
    assert replaced(source, "v#2", "@v.setter\ndef v(self, x): 5") == source.replace("x): pass", "x): 5")
    assert replaced(source, "v#3", "def v(self): 6") == source[:-5] + "6\n"
    assert "v#1 (line 3)" in refusal(source, "v", "def v(self): return 2").message


def test_encoding_and_mark_stay() -> None:
    latin = "# coding: latin-1\ndef f(): return 'é'\n# ü\n".encode("latin-1")
    index = index_source("a.py", latin)
    assert replace_definition(index, index.get("f"), "def f(): return 'à'") == latin.replace(b"\xe9", b"\xe0")
    marked = codecs.BOM_UTF8 + b"def f(): 1\n"
    index = index_source("a.py", marked)
    assert replace_definition(index, index.get("f"), "def f(): 2") == marked.replace(b"1", b"2")


def test_a_character_outside_the_encoding_is_refused_with_its_line() -> None:
    caught = refusal(b"# coding: latin-1\nx = 1\ndef f(): pass\n", "f", "def f():\n  return '€'")
    assert "U+20AC" in caught.message
    assert caught.line == 4


def test_a_file_that_would_change_elsewhere_is_refused() -> None:
    assert "utf-7" in refusal(b"# coding: utf-7\ndef f(): pass\n# +AGE-\n", "f", "def f(): 1").message


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("", "empty"),
        (" \n\t\f\n# only a comment\n", "empty"),
        ("import os\ndef g(self): pass", "an import .line 1., a function .line 2."),
        ("def g(self): pass\ng()", "an expression .line 2."),
        ("def g(self): pass\ndef g(self): pass", "not one definition"),
        ("x = 1", "an assignment"),
        ("return 2", "a statement, not"),
        ("if 1:\n  def g(self): pass", "a statement, not"),
        ("  def g(self): pass\nx = 1", "margin"),
        ("  def g(self): pass\nelse:\n  pass", "margin"),
        ("def h(self): pass", "defines h, not g"),
        ("class g: pass", "is a function"),
        ("def g(self:\n  pass", r"parsed.*line 1"),
        ("# c\n  def g(self):\n    x = = 1", r"parsed.*line 3"),
        ("def g(self):\nreturn 1", r"parsed.*line 2"),
        ("def g(self): 'abc", r"parsed.*line 1"),
        ("def g(self): '''abc", r"parsed.*line 1"),
        ("def g(self): return 1 \\", r"parsed.*line 1"),
        ("def g(self, self): pass", r"compile.*duplicate argument"),
        ("def g(self):\n  nonlocal nowhere", r"compile.*nonlocal"),
        ("def g(self):\n  break", r"compile.*break"),
        ("def g(self): '\0'", "null byte on line 1"),
        ("def g(self):\n  '\ud800'", "line 2"),
        ("def g(self): " + "(" * 3000, "parsed"),
        ("def g(self): x = " + "-" * 100_000 + "1", "parsed"),
        ("```python\ndef g(self): pass\n```", "fence"),
        ("lambda g: 1", "an expression, not"),
        ("\\\ndef g(self): pass\n  x", "parsed"),
        ("def g(self): pass; \x0b x", "parsed"),
    ],
)
def test_code_that_is_not_the_definition_is_refused(code: str, said: str) -> None:
    with pytest.raises(CodeError, match=said):
        replaced(CLASS, "g", code)


def test_a_file_that_did_not_compile_before_can_still_be_worked_on() -> None:
    source = "def a(x, x): pass\ndef f(): 1\n"
    assert replaced(source, "f", "def f(): 2") == "def a(x, x): pass\ndef f(): 2\n"


def test_a_new_class_may_have_other_methods() -> None:
    source = "class A:\n  def f(self): pass\nclass B:\n  def f(self): pass\n"
    assert replaced(source, "A", "class A:\n    def g(self): pass") == source.replace(
        "  def f(self): pass\nclass B", "    def g(self): pass\nclass B"
    )


def test_a_definition_behind_a_line_continuation_is_refused() -> None:
    assert "continuation" in refusal("if 1:\n  \\\n\n  pass\n\\\ndef f(): pass\n", "f", "def f(): 1").message


def test_a_cookie_in_the_new_code_changes_nothing() -> None:
    assert replaced("\ndef f(): pass\n", "f", "def f():  # coding: latin-1\n  'é'").startswith(
        "\ndef f():  # coding"
    )


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("def a(): pass\ndef f(): 2\ndef c(): pass\n", "other names"),
        ("def a(): pass\ndef b(): pass\ndef g(): pass\ndef f(): 2\n", "other names"),
        ("def f(): 2\ndef a(): pass\ndef b(): pass\n", "other names"),
        ("def a(): pass\ndef f(): 3\ndef b(): pass\n", "would mean something else"),
        ("def a(): pass\ndef f(): 2\ndef b(: pass\n", "With this code a.py can't be parsed"),
    ],
)
def test_no_result_is_given_out_that_is_not_the_old_file_with_the_new_definition(
    monkeypatch: pytest.MonkeyPatch, result: str, said: str
) -> None:
    monkeypatch.setattr("gistpoint.core.code.splice.spliced_text", lambda *_, **__: result)
    assert said in refusal("def a(): pass\ndef f(): 1\ndef b(): pass\n", "f", "def f(): 2").message


def test_a_definition_is_replaced_in_the_file_that_a_link_names(tmp_path: Path) -> None:
    tree = tree_of({"pkg/a.py": "def f(): return 1\n", "b.py": Link("pkg/a.py")}, tmp_path)
    changed = with_definition(tree, "b.py", "f", "def f(): return 2")
    assert set(changed.overlay) == {"pkg/a.py"}
    assert changed.read("b.py") == changed.read("pkg/a.py") == b"def f(): return 2\n"
    with pytest.raises(CodeError):
        with_definition(tree, "b.py", "g", "def g(): return 2")
