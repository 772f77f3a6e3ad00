"""Makes sets of tasks of real libraries in three modes, checks the tasks one by one, and prints tables.

Usage: generation.py FOLDER LIBRARIES.json [--only NAME ...] [--mode MODE ...] [--count 20] [--control 10]
[--workers 2] [--seed 0] [--beside FOLDER [--checkout FOLDER]]

LIBRARIES.json is a list of tables with name, sdist, pytest_args, extra_requirements and exclude_newer.
Everything is kept below FOLDER, so that the same command continues where it was stopped; with --tables
nothing is run. --beside prints the results of another commit from its own folder; with --checkout, a checkout
of that commit, they are made now, in turn with this one's, library by library. A set that was interrupted has
no time of its first task.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

MODES = ("remove", "discovery", "multi")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("libraries", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--mode", nargs="*", default=list(MODES))
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--control", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--min-failing", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--beside", type=Path, help="the folder of another commit's sets")
    parser.add_argument("--checkout", type=Path, help="a checkout of that commit, which makes them")
    parser.add_argument("--no-check", action="store_true", help="make the tasks and leave them unchecked")
    parser.add_argument("--tables", action="store_true", help="only print what is known")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    libraries = json.loads(options.libraries.read_text("utf-8"))
    chosen = [item for item in libraries if not options.only or item["name"] in options.only]
    chosen.sort(key=lambda item: options.only.index(item["name"]) if options.only else 0)
    if not options.tables:
        for library in chosen:
            for mode in options.mode:
                if options.beside and options.checkout:
                    make(library, mode, options, options.beside, options.checkout)
                make(library, mode, options, options.folder)
    print_tables(options.folder, chosen, options.mode)
    if options.beside:
        print_beside(options.folder, options.beside, chosen, options.mode)


KEPT = re.compile(r"  [0-9a-f]{12} ")


def gistpoint(
    folder: Path, *arguments: str, checkout: Path | None = None
) -> tuple[int, str, dict[str, float]]:
    """Run the program; return its exit code, its output, and the seconds until it reached its stages.

    These are `candidates` and `first kept`; a stage that it did not reach is missing.
    """
    environment = {**os.environ, "GISTPOINT_HOME": str(folder / "home")}
    if checkout is not None:
        environment["PYTHONPATH"] = str(checkout / "src")
    began, times = time.monotonic(), dict[str, float]()
    with tempfile.TemporaryFile("w+") as output:
        command = [sys.executable, "-m", "gistpoint", *arguments]
        program = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.PIPE, text=True)
        assert program.stderr is not None
        for line in program.stderr:
            stage = "first kept" if KEPT.match(line) else "candidates" if " candidates of " in line else ""
            if stage:
                times.setdefault(stage, time.monotonic() - began)
        code = program.wait()
        output.seek(0)
        return code, output.read(), times


def make(
    library: dict[str, Any],
    mode: str,
    options: argparse.Namespace,
    folder: Path,
    checkout: Path | None = None,
) -> None:
    place = folder / f"{library['name']}-{mode}.json"
    name, _, version = library["sdist"].rpartition("-")
    started = time.monotonic()
    arguments = [
        "task",
        "generate",
        f"{name}=={version}",
        "--mode",
        mode,
        "--count",
        str(options.count),
        "--json",
    ]
    arguments += ["--control", str(options.control), "--workers", str(options.workers)]
    arguments += ["--min-failing", str(options.min_failing), "--seed", str(options.seed)]
    arguments += [f"--with={item}" for item in library["extra_requirements"]]
    arguments += [f"--pytest-args={shlex.join(library['pytest_args'])}"]
    if library["exclude_newer"]:
        arguments += ["--exclude-newer", library["exclude_newer"]]
    code, told, times = gistpoint(folder, *arguments, checkout=checkout)
    print(f"{name} {mode}: exit {code}, {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    if not told.strip():
        return
    times_file = place.with_suffix(".times")
    if not times_file.exists():
        times_file.write_text(json.dumps(times), "utf-8")
    place.write_text(told, "utf-8")
    for id in () if options.no_check else json.loads(told)["sources"][0]["tasks"]:
        checked = folder / "checks" / f"{id}.json"
        if not checked.is_file():
            checked.parent.mkdir(exist_ok=True)
            code, found, _ = gistpoint(folder, "task", "check", id, "--json", checkout=checkout)
            document = json.loads(found) if found.strip() else {"checks": []}
            checked.write_text(json.dumps({"exit": code, **document}), "utf-8")


def print_beside(folder: Path, other: Path, libraries: list[dict[str, Any]], modes: list[str]) -> None:
    """Print the costs of each set, each followed by those of the other commit."""
    print("\n| library | mode | commit | kept | first kept after s | making s | of it probing | confirming |"
          " probes | probe / suite | suites saved s |")  # fmt: skip
    print("|---" * 11 + "|")
    shares: dict[str, list[float]] = {}
    for library in libraries:
        for mode in modes:
            for commit, place in (("this", folder), ("before", other)):
                file = place / f"{library['name']}-{mode}.json"
                if not file.is_file():
                    continue
                source = json.loads(file.read_text("utf-8"))["sources"][0]
                costs = source["costs"]
                times = json.loads(file.with_suffix(".times").read_text("utf-8"))
                first = times.get("first kept", math.nan) - times.get("candidates", math.nan)
                share = costs["median_share_of_suite"] or math.nan
                shares.setdefault(commit, []).append(1 / share)
                cells = [
                    library["name"], mode, commit, source["kept"], f"{first:.0f}", source["seconds"]["making"],
                    costs["probe_seconds"], costs["confirming_seconds"], costs["probes"], spelled_share(share),
                    costs["saved_seconds"],
                ]  # fmt: skip
                print("| " + " | ".join(map(str, cells)) + " |")
    for commit, found in shares.items():
        print(f"{commit}: median share of a probe over {len(found)} sets {spelled_share(1 / median(found))}")


def print_tables(folder: Path, libraries: list[dict[str, Any]], modes: list[str]) -> None:
    known = []
    for library in libraries:
        for mode in modes:
            place = folder / f"{library['name']}-{mode}.json"
            if place.is_file():
                known.append((library["name"], mode, json.loads(place.read_text("utf-8"))["sources"][0]))
    print("| library | mode | functions | candidates | tried | kept | dropped | seconds | probes | probe / suite |"
          " confirming s | saved s | control |")  # fmt: skip
    print("|---" * 13 + "|")
    for name, mode, source in known:
        print(row(name, mode, source))
    print("\n| library | mode | tasks | original 1 | corrupted 0 | clean | good of kept | good of tried | rank |"
          " failing | distance |")  # fmt: skip
    print("|---" * 11 + "|")
    for name, mode, source in known:
        print(quality(folder, name, mode, source))


def spelled_share(share: float) -> str:
    """Return a share of the suite's time as a fraction, or as a number if it is above a half."""
    return f"1/{1 / share:.0f}" if share <= 0.5 else f"{share:.1f}"


def row(name: str, mode: str, source: dict[str, Any]) -> str:
    if source["refused"]:
        return f"| {name} | {mode} | refused: {source['refused']['reason']} |" + " |" * 10
    costs, seconds, control = source["costs"], source["seconds"], source["control"]
    dropped = ", ".join(f"{count} {reason}" for reason, count in source["dropped"].items()) or "-"
    share = costs["median_share_of_suite"]
    agreement = (
        "-" if control["agreement"] is None else f"{100 * control['agreement']:.0f} % of {control['tried']}"
    )
    cells = [
        name, mode, source["functions"], source["candidates"], source["tried"], source["kept"], dropped,
        f"{seconds['learning']:.0f} + {seconds['making']:.0f}", f"{costs['probes']} ({costs['warm']} warm)",
        "-" if not share else spelled_share(share), costs["confirming_seconds"], costs["saved_seconds"], agreement,
    ]  # fmt: skip
    return "| " + " | ".join(map(str, cells)) + " |"


def quality(folder: Path, name: str, mode: str, source: dict[str, Any]) -> str:
    parts, failing, distances, original, corrupted, clean, checked = [], [], [], 0, 0, 0, 0
    for id in source["tasks"]:
        answer = json.loads(
            (folder / "home" / "data" / "tasks" / id / "answer" / "answer.json").read_text("utf-8")
        )
        parts += answer["provenance"].get("parts", [])
        baseline = next((folder / "home" / "data" / "tasks" / id / "answer" / "baselines").iterdir())
        values = json.loads(baseline.read_text("utf-8"))
        failing.append(len(set(values["passed"]) - set(values["passed_corrupted"])))
        place = folder / "checks" / f"{id}.json"
        if place.is_file():
            found = json.loads(place.read_text("utf-8"))
            passed = {finding["name"]: finding["passed"] for finding in found["checks"]}
            checked += 1
            original += bool(passed.get("original scores 1"))
            corrupted += bool(passed.get("corrupted scores 0"))
            clean += found["exit"] == 0
    ranks = [part["evidence"]["rank"] for part in parts if part["evidence"]["rank"] is not None]
    distances = [step for part in parts for step in part["evidence"]["distances"] if step is not None]
    good = sum(part["good"] for part in parts)
    ends = {end: count for end, count in source["corruptions"].items() if not end.startswith("gate:")}
    tried = sum(ends.values())
    cells = [
        name, mode, len(source["tasks"]), f"{original} of {checked}", f"{corrupted} of {checked}",
        f"{clean} of {checked}", f"{good} of {len(parts)}" if parts else "-",
        f"{100 * ends.get('good', 0) / tried:.0f} % of {tried}" if tried else "-",
        f"{median(ranks):.1f}" if ranks else "-", f"{median(failing):.0f}" if failing else "-",
        f"{median(distances):.0f}" if distances else "-",
    ]  # fmt: skip
    return "| " + " | ".join(map(str, cells)) + " |"


if __name__ == "__main__":
    main()
