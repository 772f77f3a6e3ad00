"""Simulates a study of 40 people on two machines with random merges, and checks ledgers and audits, by seed.

PYTHONPATH=src:tests uv run python tests/studies/study_merges.py [SEEDS]
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

from study_merging import merge_two


def main(seeds: int) -> None:
    started = time.monotonic()
    for seed in range(seeds):
        base = Path(tempfile.mkdtemp(prefix="study-merges-"))
        try:
            merge_two(base, seed, (0.01, 0.03, 0.1, 0.4)[seed % 4])
        finally:
            shutil.rmtree(base)
    print(
        f"{seeds} seeds, 40 people on two machines: the same ledger, audit clean, {time.monotonic() - started:.0f} s"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
