"""One sign for one meaning: what is good has ✔, what is bad has ✘, on screens, in printed text and in guides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import gistpoint

ROOT = Path(gistpoint.__file__).resolve().parents[2]
OTHERS = "✓✗✕✖☑☒🗸🗴✅❌"
"""Signs that look like the two, or mean the same."""


def texts() -> Iterator[Path]:
    for room in ("core", "sandbox", "sessions", "tui", "docs/guide"):
        for kind in ("*.py", "*.md", "*.tcss"):
            yield from (ROOT / room).rglob(kind)
    yield ROOT / "README.md"


def test_no_other_sign_means_good_or_bad() -> None:
    found = list(texts())
    assert len(found) > 100
    for path in found:
        text = path.read_text(encoding="utf-8")
        assert not [sign for sign in OTHERS if sign in text], path
