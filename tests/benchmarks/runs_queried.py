"""Times `gistpoint runs` on many runs: listed, queried and grouped, twice, with the memory used.

Usage: python tests/benchmarks/runs_queried.py [--runs N]

The runs are those of `tests/planted_runs.py`, in four formats. Each command is a separate process; the first
one makes the index.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from planted_runs import plant  # noqa: E402

COMMANDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("listed", ()),
    ("grouped by cause", ("--group", "cause")),
    ("queried: flags and counts", ("--where", "not edited and tool:bash > 2 and looped")),
    ("queried: a rare error", ("--where", 'error:"user_id" and not tested')),
    ("queried: a common text", ("--where", 'text:"mean" and steps > 5')),
    ("queried: no such text", ("--where", 'text:"nowhere to be found"')),
    ("without an index: no such text", ("--where", 'text:"nowhere to be found"')),
)


def measure(
    folder: Path, home: Path, options: tuple[str, ...], *, index: bool = True
) -> tuple[float, float, float]:
    """Return a command's wall time and processor time in seconds, and its peak memory in MB."""
    code = "import sys; from gistpoint.tui.cli import main; sys.exit(main())"
    if not index:
        without = "from gistpoint.sessions.runs import run_index as r; I = r.RunIndex; r.RunIndex = lambda f: I(None)"
        code = f"{without}; {code}"
    start = time.perf_counter()
    command = [sys.executable, "-c", code, "runs", str(folder), *options, "--json"]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=_environment(home)
    )
    _, _, used = os.wait4(process.pid, 0)
    took = time.perf_counter() - start
    return took, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def _environment(home: Path) -> dict[str, str]:
    return {**os.environ, "GISTPOINT_HOME": str(home), "PYTHONPATH": str(ROOT / "src")}


def main() -> None:
    """Write the runs, and print a row for each command."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder, home = Path(place) / "runs", Path(place) / "home"
        plant(folder, given.runs)
        size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
        print(f"{given.runs:,} runs, {size:.1f} MB")
        print(f"{'':32} {'first':>8} {'cpu':>7} {'again':>8} {'cpu':>7} {'MB':>6}")
        for name, options in COMMANDS:
            index = not name.startswith("without")
            first, cpu, _ = measure(folder, home, options, index=index)
            again, cpu_again, memory = measure(folder, home, options, index=index)
            print(f"{name:32} {first:7.2f}s {cpu:6.2f}s {again:7.2f}s {cpu_again:6.2f}s {memory:6.0f}")
        file = home / "cache" / "runs.sqlite"
        print(f"index: {file.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
