"""Packages and repositories made by hand."""

from shelves import shelf, write

__all__ = ["shelf", "write"]
