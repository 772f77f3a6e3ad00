"""Packages made by hand."""

from shelves import shelf

__all__ = ["shelf"]
