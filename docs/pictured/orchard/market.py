"""What a harvest brings."""

from __future__ import annotations

from collections.abc import Iterable

from orchard.crates import Crate, pack


def price_of(crate: Crate, per_kilo: int) -> int:
    """Return the price of a crate in øre; a full one is a tenth cheaper."""
    price = crate.load * per_kilo // 1000
    return price * 9 // 10 if crate.load == crate.limit else price


def revenue(weights: Iterable[int], limit: int, per_kilo: int) -> int:
    """Return what all crates bring together, in øre."""
    return sum(price_of(crate, per_kilo) for crate in pack(weights, limit))
