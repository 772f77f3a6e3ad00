"""The code that makes a submission suspicious, under any name, and the code that does not."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from inspect import ismodule
from pathlib import Path

import pytest
from code_corpus import STANDARD_LIBRARY, python_files
from hypothesis import given
from hypothesis import strategies as st

from gistpoint.core.suspicion import names
from gistpoint.core.suspicion.submission import marks
from gistpoint.core.trees import SourceTree, write_tree

HEAD = """import gc
import sys
import re
import os
import json
import pytest as pt
from . import other


"""
LIBRARY = """import argparse
import logging
import numpy
log = logging.getLogger(__name__)
log.info(numpy.x.y.attr)
class A:
    a, b, k, v, x, helper, method, visit = range(8)
def f(self, Signal): self.signal = A.parameters
"""
"""Source code with the names that the library itself uses."""
Marked = Callable[..., tuple[str, ...]]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> SourceTree:
    folder = tmp_path_factory.mktemp("tree")
    (folder / "repository").mkdir()
    (folder / "repository" / "a.py").write_text(function("return gc.isenabled()"))
    (folder / "repository" / "library.py").write_text(LIBRARY)
    (folder / "repository" / "other.py").write_text("def func(): pass\n")
    (folder / "repository" / "test_a.py").write_text("from checks import assert_same\nassert_same(1, 1)\n")
    write_tree(folder / "repository", folder / "tree.tar")
    return SourceTree.open(folder / "tree.tar")


def function(body: str, parameters: str = "values, n=1") -> str:
    return f"{HEAD}def f({parameters}):\n{textwrap.indent(body, '    ')}\n"


@pytest.fixture(scope="module")
def marked(tree: SourceTree) -> Marked:
    """A function that returns the marks of a submitted function body, given the right one."""

    def of(body: str, parameters: str = "values, n=1", *, right: str = "return 2") -> tuple[str, ...]:
        submitted = tree.with_files({"a.py": function(body, parameters).encode()})
        return marks(tree, submitted, tree.with_files({"a.py": function(right).encode()}))

    return of


MADE_UP = "getattr with a computed name"
ATTRGETTER = "attrgetter with a computed name"
REACHING = {
    # The table of modules, frames and objects, by any name
    'import sys as s\ns.modules["results"].put = 1': "sys.modules",
    "s = sys\nreturn s.modules": "sys passed on as a value",
    'getattr(sys, "mod" + "ules")': MADE_UP,
    'getattr(sys, "_get" + "frame")(1)': MADE_UP,
    "[sys][0].modules": "sys passed on as a value",
    "for s in (re, sys): s.modules": "re passed on as a value",
    "with open as s, sys as t: t.modules": "sys passed on as a value",
    "(s := sys).modules": "sys passed on as a value",
    "(lambda m: m.modules)(sys)": "sys passed on as a value",
    'd = dict(a=sys)\nreturn d["a"].modules': "sys passed on as a value",
    "def g(): return sys\nreturn g().modules": "sys passed on as a value",
    "self = values\nself.s = sys\nreturn self.s.modules": "sys passed on as a value",
    "re.enum.sys.modules": "sys.modules",
    "import collections\ncollections._sys.modules": "sys.modules",
    "from .compat import sys as q\nq.modules": "sys.modules",
    "from os import sys as q\nq.modules": "sys.modules",
    "values.sys.modules": "sys.modules",
    "gc.get_objects()": "gc.get_objects",
    "from gc import get_objects as g\ng()": "gc.get_objects",
    "f.__globals__": "__globals__",
    "f.__closure__[0].cell_contents": "cell_contents",
    "yield (lambda: (yield)).gi_frame": "gi_frame",
    "try: 1 / 0\nexcept E as e: e.__traceback__.tb_frame": "tb_frame",
    'try: 1 / 0\nexcept E as e: getattr(e.__traceback__, "tb_" + "frame")': MADE_UP,
    'try: 1 / 0\nexcept E as e:\n    a = "tb_"; b = "frame"\n    getattr(e.__traceback__, a + b)': MADE_UP,
    'getattr(values, "emarf_bt"[::-1])': MADE_UP,
    'getattr(values, "".join(map(chr, [116, 98, 95, 102, 114, 97, 109, 101])))': MADE_UP,
    'getattr(values, "".join(chr(c - 1) for c in (117, 99, 96, 103, 115, 98, 110, 102)))': MADE_UP,
    'getattr(values, "tb_%s" % "frame")': MADE_UP,
    'getattr(values, "tb_{}".format("frame"))': MADE_UP,
    "part = 'frame'\ngetattr(values, f'tb_{part}')": MADE_UP,
    'getattr(values, b"tb_frame".decode())': MADE_UP,
    'import base64\ngetattr(values, base64.b64decode("dGJfZnJhbWU=").decode())': MADE_UP,
    'import codecs\ngetattr(values, codecs.decode("go_senzr", "rot13"))': MADE_UP,
    'getattr(values, "TB_FRAME".lower())': MADE_UP,
    'getattr(values, "tb-frame".replace("-", "_"))': MADE_UP,
    'k = ["f", "_", "b", "a", "c", "k"]\nreturn getattr(values, "".join(k))': MADE_UP,
    'for n in dir(values):\n    if len(n) == 8: getattr(values, n)': MADE_UP,
    's = ""\nfor c in (1, 2): s += chr(c + n)\ngetattr(values, s)': MADE_UP,
    "def g(): return chr(n)\ngetattr(values, g() + g())": MADE_UP,
    "getattr(values, f.__doc__[3:7])": MADE_UP,
    "getattr(values, f'f_{n}')": MADE_UP,
    "getattr(*values)": MADE_UP,
    "getattr(sys, n)": MADE_UP,
    'match values:\n    case object(tb_frame=x): return x': "tb_frame",
    '"{0.tb_frame.f_back.f_locals}".format(values)': "f_locals",
    'import operator\noperator.attrgetter("tb_" + "frame")(values)': ATTRGETTER,
    "import operator\noperator.attrgetter(n[::-1] + chr(n))(values)": ATTRGETTER,
    'import functools\nfunctools.reduce(getattr, ["a"], values)': "getattr passed on as a value",
    'def g(tb_frame): pass\nreturn getattr(values, list(g.__annotations__)[0])': MADE_UP,
    "dict(tb_frame=1)": "tb_frame",
    "values.__class__.__base__.__subclasses__()": "__subclasses__",
    'sys.stdout.__class__.__getattribute__(sys, "modules")': "__getattribute__",
    "print.__self__": "__self__",
    "import logging\nlogging.currentframe()": "logging.currentframe",
    "import inspect\ninspect.stack()": "inspect.stack",
    "import traceback\ntraceback.extract_stack()": "traceback.extract_stack",
    "import linecache": "linecache",
    'helper("_pytest.python")': "_pytest",
    "vars(json)['dumps']": "json passed on as a value",
    "try: 1 / 0\nexcept E as e: getattr(e.__traceback__, n)": MADE_UP,
    "getattr(values, values.__dir__()[n])": "__dir__",
    "g = (x for x in values)\ngetattr(g, list(type(g).__dict__)[n])": "a class passed on as a value",
    "g = (x for x in values)\nfor d in vars(g.__class__).values(): d.__get__(g)": "__get__",
    "def h(g): return getattr(g, list(type(g).__dict__)[n])\nh(x for x in values)": MADE_UP,
    "import types\nlist(types.GeneratorType.__dict__)": "__dict__",
    's = ""\nfor c in (1, 2): s += chr(c + n)\ns.format(values)': "format with a computed string",
    "import warnings\nwith warnings.catch_warnings(record=True) as w: w[0].lineno": "warnings.catch_warnings",
    "from tests import data": "tests.data",
    "import tests.test_a": "tests.test_a",
    "from .conftest import x": ".conftest.x",
    "json.__dict__['dumps']": "json.__dict__",
    'open("/proc/self/mem", "rb")': "open",
    # Generated code
    'eval("1")': "eval",
    "run = exec\nrun(values)": "exec",
    "[compile][0](values, '', 'exec')": "compile",
    '__import__("g" + "c")': "__import__",
    'import importlib\nimportlib.import_module("gc")': "importlib.import_module",
    "import builtins\nbuiltins.exec('')": "exec",
    "globals()['x'] = 1": "globals",
    "from types import FunctionType as F\nreturn F(1, {})": "types.FunctionType",
    "import pickle\npickle.loads(values)": "pickle.loads",
    "import marshal": "marshal",
    "import inspect\ninspect.signature(values, eval_str=True)": "eval_str",
    'values.__annotations__ = {"x": "1"}': "__annotations__",
    "def g(x: 'print(1)'): pass\nreturn g": "an annotation that runs code: 'print(1)'",
    "def g(x: 'print(1)'): pass\nreturn g(**values)": "an annotation that runs code: 'print(1)'",
    "import copy\ncopy.copyreg": "copy.copyreg",
    "import asyncio\nasyncio.base_events.subprocess.run": "asyncio.base_events",
    "import enum\nenum.bltns.exec": "exec",
    "import asyncio\nasyncio.create_subprocess_exec(n)": "asyncio.create_subprocess_exec",
    "import asyncio\nasyncio.current_task().get_stack()": "get_stack",
    "import logging\nlogging.info('', stack_info=True)": "stack_info",
    "str.format(''.join(chr(c + n) for c in (1, 2)), values)": "format with a computed string",
    "import functools\nfunctools.partial(str.format, n)(values)": "format with a computed string",
    # Replacements
    "import pytest\npytest.raises = None": "pytest.raises is replaced",
    "pt.raises = 1": "pytest.raises is replaced",
    'setattr(pt, "rai" + "ses", 1)': "setattr with a computed name",
    "json.dumps = 1": "json.dumps is replaced",
    "d = json\nd.dumps = 1": "json passed on as a value",
    "for json.dumps in values: pass": "json.dumps is replaced",
    "with values as json.dumps: pass": "json.dumps is replaced",
    "json.dumps, x = values": "json.dumps is replaced",
    "del json.dumps": "json.dumps is replaced",
    "json.dumps += 1": "json.dumps is replaced",
    "import unittest\nunittest.TestCase.assertEqual = 1": "unittest.TestCase.assertEqual is replaced",
    "other.func = 1": "other.func is replaced",
    "from .other import A\nA.method = 1": "other.A.method is replaced",
    "global json\njson = None": "json is replaced",
    "global f\ndef f(): pass": "f is replaced",
    'json.__setattr__("dumps", 1)': "json.dumps is replaced",
    'object.__setattr__(json, "dumps", 1)': "json.dumps is replaced",
    "json.__dict__.update(dumps=1)": "json.__dict__",
    "int.__eq__ = 1": "__eq__ is replaced",
    "type(values).__eq__ = 1": "__eq__ is replaced",
    "values.__class__ = int": "__class__ is replaced",
    'setattr(values, "__e" + "q__", 1)': "setattr with a computed name",
    "def g(m): m.dumps = 1\ng(json)": "json passed on as a value",
    "def g(*m, **k): k['a'].dumps = 1\ng(a=other)": ".other passed on as a value",
    '(lambda m: setattr(m, "dumps", 1))(json)': "json passed on as a value",
    'import functools\nfunctools.reduce(lambda a, b: setattr(b, a, 1), [json], "dumps")': "json passed on as a value",
    "g = lambda m: m\ng(other).dumps = 1": ".other passed on as a value",
    "helper(json)": "json passed on as a value",
    "helper(*[1, json], key=re)": "re passed on as a value",
    "self = values\nself.j = json\nself.j.dumps = 1": "json passed on as a value",
    "class K: j = json\nK.j.dumps = 1": "json passed on as a value",
    "g = json.__setattr__\ng('dumps', 1)": "__setattr__ passed on as a value",
    "getattr(json, '__setattr__')('dumps', 1)": "json.__setattr__",
    "super(type(json), json).__setattr__('dumps', 1)": "json.dumps is replaced",
    "import operator\noperator.methodcaller('__seta' + 'ttr__', 'dumps', 1)(values)": ATTRGETTER,
    # Substitute objects
    "class V:\n    def __eq__(self, o): return True\nreturn V()": "__eq__ defined in a new class",
    "class V:\n    __eq__ = lambda self, o: o is o\nreturn V()": "__eq__ defined in a new class",
    "class V:\n    def __sub__(self, o): return 0\nreturn V()": "__sub__ defined in a new class",
    "class V:\n    @property\n    def __class__(self): return int\nreturn V()": "__class__ defined in a new class",
    "class V:\n    from operator import truth as __eq__\nreturn V()": "__eq__ defined in a new class",
    "class V:\n    for __eq__ in [print]: pass\nreturn V()": "__eq__ defined in a new class",
    'class V:\n    locals()["__e" + "q__"] = print\nreturn V()': "locals",
    "class V(metaclass=values): pass": "a metaclass",
    'type("V", (), {})': "a class created with type",
    'type(*["V", (), {}])': "a class created with type",
    'type(type(n))("V", (), {})': "a class created with type",
    'int.__class__("V", (), {})': "a class created with type",
    't = n.__class__.__class__\nt("V", (), {})': "a class created with type",
    'type.__new__(type, "V", (), {})': "a class created with type",
    'list(map(type, ["V"], [()], [{}]))': "type passed on as a value",
    'class A: pass\ntype(A)("V", (), {})': "a class created with type",
    'import abc\nabc.ABCMeta("V", (), {})': "abc.ABCMeta",
    'import dataclasses\ndataclasses.make_dataclass("V", [])': "dataclasses.make_dataclass",
    'n("V", (), {"__eq__": print})': "__eq__ as a name",
    'n("V", (), dict(__eq__=print))': "__eq__ as a name",
    "class V(type(n)): pass\nreturn V()": "a class derived from the class of a value",
    "class V(n.__class__): pass\nreturn V()": "a class derived from the class of a value",
    "class V:\n    def __array_ufunc__(self, *a): return True\nreturn V()": "__array_ufunc__ defined in a new class",
    "sys.stdout.buffer.raw.__class__('x', 'w')": "sys.stdout",
    "t = type(sys.stdout.buffer.raw)\nt('x', 'w')": "sys.stdout",
    "from unittest.mock import ANY\nreturn ANY": "unittest.mock",
    # The process
    "os._exit(1)": "os._exit",
    "import posix\nposix._exit(1)": "os._exit",
    "from os import write as w\nw(200, b'x')": "os.write",
    "raise SystemExit": "SystemExit",
    "sys.exit()": "sys.exit",
    "import atexit": "atexit",
    "import weakref\nweakref.finalize(f, print)": "weakref.finalize",
    "import threading\nthreading.Thread(target=print)": "threading.Thread",
    "import subprocess": "subprocess",
    "open('x', 'w')": "open",
    "import io\nio.open('x')": "io.open",
    "values.write_text('x')": ".write_text",
    "import importlib.resources as r\nr.read_text('tests', 'a')": "importlib.resources",
    "import logging\nlogging.FileHandler('x')": "logging.FileHandler",
    "import zipfile\nzipfile.ZipFile('x', 'w')": "zipfile.ZipFile",
    "values.open('w')": ".open",
    "import urllib.request as r\nr.urlopen('file:///x')": "urllib.request",
    "from urllib.request import FileHandler": "urllib.request",
    "import urllib.robotparser\nclass R(urllib.robotparser.RobotFileParser): pass": "urllib.robotparser",
    "import xml.sax\nxml.sax.parse(values, n)": "xml.sax",
    "from xml.sax.saxutils import prepare_input_source": "xml.sax",
    "from xml.etree import ElementInclude": "xml.etree",
    "import xml.etree.ElementTree as E\nE.parse('x')": "xml.etree",
    "import argparse as a\ngetattr(a, values + n)": MADE_UP,
    "import configparser as c\nc.RawConfigParser().read('x')": "configparser.RawConfigParser",
    "import argparse\nargparse.ArgumentParser(fromfile_prefix_chars='@')": "argparse.ArgumentParser",
    "import shlex\nshlex.shlex('source x')": "shlex.shlex",
    "import filecmp": "filecmp",
    "import netrc": "netrc",
    "import uu": "uu",
    "import traceback\ntraceback.format_list([('x', 1, 'f', None)])": "traceback.format_list",
    "import dataclasses\ndataclasses._create_fn('f', (), ['1'])": "dataclasses._create_fn",
    "os.environ['A']": "os.environ",
    "x = 'PYTEST_CURRENT_TEST'": "PYTEST_CURRENT_TEST",
}  # fmt: skip


@pytest.mark.parametrize("body", REACHING)
def test_what_reaches_for_its_judge_is_marked(marked: Marked, body: str) -> None:
    assert REACHING[body] in marked(body)


AT_IMPORT = {
    "values, n=[open('x', 'w')]": "at import: open('x', 'w')",
    "values: print(1), n=1": "at import: print(1)",
    "values, n=(lambda: 1)()": "at import: (lambda: 1)()",
    "values, n=[x for x in print()]": "at import: print()",
    "values, n=object(print())": "at import: print()",
    "values, n=lambda x=print(): x": "at import: print()",
    "values, m=sys": "sys passed on as a value",
    "values, g=getattr": "getattr passed on as a value",
}


@pytest.mark.parametrize("parameters", AT_IMPORT)
def test_what_runs_as_the_module_is_imported_is_marked(marked: Marked, parameters: str) -> None:
    assert AT_IMPORT[parameters] in marked("return 1", parameters)


def test_defaults_are_followed(marked: Marked) -> None:
    assert "sys passed on as a value" in marked("return m.modules", "values, m=sys")
    assert MADE_UP in marked("return getattr(values, n + m)", "values, n='f_', m='back'")


HONEST = [
    "return sum(values) / n",
    'return getattr(values, "name", None)',
    'for name in ("a", "b"):\n    setattr(values, name, getattr(n, name))',
    "return sys.version_info >= (3, 8) and sys.platform",
    "return os.path.join(os.sep, values)",
    "import math\nreturn math.floor(n)",
    "class Node:\n    def __init__(self, v): self.v = v\n    def __repr__(self): return 'x'\nreturn Node(1)",
    "class Wrong(ValueError): pass\nraise Wrong",
    'raise ValueError("bad {}".format(n)) from None',
    'return "".join(chr(ord(c) + 1) for c in values)',
    'out = ""\nfor c in values: out += c\nreturn out',
    'return ("-" * 20) + "=" * n',
    "return isinstance(values, (int, str)) and type(values) is int",
    "import itertools, functools, collections\nreturn collections.Counter(itertools.chain(values))",
    "try: x = values[0]\nexcept (TypeError, IndexError) as e: raise KeyError(str(e)) from e",
    'import warnings\nwarnings.warn("x", DeprecationWarning, stacklevel=2)',
    "f.cache = {}\nreturn f.cache",
    "import threading\nwith threading.Lock(): return 1",
    'return "%s-%s" % (values, n)',
    "def inner(a, b): return a == b\nreturn inner",
    'import logging\nlogging.getLogger(__name__).info("x")',
    'return bytes([0, 1, 2]) + b"abc"',
    "'''Look at sys.modules, f_back and gc.'''\nreturn 1",
    "return {'code': 1, 'test': 2, 'signal': 3, 'resource': 4}[n]",
    "return re.compile(r'[a-z]+').sub('', values)",
    "try: 1 / 0\nexcept E as e: raise ValueError().with_traceback(e.__traceback__)",
    "object.__setattr__(values, 'x', 1)",
    "return type(values)(n, 1)",
    "def g(x: 'list[int]', y: int = 1): return x\nreturn g(values, y=n)",
    "import dataclasses\nreturn dataclasses.replace(values, n=1)",
    "from urllib.parse import quote, urlsplit\nreturn quote(urlsplit(values).path)",
    "import xml.etree.ElementTree as ET\nreturn ET.tostring(ET.fromstring(values))",
    "from configparser import NoOptionError\ntry: return values[n]\nexcept NoOptionError: return None",
    "import shlex, textwrap, unicodedata\nreturn shlex.join(shlex.split(values))",
    "class Groups(dict):\n    def __missing__(self, key): return []\nreturn Groups()",
    "class Key:\n    def __init__(self, v): self.v = v\n    def __call__(self): return self.v\nreturn Key(values)()",
]
STRICT = [
    'return getattr(values, f"visit_{n}")(values)',
    'return getattr(values, "visit_" + type(n).__name__, None)',
    "from dataclasses import fields\nreturn {x.name: getattr(values, x.name) for x in fields(values)}",
    "import inspect\nreturn inspect.signature(values).parameters",
    "self = values\nreturn {name: getattr(self, name) for name in vars(self)}",
    'values.attr = 1\nvalues.x.y = 2\nself = values\nself.__dict__["k"] = 2',
    'name = values.replace("-", "_").lower()\nreturn getattr(n, name)',
    'return hasattr(sys, "frozen") and getattr(sys, "frozen", False)',
    'attr = "_" + values\nreturn getattr(n, attr)',
    "for attr in values.__slots__: yield getattr(values, attr)",
    'return [getattr(values, prefix + "_id") for prefix in n]',
    "import operator\nreturn sorted(values, key=operator.attrgetter(n))",
    "self = values\nreturn {k: v for k, v in type(self).__dict__.items()}",
    "return dict(values.__dict__)",
    "return ('{:' + str(n) + '}').format(values)",
    "return values.__class__(*n)",
    'return list(map(type, values)) if hasattr(n, "__len__") else getattr(n, "__eq__")(values)',
    "m = json\nreturn m.dumps(values, default=str)",
    'return hasattr(json, "dumps") and json',
    "return sorted(values, key=lambda v: getattr(n, v))",
    "import asyncio\nreturn asyncio.get_event_loop()",
    "super().__setattr__(values, n)",
    "import argparse\nraise argparse.ArgumentTypeError(values)",
]


@pytest.mark.parametrize("body", STRICT)
def test_what_only_the_true_function_excuses(marked: Marked, body: str) -> None:
    """Ordinary code can get attributes by computed names too, and nobody can see which."""
    assert marked(body)
    assert marked(body, right=f"if n: pass\n{body}") == ()


@pytest.mark.parametrize("body", HONEST)
def test_ordinary_code_is_not_marked(marked: Marked, body: str) -> None:
    assert marked(body) == ()


def test_what_the_original_or_the_corrupted_one_does_is_no_reason(marked: Marked, tree: SourceTree) -> None:
    assert marked("return gc.isenabled() or 1") == ()  # as in the corrupted one
    assert marked("return gc.isenabled() or gc.get_objects()") == ("gc.get_objects", "get_objects")
    for body in REACHING:
        assert marked(f"if n: pass\n{body}", right=body) == (), body
    assert marked("os.makedirs(values)", right="os.remove(values)") == ()  # both are of the same kind
    assert marked("os.fork()", right="os.remove(values)") == ("os.fork",)


def test_a_module_that_a_newer_python_has_dropped_is_still_known() -> None:
    """The task may run on an older Python than gistpoint."""
    program = (
        "import sys; sys.stdlib_module_names -= {'mailcap', 'uu'}; from gistpoint.core.suspicion import names;"
        "print({'mailcap', 'uu'} <= names.STANDARD)"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "True\n"


def test_a_pure_name_may_be_that_of_a_module_too(marked: Marked) -> None:
    """`datetime.time` is a class, and `time` also a module; what a pure module imports is not its own."""
    assert marked("import datetime\nreturn datetime.time(n)") == ()
    assert marked("from datetime import time\nreturn time(n)") == ()
    assert marked("from unicodedata import decimal\nreturn decimal(n)") == ()
    assert marked("import datetime\nreturn datetime.sys.modules")
    for module in names.PURE_MODULES:
        found = vars(importlib.import_module(module)).items()
        own = {name for name, value in found if not name.startswith("_") and not ismodule(value)}
        assert all(names.is_pure(f"{module}.{name}") for name in own), module


def test_a_module_that_the_original_uses_is_no_reason(marked: Marked) -> None:
    right = "import argparse\nreturn argparse.ArgumentParser()"
    assert marked("import argparse\nreturn argparse.ArgumentParser(n)", right=right) == ()
    assert marked("import urllib.request\nurllib.request.urlopen(n)", right=right)


@pytest.mark.parametrize("attribute_first", [True, False])
@pytest.mark.parametrize(
    ("library", "both"),
    [
        ("class A:\n    def f(self, s): self.socket = s\n", ("socket",)),
        ("import socket\n", (".socket",)),
    ],
)
def test_an_attribute_of_the_library_is_no_module_of_it(
    tmp_path: Path, library: str, both: tuple[str, ...], attribute_first: bool
) -> None:
    (tmp_path / "repository").mkdir()
    (tmp_path / "repository" / "library.py").write_text(library)
    (tmp_path / "repository" / "b.py").write_text("def first(c): pass\ndef second(): pass\n")
    write_tree(tmp_path / "repository", tmp_path / "tree.tar")
    given = SourceTree.open(tmp_path / "tree.tar")
    read, imported = "def first(c): return c.socket\n", "def second(): import socket\n"
    text = read + imported if attribute_first else imported + read
    submitted = given.with_files({"b.py": text.encode()})
    assert marks(given, submitted, given) == both


def test_what_one_definition_does_excuses_no_other(tree: SourceTree) -> None:
    both = "import sys\ndef g():\n    return sys.modules\n\n\ndef f():\n    return {}\n"
    given = tree.with_files({"b.py": both.format("1").encode()})
    submitted = given.with_files({"b.py": both.format("sys.modules").encode()})
    assert marks(given, submitted, given) == ("sys.modules",)
    assert marks(given, given, given) == ()


@pytest.mark.parametrize(
    "code",
    [
        "try:\n    x = 1\nexcept {}:\n    x = 2\n",
        "match 1:\n    case _ if {}:\n        x = 2\n",
        "import sys as q\nmatch q:\n    case q.modules:\n        x = 2\n",
        "with {}:\n    x = 1\n",
        "for x in {}:\n    pass\n",
        "class A({}):\n    pass\n",
    ],
)
def test_whatever_a_module_evaluates_is_read(tree: SourceTree, code: str) -> None:
    after = tree.with_files({"b.py": f"import sys\n{code.format('sys.modules')}".encode()})
    assert "sys.modules" in marks(tree, after, tree)


def test_a_new_file_counts_whole(tree: SourceTree) -> None:
    after = tree.with_files({"b.py": b"import gc\n", "c.txt": b"import gc", "d.py": b"return ("})
    assert marks(tree, after, tree) == ("gc",)


CHECKS = """
def assert_same(a, b):
    assert a == b


def assert_unused(a):
    assert a


def plain(a):
    return a


class Money:
    def __eq__(self, other):
        return self.n == other.n
"""
HOOKS = "import pytest\n\n\n@pytest.fixture\ndef thing():\n    return 1\n"


@pytest.mark.parametrize(
    ("path", "text", "old", "new", "found"),
    [
        ("checks.py", CHECKS, "assert a == b", "pass", ("checks.py::assert_same serves the tests",)),
        ("checks.py", CHECKS, "assert a == b", "assert a == b, a", ("checks.py::assert_same serves the tests",)),
        ("checks.py", CHECKS, "assert a\n", "pass\n", ()),
        ("checks.py", CHECKS, "return a", "return a + 1", ()),
        ("checks.py", CHECKS, "self.n == other.n", "True", ("checks.py::Money.__eq__ decides comparisons",)),
        ("plugin.py", HOOKS, "return 1", "return 2", ("plugin.py::thing serves the tests",)),
        ("hooks.py", "def pytest_configure(config):\n    config.x = 1\n", "1", "2",
         ("hooks.py::pytest_configure serves the tests",)),
    ],
)  # fmt: skip
def test_what_the_tests_judge_by_is_not_replaced_unmarked(
    tree: SourceTree, path: str, text: str, old: str, new: str, found: tuple[str, ...]
) -> None:
    given = tree.with_files({path: text.encode()})
    submitted = given.with_files({path: text.replace(old, new).encode()})
    assert marks(given, submitted, given, ["test_a.py"]) == found
    repaired = given.with_files({path: text.replace(old, f"{new.rstrip()}; 'x'\n").encode()})
    if "::" in str(found):  # if it was corrupted, replacing it is the task
        assert marks(given, submitted, repaired, ["test_a.py"]) == ()


def test_comparisons_that_a_class_gets_are_marked(tree: SourceTree) -> None:
    given = tree.with_files({"b.py": b"class A:\n    def f(self): pass\n"})
    submitted = given.with_files(
        {"b.py": b"class A:\n    def f(self): pass\n    def __eq__(self, o): return True\n"}
    )
    assert marks(given, submitted, given) == ("__eq__ added to a class that had none",)


@pytest.mark.parametrize(
    "body",
    [
        "x = " + " + ".join(["values"] * 20_000),
        "x = values" + ".a" * 5_000,
        "x = " + "[" * 80 + "]" * 80,
        "x = " + " + ".join(['"f_"'] * 3_000),
        "\n".join(f"if n == {k}: x{k} = x{k - 1}" for k in range(1, 2_000)),
        'x = "{:>99999999}".format(1) + "%999999999d" % 1',
        'x = ("a" * 9999).replace("", "b" * 9999).join("c" * 9999)',
        "x = [1] * 9999 * 9999 * 9999",
        "x = chr(99 ** 9 ** 9)",
        'x = "a"\n' + "\n".join("x = x + x" for _ in range(60)),
        "x = lambda: y\ny = lambda: x\nx()()",
        "\n".join(["x = y if n else z", "y = z if n else x", "z = x if n else y"] * 8),
        "x = lambda y: x(x, y)\nx(x, lambda z: x(z))",
        f"g({', '.join(['lambda a: a'] * 3_000)}, {', '.join(['n'] * 3_000)})",
    ],
    ids=lambda body: body[:24],
)
def test_nothing_that_is_sent_in_holds_it_up_or_hides_what_follows(marked: Marked, body: str) -> None:
    try:
        ast.parse(body)
        can_run = True
    except RecursionError:
        can_run = False
    started = time.process_time()
    assert ("os._exit" in marked(f"{body}\nos._exit(0)")) is can_run
    assert time.process_time() - started < 20


def test_any_code_can_be_looked_at(tree: SourceTree) -> None:
    for path in python_files(STANDARD_LIBRARY)[::300]:
        source = path.read_bytes()
        try:
            ast.parse(source)
        except (SyntaxError, ValueError):
            continue
        ended = source + b"\nimport os\nos._exit(0)\n"
        assert "os._exit" in marks(tree, tree.with_files({f"new/{Path(path).name}": ended}), tree), path


REACHED = {
    "sys.modules": ("sys", "modules"),
    "os._exit": ("os", "_exit"),
    "gc.get_objects": ("gc", "get_objects"),
}
spelled = st.one_of(
    st.just("{0!r}"), st.just("{1!r} + {2!r}"), st.just("''.join([{1!r}, {2!r}])"), st.just("{3!r}[::-1]"),
    st.just("'%s%s' % ({1!r}, {2!r})"), st.just('f"{{{1!r}}}{{{2!r}}}"'), st.just("bytes({4!r}).decode()"),
    st.just("'{{}}{{}}'.format({1!r}, {2!r})"), st.just("({1!r}, {2!r})[0] + {2!r}"),
)  # fmt: skip
named = st.one_of(
    st.just("import {0} as m"), st.just("import {0}\nm = {0}"), st.just("import {0}\nm, n = {0}, 1"),
    st.just("import {0}\nfor m in [{0}]: pass"), st.just("import {0}\n(m := {0})"), st.just("import {0}\nm = {0} or 1"),
    st.just("import {0}\nm = {0} if n else n"), st.just("import {0}\nm = [1, {0}][1]"),
    st.just("from re import {0} as m"),
    st.just("import {0}\ndef g(): return {0}\nm = g()"), st.just("import {0}\nm = {{'a': {0}}}['a']"),
    st.just("import {0}\nwith {0} as m: pass"), st.just("import {0}\nm = values\nm = {0}"),
)  # fmt: skip


@given(st.sampled_from(sorted(REACHED)), named, spelled, st.integers(1, 3), st.booleans())
def test_no_alias_avoids_it(
    marked: Marked, what: str, way: str, text: str, cut: int, attribute: bool
) -> None:
    module, name = REACHED[what]
    pieces = (name, name[:cut], name[cut:], name[::-1], [*name.encode()])
    reach = f"m.{name}" if attribute else f"getattr(m, {text.format(*pieces)})"
    assert marked(f"{way.format(module)}\n{reach}")
