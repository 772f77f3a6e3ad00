"""Gists that try to score without doing the work; those that reach out of their process run on each backend.

The table is in docs/guide/gists.md.
"""

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
from working_backends import all_on_one_backend, on_one_backend

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
JUMP = """
import bdb
class Jump(bdb.Bdb):
    moved = False
    def user_line(self, frame):
        if frame.f_code.co_name == test_area.__name__ and not self.moved:
            self.moved = True
            print('area of', *frame.f_locals.values())
            frame.f_lineno = frame.f_lineno + 1
@pytest.fixture(autouse=True)
def jump():
    found = Jump()
    found.set_trace()
    yield
    found.set_quit()
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
    "gives the test other handlers": Attack(
        HONEST + "code = test_area.__code__\n"
        "test_area.__code__ = code.replace(co_exceptiontable=code.co_exceptiontable * 2)\n", mocked=True,
    ),
    "jumps over an assertion with a debugger": Attack(
        HONEST.replace("return side * side", "return side") + JUMP, mocked=True
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


OUTSIDE = {name: attack for name, attack in ATTACKS.items() if attack.outside}
INSIDE = {name: attack for name, attack in ATTACKS.items() if not attack.outside}


@all_on_one_backend("name", OUTSIDE, 2)
def test_a_gist_that_reaches_out_of_its_process_scores_what_it_is_worth(name: str, judge: Prepared) -> None:
    check_what_it_is_worth(OUTSIDE[name], judge)


@on_one_backend
@pytest.mark.parametrize("name", INSIDE)
def test_a_gist_scores_what_it_is_worth(name: str, judge: Prepared) -> None:
    check_what_it_is_worth(INSIDE[name], judge)


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
@pytest.mark.parametrize(("gist", "mocked"), sampled(FAKES.values(), 3), ids=sampled(FAKES, 3))
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
