"""`gistpoint agent`: start, resume, list, show, stop and watch runs of a model on tasks."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from gistpoint.core.agents.settings import TokenPrice
from gistpoint.core.agents.solvers import SEARCHER
from gistpoint.core.attempts.identity import Role
from gistpoint.core.errors import NoModelError, UserError
from gistpoint.core.kinds.registry import kind_with_settings
from gistpoint.core.locations import Locations, path_of
from gistpoint.core.readable import stamp
from gistpoint.core.requests import Count, IsolationChoice, Positive, Request
from gistpoint.core.tasks.budgets import Budgets
from gistpoint.core.text import plural, visible
from gistpoint.object_graph import build_services, build_worker_services
from gistpoint.sessions.agentruns.beginning import (
    AgentCondition,
    AgentModel,
    AgentPace,
    BeginAgentRun,
    PlannedRun,
    begin_run,
    first_requests,
    plan_run,
    resume_run,
)
from gistpoint.sessions.agentruns.figure_lines import solved_line, summary_lines
from gistpoint.sessions.agentruns.figures import AttemptFigures, FiguresOfRun, figures_of, outcomes_of
from gistpoint.sessions.agentruns.runner import GRACE_S, AgentPorts, AgentRunner
from gistpoint.sessions.agentruns.store import AgentJob, AgentRun, AgentRunStore
from gistpoint.sessions.attempts import AttemptStore
from gistpoint.sessions.services import Services
from gistpoint.sessions.tasks import TaskTitles
from gistpoint.tui.commands.agent_progress import JobLines, JobTable
from gistpoint.tui.commands.arguments import ISOLATION, JSON, TASK_HELP
from gistpoint.tui.commands.attempts import attempt_store, task_titles
from gistpoint.tui.commands.command import DONE, INTERRUPTED, NEGATIVE
from gistpoint.tui.commands.options import CliCommand, OptionTable, argument, option, reader_of
from gistpoint.tui.commands.output import (
    for_output,
    print_json,
    print_records,
    print_table,
    print_text,
    require_terminal,
    write_whole,
)
from gistpoint.tui.tables import Column

if TYPE_CHECKING:
    from gistpoint.sessions.agentruns.cluster_runs import ClusterRunner
    from gistpoint.tui.commands.agent_progress import JobDisplay

_AT_ONCE = 4
_MOST_MESSAGES = 5
"""The maximum number of messages listed, below the figures, since a narrow table has no room for them."""

# agent run


@dataclass(frozen=True, slots=True, kw_only=True)
class CarryOutRun(Request):
    """A request to carry out a run.

    With `json`, its figures are printed as JSON, and its progress is not shown.
    """

    pace: AgentPace
    json: bool = False
    isolation: IsolationChoice


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRunRequest(Request):
    """A request to start a run; with `dry_run`, its jobs and its first request are only printed."""

    begin: BeginAgentRun
    carry: CarryOutRun
    price: TokenPrice | None = None
    dry_run: bool = False


def run(request: AgentRunRequest) -> int:
    """Plan a run, carry it out, and print its figures; with `dry_run`, only print its jobs.

    Return 0, 1 if jobs are left, or 130 after Ctrl+C.
    """
    planned_name = None if request.dry_run else request.begin.name
    with AgentRunStore(Locations.of_user().runs).starting(planned_name):
        services = build_services(request.carry.isolation)
        try:
            plan = plan_run(services, request.begin, request.price, _print_left_out)
        except NoModelError:
            if not _asks_for_the_recording(request):
                raise
            return _play_and_search(services.locations, request)
        if request.dry_run:
            return _dry_run(services, plan, json=request.carry.json)
        found, ports = begin_run(services, plan, request.carry.pace)
    return _carry_out(request.carry, found, ports, request.begin.model.base_url)


def _play_and_search(locations: Locations, request: AgentRunRequest) -> int:
    """Play the recorded run of a model, and let the built-in solver attempt the demo's tasks."""
    from gistpoint.tui.commands.demo import play_recording

    play_recording(locations)
    searcher = replace(request.begin, model=AgentModel(model=SEARCHER))
    print(f"The built-in solver {SEARCHER} attempts the tasks of the demo now, without a model.\n")
    return run(replace(request, begin=searcher))


def _asks_for_the_recording(request: AgentRunRequest) -> bool:
    """Whether a run at the demo names neither a model nor anything that only concerns a model."""
    begin = request.begin
    has_settings = begin.model != AgentModel() or begin.condition != AgentCondition()
    has_own_output = request.dry_run or request.carry.json
    return begin.demo and not has_settings and not has_own_output


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeAgentRun(Request):
    """A request to resume a run."""

    name: str
    base_url: str = ""
    carry: CarryOutRun


def resume(request: ResumeAgentRun) -> int:
    """Resume a run, and print its figures. Return 1 if jobs are left, 130 after Ctrl+C."""
    services = build_services(request.carry.isolation)
    found, ports = resume_run(services, request.name, request.base_url, request.carry.pace)
    return _carry_out(request.carry, found, ports, request.base_url)


def _print_left_out(problem: str) -> None:
    print(f"gistpoint: left out: {visible(problem)}", file=sys.stderr)


def _carry_out(request: CarryOutRun, found: AgentRun, ports: AgentPorts, base_url: str) -> int:
    if request.pace.max_cost is not None:
        found.limit_cost(request.pace.max_cost)
    if not request.json:
        print(f"run {found.name}: {len(found.left)} of {plural(len(found.jobs), 'job')} to do", flush=True)
    display = (
        JobTable(found, task_titles())
        if sys.stdout.isatty() and not request.json
        else JobLines(found, task_titles(), quiet=request.json)
    )
    runner: AgentRunner | ClusterRunner
    if address := request.pace.cluster:
        runner = _on_cluster(request, address, found, ports, display, base_url)
    else:
        runner = _run_here(request.pace, found, ports, display)
    if runner.stopped_by:
        print(f"gistpoint: {visible(runner.stopped_by)}", file=sys.stderr)
    _print_figures(found, figures_of(found, ports.attempts), json=request.json)
    if found.left and not request.json:
        print(
            f"`gistpoint agent resume {found.name}` continues. `gistpoint agent settle {found.name}` decides."
        )
    if runner.interrupted:
        return INTERRUPTED
    return NEGATIVE if found.left else DONE


def _run_here(pace: AgentPace, found: AgentRun, ports: AgentPorts, display: JobDisplay) -> AgentRunner:
    runner = AgentRunner(
        found,
        ports,
        at_once=pace.at_once or _AT_ONCE,
        max_cost_usd=found.document.max_cost_usd,
        on_job=display.changed,
    )
    with display:
        runner.work(tick=lambda: display.draw(runner.states))
    return runner


def _on_cluster(
    request: CarryOutRun, address: str, found: AgentRun, ports: AgentPorts, display: JobDisplay, base_url: str
) -> ClusterRunner:
    from gistpoint.sandbox.cluster import worker_pool_at
    from gistpoint.sessions.agentruns.cluster_runs import ClusterRunner, work_tools

    tools = work_tools(request.isolation, base_url=base_url, tests_at_once=request.pace.tests_at_once or 0)
    with display, worker_pool_at(address, display.report) as workers:
        workers.most = request.pace.at_once
        runner = ClusterRunner(
            found,
            ports,
            workers,
            tools,
            build_worker_services,
            max_cost_usd=found.document.max_cost_usd,
            on_job=display.changed,
        )
        runner.work(tick=lambda: display.draw(runner.states, workers.sent))
    return runner


def _dry_run(services: Services, plan: PlannedRun, *, json: bool) -> int:
    """Print the jobs of a run, and the first request of its first job."""
    requests = first_requests(services, plan, _print_left_out)
    jobs = [job for job in plan.jobs if job.task in requests]
    first, settings = requests[jobs[0].task], plan.settings
    if json:
        rows = [
            {
                "task": job.task,
                "repeat": job.repeat,
                "job": job.key,
                "prompt_sha256": requests[job.task].sha256,
                "estimated_tokens": requests[job.task].tokens,
            }
            for job in jobs
        ]
        messages = [{"role": message.role, "content": message.content} for message in first.messages]
        values = {"settings": msgspec.to_builtins(settings), "jobs": rows}
        print_json("gistpoint.agent_dry_run/1", {**values, "messages": messages, "tools": [*first.tools]})
        return DONE
    for message in first.messages:
        print_text(f"--- {message.role}\n{message.content}\n")
    print_text(f"--- tools\n{', '.join(str(tool['name']) for tool in first.tools) or 'none'}\n")
    titled = task_titles()
    columns: tuple[Column[AgentJob], ...] = (
        Column("task", lambda job: titled(job.task)),
        Column("no", lambda job: str(job.repeat)),
        Column("prompt", lambda job: requests[job.task].sha256[:12]),
        Column("tokens", lambda job: f"about {requests[job.task].tokens:,}"),
    )
    print_records(columns, jobs)
    where = f" at {settings.host}" if settings.host else ""
    print_text(f"{plural(len(jobs), 'job')} for {settings.model_and_api}{where}. Nothing was sent.")
    return DONE


# agent list, show, stop


@dataclass(frozen=True, slots=True, kw_only=True)
class ListAgentRuns(Request):
    """A request to list the runs on this machine."""

    json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowAgentRun(Request):
    """A request to print the figures of a run, or to write them as a table."""

    name: str
    json: bool = False
    to: Literal["csv"] | None = None
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
    """Print all runs. A run that can't be read is listed with the problem as its state."""
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
        "jobs": len(found.jobs),
        "ended": totals.ended,
        "state": state,
        "solved": solved_line(totals),
        "begun": stamp(found.document.created_utc_ms),
    }


def show(request: ShowAgentRun) -> int:
    """Print the figures of a run, or write them as CSV. Raises `UserError` for `output` without `to`."""
    found = AgentRunStore(Locations.of_user().runs).open(request.name)
    if request.output and not request.to:
        raise UserError("-o is only for a table.", hint="Add --to csv.")
    figures = figures_of(found, attempt_store())
    if request.to:
        if request.output:
            write_whole(path_of(request.output), [line.encode() for line in figures.as_csv()])
        else:
            sys.stdout.writelines(for_output(figures.as_csv()))
        return DONE
    _print_figures(found, figures, json=request.json)
    return DONE


def _print_figures(found: AgentRun, figures: FiguresOfRun, *, json: bool) -> None:
    if json:
        settings = msgspec.to_builtins(found.settings)
        print_json("gistpoint.agent_run/1", {"run": found.name, "settings": settings, **figures.as_json()})
        return
    print_records(_attempt_columns(task_titles()), figures.attempts)
    settings = found.settings
    about = {
        "run": found.name,
        "model": f"{settings.model_and_api} {f'at {settings.host}' if settings.host else ''}".strip(),
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
    if not found.worked_on:
        left = f"{len(found.left)} of {plural(len(found.jobs), 'job')}"
        print(f"No process is working on {found.name}; {left} left.")
        return NEGATIVE
    found.ask_to_stop()
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

_count: Callable[[str], int] = reader_of(Count)
_positive: Callable[[str], float] = reader_of(Positive)


def _budgets(text: str) -> Budgets:
    uses, _, submissions = text.partition("/")
    try:
        return Budgets.of(_count(uses), _count(submissions) if submissions else None)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of tool uses and one of submissions, such as 16/4"
        ) from error


def _price(text: str) -> TokenPrice:
    try:
        values = [_from_zero(part) for part in text.split("/")]
        return TokenPrice(values[0], values[1], values[2] if len(values) > 2 else None)
    except (argparse.ArgumentTypeError, IndexError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a price such as 0.25/2 or 0.25/2/0.025") from error


def _from_zero(text: str) -> float:
    return 0.0 if text.strip() in ("0", "0.0") else _positive(text)


_CARRY = OptionTable(
    {
        "pace": OptionTable(
            {
                "at_once": option(
                    "attempts at once (default: 4; on a cluster, one running and one waiting for each"
                    " thread)",
                    metavar="N",
                ),
                "tests_at_once": option(
                    "test runs at once on a machine (default: one for each core)", metavar="M"
                ),
                "cluster": option(
                    "make the attempts on the Dask cluster with this scheduler instead", metavar="ADDRESS"
                ),
                "max_cost": option("the maximum cost of the whole run", metavar="USD"),
                "requests_per_minute": option("the maximum number of requests in any minute", metavar="N"),
                "tokens_per_minute": option(
                    "the maximum number of tokens in any minute, sent and received", metavar="N"
                ),
                "no_stream": option("request whole replies, for servers that send calls in pieces wrongly"),
            }
        ),
        "json": JSON,
        "isolation": ISOLATION,
    }
)
_MODEL = OptionTable(
    {
        "model": option("the model's name on the server, or builtin:searcher, which needs no server"),
        "base_url": option("the server, such as http://localhost:8000/v1", metavar="URL"),
        "api": option(
            "the server's API: OpenAI's, which most servers support, or the vendor's own (default: openai, or"
            " api in config.toml)"
        ),
        "temperature": option(metavar="T", read=_from_zero),
        "top_p": option(metavar="P"),
        "seed": option("the seed of the first repeat; each further one adds 1", metavar="S"),
        "effort": option("reasoning effort", metavar="low|medium|high"),
        "thinking_tokens": option("the maximum number of reasoning tokens in a reply", metavar="N"),
        "max_output_tokens": option("the maximum number of tokens in a reply", metavar="N"),
        "context": option("the server's context in tokens (default: {default})", metavar="N"),
    },
    title="model",
)
_CONDITION = OptionTable(
    {
        "setting": option("static: all files of a gist's trace at once, no tools, one reply"),
        "budgets": option(
            "tool uses and submissions for repairs (default: the task's own)", metavar="16/4", read=_budgets
        ),
        "tools": option(
            "tools for gists: all that the task offers, or only those that read and write, alone (browse)"
            " or with bash or edit_and_execute",
            choices=kind_with_settings().profiles,
        ),
        "gist_settings": option("settings for gists, as for `gistpoint solve`", metavar="FILE"),
        "attempt_tokens": option("the maximum number of tokens in an attempt", metavar="N"),
        "calls": option("text: the model writes its calls as text, for servers that don't read them"),
        "system": option("the system prompt"),
        "repeats": option("how many times each task is attempted", metavar="K"),
        "role": option("default: {default}", choices=(Role.QA.value, Role.BASELINE.value)),
    },
    title="condition",
)
RUN = CliCommand(
    AgentRunRequest,
    run,
    {
        "begin": OptionTable(
            {
                "tasks": argument("TASK|SET", f"{TASK_HELP}, a folder or a list of tasks"),
                "demo": option(
                    "tasks of the demo, by their names, or all of them; if no model is set, a recorded"
                    " attempt is shown, and builtin:searcher attempts the tasks"
                ),
                "name": option("name of the run (default: the model's name and a hash)", metavar="RUN"),
                "model": _MODEL,
                "condition": _CONDITION,
            }
        ),
        "carry": _CARRY,
        "price": option(
            "US dollars per million tokens: sent, received, cached", metavar="IN/OUT[/CACHED]", read=_price
        ),
        "dry_run": option("show the jobs and the first request; send nothing"),
    },
    about=(
        "Has a model attempt tasks with the tools, budgets and judge that a person gets. OPENAI_BASE_URL"
        " sets the server and OPENAI_API_KEY its key, or [llm] in config.toml sets both; with --api, the"
        " variables are those of the vendor, such as ANTHROPIC_API_KEY. Repeating the"
        " command makes only the attempts that are missing. The exit code is 0 if every job has ended, 1"
        " if some are left."
    ),
)
_RUN = argument("RUN", "name of a run, as `gistpoint agent list` prints it")
RESUME = CliCommand(
    ResumeAgentRun,
    resume,
    {
        "name": _RUN,
        "base_url": option("the server, if it is not the one in the settings", metavar="URL"),
        "carry": _CARRY,
    },
    about="Makes the attempts that are missing from a run, with its original settings.",
)
LIST = CliCommand(ListAgentRuns, listing, {"json": JSON})
SHOW = CliCommand(
    ShowAgentRun,
    show,
    OptionTable(
        {
            "name": _RUN,
            "json": JSON,
            "to": option("a table of the attempts, to standard output or to -o PATH"),
            "output": option("file to write", "-o", "--output", metavar="PATH"),
        },
        one_of=(("json", "to"),),
    ),
)
STOP = CliCommand(StopAgentRun, stop, {"name": _RUN})
WATCH = CliCommand(
    WatchAgent,
    watch,
    {
        "what": argument("RUN|ATTEMPT", f"{_RUN.help}, or an attempt's id or its beginning"),
        "isolation": ISOLATION,
    },
)
