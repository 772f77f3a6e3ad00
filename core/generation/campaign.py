"""Runs a campaign: workers decide candidates ahead of time, and verdicts are accepted strictly in order.

The tasks are therefore the same for any number of workers, and unneeded verdicts stay in the state. Until the
set is full, it contains the tasks that it would have if no more candidates followed: proven tasks are written
at once, and replaced by better ones.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import mean
from typing import Any, Protocol

from gistpoint.core.code.parsing import CodeError
from gistpoint.core.errors import EndpointError, InfrastructureError, SourceError
from gistpoint.core.generation.candidates import LOCATED, SUBTLE, CorruptionCandidate, Strata
from gistpoint.core.generation.confirmable import with_controls
from gistpoint.core.generation.context import Context, opened
from gistpoint.core.generation.intake import LOOK, NoTaskError, request_of
from gistpoint.core.generation.pending import Executor, Pending
from gistpoint.core.generation.readings import read_pool, with_readings
from gistpoint.core.generation.removal import removal_by, removal_target
from gistpoint.core.generation.settings import CampaignMode, CampaignSettings
from gistpoint.core.generation.trials.discovery import decide_discovery
from gistpoint.core.generation.trials.groups import decide_group
from gistpoint.core.generation.trials.history import decide_history
from gistpoint.core.generation.trials.model import decide_by_model
from gistpoint.core.generation.trials.rewrite import decide_rewrite
from gistpoint.core.generation.trials.trial import (
    STOPPED,
    CandidateDropped,
    CandidateTrial,
    require_proof_by_one,
)
from gistpoint.core.generation.verdicts import (
    CandidateVerdict,
    Counts,
    Reason,
    Specimen,
    StateFile,
    glance_of,
    reader_record,
)
from gistpoint.core.outcomes import FREE, Outcome, RunStatus
from gistpoint.core.tasks.trees import corrupted_tree
from gistpoint.core.text import failing_in_words


def decide_removal(trial: CandidateTrial) -> CandidateVerdict:
    """Return the verdict on deleting the body of the candidate, or the bodies in it if it is a class.

    Every test that can see the candidate is run, although fewer would suffice. A hanging test is thus found
    before it can hold up the whole suite until the time limit. Raises `CandidateDropped` if the candidate
    can't become a task.
    """
    library, name, needed = trial.library, trial.candidate.name, trial.settings.min_failing
    try:
        target = removal_target(library.intake.repository.tree, name, library.test_files)
    except (NoTaskError, SourceError, CodeError) as error:
        raise CandidateDropped(Reason.NOT_REMOVABLE, str(error)) from error
    how = removal_by(target)
    trial.next(name, how)
    trial.refuse_leak((target,))
    report = trial.probe((target,))
    if report.status in STOPPED:
        raise CandidateDropped(STOPPED[report.status])
    if report.status is RunStatus.FINISHED and len(report.failed) < needed:
        raise CandidateDropped(Reason.TOO_FEW_FAILING, failing_in_words(len(report.failed), report.ran))
    proof = trial.confirm((target,))
    entering = len(library.entering(name))
    return trial.kept(proof, {"corruption": how, "entering": entering})


_DECIDERS: Mapping[CampaignMode, Callable[[CandidateTrial], CandidateVerdict]] = {
    CampaignMode.REMOVE: decide_removal,
    CampaignMode.DISCOVERY: decide_discovery,
    CampaignMode.MULTI: decide_group,
}


def decide(context: Context, candidate: CorruptionCandidate) -> CandidateVerdict:
    """Return the verdict on a candidate: the same in every process, independent of earlier decisions.

    Raises `InfrastructureError` if the library or the sandbox is not available, `EndpointError` if the
    corrupting model or its endpoint fails, and `CancelledError` when stopped.
    """
    with opened(context) as here:
        trial, settings = CandidateTrial(here, candidate), context.settings
        try:
            verdict = _decider(settings, candidate)(trial)
            require_proof_by_one(trial, verdict)
        except CandidateDropped as why:
            return trial.dropped(why)
        if verdict.kept is None:
            return verdict
        trial.report_controls()
        return with_controls(here, verdict)


def _decider(
    settings: CampaignSettings, candidate: CorruptionCandidate
) -> Callable[[CandidateTrial], CandidateVerdict]:
    if settings.rewrite:
        return decide_rewrite
    alone = candidate.size == 1 and bool(settings.groups.sizes)
    if settings.model and (alone or not settings.mode.in_groups):
        return decide_by_model
    if settings.source.is_believed and (alone or not settings.mode.in_groups):
        return decide_history
    return decide_discovery if alone else _DECIDERS[settings.mode]


MOST_SHARED = 1
"""The maximum number of functions that two groups may have in common."""


@dataclass
class CandidateVerdicts:
    """The verdicts so far in order, each with its current status.

    A corruption that is not subtle enough waits until there is no other candidate. Fewer than half of the
    corruptions in a set may be in functions that a spectrum-based localisation ranks near the top: such a
    corruption waits until there are enough others. If no other candidate is left, the remaining places go to
    waiting verdicts, most subtle first (decision 33). In a stratified set, no verdict is accepted beyond the
    share of its stratum, and waiting verdicts get a place when their stratum has no other candidate (decision
    91).
    """

    count: int
    """The number of tasks wanted."""
    pool: int = 0
    """The number of proven corruptions from which the best become tasks; 0 if they are accepted in order."""
    verdicts: list[CandidateVerdict] = field(default_factory=list)
    accepted: list[CandidateVerdict] = field(default_factory=list)
    """The verdicts that become tasks, in the order in which they were accepted."""
    strata: Strata = field(default_factory=Strata)
    stratum: Mapping[str, str] = field(default_factory=dict)
    """The stratum of each candidate, by its key."""
    left: Counter[str] = field(default_factory=Counter)
    """The number of candidates of each stratum without a verdict."""
    _waiting: dict[int, CandidateVerdict] = field(default_factory=dict)
    _groups: list[frozenset[str]] = field(default_factory=list)
    _hidden: int = 0
    _located: int = 0

    @property
    def full(self) -> bool:
        """Whether the set has enough tasks."""
        return len(self._groups) == self.count

    @property
    def pooled(self) -> tuple[CandidateVerdict, ...]:
        """The proven corruptions that wait for a decision."""
        return tuple(self._waiting.values())

    @property
    def is_decided(self) -> bool:
        """Whether no further candidate has to be tried."""
        if not self.pool:
            return self.full
        return sum(verdict.kept is not None for verdict in self._waiting.values()) >= self.pool

    def wants(self, stratum: str) -> bool:
        """Return whether another task of this stratum may be accepted, so its candidates are worth trying."""
        return not self.is_decided and self._has_room(stratum)

    def _has_room(self, stratum: str) -> bool:
        if not self.strata.names:
            return not self.full
        waiting = {self.stratum.get(verdict.key, "") for verdict in self._waiting.values()}
        exhausted = {name for name in self.strata.names if not self.left[name] and name not in waiting}
        kept = Counter(self.stratum.get(verdict.key, "") for verdict in self.accepted)
        return not self.full and self.strata.has_room(stratum, self.count, kept, exhausted)

    def as_if_last(self, others: Iterable[CandidateVerdict] = ()) -> list[CandidateVerdict]:
        """Return the verdicts that would become tasks if the campaign ended after `others`.

        `others` follow the verdicts so far. The returned verdicts make a complete set if the campaign stops
        here (decision 92).
        """
        after = replace(
            self,
            verdicts=[*self.verdicts],
            accepted=[*self.accepted],
            _waiting=dict(self._waiting),
            _groups=[*self._groups],
            left=Counter(self.left),
        )
        for verdict in others:
            if not after.is_decided:
                after.take(verdict)
        after.fill()
        return after.accepted

    def take(self, verdict: CandidateVerdict) -> None:
        """Count a verdict, and accept it and any waiting verdicts that the rules now allow."""
        self.verdicts.append(verdict)
        self.left[self.stratum.get(verdict.key, "")] -= 1
        if verdict.kept is None:
            if self.strata.names:
                self._accept_waiting(at_last=False)  # this may have been the last candidate of its stratum
            return
        self._waiting[len(self.verdicts) - 1] = verdict
        if self.pool:
            self._leave_out(len(self.verdicts) - 1, Reason.IN_POOL)
            return
        self._leave_out(
            len(self.verdicts) - 1, Reason.LOCATED if _subtlety(verdict) >= SUBTLE else Reason.NOT_SUBTLE
        )
        self._accept_waiting(at_last=False)

    def read_again(self, read: Callable[[CandidateVerdict], CandidateVerdict]) -> None:
        """Update the waiting verdicts with the results of their blind readings."""
        self._waiting = {place: read(verdict) for place, verdict in self._waiting.items()}

    def fill(self) -> None:
        """Accept as many waiting verdicts as are still wanted, after the last candidate."""
        self.left.clear()
        self._accept_waiting(at_last=True)

    def _accept_waiting(self, *, at_last: bool) -> None:
        accepted = True
        while accepted and not self.full:
            accepted = False
            for place, verdict in self._in_turn(at_last=at_last):
                if not self._has_room(self.stratum.get(verdict.key, "")):
                    continue
                names = frozenset(verdict.names)
                hidden, located = _located(verdict)
                if any(len(names & group) > MOST_SHARED for group in self._groups):
                    del self._waiting[place]
                    self._leave_out(place, Reason.OVERLAPS)
                elif at_last or self._has_run_out(verdict) or self._may_be_located(hidden, located):
                    del self._waiting[place]
                    self.verdicts[place] = verdict
                    self._groups.append(names)
                    self._hidden, self._located = self._hidden + hidden, self._located + located
                    self.accepted.append(verdict)
                    accepted = True
                    break

    def _may_be_located(self, hidden: int, located: int) -> bool:
        """Return whether most corruptions stay hard to locate after accepting these (decision 33)."""
        return not located or self._located + located < self._hidden + hidden

    def _in_turn(self, *, at_last: bool) -> list[tuple[int, CandidateVerdict]]:
        """Return the waiting verdicts that may be accepted, with their indexes, in the order to try them.

        `at_last` is true if the last candidate has been decided; all waiting verdicts may then be accepted.
        """
        if at_last:
            return sorted(self._waiting.items(), key=lambda item: _preference(item[1]))
        subtle = [item for item in self._waiting.items() if _subtlety(item[1]) >= SUBTLE]
        others = [
            item
            for item in self._waiting.items()
            if _subtlety(item[1]) < SUBTLE and self._has_run_out(item[1])
        ]
        return subtle + sorted(others, key=lambda item: _preference(item[1]))

    def _has_run_out(self, verdict: CandidateVerdict) -> bool:
        """Return whether the set is stratified and the verdict's stratum has no candidate left to prefer."""
        return bool(self.strata.names) and self.left[self.stratum.get(verdict.key, "")] <= 0

    def _leave_out(self, place: int, reason: Reason) -> None:
        self.verdicts[place] = replace(self.verdicts[place], reason=reason, kept=None)


def _located(verdict: CandidateVerdict) -> tuple[int, int]:
    """Return how many corruptions are hard to locate, and how many aren't or have an unknown rank."""
    assert verdict.kept is not None
    ranks = [part["evidence"]["rank"] for part in verdict.kept.provenance.get("parts", ())]
    hidden = sum(rank is not None and rank > LOCATED for rank in ranks)
    return hidden, len(ranks) - hidden


def _subtlety(verdict: CandidateVerdict) -> float:
    """Return the mean subtlety of a verdict's corruptions; 1 if it is unknown."""
    assert verdict.kept is not None
    parts = verdict.kept.provenance.get("parts", ())
    values = [part["subtlety"]["value"] for part in parts if "subtlety" in part]
    return mean(values) if values else 1.0


_UNREAD = 0.5
"""The rate assumed for a corruption without readings, so that it ranks after mostly missed corruptions."""


def _preference(verdict: CandidateVerdict) -> tuple[float, float, int, float, float]:
    """Return the sort key of a waiting verdict: least noticed first, then most subtle.

    A rate measured with a blind reader takes precedence over an expected one (decision 140). The rate of
    faults identified from the text has priority, because what one reader remembers says little about other
    solvers (decision 194).
    """
    assert verdict.kept is not None
    read = reader_record(verdict)
    named = from_text = _UNREAD
    if read and read["read"]:
        named = read["named"] / read["read"]
        from_text = read.get("from_text", read["named"]) / read["read"]
    signs = sum(len(part.get("signs", ())) for part in verdict.kept.provenance.get("parts", ()))
    return from_text, named, signs, glance_of(verdict) or 0.0, -_subtlety(verdict)


_AHEAD = 2
"""The number of candidates submitted per worker before the first one is decided."""


@dataclass(frozen=True, slots=True)
class Workers:
    """The workers of a campaign, with their number."""

    executor: Executor
    size: int


class CampaignTasks(Protocol):
    """The tasks of a campaign, which may change until the set is full."""

    def become(self, kept: Sequence[CandidateVerdict]) -> None:
        """Write and withdraw tasks, including those of earlier runs, until the tasks match `kept`."""
        ...

    def settle(self) -> None:
        """Make the current tasks final."""
        ...


OnProgress = Callable[["CandidateVerdicts", Collection[str]], None]
"""Receives the verdicts so far, and the keys of the candidates that workers are trying."""


def run_campaign(
    context: Context,
    candidates: tuple[CorruptionCandidate, ...],
    count: int,
    workers: Workers,
    state: StateFile,
    tasks: CampaignTasks,
    *,
    strata: Strata | None = None,
    on_progress: OnProgress = lambda verdicts, keys: None,
) -> Counts:
    """Decide candidates in order until the set or its pool is full, and return the counts of the verdicts.

    `tasks` is updated after each change. Candidates of a stratum whose share is full are skipped, and tried
    later if the share grows. `on_progress` is called several times a second. Raises `CancelledError`, and any
    error that a worker raises; earlier verdicts and the present tasks are kept.
    """
    stratum = {candidate.key: candidate.stratum for candidate in candidates}
    selection = CandidateVerdicts(
        count,
        context.settings.pool,
        strata=strata or Strata(),
        stratum=stratum,
        left=Counter(stratum.values()),
    )
    read = partial(with_readings, context.settings, state)
    turns = _Turns(list(candidates), state, selection, read)

    def on_poll(keys: Collection[str], came: bool) -> None:
        if came:
            tasks.become(selection.as_if_last(turns.known()))
        on_progress(selection, keys)

    context.board.open()
    try:
        for verdict in _in_order(context, turns, workers, state, on_poll):
            selection.take(read(verdict))
            if selection.is_decided:
                break
        if context.settings.reader:
            read_pool(context, selection.pooled, workers.executor, _AHEAD * workers.size, state)
            selection.read_again(read)
    finally:
        context.board.close()
    selection.fill()
    tasks.become(selection.accepted)
    tasks.settle()
    on_progress(selection, ())
    return Counts(selection.verdicts)


@dataclass(frozen=True, slots=True)
class _Turns:
    """The candidates that have not had their turn, in order."""

    left: list[CorruptionCandidate]
    state: StateFile
    selection: CandidateVerdicts
    read: Callable[[CandidateVerdict], CandidateVerdict]

    def pop(self) -> CorruptionCandidate | None:
        """Return the next wanted candidate and remove it; None if there is none."""
        found = next(self._wanted(), None)
        if found is not None:
            self.left.remove(found)
        return found

    def ahead(self, busy: Collection[str]) -> CorruptionCandidate | None:
        """Return the next wanted candidate that has no verdict and is not `busy`; None if there is none."""
        return next(
            (c for c in self._wanted() if c.key not in self.state.verdicts and c.key not in busy), None
        )

    def known(self) -> Iterator[CandidateVerdict]:
        """Yield the verdicts that came before their turn, in the order of the candidates."""
        return (
            self.read(self.state.verdicts[candidate.key])
            for candidate in self.left
            if candidate.key in self.state.verdicts
        )

    def _wanted(self) -> Iterator[CorruptionCandidate]:
        open_to = {
            name: self.selection.wants(name) for name in {candidate.stratum for candidate in self.left}
        }
        return (candidate for candidate in self.left if open_to[candidate.stratum])


def _in_order(
    context: Context,
    turns: _Turns,
    workers: Workers,
    state: StateFile,
    on_poll: Callable[[Collection[str], bool], None],
) -> Iterator[CandidateVerdict]:
    """Yield the verdicts in the order of the candidates, some of which were decided ahead of time.

    The tasks are therefore the same with one worker and with many (decision 32).

    If a model or its endpoint fails, no more work is started. The other workers' work was paid for, so their
    results are awaited before the error is raised.
    """
    pending = Pending(context.run)
    came = bool(state.verdicts)
    failed: EndpointError | None = None
    try:
        while (candidate := turns.pop()) is not None:
            while candidate.key not in state.verdicts:
                if failed is not None and not pending.keys:
                    raise failed
                following = (
                    candidate if candidate.key not in pending.keys.values() else turns.ahead(pending.busy)
                )
                while failed is None and following is not None and len(pending.keys) < _AHEAD * workers.size:
                    pending.keys[workers.executor.submit(decide, context, following)] = following.key
                    following = turns.ahead(pending.busy)
                on_poll(pending.keys.values(), came)
                came = False
                try:
                    for _, verdict in pending.done():
                        state.add(verdict)
                        came = True
                except EndpointError as error:
                    failed = failed or error
                    pending.drop()
            yield state.verdicts[candidate.key]
    finally:
        pending.drop()


def run_controls(
    context: Context,
    verdicts: tuple[CandidateVerdict, ...],
    count: int,
    workers: Workers,
    state: StateFile,
    *,
    on_comparison: Callable[[int, int], None] = lambda done, total: None,
) -> list[Mapping[str, Any]]:
    """Run the whole suite on up to `count` specimens; return the comparisons in a stable order.

    `on_comparison` is called with the number of comparisons made so far and their total number.
    """
    chosen, pending = sample(verdicts, count, context.settings.seed), Pending(context.run)
    for verdict in chosen:
        if verdict.key not in state.controls and verdict.specimen is not None:
            pending.keys[workers.executor.submit(control, context, verdict.specimen)] = verdict.key
    try:
        while pending.keys:
            for key, comparison in pending.done():
                state.add_control(key, comparison)
                on_comparison(len(chosen) - len(pending.keys), len(chosen))
    finally:
        pending.drop()
    return [state.controls[verdict.key] for verdict in chosen]


def sample(verdicts: Iterable[CandidateVerdict], count: int, seed: int) -> list[CandidateVerdict]:
    """Return up to `count` verdicts with a specimen, whether kept or dropped, chosen by the seed."""
    fit = sorted(
        (verdict for verdict in verdicts if verdict.specimen is not None), key=lambda verdict: verdict.key
    )
    random.Random(f"control {seed}").shuffle(fit)
    return fit[:count]


def control(context: Context, specimen: Specimen) -> dict[str, Any]:
    """Run the whole suite on a specimen; return a JSON object that compares its outcome with the probe's.

    If the probe stopped at the needed number of failing tests, the two agree if those tests fail here too,
    unless a hang prevents the suite from reaching them. Otherwise, they agree if the same tests fail, and
    either both runs hang or neither does. Raises `InfrastructureError` if the suite can't be run, and
    `CancelledError` when stopped.
    """
    with opened(context) as here:
        return _compared(here, specimen)


def _compared(context: Context, specimen: Specimen) -> dict[str, Any]:
    intake = context.library.intake
    request = request_of(intake, corrupted_tree(intake.repository.tree, specimen.targets))
    report = context.runner.run(request, run=context.run.quiet)
    context.run.check()
    if report.status in FREE:
        raise InfrastructureError(f"The suite could not be run for the control. {report.reason}", hint=LOOK)
    finished = report.status is RunStatus.FINISHED
    failing = intake.passed - report.passed if finished else frozenset()
    probed = frozenset(specimen.failed)
    if specimen.cut_short and not finished:
        agrees = not any(
            report.results[id].outcome is Outcome.PASSED for id in probed & report.results.keys()
        )
    elif specimen.status != RunStatus.FINISHED or not finished:
        agrees = specimen.status == report.status
    elif specimen.cut_short:
        agrees = probed <= failing
    else:
        agrees = probed == failing
    return {
        "agrees": agrees,
        "status": report.status.value,
        "probe": specimen.status,
        "only_probe": sorted(probed - failing) if finished else [],
        "only_suite": sorted(failing - probed) if finished and not specimen.cut_short else [],
        "targets": [target.name for target in specimen.targets],
        "seconds": round(report.seconds, 3),
    }


def agreement(comparisons: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the share of comparisons that agree; None if there are none."""
    if not comparisons:
        return None
    return sum(bool(comparison["agrees"]) for comparison in comparisons) / len(comparisons)
