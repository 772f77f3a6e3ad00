"""`gistpoint task list`, `show`, `export`, `delete` and `check`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gistpoint.core.errors import AttemptError, UserError
from gistpoint.core.generation.check import Finding, check_task
from gistpoint.core.generation.intake import OnMaking
from gistpoint.core.kinds.gist.check import check_gist_task
from gistpoint.core.kinds.gist.judge import GistJudge
from gistpoint.core.kinds.repair.judge import Judge
from gistpoint.core.locations import Locations
from gistpoint.core.ports import EntrypointRunner, Runner
from gistpoint.core.tasks.archive import pack_task
from gistpoint.core.tasks.brief import render_brief
from gistpoint.core.tasks.folder import read_answer
from gistpoint.core.tasks.model import Mode, Task
from gistpoint.sessions.tasks import BrokenTask, TaskStore
from gistpoint.tui.cli import DONE, NEGATIVE, build_entrypoint_runner, build_runner
from gistpoint.tui.commands.attempts import attempt_store
from gistpoint.tui.commands.output import ProgressLine, print_json, print_table, print_text, write_whole
from gistpoint.tui.services import is_our_demo


def _store() -> TaskStore:
    locations = Locations.of_user()
    return TaskStore(locations.tasks, locations.demo)


def listing(options: argparse.Namespace) -> int:
    """Print the tasks that are here; the source is shown, as this is an organiser's view."""
    entries = list(_store().tasks())
    tasks = [entry for entry in entries if isinstance(entry, Task)]
    broken = [entry for entry in entries if isinstance(entry, BrokenTask)]
    if options.json:
        rows = [_row(task) for task in tasks]
        problems = [{"folder": item.folder.name, "problem": item.problem} for item in broken]
        print_json("gistpoint.tasks/1", {"tasks": rows, "broken": problems})
        return DONE
    if not entries:
        print("There are no tasks yet. `gistpoint demo` brings three; `gistpoint task new SOURCE` makes one.")
        return DONE
    print_table(
        ["id", "mode", "source", "tests", "failing", "uses", "submissions"],
        [
            [
                task.short_id,
                f"{task.mode}{' several' if task.several else ''}",
                f"{task.source.name} {task.source.revision[:12]}",
                str(task.suite.tests),
                str(len(task.brief.failing)),
                str(task.budgets.tool_uses),
                str(task.budgets.submissions),
            ]
            for task in tasks
        ],
    )
    for item in broken:
        print(f"{item.folder.name}: {item.problem}", file=sys.stderr)
    return DONE


def _row(task: Task) -> dict[str, Any]:
    return {
        "id": task.id,
        "mode": task.mode.value,
        "several": task.several,
        "source": {"kind": task.source.kind, "name": task.source.name, "revision": task.source.revision},
        "tests": task.suite.tests,
        "failing": len(task.brief.failing),
        "budgets": asdict(task.budgets),
        "demo": task.demo,
    }


def show(options: argparse.Namespace) -> int:
    """Print the brief, exactly as a solver gets it."""
    task = _store().find(options.task)
    if options.json:
        failing = [asdict(failure) for failure in task.brief.failing]
        print_json("gistpoint.task/1", {**_row(task), "brief": render_brief(task), "failing_tests": failing})
    else:
        print_text(render_brief(task))
    return DONE


def export(options: argparse.Namespace) -> int:
    """Write a task with its answer as one file; prints where."""
    task = _store().find(options.task)
    target = Path(options.output)
    if target.is_dir():
        target /= f"{task.short_id}.tar.zst"
    with tempfile.TemporaryDirectory(prefix="gistpoint-export-") as scratch:
        pack_task(task.folder, Path(scratch) / "task.tar.zst")
        write_whole(target, [(Path(scratch) / "task.tar.zst").read_bytes()])
    print(target)
    return DONE


def delete(options: argparse.Namespace) -> int:
    """Remove a task of the user's, after a question."""
    store, attempts = _store(), attempt_store()
    task = store.find(options.task)
    tried = [summary for summary in attempts.summaries() if summary.task_id == task.id]
    if opened := next((summary.attempt_id for summary in tried if summary.open), ""):
        raise AttemptError(f"Attempt {opened} of this task is open.", hint="Close it first.")
    if tried:
        kept = f"{len(tried)} {'attempt' if len(tried) == 1 else 'attempts'}"
        print(f"{kept} of it stay readable, but can't be gone on with.", file=sys.stderr)
    if not (options.yes or _agreed(f"Delete task {task.short_id}? Type yes: ")):
        raise UserError("Nothing was deleted.", hint="Without a terminal, --yes says that it is meant.")
    store.remove(task)
    print(f"{task.short_id}: deleted")
    return DONE


def _agreed(question: str) -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() == "yes"


def check(options: argparse.Namespace) -> int:
    """Run every check and print what it found; the exit code is 1 where one failed."""
    task = _store().find(options.task)
    runner, checks = _checks(task, options)
    findings = []
    with ProgressLine() as progress:
        for finding in checks(progress.making):
            findings.append(finding)
            if not options.json:
                word = "reduced" if finding.reduced else "ok" if finding.passed else "FAILED"
                progress.line(f"{word:>8}  {finding.name}: {finding.detail}")
    good = all(finding.passed for finding in findings)
    if options.json:
        rows = [asdict(finding) for finding in findings]
        print_json("gistpoint.check/1", {"id": task.id, "passed": good, "backend": runner.backend.name, "checks": rows})
    else:
        print(f"{task.short_id}: {'clean' if good else 'not clean'} on {runner.backend.name}")
    return DONE if good else NEGATIVE


def _checks(
    task: Task, options: argparse.Namespace
) -> tuple[Runner | EntrypointRunner, Callable[[OnMaking], Iterator[Finding]]]:
    """Return where a task's code runs, and the checks of its kind."""
    demo, answer = is_our_demo(task, Locations.of_user()), read_answer(task)
    if task.mode is Mode.GIST:
        entrypoints = build_entrypoint_runner(options, demo=demo)
        gists = GistJudge(task, answer.gist_answer, entrypoints)
        return entrypoints, lambda tell: check_gist_task(gists, answer, on_progress=tell)
    runner = build_runner(options, demo=demo)
    return runner, lambda tell: check_task(Judge(task, answer, runner), on_progress=tell)
