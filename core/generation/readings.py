"""Lets a model that made none of the corruptions of a pool read each of them several times (decision 140)."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import msgspec

from gistpoint.core.chat import ChatFailure, ChatProblem, Usage
from gistpoint.core.code.index import Definition
from gistpoint.core.corruption.blind import (
    PACKET_TEMPLATE,
    UNTOUCHED,
    BlindItem,
    Named,
    Packet,
    PacketReading,
    packet_sha256,
)
from gistpoint.core.errors import EndpointError
from gistpoint.core.estimates import tokens_in
from gistpoint.core.generation.candidates import nested
from gistpoint.core.generation.context import Context, opened
from gistpoint.core.generation.library import SourceLibrary
from gistpoint.core.generation.pending import Executor, Pending
from gistpoint.core.generation.removal import MIN_LINES, definitions
from gistpoint.core.generation.settings import CampaignSettings
from gistpoint.core.generation.spending import SetStoppedError
from gistpoint.core.generation.verdicts import READER, CandidateVerdict, StateFile
from gistpoint.core.running import RunProgress
from gistpoint.core.tasks.model import Target

MOST_USELESS = 5
"""The number of consecutive replies without a usable answer after which the work on a set stops."""
_OF_THE_PACKET = (ChatProblem.REJECTED, ChatProblem.MALFORMED_REPLY, ChatProblem.CONTEXT_FULL)
"""Failures that a single packet can cause; other failures would affect every packet."""
_GOES_ON = "The results so far are kept: run the same command"


def read_pool(
    context: Context,
    verdicts: Sequence[CandidateVerdict],
    executor: Executor,
    ahead: int,
    state: StateFile,
) -> None:
    """Have the reader read each corruption as often as the settings require, and store each reading.

    Known readings are not made again. At most `ahead` requests are open at a time. A reply without a usable
    answer is stored only once a later reply has an answer, so the next command gives a useless reader another
    chance. Raises `EndpointError` if the reader does not answer, is useless or costs too much, after awaiting
    the open requests, and `CancelledError` when stopped.
    """
    reading = _PoolReading(context, state)
    waiting = deque(
        (verdict, number)
        for number in range(context.settings.readings)
        for verdict in verdicts
        if number not in state.readings.get(verdict.key, {})
    )
    packets, total = Packets(context.library, context.settings.seed), len(waiting)
    pending = Pending(context.run)
    try:
        while pending.keys or (waiting and reading.failed is None):
            while waiting and reading.failed is None and len(pending.keys) < ahead:
                verdict, number = waiting.popleft()
                packet = packets.packet(verdict, number)
                pending.keys[executor.submit(read_packet, context, packet)] = verdict.key
            context.run.progress(RunProgress(f"blind reading {reading.done}/{total}"))
            reading.take_from(pending)
    finally:
        pending.drop()
    reading.finish()


@dataclass
class _PoolReading:
    """The readings that one call has received, and those among them that are not stored yet."""

    context: Context
    state: StateFile
    done: int = 0
    failed: EndpointError | None = None
    """The reason why no more requests are made; None if there is none."""
    useless: list[tuple[str, PacketReading]] = field(default_factory=list)
    """The latest consecutive readings without an answer; unless one follows, the reader may be useless."""

    def take_from(self, pending: Pending) -> None:
        """Wait a moment for readings, and store those that arrive."""
        try:
            for key, reading in pending.done():
                self._take(key, reading)
        except EndpointError as error:
            self.failed = self.failed or error
            pending.drop()

    def _take(self, key: str, reading: PacketReading) -> None:
        self.done += 1
        self.useless.append((key, reading))
        if reading.named is not None:
            self._store()
        elif len(self.useless) >= MOST_USELESS and self.failed is None:
            self.failed = _useless(self.context.settings.reader, reading)

    def finish(self) -> None:
        """Store the remaining readings. Raises `EndpointError` if no more requests could be made."""
        if self.failed is not None:
            raise self.failed
        self._store()

    def _store(self) -> None:
        for key, reading in self.useless:
            self.state.add_reading(key, reading)
        self.useless = []


def _useless(reader: str, last: PacketReading) -> EndpointError:
    return SetStoppedError(
        f"{reader} gave no usable answer to {MOST_USELESS} packets in a row. {last.words}",
        hint=f"{_GOES_ON} again, or leave --reader out to make a set that no model has read.",
    )


def read_packet(context: Context, packet: Packet) -> PacketReading:
    """Ask the reader about a packet and return the reading; without a usable answer, `named` is None.

    Raises `EndpointError` if the reader's endpoint does not answer, or the set has spent its budget.
    """
    with opened(context) as here:
        model = here.reader
        assert model is not None
        spending = here.terms.spending
        meter = None if spending is None else spending.conversation()
        messages = packet.messages
        if meter is not None:
            size = tokens_in(sum(len(message.content) for message in messages))
            refusal = meter.before(Usage(size, estimated=True))
            if refusal:
                raise SetStoppedError(
                    f"The spending limit is reached: {refusal}",
                    hint=f"{_GOES_ON} with a larger --max-cost or --max-tokens to continue.",
                )
        reply = model.complete(messages, (), cancel=here.run.cancel)
        if meter is not None:
            meter.after(reply.usage if isinstance(reply, ChatFailure) else reply.usage + reply.lost)
        if not isinstance(reply, ChatFailure):
            if reply.refusal:
                return PacketReading(packet.number, words=f"It refused: {reply.refusal[:200]}")
            return packet.reading(reply.message.content)
        if reply.problem in _OF_THE_PACKET:
            return PacketReading(packet.number, words=reply.message[:300])
        raise EndpointError(
            f"The reader no longer answers: {reply.message}",
            hint=f"{_GOES_ON} again when the endpoint answers.",
        )


@dataclass(frozen=True)
class Packets:
    """The packets of one library; the seed decides which untouched functions they show in which order."""

    library: SourceLibrary
    seed: int

    def packet(self, verdict: CandidateVerdict, number: int) -> Packet:
        """Return the packet of a proven corruption for one of its readings."""
        assert verdict.kept is not None
        (target,) = verdict.kept.targets
        item = BlindItem("", self.library.intake.repository.source.name, target)
        seed = f"{self.seed} {target.name} {number}"
        others = self._fitting(target)
        random.Random(f"untouched {seed}").shuffle(others)
        # Functions of similar length come first, because the longest or the shortest function would be
        # conspicuous.
        length = target.corrupted.count("\n") + 1
        others.sort(key=lambda other: not length / 2 <= other.end_line - other.start_line + 1 <= 2 * length)
        return Packet.of(item, [other.dedented for other in others[:UNTOUCHED]], number, seed)

    def _fitting(self, target: Target) -> list[Definition]:
        """Return the functions that reveal nothing about a corruption of the target.

        Callers, callees and functions of the same name are left out, and so is the rest of the class if
        enough other functions remain, because they would show what the target should do.
        """
        near = self.library.reach.steps(target.name, 1)
        own = target.qualname.rpartition(".")
        fitting = [
            other
            for other in self._functions
            if str(other.ref) not in near
            and not nested(target.name, str(other.ref))
            and other.name != own[2].partition("#")[0]
        ]
        apart = [
            other
            for other in fitting
            if not own[0] or (other.ref.path, other.parent) != (target.path, own[0])
        ]
        return apart if len(apart) >= UNTOUCHED else fitting

    @cached_property
    def _functions(self) -> list[Definition]:
        found = definitions(self.library.intake.repository.tree, self.library.test_files)
        return [
            definition
            for definition in found
            if definition.end_line - definition.def_line >= MIN_LINES
            and not any("overload" in text for text in definition.decorators)
        ]


def with_readings(
    settings: CampaignSettings, state: StateFile, verdict: CandidateVerdict
) -> CandidateVerdict:
    """Return the verdict with the results of its corruption's readings; unchanged without readings."""
    known = state.readings.get(verdict.key, {})
    made = [known[number] for number in range(settings.readings) if number in known]
    if verdict.kept is None or not settings.reader or not made:
        return verdict
    answered = [reading for reading in made if reading.named is not None]
    record = {
        "model": settings.reader,
        "template": PACKET_TEMPLATE,
        "template_sha256": packet_sha256(),
        "asked": len(made),
        "read": len(answered),
        "named": sum(reading.named is Named.CHANGED for reading in answered),
        "from_text": sum(reading.is_from_text for reading in answered),
        "elsewhere": sum(reading.named is Named.ELSEWHERE for reading in answered),
        "alarms": sum(reading.named is Named.UNTOUCHED for reading in answered),
        "readings": [msgspec.to_builtins(reading) for reading in made],
    }
    kept = replace(verdict.kept, provenance={**verdict.kept.provenance, READER: record})
    return replace(verdict, kept=kept)
