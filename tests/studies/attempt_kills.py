"""Kills attempts at random moments: of the engine alone, in line mode, and on a screen; prints the findings.

Usage: PYTHONPATH=src:tests python tests/studies/attempt_kills.py [KILLS] [MODE...], where MODE is engine,
lines or terminal and KILLS are made in each of them (default: 100). Exit code 1 if anything acknowledged was
lost.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from killing import kill_often
from program_kills import kill_programs

from gistpoint.core.demo.tasks import demo_task

MODES = ("engine", "lines", "terminal")
SHARES = (("remove", "recorded", 0.5), ("discovery", "recorded", 0.4), ("remove", "plain", 0.1))
"""For each series on the engine alone, the task's mode, the runner, and the share of the kills."""


def main() -> int:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    lost = False
    with tempfile.TemporaryDirectory(prefix="gistpoint-kills-") as name:
        for mode in sys.argv[2:] or MODES:
            folder = Path(name) / mode
            if mode != "engine":
                task = demo_task("remove", folder / "cache" / "demo")
                killed = kill_programs(folder, task, kills, mode=mode, seed=kills)
                print(killed, flush=True)
                lost |= bool(killed.lost or killed.drafts_lost)
                continue
            for seed, (kind, runner, share) in enumerate(SHARES):
                place = demo_task(kind, folder / "demo").folder
                figures = kill_often(
                    folder / f"series-{seed}", place, round(kills * share), runner=runner, seed=seed
                )
                print(f"engine, {kind}, {runner}: {figures}", flush=True)
    return int(lost)


if __name__ == "__main__":
    sys.exit(main())
