"""`read_file`: a whole file; one that is too large answers with its functions instead."""

from __future__ import annotations

from collections.abc import Mapping

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
from gistpoint.core.tools.definitions import indexed, listing, revealed_functions
from gistpoint.core.tools.paths import existing_file, text_of


def _run(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    path = existing_file(context, arguments["file_path"])
    text = text_of(context, path)
    limit = context.limits.read_file_characters
    lines = text.count("\n") + (not text.endswith("\n") and bool(text))
    if len(text) <= limit:
        head = f"{path}: {lines} {'line' if lines == 1 else 'lines'}"
        revealed = Revealed(entries=((path, "file"),), files=(path,), functions=_functions(context, path))
        return ToolOutput(f"{head}\n{text}", revealed=revealed)
    head = f"{path} has {len(text)} characters, more than the limit of {limit}."
    if not path.endswith((".py", ".pyi")):
        return ToolOutput(f"{head} Its first {limit}:\n{text[:limit]}", revealed=Revealed(entries=((path, "file"),)))
    definitions = indexed(context, path).definitions
    shown = definitions[: context.limits.function_entries]
    rows = [f"{head} Its functions, for read_function:", *listing(shown)]
    if len(definitions) > len(shown):
        rows.append(f"  ... {len(definitions) - len(shown)} more, not shown")
    revealed = Revealed(entries=((path, "file"),), functions=revealed_functions(shown))
    return ToolOutput("\n".join(rows), revealed=revealed)


def _functions(context: ToolContext, path: str) -> tuple[tuple[str, int, int], ...]:
    if not path.endswith((".py", ".pyi")):
        return ()
    try:
        return revealed_functions(indexed(context, path).definitions)
    except RefusalError:
        return ()


READ_FILE = Tool(
    name="read_file",
    description="Read a file; if it is too large, its functions are listed for a later read_function call.",
    arguments=(Argument("file_path", Kind.FILE, "File, relative to the repository."),),
    group=Group.INFO,
    activity=Activity.VIEW,
    run=_run,
)
