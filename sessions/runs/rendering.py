"""Renders a run or a step as plain text for people.

Strings are returned as recorded, so a caller that prints them must make control characters visible.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from gistpoint.core.text import bounded, bounded_pieces, visible_line
from gistpoint.sessions.formats.shared.calls import command_in, kind_of
from gistpoint.sessions.records.building import Tally
from gistpoint.sessions.records.model import (
    Json,
    Result,
    Run,
    RunCall,
    Step,
    StepKind,
    TextScope,
    json_text,
    parts_of,
)
from gistpoint.sessions.runs.commands import COMMAND_KEYS, arguments_of
from gistpoint.sessions.runs.document import RunDocument

GLYPHS = {
    "system": "S",
    "task": "T",
    "message": "-",
    "view": "v",
    "search": "/",
    "edit": "e",
    "execute": "$",
    "test": "t",
    "submit": "!",
    "tool": "*",
    "delegate": ">",
    "context": "~",
    "score": "%",
    "state": ".",
    "pause": "=",
    "note": "n",
    "error": "x",
    "end": "#",
    "unknown": "?",
    "damaged": "x",
}
"""One character for each kind of step, for lists on any terminal."""

SHELLS = frozenset(
    (
        "bash",
        "execute_bash",
        "sh",
        "shell",
        "local_shell",
        "shell_command",
        "exec_command",
        "run_shell_command",
        "command_execution",
    )
)
"""Shell tools, which a row does not name, because the step's kind shows the purpose of the command."""
_WORDS = 160
"""The maximum number of characters in a step's row."""
FLAG_WORDS = {
    "long": "one of its texts is long",
    "unknown": "an event that the format's reader does not know",
}


def show(document: RunDocument, step: int | None = None, *, limit: int | None = 20_000) -> Iterator[str]:
    """Yield the lines of a run: its header and one line per step, or all lines of `step`, counted from 1.

    Strings of a step that are longer than `limit` characters are cut in the middle, with a line that reports
    this; None means no limit. Raises IndexError if there is no such step.
    """
    if step is not None:
        yield from step_lines(document, document.step(step - 1), limit=limit)
        return
    lines, spent = list[str](), Tally()
    for found in document.steps():
        spent.add_usage(found.tokens, found.cost)
        lines.append(f"{GLYPHS[found.kind.value]} {found.index + 1:>5}  {summary(found)}")
    yield from header_lines(spent.completed(document.header))
    yield ""
    yield from lines


def summed_header(document: RunDocument) -> Run:
    """Return the header of a run, with the sums of its steps for tokens and a cost that it does not record.

    The steps are read only if there is something to sum up.
    """
    document.build()
    run = document.header
    if run.tokens and run.cost is not None:
        return run
    spent = Tally()
    for step in document.steps():
        spent.add_usage(step.tokens, step.cost)
    return spent.completed(run)


def header_lines(run: Run, *, limit: int | None = 20_000) -> Iterator[str]:
    """Yield the lines of a header: its facts, other strings of the file, members not shown, and warnings.

    Other strings longer than `limit` characters are cut in the middle; None means no limit.
    """
    for name, value in header_facts(run):
        yield f"{name:<12} {value}"
    for noted in run.also:
        text = noted.text if limit is None else bounded(noted.text, limit)
        yield f"{noted.path}: {text}"
    for item in run.not_shown:
        yield f"{'not shown':<12} {', '.join(item.names)}: {item.reason}"
    for warning in run.warnings:
        yield f"{'warning':<12} {warning}"


_FACT_WORDS = {"verdict": "outcome", "exit_status": "end reason"}
"""The displayed names of header fields whose stored names differ."""


def header_facts(run: Run) -> Iterator[tuple[str, str]]:
    """Yield the name and value of each known fact about a run; a tilde marks derived values."""
    tokens = filter(None, map(_formatted, (run.tokens.prompt, run.tokens.completion)))
    facts = {
        "format": f"{run.format} {run.format_version}".strip(),
        "id": run.id,
        "task": run.task,
        "model": run.model,
        "agent": run.agent,
        "actor": run.actor.value,
        "verdict": run.verdict,
        "suspicious": ", ".join(run.suspicious),
        "confirmation": run.confirmation,
        "score": _formatted(run.score, "g"),
        "exit_status": run.exit_status,
        "tokens": " / ".join(tokens),
        "cost": _formatted(run.cost, ".4f", before="$"),
        "duration_s": _formatted(run.duration_s, ".1f"),
        "step_count": _formatted(run.step_count),
    }
    for name, value in facts.items():
        if value:
            words = _FACT_WORDS.get(name, name.replace("_", " "))
            yield words, f"{tilde_of(run, name)}{value}"
    for link in run.links:
        yield "goes on in", link
    for name, fact in run.extra.items():
        yield name.replace("_", " "), _fact_text(fact)


def _formatted(value: float | None, form: str = "", *, before: str = "", after: str = "") -> str:
    """Return a formatted number between two strings; an empty string if it is None."""
    if value is None:
        return ""
    return f"{before}{value:{form}}{after}"


def _fact_text(fact: Json) -> str:
    return fact if isinstance(fact, str) else json_text(fact, None)


def header_texts(run: Run) -> list[str]:
    """Return the strings of a run's header that a search covers.

    They are the recorded task and end reason, the extra facts, the strings outside all other fields, the
    prompt and the submission.
    """
    recorded = {"task": run.task, "exit_status": run.exit_status}
    texts = [text for name, text in recorded.items() if name not in run.derived]
    texts += map(_fact_text, run.extra.values())
    texts += [noted.text for noted in run.also]
    return [*texts, run.prompt, run.submission]


def summary(step: Step, width: int = 100) -> str:
    """Return a step in one line of at most `width` characters, followed by its flags.

    The line shows the call that determines the kind of the step, or else the beginning of its text.
    """
    line = " ".join(_summarised(step)[: width * 4].split())
    if len(line) > width:
        line = line[: width - 1] + "…"
    if not step.flags:
        return line
    flags = ", ".join(sorted(step.flags))
    return f"{line}  [{flags}]"


def _summarised(step: Step) -> str:
    """Return the call that determines the kind of a step, or else the step's first text."""
    if not step.calls:
        results = (result.text for result in step.results[:1])
        return next(filter(None, (step.text, step.thought, *results, step.label)), "")
    call = _main_call(step)
    shown = call.arguments
    for command in map(arguments_of(call).get, COMMAND_KEYS):
        if isinstance(command, str | list):
            shown = command_in(command)
            break
    names_tool = shown.split(None, 1)[:1] == [call.tool]
    if not names_tool:
        shown = f"{call.tool} {shown}"
    return f"{shown}{_more_calls(step)}"


def _more_calls(step: Step) -> str:
    more = len(step.calls) - 1
    return f"  (+{more} more)" if more else ""


def _main_call(step: Step) -> RunCall:
    """Return the call that determines the kind of a step, such as an edit among calls that write notes."""
    first, *others = step.calls
    if not others:
        return first
    return next((call for call in step.calls if kind_of((call,)) is step.kind), first)


def row_words(step: Step) -> str:
    """Return a step in one line: the call that determines its kind and the call's file, or else its text.

    The line is cut to 160 characters, not counting its flags.
    """
    if not step.calls:
        return summary(step, _WORDS)
    call = _main_call(step)
    path = _first_text(call, "path", "file_path")
    if path is None:
        return _words_without_path(step, call)
    action = _first_text(call, "command")
    if action is None:
        action = call.tool
    name = _first_text(call, "function_name", "func_name")
    place = f"{path}::{name}" if name else path
    return f"{action} {place}{_more_calls(step)}"[:_WORDS]


def _first_text(call: RunCall, *names: str) -> str | None:
    """Return the first string among the named arguments of a call; None if there is none."""
    values = map(arguments_of(call).get, names)
    return next((value for value in values if isinstance(value, str)), None)


def _words_without_path(step: Step, call: RunCall) -> str:
    plain = "" if _more_calls(step) else _plain_call(call)
    if plain:
        return plain
    words = summary(step, _WORDS)
    if call.tool.lower() in SHELLS:
        return words.removeprefix(f"{call.tool} ")
    return words


def _plain_call(call: RunCall) -> str:
    """Return a call without JSON syntax if it has no argument or only a string; empty for other calls.

    Shell commands are excluded too.
    """
    arguments = arguments_of(call)
    values = list(arguments.values())
    has_none = call.arguments.strip() in ("", "{}")
    has_one_text = len(values) == 1 and isinstance(values[0], str)
    runs_command = call.tool.lower() in SHELLS or not arguments.keys().isdisjoint(COMMAND_KEYS)
    is_plain = has_none or has_one_text
    if runs_command or not is_plain:
        return ""
    return " ".join(f"{call.tool} {next(iter(values), '')}"[: _WORDS * 4].split())[:_WORDS]


def money(dollars: float) -> str:
    """Return an amount of US dollars, rounded to cents, or below one cent to hundredths of a cent."""
    is_below_a_cent = 0 < abs(dollars) < 0.01
    return f"${dollars:.4f}" if is_below_a_cent else f"${dollars:,.2f}"


def tilde_of(run: Run | Step, field: str) -> str:
    """Return the tilde that marks a derived field; empty if the field is recorded."""
    return "~" if field in run.derived else ""


def moment(seconds: float, *, naive: bool) -> str:
    """Return a POSIX time as ISO 8601 in UTC; `naive` omits the zone, if the file records none."""
    at = datetime.fromtimestamp(seconds, UTC)
    return (at.replace(tzinfo=None) if naive else at).isoformat(timespec="milliseconds")


def step_facts(step: Step) -> list[str]:
    """Return the facts about a step other than its text, each in a few words; a tilde marks derived facts."""
    # The label or the model may be the same word as the kind or the actor, so repeated words are left out.
    facts = list(dict.fromkeys((step.kind.value, step.actor.value, step.label, step.model)))
    if step.started is not None:
        facts += _times(step, step.started)
    counts = {"in": step.tokens.prompt, "cached": step.tokens.cached, "out": step.tokens.completion}
    counted = [_formatted(count, ",", before=f"{name} ") for name, count in counts.items()]
    if any(counted):
        facts.append(f"{tilde_of(step, 'tokens')}tokens {', '.join(filter(None, counted))}")
    facts.append(_formatted(step.cost, ".4f", before=f"{tilde_of(step, 'cost')}$"))
    facts += [FLAG_WORDS.get(flag, flag) for flag in sorted(step.flags)]
    return list(filter(None, facts))


def _times(step: Step, started: float) -> Iterator[str]:
    """Yield when a step began, and if its end is known, how long it took."""
    stamp = moment(started, naive=step.naive)[:19].replace("T", " ")
    zone = " (no zone)" if step.naive else ""
    yield f"{tilde_of(step, 'started')}{stamp}{zone}"
    if step.ended is not None and step.ended > started:
        yield f"{tilde_of(step, 'ended')}{step.ended - started:.1f} s"


def language_of(call: RunCall) -> str:
    """Return the language of a call's arguments, `bash` or `python`; empty if it is neither."""
    if call.tool.lower() in SHELLS:
        return "bash"
    arguments = arguments_of(call)
    # A path is a single line; the text of a file may end in `.py` by chance.
    paths = (value for value in arguments.values() if isinstance(value, str) and "\n" not in value)
    has_code = "func_code" in arguments or any(path.endswith(".py") for path in paths)
    return "python" if has_code else ""


def step_lines(document: RunDocument, step: Step, *, limit: int | None = 20_000) -> Iterator[str]:
    """Yield the lines of one step: thought, text, calls, results and changes.

    Strings longer than `limit` characters are cut in the middle; None means no limit.
    """
    yield f"step {step.index + 1}  {step.kind.value}  {step.actor.value}  {step.label}".rstrip()
    if step.started is not None:
        yield f"at {moment(step.started, naive=step.naive)}"
    if step.derived:
        yield f"derived: {', '.join(sorted(step.derived))}"
    for link in dict.fromkeys(step.links):
        yield f"leads to {link}"
    without_result = unanswered(step)
    for scope, number, text in parts_of(step):
        shown = text or EMPTY.get(scope, "")
        if shown:
            pieces = document.full_text(shown)
            whole = "".join(pieces) if limit is None else bounded_pieces(pieces, limit)
            yield from _block(title_of(step, scope, number), whole)
        if scope is TextScope.CALL and number in without_result:
            yield from _block(f"result {step.calls[number].id}".rstrip(), UNANSWERED)
    raw = step.raw
    member = f" of {visible_line(raw.member)}" if raw.member else ""
    yield f"raw: bytes {raw.start:,} to {raw.end:,}{member}"


EMPTY = {TextScope.RESULT: "(nothing)", TextScope.CALL: "(no arguments)"}
"""Shown in place of an empty part."""

UNANSWERED = "(no result was recorded)"
"""Shown in place of the result of a call."""


def unanswered(step: Step) -> frozenset[int]:
    """Return the positions of a step's calls that have no recorded result.

    Submissions are left out, because they usually end the run. A result that names no call of the step is
    assigned to the first call without a result.
    """
    ids = {call.id for call in step.calls} - {""}
    unassigned = sum(result.call_id not in ids for result in step.results)
    answered = ids.intersection(result.call_id for result in step.results)
    without_result = [number for number, call in enumerate(step.calls) if call.id not in answered]
    left = without_result[unassigned:]
    return frozenset(number for number in left if kind_of((step.calls[number],)) is not StepKind.SUBMIT)


def title_of(step: Step, scope: TextScope, number: int) -> str:
    """Return the heading of one part of a step: its scope, and facts about a call or result."""
    match scope:
        case TextScope.CALL:
            call = step.calls[number]
            return f"call {call.tool} {call.id}".rstrip()
        case TextScope.RESULT:
            return _title_of_result(step.results[number])
        case TextScope.ALSO:
            return "also recorded"
    return scope.value


def _title_of_result(result: Result) -> str:
    facts = (
        f"result {result.call_id}".rstrip(),
        _formatted(result.returncode, before="returncode "),
        "error" if result.is_error else "",
        _formatted(result.duration_s, ".2f", after=" s"),
    )
    return ", ".join(filter(None, facts))


def _block(title: str, text: str) -> Iterator[str]:
    yield ""
    yield f"── {title}"
    yield from text.split("\n")
