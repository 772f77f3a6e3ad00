"""A person's labels: first of randomly drawn runs, without the judge's answers, then of disputed claims."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

import msgspec

from gistpoint.core.judging.answers import RunAnswer
from gistpoint.core.judging.rubric import Coding, RubricLabel
from gistpoint.sessions.annotations.glances import MODEL
from gistpoint.sessions.annotations.side_files import DeleteData
from gistpoint.sessions.judging.judgements import (
    CODEC,
    HandLabel,
    HandLabelData,
    JudgementError,
    JudgementKind,
    JudgementOperation,
    Judgements,
    JudgementStore,
    LabelPart,
)

LOW_CONFIDENCE = 0.7
"""Below this confidence, a judge's answer is disputed."""
SECOND = 2
"""The round of a second reading."""


class Dispute(StrEnum):
    """A reason why a person is asked about a claim."""

    DIFFERENT = "you answered differently"
    ADDRESSED = "the run seems to address its judge"
    UNPROVEN = "claimed without a quote that is in the run"
    UNSURE = "the judge is unsure"


@dataclass(frozen=True, slots=True)
class LabelQuestion:
    """One question to a person: whether a run has a label; `dispute` is None for a blind question."""

    run: str
    label: RubricLabel
    part: LabelPart
    round: int = 1
    answer: RunAnswer | None = None
    dispute: Dispute | None = None


@dataclass(slots=True)
class HandReader:
    """A person who labels runs; an operation is on disk when its method returns."""

    store: JudgementStore
    name: str
    seed: int = 0

    def __post_init__(self) -> None:
        self.name = CODEC.name_of(self.name, "reader")
        if self.name.startswith(MODEL):
            raise JudgementError(
                f"A name that begins with {MODEL.strip()!r} is reserved for models.",
                hint="Choose another pseudonym.",
            )

    def given(self, run: str) -> Judgements:
        """Return this person's labels of a run."""
        return self.store.book.state(run, self.name)

    def label(self, question: LabelQuestion) -> HandLabel | None:
        """Return the answer to a question; None if there is none."""
        return self.given(question.run).label(question.label.sha256, question.part, question.round)

    def look_again(self) -> None:
        """Read labels again, which other windows may have changed. Raises `JudgementError` if that fails."""
        self.store.reload()

    def answer(self, question: LabelQuestion, present: bool) -> JudgementOperation:
        """Record the answer to a question."""
        data = HandLabelData(
            question.label.id,
            question.label.sha256,
            present,
            question.part,
            question.round,
            self.seed,
        )
        return self._add(question.run, JudgementKind.LABEL, data)

    def take_back(self, question: LabelQuestion) -> bool:
        """Withdraw all answers to a question; return False if there is none."""
        found = False
        # An earlier answer, perhaps from another window, would otherwise count again.
        while (given := self.label(question)) is not None:
            self._add(question.run, JudgementKind.DELETE, DeleteData(given.op))
            found = True
        return found

    def _add(self, run: str, kind: JudgementKind, data: msgspec.Struct) -> JudgementOperation:
        at = self.store.next_ms(self.name)
        values = msgspec.to_builtins(data)
        operation = JudgementOperation(str(uuid.uuid4()), self.name, at, run, kind.value, values)
        self.store.append([operation])
        return operation

    # The questions

    def blind(self, runs: Iterable[str], labels: Sequence[RubricLabel], sample: int) -> list[LabelQuestion]:
        """Return the questions about `sample` runs drawn at random; those about one run are consecutive.

        There are no questions about labels without a definition, because a program computes them.
        """
        chosen = drawn(runs, self.seed)[:sample]
        defined = [label for label in labels if label.definition]
        return [LabelQuestion(run, label, LabelPart.RANDOM) for run in chosen for label in defined]

    def again(self, runs: Iterable[str], labels: Sequence[RubricLabel], sample: int) -> list[LabelQuestion]:
        """Return the questions for a second blind reading of `sample` runs, in another order.

        The runs and their questions are those for which this person has given blind labels.
        """
        read = [
            question
            for question in (LabelQuestion(run, label, LabelPart.RANDOM) for run in runs for label in labels)
            if self.label(question) is not None
        ]
        chosen = drawn({question.run for question in read}, self.seed, "again")[:sample]
        return [
            LabelQuestion(run, question.label, LabelPart.RANDOM, SECOND)
            for run in chosen
            for question in read
            if question.run == run
        ]

    def disputed(
        self,
        answers: Mapping[tuple[str, str], RunAnswer],
        labels: Sequence[RubricLabel],
        addressing: Collection[str] = (),
    ) -> list[LabelQuestion]:
        """Return the questions about disputed claims, by label; `answers` is by run and label id.

        `addressing` are the runs with text that seems to address a judge.
        """
        found: list[LabelQuestion] = []
        for label in labels:
            for (run, id), answer in answers.items():
                if id != label.id:
                    continue
                dispute = self._dispute(run, label, answer, run in addressing)
                if dispute is not None:
                    found.append(
                        LabelQuestion(run, label, LabelPart.DISPUTED, answer=answer, dispute=dispute)
                    )
        return found

    def _dispute(
        self, run: str, label: RubricLabel, answer: RunAnswer, is_addressing: bool
    ) -> Dispute | None:
        blind = self.given(run).label(label.sha256, LabelPart.RANDOM)
        if blind is not None:
            return Dispute.DIFFERENT if blind.present != answer.present else None
        # No model computes a fact, so text in the run can't influence it.
        if is_addressing and label.coded is not Coding.COMPUTED:
            return Dispute.ADDRESSED
        if answer.unproven and not answer.present:
            return Dispute.UNPROVEN
        return Dispute.UNSURE if answer.confidence < LOW_CONFIDENCE else None


def drawn(runs: Iterable[str], seed: int, purpose: str = "") -> list[str]:
    """Return the distinct runs in a random order that depends only on `seed` and `purpose`."""
    # The order is by hash, so that added runs do not change it, and a larger sample contains a smaller one.
    return sorted(set(runs), key=lambda run: sha256(f"{seed}\0{purpose}\0{run}".encode()).digest())
