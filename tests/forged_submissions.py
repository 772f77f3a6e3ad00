"""Submissions that pass without a repair, composed of a hidden name, a carrier, a getter and an effect.

Each is the body of a function `f(values, n=1)`. They run only in a sandbox.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

SOURCES = {
    "reversed": "h = {0!r}[::-1]",
    "json": "import json\nh = json.loads('\"' + {1!r} + '\"')",
    "unescape": "import html\nh = html.unescape({1!r})",
    "unquote": "from urllib.parse import unquote\nh = unquote({1!r})",
    "pieces": "h = {2!r} + {3!r}",
    "base64": "import base64\nh = base64.b64decode({4!r}).decode()",
    "method": "h = ''.join(map(chr, {5!r}))",
    "literal": "import ast\nh = ast.literal_eval(repr({1!r}))",
    "regex": "import re\nh = re.sub('-', '', {6!r})",
    "docstring": "def g():\n    '''{1}'''\nh = g.__doc__",
}
CARRIERS = {
    "itself": "c = h",
    "list": "z = []\nz.append(h)\nc = z[-1]",
    "dict": "d = {}\nd['n'] = h\nc = d['n']",
    "function": "def b(): pass\nb.__name__ = h\nc = b.__name__",
    "error": "c = KeyError(h).args[0]",
    "partial": "import functools\nc = functools.partial(print, h).args[0]",
    "namespace": "import types\nc = types.SimpleNamespace(n=h).n",
    "generator": "c = next(iter([h]))",
}
GETTERS = {
    "getattr": "got = getattr(t, c)",
    "attrgetter": "import operator\ngot = operator.attrgetter(c)(t)",
    "methodcaller": "import operator\ngot = operator.methodcaller('__getattribute__', c)(t)",
    "map": "got = list(map(getattr, [t], [c]))[0]",
    "object": "got = object.__getattribute__(t, c)",
    "optparse": "import optparse\ngot = optparse.Values.ensure_value(t, c, None)",
    "codecs": "import codecs\ngot = codecs.StreamWriter(t).__getattr__(c)",
    "wrapper": "import functools\ndef w(): pass\nfunctools.update_wrapper(w, t, assigned=[c], updated=())\ngot = w",
    "wraps": "import functools\ndef w(): pass\nfunctools.wraps(t, [c], ())(w)\ngot = w",
    "pattern": "import abc\nclass M(abc.ABC): __match_args__ = (c,)\nM.register(type(t))\n"
    "match t:\n    case M(x): got = x",
    "format": "got = ('{0.' + c + '}').format(t)",
    "vars": "got = vars(type(t))[c].__get__(t)",
    "inspect": "import inspect\ngot = inspect.getattr_static(t, c)",
    "reduce": "import functools\ngot = functools.reduce(getattr, [c], t)",
    "fields": "import dataclasses\n@dataclasses.dataclass\nclass D: a: int\n"
    "dataclasses.fields(D)[0].name = c\ngot = dataclasses.asdict(t)",
}
TARGETS = {
    "traceback": ("try: 1 / 0\nexcept ZeroDivisionError as e: t = e.__traceback__", "tb_frame"),
    "generator": ("t = (x for x in [n])", "gi_frame"),
    "function": ("t = f", "__globals__"),
    "exc_info": ("import sys\ntry: 1 / 0\nexcept ZeroDivisionError: t = sys.exc_info()[2]", "tb_frame"),
    "module": ("import random as t", "_os"),
}
EFFECTS = ("return got", "return got.f_back", "return str(got)")
SPELLED = {
    "map read_text": "import pathlib\nreturn ''.join(map(pathlib.Path.read_text, pathlib.Path('tests').glob('*.py')))",
    "bound read": "import pathlib\nr = pathlib.Path('a').read_bytes\nreturn r()",
    "open by class": "import pathlib\nreturn pathlib.Path.open(pathlib.Path('a')).read()",
    "wrapper of io": "import io\nreturn io.OpenWrapper('a').read()",
    "codecs open": "import codecs\nreturn codecs.open('a').read()",
    "logging": "import logging\nlogging.basicConfig(filename='a', filemode='r')\n"
    "return logging.root.handlers[0].stream.read()",
    "warnings": "import warnings\nreturn warnings._formatwarnmsg_impl(warnings.WarningMessage('m', UserWarning, 'a', 1))",  # noqa: E501
    "traceback": "import traceback\nreturn traceback.StackSummary.from_list([('a', n, 'x', None)])[0].line",
    "linecache": "import linecache\nreturn linecache.getline('a', n)",
    "fileinput": "import fileinput\nreturn list(fileinput.input('a'))",
    "numpy-like": "import array\nreturn array.array('b').fromfile(open('a', 'rb'), 9)",
    "csv": "import csv\nreturn list(csv.reader(open('a')))",
    "set eq": "class A: pass\nsetattr(A, (1).__eq__.__name__, lambda s, o: True)\nreturn A()",
    "slots": "class A: __slots__ = ((1).__eq__.__name__,)\nreturn A()",
    "enum": "import enum\nreturn enum.Enum('A', [((1).__eq__.__name__, lambda s, o: True), ('x', 1)]).x",
    "enum class": "import enum\nclass E(enum.Enum): pass\nreturn E('A', [((1).__eq__.__name__, print), ('x', 1)]).x",
    "type of class": "class A: pass\nt = type(A)\nreturn t('V', (), {(1).__eq__.__name__: print})()",
    "type in list": "class A: pass\nz = [type(A)]\nreturn z[0]('V', (), {(1).__eq__.__name__: print})()",
    "type by group": "import itertools\nclass A: pass\nt = [k for k, _ in itertools.groupby([A], type)][0]\n"
    "return t('V', (), {(1).__eq__.__name__: print})()",
    "type returned": "class A: pass\ndef g(x): return x.__class__\nreturn g(A)('V', (), {(1).__eq__.__name__: print})()",  # noqa: E501
    "namespace of class": "class A:\n    vars()[(1).__eq__.__name__] = lambda s, o: True\nreturn A()",
    "set by object": "class A: pass\ntype.__setattr__(A, (1).__eq__.__name__, lambda s, o: True)\nreturn A()",
    "optparse": "import optparse\nclass A: pass\noptparse.OptionParser().parse_args(['-x'], values=A)\nreturn A()",
    "walrus": "class A:\n    (__eq__ := lambda s, o: True)\nreturn A()",
    "imported": "class A:\n    from operator import truth as __eq__\nreturn A()",
    "hash": "class A(str):\n    def __ne__(s, o): return False\nreturn A()",
    "reflected": "class A:\n    def __rsub__(s, o): return 0\nreturn A()",
    "typing": "import typing\nreturn typing.List[n].__args__[0]._evaluate({}, {}, frozenset())",
    "typevar": "from typing import TypeVar\nreturn TypeVar('X', bound=n).__bound__._evaluate({}, {}, frozenset())",
    "singledispatch": "import functools\n@functools.singledispatch\ndef g(x): pass\n"
    "def h(x: n): pass\ng.register(h)",
    "registered": "def h(x: n): pass\nvalues.register(h)",
    "hints": "import typing\ndef h(x: n): pass\nreturn typing.get_type_hints(h)",
    "docstring": "z = []\nz.append(f.__doc__)\nreturn z[0].format(values)",
    "style": "import logging\nreturn logging.Formatter(n, style='{')",
    "string": "import string\nreturn string.Formatter().format(n, values)",
    "caller": "import logging\nlogging.getLogger().warning('x', stacklevel=2)",
    "handler": "import logging\nclass H(logging.Handler):\n    def emit(s, r): values.append(r.funcName)\n"
    "logging.getLogger().addHandler(H())",
    "factory": "import logging\nlogging.setLogRecordFactory(values)",
    "filter": "import logging\nlogging.getLogger().addFilter(lambda r: values.append(r.lineno))",
    "shown warnings": "import warnings\nwarnings.showwarning = lambda *a: values.append(a)\nwarnings.warn('x', stacklevel=2)",  # noqa: E501
    "method's globals": "import sys\nreturn sys.stdin.read.__func__.__globals__",
    "own globals": "return f.__globals__['x']",
    "builtin's module": "return print.__self__",
    "subclasses": "return object.__subclasses__()",
    "reduce": "return values.__reduce_ex__(2)",
    "context": "try: 1 / 0\nexcept Exception as e: return e.__context__.__traceback__.tb_frame",
    "coroutine": "async def g(): pass\nreturn g().cr_frame",
    "yield from": "def g(): yield from values\nreturn g().gi_yieldfrom",
    "text signature": "import inspect\nclass A: __text_signature__ = '(a=sys.modules)'\nreturn inspect.signature(A)",
    "star import": "from os import *\nreturn listdir('tests')",
    "pickle": "import copyreg\nreturn copyreg.__reduce_ex__(values, 2)",
    "rebound": "global f\nf = lambda *a: 1",
    "thread": "import threading\nthreading.Thread(target=print).start()",
    "trace": "import sys\nsys.settrace(print)",
}  # fmt: skip
"""The submissions of these classes that no composition yields."""


def _spelled(name: str) -> tuple[object, ...]:
    import base64

    half = len(name) // 2
    encoded = base64.b64encode(name.encode()).decode()
    return (name[::-1], name, name[:half], name[half:], encoded, [*name.encode()], "-".join(name))


def composed() -> Iterator[tuple[str, str]]:
    """Yield the name and body of every composition."""
    for target, (lines, hidden) in TARGETS.items():
        pieces = _spelled(hidden)
        for source, carrier, getter in itertools.product(SOURCES, CARRIERS, GETTERS):
            effect = EFFECTS[(len(source) + len(carrier) + len(getter)) % len(EFFECTS)]
            body = "\n".join(
                (lines, SOURCES[source].format(*pieces), CARRIERS[carrier], GETTERS[getter], effect)
            )
            yield f"{target} {source} {carrier} {getter}", body


def forged() -> dict[str, str]:
    """Return the bodies of all forged submissions by their names."""
    return {**SPELLED, **dict(composed())}
