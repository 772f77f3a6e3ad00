"""What a study's log, journals and declaration answer of the checklist, each answer with its evidence.

A rule returns None where nothing shows the answer. "Yes" needs an operation, a hash or a count that shows it;
where the program can only show a part, the answer is "Partial".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gistpoint.core.study.checklist_evidence import (
    NO,
    NOT_APPLICABLE,
    PARTIAL,
    YES,
    ChecklistEvidence,
    EvidencedAnswer,
    numbers_of,
    operation_words,
    span,
)
from gistpoint.core.study.declaration import Assistance, QuestionKind
from gistpoint.core.study.operations import PowerTold, StudyOperation, StudyOperationKind
from gistpoint.core.study.prose import children

_NO_MODELS = "no attempt of a model counts in this study"


Rule = Callable[[ChecklistEvidence], EvidencedAnswer | None]


def _of_models(rule: Rule) -> Rule:
    """Return a rule that does not apply to a study without models."""

    def asked(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
        if evidence.models:
            return rule(evidence)
        return EvidencedAnswer(NOT_APPLICABLE, _NO_MODELS)

    return asked


def _declared(key: str, words: str, source: str) -> Rule:
    """Return a rule whose answer is `words`, or the text itself, if the declaration has the text."""

    def asked(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
        text = str(evidence.facts.get(key, ""))
        if text:
            return EvidencedAnswer(words or text, f"study.toml: {source}")
        return None

    return asked


# The evaluation and the design of the baseline


def _title(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    title = evidence.data.study.title
    if title:
        return EvidencedAnswer(title, "study.toml: title, of the study")
    return None


def _kind(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    with_tools = sum(bool(task.tools) for task in evidence.data.tasks.values())
    return EvidencedAnswer("Capabilities, Agent", f"tasks with tools: {with_tools} of {len(evidence.data.tasks)}")


def _media(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    return EvidencedAnswer("Text", "every tool of gistpoint takes and returns text")


def _dataset(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    opened = evidence.operation(StudyOperationKind.OPENED)
    source = f", listed in {operation_words(opened)}" if opened else ""
    return EvidencedAnswer(str(len(evidence.data.tasks)), f"tasks of the study{source}")


def _model_items(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    return EvidencedAnswer(
        str(len({row.task for row in evidence.models})), f"{len(evidence.models)} counted attempts of models"
    )


def _model_samples(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    solvers = children(evidence.facts, "solvers")
    spans = [
        f"{name}: {evidence.number(f'solvers/{name}/least_repeats'):g} to "
        f"{evidence.number(f'solvers/{name}/most_repeats'):g}"
        for name in solvers
    ]
    return EvidencedAnswer("; ".join(spans), "counted attempts for each task")


def _people(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    return EvidencedAnswer(
        str(evidence.persons),
        f"enrolled: {evidence.number('people/enrolled'):g}; with counted attempts: this number",
    )


def _people_items(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    return EvidencedAnswer(
        str(len({row.task for row in evidence.people})), f"{len(evidence.people)} counted attempts of people"
    )


def _sampling(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    if len({row.task for row in evidence.people}) == len(evidence.data.tasks):
        return EvidencedAnswer(NOT_APPLICABLE, "people attempted every task")
    return None


def _people_samples(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    target = evidence.data.study.design.target_per_task
    return EvidencedAnswer(
        span(numbers_of(evidence.people, "task")),
        f"counted attempts for each task; the design aimed at {target} in a condition",
    )


def _items_per_person(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    planned = evidence.data.study.design.tasks_per_person
    return EvidencedAnswer(
        span(numbers_of(evidence.people, "participant")),
        f"counted attempts of each person; the design says {planned}",
    )


def _alike(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    briefs = evidence.compared("brief_sha256")
    tools = evidence.compared("tools_sha256")
    best = YES if briefs.all_equal and tools.all_equal else PARTIAL
    return EvidencedAnswer(best, f"hashes of briefs {briefs.words}; of tools {tools.words}")


def _tried_out(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    roles = [row.role for row in evidence.data.rows if row.role in ("qa", "author")]
    if roles:
        return EvidencedAnswer(PARTIAL, f"attempts by authors or for quality assurance: {len(roles)}, in no estimate")
    return None


def _effort(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    limited = [row for row in (*evidence.people, *evidence.models) if row.tool_use_budget or row.time_limit_s]
    of = len(evidence.people) + len(evidence.models)
    if not limited:
        return None
    words = f"attempts with a budget of tool uses or a time limit: {len(limited)} of {of}"
    if not evidence.models:
        return EvidencedAnswer(PARTIAL, f"{words}; {_NO_MODELS}")
    keys = evidence.compared("tool_use_budget")
    whole = len(limited) == of and keys.all_equal
    return EvidencedAnswer(YES if whole else PARTIAL, f"{words}; budgets of people and models {keys.words}")


def _power(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    operation = evidence.operation(StudyOperationKind.POWER)
    opened = evidence.operation(StudyOperationKind.OPENED)
    if operation is None:
        said = evidence.data.study.protocol.power
        if said:
            return EvidencedAnswer(PARTIAL, "study.toml: protocol.power says it in words, no figures are in the log")
        return None
    before = opened is None or operation.utc_ms <= opened.utc_ms
    return EvidencedAnswer(
        YES if before else PARTIAL,
        f"{operation_words(operation)}, {'before' if before else 'after'} the study was opened",
    )


def _effect(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    operation = evidence.operation(StudyOperationKind.POWER)
    if operation is None:
        return None
    told = operation.read(PowerTold)
    lines = [_figure_words(figure) for figure in told.figures] if told is not None else []
    if not lines:
        return None
    what = f"{told.what}: " if told is not None and told.what else ""
    return EvidencedAnswer(f"{what}{'; '.join(lines)}"[:_LONGEST], operation_words(operation))


_LONGEST = 1000
"""Characters of an answer that a file gives."""


def _figure_words(figure: Mapping[str, Any]) -> str:
    known = [(str(name).replace("_", " "), value) for name, value in figure.items() if value is not None]
    return ", ".join(f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}" for name, value in known)


def _preregistered(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    address = evidence.data.study.protocol.preregistration
    opened = evidence.operation(StudyOperationKind.OPENED)
    if not address:
        return None
    if opened is None:
        return EvidencedAnswer(PARTIAL, f"{address}; the study has not been opened")
    people = evidence.data.ledger.people.values()
    first = min(
        (begun.utc_ms for one in people for facts in one.begun.values() for begun in facts),
        default=opened.utc_ms,
    )
    if first < opened.utc_ms:
        return EvidencedAnswer(PARTIAL, f"{address}; an attempt began before {operation_words(opened)}")
    return EvidencedAnswer(
        YES,
        f"{address}; {operation_words(opened)} precedes the first attempt, and its protocol hash holds the address",
    )


# People


def _screening(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    form = evidence.data.study.participants.screening
    if form:
        return EvidencedAnswer(
            YES,
            f"the questionnaire {form} ends the session of who does not qualify; "
            f"filled in {evidence.answered(form)} times",
        )
    criteria = evidence.data.study.participants.criteria
    if criteria:
        return EvidencedAnswer(YES, "study.toml: participants.criteria")
    return None


def _screened_out(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    out = evidence.number("people/screened_out")
    declined = evidence.number("people/declined")
    return EvidencedAnswer(f"{out:g}", f"operations `screened_out`; {declined:g} more declined to consent")


def _authors(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    team = set(evidence.data.study.participants.team)
    own = {row.participant for row in evidence.people if row.participant in team or row.role == "author"}
    if own:
        return EvidencedAnswer(YES, f"people of the team with counted attempts: {len(own)} of {evidence.persons}")
    listed = f"study.toml names {len(team)} of the team" if team else "study.toml names nobody of the team"
    return EvidencedAnswer(NO, f"roles of the operations `enrolled`; {listed}")


def _unseen(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    excludes = {"exposed", "second_exposure"} & set(evidence.data.study.quality.exclude_on)
    asked = [form.id for form in evidence.data.study.questionnaire if {"sources-1", "after-task-1"} & set(form.use)]
    filled = sum(evidence.answered(form) for form in asked)
    words = f"first exposures only, by the log; excluding flags: {', '.join(sorted(excludes)) or 'none'}; "
    words += f"people were asked {filled} times whether they knew task or library"
    return EvidencedAnswer(YES if excludes and filled else PARTIAL, words)


def _training(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    rows = [row for row in evidence.data.rows if row.role == "training"]
    declared = len(evidence.data.study.training.tasks)
    if rows:
        return EvidencedAnswer(YES, f"attempts of training tasks: {len(rows)}")
    if declared:
        return EvidencedAnswer(PARTIAL, f"training tasks declared: {declared}, attempts of them: 0")
    return EvidencedAnswer(NO, "no training tasks are declared")


def _training_kind(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    declared = len(evidence.data.study.training.tasks)
    if not declared:
        return EvidencedAnswer(NOT_APPLICABLE, "no training tasks are declared")
    return EvidencedAnswer(
        f"{declared} training tasks on the same screens, with the outcomes of tests shown",
        "study.toml: training.tasks",
    )


def _pay(name: str, words: str = "") -> Rule:
    """Return a rule whose answer is `words`, or the sum as declared, if a pay is declared."""

    def asked(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
        text = str(getattr(evidence.data.study.participants.pay, name))
        if text:
            return EvidencedAnswer(words or text, f"study.toml: participants.pay.{name}")
        return None

    return asked


def _equal_pay(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    pay = evidence.data.study.participants.pay
    if pay.base:
        return EvidencedAnswer(YES if pay.equal else NO, "study.toml: participants.pay.equal")
    return None


def _unequal_pay(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    pay = evidence.data.study.participants.pay
    if pay.base and pay.equal:
        return EvidencedAnswer(NOT_APPLICABLE, "study.toml: participants.pay.equal")
    return None


# Execution


def _per_sitting(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    most = evidence.number("people/most_per_sitting")
    middle = evidence.number("people/median_per_sitting")
    return EvidencedAnswer(
        f"median {middle:g}, at most {most:g}",
        f"counted attempts by sitting; the design says at most {evidence.data.study.design.per_sitting}",
    )


def _order(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    plans = [known for known in evidence.data.ledger.operations if known.kind == StudyOperationKind.PLANNED]
    if not plans:
        return None
    return EvidencedAnswer(
        YES,
        f"{len(plans)} operations `planned`: order by keyed hashes of the seed {evidence.data.study.seed}",
    )


def _quality(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    rules = evidence.data.study.quality
    if not rules.exclude_on and not rules.reviewers:
        return EvidencedAnswer(PARTIAL, "flags are recorded, and none excludes; no reviewers")
    return EvidencedAnswer(
        YES,
        f"flags excluding by declaration: {len(rules.exclude_on)}; reviewers for each attempt: {rules.reviewers}",
    )


def _quality_criteria(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    rules = evidence.data.study.quality
    return EvidencedAnswer(
        ", ".join(rules.exclude_on) or "none", "study.toml: quality.exclude_on, hashed with the protocol"
    )


def _excluded(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    by_rule = [f"{name} {evidence.number(f'exclusions/{name}'):g}" for name in children(evidence.facts, "exclusions")]
    of = evidence.number("attempts/people")
    return EvidencedAnswer(
        f"{evidence.number('attempts/excluded'):g} of {of:g}", "by rule: " + (", ".join(by_rule) or "none")
    )


def _interface(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    tools = evidence.compared("tools_sha256")
    comforts = sum(sum(row.comforts.values()) for row in evidence.people)
    return EvidencedAnswer(
        PARTIAL,
        f"people had a terminal, models an API; hashes of tools {tools.words}; "
        f"affordances of people counted: {comforts}",
    )


def _graphical(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    return EvidencedAnswer("Checked", "people used gistpoint's terminal screens, models their tools by API")


def _interface_adjusted(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    off = sorted({name for one in evidence.data.study.condition for name in one.comforts_off})
    return EvidencedAnswer(
        PARTIAL,
        f"tools return the same text to both; switched off for people: {', '.join(off) or 'nothing'}; "
        "the rest is counted",
    )


def _instructions(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    found = evidence.compared("brief_sha256")
    return EvidencedAnswer(
        YES if found.all_equal else PARTIAL if found.equal else NO, f"hashes of briefs {found.words}"
    )


def _instructions_adjusted(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    found = evidence.compared("brief_sha256")
    if found.all_equal:
        return EvidencedAnswer(NOT_APPLICABLE, f"hashes of briefs {found.words}")
    return None


def _tools(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    found = evidence.compared("tools_sha256")
    return EvidencedAnswer(YES if found.all_equal else PARTIAL if found.equal else NO, f"hashes of tools {found.words}")


def _enforced(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    off = sum("external_editor" in one.comforts_off for one in evidence.data.study.conditions_of_people)
    attested = sum(evidence.answered(form.id) for form in evidence.data.study.questionnaire if "aids-1" in form.use)
    backends = ", ".join(children(evidence.facts, "backends")) or "none recorded"
    return EvidencedAnswer(
        PARTIAL,
        f"backends: {backends}; conditions without an external editor: {off}; "
        f"people attested {attested} times which aids they had used; "
        "what people did outside of the program is not recorded",
    )


def _explanations(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    forms = {
        form.id
        for form in evidence.data.study.questionnaire
        if form.at == "after_task"
        and ("after-task-1" in form.use or any(q.kind is QuestionKind.TEXT for q in form.item))
    }
    filled = sum(evidence.answered(form) for form in forms)
    return EvidencedAnswer(
        YES if filled else NO,
        f"questionnaires after tasks with a question in words: {len(forms)}, filled in {filled} times",
    )


# Analysis


def _tested(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    done = "versus" in evidence.estimated.intervals
    return EvidencedAnswer(
        YES if done else NO,
        f"the analysis `versus` {'has' if done else 'has no'} intervals and tests in this report",
    )


def _which_test(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    if "versus" not in evidence.estimated.intervals:
        return EvidencedAnswer(NOT_APPLICABLE, "no difference was tested")
    return EvidencedAnswer(
        "two-way jackknife interval of the difference; exact sign test by task; Holm over solvers",
        "the analysis `versus`",
    )


def _uncertainty(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    estimated = evidence.estimated
    if estimated.primary in estimated.intervals:
        return EvidencedAnswer(
            YES,
            f"intervals of the primary analysis `{estimated.primary}` and of {len(estimated.intervals) - 1} others",
        )
    some = len(estimated.intervals)
    return EvidencedAnswer(
        PARTIAL if some else NO, f"the primary analysis has no interval; analyses with intervals: {some}"
    )


def _estimates(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    kinds = (["point"] if evidence.estimated.numbers else []) + (["interval"] if evidence.estimated.intervals else [])
    return EvidencedAnswer(
        " and ".join(kinds) or "none",
        f"analyses with numbers: {len(evidence.estimated.numbers)}, "
        f"with intervals: {len(evidence.estimated.intervals)}",
    )


def _measured_alike(what: str) -> Rule:
    def asked(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
        own = sum(bool(row.journal_head) for row in evidence.models)
        of = len(evidence.models)
        words = f"{what}; attempts of models with a journal of gistpoint's own: {own} of {of}"
        return EvidencedAnswer(YES if own == of else PARTIAL, words)

    return asked


def _robust(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    if not evidence.number("attempts/excluded"):
        return EvidencedAnswer(NOT_APPLICABLE, "no attempt was excluded")
    if "sensitivity" not in evidence.estimated.numbers:
        return None
    return EvidencedAnswer(
        PARTIAL,
        "the analysis `sensitivity` prints the primary estimate without each rule; "
        "whether they agree is for the reader",
    )


# Documentation


def _demographics(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    filled = sum(evidence.answered(form.id) for form in evidence.data.study.questionnaire if form.at == "before")
    return EvidencedAnswer(
        PARTIAL if filled else NO,
        f"questionnaires before the tasks filled in: {filled}; they ask for experience",
    )


def _instructions_reported(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    exported = _public_export(evidence)
    known = len({row.brief_sha256 for row in evidence.people if row.brief_sha256})
    words = f"hashes of briefs recorded: {known}; rules and consent are part of the protocol's hash"
    return EvidencedAnswer(PARTIAL, f"{words}; {operation_words(exported)}" if exported else words)


def _times(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    timed = sorted({"bp-4.4", "time-km", "time-tasks"} & evidence.estimated.numbers)
    return EvidencedAnswer(YES if timed else NO, f"analyses in this report: {', '.join(timed) or 'none'}")


def _assistants(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    chats = [one for one in evidence.data.study.condition if one.assistance is Assistance.CHAT]
    if not chats:
        return EvidencedAnswer(NOT_APPLICABLE, "no condition gives people a model")
    named = [one.chat.model for one in chats if one.chat.model]
    listed = "; ".join(f"{one.id}: {one.chat.model or 'not named'}" for one in chats)
    return EvidencedAnswer(YES if len(named) == len(chats) else PARTIAL, f"study.toml: {listed}")


def _unfinished(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    planned = evidence.number("people/planned")
    done = evidence.number("people/done")
    return EvidencedAnswer(
        f"{planned - done:g} of {planned:g}", "people with a plan whose tasks have not all ended, by the log"
    )


def _public_export(evidence: ChecklistEvidence) -> StudyOperation | None:
    found = (known for known in evidence.data.ledger.operations if known.kind == StudyOperationKind.EXPORTED)
    return next((known for known in found if known.data.get("public")), None)


def _individual(evidence: ChecklistEvidence) -> EvidencedAnswer | None:
    exported = _public_export(evidence)
    if exported is None:
        return EvidencedAnswer(NO, "no public export is in the log")
    return EvidencedAnswer(
        PARTIAL,
        f"{operation_words(exported)} tells people apart by pseudonyms; where it was published is not recorded",
    )


RULES: Mapping[str, Rule] = {
    "title": _title,
    "kind": _kind,
    "media": _media,
    "dataset": _dataset,
    "model_items": _of_models(_model_items),
    "model_samples": _of_models(_model_samples),
    "people": _people,
    "people_items": _people_items,
    "sampling": _sampling,
    "people_samples": _people_samples,
    "items_per_person": _items_per_person,
    "alike": _of_models(_alike),
    "tried_out": _tried_out,
    "effort": _effort,
    "power": _power,
    "effect": _effect,
    "preregistered": _preregistered,
    "population": _declared("people/population", YES, "participants.population"),
    "population_by": _declared("people/criteria", "", "participants.criteria"),
    "recruitment": _declared("people/recruitment", "", "participants.recruitment"),
    "screening": _screening,
    "criteria": _declared("people/criteria", "", "participants.criteria"),
    "screened_out": _screened_out,
    "authors": _authors,
    "unseen": _unseen,
    "training": _training,
    "training_kind": _training_kind,
    "training_paid": _pay("training", YES),
    "training_pay": _pay("training"),
    "paid": _pay("base", YES),
    "pay": _pay("base"),
    "bonus": _pay("bonus", YES),
    "bonus_amount": _pay("bonus"),
    "equal_pay": _equal_pay,
    "unequal_pay": _unequal_pay,
    "per_sitting": _per_sitting,
    "order": _order,
    "quality": _quality,
    "quality_criteria": _quality_criteria,
    "excluded": _excluded,
    "interface": _of_models(_interface),
    "graphical": _of_models(_graphical),
    "interface_adjusted": _of_models(_interface_adjusted),
    "instructions": _of_models(_instructions),
    "instructions_adjusted": _of_models(_instructions_adjusted),
    "tools": _of_models(_tools),
    "enforced": _enforced,
    "explanations": _explanations,
    "tested": _of_models(_tested),
    "which_test": _of_models(_which_test),
    "uncertainty": _uncertainty,
    "estimates": _estimates,
    "measure": _of_models(_measured_alike("solved and score of the same judge, by task id")),
    "criteria_of_scores": _of_models(_measured_alike("the same failing tests, by task id")),
    "method_of_scores": _of_models(_measured_alike("the same judge runs the tests in the sandbox")),
    "robust": _robust,
    "demographics": _demographics,
    "instructions_reported": _instructions_reported,
    "times": _times,
    "assistants": _assistants,
    "unfinished": _unfinished,
    "individual": _individual,
}
"""By the name that `checklist.toml` gives."""
