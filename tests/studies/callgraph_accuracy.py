"""Compares the call graph with ground truth, with runs and with other programs.

    python tests/studies/callgraph_accuracy.py micro  SNIPPETS [--python PYTHON] [--pycg FOLDER]
    python tests/studies/callgraph_accuracy.py apps   EVALUATION [--python PYTHON] [--pycg FOLDER]
    python tests/studies/callgraph_accuracy.py runs   RECORD:FOLDER... [--python PYTHON] [--pycg FOLDER]
    python tests/studies/callgraph_accuracy.py speed  FOLDER... [--python PYTHON] [--pycg FOLDER]

SNIPPETS is the folder `micro-benchmark/snippets` of PyCG's repository; EVALUATION the folder `evaluation` of
Jarvis's, with six applications and their hand-made graphs; RECORD a file that
`gistpoint.sandbox.payload.calltrace` wrote while the suite of the package in FOLDER ran. None of them is part
of this project. `--python` names an interpreter in which code2flow and setuptools below 81 (which PyCG
imports) are installed, `--pycg` a checkout of PyCG. `--misses` prints what was missed and what was wrong.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from gistpoint.core.callgraph import CallGraph, build_call_graph, read_calls, read_folder, resolve_calls
from gistpoint.core.code.source_text import physical_lines

Edges = set[tuple[str, str]]

#: Snippets whose expected edges are wrong or never happen, and the two categories about built-ins and `eval`.
FLAWED = {
    "kwargs/chained_call",
    "mro/self_assignment",
    "decorators/nested_decorators",
    "dynamic/eval",
    "builtins/map",
}
LEFT_OUT = {"builtins", "dynamic"}

APPLICATIONS = {
    "bpytop": ("bpytop", ["bpytop.py"]),
    "furl": ("furl", ["furl/*.py"]),
    "sqlparse": ("sqlparse", ["sqlparse/**/*.py"]),
    "rich-cli": ("rich-cli/src", ["rich_cli/*.py"]),
    "TextRank4ZH": ("TextRank4ZH", ["textrank4zh/*.py"]),
    "sshtunnel": ("sshtunnel", ["sshtunnel.py"]),
}

_PYCG = """
import importlib.util, json, sys
sys.path.insert(0, sys.argv[1])
sys.setrecursionlimit(20000)
from pycg.pycg import CallGraphGenerator
from pycg import formats
generator = CallGraphGenerator(sys.argv[3:], sys.argv[2], -1, "call-graph")
generator.analyze()
json.dump(formats.Simple(generator).generate(), sys.stdout)
"""
_CODE2FLOW = """
import json, sys, logging
logging.disable(logging.CRITICAL)
from code2flow.engine import code2flow
out = sys.argv[1]
code2flow(sys.argv[2:], out, language="py", skip_parse_errors=True, no_trimming=True)
"""


def dotted(node_id: str) -> str:
    """Return a node's name in the benchmarks' notation: dotted, without `<locals>` and `<module>`."""
    path, _, qualname = node_id.partition("::")
    module = re.sub(r"(/?__init__)?\.py$", "", path).replace("/", ".")
    parts = [
        part for part in re.sub(r"#\d+", "", qualname).split(".") if part not in ("<locals>", "<module>")
    ]
    return ".".join([part for part in [module, *parts] if part])


def lambda_names(graph: CallGraph) -> dict[str, str]:
    """Return the nodes' names with lambdas numbered within each scope, as in the benchmarks."""
    names: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for node in graph.nodes.values():
        name = dotted(node.id)
        if name.endswith("<lambda>"):
            counts[name] += 1
            name = f"{name[:-1]}{counts[name]}>"
        names[node.id] = name
    return names


def own_edges(files: dict[str, bytes], *, keep_lambdas: bool) -> Edges:
    """Return the edges of gistpoint's graph, with the benchmarks' names."""
    graph = build_call_graph(files, keep_lambdas=keep_lambdas)
    names = lambda_names(graph)
    return {(names[edge.caller], names[edge.callee]) for edge in graph.edges}


def pycg_edges(python: str, checkout: str, folder: Path, files: Iterable[str], timeout: float) -> Edges:
    command = [python, "-P", "-c", _PYCG, checkout, ".", *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=True, cwd=folder)
    return {(caller, callee) for caller, callees in json.loads(done.stdout).items() for callee in callees}


def code2flow_edges(python: str, folder: Path, files: Iterable[str], timeout: float) -> Edges:
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "graph.json"
        command = [python, "-P", "-c", _CODE2FLOW, str(out), *(str(folder / file) for file in files)]
        subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=True, cwd=folder)
        graph = json.loads(out.read_text())["graph"]
    modules: dict[str, str] = {}
    for file in files:
        modules.setdefault(Path(file).stem, dotted(file + "::<module>"))
    names = {key: _code2flow_name(node["name"], modules) for key, node in graph["nodes"].items()}
    return {(names[edge["source"]], names[edge["target"]]) for edge in graph["edges"]}


def _code2flow_name(name: str, modules: dict[str, str]) -> str:
    """Return the name of one of code2flow's nodes in the benchmarks' notation.

    code2flow names a module by its file alone.
    """
    module, _, rest = name.partition("::")
    rest = rest.replace("(global)", "")
    return ".".join(part for part in (modules.get(module, module), rest) if part)


def cpu() -> float:
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    )


class Score:
    """The numbers of right, found and expected edges, summed over parts."""

    def __init__(self) -> None:
        self.right = self.found = self.wanted = 0
        self.complete = self.sound = self.exact = self.parts = 0
        self.seconds = 0.0

    def add(self, found: Edges, wanted: Edges) -> None:
        self.right += len(found & wanted)
        self.found += len(found)
        self.wanted += len(wanted)
        self.parts += 1
        self.complete += found <= wanted
        self.sound += wanted <= found
        self.exact += found == wanted

    def line(self, name: str) -> str:
        precision = 100 * self.right / self.found if self.found else 0.0
        recall = 100 * self.right / self.wanted if self.wanted else 0.0
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        return (
            f"{name:10} P {precision:5.1f}  R {recall:5.1f}  F1 {f1:5.1f}  edges {self.found:5} of {self.wanted:5}"
            f"  complete {self.complete} sound {self.sound} exact {self.exact} of {self.parts}  {self.seconds:.2f} s"
        )


Tool = tuple[str, "object"]


def tools(options: argparse.Namespace, *, keep_lambdas: bool) -> dict[str, object]:
    chosen: dict[str, object] = {
        "gistpoint": lambda folder, files: own_edges(
            {file: (folder / file).read_bytes() for file in files}, keep_lambdas=keep_lambdas
        )
    }
    if options.pycg and options.python:
        chosen["PyCG"] = lambda folder, files: pycg_edges(
            options.python, options.pycg, folder, files, options.timeout
        )
    if options.python:
        chosen["code2flow"] = lambda folder, files: code2flow_edges(
            options.python, folder, files, options.timeout
        )
    return chosen


def run_tool(tool: object, folder: Path, files: list[str], score: Score) -> Edges | str:
    start = cpu()
    try:
        found: Edges | str = tool(folder, files)  # type: ignore[operator]
    except subprocess.TimeoutExpired:
        found = "stopped"
    except subprocess.CalledProcessError as error:
        found = f"crash: {(error.stderr or '').strip().splitlines()[-1:]}"
    score.seconds += cpu() - start
    return found


def report(options: argparse.Namespace, name: str, part: str, found: Edges, wanted: Edges) -> None:
    if options.misses and name == "gistpoint":
        for edge in sorted(wanted - found):
            print(f"  missed {part}: {edge[0]} -> {edge[1]}")
        for edge in sorted(found - wanted):
            print(f"  wrong  {part}: {edge[0]} -> {edge[1]}")


def micro(options: argparse.Namespace) -> None:
    """Score every snippet that is neither flawed nor left out, on the edges between its own functions."""
    root = Path(options.paths[0])
    for name, tool in tools(options, keep_lambdas=True).items():
        score = Score()
        for main in sorted(root.glob("*/*/main.py")):
            part = main.parent.relative_to(root).as_posix()
            if part in FLAWED or part.split("/")[0] in LEFT_OUT:
                continue
            files = [path.relative_to(main.parent).as_posix() for path in sorted(main.parent.rglob("*.py"))]
            inside = {dotted(file + "::<module>").split(".")[0] for file in files}
            raw = json.loads((main.parent / "callgraph.json").read_text())
            wanted = keep(((a, b) for a, bs in raw.items() for b in bs), inside)
            analysed = files if name != "PyCG" else ["main.py"]
            found = run_tool(tool, main.parent, analysed, score)
            edges = keep(found, inside) if not isinstance(found, str) else set()
            score.add(edges, wanted)
            report(options, name, part, edges, wanted)
        print(score.line(name))


def keep(edges: Iterable[tuple[str, str]], inside: set[str]) -> Edges:
    return {(a, b) for a, b in edges if a.split(".")[0] in inside and b.split(".")[0] in inside}


def apps(options: argparse.Namespace) -> None:
    """Score the six applications on in-project edges to functions.

    Lambdas and class bodies are folded into their scope.
    """
    root = Path(options.paths[0])
    for name, tool in tools(options, keep_lambdas=False).items():
        score = Score()
        for app, (folder_name, patterns) in APPLICATIONS.items():
            folder = root / "dataset/macro_benchmark/pj" / folder_name
            files = sorted(
                p.relative_to(folder).as_posix() for pattern in patterns for p in folder.glob(pattern)
            )
            graph = build_call_graph({file: (folder / file).read_bytes() for file in files})
            functions = {dotted(node.id) for node in graph.nodes.values()}
            modules = {dotted(node.id) for node in graph.nodes.values() if node.is_module}
            raw = json.loads((root / "ground_truth/macro_benchmark" / app / "EA.json").read_text())
            truth = ((a, b) for a, bs in raw.items() for b in bs)
            wanted = folded(truth, functions, modules, strict=options.strict)
            found = run_tool(tool, folder, files, score)
            edges = (
                folded(found, functions, modules, strict=options.strict)
                if not isinstance(found, str)
                else set()
            )
            score.add(edges, wanted)
            report(options, name, app, edges, wanted)
            one = Score()
            one.add(edges, wanted)
            print("  " + one.line(app) + (f"  {found}" if isinstance(found, str) else ""))
        print(score.line(name))


def folded(
    edges: Iterable[tuple[str, str]], functions: set[str], modules: set[str], *, strict: bool
) -> Edges:
    """Return the edges with lambdas and class bodies folded into the enclosing scope.

    Edges to modules, classes and the outside are left out. Unless `strict`, so is an expected callee that is
    a method's name without its class, which no tool could find.
    """
    kept: Edges = set()
    tops = {module.split(".")[0] for module in modules}
    for caller, callee in edges:
        ends = []
        for end in (caller, callee):
            end = re.sub(r"\.<lambda\d*>.*", "", end)
            ends.append(end)
        if any(end.split(".")[0] not in tops for end in ends):
            continue
        source, target = ends
        while source not in functions and "." in source:
            source = source.rpartition(".")[0]
        if target in modules or (target not in functions and (not strict or _is_class(target, functions))):
            continue
        if "<lambda" in caller + callee and source == target:
            continue
        kept.add((source, target))
    return kept


def _is_class(name: str, functions: set[str]) -> bool:
    return any(other.startswith(name + ".") for other in functions) or name.rpartition(".")[2][:1].isupper()


def runs(options: argparse.Namespace) -> None:
    """Print the recall of the calls that ran, and which share of the edges between covered functions ran."""
    totals: dict[str, Counter[str]] = {}
    kinds: dict[str, Counter[str]] = {}
    for item in options.paths:
        record, _, folder_name = item.partition(":")
        folder = Path(folder_name)
        files = read_folder(folder)
        graph = build_call_graph(files)
        lines = physical_lines(Path(record).read_text("utf-8"))
        calls = list(resolve_calls(graph, read_calls(lines)))
        ran = {(a, b) for a, b, _ in calls if not graph.nodes[b].is_module and a != b}
        covered = {end for edge in ran for end in edge}
        names = {node.id: dotted(node.id) for node in graph.nodes.values()}
        wanted = {(names[a], names[b]) for a, b in ran}
        seen = {names[end] for end in covered}
        for edge in graph.edges:
            if edge.caller != edge.callee and edge.caller in covered and edge.callee in covered:
                for found in edge.found if len(edge.found) == 1 else ():
                    kind = kinds.setdefault(found, Counter())
                    kind["all"] += 1
                    kind["ran"] += (edge.caller, edge.callee) in ran
        for name, tool in tools(options, keep_lambdas=False).items():
            score = Score()
            found_edges = run_tool(tool, folder, sorted(files), score)
            if isinstance(found_edges, str):
                print(f"  {folder.name:16} {name:10} {found_edges}")
                continue
            edges = {edge for edge in found_edges if edge[0] != edge[1]}
            between = {(a, b) for a, b in edges if a in seen and b in seen}
            total = totals.setdefault(name, Counter())
            one = Counter(
                wanted=len(wanted), hit=len(edges & wanted), between=len(between), ran=len(between & wanted)
            )
            total.update(one)
            report(options, name, folder.name, between, wanted)
            print(f"  {folder.name:16} {name:10} {_shares(one)}")
    for name, total in totals.items():
        print(f"{name:12} {_shares(total)}")
    for kind, count in sorted(kinds.items()):
        print(
            f"  found only as {kind:12} {count['all']:5} of which ran {100 * count['ran'] / count['all']:5.1f} %"
        )


def _shares(count: Counter[str]) -> str:
    return (
        f"recall {100 * count['hit'] / max(count['wanted'], 1):5.1f} % of {count['wanted']:5}   "
        f"confirmed {100 * count['ran'] / max(count['between'], 1):5.1f} % of {count['between']:5}"
    )


def speed(options: argparse.Namespace) -> None:
    """Print the processor and wall seconds and the outcome of each tool, on the files that are not tests."""
    for folder_name in options.paths:
        folder = Path(folder_name)
        files = [file for file in read_folder(folder) if not re.search(r"(^|/)tests?/|(^|/)test_", file)]
        for name, tool in tools(options, keep_lambdas=False).items():
            score = Score()
            start = time.perf_counter()
            found = run_tool(tool, folder, files, score)
            outcome = f"{len(found)} edges" if not isinstance(found, str) else found
            wall = time.perf_counter() - start
            print(
                f"{folder.name:16} {name:10} {score.seconds:7.2f} s CPU {wall:7.2f} s wall  {outcome}",
                flush=True,
            )
    print(f"peak resident {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["micro", "apps", "runs", "speed"])
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--pycg")
    parser.add_argument("--python")
    parser.add_argument("--misses", action="store_true")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--timeout", type=float, default=300)
    options = parser.parse_args()
    {"micro": micro, "apps": apps, "runs": runs, "speed": speed}[options.what](options)


if __name__ == "__main__":
    main()
