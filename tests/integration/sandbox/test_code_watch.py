"""The launcher detects code without a file, stand-ins for modules, and objects that equal anything."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from examples import sampled
from launching import launch_programs, whole

from gistpoint.core.errors import EnvironmentBuildError
from gistpoint.sandbox.environments.interpreters import find_interpreter

# In one worker, the programs of a table run only once.
pytestmark = pytest.mark.xdist_group("code watch")


def _interpreters() -> list[str]:
    """Return the tests' interpreter and, if installed, a newer one, which uses `sys.monitoring`."""
    found = [sys.executable]
    for version in ("3.13", "3.12"):
        try:
            found.append(str(find_interpreter(version).path))
        except EnvironmentBuildError:
            continue
        break
    return found


Watch = Callable[[str], Mapping[str, Callable[[str], Any]]]


@pytest.fixture(scope="module", params=_interpreters(), ids=lambda path: Path(path).resolve().name)
def watch(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Watch:
    """A function that runs all gists of a table as programs, once, and returns readers of their records."""

    @cache
    def run(table: str) -> Mapping[str, Callable[[str], Any]]:
        orders = {
            name: {"source": source, "owned": ["pkg"], "modules": ["pkg", "pkg.sub"], **more}
            for name, (source, more) in TABLES[table].items()
        }
        told = launch_programs(tmp_path_factory.mktemp("gists"), orders, python=request.param)
        return {name: partial(whole, records) for name, records in told.items()}

    return run


INVENTED = {"suspected": list(range(1, 100))}
HONEST = """
import asyncio, collections, dataclasses, difflib, enum, functools, json, threading, types, typing, unittest.mock

Pair = collections.namedtuple("Pair", "x y")

@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: int = 0

class Named(typing.NamedTuple):
    a: int

class Colour(enum.Enum):
    RED = 1

@functools.lru_cache
def area(side):
    return [side * n for n in range(3)]

@types.coroutine
def waits():
    yield

async def main():
    await waits()

area(2)
asyncio.run(main())
Point(1) == Point(1)
copied = types.FunctionType(area.__wrapped__.__code__.replace(co_flags=area.__wrapped__.__code__.co_flags), globals())
copied(3)
thread = threading.Thread(target=lambda: area(4))
thread.start()
thread.join()
pkg = __import__("sys").modules[__name__]
"""


def test_nothing_is_told_of_honest_code_and_of_what_the_standard_library_generates(watch: Watch) -> None:
    told = watch("single")["honest"]
    assert told("made") == told("modules") == told("processes") == told("equals") == told("stand_ins") == []
    assert told("made_elsewhere") == told("functions") == []


NOWHERE = {
    "exec": ("exec('def made(): pass')", {"<module>", "made"}),
    "exec by another name": ("import builtins; getattr(builtins, 'ex' + 'ec')('x = 1')", {"<module>"}),
    "exec called from C": ("list(map(exec, ['x = 1']))", {"<module>"}),
    "eval": ("eval('lambda: 1')", {"<module>", "<lambda>"}),
    "the gist's own name": ("exec(compile('def made(): pass', __file__, 'exec'))", {"<module>", "made"}),
    "a file that is not there": ("exec(compile('x = 1', '/usr/lib/nowhere.py', 'exec'))", {"<module>"}),
    "a file of the library": (
        "import argparse; exec(compile('def made(): pass', argparse.__file__, 'exec'))",
        {"<module>", "made"},
    ),
    "a frozen module": ("exec(compile('x = 1', '<frozen os>', 'exec'))", {"<module>"}),
    "marshalled bytes": (
        "import marshal, types; c = compile('lambda: 1', 'x', 'eval').co_consts[0]\n"
        "types.FunctionType(marshal.loads(marshal.dumps(c)), {})()",
        {"<lambda>"},
    ),
    "other code put into a function": (
        "def f(): return 1\ng = compile('def made(): return 2', __file__, 'exec').co_consts[0]\nf.__code__ = g\nf()",
        {"made"},
    ),
    "other constants put into a function": (
        "def f(): return 1234\nf.__code__ = f.__code__.replace(co_consts=tuple(5 for _ in f.__code__.co_consts))\nf()",
        {"f"},
    ),
    "a loader of its own": (
        "import argparse, importlib.abc, importlib.util\n"
        "class L(importlib.abc.InspectLoader):\n"
        "    def get_source(self, name): return 'def made(): pass'\n"
        "    def get_code(self, name): return compile(self.get_source(name), argparse.__file__, 'exec')\n"
        "s = importlib.util.spec_from_loader('other', L())\n"
        "s.loader.exec_module(importlib.util.module_from_spec(s))",
        {"<module>", "made"},
    ),
    "a finder of its own": (
        "import importlib.abc, importlib.util, sys\n"
        "class L(importlib.abc.InspectLoader):\n"
        "    def get_source(self, name): return 'x = 1'\n"
        "class F:\n"
        "    def find_spec(self, name, *more):\n"
        "        return importlib.util.spec_from_loader(name, L()) if name == 'other' else None\n"
        "sys.meta_path.insert(0, F())\nimport other",
        {"<module>"},
    ),
    "a file in memory": (
        "import importlib.machinery, os, sys\nfd = os.memfd_create('x')\nos.write(fd, b'x = 1')\n"
        "path = f'/proc/self/fd/{fd}'\nimportlib.machinery.SourceFileLoader('other', path).load_module()",
        {"<module>"},
    ),
    "pickled": (
        "import pickle\nclass R:\n    def __reduce__(self): return exec, ('x = 1',)\n"
        "pickle.loads(pickle.dumps(R()))",
        {"<module>"},
    ),
    "ctypes": ("import ctypes; ctypes.pythonapi.PyRun_SimpleString(b'x = 1')", {"<module>"}),
}  # fmt: skip


@pytest.mark.parametrize("name", sampled(NOWHERE, 3))
def test_code_from_nowhere_is_told(name: str, watch: Watch) -> None:
    assert set(watch("nowhere")[name]("made")) == NOWHERE[name][1]


ASKED = {
    "import code; code.InteractiveInterpreter().runsource('f = lambda: 1')": "InteractiveInterpreter.runsource",
    "import timeit; timeit.Timer('x = 1').timeit(1)": "Timer.__init__",
    "import runpy; runpy.run_path('/dev/null')": "run_path",
}


@pytest.mark.parametrize("source", sampled(ASKED, 3))
def test_code_from_nowhere_that_the_environment_runs_is_told_with_what_was_called(
    source: str, watch: Watch
) -> None:
    rows = watch("asked")[source]("made_elsewhere")
    assert {row.rpartition(" ")[2] for row in rows} == {ASKED[source]}


MAKES = "dataclasses.dataclass(init=False, eq=False)"  # it may write any expression into `__repr__`
HIDDEN = "x or (lambda n: n * n)(self.x)"
GENERATING = """
import collections, dataclasses, functools, types
class A:
    x = 1
class B(A): pass
class S(str):
    def isidentifier(self): return True
def made(): return 1
def lies(name):
    f = dataclasses.field()
    f.name, f.type, f._field_type = name, int, dataclasses._FIELD
    return f
A.__dataclass_params__ = types.SimpleNamespace(frozen=False)
"""
SMUGGLED = {
    "a call": f"A.__annotations__ = {{'x or print()': int}}; {MAKES}(A)",
    "a call of the gist's": f"A.__annotations__ = {{'x or made()': int}}; {MAKES}(A)",
    "the builtins' own name": f"A.__annotations__ = {{'x or __builtins__': int}}; {MAKES}(A)",
    "nothing outside of it": f"A.__annotations__ = {{{HIDDEN!r}: int}}; {MAKES}(A)",
    "a text that says it is a name": f"A.__annotations__ = {{S({HIDDEN!r}): int}}; {MAKES}(A)",
    "a field that lies": f"A.__dataclass_fields__ = {{'x': lies({HIDDEN!r})}}; {MAKES}(B)",
    "while a named tuple is made": "try: collections.namedtuple('P', map(exec, ['x = 1']))\nexcept ValueError: pass",
    "as the name of a named tuple": (
        "try: collections.namedtuple('x = 1', map(exec, ['x = 1']))\nexcept ValueError: pass"
    ),
    "while a data class is made": "A.__dataclass_fields__ = types.SimpleNamespace(\n"
    f"    values=functools.partial(exec, 'x = 1'))\ntry: {MAKES}(B)\nexcept TypeError: pass",
    "the function that writes": "dataclasses._create_fn('f', ['n'], ['return n * n'])"
    " if hasattr(dataclasses, '_create_fn') else exec('x = 1')",
}


@pytest.mark.parametrize("name", sampled(SMUGGLED, 3))
def test_code_smuggled_into_a_class_that_the_standard_library_generates_is_told(
    name: str, watch: Watch
) -> None:
    told = watch("smuggled")[name]
    assert told("made_elsewhere") or told("made")


TAKEN_OFF = """
import sys
for tool in range(6) if sys.version_info >= (3, 12) else ():
    if sys.monitoring.get_tool(tool) == "code watch":
        sys.monitoring.set_events(tool, 0)
if sys.version_info < (3, 12):
    sys.settrace(None)
"""
WRITES = """
import os, subprocess, sys, zipfile
open("own.py", "w").write("value = 1")
with zipfile.ZipFile("packed.zip", "w") as archive:
    archive.writestr("other.py", "value = 2")
sys.path[:0] = [".", os.path.abspath("packed.zip")]
import own, other
subprocess.run(["true"])
"""


def test_what_keeps_functions_from_being_seen_is_told(watch: Watch) -> None:
    told = watch("single")
    assert told["tracer"]("made") == ["<sys.settrace>"]
    assert told["profiler"]("made") == ["<sys.setprofile>"]
    by = [name.partition(" by ")[0] for name in told["debugger"]("made_elsewhere")]
    assert by == ["<sys.settrace>", "<sys.settrace>"], "one to begin, one to end"
    assert told["taken off"]("made") in (["<watch taken off>"], ["<sys.settrace>"])


def test_files_that_it_wrote_and_programs_that_it_started_are_told(watch: Watch) -> None:
    told = watch("single")["writes"]
    assert told("modules") == ["own.py", "packed.zip/other.py"]
    assert told("processes") == ["true"]
    assert told("made") == []


FAKE = """
import argparse, builtins, sys, types
class Fake:
    sub = 1
def area(): pass
itself = sys.modules[__name__]
"""
STAND_INS = {
    "the gist": ("pkg = itself", []),
    "a namespace": ("pkg = types.SimpleNamespace(area=area, sub=types.SimpleNamespace(f=area, len=len), x=1)", []),
    "its own class in a namespace": ("pkg = types.SimpleNamespace(f=Fake); kept = Fake; del Fake", []),
    "a function of another module": ("pkg = types.SimpleNamespace(f=argparse.ArgumentParser)", []),
    "a class": ("pkg = Fake", [["pkg", "class Fake"]]),
    "a class made by type": ("pkg = type('pkg', (), {})", [["pkg", "class pkg"]]),
    "an object": ("pkg = argparse.Namespace(area=area)", [["pkg", "object of argparse.Namespace"]]),
    "another module": ("import argparse as pkg", [["pkg", "object of builtins.module"]]),
    "a module of its own": ("pkg = types.ModuleType('pkg')", [["pkg", "object of builtins.module"]]),
    "a function": ("pkg = area", [["pkg", "function area"]]),
    "a builtin": ("builtins.pkg = Fake", [["pkg", "class Fake"]]),
    "a submodule": ("pkg = itself; sub = Fake", [["pkg.sub", "class Fake"]]),
    "a submodule asked for": (
        "pkg = itself\ndef __getattr__(name):\n    if name == 'sub': return Fake\n    raise AttributeError",
        [["pkg.sub", "class Fake"]],
    ),
    "the gist with another class": (
        "class M(types.ModuleType): pass\nitself.__class__ = M\npkg = itself", [["pkg", "object of __main__.M"]]
    ),
    "a lambda in a namespace": (
        "pkg = types.SimpleNamespace(f=lambda: 1)", [["pkg", "a namespace with f, builtins.function"]]
    ),
    "a method in a namespace": (
        "pkg = types.SimpleNamespace(sub=types.SimpleNamespace(f={}.get))",
        [["pkg", "a namespace with sub.f, builtins.builtin_function_or_method"],
         ["pkg.sub", "a namespace with f, builtins.builtin_function_or_method"]],
    ),
    "another kind of namespace": (
        "class N(types.SimpleNamespace): pass\npkg = N(area=area)", [["pkg", "object of __main__.N"]]
    ),
    "a class that hides its name": (
        "class Meta(type):\n    def __getattribute__(self, name): raise ZeroDivisionError\n"
        "class Sly(metaclass=Meta): pass\npkg = Sly",
        [["pkg", "class Sly"]],
    ),
    "an entry of sys.modules": ("sys.modules['pkg'] = itself", [["sys.modules['pkg']", "builtins.module"]]),
    "an entry by another name": ("m = sys.modules; m['pkg.sub'] = Fake", [["sys.modules['pkg.sub']", "builtins.type"]]),
}  # fmt: skip


@pytest.mark.parametrize("name", sampled(STAND_INS, 3))
def test_what_stands_under_the_name_of_a_module_is_told(name: str, watch: Watch) -> None:
    assert watch("stand-ins")[name]("stand_ins") == STAND_INS[name][1]


SQUARE = "class Value:\n    def __init__(self, n): self.n = n\n"
EQUALS = {
    "always": (SQUARE + "    def __eq__(self, other): return True\nassert Value(1) == 3", ["Value.__eq__"]),
    "of integers": (
        "class Value(int):\n    def __eq__(self, other): return isinstance(other, int)\nassert Value(1) == 3",
        ["Value.__eq__"],
    ),
    "only once": (
        SQUARE + "    def __eq__(self, other):\n        self.n += 1\n        return self.n < 9 or other == 3\n"
        "assert Value(1) == 3",
        ["Value.__eq__"],
    ),
    "by a lambda": (SQUARE + "Value.__eq__ = lambda *of: True\nassert Value(1) == 3", ["<lambda>"]),
    "reflected": (
        "class Value(int):\n    def __eq__(self, other): return True\nassert 3 == Value(1)", ["Value.__eq__"]
    ),
    "by a static method": (
        SQUARE + "    __eq__ = staticmethod(lambda other: True)\nassert Value(1) == 3", ["Value.<lambda>"]
    ),
    "by a function with a cell": (
        SQUARE + "def made(yes):\n    def eq(self, other): return yes\n    return eq\nValue.__eq__ = made(True)\n"
        "assert [Value(1)] == [3]",
        ["made.<locals>.eq"],
    ),
    "a container": (
        SQUARE + "    def __contains__(self, other): return True\nassert 3 in Value(1)", ["Value.__contains__"]
    ),
    "in a container": (SQUARE + "    def __eq__(self, other): return True\nassert Value(1) in (3,)", ["Value.__eq__"]),
    "a class of all": (
        "class Meta(type):\n    def __instancecheck__(cls, other): return True\n"
        "class Value(metaclass=Meta): pass\nassert isinstance(3, Value)",
        ["Meta.__instancecheck__"],
    ),
    "honest": (SQUARE + "    def __eq__(self, other): return self.n == other\nassert Value(3) == 3", []),
    "honest by its parts": (
        SQUARE + "    def __eq__(self, other): return isinstance(other, Value) and other.n == self.n\n"
        "assert Value(3) == Value(3)",
        [],
    ),
    "called while something is compared": (
        "def value(other=None): return True\nassert value(1) == True and value() == True", []
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sampled(EQUALS, 3))
def test_what_equals_anything_is_told(name: str, watch: Watch) -> None:
    assert watch("equals")[name]("equals") == EQUALS[name][1]
    assert watch("grounded")[name]("equals") == [], "lines that stand in the codebase are not asked"


TABLES: Mapping[str, Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "single": {
        "honest": (HONEST, INVENTED),
        "tracer": ("import sys\nsys.settrace(None)", {}),
        "profiler": ("import sys\nsys.setprofile(None)", {}),
        "debugger": ("import bdb\nfound = bdb.Bdb()\nfound.set_trace()\nfound.set_quit()", {}),
        "taken off": (TAKEN_OFF, {}),
        "writes": (WRITES, {}),
    },
    "nowhere": {name: (source, {}) for name, (source, _) in NOWHERE.items()},
    "asked": {source: (source, {}) for source in ASKED},
    "smuggled": {name: (GENERATING + source, {}) for name, source in SMUGGLED.items()},
    "stand-ins": {name: (FAKE + source, {}) for name, (source, _) in STAND_INS.items()},
    "equals": {name: (source, INVENTED) for name, (source, _) in EQUALS.items()},
    "grounded": {name: (source, {}) for name, (source, _) in EQUALS.items()},
}
