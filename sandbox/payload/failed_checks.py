"""Notices checks of tests that fail, so that a test that passes nevertheless is found (decision 135).

Runs in the target's interpreter, in the process that holds the tests. Whatever hides a failure, such as the
end of a `with` block or a handler in the library, it was announced here before it was raised. Only functions
that judges call when a check fails are replaced; they are found by their names, and a name that the installed
version does not have is left out.
"""

from __future__ import annotations

import functools
import os
import sys
import types
from collections.abc import Callable
from typing import Any

_CALLED_ON_FAILURE = (
    ("_pytest.assertion.rewrite", "", "_format_explanation"),
    ("_pytest.outcomes", "Failed", "__init__"),
    ("unittest.case", "TestCase", "_formatMessage"),
    ("unittest.case", "TestCase", "fail"),
    ("unittest.mock", "NonCallableMock", "_format_mock_failure_message"),
    ("unittest.mock", "NonCallableMock", "_calls_repr"),
    ("numpy.testing._private.utils", "", "build_err_msg"),
    ("pandas._testing.asserters", "", "raise_assert_detail"),
)
"""The modules of judges, with the class, if any, and the name of a function that is called on a failure."""
_JUDGES = frozenset(("_pytest", "pytest", "pluggy", "unittest", "numpy", "pandas", "contextlib"))


class FailedChecks:
    """The checks of tests that fail, of all judges that were imported."""

    def __init__(self, report: Callable[[str], None]) -> None:
        """`report` is called with each check that fails, by the name of its file and its line."""
        self.report = report
        self.waiting = list(_CALLED_ON_FAILURE)
        """The functions of modules that have not been imported so far."""
        self.reported: set[str] = set()
        """What was reported in the current test."""

    def begin(self) -> None:
        """Begin a test: watch the judges that were imported meanwhile, and forget what was reported."""
        self.reported.clear()
        for place in [place for place in self.waiting if place[0] in sys.modules]:
            self.waiting.remove(place)
            module, kind, name = place
            owner: Any = sys.modules[module]
            if kind:
                owner = getattr(owner, kind, None)
            if hasattr(owner, name):
                setattr(owner, name, self.reporting(getattr(owner, name)))

    def reporting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that reports the place of the check before it does what `function` does."""

        @functools.wraps(function)
        def reporting(*arguments: Any, **keywords: Any) -> Any:
            self.report_once(f"a check at {_place_of_check()}")
            return function(*arguments, **keywords)

        return reporting

    def report_once(self, what: str) -> None:
        """Report something that happens in a test, once in this test."""
        if what not in self.reported:
            self.reported.add(what)
            self.report(what)


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
