"""The program's texts for participants, in paragraphs."""

from __future__ import annotations

from urllib.parse import quote

from gistpoint.core.attempts.identity import Role
from gistpoint.core.attempts.state import AttemptState, attempt_result
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.readable import duration
from gistpoint.core.study.conditions import ANY_NUMBER, budgets_under
from gistpoint.core.study.consent import CONTACT
from gistpoint.core.study.declaration import Completion, Condition, Feedback, Study
from gistpoint.core.study.steps import (
    AttemptStep,
    BetweenStep,
    ConsentStep,
    DoneStep,
    FormStep,
    ReadyStep,
    RefusalReason,
    RefusedStep,
    SittingLimit,
    SittingOverStep,
)
from gistpoint.core.tasks.model import Task


def title_of(study: Study) -> str:
    """Return the heading for a study: `Study:` and its title, or its id if it has no title."""
    return f"Study: {study.title or study.id}"


def changed_words(step: ConsentStep) -> str:
    """Return what has changed since a person agreed; empty for a person who has not agreed before."""
    if not step.again:
        return ""
    text = "The text below has changed too." if step.text_changed else "The text below is the same as before."
    changes = " ".join(step.changes)
    return f"The study has changed since you agreed: {changes or 'no reason was given.'} {text}"


def task_heading(step: ReadyStep | AttemptStep, task: Task) -> str:
    """Return the number and kind of a task, without naming it."""
    name = "Training task" if step.training else "Task"
    return f"{name} {step.number} of {step.of}: a {kind_of(task).noun}"


def form_heading(study: Study, step: FormStep, number: int, of: int) -> str:
    """Return the heading of a form: the task before or after which it is shown, or the study's title."""
    if step.assignment and number:
        return (
            f"{'After' if step.form.at.value == 'after_task' else 'Before you work on'} task {number} of {of}"
        )
    return f"{title_of(study)}: some questions"


def budget_words(condition: Condition, task: Task, role: Role) -> str:
    """Return the budgets of an attempt in a sentence."""
    budgets, kind = budgets_under(condition, task, role), kind_of(task).blank
    parts = []
    if condition.free or budgets.tool_uses >= ANY_NUMBER:
        parts.append("as many runs and submissions as you like")
    else:
        parts.append(_count(budgets.tool_uses, kind.unit))
        parts.append("one hand-in" if kind.hands_in_once else _count(budgets.submissions, "submission"))
    limit = budgets.time_limit_s
    parts.append(f"at most {duration(limit * 1000)} of working time" if limit else "no time limit")
    return f"You have {', '.join(parts[:-1])} and {parts[-1]}."


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}{'' if number == 1 else 's'}"


def ready_words(
    step: ReadyStep | AttemptStep, task: Task, role: Role, used: AttemptState | None
) -> list[str]:
    """Return the paragraphs shown before a task begins.

    If `used` is the state of its attempt, the paragraphs are about resuming the attempt.
    """
    if used is not None:
        spent = duration(used.clock.active)
        return [
            f"You left this task after {spent} of working time.",
            "Everything is as you left it: the code, the notes, the clock. Enter continues.",
        ]
    pages = [
        "When you begin, the clock starts and the task is shown. Read it first; the tools open afterwards.",
        budget_words(step.condition, task, role),
        "F10 pauses: the clock stops, and the screen is hidden. Ctrl+G gives up this task, after asking you.",
    ]
    if step.condition.words:
        pages.insert(0, step.condition.words)
    if step.training:
        pages.insert(0, "This task is for practice. It does not count, and you will be shown the solution.")
    return pages


def between_words(step: BetweenStep, state: AttemptState | None) -> list[str]:
    """Return the text after a task, with as much of the outcome as the study reveals."""
    words = [f"Thank you. Task {step.done} of {step.of} is done."]
    if step.feedback is not Feedback.NONE and state is not None:
        words.append(f"This task: {attempt_result(state).value}.")
    if step.done < step.of:
        words.append("Continue when you are ready: the clock is stopped between two tasks.")
    return words


def goodbye_words(code: str, command: str) -> list[str]:
    """Return the text at the end of a sitting: how to continue on another day."""
    return ["That is all for today. Thank you.", f"Your code is {code}. To continue another day:", command]


def away_words(error: UserError, command: str) -> list[str]:
    """Return the text shown if the next task can't begin now. `command` continues on another day."""
    return [
        (
            "The next task can't begin now: tasks are assigned together with the other machines, and the "
            "server that connects them does not answer."
        ),
        (
            "None of your work is lost, and the clock is stopped. Try again in a moment, or close the"
            f" program and continue later: {command}"
        ),
        f"For the organiser: {error.message}",
    ]


def over_words(step: SittingOverStep) -> str:
    """Return the reason why a sitting is over."""
    why = "the number of tasks" if step.limit is SittingLimit.TASKS else "the time limit"
    return f"You have reached {why} for one sitting: {step.done} of {step.of} tasks are done."


def done_words(code: str, contact: str, step: DoneStep, completion: Completion) -> list[str]:
    """Return the closing words; only people who have completed the study get the completion code."""
    done = f"Thank you: you have done {_count(step.done, 'task')}"
    if step.complete:
        first = f"{done}, and your part in this study is complete."
    else:
        first = (
            f"{done}. The remaining tasks have been given to others, because you had not continued for a long"
            " time."
        )
    return [
        first,
        *(completion_words(completion.code, completion.url, code) if step.complete else ()),
        f"Your code was {code}. Keep it: with it you can ask for your data, or have it erased.",
        f"{CONTACT}{contact}",
    ]


def completion_words(completion: str, url: str, code: str) -> list[str]:
    """Return what a participant takes back to the recruiter; `{code}` in the address is their own code."""
    words = []
    if completion:
        words.append(f"Your completion code, to enter where you were recruited: {completion}")
    if url:
        words.append(f"To confirm that you took part, open: {url.replace('{code}', quote(code, safe=''))}")
    return words


def refused_words(step: RefusedStep, contact: str, code: str, completion: Completion) -> list[str]:
    """Return the reason why the session does not continue, what the recruiter needs, and the contact."""
    unknown = step.reason is RefusalReason.UNKNOWN_CODE
    back = list[str]()
    if step.reason is RefusalReason.SCREENED_OUT:
        back = completion_words(completion.screened_out_code, completion.screened_out_url, code)
    contact_words = "" if unknown else f"{CONTACT}{contact}"
    return [words for words in (step.words, step.hint, *back, contact_words) if words]


def withdrawn_words(*, keeps: bool, contact: str) -> list[str]:
    """Return the paragraphs for a person who withdrew.

    With `keeps`, the data is kept; otherwise, it was erased.
    """
    kept = (
        "Everything that you did so far is kept, and may be analysed."
        if keeps
        else "Your data was erased. One line stays in the study's log: a hash of your code, and how many of"
        " your tasks ended in which way."
    )
    return [
        "You no longer take part in this study. Thank you for what you have done.",
        kept,
        f"{CONTACT}{contact}",
    ]
