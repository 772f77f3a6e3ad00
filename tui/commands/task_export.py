"""`gistpoint task export`: a task as one file, or tasks for another harness."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from gistpoint.core.errors import TaskError, UserError
from gistpoint.core.kinds.archive import pack_task
from gistpoint.core.kinds.folder import read_answer, read_task
from gistpoint.core.locations import Locations
from gistpoint.core.tasks.model import Task
from gistpoint.core.text import visible_line
from gistpoint.sessions.tasks import TaskStore, read_set
from gistpoint.tui.commands.command import DONE, Handler
from gistpoint.tui.commands.output import make_folder, write_whole
from gistpoint.tui.commands.progress import long_work

if TYPE_CHECKING:
    from gistpoint.sessions.exports.tasks.exported import ExportedTask

_MCP_URL = "http://host.docker.internal:8765/mcp"


def export_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint task export`."""
    from gistpoint.sessions.exports.tasks.registry import TASK_FORMATS

    parser.description = "Writes tasks as one file (archive), or for a harness that runs them in its own containers."
    parser.add_argument(
        "tasks",
        nargs="+",
        metavar="TASK|SET",
        help="id or its beginning, a name in the demo, folder of a task or of tasks",
    )
    known = ", ".join(("archive", *TASK_FORMATS))
    parser.add_argument("--to", required=True, metavar="FORMAT", help=f"{known}, or that of a plug-in")
    parser.add_argument("-o", "--output", required=True, metavar="PATH", help="a new folder; archive: also a file")
    parser.add_argument("--with-solution", action="store_true", help="write the original code too (an archive has it)")
    parser.add_argument(
        "--agent-hosts", default="", metavar="HOST,…", help="hosts that an agent in the container may reach: its model"
    )
    parser.add_argument("--tools", choices=["shell", "mcp"], default="shell", help="mcp: name the server to the agent")
    parser.add_argument("--mcp-url", default=_MCP_URL, metavar="URL", help=f"as the container reaches it ({_MCP_URL})")
    parser.add_argument("--base", default="", metavar="IMAGE", help="the image to build on, best by its digest")
    return export


def export(options: argparse.Namespace) -> int:
    """Write the tasks, and print what was written."""
    locations = Locations.of_user()
    tasks = tasks_of(options.tasks, TaskStore(locations.tasks, demo=locations.demo))
    target = Path(options.output)
    if options.to == "archive":
        return _archive(tasks, target, options)
    from gistpoint.sessions.exports.tasks.exported import TaskExportSettings
    from gistpoint.sessions.exports.tasks.registry import task_exporter

    write = task_exporter(options.to)
    if options.tools == "mcp":
        _check_url(options.mcp_url)
    settings = TaskExportSettings(
        with_solution=options.with_solution,
        agent_hosts=tuple(host.strip() for host in options.agent_hosts.split(",") if host.strip()),
        mcp_url=options.mcp_url if options.tools == "mcp" else "",
        base=options.base,
    )
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UserError(f"{target} is there already.", hint="Name a new folder, or an empty one.")
    for task in tasks:
        _refuse_image(task)
    make_folder(target)
    begun = f"{target} is not whole: delete it and export again, or name another folder."
    with long_work(quiet=getattr(options, "json", False), kept=begun, asks_token=False) as work:
        work.progress.stage("writing tasks")
        exported = []
        for number, task in enumerate(tasks):
            work.progress.count(number, len(tasks), task.short_id)
            exported.append(_exported(task))
        for path, data in write(exported, settings):
            work.progress.detail(path)
            place = target / PurePosixPath(path)
            make_folder(place.parent)
            write_whole(place, [data])
            if data.startswith(b"#!/bin/sh"):
                place.chmod(0o755)
    print(target)
    return DONE


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        shown = visible_line(url)[:200]
        raise UserError(f"--mcp-url {shown!r} is no address of a server.", hint=f"For example {_MCP_URL}.")


def tasks_of(names: Sequence[str], store: TaskStore) -> list[Task]:
    """Return the tasks that names select. Raises `TaskError` if one of them can't be read."""
    found = read_set(names, store)
    if found.problems:
        raise TaskError(f"{found.problems[0]}", hint="Nothing was written.")
    return [read_task(task.folder) for task in found.tasks]


def _refuse_image(task: Task) -> None:
    if task.environment.image is not None:
        raise UserError(
            f"The task {task.short_id} runs in a Docker image of its own, which no export for a harness describes.",
            hint="`--to archive` exports it for gistpoint.",
        )


def _exported(task: Task) -> ExportedTask:
    from gistpoint.sandbox.verifier.bundle import bundle, expected_text
    from gistpoint.sessions.exports.tasks.exported import ExportedTask

    answer = read_answer(task)
    return ExportedTask(task, answer, bundle(), expected_text(task, answer), f"pytest=={version('pytest')}")


def _archive(tasks: Sequence[Task], target: Path, options: argparse.Namespace) -> int:
    if len(tasks) > 1 and not target.is_dir():
        if target.exists() or target.name.endswith(".tar.zst"):
            raise UserError(f"{target} is one file, and {len(tasks)} tasks are as many.", hint="Name a folder.")
        make_folder(target)
    with long_work(
        quiet=getattr(options, "json", False), kept="The files that were named are whole.", asks_token=False
    ) as work:
        for number, task in enumerate(tasks):
            work.progress.count(number, len(tasks), task.short_id)
            file = target / f"{task.short_id}.tar.zst" if target.is_dir() else target
            with tempfile.TemporaryDirectory(prefix="gistpoint-export-") as scratch:
                pack_task(task.folder, Path(scratch) / "task.tar.zst")
                write_whole(file, [(Path(scratch) / "task.tar.zst").read_bytes()])
            print(file)
    return DONE
