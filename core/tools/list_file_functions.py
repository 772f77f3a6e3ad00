"""`list_file_functions`: the functions, methods and classes of a file."""

from __future__ import annotations

from collections.abc import Mapping

from gistpoint.core.tools.declaration import Activity, Argument, Group, Kind, Revealed, Tool, ToolContext, ToolOutput
from gistpoint.core.tools.definitions import indexed, listing, revealed_functions
from gistpoint.core.tools.paths import existing_file


def _run(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    path = existing_file(context, arguments["file_path"])
    definitions = indexed(context, path).definitions
    shown = definitions[: context.limits.function_entries]
    count = len(definitions)
    lines = [f"{path}: {count} {'definition' if count == 1 else 'definitions'}", *listing(shown)]
    if count > len(shown):
        lines.append(f"  ... {count - len(shown)} more, not shown")
    revealed = Revealed(entries=((path, "file"),), functions=revealed_functions(shown))
    return ToolOutput("\n".join(lines), revealed=revealed)


LIST_FILE_FUNCTIONS = Tool(
    name="list_file_functions",
    description="Return a list of the function, method and class definitions in a file.",
    arguments=(Argument("file_path", Kind.FILE, "Python file, relative to the repository."),),
    group=Group.INFO,
    activity=Activity.VIEW,
    run=_run,
)
