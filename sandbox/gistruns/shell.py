"""Makes the calls for a solver's shell commands, and refuses some if no code may be executed.

Programs that only read are allowed, alone, in pipes and in lists. A command is refused because of its words,
never because of what it might print, and the solver sees the reason. The sandbox prevents execution: such a
command finds only these programs (decision 40).
"""

from __future__ import annotations

import os
import shlex

from gistpoint.sandbox.backends.base import Invocation
from gistpoint.sandbox.layout import MountPaths, plain_environment

READING = frozenset(
    {
        "basename",
        "cat",
        "cd",
        "cmp",
        "comm",
        "cut",
        "date",
        "diff",
        "dirname",
        "du",
        "echo",
        "egrep",
        "false",
        "fgrep",
        "find",
        "fold",
        "grep",
        "head",
        "ls",
        "md5sum",
        "nl",
        "od",
        "paste",
        "pwd",
        "readlink",
        "realpath",
        "rev",
        "sed",
        "sha256sum",
        "sort",
        "stat",
        "tac",
        "tail",
        "tr",
        "tree",
        "true",
        "uniq",
        "wc",
    }
)
PRELUDE = 'sed() { command sed --sandbox "$@"; }\n'
"""The text that runs before an allowed command: it makes sed refuse commands that start a program."""
_FORBIDDEN_WORDS = {
    "find": ("-exec", "-execdir", "-ok", "-okdir"),
    "sort": ("--co",),
}
_PUNCTUATION = "();<>|&"
_SEPARATORS = {";", "|", "||", "&&", "&", "|&", "(", ")"}
_REDIRECTIONS = {"<", ">", ">>", ">&", "&>", "&>>", "<&", ">|"}
_EXPANSIONS = {
    "`": "command substitution",
    "$(": "command substitution",
    "<(": "process substitution",
    ">(": "process substitution",
    "${": "parameter expansion",
    "$'": "quoting with $",
    '$"': "quoting with $",
}
_EVEN_QUOTED = {"`", "$(", "${"}


def refusal(command: str) -> str:
    """Return, as a sentence, why `command` is refused if nothing may be executed; empty if it is allowed."""
    text, expansion = _scanned(command)
    if expansion:
        return f"Nothing may be executed here, and {expansion} could do so: write the command without it."
    lexer = shlex.shlex(text, posix=True, punctuation_chars=_PUNCTUATION)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return _refusal_of(list(lexer))
    except ValueError as error:
        return f"The command can't be read: {error}."


def _refusal_of(words: list[str]) -> str:
    """Return a sentence on the first refused word; empty if no word is refused.

    It only explains, because the sandbox is the barrier (decision 40).
    """
    program = ""
    skip = False
    for word in words:
        opens_group = word == "(" and program != ""
        if skip:
            skip = False
        elif word in _REDIRECTIONS:
            # The next word is the name of a file.
            skip = True
        elif word in _SEPARATORS and not opens_group:
            program = ""
        elif set(word) <= set(_PUNCTUATION):
            return f"{word} is not understood here: only commands that read, in pipes and in lists."
        elif not program:
            if word not in READING:
                known = ", ".join(sorted(READING))
                return f"{word} does not run here, where nothing may be executed. These do: {known}."
            program = word
        elif word.startswith(_FORBIDDEN_WORDS.get(program, ("\0",))):
            return f"{program} {word} does not run here: it would execute something."
    return ""


def _scanned(command: str) -> tuple[str, str]:
    """Return the command with `;` in place of newlines, and the name of the first expansion, if any.

    If there is an expansion, the first text is empty.
    """
    result: list[str] = []
    quote = ""
    place = 0
    while place < len(command):
        character = command[place]
        # In single quotes, a backslash and the symbols of expansions are plain text.
        if quote != "'":
            if character == "\\":
                result.append(command[place : place + 2].replace("\\\n", ""))
                place += 2
                continue
            expansion = _expansion_at(command, place, quoted=quote != "")
            if expansion:
                return "", expansion
        if character in ("'", '"') and quote in ("", character):
            quote = "" if quote else character
        ends_line = character == "\n" and not quote
        result.append(" ; " if ends_line else character)
        place += 1
    return "".join(result), ""


def _expansion_at(command: str, place: int, *, quoted: bool) -> str:
    """Return the name of the expansion that begins at a position; empty if none does.

    Within double quotes, only some expansions are possible.
    """
    for sign, name in _EXPANSIONS.items():
        is_one = sign in _EVEN_QUOTED or not quoted
        if is_one and command.startswith(sign, place):
            return name
    return ""


_PYTHON_IN_SHELL = 'python() { %s "$@"; }\npytest() { python -m pytest "$@"; }\n'
READING_PROGRAMS = ("bash", "sh", *sorted(READING))
"""All programs that a read-only command finds; some of them are scripts for `sh`."""
_READING_PATH = "/usr/bin:/bin"


def shell_invocation(
    command: str, places: MountPaths, importable: list[str], *, execution: bool
) -> Invocation:
    """Return the call of bash, with the repository's Python if `execution`, otherwise for read-only commands.

    For read-only commands, brace expansion is off, because it could produce words that `refusal` never
    checked, and their failure would have no explanation.
    """
    environment = plain_environment(places, 0)
    if execution:
        environment |= {"PYTHONPATH": os.pathsep.join(importable), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        return Invocation(
            ("/bin/bash", "-c", _PYTHON_IN_SHELL % shlex.quote(places.python) + command), environment
        )
    # The environment is not on the PATH, so that such a command finds no interpreter (decision 40).
    environment["PATH"] = _READING_PATH
    return Invocation(("/bin/bash", "+B", "-c", PRELUDE + command), environment)
