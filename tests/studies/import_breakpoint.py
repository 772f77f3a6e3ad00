"""Imports ten records in the form of the public data set for real libraries, and checks and solves the tasks.

    python tests/studies/import_breakpoint.py LAB [--damage-only]

Fetches the sdists, builds five remove and five discovery records from them, runs `gistpoint task import
breakpoint` and `gistpoint task check`, submits each task's original, then imports damaged copies of the first
two records, one for each kind of damage in `DAMAGES`. `--damage-only` does only the latter.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from breakpoint_records import record_of
from recorders import Memory

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.identity import Enrolment
from gistpoint.core.kinds.folder import read_answer, read_task
from gistpoint.core.kinds.repair.judge import RepairJudge
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.sandbox.environments.sources import Fetcher
from gistpoint.sandbox.environments.store import EnvironmentStore
from gistpoint.sandbox.ladder import choose
from gistpoint.sandbox.testruns import SuiteRunner


@dataclass(frozen=True)
class Library:
    url: str
    commit: str
    source: str
    pytest_args: tuple[str, ...]
    extra: tuple[str, ...] = ()


LIBRARIES = {
    "toolz": Library("https://github.com/pytoolz/toolz", "a" * 40, "toolz==1.2.0", ("toolz",)),
    "itsdangerous": Library(
        "https://github.com/pallets/itsdangerous.git",
        "b" * 40,
        "itsdangerous==2.2.0",
        ("tests",),
        ("freezegun",),
    ),
    "tabulate": Library(
        "https://github.com/astanin/python-tabulate.git",
        "c" * 40,
        "tabulate==0.10.0",
        ("test",),
        ("wcwidth",),
    ),
    "boltons": Library("https://github.com/mahmoud/boltons.git", "d" * 40, "boltons==26.2.0", ("tests",)),
    "jinja2": Library(
        "https://github.com/pallets/jinja.git", "e" * 40, "jinja2==3.1.6", ("tests",), ("trio",)
    ),
}
WIDEST = "max(_flat_list(s_widths))"
RECORDS: tuple[tuple[str, str, str, tuple[str, str] | None], ...] = (
    ("toolz", "toolz/itertoolz.py", "getter", None),
    ("toolz", "toolz/itertoolz.py", "groupby", ("in d.items():", "in sorted(d.items())[1:]:")),
    ("itsdangerous", "src/itsdangerous/encoding.py", "base64_decode", None),
    ("itsdangerous", "src/itsdangerous/signer.py", "Signer.unsign", (".rsplit(", ".split(")),
    ("tabulate", "tabulate/__init__.py", "_type", None),
    ("tabulate", "tabulate/__init__.py", "_align_column", ("max(max(_flat_list(s_widths)), minwidth)", WIDEST)),
    ("boltons", "boltons/iterutils.py", "remap", None),
    ("boltons", "boltons/ioutils.py", "SpooledStringIO.read", ("read(n, n)", "read(n, max(n, 1))")),
    ("jinja2", "src/jinja2/runtime.py", "LoopContext.__next__", None),
    ("jinja2", "src/jinja2/runtime.py", "LoopContext.index", ("self.index0 + 1", "self.index0 + 2")),
)  # fmt: skip


def edited(**changes: Any) -> Callable[[dict[str, Any]], Any]:
    def change(record: dict[str, Any]) -> Any:
        for dotted, value in changes.items():
            table = record
            *parents, last = dotted.split("__")
            for parent in parents:
                table = table[parent]
            if value is None:
                table.pop(last)
            else:
                table[last] = value
        return record

    return change


DAMAGES: tuple[tuple[str, int, Callable[[dict[str, Any]], Any]], ...] = (
    ("a list instead of a record", 0, lambda record: [record]),
    ("no repo", 0, edited(repo=None)),
    ("no url", 0, edited(repo__url=None)),
    ("no commit", 0, edited(repo__commit=None)),
    ("a branch for a commit", 0, edited(repo__commit="main")),
    ("no fpath", 0, edited(fpath=None)),
    ("a path that climbs out", 0, edited(fpath="../../etc/passwd.py")),
    ("an absolute path", 0, edited(fpath="/etc/x.py")),
    ("no Python file", 0, edited(fpath="README.rst")),
    ("a name that is none", 0, edited(function_name="group by")),
    ("no test_info", 0, edited(test_info=None)),
    ("a count that is a text", 0, edited(test_info__failed="7")),
    ("a metric that is a text", 0, edited(complexity_info__cyclomatic="many")),
    ("corruption without code", 1, edited(corruption__code=None)),
    ("corruption that broke nothing", 1, edited(corruption__score=1.0)),
    ("a file that is not there", 0, edited(fpath="toolz/gone.py")),
    ("a function that is not there", 0, edited(function_name="gone")),
    ("a file of the tests", 0, edited(fpath="toolz/tests/test_itertoolz.py", function_name="test_groupby")),
    ("a class", 0, edited(fpath="toolz/functoolz.py", function_name="Compose")),
    ("an ambiguous name", 0, edited(fpath="toolz/functoolz.py", function_name="__init__")),
    ("code that does not parse", 1, edited(corruption__code="def groupby(key, seq:\n    return")),
    ("code cut short", 1, lambda record: edited(corruption__code=record["corruption"]["code"][:200])(record)),
    ("another function's code", 1, edited(corruption__code="def other(key, seq):\n    return {}")),
    ("two definitions", 1, edited(corruption__code="def groupby(key, seq):\n    pass\n\ndef x():\n    pass")),
    ("another signature", 1, edited(corruption__code="def groupby(seq, key):\n    return {}")),
    (
        "a comment that tells",
        1,
        lambda record: edited(
            corruption__code=record["corruption"]["code"].replace("rv = {}", "rv = {}  # corrupted")
        )(record),
    ),
    (
        "code that changes nothing",
        1,
        lambda record: edited(
            corruption__code=record["corruption"]["code"].replace("sorted(d.items())[1:]", "d.items()")
        )(record),
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lab", type=Path)
    parser.add_argument("--damage-only", action="store_true")
    options = parser.parse_args()
    lab: Path = options.lab.absolute()
    lab.mkdir(parents=True, exist_ok=True)
    records = [record_in(lab, *row) for row in RECORDS]
    (lab / "records.json").write_text(json.dumps(records, indent=2))
    (lab / "sources.toml").write_text(
        "".join(
            f"[[source]]\nrepository = {json.dumps(item.url)}\nsource = {json.dumps(item.source)}\n"
            f"pytest_args = {json.dumps(item.pytest_args)}\nextra_requirements = {json.dumps(item.extra)}\n\n"
            for item in LIBRARIES.values()
        )
    )
    environment = {**os.environ, "GISTPOINT_HOME": str(lab / "home")}
    if not options.damage_only:
        imported(lab, environment)
    damaged(lab, environment, records)


def record_in(
    lab: Path, name: str, path: str, function: str, change: tuple[str, str] | None
) -> dict[str, Any]:
    library = LIBRARIES[name]
    folder = next((lab / name / "source").glob("*"), None) or Fetcher().fetch(library.source, lab / name)[1]
    return record_of(
        (folder / path).read_bytes(), path, function, url=library.url, commit=library.commit, change=change
    )


def gistpoint(environment: Mapping[str, str], *arguments: str) -> tuple[int, Any]:
    command = [sys.executable, "-m", "gistpoint", *arguments, "--json"]
    done = subprocess.run(command, env=dict(environment), stdout=subprocess.PIPE, text=True, check=False)
    return done.returncode, json.loads(done.stdout or "null")


def imported(lab: Path, environment: Mapping[str, str]) -> None:
    started = time.monotonic()
    sources = ["--sources", str(lab / "sources.toml")]
    code, answer = gistpoint(environment, "task", "import", "breakpoint", str(lab / "records.json"), *sources)
    print(f"import: exit code {code}, {time.monotonic() - started:.0f} s")
    for row in answer["records"]:
        print(f"{row['line']:>5} {row['function']:50} {row['outcome']:12} {row['detail']}")
        if row["task"]:
            clean = gistpoint(environment, "task", "check", row["task"])[1]
            task = read_task(lab / "home" / "data" / "tasks" / row["task"])
            print(
                f"      check {'clean' if clean['passed'] else 'NOT CLEAN'}; {solved(task, lab)}; {marks(task)}"
            )
    again = gistpoint(environment, "task", "import", "breakpoint", str(lab / "records.json"), *sources)
    print(f"again: exit code {again[0]}, {[row['outcome'] for row in again[1]['records']]}")


def solved(task: Task, lab: Path) -> str:
    """Submit the original as a solver would, and return in words whether it solved the task."""
    answer, time = read_answer(task), SystemTime()
    runner = SuiteRunner(choose(None, consented=True), EnvironmentStore(lab / "home" / "cache"))
    attempt = Attempt(task, RepairJudge(task, answer, runner), Memory(time), time)
    attempt.start(Enrolment())
    target = answer.targets[0]
    if task.mode is Mode.REMOVE:
        attempt.call("submit_attempt", {"func_code": target.original})
    else:
        arguments = {"func_code": target.original, "func_name": target.qualname, "file_path": target.path}
        attempt.call("replace_function", arguments)
    return (
        "solved by its original"
        if attempt.state.ending is not None and attempt.state.ending.reason == "solved"
        else "NOT SOLVED by its original"
    )


def marks(task: Task) -> str:
    return f"marks {read_answer(task).provenance['import']['marks']}"


def damaged(lab: Path, environment: Mapping[str, str], records: list[dict[str, Any]]) -> None:
    rows = [change(copy.deepcopy(records[number])) for _, number, change in DAMAGES]
    lines = [json.dumps(row) for row in rows]
    lines.append(lines[0][:-40])
    (lab / "damaged.jsonl").write_text("\n".join(lines) + "\n" + json.dumps(records[4]) + "\n")
    sources = ["--sources", str(lab / "sources.toml")]
    code, answer = gistpoint(
        environment, "task", "import", "breakpoint", str(lab / "damaged.jsonl"), *sources
    )
    names = [name for name, _, _ in DAMAGES] + ["a line cut short", "sound"]
    print(f"damaged: exit code {code}")
    for row in answer["records"]:
        print(
            f"{row['line']:>5} {names[row['line'] - 1]:32} {row['outcome']:12} {row['reason']:34} {row['detail']}"
        )


if __name__ == "__main__":
    main()
