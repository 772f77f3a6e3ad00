"""Ruff checks several definitions in one call and returns the problems of each."""

from __future__ import annotations

from collections import Counter

import pytest

from gistpoint.core.errors import InfrastructureError
from gistpoint.sandbox.pools import RuffLinter

FINE = "def f(x):\n    return x\n"
DEAD_ELSE = "def f(x):\n    for n in x:\n        if n:\n            continue\n    else:\n        return 1\n    return 2"
UNUSED = "def f(x):  # noqa\n    y = x\n    return x\n"


def test_each_text_has_its_own_findings() -> None:
    found = RuffLinter().findings([FINE, DEAD_ELSE, FINE, UNUSED])
    assert found[0] == found[2] == Counter()
    assert "PLW0120" in found[1]
    assert found[3] == Counter({"F841": 1})
    assert RuffLinter().findings([]) == []


def test_a_text_with_an_error_does_not_silence_the_others() -> None:
    found = RuffLinter().findings(["def f():\n    nonlocal y\n    y = 1\n", UNUSED])
    assert found[1] == Counter({"F841": 1})


def test_a_linter_that_does_not_run_is_an_error_with_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ruff.find_ruff_bin", lambda: "/nowhere/ruff")
    with pytest.raises(InfrastructureError) as raised:
        RuffLinter().findings([FINE])
    assert raised.value.hint
