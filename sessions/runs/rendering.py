"""A run or a step as plain text for people, raw: the caller makes control characters visible when printing it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from gistpoint.core.text import bounded
from gistpoint.sessions.formats.calls import command_in, kind_of
from gistpoint.sessions.records.model import CutText, Run, RunCall, Step, StepKind, TextScope, json_text, parts_of
from gistpoint.sessions.runs.document import RunDocument

GLYPHS = {
    "system": "S", "task": "T", "message": "-", "view": "v", "search": "/", "edit": "e", "execute": "$", "test": "t",
    "submit": "!", "tool": "*", "delegate": ">", "context": "~", "score": "%", "state": ".", "pause": "=", "note": "n",
    "error": "x", "end": "#", "unknown": "?", "damaged": "x",
}  # fmt: skip
"""One character for each kind of step, for lists on any terminal."""

SHELLS = frozenset(
    ("bash", "execute_bash", "sh", "shell", "local_shell", "shell_command", "exec_command", "run_shell_command",
     "command_execution")
)  # fmt: skip
"""Tools that a row does not name: the kind of the step tells what the command does."""
_WORDS = 160
"""Characters of a step in one line."""
FLAG_WORDS = {"long": "a text of it is long", "unknown": "an event that the format's reader does not know"}


def show(document: RunDocument, step: int | None = None, *, limit: int = 20_000) -> Iterator[str]:
    """Yield the lines of a run: its header and one line per step, or the whole step with the 1-based number `step`.

    Texts longer than `limit` characters are cut in their middle, with a line that says so. Raises IndexError if
    there is no such step.
    """
    if step is not None:
        yield from step_lines(document.step(step - 1), limit=limit)
        return
    lines = [f"{GLYPHS[found.kind.value]} {found.index + 1:>5}  {summary(found)}" for found in document.steps()]
    yield from header_lines(document.header)
    yield ""
    yield from lines


def header_lines(run: Run, *, limit: int | None = 20_000) -> Iterator[str]:
    """Yield the lines of a header: its facts, other texts of the file, what is not shown, and warnings.

    Those other texts are cut in their middle if they have more than `limit` characters.
    """
    for name, value in header_facts(run):
        yield f"{name:<12} {value}"
    for noted in run.also:
        yield f"{noted.path}: {noted.text if limit is None else bounded(noted.text, limit)}"
    for item in run.not_shown:
        yield f"{'not shown':<12} {', '.join(item.names)}: {item.reason}"
    for warning in run.warnings:
        yield f"{'warning':<12} {warning}"


def header_facts(run: Run) -> Iterator[tuple[str, str]]:
    """Yield the known facts about a run with their names; derived values are marked with a tilde."""
    tokens = " / ".join(str(n) for n in (run.tokens.prompt, run.tokens.completion) if n is not None)
    facts = {
        "format": f"{run.format} {run.format_version}".strip(), "id": run.id, "task": run.task, "model": run.model,
        "agent": run.agent, "actor": run.actor.value, "verdict": run.verdict, "suspicious": ", ".join(run.suspicious),
        "confirmation": run.confirmation,
        "score": "" if run.score is None else f"{run.score:g}", "exit_status": run.exit_status, "tokens": tokens,
        "cost": "" if run.cost is None else f"${run.cost:.4f}",
        "duration_s": "" if run.duration_s is None else f"{run.duration_s:.1f}",
        "step_count": "" if run.step_count is None else str(run.step_count),
    }  # fmt: skip
    for name, value in facts.items():
        if value:
            yield name.replace("_", " "), f"{'~' if name in run.derived else ''}{value}"
    for link in run.links:
        yield "goes on in", link
    for name, fact in run.extra.items():
        yield name.replace("_", " "), fact if isinstance(fact, str) else json_text(fact, None)


def header_texts(run: Run) -> list[str]:
    """Return the texts that a run's header has from its file, as its lines and the text of its task show them."""
    recorded = {"task": run.task, "exit_status": run.exit_status}
    texts = [text for name, text in recorded.items() if name not in run.derived]
    texts += [fact if isinstance(fact, str) else json_text(fact, None) for fact in run.extra.values()]
    return [*texts, *(noted.text for noted in run.also), run.prompt, run.submission]


def summary(step: Step, width: int = 100) -> str:
    """Return a step in one line: the call that gives it its kind, or the beginning of its text."""
    if step.calls:
        call = _main_call(step)
        commands = [(call.parsed or {}).get(key) for key in ("command", "cmd", "keystrokes")]
        shown = next((command_in(command) for command in commands if isinstance(command, str | list)), call.arguments)
        shown = (shown if shown.split(None, 1)[:1] == [call.tool] else f"{call.tool} {shown}") + (
            f"  (+{len(step.calls) - 1} more)" if len(step.calls) > 1 else ""
        )
    else:
        shown = step.text or step.thought or (step.results[0].text if step.results else "") or step.label
    line = " ".join(shown[: width * 4].split())
    line = line if len(line) <= width else line[: width - 1] + "…"
    return line + (f"  [{', '.join(sorted(step.flags))}]" if step.flags else "")


def _main_call(step: Step) -> RunCall:
    """Return the call that gives the step its kind: an edit, where a list of things to do was written with it."""
    first, *others = step.calls
    return next((call for call in step.calls if kind_of((call,)) is step.kind), first) if others else first


def row_words(step: Step) -> str:
    """Return a step in one line: the call that gives it its kind, with its object, else its text."""
    call = _main_call(step) if step.calls else None
    parsed = (call.parsed or {}) if call is not None else {}
    path = next((parsed[key] for key in ("path", "file_path") if isinstance(parsed.get(key), str)), None)
    if call is not None and path is None and len(step.calls) == 1 and (words := _plain_call(call)):
        return words
    if call is None or path is None:
        words = summary(step, _WORDS)
        return words.removeprefix(f"{call.tool} ") if call is not None and call.tool.lower() in SHELLS else words
    doing = parsed.get("command")
    more = f"  (+{len(step.calls) - 1} more)" if len(step.calls) > 1 else ""
    name = next((parsed[key] for key in ("function_name", "func_name") if isinstance(parsed.get(key), str)), None)
    place = f"{path}::{name}" if name else path
    return f"{doing if isinstance(doing, str) else call.tool} {place}{more}"[:_WORDS]


def _plain_call(call: RunCall) -> str:
    """Return a call of one of our tools without the marks of JSON: those have no argument, or one that is a text."""
    values = list((call.parsed or {}).values())
    if call.arguments.strip() not in ("", "{}") and (len(values) != 1 or not isinstance(values[0], str)):
        return ""
    if call.tool.lower() in SHELLS or set(call.parsed or {}) & {"command", "cmd", "keystrokes"}:
        return ""
    return " ".join(f"{call.tool} {values[0] if values else ''}"[: _WORDS * 4].split())[:_WORDS]


def money(dollars: float) -> str:
    """Return an amount of US dollars: whole cents, and below one of them hundredths."""
    return f"${dollars:,.2f}" if not dollars or abs(dollars) >= 0.01 else f"${dollars:.4f}"


def about(run: Run, field: str) -> str:
    """Return the tilde of a value of a run's header that its file does not say; empty for any other."""
    return "~" if field in run.derived else ""


def moment(seconds: float, *, naive: bool) -> str:
    """Return a time as ISO 8601, without a time zone if it was written without one."""
    at = datetime.fromtimestamp(seconds, UTC)
    return (at.replace(tzinfo=None) if naive else at).isoformat(timespec="milliseconds")


def step_facts(step: Step) -> list[str]:
    """Return the facts about a step other than its texts, a few words each; a tilde marks derived ones."""
    facts = list(dict.fromkeys((step.kind.value, step.actor.value, step.label, step.model)))  # some words repeat
    if step.started is not None:
        stamp = moment(step.started, naive=step.naive)[:19].replace("T", " ")
        facts.append(f"{_tilde(step, 'started')}{stamp}" + (" (no zone)" if step.naive else ""))
    if step.started is not None and step.ended is not None and step.ended > step.started:
        facts.append(f"{_tilde(step, 'ended')}{step.ended - step.started:.1f} s")
    tokens = step.tokens
    counted = [
        f"{name} {value:,}"
        for name, value in (("in", tokens.prompt), ("cached", tokens.cached), ("out", tokens.completion))
        if value is not None
    ]
    if counted:
        facts.append(f"{_tilde(step, 'tokens')}tokens {', '.join(counted)}")
    if step.cost is not None:
        facts.append(f"{_tilde(step, 'cost')}${step.cost:.4f}")
    facts += [FLAG_WORDS.get(flag, flag) for flag in sorted(step.flags)]
    return [fact for fact in facts if fact]


def _tilde(step: Step, field: str) -> str:
    return "~" if field in step.derived else ""


def language_of(call: RunCall) -> str:
    """Return the language of a call's argument: a shell's command, or the code of a Python file; empty if neither."""
    parsed = call.parsed or {}
    if call.tool.lower() in SHELLS:
        return "bash"
    paths = [value for value in parsed.values() if isinstance(value, str) and "\n" not in value]
    return "python" if any(path.endswith(".py") for path in paths) or "func_code" in parsed else ""


def step_lines(step: Step, *, limit: int = 20_000) -> Iterator[str]:
    """Yield the lines of one step: thought, text, calls, results and changes."""
    yield f"step {step.index + 1}  {step.kind.value}  {step.actor.value}  {step.label}".rstrip()
    if step.started is not None:
        yield f"at {moment(step.started, naive=step.naive)}"
    if step.derived:
        yield f"derived: {', '.join(sorted(step.derived))}"
    for link in dict.fromkeys(step.links):
        yield f"leads to {link}"
    silent = unanswered(step)
    for scope, number, text in parts_of(step):
        yield from _block(title_of(step, scope, number), text or EMPTY.get(scope, ""), limit)
        if scope is TextScope.CALL and number in silent:
            yield from _block(f"result {step.calls[number].id}".rstrip(), UNANSWERED, limit)
    raw = step.raw
    yield f"raw: bytes {raw.start:,} to {raw.end:,}" + (f" of {raw.member}" if raw.member else "")


EMPTY = {TextScope.RESULT: "(nothing)", TextScope.CALL: "(no arguments)"}
"""Shown in place of an empty part."""

UNANSWERED = "(no result was recorded)"
"""Shown in place of the result of a call."""


def unanswered(step: Step) -> frozenset[int]:
    """Return which calls of a step have no recorded result, submissions aside, which mostly end the run.

    A result that names no call of the step counts for the first of the others.
    """
    ids = {call.id for call in step.calls if call.id}
    loose = sum(result.call_id not in ids for result in step.results)
    answered = {result.call_id for result in step.results}
    left = [number for number, call in enumerate(step.calls) if not call.id or call.id not in answered][loose:]
    return frozenset(number for number in left if kind_of((step.calls[number],)) is not StepKind.SUBMIT)


def title_of(step: Step, scope: TextScope, number: int) -> str:
    """Return the heading of a part of a step: its scope, and the facts of a call or a result."""
    if scope is TextScope.CALL:
        call = step.calls[number]
        return f"call {call.tool} {call.id}".rstrip()
    if scope is TextScope.ALSO:
        return "also recorded"
    if scope is not TextScope.RESULT:
        return scope.value
    result = step.results[number]
    facts = [f"returncode {result.returncode}" if result.returncode is not None else ""]
    facts.append("error" if result.is_error else "")
    facts.append(f"{result.duration_s:.2f} s" if result.duration_s is not None else "")
    return f"result {result.call_id}".rstrip() + "".join(f", {fact}" for fact in facts if fact)


def _block(title: str, text: str, limit: int) -> Iterator[str]:
    if not text:
        return
    yield ""
    yield f"── {title}"
    yield from bounded(text, limit).split("\n")
    if isinstance(text, CutText):
        yield f"[... the whole is {text.length:,} bytes long]"
