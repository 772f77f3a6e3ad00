"""Definitions in replies, bodies under another header, and prompts for long files."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_trees import tree_of

from gistpoint.core.code.index import index_source
from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.splice import with_body_of
from gistpoint.core.corruption.rewriting import MOST_CHARACTERS, definition_in, rewriting_prompt
from gistpoint.core.generation.removal import removal_target

CODE = "def f(x):\n    return x"
METHOD = """class A:
    def f(self):
        return 1


class B:
    @property
    def f(self):
        return 2
"""


@pytest.mark.parametrize(
    ("reply", "qualname", "expected"),
    [
        (f"```python\n{CODE}\n```", "f", CODE),
        (
            f"First:\n```\ndef f(x):\n    pass\n```\nBetter:\n```py\n{CODE}\n```\nAs in:\n```\nf(1)\n```",
            "f",
            CODE,
        ),
        (CODE, "f", CODE),
        (f"```python\nimport os\n\n{CODE}\n\nprint(f(1))\n```", "f", CODE),
        (f"```python\n{METHOD}```", "A.f", "def f(self):\n    return 1"),
        (f"```python\n{METHOD}```", "B.f", "@property\ndef f(self):\n    return 2"),
        (f"```python\n{METHOD}```", "C.f", "def f(self):\n    return 1"),
        ("```python\n    def f(x):\n        return x\n```", "A.f", "    def f(x):\n        return x"),
        ("```python\nasync def f(x):\n    return x\n```", "f#2", "async def f(x):\n    return x"),
        ("```python\ndef fg(x):\n    return x\n```", "f", ""),
        ("```python\ndef f(x:\n    return x\n```", "f", "def f(x:\n    return x"),
        ("It is easy: call f(x).", "f", ""),
        ("", "f", ""),
    ],
)
def test_the_last_block_with_the_definition_counts(reply: str, qualname: str, expected: str) -> None:
    assert definition_in(reply, qualname) == expected


@pytest.mark.parametrize(
    ("original", "code", "expected"),
    [
        (
            "def f(x):\n    return x\n",
            "def f(x, y=3):\n  if y:\n    return x\n",
            "def f(x):\n    if y:\n      return x",
        ),
        (
            "def f(x):\n\treturn x\n",
            "def f(x):\n    if x:\n        return x\n",
            "def f(x):\n\tif x:\n\t\treturn x",
        ),
        (
            'def f(x):\n    """Do it.\n\n      Well.\n    """\n    # how\n    return x\n',
            "def f(x):\n    'Other.'\n    # why\n    y = '''a\n  b'''\n\n    return y\n",
            "def f(x):\n    \"\"\"Do it.\n\n      Well.\n    \"\"\"\n    # why\n    y = '''a\n  b'''\n\n    return y",
        ),
        (
            "class A:\n    @staticmethod\n    def f(x) -> int:  # typed\n        return x\n",
            "def f(x):\n    return x + 1\n",
            "@staticmethod\ndef f(x) -> int:\n    return x + 1",
        ),
        (
            "def f(x): return x\n",
            "def f(x):\n    y = x\n    return y\n",
            "def f(x):\n    y = x\n    return y",
        ),
    ],
)
def test_a_body_is_put_below_the_functions_own_header(original: str, code: str, expected: str) -> None:
    index = index_source("a.py", original.encode())
    definition = next(item for item in index.definitions if item.name == "f")
    assert with_body_of(index, definition, code) == expected
    compile(expected, "a.py", "exec")


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("def f(x): return x", "same line"),
        ('def f(x):\n    """Only this."""', "no body"),
        ("def g(x):\n    return x", "defines g, not f"),
        ("def f(x):\n    return (", "closed"),
    ],
)
def test_what_has_no_body_below_a_header_is_refused(code: str, why: str) -> None:
    index = index_source("a.py", b"def f(x):\n    return x\n")
    with pytest.raises(CodeError, match=why):
        with_body_of(index, index.get("f"), code)


def test_of_a_long_file_the_beginning_and_the_surroundings_are_shown(tmp_path: Path) -> None:
    lines = [f"value_{n} = {n}" for n in range(9_000)]
    lines[4_500:4_500] = ["def f(x):", '    """Return x."""', "    y = x", "    return y"]
    source = "\n".join(lines) + "\n"
    tree = tree_of({"a.py": source}, tmp_path)
    prompt = rewriting_prompt(tree, "a.py", "f", removal_target(tree, "a.py::f").corrupted)
    assert len(source) > 2 * MOST_CHARACTERS
    assert len(prompt) < MOST_CHARACTERS + 2_000
    assert "value_0 = 0\n" in prompt
    assert 'value_4499 = 4499\ndef f(x):\n    """Return x."""\n    pass\nvalue_4500 = 4500' in prompt
    assert "return y" not in prompt
    assert prompt.count("are left out]") == 2
