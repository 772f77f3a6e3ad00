"""`repo_graph`: where a module, class or function is defined and used, by line."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from weakref import WeakKeyDictionary

from gistpoint.core.code.parsing import parse
from gistpoint.core.tools.corpus import corpus_of
from gistpoint.core.tools.declaration import (
    Activity,
    Argument,
    Group,
    Kind,
    RefusalError,
    Revealed,
    Tool,
    ToolContext,
    ToolOutput,
)
from gistpoint.core.trees import SourceTree


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One line on which a name is defined or used; `owner` is the qualified name before that of a definition."""

    path: str
    line: int
    kind: str
    """`def`, `class`, `module`, `variable`, `import`, `call` or `use`."""
    owner: str = ""


_known: WeakKeyDictionary[SourceTree, dict[str, Mapping[str, list[Occurrence]]]] = WeakKeyDictionary()
_lock = Lock()
_DEFINING = ("module", "class", "def", "variable")


def occurrences(tree: SourceTree, name: str) -> list[Occurrence]:
    """Return where the Python files of a tree define or use a name, sorted; a file is parsed once per tree."""
    found: list[Occurrence] = []
    with _lock:
        files = _known.setdefault(tree, {})
        for path, text in corpus_of(tree).texts:
            parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
            if parts[-1] == name:
                found.append(Occurrence(path, 1, "module", ".".join(parts[:-1])))
            if name in text:
                if path not in files:
                    files[path] = _parsed(path, text)
                found.extend(files[path].get(name, ()))
    return sorted(found, key=lambda one: (one.path, one.line))


def _parsed(path: str, text: str) -> Mapping[str, list[Occurrence]]:
    found: dict[str, list[Occurrence]] = {}
    try:
        module = parse(text)
        for name, occurrence in _walk(module, path, ()):
            found.setdefault(name, []).append(occurrence)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return found


def _walk(node: ast.AST, path: str, scope: tuple[str, ...]) -> Iterator[tuple[str, Occurrence]]:
    for child in ast.iter_child_nodes(node):
        inner = scope
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            kind = "class" if isinstance(child, ast.ClassDef) else "def"
            yield child.name, Occurrence(path, child.lineno, kind, ".".join(scope))
            inner = (*scope, child.name)
        else:
            yield from _uses(child, node, path, scope)
        yield from _walk(child, path, inner)


def _uses(node: ast.AST, parent: ast.AST, path: str, scope: tuple[str, ...]) -> Iterator[tuple[str, Occurrence]]:
    called = "call" if isinstance(parent, ast.Call) and parent.func is node else "use"
    match node:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            module = getattr(node, "module", None) or ""
            for name in dict.fromkeys(part for alias in names for part in alias.name.split(".")):
                yield name, Occurrence(path, node.lineno, "import")
            for name in module.split(".") if module else ():
                yield name, Occurrence(path, node.lineno, "import")
        case ast.Name(id=name, ctx=ast.Store()):
            kind = "variable" if not scope or isinstance(parent, ast.ClassDef) else "use"
            yield name, Occurrence(path, node.lineno, kind, ".".join(scope))
        case ast.Name(id=name):
            yield name, Occurrence(path, node.lineno, called)
        case ast.Attribute(attr=name):
            yield name, Occurrence(path, node.end_lineno or node.lineno, called)
        case _:
            pass


def _run(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    asked = arguments["name"].strip()
    owner, _, last = asked.replace("::", ".").removesuffix(".py").replace("/", ".").rpartition(".")
    found = occurrences(context.tree, last) if last else []
    defined = [one for one in found if one.kind in _DEFINING and _belongs(one, owner)]
    used = [one for one in found if one.kind not in _DEFINING]
    if not defined and not used:
        raise RefusalError(f"No Python file of the repository defines or uses {asked[:200]!r}.")
    texts = dict(corpus_of(context.tree).texts)
    limit, width = context.limits.search_matches, context.limits.search_line_characters
    rows = [f"{len(defined)} definitions and {len(used)} references of {asked}."]
    for one in [*defined, *used][:limit]:
        lines = texts[one.path].split("\n")
        text = lines[one.line - 1].strip()[:width] if one.line <= len(lines) else ""
        rows.append(f"  {one.path}:{one.line}  {one.kind}  {text}")
    if len(defined) + len(used) > limit:
        rows.append(f"  ... {len(defined) + len(used) - limit} more, not shown")
    paths = dict.fromkeys(one.path for one in [*defined, *used][:limit])
    return ToolOutput("\n".join(rows), revealed=Revealed(entries=tuple((path, "file") for path in paths)))


def _belongs(one: Occurrence, owner: str) -> bool:
    """Whether a definition fits what was asked for before the last dot: its class, its module, or both."""
    module = one.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    place = one.owner if one.kind == "module" else f"{module}.{one.owner}".rstrip(".")
    return not owner or f".{place}".endswith(f".{owner}")


REPO_GRAPH = Tool(
    name="repo_graph",
    description="Tell on which lines a module, class, function or variable is defined and used.",
    arguments=(Argument("name", Kind.NAME, "Name, such as `f`, `Class.method` or `package.module`."),),
    group=Group.INFO,
    activity=Activity.SEARCH,
    run=_run,
)
