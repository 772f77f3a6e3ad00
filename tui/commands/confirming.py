"""`gistpoint attempt confirm`, `attempt object` and `task control`: the confirmation of passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from gistpoint.core.confirmation.controls import write_controls
from gistpoint.core.confirmation.model import Confirmed
from gistpoint.core.errors import UserError
from gistpoint.core.kinds.confirming import confirmation_lines, controls_lines, controls_words
from gistpoint.core.kinds.folder import read_answer
from gistpoint.core.kinds.registry import kind_of
from gistpoint.core.kinds.titles import titled_id
from gistpoint.core.locations import Locations
from gistpoint.core.machine_time import SystemTime
from gistpoint.core.requests import IsolationChoice, Request
from gistpoint.core.tasks.model import CANARY
from gistpoint.object_graph import build_services
from gistpoint.sessions.annotations.reviewer import ReviewStore
from gistpoint.sessions.confirming import (
    NO_ENGINE,
    AskedPass,
    ObjectToVerdict,
    confirm_attempts,
    object_to,
    unconfirmed_attempts,
)
from gistpoint.tui.commands.arguments import ISOLATION, JSON, TASK_HELP
from gistpoint.tui.commands.command import DONE, NEGATIVE
from gistpoint.tui.commands.options import CliCommand, argument, option
from gistpoint.tui.commands.output import print_json, print_text
from gistpoint.tui.commands.progress import long_work
from gistpoint.tui.commands.stores import attempt_store


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmPasses(Request):
    """A request to confirm the passes of attempts; with `all`, every pass that still has to be confirmed."""

    attempts: tuple[str, ...] = ()
    all: bool = False
    json: bool = False
    isolation: IsolationChoice


def confirm(request: ConfirmPasses) -> int:
    """Confirm passes, and print each result. Return 1 if one is contradicted or could not be checked.

    Raises `UserError` unless there is either a named attempt or `all`.
    """
    if request.all == bool(request.attempts):
        raise UserError(
            "No attempt was given.",
            hint="Name attempts, or give --all for every pass that has not been confirmed yet.",
        )
    services = build_services(request.isolation)
    names = (
        [summary.attempt_id for summary in unconfirmed_attempts(services.attempts)]
        if request.all
        else request.attempts
    )
    found: list[AskedPass] = []
    with long_work(
        quiet=request.json, kept="The confirmations so far are in the journals; --all continues."
    ) as work:
        for outcome in confirm_attempts(services, list(dict.fromkeys(names)), work.run):
            found.append(outcome)
            if not request.json:
                print_text(f"{outcome.attempt_id}: {outcome_words(outcome)}")
    if request.json:
        print_json("gistpoint.confirmations/1", {"attempts": [outcome_row(outcome) for outcome in found]})
    elif not found:
        print("Every pass that can be confirmed has already been checked.")
    return NEGATIVE if any(map(needs_attention, found)) else DONE


def needs_attention(outcome: AskedPass) -> bool:
    """Return whether a person has to look at a pass, because it is contradicted or could not be checked."""
    return outcome.confirmation is None or outcome.confirmation.result is Confirmed.CONTRADICTED


def outcome_words(outcome: AskedPass) -> str:
    """Return the result of a request for confirmation in words, on one or more lines."""
    if outcome.confirmation is None:
        return f"not confirmed. {outcome.why_not}"
    lines = "\n  ".join(confirmation_lines(outcome.confirmation))
    return f"{lines}\n  {outcome.why_not}" if outcome.why_not else lines


def outcome_row(outcome: AskedPass) -> dict[str, Any]:
    """Return the result of a request for confirmation as JSON data."""
    confirmation = None if outcome.confirmation is None else msgspec.to_builtins(outcome.confirmation)
    return {"attempt_id": outcome.attempt_id, "confirmation": confirmation, "why_not": outcome.why_not}


def record_objection(request: ObjectToVerdict) -> int:
    """Record an objection to a verdict, for reviewers. Return the exit code."""
    locations = Locations.of_user()
    summary = object_to(attempt_store(), ReviewStore(locations.reviews, SystemTime()), request)
    print(
        f"{summary.attempt_id}: reviewers see what you wrote; the pass counts after one of them has"
        " accepted it."
    )
    return DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlTasks(Request):
    """A request to find out whether passes of tasks can be confirmed."""

    tasks: tuple[str, ...]
    json: bool = False
    isolation: IsolationChoice


def control(request: ControlTasks) -> int:
    """Make the controls of tasks, and write them next to the answers.

    Return 1 if passes of one of the tasks can't be confirmed. Raises `UserError` for a task whose passes are
    never confirmed, or can't be confirmed by this version.
    """
    services = build_services(request.isolation)
    rows: list[dict[str, Any]] = []
    with long_work(quiet=request.json, kept="The controls that were made are kept.") as work:
        for name in request.tasks:
            task = services.tasks.find(name)
            if not kind_of(task).confirms:
                raise UserError(f"Passes of {task.short_id} are not confirmed: it is a {kind_of(task).noun}.")
            confirmer = services.confirmer_for(task)
            if confirmer is None:
                raise UserError(NO_ENGINE)
            made = confirmer.control(
                task,
                read_answer(task),
                run=work.run.step(f"checking whether passes of {task.short_id} can be confirmed"),
            )
            write_controls(task.folder, made, CANARY)
            rows.append({"task_id": task.id, **msgspec.to_builtins(made)})
            if not request.json:
                head = f"{titled_id(task)}: {controls_words(made)}"
                print_text("\n  ".join([head, *controls_lines(made)]))
    if request.json:
        print_json("gistpoint.controls/1", {"tasks": rows})
    return DONE if all(row["confirmable"] for row in rows) else NEGATIVE


CONFIRM = CliCommand(
    ConfirmPasses,
    confirm,
    {
        "attempts": argument("ATTEMPT", "ids or their beginnings"),
        "all": option("every attempt on this machine with a pass that has not been confirmed yet"),
        "json": JSON,
        "isolation": ISOLATION,
    },
    about=(
        "Runs the suite again with the submitted functions in a separate process that contains no tests,"
        " and writes the result to the journal. The exit code is 1 if a pass is contradicted or could not"
        " be checked."
    ),
)
OBJECT = CliCommand(
    ObjectToVerdict,
    record_objection,
    {
        "attempt": argument("ATTEMPT", "id or its beginning"),
        "why": option("why the pass was earned", metavar="TEXT"),
        "reviewer": option(
            "who objects (default: the attempt's participant, or else the login)", metavar="NAME"
        ),
    },
    about=(
        "Writes a comment that reviewers will read. The comment itself decides nothing; `attempt accept`"
        " or `attempt reject` does."
    ),
)
CONTROL = CliCommand(
    ControlTasks,
    control,
    {"tasks": argument("TASK", TASK_HELP), "json": JSON, "isolation": ISOLATION},
    about=(
        "Runs the suite with the true function, the corrupted one and one that returns nothing, each in a"
        " process that contains no tests, and keeps the results next to the answer. The exit code is 1 if"
        " passes of a task can't be confirmed."
    ),
)
