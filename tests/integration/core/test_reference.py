"""Flat gists of small codebases: each is made from a trace, run alone, and compared with the original."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest
from launching import launch, whole

from gistpoint.core.kinds.gist.rates import ExistenceReason, Originals, line_execution, line_existence
from gistpoint.core.kinds.gist.reference import (
    Breadth,
    Codebase,
    NoReferenceError,
    OracleVerdict,
    flat_gist,
    make_reference,
)
from gistpoint.core.kinds.gist.trace import difficulty, read_trace

CASES: dict[str, tuple[dict[str, str], int]] = {
    "imports of the codebase on lines with other code": (
        {
            "main.py": "import pkg\nprint(pkg.f(1), pkg.g(2), pkg.k(3))\n",
            "pkg/__init__.py": """
            import math; from .a import h; LIMIT = 3
            def f(x):
                from .a import h; y = 2
                return h(x) + y + LIMIT
            def g(x):
                if x: from .a import h
                try: import pkg.a; z = 1
                except ImportError: pass
                return h(x) + z
            def k(x): import math; from .a import h; return math.floor(h(x))
            """,
            "pkg/a.py": "def h(x): return x + 1\n",
        },
        2,
    ),
    "relative imports, class and module state": (
        {
            "main.py": "from pkg import Counter\nc = Counter()\nprint(c.next(), c.next(), Counter.made)\n",
            "pkg/__init__.py": "from .deep.core import Counter\n",
            "pkg/deep/__init__.py": "",
            "pkg/deep/core.py": """
            from ..state import bump
            class Counter:
                made = 0
                def __init__(self):
                    Counter.made += 1
                def next(self):
                    return bump()
                def unused(self):
                    return missing_name
            """,
            "pkg/state.py": """
            total = 0
            def bump():
                global total
                total += 1
                return total
            def unused():
                pass
            """,
        },
        0,
    ),
    "registry filled by decorators and by statements": (
        {
            "main.py": "import pkg\nprint(sorted(pkg.names()))\n",
            "pkg/__init__.py": "from .registry import names, REGISTRY\nfrom . import plugins\n",
            "pkg/registry.py": """
            REGISTRY = {}
            def register(f):
                REGISTRY[f.__name__] = f
                return f
            def names():
                return list(REGISTRY)
            """,
            "pkg/plugins.py": """
            from pkg.registry import register, REGISTRY
            @register
            def one(): pass
            @register
            def two(): pass
            REGISTRY["three"] = one
            for name in "ab":
                REGISTRY.setdefault(name, two)
            def _fill():
                REGISTRY["late"] = two
            _fill()
            """,
        },
        0,
    ),
    "imports that their module forgets again": (
        {
            "main.py": "from pkg import table, root\nprint(sorted(table), root(16.0))\n",
            "pkg/__init__.py": "from .tables import table\nfrom .roots import root\n",
            "pkg/tables.py": """
            from math import sqrt as power
            from pkg.store import put
            table = {}
            for number in (1, 4):
                put(table, power(number))
            del power, put
            """,
            "pkg/store.py": "def put(table, value):\n    table[value] = value\n",
            "pkg/roots.py": """
            from math import sqrt as power
            def root(number):
                return power(number)
            """,
        },
        0,
    ),
    "names of builtins that other modules import and define": (
        {
            "main.py": """
            from pkg import means, shares, widest
            print(means([1, 2, 3]), sum([1, 2]), max(3, 4), shares([1.0, 3.0]), widest(["a", "bcd"]))
            """,
            "pkg/__init__.py": "from .numbers import means, shares\nfrom .words import widest\n",
            "pkg/numbers.py": """
            from math import fsum as sum
            def means(values):
                return sum(values) / len(values)
            def shares(values):
                return [value / sum(values) for value in values]
            """,
            "pkg/words.py": """
            def max(words):
                return sorted(words, key=len)[-1]
            def widest(words):
                return max(words), sum(len(word) for word in words)
            """,
        },
        2,
    ),
    "builtins that a module names before it gives their names to something else": (
        {
            "main.py": """
            from pkg.compat import basestring, builtin_str
            from pkg.names import shout
            print(builtin_str(1), shout("a"), isinstance("b", basestring))
            """,
            "pkg/__init__.py": "",
            "pkg/compat.py": """
            builtin_str = str
            str = str
            basestring = (str, bytes)
            """,
            "pkg/names.py": """
            def shout(text):
                return str(text).upper() + str(1) + str(2) + str(3) + str(4) + str(5) + str(6)
            """,
        },
        2,
    ),
    "one name in two modules": (
        {
            "main.py": "from pkg import a, b\nprint(a.run(), b.run(), b.Item().go(), a.make().go())\n",
            "pkg/__init__.py": "",
            "pkg/a.py": """
            NAME = "a"
            def helper():
                return "helper of " + NAME
            def run():
                return helper()
            class Item:
                def go(self):
                    return helper()
            def make():
                return Item()
            """,
            "pkg/b.py": """
            NAME = "b"
            def helper():
                return "other helper of " + NAME
            def run():
                return helper() + helper()
            class Item:
                def go(self):
                    return NAME
            """,
        },
        5,
    ),
    "renamed, starred and re-exported": (
        {
            "main.py": "from pkg import renamed as again, shout, dumps\nprint(again(2), shout('x'), dumps([1]))\n",
            "pkg/__init__.py": """
            from .core import original as renamed
            from .words import *
            from .compat import dumps
            """,
            "pkg/core.py": "def original(x):\n    return x * FACTOR\nFACTOR = 21\n",
            "pkg/words.py": """
            __all__ = ['shout']
            def shout(x):
                return _loud(x)
            def _loud(x):
                return x.upper()
            """,
            "pkg/compat.py": "try:\n    from json import dumps\nexcept ImportError:\n    dumps = None\n",
        },
        0,
    ),
    "imports within functions": (
        {
            "main.py": "from pkg.a import pick, late\nprint(pick(None), pick(3), late())\n",
            "pkg/__init__.py": "",
            "pkg/a.py": """
            import typing
            if typing.TYPE_CHECKING:
                from .b import Choice
            def pick(cls):
                if cls is None:
                    from .b import Choice as cls
                return cls
            def late():
                from . import b
                from .b import value
                return b.value + value
            """,
            "pkg/b.py": "class Choice:\n    def __repr__(self): return 'c'\nChoice = Choice()\nvalue = 4\n",
        },
        1,
    ),
    "a statement that imports while it runs": (
        {
            "main.py": "from pkg import value\nprint(value)\n",
            "pkg/__init__.py": """
            def load():
                from .late import make
                return make()
            value = load()
            """,
            "pkg/late.py": "def helper():\n    return 7\ndef make():\n    return helper()\n",
        },
        0,
    ),
    "a module and a function of one name": (
        {
            "main.py": "import tool\nfrom tool import tool as f\nprint(f(), tool.tool(), tool.extra.tool())\n",
            "tool/__init__.py": "from . import extra\ndef tool():\n    return extra.tool() + 1\n",
            "tool/extra.py": "def tool():\n    return 1\n",
        },
        4,
    ),
    "a name that a function imports, after letters of several bytes": (
        {
            "main.py": "from pkg import a\nprint(a.both(), a.name(), a.name(), a.name())\n",
            "pkg/__init__.py": "",
            "pkg/a.py": """
            def name():
                return "a"
            def both():
                from . import b
                return "\u00e9\u20ac" + b.name() + b.twice + sep
            mark = "\u00e9\u20ac"; sep = "-"
            """,
            "pkg/b.py": "def name():\n    return 'b'\ntwice = name() * 2\n",
        },
        2,
    ),
    "text in strings and sharing of lines": (
        {
            "main.py": "from pkg.a import f, limit; print(f(True)); print(limit)\n",
            "pkg/__init__.py": "",
            "pkg/a.py": '''
            if True:
                def f(x):
                    text = """
            at the margin
                deeper
            """
                    if x:
                        return text
                    else:
                        return None
                limit = 3; other = 4
            ''',
        },
        0,
    ),
}

# Constants that two modules define by the same code. Each case has the first line of `pkg.a`, that of `pkg.b`, the code
# of both, and what the program does before it shows both constants.
SAME_CODE = {
    "made from constants that differ": ("BASE = 1", "BASE = 2", "LIMIT = BASE", ""),
    "made from imports that differ": (
        "from math import floor as base",
        "from math import ceil as base",
        "LIMIT = base",
        "",
    ),
    "made from modules that differ": ("import math as base", "import cmath as base", "LIMIT = base", ""),
    "made from a builtin and its replacement": ("", "max = min", "LIMIT = (max, 3)", ""),
    "made from what the codebase imports": (
        "from pkg.one import base",
        "from pkg.two import base",
        "LIMIT = base",
        "",
    ),
    "changed by a function": ("", "", "LIMIT = 1\ndef grow():\n    global LIMIT\n    LIMIT += 1", "b.grow()"),
    "changed as an attribute": ("", "", "LIMIT = 1", "b.LIMIT = 2"),
    "changed by setattr": ("", "", "LIMIT = 1", "setattr(b, 'LIMIT', 2)"),
    "changed by a patch": (
        "",
        "",
        "LIMIT = 1",
        "from unittest.mock import patch\npatch.multiple(b, LIMIT=2).start()",
    ),
    "annotated and changed": ("", "", "LIMIT: int = 1", "b.LIMIT = 2"),
    "used up": ("", "", "LIMIT = (n for n in (1, 2))", "next(b.LIMIT)"),
    "markers": ("", "", "LIMIT = object()", ""),
}
_SHOWN = """
from pkg import a, b
{change}
def shown(value):
    return next(value) if hasattr(value, "send") else getattr(value, "__name__", type(value).__name__)
def number(value):
    return value if isinstance(value, (int, tuple)) else shown(value)
print(number(a.get()), number(b.get()), a.get() is b.get())
"""


def with_same_code(name: str) -> dict[str, str]:
    first, second, both, change = SAME_CODE[name]
    end = f"{both}\ndef get():\n    return LIMIT\n"
    return {
        "main.py": _SHOWN.format(change=change),
        "pkg/__init__.py": "",
        "pkg/one.py": "base = 1\n",
        "pkg/two.py": "base = 2\n",
        "pkg/a.py": f"{first}\n{end}",
        "pkg/b.py": f"{second}\n{end}",
    }


def write(root: Path, files: Mapping[str, str]) -> dict[str, str]:
    sources = {path: textwrap.dedent(text).lstrip("\n") for path, text in files.items()}
    for path, text in sources.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return sources


class Lab:
    """A codebase on disk, its trace, and an oracle for programs that replace it."""

    def __init__(self, place: Path, files: Mapping[str, str]) -> None:
        self.place = place
        self.root = place / "root"
        self.sources = write(self.root, files)
        owned = frozenset({path.partition("/")[0] for path in files if "/" in path})
        argv = [str(self.root / "main.py")]
        self.original, told = launch(place, argv=argv, path=[str(self.root)], trace_root=str(self.root))
        trace = whole(told, "trace")
        assert self.original.returncode == 0, self.original.stderr
        assert isinstance(trace, dict)
        self.trace = trace
        self.codebase = Codebase(self.sources, read_trace(trace), owned)

    def oracle(self, text: str) -> OracleVerdict:
        gist = self.place / "gist.py"
        gist.write_text(text)
        owned = sorted(self.codebase.owned)
        done, told = launch(
            self.place, argv=[str(gist)], lines=str(gist), owned=owned, forbidden=[str(self.root)]
        )
        self.last, lines = done, whole(told, "lines")
        assert isinstance(lines, list)
        return OracleVerdict((done.returncode, done.stdout) == (0, self.original.stdout), frozenset(lines))


@pytest.mark.parametrize("name", CASES)
def test_a_flat_gist_does_what_the_codebase_does(name: str, tmp_path: Path) -> None:
    files, _ = CASES[name]
    lab = Lab(tmp_path, files)
    text = flat_gist(lab.codebase, "main.py", "", Breadth.NEEDED)
    assert lab.oracle(text).holds, text + lab.last.stderr + lab.last.stdout


@pytest.mark.parametrize("name", CASES)
def test_only_glue_and_lines_that_name_a_rival_are_not_of_the_original(name: str, tmp_path: Path) -> None:
    files, most = CASES[name]
    lab = Lab(tmp_path, files)
    made = make_reference(lab.codebase, "main.py", "", lab.oracle, out_of_time=lambda: False)
    assert made.faithful
    report = line_existence(made.text, Originals(lab.sources))
    invented = [
        line.line.text for line in report.lines if not line.exists and line.reason is not ExistenceReason.GLUE
    ]
    assert len(invented) <= most, made.text
    assert lab.oracle(made.text).holds


@pytest.mark.parametrize("name", SAME_CODE)
def test_constants_of_the_same_code_that_may_differ_stay_apart(name: str, tmp_path: Path) -> None:
    lab = Lab(tmp_path, with_same_code(name))
    for breadth in (Breadth.NEEDED, Breadth.EVERYTHING):
        text = flat_gist(lab.codebase, "main.py", "", breadth)
        assert lab.oracle(text).holds, text + lab.last.stderr + lab.last.stdout


def test_loggers_stay_apart_if_each_has_its_modules_name(tmp_path: Path) -> None:
    code = "import logging\nlog = logging.getLogger(__name__)\ndef name():\n    return log.name\n"
    files = {"main.py": "from pkg import a, b\nprint(a.name(), b.name())\n", "pkg/__init__.py": ""}
    lab = Lab(tmp_path, {**files, "pkg/a.py": code, "pkg/b.py": code})
    made = make_reference(lab.codebase, "main.py", "", lab.oracle, out_of_time=lambda: False)
    assert (made.faithful, made.how) == (True, Breadth.WITH_NAMES), made.text


@pytest.mark.parametrize(
    ("imports", "constant"),
    [
        ("", "LIMIT = 3"),
        ("", "LIMIT: int = -3"),
        ("", "LIMIT = (len, 'pkg.b.other')"),
        ("import re", "LIMIT = re.compile('a', re.IGNORECASE)"),
        ("from typing import TypeVar", "LIMIT = TypeVar('LIMIT')"),
        ("import logging", "LIMIT = logging.getLogger(__name__)"),
        ("", "__all__ = ['LIMIT', 'get']\nLIMIT = frozenset((1, 2))"),
        ("class C:\n    def __init__(self):\n        self.LIMIT = 1", "LIMIT = 3"),
    ],
)
def test_equal_constants_that_nothing_changes_are_taken_once(
    imports: str, constant: str, tmp_path: Path
) -> None:
    code = f"{imports}\n{constant}\ndef get():\n    return LIMIT\n"
    main = "from pkg import a, b\nprint(str(a.get())[:3], a.get() is b.get())\n"
    files = {"main.py": main, "pkg/__init__.py": "", "pkg/a.py": code, "pkg/b.py": code}
    lab = Lab(tmp_path, files)
    text = flat_gist(lab.codebase, "main.py", "", Breadth.NEEDED)
    assert text.count(constant.splitlines()[-1]) == 1, text


def test_an_import_that_is_there_for_what_it_loads_is_kept(tmp_path: Path) -> None:
    files = {
        "main.py": "from pkg import shape\nprint(shape())\n",
        "pkg/__init__.py": "from . import loading\nfrom .shapes import shape\n",
        "pkg/loading.py": "import xml.dom.minidom as loaded\nimport json\n",
        "pkg/shapes.py": "import xml\ndef shape():\n    return xml.dom.minidom.Document.__name__\n",
    }
    lab = Lab(tmp_path, files)
    assert not lab.oracle(flat_gist(lab.codebase, "main.py", "", Breadth.NEEDED)).holds
    made = make_reference(lab.codebase, "main.py", "", lab.oracle, out_of_time=lambda: False)
    assert (made.faithful, made.how) == (True, Breadth.WITH_IMPORTS)
    assert "import xml.dom.minidom as loaded" in made.text
    assert "json" not in made.text


BROADER: dict[str, tuple[dict[str, str], Breadth]] = {
    "names of modules in loggers, classes and messages": (
        {
            "main.py": """
            import pkg.core
            from pkg import describe
            print(describe(pkg.core.Item()), pkg.core.logger.name, pkg.core.Item.__module__, __name__)
            """,
            "pkg/__init__.py": """
            from .core import Item
            here = __name__
            def describe(x):
                return f"{here}: {x!r}"
            """,
            "pkg/core.py": """
            import logging
            logger = logging.getLogger(__name__)
            from dataclasses import dataclass
            @dataclass
            class Pair:
                left: "int"
            class Item:
                def __repr__(self):
                    return type(self).__module__ + logger.name + str(Pair(1).left)
            """,
        },
        Breadth.WITH_NAMES,
    ),
    "statements that are there for something else": (
        {
            "main.py": """
            import os
            from pkg import Reader
            print(Reader().read("a"), os.path.isdir("nowhere"))
            """,
            "pkg/__init__.py": """
            import os
            class Reader:
                known = {}
                def read(self, name):
                    return name * 2
            def load(reader, path):
                reader.known[path] = len(os.listdir(path))
            load(Reader(), os.path.dirname(__file__) + "/data")
            """,
            "pkg/data/words.txt": "",
        },
        Breadth.BARE,
    ),
    "modules asked for by name": (
        {
            "main.py": """
            from pkg import plugins
            print(plugins.load("one"), plugins.load_two().value)
            """,
            "pkg/__init__.py": "",
            "pkg/plugins.py": """
            import sys
            from importlib import import_module
            def load(name):
                return import_module("pkg." + name).__dict__["answer"]
            def load_two():
                import_module(".two", __package__)
                return sys.modules["pkg.two"]
            """,
            "pkg/one.py": "answer = 41\n",
            "pkg/two.py": "value = 42\n",
        },
        Breadth.EVERYTHING,
    ),
    "modules asked for by name, beside statements for something else": (
        {
            "main.py": "import pkg.test_more\nfrom pkg import answer_of\nprint(answer_of('one'))\n",
            "pkg/test_more.py": """
            import os
            from pkg import answer_of
            known = {}
            def load(function):
                known[function] = os.listdir(os.path.dirname(__file__) + "/data")
            load(answer_of)
            """,
            "pkg/data/words.txt": "",
            "pkg/__init__.py": """
            from importlib import import_module
            def answer_of(name):
                return import_module("pkg." + name).answer
            """,
            "pkg/one.py": "answer = 41\n",
        },
        Breadth.EVERYTHING_BARE,
    ),
    "a definition replaced by its dotted name": (
        {
            "main.py": "from pkg.replacing import replaced\nprint(replaced())\n",
            "pkg/__init__.py": "",
            "pkg/replacing.py": """
            from unittest.mock import patch
            from pkg.core import four
            def replaced():
                with patch("pkg.core.twice", lambda x: 10 * x):
                    return four(1)
            """,
            "pkg/core.py": "def twice(x):\n    return 2 * x\ndef four(x):\n    return twice(twice(x))\n",
        },
        Breadth.EVERYTHING,
    ),
    "a registry of classes, by the names in it": (
        {
            "main.py": "from pkg.base import REGISTRY\nimport pkg\nprint(sorted(REGISTRY), sorted(pkg.__all__))\n",
            "pkg/__init__.py": "from . import kinds\n__all__ = ['kinds']\n",
            "pkg/base.py": """
            REGISTRY = {}
            class Base:
                def __init_subclass__(cls):
                    REGISTRY[cls.__name__] = cls
            """,
            "pkg/kinds.py": "from .base import Base\nclass One(Base):\n    pass\nclass Two(Base):\n    pass\n",
        },
        Breadth.EVERYTHING,
    ),
}


@pytest.mark.parametrize("name", BROADER)
def test_what_names_in_the_code_do_not_lead_to(name: str, tmp_path: Path) -> None:
    files, how = BROADER[name]
    lab = Lab(tmp_path, files)
    made = make_reference(lab.codebase, "main.py", "", lab.oracle, out_of_time=lambda: False)
    assert (made.faithful, made.how) == (True, how), made.text + lab.last.stderr + lab.last.stdout


def test_reduction_leaves_what_ran(tmp_path: Path) -> None:
    lab = Lab(tmp_path, CASES["relative imports, class and module state"][0])
    made = make_reference(lab.codebase, "main.py", "", lab.oracle, out_of_time=lambda: False)
    assert line_execution(made.text, made.executed).rate == 100
    assert "unused" not in made.text
    defined = {node.name for node in ast.walk(ast.parse(made.text)) if isinstance(node, ast.FunctionDef)}
    assert defined == {"__init__", "next", "bump"}


def test_a_definition_keeps_its_name_where_another_module_has_it_too(tmp_path: Path) -> None:
    lab = Lab(tmp_path, CASES["one name in two modules"][0])
    text = flat_gist(lab.codebase, "main.py", "", Breadth.NEEDED)
    assert text.count("def helper():") == 2
    assert text.count("class Item:") == 2
    assert text.count("helper_") >= 2


def test_what_no_extraction_holds_is_returned_with_a_reason(tmp_path: Path) -> None:
    files = {"main.py": "import pkg\nprint(pkg.x, pkg.__name__)\n", "pkg/__init__.py": "x = __name__\n"}
    lab = Lab(tmp_path, files)
    made = make_reference(lab.codebase, "main.py", "", lab.oracle, out_of_time=lambda: False)
    assert not made.faithful
    assert made.reason
    assert "x = __name__" in made.text


def test_an_entrypoint_outside_of_the_trace_is_refused(tmp_path: Path) -> None:
    lab = Lab(tmp_path, {"main.py": "print(1)\n"})
    with pytest.raises(NoReferenceError, match=r"no other\.py"):
        flat_gist(lab.codebase, "other.py", "", Breadth.NEEDED)
    with pytest.raises(NoReferenceError, match="no test 'test_none'"):
        flat_gist(lab.codebase, "main.py", "test_none", Breadth.NEEDED)


def test_difficulty_counts_calls_functions_files_depth_and_lines(tmp_path: Path) -> None:
    lab = Lab(tmp_path, CASES["relative imports, class and module state"][0])
    found = difficulty(lab.codebase.trace, lab.sources, tests=["main.py"])
    assert (found.calls, found.functions, found.files) == (5, 3, 5)
    assert found.depth == 2
    total = sum(
        bool(line.strip()) for p, t in lab.sources.items() if p != "main.py" for line in t.splitlines()
    )
    assert found.lines_covered == pytest.approx((total - 3) / total, abs=0.2)
