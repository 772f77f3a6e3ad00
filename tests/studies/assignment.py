"""Measures how well assignment balances tasks, conditions and positions, over many random designs.

    PYTHONPATH=src:tests uv run python tests/studies/assignment.py [DESIGNS]

Prints the spread of attempts for one design under five regimes, and, for random designs, how often a person
got a task twice, a quota was not met, and the attempts of two tasks of one mode differed by more than one.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random

from study_parts import StudyLog, declared, study_tasks

from gistpoint.core.study.assigning import live_assignments, plan_tasks
from gistpoint.core.study.declaration import Study, StudyTask
from gistpoint.core.study.ledger import Assignment, Ledger

TWO_CONDITIONS = '[[condition]]\nid = "alone"\n[[condition]]\nid = "assisted"'


@dataclass(frozen=True)
class Spread:
    """The minimum and maximum numbers of attempts."""

    task: tuple[int, int]
    task_in_condition: tuple[int, int]
    condition_at_position: tuple[int, int]

    def __str__(self) -> str:
        parts = {
            "per task": self.task,
            "per task x condition": self.task_in_condition,
            "per condition x position": self.condition_at_position,
        }
        return ", ".join(f"{name} {low}-{high}" for name, (low, high) in parts.items())


def spread(
    given: Iterable[Assignment], tasks: Iterable[str], conditions: Iterable[str], positions: int
) -> Spread:
    """Return how evenly assignments are spread over tasks, conditions and positions."""
    known, tasks, conditions = list(given), list(tasks), list(conditions)
    per_task = Counter(one.task for one in known)
    in_condition = Counter((one.task, one.condition) for one in known)
    at_position = Counter((one.condition, one.position) for one in known)

    def ends(values: list[int]) -> tuple[int, int]:
        return min(values), max(values)

    return Spread(
        ends([per_task[task] for task in tasks]),
        ends([in_condition[task, condition] for task in tasks for condition in conditions]),
        ends([at_position[condition, n] for condition in conditions for n in range(1, positions + 1)]),
    )


def plan_into(
    log: StudyLog, code: str, seen: Ledger | None = None, machine: str = "111111"
) -> list[Assignment]:
    """Plan for a person according to the operations that a machine had `seen`; log and return the plan."""
    ledger = seen if seen is not None else log.ledger
    given = plan_tasks(log.study, log.tasks, ledger, code)
    rows = [(one.id, one.task, one.condition, one.position) for one in given]
    log.by(code, "planned", machine=machine, slot=1, basis={}, assignments=rows)
    return list(given)


def reference_design(seed: int = 20261121) -> tuple[Study, dict[str, StudyTask]]:
    """Return the design of the figures: 6 of 24 tasks in 2 conditions, 3 of each mode.

    At most 2 of a person's tasks are of the same library.
    """
    study = declared(
        "[design.quota]\nremove = 3\ndiscovery = 3",
        changes={
            "seed = 20261121": f"seed = {seed}",
            "tasks_per_person = 2": "tasks_per_person = 6",
            '[[condition]]\nid = "alone"': TWO_CONDITIONS,
        },
    )
    return study, study_tasks(24, sources=6)


def everybody_stays(people: int = 20, seed: int = 20261121) -> Spread:
    """Return the spread if no participant leaves."""
    study, tasks = reference_design(seed)
    log = StudyLog(study, tasks)
    for n in range(people):
        log.enrol(f"P{n:02}")
        plan_into(log, f"P{n:02}")
    return spread(live_assignments(log.ledger), tasks, ("alone", "assisted"), 6)


def some_leave(people: int = 24, every: int = 5, begun: int = 0, seed: int = 20261121) -> Spread:
    """Return the spread if one in `every` people leaves after having begun `begun` tasks."""
    study, tasks = reference_design(seed)
    log = StudyLog(study, tasks)
    for n in range(people):
        code = f"P{n:02}"
        log.enrol(code)
        given = plan_into(log, code)
        leaves = n % every == every // 2
        for one in given[: begun if leaves else 6]:
            log.by(code, "begun", assignment=one.id, attempt=f"{code}-{one.position}")
        if leaves:
            log.by(code, "withdrawn", data="keep")
    return spread(live_assignments(log.ledger), tasks, ("alone", "assisted"), 6)


def two_machines(people: int = 20, every: int = 6, seed: int = 20261121) -> Spread:
    """Return the spread if two machines take turns, and exchange their lines after every sixth person."""
    study, tasks = reference_design(seed)
    log = StudyLog(study, tasks)
    for n in range(people):
        log.enrol(f"P{n:02}")
    shared = len(log.operations)
    for n in range(people):
        machine = "111111" if n % 2 else "222222"
        if n % every == 0:
            shared = len(log.operations)
        own = [one for one in log.operations[shared:] if one.reviewer.endswith(machine)]
        plan_into(log, f"P{n:02}", Ledger([*log.operations[:shared], *own]), machine)
    return spread(live_assignments(log.ledger), tasks, ("alone", "assisted"), 6)


def by_chance(people: int = 20, seed: int = 1) -> Spread:
    """Return the spread if tasks are drawn at random within modes, and half of them are assisted."""
    _, tasks = reference_design()
    random = Random(seed)
    given = []
    for n in range(people):
        drawn = [
            task
            for mode in ("remove", "discovery")
            for task in random.sample([one.id for one in tasks.values() if one.mode == mode], 3)
        ]
        random.shuffle(drawn)
        conditions = ["alone", "assisted"] * 3
        random.shuffle(conditions)
        given += [
            Assignment("", f"P{n}", task, condition, position)
            for position, (task, condition) in enumerate(zip(drawn, conditions, strict=True), start=1)
        ]
    return spread(given, tasks, ("alone", "assisted"), 6)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a random design."""

    words: str
    twice: int
    """The number of people who were given a task twice, or two tasks with one function."""
    short: int
    """The number of people who were given fewer tasks than requested."""
    quotas_missed: int
    uneven: int
    """The difference between the maximum and the minimum number of attempts of the tasks of a mode."""
    conditions_uneven: int
    """The maximum difference between the numbers of a person's tasks of a mode in two conditions."""


def random_design(seed: int, most_people: int = 24) -> Outcome:
    """Plan for everybody in a random design that can meet its quotas, and return the outcome."""
    random = Random(seed)
    modes = ("remove", "discovery", "several")[: random.randint(1, 3)]
    sources = random.randint(2, 8)
    per_mode = random.randint(3, 10)
    quota = {mode: random.randint(1, min(3, per_mode)) for mode in modes}
    wanted = sum(quota.values())
    per_source = random.choice([0, -(-wanted // sources) + random.randint(1, 2)])
    conditions = [f"condition-{n}" for n in range(random.randint(1, 4))]
    people = random.randint(4, most_people)
    study = declared(
        "[design.quota]",
        *(f"{mode} = {number}" for mode, number in quota.items()),
        changes={
            "seed = 20261121": f"seed = {seed}",
            "tasks_per_person = 2": f"tasks_per_person = {wanted}\nper_source = {per_source}",
            '[[condition]]\nid = "alone"': "\n".join(f'[[condition]]\nid = "{name}"' for name in conditions),
        },
    )
    tasks = study_tasks(per_mode * len(modes), modes=modes, sources=sources)
    log = StudyLog(study, tasks)
    words = (
        f"{people} people, {quota} of {per_mode} each, {sources} "
        f"libraries, {per_source} of one, {len(conditions)} c."
    )
    twice = short = missed = unevenly = 0
    for n in range(people):
        log.enrol(f"P{n:02}")
        given = plan_into(log, f"P{n:02}")
        functions = Counter((tasks[one.task].source, tasks[one.task].targets) for one in given)
        twice += len(functions) < len(given)
        short += len(given) < wanted
        counted = Counter(tasks[one.task].mode for one in given)
        missed += any(counted[mode] != number for mode, number in quota.items())
        for mode in modes:
            used = Counter(one.condition for one in given if tasks[one.task].mode == mode)
            unevenly = max(unevenly, max(used.values(), default=0) - min(used[name] for name in conditions))
    attempts = Counter(one.task for one in live_assignments(log.ledger))
    return Outcome(words, twice, short, missed, _uneven(attempts, tasks), unevenly)


def _uneven(attempts: Mapping[str, int], tasks: Mapping[str, StudyTask]) -> int:
    counts: dict[str, list[int]] = {}
    for task in tasks.values():
        counts.setdefault(task.mode, []).append(attempts.get(task.id, 0))
    return max(max(of_mode) - min(of_mode) for of_mode in counts.values())


def main() -> None:
    """Print the figures."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    regimes = {
        "20 people who stay": everybody_stays,
        "24 people, of whom a fifth leaves before the first task": some_leave,
        "24 people, of whom a fifth leaves after the second task": partial(some_leave, begun=2),
        "20 people at two machines that see each other every sixth person": two_machines,
    }
    for words, regime in regimes.items():
        print(f"{words}, with 40 seeds:")
        for found, times in Counter(str(regime(seed=seed)) for seed in range(40)).most_common():
            print(f"  {times:2} times {found}")
    print("20 people by chance, with 40 seeds:")
    for found, times in Counter(str(by_chance(seed=seed)) for seed in range(40)).most_common(3):
        print(f"  {times:2} times {found}")
    outcomes = [random_design(seed) for seed in range(number)]
    print(f"{number} designs: people with a task twice {sum(o.twice for o in outcomes)}")
    print(f"  with fewer tasks than asked for {sum(o.short for o in outcomes)}")
    print(f"  with a quota not kept {sum(o.quotas_missed for o in outcomes)}")
    print(f"  most less fewest attempts of a mode's tasks: {dict(Counter(o.uneven for o in outcomes))}")
    print(
        f"  most less fewest of a person's conditions: {dict(Counter(o.conditions_uneven for o in outcomes))}"
    )
    for seed, outcome in enumerate(outcomes):
        if outcome.twice or outcome.short or outcome.quotas_missed or outcome.uneven > 1:
            print(f"  design {seed}: {outcome}")


if __name__ == "__main__":
    main()
