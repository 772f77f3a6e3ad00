"""Times opening large runs: header and first step, index, last step, a jump, a search; and peak memory.

Usage: python tests/benchmarks/run_reading.py FILE…

Each file is measured in a new interpreter, against one that imports the same modules and reads nothing.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time


def measure(name: str) -> None:
    from gistpoint.sessions.formats.registry import recognise
    from gistpoint.sessions.runs.opening import open_run
    from gistpoint.sessions.runs.searching import Query, search_document

    assert recognise
    started = time.perf_counter()
    document = open_run(name)
    document.header  # noqa: B018
    document.step(0)
    first = time.perf_counter() - started
    started, cpu = time.perf_counter(), time.process_time()
    document.build()
    index, index_cpu = time.perf_counter() - started, time.process_time() - cpu
    count = document.step_count
    times = []
    for number in [count - 1, *range(0, count, max(1, count // 300))]:
        started = time.perf_counter()
        document.step(number)
        times.append(time.perf_counter() - started)
    worst = max(times)
    started = time.perf_counter()
    hits = sum(1 for _ in search_document(document, Query("no such text anywhere")))
    search = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"{name[-40:]:<40} {count:>7} steps  first {first * 1000:6.1f} ms  index {index:5.2f} s ({index_cpu:.2f} CPU)  "
        f"last {times[0] * 1000:5.1f} ms  worst {worst * 1000:6.1f} ms  search {search:5.2f} s ({hits})  peak {peak} MB"
    )


def main() -> int:
    if sys.argv[1:2] == ["--one"]:
        measure(sys.argv[2])
        return 0
    for name in sys.argv[1:]:
        subprocess.run([sys.executable, __file__, "--one", name], check=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
