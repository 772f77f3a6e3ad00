"""`gistpoint solve`: attempt a task on the solve screen, or with `--lines` by tool calls from standard input.

The screen is drawn before the engine is imported, so all that needs the engine is imported in functions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from gistpoint.core.attempts.identity import MODEL, Role
from gistpoint.core.errors import AttemptError, UserError
from gistpoint.core.requests import IsolationChoice, Request
from gistpoint.object_graph import ProbedBackends, build_services
from gistpoint.tui.commands.arguments import ISOLATION, LINES, TASK_HELP
from gistpoint.tui.commands.options import CliCommand, argument, option

if TYPE_CHECKING:
    from gistpoint.core.tasks.model import Task
    from gistpoint.sessions.attempt_summary import AttemptSummary
    from gistpoint.sessions.services import Services


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveRequest(Request):
    """A request to attempt a task, or to resume an attempt."""

    what: str
    new: bool = False
    role: str | None = None
    participant: str = ""
    lines: bool = False
    gist_settings: str | None = None
    isolation: IsolationChoice


def solve(request: SolveRequest) -> int:
    """Attempt a task, or resume an attempt. Return the exit code."""
    make, find = partial(_services, request), partial(_named, request.what)
    fits = partial(_require_same, request)
    return open_attempt(request.isolation, make, find, lines=request.lines, new=request.new, fits=fits)


def _require_same(request: SolveRequest, resumed: AttemptSummary) -> None:
    """Raise `UserError` if a request would change the role or the participant of a resumed attempt."""
    role, participant = request.role, request.participant
    # attempts at the public demo are never baselines
    roles = {None, resumed.role} | ({Role.BASELINE.value} if resumed.role == Role.DEMO else set())
    hint = f"Without it, the attempt {resumed.attempt_id} is resumed. A task and --new begin another one."
    if role not in roles:
        raise UserError(f"An attempt keeps its role, which is {resumed.role}, not {role}.", hint=hint)
    if participant not in ("", resumed.participant):
        whose = f"of {resumed.participant}" if resumed.participant else "of no participant"
        raise UserError(f"The attempt is {whose}, not of {participant}.", hint=hint)


def open_attempt(
    isolation: IsolationChoice,
    make: Callable[[ProbedBackends], Services],
    find: Callable[[Services], Task | str],
    *,
    lines: bool,
    new: bool = False,
    fits: Callable[[AttemptSummary], None] = lambda resumed: None,
) -> int:
    """Attempt the task, or resume the attempt, that `find` returns, on the screen or in line mode.

    For a task, resume the newest unfinished attempt, or begin one if there is none or `new` is set. `fits`
    raises `UserError` if an attempt must not be resumed. Return the exit code. Raises `UserError` if there is
    no terminal and `lines` is not set.
    """
    from gistpoint.tui.commands.output import interactive

    probed = ProbedBackends()
    if interactive() and not lines:
        from gistpoint.core.locations import Locations
        from gistpoint.tui.app import GistpointApp, ServicesMaker

        def prepared(services: Services) -> Task | str:
            return _fitting(services, _newest(services, find(services), new=new), fits)

        def made() -> Services:
            probed.begin(isolation)  # the probe waits for a process, during which the engine is imported
            return make(probed)

        maker = ServicesMaker(Locations.of_user(), made)
        return GistpointApp(maker, open=prepared, new=new).run_to_exit_code()
    services = make(probed)
    what = _fitting(services, _newest(services, find(services), new=new), fits)
    if not lines:
        raise UserError(
            "There is no terminal, so nothing was started.",
            hint="With --lines, tool calls are read from standard input, one per line.",
        )
    from gistpoint.tui.commands.solve_lines import solve_in_line_mode

    return solve_in_line_mode(services, what)


def _services(request: SolveRequest, probed: ProbedBackends) -> Services:
    """Return services that apply the requested settings of a gist, if any.

    Raises `UserError` if there are settings for an existing attempt, which keeps its own.
    """
    role = None if request.role is None else Role(request.role)
    services = build_services(request.isolation, role=role, participant=request.participant, probed=probed)
    if not request.gist_settings:
        return services
    try:
        attempt_id = services.attempts.folder(request.what).name
    except AttemptError:
        from gistpoint.sessions.services import read_gist_settings

        task = services.tasks.find(request.what)
        services = replace(services, gist_settings={task.id: read_gist_settings(request.gist_settings)})
        services.as_given(task)
        return services
    raise UserError(
        f"The attempt {attempt_id} keeps its original settings.",
        hint="Name its task instead, to start an attempt with different settings.",
    )


def _named(name: str, services: Services) -> Task | str:
    """Return the named task or the id of the named attempt.

    Raises `UserError` if there is neither, or if a model is working on the attempt.
    """
    try:
        attempt_id = services.attempts.folder(name).name
    except AttemptError:
        return services.tasks.find(name)
    state = services.attempts.summary(attempt_id).state
    if state.driver == MODEL and not state.ended:
        raise UserError(
            f"A model is working on the attempt {attempt_id}.",
            hint=f"`gistpoint agent watch {attempt_id}` takes it over.",
        )
    return attempt_id


def _fitting(services: Services, what: Task | str, fits: Callable[[AttemptSummary], None]) -> Task | str:
    """Return a task, or the id of an attempt that `fits` does not refuse to resume."""
    if isinstance(what, str):
        fits(services.attempts.summary(what))
    return what


def _newest(services: Services, found: Task | str, *, new: bool) -> Task | str:
    """Return the id of a task's newest unfinished attempt; without one, or with `new`, return `found`.

    Unfinished attempts that can only be read are named on standard error.
    """
    unfinished = [] if new or isinstance(found, str) else services.unfinished(found)
    for summary in unfinished:
        if summary.problem:
            print(f"attempt {summary.attempt_id} can only be read: {summary.problem}", file=sys.stderr)
    return next((summary.attempt_id for summary in unfinished if not summary.problem), found)


SOLVE = CliCommand(
    SolveRequest,
    solve,
    {
        "what": argument("TASK|ATTEMPT", f"{TASK_HELP}; or the id of an attempt"),
        "new": option("start another attempt although one is unfinished"),
        "role": option(
            "what the attempt is for (default: baseline)",
            choices=tuple(role.value for role in Role if role is not Role.DEMO),
        ),
        "participant": option("a pseudonym, recorded with the attempt"),
        "lines": LINES,
        "gist_settings": option(
            "tools, steps, advice and test for this gist attempt, as TOML or JSON (docs/guide/gists.md)",
            metavar="FILE",
        ),
        "isolation": ISOLATION,
    },
)
