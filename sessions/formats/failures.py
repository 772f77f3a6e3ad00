"""Whether a command failed, told from what it printed: a guess, for formats that record no exit code."""

from __future__ import annotations

import re

from gistpoint.sessions.runs.model import StepKind

_TERMINAL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")
_TOOL_FAILED = re.compile(
    r"(?i:error\b\s*:)|No replacement was performed|Invalid `\w+`"
    r"|The path .{1,300} (does not exist|is a directory|is not)"
    r"|File already exists at|Your proposed edit has introduced|Your bash command contained syntax errors"
    r"|(Interactive )?[Oo]peration '.{1,200}' is not supported|The command '.{0,400}' was cancelled because"
    r"|(File|Directory) \S{1,300} not found|EXECUTION TIMED OUT|Usage: |usage: \S+ .{0,400}\berror: ",
    re.S,
)
_SHELL_FAILED = re.compile(
    r"(?:/\S*/)?[\w.+-]{1,40}: .{0,400}(?:command not found|No such file or directory|Permission denied|cannot \w+"
    r"|can't open file|can't read|not found|syntax error|unexpected EOF|[Ii]nvalid option|unrecognized option"
    r"|Is a directory|Not a directory|fatal|\*\*\*)"
    r"|fatal: |E: |npm ERR!|error: pathspec"
)
_RAISED = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Failure|Warning)\b(?:: |:?\Z)")


def reports_error(output: str, kind: StepKind) -> bool:
    """Guess whether what a command printed says that it failed, from the words of shells, interpreters and tools.

    A file that is read or searched may hold such words itself: there only the shell's and the tool's own count.
    """
    text = _TERMINAL.sub("", output if len(output) < 8000 else f"{output[:4000]}\n{output[-4000:]}").strip()
    first, last = text[:1000], text[text.rfind("\n") + 1 :][:1000]
    if _TOOL_FAILED.match(first):
        return True
    if kind in (StepKind.VIEW, StepKind.SEARCH):
        return "\n" not in text and _SHELL_FAILED.match(first) is not None
    if any(_SHELL_FAILED.match(line) for line in (first.partition("\n")[0], last)):
        return True
    raised = _RAISED.match(last) is not None
    return raised and ("Traceback (most recent call last)" in text or '  File "' in text)
