"""Kills an attempt 200 times at random moments and prints what that showed.

Usage: PYTHONPATH=src:tests python tests/studies/kills.py [KILLS]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from killing import kill_often

from gistpoint.core.demo.tasks import demo_task

SHARES = (("remove", "recorded", 0.5), ("discovery", "recorded", 0.4), ("remove", "plain", 0.1))


def main() -> None:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with tempfile.TemporaryDirectory(prefix="gistpoint-kills-") as name:
        folder = Path(name)
        for seed, (task, runner, share) in enumerate(SHARES):
            place = demo_task(task, folder / "demo").folder
            figures = kill_often(folder / f"series-{seed}", place, round(kills * share), runner=runner, seed=seed)
            print(f"{task}, {runner}: {figures}", flush=True)


if __name__ == "__main__":
    main()
