"""Compares Harbor's rewards on exported tasks with gistpoint's verdicts, with Harbor's program and no Docker.

Usage: python tests/studies/harbor_runs.py FOLDER [--python PYTHON] [--repairs 4] [--gists 4] [--at-once 2]

FOLDER receives a virtual environment with Harbor, made with PYTHON (3.12 or newer), tasks of the demo and
tasks generated from its library, their exports, and Harbor's jobs. Everything complete in it is kept, so an
interrupted study continues. The solvers are Harbor's `oracle` and `nop`, and agents that leave a wrong or a
forged solution; with tools over MCP, one solves a task with gistpoint's tools alone. Each result is judged
again by `gistpoint rescore`. Prints a line for each trial, and the counts.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gist_tricks import fakes
from verifying import report_attack

from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.gist.answer import gist_answer
from gistpoint.core.kinds.gist.model import is_gist
from gistpoint.core.locations import Locations
from gistpoint.core.tasks.model import Answer, Task
from gistpoint.core.tasks.trees import repaired_tree
from gistpoint.core.trees import SourceTree
from gistpoint.sessions.tasks import TaskStore

HARBOR = "harbor==0.25.0"
TOKEN, VERDICT_TOKEN = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"
REPAIRS = ("sporvei/fares.py::percent_of", "sporvei/clock.py::parse_window")
GISTS = (
    "pytest tests/test_clock.py::test_no_duration_is_negative",
    "pytest tests/test_boards.py::test_an_empty_board",
    "pytest tests/test_fares.py::test_each_fare_is_rounded",
    "pytest tests/test_fares.py::test_cards_are_known",
)
"""The sources of generated tasks, in this order, if the demo has too few."""
FORGED_REPAIRS = (
    "equal_to_everything",
    "replace_the_test",
    "conftest_rewrites",
    "leave_with_success",
    "forge_records",
)
FORGED_GISTS = ("string", "packed", "written", "entries", "loader")


@dataclass(frozen=True)
class Study:
    """The folder of the study, and the settings for Harbor."""

    folder: Path
    python: str
    at_once: int

    @property
    def home(self) -> Path:
        """The home of the gistpoint programs that the study starts."""
        return self.folder / "home"

    def gistpoint(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run a command of gistpoint on the study's data."""
        command = [sys.executable, "-m", "gistpoint", *map(str, arguments)]
        known = {**os.environ, "GISTPOINT_HOME": str(self.home)}
        return subprocess.run(command, env=known, capture_output=True, text=True, check=False)

    def harbor(self) -> Path:
        """Return Harbor's program, which is installed if it is missing."""
        place = self.folder / "harbor"
        if not (place / "complete").exists():
            subprocess.run([self.python, "-m", "venv", "--without-pip", place], check=True)
            install = ["uv", "pip", "install", "--no-config", "--quiet", "--python", place / "bin" / "python"]
            subprocess.run([*install, HARBOR, "mcp<2"], check=True)
            (place / "complete").touch()
        return place / "bin" / "harbor"

    def tasks(self, repairs: int, gists: int) -> list[Task]:
        """Return tasks of the demo and, if these are too few, generated ones."""
        os.environ["GISTPOINT_HOME"] = str(self.home)
        locations = Locations.of_user()
        store = TaskStore(locations.tasks, demo=locations.demo)
        library = self.folder / "sporvei"
        if not library.exists():
            shutil.copytree(str(files("gistpoint.core.demo").joinpath("library")), library)
        demo = [
            store.find(name) for name in ("seats-together", "dear-tickets", "missed-trains", "whole-railway")
        ]
        found = {
            False: [one for one in demo if not is_gist(one)],
            True: [one for one in demo if is_gist(one)],
        }
        record = self.folder / "generated.json"
        made = json.loads(record.read_text("utf-8")) if record.exists() else {}
        for gist, count, sources in ((False, repairs, REPAIRS), (True, gists, GISTS)):
            for source in sources:
                if len(found[gist]) >= count:
                    break
                if source not in made:
                    wanted = ("gist", "new", library, "--entrypoint", source) if gist else (
                        "task", "new", library, "--function", source
                    )  # fmt: skip
                    ended = self.gistpoint(*wanted)
                    ids = re.findall(r"\b[0-9a-f]{64}\b|\b[0-9a-f]{12}\b", ended.stdout)
                    made[source] = ids[-1] if ended.returncode == 0 and ids else ""
                    if not made[source]:
                        print(
                            f"{source}: no task. {(ended.stderr or ended.stdout).strip()[-300:]}", flush=True
                        )
                    record.write_text(json.dumps(made), encoding="utf-8")
                if made[source]:
                    found[gist].append(store.find(made[source]))
        return [*found[False][:repairs], *found[True][:gists]]

    def exported(self, tasks: Sequence[Task], name: str, *options: str) -> Path:
        """Return the folder with tasks exported to Harbor."""
        place = self.folder / name
        if not (place / "complete").exists():
            shutil.rmtree(place, ignore_errors=True)
            ended = self.gistpoint(
                *("task", "export", *(task.id for task in tasks), "--to", "harbor", "-o", place),
                *("--with-solution", *options),
            )
            if ended.returncode:
                raise SystemExit(ended.stderr)
            (place / "complete").touch()
        return place

    def job(self, name: str, tasks: Path, count: int, *agent: str, reached: int = 0) -> Path:
        """Return the folder of Harbor's job, which is run if it is not complete."""
        place = self.folder / "jobs" / name
        results = [json.loads(file.read_text("utf-8")) for file in place.glob("*/result.json")]
        if sum(bool(result["verifier_result"]) for result in results) < count:
            shutil.rmtree(place, ignore_errors=True)
            here = str(Path(__file__).resolve().parent)
            settings = {"folder": str(self.folder / "roots"), "python": str(Path(sys.executable).resolve())}
            command = [
                str(self.harbor()),
                "run",
                "-p",
                str(tasks),
                "-o",
                str(self.folder / "jobs"),
                "--quiet",
            ]
            command += [
                "--job-name",
                name,
                "--yes",
                "-n",
                str(self.at_once),
                "--env",
                "harbor_environment:Sandboxed",
            ]
            for key, value in {**settings, "reached": reached}.items():
                command += ["--ek", f"{key}={value}"]
            known = {
                **os.environ,
                "PYTHONPATH": here,
                "GISTPOINT_TOKEN": TOKEN,
                "GISTPOINT_VERDICT_TOKEN": VERDICT_TOKEN,
                "HARBOR_TELEMETRY": "off",
            }
            log = self.folder / f"{name}.log"
            with log.open("w", encoding="utf-8") as output:
                subprocess.run([*command, *agent], env=known, stdout=output, stderr=output, check=False)
        return place


def prepared(tasks: Sequence[Task], folder: Path) -> Path:
    """Write a wrong and a forged solution of each task for the agents to upload; return `folder`."""
    for number, task in enumerate(tasks):
        answer = read_answer(task)
        for kind, works in (("wrong", wrong(task, answer)), ("forged", forged(task, answer, number))):
            for path, text in works.items():
                place = folder / task.short_id / kind / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text, encoding="utf-8")
    return folder


def wrong(task: Task, answer: Answer) -> Mapping[str, str]:
    """Return files that change the right place but do not solve the task."""
    if is_gist(task):
        known = gist_answer(answer)
        assert known.test is not None
        return {f"gist/{gist_file(task)}": f"def {known.test.qualname}():\n    raise ValueError\n"}
    target, given = answer.targets[0], SourceTree.open(task.tree_path)
    name = re.escape(target.qualname.rpartition(".")[2])
    found = {}
    text = given.read(target.path).decode()
    found[f"repo/{target.path}"] = re.sub(
        rf"(?m)^( *)(def {name}\()", r"\1@(lambda function: lambda *a, **k: None)\n\1\2", text, count=1
    )
    return found


def forged(task: Task, answer: Answer, number: int) -> Mapping[str, str]:
    """Return files that should pass without a solution."""
    if is_gist(task):
        known = gist_answer(answer)
        assert known.reference is not None
        assert known.test is not None
        tricks = fakes(known.reference.text, known.test.source, known.modules)
        name = next(
            name for name in FORGED_GISTS[number % len(FORGED_GISTS) :] + FORGED_GISTS if name in tricks
        )
        return {f"gist/{gist_file(task)}": tricks[name]}
    target = answer.targets[0]
    tree = report_attack(
        SourceTree.open(task.tree_path), target, f"{FORGED_REPAIRS[number % len(FORGED_REPAIRS)]}.py"
    )
    return {f"repo/{target.path}": tree.read(target.path).decode()}


def gist_file(task: Task) -> str:
    """Return the name of the file that the solver of a gist writes."""
    from gistpoint.core.kinds.registry import kind_of

    return str(kind_of(task).exported(task, read_answer(task)).file)


def tool_calls(task: Task, answer: Answer) -> list[tuple[str, Mapping[str, str]]]:
    """Return the calls that solve a task with gistpoint's tools."""
    if is_gist(task):
        known = gist_answer(answer)
        assert known.reference is not None
        return [("read_brief", {}), ("write_gist", {"content": known.reference.text}), ("submit_gist", {})]
    repaired = repaired_tree(SourceTree.open(task.tree_path), answer.targets)
    assert repaired is not None
    made: list[tuple[str, Mapping[str, str]]] = [("read_brief", {}), ("list_directory", {})]
    for target in answer.targets:
        if task.mode == "remove":
            made.append(("submit_attempt", {"func_code": target.original}))
        else:
            place = {"func_name": target.qualname, "file_path": target.path}
            made.append(("replace_function", {"func_code": target.original, **place}))
    return made


@contextmanager
def served(study: Study, task: Task, port: int) -> Iterator[None]:
    """Serve a task's tools over HTTP for the duration of the context."""
    command = [sys.executable, "-m", "gistpoint", "mcp", task.id, "--http", f"127.0.0.1:{port}"]
    known = {
        **os.environ,
        "GISTPOINT_HOME": str(study.home),
        "GISTPOINT_MCP_TOKEN": TOKEN,
        "GISTPOINT_VERDICT_TOKEN": VERDICT_TOKEN,
    }
    with (study.folder / "mcp.log").open("a", encoding="utf-8") as log:
        process = subprocess.Popen(
            command, env=known, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.PIPE
        )
        try:
            assert process.stderr is not None
            for line in process.stderr:
                log.write(line.decode("utf-8", "replace"))
                if line.startswith(b"serving"):
                    break
            yield
        finally:
            process.terminate()
            process.wait()


def compared(study: Study, name: str, job: Path, tasks: Sequence[Task], counts: Counter[str]) -> None:
    """Judge the results of a job again, and print each pair of verdicts."""
    ended = study.gistpoint("rescore", job, "--tasks", *(task.id for task in tasks), "--json")
    if ended.returncode not in (0, 1):
        print(f"{name}: {ended.stderr.strip()}", flush=True)
        counts["jobs without results"] += 1
        return
    document = json.loads(ended.stdout)
    for row in sorted(document["results"], key=lambda row: str(row["task"])):
        print(f"{name} {row['task'][:12]}: {row['theirs']}, {row['comparison']}", flush=True)
        counts["trials"] += 1
        counts[f"{name}: {plain(row)}"] += 1
        counts["rewards that are missing"] += row["theirs"]["solved"] is None
        counts["differ"] += row["comparison"].startswith("DIFFERS")
    counts["left out"] += len(document["left_out"])


def plain(row: Mapping[str, Any]) -> str:
    """Return both verdicts on a result in two words."""
    words = {True: "solved", False: "not", None: "none"}
    ours = row["ours"]["solved"] if row["ours"] else None
    return f"{words[row['theirs']['solved']]}/{words[ours]}"


def main() -> int:
    """Run the study; return 1 if a verdict differs, a reward is missing, or a job has no results, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", default="python3.12")
    parser.add_argument("--repairs", type=int, default=4)
    parser.add_argument("--gists", type=int, default=4)
    parser.add_argument("--at-once", type=int, default=2)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    study = Study(options.folder.resolve(), options.python, options.at_once)
    study.harbor()
    tasks = study.tasks(options.repairs, options.gists)
    exported = study.exported(tasks, "exported")
    works = prepared(tasks, study.folder / "works")
    counts: Counter[str] = Counter()
    agents = {"oracle": ("-a", "oracle"), "nop": ("-a", "nop")}
    for kind in ("wrong", "forged"):
        given = ("-a", "harbor_environment:Leaving", "--ak", f"folder={works}", "--ak", f"kind={kind}")
        agents[kind] = given
    for name, agent in agents.items():
        compared(study, name, study.job(name, exported, len(tasks), *agent), tasks, counts)
    for task in (tasks[0], tasks[-1]):
        by_tools(study, task, works, counts)
    print(", ".join(f"{word}: {count}" for word, count in sorted(counts.items())))
    return int(bool(counts["differ"] or counts["rewards that are missing"] or counts["jobs without results"]))


def by_tools(study: Study, task: Task, works: Path, counts: Counter[str]) -> None:
    """Solve a task with only the tools of gistpoint's server, and compare the reward."""
    calls = works / task.short_id / "tools" / "calls.json"
    calls.parent.mkdir(parents=True, exist_ok=True)
    calls.write_text(json.dumps(tool_calls(task, read_answer(task))), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    name = f"tools-{task.short_id}"
    shutil.rmtree(study.folder / f"exported-{name}", ignore_errors=True)
    url = f"http://127.0.0.1:{port}/mcp"
    exported = study.exported([task], f"exported-{name}", "--tools", "mcp", "--mcp-url", url)
    agent = ("-a", "harbor_environment:Leaving", "--ak", f"folder={works}", "--ak", "kind=tools")
    with served(study, task, port):
        job = study.job(name, exported, 1, *agent, reached=port)
    compared(study, "tools", job, [task], counts)


if __name__ == "__main__":
    sys.exit(main())
