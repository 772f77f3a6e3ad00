"""Draws that nothing but their names decides: the same names give the same number on every machine."""

from __future__ import annotations

from hashlib import sha256
from statistics import NormalDist

_NORMAL = NormalDist()


def uniform(*about: object) -> float:
    """Return a number above 0 and below 1 that the parts of a key decide."""
    digest = sha256("\x1f".join(map(str, about)).encode("utf-8", "surrogatepass")).digest()
    return ((int.from_bytes(digest[:8]) >> 12) + 0.5) / 2**52


def normal(*about: object) -> float:
    """Return a standard normal number that the parts of a key decide."""
    return _NORMAL.inv_cdf(uniform(*about))
