"""aider's `.aider.chat.history.md`: one file with many chats, each of which is a run.

The marks are those of aider's `io.py`: a user's line begins with `####`, a notice with `>`, and both end with
two spaces. A notice of several lines has `>` on its first line and the spaces on its last. Everything else is
the model's text. A blank line precedes the model's headings, two precede a user's line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gistpoint.sessions.formats.shared.calls import kind_of_command
from gistpoint.sessions.formats.shared.text_blocks import TextReader, first_group, text_lines
from gistpoint.sessions.records.building import StepBuilder, Tally, asking_kind
from gistpoint.sessions.records.format import Format, Raw, RunEntry, RunNames, run_named
from gistpoint.sessions.records.model import (
    Actor,
    FileEdit,
    Json,
    NotShown,
    Result,
    Run,
    Step,
    StepKind,
    Tokens,
)
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.record import records_of, texts_of
from gistpoint.sessions.records.requests import headline
from gistpoint.sessions.records.scanning import RawRecord
from gistpoint.sessions.records.usage import counted_within
from gistpoint.sessions.records.values import as_str, joined, when

_CHAT = "# aider chat started at "
_TOKENS = re.compile(
    r"Tokens: ([\d.,]+[kM]?) sent,(?: ([\d.,]+[kM]?) cache write,)?(?: ([\d.,]+[kM]?) cache hit,)?"
    r" ([\d.,]+[kM]?) received"
)
_COST = re.compile(r"Cost: \$([\d.]+) (?:message|request|send)")
_MODEL = re.compile(r"^(?:Main model|Models?): ([^\s,]+)", re.M)
_VERSION = re.compile(r"^Aider v(\S+)", re.M)
_APPLIED = re.compile(r"^Applied edit to (.+?)\s*$", re.M)
_FAILED = re.compile(
    r"did not conform|SearchReplaceNoExactMatch|failed to match|^litellm\.|Traceback \(most recent", re.M
)
_UNANSWERED = re.compile(r"^litellm\.\w+", re.M)
_RUNNING = re.compile(r"^Running (.+?)\s*$", re.M)
_RAN = re.compile(r"(I ran this command:\s*([^\n]+))\n+And got this output:\s*?\n(.*)", re.S)
"""The output of aider's `/run` and `/test`, or of tests after an edit, which is the user's next request."""
_THOUGHT = re.compile(
    r"(?:^-{9,}\s*\n)?^► \*\*THINKING\*\*\s*\n(.*?)(?:(?:^-{9,}\s*\n)?^► \*\*ANSWER\*\*\s*?$|\Z)", re.M | re.S
)
"""A thought, as aider's `reasoning_tags.py` writes it; in a reply that was cut off, no answer follows it."""
_BLOCK = re.compile(
    r"^(?P<path>[^\n]+)\n[ \t]*(?:```|<\w+>)[^\n]*\n<{5,9} SEARCH\n(?P<old>.*?)^={5,9}\n(?P<new>.*?)^>{5,9}"
    r" REPLACE",
    re.M | re.S,
)


class _Lines:
    """Decides which block each line of a chat belongs to."""

    def __init__(self) -> None:
        self._open = False
        self._blanks = 1

    def begins(self, line: str, following: str, kind: str) -> str:
        """Return the kind of block that a line begins; empty if it continues the current block, of `kind`."""
        has_break = line.endswith("  ")
        blanks, self._blanks = self._blanks, 0 if line.strip() else self._blanks + 1
        if line.startswith(_CHAT):
            self._open = False
            return "chat"
        # Within a reply, `####` also begins the model's own headings, which have one blank line before them
        # and no spaces at their ends.
        may_be_heading = kind == "reply" and blanks <= 1 and not has_break
        if line.startswith("#### ") and not may_be_heading:
            self._open = False
            continues_question = kind == "user" and not blanks
            return "" if continues_question else "user"
        has_mark = line == ">" or line.startswith("> ")
        if has_mark:
            fresh = self._notice(line, following, kind, blanks)
            if fresh is not None:
                return fresh
        if self._open:
            self._open = not has_break
            return ""
        return "" if self._continues(line, kind, blanks) else "reply"

    def _notice(self, line: str, following: str, kind: str, blanks: int) -> str | None:
        """Return the kind of block that a line with a notice's mark begins; None if it is a quotation.

        The kind is empty if the line continues a notice.
        """
        has_break = line.endswith("  ")
        is_in_text = bool(following.strip()) or (kind == "notice" and not blanks)
        next_is_marked = following.startswith(("> ", "#### ", _CHAT))
        goes_on = is_in_text and not has_break and not next_is_marked
        is_notice = has_break or goes_on or kind == "notice"
        if not is_notice and line != ">":
            return None
        self._open = goes_on or (self._open and not has_break)
        return "" if kind == "notice" else "notice"

    def _continues(self, line: str, kind: str, blanks: int) -> bool:
        """Return whether a line without a mark continues the preceding block."""
        if kind == "notice":
            return not blanks or line[:1].isspace() or not line.strip()
        return kind == "reply" or not line.strip()


class _Reader(TextReader):
    format = "aider"

    def __init__(self, probe: FileProbe, chat: _Chat) -> None:
        super().__init__(probe)
        self._chat = chat
        self._lines = _Lines()
        self._kind = ""
        self._tally = Tally()

    def begins(self, line: str, following: str, kind: str) -> str:
        return self._lines.begins(line, following, kind)

    def records(self) -> Iterator[RawRecord]:
        for record in super().records():
            if record.fields == "notice":
                notices = as_str(self.load(self.probe.blob, record.start, record.end)[0])
                self._tally.add_usage(*_spent(notices))
            yield record

    def place(self, fields: Json, step_count: int) -> int:
        # Notices after a reply belong to the reply: they report its tokens, its edits and its tests.
        follows = fields == "notice" and self._kind in ("reply", "chat")
        joins = step_count and (follows or not fields)
        self._kind = self._kind if joins else as_str(fields)
        return step_count - 1 if joins else step_count

    def header(self) -> Run:
        # aider prints its version and its models as notices when a chat starts.
        opening = _unquoted(self.probe.blob.read(0, 8192).decode("utf-8", "replace"))
        return Run(
            self.format,
            first_group(_VERSION, opening),
            id=self._chat.name,
            task=headline(self._chat.asked) or f"chat of {self._chat.name}",
            model=first_group(_MODEL, opening),
            agent="aider",
            tokens=self._tally.tokens,
            cost=self._tally.cost,
            started=when(_started(opening)),
            derived=frozenset({"tokens", "cost"}),
        )

    def part(self, index: int, number: int, value: Json) -> Json:
        text = as_str(value)
        if text.startswith("#### "):
            # A request of several lines has the mark and the spaces on each of them.
            asked = "\n".join(
                line.removesuffix("  ").removeprefix("#### ") for line in text.strip("\n").split("\n")
            )
            return {"kind": "user", "text": asked}
        if text.startswith(">") and not text.startswith(">>"):
            return {"kind": "notice", "text": _unquoted(text).strip("\n")}
        return {"kind": "chat" if text.startswith(_CHAT) else "reply", "text": text.strip("\n")}

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        block, *notes = records_of(raws)
        kind, text = block.word("kind"), block.text("text")
        notices = joined(texts_of(notes, "text"))
        if kind == "reply":
            return _reply(index, raws, text, notices)
        if kind == "user":
            return _asked(index, raws, text, notices)
        if kind == "chat":
            builder = StepBuilder(index, raws, Actor.ENVIRONMENT, StepKind.STATE, kind)
            return (
                builder.text(text, notices)
                .span(when(_started(text)))
                .naive_if(True)
                .state(_tests_in(text))
                .build()
            )
        # A request that failed has no reply, only a notice.
        unanswered = _UNANSWERED.search(text) is not None
        purpose = StepKind.ERROR if unanswered else StepKind.NOTE
        builder = (
            StepBuilder(index, raws, Actor.ENVIRONMENT, purpose, kind)
            .text(text, notices)
            .state(_tests_in(text))
        )
        return builder.flag("error").derived("kind").build() if unanswered else builder.build()


def _asked(index: int, raws: Sequence[Raw], text: str, notices: str) -> Step:
    ran = _RAN.match(text)
    if ran is not None:
        builder = StepBuilder(index, raws, Actor.USER, kind_of_command(ran[2]), "user").text(ran[1])
        output = joined([ran[3].strip("\n"), notices])
        return builder.results([Result("", output)]).derived("kind").build()
    if text.startswith(("/", "!")):
        builder = StepBuilder(index, raws, Actor.USER, StepKind.NOTE, "command")
    else:
        builder = StepBuilder(index, raws, Actor.USER, asking_kind(index), "user")
    return builder.text(text).derived("kind").build()


def _reply(index: int, raws: Sequence[Raw], text: str, notices: str) -> Step:
    tokens, cost = _spent(notices)
    thought = joined((match[1].strip("\n") for match in _THOUGHT.finditer(text)), "\n\n")
    text = _THOUGHT.sub("", text).strip("\n")
    edits = [
        FileEdit(match["path"].strip(" *`#:"), match["old"], match["new"]) for match in _BLOCK.finditer(text)
    ]
    known = {edit.path for edit in edits}
    # Files that aider reports as changed without a block in the reply that shows the change.
    edits += [FileEdit(path) for path in dict.fromkeys(_APPLIED.findall(notices)) if path not in known]
    failed = bool(_FAILED.search(notices))
    return (
        StepBuilder(index, raws, Actor.AGENT, StepKind.EDIT if edits else StepKind.MESSAGE, "reply")
        .thought(thought)
        .text(text)
        .results((Result("", notices, failed or None),) if notices.strip() else ())
        .edits(edits)
        .spent(tokens, cost)
        .state(_tests_in(notices))
        .flag_if(failed, "error")
        .derived("kind", "edits", "results.is_error")
        .build()
    )


def _tests_in(notices: str) -> dict[str, Json]:
    """Return the state of a step in which aider ran tests; empty for any other step."""
    tests = [command for command in _RUNNING.findall(notices) if kind_of_command(command) is StepKind.TEST]
    return {"test_run": {"command": tests[0]}} if tests else {}


def _started(text: str) -> str:
    return text.partition("\n")[0].removeprefix(_CHAT).strip() if text.startswith(_CHAT) else ""


def _unquoted(text: str) -> str:
    """Return notices without their marks."""
    return "\n".join(re.sub(r"^> ?", "", line).removesuffix("  ") for line in text.split("\n"))


def _count(written: str | None) -> int | None:
    if not written:
        return None
    scale = {"k": 1000, "M": 1_000_000}.get(written[-1], 1)
    try:
        return round(float(written.rstrip("kM").replace(",", "")) * scale)
    except (ValueError, OverflowError):
        return None


def _spent(notices: str) -> tuple[Tokens, float | None]:
    """Return a reply's tokens, and its cost in US dollars or None, from the rounded figures in notices."""
    counts = _TOKENS.search(notices)
    sent, written, read, received = map(_count, counts.groups()) if counts else (None,) * 4
    tokens = counted_within(sent, received, read=read, written=written)
    try:
        return tokens, float(first_group(_COST, notices))
    except ValueError:
        return tokens, None


@dataclass(slots=True)
class _Chat:
    """A chat of a file: its position, its name, and whether it contains a request or a reply."""

    start: int
    end: int
    name: str
    has_content: bool = False
    asked: str = ""
    lines: _Lines = field(default_factory=_Lines)
    kind: str = "chat"

    def learn(self, line: str, following: str) -> None:
        """Record whether a line is a request or part of a reply; a command to aider is neither."""
        fresh = self.lines.begins(line, following, self.kind)
        self.kind = fresh or self.kind
        asks = line.startswith("#### ") and not line.startswith(("#### /", "#### !"))
        if asks and not self.asked:
            self.asked = line.removeprefix("#### ")
        if fresh == "reply" or (asks and self.kind == "user"):
            self.has_content = True


def _chats(probe: FileProbe) -> Iterator[_Chat]:
    """Yield the chats that contain a request or a reply."""
    chat: _Chat | None = None
    found = text_lines(probe.blob, probe.start)
    line = next(found, None)
    names = RunNames()
    while line is not None:
        following = next(found, None)
        start, end, text = line
        if text.startswith(_CHAT):
            if chat is not None and chat.has_content:
                yield chat
            chat = _Chat(start, end, names.name(_started(text) or str(start)))
        if chat is not None:
            chat.end = end
            chat.learn(text, following[2] if following else "")
        line = following
    if chat is not None and chat.has_content:
        yield chat


class Aider(Format):
    """Recognised by a line that records when a chat started."""

    name = "aider"
    words_in_records = True
    not_shown: Sequence[NotShown] = ()

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        return 1.0 if f"\n{_CHAT}" in f"\n{probe.text[:4096]}" else 0.0

    def runs(self, probe: FileProbe) -> Iterator[RunEntry]:
        """Yield the chats that contain a request or a reply; if there is only one, its id is empty."""
        chats = list(_chats(probe))
        for chat in chats:
            yield RunEntry(chat.name if len(chats) > 1 else "", _open(probe, chat).header())

    def open(self, probe: FileProbe, id: str) -> _Reader:
        """Return a reader of the chat that began at time `id`, or of the first one if `id` is empty.

        Raises `RunFileError` if there is no such chat.
        """
        return _open(probe, run_named(probe, id, ((chat.name, chat) for chat in _chats(probe)))[1])


def _open(probe: FileProbe, chat: _Chat) -> _Reader:
    return _Reader(probe.part(RawRecord(chat.start, chat.end, None)), chat)


FORMAT = Aider()
