"""Assigns tasks, conditions and order to a person: a pure function of the declaration and the log.

The method is minimisation after Pocock & Simon (1975, Biometrics 31), with ties broken by hashes. It uses no
random generator and no floating point, so that each plan can be derived again from the log that its planner
had read, and nobody can repeat the draw until they like the result (decision 82). Assignments that are
returned, or left by a person who withdraws, are free for the next person.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from gistpoint.core.study.declaration import ConditionsPer, Study, StudyTask
from gistpoint.core.study.ledger import Assignment, Ledger, Person
from gistpoint.core.study.operations import Planned
from gistpoint.core.study.soundness import keys_of, task_named, training_tasks

TRAINING = "training"
"""The condition's name in the ids of training assignments."""
ID_CHARACTERS = 12
_SEPARATOR = "\x1f"
_HOUR_MS = 3_600_000
_ORDERS = 200
"""The number of task orders compared for a plan."""
_ALL_ORDERS_UP_TO = 8
"""The number of tasks up to which all distributions of conditions are compared; beyond it, only `_ORDERS`."""


def key(*parts: object) -> int:
    """Return the first 8 bytes of the sha256 of the parts, joined by U+001F, as an integer."""
    text = _SEPARATOR.join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")


def assignment_id(study: str, code: str, task: str, condition: str, position: int) -> str:
    """Return the id of an assignment: the first 12 hex digits of a sha256 over the arguments."""
    text = _SEPARATOR.join((study, code, task, condition, str(position)))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:ID_CHARACTERS]


def live_assignments(ledger: Ledger) -> Iterator[Assignment]:
    """Yield the assignments that count in the balance.

    Assignments that were returned, those of people whose data are erased, and those not begun before their
    person withdrew are left out.
    """
    for person in ledger.people.values():
        for assignment in person.assignments:
            if assignment.id not in person.returned and not _is_left(person, assignment):
                yield assignment


def _is_left(person: Person, assignment: Assignment) -> bool:
    """Return whether an assignment is void: its person withdrew before beginning it, or erased all data."""
    if person.withdrawn is None:
        return False
    return person.withdrawn.data == "erase" or assignment.id not in person.begun


def late_assignments(study: Study, ledger: Ledger, now_ms: int) -> tuple[Assignment, ...]:
    """Return the open assignments of people without a record for longer than the design allows.

    Empty if the design sets no such time (`return_after_hours`).
    """
    before_ms = now_ms - study.design.return_after_hours * _HOUR_MS
    return tuple(
        given
        for person in ledger.people.values()
        if study.design.return_after_hours and person.withdrawn is None and person.last_own_ms < before_ms
        for given in person.waiting
    )


def exposed_tasks(person: Person, tasks: Mapping[str, StudyTask]) -> frozenset[str]:
    """Return the ids of the study's tasks that a person has begun here, or was exposed to elsewhere."""
    sources = {fact.source for fact in person.exposures} - {""}
    seen = {task_named(fact.task, tasks) for fact in person.exposures if fact.task}
    seen |= {assignment.task for assignment in person.assignments if assignment.id in person.begun}
    found = {identity for identity, task in tasks.items() if task.source in sources}
    return frozenset(found | (tasks.keys() & seen))


def plan_tasks(
    study: Study, tasks: Mapping[str, StudyTask], ledger: Ledger, code: str
) -> tuple[Assignment, ...]:
    """Return a person's assignments, ordered by position.

    There are fewer than the design demands if too few tasks are eligible.
    """
    return _Planning(study, tasks, ledger, ledger.person(code)).plan()


def planned_data(
    assignments: Iterable[Assignment], *, basis: Mapping[str, int], protocol: str, slot: int = 1
) -> Planned:
    """Return the data of the operation `planned`.

    `basis` is the number of lines in each log file that the planner had read.
    """
    return Planned(
        slot=slot,
        basis=dict(basis),
        assignments=tuple((one.id, one.task, one.condition, one.position) for one in assignments),
        protocol=protocol,
    )


@dataclass(frozen=True)
class _Planning:
    study: Study
    tasks: Mapping[str, StudyTask]
    ledger: Ledger
    person: Person

    def plan(self) -> tuple[Assignment, ...]:
        chosen = self._chosen()
        given = self._with_conditions(chosen)
        order = self._in_order(given)
        name = self.study.id
        code = self.person.code
        return tuple(
            Assignment(
                assignment_id(name, code, task, given[task], position), code, task, given[task], position
            )
            for position, task in enumerate(order, start=1)
        )

    def _key(self, *parts: object) -> int:
        return key(self.study.seed, self.person.code, *parts)

    @cached_property
    def _live(self) -> tuple[Assignment, ...]:
        return tuple(live_assignments(self.ledger))

    @cached_property
    def _in_stratum(self) -> tuple[Assignment, ...]:
        stratum = self.person.stratum
        return tuple(
            assignment
            for assignment in self._live
            if self.ledger.person(assignment.person).stratum == stratum
        )

    # Which tasks

    def _chosen(self) -> list[str]:
        """Return the tasks, chosen one by one: each time the eligible one with the fewest live attempts.

        Ties are broken by live attempts in the stratum, then in favour of the library that has the most tasks
        with the fewest attempts, because `per_source` limits how many of its tasks can be assigned at once. A
        task that would make the quotas impossible is passed over if there is an alternative.
        """
        attempts = Counter(assignment.task for assignment in self._live)
        in_stratum = Counter(assignment.task for assignment in self._in_stratum)
        fewest = min((attempts[task] for task in self._free), default=0)
        behind = Counter(self.tasks[task].source for task in self._free if attempts[task] == fewest)

        def rank(task: str) -> tuple[int, int, int, int, str]:
            waiting = behind[self.tasks[task].source]
            return attempts[task], in_stratum[task], -waiting, self._key("task", task), task

        queue = sorted(self._free, key=rank)
        choice = _Choice(self)
        while len(choice.tasks) < self.study.design.tasks_per_person:
            fitting = [task for task in queue if choice.admits(task)]
            if not fitting:
                break
            choice.add(next((task for task in fitting if choice.leaves_enough(task, fitting)), fitting[0]))
        return choice.tasks

    @cached_property
    def _free(self) -> list[str]:
        """The tasks eligible for this person, before constraints between the tasks of the plan."""
        taken = {*training_tasks(self.study, self.tasks)} | exposed_tasks(self.person, self.tasks)
        known = set[tuple[str, str]]()
        for name in taken:
            known |= self.targets(str(name))
        free = list[str]()
        for identity, task in self.tasks.items():
            is_known = identity in taken or not known.isdisjoint(self.targets(identity))
            if not is_known and task.source not in self._familiar:
                free.append(identity)
        return free

    @cached_property
    def quota_keys(self) -> dict[str, frozenset[str]]:
        """The names under which quotas count each task, by the task's id."""
        names = self.study.design.quota.keys()
        return {one: keys_of(self.study, task, self.tasks) & names for one, task in self.tasks.items()}

    @cached_property
    def _familiar(self) -> frozenset[str]:
        """The libraries that the person rated at `familiar_from` or above; empty if that is not set."""
        least = self.study.participants.familiar_from
        if not least:
            return frozenset()
        sources = {task.source for task in self.tasks.values()}
        return frozenset(source for source in sources if self._rated(source) >= least)

    def targets(self, task: str) -> frozenset[tuple[str, str]]:
        """Return the functions that a task corrupts, each as (library, function)."""
        found = self.tasks[task]
        return frozenset((found.source, target) for target in found.targets)

    def _rated(self, source: str) -> int:
        """Return the person's highest rating of a library; 0 if there is none."""
        highest = 0
        for form in self.study.questionnaire:
            answers = self.person.answers(form.id)
            if answers is None:
                continue
            for question in form.item:
                rating = answers.values.get(f"{question.id}.{source}") if question.each_source else None
                if isinstance(rating, int):
                    highest = max(highest, rating)
        return highest

    # In which conditions

    def _with_conditions(self, tasks: Sequence[str]) -> dict[str, str]:
        conditions = [condition.id for condition in self.study.conditions_of_people]
        if self.study.design.conditions is ConditionsPer.BETWEEN:
            return dict.fromkeys(tasks, self._own_condition(conditions))
        used: Counter[str] = Counter()
        given: dict[str, str] = {}
        by_mode: dict[str, list[str]] = {}
        for task in tasks:
            by_mode.setdefault(self.tasks[task].mode, []).append(task)
        for mode, of_mode in sorted(by_mode.items()):
            shares = self._shares(mode, len(of_mode), conditions, used)
            given |= dict(zip(of_mode, self._distribution(mode, of_mode, shares), strict=True))
            used.update(shares)
        return given

    def _own_condition(self, conditions: Sequence[str]) -> str:
        people = {(assignment.person, assignment.condition) for assignment in self._in_stratum}
        used = Counter(condition for _, condition in people)
        return min(conditions, key=lambda name: (used[name], self._key("between", name), name))

    def _shares(
        self, mode: str, number: int, conditions: Sequence[str], used: Mapping[str, int]
    ) -> list[str]:
        """Return the conditions of a mode's tasks, in equal numbers; the least used get the surplus."""
        live = Counter((self._mode(assignment.task), assignment.condition) for assignment in self._live)
        in_all = Counter(assignment.condition for assignment in self._live)

        def least_used(name: str) -> tuple[int, int, int, int, str]:
            return used.get(name, 0), live[mode, name], in_all[name], self._key("share", mode, name), name

        each, left_over = divmod(number, len(conditions))
        return sorted([*conditions] * each + sorted(conditions, key=least_used)[:left_over])

    def _mode(self, task: str) -> str:
        if task not in self.tasks:
            return ""
        return self.tasks[task].mode

    def _distribution(self, mode: str, tasks: Sequence[str], shares: Sequence[str]) -> tuple[str, ...]:
        count = Counter((assignment.task, assignment.condition) for assignment in self._live)
        candidates: Iterable[tuple[str, ...]]
        if len(tasks) <= _ALL_ORDERS_UP_TO:
            candidates = distinct_orders(shares)
        else:
            candidates = (self._drawn_order(mode, which, shares) for which in range(_ORDERS))

        def rank(order: tuple[str, ...]) -> tuple[int, int, tuple[str, ...]]:
            cost = sum(2 * count[pair] + 1 for pair in zip(tasks, order, strict=True))
            return cost, self._key("distributed", mode, *order), order

        return min(candidates, key=rank)

    def _drawn_order(self, mode: str, which: int, shares: Sequence[str]) -> tuple[str, ...]:
        numbers = sorted(range(len(shares)), key=lambda n: self._key("distribution", mode, which, n))
        return tuple(shares[n] for n in numbers)

    # In which order

    def _in_order(self, given: Mapping[str, str]) -> list[str]:
        at = Counter((other.task, other.position) for other in self._live)
        in_condition = Counter((other.condition, other.position) for other in self._live)

        def rank(which: int) -> tuple[int, int]:
            cost = sum(
                2 * at[task, position] + 1 + 2 * in_condition[given[task], position] + 1
                for position, task in enumerate(self._order(which, given), start=1)
            )
            return cost, self._key("order", which)

        if given:
            return self._order(min(range(_ORDERS), key=rank), given)
        return []

    def _order(self, which: int, tasks: Iterable[str]) -> list[str]:
        return sorted(tasks, key=lambda task: (self._key("order", which, task), task))


@dataclass
class _Choice:
    """The tasks chosen so far, which decide whether another task fits."""

    planning: _Planning
    tasks: list[str] = field(default_factory=list)
    targets: set[tuple[str, str]] = field(default_factory=set)
    of_source: Counter[str] = field(default_factory=Counter)
    of_key: Counter[str] = field(default_factory=Counter)

    def admits(self, task: str) -> bool:
        """Return whether a task fits.

        It must share no function with the chosen tasks, and its library and its quotas must have room for it.
        """
        design = self.planning.study.design
        source = self.planning.tasks[task].source
        if task in self.tasks or not self.targets.isdisjoint(self.planning.targets(task)):
            return False
        if design.per_source and self.of_source[source] >= design.per_source:
            return False
        counted = self._keys(task)
        if counted:
            return all(self.of_key[name] < design.quota[name] for name in counted)
        # A task outside all quotas can only use a place that the quotas leave free.
        asked = sum(max(0, wanted - self.of_key[name]) for name, wanted in design.quota.items())
        return design.tasks_per_person - len(self.tasks) > asked

    def leaves_enough(self, task: str, others: Sequence[str]) -> bool:
        """Return whether the quotas can still be met after a task, given what each library may still supply.

        Returns True without a check if there is no `per_source`, or if a task counts in several quotas.
        """
        planning = self.planning
        design = self.planning.study.design
        most_keys = max((len(self._keys(other)) for other in others), default=0)
        if not design.per_source or most_keys > 1:
            return True
        wanted = Counter({name: number - self.of_key[name] for name, number in design.quota.items()})
        wanted.subtract(self._keys(task))
        own_source = planning.tasks[task].source
        supply = _Supply()
        for other in others:
            source = planning.tasks[other].source
            supply.room[source] = design.per_source - self.of_source[source] - (source == own_source)
            if other != task:
                supply.tasks.update((name, source) for name in self._keys(other))
        return all(supply.give(name, set()) for name in sorted(wanted.elements()))

    def add(self, task: str) -> None:
        """Add a task to the chosen ones."""
        self.tasks.append(task)
        self.targets |= self.planning.targets(task)
        self.of_source[self.planning.tasks[task].source] += 1
        self.of_key.update(self._keys(task))

    def _keys(self, task: str) -> frozenset[str]:
        return self.planning.quota_keys[task]


@dataclass
class _Supply:
    """The number of tasks that each library has under each quota name, and how many more it may supply."""

    tasks: Counter[tuple[str, str]] = field(default_factory=Counter)
    room: dict[str, int] = field(default_factory=dict)
    given: dict[str, list[str]] = field(default_factory=dict)
    """The quota names of the tasks that each library supplies."""

    def give(self, name: str, tried: set[str]) -> bool:
        """Supply one more task under a name, reassigning what libraries supply (Ford & Fulkerson 1956).

        Returns whether that is possible. `tried` contains the libraries already visited on this augmenting
        path.
        """
        untried = {source for of, source in self.tasks if of == name} - tried
        for source in sorted(untried):
            given = self.given.setdefault(source, [])
            if given.count(name) >= self.tasks[name, source]:
                continue
            tried.add(source)
            if len(given) < self.room[source]:
                given.append(name)
                return True
            for other in sorted(set(given) - {name}):
                if self.give(other, tried):
                    given.remove(other)
                    given.append(name)
                    return True
        return False


def distinct_orders(items: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield every distinct order of a multiset once, in lexicographic order."""
    if not items:
        yield ()
    for first in sorted(set(items)):
        rest = list(items)
        rest.remove(first)
        for order in distinct_orders(rest):
            yield (first, *order)
