"""A task for export, and the settings that writers of other harnesses' files receive."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from gistpoint.core.diffs import compute, unified
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.kind import ExportedWork
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.requests import Request
from gistpoint.core.tasks.model import CANARY, Answer, Task
from gistpoint.core.text import visible_line
from gistpoint.core.trees import SourceTree

REPOSITORY, GIST_FOLDER = "/repo", "/gist"
"""The folders of a container with the repository, and for the solver's gist."""

MCP_URL = "http://host.docker.internal:8765/mcp"
VERDICT_TOKEN = "GISTPOINT_VERDICT_TOKEN"
"""The variable with the verifier's token for the tool server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportTasks(Request):
    """A request to export tasks to another program."""

    tasks: tuple[str, ...]
    """The names of tasks and task sets."""
    to: str
    """`archive`, or the name of a format."""
    output: str
    with_solution: bool = False
    agent_hosts: str = ""
    """Host names, separated by commas."""
    tools: Literal["shell", "mcp"] = "shell"
    mcp_url: str = MCP_URL
    base: str = ""

    def settings(self) -> TaskExportSettings:
        """Return the settings of the export. Raises `UserError` if the address is not a server's."""
        by_mcp = self.tools == "mcp"
        if by_mcp and not _is_server(self.mcp_url):
            shown = visible_line(self.mcp_url)[:200]
            raise UserError(
                f"--mcp-url {shown!r} is not the address of a server.", hint=f"For example {MCP_URL}."
            )
        return TaskExportSettings(
            with_solution=self.with_solution,
            agent_hosts=tuple(host.strip() for host in self.agent_hosts.split(",") if host.strip()),
            mcp_url=self.mcp_url if by_mcp else "",
            base=self.base,
        )


def _is_server(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class TaskExportSettings:
    """The settings that the user requested; not every format can express all of them."""

    with_solution: bool = False
    """Whether original code may be written; otherwise, files outside `tests/` do not reveal the answer."""
    agent_hosts: tuple[str, ...] = ()
    """The hosts that an agent in the container may reach, such as the server of its model."""
    mcp_url: str = ""
    """The address at which the container reaches `gistpoint mcp`; empty if it must not reach it."""
    base: str = ""
    """The image to build on; empty for the default one of the task's Python version."""

    @property
    def verdict_url(self) -> str:
        """The address at which the tool server gives its verdict; empty if there is none."""
        return urlunsplit(urlsplit(self.mcp_url)._replace(path="/verdict", query="")) if self.mcp_url else ""


@dataclass(frozen=True)
class ExportedTask:
    """A task with its answer, and the files with which another harness judges it."""

    task: Task
    answer: Answer
    verifier: bytes
    """The content of the bundle `verify.pyz`."""
    expected: str
    """The content of the verifier's `expected.json` for the task, which is as secret as the answer."""
    pytest: str = ""
    """The requirement of pytest for a task that pins no packages."""

    @property
    def name(self) -> str:
        """The name of the task in other harnesses."""
        return f"gistpoint-{self.task.short_id}"

    @cached_property
    def work(self) -> ExportedWork:
        """The work that a solver has to hand in, according to the kind of the task."""
        return kind_of(self.task).exported(self.task, self.answer)

    @property
    def gist_path(self) -> str:
        """The path of the file that a solver must write; empty if the solver changes the repository."""
        return f"{GIST_FOLDER}/{self.work.file}" if self.work.file else ""

    @property
    def forbids_execution(self) -> bool:
        """Whether the solver must not run code."""
        return not self.work.execution

    def brief(self, *, as_patch: bool = False) -> str:
        """Return the brief for a solver with a shell.

        With `as_patch`, the work is a patch of the repository. A file that the solver must write is then in
        the repository, because a patch could not contain it otherwise.
        """
        place = self.gist_path.replace(GIST_FOLDER, REPOSITORY, 1) if as_patch else self.gist_path
        return kind_of(self.task).exported_brief(self.task, REPOSITORY, place)

    def tree(self) -> bytes:
        """Return the tar of the repository that a solver receives."""
        return self.task.tree_path.read_bytes()

    def solution_files(self) -> Mapping[str, bytes]:
        """Return the correct content of the files that a solver changes or writes, by path."""
        return self.work.solution

    def patches(self) -> tuple[str, str]:
        """Return the patch that solves the task, and the one that corrupted it, which is empty for a gist."""
        given, solution, corruption = SourceTree.open(self.task.tree_path), "", ""
        for path, data in sorted(self.work.solution.items()):
            right = data.decode("utf-8", "surrogateescape")
            if self.work.file:
                solution += unified(compute("", right, old_path=None, new_path=path))
                continue
            wrong = given.read(path).decode("utf-8", "surrogateescape")
            solution += unified(compute(wrong, right, old_path=path, new_path=path))
            corruption += unified(compute(right, wrong, old_path=path, new_path=path))
        return solution, corruption


TaskExporter = Callable[[Sequence[ExportedTask], TaskExportSettings], Iterator[tuple[str, bytes]]]
"""A function that yields the path below the output folder and the content of each file of some tasks."""

NOTE = f"# {CANARY}\n"
"""The canary as a comment for exported text files; no file of a repository contains it."""
