"""Makes the start faster: garbage is not collected, and methods of dataclasses are compiled when called.

Thousands of objects are created at the start and none is garbage. The standard library compiles up to seven
methods of each dataclass when its module is imported. Before the first paint, that takes a sixth of the time,
and most of these methods are never called by then (decision 164).
"""

from __future__ import annotations

import dataclasses
import gc
import sys
from collections.abc import Callable
from typing import Any

START_S = 1.0
"""Seconds after which a screen is certain to be visible."""

_SWITCH_S = 0.001
_OWNERS = frozenset({"gistpoint", "textual", "rich"})
"""The packages whose dataclasses are affected: no code inspects the signatures of these classes' methods."""

Compiler = Callable[..., Callable[..., Any]]


def hold_collection() -> None:
    """Call `before_a_screen` if there is a terminal, since a screen is then about to open."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        before_a_screen()


def before_a_screen() -> None:
    """Stop collecting garbage until `resume_collecting`, and let threads take turns five times as often."""
    gc.disable()
    sys.setswitchinterval(_SWITCH_S)


def resume_collecting() -> None:
    """Collect garbage again, but without the objects made so far, whose scan would delay the screen.

    See decision 37.
    """
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def compile_methods_when_called() -> None:
    """Make `dataclass` compile each method only when the method is first called.

    Does nothing if the standard library has no function for each method, as from Python 3.13 on, where one
    call compiles all methods of a class.
    """
    compiler = getattr(dataclasses, "_create_fn", None)
    if compiler is not None and not isinstance(compiler, _WhenCalled):
        dataclasses._create_fn = _WhenCalled(compiler)  # type: ignore[attr-defined]


class _WhenCalled:
    """A replacement for the standard library's function that compiles a method."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler

    def __call__(self, name: str, *rest: Any, **names: Any) -> Callable[..., Any]:
        """Return a method that compiles the real one when it is called, and is then replaced by it."""
        module = (names.get("globals") or {}).get("__name__", "")
        if module.partition(".")[0] not in _OWNERS:
            return self._compiler(name, *rest, **names)
        compiled: Callable[..., Any] | None = None

        def method(self_: Any, /, *given: Any, **named: Any) -> Any:
            nonlocal compiled
            if compiled is None:
                compiled = self._compiler(name, *rest, **names)
                compiled.__qualname__ = method.__qualname__
                for owner in type(self_).__mro__:
                    if owner.__dict__.get(name) is method:
                        setattr(owner, name, compiled)
            return compiled(self_, *given, **named)

        method.__name__ = name
        return method
