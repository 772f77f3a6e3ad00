"""Finds calls that a model writes into its text, and failures that the output of a command reports.

The calls are SWE-agent's command lines, functions as XML, and blocks between fences. Failures are searched
for in formats that do not record whether a command failed.
"""

from __future__ import annotations

import re

from gistpoint.sessions.formats.shared.calls import shell_words
from gistpoint.sessions.records.model import Json, RunCall, StepKind
from gistpoint.sessions.records.values import compact

_TOOLS = frozenset(
    (
        "open",
        "goto",
        "scroll_up",
        "scroll_down",
        "create",
        "edit",
        "search_dir",
        "search_file",
        "find_file",
        "submit",
        "str_replace_editor",
        "insert",
        "exit_forfeit",
        "filemap",
    )
)
_OPTIONS = frozenset(("file_text", "view_range", "old_str", "new_str", "insert_line"))
_NUMBERS = frozenset(("view_range", "insert_line"))
_NUMBER = re.compile(r"-?\d{1,9}")
FUNCTION = re.compile(r"<function=[^>\n]{1,80}>.*?</function>", re.S)
PARAMETER = re.compile(r"<parameter=[^>\n]{1,80}>(.*?)</parameter>", re.S)
_NAMED = re.compile(r"<(?:function|parameter)=([^>\n]{1,80})>")
FENCE = re.compile(r"```[\w+-]{0,20}[ \t]*\n(.*?)\n?```", re.S)
_TERMINAL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
# Compiled at first use, because compiling takes several milliseconds.
_TOOL_FAILED = (
    r"(?s)(?i:error\b\s*:)|No replacement was performed|Invalid `\w+`"
    r"|The path .{1,300} (does not exist|is a directory|is not)"
    r"|File already exists at|Your proposed edit has introduced|Your bash command contained syntax errors"
    r"|(Interactive )?[Oo]peration '.{1,200}' is not supported|The command '.{0,400}' was cancelled because"
    r"|(File|Directory) \S{1,300} not found|EXECUTION TIMED OUT|Usage: |usage: \S+ .{0,400}\berror: "
)
_SHELL_FAILED = (
    r"(?:/\S*/)?[\w.+-]{1,40}: .{0,400}(?:command not found|No such file or directory|Permission"
    r" denied|cannot \w+"
    r"|can't open file|can't read|not found|syntax error|unexpected EOF|[Ii]nvalid option|unrecognized option"
    r"|Is a directory|Not a directory|fatal|\*\*\*)"
    r"|fatal: |E: |npm ERR!|error: pathspec"
)
_RAISED = r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Failure|Warning)\b(?:: |:?\Z)"


def call_of_command(action: str) -> RunCall | None:
    """Return the call for one of SWE-agent's command lines as an action records it; None if it is empty."""
    if not action.strip():
        return None
    name = action.split(None, 1)[0]
    if name not in _TOOLS:
        return RunCall("", "bash", action, {"command": action})
    parsed: dict[str, Json] = {"command": action}
    if name == "str_replace_editor":
        parts = shell_words(action)[1:]
        # SWE-agent's editor takes its command and its path by position, everything else as options.
        options = next((at for at, part in enumerate(parts) if part.startswith("--")), len(parts))
        parsed = dict(zip(("command", "path"), parts[:options], strict=False))
        if len(parts[:options]) > 2:
            parsed["arguments"] = [*parts[2:options]]
        parsed |= _options(parts[options:])
    return RunCall("", name, action, parsed)


def _options(parts: list[str]) -> dict[str, Json]:
    """Return the values of options by name, other values as `arguments`, and numeric options as numbers."""
    found: dict[str, list[str]] = {}
    name = ""
    for part in parts:
        if part.startswith("--") and part[2:] in _OPTIONS:
            name = part[2:]
            found[name] = []
        else:
            found.setdefault(name, []).append(part)
    read: dict[str, Json] = {}
    for name, values in found.items():
        typed: list[Json] = [_typed(name, value) for value in values]
        # A line range is always a list, even if only its beginning is given.
        is_list = len(typed) > 1 or name == "view_range"
        read[name or "arguments"] = typed if is_list else next(iter(typed), "")
    return read


def _typed(name: str, value: str) -> Json:
    return int(value) if name in _NUMBERS and _NUMBER.fullmatch(value) else value


def calls_in_functions(text: str) -> tuple[RunCall, ...]:
    """Return the calls in text, written as `<function=NAME><parameter=KEY>value</parameter></function>`."""
    calls: list[RunCall] = []
    for block in FUNCTION.findall(text):
        arguments: dict[str, Json] = {}
        for parameter in PARAMETER.finditer(block):
            name = _NAMED.match(parameter[0])
            arguments[name[1] if name else ""] = parameter[1].removeprefix("\n").removesuffix("\n")
        name = _NAMED.match(block)
        calls.append(RunCall("", name[1].strip() if name else "", compact(arguments), arguments))
    return tuple(calls)


def reports_error(output: str, kind: StepKind) -> bool:
    """Guess whether a command's output reports a failure, from the wording of shells, interpreters and tools.

    The content of a file that is read or searched may contain such wording: for these purposes, only messages
    of the shell and the tool itself count.
    """
    # Both ends suffice: shells and tools report failures at the beginning, interpreters at the end.
    text = _TERMINAL.sub("", output if len(output) < 8000 else f"{output[:4000]}\n{output[-4000:]}").strip()
    beginning, last = text[:1000], text[text.rfind("\n") + 1 :][:1000]
    if re.match(_TOOL_FAILED, beginning):
        return True
    if kind in (StepKind.VIEW, StepKind.SEARCH):
        return "\n" not in text and re.match(_SHELL_FAILED, beginning) is not None
    if any(re.match(_SHELL_FAILED, line) for line in (beginning.partition("\n")[0], last)):
        return True
    raised = re.match(_RAISED, last) is not None
    return raised and ("Traceback (most recent call last)" in text or '  File "' in text)
