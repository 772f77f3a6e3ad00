"""A plugin for plain pytest that records the frames of exceptions and the functions that each test enters."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import defaultdict
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

ROOT = str(Path.cwd()) + os.sep
TESTS: dict[str, dict[str, Any]] = {}
ENTERED: dict[str, set[str]] = defaultdict(set)
PLACES: dict[CodeType, str] = {}


class Current:
    id = ""


def place_of(code: CodeType) -> str:
    """Return the path and first line of a function in the tree; "" for other code."""
    path = path_of(code)
    PLACES[code] = f"{path}:{code.co_firstlineno}" if path else ""
    return PLACES[code]


def path_of(code: CodeType) -> str:
    """Return the path in the tree of the code's file; "" if it has none there."""
    path = "" if code.co_filename.startswith("<") else os.path.realpath(code.co_filename)
    return path.removeprefix(ROOT) if path.startswith(ROOT) else ""


def watch(frame: FrameType, event: str, argument: object) -> None:
    if event == "call":
        code = frame.f_code
        place = PLACES.get(code)
        if place is None:
            place = place_of(code)
        if place:
            ENTERED[place].add(Current.id)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Any:
    Current.id = item.nodeid
    TESTS[item.nodeid] = {"passed": True, "raised": "", "frames": []}
    threading.setprofile(watch)
    sys.setprofile(watch)
    yield
    sys.setprofile(None)
    threading.setprofile(None)  # type: ignore[arg-type]  # None ends it


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    outcome = yield
    report = outcome.get_result()
    test = TESTS[item.nodeid]
    if (
        (report.when == "call" and report.outcome != "passed")
        or report.outcome == "failed"
        or (report.when == "setup" and report.outcome == "skipped")
    ):
        test["passed"] = False
    if report.outcome == "failed" and call.excinfo is not None and not test["raised"]:
        test["raised"] = (
            "AssertionError" if call.excinfo.errisinstance(AssertionError) else call.excinfo.typename
        )
        test["frames"] = list(frames_of(call.excinfo.value))


def frames_of(error: BaseException | None) -> Any:
    """Yield the path and line of each frame in the tree of an exception, its causes and its contexts."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        traceback = error.__traceback__
        while traceback is not None:
            path = path_of(traceback.tb_frame.f_code)
            if path:
                yield [path, traceback.tb_lineno]
            traceback = traceback.tb_next
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def pytest_unconfigure() -> None:
    entered = {place: sorted(ids) for place, ids in ENTERED.items()}
    Path(os.environ["TAKEN_DOWN"]).write_text(json.dumps({"tests": TESTS, "entered": entered}), "utf-8")
