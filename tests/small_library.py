"""A library of a few functions with a suite that takes a moment."""

from __future__ import annotations

from pathlib import Path

SHOP = '''\
"""Orders, prices and bills."""


def price(amount, rate):
    total = amount * rate
    if total > 100:
        total = total - total // 10
    return total


def stock(orders):
    left = {}
    for name, count in orders:
        left[name] = left.get(name, 0) + count
    return left


def bill(orders, rate):
    lines = []
    for name, count in sorted(stock(orders).items()):
        if count >= 1:
            lines.append((name, price(count, rate)))
    return lines


def due(orders, rate, paid):
    owed = 0
    for _, amount in bill(orders, rate):
        owed += amount
    if paid > owed:
        return 0
    return owed - paid


def heaviest(orders):
    found = None
    most = 0
    for name, count in stock(orders).items():
        if count > most:
            found, most = name, count
    return found
'''
TESTS = """\
import pytest

from shop import bill, due, heaviest, price, stock

ORDERS = [("nail", 3), ("screw", 12), ("nail", 4), ("bolt", 0)]


@pytest.mark.parametrize(("amount", "expected"), [(0, 0), (1, 10), (10, 100), (11, 99), (20, 180), (50, 450)])
def test_price(amount, expected):
    assert price(amount, 10) == expected


@pytest.mark.parametrize("n", range(6))
def test_stock(n):
    assert stock(ORDERS[:2] * n) == ({"nail": 3 * n, "screw": 12 * n} if n else {})


@pytest.mark.parametrize("rate", range(1, 7))
def test_bill(rate):
    assert bill(ORDERS, rate) == [("nail", 7 * rate), ("screw", 12 * rate)]


@pytest.mark.parametrize("paid", range(0, 25, 4))
def test_due(paid):
    assert due(ORDERS, 1, paid) == max(19 - paid, 0)


@pytest.mark.parametrize("n", range(1, 7))
def test_heaviest(n):
    assert heaviest([*ORDERS, ("bolt", n)]) == "screw"
    assert heaviest([*ORDERS, ("bolt", 20 + n)]) == "bolt"
"""


def write_small_library(folder: Path, *, modules: int = 1) -> Path:
    """Write the library, with `modules` copies of its module, to a new folder, and return the folder."""
    (folder / "tests").mkdir(parents=True)
    (folder / "shop.py").write_text(SHOP)
    (folder / "tests" / "conftest.py").write_text("")
    (folder / "tests" / "test_shop.py").write_text(TESTS)
    for number in range(2, modules + 1):
        name = f"shop_{number}"
        (folder / f"{name}.py").write_text(SHOP)
        (folder / "tests" / f"test_{name}.py").write_text(TESTS.replace("from shop ", f"from {name} "))
    return folder
