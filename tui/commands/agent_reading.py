"""`gistpoint agent list`, `show`, `stop` and `watch`: the figures of runs, and runs in progress."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from gistpoint import __version__
from gistpoint.core.agents.scaffolds import NO_TOOLS
from gistpoint.core.errors import UserError
from gistpoint.core.locations import Locations, path_of
from gistpoint.core.readable import stamp
from gistpoint.core.requests import IsolationChoice, Request
from gistpoint.core.text import plural, visible
from gistpoint.object_graph import build_services
from gistpoint.sessions.agentruns.figure_lines import solved_line, summary_lines
from gistpoint.sessions.agentruns.figures import AttemptFigures, FiguresOfRun, figures_of, outcomes_of
from gistpoint.sessions.agentruns.run_page import run_page
from gistpoint.sessions.agentruns.runner import GRACE_S
from gistpoint.sessions.agentruns.store import AgentRun, AgentRunStore, RunSettings
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.tasks import TaskTitles
from gistpoint.tui.commands.arguments import ISOLATION, JSON
from gistpoint.tui.commands.command import DONE, NEGATIVE
from gistpoint.tui.commands.options import CliCommand, OptionTable, argument, option
from gistpoint.tui.commands.output import (
    for_output,
    print_json,
    print_records,
    print_table,
    require_terminal,
    warn_unless_html,
    write_whole,
)
from gistpoint.tui.commands.stores import attempt_store, task_titles
from gistpoint.tui.tables import Column

if TYPE_CHECKING:
    pass

_MOST_MESSAGES = 5
"""The maximum number of messages listed, below the figures, since a narrow table has no room for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListAgentRuns(Request):
    """A request to list the runs on this machine."""

    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowAgentRun(Request):
    """A request to print the figures of a run, or to write them as a table or a page."""

    name: str
    json: bool = False
    to: Literal["csv", "html"] | None = None
    output: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StopAgentRun(Request):
    """A request to stop a run."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchAgent(Request):
    """A request to watch a run or an attempt."""

    what: str
    isolation: IsolationChoice


def listing(request: ListAgentRuns) -> int:
    """Print all runs. A run that can't be read is listed with the problem as its state.

    Return the exit code.
    """
    store, attempts = AgentRunStore(Locations.of_user().runs), attempt_store()
    rows = [_listed(store, attempts, name) for name in store.names()]
    if request.json:
        print_json("gistpoint.agent_runs/1", {"runs": rows})
    elif not rows:
        print("There are no agent runs yet. `gistpoint agent run --demo --model builtin:searcher` makes one.")
    else:
        print_table([*rows[0]], [[str(value) for value in row.values()] for row in rows])
    return DONE


def _listed(store: AgentRunStore, attempts: AttemptStore, name: str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "run": name,
        "model": "",
        "host": "",
        "framework": "",
        "jobs": 0,
        "ended": 0,
        "state": "",
        "solved": "",
        "begun": "",
    }
    try:
        found = store.open(name)
        totals = outcomes_of(found, attempts)
    except UserError as error:
        return row | {"state": f"! {error}"}
    halted = totals.halted
    state = (
        "at work" if found.worked_on else f"{len(found.left)} left, {halted} halted" if found.left else "done"
    )
    return row | {
        "model": found.settings.model_and_api,
        "host": found.settings.host,
        "framework": found.settings.framework,
        "jobs": len(found.jobs),
        "ended": totals.ended,
        "state": state,
        "solved": solved_line(totals),
        "begun": stamp(found.document.created_utc_ms),
    }


def show(request: ShowAgentRun) -> int:
    """Print the figures of a run, or write them as CSV or a page. Return the exit code.

    Raises `UserError` for `output` without `to`.
    """
    found = AgentRunStore(Locations.of_user().runs).open(request.name)
    if request.output and not request.to:
        raise UserError("-o is only for a table or a page.", hint="Add --to csv or --to html.")
    figures = figures_of(found, attempt_store())
    if request.to:
        store, titled = attempt_store(), task_titles()
        pieces = (
            figures.as_csv() if request.to == "csv" else run_page(found, figures, store, titled, __version__)
        )
        if request.output:
            if request.to == "html":
                warn_unless_html(path_of(request.output))
            write_whole(path_of(request.output), (piece.encode() for piece in pieces))
        else:
            sys.stdout.writelines(for_output(pieces))
        return DONE
    print_figures(found, figures, json=request.json)
    return DONE


def print_figures(found: AgentRun, figures: FiguresOfRun, *, json: bool) -> None:
    """Print the settings and figures of a run."""
    if json:
        settings = msgspec.to_builtins(found.settings)
        print_json("gistpoint.agent_run/1", {"run": found.name, "settings": settings, **figures.as_json()})
        return
    print_records(_attempt_columns(task_titles()), figures.attempts)
    settings = found.settings
    about = {
        "run": found.name,
        "model": f"{settings.model_and_api} {f'at {settings.host}' if settings.host else ''}".strip(),
        "framework": _framework_words(settings),
    }
    if settings.agent.calls_as_text:
        about["calls"] = "written as text (--calls text)"
    messages = Counter(row.message for row in figures.attempts if row.message)
    message_rows = [
        ["message", f"{count}: {message}"] for message, count in messages.most_common(_MOST_MESSAGES)
    ]
    print_table(
        ["what", "value"],
        [
            *([*row] for row in (about | dict(summary_lines(figures.totals, found.name))).items()),
            *message_rows,
        ],
    )


def _framework_words(settings: RunSettings) -> str:
    """Return the name of a run's framework; for a scaffold, also its version and its own tools."""
    scaffold = settings.scaffold
    if scaffold is None:
        return settings.framework
    own = "" if scaffold.client_tools == NO_TOOLS else f"; has its own tools: {scaffold.client_tools}"
    return visible(f"{scaffold.name} {scaffold.version}{own}")


def _counted(value: float | None, form: str = ",.0f") -> str:
    return "" if value is None else format(value, form)


def _attempt_columns(titled: TaskTitles) -> tuple[Column[AttemptFigures], ...]:
    """Return the columns for a run's attempts. `titled` returns the author's title of a task by its id."""
    return (Column("task", lambda r: titled(r.task)), *_FIGURES)


_FIGURES: tuple[Column[AttemptFigures], ...] = (
    Column("no", lambda r: str(r.repeat)),
    Column("outcome", lambda r: r.result or r.status),
    Column("end reason", lambda r: f"{r.reason}, mixed" if r.mixed else r.reason),
    Column("calls", lambda r: _counted(r.calls)),
    Column("subm", lambda r: _counted(r.submissions)),
    Column("tokens", lambda r: _counted(r.tokens)),
    Column("cost", lambda r: _counted(r.cost_usd, ".4f")),
    Column("time", lambda r: _counted(r.wall_s, ".1f")),
    Column("attempt", lambda r: r.attempt),
    Column("message", lambda r: r.message),
)


def stop(request: StopAgentRun) -> int:
    """Ask the process that carries out a run to stop. Return 1 if there is none."""
    found = AgentRunStore(Locations.of_user().runs).open(request.name)
    if not found.ask_to_stop():
        left = f"{len(found.left)} of {plural(len(found.jobs), 'job')}"
        print(f"No process is working on {found.name}; {left} left.")
        return NEGATIVE
    print(f"Asked {found.name} to stop. Jobs under way have {GRACE_S:.0f} s to finish.")
    return DONE


def watch(request: WatchAgent) -> int:
    """Watch a run or an attempt on a screen, and return the exit code.

    An attempt that is taken over is opened for the person, and watched again when the person leaves it.
    """
    from gistpoint.tui.agent_watch_app import AgentWatchApp

    locations = Locations.of_user()
    runs = AgentRunStore(locations.runs)
    run = runs.open(request.what) if request.what in runs.names() else None
    attempt = "" if run is not None else attempt_store().folder(request.what).name
    require_terminal("watch", hint="gistpoint agent show RUN prints a run.")
    services = cache(lambda: build_services(request.isolation))
    app = AgentWatchApp(locations, run=run, attempt=attempt, services=services)
    code = app.run_to_exit_code()
    while app.taken:
        from gistpoint.tui.app import GistpointApp

        GistpointApp(services(), open=app.taken, alone=True).run_to_exit_code()
        app = AgentWatchApp(locations, run=run, attempt=app.taken, services=services, left=True)
        code = app.run_to_exit_code()
    return code


# Values of options


RUN_NAME = argument("RUN", "name of a run, as `gistpoint agent list` prints it")
LIST = CliCommand(ListAgentRuns, listing, {"json": JSON})
SHOW = CliCommand(
    ShowAgentRun,
    show,
    OptionTable(
        {
            "name": RUN_NAME,
            "json": JSON,
            "to": option(
                "a table of the attempts (csv) or a page about the run (html), to standard output or -o PATH"
            ),
            "output": option("file to write", "-o", "--output", metavar="PATH"),
        },
        one_of=(("json", "to"),),
    ),
)
STOP = CliCommand(StopAgentRun, stop, {"name": RUN_NAME})
WATCH = CliCommand(
    WatchAgent,
    watch,
    {
        "what": argument("RUN|ATTEMPT", f"{RUN_NAME.help}, or an attempt's id or its beginning"),
        "isolation": ISOLATION,
    },
)
