"""Measures the structure of the source: `python tests/architecture/measures.py [ROOT] [--list]`.

Prints one line a measure. `--list` adds what is behind each number. Product files are the modules of the four folders
without the demo's library and the attack programs, which are data.
"""

from __future__ import annotations

import argparse
import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import networkx

FOLDERS = ("core", "sandbox", "sessions", "tui")
DATA = ("demo/library", "attacks/escapes/", "attacks/reports/", "attacks/trees/")
SMALL = 80
"""Lines below which a module that one other uses is counted as a piece of it."""


@dataclass
class Source:
    """The parsed modules of a checkout, by dotted name."""

    root: Path
    texts: dict[str, str] = field(default_factory=dict)
    trees: dict[str, ast.Module] = field(default_factory=dict)
    packages: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for folder in FOLDERS:
            for path in sorted((self.root / folder).rglob("*.py")):
                where = path.relative_to(self.root)
                if any(part in where.as_posix() for part in DATA):
                    continue
                parts = where.with_suffix("").parts
                name = ".".join(("gistpoint", *(parts[:-1] if parts[-1] == "__init__" else parts)))
                if parts[-1] == "__init__":
                    self.packages.add(name)
                self.texts[name] = path.read_text(encoding="utf-8")
                self.trees[name] = ast.parse(self.texts[name])

    def modules(self) -> list[str]:
        """The modules that hold something: not the `__init__` that is a docstring alone."""
        return [name for name, text in self.texts.items() if len(text.splitlines()) > 2]

    def classes(self) -> Iterator[tuple[str, ast.ClassDef]]:
        """Every class at the top of a module, with the module's name."""
        for name, tree in self.trees.items():
            for node in tree.body:
                if isinstance(node, ast.ClassDef):
                    yield name, node


def imports(source: Source) -> networkx.DiGraph[str]:
    """Which module imports which, with imports inside functions and those for type checkers alone."""
    graph: networkx.DiGraph[str] = networkx.DiGraph()
    graph.add_nodes_from(source.texts)
    for name, tree in source.trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                inner = {f"{node.module}.{a.name}" for a in node.names} & set(source.texts)
                used = inner or {node.module} & set(source.texts)
                if inner and len(inner) < len(node.names):
                    used |= {node.module}
            elif isinstance(node, ast.Import):
                used = {a.name for a in node.names} & set(source.texts)
            else:
                continue
            graph.add_edges_from((name, other) for other in used if other != name)
    return graph


def circles(graph: networkx.DiGraph[str]) -> list[list[str]]:
    """Groups of modules or packages that import each other, directly or through others."""
    return [sorted(group) for group in networkx.strongly_connected_components(graph) if len(group) > 1]


def packages(graph: networkx.DiGraph[str], top: str) -> networkx.DiGraph[str]:
    """The imports between the packages directly inside one top folder; a module there counts as a package."""
    inner: networkx.DiGraph[str] = networkx.DiGraph()
    prefix = f"gistpoint.{top}."

    def package(name: str) -> str:
        return name.removeprefix(prefix).split(".")[0]

    for one, other in graph.edges:
        if one.startswith(prefix) and other.startswith(prefix) and package(one) != package(other):
            inner.add_edge(package(one), package(other))
    return inner


def line_kinds(source: Source) -> dict[str, int]:
    """How many lines of all modules are code, docstrings, comments and blank."""
    count = dict.fromkeys(("code", "docstrings", "comments", "blank"), 0)
    for name, tree in source.trees.items():
        documented: set[int] = set()
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            for statement in body if isinstance(body, list) else ():
                match statement:
                    case ast.Expr(value=ast.Constant(value=str())):
                        documented.update(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
        for number, line in enumerate(source.texts[name].splitlines(), 1):
            text = line.strip()
            kind = "comments" if text.startswith("#") else "code"
            count["docstrings" if number in documented else kind if text else "blank"] += 1
    return count


def pieces(source: Source, graph: networkx.DiGraph[str]) -> list[str]:
    """Modules below `SMALL` lines that exactly one other module uses."""
    small = [m for m in source.modules() if len(source.texts[m].splitlines()) < SMALL and graph.in_degree(m) == 1]
    return [f"{m} <- {next(iter(graph.predecessors(m)))}" for m in sorted(small)]


def shared_class_names(source: Source) -> dict[str, list[str]]:
    """Public class names that more than one module defines, with those modules."""
    where: dict[str, list[str]] = defaultdict(list)
    for module, node in source.classes():
        if not node.name.startswith("_"):
            where[node.name].append(module)
    return {name: sorted(modules) for name, modules in sorted(where.items()) if len(modules) > 1}


def screen_depths(source: Source) -> dict[str, int]:
    """How many classes of ours stand between each screen and `BaseScreen`, the base of all, itself counted."""
    bases = {node.name: [ast.unparse(b).split("[")[0] for b in node.bases] for _, node in source.classes()}
    bases.pop("BaseScreen", None)

    def depth(name: str) -> int:
        return 1 + max((depth(base) for base in bases[name]), default=0) if name in bases else 0

    return {name: depth(name) for name in sorted(bases) if name.endswith("Screen")}


def mode_tests(source: Source) -> list[str]:
    """Comparisons that ask for a task's mode, by module and line."""
    found = []
    for module, tree in source.trees.items():
        for node in ast.walk(tree):
            asked = isinstance(node, ast.Compare | ast.MatchValue) and (
                "Mode." in ast.unparse(node) or "mode" in ast.unparse(node).split()
            )
            if asked or (isinstance(node, ast.Attribute) and node.attr == "is_gist"):
                found.append(f"{module}:{node.lineno}")
    return found


def main() -> None:
    """Print the measures of the checkout at ROOT, by default this one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[2])
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    source = Source(options.root)
    graph = imports(source)
    kinds = line_kinds(source)
    print(f"lines: {sum(kinds.values())} (" + ", ".join(f"{n} {kind}" for kind, n in kinds.items()) + ")")
    print(f"modules: {len(source.modules())}")
    depths = screen_depths(source)
    listed = {
        f"modules below {SMALL} lines that one other uses": pieces(source, graph),
        "import circles of modules": [", ".join(group) for group in circles(graph)],
        **{
            f"import circles of packages in {top}": [", ".join(g) for g in circles(packages(graph, top))]
            for top in FOLDERS
        },
        "public class names with two meanings": [f"{n}: {', '.join(m)}" for n, m in shared_class_names(source).items()],
        "places that ask for the mode": mode_tests(source),
        "screens more than two classes deep": [f"{n}: {d}" for n, d in depths.items() if d > 2],
    }
    for name, found in listed.items():
        print(f"{name}: {len(found)}")
        if options.list:
            print("".join(f"    {line}\n" for line in found), end="")


if __name__ == "__main__":
    main()
