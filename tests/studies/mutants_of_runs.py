"""Reads 5,000 damaged files of recorded runs, and prints errors, times and memory.

Usage: python tests/studies/mutants_of_runs.py [COUNT] [FILE_OR_FOLDER…]

Exit code 1 if reading a file raises an exception or takes more than two seconds.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from mutants import mutants, read_all
from recorded_runs import make_all


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    slow: list[tuple[float, str]] = []
    broken: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as root:
        files = [made.path for made in make_all(Path(root)) if made.path.is_file()]
        for given in map(Path, sys.argv[2:]):
            files += (
                [path for path in sorted(given.rglob("*")) if path.is_file()] if given.is_dir() else [given]
            )
        sources = [path.read_bytes() for path in files]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        path = Path(root) / "mutant"
        for name, data in mutants(sources, count):
            path.write_bytes(data)
            try:
                slow.append((read_all(path), name))
            except Exception:
                broken[traceback.format_exc(limit=-3)] += 1
                print(name, file=sys.stderr)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    slow.sort(reverse=True)
    print(f"{count} mutants of {len(sources)} files: {sum(broken.values())} broke the reader")
    for trace, times in broken.most_common(10):
        print(f"{times} x {trace}")
    print("CPU seconds to list, open, index, show and search each:")
    print(f"slowest {slow[0][0]:.2f} s ({slow[0][1]}), median {slow[len(slow) // 2][0] * 1000:.1f} ms")
    print(f"over 2 s: {sum(seconds > 2 for seconds, _ in slow)}")
    print(f"peak memory {after // 1024} MB, {(after - before) // 1024} MB more than with the sources alone")
    return 1 if broken or slow[0][0] > 2 else 0


if __name__ == "__main__":
    raise SystemExit(main())
