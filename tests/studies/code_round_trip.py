"""Replaces every definition below the folders on the command line with itself, and counts the failures.

Without folders: the standard library of the Python that runs this.
Usage: python tests/studies/code_round_trip.py [--every N] [DIR]...
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from code_corpus import STANDARD_LIBRARY, indexed, removal_problem, round_trip_problem

from gistpoint.core.code.parsing import CodeError
from gistpoint.core.code.splice import replace_definition


def main(folders: list[Path], every: int) -> int:
    """Try every `every`th definition; print counts and up to 50 problems per folder; return 1 if any."""
    failed = 0
    for folder in folders:
        started = time.perf_counter()
        files = definitions = written = 0
        problems: list[str] = []
        for index, source in indexed(folder):
            files += 1
            for definition in index.definitions[definitions % every :: every]:
                definitions += 1
                found = [round_trip_problem(index, definition)]
                if definition.kind.sort == "function":
                    found.append(removal_problem(index, definition))
                problems += [problem for problem in found if problem]
            for definition in index.definitions[:: max(every, 1 + len(index.definitions) // 3)]:
                written += 1
                try:
                    if replace_definition(index, definition, definition.dedented) != source:
                        problems.append(f"{definition.ref}: the bytes differ")
                except CodeError as error:
                    problems.append(f"{definition.ref} is refused: {error}")
        seconds = time.perf_counter() - started
        counts = f"{files} files, {definitions} definitions, {written} written, {len(problems)} problems"
        print(f"{folder.name}: {counts}, {seconds:.0f} s")
        print("".join(f"  {problem}\n" for problem in problems[:50]), end="", flush=True)
        failed += len(problems)
    return int(failed > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, metavar="N")
    parser.add_argument("folders", nargs="*", type=Path, default=[STANDARD_LIBRARY])
    arguments = parser.parse_args()
    raise SystemExit(main(arguments.folders, arguments.every))
