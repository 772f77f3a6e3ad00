"""Rows of studies, as an analysis reads them: single rows, and whole studies with known parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp, log
from random import Random
from typing import Any

from gistpoint.core.study.data import StudyData
from gistpoint.core.study.declaration import Condition, Design, Privacy, Study, StudyTask, Texts
from gistpoint.core.study.ledger import Ledger
from gistpoint.core.study.operations import StudyOperation
from gistpoint.core.study.rows import AttemptRow

STUDY = "railway-2026"


def declared(**changes: Any) -> Study:
    """Return a study with the condition `alone`."""
    settings: dict[str, Any] = {
        "format": "gistpoint.study",
        "version": 1,
        "id": STUDY,
        "seed": 7,
        "design": Design(tasks_per_person=4),
        "condition": (Condition(id="alone"),),
        "texts": Texts(consent="Yes?", consent_items=("yes",), rules="None."),
        "privacy": Privacy(contact="us"),
    }
    return Study(**(settings | changes))


def row_of(cells: Mapping[str, Any]) -> AttemptRow:
    """Return a row; cells that are not fields of every row become measures."""
    own = {name: value for name, value in cells.items() if name in AttemptRow.__struct_fields__}
    return AttemptRow(**own, measures={name: value for name, value in cells.items() if name not in own})


def attempt_row(person: str = "", task: str = "t1", solved: bool = True, **changes: Any) -> AttemptRow:
    """Return an attempt of a person, or of a model if `solver` is given; `minutes` is its primary time."""
    minutes = changes.pop("minutes", None)
    solver = changes.get("solver", "")
    settings: dict[str, Any] = {
        "study": STUDY,
        "actor": "model" if solver else "person",
        "participant": person,
        "attempt": f"{solver or person}-{task}-{changes.get('condition', 'alone')}",
        "task": task,
        "source": "railway",
        "mode": "remove",
        "condition": "alone",
        "condition_key": "16/4",
        "role": "" if solver else "baseline",
        "end": "solved" if solved else "submissions_exhausted",
        "solved": solved,
        "censored": ""
        if solved
        else "competing"
        if changes.get("end") in ("gave_up", "skipped")
        else "censored",
        "tool_use_budget": 16,
        "submission_budget": 4,
    }
    if minutes is not None:
        settings |= {
            "primary_s": 60.0 * minutes,
            "active_s": 60.0 * minutes,
            "active_corrected_s": 60.0 * minutes,
        }
    return row_of(settings | changes)


def study_data(
    rows: Iterable[AttemptRow] = (),
    *,
    study: Study | None = None,
    metrics: Mapping[str, Mapping[str, float]] | None = None,
    operations: Iterable[StudyOperation] = (),
    **changes: Any,
) -> StudyData:
    """Return the data of a study, with a task for each task in the rows."""
    made = tuple(rows)
    known = metrics or {}
    tasks = {
        row.task: StudyTask(
            id=row.task, mode=row.mode, source=row.source, metrics=dict(known.get(row.task, {}))
        )
        for row in made
    }
    return StudyData(
        **(
            {"study": study or declared(), "ledger": Ledger(operations), "tasks": tasks, "rows": made}
            | changes
        )
    )


@dataclass(frozen=True, kw_only=True)
class World:
    """Parameters of people and tasks: ln minutes = middle + person + task + effect + noise.

    This is the time of people who do not give up.
    """

    people: int = 12
    tasks: int = 16
    per_person: int = 6
    middle: float = log(20.0)
    person_sd: float = 0.4
    task_sd: float = 0.6
    sigma: float = 0.6
    effect: float = 0.0
    """The effect of the condition `assisted` on ln minutes."""
    assisted: bool = False
    metric_slope: float = 0.0
    """The effect on ln minutes of the metric `code_lines`, whose logarithm is standard normal."""
    cap: float = 60.0
    give_up: float = 0.0
    """The chance that a person who would exceed the time limit gives up earlier."""
    model_rate: float | None = None
    """The chance that `model-x` solves an average task; None for no model."""

    def rows(self, seed: int) -> tuple[list[AttemptRow], dict[str, dict[str, float]]]:
        """Draw the attempts, and the metrics of the tasks."""
        draw = Random(seed)
        persons = [f"P{n:02}" for n in range(1, self.people + 1)]
        tasks = [f"t{n:03}" for n in range(1, self.tasks + 1)]
        z = {task: draw.gauss(0, 1) for task in tasks}
        hardness = {task: draw.gauss(0, self.task_sd) + self.metric_slope * z[task] for task in tasks}
        made = []
        place = 0
        for person in persons:
            skill = draw.gauss(0, self.person_sd)
            chosen = [tasks[(place + n) % self.tasks] for n in range(self.per_person)]
            place += self.per_person
            start = draw.randrange(2)
            for position, task in enumerate(draw.sample(chosen, len(chosen)), start=1):
                helped = self.assisted and (position + start) % 2 == 0
                minutes = exp(
                    self.middle + skill + hardness[task] + self.effect * helped + draw.gauss(0, self.sigma)
                )
                solved = minutes <= self.cap
                end = "solved" if solved else "time_cap"
                taken = min(minutes, self.cap)
                if not solved and draw.random() < self.give_up:
                    end, taken = "gave_up", self.cap * draw.uniform(0.2, 0.8)
                made.append(
                    attempt_row(
                        person,
                        task,
                        solved,
                        minutes=taken,
                        end=end,
                        position=position,
                        condition="assisted" if helped else "alone",
                    )
                )
        if self.model_rate is not None:
            shift = log(self.model_rate / (1 - self.model_rate))
            for task in tasks:
                chance = 1 / (1 + exp(-(shift - hardness[task])))
                made.append(attempt_row(task=task, solved=draw.random() < chance, solver="model-x"))
        return made, {task: {"code_lines": exp(3 + z[task])} for task in tasks}

    def data(self, seed: int, **changes: Any) -> StudyData:
        """Draw a study."""
        rows, metrics = self.rows(seed)
        return study_data(rows, metrics=metrics, **changes)
