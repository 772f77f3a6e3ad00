"""Gists that try to score without doing the work, on each backend; the table is in docs/guide/gists.md."""

from __future__ import annotations

import base64
import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from examples import sampled
from gist_tricks import fakes, folded, padded
from small_gists import HONEST, NAMED, SHAPES, STUB, TESTED, Prepared, error_of
from working_backends import on_one_backend

from gistpoint.core.kinds.gist.rates import unfolded
from gistpoint.core.kinds.gist.score import GistJudgement
from gistpoint.core.outcomes import RunStatus
from gistpoint.sandbox.backends.base import Backend

WRONG = HONEST.replace("return side * side", "return 0")
OUTPUT = "print('area of 2')\n"


def zipped() -> str:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("other.py", SHAPES)
    return base64.b64encode(buffer.getvalue()).decode()


@dataclass(frozen=True)
class Attack:
    """A gist and its required outcome."""

    gist: str
    error: str = ""
    mocked: bool = False
    status: RunStatus = RunStatus.FINISHED
    outside: bool = False
    """Whether it affects the disk, the network or processes, and is therefore tried on each backend."""

    @property
    def fidelity(self) -> int:
        return 0 if self.error else 1


CRASH, INVALID, COULD_NOT = RunStatus.CRASHED, RunStatus.INVALID, RunStatus.COULD_NOT_RUN
FORGE = """
import json, os
record = {"e": "test", "n": 9, "i": 0, "reports": [["setup", "passed", False], ["raw", None], ["call", "passed", False],
          ["teardown", "passed", False]], "text": "", "seconds": 0}
for descriptor in range(3, 300):
    try:
        os.write(descriptor, json.dumps(record).encode() + b"\\n")
    except OSError:
        pass
"""
EDIT = """
import gc
for found in gc.get_objects():
    if type(found).__name__ == "Results":
        found.put("finish", exit=0, collected=2)
"""
SWALLOW = """
import _pytest.runner
whole = _pytest.runner.CallInfo.from_call.__func__
def from_call(cls, func, when, reraise=None):
    def quiet():
        try:
            return func()
        except AssertionError:
            return None
    return whole(cls, quiet, when, reraise)
_pytest.runner.CallInfo.from_call = classmethod(from_call)
"""
RAISES = """
import contextlib
@contextlib.contextmanager
def raises(*kinds):
    try:
        yield
    except Exception:
        pass
pytest.raises = raises
"""
ATTACKS = {
    "honest": Attack(HONEST, outside=True),
    "prints the output and exits": Attack(
        OUTPUT + "import os\nos._exit(0)\n" + STUB, "crash", status=CRASH
    ),
    "prints the output and exits in the test": Attack(
        "import os\nimport pytest\nBadShape = ValueError\n"
        "def area(side):\n    print('area of', side)\n    os._exit(0)\n"
        + STUB, "crash", status=CRASH, outside=True,
    ),
    "exits with success": Attack("import sys\nsys.exit(0)\n" + STUB, "collection", status=COULD_NOT),
    "forges records on every descriptor": Attack(WRONG + FORGE, "crash", status=INVALID, outside=True),
    "edits the report in memory": Attack(WRONG + EDIT, "crash", status=INVALID),
    "skips the module": Attack(WRONG + "pytest.skip('no', allow_module_level=True)\n", "collection", status=COULD_NOT),
    "skips the test by a mark": Attack(WRONG + "pytestmark = pytest.mark.skip\n", "wrong_outcome"),
    "skips the test by a fixture": Attack(
        WRONG + "@pytest.fixture(autouse=True)\ndef no():\n    pytest.skip('no')\n", "wrong_outcome"
    ),
    "expects the test to fail": Attack(WRONG + "pytestmark = pytest.mark.xfail\n", "wrong_outcome"),
    "deselects an instance": Attack(
        HONEST + "class Drop:\n    def pytest_collection_modifyitems(self, items):\n        del items[1:]\n"
        "@pytest.fixture(autouse=True, scope='session')\ndef plug(request):\n"
        "    del request.session.items[1:2]\n", "crash", status=INVALID,
    ),
    "is no test any more": Attack(WRONG + "test_area.__test__ = False\n", "collection", status=COULD_NOT),
    "changes the test": Attack(WRONG.replace("assert area(side) == side * side", "assert True"), "assertion"),
    "binds another test to the name": Attack(
        WRONG + "@pytest.mark.parametrize('side', [2, 3])\ndef other(side):\n    print('area of', side)\n"
        "test_area = other\n",
        "crash", status=INVALID,
    ),
    "gives the test other code": Attack(
        WRONG + "def other(side):\n    print('area of', side)\ntest_area.__code__ = other.__code__\n",
        "crash", status=INVALID,
    ),
    "swallows failures in pytest": Attack(WRONG + SWALLOW, "crash", status=INVALID),
    "replaces pytest.raises": Attack(
        HONEST.replace("raise BadShape(side)", "return 4") + RAISES, "crash", status=INVALID
    ),
    "another pytest": Attack(
        HONEST.replace("raise BadShape(side)", "return 4") + RAISES.replace("pytest.raises = raises", "")
        + "class Fake:\n    mark = pytest.mark\n    raises = raises\npytest = Fake\n", "crash", status=INVALID,
    ),
    "imports the package": Attack("from pkg.shapes import BadShape, area\n" + STUB, "import_error", status=COULD_NOT),
    "imports it where it is tested": Attack(
        "import pytest\nBadShape = ValueError\n"
        "def area(side):\n    import pkg.shapes\n    return pkg.shapes.area(side)\n"
        + STUB, "import_error",
    ),
    "imports it by another way": Attack(
        "import importlib\nshapes = importlib.import_module('pkg.shapes')\narea = shapes.area\n" + STUB,
        "import_error", status=COULD_NOT,
    ),
    "takes the blocker off": Attack(
        "import sys\ndel sys.meta_path[0]\nimport importlib\n"
        "area = importlib.import_module('pkg.shapes').area\n" + STUB, "import_error", status=COULD_NOT,
    ),
    "fakes the package": Attack(
        HONEST.replace("import pytest\n", "import pytest\nimport sys\nimport types\n", 1)
        + "fake = types.ModuleType('pkg')\nsys.modules['pkg'] = fake\n", mocked=True,
    ),
    "executes the source from a string": Attack(
        f"import pytest\nSOURCE = {SHAPES!r}\nexec(SOURCE)\n" + STUB, mocked=True
    ),
    "executes it under its own name": Attack(
        f"import pytest\nexec(compile({SHAPES!r}, __file__, 'exec'))\n" + STUB, mocked=True
    ),
    "writes the source and imports it": Attack(
        f"import pytest\nopen('other.py', 'w').write({SHAPES!r})\nfrom other import BadShape, area\n" + STUB,
        mocked=True, outside=True,
    ),
    "imports it from a zip": Attack(
        "import base64, sys, tempfile\nimport pytest\n"
        f"path = tempfile.mktemp('.zip')\nopen(path, 'wb').write(base64.b64decode('{zipped()}'))\n"
        "sys.path.insert(0, path)\nfrom other import BadShape, area\n" + STUB, mocked=True, outside=True,
    ),
    "writes the package and imports it": Attack(
        f"import os\nimport pytest\nos.mkdir('pkg')\nopen('pkg/shapes.py', 'w').write({SHAPES!r})\n"
        "shapes = __import__('importlib').import_module('pkg.shapes')\narea = shapes.area\n" + STUB,
        "import_error", status=COULD_NOT, outside=True,
    ),
    "downloads it": Attack(
        "import socket\nSOURCE = socket.create_connection(('192.0.2.1', 80), timeout=0.2).recv(9999)\n"
        "exec(SOURCE)\n" + STUB, "collection", status=COULD_NOT, outside=True,
    ),
}  # fmt: skip


def attacks(outside: bool) -> pytest.MarkDecorator:
    """Return a mark that parametrizes a test with every attack of one kind."""
    chosen = {name: attack for name, attack in ATTACKS.items() if attack.outside is outside}
    return pytest.mark.parametrize("attack", chosen.values(), ids=chosen.keys())


@attacks(outside=True)
def test_a_gist_that_reaches_out_of_its_process_scores_what_it_is_worth(
    attack: Attack, judge: Prepared
) -> None:
    check_what_it_is_worth(attack, judge)


@on_one_backend
@attacks(outside=False)
def test_a_gist_scores_what_it_is_worth(attack: Attack, judge: Prepared) -> None:
    check_what_it_is_worth(attack, judge)


def check_what_it_is_worth(attack: Attack, judge: Prepared) -> None:
    judgement = judge(TESTED).judge(attack.gist, thorough=False)
    assert judgement.trial is not None
    told = judgement.trial.reason, judgement.score.error, judgement.score.fidelity, judgement.trial.output
    assert error_of(judgement) == attack.error, told
    assert judgement.score.execution_fidelity == attack.fidelity
    assert judgement.trial.run.status is attack.status, told
    assert bool(judgement.score.flags.mocked) is attack.mocked, judgement.score.flags


@on_one_backend
def test_a_gist_whose_functions_do_not_matter_is_vacuous(judge: Prepared) -> None:
    prepared = judge(TESTED)
    assert prepared.judge(HONEST).score.flags.vacuous is False
    hollow = """import pytest


class BadShape(ValueError):
    pass


def idle():
    value = 1
    return value


idle()
fail = lambda: (_ for _ in ()).throw(BadShape())
area = lambda side: fail() if side < 0 else (print("area of", side), side * side)[1]
"""
    judged = prepared.judge(hollow + STUB)
    assert judged.score.execution_fidelity == 1
    assert judged.score.flags.vacuous is True


OWN_TEST = NAMED.replace("import pytest\n\nimport pkg\nfrom pkg import shapes\n", "")
HARD_CODED = "def area(side):\n    print('area of', side)\n    return {2: 4, 3: 9}[side]\n"
GLUE = "import sys\npkg = shapes = sys.modules[__name__]\n"
FAKE = "class Fake:\n    area = staticmethod(area)\nFake.shapes = Fake\n"
FAKES = {
    "the gist itself": (GLUE + SHAPES, ""),
    "a namespace of the gist's names": (
        SHAPES + "import types\nshapes = types.SimpleNamespace(area=area)\n"
        "pkg = types.SimpleNamespace(shapes=shapes)\n",
        "",
    ),
    "code under the name of a file": (
        GLUE + f"exec(compile({HARD_CODED!r}, '/usr/lib/nowhere.py', 'exec'))\n",
        "executes code from nowhere: <module>, area",
    ),
    "marshalled code": (
        GLUE + f"import marshal, types\nfound = compile({HARD_CODED!r}, __file__, 'exec').co_consts[0]\n"
        "area = types.FunctionType(marshal.loads(marshal.dumps(found)), globals())\n",
        "executes code from nowhere: area",
    ),
    "an entry of sys.modules by another name": (
        GLUE + SHAPES + "m = sys.modules\nm['pkg'] = m[__name__]\ndef found():\n    from pkg import area\nfound()\n",
        "sys.modules['pkg'] is builtins.module",
    ),
    "a class within a block": (
        HARD_CODED + "if True:\n    class pkg:\n        class shapes:\n            pass\n"
        "pkg.shapes.area = area\nshapes = pkg.shapes\n",
        "pkg is class pkg",
    ),
    "a class made by type": (
        HARD_CODED + "shapes = type('shapes', (), {'area': staticmethod(area)})\n"
        "pkg = type('pkg', (), {'shapes': shapes})\n",
        "pkg is class pkg",
    ),
    "an object with attributes": (
        HARD_CODED + "import argparse\nshapes = argparse.Namespace(area=area)\n"
        "pkg = argparse.Namespace(shapes=shapes)\n",
        "pkg is object of argparse.Namespace",
    ),
    "a fake that comes with a fixture": (
        GLUE + SHAPES + FAKE + "@pytest.fixture(autouse=True)\ndef fake(monkeypatch):\n"
        "    monkeypatch.setattr(sys.modules[__name__], 'shapes', Fake)\n",
        "pkg.shapes is class Fake",
    ),
    "a test with other globals": (
        GLUE + SHAPES + FAKE + "import types\n@pytest.fixture(autouse=True)\ndef swap(request):\n"
        "    test = request.node.obj\n    names = {**test.__globals__, 'pkg': Fake, 'shapes': Fake}\n"
        "    request.node.obj = types.FunctionType(test.__code__, names)\n",
        "pkg is class Fake",
    ),
}  # fmt: skip


@on_one_backend
@pytest.mark.parametrize(("gist", "mocked"), sampled(FAKES.values(), 5), ids=sampled(FAKES, 5))
def test_what_stands_in_for_a_module_is_a_fake_unless_it_is_the_gist(
    gist: str, mocked: str, judge: Prepared
) -> None:
    prepared = judge("pytest tests/test_named.py::test_named")
    score = prepared.judge("import pytest\n" + gist + OWN_TEST, thorough=False).score
    assert (score.execution_fidelity, score.flags.mocked) == (1, mocked), score.error


@on_one_backend
def test_an_object_that_equals_anything_is_flagged(judge: Prepared) -> None:
    chameleon = "class Any(int):\n    def __eq__(self, other):\n        return True\n"
    gist = HONEST.replace("return side * side", "return Any()").replace(
        "def area", chameleon + "\n\ndef area"
    )
    score = judge(TESTED).judge(gist, thorough=False).score
    assert (score.execution_fidelity, score.flags.mocked, score.flags.equal_to_all) == (1, "", "Any.__eq__")
    honest = gist.replace("return True", "return int(self) == other").replace("Any()", "Any(side * side)")
    score = judge(TESTED).judge(honest, thorough=False).score
    assert (score.execution_fidelity, score.flags.equal_to_all) == (1, "")
    assert score.flags.invented_operand == "Any", "the codebase has no such class, however honest it is"


@on_one_backend
def test_what_an_untraced_run_executes_from_nowhere_is_flagged_too(judge: Prepared) -> None:
    gist = HONEST + f"import sys\nif not sys.gettrace():\n    exec({SHAPES!r})\n"
    assert judge(TESTED).judge(gist).score.flags.mocked


SPREAD = (
    HONEST
    + """

def idle(side):
    other = side + 1
    if other:
        return other
    return side
"""
)
FOLDED = (
    HONEST
    + """

def idle(side): other = side + 1; return other if other else side
def idle(side): other = side + 1; return side
"""
)


@on_one_backend
def test_lines_are_measured_one_statement_a_line_and_fidelity_on_the_text_as_it_stands(
    judge: Prepared,
) -> None:
    prepared = judge(TESTED)
    spread, folded = (prepared.judge(gist).score for gist in (SPREAD, FOLDED))
    assert spread.execution_fidelity == folded.execution_fidelity == 1
    assert spread.execution is not None
    assert folded.execution is not None
    assert (spread.execution.executed, spread.execution.executable) == (13, 17)
    assert (folded.execution.executed, folded.execution.executable) == (13, 16)
    assert folded.execution.paper.rate == 100
    looks_at_itself = HONEST + "assert '; ' 'a =' in open(__file__).read(); a = 1\n"
    assert "; a =" not in unfolded(looks_at_itself)
    for thorough in (True, False):
        assert prepared.judge(looks_at_itself, thorough=thorough).score.execution_fidelity == 1


@on_one_backend
def test_tricks_with_a_faithful_gist_gain_nothing_or_are_flagged(judge: Prepared) -> None:
    """The short version of `tests/studies/gist_scores.py`."""
    prepared = judge(TESTED)
    rates = {
        name: (
            score.execution_fidelity,
            score.execution and score.execution.rate,
            score.existence and score.existence.rate,
        )
        for name, gist in {
            "bare": SPREAD,
            "padded": padded(SPREAD, "import pytest"),
            "folded": folded(SPREAD),
        }.items()
        for score in [prepared.judge(gist, thorough=False).score]
    }
    fidelity, execution, existence = rates["bare"]
    assert rates["folded"] == (fidelity, execution, existence)
    assert rates["padded"][0] == fidelity == 1
    assert rates["padded"][1] == pytest.approx(100 * 14 / 18), "one line more: if True"
    assert rates["padded"][2] == pytest.approx(100 * 12 / 18), "one line more that does not exist"
    made = fakes(HONEST, STUB, ())
    assert set(made) == {"string", "packed", "marshalled", "written", "loader"}
    for kind in ("packed", "loader"):
        score = prepared.judge(made[kind], thorough=False).score
        assert score.execution_fidelity == 1
        assert score.flags.mocked


READINGS = {
    "open": "open({path!r}, 'rb').read()",
    "os": "__import__('os').open({path!r}, 0)",
    "shutil": "__import__('shutil').copy({path!r}, 'x')",
}


@pytest.mark.parametrize(
    ("reading", "what"), [("open", "tree"), ("open", "answer"), ("os", "answer"), ("shutil", "tree")]
)
def test_the_original_can_not_be_read_from_the_disk(reading: str, what: str, judge: Prepared) -> None:
    prepared = judge(TESTED)
    task = prepared.task
    path = task.tree_path if what == "tree" else task.folder / "answer" / "answer.json"
    gist = f"SOURCE = {READINGS[reading].format(path=str(path))}\n" + HONEST
    judgement = prepared.judge(gist, thorough=False)
    assert judgement.score.execution_fidelity == 0
    assert not judgement.score.self_contained


def test_the_codebase_is_nowhere_in_the_sandbox(judge: Prepared, backend: Backend) -> None:
    search = """import os
for top in {tops!r}:
    for place, _, names in os.walk(top):
        found = [os.path.join(place, name) for name in names if name == "shapes.py"]
        assert not found, found
"""
    prepared = judge(TESTED)
    codebase = str(prepared.task.folder.parents[1])
    tops = (codebase, "/sandbox", "/gistpoint", "/tmp", str(Path.cwd()))
    judgement = prepared.judge(search.format(tops=tops) + HONEST, thorough=False)
    found = backend.name == "plain"  # only plain shows the host's files
    assert judgement.score.execution_fidelity == int(not found), judgement.score.error


PROGRAM = "import sys\n\n" + SHAPES + "\n\nprint(area(int(sys.argv[1])))\n"


def test_a_program_is_run_on_each_backend(judge: Prepared) -> None:
    prepared = judge("python -m pkg 3")
    assert prepared.judge(PROGRAM, thorough=False).score.execution_fidelity == 1
    left = prepared.judge("import os\nprint('area of 3\\n9', flush=True)\nos._exit(0)\n", thorough=False)
    assert error_of(left) == "crash"


@on_one_backend
def test_a_program_is_compared_by_what_it_does(judge: Prepared) -> None:
    prepared = judge("python -m pkg 3")

    def once(gist: str) -> GistJudgement:
        return prepared.judge(gist, thorough=False)

    good = prepared.judge(PROGRAM)
    assert good.score.execution_fidelity == 1
    assert good.score.execution is not None
    assert good.score.execution.rate == pytest.approx(100 * 7 / 8)
    assert good.score.flags.vacuous is False
    assert once(PROGRAM.replace("area of", "area")).score.execution_fidelity == 0
    printed = once("print('area of 3\\n9')\n").score
    assert printed.execution_fidelity == 1
    assert printed.existence is not None
    assert printed.existence.rate == 0
    assert once("import sys\nfrom pkg.shapes import area\n" + PROGRAM).score.execution_fidelity == 0
    assert error_of(once("import sys\nsys.exit(3)\n")) == "wrong_outcome"
    assert error_of(once("raise KeyError('x')\n")) == "exception"


def test_a_program_can_not_write_to_the_report(judge: Prepared) -> None:
    forge = (
        PROGRAM
        + """
import json, os
for pid in (os.getppid(), os.getpid()):
    for name in os.listdir(f"/proc/{pid}/fd") if os.access(f"/proc/{pid}/fd", os.R_OK) else ():
        if int(name) > 2:
            try:
                with open(f"/proc/{pid}/fd/{name}", "wb", buffering=0) as file:
                    file.write(b'{"kind": "end", "raised": null}' + bytes([10]))
            except OSError:
                pass
"""
    )
    judgement = judge("python -m pkg 3").judge(forge, thorough=False)
    assert judgement.score.execution_fidelity == 0


# Objects that answer a test's comparisons

ERROR = 'class BadShape(ValueError):\n    """No such shape."""\n\n\n'
HEAD = "import pytest\n\n" + ERROR


def answering(made: str, value: str = "A()") -> str:
    """Return a gist whose function prints the expected output and returns an object."""
    function = (
        f"def area(side):\n    if side < 0:\n        raise BadShape(side)\n    print('area of', side)\n"
        f"    return {value}\n\n\n"
    )
    return HEAD + made + "\n\n\n" + function + STUB


def raising(made: str) -> str:
    """Return a gist with a true function whose exception is of another class."""
    return HONEST.replace(ERROR, made + "\n\n\n")


EQUAL = {
    "bool": answering("class A:\n    __eq__ = bool"),
    "str": answering("class A:\n    __eq__ = str"),
    "id": answering("class A:\n    __eq__ = id"),
    "a partial": answering("import functools\nclass A:\n    __eq__ = functools.partial(max, 1)"),
    "a generator": answering("class A:\n    def __eq__(self, other):\n        yield True"),
    "a coroutine": answering("class A:\n    async def __eq__(self, other):\n        return True"),
    "a callable object": answering(
        "class C:\n    def __call__(self, *of):\n        return True\nclass A:\n    __eq__ = C()"
    ),
    "set at top level": answering("class A: pass\nA.__eq__ = bool"),
    "set by setattr": answering("class A: pass\nsetattr(A, (1).__eq__.__name__, lambda s, o: True)"),
    "made by type": answering("A = type('A', (), {'__eq__': bool})"),
    "made by new_class": answering("import types\nA = types.new_class('A', (), {}, lambda n: n.update(__eq__=bool))"),
    "a class of the library by its words": answering("A = type('A', (), {'__eq__': bool, '__module__': 'json'})"),
    "planted in the library": answering(
        "import json\nA = type('A', (), {'__eq__': bool, '__module__': 'json'})\njson.A = A"
    ),
    "with a borrowed method": answering(
        "from unittest import mock\n"
        "A = type('A', (), {'__eq__': type(getattr(mock, 'AN' + 'Y')).__eq__, '__module__': 'json'})"
    ),
    "a named tuple": answering(
        "import collections\nclass A(collections.namedtuple('A', '')):\n    def __eq__(self, other):\n"
        "        return [] == []"
    ),
    "an enum": answering("import enum\nA = enum.Enum('A', [('__eq__', lambda s, o: True), ('x', 1)])", "A.x"),
    "a slot": answering(
        "class A:\n    __slots__ = ('__eq__',)\na = A()\nA.__eq__.__set__(a, lambda o: True)", "a"
    ),
    "a data class": answering(
        "import dataclasses\n@dataclasses.dataclass(eq=False)\nclass A:\n    n: int = 1\n    __eq__ = bool"
    ),
    "a metaclass": answering(
        "class M(type):\n    __eq__ = bool\n    __hash__ = type.__hash__\nclass A(metaclass=M): pass", "A"
    ),
    "a lying class": answering(
        "class A:\n    __class__ = int\n    __eq__ = bool\n    def __getattribute__(self, name): return int"
    ),
    "a number": answering("class A(int):\n    def __eq__(self, other): return True"),
    "a number with the true value": answering("class A(int): pass", "A(side * side)"),
    "a class within the function": answering("", "type('A', (), {'__eq__': bool})()"),
    "made while the test runs": answering(
        "def made():\n    class A:\n        __eq__ = bool\n    return A()", "made()"
    ),
    "with a name of the codebase": answering("class A:\n    __qualname__ = 'BadShape'\n    __eq__ = bool"),
    "a class of the codebase changed": answering("BadShape.__eq__ = bool", "BadShape()"),
    "a class of the codebase with a borrowed method": answering(
        "from unittest import mock\nBadShape.__eq__ = type(getattr(mock, 'AN' + 'Y')).__eq__", "BadShape()"
    ),
    "an object whose class is changed": answering(
        "class A(BadShape):\n    __eq__ = bool\na = BadShape()\na.__class__ = A", "a"
    ),
    "a class of the codebase with a method of another": answering(
        "class Anything:\n    def __eq__(self, other):\n        return True\n\n\nBadShape.__eq__ = Anything.__eq__",
        "BadShape()",
    ),
    "a class of the codebase with another of its bases": answering(
        "BadShape.__eq__ = object.__reduce_ex__", "BadShape()"
    ),
    "a class that bears the name of a mock": answering(
        "import unittest.mock as m\nA = type('MagicMock', (), {'__eq__': bool, '__module__': 'unittest.mock'})"
    ),
    "a proxy": answering("import weakref\nclass A:\n    __eq__ = bool\na = A()", "weakref.proxy(a)"),
    "a read-only view": answering(
        "import types\nclass A(dict):\n    __eq__ = bool", "types.MappingProxyType(A())"
    ),
    "with frozen garbage": answering("class A:\n    __eq__ = bool", "A()") + "\nimport gc\ngc.freeze()\n",
    "hidden by its metaclass": answering(
        "class M(type):\n    def mro(cls): return (cls, object)\n    def __getattribute__(cls, name): raise KeyError\n"
        "class A(metaclass=M):\n    __eq__ = bool"
    ),
    "anything": answering("import unittest.mock as m", "getattr(m, 'AN' + 'Y')"),
    "always equal": answering("import test.support as s", "getattr(s, 'ALWAYS' + '_EQ')"),
    "about": answering("", "getattr(pytest, 'app' + 'rox')(5, abs=9)"),
    "a mock": answering(
        "import unittest.mock as m\na = getattr(m, 'Magic' + 'Mock')()\na.__eq__.return_value = True", "a"
    ),
    "an exception of any class": raising(
        "class M(type):\n    def __subclasscheck__(cls, other): return True\n"
        "class BadShape(ValueError, metaclass=M): pass"
    ),
    "an exception with other bases": raising("class BadShape(Exception): pass"),
    "an exception made by type": raising("BadShape = type('BadShape', (ValueError,), {})"),
}  # fmt: skip

OTHER_NAMES = {
    "a metaclass": "M",
    "made while the test runs": "made.<locals>.A",
    "with a name of the codebase": "BadShape",
    "a class of the codebase changed": "BadShape",
    "a class of the codebase with a borrowed method": "BadShape",
    "anything": "_ANY",
    "always equal": "_ALWAYS_EQ",
    "about": "ApproxScalar",
    "a mock": "MagicMock",
    "a class of the codebase with a method of another": "BadShape",
    "a class of the codebase with another of its bases": "BadShape",
    "a class that bears the name of a mock": "MagicMock",
    "an exception of any class": "M",
    "an exception with other bases": "BadShape",
    "an exception made by type": "BadShape",
}
"""The reported name of the class, if it is not `A`."""


@on_one_backend
@pytest.mark.parametrize("name", sampled(EQUAL, 6))
def test_an_object_of_no_class_of_the_codebase_is_told(name: str, judge: Prepared) -> None:
    score = judge(TESTED).judge(EQUAL[name], thorough=False).score
    assert score.execution_fidelity == 1, score.error
    assert score.flags.invented_operand == OTHER_NAMES.get(name, "A")


LIBRARY_TEST = """import math
import unittest
from math import isclose

from pkg.shapes import area


class TestLibrary(unittest.TestCase):
    def test_library(self):
        self.assertEqual(area(3), 9)
        assert math.isclose(area(2), 4) and isclose(area(2), 4) and len([area(2)]) == 1
        assert abs(area(2) - 4) < 1
"""
FILES["tests/test_library.py"] = LIBRARY_TEST
LIBRARY_GIST = SHAPES + "\n" + LIBRARY_TEST.replace("from pkg.shapes import area\n", "")
YES = "(lambda *of, **more: True)"
REPLACED = {
    "a function of a module": (f"import math\nmath.isclose = {YES}\n", "math.isclose"),
    "by one in C": ("import math\nmath.isclose = max\n", "math.isclose"),
    "by an object": (
        "import math\nclass C:\n    def __call__(self, *of): return True\nmath.isclose = C()\n",
        "math.isclose",
    ),
    "by setattr": (f"import math\nsetattr(math, 'is' + 'close', {YES})\n", "math.isclose"),
    "while the test runs": (
        LIBRARY_GIST.replace(
            "    print(", f"    setattr(__import__('math'), 'is' + 'close', {YES})\n    print("
        ),
        "math.isclose",
    ),
    "a builtin's name": ("def len(of): return 1\n", "len"),
    "a builtin's name, by a builtin": ("len = bool\n", "len"),
}


@on_one_backend
@pytest.mark.parametrize("name", sampled(REPLACED, 2))
def test_a_function_of_a_library_that_the_gist_replaces_is_told(name: str, judge: Prepared) -> None:
    made, told = REPLACED[name]
    gist = made if "class TestLibrary" in made else made + LIBRARY_GIST
    score = judge(LIBRARY_COMMAND).judge(gist, thorough=False).score
    assert score.execution_fidelity == 1, score.error
    assert score.flags.invented_operand == told


@on_one_backend
@pytest.mark.parametrize(
    "made", [f"unittest.TestCase.assertEqual = {YES}", "__import__('builtins').abs = lambda n: 0 if n else n"]
)
def test_a_run_with_another_unittest_or_builtin_is_not_believed(made: str, judge: Prepared) -> None:
    judgement = judge(LIBRARY_COMMAND).judge(f"{LIBRARY_GIST}\n\n{made}\n", thorough=False)
    assert error_of(judgement) == "crash"


LIBRARY_COMMAND = "pytest tests/test_library.py::TestLibrary::test_library"
RICH = """import abc
import collections
import dataclasses
import enum
import functools
import typing

Pair = collections.namedtuple("_Pair", "x y")


class Named(typing.NamedTuple):
    a: int


@functools.total_ordering
class Size:
    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return isinstance(other, Size) and self.n == other.n

    def __lt__(self, other):
        return self.n < other.n

    __hash__ = None


@dataclasses.dataclass(order=True)
class Point:
    x: int
    y: int = 0


class Colour(enum.Enum):
    RED = 1


Flat = enum.Enum("Flat", "A B")


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...


class Square(Shape, int):
    def area(self):
        return self * self


class Wrong(LookupError):
    pass


class Anything:
    def __eq__(self, other):
        return True


def local(n):
    class Inner:
        def __bool__(self):
            return n > 0

    return Inner()
"""
RICH_TEST = """import math
from unittest import mock

import pytest

from pkg.rich import Anything, Colour, Flat, Named, Pair, Point, Shape, Size, Square, Wrong, local


def check(left, right):
    assert left == right
    return left


@pytest.fixture
def made():
    return Size(1)


def test_rich(made, monkeypatch):
    assert check(Pair(1, 2), Pair(1, 2)) == (1, 2)
    assert Named(1) == (1,) and made == Size(1) and made <= Size(2)
    assert Point(1) < Point(2) and Point(1) in [Point(1)]
    assert Colour(1) is Colour.RED and Flat.A != Flat.B
    assert isinstance(Square(2), Shape) and Square(2).area() == 4 and math.isclose(Square(2), 2)
    with pytest.raises(Wrong, match="no"):
        raise Wrong("no")
    assert Anything() == 3 and local(1) and not local(0)
    assert {"a": 1.0} == {"a": pytest.approx(1)} and mock.ANY == 3
    called = mock.MagicMock(return_value=2)
    assert called(*[1], **{"x": 2}) == 2 and called.called
    assert [f"{n:>{3}}" for n in range(2) if n] == ["  1"]
    assert (lambda n: n + 1)(1) == 2 and sum(n for n in [1, 2]) == 3
"""
RICH_FILES = {"pkg/__init__.py": "", "pkg/rich.py": RICH, "tests/test_rich.py": RICH_TEST}
FILES.update(RICH_FILES)
METHODS = """import enum
import functools
import numbers
import reprlib
import typing


class Money:
    def __init__(self, n):
        self.n = n

    @reprlib.recursive_repr()
    def __repr__(self):
        return f"Money({self.n})"

    def __add__(self, other):
        return Money(self.n + other)

    __radd__ = __add__
    __bool__ = lambda self: self.n > 0
    __hash__ = object.__hash__

    @functools.lru_cache
    def __len__(self):
        return self.n


def compared(kind):
    def same(self, other):
        return self.n == other.n

    kind.__eq__ = same
    return kind


@compared
class Length(Money):
    pass


class Kind(type):
    def __contains__(cls, item):
        return item in cls.items

    def __new__(mcs, name, bases, space):
        space["__lt__"] = lambda self, other: self.n < other.n
        return super().__new__(mcs, name, bases, space)


class Held(metaclass=Kind):
    items = (1, 2)

    class Part:
        def __eq__(self, other):
            return self is other

    def __init__(self, n):
        self.n = n


class Base:
    def __init_subclass__(cls):
        cls.__eq__ = Base.same

    def same(self, other):
        return type(self) is type(other)


class Derived(Base):
    __slots__ = ()


class Level(enum.IntFlag):
    LOW = 1
    HIGH = 2


class Word(str, enum.Enum):
    ONE = "one"


class Number(enum.IntEnum):
    ONE = 1


class Asked:
    def __getattr__(self, name):
        return name

    def __enter__(self):
        return self

    def __exit__(self, *of):
        return True


class Box(typing.Generic[typing.TypeVar("T")]):
    @property
    def value(self):
        return 3


Text = type("Text", (str,), {"__len__": lambda self: 1})


def made(n):
    class Made(Money):
        __eq__ = Money.__eq__

        def __int__(self):
            return n

    return Made(n)


class Failed(Exception):
    def __str__(self):
        return "failed"


@functools.total_ordering
class Version(numbers.Number):
    __hash__ = None

    def __init__(self, text):
        self.parts = text.split(".")

    if True:

        def __eq__(self, other):
            return self.parts == other.parts

    def __lt__(self, other):
        return self.parts < other.parts
"""
METHODS_TEST = """import dataclasses

import pytest

from pkg.methods import Asked, Box, Derived, Failed, Held, Length, Level, Money, Number, Text, Version, Word, made


@dataclasses.dataclass
class Case:
    n: int


class Helper:
    def __eq__(self, other):
        return other == 2


def test_methods():
    class Own:
        def __eq__(self, other):
            return True

    assert 1 + Money(2) != 3 and Money(2) and repr(Money(1)) == "Money(1)" and len(Money(3)) == 3
    assert Length(1) == Length(1) and 1 in Held and Held(1) < Held(2) and Held.Part() != Held.Part()
    assert Derived() == Derived() and Level.LOW | Level.HIGH == 3
    with Asked() as asked:
        assert asked.name == "name" and Box[int]().value == Box().value == 3
    assert Text("ab") == "ab" and len(Text("ab")) == 1 and int(made(4)) == 4 and made(1) != made(2)
    with pytest.raises(Failed) as caught:
        raise Failed
    assert str(caught.value) == "failed" and Version("1") < Version("2") and Version("1") == Version("1")
    assert Word.ONE == "one" and f"{Word.ONE!r} {Number.ONE}" == "<Word.ONE: 'one'> 1" and Number.ONE == 1
    assert Case(1) == Case(1) and Helper() == 2 and Own() == 3
"""
FILES.update({"pkg/methods.py": METHODS, "tests/test_methods.py": METHODS_TEST})
METHODS_GIST = METHODS + "\n" + re.sub("from pkg.methods .*\n", "", METHODS_TEST)
NAMES = "import Anything, Colour, Flat, Named, Pair, Point, Shape, Size, Square, Wrong, local\n"
RICH_GIST = RICH + "\n" + RICH_TEST.replace("from pkg.rich " + NAMES, "")
K = "import collections\nK = collections.namedtuple('K', 'two three')\n"
D = "import dataclasses\n@dataclasses.dataclass\nclass D:\n    x: int = 1\n"
E = "import enum, typing\nE = enum.Enum('E', 'A B')\nN = typing.NamedTuple('N', [('a', int)])\n"
HONEST_GISTS = {
    "plain": (TESTED, HONEST),
    "rich": ("pytest tests/test_rich.py::test_rich", RICH_GIST),
    "methods": ("pytest tests/test_methods.py::test_methods", METHODS_GIST),
    "library": (LIBRARY_COMMAND, LIBRARY_GIST),
}
EDITS: dict[str, Callable[[str], str]] = {
    "as it stands": lambda text: text,
    "without docstrings": lambda text: text.replace('    """No such shape."""\n', "    pass\n"),
    "with comments": lambda text: text.replace("\n", "  # line\n"),
    "with glue": lambda text: "import sys\n" + text + "\npkg = sys.modules[__name__]\n",
    "with a namespace": lambda text: text + "\nimport types\nspace = types.SimpleNamespace(x=pytest)\n",
    "in other layout": lambda text: text.replace("    ", "  "),
    "with blank lines": lambda text: text.replace("\n", "\n\n"),
    "with a named tuple more": lambda text: text + K,
    "with a data class more": lambda text: text + D,
    "with an enumeration more": lambda text: text + E,
    "with a class more": lambda text: text + "\nclass Unused:\n    def __eq__(self, other): return True\n",
    "the other end first": lambda text: text + "\nimport gc\ngc.collect()\n",
}


@on_one_backend
@pytest.mark.parametrize("edit", sampled(EDITS, 1))
@pytest.mark.parametrize("kind", ["plain", "rich", "methods", "library"])
def test_an_honest_gist_has_no_flag(kind: str, edit: str, judge: Prepared) -> None:
    command, text = HONEST_GISTS[kind]
    prepared, gist = judge(command), EDITS[edit](text)
    score = prepared.judge(gist, thorough=False).score
    assert score.execution_fidelity == 1, score.error
    flags = score.flags
    told = [flags.mocked, flags.equal_to_all, flags.invented_operand]
    assert not any(told), " | ".join(told)


# Gists broken and padded by hand

Line = tuple[str, str]
"""The name of a block, and the text of a statement's header in it."""


def statements(body: list[ast.stmt], block: str = "") -> Iterator[tuple[Line, ast.stmt | ast.expr]]:
    """Yield every statement's header with its block, and every decorator, without bare strings."""
    for one in body:
        if (
            isinstance(one, ast.Expr)
            and isinstance(one.value, ast.Constant)
            and isinstance(one.value.value, str)
        ):
            continue
        decorators: list[ast.expr] = getattr(one, "decorator_list", [])
        own = isinstance(one, (ast.FunctionDef, ast.ClassDef))
        within = (
            f"{block}.{one.name}".strip(".") if isinstance(one, (ast.FunctionDef, ast.ClassDef)) else block
        )
        for decorator in decorators:
            yield (within, f"@{ast.unparse(decorator)}"), decorator
        text = ast.unparse(one).split("\n")[len(decorators)]
        yield (within if own else block, text), one
        for part in ("body", "orelse", "finalbody"):
            yield from statements(getattr(one, part, []), within)


def spread(gist: str) -> ast.Module:
    """Return the gist's tree with one statement per line."""
    return ast.parse(ast.unparse(ast.parse(gist)))


def reckoned_existence(gist: str) -> float:
    """Return the percentage of the distinct lines that exist in the codebase."""
    there = {line for text in FILES.values() for line, _ in statements(ast.parse(text).body)}
    found = {line for line, _ in statements(spread(gist).body)}
    return 100 * len(found & there) / len(found)


def reckoned_execution(gist: str, sides: tuple[int, ...]) -> float:
    """Return the percentage of the distinct lines that run when the module is loaded and tested."""
    text = ast.unparse(ast.parse(gist))
    seen: set[int] = set()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != "<reckoned>":
            return None
        if event in ("line", "call"):
            seen.add(frame.f_lineno)
        return trace

    names: dict[str, Any] = {"__name__": "reckoned"}
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(text, "<reckoned>", "exec"), names)
            for side in sides:
                with contextlib.suppress(Exception, pytest.fail.Exception):
                    names["test_area"](side)
    finally:
        sys.settrace(before)
    counted: dict[Line, bool] = {}
    for line, node in statements(ast.parse(text).body):
        if not isinstance(node, ast.Pass):
            counted[line] = counted.get(line, False) or node.lineno in seen
    return 100 * sum(counted.values()) / len(counted)


def changed(old: str, new: str) -> str:
    assert old in HONEST
    return HONEST.replace(old, new)


BROKEN = {
    "another result": (changed("return side * side", "return 0"), "assertion"),
    "a result off by one": (changed("return side * side", "return side * side + 1"), "assertion"),
    "no result": (changed("    return side * side\n", ""), "assertion"),
    "right for one instance": (changed("return side * side", "return 4"), "assertion"),
    "no check": (changed("    if side < 0:\n        raise BadShape(side)\n", ""), "assertion"),
    "a check that never holds": (changed("side < 0", "side < -9"), "assertion"),
    "another exception": (changed("raise BadShape(side)", "raise KeyError(side)"), "exception"),
    "a name that is missing": (changed("print(", "prints("), "exception"),
    "no function": (
        "import pytest\n\n\nclass BadShape(ValueError):\n    pass\n" + STUB.replace("import pytest\n", ""),
        "exception",
    ),
    "a skipped test": (HONEST + "pytestmark = pytest.mark.skip\n", "wrong_outcome"),
}
PADDED: dict[str, str] = {
    "a line of its own again": HONEST + "import pytest\n" * 50,
    "the same on one line": HONEST + "; ".join(["import pytest"] * 50) + "\n",
    "a function twice": HONEST + "\n\n" + HONEST[HONEST.index("def area") : HONEST.index("@pytest")],
    "comments and blank lines": HONEST.replace("\n", "  # a line\n\n"),
    "statements folded": changed('print("area of", side)\n    return', 'print("area of", side); return'),
    "a line of the codebase": HONEST + "import sys\n",
    "an invented line": HONEST + "value = 1\n",
    "an invented line fifty times": HONEST + "value = 1\n" * 50,
    "an invented function that never runs": HONEST
    + "\n\ndef idle(side):\n    value = side\n    return value\n",
    "invented lines in a function": changed("    print(", "    side = side\n    value = side\n    print("),
}


@on_one_backend
@pytest.mark.parametrize("name", sampled(BROKEN, 2))
def test_a_broken_gist_has_fidelity_0_and_the_rates_of_its_lines(name: str, judge: Prepared) -> None:
    gist, error = BROKEN[name]
    judgement = judge(TESTED).judge(gist, thorough=False)
    assert (judgement.score.execution_fidelity, error_of(judgement)) == (0, error)
    check_rates(gist, judgement.score, () if error == "wrong_outcome" else (2, 3))


@on_one_backend
@pytest.mark.parametrize("name", sampled(PADDED, 2))
def test_a_padded_gist_is_faithful_and_has_the_rates_of_its_distinct_lines(
    name: str, judge: Prepared
) -> None:
    score = judge(TESTED).judge(PADDED[name], thorough=False).score
    assert score.execution_fidelity == 1
    check_rates(PADDED[name], score, (2, 3))


def check_rates(gist: str, score: GistScore, sides: tuple[int, ...]) -> None:
    assert score.existence
    assert score.execution
    assert score.existence.rate == pytest.approx(reckoned_existence(gist))
    assert score.execution.rate == pytest.approx(reckoned_execution(gist, sides))
