"""Tests a repair against the original with recorded and varied calls (decision 80).

A call counts only if the original answers it the same way twice. A varied input counts only if the original
returns a value for it: inputs that the original refuses are outside of its contract, unless a `raise` of the
tree refuses them and the repair answers (decision 202). Exceptions are compared by class; values are compared
together with the state of the arguments after the call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic
from typing import Any

from gistpoint.core.code.index import index_source
from gistpoint.core.confirmation.differences import test_paths
from gistpoint.core.errors import InfrastructureError
from gistpoint.core.pins import EnvironmentPins
from gistpoint.core.running import UNATTENDED, RunContext, RunProgress
from gistpoint.core.tasks.equivalence import DifferingCall, Equivalence, EquivalenceReport
from gistpoint.core.trees import SourceTree
from gistpoint.sandbox.backends.base import Backend
from gistpoint.sandbox.equivalence import tags
from gistpoint.sandbox.equivalence.boundaries import boundary_inputs
from gistpoint.sandbox.equivalence.calling import (
    CALL_LIMIT_S,
    CallRunner,
    FunctionSpan,
    RecordedCalls,
    Replayed,
    ReplayOutcome,
)
from gistpoint.sandbox.equivalence.encoded import (
    Encoded,
    as_example,
    as_input,
    contents_in,
    has_attributes,
    part_at,
    written,
)
from gistpoint.sandbox.equivalence.hints import Hints, hints_of, lines_in
from gistpoint.sandbox.equivalence.simplifying import simpler, size
from gistpoint.sandbox.equivalence.varying import ReachedInput, changed_lines, varied, worth_varying
from gistpoint.sandbox.limits import RunLimits
from gistpoint.sandbox.testruns import EnvironmentSource

VARIED = 600
"""The maximum number of varied inputs for each function."""
_OF_CALLER = 100
"""The maximum number of recorded calls to a caller that are repeated."""
_OF_REPAIR = 150
"""The maximum number of further inputs that only the repair's source suggests."""
_SLOWER = 4
"""The multiple of its usual time limit that a suite may take while its calls are recorded."""
_ROUNDS = 2
"""The number of times that inputs are varied again, as long as no difference is found."""
_SEEDS = 12
"""The maximum number of inputs that one such round varies."""
_LATE = 5
"""The number of late calls that are repeated first."""
_QUICK_S = 0.1
"""The minimum time limit of a varied call to the original."""
_USUAL = 10
"""The multiple of the slowest recorded call's time that a varied call to the original may take."""
_BUDGET_S = 5.0
"""The seconds after which no further varied input is tried on the original."""
_LEAST_S = 60.0
"""The minimum time limit of a run, so that a repair not much slower than the original always finishes."""
_LONGEST_S = 15.0
"""The seconds that the original's runs may take before inputs are no longer varied again."""
_SIMPLER_S = 30.0
"""The seconds of a comparison after which no further step simplifies its example."""
_COUNTS = ("recorded", "varied", "recorded_differing", "varied_differing", "passed_over")
"""The numbers of a report, which are added up for several functions."""
_STEPS = 12
_BATCH = 120
_SHOWN = 300
_BEFORE = 40


@dataclass(frozen=True, slots=True)
class _Pair:
    """One call, with the answers of both versions."""

    values: Sequence[Encoded] | None
    """The encoded arguments; None if they can't be described."""
    number: int
    original: ReplayOutcome
    repair: ReplayOutcome
    recorded: bool
    lines: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset())
    """The lines of the target's file that the call reached in the original and in the repair."""

    @property
    def arguments(self) -> Sequence[Encoded]:
        return self.values or ()

    @property
    def differs(self) -> bool:
        if not self.recorded and self.original.kind == self.repair.kind == "raised":
            # One of them lets an exception through; arguments that are half changed are no answer.
            return self.original.alone != self.repair.alone
        return not _same(self.original, self.repair) or self.shares_an_argument

    @property
    def shares_an_argument(self) -> bool:
        """Whether only the repair returns an argument itself, which its caller may change (decision 182)."""
        return self.repair.is_given and not self.original.is_given


class SandboxEquivalenceTester:
    """Compares functions on one backend; implements `gistpoint.core.tasks.equivalence.EquivalenceTester`."""

    def __init__(
        self, backend: Backend, environments: EnvironmentSource, limits: RunLimits | None = None
    ) -> None:
        self._runner = CallRunner(backend, environments, limits)

    def compare(
        self,
        original: SourceTree,
        repaired: SourceTree,
        environment: EnvironmentPins,
        functions: Collection[str],
        tests: Collection[str],
        *,
        first: Collection[str] = (),
        test_files: Collection[str] = (),
        timeout_s: float,
        run: RunContext = UNATTENDED,
    ) -> EquivalenceReport:
        """Return a report on functions named `path::qualname`; see `EquivalenceTester.compare`."""
        run.progress(RunProgress("recording"))
        spans = [_span(original, name) for name in functions]
        recorded = self._runner.record(
            original,
            environment,
            spans,
            tests,
            first=first,
            test_files=test_paths(original, test_files, data=False),
            timeout_s=_SLOWER * timeout_s,
            run=run,
        )
        reports = []
        for done, (span, calls) in enumerate(zip(spans, recorded, strict=True)):
            run.progress(RunProgress("comparing", done, len(spans)))

            def comparison(
                called: FunctionSpan, calls: RecordedCalls, target: FunctionSpan = span
            ) -> _FunctionComparison:
                replay = partial(
                    self._runner.replay,
                    pins=environment,
                    function=called,
                    calls=calls,
                    test_files=test_files,
                    timeout_s=max(timeout_s, _LEAST_S),
                    run=run,
                )
                return _FunctionComparison(original, repaired, called, calls, replay, target)

            own = comparison(span, calls)
            reports.append(own.report())
            callers = _callers(original, calls) if own.wants_caller(reports[-1]) else ()
            for caller in callers:
                found = comparison(*caller).report()
                if found.verdict is not Equivalence.NOT_COMPARABLE:
                    reports.append(found)
                    break
        return _joined(reports)


def _span(tree: SourceTree, name: str) -> FunctionSpan:
    path, _, qualname = name.partition("::")
    for definition in index_source(path, tree.read(path)).definitions:
        if str(definition.ref) == name:
            return FunctionSpan(path, qualname, definition.start_line, definition.end_line)
    raise InfrastructureError(f"The original has no function {name}.")


def _callers(tree: SourceTree, calls: RecordedCalls) -> Iterator[tuple[FunctionSpan, RecordedCalls]]:
    """Yield the functions through which tests reach another, with some of their calls.

    Those with the most different calls come first. A function that is not found in the source is left out.
    """
    for place in sorted(calls.callers, key=lambda place: -len(calls.callers[place].arguments)):
        path, line = place
        for definition in index_source(path, tree.read(path)).definitions:
            if definition.start_line == line:
                span = FunctionSpan(path, definition.ref.qualname, line, definition.end_line)
                yield span, calls.callers[place].some(_OF_CALLER)


def _joined(reports: Sequence[EquivalenceReport]) -> EquivalenceReport:
    """Return one report for all functions: a function that differs decides, otherwise a comparable one."""
    differing = [r for r in reports if r.verdict is Equivalence.DIFFERS]
    same = [r for r in reports if r.verdict is Equivalence.EQUIVALENT]
    chosen = (differing or same or reports)[0]
    counts: dict[str, Any] = {name: sum(getattr(r, name) for r in reports) for name in _COUNTS}
    reasons = dict.fromkeys(filter(None, (r.reason for r in reports)))
    return replace(chosen, **counts, reason=" ".join(reasons))


@dataclass(slots=True)
class _FunctionComparison:
    """The comparison of one function in two trees."""

    original: SourceTree
    repaired: SourceTree
    span: FunctionSpan
    calls: RecordedCalls
    replay: Callable[..., Replayed]
    target: FunctionSpan
    """The function whose versions differ: the called function, or one that it calls."""
    described: dict[int, list[Encoded]] = field(default_factory=dict)
    passed_over: int = 0
    quick_s: float = CALL_LIMIT_S
    """The time limit of a varied call to the original."""
    tried: set[str] = field(default_factory=set)
    """The varied inputs that the original was called with, also those that it did not answer."""
    began: float = field(default_factory=monotonic)
    original_s: float = 0.0
    """The seconds that the original's runs took; a repair can't spend them by being slow."""

    def report(self) -> EquivalenceReport:
        calls = self.calls
        if not calls.arguments:
            return self._not_recorded()
        numbers = list(range(len(calls.arguments)))
        # This run also repeats the recorded calls for the first time, which saves a fourth run.
        first = self._replayed(self.original, numbers, describe=True, budget_s=self._budget_of_recorded_s)
        if first.problem and not first.outcomes:
            return self._not_comparable(
                f"{self.span.qualname} can't be called on its own: {first.problem}", 0
            )
        self.described = first.described
        if first.finished:
            self.quick_s = min(max(_QUICK_S, _USUAL * first.slowest_s), CALL_LIMIT_S)
        reached = max(first.outcomes, default=-1) + 1
        self.passed_over = calls.passed_over + len(numbers) - reached
        recorded = self._pairs(numbers[:reached], True, first)
        examples = [first.described[n] for n in numbers if n in first.described]
        more = self._varied_pairs(recorded, examples) if self._can_be_varied(recorded) else []
        pairs = [*recorded, *more]
        if not pairs:
            return self._not_comparable(
                f"No call of {self.span.qualname} could be repeated with an answer that can be compared.",
                self.passed_over,
            )
        differing = [pair for pair in pairs if pair.differs]
        return EquivalenceReport(
            Equivalence.DIFFERS if differing else Equivalence.EQUIVALENT,
            recorded=len(recorded),
            varied=len(more),
            recorded_differing=sum(pair.differs for pair in recorded),
            varied_differing=sum(pair.differs for pair in more),
            passed_over=self.passed_over,
            example=self._example(differing) if differing else None,
        )

    def _not_recorded(self) -> EquivalenceReport:
        passed_over = self.calls.passed_over
        why = f"No call of {self.span.qualname} could be recorded: {self.calls.why}"
        return self._not_comparable(
            why if passed_over else f"No test calls {self.span.qualname}.", passed_over
        )

    def _can_be_varied(self, recorded: Sequence[_Pair]) -> bool:
        # If no recorded call to a caller can be compared, such as one that returns a live object, its varied
        # calls hardly can, and another caller is tried.
        return bool(recorded) or self.span == self.target

    @property
    def _budget_of_recorded_s(self) -> float | None:
        # A caller may do far more than the function, such as all that a command does.
        return None if self.span == self.target else _BUDGET_S

    def wants_caller(self, report: EquivalenceReport) -> bool:
        """Whether a caller may show a difference that the function's own inputs can't (decision 213).

        Attributes of an object fit together in ways that only the code that makes it knows: an object with
        one of them replaced is often refused, or does not get far.
        """
        if report.verdict is not Equivalence.EQUIVALENT:
            return report.verdict is Equivalence.NOT_COMPARABLE
        return any(has_attributes(value) for values in self.described.values() for value in values)

    def _varied_pairs(self, recorded: Sequence[_Pair], examples: Sequence[Sequence[Encoded]]) -> list[_Pair]:
        """Return the calls that count with varied inputs, which are varied again while no call differs."""
        own = self._hints((self.original,), examples)
        # The repair's literals count too, because repairs often err by testing for a particular value.
        both = self._hints((self.original, self.repaired), examples)
        inputs = varied(examples, VARIED, own)
        found = self._pairs(inputs, False)
        if both != own:
            found += self._pairs(self._suggested_by_repair(examples, both, inputs), False)
        for _ in range(_ROUNDS):
            pairs = [*recorded, *found]
            is_late = self.original_s > _LONGEST_S
            if is_late or not pairs or any(pair.differs for pair in pairs):
                break
            found += self._pairs(self._varied_again(pairs, both), False)
        return found

    def _hints(self, trees: Sequence[SourceTree], examples: Sequence[Sequence[Encoded]]) -> Hints:
        """Return what the sources suggest, and the lines of the recorded texts."""
        found = hints_of(trees, self.target.path, self.target.qualname)
        if self.span != self.target:
            found = found.joined(hints_of(trees[:1], self.span.path, self.span.qualname))
        return replace(found, lines=lines_in(examples))

    def _suggested_by_repair(
        self, examples: Sequence[Sequence[Encoded]], hints: Hints, inputs: Sequence[Sequence[Encoded]]
    ) -> list[list[Encoded]]:
        """Return inputs at the boundaries of both sources that are not among `inputs`.

        They are tried in addition, and in another run: otherwise a repair full of literals would leave no
        room for what the original suggests, or spend the budget of time (decision 195).
        """
        known = set(map(repr, inputs))
        found = boundary_inputs(examples, hints, VARIED)
        return [made for made in found if repr(made) not in known][:_OF_REPAIR]

    def _varied_again(self, pairs: Sequence[_Pair], hints: Hints) -> list[list[Encoded]]:
        """Return inputs like those that reach the changed lines, or that take a path that few others take."""
        path = self.target.path
        changed = changed_lines(self.original.read(path), self.repaired.read(path))
        reached = [ReachedInput(pair.values, *pair.lines) for pair in pairs if pair.values]
        seeds = worth_varying(reached, changed, _SEEDS)
        examples = [[as_example(value, self._described_at) for value in seed] for seed in seeds]
        known = self.tried | {repr(list(map(as_input, pair.arguments))) for pair in pairs}
        return [made for made in varied(examples, VARIED, hints) if repr(made) not in known]

    def _described_at(self, call: int, way: Sequence[int | str]) -> Encoded | None:
        """Return the description of the object at a place in a recorded call's arguments, or None."""
        found: Encoded | None = [tags.LIST, self.described.get(call, [])]
        for step in way:
            if found is None:
                break
            found = part_at(found, step)
        return found

    def _not_comparable(self, reason: str, passed_over: int) -> EquivalenceReport:
        return EquivalenceReport(Equivalence.NOT_COMPARABLE, passed_over=passed_over, reason=reason)

    def _pairs(
        self, inputs: Sequence[int | Sequence[Encoded]], recorded: bool, first: Replayed | None = None
    ) -> list[_Pair]:
        """Return the calls that count, which the original answers in the same way twice.

        The other calls are added to `passed_over`. A varied input counts only if the original returns a value
        for it, or if a `raise` of the tree refuses it and the repair answers; an exception counts only if all
        arguments could be pickled.
        """
        if not inputs:
            return []
        once = first
        if once is None:
            budget_s = max(_BUDGET_S, 20 * self.quick_s)
            tried = self._replayed(self.original, inputs, limit_s=self.quick_s, budget_s=budget_s)
            inputs, once = self._answered(inputs, tried)
            if not inputs:
                return []
        # Run between the two runs of the original, so that answers that change over time differ there too.
        repair = self._with_lines(self.repaired, inputs)
        again = self._with_lines(self.original, inputs)
        pairs = []
        for n, given in enumerate(inputs):
            known = _steady(once.outcomes.get(n), again.outcomes.get(n))
            if known is None:
                self.passed_over += 1
                continue
            found = repair.outcomes.get(n) or ReplayOutcome("lost", repair.problem or "the run ended")
            if not self._is_compared(given, recorded, known, found):
                continue
            values = self.described.get(given) if isinstance(given, int) else given
            lines = again.reached.get(n, frozenset()), repair.reached.get(n, frozenset())
            pairs.append(_Pair(values, n, known, found, recorded, lines))
        return pairs if recorded else self._without_effects_of_order(pairs, inputs)

    def _is_compared(
        self,
        given: int | Sequence[Encoded],
        recorded: bool,
        known: ReplayOutcome,
        found: ReplayOutcome,
    ) -> bool:
        """Whether the answers to an input are compared, `known` of the original and `found` of the repair."""
        both_return = known.kind == found.kind == "value"
        if both_return:
            return True
        both_raise = known.kind != "value" and found.kind != "value"
        if both_raise and not recorded:
            # Both refuse the input, which proves nothing, unless they call a function in it that raises, and
            # one of them lets its exception through.
            both_call = known.calls_planted and found.calls_planted
            one_lets_through = _lets_through(given, known) or _lets_through(given, found)
            if not (both_call and one_lets_through):
                return False
        # The exception may come from an object that could not be pickled, which a correct repair may need as
        # well.
        return not self._is_incomplete(given)

    def _replayed(self, tree: SourceTree, inputs: Sequence[int | Sequence[Encoded]], **how: Any) -> Replayed:
        """Return the answers of one version, and count the time that the original takes."""
        began = monotonic()
        found = self.replay(tree, inputs=inputs, **how)
        if tree is self.original:
            self.original_s += monotonic() - began
        return found

    def _without_effects_of_order(
        self, pairs: Sequence[_Pair], inputs: Sequence[int | Sequence[Encoded]]
    ) -> list[_Pair]:
        """Return the pairs without the differences that the original also shows if its calls are reordered.

        Such an answer depends on earlier calls, or on where objects lie in memory: two runs with the same
        calls can agree on it by chance.
        """
        differing = [pair for pair in reversed(pairs) if pair.differs]
        if not differing:
            return list(pairs)
        given = [inputs[pair.number] for pair in differing]
        found = self._replayed(self.original, given).outcomes
        unsteady = {
            pair.number
            for at, pair in enumerate(differing)
            if at in found and not _same(found[at], pair.original)
        }
        self.passed_over += len(unsteady)
        return [pair for pair in pairs if pair.number not in unsteady]

    def _answered(
        self, inputs: Sequence[int | Sequence[Encoded]], tried: Replayed
    ) -> tuple[list[int | Sequence[Encoded]], Replayed]:
        """Return the varied inputs that the original answered in time, with its answers.

        An input for which it raises an exception is outside of its contract and left out without being
        counted, unless a `raise` of the tree refuses it. Repeating only the others keeps a comparison short
        (decision 195).
        """
        self.tried.update(repr(given) for n, given in enumerate(inputs) if n in tried.outcomes)
        kept, answers = list[int | Sequence[Encoded]](), dict[int, ReplayOutcome]()
        for n, given in enumerate(inputs):
            outcome = tried.outcomes.get(n)
            if outcome is None or outcome.kind not in ("value", "raised"):
                self.passed_over += 1
            elif outcome.kind == "value" or outcome.is_refusal or _lets_through(given, outcome):
                answers[len(kept)] = outcome
                kept.append(given)
        return kept, Replayed(outcomes=answers)

    def _with_lines(self, tree: SourceTree, inputs: Sequence[int | Sequence[Encoded]]) -> Replayed:
        """Return the answers of one version, and the lines that each call reached.

        Recording lines can make calls twenty times as long, so calls that are late, or not reached before
        the time limit of the run, are repeated without it. A few of the late calls are repeated first, and
        the others only if one of these is now answered.
        """
        found = self._replayed(tree, inputs, lines=self.target.path)
        if found.timed_out:
            self._repeat(tree, inputs, [n for n in range(len(inputs)) if n not in found.outcomes], found)
        late = [n for n, outcome in found.outcomes.items() if outcome.kind == "late"]
        self._repeat(tree, inputs, late[:_LATE], found)
        if any(found.outcomes[n].kind != "late" for n in late[:_LATE]):
            self._repeat(tree, inputs, late[_LATE:], found)
        return found

    def _repeat(
        self,
        tree: SourceTree,
        inputs: Sequence[int | Sequence[Encoded]],
        some: Sequence[int],
        found: Replayed,
    ) -> None:
        """Replace the outcomes of some inputs, by their numbers, with those of a run without lines."""
        if some:
            again = self._replayed(tree, [inputs[n] for n in some]).outcomes
            found.outcomes |= {n: again[at] for at, n in enumerate(some) if at in again}

    def _is_incomplete(self, given: int | Sequence[Encoded]) -> bool:
        """Whether something in an input's arguments could not be pickled when it was recorded."""
        calls = [given] if isinstance(given, int) else contents_in(given, tags.OBJECT)
        return not self.calls.incomplete.isdisjoint(calls)

    def _smallest(self, differing: Sequence[_Pair]) -> _Pair:
        """Return the smallest difference, made simpler in up to `_STEPS` steps while it remains one.

        If no difference has known arguments, return the first one.
        """
        known = [pair for pair in differing if pair.values is not None]
        if not known:
            return differing[0]
        best = min(known, key=lambda pair: size(pair.arguments))
        for _ in range(_STEPS):
            if monotonic() - self.began > _SIMPLER_S:
                break
            steps = simpler(best.arguments, _BATCH)
            found = [pair for pair in self._pairs(steps, False) if pair.differs]
            if not found:
                break
            best = min(found, key=lambda pair: size(pair.arguments))
        return best

    def _example(self, differing: Sequence[_Pair]) -> DifferingCall:
        pair = self._smallest(differing)
        original, repair = pair.original.shown, pair.repair.shown
        if original == repair and pair.shares_an_argument:
            original, repair = f"{original}, a new object", f"{repair}, the argument itself"
        elif pair.original.alone and pair.original.alone == pair.repair.alone:
            original = f"{original}, and leaves {pair.original.after}"
            repair = f"{repair}, and leaves {pair.repair.after}"
        inside = "..." if pair.values is None else ", ".join(map(written, pair.values))
        return DifferingCall(
            f"{self.span.path}::{self.span.qualname}",
            f"{self.span.qualname}({_cut(inside, 0)})",
            *_from_difference(original, repair),
            made_simpler=pair not in differing,
        )


def _class_in(outcome: ReplayOutcome) -> str:
    return outcome.shown.partition(":")[0]


def _lets_through(given: int | Sequence[Encoded], outcome: ReplayOutcome) -> bool:
    """Whether an exception is the one that a called function in the input raises (decision 201)."""
    planted = () if isinstance(given, int) else contents_in(given, tags.RAISING)
    return outcome.calls_planted and _class_in(outcome) in planted


def _same(one: ReplayOutcome, other: ReplayOutcome) -> bool:
    """Whether two outcomes are the same answer; the message of an exception does not count."""
    return (one.kind, one.hash) == (other.kind, other.hash)


def _steady(first: ReplayOutcome | None, second: ReplayOutcome | None) -> ReplayOutcome | None:
    """Return the answer of the original if both runs agree on it and it can be compared, otherwise None."""
    if first is None or second is None:
        return None
    is_steady = _same(first, second) and first.is_given == second.is_given
    return first if is_steady and first.kind in ("value", "raised") else None


def _from_difference(one: str, other: str) -> tuple[str, str]:
    """Return two strings, each cut to 300 characters around the first position at which they differ."""
    same = next(
        (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    start = max(0, same - _BEFORE) if same > 2 * _BEFORE else 0
    return _cut(one, start), _cut(other, start)


def _cut(text: str, start: int) -> str:
    end = start + _SHOWN
    return ("..." if start else "") + text[start:end] + ("..." if end < len(text) else "")
