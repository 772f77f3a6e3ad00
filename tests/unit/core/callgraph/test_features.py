"""One small program per feature of Python, with the calls that it makes and no others."""

from contextlib import suppress
from textwrap import dedent
from typing import Any

import pytest

from gistpoint.core.callgraph import build_call_graph


def edges_of(files: dict[str, str]) -> set[tuple[str, str]]:
    graph = build_call_graph({path: dedent(text).encode() for path, text in files.items()})
    assert not graph.skipped
    return {(edge.caller, edge.callee) for edge in graph.edges}


def short(edges: set[tuple[str, str]]) -> set[str]:
    """Return calls within `m.py` as `caller > callee`."""
    return {f"{a.removeprefix('m.py::')} > {b.removeprefix('m.py::')}" for a, b in edges}


CASES = {
    "a name": ("def f(): g()\ndef g(): ...", {"f > g"}),
    "module code": ("def f(): ...\nf()", {"<module> > f"}),
    "recursion": ("def f(n): return f(n - 1)", {"f > f"}),
    "an alias": ("def f(): ...\nh = f\ndef g(): h()", {"g > f"}),
    "the last of two functions is called from elsewhere": (
        "def f(): ...\ndef f(): ...\nif x:\n    def g(): f()\nelse:\n    def g(): f()\ndef h(): g()",
        {"g > f#2", "g#2 > f#2", "h > g", "h > g#2"},
    ),
    "a function that its decorated form replaces": (
        "def d(h): return h\ndef f(): ...\nf = d(f)\ndef g(): f()",
        {"<module> > d", "g > f"},
    ),
    "an earlier function that its successor calls": (
        "def f(): ...\n_f = f\ndef f(): _f()\ndef g(): f()",
        {"f#2 > f", "g > f#2"},
    ),
    "a function of an old Python": (
        "import sys\nif sys.version_info[0] < 3:\n    def f(): ...\nelse:\n    def f(): ...\n"
        "if sys.version_info < (3, 0):\n    def g(): ...\nelif sys.version_info >= (3,):\n    def g(): ...\n"
        "else:\n    def g(): ...\ndef h():\n    f()\n    g()",
        {"h > f#2", "h > g#2"},
    ),
    "a function of some Pythons": (
        "import sys\nif sys.version_info >= (3, 12):\n    def f(): ...\nelse:\n    def f(): ...\ndef g(): f()",
        {"g > f", "g > f#2"},
    ),
    "a function for type checkers": (
        "from typing import TYPE_CHECKING\nif not TYPE_CHECKING:\n    def f(): ...\n"
        "else:\n    def f(): ...\n    class C:\n        def m(self): ...\ndef g(c: 'C'):\n    f()\n    c.m()",
        {"g > f", "g > C.m"},
    ),
    "a later assignment wins": ("def f(): ...\ndef g(): ...\nh = f\nh = g\nh()", {"<module> > g"}),
    "branches meet": (
        "def f(): ...\ndef g(): ...\ndef r(x):\n    h = f\n    if x:\n        h = g\n    h()",
        {"r > f", "r > g"},
    ),
    "a branch that returns": (
        "def f(): ...\ndef g(): ...\ndef r(x):\n    h = f\n    if x:\n        h = g\n        return\n    h()",
        {"r > f"},
    ),
    "a loop comes round": (
        "def f(): ...\ndef g(): ...\ndef r(xs):\n    h = f\n    for x in xs:\n        h()\n        h = g",
        {"r > f", "r > g"},
    ),
    "a passed function": ("def f(): ...\ndef g(h): h()\ng(f)", {"<module> > g", "g > f"}),
    "by keyword and default": (
        "def f(): ...\ndef d(): ...\ndef g(*, h=d): h()\ng(h=f)",
        {"<module> > g", "g > f", "g > d"},
    ),
    "a returned function": ("def f(): ...\ndef g(): return f\ng()()", {"<module> > g", "<module> > f"}),
    "what is given back is the caller's own": (
        "def same(h): return h\ndef f(): ...\ndef g(): ...\ndef a(): same(f)()\ndef b(): same(g)()",
        {"a > same", "a > f", "b > same", "b > g"},
    ),
    "forwarded arguments": (
        "def f(): ...\ndef g(x, h): h()\ndef w(*a, **k): g(*a, **k)\nw(1, f)",
        {"<module> > w", "w > g", "g > f"},
    ),
    "a partial object of itself": (
        "from functools import partial\ndef f(*a): ...\nclass C:\n    h = f\n"
        "def g(x):\n    C.h = partial(C.h, x)\n    C.h()",
        {"g > f"},
    ),
    "a nested function": ("def f():\n    def g(): ...\n    g()", {"f > f.<locals>.g"}),
    "a closure": ("def f(h):\n    def g(): h()\n    return g\ndef t(): ...\nf(t)()", {
        "<module> > f", "<module> > f.<locals>.g", "f.<locals>.g > t",
    }),
    "a nonlocal": (
        "def t(): ...\ndef f():\n    h = None\n    def g():\n        nonlocal h\n        h = t\n    g()\n    h()",
        {"f > f.<locals>.g"} | {"f > t"},
    ),
    "a global": ("h = None\ndef t(): ...\ndef s():\n    global h\n    h = t\ndef u(): h()", {"u > t"}),
    "a lambda folds": ("def t(): ...\ndef f():\n    g = lambda: t()\n    g()", {"f > t"}),
    "a comprehension folds": ("def t(x): ...\ndef f(): return [t(x) for x in range(3) if t(x)]", {"f > t"}),
    "a class body folds": ("def t(): ...\ndef f():\n    class C:\n        x = t()\n    return C", {"f > t"}),
    "a dispatch table": (
        "def f(): ...\ndef g(): ...\nTABLE = {'a': f, 'b': g}\ndef run(k): TABLE[k]()\ndef one(): TABLE['a']()",
        {"run > f", "run > g", "one > f"},
    ),
    "a loop over a list": ("def f(): ...\ndef g(): ...\ndef r():\n    for h in [f, g]: h()", {"r > f", "r > g"}),
    "appended": ("def f(): ...\ndef r():\n    hs = []\n    hs.append(f)\n    hs[0]()", {"r > f"}),
    "items of a dict": ("def f(): ...\ndef r():\n    for k, h in {'a': f}.items(): h()", {"r > f"}),
    "unpacking": ("def f(): ...\ndef g(): ...\na, (b, *c) = f, (g, f)\ndef r(): b()", {"r > g"}),
    "a decorator": ("def d(h): return h\n@d\ndef f(): ...\nf()", {"<module> > d", "<module> > f"}),
    "a decorator that wraps": (
        "import functools\ndef d(h):\n    @functools.wraps(h)\n    def w(*a): return h(*a)\n    return w\n"
        "@d\ndef f(): ...\ndef r(): f()",
        {"<module> > d", "d.<locals>.w > f", "r > d.<locals>.w"},
    ),
    "a decorator with arguments": (
        "def d(n):\n    def in_(h): return h\n    return in_\n@d(3)\ndef f(): ...\ndef r(): f()",
        {"<module> > d", "<module> > d.<locals>.in_", "r > f"},
    ),
    "a decorator from outside": ("import lib\n@lib.thing(3)\ndef f(): ...\ndef r(): f()", {"r > f"}),
    "partial": ("from functools import partial\ndef f(a, h): h()\ndef t(): ...\np = partial(f, 1)\ndef r(): p(t)", {
        "r > f", "f > t",
    }),
    "map and key": ("def f(x): ...\ndef k(x): ...\ndef r(xs): return sorted(map(f, xs), key=k)", {"r > f", "r > k"}),
    "a generator": ("def f(): ...\ndef g():\n    yield f\ndef r():\n    for h in g(): h()", {"r > g", "r > f"}),
    "async": ("async def f(): return t\ndef t(): ...\nasync def r():\n    h = await f()\n    h()", {"r > f", "r > t"}),
    "walrus": ("def f(): return t\ndef t(): ...\ndef r():\n    if (h := f()):\n        h()", {"r > f", "r > t"}),
    "an overload is no function": (
        "from typing import overload\n@overload\ndef f(x: int): ...\n@overload\ndef f(x: str): ...\n"
        "def f(x): ...\ndef r(): f(1)",
        {"r > f#3"},
    ),
}  # fmt: skip

CLASSES = {
    "a constructor": ("class C:\n    def __init__(self): ...\ndef f(): C()", {"f > C.__init__"}),
    "an inherited constructor": (
        "class B:\n    def __init__(self): ...\nclass C(B): ...\ndef f(): C()",
        {"f > B.__init__"},
    ),
    "a new": ("class C:\n    def __new__(cls): return super().__new__(cls)\ndef f(): C()", {"f > C.__new__"}),
    "a method": (
        "class C:\n    def m(self): self.n()\n    def n(self): ...\ndef f(): C().m()", {"f > C.m",
        "C.m > C.n"},
    ),
    "a bound method passed": (
        "class C:\n    def m(self): ...\ndef g(h): h()\ndef f():\n    g(C().m)", {"f > g",
        "g > C.m"},
    ),
    "the method resolution order": (
        "class A:\n    def m(self): ...\nclass B(A): ...\nclass C(A):\n    def m(self): ...\n"
        "class D(B, C): ...\ndef f(): D().m()",
        {"f > C.m"},
    ),
    "super": (
        "class A:\n    def m(self): ...\nclass B(A):\n    def m(self): super().m()\ndef f(): B().m()",
        {"f > B.m", "B.m > A.m"},
    ),
    "super in a diamond": (
        "class A:\n    def m(self): ...\nclass B(A):\n    def m(self): super().m()\nclass C(A):\n    def m(self): ...\n"
        "class D(B, C): ...\ndef f(): D().m()",
        {"f > B.m", "B.m > A.m", "B.m > C.m"},
    ),
    "a static and a class method": (
        "class C:\n    @staticmethod\n    def s(): ...\n    @classmethod\n    def k(cls): cls.s()\ndef f(): C.k()",
        {"f > C.k", "C.k > C.s"},
    ),
    "a property and its setter": (
        "class C:\n    @property\n    def p(self): ...\n    @p.setter\n    def p(self, v): ...\n"
        "def get(c: C): return c.p\ndef put(c: C): c.p = 1",
        {"get > C.p", "put > C.p#2"},
    ),
    "a cached property": (
        "from functools import cached_property\nclass C:\n    @cached_property\n    def p(self): return D()\n"
        "class D:\n    def m(self): ...\ndef f(): C().p.m()",
        {"f > C.p", "f > D.m"},
    ),
    "an attribute's class": (
        "class D:\n    def m(self): ...\nclass C:\n    def __init__(self): self.d = D()\n    def go(self): self.d.m()",
        {"C.go > D.m"},
    ),
    "an annotation": (
        "class D:\n    def m(self): ...\ndef f(x: 'D | None', y: list[D]):\n    x.m()\n    y[0].m()",
        {"f > D.m"},
    ),
    "isinstance": (
        "class D:\n    def m(self): ...\ndef f(x):\n    if isinstance(x, D):\n        x.m()",
        {"f > D.m"},
    ),
    "an abstract method": (
        "class A:\n    def run(self): self.m()\n    def m(self): raise NotImplementedError\n"
        "class B(A):\n    def m(self): ...",
        {"A.run > A.m", "A.run > B.m"},
    ),
    "the only method of its name": (
        "class C:\n    def unheard_of(self): ...\ndef f(x): x.unheard_of()",
        {"f > C.unheard_of"},
    ),
    "no guess at a common name": ("class C:\n    def append(self, x): ...\ndef f(x): x.append(1)", set()),
    "no guess at a built-in object": ("class C:\n    def quux(self): ...\ndef f():\n    x = 'a'\n    x.quux()", set()),
    "operators": (
        "class C:\n    def __add__(self, o): return self\n    def __eq__(self, o): ...\n"
        "    def __contains__(self, o): ...\n"
        "    def __getitem__(self, k): ...\n    def __call__(self): ...\n"
        "def f(c: C):\n    c + 1\n    c == 2\n    3 in c\n    c[4]\n    c()",
        {"f > C.__add__", "f > C.__eq__", "f > C.__contains__", "f > C.__getitem__", "f > C.__call__"},
    ),
    "a context manager": (
        "class C:\n    def __enter__(self): return self\n    def __exit__(self, *a): ...\n    def m(self): ...\n"
        "def f():\n    with C() as c:\n        c.m()",
        {"f > C.__enter__", "f > C.__exit__", "f > C.m"},
    ),
    "contextlib": (
        "from contextlib import contextmanager\nclass C:\n    def m(self): ...\n"
        "@contextmanager\ndef g():\n    yield C()\n"
        "def f():\n    with g() as c:\n        c.m()",
        {"f > g", "f > C.m"},
    ),
    "an iterator": (
        "class C:\n    def __iter__(self): return self\n    def __next__(self): return D()\n"
        "class D:\n    def m(self): ...\ndef f():\n    for d in C(): d.m()",
        {"f > C.__iter__", "f > C.__next__", "f > D.m"},
    ),
    "texts of objects": (
        "class C:\n    def __str__(self): ...\ndef f(c: C): return f'{c}'\ndef g(c: C): return str(c)",
        {"f > C.__str__", "g > C.__str__"},
    ),
    "a data class": (
        "from dataclasses import dataclass\nclass D:\n    def m(self): ...\n@dataclass\nclass C:\n    d: D\n"
        "    def __post_init__(self): self.d.m()\ndef f(): C(D())",
        {"f > C.__post_init__", "C.__post_init__ > D.m"},
    ),
    "match": (
        "class A:\n    def m(self): ...\nclass B:\n    def n(self): ...\n"
        "def f(x):\n    match x:\n        case A() as a:\n            a.m()\n        case B():\n            x.n()",
        {"f > A.m", "f > B.n"},
    ),
    "a raised class": ("class E(Exception):\n    def __init__(self): ...\ndef f(): raise E", {"f > E.__init__"}),
    "a protocol": (
        "from typing import Protocol\nclass P(Protocol):\n    def m(self): ...\n"
        "class C(P):\n    def m(self): pass; x = 1\n"
        "def f(p: P): p.m()",
        {"f > P.m", "f > C.m"},
    ),
    "a computed name": (
        "class V:\n    def visit(self, n): getattr(self, f'visit_{n}')()\n    def visit_a(self): ...\n"
        "    def visit_b(self): ...\n    def other(self): ...",
        {"V.visit > V.visit_a", "V.visit > V.visit_b"},
    ),
    "getattr with a constant": ("class C:\n    def m(self): ...\ndef f(c: C): getattr(c, 'm')()", {"f > C.m"}),
    "an enumeration": (
        "from enum import Enum\nclass E(Enum):\n    A = 1\n    def m(self): ...\ndef f(): E.A.m()",
        {"f > E.m"},
    ),
    "a hook for subclasses": (
        "class A:\n    def __init_subclass__(cls): ...\nclass B(A): ...",
        {"<module> > A.__init_subclass__"},
    ),
    "a subclass's version sees a subclass": (
        "class A:\n    def go(self): self.m()\n    def m(self): raise NotImplementedError\n"
        "class B(A):\n    def m(self): self.x()\n    def x(self): ...\n"
        "class C(A):\n    def m(self): ...\n    def x(self): ...",
        {"A.go > A.m", "A.go > B.m", "A.go > C.m", "B.m > B.x"},
    ),
}  # fmt: skip


BINARY = {
    "add": "+", "sub": "-", "mul": "*", "matmul": "@", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
    "lshift": "<<", "rshift": ">>", "and": "&", "or": "|", "xor": "^",
}  # fmt: skip
MIRRORED = {"==": "eq", "!=": "ne", "<": "gt", "<=": "ge", ">": "lt", ">=": "le"}
LITERALS = ("1", "-1", "1.5", "True", "None", "'text'", "'%s'", "b'%s'", "...")
BOTH = [*BINARY.values(), *MIRRORED]


@pytest.mark.parametrize("literal", LITERALS)
@pytest.mark.parametrize("operator", BOTH)
def test_a_literal_on_the_left_calls_what_the_interpreter_calls(operator: str, literal: str) -> None:
    methods = [*(f"__{name}__" for name in BINARY), *(f"__r{name}__" for name in BINARY)]
    methods += [f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge")]
    called: list[str] = []

    def recording(name: str, result: object) -> Any:
        return lambda self, *given: called.append(name) or result

    texts = {"__str__": "a", "__bytes__": b"a"}
    made = {**dict.fromkeys(methods, None), **texts}
    cls = type("C", (), {name: recording(name, result) for name, result in made.items()})
    with suppress(TypeError):  # a text without a place for the object
        eval(f"{literal} {operator} c", {"c": cls()})
    body = "\n".join(f"    def {name}(self, *o): ..." for name in made)
    found = short(edges_of({"m.py": f"class C:\n{body}\ndef f(c: C): {literal} {operator} c"}))
    if (operator, literal) == ("%", "'text'"):
        called.append("__str__")  # what a text asks for is not analysed
    if operator == "!=":
        called.append("__eq__")  # which an inherited `__ne__` calls
    assert found == {f"f > C.{name}" for name in called}


@pytest.mark.parametrize("operator", BINARY.values())
def test_a_number_that_is_changed_in_place_calls_the_reflected_method(operator: str) -> None:
    name = next(name for name, sign in BINARY.items() if sign == operator)
    code = f"class C:\n    def __r{name}__(self, o): ...\ndef f(c: C):\n    n = 1\n    n {operator}= c"
    assert short(edges_of({"m.py": code})) == {f"f > C.__r{name}__"}


@pytest.mark.parametrize("name", [*CASES, *CLASSES])
def test_a_feature(name: str) -> None:
    source, wanted = {**CASES, **CLASSES}[name]
    assert short(edges_of({"m.py": source})) == wanted


IMPORTS = {
    "import": "import pkg.tool\ndef f(): pkg.tool.t()",
    "import as": "import pkg.tool as x\ndef f(): x.t()",
    "from": "from pkg.tool import t\ndef f(): t()",
    "from as": "from pkg.tool import t as y\ndef f(): y()",
    "from a package": "from pkg import tool\ndef f(): tool.t()",
    "re-exported": "from pkg import t\ndef f(): t()",
    "star": "from pkg.tool import *\ndef f(): t()",
    "star of a package": "from pkg import *\ndef f(): t()",
    "inside a function": "def f():\n    from pkg.tool import t\n    t()",
    "guarded": "try:\n    from pkg.tool import t\nexcept ImportError:\n    t = None\ndef f(): t()",
    "for types": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pkg.tool import t\ndef f(): t()",
}


@pytest.mark.parametrize("name", IMPORTS)
def test_an_import(name: str) -> None:
    files = {
        "pkg/__init__.py": "from .tool import t",
        "pkg/tool.py": "def t(): ...",
        "user.py": IMPORTS[name],
    }
    assert edges_of(files) == {("user.py::f", "pkg/tool.py::t")}


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("src/pkg/user.py", "from .tool import t"),
        ("src/pkg/user.py", "from . import t"),
        ("src/pkg/sub/user.py", "from ..tool import t"),
        ("src/pkg/sub/user.py", "from pkg.tool import t"),
        ("src/pkg/sub/user.py", "from src.pkg.tool import t"),
    ],
)
def test_an_import_within_a_package(path: str, line: str) -> None:
    files = {
        "src/pkg/__init__.py": "from pkg import tool\nt = tool.t",
        "src/pkg/sub/__init__.py": "",
        "src/pkg/tool.py": "def t(): ...",
        path: f"{line}\ndef f(): t()",
    }
    assert edges_of(files) == {(f"{path}::f", "src/pkg/tool.py::t")}


def test_two_modules_with_one_name_of_a_function_stay_apart() -> None:
    files = {"a.py": "def f(): ...", "b.py": "def f(): ...", "c.py": "import a, b\ndef g(): a.f()"}
    assert edges_of(files) == {("c.py::g", "a.py::f")}


def test_base_classes_across_modules() -> None:
    files = {
        "p/__init__.py": "",
        "p/base.py": "class Base:\n    def m(self): ...",
        "p/alias.py": "from . import base\nOld = base.Base",
        "p/user.py": "from p.alias import Old\nclass C(Old): ...\ndef f(): C().m()",
    }
    assert edges_of(files) == {("p/user.py::f", "p/base.py::Base.m")}
