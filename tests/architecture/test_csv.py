"""One module writes and reads CSV: it knows which cells a spreadsheet would execute, and what the reader raises."""

from __future__ import annotations

import re
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_USES = re.compile(r"csv\.(?:writer|DictWriter|reader|DictReader)|from csv import|import csv as|\.to_csv\(")


def test_one_module_writes_and_reads_csv() -> None:
    sources = (
        path for room in ("core", "sandbox", "sessions", "tui") for path in (_ROOT / room).rglob("*.py")
    )
    found = {
        str(path.relative_to(_ROOT)) for path in sources if _USES.search(path.read_text(encoding="utf-8"))
    }
    assert found == {"core/csv_text.py"}
