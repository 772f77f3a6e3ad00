"""The report of a simulated study: processor seconds with one thread for linear algebra, and with several.

Usage: PYTHONPATH=src:tests uv run python tests/benchmarks/study_report.py [PEOPLE] [--study FOLDER]

Simulates the demo's study with PEOPLE people (default: 100) in a temporary folder, in memory if possible,
because most of the simulation waits for the disk; or uses the study in FOLDER. Each report is made by a
separate process. The ratio compares gistpoint's number of threads, one, with the library's default, all
processors.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

_MEMORY = Path("/dev/shm")


def processor_s(words: list[str], threads: int) -> float:
    """Return the processor seconds of a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": str(threads)}
    subprocess.run([sys.executable, "-m", "gistpoint", *words], env=environment, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def simulated(place: Path, people: int) -> Path:
    """Write the demo's study with this many people below `place`, and return its folder."""
    from gistpoint.sessions.studies import simulation
    from gistpoint.tui import cli

    os.environ["GISTPOINT_HOME"] = str(place / "home")
    simulation.DEMO_PEOPLE = people
    assert cli.main(["study", "demo", str(place / "study")]) == 0
    return place / "study"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("people", nargs="?", type=int, default=100)
    parser.add_argument("--study", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        place = Path(folder)
        study = given.study or simulated(place, given.people)
        words = ["study", "report", str(study), "-o", str(place / "report.html")]
        one, all_of_them = processor_s(words, 1), processor_s(words, os.cpu_count() or 1)
        attempts = sum(1 for _ in (study / "attempts").iterdir())
        print(f"{attempts} attempts: {one:.1f} s with one thread, {all_of_them:.1f} s with {os.cpu_count()}")
        print(f"ratio {all_of_them / one:.1f}")


if __name__ == "__main__":
    main()
