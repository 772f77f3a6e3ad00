"""The tools of a gist: writing it, running, tracing and searching the codebase, scoring, and the hand-in."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from weakref import WeakKeyDictionary

from gistpoint.core.code.parsing import parse
from gistpoint.core.kinds.gist.reference.trace import Trace
from gistpoint.core.kinds.gist.text import EditError, written
from gistpoint.core.text import bounded
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
from gistpoint.core.tools.search_code import corpus_of
from gistpoint.core.trees import SourceTree


def accepted(context: ToolContext, tool: str, arguments: Mapping[str, str]) -> str:
    """Return the gist as a call makes it; raises `RefusalError` for one that can't be kept."""
    try:
        text = written(context.desk.text, tool, arguments) or ""
    except EditError as error:
        raise RefusalError(str(error)) from error
    longest = context.desk.settings.gist_characters
    if len(text) > longest:
        raise RefusalError(f"The gist would have {len(text)} characters; at most {longest} are taken.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RefusalError(f"The gist would hold half a character at {error.start}, which is no text.") from error
    return text


def counted(text: str) -> str:
    """Return the size of a gist in words."""
    lines = len(text.splitlines())
    return f"The gist has {lines} {'line' if lines == 1 else 'lines'} and {len(text)} characters."


def _write(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    return ToolOutput(counted(accepted(context, "write_gist", arguments)))


def _edit(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    return ToolOutput(counted(accepted(context, "edit_gist", arguments)))


WRITE_GIST = Tool(
    name="write_gist",
    description="Write the whole gist; what it held before is gone.",
    arguments=(Argument("content", Kind.CODE, "The text of the gist."),),
    group=Group.INFO,
    activity=Activity.OTHER,
    run=_write,
)

EDIT_GIST = Tool(
    name="edit_gist",
    description="Replace a text that stands in the gist exactly once.",
    arguments=(
        Argument("old", Kind.CODE, "The text to replace, with its spaces and line ends."),
        Argument("new", Kind.CODE, "What takes its place; empty to take it out."),
    ),
    group=Group.INFO,
    activity=Activity.OTHER,
    run=_edit,
)


MAX_COMMAND_CHARACTERS = 10_000


def _bash(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    command = arguments["command"]
    if not command.strip():
        raise RefusalError("The command is empty.")
    if len(command) > MAX_COMMAND_CHARACTERS or "\0" in command:
        raise RefusalError(f"A command has at most {MAX_COMMAND_CHARACTERS} characters, and no NUL among them.")
    output = context.desk.shell(command)
    if output.refused:
        raise RefusalError(output.refused)
    text = bounded(output.text, context.desk.settings.output_characters, what="output").rstrip("\n")
    ended = (
        f"The command ended as {output.status}." if output.exit_status is None else f"Exit status {output.exit_status}."
    )
    return ToolOutput(f"{ended}\n{text}".rstrip("\n"))


def _edit_and_execute(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    text = accepted(context, "edit_and_execute", arguments)
    if arguments["execute"] not in ("true", "false"):
        raise RefusalError("execute is 'true' or 'false'.")
    head = counted(text)
    if arguments["execute"] == "false":
        return ToolOutput(head)
    shown = bounded(context.desk.trial(text), context.desk.settings.output_characters, what="output")
    return ToolOutput(f"{head}\n\n{shown}".rstrip("\n"))


BASH = Tool(
    name="bash",
    description="Run a shell command in a copy of the repository. The gist lies in it too: as test_gist.py where the "
    "task's command is a test, else as gist.py. What the command changes is not kept.",
    arguments=(Argument("command", Kind.COMMAND, "The command, as a shell takes it."),),
    group=Group.INFO,
    activity=Activity.EXECUTE,
    run=_bash,
    runs_code=True,
)

EDIT_AND_EXECUTE = Tool(
    name="edit_and_execute",
    description="Write the whole gist, run the task's command on it alone, and see what that run shows.",
    arguments=(
        Argument("content", Kind.CODE, "The text of the gist."),
        Argument("execute", Kind.FLAG, "'true' to run it, 'false' to write it only.", default="true"),
    ),
    group=Group.INFO,
    activity=Activity.EXECUTE,
    run=_edit_and_execute,
    runs_code=True,
)


def _score(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    content = arguments["content"]
    return ToolOutput("", judged=accepted(context, "write_gist", arguments) if content else context.desk.text)


def _submit(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    return ToolOutput("", judged=context.desk.text)


SCORE_GIST = Tool(
    name="score_gist",
    description="Score the gist as it stands, or another text in its place, and change nothing. It costs no step.",
    arguments=(Argument("content", Kind.CODE, "Scored in place of the gist; empty for the gist itself.", default=""),),
    group=Group.INFO,
    activity=Activity.EXECUTE,
    run=_score,
    runs_code=True,
)

SUBMIT_GIST = Tool(
    name="submit_gist",
    description="Hand in the gist as it stands. It is scored, and the attempt ends.",
    arguments=(),
    group=Group.SUBMIT,
    activity=Activity.OTHER,
    run=_submit,
    runs_code=True,
)


MAX_FUNCTIONS = 2_000


def _trace(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    trace = context.desk.trace(arguments["command"].strip())
    called = [function for function in trace.functions if function.run]
    shown = called[:MAX_FUNCTIONS]
    lines = [f"{len(trace.files)} files and {len(called)} functions, in the order of first touch."]
    lines += ["", "Files:", *(f"  {path}" for path in trace.files), "", "Functions:"]
    lines += [f"  {function.path}:{function.line}  {function.qualname}" for function in shown]
    if len(called) > len(shown):
        lines.append(f"  ... {len(called) - len(shown)} more, not shown")
    return ToolOutput("\n".join(lines), revealed=_revealed(trace))


def _revealed(trace: Trace) -> Revealed:
    return Revealed(entries=tuple((path, "file") for path in trace.files))


TRACE = Tool(
    name="trace",
    description="Tell which files and functions a command touches on the repository, in the order of first touch.",
    arguments=(Argument("command", Kind.COMMAND, "A pytest or python command; empty for the task's own.", default=""),),
    group=Group.INFO,
    activity=Activity.VIEW,
    run=_trace,
    runs_code=True,
)


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


def _repo_graph(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
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
    run=_repo_graph,
)
