"""One module writes CSV, because only it knows which cells a spreadsheet would execute."""

from __future__ import annotations

import re
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_WRITES = re.compile(r"csv\.(?:writer|DictWriter)|from csv import|import csv as|\.to_csv\(")


def test_one_module_writes_csv() -> None:
    sources = (
        path for room in ("core", "sandbox", "sessions", "tui") for path in (_ROOT / room).rglob("*.py")
    )
    found = {
        str(path.relative_to(_ROOT)) for path in sources if _WRITES.search(path.read_text(encoding="utf-8"))
    }
    assert found == {"core/csv_text.py"}
