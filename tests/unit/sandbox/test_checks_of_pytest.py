"""The check that a gist left pytest's functions and classes as they were."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gistpoint.sandbox.payload.test_observer import PytestParts


class Holder:
    """A substitute for a module or class of pytest."""

    def method(self) -> int:
        return 2

    class Inner:
        pass


def other() -> int:
    return 3


def _replace_function() -> None:
    Holder.method = other  # type: ignore[assignment, method-assign]


def _replace_code() -> None:
    Holder.method.__code__ = other.__code__


def _replace_class() -> None:
    Holder.Inner = type("Inner", (), {})  # type: ignore[assignment, misc]


def _delete() -> None:
    del Holder.method


@pytest.fixture
def parts() -> PytestParts:
    return PytestParts(Holder, {"method": Holder.__dict__["method"], "Inner": Holder.Inner})


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (_replace_function, "Holder.method"),
        (_replace_code, "Holder.method"),
        (_replace_class, "Holder.Inner"),
        (_delete, "Holder.method"),
    ],
)
def test_a_replaced_definition_is_detected_and_named(
    parts: PytestParts, change: Callable[[], None], name: str
) -> None:
    method, code, inner = Holder.method, Holder.method.__code__, Holder.Inner
    assert parts.are_unchanged()
    try:
        change()
        assert not parts.are_unchanged()
        assert parts.replaced() == name
    finally:
        method.__code__ = code
        Holder.method, Holder.Inner = method, inner  # type: ignore[method-assign, misc]
    assert parts.are_unchanged()
