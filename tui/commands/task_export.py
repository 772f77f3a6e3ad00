"""`gistpoint task export`: write a task as a single file, or tasks for another harness."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path, PurePosixPath

from gistpoint.core.errors import TaskError, UserError
from gistpoint.core.kinds.archive import pack_task
from gistpoint.core.kinds.folder import read_answer, read_task
from gistpoint.core.locations import Locations, path_of
from gistpoint.core.tasks.model import Task
from gistpoint.core.unfinished import scratch_folder
from gistpoint.sessions.exports.tasks.exported import MCP_URL, ExportedTask, ExportTasks
from gistpoint.sessions.exports.tasks.registry import TASK_FORMATS, task_exporter
from gistpoint.sessions.tasks import TaskStore, read_set
from gistpoint.tui.commands.arguments import TASK_HELP
from gistpoint.tui.commands.command import DONE
from gistpoint.tui.commands.options import CliCommand, argument, option
from gistpoint.tui.commands.output import make_folder, write_whole
from gistpoint.tui.commands.progress import long_work


def export(request: ExportTasks) -> int:
    """Export tasks, and print the path of each archive, or of the folder for the other harness.

    Return the exit code. Raises `UserError` if the target is not empty, is a file for several tasks, or if
    the format can't describe a task, and `TaskError` if a task can't be read.
    """
    locations = Locations.of_user()
    tasks = tasks_of(request.tasks, TaskStore(locations.tasks, demo=locations.demo))
    target = path_of(request.output)
    if request.to == "archive":
        _require_no_container(request)
        return _archive(tasks, target)
    write = task_exporter(request.to)
    settings = request.settings()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UserError(f"{target} already exists.", hint="Name a new folder, or an empty one.")
    if settings.mcp_url and len(tasks) > 1:
        raise UserError(
            f"--tools mcp takes one task, because a server serves one, but there are {len(tasks)}.",
            hint="Export each into a separate folder, with its own --mcp-url.",
        )
    for task in tasks:
        _refuse_image(task)
    make_folder(target)
    begun = f"{target} is incomplete: delete it and export again, or name another folder."
    with long_work(kept=begun, asks_token=False) as work:
        work.progress.stage("writing tasks")
        exported = []
        for number, task in enumerate(tasks):
            work.progress.count(number, len(tasks), task.short_id)
            exported.append(_exported(task))
        for path, data in write(exported, settings):
            work.progress.detail(path)
            place = target / PurePosixPath(path)
            make_folder(place.parent)
            write_whole(place, [data], named=False)
            if data.startswith(b"#!/bin/sh"):
                place.chmod(0o755)
    print(target)
    return DONE


def _require_no_container(request: ExportTasks) -> None:
    """Raise `UserError` for settings of a container, which an archive does not describe."""
    given = {
        "--agent-hosts": request.agent_hosts,
        "--tools": request.tools != "shell",
        "--mcp-url": request.mcp_url != MCP_URL,
        "--base": request.base,
    }
    if ignored := [name for name, value in given.items() if value]:
        raise UserError(
            f"An archive describes no container, so it has no place for {', '.join(ignored)}.",
            hint=f"Leave that out, or export to one of: {', '.join(TASK_FORMATS)}.",
        )


def tasks_of(names: Sequence[str], store: TaskStore) -> list[Task]:
    """Return the named tasks. Raises `TaskError` if one of them can't be read."""
    found = read_set(names, store)
    if found.problems:
        raise TaskError(f"{found.problems[0]}", hint="Nothing was written.")
    return [read_task(task.folder) for task in found.tasks]


def _refuse_image(task: Task) -> None:
    if task.environment.image is not None:
        raise UserError(
            f"The task {task.short_id} runs in its own Docker image, which exports for a harness can't"
            " describe.",
            hint="`--to archive` exports it for gistpoint.",
        )


def _exported(task: Task) -> ExportedTask:
    from gistpoint.sandbox.verifier.bundle import bundle, expected_text

    answer = read_answer(task)
    return ExportedTask(task, answer, bundle(), expected_text(task, answer), f"pytest=={version('pytest')}")


def _archive(tasks: Sequence[Task], target: Path) -> int:
    if len(tasks) > 1 and not target.is_dir():
        if target.exists() or target.name.endswith(".tar.zst"):
            raise UserError(
                f"{target} is a single file, but there are {len(tasks)} tasks.", hint="Name a folder."
            )
        make_folder(target)
    with long_work(kept="The files named so far are complete.", asks_token=False) as work:
        for number, task in enumerate(tasks):
            work.progress.count(number, len(tasks), task.short_id)
            file = target / f"{task.short_id}.tar.zst" if target.is_dir() else target
            with scratch_folder("export") as scratch:
                pack_task(task.folder, Path(scratch) / "task.tar.zst")
                write_whole(file, [(Path(scratch) / "task.tar.zst").read_bytes()])
            print(file)
    return DONE


EXPORT = CliCommand(
    ExportTasks,
    export,
    {
        "tasks": argument("TASK|SET", f"{TASK_HELP}, a folder or a list of tasks"),
        "to": option(f"{', '.join(('archive', *TASK_FORMATS))}, or that of a plug-in", metavar="FORMAT"),
        "output": option("a new folder; archive: also a file", "-o", "--output", metavar="PATH"),
        "with_solution": option("also write the original code (an archive always contains it)"),
        "agent_hosts": option(
            "hosts that an agent in the container may reach, such as its model's", metavar="HOST,…"
        ),
        "tools": option("mcp: also give the agent the address of gistpoint's MCP server"),
        "mcp_url": option(f"that server's address as the container reaches it ({MCP_URL})", metavar="URL"),
        "base": option("the image to build on, preferably with its digest", metavar="IMAGE"),
    },
    about="Writes tasks as one file (archive), or for a harness that runs them in its own containers.",
)
