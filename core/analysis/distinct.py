"""Counts equal rows of a regression together.

Attempts at the same task have equal rows: a study of hundreds of attempts has a few dozen distinct rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


class DistinctRows:
    """The distinct rows of a matrix, in ascending order, and sums over the rows that are equal."""

    def __init__(self, matrix: Floats) -> None:
        self.rows, places = np.unique(matrix, axis=0, return_inverse=True)
        flat = places.ravel()  # the shape depends on numpy's version
        self._order = np.argsort(flat, kind="stable")
        self._first = np.searchsorted(flat[self._order], np.arange(len(self.rows)))

    def sums(self, weights: ArrayLike) -> Floats:
        """Return the sums of weights as (fits, distinct rows); `weights` are (fits, rows of the matrix)."""
        given = np.asarray(weights, dtype=float)
        return np.asarray(np.add.reduceat(given[:, self._order], self._first, axis=1), dtype=float)
