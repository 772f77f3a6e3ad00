"""Measures what recording a gist's executed lines costs: each tracer's CPU time relative to the bare command.

    python tests/studies/tracer_overhead.py PYTHON [GIST ...] [--rounds 5]

PYTHON is an interpreter with pytest, coverage and, for comparison, slipcover. Each GIST is a test file. A
gist that computes for a second is also measured. "As scored" is the whole run of a gist: guards, watches,
observer, sentinels. Rounds are interleaved; the minimum CPU time (user and system) counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path

from gistpoint.core.pins import EnvironmentPins
from gistpoint.sandbox.gistruns.runner import write_control
from gistpoint.sandbox.sealing import NOTHING_SECRET, handed_over

BUSY = """
import json

def step(n, seen):
    if n % 3 == 0:
        seen.append(n)
    elif n % 5 == 0:
        seen.append(-n)
    else:
        n += 1
    return n * 2

def test_it():
    total = 0
    for n in range(400_000):
        total += step(n, []) & 7
    for n in range(20_000):
        total += len(json.dumps({"a": [n, n + 1], "b": {"c": str(n)}}, indent=1))
    assert total > 0
"""
NAIVE = """
import sys, threading
lines, path = set(), sys.argv[1]
def trace(frame, event, argument):
    if frame.f_code.co_filename != path:
        return None
    if event == "line":
        lines.add(frame.f_lineno)
    return trace
sys.settrace(trace)
import pytest
pytest.main(sys.argv[2:])
"""


def seconds(command: list[str], cwd: Path, **variables: str) -> float:
    environment = {
        "PATH": os.environ["PATH"],
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    with Path(os.devnull).open("wb") as nothing:
        environment |= {"GISTPOINT_RESULTS": str(nothing.fileno()), "GISTPOINT_ROOT": str(cwd)}
        with handed_over(NOTHING_SECRET.order()) as order:
            process = subprocess.Popen(
                command,
                cwd=cwd,
                env={**environment, **variables},
                pass_fds=(nothing.fileno(),),
                stdin=order,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            _, _, usage = os.wait4(process.pid, 0)
    return usage.ru_utime + usage.ru_stime


def ways(python: str, place: Path, gist: Path) -> dict[str, tuple[list[str], dict[str, str]]]:
    argv = ["-q", "-p", "no:cacheprovider", "--assert=plain", "--noconftest", str(gist)]
    control = place / "control"
    if not control.exists():
        write_control(control, EnvironmentPins())
    order = {"argv": ["pytest", *argv], "plugin": str(control / "results_plugin.py"), "owned": ["not_there"]}
    order |= {"written": [str(place)], "given": [str(gist)], "file": str(gist)}
    launcher = [python, str(control / "launcher.py")]
    coverage = [python, "-m", "coverage", "run", f"--include={gist}", "-m", "pytest", *argv]
    return {
        "bare": ([python, "-m", "pytest", *argv], {}),
        "as scored, no tracer": ([*launcher, json.dumps(order)], {}),
        "as scored": ([*launcher, json.dumps({**order, "lines": str(gist)})], {}),
        "coverage ctrace": (coverage, {"COVERAGE_CORE": "ctrace"}),
        "coverage sysmon": (coverage, {"COVERAGE_CORE": "sysmon"}),
        "slipcover": ([python, "-m", "slipcover", "--source", str(gist.parent), "-m", "pytest", *argv], {}),
        "plain settrace": ([python, "-c", NAIVE, str(gist), *argv], {}),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("python")
    parser.add_argument("gists", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", help="these ways alone, besides the bare command")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        busy = place / "test_busy.py"
        busy.write_text(BUSY)
        for gist in [*options.gists, busy]:
            least: dict[str, float] = {}
            for _ in range(options.rounds):
                for way, (command, variables) in ways(options.python, place, gist.resolve()).items():
                    if options.only is not None and way not in ("bare", *options.only):
                        continue
                    least[way] = min(least.get(way, 1e9), seconds(command, place, **variables))
            ratios = {way: round(value / least["bare"], 2) for way, value in least.items()}
            print(gist.name, f"bare {least['bare']:.2f} s", ratios, flush=True)


if __name__ == "__main__":
    main()
