"""The watch over a run reports what submitted lines do, and each definition of the judges that is replaced."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[3] / "src"
PROGRAM = """
import builtins, importlib, json, os, sys, unittest
from collections import Counter, UserList, namedtuple
import _pytest.config, _pytest.legacypath, pytest
from unittest import TestCase
from gistpoint.sandbox.payload.results_plugin import watch_of

def read_text(path):
    with open(path) as file:
        return file.read()

def helper():
    pass

watch = watch_of({"watched": [["shop.py", 1, 99]], "tests": ["tests/test_shop.py"]}, ROOT)
os.chdir(ROOT)
sys.path.append(ROOT + "/tests")
events = []
watching = False
sys.addaudithook(lambda event, given: watching and events.append(event))
saved = dict(vars(builtins))
each = []
for line in CODE:
    exec(compile(line, FILE, "exec"))
    watch.compare()
    each.append([*watch.found])
    watch.found.clear()
walked = []
watch._is_submitted = walked.append
watch._record_changes = lambda: walked.append("again")
watching = True
watch.compare()
watching = False
vars(builtins).update(saved)
found = sorted({mark for marks in each for mark in marks})
print(json.dumps({"each": each, "found": found, "walked": len(walked), "events": len(events)}))
"""
REPLACED = "_pytest.config.Config._getini_unknown_type"
BY_PATH = "_pytest.legacypath.Config__getini_unknown_type"
BY_PYTEST = f"{REPLACED} = {BY_PATH}"


EQUAL_TO_ALL = """
class E:
    __class__ = property(lambda self: type(helper))
    __code__ = property(lambda self: kept)
    def __eq__(self, other): return True
    __hash__ = object.__hash__
    def __call__(self, *_, **__): return 0
kept = TestCase.fail.__code__
"""
IN_THE_HOOK = """
class Path(str):
    def startswith(self, *_):
        read_text("tests/test_shop.py")
        return True
    __str__ = __fspath__ = startswith
read_text(Path("tests/test_shop.py"))
"""
SEEN = {
    "in a counter": ("Counter(map(read_text, ['tests/test_shop.py']))", "opens the tests"),
    "in a list": ("UserList(map(read_text, ['tests/test_shop.py']))", "opens the tests"),
    "code in a counter": ("Counter(map(exec, ['1']))", "makes code"),
    "by the importer": ("importlib._bootstrap._call_with_frames_removed(exec, '1')", "makes code"),
    "imported by name": ("importlib.import_module('test_shop')", "opens the tests"),
    "a path with code": (IN_THE_HOOK, "opens the tests"),
    "a path of bytes": ("read_text(b'tests/../tests/test_shop.py')", "opens the tests"),
    "with other functions of paths": (
        "kept = os.path.basename; os.path.basename = lambda _: 'x'; read_text('tests/test_shop.py');"
        "os.path.basename = kept",
        "opens the tests",
    ),
}
UNSEEN = {
    "a named tuple": "namedtuple('P', 'x y')",
    "a data class": "import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int = 1\nP()",
    "a module": "import colorsys, wave",
    "another file": "read_text('shop.py')",
}


def watched(*lines: str, file: str = "<tests>", root: str = "/usr") -> dict[str, object]:
    """Run lines of a file under a watch, with a comparison after each.

    Return the findings, and what the last comparison did.
    """
    code = PROGRAM.replace("CODE", repr(lines)).replace("FILE", repr(file)).replace("ROOT", repr(root))
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, object] = json.loads(ran.stdout)
    return found


@pytest.mark.parametrize(
    ("lines", "replaced"),
    [
        ((), []),
        ((BY_PYTEST,), []),
        ((f"{REPLACED} = print",), [REPLACED]),
        ((BY_PYTEST, f"{BY_PATH}.__code__ = (lambda: 1).__code__"), [REPLACED, BY_PATH]),
        (("builtins.all = builtins.any",), ["builtins.all"]),
        (("builtins.len = lambda _: 10**9",), ["builtins.len"]),
        (("builtins.isinstance = lambda *_: False",), ["builtins.isinstance"]),
        (("builtins.vars = lambda _: {}",), ["builtins.vars"]),
        (("builtins.map = lambda *_: []", "builtins.zip = builtins.map"), ["builtins.map", "builtins.zip"]),
        (("builtins.all = builtins.any", "builtins.max = builtins.min"), ["builtins.all", "builtins.max"]),
        (("kept = TestCase.fail; TestCase.fail = print", "TestCase.fail = kept"), ["unittest.case.TestCase.fail"]),
        ((f"{EQUAL_TO_ALL}\nbuiltins.sorted = E()",), ["builtins.sorted"]),
        ((f"{EQUAL_TO_ALL}\nTestCase.fail = E()",), ["unittest.case.TestCase.fail"]),
        (("del TestCase.assertTrue",), ["unittest.case.TestCase.assertTrue"]),
    ],
)  # fmt: skip
def test_what_is_replaced_is_reported(lines: tuple[str, ...], replaced: list[str]) -> None:
    assert watched(*lines)["found"] == [f"{name} is replaced as it runs" for name in replaced]


@pytest.mark.parametrize("lines", [(), (BY_PYTEST,), ("builtins.all = builtins.any",)])
def test_a_comparison_without_a_new_change_searches_no_frames_and_compares_once(
    lines: tuple[str, ...],
) -> None:
    """Several thousand functions are compared after each test, and each comparison raises an event."""
    found = watched(*lines)
    assert found["walked"] == 0
    assert found["events"]


@pytest.mark.parametrize("name", ["len", "isinstance", "type", "str", "bytes", "vars"])
def test_builtins_that_are_replaced_for_a_moment_hide_nothing(name: str) -> None:
    blinds = f"kept = builtins.{name}; builtins.{name} = lambda *_: 10**9"
    restores = f"builtins.{name} = kept"
    found = watched(f"{blinds}\ntry: sys._getframe()\nfinally: {restores}", file="/usr/shop.py")["found"]
    assert isinstance(found, list)
    assert "the run calls sys._getframe" in found


@pytest.fixture
def root(tmp_path: Path) -> str:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_shop.py").write_text("EXPECTED = 1\n")
    (tmp_path / "shop.py").write_text("")
    return str(tmp_path)


@pytest.mark.parametrize(
    "file", ["{root}/shop.py", "{root}/tests/../shop.py", "{root}/linked/shop.py", "shop.py"]
)
def test_what_submitted_lines_do_is_seen_whoever_calls_them(root: str, file: str) -> None:
    Path(root, "linked").symlink_to(root)
    each = watched(*(code for code, _ in SEEN.values()), file=file.format(root=root), root=root)["each"]
    assert isinstance(each, list)
    assert len(each) == len(SEEN)
    for name, found in zip(SEEN, each, strict=True):
        assert any(SEEN[name][1] in mark for mark in found), (name, found)


def test_what_honest_lines_do_is_no_mark(root: str) -> None:
    each = watched(*UNSEEN.values(), file=f"{root}/shop.py", root=root)["each"]
    assert each == [[] for _ in UNSEEN]
