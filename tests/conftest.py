"""How property tests run: the same examples every time, and no example judged by how long it takes."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("gistpoint", deadline=None, derandomize=True)
settings.load_profile("gistpoint")
