"""Handmade packages."""

from shelves import shelf

__all__ = ["shelf"]
