"""Measures source trees.

usage: python tests/architecture/measures.py [ROOT] [--list] [--tighten] [--anchors FOLDER ...]

Prints the shape of the checkout at ROOT, by default this one, and below it that of any package's folder
(`--anchors`). Then prints each measure next to its limit in `numbers.toml`, and each room's code lines next
to its budget. `--list` adds the places behind each measure; `--tighten` also writes the numbers that have
improved into `numbers.toml`.

What is counted:

- **code lines** are neither blank, nor a comment alone, nor part of a string that is a statement (a
  docstring);
- the **cyclomatic complexity** of a function is 1, and 1 more for each `if`, `elif`, conditional expression,
  loop, `except`, `and`, `or`, `case`, and `for` and `if` of a comprehension. A nested function is counted
  separately, a lambda with the function around it;
- **decisions** are the complexities less one, added up;
- a **room** is a folder in one of the four folders, with its whole content: `core/agents`, `tui/screens`;
- **words that slide back** are those of `WORDS` and `PHRASES`, wherever they occur in a module: in its names,
  its docstrings and comments, and in the text that it prints. `told_apart` and `ToldApart` both contain the
  word `told`. A phrase is found only within a line.

Product files are the modules of the four folders and those next to the links to them, without the demo's
library and the attack programs, which are data. The tests of other packages are left out. Each module is
parsed and walked once, and its tree is not kept.
"""

from __future__ import annotations

import argparse
import ast
import math
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import networkx

FOLDERS = ("core", "sandbox", "sessions", "tui")
DATA = (
    "core/demo/library/",
    *(f"sandbox/attacks/{kind}/" for kind in ("commands", "escapes", "reports", "trees")),
)
"""The files in the four folders that are data, not modules of gistpoint."""
NUMBERS = Path(__file__).with_name("numbers.toml")
SMALL = 80
"""The number of lines below which a module that only one other uses counts as a part of the other."""
COMPLEX = 15
"""The highest cyclomatic complexity that a function should have."""
DENSE = 0.25
"""The decisions per code line that every room may have; only rooms well above have their own numbers."""
ROOM = 500
"""The number of code lines from which the density of a room is meaningful."""
SCREEN_CLASSES = 2
"""The maximum number of gistpoint's classes from a screen up to `BaseScreen`, which does not count."""

WORDS = frozenset(
    {"told", "said", "stands", "beside", "lack", "lacks", "lacking", "mend", "mends", "mended", "anew"}
    | {"comfort", "comforts", "desk", "bench", "benches"}
    | {"judgment", "judgments", "journaled", "organizer", "organizers", "enrollment"}
    | {"penalized", "recognized", "recognizes", "labeled", "modeled", "favor", "neighbor", "neighbors"}
)
"""Words that were once used instead of plainer ones, such as `reports`, `missing`, `fix` and `harness`.

American spellings of words that names and messages spell in the British way are among them.
"""

PHRASES = re.compile(
    r"[,;:] the (?:\w+est|(?:most|least|best) \w+|best)(?: one)? first\b"
    r"|\"{3}(?:number|maximum|minimum|largest|smallest|size) of\b"
    r"|\b(?:"  # one test of all others, so that most places in a line are passed over at once
    r"white space\b|look-ups?\b|empty texts?\b|(?:file|decision) of yours\b|jobs at work\b"
    r"|\d+ %(?=[.,;:)\"]| (?:interval|of|to|and|less|more)\b)"
    r"|(?:mistake|event|action)s? of the user\b|hardly (?:a|fits?)\b|at any margin\b"
    r"|a text\b(?! (?:area|column|editor|field|file|measure|part|view)\b)|texts of\b"
    r"|an? \w+ of (?:its|their) own\b|\w+s of their own\b|what is typed\b"
    r"|number of (?:characters|bytes|columns) of\b|an own\b"
    r"|the event that\b[^.]*\b(?:was|were)\b|also if\b|of no use\b|befalls?\b"
    r"|(?:left out|escaped|included|reported) (?:is|are) (?:what|those)\b"
    r")",
    re.IGNORECASE,
)
"""Phrases that were once used for `whitespace`, `newest first`, `95%`, `a user error` and the like.

A text is a string, code, a cell or a gist; a thing of its own is a separate one; `also if` is `even if` or
`including`. A docstring that begins with a number or a size begins with its article.
"""

_WORD = re.compile(r"[A-Z]?[a-z]+")
_A_KIND = re.compile(r"\bkinds[./](?:gist|repair)\b")
_A_SKIP = re.compile(r"#\s*fmt:\s*skip")


class Function(NamedTuple):
    """A function or method: its place, its lines and its cyclomatic complexity."""

    module: str
    name: str
    line: int
    lines: int
    complexity: int


class Class(NamedTuple):
    """A class at the top of a module, with its bases as they are written."""

    name: str
    bases: tuple[str, ...]


class Lines(NamedTuple):
    """The numbers of a file's lines of each kind."""

    code: int
    docstrings: int
    comments: int
    blank: int


@dataclass(frozen=True)
class Module:
    """The findings of one walk over a module; places are line numbers."""

    name: str
    path: str
    lines: Lines
    functions: tuple[Function, ...]
    classes: tuple[Class, ...]
    imports: tuple[tuple[str, ...], ...]
    """The full names that each import statement imports."""
    asking_mode: tuple[int, ...]
    naming_kind: tuple[int, ...]
    unformatted: tuple[int, ...]
    sliding: tuple[tuple[int, str], ...]
    """The lines with words that slide back, each with its word."""

    @property
    def length(self) -> int:
        """The number of all lines of the file."""
        return sum(self.lines)

    @property
    def room(self) -> str:
        """The folder in one of the four folders, or that folder itself for a module directly inside it."""
        return "/".join(self.path.split("/")[:-1][:2])


_DECISIONS: Mapping[type[ast.AST], Callable[[Any], int]] = {
    **dict.fromkeys((ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler), lambda _: 1),
    ast.match_case: lambda _: 1,
    ast.BoolOp: lambda node: len(node.values) - 1,
    ast.comprehension: lambda node: 1 + len(node.ifs),
}


def read_module(name: str, path: str, text: str) -> Module:
    """Parse a module and walk it once."""
    tree = ast.parse(text)
    functions: list[tuple[ast.FunctionDef | ast.AsyncFunctionDef, list[int]]] = []
    imports: list[tuple[int, tuple[str, ...]]] = []
    strings: list[ast.Constant] = []
    statements: set[ast.expr] = set()
    asking: list[int] = []
    todo: list[tuple[ast.AST, list[int]]] = [(tree, [0])]
    while todo:
        node, complexity = todo.pop()
        match node:
            case ast.Name() | ast.Load() | ast.Store():
                continue
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                complexity = [1]
                functions.append((node, complexity))
            case ast.Constant(value=str()):
                strings.append(node)
            case ast.Expr(value=ast.Constant(value=str())):
                statements.add(node.value)
            case ast.Import() | ast.ImportFrom():
                imports.append((node.lineno, _imported(node)))
            case ast.Compare() | ast.MatchValue() | ast.Attribute(attr="is_gist") if _asks_mode(node):
                asking.append(node.lineno)
        if decided := _DECISIONS.get(type(node)):
            complexity[0] += decided(node)
        todo.extend([(child, complexity) for child in ast.iter_child_nodes(node)])
    kinds = {node.lineno for node in strings if node not in statements and _A_KIND.search(str(node.value))}
    lines = text.splitlines()
    return Module(
        name=name,
        path=path,
        lines=_line_kinds(lines, [node for node in strings if node in statements]),
        functions=tuple(
            Function(name, node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1, count)
            for node, (count,) in functions
        ),
        classes=tuple(
            Class(node.name, tuple(ast.unparse(base).split("[")[0] for base in node.bases))
            for node in tree.body
            if isinstance(node, ast.ClassDef)
        ),
        imports=tuple(names for _, names in imports),
        asking_mode=tuple(sorted(asking)),
        naming_kind=tuple(
            sorted(kinds | {line for line, names in imports if _A_KIND.search(" ".join(names))})
        ),
        unformatted=tuple(number for number, line in enumerate(lines, 1) if _A_SKIP.search(line)),
        sliding=tuple((number, word) for number, line in enumerate(lines, 1) for word in _sliding(line)),
    )


def _sliding(line: str) -> list[str]:
    words = [word.lower() for word in _WORD.findall(line) if word.lower() in WORDS]
    return words + [phrase.lower() for phrase in PHRASES.findall(line)]


def _imported(node: ast.Import | ast.ImportFrom) -> tuple[str, ...]:
    before = f"{node.module}." if isinstance(node, ast.ImportFrom) and node.module and not node.level else ""
    return tuple(before + item.name for item in node.names)


def _asks_mode(node: ast.AST) -> bool:
    """Return whether a node asks for a task's mode: by a member of `Mode`, a mode's name, or `is_gist`."""
    match node:
        case ast.Attribute():
            return True
        case ast.Compare():
            sides = [node.left, *node.comparators]
            texts = any(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in sides)
            asked = [part for part in sides if isinstance(part, ast.Name) and part.id == "mode"]
            asked += [
                part for part in sides if texts and isinstance(part, ast.Attribute) and part.attr == "mode"
            ]
            if asked:
                return True
    return any(
        isinstance(part, ast.Attribute)
        and isinstance(part.value, ast.Name)
        and part.value.id.endswith("Mode")
        for part in ast.walk(node)
    )


def _line_kinds(lines: list[str], docstrings: Iterable[ast.Constant]) -> Lines:
    documented = {n for node in docstrings for n in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    others = [line.strip() for number, line in enumerate(lines, 1) if number not in documented]
    blank, comments = others.count(""), sum(line.startswith("#") for line in others)
    return Lines(len(others) - blank - comments, len(documented), comments, blank)


class Source:
    """The measured modules of a tree, by dotted name."""

    def __init__(self, root: Path, *, ours: bool = True) -> None:
        """Read the four folders at `root`; if not `ours`, the whole package in `root` without its tests."""
        self.root, self.modules = root, dict[str, Module]()
        for path in _product_files(root) if ours else root.rglob("*.py"):
            where = path.relative_to(root).as_posix()
            if where.startswith(DATA) if ours else _is_test(path.relative_to(root)):
                continue
            parts = ("gistpoint" if ours else root.name, *path.relative_to(root).with_suffix("").parts)
            parts = parts[:1] + parts[3:] if where.startswith("src/gistpoint/") else parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            try:
                self.modules[name] = read_module(name, where, path.read_text(encoding="utf-8"))
            except SyntaxError as error:  # another package may be written for a later Python
                if ours:
                    raise
                print(f"left out, since this Python can't parse it: {path}: {error}", file=sys.stderr)

    def holding(self) -> list[Module]:
        """Return the modules with content, without any `__init__` that has only a docstring."""
        return [module for module in self.modules.values() if module.length > 2]

    def functions(self) -> list[Function]:
        """Return every function of every module."""
        return [function for module in self.modules.values() for function in module.functions]


def _product_files(root: Path) -> list[Path]:
    """Return the modules of the four folders, and those next to the links to these folders."""
    return sorted(path for top in FOLDERS for path in (root / top).rglob("*.py")) + sorted(
        (root / "src/gistpoint").glob("*.py")
    )


def _is_test(path: Path) -> bool:
    return bool({"tests", "test"} & set(path.parts)) or path.name.startswith(("test_", "conftest"))


def imports(source: Source) -> networkx.DiGraph[str]:
    """Return which module imports which, including imports inside functions and for type checkers."""
    graph: networkx.DiGraph[str] = networkx.DiGraph()
    graph.add_nodes_from(source.modules)
    for module in source.modules.values():
        for names in module.imports:
            # A name denotes a module, or something defined in the module before the last dot.
            used = {name if name in source.modules else name.rpartition(".")[0] for name in names} & set(
                source.modules
            )
            graph.add_edges_from((module.name, other) for other in used if other != module.name)
    return graph


def circles(graph: networkx.DiGraph[str]) -> list[list[str]]:
    """Return the groups of modules or packages that import each other, directly or through others."""
    return [sorted(group) for group in networkx.strongly_connected_components(graph) if len(group) > 1]


def packages(graph: networkx.DiGraph[str], top: str) -> networkx.DiGraph[str]:
    """Return the imports between the packages directly inside one top folder.

    A module there counts as a package.
    """
    inner: networkx.DiGraph[str] = networkx.DiGraph()
    prefix = f"gistpoint.{top}."

    def package(name: str) -> str:
        return f"{top}/{name.removeprefix(prefix).split('.')[0]}"

    for one, other in graph.edges:
        if one.startswith(prefix) and other.startswith(prefix) and package(one) != package(other):
            inner.add_edge(package(one), package(other))
    return inner


def pieces(source: Source, graph: networkx.DiGraph[str]) -> list[str]:
    """Return the modules below `SMALL` lines that exactly one other module uses, without any `__init__`."""
    modules = [m for m in source.holding() if not m.path.endswith("/__init__.py")]
    small = [m.name for m in modules if m.length < SMALL and graph.in_degree(m.name) == 1]
    return [f"{name} <- {next(iter(graph.predecessors(name)))}" for name in sorted(small)]


def shared_class_names(source: Source) -> dict[str, list[str]]:
    """Return the public class names that more than one module defines, with these modules."""
    where: dict[str, list[str]] = defaultdict(list)
    for module in source.modules.values():
        for each in module.classes:
            if not each.name.startswith("_"):
                where[each.name].append(module.name)
    return {name: sorted(modules) for name, modules in sorted(where.items()) if len(modules) > 1}


def screen_depths(source: Source) -> dict[str, int]:
    """Return, for each screen, how many of gistpoint's classes lead up to `BaseScreen`, its own included."""
    bases = {each.name: each.bases for module in source.modules.values() for each in module.classes}
    bases.pop("BaseScreen", None)

    def depth(name: str) -> int:
        return 1 + max((depth(base) for base in bases[name]), default=0) if name in bases else 0

    return {name: depth(name) for name in sorted(bases) if name.endswith("Screen")}


def glossary_terms(root: Path) -> list[str]:
    """Return the terms that `docs/glossary.md` explains: the first cell of each row of its tables."""
    page = (root / "docs/glossary.md").read_text(encoding="utf-8")
    cells = [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("|")]
    return [cell for cell in cells if cell != "term" and not cell.startswith("---")]


def rooms(source: Source) -> dict[str, list[Module]]:
    """Return the modules of each room."""
    found: dict[str, list[Module]] = defaultdict(list)
    for module in source.modules.values():
        found[module.room].append(module)
    return dict(sorted(found.items()))


def code_lines(modules: Iterable[Module]) -> int:
    """Return the number of code lines of the modules."""
    return sum(module.lines.code for module in modules)


def density(modules: Iterable[Module]) -> float:
    """Return the decisions per code line of the modules, taken together."""
    held = list(modules)
    decisions = sum(function.complexity - 1 for module in held for function in module.functions)
    return decisions / max(code_lines(held), 1)


def faults(source: Source) -> dict[str, list[str]]:
    """Return the faults whose numbers may only fall, by their names under `counts` in `numbers.toml`."""
    graph, modules = imports(source), source.modules.values()
    outside = [
        module for module in modules if not module.path.startswith("core/kinds/") and module.naming_kind
    ]
    return {
        "modules below 80 lines that one other uses": pieces(source, graph),
        "places that ask for the mode": [f"{m.name}:{line}" for m in modules for line in m.asking_mode],
        "modules outside core/kinds that name a kind": [
            f"{m.name}:{','.join(map(str, m.naming_kind))}" for m in outside
        ],
        "circles of modules": [", ".join(group) for group in circles(graph)],
        "circles of packages": [
            ", ".join(group) for top in FOLDERS for group in circles(packages(graph, top))
        ],
        "functions above 15 in cyclomatic complexity": [
            f"{f.module}.{f.name}:{f.line}: {f.complexity}"
            for f in source.functions()
            if f.complexity > COMPLEX
        ],
        "terms of the glossary": glossary_terms(source.root),
        "words that slide back": [f"{m.name}:{line}: {word}" for m in modules for line, word in m.sliding],
        "lines that overrule the formatter": [f"{m.name}:{line}" for m in modules for line in m.unformatted],
        "public class names with two meanings": [
            f"{n}: {', '.join(m)}" for n, m in shared_class_names(source).items()
        ],
        "screens more than two classes deep": [
            name for name, depth in screen_depths(source).items() if depth > SCREEN_CLASSES
        ],
    }


def densities(source: Source) -> dict[str, float]:
    """Return the decisions per code line of all modules, and of the rooms that exceed `DENSE`.

    Only rooms of at least `ROOM` code lines are measured.
    """
    found = {"all": density(source.modules.values())}
    return found | {
        name: density(modules)
        for name, modules in rooms(source).items()
        if code_lines(modules) >= ROOM and density(modules) > DENSE
    }


def comments(source: Source) -> float:
    """Return the number of comment lines per 100 code lines."""
    return 100 * sum(m.lines.comments for m in source.modules.values()) / code_lines(source.modules.values())


class Held(NamedTuple):
    """A number of `numbers.toml`: the limit and, for a raised limit, the previous number and the reason."""

    limit: float
    was: float | None = None
    because: str = ""


def held(section: str, text: str | None = None) -> dict[str, Held]:
    """Return the numbers of one section of `numbers.toml`, or of its `text`."""
    table = tomllib.loads(NUMBERS.read_text(encoding="utf-8") if text is None else text)[section]
    return {
        name: Held(value["limit"], value["was"], value["because"]) if isinstance(value, dict) else Held(value)
        for name, value in table.items()
    }


def count_slack(number: float, found: int) -> int:
    """Return how far a count may be below its number before the number has to follow.

    This is a twentieth, and at least 5; a fault that no longer occurs has no slack.
    """
    return max(5, math.ceil(number / 20)) if found else 0


DENSITY_SLACK = 0.02
COMMENT_SLACK = 0.1


def doubts(source: Source, text: str | None = None) -> list[str]:
    """Return a line for each number that the source exceeds, or that lags behind the source."""
    lines: list[str] = []
    tighten = "run `python tests/architecture/measures.py --tighten`"
    counts, found = held("counts", text), faults(source)
    for name, (limit, _, _) in counts.items():
        places = found[name]
        if len(places) > limit:
            lines.append(f"{name}: {len(places)}, at most {limit}:\n    " + "\n    ".join(places))
        elif len(places) < limit - count_slack(limit, len(places)):
            lines.append(f"{name}: only {len(places)}, the number is {limit}: {tighten}")
    dense, measured = held("decisions a code line", text), densities(source)
    for name in sorted(dense.keys() | measured.keys()):
        limit, value = dense.get(name, Held(DENSE)).limit, measured.get(name, DENSE)
        most = limit if name == "all" else limit + DENSITY_SLACK
        if value > most:
            lines.append(f"decisions a code line in {name}: {value:.4f}, at most {most:g}")
        elif value < limit - DENSITY_SLACK:
            lines.append(
                f"decisions a code line in {name}: only {value:.4f}, the number is {limit}: {tighten}"
            )
    (least,) = held("comment lines per 100 code lines", text).values()
    if comments(source) < least.limit:
        lines.append(f"comment lines per 100 code lines: {comments(source):.3f}, at least {least.limit}")
    elif comments(source) > least.limit + COMMENT_SLACK:
        lines.append(
            f"comment lines per 100 code lines: {comments(source):.3f}, the number is {least.limit}:"
            f" {tighten}"
        )
    return lines


def _round_up(value: float, digits: int) -> float:
    return math.ceil(round(value * 10**digits, 6)) / 10**digits


def tightened(source: Source, text: str) -> str:
    """Return the `text` of `numbers.toml` with every number that has improved; no number gets worse."""
    counts = {name: float(len(places)) for name, places in faults(source).items()}
    dense = {name: _round_up(value, 3 if name == "all" else 2) for name, value in densities(source).items()}
    now = {"counts": counts, "decisions a code line": dense}
    section, lines = "", list[str]()
    for line in text.splitlines():
        if header := re.fullmatch(r'\["?([^"\]]+)"?\]', line):
            section = header[1]
        number = re.match(r'"([^"]+)" = ', line)
        if number and section in now:
            name, known = number[1], held(section, text)[number[1]]
            if section == "decisions a code line" and name not in dense:
                continue  # the room no longer exceeds the general limit
            value = now[section][name]
            if value <= (known.limit if known.was is None else known.was):
                line = f'"{name}" = {value:g}'
            elif value < known.limit:
                line = f'"{name}" = {{ limit = {value:g}, was = {known.was:g}, because = "{known.because}" }}'
        elif number and section == "comment lines per 100 code lines":
            least = math.floor(round(comments(source) * 100, 6)) / 100
            if least > held(section, text)[number[1]].limit:
                line = f'"{number[1]}" = {least:g}'
        lines.append(line)
    return "\n".join(lines) + "\n"


HEADS = (
    "", "modules", "lines", "code", "docstrings", "comments", "module mean / max", "function mean / max",
    "decisions a code line", "CC > 15", "class names twice",
)  # fmt: skip


def shape(name: str, source: Source) -> tuple[str, ...]:
    """Return one row of the table of shapes."""
    modules, functions = source.holding(), source.functions()
    lengths, lines = [module.length for module in modules], [function.lines for function in functions]
    kinds = [
        sum(getattr(module.lines, kind) for module in modules) for kind in ("code", "docstrings", "comments")
    ]
    complex_ones = sum(function.complexity > COMPLEX for function in functions)
    return (
        name,
        f"{len(modules):,}",
        f"{sum(lengths):,}",
        *(f"{number:,}" for number in kinds),
        f"{sum(lengths) / len(lengths):.0f} / {max(lengths):,}",
        f"{sum(lines) / len(lines):.1f} / {max(lines):,}",
        f"{density(modules):.3f}",
        f"{complex_ones} ({100 * complex_ones / len(functions):.1f} %)",
        str(len(shared_class_names(source))),
    )


def table(rows: list[tuple[str, ...]]) -> str:
    """Return rows as a table in Markdown."""
    return "".join("| " + " | ".join(row) + " |\n" for row in [rows[0], ("---",) * len(rows[0]), *rows[1:]])


def budgets(source: Source) -> list[str]:
    """Return a line for each room: its code lines, its budget, and the excess."""
    planned, found = held("budgets"), rooms(source)
    lines = []
    for name in sorted(planned.keys() | found.keys()):
        code = code_lines(found.get(name, ()))
        budget = planned[name].limit if name in planned else 0
        over = f", {code - budget:,.0f} over" if code > budget else ""
        lines.append(
            f"{name}: {code:,} of {budget:,}{over}" if name in planned else f"{name}: {code:,}, no budget"
        )
    return lines


def main() -> None:
    """Print the measures of the checkout at ROOT; with `--tighten`, also write the improved numbers."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0] if __doc__ else "")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[2])
    parser.add_argument("--list", action="store_true", help="also print what is behind each measure")
    parser.add_argument("--tighten", action="store_true", help="write into numbers.toml what has improved")
    parser.add_argument("--anchors", nargs="+", type=Path, default=[], help="folders of other packages")
    options = parser.parse_args()
    source = Source(options.root)
    anchors = [shape(folder.name, Source(folder, ours=False)) for folder in options.anchors]
    print(table([HEADS, shape("gistpoint", source), *anchors]))
    counts = held("counts")
    for name, found in faults(source).items():
        print(f"{name}: {len(found)} (at most {counts[name].limit})")
        if options.list:
            print("".join(f"    {line}\n" for line in found), end="")
    dense = held("decisions a code line")
    for name, value in densities(source).items():
        print(f"decisions a code line in {name}: {value:.4f} (at most {dense.get(name, Held(DENSE)).limit})")
    (least,) = held("comment lines per 100 code lines").values()
    print(f"comment lines per 100 code lines: {comments(source):.3f} (at least {least.limit})")
    print("\ncode lines of each room, and its budget")
    print("\n".join(f"    {line}" for line in budgets(source)))
    if options.tighten:
        NUMBERS.write_text(tightened(source, NUMBERS.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
