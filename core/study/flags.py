"""Flags attempts: a flag is a fact to consider before an attempt counts, with the events that show it.

A flag changes no number. Flags that the study lists in `exclude_on` exclude attempts; others inform
reviewers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from gistpoint.core.attempts.clock import SLEEP_THRESHOLD_MS, ClockActivity
from gistpoint.core.attempts.events import (
    AffordanceUsed,
    AssistAsked,
    AttemptEnded,
    AttemptStarted,
    CallAnswered,
    CallMade,
    Crashed,
    EventData,
    IdlePrompted,
    JournalEvent,
    ModelTurn,
    PassConfirmed,
    ProcessStarted,
    SubmissionMade,
    SubmissionRun,
)
from gistpoint.core.attempts.reasons import EndReason
from gistpoint.core.canonical import sha256_of_text
from gistpoint.core.kinds.registry import declared
from gistpoint.core.readable import percent_words, whole_seconds
from gistpoint.core.study.bank import AIDS
from gistpoint.core.study.declaration import Moment
from gistpoint.core.study.evidence import AttemptEvidence
from gistpoint.core.study.rows import FlagRow
from gistpoint.core.study.timeline import ON_THE_CLOCK, FirstTime, milliseconds
from gistpoint.core.tools.declaration import Group

LARGE_PASTE = 80
"""The length, in characters, above which a paste is flagged if no result had shown its text."""
_EVENTS = 20
"""The maximum number of events that one flag lists."""
SEEN = "seen_before"
"""The id of the bank's question on whether the task or its fix was known."""
_YES = frozenset({"yes", "true", "1", 1})

Finder = Callable[[AttemptEvidence], Iterable[FlagRow]]


def flags_of(evidence: AttemptEvidence) -> tuple[FlagRow, ...]:
    """Return the flags of an attempt, in the order of `FLAGS`."""
    return tuple(flag for find in FLAGS.values() for flag in find(evidence))


def _chain_broken(evidence: AttemptEvidence) -> Iterator[FlagRow]:
    fault = evidence.recorded.fault or evidence.timeline.problem
    if fault:
        last = evidence.recorded.events[-1].seq if evidence.recorded.events else 0
        yield FlagRow(flag="chain_broken", events=(last,), words=fault)


def _not_isolated(evidence: AttemptEvidence) -> Iterator[FlagRow]:
    found = []
    for event in evidence.recorded.events:
        match event.data:
            case AttemptStarted(backend=backend) | SubmissionRun(backend=backend):
                if backend and not backend.isolated:
                    found.append(event)
    yield from _flag("not_isolated", found, "Code ran without isolation.")


def _wrong_protocol(evidence: AttemptEvidence) -> Iterator[FlagRow]:
    wanted = evidence.protocol_then
    found = evidence.protocol_sha256
    if evidence.by_model or not wanted:
        return
    if found != wanted:
        recorded = f"begun under {found[:12]}" if found else "begun without one"
        yield FlagRow(
            flag="wrong_protocol",
            events=(1,),
            words=f"Protocol {wanted[:12]} was in force, but the attempt was {recorded}.",
        )


def _wrong_brief(evidence: AttemptEvidence) -> Iterator[FlagRow]:
    header = evidence.header
    wanted = evidence.recorded.brief_sha256
    if header.brief and header.brief_sha256 != sha256_of_text(header.brief):
        yield FlagRow(flag="wrong_brief", events=(1,), words="The brief does not have the recorded hash.")
    elif wanted and header.brief_sha256 != wanted:
        yield FlagRow(
            flag="wrong_brief", events=(1,), words="The task has a different brief in this condition."
        )


def _wrong_tools(evidence: AttemptEvidence) -> Iterator[FlagRow]:
    wanted = evidence.recorded.tools_sha256
    found = evidence.header.extra.get("tools_sha256")
    if wanted and found != wanted:
        yield FlagRow(
            flag="wrong_tools", events=(1,), words="The task has different tools in this condition."
        )


def _exposed(evidence: AttemptEvidence) -> Iterator[FlagRow]:
    if evidence.by_model:
        return
    for exposure in evidence.person.exposures:
        of_library = exposure.source != "" and exposure.source == evidence.task.source
        if of_library or exposure.task == evidence.task.id:
            yield FlagRow(
                flag="exposed", words=f"Seen before: {exposure.how or exposure.source or 'this task'}."
            )
            return
    if _answered_yes(evidence, (SEEN,)):
        yield FlagRow(flag="exposed", words="The participant had already seen the task or its fix.")


def _second_exposure(evidence: AttemptEvidence) -> Iterator[FlagRow]:
    if not evidence.is_first_exposure:
        yield FlagRow(flag="second_exposure", events=(1,), words="This person had already begun the task.")


def _aid_admitted(evidence: AttemptEvidence) -> Iterator[FlagRow]:
    admitted = _answered_yes(evidence, AIDS)
    if admitted:
        yield FlagRow(flag="aid_admitted", words=f"Admitted: {', '.join(admitted)}.")


def _answered_yes(evidence: AttemptEvidence, questions: Collection[str]) -> list[str]:
    """Return the columns of this task's answers to the given questions in which the answer is yes."""
    answers = evidence.task_answers
    asked = [column for column in answers if column.rpartition(".")[2] in questions]
    return [column for column in asked if _says_yes(answers[column])]


def _rules_unattested(evidence: AttemptEvidence) -> Iterator[FlagRow]:
    by_person = not evidence.by_model and evidence.state.ended
    if not by_person or evidence.assignment is None:
        return
    for form in evidence.study.questionnaires_at(Moment.AFTER_TASK):
        attests = any(item.id in AIDS for item in form.item)
        if attests and evidence.person.answers(form.id, evidence.assignment.id) is None:
            yield FlagRow(flag="rules_unattested", words="Nobody attested that the rules were kept.")
            return


def _fast(evidence: AttemptEvidence) -> Iterator[FlagRow]:
    solved = evidence.timeline.firsts.get(FirstTime.SOLVED)
    least = evidence.study.quality.flag_fast_s
    if solved is None or evidence.by_model:
        return
    if solved.active_ms < least * 1000:
        words = f"Solved after {whole_seconds(solved.active_ms)} s of work, less than {least} s."
        yield FlagRow(flag="fast", events=(solved.seq,), words=words)


def _idle_share(evidence: AttemptEvidence) -> Iterator[FlagRow]:
    spans = evidence.timeline.corrected(evidence.notes.corrections)
    idle = milliseconds(spans, (ClockActivity.IDLE,))
    total = idle + milliseconds(spans, ON_THE_CLOCK["active"])
    if evidence.by_model or not total:
        return
    if idle / total > evidence.study.quality.flag_idle_share:
        prompts = _events_of_kind(evidence, IdlePrompted)
        words = f"{percent_words(idle / total)} of the working time was idle."
        yield from _flag("idle_share", prompts, words, least=0)


def _clock_jump(evidence: AttemptEvidence) -> Iterator[FlagRow]:
    jumps = [
        now for before, now in _pairs(evidence.recorded.events) if _drift(before, now) < -SLEEP_THRESHOLD_MS
    ]
    yield from _flag("clock_jump", jumps, "The machine's clock was set back.")


def _slept(evidence: AttemptEvidence) -> Iterator[FlagRow]:
    gaps = [
        now for before, now in _pairs(evidence.recorded.events) if _drift(before, now) > SLEEP_THRESHOLD_MS
    ]
    seconds = evidence.state.clock.asleep / 1000
    yield from _flag("slept", gaps, f"The machine slept, or its clock was set forward, by {seconds:.0f} s.")


def _pairs(events: Iterable[JournalEvent]) -> Iterator[tuple[JournalEvent, JournalEvent]]:
    """Yield pairs of consecutive events of one process; confirmations of passes are left out."""
    before: JournalEvent | None = None
    for event in events:
        if isinstance(event.data, PassConfirmed):  # a confirmation follows the end, perhaps on another day
            continue
        if before is not None and not isinstance(event.data, ProcessStarted):
            yield before, event
        before = event


def _drift(before: JournalEvent, now: JournalEvent) -> int:
    return (now.utc_ms - before.utc_ms) - max(0, now.mono_ms - before.mono_ms)


def _crashed(evidence: AttemptEvidence) -> Iterator[FlagRow]:
    yield from _flag("crashed", _events_of_kind(evidence, Crashed), "The program failed.")


def _suspicious_names(evidence: AttemptEvidence) -> Iterator[FlagRow]:
    names = evidence.state.suspicious
    ruling = evidence.recorded.accepted
    if names and ruling is None:
        found = [
            event
            for event in _events_of_kind(evidence, SubmissionRun)
            if getattr(event.data, "suspicious", ())
        ]
        found += _events_of_kind(evidence, PassConfirmed)
        words = f"Somebody must read the pass before it counts as solved: {', '.join(names[:5])}."
        yield from _flag("suspicious_names", found, words)


def _large_paste(evidence: AttemptEvidence) -> Iterator[FlagRow]:
    found = []
    for event in evidence.recorded.events:
        match event.data:
            case AffordanceUsed(kind="paste", characters=characters, shown=shown):
                if not shown and (characters or 0) > LARGE_PASTE:
                    found.append(event)
    yield from _flag(
        "large_paste", found, f"More than {LARGE_PASTE} characters were pasted that no result had shown."
    )


def _external_editor(evidence: AttemptEvidence) -> Iterator[FlagRow]:
    used = _events_of_kind(evidence, AffordanceUsed)
    found = [event for event in used if getattr(event.data, "kind", "") == "external_editor"]
    yield from _flag("external_editor", found, "The participant used an external editor.")


def _assist_failed(evidence: AttemptEvidence) -> Iterator[FlagRow]:
    answered = [event for event in evidence.recorded.events if event.type == "assist_answered"]
    found = [event for event in answered if event.data.written().get("problem")]
    yield from _flag("assist_failed", found, "The assistant did not answer.")


def _infrastructure_retry(evidence: AttemptEvidence) -> Iterator[FlagRow]:
    found = []
    for event in evidence.recorded.events:
        match event.data:
            case SubmissionRun(counts=counts) if not counts:
                found.append(event)
            case ModelTurn(retried=retried) if retried:
                found.append(event)
    yield from _flag("infrastructure_retry", found, "The harness failed, and a step was repeated.")


def _low_effort(evidence: AttemptEvidence) -> Iterator[FlagRow]:
    """Yield a flag if the attempt submits, or is given up, before any information call or message."""
    answers = [event.data for event in _events_of_kind(evidence, CallAnswered)]
    refused = {data.call_id for data in answers if isinstance(data, CallAnswered) and data.refused}
    for event in evidence.recorded.events:
        match event.data:
            case CallMade(call_id=call_id, tool=name) if call_id not in refused and _is_look(name):
                return
            case AssistAsked():
                return
            case SubmissionMade():
                yield FlagRow(
                    flag="low_effort", events=(event.seq,), words="Submitted without reading anything."
                )
                return
            case AttemptEnded(reason=EndReason.GAVE_UP | EndReason.SKIPPED):
                yield FlagRow(
                    flag="low_effort", events=(event.seq,), words="Given up without reading anything."
                )
                return


def _is_look(name: str) -> bool:
    tool = declared(name)
    if tool is None or tool.writes_gist:
        return False
    return tool.group is Group.INFO


FLAGS: Mapping[str, Finder] = {
    "chain_broken": _chain_broken,
    "not_isolated": _not_isolated,
    "wrong_protocol": _wrong_protocol,
    "wrong_brief": _wrong_brief,
    "wrong_tools": _wrong_tools,
    "exposed": _exposed,
    "second_exposure": _second_exposure,
    "aid_admitted": _aid_admitted,
    "rules_unattested": _rules_unattested,
    "fast": _fast,
    "idle_share": _idle_share,
    "clock_jump": _clock_jump,
    "slept": _slept,
    "crashed": _crashed,
    "suspicious_names": _suspicious_names,
    "large_paste": _large_paste,
    "external_editor": _external_editor,
    "assist_failed": _assist_failed,
    "infrastructure_retry": _infrastructure_retry,
    "low_effort": _low_effort,
}
"""The function for each flag, by the name that a study can list in `exclude_on`."""
OF_PASSES = frozenset({"fast", "suspicious_names"})
"""The flags that only an attempt with a passing submission can have; hidden like outcomes (decision 171)."""


def _says_yes(value: object) -> bool:
    answer = value.strip().lower() if isinstance(value, str) else value
    return isinstance(answer, str | int | bool) and answer in _YES


def _events_of_kind(evidence: AttemptEvidence, kind: type[EventData]) -> list[JournalEvent]:
    return [event for event in evidence.recorded.events if isinstance(event.data, kind)]


def _flag(name: str, events: Iterable[JournalEvent], words: str, *, least: int = 1) -> Iterator[FlagRow]:
    """Yield a flag with its events, unless there are fewer than `least`."""
    found = [event.seq for event in events]
    if len(found) >= least:
        yield FlagRow(flag=name, events=tuple(found[:_EVENTS]), words=words)
