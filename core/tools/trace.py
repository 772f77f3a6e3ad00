"""`trace`: the files and functions that a command touches, in the order of first touch."""

from __future__ import annotations

from collections.abc import Mapping

from gistpoint.core.gist.reference.trace import Trace
from gistpoint.core.tools.declaration import Activity, Argument, Group, Kind, Revealed, Tool, ToolContext, ToolOutput

MAX_FUNCTIONS = 2_000


def _run(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
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
    run=_run,
    runs_code=True,
)
