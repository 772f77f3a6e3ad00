"""Kills participants of a small study at random moments, from consent to the end, and counts the losses.

Usage: PYTHONPATH=src:tests uv run python tests/studies/study_kills.py [KILLS]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from study_killing import kill_people

count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
with tempfile.TemporaryDirectory() as place:
    found = kill_people(Path(place), count, seed=20261121)
print(found)
print("\n".join(found.faults))
sys.exit(bool(found.faults))
