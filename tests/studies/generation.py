"""Sets of tasks of real libraries in the three modes, checked one by one; prints the tables.

Usage: generation.py FOLDER LIBRARIES.json [--only NAME ...] [--mode MODE ...] [--count 20] [--control 10] [--workers 2]

LIBRARIES.json is a list of tables with name, sdist, pytest_args, extra_requirements and exclude_newer. Everything is
kept below FOLDER, so that the same command goes on where it was stopped; with --tables nothing is run.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
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
                make(library, mode, options)
    print_tables(options.folder, chosen, options.mode)


def gistpoint(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "GISTPOINT_HOME": str(folder / "home")}
    command = [str(Path(sys.executable).parent / "gistpoint"), *arguments]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)


def make(library: dict[str, Any], mode: str, options: argparse.Namespace) -> None:
    folder: Path = options.folder
    name, _, version = library["sdist"].rpartition("-")
    started = time.monotonic()
    arguments = ["task", "generate", f"{name}=={version}", "--mode", mode, "--count", str(options.count), "--json"]
    arguments += ["--control", str(options.control), "--workers", str(options.workers)]
    arguments += ["--min-failing", str(options.min_failing)]
    arguments += [f"--with={item}" for item in library["extra_requirements"]]
    arguments += [f"--pytest-args={shlex.join(library['pytest_args'])}"]
    if library["exclude_newer"]:
        arguments += ["--exclude-newer", library["exclude_newer"]]
    told = gistpoint(folder, *arguments)
    print(f"{name} {mode}: exit {told.returncode}, {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    if not told.stdout.strip():
        return
    (folder / f"{library['name']}-{mode}.json").write_text(told.stdout, "utf-8")
    for id in () if options.no_check else json.loads(told.stdout)["sources"][0]["tasks"]:
        place = folder / "checks" / f"{id}.json"
        if not place.is_file():
            place.parent.mkdir(exist_ok=True)
            checked = gistpoint(folder, "task", "check", id, "--json")
            document = json.loads(checked.stdout) if checked.stdout.strip() else {"findings": []}
            place.write_text(json.dumps({"exit": checked.returncode, **document}), "utf-8")


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


def row(name: str, mode: str, source: dict[str, Any]) -> str:
    if source["refused"]:
        return f"| {name} | {mode} | refused: {source['refused']['reason']} |" + " |" * 10
    costs, seconds, control = source["costs"], source["seconds"], source["control"]
    dropped = ", ".join(f"{count} {reason}" for reason, count in source["dropped"].items()) or "-"
    share = costs["median_share_of_suite"]
    agreement = "-" if control["agreement"] is None else f"{100 * control['agreement']:.0f} % of {control['tried']}"
    cells = [
        name, mode, source["functions"], source["candidates"], source["tried"], source["kept"], dropped,
        f"{seconds['learning']:.0f} + {seconds['making']:.0f}", f"{costs['probes']} ({costs['warm']} warm)",
        "-" if not share else f"1/{1 / share:.0f}", costs["confirming_seconds"], costs["saved_seconds"], agreement,
    ]  # fmt: skip
    return "| " + " | ".join(map(str, cells)) + " |"


def quality(folder: Path, name: str, mode: str, source: dict[str, Any]) -> str:
    parts, failing, distances, original, corrupted, clean, checked = [], [], [], 0, 0, 0, 0
    for id in source["tasks"]:
        answer = json.loads((folder / "home" / "data" / "tasks" / id / "answer" / "answer.json").read_text("utf-8"))
        parts += answer["provenance"].get("parts", [])
        baseline = next((folder / "home" / "data" / "tasks" / id / "answer" / "baselines").iterdir())
        values = json.loads(baseline.read_text("utf-8"))
        failing.append(len(set(values["passed"]) - set(values["passed_corrupted"])))
        place = folder / "checks" / f"{id}.json"
        if place.is_file():
            found = json.loads(place.read_text("utf-8"))
            passed = {finding["name"]: finding["passed"] for finding in found["findings"]}
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
