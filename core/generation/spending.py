"""Records the cost of a set's model and the ends of its conversations in a file that all workers share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from gistpoint.core.canonical import sha256_of_json
from gistpoint.core.chat import Usage
from gistpoint.core.decoding import decodable
from gistpoint.core.errors import EndpointError
from gistpoint.core.generation.settings import CampaignSettings, SourceSpec
from gistpoint.core.logs import AppendLog, LogKind, wait_for

MOST_ALIKE = 5
"""The number of consecutive functions that yield nothing for the same reason before a set stops."""
_DETAIL_CHARACTERS = 300


class SetStoppedError(EndpointError):
    """A set stopped: a cap was reached, or the model is useless. Earlier decisions are kept."""


class _CommandStart(msgspec.Struct, tag="begun", tag_field="type"):
    """The start of a command's work on the set; what stopped earlier commands no longer counts."""


class _Request(msgspec.Struct, tag="request", tag_field="type"):
    """A request; its estimated size is recorded before it is sent, and its real size afterwards."""

    id: str
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    estimated: bool
    done: bool = False


class _EndedConversation(msgspec.Struct, tag="ended", tag_field="type"):
    """A conversation that ended; `fault` is empty if it was useful."""

    function: str
    fault: str
    detail: str = ""


class _Stopped(msgspec.Struct, tag="stopped", tag_field="type"):
    """A stop by a worker that can't ask the model any more, so other workers need not try."""

    message: str
    hint: str


_SPENDING = LogKind("gistpoint.spending", error=EndpointError)
_Line = _CommandStart | _Request | _EndedConversation | _Stopped


@dataclass(frozen=True, slots=True)
class SpentBySet:
    """The cost of all the set's conversations so far."""

    requests: int
    usage: Usage
    unpriced: bool
    """Whether a request without a known price was answered."""
    last: Usage = field(default_factory=Usage)
    """The usage of the last answered request."""

    def to_json(self) -> dict[str, Any]:
        """Return the cost as a JSON object."""
        usage = self.usage
        return {
            "requests": self.requests,
            "tokens": usage.tokens,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "cost_usd": usage.cost_usd,
            "estimated": usage.estimated,
        }


@dataclass(frozen=True, slots=True)
class SetSpending:
    """The file and the caps of one set; workers of any process open the file for each line.

    Every method that opens the file raises `EndpointError` if it can't be read.
    """

    path: Path
    max_tokens: int | None = None
    max_cost_usd: float | None = None

    @classmethod
    def of(
        cls,
        campaigns: Path,
        settings: CampaignSettings,
        sources: Sequence[SourceSpec],
        max_tokens: int | None,
        max_cost_usd: float | None,
    ) -> SetSpending:
        """Return the spending of the set that these settings make from these sources.

        Settings and sources identify the file in the folder `campaigns`, so the same command with other caps
        or another count continues it.
        """
        names = sorted(spec.source for spec in sources)

        def place(values: Mapping[str, Any]) -> Path:
            return campaigns / f"spent-{settings.mode.value}-{sha256_of_json([values, names])[:16]}.jsonl"

        return cls(settings.file_of_campaign(place), max_tokens, max_cost_usd)

    def begin(self) -> None:
        """Record that a command starts.

        Faults of earlier commands no longer stop the set, but the cost of earlier commands still counts.
        """
        with self._open() as (log, _):
            _append(log, _CommandStart())

    def spent(self) -> SpentBySet:
        """Return the cost of all commands so far; an unanswered request counts with its estimate."""
        with self._open() as (_, lines):
            return _spent(lines)

    def ended(self, function: str, fault: str, detail: str = "") -> None:
        """Record the end of the conversation about a function, with its `fault` or an empty string."""
        with self._open() as (log, _):
            _append(log, _EndedConversation(function, fault, detail[:_DETAIL_CHARACTERS]))

    def stop(self, why: EndpointError) -> None:
        """Record that the command stops."""
        with self._open() as (log, _):
            _append(log, _Stopped(why.message, why.hint))

    def check(self) -> None:
        """Raise `SetStoppedError` if a worker stopped, or the last five functions failed for one reason."""
        with self._open() as (_, lines):
            ends: list[_EndedConversation] = []
            stopped: _Stopped | None = None
            for line in lines:
                if isinstance(line, _CommandStart):
                    ends, stopped = [], None
                elif isinstance(line, _EndedConversation):
                    ends.append(line)
                elif isinstance(line, _Stopped):
                    stopped = line
        if stopped is not None:
            raise SetStoppedError(stopped.message, hint=stopped.hint)
        last = ends[-MOST_ALIKE:]
        if len(last) < MOST_ALIKE or not last[0].fault or len({line.fault for line in last}) > 1:
            return
        raise SetStoppedError(
            f"{MOST_ALIKE} functions in a row failed for the same reason: {last[-1].fault}."
            f" {last[-1].detail}",
            hint=(
                "The results so far are kept. Check the model (it must be able to call tools) or its"
                " endpoint, then run the same command again."
            ),
        )

    def conversation(self) -> RequestMeter:
        """Return a meter for the requests of one conversation."""
        return RequestMeter(self)

    def _refusal(self, spent: SpentBySet, next_one: Usage) -> str:
        tokens, cost = spent.usage.tokens, spent.usage.cost_usd or 0.0
        if self.max_tokens is not None and tokens + next_one.tokens > self.max_tokens:
            return f"{tokens} of at most {self.max_tokens} tokens were used for the set."
        if self.max_cost_usd is None:
            return ""
        if spent.unpriced:
            return "There is a limit on the cost, but neither the endpoint nor the settings give a price."
        if cost + (next_one.cost_usd or 0.0) > self.max_cost_usd:
            return f"{cost:.4f} of at most {self.max_cost_usd:g} US dollars were spent for the set."
        return ""

    @contextmanager
    def _open(self) -> Iterator[tuple[AppendLog, list[_Line]]]:
        """Yield the file, locked against other readers and writers, and its lines.

        Raises `EndpointError` if it can't be read.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with AppendLog(self.path, _SPENDING, wait_for(self.path)) as log:
            decoder = msgspec.json.Decoder(decodable(_Line))
            try:
                lines = [decoder.decode(line) for line in log.read().lines]
            except (msgspec.DecodeError, RecursionError) as error:
                raise EndpointError(
                    f"{self.path.name} among the campaigns can't be read: {error}.",
                    hint="Move it away to start counting the cost of this set from zero.",
                ) from error
            yield log, lines


class RequestMeter:
    """Counts one conversation's requests in its set's file."""

    def __init__(self, spending: SetSpending) -> None:
        self._spending = spending
        self._id = ""

    def before(self, estimate: Usage) -> str:
        """Return why no request may be sent; empty after recording a request with its estimated size.

        The size is that of `estimate` or of the last request of the set, whichever is larger.
        """
        spending = self._spending
        with spending._open() as (log, lines):
            spent = _spent(lines)
            size = estimate if estimate.tokens >= spent.last.tokens else spent.last
            cost = max(
                (item.cost_usd for item in (estimate, spent.last) if item.cost_usd is not None), default=None
            )
            refusal = spending._refusal(
                spent, Usage(size.prompt_tokens, size.completion_tokens, cost_usd=cost)
            )
            if not refusal:
                self._id = uuid4().hex
                tokens = size.prompt_tokens, size.completion_tokens
                _append(log, _Request(self._id, *tokens, cost, estimated=True))
        return refusal

    def after(self, usage: Usage) -> None:
        """Record the real usage of the request."""
        with self._spending._open() as (log, _):
            tokens = usage.prompt_tokens, usage.completion_tokens
            _append(log, _Request(self._id, *tokens, usage.cost_usd, usage.estimated, done=True))


def _append(log: AppendLog, line: _Line) -> None:
    log.append(msgspec.json.encode(line) + b"\n")


def _spent(lines: list[_Line]) -> SpentBySet:
    requests = {line.id: line for line in lines if isinstance(line, _Request)}
    usage, last = Usage(), Usage()
    for line in lines:
        if isinstance(line, _Request) and line.done:
            last = _usage(line)
    for line in requests.values():
        usage += _usage(line)
    unpriced = any(line.done and _usage(line).tokens and line.cost_usd is None for line in requests.values())
    return SpentBySet(len(requests), usage, unpriced, last)


def _usage(line: _Request) -> Usage:
    return Usage(line.prompt_tokens, line.completion_tokens, cost_usd=line.cost_usd, estimated=line.estimated)
