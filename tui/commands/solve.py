"""`gistpoint solve`: the solve screen, or with `--lines` tool calls read from standard input.

The screen is drawn before the engine is imported, so whatever needs that is imported in functions.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gistpoint.core.attempts.identity import MODEL, Role
from gistpoint.core.errors import AttemptError, UserError
from gistpoint.object_graph import ProbedBackends, build_services
from gistpoint.tui.commands.arguments import add_isolation, add_lines, isolation_of
from gistpoint.tui.commands.command import Handler

if TYPE_CHECKING:
    from gistpoint.core.tasks.model import Task
    from gistpoint.sessions.services import Services


def solve_options(parser: argparse.ArgumentParser) -> Handler:
    """Add the options of `gistpoint solve`."""
    parser.add_argument("what", metavar="TASK|ATTEMPT", help="id or its beginning, a task's folder or its .tar.zst")
    parser.add_argument("--new", action="store_true", help="begin another attempt although one is unfinished")
    parser.add_argument(
        "--role",
        choices=[role.value for role in Role if role is not Role.DEMO],
        help="what the attempt is for (default: baseline)",
    )
    parser.add_argument("--participant", default="", help="a pseudonym, recorded with the attempt")
    add_lines(parser)
    parser.add_argument(
        "--gist-settings", metavar="FILE",
        help="tools, steps, advice and test of this attempt of a gist, as TOML or JSON (docs/guide/gists.md)",
    )  # fmt: skip
    add_isolation(parser)
    return solve


def solve(options: argparse.Namespace) -> int:
    """Open a task or an attempt by id."""
    make, find = partial(_services, options), partial(_named, options)
    return open_attempt(options, make, find, new=options.new)


def open_attempt(
    options: argparse.Namespace,
    make: Callable[[ProbedBackends], Services],
    find: Callable[[Services], Task | str],
    *,
    new: bool = False,
) -> int:
    """Attempt the task or the attempt that `find` returns, on the screen or by lines; return the exit code.

    Of a task, the newest attempt that has not ended is resumed; with `new`, one is begun.
    """
    from gistpoint.tui.commands.output import interactive

    probed = ProbedBackends()
    if interactive() and not options.lines:
        from gistpoint.core.locations import Locations
        from gistpoint.tui.app import GistpointApp, ServicesMaker

        def prepared(services: Services) -> Task | str:
            return _newest(services, find(services), new=new)

        def made() -> Services:
            probed.begin(isolation_of(options))  # the probe waits for a process, in which the engine is imported
            return make(probed)

        maker = ServicesMaker(Locations.of_user(), made)
        return GistpointApp(maker, open=prepared, new=new).run_to_exit_code()
    services = make(probed)
    what = _newest(services, find(services), new=new)
    if not options.lines:
        raise UserError(
            "There is no terminal: nothing was begun.",
            hint="With --lines, tool calls are read from standard input, one a line.",
        )
    from gistpoint.tui.commands.solve_lines import solve_by_lines

    return solve_by_lines(services, what)


def _services(options: argparse.Namespace, probed: ProbedBackends) -> Services:
    """Return the services, with the settings that are given for a gist."""
    services = build_services(isolation_of(options), probed=probed)
    if not options.gist_settings:
        return services
    try:
        attempt_id = services.attempts.folder(options.what).name
    except AttemptError:
        task = services.tasks.find(options.what)
        services = replace(services, gist_settings={task.id: read_gist_settings(options.gist_settings)})
        services.as_given(task)
        return services
    raise UserError(
        f"The attempt {attempt_id} keeps the settings that it began with.",
        hint="Name its task instead, to begin an attempt with others.",
    )


def _named(options: argparse.Namespace, services: Services) -> Task | str:
    """Return the task or the attempt with the id that was given."""
    try:
        attempt_id = services.attempts.folder(options.what).name
    except AttemptError:
        return services.tasks.find(options.what)
    state = services.attempts.summary(attempt_id).state
    if state.driver == MODEL and not state.ended:
        raise UserError(
            f"A model works on the attempt {attempt_id}.", hint=f"`gistpoint agent watch {attempt_id}` takes it over."
        )
    return attempt_id


def read_gist_settings(file: str) -> dict[str, Any]:
    """Read a file of settings of gists. Raises `UserError`."""
    from gistpoint.core.kinds.kind import MOST_SETTINGS_BYTES
    from gistpoint.core.kinds.registry import kind_with_settings

    try:
        with Path(file).open("rb") as opened:
            data = opened.read(MOST_SETTINGS_BYTES + 1)
    except OSError as error:
        raise UserError(f"{file} can't be read: {error.strerror}.", hint="Name a file of settings.") from error
    if len(data) > MOST_SETTINGS_BYTES:
        raise UserError(f"{file} has more than {MOST_SETTINGS_BYTES} bytes.", hint="Name a file of settings.")
    return kind_with_settings().read_settings(data, file)


def _newest(services: Services, found: Task | str, *, new: bool) -> Task | str:
    """Return the id of the newest attempt of a task that has not ended; what was found without one, and with `new`."""
    unfinished = [] if new or isinstance(found, str) else services.unfinished(found)
    for summary in unfinished:
        if summary.problem:
            print(f"attempt {summary.attempt_id} can only be read: {summary.problem}", file=sys.stderr)
    return next((summary.attempt_id for summary in unfinished if not summary.problem), found)
