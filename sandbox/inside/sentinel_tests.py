"""Tests whose outcome is known: three must fail, one must pass. A run that says otherwise was tampered with."""

import pytest


def test_raises_assertion() -> None:
    raise AssertionError("sentinel")


def test_asserts() -> None:
    pair = ("sentinel", "sentinel ")
    assert pair[0] == pair[1]


def test_raises_value() -> None:
    raise ValueError("sentinel")


def test_passes() -> None:
    with pytest.raises(KeyError):
        dict[str, str]()["sentinel"]
