"""Reference gists of real libraries: how many are faithful, how much of them ran and stands, and what each took.

    python tests/studies/reference_gists.py LAB [LIBRARY ...] [--count 10] [--seed 0] [--out results.jsonl]

LAB holds `libraries.json` (a list of objects with `name`, `folder`, `roots`, `owned`, `tests` and `args`), the unpacked
sdists, and a virtual environment `env` with pytest and what the libraries need, themselves left out.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gistpoint.core.gist.execution import line_execution
from gistpoint.core.gist.existence import ExistenceReason, Originals, line_existence
from gistpoint.core.gist.fidelity import compare_tests
from gistpoint.core.gist.reference.assembly import Codebase
from gistpoint.core.gist.reference.making import make_reference
from gistpoint.core.gist.reference.reduction import Verdict
from gistpoint.core.gist.reference.trace import read_trace
from gistpoint.core.gist.runs import Isolation, Raised, TestRun, TestsRun
from gistpoint.core.outcomes import Outcome, RunStatus

INJECT = Path(__file__).parents[2] / "sandbox" / "inject"
PYTEST = ["-p", "no:cacheprovider", "-p", "no:randomly", "--assert=plain", "-q"]


@dataclass
class Library:
    name: str
    folder: Path
    roots: list[str]
    owned: list[str]
    tests: list[str]
    args: list[str] = field(default_factory=list)
    env: str = "env"


SERVER = """
import json, os, runpy, signal, sys
import pytest, _pytest.python, _pytest.capture, _pytest.junitxml
launcher = runpy.run_path(sys.argv[1])
for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        os.chdir(job["cwd"])
        out = os.open(job["output"], os.O_WRONLY | os.O_CREAT, 0o644)
        os.dup2(out, 1), os.dup2(out, 2), os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        status = 1
        try:
            status = launcher["main"](job["configuration"])
        except SystemExit as leaving:
            status = leaving.code if isinstance(leaving.code, int) else 1
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            sys.stdout.flush(), sys.stderr.flush()
            os._exit(status)
    def late(number, frame):
        os.killpg(child, signal.SIGKILL)
    signal.signal(signal.SIGALRM, late)
    signal.alarm(int(job["timeout"]))
    _, status = os.waitpid(child, 0)
    signal.alarm(0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


class Server:
    """A process with pytest loaded, that forks for each run."""

    def __init__(self, python: Path) -> None:
        variables = {"PATH": "/usr/bin:/bin", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
        variables |= {"HOME": "/nonexistent", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        command = [str(python), "-P", "-c", SERVER, str(INJECT / "launcher.py")]
        self.process = subprocess.Popen(
            command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, cwd: Path, configuration: Mapping[str, Any], timeout: float = 90) -> tuple[int | None, str]:
        assert self.process.stdin
        assert self.process.stdout
        with tempfile.TemporaryDirectory() as name:
            output = Path(name, "output")
            job = {"cwd": str(cwd), "output": str(output), "configuration": configuration, "timeout": timeout}
            self.process.stdin.write(json.dumps(job) + "\n")
            self.process.stdin.flush()
            status = int(self.process.stdout.readline())
            text = output.read_text(errors="replace") if output.exists() else ""
        return (None if status == -9 else status), text


def read_run(report: Path, status: int | None) -> TestsRun:
    tests: dict[str, TestRun] = {}
    events, collection, finished = [], None, False
    for text in report.read_text().splitlines() if report.exists() else []:
        entry = json.loads(text)
        if entry["event"] == "test":
            before = tests.get(entry["id"], TestRun(Outcome.PASSED))
            outcome = before.outcome
            if entry["outcome"] == "failed":
                outcome = Outcome.FAILED if entry["phase"] == "call" else Outcome.ERROR
            elif entry["outcome"] == "skipped":
                outcome = Outcome.XFAILED if entry["xfail"] else Outcome.SKIPPED
            elif entry["xfail"]:
                outcome = Outcome.XPASSED
            raised = Raised(**entry["raised"]) if entry["raised"] else before.raised
            tests[entry["id"]] = TestRun(
                outcome, entry["stdout"] or before.stdout, entry["stderr"] or before.stderr, raised, entry["phase"]
            )
        elif entry["event"] == "collection":
            collection = Raised("", entry["message"])
        elif entry["event"] == "finish":
            finished = True
        else:
            events.append(entry)
    isolation = Isolation(
        tuple(e["name"] for e in events if e["event"] == "import"),
        tuple(e["name"] for e in events if e["event"] == "read"),
    )
    state = RunStatus.FINISHED if finished else RunStatus.TIMED_OUT if status is None else RunStatus.CRASHED
    return TestsRun(state, tests, collection, isolation)


def other_tests_and_data(folder: str, names: list[str]) -> list[str]:
    return [n for n in names if n.startswith("test_") or not (n.endswith(".py") or Path(folder, n).is_dir())]


class Entrypoint:
    """One test of a library, its original runs, and the oracle for its gists."""

    def __init__(self, server: Server, library: Library, node: str) -> None:
        self.server, self.library, self.node = server, library, node
        self.path, _, rest = node.partition("::")
        self.qualname = rest.replace("::", ".")
        self.queries = 0

    def original(self, *, traced: bool = False) -> tuple[TestsRun, dict[str, Any] | None]:
        folder = self.library.folder
        with tempfile.TemporaryDirectory() as name:
            report, trace = Path(name, "report"), Path(name, "trace")
            configuration: dict[str, Any] = {
                "argv": ["pytest", *PYTEST, *self.library.args, f"--rootdir={folder}", self.node],
                "path": [str(folder / root) for root in self.library.roots],
                "report": str(report),
            }
            if traced:
                configuration |= {"trace_root": str(folder), "trace": str(trace)}
            status, _ = self.server.run(folder, configuration)
            return read_run(report, status), json.loads(trace.read_text()) if traced and trace.exists() else None

    def moved(self) -> TestsRun:
        """Run the test file alone, under another name, elsewhere, with the package and its conftest at hand."""
        folder = self.library.folder
        with tempfile.TemporaryDirectory() as name:
            report, place = Path(name, "report"), Path(name, "place")
            around = (folder / self.path).parent
            if around.name not in self.library.owned[:1]:
                shutil.copytree(around, place / "moved_tests", ignore=other_tests_and_data)
            else:
                (place / "moved_tests").mkdir(parents=True)
            shutil.copy(folder / self.path, place / "moved_tests" / "test_moved.py")
            for parent in [around, *around.parents][: len(around.relative_to(folder).parts) + 1]:
                if (parent / "conftest.py").exists() and not (place / "moved_tests/conftest.py").exists():
                    shutil.copy(parent / "conftest.py", place / "moved_tests/conftest.py")
            node = "moved_tests/test_moved.py::" + self.node.partition("::")[2]
            argv = ["pytest", *PYTEST, *self.library.args, f"--rootdir={place}", "-c", "/dev/null", node]
            roots = [str(folder / root) for root in self.library.roots]
            status, _ = self.server.run(place, {"argv": argv, "path": roots, "report": str(report)})
            return read_run(report, status)

    def run_gist(self, text: str) -> tuple[TestsRun, list[int], str]:
        self.queries += 1
        with tempfile.TemporaryDirectory() as name:
            place = Path(name, "place")
            place.mkdir()
            gist, report, trace = place / "test_gist.py", Path(name, "report"), Path(name, "trace")
            gist.write_text(text)
            Path(name, "empty.ini").write_text("[pytest]\n")
            alone = [f"--rootdir={place}", "-c", str(Path(name, "empty.ini"))]
            node = "test_gist.py::" + self.node.partition("::")[2]
            configuration = {
                "argv": ["pytest", *PYTEST, *self.library.args, "--noconftest", *alone, node],
                "report": str(report),
                "lines": str(gist),
                "trace": str(trace),
                "owned": self.library.owned,
                "forbidden": [str(self.library.folder)],
            }  # fmt: skip
            status, output = self.server.run(place, configuration, timeout=30)
            lines = json.loads(trace.read_text()) if trace.exists() else []
            return read_run(report, status), lines, output


def study(server: Server, library: Library, node: str, budget_s: float) -> dict[str, Any]:
    entry = Entrypoint(server, library, node)
    result: dict[str, Any] = {"library": library.name, "node": node}
    first, second = entry.original()[0], entry.original()[0]
    outcomes = {test.outcome for test in first.tests.values()}
    if first.status is not RunStatus.FINISHED or not outcomes or outcomes & {Outcome.FAILED, Outcome.ERROR}:
        return result | {"refused": "fails"}
    if outcomes <= {Outcome.SKIPPED}:
        return result | {"refused": "skipped"}
    if {i: t.outcome for i, t in first.tests.items()} != {i: t.outcome for i, t in second.tests.items()}:
        return result | {"refused": "flips"}
    if compare_tests([first, second], entry.moved()).differences:
        return result | {"refused": "depends on where its file lies"}
    _, data = entry.original(traced=True)
    if data is None:
        return result | {"refused": "no trace"}
    paths = [p for root in ["."] for p in (library.folder / root).rglob("*.py")]
    sources = {p.relative_to(library.folder).as_posix(): p.read_text(errors="replace") for p in paths}
    codebase = Codebase(sources, read_trace(data), frozenset(library.owned))
    last: dict[str, Any] = {}

    def oracle(text: str) -> Verdict:
        found, lines, output = entry.run_gist(text)
        fidelity = compare_tests([first, second], found)
        last.update(output=output, differences=[str(d)[:300] for d in fidelity.differences[:2]])
        last["isolation"] = [*found.isolation.refused_imports, *found.isolation.original_reads]
        return Verdict(fidelity.value == 1 and found.isolation.clean, frozenset(lines))

    start = time.monotonic()
    made = make_reference(
        codebase, entry.path, entry.qualname, oracle, out_of_time=lambda: time.monotonic() - start > budget_s
    )
    result |= {"seconds": round(time.monotonic() - start, 1), "queries": entry.queries, "calls": data["calls"]}
    result |= {"files": len(data["files"]), "faithful": made.faithful, "how": made.how, "first_text": made.text}
    if made.text and not made.faithful:
        oracle(made.text)
        result |= {"why": last, "reason": made.reason}
    if made.faithful:
        existence = line_existence(made.text, Originals(sources), test=entry.qualname)
        execution = line_execution(made.text, made.executed, test=entry.qualname)
        result |= {"existence": existence.rate, "execution": execution.rate, "lines": len(existence.lines)}
        result |= {"glue": len(existence.glue), "text": made.text}
        result["missing"] = [
            e.line.text for e in existence.lines if not e.exists and e.reason is not ExistenceReason.GLUE
        ]
        result["idle"] = [e.line.text for e in execution.lines if e.counts and not e.ran]
    return result


def collect(server: Server, library: Library) -> list[str]:
    argv = ["pytest", *PYTEST, *library.args, "--collect-only", f"--rootdir={library.folder}", *library.tests]
    roots = [str(library.folder / root) for root in library.roots]
    _, output = server.run(library.folder, {"argv": argv, "path": roots})
    nodes = [
        line.partition("[")[0].strip()
        for line in output.splitlines()
        if "::" in line and " " not in line.partition("[")[0].strip()
    ]
    return list(dict.fromkeys(nodes))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("lab", type=Path)
    parser.add_argument("libraries", nargs="*")
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=float, default=60)
    parser.add_argument("--node")
    parser.add_argument("--out", type=Path, default=Path("results.jsonl"))
    options = parser.parse_args()
    lab = options.lab.resolve()
    for entry in json.loads((lab / "libraries.json").read_text()):
        if options.libraries and entry["name"] not in options.libraries:
            continue
        library = Library(**{**entry, "folder": lab / entry["folder"]})
        server = Server(lab / library.env / "bin/python")
        nodes = [options.node] if options.node else collect(server, library)
        random.Random(options.seed).shuffle(nodes)
        made = 0
        for node in nodes:
            if made >= options.count:
                break
            result = study(server, library, node, options.budget)
            made += "refused" not in result
            with options.out.open("a") as out:
                out.write(json.dumps(result) + "\n")
            told = {k: v for k, v in result.items() if k not in ("text", "first_text", "idle", "missing", "why")}
            print(told, flush=True)


if __name__ == "__main__":
    main()
