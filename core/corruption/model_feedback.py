"""What a model that corrupts a function is told: the answer to each submission, and how much it has left."""

from __future__ import annotations

from gistpoint.core.corruption.model_rounds import Keep, LoopSettings, Trial, Verdict

_SHOWN_FAILURES = 2
_FAILURE_CHARACTERS = 2_000

NO_CALL = (
    "Your reply called no tool. The only way to submit your code is the submit_attempt tool; "
    "the other tools show you the repository."
)
CUT_OFF = "Your reply was cut off at the limit of its length. Call one tool, with less text around it."
ASKED_AGAIN = "Your reply was stopped before it was complete. Go on with one tool call, or say that you will not."


def trial_text(trial: Trial, settings: LoopSettings) -> str:
    """Return what the tests showed, measured against the aim: few failing tests, never all of them."""
    lines = [_summary(trial), _against_the_aim(trial, settings)]
    if trial.verdict is Verdict.ACCEPTED:
        lines.append(f"Its subtlety is {trial.subtlety:.2f} of 1.")
    shown = [
        f"{failure.id}\n{failure.text[:_FAILURE_CHARACTERS]}".rstrip()
        for failure in trial.failures[:_SHOWN_FAILURES]
        if failure.text
    ]
    return "\n\n".join([" ".join(line for line in lines if line), *shown])


def _summary(trial: Trial) -> str:
    if trial.verdict is Verdict.HANGS:
        return f"The tests were stopped: {trial.detail or 'they ran into a limit of time or memory'}."
    if trial.verdict is Verdict.COULD_NOT_RUN:
        return f"The tests could not be run: {trial.detail or 'the run did not finish'}."
    if trial.verdict is Verdict.BREAKS_COLLECTION:
        return "The tests can't even be collected."
    text = f"{trial.failing} of {trial.tests} tests fail."
    if trial.failing and trial.by_assertion is not None:
        text += f" {trial.by_assertion} of them fail by an assertion."
    if trial.failing and trial.through_target is not None:
        text += f" The function shows in the traceback of {trial.through_target}."
    return text


def _against_the_aim(trial: Trial, settings: LoopSettings) -> str:
    aim = f"{settings.min_failing} to {settings.most_failing} failing tests"
    if trial.verdict is Verdict.TOO_FEW_FAILING:
        return f"At least {settings.min_failing} must fail, so this does not count; the aim is {aim}."
    if trial.verdict is not Verdict.ACCEPTED:
        return "That is no subtle corruption, and it does not count."
    if trial.failing > settings.most_failing:
        return f"That is more than the aim of {aim}: a loud failure is easily traced back. Change less."
    return f"That is within the aim of {aim}."


def left_text(tool_calls: int, feedback: int, settings: LoopSettings) -> str:
    """Return the line that ends every answer."""
    kept = "the most subtle of your submissions" if settings.keep is Keep.BEST else "the last submission"
    calls = f"{tool_calls} tool {'call' if tool_calls == 1 else 'calls'}"
    if feedback:
        return (
            f"[{calls} and {feedback} {'round' if feedback == 1 else 'rounds'} of test feedback left; {kept} is kept]"
        )
    return f"[{calls} left, and no more test feedback: the next submission is the final one; {kept} is kept]"
