"""Counts the tokens of this interpreter's standard library.

Usage: python tests/studies/standard_library_counts.py > core/corruption/appearance/standard_library.json
"""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import msgspec

from gistpoint.core.corruption.appearance.naturalness import pruned

LEFT_OUT = frozenset(
    {
        "test",
        "tests",
        "idle_test",
        "idlelib",
        "lib2to3",
        "site-packages",
        "encodings",
        "turtledemo",
        "pydoc_data",
    }
)
LEAST = 20


def main() -> None:
    root = Path(sysconfig.get_path("stdlib"))
    files = [path for path in sorted(root.rglob("*.py")) if LEFT_OUT.isdisjoint(path.relative_to(root).parts)]
    stored = pruned((path.read_text("utf-8", errors="replace") for path in files), LEAST)
    sys.stdout.write(msgspec.json.encode(stored).decode().replace("],", "],\n") + "\n")


if __name__ == "__main__":
    main()
