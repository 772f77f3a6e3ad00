"""Computes the row of an attempt, with all of its numbers, from its journal and the log.

All functions are pure. Times are seconds of the solver's own time at an event. Corrections re-label spans of
the timeline; rows contain the uncorrected times as well, so that every correction is visible (decision 81).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from gistpoint.core.attempts.clock import ACTIVE
from gistpoint.core.attempts.identity import Role
from gistpoint.core.attempts.parts import AttemptCall, Submission
from gistpoint.core.attempts.reasons import EndReason
from gistpoint.core.attempts.results import standing_in
from gistpoint.core.attempts.state import AttemptResult, AttemptState, attempt_result
from gistpoint.core.kinds.confirming import confirmation_words
from gistpoint.core.kinds.measures import MeasuredAttempt
from gistpoint.core.kinds.registry import declared
from gistpoint.core.readable import utc_datetime
from gistpoint.core.study.data import ReviewDecision, ReviewerDecision
from gistpoint.core.study.declaration import Assistance, Condition, DisputeRule
from gistpoint.core.study.evidence import AttemptEvidence
from gistpoint.core.study.exclusions import ACTOR, ROLE, TRAINING_TASK
from gistpoint.core.study.flags import flags_of
from gistpoint.core.study.operations import Sitting
from gistpoint.core.study.rows import JUDGED, AttemptRow, CallRow, FlagRow, SubmissionRow
from gistpoint.core.study.timeline import ON_THE_CLOCK, FirstTime, milliseconds

NO_ROW = frozenset({EndReason.INFRASTRUCTURE, EndReason.WITHDRAWN, EndReason.DISQUALIFIED})
"""Ends that carry no information on the task: such attempts appear only in the participant flow."""
_COMPETING = frozenset({EndReason.GAVE_UP, EndReason.SKIPPED})
CENSORED = "censored"
COMPETING = "competing"
_DESIGN = frozenset({"unfinished", "mixed", "not_assigned", "returned", "second_exposure", TRAINING_TASK})
_SIMULATED = "simulated"


def measured(evidence: AttemptEvidence) -> AttemptRow:
    """Return the row of an attempt's measurements."""
    state = evidence.state
    header = evidence.header
    task = evidence.task
    flags = flags_of(evidence)
    exclusion = exclusion_of(evidence, flags)
    solved = is_solved(evidence)
    return AttemptRow(
        attempt=header.attempt_id,
        study=evidence.study.id,
        simulated=header.actor == _SIMULATED or evidence.study.simulated,
        **_made_by(evidence),
        task=task.id,
        source=task.source,
        mode=task.mode,
        condition=evidence.condition,
        condition_key=condition_key(evidence),
        assignment=header.assignment or "",
        position=evidence.assignment.position if evidence.assignment else None,
        sitting=_sitting(evidence),
        role=header.role,
        counted=not exclusion,
        exclusion=exclusion,
        end=state.ending.reason if state.ending else "",
        end_code=state.ending.code if state.ending else "",
        solved=solved,
        by_tests=state.solved,
        verdict_from=JUDGED if state.ended else "",
        confirmation=str(standing_in(confirmation_words(state), passes=False) or ""),
        **_scores(evidence),
        tool_uses=max(0, state.budgets.tool_uses - state.remaining.tool_uses),
        submissions=len(state.counted_submissions),
        tool_use_budget=state.budgets.tool_uses,
        submission_budget=state.budgets.submissions,
        time_limit_s=_optional(state.budgets.time_limit_s),
        **_times(evidence, solved=solved),
        censored=_censored(evidence, solved=solved),
        comforts=dict(state.affordances),
        **_assistance(evidence),
        resumes=max(0, state.processes - 1),
        brief_sha256=header.brief_sha256,
        tools_sha256=_text(header.extra.get("tools_sha256")),
        protocol_sha256=evidence.protocol_sha256,
        backend=header.backend.name,
        gistpoint=header.gistpoint,
        journal_head=evidence.recorded.head,
        started_utc=utc_text(evidence.started_ms),
        **_spent(state),
        submitted=tuple(map(_submission, state.submissions)),
        calls=tuple(_call(call, state.submissions) for call in state.calls),
        flags=flags,
        answers=dict(evidence.task_answers),
    )


def _made_by(evidence: AttemptEvidence) -> dict[str, Any]:
    """Return the columns about who made the attempt; a model's run does not name a participant."""
    header = evidence.header
    by_model = evidence.by_model
    columns = {
        "actor": "model" if by_model else header.actor,
        "participant": "" if by_model else header.participant or "",
        "stratum": "" if by_model else evidence.person.stratum,
        "solver": "",
        "scaffold": "",
    }
    if evidence.solver:
        columns["solver"] = evidence.solver.name
        columns["scaffold"] = evidence.solver.scaffold
    return columns


def _spent(state: AttemptState) -> dict[str, Any]:
    """Return the columns of a model's tokens and cost; None for an attempt without model turns."""
    if not state.turns:
        return {"tokens": None, "cost_usd": None}
    usage = state.spent.usage
    return {"tokens": usage.prompt_tokens + usage.completion_tokens, "cost_usd": usage.cost_usd}


def is_solved(evidence: AttemptEvidence) -> bool:
    """Return whether an attempt counts as solved.

    A suspicious pass counts once reviewers have accepted it; the task's kind must also accept the best
    submission.
    """
    if attempt_result(evidence.state, evidence.recorded.accepted) is not AttemptResult.SOLVED:
        return False
    best = evidence.state.best
    if best is None or evidence.kind is None:
        return True
    return evidence.kind.accepts(best)


def exclusion_of(evidence: AttemptEvidence, flags: Iterable[FlagRow]) -> str:
    """Return why an attempt does not count; empty if it does.

    An organiser's `included` overrides flags, reviewers and an earlier exclusion, but not an exclusion by
    design.
    """
    reason = _by_design(evidence)
    if reason:
        return reason
    notes = evidence.notes
    if notes.included is not None:
        return ""
    if notes.excluded is not None:
        return notes.excluded.reason or "excluded"
    quality = evidence.study.quality
    if reviewers_exclude(evidence.recorded.decisions, quality.rule):
        return "reviewers"
    return next((flag.flag for flag in flags if flag.flag in quality.exclude_on), "")


def excluded_by_design(exclusion: str) -> bool:
    """Return whether an exclusion follows from the design, so no rule or person can overturn it."""
    return exclusion in _DESIGN or exclusion in NO_ROW or exclusion.startswith((ROLE, ACTOR))


def reviewers_exclude(decisions: Iterable[ReviewerDecision], rule: DisputeRule) -> bool:
    """Return whether reviewers exclude an attempt.

    Depending on the rule, this requires a majority, any vote to exclude or, if the organiser decides
    disputes, unanimous votes: a disputed attempt then counts until the organiser excludes it. A reviewer who
    rejects only the pass thereby votes that the attempt counts, as not solved.
    """
    votes = Counter(review.decision for review in decisions)
    excluding = votes[ReviewDecision.EXCLUDE]
    accepting = votes.total() - excluding
    if rule is DisputeRule.MAJORITY:
        return excluding > accepting
    if rule is DisputeRule.ANY_EXCLUDE:
        return excluding > 0
    return excluding > 0 and accepting == 0


def _by_design(evidence: AttemptEvidence) -> str:
    """Return why an attempt does not count by the design; empty if the attempt counts."""
    state = evidence.state
    header = evidence.header
    if not state.ended:
        return "unfinished"
    if state.ending is not None and state.ending.reason in NO_ROW:
        return state.ending.reason
    if state.mixed:
        # A mixed attempt is neither a person's nor a model's (decision 79).
        return "mixed"
    # The role `demo` gives models no advantage in a repair; a gist of the demo shows its score (decision
    # 163).
    as_baseline = evidence.by_model and header.role == Role.DEMO and not state.of_kind.hands_in_once
    if header.role != Role.BASELINE and not as_baseline:
        return f"{ROLE}{header.role or 'unknown'}"
    if evidence.by_model:
        return ""
    return _not_assigned(evidence)


def _not_assigned(evidence: AttemptEvidence) -> str:
    """Return why a person's attempt is not the first at an assignment that counts; empty if it is."""
    person = evidence.person
    header = evidence.header
    if header.study != evidence.study.id or evidence.assignment is None:
        return "not_assigned"
    if header.actor != (_SIMULATED if evidence.study.simulated else "person"):
        return f"{ACTOR}{header.actor or 'unknown'}"
    if person.role != Role.BASELINE:
        return f"{ROLE}{person.role or 'unknown'}"
    if person.withdrawn is not None and person.withdrawn.data == "erase":
        return EndReason.WITHDRAWN.value
    if evidence.assignment.id in person.returned:
        return "returned"
    if evidence.is_first_exposure:
        return ""
    return "second_exposure"


def _censored(evidence: AttemptEvidence, *, solved: bool) -> str:
    ending = evidence.state.ending
    if solved or ending is None:
        return ""
    if ending.reason in NO_ROW:
        return ""
    if ending.reason in _COMPETING:
        return COMPETING
    return CENSORED


# Pooling


def condition_key(evidence: AttemptEvidence) -> str:
    """Return the condition's key in words; attempts are pooled only if their keys are equal.

    It contains tool uses, submissions, steps, time limit, names of the tools, template of the brief and help;
    and, after ` | `, a model's settings. The rendered brief is not part of it, because its hash differs
    between tasks.
    """
    header = evidence.header
    budgets = evidence.state.budgets
    uses = budgets.tool_uses
    steps = 0
    if evidence.state.of_kind.hands_in_once:
        uses = 0
        steps = budgets.tool_uses
    condition = evidence.study.condition_of(evidence.condition)
    names = tuple(header.tool_names) if header.tool_names else evidence.task.tools
    parts = [
        f"uses {uses}",
        f"submissions {budgets.submissions}",
        f"steps {steps}",
        f"limit {budgets.time_limit_s or 0} s",
        "+".join(names),
        _template(evidence),
        *_help(condition, header.written()),
    ]
    shared = " / ".join(filter(None, parts))
    if evidence.by_model:
        return f"{shared} | {_settings(header.solver or {})}"
    return shared


def _template(evidence: AttemptEvidence) -> str:
    settings = evidence.header.extra.get("gist_settings")
    recorded = settings.get("template") if isinstance(settings, Mapping) else None
    return _text(recorded) or evidence.task.template


def _help(condition: Condition | None, header: Mapping[str, Any]) -> list[str]:
    """Return the help that a condition offers beyond the task's tools, in words."""
    with_gist = bool(header.get("gist_help_sha256"))
    parts = list[str]()
    if condition is not None:
        with_gist = with_gist or bool(condition.gist_help)
        if condition.free:
            parts.append("free")
        if condition.assistance is not Assistance.NONE:
            chat = condition.chat
            parts.append(f"{condition.assistance} {chat.model} {chat.messages} messages {chat.tokens} tokens")
    if with_gist:
        parts.append("gist help")
    return parts


_SETTINGS = ("temperature", "top_p", "max_output_tokens", "reasoning_effort", "thinking_tokens")


def _settings(solver: Mapping[str, Any]) -> str:
    """Return a model's settings in words, without the seed, by which repeats differ."""
    parts = [f"{name} {solver[name]}" for name in ("setting", "system", "api", "calls") if solver.get(name)]
    sampling = solver.get("sampling")
    if isinstance(sampling, Mapping):
        parts += [f"{name} {sampling[name]}" for name in _SETTINGS if sampling.get(name) is not None]
    return ", ".join(parts) or "default settings"


# Scores and times


def _scores(evidence: AttemptEvidence) -> dict[str, Any]:
    """Return the columns of scores and of the kind's measures."""
    state = evidence.state
    kind = evidence.kind
    touched = evidence.timeline.touched
    scores = [submission.score for submission in state.counted_submissions]
    columns: dict[str, Any] = {
        "score": None,
        "best_score": max((score for score in scores if score is not None), default=None),
        "outcome_of_last": "",
        "measures": {},
    }
    if state.last:
        columns["score"] = state.last.score
        columns["outcome_of_last"] = state.last.status
    if kind is not None:
        columns["measures"] = dict(kind.measured(MeasuredAttempt(state, evidence.targets, touched)))
    return columns


def _times(evidence: AttemptEvidence, *, solved: bool) -> dict[str, Any]:
    """Return the columns of times, in seconds."""
    clock = evidence.state.clock
    timeline = evidence.timeline
    spans = timeline.corrected(evidence.notes.corrections)
    firsts = timeline.firsts
    end = firsts.get(FirstTime.SOLVED if solved else FirstTime.END)
    until = end.at_ms if end is not None else timeline.end_ms
    counted = ON_THE_CLOCK[evidence.study.protocol.primary_time]
    active, primary = milliseconds(spans, ACTIVE), milliseconds(spans, counted, until)
    given = None if evidence.notes.corrections else time_of_reviewers(evidence.recorded.decisions)
    if given is not None:
        # A reviewer corrects the solver's own time; waiting time is added as recorded.
        waiting = set(counted) - set(ACTIVE)
        active, primary = round(1000 * given), round(1000 * given) + milliseconds(spans, waiting, until)
    submitted = next((s.at_ms for s in evidence.state.submissions if s.counts), None)

    def when(what: FirstTime) -> float | None:
        if what in firsts:
            return seconds(firsts[what].active_ms)
        return None

    return {
        **{f"{name}_s": seconds(getattr(clock, name)) for name in _CLOCKS},
        "active_s": seconds(clock.active),
        "active_corrected_s": seconds(active),
        "primary_s": seconds(primary),
        "instructions_s": None if evidence.by_model else when(FirstTime.LEFT_BRIEF),
        "first_submission_s": seconds(submitted),
        "solved_s": when(FirstTime.SOLVED) if solved else None,
        "first_view_s": when(FirstTime.VIEW),
        "first_mark_s": when(FirstTime.MARK),
        "first_touch_s": when(FirstTime.TOUCH),
    }


def time_of_reviewers(decisions: Iterable[ReviewerDecision]) -> float | None:
    """Return the active time, in seconds, with which reviewers accept an attempt; None if none corrects it.

    Also None if they give different times: then the recorded time counts until an organiser corrects it
    (decision 163).
    """
    given = {one.active_s for one in decisions if one.active_s is not None}
    return given.pop() if len(given) == 1 else None


_CLOCKS = ("reading", "exploring", "editing", "waiting", "paused", "idle", "asleep", "away")


def seconds(ms: int | None) -> float | None:
    """Return milliseconds as seconds, without rounding; None stays None."""
    if ms is None:
        return None
    return ms / 1000


def utc_text(utc_ms: int) -> str:
    """Return a time in milliseconds of UTC as ISO 8601 with milliseconds; empty for 0."""
    if not utc_ms:
        return ""
    return utc_datetime(utc_ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _sitting(evidence: AttemptEvidence) -> int | None:
    if evidence.by_model:
        return None
    began = [fact for fact in evidence.person.facts.all(Sitting) if fact.state == "began"]
    return sum(fact.utc_ms <= evidence.started_ms for fact in began) or None


# Submissions, calls and help


def _submission(submission: Submission) -> SubmissionRow:
    return SubmissionRow(
        number=submission.number,
        at_s=seconds(submission.at_ms),
        counts=submission.counts,
        score=submission.score,
        solved=submission.solved,
        status=submission.status,
        changed=submission.changed,
    )


def _call(call: AttemptCall, submissions: Iterable[Submission]) -> CallRow:
    submitted = any(submission.call_id == call.call_id for submission in submissions)
    return CallRow(
        number=call.number,
        tool=call.tool,
        kind="submit" if submitted else call_kind(call.tool),
        at_s=seconds(call.at_ms),
        refused=call.refused,
        automatic=bool(call.automatic),
        seconds=call.duration_ms / 1000,
    )


def call_kind(name: str) -> str:
    """Return the kind of a call by its tool's name: view, search, execute, edit, submit or other."""
    tool = declared(name)
    if tool is None:
        return "other"
    if tool.submits:
        return "submit"
    if tool.step == "test":
        return "execute"
    return tool.step


def _assistance(evidence: AttemptEvidence) -> dict[str, Any]:
    """Return the columns of questions to the assistant, and of its tokens and cost."""
    asked = 0
    tokens = 0.0
    costs: list[float] = []
    for event in evidence.recorded.events:
        if event.type == "assist_asked":
            asked += 1
        usage = event.data.written().get("usage") if event.type == "assist_answered" else None
        if not isinstance(usage, Mapping):
            continue
        tokens += (_number(usage.get("prompt")) or 0) + (_number(usage.get("completion")) or 0)
        cost = _number(usage.get("cost_usd"))
        if cost is not None:
            costs.append(cost)
    return {
        "assist_messages": asked,
        "assist_tokens": int(tokens),
        "assist_cost_usd": sum(costs) if costs else None,
    }


def _number(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return None


def _optional(value: int | None) -> float | None:
    return None if value is None else float(value)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
