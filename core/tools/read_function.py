"""`read_function`: the source of one function, method or class, decorators included."""

from __future__ import annotations

from collections.abc import Mapping

from gistpoint.core.code.errors import CodeError
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
from gistpoint.core.tools.definitions import indexed
from gistpoint.core.tools.paths import existing_file


def _run(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    path = existing_file(context, arguments["file_path"])
    try:
        definition = indexed(context, path).find(arguments["function_name"])
    except CodeError as error:
        raise RefusalError(str(error)) from error
    source, name = definition.source, str(definition.ref)
    head = f"{name}, lines {definition.start_line}-{definition.end_line}"
    limit = context.limits.read_file_characters
    if len(source) > limit:
        head += f"; {len(source)} characters, of which the first {limit}"
        source = source[:limit]
    revealed = Revealed(
        entries=((path, "file"),),
        functions=((name, definition.start_line, definition.end_line),),
        sources=(name,),
    )
    return ToolOutput(f"{head}\n{source}", revealed=revealed)


READ_FUNCTION = Tool(
    name="read_function",
    description="Read the contents of a specified function or class from a file.",
    arguments=(
        Argument("function_name", Kind.FUNCTION, "Name, such as `f`, `Class.method` or `outer.<locals>.inner`."),
        Argument("file_path", Kind.FILE, "Python file, relative to the repository."),
    ),
    group=Group.INFO,
    activity=Activity.VIEW,
    run=_run,
)
