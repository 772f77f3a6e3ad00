"""`list_directory`: the entries of a folder."""

from __future__ import annotations

from collections.abc import Mapping

from gistpoint.core.text import visible_line
from gistpoint.core.tools.declaration import Activity, Argument, Group, Kind, Revealed, Tool, ToolContext, ToolOutput
from gistpoint.core.tools.paths import existing_folder


def _run(context: ToolContext, arguments: Mapping[str, str]) -> ToolOutput:
    path = existing_folder(context, arguments["path"])
    entries = context.tree.entries(path)
    shown = entries[: context.limits.directory_entries]
    lines = [f"{path or '.'}: {len(entries)} {'entry' if len(entries) == 1 else 'entries'}"]
    lines += [f"  {visible_line(name)}/" if kind == "dir" else f"  {visible_line(name)}" for name, kind in shown]
    if len(entries) > len(shown):
        lines.append(f"  ... {len(entries) - len(shown)} more, not shown")
    prefix = f"{path}/" if path else ""
    revealed = Revealed(entries=tuple((prefix + name, kind) for name, kind in shown), listed=(path,))
    return ToolOutput("\n".join(lines), revealed=revealed)


LIST_DIRECTORY = Tool(
    name="list_directory",
    description="List files and directories at a specified path.",
    arguments=(Argument("path", Kind.FOLDER, "Folder, relative to the repository; empty for its root.", default=""),),
    group=Group.INFO,
    activity=Activity.VIEW,
    run=_run,
)
