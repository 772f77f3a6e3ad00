"""Deterministic random draws: equal keys give equal numbers on every machine."""

from __future__ import annotations

from hashlib import sha256
from statistics import NormalDist

_NORMAL = NormalDist()


def uniform(*about: object) -> float:
    """Return a uniform draw between 0 and 1, exclusive, which the parts of a key determine."""
    digest = sha256("\x1f".join(map(str, about)).encode("utf-8", "surrogatepass")).digest()
    return ((int.from_bytes(digest[:8]) >> 12) + 0.5) / 2**52


def normal(*about: object) -> float:
    """Return a draw from the standard normal distribution, determined by the parts of a key."""
    return _NORMAL.inv_cdf(uniform(*about))
