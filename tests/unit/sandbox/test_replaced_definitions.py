"""The watch over a run reports each definition of pytest, unittest and builtins that is replaced."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[3] / "src"
PROGRAM = """
import builtins, json, sys, unittest
import _pytest.config, _pytest.legacypath, pytest
from unittest import TestCase
from gistpoint.sandbox.payload.run_watch import started

watch = started({"watched": [["shop.py", 1, 9]], "tests": ["tests/test_shop.py"]}, "/nowhere")
events = []
watching = False
sys.addaudithook(lambda event, given: watching and events.append(event))
saved = dict(vars(builtins))
for line in CODE:
    exec(compile(line, FILE, "exec"))
    watch.compare()
walked = []
watch._is_submitted = walked.append
watch._record_changes = lambda: walked.append("again")
watching = True
watch.compare()
watching = False
vars(builtins).update(saved)
print(json.dumps({"found": sorted(watch.found), "walked": len(walked), "events": len(events)}))
"""
REPLACED = "_pytest.config.Config._getini_unknown_type"
BY_PATH = "_pytest.legacypath.Config__getini_unknown_type"
BY_PYTEST = f"{REPLACED} = {BY_PATH}"


def watched(*lines: str, file: str = "<tests>") -> dict[str, object]:
    """Run lines of a file under a watch, with a comparison after each.

    Return the findings, and what the last comparison did.
    """
    code = PROGRAM.replace("CODE", repr(lines)).replace("FILE", repr(file))
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
        (("del TestCase.assertTrue",), ["unittest.case.TestCase.assertTrue"]),
    ],
)  # fmt: skip
def test_what_is_replaced_is_reported(lines: tuple[str, ...], replaced: list[str]) -> None:
    assert watched(*lines)["found"] == [f"{name} is replaced as it runs" for name in replaced]


@pytest.mark.parametrize("lines", [(), (BY_PYTEST,), ("builtins.all = builtins.any",)])
def test_a_comparison_without_a_new_change_searches_no_frames_and_compares_once(
    lines: tuple[str, ...],
) -> None:
    """Some thousand functions are compared after each test, and each of them raises an event."""
    found = watched(*lines)
    assert found["walked"] == 0
    assert found["events"]


@pytest.mark.parametrize("name", ["len", "isinstance", "type", "str", "bytes", "vars"])
def test_builtins_that_are_replaced_for_a_moment_hide_nothing(name: str) -> None:
    blinds = f"kept = builtins.{name}; builtins.{name} = lambda *_: 10**9"
    restores = f"builtins.{name} = kept"
    found = watched(f"{blinds}\ntry: sys._getframe()\nfinally: {restores}", file="/nowhere/shop.py")["found"]
    assert isinstance(found, list)
    assert "the run calls sys._getframe" in found
