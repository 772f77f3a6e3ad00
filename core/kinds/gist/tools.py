"""The tools of a gist: writing, running, tracing, searching the codebase, scoring, and the hand-in."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from gistpoint.core.code.parsing import DefinitionNode, parse
from gistpoint.core.code.source_text import physical_lines
from gistpoint.core.entrypoints.command import COMMAND_FILE, EntrypointError, EntrypointKind, parse_entrypoint
from gistpoint.core.entrypoints.programs import console_scripts
from gistpoint.core.entrypoints.runs import CommandOutput, EntrypointRunner, shown_run
from gistpoint.core.errors import TaskError
from gistpoint.core.kinds.gist.model import GistSettings, gist_settings, gist_task
from gistpoint.core.kinds.gist.trace import Trace, read_trace
from gistpoint.core.running import NEVER, CancelToken
from gistpoint.core.tasks.model import Task
from gistpoint.core.text import bounded
from gistpoint.core.tools.browsing import BROWSING
from gistpoint.core.tools.declaration import (
    Activity,
    Argument,
    ArgumentKind,
    Group,
    RefusalError,
    Revealed,
    Rewrite,
    Tool,
    ToolContext,
    ToolOutput,
)
from gistpoint.core.tools.search_code import corpus_of
from gistpoint.core.trees import SourceTree

if TYPE_CHECKING:
    from gistpoint.core.kinds.gist.answer import GistAnswer


GIST_BUFFER = "gist"
"""The name of the buffer in which a person types the gist (`edit_buffer` events)."""


def write_whole_gist(text: str, arguments: Mapping[str, Any]) -> str:
    """Return the gist after a call that writes the whole gist."""
    return str(arguments.get("content", ""))


def replace_passage(text: str, arguments: Mapping[str, Any]) -> str:
    """Return the gist after replacing one passage.

    Raises `RefusalError` if the passage is empty, or does not occur exactly once.
    """
    old = str(arguments.get("old", ""))
    new = str(arguments.get("new", ""))
    if not old:
        raise RefusalError("The text to replace is empty; write_gist writes the whole gist.")
    count = text.count(old)
    if count == 0:
        raise RefusalError("The text to replace is not in the gist.")
    if count > 1:
        raise RefusalError(
            f"The text to replace occurs {count} times in the gist; give more of what is around it."
        )
    return text.replace(old, new, 1)


@dataclass(frozen=True, slots=True)
class GistAccess:
    """The gist, its task and the runner, for the tools in one call."""

    task: Task
    answer: GistAnswer
    runner: EntrypointRunner
    tree: SourceTree
    text: str
    cancel: CancelToken = NEVER

    @property
    def settings(self) -> GistSettings:
        """The settings of the task."""
        return gist_settings(self.task)

    def trace(self, command: str) -> Trace:
        """Return the recorded trace of the task's command, or the trace of another command, made now.

        An empty `command` is the task's. Raises `RefusalError` if the command can't be traced, and
        `TaskError` if the recorded trace is damaged.
        """
        own = gist_task(self.task).command
        try:
            entrypoint = parse_entrypoint(command) if command else own
        except EntrypointError as error:
            raise RefusalError(str(error)) from error
        if entrypoint.text == own.text:
            return read_trace(self.answer.trace)
        if entrypoint.kind is EntrypointKind.CONSOLE:
            scripts = console_scripts(self.task.environment.metadata)
            if entrypoint.own[0] not in scripts:
                raise RefusalError(f"{command!r} is not an entrypoint.")
        run = self.runner.run_original(
            self.tree,
            self.task.environment,
            entrypoint,
            timeout_s=self.answer.timeout_s,
            trace=True,
            cancel=self.cancel,
        )
        if run.trace is None:
            raise RefusalError("Nothing was traced: the command could not be run on the repository.")
        try:
            return read_trace(run.trace)
        except TaskError as error:
            raise RefusalError(f"Nothing was traced: {error}") from error

    def shell(self, command: str) -> CommandOutput:
        """Return the output of a shell command that runs in a copy of the codebase that contains the gist."""
        return self.runner.run_command(
            command,
            self.task.environment,
            execution=self.settings.execution,
            timeout_s=self.answer.timeout_s,
            tree=self.tree,
            files={gist_task(self.task).command.gist_file: self.text},
            cancel=self.cancel,
        )

    def trial(self, text: str) -> str:
        """Run the task's command on an unchanged gist, and return the run as text."""
        trial = self.runner.run_gist(
            text,
            self.task.environment,
            gist_task(self.task).command,
            owned=self.answer.owned,
            timeout_s=self.answer.timeout_s,
            measure_lines=False,
            cancel=self.cancel,
        )
        return shown_run(trial.run)


def access_of(context: ToolContext) -> GistAccess:
    """Return the `GistAccess` of a call. Raises `RefusalError` if there is no gist."""
    if not isinstance(context.of_kind, GistAccess):
        raise RefusalError("There is no gist here.")
    return context.of_kind


def checked_text(context: ToolContext, rewrite: Rewrite, arguments: Mapping[str, str]) -> str:
    """Return the gist after a call.

    Raises `RefusalError` if `rewrite` does, or if the gist is too long or contains a lone surrogate.
    """
    text = rewrite(access_of(context).text, arguments)
    longest = access_of(context).settings.gist_characters
    if len(text) > longest:
        raise RefusalError(f"The gist would have {len(text)} characters; at most {longest} are taken.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RefusalError(
            f"The gist would hold half a character at {error.start}, which is no text."
        ) from error
    return text


def size_words(text: str) -> str:
    """Return a sentence with the numbers of lines and characters of a gist."""
    lines = len(physical_lines(text))
    return f"The gist has {lines} {'line' if lines == 1 else 'lines'} and {len(text)} characters."


def _write(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    return ToolOutput(size_words(checked_text(context, write_whole_gist, arguments)))


def _edit(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    return ToolOutput(size_words(checked_text(context, replace_passage, arguments)))


WRITE_GIST = Tool(
    name="write_gist",
    description="Write the whole gist; what it held before is gone.",
    arguments=(Argument("content", ArgumentKind.CODE, "The text of the gist."),),
    group=Group.INFO,
    activity=Activity.OTHER,
    step="edit",
    run=_write,
    rewrite=write_whole_gist,
    replaces_text=True,
)

EDIT_GIST = Tool(
    name="edit_gist",
    description="Replace a text that stands in the gist exactly once.",
    arguments=(
        Argument("old", ArgumentKind.CODE, "The text to replace, with its spaces and line ends."),
        Argument("new", ArgumentKind.CODE, "What takes its place; empty to take it out."),
    ),
    group=Group.INFO,
    activity=Activity.OTHER,
    step="edit",
    run=_edit,
    rewrite=replace_passage,
)


MAX_COMMAND_CHARACTERS = 10_000


def _bash(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    command = arguments["command"]
    if not command.strip():
        raise RefusalError("The command is empty.")
    if len(command) > MAX_COMMAND_CHARACTERS or "\0" in command:
        raise RefusalError(
            f"A command has at most {MAX_COMMAND_CHARACTERS} characters, and no NUL among them."
        )
    output = access_of(context).shell(command)
    if output.refused:
        raise RefusalError(output.refused)
    text = bounded(output.text, access_of(context).settings.output_characters, what="output").rstrip("\n")
    ended = f"Exit status {output.exit_status}."
    if output.exit_status is None:
        ended = f"The command ended as {output.status}. {output.reason}".rstrip()
    return ToolOutput(f"{ended}\n{text}".rstrip("\n"))


def _edit_and_execute(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    text = checked_text(context, write_whole_gist, arguments)
    if arguments["execute"] not in ("true", "false"):
        raise RefusalError("execute is 'true' or 'false'.")
    head = size_words(text)
    if arguments["execute"] == "false":
        return ToolOutput(head)
    shown = bounded(
        access_of(context).trial(text), access_of(context).settings.output_characters, what="output"
    )
    return ToolOutput(f"{head}\n\n{shown}".rstrip("\n"))


BASH = Tool(
    name="bash",
    description=(
        "Run a shell command in a copy of the repository. The gist lies in it too: as test_gist.py where the "
        "task's command is a test, else as gist.py. What the command changes is not kept."
    ),
    arguments=(Argument("command", ArgumentKind.COMMAND, "The command, as a shell takes it."),),
    group=Group.INFO,
    activity=Activity.EXECUTE,
    step="execute",
    run=_bash,
    runs_code=True,
)

EDIT_AND_EXECUTE = Tool(
    name="edit_and_execute",
    description="Write the whole gist, run the task's command on it alone, and see what that run shows.",
    arguments=(
        Argument("content", ArgumentKind.CODE, "The text of the gist."),
        Argument("execute", ArgumentKind.FLAG, "'true' to run it, 'false' to write it only.", default="true"),
    ),
    group=Group.INFO,
    activity=Activity.EXECUTE,
    step="test",
    run=_edit_and_execute,
    runs_code=True,
    runs_gist=True,
    rewrite=write_whole_gist,
    replaces_text=True,
)


def _score(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    """Return the text that the harness then scores."""
    if arguments["content"]:
        return ToolOutput(checked_text(context, write_whole_gist, arguments))
    return ToolOutput(access_of(context).text)


SCORE_GIST = Tool(
    name="score_gist",
    description=(
        "Score the gist as it stands, or another text in its place, and change nothing. It costs no step."
    ),
    arguments=(
        Argument(
            "content",
            ArgumentKind.CODE,
            "Scored in place of the gist; empty for the gist itself.",
            default="",
        ),
    ),
    group=Group.INFO,
    activity=Activity.EXECUTE,
    step="test",
    run=_score,
    runs_code=True,
)

SUBMIT_GIST = Tool(
    name="submit_gist",
    description="Hand in the gist as it stands. It is scored, and the attempt ends.",
    arguments=(),
    group=Group.SUBMIT,
    activity=Activity.OTHER,
    step="submit",
    run=None,
    runs_code=True,
)


MAX_FUNCTIONS = 2_000


def _trace(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    trace = access_of(context).trace(arguments["command"].strip())
    called = [function for function in trace.functions if function.run and function.path != COMMAND_FILE]
    files = [path for path in trace.files if path != COMMAND_FILE]
    shown = called[:MAX_FUNCTIONS]
    lines = [f"{len(files)} files and {len(called)} functions, in the order of first touch."]
    lines += ["", "Files:", *(f"  {path}" for path in files), "", "Functions:"]
    lines += [f"  {function.path}:{function.line}  {function.qualname}" for function in shown]
    if len(called) > len(shown):
        lines.append(f"  ... {len(called) - len(shown)} more, not shown")
    revealed = Revealed(
        entries=tuple((path, "file") for path in files),
        traced=tuple((function.path, function.line, function.qualname) for function in shown),
    )
    return ToolOutput("\n".join(lines), revealed=revealed)


TRACE = Tool(
    name="trace",
    description=(
        "Tell which files and functions a command touches on the repository, in the order of first touch."
    ),
    arguments=(
        Argument(
            "command",
            ArgumentKind.COMMAND,
            "A pytest or python command; empty for the task's own.",
            default="",
        ),
    ),
    group=Group.INFO,
    activity=Activity.VIEW,
    step="view",
    run=_trace,
    runs_code=True,
)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One line that defines or uses a name; `owner` is the dotted parent of a definition or a module."""

    path: str
    line: int
    kind: str
    """`def`, `class`, `module`, `variable`, `import`, `call` or `use`."""
    owner: str = ""


_known: WeakKeyDictionary[SourceTree, dict[str, Mapping[str, list[Occurrence]]]] = WeakKeyDictionary()
_lock = Lock()
_DEFINING = ("module", "class", "def", "variable")


def occurrences(tree: SourceTree, name: str) -> list[Occurrence]:
    """Return the places where Python files define or use a name, sorted by path and line.

    Each file is parsed once per tree, and the contents of files that do not parse are left out.
    """
    found: list[Occurrence] = []
    with _lock:
        files = _known.setdefault(tree, {})
        for path, text in corpus_of(tree).texts:
            parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
            if parts[-1] == name:
                found.append(Occurrence(path, 1, "module", ".".join(parts[:-1])))
            if name not in text:
                continue
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
        if isinstance(child, DefinitionNode):
            kind = "class" if isinstance(child, ast.ClassDef) else "def"
            yield child.name, Occurrence(path, child.lineno, kind, ".".join(scope))
            inner = (*scope, child.name)
        else:
            yield from _uses(child, node, path, scope)
        yield from _walk(child, path, inner)


def _uses(
    node: ast.AST, parent: ast.AST, path: str, scope: tuple[str, ...]
) -> Iterator[tuple[str, Occurrence]]:
    """Yield the names that a node itself uses or binds, each with its place."""
    is_called = isinstance(parent, ast.Call) and parent.func is node
    kind = "call" if is_called else "use"
    match node:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            for name in _imported_names(names, getattr(node, "module", None) or ""):
                yield name, Occurrence(path, node.lineno, "import")
        case ast.Name(id=name, ctx=ast.Store()):
            is_variable = not scope or isinstance(parent, ast.ClassDef)
            yield name, Occurrence(path, node.lineno, "variable" if is_variable else "use", ".".join(scope))
        case ast.Name(id=name):
            yield name, Occurrence(path, node.lineno, kind)
        case ast.Attribute(attr=name):
            yield name, Occurrence(path, node.end_lineno or node.lineno, kind)
        case _:
            pass


def _imported_names(names: Sequence[ast.alias], module: str) -> list[str]:
    """Return the parts of an import's dotted names, followed by the parts of its module's name."""
    parts = dict[str, None]()
    for alias in names:
        parts.update(dict.fromkeys(alias.name.split(".")))
    return [*parts, *filter(None, module.split("."))]


def _repo_graph(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    asked = arguments["name"].strip()
    owner, _, last = asked.replace("::", ".").removesuffix(".py").replace("/", ".").rpartition(".")
    found = occurrences(context.tree, last) if last else []
    used = [one for one in found if one.kind not in _DEFINING]
    definitions = [one for one in found if one.kind in _DEFINING]
    defined = [one for one in definitions if _belongs(one, owner)]
    if not defined and not used:
        raise RefusalError(f"No Python file of the repository defines or uses {asked[:200]!r}.")
    texts = dict(corpus_of(context.tree).texts)
    limit = context.limits.search_matches
    shown = [*defined, *used][:limit]
    rows = [f"{len(defined)} definitions and {len(used)} references of {asked}."]
    for one in shown:
        text = _line_at(texts[one.path], one.line)[: context.limits.search_line_characters]
        rows.append(f"  {one.path}:{one.line}  {one.kind}  {text}")
    left_out = len(defined) + len(used) - len(shown)
    if left_out:
        rows.append(f"  ... {left_out} more, not shown")
    paths = dict.fromkeys(one.path for one in shown)
    return ToolOutput("\n".join(rows), revealed=Revealed(entries=tuple((path, "file") for path in paths)))


def _line_at(text: str, number: int) -> str:
    """Return a line of a string without surrounding whitespace; empty beyond the last line."""
    lines = text.split("\n")
    if number > len(lines):
        return ""
    return lines[number - 1].strip()


def _belongs(one: Occurrence, owner: str) -> bool:
    """Return whether a definition matches the query before its last dot: its class, its module, or both."""
    if not owner:
        return True
    place = one.owner
    if one.kind != "module":
        module = one.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        place = f"{module}.{one.owner}".rstrip(".")
    return f".{place}".endswith(f".{owner}")


REPO_GRAPH = Tool(
    name="repo_graph",
    description="Tell on which lines a module, class, function or variable is defined and used.",
    arguments=(
        Argument("name", ArgumentKind.NAME, "Name, such as `f`, `Class.method` or `package.module`."),
    ),
    group=Group.INFO,
    activity=Activity.SEARCH,
    step="search",
    run=_repo_graph,
)

WRITING = (WRITE_GIST, EDIT_GIST)
OPTIONAL = (TRACE, REPO_GRAPH, BASH, EDIT_AND_EXECUTE)
"""The tools that a task may add to browsing, writing and handing in."""
OPTIONAL_TOOLS = tuple(tool.name for tool in OPTIONAL)
_REWRITES = {tool.name: tool.rewrite for tool in (*WRITING, *OPTIONAL) if tool.rewrite is not None}


def needing_execution(settings: GistSettings) -> str:
    """Return the name of a tool that settings add although they forbid execution; empty if there is none."""
    if settings.execution:
        return ""
    running = (tool.name for tool in OPTIONAL if tool.runs_gist and tool.name in settings.tools)
    return next(running, "")


def rewritten(text: str, tool: str, arguments: Mapping[str, Any]) -> str | None:
    """Return the gist after a call; None for a tool that does not write the gist.

    Raises `RefusalError` if the call can't be carried out.
    """
    rewrite = _REWRITES.get(tool)
    if rewrite is None:
        return None
    return rewrite(text, arguments)


def gist_tools(settings: GistSettings, *, scoring: bool) -> tuple[Tool, ...]:
    """Return the tools that the settings allow, browsing tools first and the hand-in last.

    `scoring` is true if the attempt has a budget for scores.
    """
    asked = [tool for tool in OPTIONAL if tool.name in settings.tools]
    added = [tool for tool in asked if settings.execution or not tool.runs_gist]
    scores = (SCORE_GIST,) if scoring else ()
    return (*BROWSING, *added[:2], *WRITING, *added[2:], *scores, SUBMIT_GIST)
