"""The report on judged runs: the prevalence of each label, and each finding with its run, step and quote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from gistpoint.core.judging.addressing import Addressing, addressing_in
from gistpoint.core.judging.answers import RunAnswer
from gistpoint.core.judging.quotes import QuotePlace
from gistpoint.core.judging.rubric import Coding, Rubric, RubricLabel
from gistpoint.sessions.annotations.glances import MODEL
from gistpoint.sessions.judging.hand_labels import SECOND
from gistpoint.sessions.judging.judgements import HandLabel, JudgementBook, LabelPart
from gistpoint.sessions.judging.judging import answers_for
from gistpoint.sessions.judging.run_texts import RunText

if TYPE_CHECKING:
    from gistpoint.core.analysis.prevalence import JudgedRun, Prevalence

LONGEST_SHOWN_QUOTE = 300


@dataclass(frozen=True, slots=True)
class CodedRun:
    """A run with the judge's answers and a person's labels, by label id."""

    name: str
    """The name by which the user opens the run."""
    task: str
    answers: Mapping[str, RunAnswer]
    quotes: Mapping[QuotePlace, str]
    """The texts at the places of the answers, shortened."""
    blind: Mapping[str, HandLabel]
    again: Mapping[str, HandLabel]
    settled: Mapping[str, HandLabel]
    addressing: tuple[Addressing, ...] = ()


def coded_run(
    text: RunText,
    rubric: Rubric,
    computed: Mapping[str, RunAnswer],
    book: JudgementBook,
    judge: str,
    reader: str,
) -> CodedRun:
    """Return a run with its answers and labels; `computed` is by fact name, `reader` may be empty."""
    given = book.state(text.own_key, reader)
    answers = {label.id: computed[label.fact] for label in rubric.computed}
    answers |= answers_for(text, rubric.asked, book.state(text.key, judge))

    def labels(part: LabelPart, round: int = 1) -> dict[str, HandLabel]:
        found = {label.id: given.label(label.sha256, part, round) for label in rubric.label}
        return {id: label for id, label in found.items() if label is not None}

    places = {place for answer in answers.values() for place in answer.places}
    return CodedRun(
        text.name,
        text.task,
        answers,
        {place: text.quoted(place)[:LONGEST_SHOWN_QUOTE] for place in places},
        blind=labels(LabelPart.RANDOM),
        again=labels(LabelPart.RANDOM, SECOND),
        settled=labels(LabelPart.DISPUTED),
        addressing=addressing_in(text.passages),
    )


@dataclass(frozen=True, slots=True)
class LabelRow:
    """The figures of one label."""

    label: str
    coded: str
    prevalence: Prevalence
    not_judged: int
    """The number of runs without a complete answer: at least one of their pieces was not judged."""
    unproven: int
    """The number of claims without a quote that is in the run; these labels count as absent."""
    refused: int
    """The number of quotes that are not in the run."""
    settled: int
    """The number of disputed claims that a person has settled."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A label that a judge found in a run, with one of the places that show it."""

    label: str
    run: str
    task: str
    step: int | None
    """The number of the step, from 1; None if the run as a whole shows it."""
    place: str
    """The part of the step and the characters, such as `result 1, 20-45`; empty for a whole step."""
    quote: str
    confidence: float
    person: str
    """A person's answer: `present` or `absent`; empty without one."""


@dataclass(frozen=True, slots=True)
class FindingsReport:
    """The report: a row for each label, the claims, and the places that seem to address a judge."""

    rubric: str
    judge: str
    reader: str
    rows: tuple[LabelRow, ...]
    claims: tuple[Claim, ...]
    addressing: tuple[tuple[str, str, int], ...]
    """For each place that seems to address a judge: the run, the reason, and the step, counted from 1."""
    kinds: Mapping[str, int] = field(default_factory=dict)
    """The number of places of each kind."""


def report_of(runs: Sequence[CodedRun], rubric: Rubric, judge: str, reader: str) -> FindingsReport:
    """Return the report on runs."""
    places = [(run.name, found.what, found.place.step + 1) for run in runs for found in run.addressing]
    return FindingsReport(
        rubric.name,
        judge.removeprefix(MODEL),
        reader,
        tuple(_row(runs, label) for label in rubric.label),
        tuple(claim for label in rubric.label for run in runs for claim in _claims(run, label)),
        tuple(places),
        Counter(what for _, what, _ in places),
    )


def _row(runs: Sequence[CodedRun], label: RubricLabel) -> LabelRow:
    from gistpoint.core.analysis.prevalence import JudgedRun, prevalence

    judged = [run for run in runs if label.id in run.answers]
    answers = [run.answers[label.id] for run in judged]
    found = [
        JudgedRun(
            run.task,
            run.answers[label.id].present,
            run.blind[label.id].present if label.id in run.blind else None,
            run.again[label.id].present if label.id in run.again else None,
        )
        for run in judged
    ]
    is_fact = label.coded is Coding.COMPUTED and all(run.label is None for run in found)
    return LabelRow(
        label.id,
        label.coded.value,
        _of_fact(found) if is_fact else prevalence(found),
        len(runs) - len(judged),
        sum(answer.unproven for answer in answers),
        sum(answer.refused for answer in answers),
        sum(label.id in run.settled for run in judged),
    )


def _of_fact(runs: Sequence[JudgedRun]) -> Prevalence:
    """Return the prevalence of a fact that nobody labelled: computed answers are correct by definition."""
    from gistpoint.core.analysis.prevalence import prevalence

    found = prevalence([replace(run, label=run.judged) for run in runs])
    return replace(found, labels=0, present=0, kappa=None, squared_correlation=None, more_labels=None)


def _claims(run: CodedRun, label: RubricLabel) -> Iterable[Claim]:
    answer = run.answers.get(label.id)
    if answer is None or not answer.present:
        return
    given = run.settled.get(label.id) or run.blind.get(label.id)
    person = "" if given is None else "present" if given.present else "absent"
    for place in answer.places or (None,):
        yield Claim(
            label.id,
            run.name,
            run.task,
            None if place is None else place.step + 1,
            "" if place is None or not place.scope else _words(place),
            "" if place is None else run.quotes[place],
            answer.confidence,
            person,
        )


def _words(place: QuotePlace) -> str:
    return f"{place.scope} {place.part + 1}, {place.start}-{place.end}"


ROW_COLUMNS = (
    *("label", "coded", "runs", "tasks", "not_judged", "judged", "unproven", "refused", "labels", "present"),
    *("value", "low", "high", "too_few", "more_labels", "weight", "squared_correlation"),
    *("kappa", "read_again", "kappa_again", "settled"),
)
CLAIM_COLUMNS = ("label", "run", "task", "step", "place", "quote", "confidence", "person")


def row_values(row: LabelRow) -> dict[str, Any]:
    """Return the cells of a row, by the names of `ROW_COLUMNS`."""
    values = asdict(row)
    return {**values.pop("prevalence"), **values}


def claim_values(claim: Claim) -> dict[str, Any]:
    """Return the cells of a claim, by the names of `CLAIM_COLUMNS`."""
    return asdict(claim)


def report_json(report: FindingsReport) -> dict[str, Any]:
    """Return the report as JSON values."""
    return {
        "rubric": report.rubric,
        "judge": report.judge,
        "reader": report.reader,
        "labels": [row_values(row) for row in report.rows],
        "findings": [claim_values(claim) for claim in report.claims],
        "addressing_the_judge": [
            {"run": run, "what": what, "step": step} for run, what, step in report.addressing
        ],
    }
