"""The line of an output that names an error, and its normalised form, which is equal for equal causes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

LONGEST = 240
"""The maximum length of an error's line in characters."""
_ENDS = 16_000
"""The number of characters at each end of an output that are searched for an error."""
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_TAG = re.compile(r"</?[a-z][\w-]{0,40}>")
"""A tag that a harness puts around an output, such as `<tool_use_error>`."""
_RETURN_CODE = re.compile(r"<(?:returncode|exit_code)>\s*(-?\d+)\s*</\w+>")
_TRACEBACK = "Traceback (most recent call last)"
_AFTER_FRAMES = re.compile(r"(?:\n(?:[ \t][^\n]*)?)*\n(?P<error>[^\s\n][^\n]*)")
"""Matches the first line of a traceback that is neither indented nor empty."""
_OF_IPYTHON = re.compile(r"(?P<name>[A-Za-z_][\w.]*) +$")
"""The exception's name before the word "Traceback" in the output of IPython, which does not indent frames."""
_RAISED = re.compile(
    r"^(?:E\s+)?(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Warning|Timeout|Failure|Fault)\b"
    r"|^(?:Uncaught )?Error: \S|^panicked at |^thread '[^']*' panicked|^Exception in thread|^Caused by: "
)
_OF_A_COMPILER = re.compile(r"^\S+:\d+(?::\d+)?: (?:fatal )?error: ")
"""A place in a source file with an error; if there are several, the first one causes the others."""
_LABELLED = re.compile(r"^(?:\[\w-]+\] ?)?(?:fatal |CMake )?(?:error|fatal)\b ?(?::|!|at )", re.IGNORECASE)
"""A line that begins with the word "error" or "fatal"."""
_NAMES_AN_EXCEPTION = re.compile(r"(?<![\w.])(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): ")
_SPEAKS_OF_ERROR = re.compile(
    r"^fail\b|(?<![\w-])(?:error|exception|fatal|panic|cannot|can't|could not|couldn't|unable to"
    r"|not found|no such|no module|not a"
    r"|denied|refused|forbidden|invalid|unknown|unrecognized|unexpected|missing|failed|failure|killed"
    r"|timed? ?out|too (?:large|long|many)|out of memory|segmentation fault|core dumped|unsupported"
    r"|does(?: not|n't) exist|not (?:permitted|allowed|supported|installed|unique))\b(?!-)",
    re.IGNORECASE,
)
_BEGINS_AS_ERROR = re.compile(r"\s*(?:<\w+>\s*)?(?:tool |execution )?error\b\s*[:!\]]", re.IGNORECASE)
_FAILED_AT_LAST = re.compile(
    r"(?:exit|return)(?:ed)?[ _-]?(?:with )?(?:code|status|value)?\W{0,3}[1-9]\d{0,2}\W*\Z"
    r"|(?:: command not found|: No such file or directory|: Permission denied)\Z"
    r"|(?:\A|\n)(?:make(?:\[\d+\])?: \*\*\* |[\w./-]{1,40}: (?:fatal )?error: )[^\n]*\Z",
    re.IGNORECASE,
)
_SAYS_HOW_IT_ENDED = re.compile(
    r"\[?\s*(?:(?:the\s+)?(?:command|process|shell|program)\b.{0,60}?\b)?(?:exit(?:ed|s)?|return(?:ed)?)?"
    r"[\s_-]*(?:with\s+)?(?:exit\s+)?(?:code|status|returncode)\s*[:=]?\s*(-?\d+)\.?\s*\]?",
    re.IGNORECASE,
)
"""A line that only states the exit code."""
_SUMS_UP = re.compile(
    r"^make(?:\[\d+\])?: \*\*\* |^=+.*=+$|^-+$|^> \S+@\S+ \S+$|^Tokens: .* (?:sent|received)\b|^https?://\S+$"
    r"|^EXECUTION RESULT of .*:$|^\d+ (?:failed|errors?)\b"
    r"|^(?:std(?:out|err)|output|error|exit code|signal|background pids|process group pgid|directory)"
    r": ?(?:\((?:none|empty)\)|-?\d*)$",
    re.IGNORECASE,
)
"""A line around the results of a command that does not show the cause, such as a banner or a count."""
_PREFIX = re.compile(r"^(?:E |#+ |- |(?:output|std(?:out|err)): +)", re.IGNORECASE)
"""The marks of pytest, of Markdown, and of shells that name the parts of a result, before an error's line."""
_MESSAGE = re.compile(r'^(?:[\w-]{1,40}: )?(?:\{.*?)?"(?:message|error)": ?"((?:[^"\\]|\\.){1,400})"')
"""The message of an error that is written as JSON."""


def shows_error(text: str) -> bool:
    """Return whether an output shows by itself that its command failed.

    It begins with an error, has a traceback near its end, or ends with an exit code other than 0 or with a
    typical message such as "command not found".
    """
    if _BEGINS_AS_ERROR.match(text, 0, 200) or _TRACEBACK in text[-_ENDS:]:
        return True
    ending = text[-2 * LONGEST :].rstrip()
    return _FAILED_AT_LAST.search(ending) is not None


def error_line(text: str, *, has_code: bool = False, at_end: bool = False) -> str:
    """Return the line of a failed command's output that names the error; empty if there is none.

    It is the first of these that exists: the line at the end of the last traceback, the first error of a
    compiler, the last line that begins with an exception, the first line that is labelled as an error, that
    names an exception, or that has a word such as "cannot", and the exit code in the text. If none exists,
    it is the first line, or the last one with `at_end`. With `has_code`, it is empty instead, because an exit
    code that is recorded separately says more than an arbitrary line.
    """
    ends = text if len(text) <= 2 * _ENDS else f"{text[:_ENDS]}\n{text[-_ENDS:]}"
    plain = (
        _TAG.sub(" ", _RETURN_CODE.sub(r"exit code \1\n", _ANSI.sub("", ends)))
        .replace("\r\n", "\n")
        .replace("\r", "\n")
    )
    # A result that is JSON in a string contains line breaks as escapes.
    if "\n" not in plain:
        plain = plain.replace("\\n", "\n")
    raised = _raised_last(plain)
    if raised:
        return raised[:LONGEST]
    lines = [line.strip() for line in plain.split("\n")]
    code = next((ended[1] for line in lines if (ended := _SAYS_HOW_IT_ENDED.fullmatch(line))), "")
    lines = [_PREFIX.sub("", line) for line in lines if line and not _is_aside(line)]
    found = _telling([line for line in lines if line and not _is_aside(line)])
    if not found:
        found = _otherwise(lines, code, has_code=has_code, at_end=at_end)
    message = _MESSAGE.match(found)
    return (message[1] if message else found).strip()[:LONGEST]


def _otherwise(lines: list[str], code: str, *, has_code: bool, at_end: bool) -> str:
    """Return a substitute for a missing error: an exit code, or the first or the last line; may be empty."""
    if code.strip("-0"):
        return f"exit code {code}"
    shown = () if has_code else reversed(lines) if at_end else lines
    return next(filter(None, shown), "")


def _telling(lines: list[str]) -> str:
    """Return the line that names the error; empty if none does."""
    found = next(filter(_OF_A_COMPILER.match, lines), "") or _last(lines, _RAISED.match)
    # The text after the first line about an error is mostly advice.
    forms = (_LABELLED.search, _NAMES_AN_EXCEPTION.search, _SPEAKS_OF_ERROR.search, _MESSAGE.search)
    return found or next((line for form in forms for line in lines if form(line)), "")


def _raised_last(text: str) -> str:
    """Return the line that ends the last traceback in an output; empty if there is none."""
    head = text.rfind(_TRACEBACK)
    if head < 0:
        return ""
    of_ipython = _OF_IPYTHON.match(text, text.rfind("\n", 0, head) + 1, head)
    if of_ipython:
        named = re.compile(rf"^{re.escape(of_ipython['name'])}(?::.*)?$", re.MULTILINE)
        return next((found.group().strip() for found in named.finditer(text, head)), of_ipython["name"])
    at = text.find("\n", head)
    ending = _AFTER_FRAMES.match(text, at) if at >= 0 else None
    return ending["error"].strip() if ending is not None else ""


def _is_aside(line: str) -> bool:
    return _SAYS_HOW_IT_ENDED.fullmatch(line) is not None or _SUMS_UP.search(line) is not None


def _last(lines: Iterable[str], test: Callable[[str], object]) -> str:
    return next((line for line in reversed([*lines]) if test(line)), "")


# The normalised form of a line

_KEPT_CODE = re.compile(
    r"\b(?:HTTP(?!://)(?:/\d(?:\.\d)?)?(?: Error)?|status(?:[ _]code)?|errno"
    r"|(?:exit|error|return)[ _]?(?:code|status))"
    r"\W{0,3}\d{1,3}\b",
    re.IGNORECASE,
)
"""A number that is itself the cause, such as an HTTP status or an exit code."""
_CLOCK = r"\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?"
_REPLACED = (
    (re.compile(r"^(?:/bin/|/usr/bin/)?((?:ba|z|da)?sh): (?:line )?\d+: "), r"\1: "),
    (re.compile(r"\b[a-z][a-z0-9+.-]{1,12}://[^\s'\"<>)\]]+", re.IGNORECASE), "<address>"),
    (re.compile(r"\b0x[0-9a-f]+\b", re.IGNORECASE), "<address>"),
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b"), "<address>"),
    (
        re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)?\b"),
        "<time>",
    ),
    (re.compile(r"\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b"), "<time>"),
    (re.compile(r"\b((?:old|new)_str(?:ing)?(?:`? parameter:|(?= `))) .+"), r"\1 <text>"),
    # A path with a folder, or a file name with the suffix of source code or of a document.
    (
        re.compile(
            r"(?<![\w<])(?![A-Z]+/[A-Z]+(?![\w/.]))(?:[A-Za-z]:)?(?:~|\.{1,2})?[\w.@+-]*(?:[/\\][\w.@+~=-]+)+[/\\]?"
        ),
        "<path>",
    ),
    (
        re.compile(
            r"(?<![\w<./])[\w-][\w.-]*\.(?:py|pyc|pyi|js|jsx|ts|tsx|json|jsonl|toml|ya?ml|txt|md|rst|cfg|ini|sh"
            r"|c|cc|cpp|h|hpp|java|go|rs|rb|php|html|css|xml|csv|log|lock|zip|tar|gz|so|sql|ipynb)\b"
        ),
        "<path>",
    ),
    (re.compile(r"<path>(?::\d+)+"), "<path>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b(?:call|toolu|chatcmpl|msg|req|run|sess|resp)_[A-Za-z0-9]{6,}\b"), "<id>"),
    (re.compile(r"(?<![\w<])[-+]?\d(?:[\d,_]*\d)?(?:\.\d+)*(?=(?:[kKMGT]?i?[bB]|ms|s|%|px)?(?!\w))"), "<n>"),
)
_SPACES = re.compile(r"\s+")
_HOLD = "\x00{}\x00"


def normalised(line: str) -> str:
    """Return an error's line without the parts that differ between equal causes.

    Paths, addresses, ids, times and numbers become `<path>`, `<address>`, `<id>`, `<time>` and `<n>`. HTTP
    status codes, exit codes and error numbers are kept, since they are the cause.
    """
    kept: list[str] = []

    def hold(match: re.Match[str]) -> str:
        kept.append(match.group())
        return _HOLD.format("<" * len(kept))

    text = _KEPT_CODE.sub(hold, _ANSI.sub("", line[:LONGEST]).replace("\0", " "))
    for form, name in _REPLACED:
        text = form.sub(name, text)
    for number, code in enumerate(kept, 1):
        text = text.replace(_HOLD.format("<" * number), code)
    return _SPACES.sub(" ", text).strip(" .:;,")
