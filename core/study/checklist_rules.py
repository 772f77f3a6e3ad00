"""The rules that answer checklist items from a study's log, journals and declaration, with evidence.

The rules are rows of data: the first case whose condition holds gives the answer, and an item without such a
case stays open. "Yes" needs an operation, a hash or a count as evidence; where the program can show only a
part, the answer is "Partial".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from gistpoint.core.study.bank import ABOUT_TASKS
from gistpoint.core.study.checklist_evidence import (
    NO,
    NOT_APPLICABLE,
    PARTIAL,
    YES,
    ChecklistEvidence,
    EvidencedAnswer,
    operation_words,
    span,
)
from gistpoint.core.study.declaration import Assistance, QuestionKind, StudyTask
from gistpoint.core.study.operations import PowerRecorded, StudyOperation, StudyOperationKind
from gistpoint.core.study.prose import children
from gistpoint.core.study.rows import AttemptRow
from gistpoint.core.study.soundness import counted_tasks


@dataclass(frozen=True, slots=True)
class Case:
    """An answer and its evidence, both as templates with figures in braces, and the figure it depends on."""

    answer: str
    evidence: str
    when: str = ""
    """The figure that must be neither 0 nor empty for the case to apply; empty if the case always applies."""


Rule = Callable[[ChecklistEvidence], EvidencedAnswer | None]


def _answer(cases: tuple[Case, ...], evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    figures = _Figures(evidence)
    for case in cases:
        if not case.when or figures[case.when]:
            return EvidencedAnswer(case.answer.format_map(figures), case.evidence.format_map(figures))
    return None


class _Figures(Mapping[str, Any]):
    """The figures that rules refer to: those in `FIGURES`, or facts of the study, which are 0 if missing."""

    def __init__(self, evidence: ChecklistEvidence) -> None:
        self._evidence = evidence

    def __getitem__(self, name: str) -> Any:
        made = FIGURES.get(name)
        return self._evidence.number(name) if made is None else made(self._evidence)

    def __iter__(self) -> Iterator[str]:
        return iter(FIGURES)

    def __len__(self) -> int:
        return len(FIGURES)


# Figures


def _span(values: Iterable[str]) -> str:
    """Return the least and the greatest number of occurrences of a value, in words."""
    return span(sorted(Counter(values).values()))


def _named(operation: StudyOperation | None) -> str:
    return "" if operation is None else operation_words(operation)


def _operation(kind: StudyOperationKind, evidence: ChecklistEvidence) -> str:
    return _named(evidence.operation(kind))


def _comparison_part(name: str, part: str, evidence: ChecklistEvidence) -> Any:
    """Return a part of a hash's comparison between people and models: one of its counts, or its words."""
    return getattr(evidence.compared(name), part)


def _listed(names: Iterable[str], otherwise: str = "none") -> str:
    return ", ".join(names) or otherwise


def _filled(forms: Iterable[str], evidence: ChecklistEvidence) -> int:
    return sum(map(evidence.answered, forms))


def _tasks(rows: Iterable[AttemptRow]) -> int:
    return len({row.task for row in rows})


def _counted_tasks(evidence: ChecklistEvidence) -> list[StudyTask]:
    return list(counted_tasks(evidence.data.study, evidence.data.tasks).values())


def _unlimited(evidence: ChecklistEvidence) -> list[AttemptRow]:
    rows = (*evidence.people, *evidence.models)
    return [row for row in rows if not row.tool_use_budget and not row.time_limit_s]


def _solver_samples(evidence: ChecklistEvidence) -> str:
    spans = (
        f"{name}: {evidence.number(f'solvers/{name}/least_repeats'):g} to "
        f"{evidence.number(f'solvers/{name}/most_repeats'):g}"
        for name in children(evidence.facts, "solvers")
    )
    return "; ".join(spans)


_LONGEST = 1000
"""The maximum number of characters in an answer that is assembled from figures."""


def _effect(evidence: ChecklistEvidence) -> str:
    operation = evidence.power
    power = None if operation is None else operation.read(PowerRecorded)
    if power is None or not power.figures:
        return ""
    what = f"{power.what}: " if power.what else ""
    return f"{what}{'; '.join(map(_figure_words, power.figures))}"[:_LONGEST]


def _figure_words(figure: Mapping[str, Any]) -> str:
    values = [(str(name).replace("_", " "), value) for name, value in figure.items() if value is not None]
    return ", ".join(
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}" for name, value in values
    )


def _began_early(evidence: ChecklistEvidence) -> bool:
    """Return whether an attempt began before the study was opened."""
    opened = evidence.operation(StudyOperationKind.OPENED)
    people = evidence.data.ledger.people.values()
    begun = (begun.utc_ms for one in people for facts in one.begun.values() for begun in facts)
    return opened is not None and any(when < opened.utc_ms for when in begun)


def _own_people(evidence: ChecklistEvidence) -> int:
    team = set(evidence.data.study.participants.team)
    return len(
        {row.participant for row in evidence.people if row.participant in team or row.role == "author"}
    )


def _asked_about_sources(evidence: ChecklistEvidence) -> int:
    forms = evidence.data.study.questionnaire
    return _filled((form.id for form in forms if ({"sources-1"} | ABOUT_TASKS) & set(form.use)), evidence)


def _excluding_exposure(evidence: ChecklistEvidence) -> list[str]:
    return sorted({"exposed", "second_exposure"} & set(evidence.data.study.quality.exclude_on))


def _explaining(evidence: ChecklistEvidence) -> set[str]:
    """Return the ids of the questionnaires after tasks that ask for free text."""
    forms = (form for form in evidence.data.study.questionnaire if form.at == "after_task")
    return {
        form.id
        for form in forms
        if ABOUT_TASKS & set(form.use) or any(question.kind is QuestionKind.TEXT for question in form.item)
    }


def _by_rule(evidence: ChecklistEvidence) -> str:
    names = children(evidence.facts, "exclusions")
    return _listed(f"{name} {evidence.number(f'exclusions/{name}'):g}" for name in names)


def _estimated_kinds(evidence: ChecklistEvidence) -> str:
    estimated = evidence.estimated
    kinds = {"point": estimated.numbers, "interval": estimated.intervals}
    return " and ".join(kind for kind, found in kinds.items() if found) or "none"


def _chats(evidence: ChecklistEvidence) -> dict[str, str]:
    """Return, for each condition with a chat, the name of its model; empty if no name is declared."""
    chats = (one for one in evidence.data.study.condition if one.assistance is Assistance.CHAT)
    return {one.id: one.chat.model for one in chats}


def _public_export(evidence: ChecklistEvidence) -> str:
    exports = (
        operation
        for operation in evidence.data.ledger.operations
        if operation.kind == StudyOperationKind.EXPORTED
    )
    return _named(next((operation for operation in exports if operation.data.get("public")), None))


FIGURES: Mapping[str, Callable[[ChecklistEvidence], Any]] = {
    "title": lambda e: e.data.study.title,
    "population": lambda e: e.facts.get("people/population", ""),
    "criteria": lambda e: e.facts.get("people/criteria", ""),
    "recruitment": lambda e: e.facts.get("people/recruitment", ""),
    "no_models": lambda e: not e.models,
    "tasks": lambda e: len(_counted_tasks(e)),
    "tasks_with_tools": lambda e: sum(bool(task.tools) for task in _counted_tasks(e)),
    "opened": partial(_operation, StudyOperationKind.OPENED),
    "models_tasks": lambda e: _tasks(e.models),
    "models_attempts": lambda e: len(e.models),
    "models_own": lambda e: sum(bool(row.journal_head) for row in e.models),
    "models_all_own": lambda e: all(row.journal_head for row in e.models),
    "models_samples": _solver_samples,
    "persons": lambda e: e.persons,
    "people_tasks": lambda e: _tasks(e.people),
    "people_attempts": lambda e: len(e.people),
    "people_all_tasks": lambda e: _tasks(e.people) == len(_counted_tasks(e)),
    "attempts_by_task": lambda e: _span(row.task for row in e.people),
    "attempts_by_person": lambda e: _span(row.participant for row in e.people),
    "design": lambda e: e.data.study.design,
    "briefs": partial(_comparison_part, "brief_sha256", "words"),
    "briefs_equal": partial(_comparison_part, "brief_sha256", "equal"),
    "instructions_same": lambda e: e.compared("brief_sha256").all_equal and not e.differing_texts,
    "texts": lambda e: e.differing_texts or "the rules and the system prompt have one template",
    "tools": partial(_comparison_part, "tools_sha256", "words"),
    "tools_equal": partial(_comparison_part, "tools_sha256", "equal"),
    "tools_all_equal": partial(_comparison_part, "tools_sha256", "all_equal"),
    "both_all_equal": lambda e: e.compared("brief_sha256").all_equal and e.compared("tools_sha256").all_equal,
    "tried_out": lambda e: sum(row.role in ("qa", "author") for row in e.data.rows),
    "all_attempts": lambda e: len(e.people) + len(e.models),
    "limited": lambda e: len(e.people) + len(e.models) - len(_unlimited(e)),
    "budgets": partial(_comparison_part, "tool_use_budget", "words"),
    "limited_people_alone": lambda e: not e.models and len(_unlimited(e)) < len(e.people),
    "limited_alike": lambda e: not _unlimited(e) and e.compared("tool_use_budget").all_equal,
    "power": lambda e: _named(e.power),
    "power_first": lambda e: e.power is not None and e.is_before_opening(e.power),
    "power_in_words": lambda e: e.data.study.protocol.power,
    "effect": _effect,
    "address": lambda e: e.data.study.protocol.preregistration,
    "address_unopened": lambda e: (
        e.data.study.protocol.preregistration and e.operation(StudyOperationKind.OPENED) is None
    ),
    "address_late": lambda e: e.data.study.protocol.preregistration and _began_early(e),
    "screening": lambda e: e.data.study.participants.screening,
    "screened": lambda e: e.answered(e.data.study.participants.screening),
    "own_people": _own_people,
    "team": lambda e: len(e.data.study.participants.team),
    "exposure": lambda e: _listed(_excluding_exposure(e)),
    "asked_about_sources": _asked_about_sources,
    "unseen": lambda e: _excluding_exposure(e) and _asked_about_sources(e),
    "training_attempts": lambda e: sum(row.role == "training" for row in e.data.rows),
    "training_tasks": lambda e: len(e.data.study.training.tasks),
    "pay": lambda e: e.data.study.participants.pay,
    "pay_training": lambda e: e.data.study.participants.pay.training,
    "pay_base": lambda e: e.data.study.participants.pay.base,
    "pay_bonus": lambda e: e.data.study.participants.pay.bonus,
    "paid_equally": lambda e: e.data.study.participants.pay.base and e.data.study.participants.pay.equal,
    "plans": lambda e: sum(known.kind == StudyOperationKind.PLANNED for known in e.data.ledger.operations),
    "seed": lambda e: e.data.study.seed,
    "excluding_flags": lambda e: len(e.data.study.quality.exclude_on),
    "excluding_names": lambda e: _listed(e.data.study.quality.exclude_on),
    "reviewers": lambda e: e.data.study.quality.reviewers,
    "quality_rules": lambda e: e.data.study.quality.exclude_on or e.data.study.quality.reviewers,
    "excluded_by_rule": _by_rule,
    "affordances": lambda e: sum(sum(row.comforts.values()) for row in e.people),
    "affordances_off": lambda e: _listed(
        sorted({name for one in e.data.study.condition for name in one.comforts_off}), "nothing"
    ),
    "backends": lambda e: _listed(children(e.facts, "backends"), "none recorded"),
    "editors_off": lambda e: sum(
        "external_editor" in one.comforts_off for one in e.data.study.conditions_of_people
    ),
    "attested": lambda e: _filled(
        (form.id for form in e.data.study.questionnaire if "aids-1" in form.use), e
    ),
    "explaining": lambda e: len(_explaining(e)),
    "explained": lambda e: _filled(_explaining(e), e),
    "versus": lambda e: "versus" in e.estimated.intervals,
    "primary": lambda e: e.estimated.primary,
    "primary_interval": lambda e: e.estimated.primary in e.estimated.intervals,
    "with_intervals": lambda e: len(e.estimated.intervals),
    "other_intervals": lambda e: len(e.estimated.intervals) - 1,
    "with_numbers": lambda e: len(e.estimated.numbers),
    "estimated": _estimated_kinds,
    "none_excluded": lambda e: not e.number("attempts/excluded"),
    "sensitivity": lambda e: "sensitivity" in e.estimated.numbers,
    "demographics": lambda e: _filled(
        (form.id for form in e.data.study.questionnaire if form.at == "before"), e
    ),
    "brief_hashes": lambda e: len({row.brief_sha256 for row in e.people if row.brief_sha256}),
    "public_export": _public_export,
    "timed": lambda e: bool({"bp-4.4", "time-km", "time-tasks"} & e.estimated.numbers),
    "timed_names": lambda e: _listed(sorted({"bp-4.4", "time-km", "time-tasks"} & e.estimated.numbers)),
    "chats": lambda e: "; ".join(f"{name}: {model or 'not named'}" for name, model in _chats(e).items()),
    "no_chats": lambda e: not _chats(e),
    "chats_all_named": lambda e: all(_chats(e).values()),
    "unfinished": lambda e: e.number("people/planned") - e.number("people/done"),
}
"""The function that computes each figure, by the name in a case."""


# Rules

_OF_MODELS = Case(NOT_APPLICABLE, "no attempt by a model counts in this study", "no_models")
"""The first case of items that apply only to studies with models."""
_OWN_JOURNALS = "attempts of models with a journal of gistpoint's own: {models_own} of {models_attempts}"
_LIMITS = "attempts with a budget of tool uses or a time limit: {limited} of {all_attempts}"
_NO_TRAINING = "no training tasks are declared"
_PLATFORMS = (
    "people had a terminal, models an API; hashes of tools {tools}; affordances of people counted:"
    " {affordances}"
)
_AUTHORS = "roles of the operations `enrolled`; study.toml names"
_UNSEEN = (
    "first exposures only, according to the log; excluding flags: {exposure}; "
    "people were asked {asked_about_sources} times whether they knew the task or its library"
)
_ENFORCED = (
    "backends: {backends}; conditions without an external editor: {editors_off}; people attested {attested}"
    " times which aids they had used; what people did outside of the program is not recorded"
)
_EXPLAINED = "questionnaires after tasks with a question in words: {explaining}, filled in {explained} times"
_BRIEF_HASHES = "hashes of briefs recorded: {brief_hashes}; rules and consent are part of the protocol's hash"


def _alike(hashes: str) -> tuple[Case, ...]:
    """Return the cases for a hash that is equal for all, some or none of the tasks attempted by both."""
    words = f"hashes of {hashes} {{{hashes}}}"
    return (
        _OF_MODELS,
        Case(YES, words, f"{hashes}_all_equal"),
        Case(PARTIAL, words, f"{hashes}_equal"),
        Case(NO, words),
    )


def _measured(what: str) -> tuple[Case, ...]:
    words = f"{what}; {_OWN_JOURNALS}"
    return _OF_MODELS, Case(YES, words, "models_all_own"), Case(PARTIAL, words)


_CASES: Mapping[str, tuple[Case, ...]] = {
    # The evaluation and the design of the baseline
    "title": (Case("{title}", "study.toml: title, of the study", "title"),),
    "kind": (Case("Capabilities, Agent", "tasks with tools: {tasks_with_tools} of {tasks}"),),
    "media": (Case("Text", "every tool of gistpoint takes and returns text"),),
    "dataset": (
        Case("{tasks}", "tasks of the study, listed in {opened}", "opened"),
        Case("{tasks}", "tasks of the study"),
    ),
    "model_items": (_OF_MODELS, Case("{models_tasks}", "{models_attempts} counted attempts of models")),
    "model_samples": (_OF_MODELS, Case("{models_samples}", "counted attempts for each task")),
    "people": (Case("{persons}", "enrolled: {people/enrolled:g}; with counted attempts: this number"),),
    "people_items": (Case("{people_tasks}", "{people_attempts} counted attempts of people"),),
    "sampling": (Case(NOT_APPLICABLE, "people attempted every task", "people_all_tasks"),),
    "people_samples": (
        Case(
            "{attempts_by_task}",
            "counted attempts for each task; the design aimed at {design.target_per_task} in a condition",
        ),
    ),
    "items_per_person": (
        Case(
            "{attempts_by_person}",
            "counted attempts of each person; the design says {design.tasks_per_person}",
        ),
    ),
    "alike": (
        _OF_MODELS,
        Case(YES, "hashes of briefs {briefs}; of tools {tools}", "both_all_equal"),
        Case(PARTIAL, "hashes of briefs {briefs}; of tools {tools}"),
    ),
    "tried_out": (
        Case(
            PARTIAL, "attempts by authors or for quality assurance: {tried_out}, in no estimate", "tried_out"
        ),
    ),
    "effort": (
        Case(PARTIAL, f"{_LIMITS}; {_OF_MODELS.evidence}", "limited_people_alone"),
        Case(YES, f"{_LIMITS}; budgets of people and models {{budgets}}", "limited_alike"),
        Case(PARTIAL, f"{_LIMITS}; budgets of people and models {{budgets}}", "limited"),
    ),
    "power": (
        Case(YES, "{power}, before the study was opened", "power_first"),
        Case(PARTIAL, "{power}, after the study was opened", "power"),
        Case(
            PARTIAL,
            "study.toml: protocol.power states it in words; the log has no figures",
            "power_in_words",
        ),
    ),
    "effect": (Case("{effect}", "{power}", "effect"),),
    "preregistered": (
        Case(PARTIAL, "{address}; the study has not been opened", "address_unopened"),
        Case(PARTIAL, "{address}; an attempt began before {opened}", "address_late"),
        Case(
            YES,
            "{address}; {opened} precedes the first attempt, and its protocol hash covers the address",
            "address",
        ),
    ),
    # People
    "population": (Case(YES, "study.toml: participants.population", "population"),),
    "population_by": (Case("{criteria}", "study.toml: participants.criteria", "criteria"),),
    "recruitment": (Case("{recruitment}", "study.toml: participants.recruitment", "recruitment"),),
    "screening": (
        Case(
            YES,
            "the questionnaire {screening} ends the session of those who do not qualify; filled in"
            " {screened} times",
            "screening",
        ),
        Case(YES, "study.toml: participants.criteria", "criteria"),
    ),
    "criteria": (Case("{criteria}", "study.toml: participants.criteria", "criteria"),),
    "screened_out": (
        Case(
            "{people/screened_out:g}",
            "operations `screened_out`; {people/declined:g} more declined to consent",
        ),
    ),
    "authors": (
        Case(YES, "people of the team with counted attempts: {own_people} of {persons}", "own_people"),
        Case(NO, f"{_AUTHORS} {{team}} of the team", "team"),
        Case(NO, f"{_AUTHORS} nobody of the team"),
    ),
    "unseen": (Case(YES, _UNSEEN, "unseen"), Case(PARTIAL, _UNSEEN)),
    "training": (
        Case(YES, "attempts at training tasks: {training_attempts}", "training_attempts"),
        Case(PARTIAL, "training tasks declared: {training_tasks}, attempts at them: 0", "training_tasks"),
        Case(NO, _NO_TRAINING),
    ),
    "training_kind": (
        Case(
            "{training_tasks} training tasks on the same screens, with the outcomes of tests shown",
            "study.toml: training.tasks",
            "training_tasks",
        ),
        Case(NOT_APPLICABLE, _NO_TRAINING),
    ),
    "training_paid": (Case(YES, "study.toml: participants.pay.training", "pay_training"),),
    "training_pay": (Case("{pay_training}", "study.toml: participants.pay.training", "pay_training"),),
    "paid": (Case(YES, "study.toml: participants.pay.base", "pay_base"),),
    "pay": (Case("{pay_base}", "study.toml: participants.pay.base", "pay_base"),),
    "bonus": (Case(YES, "study.toml: participants.pay.bonus", "pay_bonus"),),
    "bonus_amount": (Case("{pay_bonus}", "study.toml: participants.pay.bonus", "pay_bonus"),),
    "equal_pay": (
        Case(YES, "study.toml: participants.pay.equal", "paid_equally"),
        Case(NO, "study.toml: participants.pay.equal", "pay_base"),
    ),
    "unequal_pay": (Case(NOT_APPLICABLE, "study.toml: participants.pay.equal", "paid_equally"),),
    # Execution
    "per_sitting": (
        Case(
            "median {people/median_per_sitting:g}, at most {people/most_per_sitting:g}",
            "counted attempts by sitting; the design says at most {design.per_sitting}",
        ),
    ),
    "order": (Case(YES, "{plans} operations `planned`: order by keyed hashes of the seed {seed}", "plans"),),
    "quality": (
        Case(
            YES,
            "flags excluding by declaration: {excluding_flags}; reviewers for each attempt: {reviewers}",
            "quality_rules",
        ),
        Case(PARTIAL, "flags are recorded, but none excludes; no reviewers"),
    ),
    "quality_criteria": (
        Case("{excluding_names}", "study.toml: quality.exclude_on, hashed with the protocol"),
    ),
    "excluded": (Case("{attempts/excluded:g} of {attempts/people:g}", "by rule: {excluded_by_rule}"),),
    "interface": (_OF_MODELS, Case(PARTIAL, _PLATFORMS)),
    "graphical": (
        _OF_MODELS,
        Case("Checked", "people used gistpoint's terminal screens, models their tools by API"),
    ),
    "interface_adjusted": (
        _OF_MODELS,
        Case(
            PARTIAL,
            "tools return the same text to both; switched off for people: {affordances_off}; the rest is"
            " counted",
        ),
    ),
    "instructions": (
        _OF_MODELS,
        Case(YES, "hashes of briefs {briefs}; {texts}", "instructions_same"),
        Case(PARTIAL, "hashes of briefs {briefs}; {texts}", "briefs_equal"),
        Case(NO, "hashes of briefs {briefs}; {texts}"),
    ),
    "instructions_adjusted": (
        _OF_MODELS,
        Case(NOT_APPLICABLE, "hashes of briefs {briefs}; {texts}", "instructions_same"),
    ),
    "tools": _alike("tools"),
    "enforced": (Case(PARTIAL, _ENFORCED),),
    "explanations": (Case(YES, _EXPLAINED, "explained"), Case(NO, _EXPLAINED)),
    # Analysis
    "tested": (
        _OF_MODELS,
        Case(YES, "the analysis `versus` has intervals and tests in this report", "versus"),
        Case(NO, "the analysis `versus` has no intervals and tests in this report"),
    ),
    "which_test": (
        _OF_MODELS,
        Case(
            "two-way jackknife interval of the difference; exact sign test by task; Holm over solvers",
            "the analysis `versus`",
            "versus",
        ),
        Case(NOT_APPLICABLE, "no difference was tested"),
    ),
    "uncertainty": (
        Case(
            YES,
            "intervals of the primary analysis `{primary}` and of {other_intervals} others",
            "primary_interval",
        ),
        Case(
            PARTIAL,
            "the primary analysis has no interval; analyses with intervals: {with_intervals}",
            "with_intervals",
        ),
        Case(NO, "the primary analysis has no interval; analyses with intervals: 0"),
    ),
    "estimates": (
        Case("{estimated}", "analyses with numbers: {with_numbers}, with intervals: {with_intervals}"),
    ),
    "measure": _measured("solved and score of the same judge, by task id"),
    "criteria_of_scores": _measured("the same failing tests, by task id"),
    "method_of_scores": _measured("the same judge runs the tests in the sandbox"),
    "robust": (
        Case(NOT_APPLICABLE, "no attempt was excluded", "none_excluded"),
        Case(
            PARTIAL,
            "the analysis `sensitivity` prints the primary estimate without each rule; "
            "whether they agree is for the reader",
            "sensitivity",
        ),
    ),
    # Documentation
    "demographics": (
        Case(
            PARTIAL,
            "questionnaires before the tasks filled in: {demographics}; they ask for experience",
            "demographics",
        ),
        Case(NO, "questionnaires before the tasks filled in: 0; they ask for experience"),
    ),
    "instructions_reported": (
        Case(PARTIAL, f"{_BRIEF_HASHES}; {{public_export}}", "public_export"),
        Case(PARTIAL, _BRIEF_HASHES),
    ),
    "times": (
        Case(YES, "analyses in this report: {timed_names}", "timed"),
        Case(NO, "analyses in this report: none"),
    ),
    "assistants": (
        Case(NOT_APPLICABLE, "no condition gives people a model", "no_chats"),
        Case(YES, "study.toml: {chats}", "chats_all_named"),
        Case(PARTIAL, "study.toml: {chats}"),
    ),
    "unfinished": (
        Case(
            "{unfinished:g} of {people/planned:g}",
            "people with a plan whose tasks have not all ended, according to the log",
        ),
    ),
    "individual": (
        Case(
            PARTIAL,
            "{public_export} tells people apart by pseudonyms; where it was published is not recorded",
            "public_export",
        ),
        Case(NO, "no public export is in the log"),
    ),
}

RULES: Mapping[str, Rule] = {name: partial(_answer, cases) for name, cases in _CASES.items()}
"""The rules by their names in `checklist.toml`."""
