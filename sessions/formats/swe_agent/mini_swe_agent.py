"""Runs of mini-swe-agent: an object with `messages` and `trajectory_format`, or the earlier bare list."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gistpoint.sessions.formats.shared.calls import shell_call
from gistpoint.sessions.formats.shared.messages import (
    Shell,
    Turns,
    message_step,
    message_texts,
    role_of,
    tokens_of,
    usage_of,
)
from gistpoint.sessions.records import limits
from gistpoint.sessions.records.archives import Blob
from gistpoint.sessions.records.building import Tally
from gistpoint.sessions.records.format import Raw, RunReader, SingleRun
from gistpoint.sessions.records.model import Actor, Json, NotShown, Run, RunCall, Step, StepTexts, Tokens
from gistpoint.sessions.records.probe import FileProbe
from gistpoint.sessions.records.scanning import LightKeys
from gistpoint.sessions.records.values import as_dict, as_float, as_int, as_str, as_text, objects, total

_FENCES = {
    f"```{name}": re.compile(rf"```{name}\s*\n((?:[^`\n]++|`(?!``)|\n(?!```))*+)\n?```")
    for name in ("mswea_bash_command", "bash", "sh")
}
_MARKS = ("mswea_bash_command", "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT")
_REFUSAL = re.compile(r"EXACTLY ONE|\bfound \d+ actions|[Ff]ormat error|triple backticks")
_TEMPLATE = re.compile(r"\{[{%]")
_COUNT = re.compile(rb'"(prompt|input|completion|output|cached)_tokens": ?(\d{1,15})\b')
_COUNTED = ((b"prompt", b"input"), (b"completion", b"output"), (b"cached",))
_LONGEST_USAGE = 4096
_LINE_OF_KEY = re.compile(rb"\n([ \t]*)\{\r?\n([ \t]+)\"")


def _blocks(reply: str) -> list[str]:
    """Return the commands in a reply given as text; empty if there are none."""
    for opening, fence in _FENCES.items():
        if opening in reply and (found := fence.findall(reply)):
            return found
    return []


def _command(_message: dict[str, Json], reply: str, answer: str) -> tuple[RunCall, ...]:
    """Return the command written in a reply; none if there are several, because mini-swe-agent refuses those.

    If the run's settings allowed several, the last one is the command that was run.
    """
    blocks = _blocks(reply)
    ran = len(blocks) == 1 or answer.lstrip().startswith("<returncode>")
    return tuple(shell_call(command) for command in blocks[-1:]) if ran else ()


class _Reader(RunReader):
    format = "mini-swe-agent"
    arrays = ("messages",)
    light = LightKeys(("role", "type", "object", "tool_call_id", "call_id"))

    def __init__(self, probe: FileProbe) -> None:
        super().__init__(probe)
        self._shell = Shell(_command, self._refuses)
        self._turns = Turns(self._shell)
        self._tally = Tally()

    def sum_up(self) -> Iterator[None]:
        # An indented file is indexed without being decoded: its tokens are later counted from the bytes.
        if not self._tally.tokens:
            for tokens in _tokens_in(self.probe.blob):
                self._tally.add_usage(tokens)
                yield

    def place(self, fields: Json, step_count: int) -> int:
        message = as_dict(fields)
        if "extra" in message and role_of(message) == "assistant":
            self._tally.add_usage(tokens_of(usage_of(message)))
        return self._turns.place(fields, step_count)

    def step(self, index: int, raws: Sequence[Raw]) -> Step:
        return message_step(index, raws, self._shell)

    def texts(self, index: int, values: Sequence[Json]) -> StepTexts | None:
        return message_texts(values, self._shell)

    def _refuses(self, reply: str, answer: str) -> bool:
        """Return whether the answer to a reply without exactly one command is a refusal.

        A reply with several commands is always refused; a reply without a command is refused if the answer
        contains the run's refusal.
        """
        if len(_blocks(reply)) > 1:
            return True
        config = as_dict(as_dict(self.fact("info")).get("config"))
        template = as_text(as_dict(config.get("agent")).get("format_error_template"))
        # The wording of the refusal is a setting of the run; its beginning, up to the first placeholder,
        # is searched for.
        words = _TEMPLATE.split(template, maxsplit=1)[0].strip()
        return _REFUSAL.search(answer[:4000]) is not None or (len(words) > 8 and words in answer)

    def header(self) -> Run:
        if self.probe.array:
            return Run(
                self.format, "bare list", tokens=self._tally.tokens, derived=frozenset({"format", "tokens"})
            )
        info = as_dict(self.fact("info"))
        config = as_dict(info.get("config"))
        stats = as_dict(info.get("model_stats"))
        model = as_str(as_dict(config.get("model")).get("model_name"))
        return Run(
            self.format,
            as_str(self.fact("trajectory_format")).removeprefix("mini-swe-agent-"),
            task=as_str(self.fact("instance_id")),
            model=model,
            agent=f"mini-swe-agent {as_str(info.get('mini_version'))}".strip(),
            actor=Actor.PERSON if as_dict(config.get("agent")).get("mode") == "human" else Actor.AGENT,
            exit_status=as_str(info.get("exit_status")),
            submission=as_text(info.get("submission")),
            tokens=self._tally.tokens,
            cost=as_float(stats.get("instance_cost")),
            extra={"api_calls": as_int(stats.get("api_calls"))} if "api_calls" in stats else {},
            derived=frozenset({"tokens"}),
        )


def _tokens_in(blob: Blob) -> Iterator[Tokens]:
    """Yield the tokens of the replies of an indented file, a sum for each chunk of its bytes.

    The records of such a file are not decoded to index it. A key that begins a line is not part of a string,
    and its indentation shows which object it belongs to.
    """
    head = blob.read(0, limits.CHUNK)
    opening = _LINE_OF_KEY.search(head, head.find(b'"messages"') + 1)
    if opening is None or len(opening[2]) <= len(opening[1]):
        return
    in_response = b"\n" + opening[2] + 2 * opening[2][len(opening[1]) :]
    usage, end = in_response + b'"usage": {', in_response + b"}"
    import stringzilla  # pyright: ignore[reportMissingImports]

    find = stringzilla.find
    at, held = 0, b""
    while chunk := blob.read(at, limits.CHUNK):
        sums: dict[bytes, int] = {}
        at += len(chunk)
        text = held + chunk
        found = find(text, usage)
        while found >= 0 and (closing := text.find(end, found, found + _LONGEST_USAGE)) >= 0:
            for name, count in _COUNT.findall(text, found, closing):
                sums[name] = sums.get(name, 0) + int(count)
            found = find(text, usage, closing)
        held = text[found:] if found >= 0 else text[1 - len(usage) :]
        held = held if len(held) < _LONGEST_USAGE else b""
        yield Tokens(*(total([sums.get(name) for name in names]) for names in _COUNTED))


class MiniSweAgent(SingleRun):
    """Recognised by `trajectory_format`, `mini_version`, or a mark in the prompts of a bare list."""

    name = "mini-swe-agent"
    texts_in_records = True
    not_shown: Sequence[NotShown] = (
        NotShown(
            ("extra.response",), "the provider's own form of the reply; what it says and thinks is shown"
        ),
        NotShown(
            ("info.config", "trajectory_format"),
            "settings and templates of prompts, which the first steps show filled in",
            of_run=True,
        ),
    )

    def sniff(self, probe: FileProbe) -> float:
        """Return the confidence that the file is in this format."""
        if as_str(probe.object.get("trajectory_format")).startswith("mini-swe-agent"):
            return 1.0
        # The format's name is at the end of the file, after the messages.
        if "messages" in probe.object or "info" in probe.object:
            if as_str(probe.late("trajectory_format")).startswith("mini-swe-agent"):
                return 1.0
            if "mini_version" in as_dict(probe.object.get("info")):
                return 0.95
        opening = objects(probe.array[:3])
        if len(opening) >= 2 and all("role" in message for message in opening):
            prompt_text = "".join(as_text(message.get("content")) for message in opening)
            return 0.9 if any(mark in prompt_text for mark in _MARKS) else 0.0
        return 0.0

    def reader(self, probe: FileProbe) -> _Reader:
        """Return a reader of the run."""
        return _Reader(probe)


FORMAT = MiniSweAgent()
