"""Sessions that opencode exported as Markdown: a heading begins each turn, which contains calls and results.

The end of a thought is not marked, so it stays in the text, below opencode's own `_Thinking:_`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gistpoint.sessions.formats.shared.calls import edits_of, kind_of
from gistpoint.sessions.formats.shared.text_blocks import TextReader
from gistpoint.sessions.records.building import StepBuilder, any_error, asking_kind
from gistpoint.sessions.records.format import Raw, SingleRun
from gistpoint.sessions.records.model import Actor, Json, NotShown, Result, Run, RunCall, Step, StepKind
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.values import as_dict, as_str, as_text, objects, parsed_object

_TURN = re.compile(r"## (?P<who>User|Assistant)(?: \((?P<what>[^\n]{0,200})\))?\s*")
_TOP = re.compile(r"# (?P<title>[^\n]*)\n\s*\*\*Session ID:\*\* (?P<id>ses_\w+)")
_FACT = re.compile(r"^\*\*(Created|Updated):\*\* (.+)$", re.M)
_TOOL = re.compile(r"\*\*Tool: (.{1,200}?)\*\*\s*")
_MEMBER = re.compile(r"\*\*(Input|Output|Error):\*\*\s*")
_RULE = re.compile(r"\n---\s*\Z")


class _Reader(TextReader):
    format = "opencode-markdown"

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self._between = False
        self._model = ""

    def begins(self, line: str, following: str, kind: str) -> str:
        follows_rule = self._between
        is_rule, is_blank = line.rstrip() == "---", not line.strip()
        self._between = is_rule or (is_blank and follows_rule)
        turn = _TURN.fullmatch(line) if follows_rule else None
        if turn is None:
            return "" if kind else "head"
        self._model = self._model or _model(turn["what"] or "")
        return "turn"

    def part(self, index: int, number: int, value: Json) -> Json:
        """Return a turn as its speaker, text and calls; text before the first turn under `head`."""
        head, _, text = as_str(value).replace("\r\n", "\n").partition("\n")
        turn = _TURN.fullmatch(head)
        if turn is None:
            return {"head": _RULE.sub("", as_str(value).rstrip()).strip("\n")}
        spoken, tools = _parts(_RULE.sub("", text.rstrip()))
        return {"who": turn["who"], "what": turn["what"] or "", "text": spoken, "tools": [*tools]}

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        turn = as_dict(raws[0].value)
        if "head" in turn:
            return (
                StepBuilder(index, raws, Actor.SYSTEM, StepKind.STATE, "head")
                .text(as_text(turn["head"]))
                .build()
            )
        asked, what = turn.get("who") == "User", as_str(turn.get("what"))
        tools = list(enumerate(objects(turn.get("tools")), 1))
        calls = tuple(
            RunCall(
                f"{index}.{number}",
                as_str(tool.get("name")),
                as_str(tool.get("input")),
                parsed_object(as_str(tool.get("input"))),
            )
            for number, tool in tools
        )
        results = tuple(
            Result(f"{index}.{number}", as_str(tool.get("error", tool.get("output"))), "error" in tool)
            for number, tool in tools
            if "output" in tool or "error" in tool
        )
        purpose = asking_kind(index, 2)
        return (
            StepBuilder(
                index,
                raws,
                Actor.USER if asked else Actor.AGENT,
                purpose if asked else kind_of(calls),
                " ".join(filter(None, (as_str(turn.get("who")), what))),
            )
            .text(as_text(turn.get("text")))
            .calls(calls)
            .results(results)
            .edits(edits_of(calls))
            .model(_model(what))
            .flag_if(any_error(results), "error")
            .derived(*({"kind", "results.call_id"} if tools else {"kind"}))
            .build()
        )

    def header(self) -> Run:
        top = _TOP.match(self.probe.text)
        facts = {key.lower(): value.strip() for key, value in _FACT.findall(self.probe.text[:4096])}
        first = next((turn["what"] for turn in _TURN.finditer(self.probe.text) if turn["what"]), "")
        return Run(
            self.format,
            id=top["id"] if top else "",
            task=top["title"].strip() if top else "",
            model=self._model or _model(first),
            agent="opencode",
            extra={**facts},
        )


def _model(what: str) -> str:
    """Return the model from the words after `Assistant`: mode, model and duration; empty if it names none."""
    parts = what.split(" · ")
    return parts[1] if len(parts) > 1 else ""


def _parts(text: str) -> tuple[str, list[dict[str, Json]]]:
    """Return the text of a turn, and its calls."""
    lines, spoken, tools, at = text.split("\n"), list[str](), list[dict[str, Json]](), 0
    while at < len(lines):
        tool = _TOOL.fullmatch(lines[at])
        if tool is None:
            spoken.append(lines[at])
            at += 1
            continue
        facts: dict[str, Json] = {"name": tool[1]}
        at += 1
        while (member := _member(lines, at)) is not None:
            name, facts[name], at = member
        tools.append(facts)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(spoken)).strip("\n"), tools


def _member(lines: list[str], at: int) -> tuple[str, str, int] | None:
    """Return the name and text of a call's next member, and the index of the line after; None without one."""
    while at < len(lines) and not lines[at].strip():
        at += 1
    found = _MEMBER.fullmatch(lines[at]) if at + 1 < len(lines) else None
    if found is None or not lines[at + 1].startswith("```"):
        return None
    end = _end(lines, at + 2)
    return found[1].lower(), "\n".join(lines[at + 2 : end]), end + 1


def _end(lines: list[str], begun: int) -> int:
    """Return the index of the line that closes a fence.

    Inner fences name a language. If they are not all closed, the first bare fence counts; without any, the
    index is the number of lines.
    """
    depth, first = 0, len(lines)
    for at in range(begun, len(lines)):
        line = lines[at].rstrip()
        if line == "```":
            first = min(first, at)
            if not depth:
                return at
            depth -= 1
        # Only a fence that names a language opens an inner block; a bare one closes it.
        elif re.fullmatch(r"```\w+", line):
            depth += 1
    return first


class OpencodeMarkdown(SingleRun):
    """Recognised by the id of a session below the title."""

    name = "opencode-markdown"
    unique_ids = True
    words_in_records = True
    parted_by = (b"**Tool: ",)  # the text before a call continues after it
    not_shown: Sequence[NotShown] = ()

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        return 1.0 if _TOP.match(probe.text[:8192]) else 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Return a reader of the session."""
        return _Reader(probe)


FORMAT = OpencodeMarkdown()
