"""One step as a text to read: what was thought, said, called and answered, with long parts folded."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gistpoint.sessions.runs.model import CutText, Result, Step, StepKind
from gistpoint.sessions.runs.parts import Scope, also_text, call_text, parts_of
from gistpoint.sessions.runs.rendering import moment

FOLD_LINES, FOLD_CHARACTERS = 400, 40_000
"""A part with more lines or characters is folded."""
KEPT_LINES, KEPT_CHARACTERS = 120, 12_000
"""What is left of a folded part."""

REVEALING = frozenset({StepKind.SCORE, StepKind.END})
"""Kinds of steps that tell the outcome."""
FLAG_WORDS = {"long": "a text of it is long", "unknown": "an event that the format's reader does not know"}


@dataclass(frozen=True, slots=True)
class Part:
    """A text of the step and where it stands: `offset` within the whole, `length` as far as it is shown."""

    scope: Scope
    number: int
    offset: int
    length: int
    folded: bool = False
    skipped: int = 0
    """Characters of the part that stand in its heading: the tool's name, which searches and ranges count."""


@dataclass(frozen=True, slots=True)
class StepText:
    """The whole text, the lines (from 0) that are headings, and the parts in order."""

    text: str
    headings: frozenset[int]
    parts: tuple[Part, ...]

    @property
    def folded(self) -> bool:
        """Whether a part of it is folded."""
        return any(part.folded for part in self.parts)

    def offset_of(self, scope: Scope, number: int, start: int) -> int | None:
        """Return where a character of a part stands in the whole; None where it is folded away."""
        for part in self.parts:
            if part.scope is scope and part.number == number and start - part.skipped < part.length:
                return part.offset + max(0, start - part.skipped)
        return None

    def part_at(self, offset: int) -> tuple[Part, int] | None:
        """Return the part that a character of the whole belongs to, and its place there; None on a heading."""
        at = bisect_right([part.offset for part in self.parts], offset) - 1
        if at < 0 or offset > self.parts[at].offset + self.parts[at].length:
            return None
        return self.parts[at], offset - self.parts[at].offset + self.parts[at].skipped


def compose(step: Step, whole: Mapping[tuple[Scope, int], str] | None = None, *, hides: bool = False) -> StepText:
    """Return the text of a step; `whole` has the parts that are to be shown unfolded, in full.

    With `hides`, a step that reveals the outcome is left empty, and what is of no known field is left out.
    """
    builder = _Builder(whole)
    builder.heading("  ".join(step_facts(step)))
    if hides and step.kind in REVEALING:
        builder.heading("hidden until your verdict")
        return builder.done()
    builder.part("thought" + _mark(step, "thought"), Scope.THOUGHT, 0, step.thought)
    builder.part(_said(step), Scope.TEXT, 0, step.text)
    answered: set[int] = set()
    for number, call in enumerate(step.calls):
        builder.part(
            f"call  {call.tool}  {call.id}".rstrip(),
            Scope.CALL,
            number,
            call_text(call),
            always=True,
            skipped=len(call.tool) + 1,
        )
        for at, result in enumerate(step.results):
            if call.id and result.call_id == call.id and at not in answered:
                answered.add(at)
                builder.part(_answered(result), Scope.RESULT, at, result.text, always=True)
    for at, result in enumerate(step.results):
        if at not in answered:
            builder.part(_answered(result), Scope.RESULT, at, result.text, always=True)
    builder.part("also recorded", Scope.ALSO, 0, "" if hides else also_text(step))
    return builder.done()


def step_facts(step: Step) -> list[str]:
    """Return what is known of a step beside its texts, a few words each; a tilde marks what was worked out."""
    facts = [step.kind.value, step.actor.value, step.label, step.model]
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


def sized(characters: int) -> str:
    """Return a length for people."""
    if characters < 10_000:
        return f"{characters:,} characters"
    return (
        f"{characters / 1e3:,.0f} k characters" if characters < 1_000_000 else f"{characters / 1e6:,.1f} M characters"
    )


def _tilde(step: Step, field: str) -> str:
    return "~" if field in step.derived else ""


def _mark(step: Step, field: str) -> str:
    return "  (derived)" if field in step.derived else ""


def _said(step: Step) -> str:
    return {"agent": "said", "person": "said"}.get(step.actor.value, step.actor.value)


def _answered(result: Result) -> str:
    facts = [f"result  {result.call_id}".rstrip()]
    if result.returncode is not None:
        facts.append(f"returned {result.returncode}")
    if result.is_error:
        facts.append("✘ error")
    if result.duration_s is not None:
        facts.append(f"{result.duration_s:.2f} s")
    return "  ".join(facts)


class _Builder:
    def __init__(self, whole: Mapping[tuple[Scope, int], str] | None) -> None:
        self._whole = whole or {}
        self._pieces: list[str] = []
        self._headings: set[int] = set()
        self._parts: list[Part] = []
        self._offset = self._line = 0

    def _add(self, text: str) -> None:
        self._pieces.append(text)
        self._offset += len(text)
        self._line += text.count("\n")

    def heading(self, text: str) -> None:
        """Add a heading, on one line."""
        self._headings.add(self._line)
        self._add(" ".join(text.split("\n")) + "\n")

    def part(self, title: str, scope: Scope, number: int, text: str, *, always: bool = False, skipped: int = 0) -> None:
        """Add a part below its heading; an empty one only where `always`."""
        if not text and not always:
            return
        self._add("\n")
        whole = self._whole.get((scope, number))
        shown = text if whole is None else whole
        kept = shown if whole is not None else _kept(shown)
        folded = len(kept) < len(shown) or (whole is None and isinstance(text, CutText))
        self.heading(f"── {title}" + ("" if text else "  (nothing)"))
        self._parts.append(Part(scope, number, self._offset, len(kept), folded, skipped))
        if kept:
            self._add(kept + "\n")
        if folded:
            self.heading(f"⋯ folded: {_length(text, shown)}; o shows all")

    def done(self) -> StepText:
        """Return what was built."""
        return StepText("".join(self._pieces).removesuffix("\n"), frozenset(self._headings), tuple(self._parts))


def _length(text: str, shown: str) -> str:
    if isinstance(text, CutText):
        return f"the whole takes {text.length:,} bytes"
    return f"{shown.count(chr(10)) + 1:,} lines, {sized(len(shown))} in all"


def _kept(text: str) -> str:
    if len(text) <= FOLD_CHARACTERS and text.count("\n") < FOLD_LINES:
        return text
    at = -1
    for _ in range(KEPT_LINES):
        following = text.find("\n", at + 1, KEPT_CHARACTERS)
        if following < 0:
            return text[:KEPT_CHARACTERS]
        at = following
    return text[:at]


def long_parts(step: Step) -> Iterator[tuple[Scope, int, str]]:
    """Yield the parts of a step that are folded at first."""
    for scope, number, text in parts_of(step):
        if scope is not Scope.DIFF and (isinstance(text, CutText) or len(_kept(text)) < len(text)):
            yield scope, number, text
