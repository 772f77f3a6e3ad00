"""Replacing a definition changes the one that was named, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_trees import ask, context_of

from gistpoint.core.code.index import index_source
from gistpoint.core.code.splice import remove_body, replace_definition
from gistpoint.core.tools.declaration import ToolContext


def replaced(context: ToolContext, name: str, code: str, path: str = "m.py") -> str:
    output = ask(context, "replace_function", func_code=code, func_name=name, file_path=path)
    assert output.replacement is not None, output.text
    return output.replacement.on(context.tree).read(path).decode()


def test_submission_without_decorators_keeps_those_of_the_file(tmp_path: Path) -> None:
    source = (
        "import functools\n\n\n@functools.cache\n@functools.wraps(\n    print\n)\ndef f(x):\n    return x\n"
    )
    context = context_of({"m.py": source}, tmp_path)
    bare = "def f(x):\n    return x + 1\n"
    assert replaced(context, "f", bare) == source.replace("return x", "return x + 1")
    whole = ask(context, "read_function", function_name="f", file_path="m.py").text.partition("\n")[2]
    assert "@functools.cache" in whole
    assert replaced(context, "f", whole) == source


def test_removal_keeps_decorators_signature_and_docstring() -> None:
    source = b'@dec\ndef f(x: int = 3) -> int:\n    """Doc."""\n    return x\n'
    index = index_source("m.py", source)
    assert remove_body(index, index.get("f")) == '@dec\ndef f(x: int = 3) -> int:\n    """Doc."""\n    pass'


NAMES = """class A:
    def run(self):
        def helper():
            return 1
        return helper()

    @property
    def value(self):
        return 1

    @value.setter
    def value(self, new):
        pass

    class Inner:
        def run(self):
            return "inner"


class B:
    def run(self):
        return "b"


def helper():
    return 2
"""


@pytest.mark.parametrize(
    ("name", "code", "old", "new"),
    [
        ("B.run", 'def run(self):\n    return "new"', 'return "b"', 'return "new"'),
        ("A.Inner.run", 'def run(self):\n    return "new"', 'return "inner"', 'return "new"'),
        (
            "helper",
            "def helper():\n    return 3",
            "def helper():\n    return 2",
            "def helper():\n    return 3",
        ),
        (
            "A.run.<locals>.helper",
            "def helper():\n    return 3",
            "            return 1",
            "            return 3",
        ),
        (
            "A.value#1",
            "def value(self):\n    return 9",
            "self):\n        return 1\n\n    @v",
            "self):\n        return 9\n\n    @v",
        ),
        ("A.value#2", "def value(self, new):\n    self.x = new", "        pass", "        self.x = new"),
    ],
)
def test_function_of_the_same_name_elsewhere_is_never_hit(
    tmp_path: Path, name: str, code: str, old: str, new: str
) -> None:
    assert NAMES.count(old) == 1
    assert replaced(context_of({"m.py": NAMES}, tmp_path), name, code) == NAMES.replace(old, new)


@pytest.mark.parametrize("name", ["run", "A.value", "value"])
def test_name_that_several_answer_to_is_refused_with_all_of_them(tmp_path: Path, name: str) -> None:
    output = ask(context_of({"m.py": NAMES}, tmp_path), "read_function", function_name=name, file_path="m.py")
    assert output.refused
    for candidate in ["A.run", "A.Inner.run", "B.run"] if name == "run" else ["A.value#1", "A.value#2"]:
        assert candidate in output.text


def test_replacement_that_does_not_parse_leaves_the_file_alone(tmp_path: Path) -> None:
    context = context_of({"m.py": NAMES}, tmp_path)
    output = ask(
        context, "replace_function", func_code="def run(self:\n  oops", func_name="B.run", file_path="m.py"
    )
    assert output.refused
    assert "line 1" in output.text
    assert context.tree.read("m.py").decode() == NAMES
    assert not ask(context, "read_function", function_name="B.run", file_path="m.py").refused


@pytest.mark.parametrize("code", ["", " ", "\n\n", "# nothing", "pass", '"""text"""'])
def test_empty_submission_deletes_nothing(tmp_path: Path, code: str) -> None:
    context = context_of({"m.py": NAMES}, tmp_path)
    output = ask(context, "replace_function", func_code=code, func_name="B.run", file_path="m.py")
    assert output.refused
    assert output.replacement is None


@pytest.mark.parametrize(
    "code",
    [
        "def other(self):\n    return 1",
        "def run(self):\n    return 1\n\ndef more():\n    pass",
        "import os\ndef run(self):\n    return 1",
        "def run(self):\n    return 1\nprint('more')",
        "class run:\n    pass",
    ],
)
def test_anything_but_one_definition_of_that_name_is_refused(tmp_path: Path, code: str) -> None:
    context = context_of({"m.py": NAMES}, tmp_path)
    assert ask(context, "replace_function", func_code=code, func_name="B.run", file_path="m.py").refused


@pytest.mark.parametrize("unit", ["\t", "  ", "    "])
def test_moving_code_to_its_place_keeps_the_text_of_its_strings(tmp_path: Path, unit: str) -> None:
    source = f"class A:\n{unit}class B:\n{unit}{unit}def f(self):\n{unit}{unit}{unit}return 1\n"
    code = 'def f(self):\n    text = """one\n  two\n\tthree\n"""\n    if text:\n        return text\n'
    result = replaced(context_of({"m.py": source}, tmp_path), "A.B.f", code)
    space: dict[str, type] = {}
    exec(result, space)
    assert space["A"].B().f() == "one\n  two\n\tthree\n"
    body = [line for line in result.split("\n") if line.strip().startswith(("def", "text", "if", "return"))]
    margins = [line[: len(line) - len(line.lstrip())] for line in body]
    assert margins[0] == unit * 2
    assert {character for margin in margins for character in margin} == {unit[0]}


@pytest.mark.parametrize(
    ("source", "stub"),
    [
        ("def f(): return 1\n", "def f():\n    pass"),
        ("def f(a, b=(1, 2)): a += 1; return a\n", "def f(a, b=(1, 2)):\n    pass"),
        ("@d\nasync def f() -> int: return 1\n", "@d\nasync def f() -> int:\n    pass"),
        ("def f(x=lambda: 1): return x\n", "def f(x=lambda: 1):\n    pass"),
    ],
)
def test_removal_from_a_one_line_function_keeps_its_definition(source: str, stub: str) -> None:
    index = index_source("m.py", source.encode())
    definition = index.get("f")
    removed = remove_body(index, definition)
    assert removed == stub
    assert replace_definition(index, definition, removed).decode() == stub + "\n"


def test_function_is_read_whole_with_decorators_and_not_a_line_more(tmp_path: Path) -> None:
    source = (
        "class C:\n    @classmethod\n    def f(cls):\n"
        "        return 1\n    x = 2\n\n\ndef g():\n    return 3\ny = 4\n"
    )
    context = context_of({"m.py": source}, tmp_path)
    method = ask(context, "read_function", function_name="C.f", file_path="m.py").text
    assert method == "m.py::C.f, lines 2-4\n    @classmethod\n    def f(cls):\n        return 1"
    assert ask(context, "read_function", function_name="g", file_path="m.py").text.endswith(
        "def g():\n    return 3"
    )
