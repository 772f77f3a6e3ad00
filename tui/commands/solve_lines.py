"""Attempts without a screen: tool calls are read from standard input, one per line, and answered."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gistpoint.core.attempts.engine import Attempt
from gistpoint.core.attempts.malformed import json_object
from gistpoint.core.attempts.state import AttemptResult, AttemptState, attempt_result
from gistpoint.core.errors import AttemptError, CancelledError, UserError
from gistpoint.core.kinds.commandline import QuestionError, parse
from gistpoint.core.kinds.confirming import confirmation_lines, to_be_confirmed
from gistpoint.core.tasks.model import Task
from gistpoint.core.text import visible
from gistpoint.core.tools.declaration import ArgumentKind, Tool
from gistpoint.sessions.attempts import OpenAttempt
from gistpoint.sessions.confirming import confirm_after_end
from gistpoint.sessions.services import Services
from gistpoint.tui.commands.command import DONE, NEGATIVE
from gistpoint.tui.commands.output import print_text
from gistpoint.tui.commands.progress import long_work
from gistpoint.tui.starting import resume_collecting

_HELP = frozenset({"help", "?"})
"""The lines that ask for the list of tools."""
_FREE = "Nothing was called or spent."


def solve_in_line_mode(services: Services, what: Task | str) -> int:
    """Begin a task, or resume an attempt by its id, and answer the lines on standard input.

    Return 1 unless the attempt counts as solved. Raises `CancelledError` on Ctrl+C.
    """
    resume_collecting()  # garbage collection was suspended for a screen
    opened = services.resume(what) if isinstance(what, str) else services.start(what)
    try:
        _in_line_mode(opened)
    except KeyboardInterrupt as error:
        id = opened.attempt.state.attempt_id
        raise CancelledError(
            f"Stopped. Every answer is kept: `gistpoint solve {id} --lines` continues."
        ) from error
    finally:
        opened.close()
    return _ended(opened.attempt.state, services)


def _in_line_mode(opened: OpenAttempt) -> None:
    """Answer the tool calls on standard input, one per line, in the console's form or as a JSON object.

    A line in the console's form is interpreted, or asked about at no cost, as in the console. A JSON object,
    with `tool` and `arguments`, is called exactly as it is. `help` and `?` print the tools at no cost.
    """
    attempt = opened.attempt
    print(f"attempt {attempt.state.attempt_id}", file=sys.stderr)
    print_text(attempt.brief)
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


def _answer(name: str, arguments: Mapping[str, Any], attempt: Attempt) -> None:
    try:
        print_text(attempt.call(name, arguments).text)
    except AttemptError:
        if not attempt.state.ended:
            raise


def _tools(attempt: Attempt) -> str:
    """Return a line for each tool, with its arguments and purpose."""
    tools = [f"{tool.usage()}: {tool.description}" for tool in attempt.offered()]
    return "\n".join([*tools, f"Code can be given as @ and the name of its file. {_FREE}"])


def read_call(line: str, attempt: Attempt) -> tuple[str, Mapping[str, Any]]:
    """Return the tool's name and the arguments that a line contains.

    Raises `QuestionError` for a line that can't be interpreted, and `UserError` if a file with code can't be
    read.
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
    """Raise `QuestionError` if a file with code is given for another argument.

    The tool would refuse the call, and a refused call has a cost.
    """
    code = next((argument.name for argument in tool.arguments if argument.kind is ArgumentKind.CODE), "")
    misplaced = [value for name, value in arguments.items() if name != code and value.startswith("@")]
    given = arguments.get(code, "")
    if code and misplaced and not given.startswith("@") and not any(map(str.isspace, given)):
        raise QuestionError(
            f"{misplaced[0]} names a file with code, but is not the argument {code}. Usage: {tool.usage()}"
        )


def _code_in(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"{file} can't be read: {error.strerror}.", hint="Name the file of the code."
        ) from error
    except ValueError as error:
        raise UserError(
            f"{file} can't be read as text in UTF-8.", hint="Name the file of the code."
        ) from error


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


def _ended(state: AttemptState, services: Services) -> int:
    """Confirm a pass, and print how the attempt has ended. Return 1 unless it counts as solved.

    Ctrl+C leaves the pass unconfirmed, and raises `CancelledError`.
    """
    if to_be_confirmed(state) is not None:
        with long_work(
            kept=f"`gistpoint attempt confirm {state.attempt_id}` asks again.", asks_token=True
        ) as work:
            asked = confirm_after_end(services, state.attempt_id, run=work.run)
        state = state if asked is None else asked.state
    reason = state.ending.reason if state.ending else "unfinished; the same command resumes it"
    result = attempt_result(state)
    if result is AttemptResult.TO_BE_READ:
        reason = f"{result.value}; suspicious: {', '.join(state.suspicious)}"
    if state.confirmation is not None:
        lines = "\n  ".join(confirmation_lines(state.confirmation))
        print(visible(f"confirmation: {lines}"), file=sys.stderr)
    print(visible(f"attempt {state.attempt_id}: {reason}"), file=sys.stderr)
    return DONE if result is AttemptResult.SOLVED else NEGATIVE
