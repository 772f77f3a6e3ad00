"""`gistpoint solve`: the solve screen, or with `--lines` tool calls read from standard input."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.malformed import json_object
from gistpoint.core.attempts.state import AttemptResult, attempt_result
from gistpoint.core.errors import AttemptError, UserError
from gistpoint.core.kinds.gist.overrides import MOST_BYTES, GistOverrides, parse_overrides
from gistpoint.core.tasks.brief import render_brief
from gistpoint.core.tasks.model import Task
from gistpoint.core.text import visible
from gistpoint.core.tools.commandline import QuestionError, parse
from gistpoint.core.tools.declaration import Kind
from gistpoint.sessions.attempts import OpenAttempt
from gistpoint.tui.cli import DONE, NEGATIVE, build_services
from gistpoint.tui.commands.output import interactive, print_text
from gistpoint.tui.services import Services
from gistpoint.tui.starting import go_on_collecting

_HELP = frozenset({"help", "?"})
"""Lines that ask for the tools."""


def solve(options: argparse.Namespace) -> int:
    """Open a task or an attempt by id."""
    services = build_services(options)
    try:
        attempt_id = services.attempts.folder(options.what).name
    except AttemptError:
        task = services.tasks.find(options.what)
        if options.gist_settings:
            services = replace(services, gist_settings={task.id: _settings(options.gist_settings)})
            services.as_given(task)
        return solve_task(services, task, new=options.new, lines=options.lines)
    if options.gist_settings:
        raise UserError(
            f"The attempt {attempt_id} keeps the settings that it began with.",
            hint="Name its task instead, to begin an attempt with others.",
        )
    return _open(services, attempt_id, lines=options.lines)


def _settings(file: str) -> GistOverrides:
    try:
        with Path(file).open("rb") as opened:
            data = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise UserError(f"{file} can't be read: {error.strerror}.", hint="Name a file of settings.") from error
    if len(data) > MOST_BYTES:
        raise UserError(f"{file} has more than {MOST_BYTES} bytes.", hint="Name a file of settings.")
    return parse_overrides(data, file)


def solve_task(services: Services, task: Task, *, new: bool, lines: bool) -> int:
    """Go on with the newest unfinished attempt of a task, or begin one."""
    unfinished = [] if new else services.unfinished(task)
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
    """Answer one tool call per line of standard input: as typed in the console, or `{"tool":…, "arguments":…}`.

    What is typed is understood, or asked about at no cost, as in the console; a line of JSON is a call as it stands.
    `help` and `?` print the tools, at no cost.
    """
    attempt = opened.attempt
    print(f"attempt {attempt.state.attempt_id}", file=sys.stderr)
    print_text(render_brief(attempt.task))
    attempt.finish_pending()
    for number, line in enumerate(sys.stdin, 1):
        if not line.strip():
            continue
        if attempt.state.ended:
            break
        if line.strip() in _HELP:
            print_text(_tools(attempt))
            sys.stdout.flush()
            continue
        try:
            name, arguments = _call(line, attempt)
            print_text(attempt.call(name, arguments).text)
        except AttemptError:
            if not attempt.state.ended:
                raise
        except QuestionError as question:
            attempt.comfort("question")
            meant = f" Did you mean this? {question.suggested}" if question.suggested else ""
            print_text(f"Line {number}: Not understood: {question}{meant}\nNothing was called, nothing spent.")
        sys.stdout.flush()
    return _ended(attempt)


def _tools(attempt: Attempt) -> str:
    """Return what the tools are called with, and what they do, one a line."""
    told = [f"{tool.usage()}: {tool.description}" for tool in attempt.offered()]
    return "\n".join([*told, "Code may be the name of a file behind an @. Nothing was called, nothing spent."])


def _call(line: str, attempt: Attempt) -> tuple[str, Mapping[str, Any]]:
    if line.lstrip().startswith("{"):
        return _json_call(line)
    tool, arguments = parse(line, attempt.offered(), attempt.state.knowledge)
    for argument in tool.arguments:
        value = arguments.get(argument.name, "")
        if argument.kind is Kind.CODE and value.startswith("@"):
            try:
                arguments[argument.name] = Path(value[1:]).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise UserError(f"{value[1:]} can't be read: {error}.") from error
    return tool.name, arguments


def _json_call(line: str) -> tuple[str, Mapping[str, Any]]:
    try:
        value = json_object(line) or {}
    except ValueError as error:
        raise QuestionError(f"The line is not JSON: {error}.") from error
    name, arguments = value.get("tool"), value.get("arguments", {})
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise QuestionError(
            'A line of JSON is a call such as {"tool": "read_file", "arguments": {"file_path": "a.py"}}.'
        )
    return name, arguments


def _ended(attempt: Attempt) -> int:
    state = attempt.state
    reason = state.ending.reason if state.ending else "unfinished; the same command goes on with it"
    result = attempt_result(state)
    if result is AttemptResult.TO_BE_READ:
        reason = f"{result.value}; suspicious: {', '.join(state.suspicious)}"
    print(visible(f"attempt {state.attempt_id}: {reason}"), file=sys.stderr)
    return DONE if result is AttemptResult.SOLVED else NEGATIVE
