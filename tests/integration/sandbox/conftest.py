"""Handmade packages and repositories."""

from shelves import shelf, write

__all__ = ["shelf", "write"]
