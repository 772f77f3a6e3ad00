"""The tags of encoded values, one letter each, as `payload/call_replayer.py` writes them.

A string of several letters is a set of tags, for tests with `in`.
"""

from __future__ import annotations

NONE = "n"
BOOLEAN = "b"
INTEGER = "i"
FLOAT = "f"
TEXT = "s"
BYTES = "y"
LIST = "l"
TUPLE = "t"
SET = "e"
FROZENSET = "z"
SLICE = "c"
DICTIONARY = "d"
EXACT = "x"
"""A date, a time, a decimal or a fraction."""
SUBCLASS = "k"
"""An object of a class that extends the class of another value."""
RAISING = "r"
"""A function that raises an exception."""
OBJECT = "o"
"""An object of any other class, known by its place in a recorded call."""

NUMBERS = INTEGER + FLOAT
SEQUENCES = LIST + TUPLE
COLLECTIONS = SEQUENCES + SET + FROZENSET
CONTAINERS = COLLECTIONS + SLICE
"""The tags whose content is a list of encoded values."""
