"""A task as it leaves gistpoint, and what a writer of another harness's files gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal
from urllib.parse import urlsplit

from gistpoint.core.diffs import compute, unified
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.kind import ExportedWork
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.requests import Request
from gistpoint.core.tasks.model import CANARY, Answer, Task
from gistpoint.core.text import visible_line
from gistpoint.core.trees import SourceTree

REPOSITORY, GIST_FOLDER = "/repo", "/gist"
"""Where a container has the repository, and where a solver writes a gist."""

MCP_URL = "http://host.docker.internal:8765/mcp"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportTasks(Request):
    """Tasks that are written for another program."""

    tasks: tuple[str, ...]
    """Names of tasks and of sets."""
    to: str
    """`archive`, or the name of a format."""
    output: str
    with_solution: bool = False
    agent_hosts: str = ""
    """With commas between them."""
    tools: Literal["shell", "mcp"] = "shell"
    mcp_url: str = MCP_URL
    base: str = ""

    def settings(self) -> TaskExportSettings:
        """Return the settings. Raises `UserError` for an address that is none of a server."""
        by_mcp = self.tools == "mcp"
        if by_mcp and not _is_server(self.mcp_url):
            shown = visible_line(self.mcp_url)[:200]
            raise UserError(f"--mcp-url {shown!r} is no address of a server.", hint=f"For example {MCP_URL}.")
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
    """What the user asked for; not every format has a place for all of it."""

    with_solution: bool = False
    """Whether original code may be written. Without it the files give no answer away outside of `tests/`."""
    agent_hosts: tuple[str, ...] = ()
    """Hosts that an agent inside the container may reach: the server of its model."""
    mcp_url: str = ""
    """The address of `gistpoint mcp` as the container reaches it; empty for none."""
    base: str = ""
    """The image to build on; empty for the one that Python's version names."""


@dataclass(frozen=True)
class ExportedTask:
    """A task with its answer, and the files by which another harness judges it."""

    task: Task
    answer: Answer
    verifier: bytes
    """The bundle `verify.pyz`."""
    expected: str
    """Its `expected.json` for this task: as secret as the answer."""
    pytest: str = ""
    """The version of pytest for a task that pins none."""

    @property
    def name(self) -> str:
        """The name of the task in other harnesses."""
        return f"gistpoint-{self.task.short_id}"

    @cached_property
    def work(self) -> ExportedWork:
        """What a solver hands in, as the task's kind has it."""
        return kind_of(self.task).exported(self.task, self.answer)

    @property
    def gist_path(self) -> str:
        """The one file that a solver is to write; empty where the repository is changed."""
        return f"{GIST_FOLDER}/{self.work.file}" if self.work.file else ""

    @property
    def forbids_execution(self) -> bool:
        """Whether the solver may not run code."""
        return not self.work.execution

    def brief(self, *, as_patch: bool = False) -> str:
        """Return the brief for a solver with a shell; with `as_patch` for one whose work is a patch of the
        repository.

        The one file to be written is in the repository then, for else no patch has it.
        """
        place = self.gist_path.replace(GIST_FOLDER, REPOSITORY, 1) if as_patch else self.gist_path
        return kind_of(self.task).exported_brief(self.task, REPOSITORY, place)

    def tree(self) -> bytes:
        """Return the tar of the repository as a solver gets it."""
        return self.task.tree_path.read_bytes()

    def solution_files(self) -> Mapping[str, bytes]:
        """Return the files of the answer as they should be: those that change, or the one that is written."""
        return self.work.solution

    def patches(self) -> tuple[str, str]:
        """Return the answer as a patch of what the solver gets, and the patch that made that of the original."""
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
"""Yields the files of the tasks by their paths below the output folder."""

NOTE = f"# {CANARY}\n"
"""The canary as a comment: it is in every file that gistpoint writes, and in none of a repository."""
