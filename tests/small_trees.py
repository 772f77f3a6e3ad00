"""Trees for tests, written directly into a tar, which can contain entries that no folder on disk could."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gistpoint.core.tasks.model import ToolLimits
from gistpoint.core.tools.declaration import RefusalError, Tool, ToolContext, ToolOutput
from gistpoint.core.tools.replacing import REPAIR_TOOLS
from gistpoint.core.trees import SourceTree


@dataclass(frozen=True)
class Link:
    """A symbolic link."""

    to: str


def write_tar(files: Mapping[str, str | bytes | Link], tar: Path) -> Path:
    with tarfile.open(tar, "w:", format=tarfile.PAX_FORMAT) as archive:
        for path, content in files.items():
            info = tarfile.TarInfo(path)
            if isinstance(content, Link):
                info.type, info.linkname = tarfile.SYMTYPE, content.to
                archive.addfile(info)
                continue
            data = content.encode() if isinstance(content, str) else content
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return tar


def tree_of(files: Mapping[str, str | bytes | Link], folder: Path) -> SourceTree:
    number = len(list(folder.glob("tree-*.tar")))
    return SourceTree.open(write_tar(files, folder / f"tree-{number}.tar"))


def context_of(
    files: Mapping[str, str | bytes | Link], folder: Path, *, limits: ToolLimits | None = None, **changes: Any
) -> ToolContext:
    return ToolContext(tree_of(files, folder), limits or ToolLimits(), **changes)


def call(tool: Tool, context: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
    """Bind and execute a call as the engine does."""
    try:
        return tool.bind(arguments).answer(context)
    except RefusalError as refusal:
        return ToolOutput(f"Refused: {refusal}", refused=True)


def ask(context: ToolContext, name: str, **arguments: Any) -> ToolOutput:
    """Call a tool of any mode by its name, as the engine does."""
    tool = next(tool for tools in REPAIR_TOOLS.values() for tool in tools if tool.name == name)
    return call(tool, context, arguments)
