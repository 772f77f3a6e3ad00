"""`gistpoint agent settle`: list the jobs of a run that have not ended, by reason, or decide them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gistpoint.core.errors import UserError
from gistpoint.core.locations import Locations
from gistpoint.core.login import login_name
from gistpoint.core.requests import IsolationChoice, Request
from gistpoint.core.text import plural
from gistpoint.object_graph import build_services
from gistpoint.sessions.agentruns.beginning import ports_without_model
from gistpoint.sessions.agentruns.figure_lines import solved_line
from gistpoint.sessions.agentruns.figures import figures_of
from gistpoint.sessions.agentruns.jobs import JobState
from gistpoint.sessions.agentruns.settling import DecidedJob, Decision, SettledAs, advice, chosen_jobs
from gistpoint.sessions.agentruns.store import AgentRun, AgentRunStore
from gistpoint.tui.commands.arguments import ISOLATION, JSON
from gistpoint.tui.commands.command import DONE, NEGATIVE
from gistpoint.tui.commands.options import CliCommand, OptionTable, argument, option
from gistpoint.tui.commands.output import print_json, print_text
from gistpoint.tui.commands.stores import attempt_store, task_titles

_MOST_NUMBERS = 20
"""The maximum number of jobs listed for one reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleAgentRun(Request):
    """A request to decide jobs of a run; without an outcome or `undo`, they are only listed by reason."""

    name: str
    outcome: SettledAs | None = None
    undo: bool = False
    reason: tuple[str, ...] = ()
    job: tuple[str, ...] = ()
    why: str = ""
    by: str = ""
    json: bool = False
    isolation: IsolationChoice


def settle(request: SettleAgentRun) -> int:
    """Decide jobs, or list them. Return 1 if a job could not be decided in this way.

    Raises `UserError` if `why` or `by` is given without a decision.
    """
    found = AgentRunStore(Locations.of_user().runs).open(request.name)
    if request.outcome is None and not request.undo:
        if request.why or request.by:
            raise UserError("There is nothing to decide.", hint="Name the outcome with --as, or give --undo.")
        jobs = chosen_jobs(found, request.job, request.reason)
        _list(found, jobs, json=request.json, is_whole=not request.job and not request.reason)
        return DONE
    ports = ports_without_model(build_services(request.isolation), found.settings)
    by = request.by or login_name()
    with found.held():
        settler = ports.settler(found)
        settler.carry_out()
        jobs = chosen_jobs(found, request.job, request.reason, settled=request.undo)
        if request.outcome is None:
            decided = list(settler.undo(jobs, by, request.why))
        else:
            decided = list(settler.settle(jobs, Decision(request.outcome, by, request.why)))
    _print(request, found, decided)
    return NEGATIVE if any(job.refused for job in decided) else DONE


def _numbers(found: AgentRun) -> Mapping[str, int]:
    return {key: number for number, key in enumerate(found.jobs, start=1)}


def _list(found: AgentRun, jobs: Collection[JobState], *, json: bool, is_whole: bool) -> None:
    """Print jobs that have not ended, grouped by reason, with what can be done about each.

    `is_whole` means that `jobs` contains all halted jobs of the run, so that none of its others is halted.
    """
    ended = [state for state in jobs if state.over]
    groups: dict[str, list[JobState]] = {}
    for state in jobs:
        if not state.over:
            groups.setdefault(state.obstacle, []).append(state)
    numbers = _numbers(found)
    if json:
        rows = [
            {
                "reason": reason,
                "advice": advice(reason),
                "jobs": [{"number": numbers[state.job.key], **_values(state)} for state in states],
            }
            for reason, states in groups.items()
        ]
        print_json("gistpoint.agent_settle/1", {"run": found.name, "reasons": rows})
        return
    if ended:
        listed = ", ".join(str(numbers[state.job.key]) for state in ended)
        print_text(f"Ended, so there is nothing to decide: {plural(len(ended), 'job')} ({listed}).\n")
    elif not groups:
        print_text(f"No job of {found.name} is halted.\n")
    for reason, states in groups.items():
        print_text(_of_reason(reason, states, numbers))
    others = len(found.left) - sum(map(len, groups.values()))
    if others and is_whole:
        print_text(
            f"{plural(others, 'further job')} not halted: --reason stopped or --reason queued lists them.\n"
        )
    if groups:
        outcomes = "|".join(SettledAs)
        print_text(f"`gistpoint agent settle {found.name} --reason REASON --as {outcomes}` decides.\n")


def _of_reason(reason: str, states: Sequence[JobState], numbers: Mapping[str, int]) -> str:
    """Return lines with the jobs of one reason, up to three of their messages, and what can be done."""
    listed = ", ".join(str(numbers[state.job.key]) for state in states[:_MOST_NUMBERS])
    more = f" and {len(states) - _MOST_NUMBERS} more" if len(states) > _MOST_NUMBERS else ""
    lines = [f"{reason}: {plural(len(states), 'job')} ({listed}{more})"]
    lines += [f"    {message}" for message in dict.fromkeys(state.message for state in states) if message][:3]
    return "\n".join([*lines, f"    {advice(reason)}\n"])


def _values(state: JobState) -> dict[str, Any]:
    return {
        "task": state.job.task,
        "repeat": state.job.repeat,
        "status": state.status.value,
        "attempt": state.attempt,
        "message": state.message,
    }


def _print(request: SettleAgentRun, found: AgentRun, decided: Iterable[DecidedJob]) -> None:
    """Print each decided job, and the rate of the run afterwards."""
    totals = figures_of(found, attempt_store()).totals
    numbers, titled = _numbers(found), task_titles()
    done = "undone" if request.outcome is None else request.outcome.value
    if request.json:
        rows = [
            {"number": numbers[one.job.job.key], **_values(one.job), "refused": one.refused}
            for one in decided
        ]
        values = {"run": found.name, "decision": done, "jobs": rows, "solved": solved_line(totals)}
        print_json("gistpoint.agent_settled/1", values)
        return
    lines = [
        f"{numbers[one.job.job.key]}/{len(numbers)} {titled(one.job.job.task)}, repeat"
        f" {one.job.job.repeat}: {f'not decided. {one.refused}' if one.refused else done}"
        for one in decided
    ]
    print_text("\n".join([*lines, f"solved: {solved_line(totals)}", ""]) if lines else "No job was chosen.\n")


SETTLE = CliCommand(
    SettleAgentRun,
    settle,
    OptionTable(
        {
            "name": argument("RUN", "name of a run, as `gistpoint agent list` prints it"),
            "outcome": option(
                "not_solved, or the reason for which the attempt would have ended: counts as not solved;"
                " excluded: left out of all rates, and reported",
                "--as",
            ),
            "undo": option("undo the decision on the chosen jobs"),
            "reason": option(
                "only jobs that halted for this reason; or `stopped` or `queued` ones", metavar="REASON"
            ),
            "job": option("only this job, by its number or its attempt", metavar="JOB"),
            "why": option("the reason for the decision", metavar="TEXT"),
            "by": option("who decides (default: the login)", metavar="NAME"),
            "json": JSON,
            "isolation": ISOLATION,
        },
        one_of=(("outcome", "undo"),),
    ),
    about=(
        "Without --as and --undo, lists the halted jobs by reason, with what can be done about each. If a job"
        " is to count, its attempt is ended in the journal, and a gist written so far is judged, except with"
        " not_solved. Decisions are recorded. The exit code is 1 if the decision does not apply to a chosen"
        " job."
    ),
)
