"""The facts of a study beside its estimates, and the texts made of them: its methods, its pre-registration."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from importlib.resources import files
from statistics import median

from gistpoint import __version__
from gistpoint.core.study.data import StudyData
from gistpoint.core.study.declaration import Assistance, Condition, Study, StudyTask
from gistpoint.core.study.ledger import Ledger
from gistpoint.core.study.operations import Amended, StudyOperationKind
from gistpoint.core.study.prose import Facts, FactValue, Passage, markdown, written
from gistpoint.core.study.rows import AttemptRow

TASKS_OWN = "as the task says"
_OUTCOMES = {
    "solve_rate": "the share of attempts that solved their task",
    "time_to_solve": "the time until a task was solved",
    "time_ratio": "the ratio of the times until a task was solved",
    "fidelity": "the execution fidelity of gists",
}
_CLOCKS = {
    "active": "active time: reading, exploring and editing, without waiting for tools and tests",
    "active_and_waiting": "active time and the time spent waiting for tools and tests",
}


def declared_facts(study: Study, tasks: Mapping[str, StudyTask]) -> dict[str, FactValue]:
    """Return the facts that are known before anybody takes part: the declaration and the tasks."""
    design = study.design
    people = study.participants
    quality = study.quality
    facts: dict[str, FactValue] = {
        "program/version": __version__,
        "study/id": study.id,
        "study/title": study.title or study.id,
        "study/seed": study.seed,
        "study/simulated": study.simulated,
        "study/contact": study.privacy.contact,
        "study/retention_days": study.privacy.retention_days,
        "protocol/question": study.protocol.question,
        "protocol/primary": _OUTCOMES[study.protocol.primary],
        "protocol/primary_time": _CLOCKS[study.protocol.primary_time],
        "protocol/contrast": " and ".join(study.protocol.primary_contrast),
        "protocol/preregistration": study.protocol.preregistration,
        "protocol/power": study.protocol.power,
        "design/tasks_per_person": design.tasks_per_person,
        "design/target_per_task": design.target_per_task,
        "design/per_source": design.per_source,
        "design/per_sitting": design.per_sitting,
        "design/sitting_minutes": design.sitting_minutes,
        "design/several": len(study.conditions_of_people) > 1,
        "design/within": len(study.conditions_of_people) > 1 and design.conditions == "within",
        "design/between": len(study.conditions_of_people) > 1 and design.conditions == "between",
        "design/training": len(study.training.tasks),
        "design/training_ends": study.training.must_end,
        "design/training_solved": study.training.must_solve,
        "people/strata": ", ".join(people.strata),
        "people/population": people.population,
        "people/criteria": "; ".join(people.criteria),
        "people/recruitment": people.recruitment,
        "people/screening": people.screening,
        "people/familiar_from": people.familiar_from,
        "clock/idle_after_s": study.clock.idle_after_s,
        "sandbox/demand": study.sandbox.demand or "any that isolates",
        "quality/exclude_on": _flags(quality.exclude_on),
        "quality/excludes": bool(quality.exclude_on),
        "quality/reviewers": quality.reviewers,
        "quality/rule": quality.rule.value,
        "quality/fast_s": quality.flag_fast_s,
        "quality/idle_share": quality.flag_idle_share,
        "tasks/number": len(tasks),
        "tasks/sources": len({task.source for task in tasks.values()}),
        "interval/level": 95,
        "interval/least": 3,
        "interval/method": "the two-way delete-one jackknife over persons and tasks",
        "interval/sources": "Cameron, Gelbach and Miller 2011; MacKinnon, Nielsen and Webb 2024",
    }
    facts |= {f"hypotheses/{n}": sentence for n, sentence in enumerate(study.protocol.hypotheses, start=1)}
    facts |= {f"quotas/{_key(name)}": number for name, number in design.quota.items()}
    facts |= {f"tasks/modes/{_key(mode)}": n for mode, n in sorted(Counter(t.mode for t in tasks.values()).items())}
    for condition in study.condition:
        facts |= {
            f"conditions/{_key(condition.id)}/{name}": value for name, value in _condition_facts(condition).items()
        }
    for solver in study.solver:
        facts[f"solvers/{_key(solver.name)}/condition"] = solver.condition
    for form in study.questionnaire:
        facts[f"forms/{_key(form.id)}/moment"] = form.at.value.replace("_", " ")
        facts[f"forms/{_key(form.id)}/items"] = len(form.item)
    return facts


def _key(name: str) -> str:
    return name.replace("/", " ")


def _condition_facts(condition: Condition) -> dict[str, FactValue]:
    chat = condition.assistance is Assistance.CHAT
    return {
        "who": "people and models" if condition.people else "models only",
        "tool_uses": condition.tool_uses or TASKS_OWN,
        "submissions": condition.submissions or TASKS_OWN,
        "time_limit_s": condition.time_limit_s or TASKS_OWN,
        "assistance": f"chat with {condition.chat.model or 'a model that is not named'}" if chat else "none",
        "gist_help": condition.gist_help.value.replace("_", " ") or "none",
        "off": ", ".join(condition.comforts_off) or "none",
        "free": condition.free,
    }


def study_facts(data: StudyData) -> Facts:
    """Return all facts of a study, by key. Times are seconds or milliseconds as the key's end says."""
    ledger = data.ledger
    rows = data.rows
    people = [row for row in rows if not row.solver]
    counted = [row for row in people if row.counted]
    excluded = [row for row in people if row.exclusion]
    facts = declared_facts(data.study, data.tasks) | _people_facts(ledger, counted)
    facts |= {
        "protocol/sha256": ledger.protocol,
        "protocol/opened": ledger.opened is not None,
        "protocol/closed": ledger.closed,
        "protocol/amendments": len(ledger.study.all(Amended)),
        "protocol/unblinded": sum(o.kind == StudyOperationKind.UNBLINDED for o in ledger.operations),
        "attempts/people": len(people),
        "attempts/counted": len(counted),
        "attempts/solved": sum(row.solved for row in counted),
        "attempts/solved_by_tests": sum(row.by_the_tests.solved for row in counted),
        "attempts/excluded": len(excluded),
        "attempts/models": sum(bool(row.solver) and row.counted for row in rows),
        "attempts/corrected": sum(bool(ledger.notes(row.attempt).corrections) for row in people),
        "tasks/attempted": len({row.task for row in counted}),
        "tasks/least_attempts": min(Counter(row.task for row in counted).values(), default=0),
        "tasks/most_attempts": max(Counter(row.task for row in counted).values(), default=0),
    }
    facts |= _numbered("exclusions", (row.exclusion for row in excluded))
    facts |= _numbered("flags", (flag.flag for row in people for flag in row.flags))
    facts |= _numbered("standings", (row.confirmation for row in counted if row.confirmation))
    facts |= _numbered("ends", (row.end or "not ended" for row in counted))
    facts |= _numbered("backends", (row.backend or "not recorded" for row in counted))
    facts |= _numbered("versions", (row.gistpoint or "not recorded" for row in counted))
    opened = ledger.opened
    facts["quality/excluded_at_opening"] = _flags(opened.exclude_on) if opened is not None else ""
    for number, amended in enumerate(ledger.study.all(Amended), start=1):
        facts[f"amendments/{number}/why"] = amended.why or "no reason was given"
        facts[f"amendments/{number}/exclude_on"] = _flags(amended.exclude_on)
    facts |= _solver_facts(data)
    return facts


def _flags(names: tuple[str, ...] | None) -> str:
    if names is None:
        return "not recorded"
    return ", ".join(names) or "none"


def _numbered(key: str, names: Iterable[str]) -> dict[str, FactValue]:
    return {f"{key}/{_key(name)}": number for name, number in sorted(Counter(names).items())}


def _people_facts(ledger: Ledger, counted: list[AttemptRow]) -> dict[str, FactValue]:
    people = ledger.people.values()
    done = [
        person
        for person in people
        if person.assignments
        and {one.id for one in person.assignments} <= {f.assignment for f in person.finished.values()}
    ]
    per_person = Counter(row.participant for row in counted)
    sittings: dict[tuple[str, int | None], int] = defaultdict(int)
    for row in counted:
        sittings[row.participant, row.sitting] += 1
    return {
        "people/enrolled": sum(person.enrolled is not None for person in people),
        "people/consented": sum(person.consent is not None and not person.declined for person in people),
        "people/declined": sum(person.declined for person in people),
        "people/screened_out": sum(person.screened_out is not None for person in people),
        "people/planned": sum(bool(person.assignments) for person in people),
        "people/done": len(done),
        "people/withdrawn": sum(person.withdrawn is not None for person in people),
        "people/erased": len(ledger.erased),
        "people/counted": len(per_person),
        "people/least_tasks": min(per_person.values(), default=0),
        "people/most_tasks": max(per_person.values(), default=0),
        "people/median_per_sitting": float(median(sittings.values())) if sittings else 0.0,
        "people/most_per_sitting": max(sittings.values(), default=0),
    }


def _solver_facts(data: StudyData) -> dict[str, FactValue]:
    facts: dict[str, FactValue] = {}
    for solver in data.study.solver:
        own = [row for row in data.rows if row.solver == solver.name and row.counted]
        times = Counter(row.task for row in own)
        facts |= {
            f"solvers/{_key(solver.name)}/attempts": len(own),
            f"solvers/{_key(solver.name)}/tasks": len(times),
            f"solvers/{_key(solver.name)}/least_repeats": min(times.values(), default=0),
            f"solvers/{_key(solver.name)}/most_repeats": max(times.values(), default=0),
            f"solvers/{_key(solver.name)}/scaffold": solver.scaffold or "not stated",
            f"solvers/{_key(solver.name)}/cutoff": solver.cutoff or "not stated",
        }
    return facts


# The text of a report's methods, from one template: all of its numbers are facts of the study


_METHODS = "methods-1.md"


def methods_template() -> str:
    """Return the template."""
    return (files("gistpoint.core.study") / _METHODS).read_text(encoding="utf-8")


def methods_text(facts: Facts) -> tuple[Passage, ...]:
    """Return the methods of a study from its facts."""
    return written(methods_template(), facts)


# The sections of a pre-registration, as the OSF's form has them (Bowman et al. 2016), from a study's declaration


_PREREGISTRATION = "prereg-1.md"


def prereg_template() -> str:
    """Return the template."""
    return (files("gistpoint.core.study") / _PREREGISTRATION).read_text(encoding="utf-8")


def preregistration(study: Study, tasks: Mapping[str, StudyTask]) -> tuple[Passage, ...]:
    """Return the sections; what the declaration leaves open begins with TO BE FILLED IN."""
    return written(prereg_template(), declared_facts(study, tasks))


def preregistration_markdown(study: Study, tasks: Mapping[str, StudyTask]) -> str:
    """Return the sections as Markdown."""
    return markdown(f"Pre-registration of {study.title or study.id}", preregistration(study, tasks))
