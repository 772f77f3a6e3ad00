"""Makes one set of tasks repeatedly: with 1 and 2 workers, on a Dask cluster, and killed at random moments.

Usage: PYTHONPATH=src:tests python tests/studies/campaign_runs.py FOLDER SOURCE [--mode discovery] [--count
20] [--kills 20] [--longest 20] [--pytest-args=ARGUMENTS] [--with=REQUIREMENT ...]

Each variant has a separate home below FOLDER, so that none helps another. The killed campaign is stopped by
SIGKILL at a moment within --longest seconds, all its processes are awaited, and it is started again; finally
it runs to its end. Prints the tasks, seconds and kills of each; the exit code is 1 if two variants gave
different tasks.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
from dask_cluster import cluster


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("source")
    parser.add_argument("--mode", default="discovery")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--longest", type=float, default=20.0)
    parser.add_argument("--pytest-args", default="")
    parser.add_argument("--with", dest="extra", nargs="*", default=[])
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    found = {
        "1 worker": whole(options, "one", "--workers", "1"),
        "2 workers": whole(options, "two", "--workers", "2"),
    }
    with cluster(options.folder, 2) as address:
        found["cluster"] = whole(options, "cluster", "--cluster", address)
    found["killed"] = killed(options)
    same = len({tuple(ids) for ids in found.values()}) == 1
    print(
        f"{'identical' if same else 'DIFFERENT'}: "
        + ", ".join(f"{way} {len(ids)}" for way, ids in found.items())
    )
    return 0 if same else 1


def start(options: argparse.Namespace, name: str, *crew: str) -> subprocess.Popen[str]:
    command = [str(Path(sys.executable).parent / "gistpoint"), "task", "generate", options.source, "--json"]
    command += ["--mode", options.mode, "--count", str(options.count), *crew]
    command += [f"--pytest-args={options.pytest_args}", *(f"--with={item}" for item in options.extra)]
    environment = {**os.environ, "GISTPOINT_HOME": str(options.folder / name)}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def whole(options: argparse.Namespace, name: str, *crew: str) -> list[str]:
    began = time.monotonic()
    output, _ = start(options, name, *crew).communicate()
    ids: list[str] = json.loads(output)["sources"][0]["tasks"]
    in_folder = {path.name for path in (options.folder / name / "data" / "tasks").iterdir()}
    begun = {name for name in in_folder if name.startswith(".")}
    assert in_folder - begun == set(ids), "tasks in the folder are not those that were told"
    assert len(ids) == len(set(ids)), "a task was made twice"
    print(
        f"{name}: {len(ids)} tasks in {time.monotonic() - began:.0f} s, {len(begun)} begun and left",
        flush=True,
    )
    return ids


def killed(options: argparse.Namespace) -> list[str]:
    """Kill the campaign repeatedly, then run it to its end."""
    chance, died = random.Random(0), Counter[str]()
    while died.total() < options.kills:
        child = start(options, "killed", "--workers", "2")
        time.sleep(chance.uniform(0, options.longest))
        if child.poll() is not None:
            break
        others = psutil.Process(child.pid).children(recursive=True)
        child.kill()
        child.communicate()
        _, alive = psutil.wait_procs(others, timeout=120)
        assert not alive, f"{len(alive)} processes outlive the campaign"
        verdicts = keys(options.folder / "killed")
        assert len(verdicts) == len(set(verdicts)), "a candidate was decided twice"
        died["deciding" if verdicts else "learning"] += 1
    print(
        f"killed: {died['learning']} times while learning, {died['deciding']} times while deciding",
        flush=True,
    )
    return whole(options, "killed", "--workers", "2")


def keys(home: Path) -> list[str]:
    """Return the keys of the candidates with a verdict."""
    lines = [line for path in (home / "data" / "campaigns").glob("*.jsonl") for line in whole_lines(path)]
    return [value["key"] for value in map(json.loads, lines) if value.get("type") == "verdict"]


def whole_lines(path: Path) -> list[bytes]:
    return [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


if __name__ == "__main__":
    raise SystemExit(main())
