"""Kills runs of agents at random moments and prints the findings.

Usage: PYTHONPATH=src:tests python tests/studies/agent_kills.py [KILLS [ATTEMPTS]] (default: 200 over 40).
Exit code 1 if anything acknowledged was lost, a call was made twice, or the figures are not those of an
undisturbed run.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from agent_killing import kill_runs

from gistpoint.core.demo.tasks import demo_task


def main() -> int:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    attempts = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    with tempfile.TemporaryDirectory(prefix="gistpoint-agent-kills-") as name:
        tasks = [demo_task(mode, Path(name) / "demo").folder for mode in ("remove", "discovery")]
        found = kill_runs(Path(name), tasks, max(1, attempts // len(tasks)), kills, seed=kills)
    print(found)
    return int(not found.sound)


if __name__ == "__main__":
    sys.exit(main())
