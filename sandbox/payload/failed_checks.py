"""Notices checks of tests that fail, so that a test that passes nevertheless is found (decision 135).

Runs in the target's interpreter, in the process that holds the tests. Whatever hides a failure, such as the
end of a `with` block or a handler in the library, it was announced here before it was raised.
"""

from __future__ import annotations

import functools
import os
import sys
import types
import unittest
from collections.abc import Callable
from typing import Any

import _pytest.assertion.rewrite
import _pytest.outcomes

_JUDGES = frozenset(("_pytest", "pytest", "pluggy", "unittest"))


def watch(report: Callable[[str], None]) -> None:
    """Call `report` with the place, as `file:line`, of each check of a test that fails from now on.

    These are assertions that pytest rewrites, `pytest.fail`, and the methods of `unittest.TestCase`. A name
    that this version of pytest does not have is left out.
    """
    places: list[tuple[Any, str]] = [
        (_pytest.assertion.rewrite, "_format_explanation"),
        (_pytest.outcomes.Failed, "__init__"),
        (unittest.TestCase, "_formatMessage"),
        (unittest.TestCase, "fail"),
    ]
    for owner, name in places:
        if hasattr(owner, name):
            setattr(owner, name, _reporting(getattr(owner, name), report))


def _reporting(function: Callable[..., Any], report: Callable[[str], None]) -> Callable[..., Any]:
    @functools.wraps(function)
    def reporting(*arguments: Any, **keywords: Any) -> Any:
        report(_place_of_check())
        return function(*arguments, **keywords)

    return reporting


def _place_of_check() -> str:
    """Return the file's name and the line of the innermost frame that belongs to no judge."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and _is_of_judge(frame):
        frame = frame.f_back
    if frame is None:
        return "?"
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def _is_of_judge(frame: types.FrameType) -> bool:
    name = str(frame.f_globals.get("__name__", ""))
    return frame.f_code.co_filename == __file__ or name.partition(".")[0] in _JUDGES
