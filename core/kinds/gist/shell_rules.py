"""Which shell commands run where nothing may be executed: those that read, alone, in pipes and in lists.

A command is refused for what it is, never for what it might print: the reason goes back to the solver. What keeps
anything from being executed is the sandbox, in which these programs are all that such a command finds.
"""

from __future__ import annotations

import shlex

READING = frozenset({
    "basename", "cat", "cd", "cmp", "comm", "cut", "date", "diff", "dirname", "du", "echo", "egrep", "false", "fgrep",
    "find", "fold", "grep", "head", "ls", "md5sum", "nl", "od", "paste", "pwd", "readlink", "realpath", "rev", "sed",
    "sha256sum", "sort", "stat", "tac", "tail", "tr", "tree", "true", "uniq", "wc",
})  # fmt: skip
PRELUDE = 'sed() { command sed --sandbox "$@"; }\n'
"""Run before an allowed command: sed then says itself which of its commands would start a program."""
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
    """Return in a sentence why `command` may not run, or an empty text."""
    text, expansion = _scanned(command)
    if expansion:
        return f"Nothing may be executed here, and {expansion} could do so: write the command without it."
    lexer = shlex.shlex(text, posix=True, punctuation_chars=_PUNCTUATION)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return _refusal_of(list(lexer))
    except ValueError as error:
        return f"The command can't be read: {error}."


def _refusal_of(words: list[str]) -> str:
    program, skip = "", False
    for word in words:
        if skip:
            skip = False
        elif word in _REDIRECTIONS:
            skip = True
        elif word in _SEPARATORS and not (word == "(" and program):
            program = ""
        elif set(word) <= set(_PUNCTUATION):
            return f"{word} is not understood here: only commands that read, in pipes and in lists."
        elif not program and word not in READING:
            known = ", ".join(sorted(READING))
            return f"{word} does not run here, where nothing may be executed. These do: {known}."
        elif program and word.startswith(_FORBIDDEN_WORDS.get(program, ("\0",))):
            return f"{program} {word} does not run here: it would execute something."
        else:
            program = program or word
    return ""


def _scanned(command: str) -> tuple[str, str]:
    """Return the command with newlines as separators, and the name of the first expansion that could execute."""
    result: list[str] = []
    quote, place = "", 0
    while place < len(command):
        character = command[place]
        if quote != "'":
            if command.startswith("\\", place):
                result.append(command[place : place + 2].replace("\\\n", ""))
                place += 2
                continue
            for sign, name in _EXPANSIONS.items():
                if command.startswith(sign, place) and (not quote or sign in _EVEN_QUOTED):
                    return "", name
        if character in ("'", '"') and quote in ("", character):
            quote = "" if quote else character
        result.append(" ; " if character == "\n" and not quote else character)
        place += 1
    return "".join(result), ""
