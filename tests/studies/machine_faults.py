#!/usr/bin/env python3
"""Call every command with every fault of the machine, and print the failures as a Markdown table.

uv run python tests/studies/machine_faults.py [--quick] [--command WORDS] [--fault NAME] [--seconds S]
    [--made FOLDER] [--all]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from machine_faults import CALLS, FAULTS, LONG, Case, Fault, Met, meet, possible, template


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--command", action="append")
    given.add_argument("--fault", action="append")
    given.add_argument("--seconds", type=float, default=60)
    given.add_argument("--workers", type=int, default=2)
    given.add_argument("--quick", action="store_true", help="without the commands that work for long")
    given.add_argument("--made", type=Path, help="a folder that keeps the home that the cases copy")
    given.add_argument("--all", action="store_true", help="print the cases that are right as well")
    options = given.parse_args()
    faults = [fault for fault in FAULTS if options.fault is None or fault.name in options.fault]
    for fault in faults:
        if not possible(fault):
            print(f"not possible here: {fault.name}", file=sys.stderr)
    commands = options.command or [name for name in CALLS if not (options.quick and name in LONG)]
    with tempfile.TemporaryDirectory() as scratch:
        made = template(options.made or Path(scratch, "made"))
        cases = [(command, fault) for fault in faults if possible(fault) for command in commands]

        def one(case: tuple[str, Fault]) -> Met:
            return _met(*case, made, options.seconds)

        print("| fault | command | exit | complaint |\n| --- | --- | ---: | --- |")
        wrong = 0
        with ThreadPoolExecutor(options.workers) as pool:
            for met in pool.map(one, cases):
                wrong += bool(met.complaints)
                words = "; ".join(met.complaints) or met.errors.strip().replace("\n", " / ")[:300]
                if met.complaints or options.all:
                    print(f"| {met.fault} | {met.command or 'home'} | {met.code} | {words} |", flush=True)
    print(f"\n{len(cases)} cases, {wrong} of them wrong")


def _met(command: str, fault: Fault, made: Case, seconds: float) -> Met:
    with tempfile.TemporaryDirectory() as place:
        return meet(command, fault, made, Path(place), seconds=seconds)


if __name__ == "__main__":
    main()
