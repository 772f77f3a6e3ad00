"""Detects checks that fail in tests, to find tests that pass nevertheless (decision 135).

Runs in the target's interpreter, in the process that holds the tests. A failure is reported here before it is
raised, so nothing can hide it, such as the end of a `with` block or a handler in the library. A judge is a
module that checks, such as unittest. The functions that judges call when a check fails are replaced; judges
without such a function are watched where they raise. Both are found by name, and names that the installed
version does not have are left out.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

_CALLED_ON_FAILURE = (
    ("_pytest.assertion.rewrite", "", "_format_explanation"),
    ("_pytest.outcomes", "Failed", "__init__"),
    ("unittest.case", "TestCase", "_formatMessage"),
    ("unittest.case", "TestCase", "fail"),
)
"""The modules of judges, with the class, if any, and the name of a function that is called on a failure."""
_ALL = "assert_"
_RAISING = (
    *(
        (mock, kind, _ALL)
        for mock in ("unittest.mock", "mock.mock")
        for kind in ("NonCallableMock", "AsyncMockMixin")
    ),
    ("numpy.testing._private.utils", "", _ALL),
    ("pandas._testing", "", _ALL),
    ("pandas._testing.asserters", "", _ALL),
)
"""The modules of judges, with the class, if any, whose functions with this prefix raise on a failure.

None of their functions is called on every failure and on nothing else: numpy writes its message before it
compares, and `Mock.assert_called` calls none.
"""
_JUDGES = frozenset(
    ("_pytest", "pytest", "pytest_mock", "pluggy", "unittest", "mock", "numpy", "pandas", "contextlib")
)


class FailedChecks:
    """The failed checks of all imported judges."""

    def __init__(self, report: Callable[[str], None]) -> None:
        """`report` is called for each failed check, with its file's name and its line."""
        self.report = report
        self.waiting = [*_CALLED_ON_FAILURE, *_RAISING]
        """The functions of modules that have not been imported yet."""
        self.reported: set[str] = set()
        """The reports of the current test."""

    def begin(self) -> None:
        """Begin a test: watch the judges that were imported meanwhile, and forget earlier reports."""
        self.reported.clear()
        for place in [place for place in self.waiting if place[0] in sys.modules]:
            self.waiting.remove(place)
            module, kind, name = place
            owner: Any = sys.modules[module]
            if kind:
                owner = getattr(owner, kind, None)
            if name == _ALL:
                for check in _raising_checks(owner):
                    self.report_raising(check)
            elif hasattr(owner, name):
                setattr(owner, name, self.reporting(getattr(owner, name)))

    def reporting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that reports the location of the check and then calls `function`."""

        @functools.wraps(function)
        def reporting(*arguments: Any, **keywords: Any) -> Any:
            self.report_once(f"a check at {_place_of_check()}")
            return function(*arguments, **keywords)

        return reporting

    def report_raising(self, check: types.FunctionType) -> None:
        """Make a check report its location if it raises."""
        code, defaults = check.__code__, check.__defaults__
        before = types.FunctionType(code, check.__globals__, check.__name__, defaults)
        before.__kwdefaults__ = check.__kwdefaults__

        def reporting(*arguments: Any, **keywords: Any) -> Any:
            __tracebackhide__ = True
            try:
                return before(*arguments, **keywords)
            except Exception:
                self.report_once(f"a check at {_place_of_check()}")
                raise

        # The function object itself is changed, because tests have already imported it.
        check.__code__, check.__defaults__ = _entry.__code__, None
        check.__kwdefaults__ = {"_reporting": reporting}

    def report_once(self, what: str) -> None:
        """Report something that happens in a test, at most once per test."""
        if what not in self.reported:
            self.reported.add(what)
            self.report(what)


def rewrite_all() -> None:
    """Make pytest rewrite the modules whose docstrings ask it not to: only then it reports failures."""
    rewriter = getattr(sys.modules.get("_pytest.assertion.rewrite"), "AssertionRewriter", None)
    if hasattr(rewriter, "is_rewrite_disabled"):
        rewriter.is_rewrite_disabled = staticmethod(lambda docstring: False)  # type: ignore[union-attr]


def _entry(*arguments: Any, _reporting: Callable[..., Any], **keywords: Any) -> Any:
    """Call the reporting function in place of a check, whose code this function's code replaces."""
    __tracebackhide__ = True
    return _reporting(*arguments, **keywords)


def _raising_checks(owner: Any) -> Iterator[types.FunctionType]:
    """Yield the checks that a module or a class defines; none if the installed version does not have it."""
    members = {} if owner is None else dict(vars(owner))
    for name, member in members.items():
        is_check = name.startswith(_ALL) and callable(member)
        found = inspect.unwrap(member) if is_check else None
        # Code can only replace code with the same number of free variables, which here is none.
        if not isinstance(found, types.FunctionType) or found.__closure__ is not None:
            continue
        is_own = isinstance(owner, type) or found.__globals__ is vars(owner)
        is_replaced = found.__code__ is _entry.__code__
        if is_own and not is_replaced:
            yield found


def _place_of_check() -> str:
    """Return the file's name and the line of the innermost frame outside of all judges."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and _is_of_judge(frame):
        frame = frame.f_back
    if frame is None:
        return "?"
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def _is_of_judge(frame: types.FrameType) -> bool:
    name = str(frame.f_globals.get("__name__", ""))
    return frame.f_globals is globals() or name.partition(".")[0] in _JUDGES
