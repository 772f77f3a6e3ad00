"""The content of screens, computed only from the state, without widgets, files or a clock."""

from __future__ import annotations

from gistpoint.core.attempts.events import EndReason
from gistpoint.core.attempts.harness import Price
from gistpoint.core.attempts.identity import SHOWS_EVIDENCE
from gistpoint.core.attempts.results import Standing
from gistpoint.core.attempts.state import AttemptCall, AttemptResult, AttemptState, Submission, result_of
from gistpoint.core.kinds.commandline import spelled
from gistpoint.core.kinds.confirming import confirmation_words
from gistpoint.tui import signs

END_WORDS = {
    "solved": f"{signs.GOOD} solved",
    "submissions_exhausted": f"{signs.BAD} submissions used up",
    "calls_exhausted": f"{signs.BAD} tool uses used up",
    "steps_exhausted": f"{signs.BAD} steps used up",
    "time_cap": f"{signs.BAD} time is up",
    "gave_up": f"{signs.BAD} gave up",
    "skipped": f"{signs.SKIPPED} skipped",
    "final_wrong": f"{signs.BAD} final answer wrong",
    "infrastructure": "! infrastructure failed",
    "withdrawn": "! withdrawn",
    "disqualified": "! disqualified",
    "context_exhausted": f"{signs.BAD} context used up",
    "token_cap": f"{signs.BAD} tokens used up",
    "settled": f"{signs.BAD} halted, settled as not solved",
}
TO_BE_READ = "? solved, to be read"
REJECTED = f"{signs.BAD} solved, rejected"
LAST = " (THE LAST)"


def used_words(state: AttemptState) -> str:
    """Return the used part of the budget of calls, in words."""
    total = state.budgets.tool_uses
    return used_of(total - state.remaining.tool_uses, total)


def used_of(used: int, total: int) -> str:
    """Return the used part of a budget, in words."""
    return f"{used} used of {total}"


def call_words(call: AttemptCall, submission: Submission | None = None, folded: str = "") -> str:
    """Return a line for a call: a sign for its result or its submission's, its number, its request.

    `folded` is a line in place of the request and its answer; empty if there is none.
    """
    mark = "…" if call.text is None else signs.BAD if call.refused else "·"
    if submission is not None and submission.status:
        mark = submission_words(submission)[0]
    return f"{mark} {call.number:>2}  {folded or typed_form(call)}"


def typed_form(call: AttemptCall) -> str:
    """Return a call as it could be typed in the console."""
    return spelled(call.tool, {name: str(value) for name, value in call.arguments.items()})


def price_words(price: Price, state: AttemptState) -> str:
    """Return a call's price and the budget left after it, in a few words."""
    if price.scores:
        scores = state.remaining.scores
        return "costs no step" if scores is None else f"costs 1 score, leaves {max(0, scores - price.scores)}"
    left = state.remaining.spend(tool_uses=price.tool_uses, submissions=price.submissions)
    use = state.of_kind.unit
    uses = f"{price.tool_uses} {use}{'' if price.tool_uses == 1 else 's'}"
    text = f"costs {uses}, leaves {left.tool_uses}"
    if price.submissions and not state.of_kind.hands_in_once:
        text = f"costs {uses} and 1 submission; leaves {left.tool_uses} and {left.submissions}"
    return text + LAST if price.last_tool_use or price.last_submission else text


def shows_evidence(state: AttemptState) -> bool:
    """Return whether the screen may show more than tool results: after the attempt, or due to the role."""
    return state.ended or state.header.role in SHOWS_EVIDENCE


def allowed(state: AttemptState, affordance: str) -> bool:
    """Return whether an affordance is enabled in this attempt."""
    return affordance not in state.header.comforts_off


def isolation_warning(state: AttemptState) -> str:
    """Return a warning if the code under test runs without isolation, otherwise an empty string."""
    return (
        ""
        if state.header.backend.isolated
        else f"{signs.WARNING} NOT ISOLATED: tests run as you, on this machine"
    )


def pass_words(state: AttemptState) -> str:
    """Return what is known of the confirmation of a pass; empty if there is nothing to be confirmed."""
    words = confirmation_words(state)
    return "not confirmed yet" if words == Standing.NOT_ASKED else words


def end_words(reason: str, result: AttemptResult) -> str:
    """Return the reason of an attempt's end in words, and whether its pass counts."""
    if reason == EndReason.SOLVED and result is not AttemptResult.SOLVED:
        return TO_BE_READ if result.passes else REJECTED
    return END_WORDS.get(reason, reason)


def submission_words(submission: Submission, accepted: bool | None = None) -> str:
    """Return a submission's result in one line. `accepted` is the reviewers' decision on a pass."""
    if not submission.status:
        return "… running"
    if submission.status != "finished":
        cost = "" if submission.counts else ", not charged"
        return f"{signs.BAD} {submission.status.replace('_', ' ')}{cost}"
    result = result_of(submission.solved, submission.doubts, accepted)
    mark = {AttemptResult.SOLVED: f"{signs.GOOD} solved", AttemptResult.TO_BE_READ: TO_BE_READ}.get(
        result, f"{signs.BAD} not solved"
    )
    if submission.metrics:
        return f"{mark}: fidelity {submission.score or 0:.0f}"
    counts = f", {submission.passed} pass, {len(submission.failing)} fail"
    tests = counts if submission.passed or submission.failing else ""
    return f"{mark}: score {submission.score or 0:.3f}{tests}"
