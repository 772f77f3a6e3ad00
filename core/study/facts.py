"""Collects the facts of a study besides its estimates, and writes methods and pre-registrations from them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from itertools import chain
from statistics import median

from gistpoint import __version__
from gistpoint.core.attempts.identity import Role
from gistpoint.core.study.confirmatory import LIMITS_OF_TIMES, confirmatory_model
from gistpoint.core.study.data import ReviewerDecision, StudyData
from gistpoint.core.study.declaration import Assistance, Condition, Study, StudyTask
from gistpoint.core.study.ledger import Ledger
from gistpoint.core.study.measuring import time_of_reviewers
from gistpoint.core.study.operations import Amended, PowerRecorded, StudyOperationKind
from gistpoint.core.study.prose import Facts, FactValue, Passage, markdown, written
from gistpoint.core.study.rows import AttemptRow
from gistpoint.core.study.soundness import counted_tasks

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
    """Return, by key, the facts known before anybody takes part, from the declaration and the tasks.

    Training tasks are not counted as tasks.
    """
    design = study.design
    people = study.participants
    quality = study.quality
    several = len(study.conditions_of_people) > 1
    counted = list(counted_tasks(study, tasks).values())
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
        "protocol/model": confirmatory_model(study),
        "protocol/limits": LIMITS_OF_TIMES,
        "protocol/primary_time": _CLOCKS[study.protocol.primary_time],
        "protocol/contrast": " and ".join(study.protocol.primary_contrast),
        "protocol/preregistration": study.protocol.preregistration,
        "protocol/power": study.protocol.power,
        "people/cap": people.cap,
        "design/tasks_per_person": design.tasks_per_person,
        "design/target_per_task": design.target_per_task,
        "design/per_source": design.per_source,
        "design/per_sitting": design.per_sitting,
        "design/sitting_minutes": design.sitting_minutes,
        "design/several": several,
        "design/within": several and design.conditions == "within",
        "design/between": several and design.conditions == "between",
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
        "tasks/number": len(counted),
        "tasks/sources": len({task.source for task in counted}),
        "interval/level": 95,
        "interval/least": 3,
        "interval/method": "the two-way delete-one jackknife over persons and tasks"
        " (of rates on the logit scale; of ratios of times with the variance by their model as the least)",
        "interval/sources": "Cameron, Gelbach and Miller 2011; MacKinnon, Nielsen and Webb 2024",
    }
    facts |= {f"hypotheses/{n}": sentence for n, sentence in enumerate(study.protocol.hypotheses, start=1)}
    facts |= {f"quotas/{_key(name)}": number for name, number in design.quota.items()}
    facts |= _numbered("tasks/modes", (task.mode for task in counted))
    for condition in study.condition:
        facts |= _condition_facts(condition)
    for solver in study.solver:
        facts[f"solvers/{_key(solver.name)}/condition"] = solver.condition
    for form in study.questionnaire:
        facts[f"forms/{_key(form.id)}/moment"] = form.at.value.replace("_", " ")
        facts[f"forms/{_key(form.id)}/items"] = len(form.item)
    return facts


def _key(name: str) -> str:
    return name.replace("/", " ")


def _condition_facts(condition: Condition) -> dict[str, FactValue]:
    assistance = "none"
    if condition.assistance is Assistance.CHAT:
        assistance = f"chat with {condition.chat.model or 'a model that is not named'}"
    facts: dict[str, FactValue] = {
        "who": "people and models" if condition.people else "models only",
        "tool_uses": condition.tool_uses or TASKS_OWN,
        "submissions": condition.submissions or TASKS_OWN,
        "time_limit_s": condition.time_limit_s or TASKS_OWN,
        "assistance": assistance,
        "gist_help": condition.gist_help.value.replace("_", " ") or "none",
        "off": ", ".join(condition.comforts_off) or "none",
        "free": condition.free,
    }
    return {f"conditions/{_key(condition.id)}/{name}": value for name, value in facts.items()}


def study_facts(data: StudyData) -> Facts:
    """Return all facts of a study by key; the suffix `_s` or `_ms` of a key is the unit of a time."""
    ledger = data.ledger
    of_people = [row for row in data.rows if not row.solver]
    people = [row for row in of_people if row.role != Role.TRAINING]
    counted = [row for row in people if row.counted]
    facts = declared_facts(data.study, data.tasks)
    facts |= _people_facts(ledger, counted)
    facts |= _protocol_facts(ledger)
    facts["attempts/training"] = len(of_people) - len(people)
    facts |= _attempt_facts(data, people, counted)
    facts |= _amendment_facts(ledger)
    facts |= _solver_facts(data)
    return facts


def _flags(names: tuple[str, ...] | None) -> str:
    if names is None:
        return "not recorded"
    return ", ".join(names) or "none"


def _numbered(key: str, names: Iterable[str]) -> dict[str, FactValue]:
    return {f"{key}/{_key(name)}": number for name, number in sorted(Counter(names).items())}


def _protocol_facts(ledger: Ledger) -> dict[str, FactValue]:
    return {
        "protocol/sha256": ledger.protocol,
        "protocol/opened": ledger.opened is not None,
        "protocol/closed": ledger.closed,
        "protocol/amendments": len(ledger.study.all(Amended)),
        "protocol/unblinded": sum(o.kind == StudyOperationKind.UNBLINDED for o in ledger.operations),
    }


def _amendment_facts(ledger: Ledger) -> dict[str, FactValue]:
    """Return the excluding flags at the opening, and the reasons and flags of each amendment."""
    opened = ledger.opened
    facts: dict[str, FactValue] = {
        "quality/excluded_at_opening": "" if opened is None else _flags(opened.exclude_on),
    }
    for number, amended in enumerate(ledger.study.all(Amended), start=1):
        facts[f"amendments/{number}/why"] = amended.why or "no reason was given"
        facts[f"amendments/{number}/exclude_on"] = _flags(amended.exclude_on)
    return facts


def _attempt_facts(
    data: StudyData, people: Sequence[AttemptRow], counted: Sequence[AttemptRow]
) -> dict[str, FactValue]:
    """Return the facts about the attempts of `people`, without training, and about the `counted` attempts."""
    excluded = [row for row in people if row.exclusion]
    of_models = [row for row in data.counted if row.solver]
    corrected = [row for row in people if data.ledger.notes(row.attempt).corrections]
    per_task = Counter(row.task for row in counted)
    facts: dict[str, FactValue] = {
        "attempts/people": len(people),
        "attempts/counted": len(counted),
        "attempts/solved": sum(row.solved for row in counted),
        "attempts/solved_by_tests": sum(row.by_the_tests.solved for row in counted),
        "attempts/excluded": len(excluded),
        "attempts/models": len(of_models),
        "attempts/corrected": len(corrected),
        "attempts/corrected_by_reviewers": _corrected_by_reviewers(data, people),
        "tasks/attempted": len(per_task),
        "tasks/least_attempts": min(per_task.values(), default=0),
        "tasks/most_attempts": max(per_task.values(), default=0),
    }
    return facts | _named_facts(people, counted)


def _corrected_by_reviewers(data: StudyData, people: Iterable[AttemptRow]) -> int:
    """Return the number of attempts whose times reviewers, but not organisers, corrected."""
    given: dict[str, list[ReviewerDecision]] = defaultdict(list)
    for decision in data.decisions:
        given[decision.attempt].append(decision)
    theirs = (row for row in people if not data.ledger.notes(row.attempt).corrections)
    return sum(time_of_reviewers(given[row.attempt]) is not None for row in theirs)


def _named_facts(people: Sequence[AttemptRow], counted: Sequence[AttemptRow]) -> dict[str, FactValue]:
    """Return the numbers of attempts by exclusion, flag, standing, end, backend and version."""
    exclusions = [row.exclusion for row in people if row.exclusion]
    standings = [row.confirmation for row in counted if row.confirmation]
    flags = chain.from_iterable(row.flags for row in people)
    return {
        **_numbered("exclusions", exclusions),
        **_numbered("flags", (flag.flag for flag in flags)),
        **_numbered("standings", standings),
        **_numbered("ends", (row.end or "not ended" for row in counted)),
        **_numbered("backends", (row.backend or "not recorded" for row in counted)),
        **_numbered("versions", (row.gistpoint or "not recorded" for row in counted)),
    }


def _people_facts(ledger: Ledger, counted: list[AttemptRow]) -> dict[str, FactValue]:
    people = ledger.people.values()
    planned = [person for person in people if person.assignments]
    consented = [person for person in people if person.consent is not None]
    per_person = Counter(row.participant for row in counted)
    per_sitting = Counter((row.participant, row.sitting) for row in counted)
    return {
        "people/enrolled": sum(person.enrolled is not None for person in people),
        "people/consented": sum(not person.declined for person in consented),
        "people/declined": sum(person.declined for person in people),
        "people/screened_out": sum(person.screened_out is not None for person in people),
        "people/planned": len(planned),
        "people/done": sum(person.is_done for person in planned),
        "people/withdrawn": sum(person.withdrawn is not None for person in people),
        "people/erased": len(ledger.erased),
        "people/counted": len(per_person),
        "people/least_tasks": min(per_person.values(), default=0),
        "people/most_tasks": max(per_person.values(), default=0),
        "people/median_per_sitting": float(median(per_sitting.values())) if per_sitting else 0.0,
        "people/most_per_sitting": max(per_sitting.values(), default=0),
    }


def _solver_facts(data: StudyData) -> dict[str, FactValue]:
    facts: dict[str, FactValue] = {}
    for solver in data.study.solver:
        counted = [row for row in data.rows if row.solver == solver.name and row.counted]
        times = Counter(row.task for row in counted)
        facts |= {
            f"solvers/{_key(solver.name)}/attempts": len(counted),
            f"solvers/{_key(solver.name)}/tasks": len(times),
            f"solvers/{_key(solver.name)}/least_repeats": min(times.values(), default=0),
            f"solvers/{_key(solver.name)}/most_repeats": max(times.values(), default=0),
            f"solvers/{_key(solver.name)}/scaffold": solver.scaffold or "not stated",
            f"solvers/{_key(solver.name)}/cutoff": solver.cutoff or "not stated",
        }
    return facts


# The methods section of a report, from a template whose numbers are all facts of the study


_METHODS = "methods-1.md"


def methods_template() -> str:
    """Return the template of the methods section."""
    return (files("gistpoint.core.study") / _METHODS).read_text(encoding="utf-8")


def methods_text(facts: Facts) -> tuple[Passage, ...]:
    """Return the passages of a study's methods section, written from its facts."""
    return written(methods_template(), facts)


# The sections of a pre-registration in the OSF's form (Bowman et al. 2016), from the declaration


_PREREGISTRATION = "prereg-1.md"


def prereg_template() -> str:
    """Return the template of the pre-registration."""
    return (files("gistpoint.core.study") / _PREREGISTRATION).read_text(encoding="utf-8")


def power_facts(power: PowerRecorded | None) -> dict[str, FactValue]:
    """Return the facts of the study's last power analysis; empty strings without one."""
    if power is None:
        return {"power/what": "", "power/assumed": ""}
    assumed = ", ".join(f"{_plain(name)} {_number(value)}" for name, value in power.assumed.items() if value)
    facts: dict[str, FactValue] = {"power/what": power.what, "power/assumed": assumed}
    for number, figure in enumerate(power.figures, start=1):
        values = ((_plain(name), value) for name, value in figure.items() if value is not None)
        facts[f"power/figures/{number}"] = ", ".join(f"{name} {_number(value)}" for name, value in values)
    return facts


def _plain(name: str) -> str:
    return str(name).replace("_", " ")


def _number(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def preregistration(
    study: Study, tasks: Mapping[str, StudyTask], power: PowerRecorded | None = None
) -> tuple[Passage, ...]:
    """Return the sections of a pre-registration; open parts begin with TO BE FILLED IN.

    `power` is the last record of `gistpoint study power`.
    """
    return written(prereg_template(), declared_facts(study, tasks) | power_facts(power))


def preregistration_markdown(
    study: Study, tasks: Mapping[str, StudyTask], power: PowerRecorded | None = None
) -> str:
    """Return the pre-registration as Markdown."""
    return markdown(f"Pre-registration of {study.title or study.id}", preregistration(study, tasks, power))
