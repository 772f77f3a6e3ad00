"""The confirmatory estimate that the study declares, and its sensitivity to other decisions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from msgspec.structs import replace as changed

from gistpoint.core.analysis.building import FindingsBuilder
from gistpoint.core.analysis.contrast import contrast_with_spread
from gistpoint.core.analysis.crossed_times import effects_on_times
from gistpoint.core.analysis.findings import Bars, Findings, Number, Plot, Shortfall
from gistpoint.core.analysis.intervals import Scale, Spread, Units, share
from gistpoint.core.analysis.pooling import (
    LEAST_ATTEMPTS_OF_RATE,
    LEAST_SOLVED_OF_TIMES,
    WITHOUT_ROW,
    countable,
    people_of,
    solved_of,
    too_few,
    under,
)
from gistpoint.core.analysis.samples import FIDELITY
from gistpoint.core.analysis.timeratios import (
    condition_ratio,
    contrasts_of,
    log_minutes,
    people,
)
from gistpoint.core.analysis.versus import Measure, solved
from gistpoint.core.attempts.results import by_tests_words
from gistpoint.core.kinds.registry import modes_measuring
from gistpoint.core.study.confirmatory import confirmatory_model
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.declaration import Assistance, PrimaryOutcome, PrimaryTime
from gistpoint.core.study.measuring import excluded_by_design, reviewers_exclude
from gistpoint.core.study.rows import AttemptRow
from gistpoint.core.study.soundness import PEOPLE_OF_ALL

Estimate = Number | Shortfall


@dataclass(frozen=True, slots=True)
class _Primary:
    """The primary estimate, with the rows that it uses and its refits, if there are any."""

    estimate: Estimate
    rows: Sequence[AttemptRow] = ()
    spread: Spread | None = None
    scale: Scale = Scale.PLAIN

    @property
    def without_persons(self) -> dict[str, float]:
        """The estimate without each person, with the ratios of variances of all rows, by the person's code.

        A person is left out of the result if too few attempts might remain, or if only some rows have a
        position, because the model without that person may then have different covariates.
        """
        if self.spread is None or self.spread.without_persons is None:
            return {}
        of_people = [row for row in self.rows if not row.solver]
        codes = sorted({row.participant for row in of_people})
        values = self.scale.back(self.spread.without_persons[:, 0])
        doubtful = {row.participant for row in of_people if row.position is None} | self._without_enough
        known = dict(zip(codes, map(float, values), strict=True))
        return {code: one for code, one in known.items() if np.isfinite(one) and code not in doubtful}

    @property
    def _without_enough(self) -> set[str]:
        """The persons without whom too few attempts are solved, or are left under one of their conditions."""
        of_people = [row for row in self.rows if not row.solver]
        solved_by = Counter(row.participant for row in of_people if row.solved)
        attempts = Counter(row.condition for row in of_people)
        own_attempts = Counter((row.participant, row.condition) for row in of_people)
        least = solved_by.total() - LEAST_SOLVED_OF_TIMES
        return {code for code, own in solved_by.items() if own > least} | {
            code
            for (code, condition), own in own_attempts.items()
            if attempts[condition] - own < LEAST_ATTEMPTS_OF_RATE
        }


def primary(data: StudyData, *, interval: bool = True) -> Estimate:
    """Return the declared primary estimate, or a shortfall if the data do not suffice for it.

    A contrast of two conditions or solvers is "the first minus the second", from every attempt of both
    (`contrast_of`); a contrast of times is their ratio (`condition_ratio`). Without a contrast, the estimate
    is the people's solve rate, mean fidelity or median time in minutes under the first condition; for
    `time_ratio` it is the ratio of the second condition to the first. Without `interval`, no refits are made
    and there is no interval.
    """
    return _primary(data, interval=interval).estimate


def _primary(data: StudyData, *, interval: bool = True) -> _Primary:
    # The contrast is declared before the study opens: the protocol's hash covers it, so it can't be chosen
    # after the data are seen (decision 83).
    protocol = data.study.protocol
    names = protocol.primary_contrast
    compares_times = protocol.primary is PrimaryOutcome.TIME_TO_SOLVE and len(names) == 2
    if compares_times or protocol.primary is PrimaryOutcome.TIME_RATIO:
        return _ratio(data, interval=interval)
    if protocol.primary is PrimaryOutcome.TIME_TO_SOLVE:
        return _median_time(_first_condition(data), interval=interval)
    measure = _fidelity if protocol.primary is PrimaryOutcome.FIDELITY else solved
    rows = [row for row in data.rows if countable(row)]
    if measure is _fidelity:
        # The fidelity of a mocked gist is undefined, whatever its run shows (decision 86).
        of_gists = modes_measuring(FIDELITY)
        rows = [row for row in rows if row.mode in of_gists and not row.is_true("mocked")]
    if len(names) == 2:
        first, second = (_rows_of_side(rows, name) for name in names)
        what = f"{names[0]} minus {names[1]}"
        found = contrast_with_spread(what, first, second, measure, interval=interval)
        if isinstance(found, Shortfall):
            return _Primary(found)
        return _Primary(found[0], [*first, *second], found[1], Scale.DIFFERENCE)
    return _Primary(_alone(data, rows, measure))


def _fidelity(row: AttemptRow) -> float:
    # An attempt that handed in no gist has failed: if it were left out, giving up would raise the mean
    # (decision 203). A recorded run of another program has a verdict but no measures.
    measured = row.number(FIDELITY)
    return float(row.solved) if measured is None else measured


def _alone(data: StudyData, rows: Sequence[AttemptRow], measure: Measure) -> Estimate:
    in_first = _in_first_condition(data, rows)
    if short := too_few("The primary estimate", ("counted attempt of people", 1, len(in_first))):
        return short
    return share(in_first, lambda row: measure(row) == 1)


def _in_first_condition(data: StudyData, rows: Iterable[AttemptRow]) -> list[AttemptRow]:
    first = next((condition.id for condition in data.study.conditions_of_people), "")
    return [row for row in under(rows, first) if not row.solver]


def _first_condition(data: StudyData) -> list[AttemptRow]:
    return _in_first_condition(data, people(data))


def _rows_of_side(rows: Iterable[AttemptRow], name: str) -> list[AttemptRow]:
    """Return the rows of the solver, of all people, or of people under the condition that has this name."""
    known = list(rows)
    of_solver = [row for row in known if row.solver == name]
    people = [row for row in known if not row.solver]
    if of_solver or name == PEOPLE_OF_ALL:
        return of_solver or people
    return under(people, name)


def _ratio(data: StudyData, *, interval: bool) -> _Primary:
    names = data.study.protocol.primary_contrast
    pair = (names[0], names[1]) if len(names) == 2 else next(iter(contrasts_of(data)), None)
    if pair is None:
        return _Primary(
            Shortfall("The ratio of times", "conditions", 2, len(data.study.conditions_of_people))
        )
    rows = people(data)
    found = condition_ratio(rows, *pair, interval=interval)
    if isinstance(found, Shortfall):
        return _Primary(found)
    return _Primary(found.ratio(pair[0]), under(rows, *pair), found.spread, Scale.LOG)


def _median_time(rows: Sequence[AttemptRow], *, interval: bool) -> _Primary:
    """Return the median time in minutes by a censored log-normal model with random tasks and persons.

    Attempts that did not solve their task are censored. The estimate is a shortfall if fewer than ten
    attempts are solved, or if the model can't be fitted, for example because all times are equal. Without
    `interval`, no refits are made and there is no interval.
    """
    if short := too_few("The median time", ("solved attempts", LEAST_SOLVED_OF_TIMES, len(solved_of(rows)))):
        return _Primary(short)
    y, solved_ones = log_minutes(rows), np.array([row.solved for row in rows], dtype=bool)
    constant = np.ones((len(rows), 1))
    found = effects_on_times(Units.of(rows), constant, y, solved_ones, np.eye(1), interval=interval)
    if found is None:
        return _Primary(Shortfall("The median time", "different times", 2, 1))
    return _Primary(found.spread.number(Scale.LOG), rows, found.spread, Scale.LOG)


def primary_findings(data: StudyData) -> Findings:
    """Return the declared primary estimate and, next to it, the estimate by the tests alone (`primary`)."""
    protocol = data.study.protocol
    found = FindingsBuilder()
    if not any(map(countable, data.rows)):
        return Findings()
    estimate = found.estimated(primary(data))
    if estimate is None:
        return found.findings()
    title = " against ".join(protocol.primary_contrast) or "as declared"
    table = found.table("The primary analysis", ("outcome", "compared", "estimate"))
    table.row(protocol.primary.value, title, found.number(protocol.primary.value, estimate))
    found.note(f"The model that was declared: {confirmatory_model(data.study)}")
    by_tests = _by_tests(data)
    if isinstance(by_tests, Number):
        table.row(f"{protocol.primary.value}, by the tests alone", title, by_tests)
        found.note(standings_note(data.rows))
    return found.findings()


def _by_tests(data: StudyData) -> Estimate | None:
    """Return the primary estimate with passes decided by the tests, before confirmations and reviews.

    None if the outcome is fidelity, which no test decides.
    """
    if data.study.protocol.primary is PrimaryOutcome.FIDELITY:
        return None
    return primary(replace(data, rows=tuple(row.by_the_tests for row in data.rows)))


def standings_note(rows: Iterable[AttemptRow]) -> str:
    """Return sentences on the standings of counted attempts' passes and the rule for contradicted ones."""
    words = by_tests_words(row.standing for row in rows if countable(row))
    return (
        f"{words or 'No pass was asked about'}. The declared outcome counts a contradicted pass after a"
        " reviewer has accepted it."
    )


# Sensitivity


@dataclass(frozen=True, slots=True)
class Variant:
    """The study's data under an alternative decision, with the decision's name."""

    name: str
    data: StudyData


def sensitivity(data: StudyData) -> Findings:
    """Return the primary estimate under alternative decisions and without each person (`sensitivity`)."""
    if not any(map(countable, data.rows)):
        return Findings()
    found = FindingsBuilder()
    declared = found.estimated(primary(data))
    if declared is None:
        return found.findings()
    found.number("as declared", declared)
    for variant in variants(data):
        estimate = primary(variant.data)
        if isinstance(estimate, Shortfall):
            estimate = replace(estimate, what=f"{estimate.what} ({variant.name})")
        number = found.estimated(estimate)
        if number is not None:
            found.number(variant.name, number)
    for name, number in _without_each_person(data).items():
        found.number(name, number)
    title = "The primary estimate under other decisions"
    table = found.table(title, ("decision", "estimate", "persons", "tasks", "attempts"))
    for name, number in found.numbers.items():
        table.row(name, number, number.persons, number.tasks, number.rows)
    marks = (Bars.of(data.study.protocol.primary.value, found.numbers),)
    found.plot(Plot("sensitivity", title, "", "estimate", marks, "Whiskers: 95% intervals."))
    return found.findings()


def variants(data: StudyData) -> tuple[Variant, ...]:
    """Return the study under other decisions on exclusions, times and unused chats; empty if none matters."""
    return (*_without_rules(data), *_other_times(data), *_without_silent(data))


def _without_rules(data: StudyData) -> Iterator[Variant]:
    """Yield the study with excluded attempts restored: all of them, then those excluded by a single rule."""
    reasons = {row.attempt: reasons_of(data, row) for row in data.rows}
    out = {attempt: found for attempt, found in reasons.items() if found}
    if out:
        yield Variant("nothing excluded", _with_restored(data, out))
    for reason in sorted(frozenset().union(*out.values())):
        # Attempts that another rule also excludes would stay out even without this rule.
        freed = {attempt for attempt, found in out.items() if found == {reason}}
        if 0 < len(freed) < len(out):
            yield Variant(f"without the rule {reason}", _with_restored(data, freed))


def _other_times(data: StudyData) -> Iterator[Variant]:
    """If the outcome is a time, yield the study with uncorrected times, and with the other clock's times."""
    protocol = data.study.protocol
    if protocol.primary in (PrimaryOutcome.TIME_TO_SOLVE, PrimaryOutcome.TIME_RATIO):
        yield Variant(
            "times before corrections", _timed(data, lambda row: raw_time(row, protocol.primary_time))
        )
        (other,) = set(PrimaryTime) - {protocol.primary_time}
        yield Variant(_CLOCKS[other], _timed(data, lambda row: corrected_time(row, other)))


def _without_silent(data: StudyData) -> Iterator[Variant]:
    """Yield the study without the attempts in which a person had a chat but sent no message."""
    declared = data.study.condition
    chats = [condition.id for condition in declared if condition.assistance is not Assistance.NONE]
    of_people = [row for row in data.rows if not row.solver]
    silent = {row.attempt for row in under(of_people, *chats) if not row.assist_messages}
    if silent:
        yield Variant("without attempts that did not use the chat", _leave_out(data, silent))


_CLOCKS: Mapping[PrimaryTime, str] = {
    PrimaryTime.ACTIVE: "active time alone",
    PrimaryTime.ACTIVE_AND_WAITING: "active time and waiting for tools",
}


def reasons_of(data: StudyData, row: AttemptRow) -> frozenset[str]:
    """Return the rules and reviewers' reasons that exclude an attempt that the design would count.

    Empty if the attempt counts, or if the design itself leaves it out.
    """
    never_counts = row.end in WITHOUT_ROW or excluded_by_design(row.exclusion)
    if row.counted or never_counts:
        return frozenset()
    rules = {flag.flag for flag in row.flags} & set(data.study.quality.exclude_on)
    excluded = data.ledger.notes(row.attempt).excluded
    by_people = {excluded.reason or "excluded"} if excluded is not None else set()
    judged = (one for one in data.decisions if one.attempt == row.attempt)
    if reviewers_exclude(judged, data.study.quality.rule):
        by_people.add("reviewers")
    # An attempt that the design also leaves out would stay excluded even without the rule.
    found = rules | by_people
    return frozenset(found) if row.exclusion in found else frozenset()


def raw_time(row: AttemptRow, clock: PrimaryTime) -> float | None:
    """Return the time in seconds on a clock without corrections; None if it is unknown."""
    return _with_waiting(row, row.active_s, clock)


def corrected_time(row: AttemptRow, clock: PrimaryTime) -> float | None:
    """Return the corrected time in seconds on a clock; None if it is unknown."""
    return _with_waiting(row, row.active_corrected_s, clock)


def _with_waiting(row: AttemptRow, active: float | None, clock: PrimaryTime) -> float | None:
    if active is None or clock is PrimaryTime.ACTIVE:
        return active
    return active + (row.waiting_s or 0.0)


def _leave_out(data: StudyData, attempts: Container[str]) -> StudyData:
    return replace(data, rows=tuple(row for row in data.rows if row.attempt not in attempts))


def _with_restored(data: StudyData, attempts: Container[str]) -> StudyData:
    rows = (changed(row, counted=True, exclusion="") if row.attempt in attempts else row for row in data.rows)
    return replace(data, rows=tuple(rows))


def _timed(data: StudyData, seconds: Callable[[AttemptRow], float | None]) -> StudyData:
    rows = (row if row.solver else changed(row, primary_s=seconds(row)) for row in data.rows)
    return replace(data, rows=tuple(rows))


def _without_each_person(data: StudyData) -> dict[str, Number]:
    """Return the smallest and the largest of the estimates that each leave out one person.

    The person is not named. Empty for fewer than two persons, or if no such estimate can be made.
    """
    persons = sorted({row.participant for row in people_of(data.rows)})
    if len(persons) < 2:
        return {}
    # Leaving each person out in turn shows whether one of them decides the estimate.
    rows_of: dict[str, set[str]] = defaultdict(set)
    for row in data.rows:
        rows_of[row.participant].add(row.attempt)

    def without(code: str) -> StudyData:
        return _leave_out(data, rows_of[code])

    # An interval needs as many refits as there are persons and tasks, so only the two extremes get one.
    known = _primary(data).without_persons
    search = Extremes(known, lambda code: _value(primary(without(code), interval=False)))
    estimated = search.found(persons)
    if not estimated:
        return {}
    note = f"without {search.lost} of them there is no estimate" if search.lost else ""
    least, greatest = min(estimated, key=estimated.__getitem__), max(estimated, key=estimated.__getitem__)
    named = {"without one person: least": least, "without one person: greatest": greatest}
    numbers = {name: primary(without(code)) for name, code in named.items()}
    return {name: replace(n, note=n.note or note) for name, n in numbers.items() if isinstance(n, Number)}


@dataclass(slots=True)
class Extremes:
    """The search for the persons without whom the estimate is smallest and largest.

    The refits of the interval, whose ratios of variances are fixed, put the persons in order; the ratios are
    chosen again only for persons near an end of that order (decision 217).
    """

    known: Mapping[str, float]
    """The estimates with fixed ratios, by person."""
    exact: Callable[[str], float | None]
    lost: int = 0
    """The number of persons without whom there is no estimate."""

    def found(self, persons: Iterable[str]) -> dict[str, float]:
        """Return the exact estimates without each of the persons who may be extreme."""
        tried = {code: self.exact(code) for code in persons if code not in self.known}
        for sign in (1.0, -1.0):
            error, best = 0.0, np.inf
            for place, code in enumerate(sorted(self.known, key=lambda code: sign * self.known[code])):
                about = sign * self.known[code]
                if place >= _LEAST_TRIED and about - best > _SAFETY * error:
                    break
                if code not in tried:
                    tried[code] = self.exact(code)
                value = tried[code]
                if value is not None:
                    error, best = max(error, abs(sign * value - about)), min(best, sign * value)
        self.lost = sum(value is None for value in tried.values())
        return {code: value for code, value in tried.items() if value is not None}


_LEAST_TRIED = 3
_SAFETY = 3.0
"""How many times the largest error so far an estimate must be from the extreme to end the search."""


def _value(estimate: Estimate) -> float | None:
    return estimate.value if isinstance(estimate, Number) else None
