"""Lets a model judge runs piece by piece; each answer is on disk before the next request is sent."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from gistpoint.core.asking import JudgeEnd, JudgeResult, ask_all
from gistpoint.core.chat import Usage
from gistpoint.core.estimates import tokens_in
from gistpoint.core.judging.addressing import addressing_in
from gistpoint.core.judging.answers import PieceAnswer, RunAnswer, combined, read_answers
from gistpoint.core.judging.pieces import (
    PieceRequest,
    characters_in,
    instructions_sha256,
    pieces_of,
)
from gistpoint.core.judging.rubric import Rubric, RubricLabel
from gistpoint.core.ports import ChatModel
from gistpoint.core.running import NEVER, UNATTENDED, CancelToken, RunContext, RunProgress
from gistpoint.sessions.annotations.glances import MODEL
from gistpoint.sessions.judging.hand_labels import drawn
from gistpoint.sessions.judging.judgements import (
    CODEC,
    JudgementKind,
    JudgementOperation,
    Judgements,
    JudgementStore,
    PieceData,
)
from gistpoint.sessions.judging.run_texts import RunText

REPLY_TOKENS_OF_LABEL = 150
"""The tokens of a reply that an estimate assumes for each label."""


@dataclass(slots=True)
class JudgingPlan:
    """The runs that a judge still has to read, and the estimated size of the requests and replies."""

    runs: int = 0
    missing: dict[str, str] = field(default_factory=dict)
    """The names of the runs still to be read, by key."""
    requests: int = 0
    characters: int = 0
    reply_tokens: int = 0
    addressing: int = 0
    """The number of runs with text that seems to address a judge."""

    @property
    def names(self) -> list[str]:
        """The names of the runs still to be read, in a different order each time.

        Otherwise, runs that the model refuses might always come first, and the judge would never reach the
        others.
        """
        return [self.missing[key] for key in drawn(self.missing, secrets.randbits(32), "judged")]

    @property
    def prompt_tokens(self) -> int:
        """An upper estimate of the tokens to send."""
        return tokens_in(self.characters)


@dataclass(slots=True)
class Judging:
    """The result of one call to `RunJudge.judge`."""

    result: JudgeResult
    planned: int
    claims: int = 0
    """The number of "present" answers."""
    unproven: int = 0
    """The number of "present" answers without a quote that is in the run."""
    refused: list[str] = field(default_factory=list)
    """The quotes that are not in the run."""

    @property
    def complete(self) -> bool:
        """Whether all requests were sent and answered."""
        return self.result.end is JudgeEnd.ALL_ASKED and self.result.answered == self.result.asked


@dataclass(slots=True)
class RunJudge:
    """A model as the judge of runs, by a rubric, in pieces of at most `most` characters."""

    store: JudgementStore
    model_name: str
    rubric: Rubric
    most: int

    @property
    def name(self) -> str:
        """The name under which the answers are stored."""
        return CODEC.name_of(f"{MODEL}{self.model_name}", "judge")

    def missing(self, run: RunText) -> Iterator[PieceRequest]:
        """Yield the requests for the pieces of a run that have not been answered for every label."""
        known = answered_pieces(self.store.book.state(run.key, self.name))
        for piece in pieces_of(run.passages, self.most):
            given = known.get(piece.sha256, {})
            labels = tuple(label for label in self.rubric.asked if label.sha256 not in given)
            if labels:
                yield PieceRequest(run.key, piece, labels)

    def plan(self, runs: Iterable[RunText], *, cancel: CancelToken = NEVER) -> JudgingPlan:
        """Return the plan of the missing requests for some runs. Raises `CancelledError` when cancelled."""
        found = JudgingPlan()
        for run in runs:
            cancel.check()
            requests = list(self.missing(run))
            found.runs += 1
            found.addressing += bool(addressing_in(run.passages))
            if requests:
                found.missing[run.own_key] = run.name
            found.requests += len(requests)
            found.characters += characters_in(requests)
            found.reply_tokens += sum(REPLY_TOKENS_OF_LABEL * len(request.labels) for request in requests)
        return found

    def judge(
        self,
        runs: Iterable[RunText],
        model: ChatModel,
        planned: int,
        *,
        max_cost_usd: float | None = None,
        run: RunContext = UNATTENDED,
    ) -> Judging:
        """Ask the model about the missing pieces, and record each answer.

        `planned` is the number of requests, for the progress. Raises `CancelledError` if cancelled; earlier
        answers remain recorded.
        """
        found = Judging(JudgeResult(), planned)

        # The requests are made one by one, because all runs together may not fit into memory.
        def asked() -> Iterator[PieceRequest]:
            number = 0
            for text in runs:
                for request in self.missing(text):
                    number += 1
                    run.progress(RunProgress(f"{self.name} on {text.name}", number, planned))
                    yield request

        def take(request: PieceRequest, reply: str, usage: Usage) -> str:
            answers, fault = read_answers(reply, request.labels, request.piece)
            if answers:
                self._keep(request, answers, usage)
                found.claims += sum(answer.claimed for answer in answers)
                found.unproven += sum(answer.claimed and not answer.present for answer in answers)
                found.refused += [quote for answer in answers for quote in answer.refused]
            return fault

        found.result = ask_all(asked(), model, take, max_cost_usd=max_cost_usd, cancel=run.cancel)
        return found

    def _keep(self, request: PieceRequest, answers: tuple[PieceAnswer, ...], usage: Usage) -> None:
        data = PieceData(
            piece_sha256=request.piece.sha256,
            most=self.most,
            answers=answers,
            number=request.piece.number,
            prompt_sha256=instructions_sha256(),
            cost_usd=usage.cost_usd,
            tokens=usage.tokens,
        )
        at = self.store.next_ms(self.name)
        kind, values = JudgementKind.PIECE.value, msgspec.to_builtins(data)
        self.store.append([JudgementOperation(str(uuid.uuid4()), self.name, at, request.run, kind, values)])


def answered_pieces(judged: Judgements) -> dict[str, dict[str, PieceAnswer]]:
    """Return the last answers of a judge, by the hash of the piece and then by the hash of the label.

    Answers under other instructions do not count.
    """
    found: dict[str, dict[str, PieceAnswer]] = {}
    for piece in judged.pieces:
        # Two wordings of the instructions are two judges, whose errors differ.
        if piece.prompt_sha256 == instructions_sha256():
            answers = {answer.label_sha256: answer for answer in piece.answers}
            found.setdefault(piece.piece_sha256, {}).update(answers)
    return found


def answers_for(run: RunText, labels: Sequence[RubricLabel], judged: Judgements) -> dict[str, RunAnswer]:
    """Return a judge's answers for a run by label id, without labels that were not answered for every piece.

    If the run was divided in several ways, the last division with an answer for every piece counts.
    """
    known, found = answered_pieces(judged), dict[str, RunAnswer]()
    for most in dict.fromkeys(piece.most for piece in judged.pieces):
        pieces = [known.get(piece.sha256, {}) for piece in pieces_of(run.passages, most)]
        for label in labels:
            answers = [piece[label.sha256] for piece in pieces if label.sha256 in piece]
            if answers and len(answers) == len(pieces):
                found[label.id] = combined(answers, label.coded)
    return found
