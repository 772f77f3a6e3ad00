"""A blind reader, who does not know a function's version; each answer or verdict is one operation."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import msgspec

from gistpoint.core.asking import JudgeResult
from gistpoint.core.chat import Usage
from gistpoint.core.corruption.blind import (
    BlindAnswer,
    BlindItem,
    GlanceVerdict,
    JudgeRequest,
    ModelAnswer,
    Named,
    PacketReading,
    ShownVersion,
    blind_items,
    judge,
    prompt_sha256,
    questions,
)
from gistpoint.core.decoding import decodable
from gistpoint.core.generation.verdicts import READER
from gistpoint.core.ports import ChatModel, TimeSource
from gistpoint.core.running import UNATTENDED, RunContext, RunProgress
from gistpoint.core.tasks.model import Answer, Task
from gistpoint.sessions.annotations.glances import (
    CODEC,
    MODEL,
    GlanceBook,
    GlanceError,
    GlanceOperation,
    GlanceOperationKind,
    Glances,
    GlanceVerdictData,
    ReadingData,
)
from gistpoint.sessions.annotations.side_files import DeleteData, SideFileStore

LONGEST_WORDS = 2_000
"""The maximum length, in characters, of a reader's words in the file; longer ones are cut."""


class GlanceStore(SideFileStore[GlanceOperation, GlanceBook]):
    """The blind readings of all readers; each operation is appended to its reader's file."""

    def __init__(self, folder: Path, clock: TimeSource) -> None:
        """Read the files; the folder is created at the first write."""
        super().__init__(folder, clock, CODEC, GlanceBook)


@dataclass(frozen=True, slots=True)
class BlindReply:
    """A reader's answer about the function that is shown."""

    answer: BlindAnswer
    line: int = 0
    words: str = ""
    looked_ms: int = 0
    cost_usd: float | None = None
    prompt_sha256: str = ""


@dataclass(slots=True)
class GlanceReader:
    """One reader in one round of a seed; an operation is on disk when its method returns."""

    store: GlanceStore
    name: str
    seed: int = 0
    round: int = 1
    limit_s: float = 0.0
    by_model: bool = False
    """Whether the reader is a model; only the names of models begin with `MODEL`."""

    def __post_init__(self) -> None:
        self.name = CODEC.name_of(f"{MODEL}{self.name}" if self.by_model else self.name, "reader")
        if self.name.startswith(MODEL) and not self.by_model:
            raise GlanceError(
                f"A name that begins with {MODEL.strip()!r} is reserved for models.",
                hint="Choose another pseudonym.",
            )

    def glances(self, task: str) -> Glances:
        """Return this reader's readings of, and verdicts on, a task."""
        return self.store.book.state(task, self.name)

    def read(
        self,
        item: BlindItem,
        answer: BlindReply,
        version: ShownVersion | None = None,
        hit: bool | None = None,
    ) -> GlanceOperation:
        """Record an answer about a function, shown in `version`, or else in the version that the seed chose.

        Unless `hit` is given, naming a line next to a changed one counts as a hit. At most `LONGEST_WORDS`
        characters of the answer's words are stored.
        """
        shown = version or item.version(self.seed)
        data = ReadingData(
            function=item.function,
            source=item.source,
            version=shown,
            answer=answer.answer,
            seed=self.seed,
            round=self.round,
            line=answer.line,
            hit=shown is ShownVersion.CORRUPTED and item.is_hit(answer.line) if hit is None else hit,
            words=answer.words.strip()[:LONGEST_WORDS],
            limit_s=self.limit_s,
            looked_ms=answer.looked_ms,
            cost_usd=answer.cost_usd,
            prompt_sha256=answer.prompt_sha256,
        )
        return self._add(item.task, GlanceOperationKind.READING, data)

    def verdict(self, item: BlindItem, verdict: GlanceVerdict, words: str) -> GlanceOperation:
        """Record a verdict on a corruption whose diff was shown.

        Of `words`, at most `LONGEST_WORDS` characters are stored.
        """
        data = GlanceVerdictData(item.function, verdict, words.strip()[:LONGEST_WORDS], self.seed, self.round)
        return self._add(item.task, GlanceOperationKind.VERDICT, data)

    def take_back(self, op: str) -> GlanceOperation:
        """Withdraw an operation of this reader. Raises `GlanceError` for any other."""
        target = self.store.book.get(op)
        if target is None or target.reviewer != self.name:
            raise GlanceError("You can withdraw only your own answers.")
        return self._add(target.subject, GlanceOperationKind.DELETE, DeleteData(op))

    def _add(self, task: str, kind: GlanceOperationKind, data: msgspec.Struct) -> GlanceOperation:
        at = self.store.next_ms(self.name)
        operation = GlanceOperation(
            str(uuid.uuid4()), self.name, at, task, kind.value, msgspec.to_builtins(data)
        )
        self.store.append([operation])
        return operation


def read_by_model(
    reader: GlanceReader,
    model: ChatModel,
    items: Sequence[BlindItem],
    times: int,
    *,
    max_cost_usd: float | None = None,
    run: RunContext = UNATTENDED,
) -> tuple[JudgeResult, int]:
    """Ask a model for its missing answers about the items, and record each of them.

    Each item is read with `times` seeds, beginning with the reader's own. Returns the result and the number
    of missing answers. Raises `CancelledError` if cancelled; earlier answers remain recorded.
    """

    def is_missing(question: JudgeRequest) -> bool:
        return reader.glances(question.item.task).reading(question.item.function, question.seed, 1) is None

    missing = [question for question in questions(items, reader.seed, times) if is_missing(question)]
    answers = count(1)

    def keep(question: JudgeRequest, reply: ModelAnswer, usage: Usage) -> None:
        reader.seed = question.seed
        line = 0 if reply.answer is BlindAnswer.NOTHING else reply.line or 0
        answer = BlindReply(reply.answer, line, reply.words, 0, usage.cost_usd, prompt_sha256())
        reader.read(question.item, answer, question.version)
        run.progress(RunProgress(f"{reader.name} on {question.item.function}", next(answers), len(missing)))

    return judge(missing, model, keep, max_cost_usd=max_cost_usd, cancel=run.cancel), len(missing)


IN_A_SET = " (in a set)"
"""The suffix of a model's name if it reads packets, whose instructions differ from those for one function."""


def record_packet_readings(store: GlanceStore, task: Task, answer: Answer) -> None:
    """Record the readings in the answer of a task, unless they are known (decision 140)."""
    record, items = answer.provenance.get(READER), blind_items(task, answer)
    if not isinstance(record, Mapping) or len(items) != 1:
        return
    (item,) = items
    reader = GlanceReader(store, f"{record['model']}{IN_A_SET}", by_model=True)
    for values in record["readings"]:
        reading = msgspec.convert(values, decodable(PacketReading))
        if reading.named is None or reader.glances(task.id).reading(item.function, reading.number, 1):
            continue
        reader.seed = reading.number
        is_fault = reading.named in (Named.CHANGED, Named.ELSEWHERE)
        given = BlindReply(
            BlindAnswer.FAULT if is_fault else BlindAnswer.NOTHING,
            reading.line,
            reading.words,
            prompt_sha256=str(record.get("template_sha256", "")),
        )
        reader.read(item, given, ShownVersion.CORRUPTED, reading.named is Named.CHANGED)
