"""Checks by independent means, from the stored tasks, whether the corruptions of tasks are good.

Each library gets a virtual environment and plain pytest under bubblewrap; `good_again_plugin.py` records
exceptions with their frames, and the functions that each test enters with the corruption in place. A
corruption is good if 5 to 40 tests (or 2 to 15) newly fail, at least half of them by assertion, and at most
half of them with a traceback through the corrupted function. Its rank is Ochiai's among the functions of the
library; functions with the same suspiciousness share the mean of their ranks. In a task with several
corruptions, each is judged alone, with the others repaired.

Usage: good_again.py TASKS LAB [--draw N] [--seed S]

TASKS is the folder of a set's tasks; LAB keeps environments and findings, which are reused.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from hashlib import sha256
from math import sqrt
from pathlib import Path
from statistics import median
from typing import Any

from gistpoint.core.tasks.model import Target
from gistpoint.core.tasks.trees import repaired_tree
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.layout import lay_out

Rows = dict[tuple[str, str], list[dict[str, Any]]]

BANDS = ((5, 40), (2, 15))
ALLOWED_S = 300
PLUGIN = Path(__file__).with_name("good_again_plugin.py")


@dataclass(frozen=True)
class Stored:
    """A task as stored in its files."""

    id: str
    task: dict[str, Any]
    answer: dict[str, Any]
    tree: Path

    @property
    def mode(self) -> str:
        return "multi" if len(self.answer["targets"]) > 1 else str(self.task["mode"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("tasks", type=Path)
    parser.add_argument("lab", type=Path)
    parser.add_argument("--draw", type=int, default=0, help="only so many, at random")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.lab.mkdir(parents=True, exist_ok=True)
    options.lab = options.lab.resolve()
    found = [
        stored
        for stored in map(load, sorted(options.tasks.iterdir()))
        if stored.answer["provenance"].get("parts")
    ]
    if options.draw:
        found = random.Random(options.seed).sample(found, min(options.draw, len(found)))
    rows: Rows = defaultdict(list)
    for number, stored in enumerate(found, 1):
        for told in tell(stored, options.lab):
            rows[stored.task["source"]["name"], stored.mode].append(told)
        print(
            f"{number} of {len(found)} {stored.task['source']['name']} {stored.mode}",
            file=sys.stderr,
            flush=True,
        )
    print_table(rows)


def load(folder: Path) -> Stored:
    task = tomllib.loads((folder / "task.toml").read_text("utf-8"))
    answer = json.loads((folder / "answer" / "answer.json").read_text("utf-8"))
    return Stored(task["id"], task, answer, folder / "workspace" / "tree.tar")


def tell(stored: Stored, lab: Path) -> list[dict[str, Any]]:
    """Return the findings on each corruption of a task; findings that are already in the lab are reused."""
    targets = stored.answer["targets"]
    told = []
    for number, target in enumerate(targets):
        place = lab / "told" / f"{stored.id}-{number}.json"
        if not place.is_file():
            place.parent.mkdir(exist_ok=True)
            repaired = [other for other in targets if other is not target]
            passed = original(stored, lab)
            seen = run(stored, repaired, lab, lab / "run")
            stated = stored.answer["provenance"]["parts"][number]
            place.write_text(json.dumps(compare(passed, seen, target, stored, stated)), "utf-8")
        told.append(json.loads(place.read_text("utf-8")))
    return told


def original(stored: Stored, lab: Path) -> list[str]:
    """Return the tests that pass with every corruption repaired, run once per library and environment."""
    pins = json.dumps([stored.task["environment"], stored.task["source"]], sort_keys=True)
    place = lab / "original" / f"{sha256(pins.encode()).hexdigest()[:16]}.json"
    if not place.is_file():
        place.parent.mkdir(exist_ok=True)
        seen = run(stored, stored.answer["targets"], lab, lab / "run")
        place.write_text(
            json.dumps(sorted(id for id, test in seen["tests"].items() if test["passed"])), "utf-8"
        )
    return list(json.loads(place.read_text("utf-8")))


def run(stored: Stored, repaired: list[dict[str, Any]], lab: Path, place: Path) -> dict[str, Any]:
    """Run the suite of a task with some targets repaired; return the records of the plugin."""
    shutil.rmtree(place, ignore_errors=True)
    targets = tuple(
        Target(item["path"], item["qualname"], item["original"], item["corrupted"]) for item in repaired
    )
    tree = SourceTree.open(stored.tree)
    lay_out(repaired_tree(tree, targets) if targets else tree, place / "tree")
    shutil.copy(PLUGIN, place / PLUGIN.name)
    pins = stored.task["environment"]
    python = environment(stored, lab) / "bin" / "python"
    roots = [str(place / "tree" / root) for root in pins["import_roots"]]
    command = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
    command += ["--ro-bind", str(lab), str(lab), "--bind", str(place), str(place)]
    command += ["--unshare-net", "--unshare-pid", "--die-with-parent", "--chdir", str(place / "tree")]
    command += [str(python), "-m", "pytest", "-q", "-p", PLUGIN.stem, "-p", "no:cacheprovider"]
    command += [*pins["pytest_args"], *(f"--deselect={id}" for id in stored.task["suite"]["deselected"])]
    values = {"PYTHONPATH": os.pathsep.join([*roots, str(place)]), "PYTHONHASHSEED": "0", "HOME": "/tmp"}
    values |= {
        "PYTHONDONTWRITEBYTECODE": "1",
        "TAKEN_DOWN": str(place / "seen.json"),
        "PATH": os.defpath,
        "TZ": "UTC",
    }
    subprocess.run(command, env=values, stdout=subprocess.DEVNULL, timeout=ALLOWED_S, check=False)
    return dict(json.loads((place / "seen.json").read_text("utf-8")))


def environment(stored: Stored, lab: Path) -> Path:
    """Return the virtual environment of a task's pins, with the library's release only for its metadata."""
    pins, source = stored.task["environment"], stored.task["source"]
    lock = "\n".join(line.partition(" --hash")[0] for line in pins["lock"])
    place = (lab / "environments" / sha256(f"{source['name']}\n{lock}".encode()).hexdigest()[:16]).resolve()
    if not (place / "made").is_file():
        subprocess.run(["uv", "venv", "-q", "--clear", "--python", pins["python"], str(place)], check=True)
        install = ["uv", "pip", "install", "-q", "--no-deps", "--python", str(place / "bin" / "python")]
        subprocess.run([*install, *lock.splitlines()], check=True, cwd=lab)
        subprocess.run([*install, f"{source['name']}=={source['revision']}"], check=True, cwd=lab)
        (place / "made").touch()
    return place


def compare(
    passed: list[str], seen: dict[str, Any], target: dict[str, Any], stored: Stored, stated: dict[str, Any]
) -> dict[str, Any]:
    """Return the figures of one corruption, together with those that the task states."""
    tests = seen["tests"]
    failing = [id for id in passed if id in tests and not tests[id]["passed"]]
    functions = functions_of(stored.tree, {path for path, _ in map(split, seen["entered"])})
    own = next(
        (
            place
            for place, name in functions.items()
            if place[0] == target["path"] and name == target["qualname"]
        ),
        None,
    )
    span = None if own is None else (own[0], own[1], own[1] + target["corrupted"].count("\n"))
    through = sum(any(within(frame, span) for frame in tests[id]["frames"]) for id in failing) if span else 0
    return {
        "missing": sum(id not in tests for id in passed),
        "failing": len(failing),
        "assertion": sum(tests[id]["raised"] in ("AssertionError", "Failed") for id in failing),
        "through": through,
        "rank": None if own is None else rank(own, frozenset(failing), functions, seen["entered"]),
        "stated": {
            "good": stated["good"],
            "rank": stated["evidence"]["rank"],
            "failing": stated["evidence"]["failing"],
        },
    }


def split(place: str) -> tuple[str, int]:
    path, _, line = place.rpartition(":")
    return path, int(line)


def within(frame: list[Any], span: tuple[str, int, int]) -> bool:
    return frame[0] == span[0] and span[1] <= frame[1] <= span[2]


def functions_of(tree: Path, paths: set[str]) -> dict[tuple[str, int], str]:
    """Return qualified names by path and first line, including decorators, for files that are not tests."""
    found: dict[tuple[str, int], str] = {}

    def visit(node: ast.AST, path: str, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                line = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
                name = f"{prefix}{child.name}"
                others = [
                    place
                    for place, known in found.items()
                    if place[0] == path and known.split("#")[0] == name
                ]
                found[path, line] = f"{name}#{len(others) + 1}" if others else name
                visit(child, path, f"{prefix}{child.name}.<locals>.")
            elif isinstance(child, ast.ClassDef):
                visit(child, path, f"{prefix}{child.name}.")
            else:
                visit(child, path, prefix)

    with tarfile.open(tree) as tar:
        for path in sorted(paths & set(tar.getnames())):  # code compiled by doctests has a special file name
            name = Path(path).name
            if (
                name.startswith("test")
                or name == "conftest.py"
                or {"tests", "test", "testing"} & set(Path(path).parts)
            ):
                continue
            file = tar.extractfile(path)
            assert file is not None
            visit(ast.parse(file.read()), path, "")
    return found


def rank(
    own: tuple[str, int],
    failing: frozenset[str],
    functions: dict[tuple[str, int], str],
    entered: dict[str, list[str]],
) -> float | None:
    """Return the Ochiai rank of `own` among the functions; None if no failing test entered it."""
    values = {}
    for place in functions:
        tests = frozenset(entered.get(f"{place[0]}:{place[1]}", ()))
        both = len(tests & failing)
        values[place] = both / sqrt(len(failing) * len(tests)) if both else 0.0
    if not values[own]:
        return None
    above = sum(value > values[own] for value in values.values())
    return above + (1 + sum(value == values[own] for value in values.values())) / 2


def is_good(told: dict[str, Any], band: tuple[int, int]) -> bool:
    failing = told["failing"]
    return (
        band[0] <= failing <= band[1] and 2 * told["assertion"] >= failing and 2 * told["through"] <= failing
    )


def print_table(rows: Rows) -> None:
    every = [told for group in rows.values() for told in group]
    print(
        "| library | mode | corruptions | good, 5 to 40 | good, 2 to 15 | rank, median | above 5 | stated otherwise |"
    )
    print("|---" * 8 + "|")
    for name, group in [*sorted(rows.items()), *totals(rows), (("all", ""), every)]:
        ranks = [told["rank"] for told in group if told["rank"] is not None]
        goods = [sum(is_good(told, band) for told in group) for band in BANDS]
        otherwise = sum(told["stated"]["good"] != is_good(told, BANDS[0]) for told in group)
        middle = f"{median(ranks):.1f}" if ranks else "-"
        print(f"| {name[0]} | {name[1]} | {len(group)} | {goods[0]} | {goods[1]} | {middle} |"
              f" {sum(rank > 5 for rank in ranks)} of {len(ranks)} | {otherwise} |")  # fmt: skip


def totals(rows: Rows) -> list[tuple[tuple[str, str], list[dict[str, Any]]]]:
    modes = sorted({mode for _, mode in rows})
    return [
        (("all", mode), [told for key, group in rows.items() if key[1] == mode for told in group])
        for mode in modes
    ]


if __name__ == "__main__":
    main()
