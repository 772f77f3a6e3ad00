"""The rows of the list of runs: their columns, and the summaries of groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from gistpoint.core.attempts.results import AttemptResult, solved_and_by_tests
from gistpoint.core.readable import duration, thousands
from gistpoint.core.tasks.names import word_name
from gistpoint.core.text import plural
from gistpoint.sessions.annotations.reviews import WHOLE_VERDICTS, Review
from gistpoint.sessions.records.model import Run
from gistpoint.sessions.runs.cut_files import says_cut
from gistpoint.sessions.runs.digest import Happening, RunDigest
from gistpoint.sessions.runs.happened import (
    answer_words,
    cause_group,
    failing_group,
    failing_words,
    happened_words,
)
from gistpoint.sessions.runs.opening import ListedRun
from gistpoint.sessions.runs.rendering import money, tilde_of
from gistpoint.tui import signs
from gistpoint.tui.screens.review.loading import solver_words
from gistpoint.tui.screens.review.run_task import is_our_id, short_task
from gistpoint.tui.tables import Column, Summary

if TYPE_CHECKING:
    from gistpoint.sessions.annotations.reviewer import Reviewer
    from gistpoint.sessions.runs.document import RunDocument
    from gistpoint.sessions.runs.kept import KeptRun
    from gistpoint.tui.screens.review.settings import ReviewSettings

ENDED = f"{signs.ENDED} ended"
"""The status of a watched run that has ended."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run in the list, with the reviewer's annotations."""

    listed: ListedRun
    review: Review | None = None
    """None until the run has been read in full. The review may be empty."""
    hides: bool = False
    """Whether model and outcome are hidden."""
    title: str = ""
    """The title of the task; empty if it is unknown."""
    warning: str = ""
    """The first problem with the file, or that it was cut off; empty if there is none."""
    kept: KeptRun | None = None
    """The stored facts about the run; None until it has been read in full."""
    readers: tuple[str, ...] = ()
    """The other team members who are reading the run."""
    now: str = ""
    """The status of the run in a list that is watched, shown by `now_words`; empty in any other list."""

    @property
    def name(self) -> str:
        """The name that opens the run."""
        return self.listed.name

    @property
    def header(self) -> Run:
        """The run's header; an empty one if it could not be read."""
        return self.listed.header or Run("")

    @property
    def digest(self) -> RunDigest | None:
        """The events of the run; None until it has been read in full."""
        return None if self.kept is None else self.kept.digest


def hides_outcome(review: Review | None, *, blind: bool) -> bool:
    """Return whether model and outcome of a run are hidden: up to the verdict, if it is reviewed blind.

    `blind` applies to all runs. `review` is None if it is not known yet.
    """
    return blind if review is None else review.hides_outcome or (blind and review.verdict is None)


def now_words(row: RunRow) -> str:
    """Return the status of a run in a list that is watched. A hidden failure reads like any other end."""
    return ENDED if row.hides and row.now.startswith(signs.BAD) else row.now


def task_words(row: RunRow) -> str:
    """Return the title or the name of a run's task; without either, the name of the run's file."""
    return row.title or short_task(row.header.task) or PurePath(row.name).name


def _task_text(row: RunRow) -> str:
    """Return the text in which queries search for a run's task: its shown words, id, and two-word name."""
    task = row.header.task
    names = [task, word_name(task)] if is_our_id(task) else [task]
    return " ".join([task_words(row), *names])


def _outcome(row: RunRow) -> str:
    """Return a run's outcome as text, or `hidden`, marked if its file is damaged; or why it can't be read."""
    if row.listed.problem:
        return f"! {row.listed.problem}"
    words = "hidden" if row.hides else _recorded_outcome(row.header)
    if says_cut(row.warning):
        return f"! cut off, {words}" if words else "! cut off"
    return f"! {words or 'damaged'}" if row.warning else words


def _recorded_outcome(header: Run) -> str:
    sign = {"solved": f"{signs.GOOD} ", AttemptResult.TO_BE_READ: "? ", "unsolved": f"{signs.BAD} "}.get(
        header.verdict, ""
    )
    return f"{sign}{tilde_of(header, 'verdict')}{header.verdict}" if header.verdict else ""


def _end_reason(row: RunRow) -> str:
    return "hidden" if row.hides else row.header.exit_status


def made_by(row: RunRow) -> str:
    """Return the solver of a run: the model, a person or the program; `hidden` if the model is hidden."""
    return "hidden" if row.hides else solver_words(row.header)


def _labels(row: RunRow) -> str:
    counts: dict[str, int] = {}
    for label in row.review.labels if row.review is not None else ():
        counts[label.label] = counts.get(label.label, 0) + 1
    return " ".join(f"{name}×{count}" if count > 1 else name for name, count in sorted(counts.items()))


def _seen(row: RunRow) -> float | None:
    """Return the percentage of steps that the reviewer has seen; None if it is unknown or none was seen."""
    count, review = row.header.step_count, row.review
    return (
        min(100.0, 100 * len(review.seen) / count) if review is not None and review.seen and count else None
    )


def _verdict(row: RunRow) -> str:
    """Return the reviewer's own verdict in words; empty if there is none."""
    given = row.review.verdict if row.review is not None else None
    return given.in_words if given is not None else ""


def _is_given(name: str) -> Callable[[RunRow], bool]:
    def holds(row: RunRow) -> bool:
        given = row.review.verdict if row.review is not None else None
        return given is not None and given.is_named(name)

    return holds


def _tokens(row: RunRow) -> float | None:
    tokens = row.header.tokens
    return float((tokens.prompt or 0) + (tokens.completion or 0)) or None


def _measure(
    name: str,
    number: Callable[[RunRow], float | None],
    text: Callable[[float], str] = "{:,.0f}".format,
    *,
    field: str = "",
    rank: int = 0,
    total: bool = False,
) -> Column[RunRow]:
    """Return a column of numbers that may be unknown. A group shows their median or, with `total`, their sum.

    A tilde marks numbers that were derived rather than recorded; `field` is the name of the number in the
    header.
    """

    def summary(rows: Sequence[RunRow]) -> Summary:
        from statistics import median  # needed only for the summary of a group

        known = [(found, tilde_of(row.header, field)) for row in rows if (found := number(row)) is not None]
        values = [value for value, _ in known]
        level = sum(values) if total else median(values or [0])
        if not level:
            return -1, ""
        return level, ("Σ" if total else "") + max(mark for _, mark in known) + text(level)

    def shown(row: RunRow) -> str:
        value = number(row)
        return "" if not value else tilde_of(row.header, field) + text(value)

    return Column(name, shown, number, right=True, rank=rank, summary=summary)


def _common_value(shown: Callable[[RunRow], str], kind: str) -> Callable[[Sequence[RunRow]], Summary]:
    """Return a function for the summary of a text column: the common value, or the number of values."""

    def summary(rows: Sequence[RunRow]) -> Summary:

        words = {shown(row) for row in rows} - {""}
        return float(len(words)), next(iter(words)) if len(words) == 1 else plural(
            len(words), kind
        ) if words else ""

    return summary


def known_outcomes(rows: Sequence[RunRow]) -> list[AttemptResult]:
    """Return the recorded outcomes that are not hidden. An unknown one counts as `NOT_SOLVED`."""
    known = {str(result): result for result in AttemptResult}
    found = [row.header.verdict for row in rows if row.header.verdict and not row.hides]
    return [known.get(verdict, AttemptResult.NOT_SOLVED) for verdict in found]


def _share_solved(rows: Sequence[RunRow]) -> Summary:
    """Return the share of solved runs, and a label for it: a range if some runs still need a review.

    Only runs with a known outcome count. Without such runs, return -1 and an empty string.
    """
    outcomes = known_outcomes(rows)
    least, more = outcomes.count(AttemptResult.SOLVED), outcomes.count(AttemptResult.TO_BE_READ)
    if not outcomes:
        return -1, ""
    return least / len(
        outcomes
    ), f"{signs.GOOD} {least}{f'-{least + more}' if more else ''} of {len(outcomes)}"


def _judged(rows: Sequence[RunRow]) -> Summary:
    count = sum(bool(_verdict(row)) for row in rows)
    return count / len(rows), f"{count} of {len(rows)}" if count else ""


def _share_seen(rows: Sequence[RunRow]) -> Summary:
    share = sum(_seen(row) or 0 for row in rows) / len(rows)
    return share, f"{share:.0f}%" if share else ""


def _cost(row: RunRow) -> float | None:
    return None if row.hides else row.header.cost


_STYLES = {"solved": "$text-success", AttemptResult.TO_BE_READ: "$text-warning", "unsolved": "$text-error"}
_MUTED = "$foreground 60%"


def _outcome_style(row: RunRow) -> str:
    return "$text-error" if row.listed.problem else "" if row.hides else _STYLES.get(row.header.verdict, "")


def fault_of(row: RunRow) -> str:
    """Return why a run can't be read in full; empty if it can."""
    return row.listed.problem or row.warning


def _is(verdict: str) -> Callable[[RunRow], bool]:
    return lambda row: not row.hides and row.header.verdict == verdict


def _of_digest(words: Callable[[RunDigest], str]) -> Callable[[RunRow], str]:
    """Return a function for the text of a column about a run's events, hidden along with the outcome."""
    return lambda row: "" if row.digest is None else "hidden" if row.hides else words(row.digest)


def _happened(happening: Happening) -> Callable[[RunRow], bool]:
    return lambda row: row.digest is not None and not row.hides and row.digest.has(happening)


COLUMNS: tuple[Column[RunRow], ...] = (
    # New columns come last: queries may name a column by the beginning of its name, and the first match
    # counts.
    Column(
        "now",
        now_words,
        rank=2,
        least=14,
        style=lambda row: "$text-error" if now_words(row).startswith(signs.BAD) else "",
    ),
    Column(
        "task",
        task_words,
        sort=lambda r: r.header.task or r.name,
        text=lambda r: _task_text(r),
        rank=1,
        least=20,
        keeps_end=True,
    ),
    Column(
        "solver",
        made_by,
        rank=7,
        least=10,
        keeps_end=True,
        former_names=("model",),
        summary=_common_value(made_by, "solver"),
    ),
    Column(
        "outcome",
        _outcome,
        rank=2,
        least=12,
        style=_outcome_style,
        words={
            "solved": _is("solved"),
            "unsolved": _is("unsolved"),
            "damaged": lambda row: bool(fault_of(row)),
        },
        summary=_share_solved,
    ),
    Column(
        "end reason",
        _end_reason,
        rank=8,
        least=14,
        former_names=("ending",),
        summary=_common_value(_end_reason, "end reason"),
    ),
    _measure("steps", lambda r: r.header.step_count, rank=3),
    _measure("subm", lambda r: r.header.submissions),
    _measure("tokens", _tokens, thousands, field="tokens", rank=9),
    _measure("cost", _cost, money, field="cost", rank=4, total=True),
    _measure(
        "time",
        lambda r: r.header.duration_s,
        lambda seconds: duration(1000 * seconds),
        field="duration_s",
        rank=10,
    ),
    Column(
        "seen",
        lambda r: "" if _seen(r) is None else f"{_seen(r):.0f}%",
        _seen,
        right=True,
        rank=5,
        summary=_share_seen,
    ),
    Column(
        "verdict",
        _verdict,
        rank=6,
        least=10,
        former_names=("mine",),
        own_words={name: _is_given(name) for name in WHOLE_VERDICTS},
        summary=_judged,
    ),
    Column("reads", lambda r: " ".join(r.readers), rank=6, least=8),
    Column(
        "labels", _labels, lambda r: len(r.review.labels) if r.review is not None else 0, rank=11, least=12
    ),
    Column("format", lambda r: r.header.format, least=8, style=lambda r: _MUTED),
    Column(
        "file",
        lambda r: PurePath(r.name).name,
        sort=lambda r: r.name,
        least=16,
        keeps_end=True,
        style=lambda r: _MUTED,
        text=lambda r: PurePath(r.name).name if r.hides else r.name,
    ),
    Column(
        "cause",
        _of_digest(lambda digest: digest.cause),
        rank=8,
        least=16,
        summary=_common_value(_of_digest(lambda digest: digest.cause), "cause"),
        grouped=_of_digest(cause_group),
    ),
    Column(
        "happened",
        _of_digest(happened_words),
        rank=13,
        least=12,
        words={happening.value: _happened(happening) for happening in Happening},
        summary=_common_value(_of_digest(happened_words), "way"),
    ),
    Column(
        "failing tests",
        _of_digest(failing_words),
        least=16,
        text=_of_digest(lambda digest: " ".join(digest.failing)),
        summary=_common_value(_of_digest(failing_words), "set"),
        grouped=_of_digest(failing_group),
    ),
    Column(
        "answer",
        _of_digest(answer_words),
        least=6,
        summary=_common_value(_of_digest(answer_words), "kind"),
    ),
)
_KINDS = (
    *("task", "solver", "outcome", "end reason", "cause", "failing tests", "happened", "answer", "format"),
    "verdict",
)
GROUPS = (None, *(column for name in _KINDS for column in COLUMNS if column.name == name))
"""The columns by which the key groups runs, in the order in which it cycles; None means no groups."""


def solved(rows: Sequence[RunRow]) -> str:
    """Return how many of the runs with a visible outcome were solved, as text; empty if there are none."""
    outcomes = known_outcomes(rows)
    shown = [row.header for row in rows if row.header.verdict and not row.hides]
    return solved_and_by_tests(outcomes, [header.confirmation for header in shown])


class OtherOutcomes:
    """Answers by the reviewer's own reviews, which are read when the first run is asked about."""

    def __init__(self, settings: ReviewSettings) -> None:
        self._settings = settings
        self._reviewer: Reviewer | None = None

    def hides(self, document: RunDocument) -> bool:
        """Whether the model and the outcome of a run are hidden, as in the list of runs. Used in a thread."""
        from gistpoint.core.machine_time import SystemTime
        from gistpoint.sessions.annotations.reviewer import Reviewer, ReviewStore
        from gistpoint.sessions.annotations.reviews import annotated_key

        settings = self._settings
        if self._reviewer is None:
            self._reviewer = Reviewer(ReviewStore(settings.reviews, SystemTime()), settings.reviewer)
        review = self._reviewer.review(annotated_key(document, self._reviewer.store.book))
        return hides_outcome(review, blind=settings.blind)
