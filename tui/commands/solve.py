"""`gistpoint solve`: the solve screen, or with `--lines` tool calls read from standard input."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.identity import MODEL, Role
from gistpoint.core.attempts.malformed import json_object
from gistpoint.core.attempts.state import AttemptResult, attempt_result
from gistpoint.core.errors import AttemptError, CancelledError, UserError
from gistpoint.core.kinds.commandline import QuestionError, parse
from gistpoint.core.kinds.gist.overrides import MOST_BYTES, GistOverrides, parse_overrides
from gistpoint.core.kinds.registry import render_brief
from gistpoint.core.tasks.model import Task
from gistpoint.core.text import visible
from gistpoint.core.tools.declaration import ArgumentKind, Tool
from gistpoint.sessions.attempts import OpenAttempt
from gistpoint.tui.commands.arguments import add_lines
from gistpoint.tui.commands.command import DONE, NEGATIVE, Handler
from gistpoint.tui.commands.output import interactive, print_text
from gistpoint.tui.object_graph import add_isolation, build_services
from gistpoint.tui.services import Services
from gistpoint.tui.starting import go_on_collecting

_HELP = frozenset({"help", "?"})
"""Lines that print the list of tools."""
_FREE = "Nothing was called, nothing spent."


def solve_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint solve`."""
    parser.add_argument("what", metavar="TASK|ATTEMPT", help="id or its beginning, a task's folder or its .tar.zst")
    parser.add_argument("--new", action="store_true", help="begin another attempt although one is unfinished")
    parser.add_argument(
        "--role",
        choices=[role.value for role in Role if role is not Role.DEMO],
        help="what the attempt is for (default: baseline)",
    )
    parser.add_argument("--participant", default="", help="a pseudonym, recorded with the attempt")
    add_lines(parser)
    parser.add_argument(
        "--gist-settings", metavar="FILE",
        help="tools, steps, advice and test of this attempt of a gist, as TOML or JSON (docs/guide/gists.md)",
    )  # fmt: skip
    add_isolation(parser)
    return solve


def solve(options: argparse.Namespace) -> int:
    """Open a task or an attempt by id."""
    services = build_services(options)
    try:
        attempt_id = services.attempts.folder(options.what).name
    except AttemptError:
        task = services.tasks.find(options.what)
        if options.gist_settings:
            services = replace(services, gist_settings={task.id: read_gist_settings(options.gist_settings)})
            services.as_given(task)
        return solve_task(services, task, new=options.new, lines=options.lines)
    if options.gist_settings:
        raise UserError(
            f"The attempt {attempt_id} keeps the settings that it began with.",
            hint="Name its task instead, to begin an attempt with others.",
        )
    state = services.attempts.summary(attempt_id).state
    if state.driver == MODEL and not state.ended:
        raise UserError(
            f"A model works on the attempt {attempt_id}.", hint=f"`gistpoint agent watch {attempt_id}` takes it over."
        )
    return _open(services, attempt_id, lines=options.lines)


def read_gist_settings(file: str) -> GistOverrides:
    """Read a file of settings of gists. Raises `UserError`."""
    try:
        with Path(file).open("rb") as opened:
            data = opened.read(MOST_BYTES + 1)
    except OSError as error:
        raise UserError(f"{file} can't be read: {error.strerror}.", hint="Name a file of settings.") from error
    if len(data) > MOST_BYTES:
        raise UserError(f"{file} has more than {MOST_BYTES} bytes.", hint="Name a file of settings.")
    return parse_overrides(data, file)


def solve_task(services: Services, task: Task, *, new: bool, lines: bool) -> int:
    """Resume the newest unfinished attempt of a task, or begin one."""
    unfinished = [] if new else services.unfinished(task)
    for summary in unfinished:
        if summary.problem:
            print(f"attempt {summary.attempt_id} can only be read: {summary.problem}", file=sys.stderr)
    sound = [summary.attempt_id for summary in unfinished if not summary.problem]
    return _open(services, sound[0] if sound else task, new=new, lines=lines)


def _open(services: Services, what: Task | str, *, lines: bool, new: bool = False) -> int:
    if not (lines or interactive()):
        raise UserError(
            "There is no terminal: nothing was begun.",
            hint="With --lines, tool calls are read from standard input, one a line.",
        )
    if not lines:
        if isinstance(what, Task):
            services.prepare(what)
        from gistpoint.tui.app import GistpointApp

        return GistpointApp(services, open=what if isinstance(what, str) else what.id, new=new).run_to_exit_code()
    go_on_collecting()  # it was put off for a screen
    opened = services.resume(what) if isinstance(what, str) else services.start(what)
    try:
        return _by_lines(opened)
    except KeyboardInterrupt as error:
        id = opened.attempt.state.attempt_id
        raise CancelledError(f"Stopped. Every answer is kept: `gistpoint solve {id} --lines` goes on.") from error
    finally:
        opened.close()


def _by_lines(opened: OpenAttempt) -> int:
    """Answer one tool call per line of standard input: as typed in the console, or `{"tool":…, "arguments":…}`.

    A typed line is understood, or questioned at no cost, as in the console; a JSON line is a call exactly as written.
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
            name, arguments = read_call(line, attempt)
        except QuestionError as question:
            attempt.use_affordance("question")
            meant = f" Did you mean this? {question.suggested}" if question.suggested else ""
            print_text(f"Line {number}: Not understood: {question}{meant}\n{_FREE}")
        except UserError as error:
            print_text(f"Line {number}: {error}\n{_FREE}")
        else:
            _answer(name, arguments, attempt)
        sys.stdout.flush()
    return _ended(attempt)


def _answer(name: str, arguments: Mapping[str, Any], attempt: Attempt) -> None:
    try:
        print_text(attempt.call(name, arguments).text)
    except AttemptError:
        if not attempt.state.ended:
            raise


def _tools(attempt: Attempt) -> str:
    """Return the tools with their arguments and purpose, one per line."""
    tools = [f"{tool.usage()}: {tool.description}" for tool in attempt.offered()]
    return "\n".join([*tools, f"Code can be given as @ and the name of its file. {_FREE}"])


def read_call(line: str, attempt: Attempt) -> tuple[str, Mapping[str, Any]]:
    """Return the tool and the arguments of a line.

    Raises `QuestionError` for one that can't be understood, `UserError` for a file of code that can't be read.
    """
    if line.lstrip().startswith("{"):
        return _json_call(line)
    tool, arguments = parse(line, attempt.offered(), attempt.state.knowledge)
    _require_code_in_its_place(tool, arguments)
    for argument in tool.arguments:
        value = arguments.get(argument.name, "")
        if argument.kind is ArgumentKind.CODE and value.startswith("@"):
            arguments[argument.name] = _code_in(value[1:])
    return tool.name, arguments


def _require_code_in_its_place(tool: Tool, arguments: Mapping[str, str]) -> None:
    """Raise `QuestionError` if a file of code is given as another argument: the call would be refused at its cost."""
    code = next((a.name for a in tool.arguments if a.kind is ArgumentKind.CODE), "")
    misplaced = [value for name, value in arguments.items() if name != code and value.startswith("@")]
    given = arguments.get(code, "")
    if code and misplaced and not given.startswith("@") and not any(map(str.isspace, given)):
        raise QuestionError(f"{misplaced[0]} is not given as {code}. Usage: {tool.usage()}")


def _code_in(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{file} can't be read: {error.strerror}.", hint="Name the file of the code.") from error
    except ValueError as error:
        raise UserError(f"{file} can't be read as text in UTF-8.", hint="Name the file of the code.") from error


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
    reason = state.ending.reason if state.ending else "unfinished; the same command resumes it"
    result = attempt_result(state)
    if result is AttemptResult.TO_BE_READ:
        reason = f"{result.value}; suspicious: {', '.join(state.suspicious)}"
    print(visible(f"attempt {state.attempt_id}: {reason}"), file=sys.stderr)
    return DONE if result is AttemptResult.SOLVED else NEGATIVE
