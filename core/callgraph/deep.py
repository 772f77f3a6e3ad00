"""Work on deeply nested syntax trees, in a thread that has the stack for it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from gistpoint.core.collector import uncollected

_STACK_BYTES = 512 * 1024 * 1024
_DEEPEST = 30_000
_ONE_AT_A_TIME = threading.Lock()  # the recursion limit is the interpreter's, not a thread's

Result = TypeVar("Result")


def run_deep(work: Callable[[], Result]) -> Result:
    """Return `work()`, run in a thread with a large stack and a high recursion limit; what it raises is raised here.

    Trees of real code (sympy) nest deeper than Python's default limit. The garbage collector rests meanwhile: it would
    look, again and again, through a growing graph of objects that all stay alive. `work` must not call this again.
    """
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    with _ONE_AT_A_TIME, _deep(), uncollected():
        thread = threading.Thread(target=run, name="syntax trees")
        thread.start()
        thread.join()
    if errors:
        raise errors[0]
    return results[0]


@contextmanager
def _deep() -> Iterator[None]:
    limit, size = sys.getrecursionlimit(), threading.stack_size()
    sys.setrecursionlimit(max(limit, _DEEPEST))
    threading.stack_size(_STACK_BYTES)
    try:
        yield
    finally:
        threading.stack_size(size)
        sys.setrecursionlimit(limit)
