"""`gistpoint solve`: the solve screen, or with `--lines` tool calls read from standard input."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.errors import AttemptError, UserError
from gistpoint.core.tasks.brief import render_brief
from gistpoint.core.tasks.model import Task
from gistpoint.core.tools.commandline import parse
from gistpoint.core.tools.declaration import Kind, RefusalError, Tool
from gistpoint.sessions.attempts import OpenAttempt
from gistpoint.tui.cli import DONE, NEGATIVE, build_services
from gistpoint.tui.commands.output import interactive, print_text
from gistpoint.tui.services import Services
from gistpoint.tui.starting import go_on_collecting


def solve(options: argparse.Namespace) -> int:
    """Open a task or an attempt by id."""
    services = build_services(options)
    try:
        attempt_id = services.attempts.folder(options.what).name
    except AttemptError:
        return solve_task(services, services.tasks.find(options.what), new=options.new, lines=options.lines)
    return _open(services, attempt_id, lines=options.lines)


def solve_task(services: Services, task: Task, *, new: bool, lines: bool) -> int:
    """Go on with the newest unfinished attempt of a task, or begin one."""
    unfinished = [] if new else services.attempts.unfinished(task.id, services.enrolment)
    for summary in unfinished:
        if summary.problem:
            print(f"attempt {summary.attempt_id} can only be read: {summary.problem}", file=sys.stderr)
    sound = [summary.attempt_id for summary in unfinished if not summary.problem]
    return _open(services, sound[0] if sound else task, lines=lines)


def _open(services: Services, what: Task | str, *, lines: bool) -> int:
    if not (lines or interactive()):
        raise UserError(
            "There is no terminal: nothing was begun.",
            hint="With --lines, tool calls are read from standard input, one a line.",
        )
    if not lines:
        if isinstance(what, Task):
            services.prepare(what)
        from gistpoint.tui.app import GistpointApp

        return GistpointApp(services, open=what if isinstance(what, str) else what.id).run_to_exit_code()
    go_on_collecting()  # it was put off for a screen
    opened = services.resume(what) if isinstance(what, str) else services.start(what)
    try:
        return _by_lines(opened)
    finally:
        opened.close()


def _by_lines(opened: OpenAttempt) -> int:
    """Answer one tool call per line of standard input: as typed in the console, or `{"tool":…, "arguments":…}`."""
    attempt = opened.attempt
    print(f"attempt {attempt.state.attempt_id}", file=sys.stderr)
    print_text(render_brief(attempt.task))
    attempt.finish_pending()
    for line in sys.stdin:
        if not line.strip():
            continue
        if attempt.state.ended:
            break
        try:
            name, arguments = _call(line, attempt.tools)
            print_text(attempt.call(name, arguments).text)
        except AttemptError:
            if not attempt.state.ended:
                raise
        except RefusalError as refusal:
            print_text(f"Not understood: {refusal}")
        sys.stdout.flush()
    return _ended(attempt)


def _call(line: str, tools: tuple[Tool, ...]) -> tuple[str, Mapping[str, str]]:
    if line.lstrip().startswith("{"):
        try:
            value = json.loads(line)
            return str(value["tool"]), dict(value.get("arguments", {}))
        except (ValueError, KeyError, TypeError) as error:
            raise RefusalError(f'a line of JSON must be {{"tool": ..., "arguments": {{...}}}} ({error})') from error
    tool, arguments = parse(line, tools)
    for argument in tool.arguments:
        value = arguments.get(argument.name, "")
        if argument.kind is Kind.CODE and value.startswith("@"):
            try:
                arguments[argument.name] = Path(value[1:]).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise UserError(f"{value[1:]} can't be read: {error}.") from error
    return tool.name, arguments


def _ended(attempt: Attempt) -> int:
    state = attempt.state
    reason = state.ending.reason if state.ending else "unfinished; the same command goes on with it"
    print(f"attempt {state.attempt_id}: {reason}", file=sys.stderr)
    return DONE if state.solved else NEGATIVE
