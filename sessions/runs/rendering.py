"""A run or a step as plain text for people, raw: the caller makes control characters visible when printing it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from gistpoint.core.text import bounded
from gistpoint.sessions.formats.calls import command_in
from gistpoint.sessions.records.model import CutText, Run, Step, TextScope, json_text, parts_of
from gistpoint.sessions.runs.document import RunDocument

GLYPHS = {
    "system": "S", "task": "T", "message": "-", "view": "v", "search": "/", "edit": "e", "execute": "$", "test": "t",
    "submit": "!", "tool": "*", "delegate": ">", "context": "~", "score": "%", "state": ".", "pause": "=", "note": "n",
    "error": "x", "end": "#", "unknown": "?", "damaged": "x",
}  # fmt: skip
"""One character for each kind of step, for lists on any terminal."""


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


def header_lines(run: Run) -> Iterator[str]:
    """Yield the lines of a header; derived values are marked with a tilde, unknown ones are omitted."""
    tokens = " / ".join(str(n) for n in (run.tokens.prompt, run.tokens.completion) if n is not None)
    facts = {
        "format": f"{run.format} {run.format_version}".strip(), "id": run.id, "task": run.task, "model": run.model,
        "agent": run.agent, "actor": run.actor.value, "verdict": run.verdict, "suspicious": ", ".join(run.suspicious),
        "score": "" if run.score is None else f"{run.score:g}", "exit_status": run.exit_status, "tokens": tokens,
        "cost": "" if run.cost is None else f"${run.cost:.4f}",
        "duration_s": "" if run.duration_s is None else f"{run.duration_s:.1f}",
        "step_count": "" if run.step_count is None else str(run.step_count),
    }  # fmt: skip
    for name, value in facts.items():
        if value:
            yield f"{name.replace('_', ' '):<12} {'~' if name in run.derived else ''}{value}"
    for link in run.links:
        yield f"{'goes on in':<12} {link}"
    for name, fact in run.extra.items():
        yield f"{name.replace('_', ' '):<12} {fact if isinstance(fact, str) else json_text(fact, None)}"
    for noted in run.also:
        yield f"{noted.path}: {bounded(noted.text, 20_000)}"
    for item in run.not_shown:
        yield f"{'not shown':<12} {', '.join(item.names)}: {item.reason}"
    for warning in run.warnings:
        yield f"{'warning':<12} {warning}"


def summary(step: Step, width: int = 100) -> str:
    """Return a step in one line: its first call, or the beginning of its text."""
    if step.calls:
        call = step.calls[0]
        commands = [(call.parsed or {}).get(key) for key in ("command", "cmd", "keystrokes")]
        shown = next((command_in(command) for command in commands if isinstance(command, str | list)), call.arguments)
        shown = f"{call.tool} {shown}" + (f"  (+{len(step.calls) - 1} more)" if len(step.calls) > 1 else "")
    else:
        shown = step.text or step.thought or (step.results[0].text if step.results else "") or step.label
    line = " ".join(shown[: width * 4].split())
    line = line if len(line) <= width else line[: width - 1] + "…"
    return line + (f"  [{', '.join(sorted(step.flags))}]" if step.flags else "")


def moment(seconds: float, *, naive: bool) -> str:
    """Return a time as ISO 8601, without a time zone if it was written without one."""
    at = datetime.fromtimestamp(seconds, UTC)
    return (at.replace(tzinfo=None) if naive else at).isoformat(timespec="milliseconds")


def step_lines(step: Step, *, limit: int = 20_000) -> Iterator[str]:
    """Yield the lines of one step: thought, text, calls, results and changes."""
    yield f"step {step.index + 1}  {step.kind.value}  {step.actor.value}  {step.label}".rstrip()
    if step.started is not None:
        yield f"at {moment(step.started, naive=step.naive)}"
    if step.derived:
        yield f"derived: {', '.join(sorted(step.derived))}"
    for scope, number, text in parts_of(step):
        yield from _block(title_of(step, scope, number), text or EMPTY.get(scope, ""), limit)
    raw = step.raw
    yield f"raw: bytes {raw.start:,} to {raw.end:,}" + (f" of {raw.member}" if raw.member else "")


EMPTY = {TextScope.RESULT: "(nothing)", TextScope.CALL: "(no arguments)"}
"""Shown in place of an empty part."""


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
